//! A version is as old as the user wants before it is fetched, on every road; how old it is, is always told.

use serde_json::{Value, json};

use crate::support::packages::{SERVER_PY, publish_dated_wheels, publish_server, wheel};
use crate::support::registry::{Registry, hours_ago};
use crate::support::world::{Client, World, asks, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually, have};

const YEAR: i64 = 365 * 24;

/// A world with one server `hello` of this package, under `permissions`.
fn world(registry: &Registry, package: &str, permissions: &Value) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    world.configure(&json!({
        "permissions": permissions,
        "mcpServers": { "hello": { "package": package } },
    }));
    world
}

/// Writes the user's own file.
fn set_days(world: &World, days: u32) {
    let folder = world.home().join(".config/pml");
    std::fs::create_dir_all(&folder).unwrap();
    let text = json!({ "minReleaseAgeDays": days }).to_string();
    std::fs::write(folder.join("pml.json"), text).unwrap();
}

/// Publishes the npm server `hello` in each version, so many hours ago.
fn publish(registry: &Registry, versions: &[(&str, i64)]) {
    for (version, hours) in versions {
        publish_server(registry, version, &json!({}));
        registry.date("hello", version, &hours_ago(*hours));
    }
}

/// Publishes the Python server `hello` in each version, so many hours ago.
fn publish_python(registry: &Registry, requires: &[&str], versions: &[(&str, Option<i64>)]) {
    let wheels: Vec<_> = versions
        .iter()
        .map(|(version, hours)| {
            let wheel = wheel("hello", version, requires, &[("hello.py", SERVER_PY)]);
            (*version, wheel, hours.map(hours_ago))
        })
        .collect();
    let wheels: Vec<_> = wheels
        .iter()
        .map(|(version, wheel, at)| (*version, &wheel[..], at.clone()))
        .collect();
    publish_dated_wheels(registry, "hello", &wheels);
}

/// Publishes the Python module `dep` in each version, so many hours ago.
fn publish_python_dependency(registry: &Registry, versions: &[(&str, Option<i64>)]) {
    let wheels: Vec<_> = versions
        .iter()
        .map(|(version, hours)| {
            let text = format!("version = '{version}'\n");
            (
                *version,
                wheel("dep", version, &[], &[("dep.py", &text)]),
                hours.map(hours_ago),
            )
        })
        .collect();
    let wheels: Vec<_> = wheels
        .iter()
        .map(|(version, wheel, at)| (*version, &wheel[..], at.clone()))
        .collect();
    publish_dated_wheels(registry, "dep", &wheels);
}

/// Publishes the npm module `dep`, so many hours ago.
fn publish_dependency(registry: &Registry, version: &str, hours: i64) {
    let text = format!("module.exports = '{version}';");
    registry.publish(
        "dep",
        version,
        &json!({ "main": "index.js" }),
        &[("index.js", &text)],
    );
    registry.date("dep", version, &hours_ago(hours));
}

/// Asks for the server until the question says what the registry says: on a busy machine that takes a while.
fn asked_with_the_registrys_word(client: &mut Client) -> Value {
    let mut asked = Value::Null;
    let mut calls = 0;
    eventually("the registry answers", DEADLINE, || {
        calls += 1;
        asked = client.call("hello__look", &json!({ "call": calls }));
        assert!(asks(&asked), "{asked}");
        asked["approval_context"]["dependency"]["integrity"].is_string()
    });
    asked
}

const TOO_YOUNG: &str =
    "was published 3 hours ago and is not fetched before it is 1 day old (\"minReleaseAgeDays\": 1)";

const HINT: &str = "to install it all the same: pml install --now hello";

fn assert_no_archive(registry: &Registry, path: &str) {
    assert_eq!(registry.hits(path), 0, "{path} was fetched");
}

#[test]
fn a_version_that_is_too_young_is_not_fetched_on_any_road_and_now_fetches_it() {
    if !have(&["npm", "node", "uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    publish(&registry, &[("1.0.0", 3)]);
    publish_python(&registry, &[], &[("1.0.0", Some(3))]);
    for (package, spec, archive) in [
        (
            "npm:hello@1.0.0",
            "hello@1.0.0",
            Registry::tarball("hello", "1.0.0"),
        ),
        (
            "pypi:hello==1.0.0",
            "hello==1.0.0",
            "/files/hello-1.0.0-py3-none-any.whl".to_owned(),
        ),
    ] {
        let told = format!("`{spec}` {TOO_YOUNG}");
        // Whether a rule allows it or a person would be asked: the answer says why and what to do.
        for permissions in [json!({ "allow": ["hello"] }), json!({ "ask": ["*"] })] {
            let world = world(&registry, package, &permissions);
            let output = world.run(&["install", "--yes"]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(&told) && said.contains(HINT), "{said}");
            let mut client = world.legacy();
            for _ in 0..2 {
                let result = client.call("hello__look", &json!({}));
                let said = texts(&result).concat();
                assert!(!asks(&result) && result["isError"] == true, "{result}");
                assert!(said.contains(&told) && said.contains(HINT), "{said}");
            }
            assert!(stdout(&world.run(&["pending"])).is_empty());
        }
        let world = world(&registry, package, &json!({ "ask": ["*"] }));
        let output = world.run(&["add", "--yes", "other", "--package", package]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&told), "{said}");
        assert!(
            said.contains("to add it all the same: pml add --now other …"),
            "{said}"
        );
        if package.starts_with("npm") {
            assert_no_archive(&registry, &archive);
        }

        let output = world.run(&["install", "--yes", "--now", "hello"]);
        let said = stdout(&output);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(
            said,
            format!("hello: {spec} is installed (published 3 hours ago)\n")
        );
        assert!(
            stderr(&output).contains("published  3 hours ago ("),
            "{}",
            stderr(&output)
        );
        let listed = &json_of(&world.run(&["list", "--json"]))["servers"][0];
        assert_eq!(listed["age"], "3 hours ago");
        // What is there is not fetched: it is asked about, with its age, and runs.
        let mut client = world.legacy();
        let asked = client.call("hello__look", &json!({}));
        assert!(asks(&asked), "{asked}");
        assert_eq!(asked["approval_context"]["dependency"]["age"], "3 hours ago");
        assert!(
            texts(&asked).concat().contains("published 3 hours ago ("),
            "{asked}"
        );
        assert!(stdout(&world.run(&["pending"])).contains("published  3 hours ago ("));
        let result = client.proceed("hello__look", &asked, &json!({ "approved": true }));
        assert_eq!(texts(&result)[0], "dep none");
        let output = world.run(&["add", "--yes", "--now", "--json", "other", "--package", package]);
        assert_eq!(json_of(&output)["age"], "3 hours ago", "{}", stderr(&output));
    }
}

#[test]
fn a_spec_that_floats_means_the_newest_version_that_is_old_enough() {
    if !have(&["npm", "node", "uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let versions = [("1.0.0", YEAR), ("1.1.0", 48), ("1.2.0", 3)];
    publish(&registry, &versions);
    publish_python(
        &registry,
        &[],
        &versions.map(|(version, hours)| (version, Some(hours))),
    );
    let note = "the newer version 1.2.0 was published 3 hours ago and is left out";
    for package in [
        "npm:hello",
        "npm:hello@latest",
        "npm:hello@^1.0.0",
        "pypi:hello",
        "pypi:hello>=1",
    ] {
        let world = world(&registry, package, &json!({ "ask": ["*"] }));
        let mut client = world.legacy();
        let asked = asked_with_the_registrys_word(&mut client);
        let shown = &asked["approval_context"]["dependency"];
        assert_eq!(
            (&shown["version"], &shown["age"]),
            (&json!("1.1.0"), &json!("2 days ago"))
        );
        assert!(texts(&asked).concat().contains(note), "{package}: {asked}");
        client.close();
        let installed = json_of(&world.run(&["install", "--yes", "--json"]));
        assert_eq!(
            (&installed[0]["version"], &installed[0]["age"]),
            (&json!("1.1.0"), &json!("2 days ago")),
            "{package}: {installed}"
        );
        assert!(
            installed[0]["notes"][0].as_str().unwrap().ends_with(note),
            "{installed}"
        );
        // It mattered when the version was chosen; it is not told for ever.
        let listed = world.run(&["list"]);
        assert!(!stderr(&listed).contains("left out"), "{}", stderr(&listed));
        let output = world.run(&["add", "--yes", "--json", "other", "--package", package]);
        let added = json_of(&output);
        assert_eq!(added["version"], "1.1.0", "{added}");
        assert_eq!(added["notes"], json!([note]), "{added}");
    }
    // A person who wants today's gets it, also where another one was chosen before.
    let world = world(&registry, "npm:hello", &json!({ "ask": ["*"] }));
    world.legacy().call("hello__look", &json!({}));
    let installed = json_of(&world.run(&["install", "--yes", "--json", "--now", "hello"]));
    assert_eq!(installed[0]["version"], "1.2.0", "{installed}");

    let young = Registry::start();
    publish(&young, &[("1.0.0", 20), ("1.1.0", 3)]);
    publish_python(&young, &[], &[("1.0.0", Some(20)), ("1.1.0", Some(3))]);
    for (package, spec) in [
        ("npm:hello", "hello@1.1.0"),
        ("npm:hello@^1", "hello@1.1.0"),
        ("pypi:hello", "hello==1.1.0"),
    ] {
        let world = self::world(&young, package, &json!({ "allow": ["hello"] }));
        let output = world.run(&["install"]);
        assert_eq!(output.status.code(), Some(2), "{package}");
        let told = format!("`{spec}` {TOO_YOUNG}");
        assert!(stderr(&output).contains(&told), "{package}: {}", stderr(&output));
    }
}

#[test]
fn what_no_registry_dates_is_installed_and_told_as_not_known() {
    if !have(&["npm", "node", "uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    publish_python(&registry, &[], &[("1.0.0", None)]);
    for package in [
        "npm:hello@1.0.0",
        "npm:hello",
        "npm:hello@^1",
        "pypi:hello==1.0.0",
        "pypi:hello",
    ] {
        let world = world(&registry, package, &json!({ "ask": ["*"] }));
        let mut client = world.legacy();
        let asked = client.call("hello__look", &json!({}));
        assert!(asks(&asked), "{package}: {asked}");
        assert!(texts(&asked).concat().contains("published not known"), "{asked}");
        let result = client.proceed("hello__look", &asked, &json!({ "approved": true }));
        assert_eq!(texts(&result)[0], "dep none", "{package}: {result}");
        let listed = &json_of(&world.run(&["list", "--json"]))["servers"][0];
        assert_eq!(
            (&listed["published"], &listed["age"]),
            (&Value::Null, &Value::Null)
        );
    }
    // What one says of other versions says nothing of this one.
    publish(&registry, &[("0.9.0", 3)]);
    publish_server(&registry, "1.0.0", &json!({}));
    let world = world(&registry, "npm:hello@1.0.0", &json!({ "allow": ["hello"] }));
    let output = world.run(&["install"]);
    assert!(
        stdout(&output).contains("(published at a time not known)"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_users_own_file_says_how_old_and_no_projects() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = Registry::start();
    publish(&registry, &[("1.0.0", 3), ("0.9.0", 10 * 24)]);
    let allowed = json!({ "allow": ["hello"] });
    let world = world(&registry, "npm:hello@1.0.0", &allowed);
    set_days(&world, 0);
    assert!(world.run(&["install"]).status.success());
    // What is installed runs whatever the setting becomes: nothing is fetched for it.
    set_days(&world, 30);
    let result = world.legacy().call("hello__look", &json!({}));
    assert_eq!(texts(&result)[0], "dep none", "{result}");

    let world = self::world(&registry, "npm:hello@0.9.0", &allowed);
    set_days(&world, 30);
    let output = world.run(&["install"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("`hello@0.9.0` was published 10 days ago and is not fetched before it is 30 days old (\"minReleaseAgeDays\": 30)"),
        "{said}"
    );
    set_days(&world, 10);
    assert!(world.run(&["install"]).status.success());

    let world = self::world(&registry, "npm:hello@1.0.0", &allowed);
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    config["minReleaseAgeDays"] = 0.into();
    world.configure(&config);
    let output = world.run(&["install"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("a project cannot decide how old what it has installed must be"),
        "{said}"
    );
    for refused in ["-1", "366", "1.5", "\"1\""] {
        let user = world.home().join(".config/pml/pml.json");
        std::fs::create_dir_all(user.parent().unwrap()).unwrap();
        std::fs::write(&user, format!("{{\"minReleaseAgeDays\": {refused}}}")).unwrap();
        let output = world.run(&["list"]);
        assert_eq!(output.status.code(), Some(2), "{refused}: {}", stderr(&output));
    }
}

#[test]
fn what_a_package_depends_on_is_old_enough_as_well() {
    if !have(&["npm", "node", "uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({ "dep": "^1.0.0" }));
    registry.date("hello", "1.0.0", &hours_ago(YEAR));
    publish_python(&registry, &["dep"], &[("1.0.0", Some(YEAR))]);
    publish_dependency(&registry, "1.0.0", YEAR);
    publish_dependency(&registry, "1.1.0", 3);
    publish_python_dependency(&registry, &[("1.0.0", Some(YEAR)), ("1.1.0", Some(3))]);
    let allowed = json!({ "allow": ["hello"] });
    for package in ["npm:hello@1.0.0", "pypi:hello==1.0.0"] {
        let world = world(&registry, package, &allowed);
        let result = world.legacy().call("hello__look", &json!({}));
        assert_eq!(texts(&result)[0], "dep 1.0.0", "{package}: {result}");
    }

    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({ "dep": "^1.0.0" }));
    registry.date("hello", "1.0.0", &hours_ago(YEAR));
    publish_python(&registry, &["dep"], &[("1.0.0", Some(YEAR))]);
    publish_dependency(&registry, "1.1.0", 3);
    publish_python_dependency(&registry, &[("1.1.0", Some(3))]);
    for (package, spec) in [
        ("npm:hello@1.0.0", "hello@1.0.0"),
        ("pypi:hello==1.0.0", "hello==1.0.0"),
    ] {
        let world = world(&registry, package, &allowed);
        let result = world.legacy().call("hello__look", &json!({}));
        let said = texts(&result).concat();
        let told = format!(
            "`{spec}` needs a package that was published too short a time ago: nothing is fetched before it is 1 day old"
        );
        assert!(said.contains(&told) && said.contains(HINT), "{package}: {said}");
        assert!(said.contains("dep"), "{said}");
        let output = world.run(&["install", "--now", "hello"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let result = world.legacy().call("hello__look", &json!({}));
        assert_eq!(texts(&result)[0], "dep 1.1.0", "{package}: {result}");
    }
    assert_eq!(
        registry.hits(&Registry::tarball("dep", "1.1.0")),
        1,
        "fetched before `--now`"
    );

    // A dependency without a date beside one with a date: the first is taken, the second must be old enough.
    for (undated, dated, told) in [
        (None, Some(YEAR), "dep 2.0.0"),
        (None, Some(3), "too short a time ago"),
    ] {
        let registry = Registry::start();
        publish_python(&registry, &["dep", "more"], &[("1.0.0", Some(YEAR))]);
        publish_python_dependency(&registry, &[("2.0.0", undated)]);
        let more = wheel("more", "1.0.0", &[], &[("more.py", "")]);
        publish_dated_wheels(&registry, "more", &[("1.0.0", &more[..], dated.map(hours_ago))]);
        let world = world(&registry, "pypi:hello==1.0.0", &allowed);
        let result = world.legacy().call("hello__look", &json!({}));
        let said = texts(&result).concat();
        assert!(said.contains(told), "{said}");
        assert_eq!(
            said.contains("`more==1.0.0` was published 3 hours ago"),
            dated == Some(3),
            "{said}"
        );
    }
}

#[test]
fn a_young_version_that_was_approved_is_fetched_again() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = Registry::start();
    publish(&registry, &[("1.0.0", 3)]);
    let world = world(&registry, "npm:hello@1.0.0", &json!({ "ask": ["*"] }));
    assert!(
        world
            .run(&["install", "--yes", "--now", "hello"])
            .status
            .success()
    );
    let mut client = world.legacy();
    let asked = client.call("hello__look", &json!({}));
    client.proceed("hello__look", &asked, &json!({ "approved": true }));
    client.close();
    std::fs::remove_dir_all(world.home().join(".local/share/pml/store")).unwrap();
    let result = world.legacy().call("hello__look", &json!({}));
    assert_eq!(texts(&result)[0], "dep none", "{result}");
}

#[test]
fn a_lock_and_a_difference_are_of_a_young_version_where_a_person_says_so() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = Registry::start();
    publish(&registry, &[("1.0.0", YEAR), ("1.2.0", 3)]);
    publish_server(&registry, "1.1.0", &json!({ "dep": "^1.0.0" }));
    registry.date("hello", "1.1.0", &hours_ago(48));
    publish_dependency(&registry, "1.0.0", 3);
    let world = world(&registry, "npm:hello@1.0.0", &json!({ "ask": ["*"] }));

    // The newest version is old enough, and what it needs is not.
    let refused = world.run(&["lock", "--upgrade", "hello"]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("hint: to take it all the same: pml lock --now --upgrade hello"),
        "{said}"
    );
    assert!(!world.path(".pml.lock").exists() && world.read(".pml.json").contains("hello@1.0.0"));

    let refused = world.run(&["diff", "--to", "1.2.0", "hello"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let differs = world.run(&["diff", "--now", "--to", "1.2.0", "--json", "hello"]);
    assert_eq!(differs.status.code(), Some(1), "{}", stderr(&differs));
    let said: Value = serde_json::from_slice(&differs.stdout).unwrap();
    let now = &said["now"];
    assert_eq!(
        (&now["version"], &now["age"]),
        (&json!("1.2.0"), &json!("3 hours ago"))
    );
    assert!(world.read(".pml.json").contains("hello@1.0.0"), "it only looks");

    let locked = json_of(&world.run(&["lock", "--now", "--upgrade", "hello", "--json"]));
    let server = &locked["servers"][0];
    assert_eq!(
        (&server["version"], &server["age"]),
        (&json!("1.1.0"), &json!("2 days ago"))
    );
    assert!(server["published"].is_string(), "{locked}");
    assert!(world.read(".pml.json").contains("hello@1.1.0"));

    // A version that is declared and needs what is too young.
    let world = self::world(&registry, "npm:hello@1.1.0", &json!({ "ask": ["*"] }));
    let refused = world.run(&["lock"]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("hint: to take it all the same: pml lock --now hello"),
        "{said}"
    );
    let locked = world.run(&["lock", "--now"]);
    assert!(locked.status.success(), "{}", stderr(&locked));
    let listed = stdout(&world.run(&["list"]));
    assert!(listed.contains("  2 days ago  "), "{listed}");
}

#[test]
fn a_declared_server_is_approved_all_the_same_where_its_person_says_now() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = Registry::start();
    publish(&registry, &[("1.0.0", 3)]);
    let world = world(&registry, "npm:hello@1.0.0", &json!({ "ask": ["*"] }));
    let refused = world.run(&["approve", "--yes", "hello"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("pml approve --now hello"),
        "{}",
        stderr(&refused)
    );
    assert_no_archive(&registry, &Registry::tarball("hello", "1.0.0"));

    let approved = world.run(&["approve", "--yes", "--now", "--json", "hello"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let told = json_of(&approved);
    assert_eq!(
        (&told["name"], &told["version"], &told["tools"]),
        (
            &json!("hello"),
            &json!("1.0.0"),
            &json!(["hello:look", "hello:note"])
        ),
        "{told}"
    );
    assert!(
        told["integrity"].as_str().unwrap().starts_with("sha512-"),
        "{told}"
    );
    assert!(!asks(&world.legacy().call("hello__look", &json!({}))));

    // A call that waits is approved by none of these words.
    assert!(world.run(&["ask", "hello:look"]).status.success());
    let asked = world.legacy().call("hello__look", &json!({}));
    assert!(asks(&asked), "{asked}");
    let code = json_of(&world.run(&["pending", "--json"]))["pending"][0]["code"]
        .as_str()
        .unwrap()
        .to_owned();
    let confused = world.run(&["approve", "--json", &code]);
    assert_eq!(confused.status.code(), Some(1), "{}", stderr(&confused));
    assert!(
        stderr(&confused).contains(&format!(
            "`--json` is about a declared server, and `{code}` is a call that waits"
        )),
        "{}",
        stderr(&confused)
    );
}

#[test]
fn an_agent_does_not_hurry_for_its_person() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = Registry::start();
    publish(&registry, &[("1.0.0", 3)]);
    let world = world(&registry, "npm:hello@1.0.0", &json!({ "allow": ["hello"] }));
    world.set("CLAUDECODE", "1");
    for command in [
        vec!["install", "--now", "hello"],
        vec!["add", "--now", "--yes", "other", "--package", "npm:hello@1.0.0"],
        vec!["lock", "--now"],
        vec!["diff", "--now", "hello"],
        vec!["approve", "--now", "--yes", "hello"],
    ] {
        let output = world.run(&command);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let told = format!("`pml {} --now` is for a person", command[0]);
        assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    }
    assert_no_archive(&registry, &Registry::tarball("hello", "1.0.0"));
    // All of them at once are not hurried by one word.
    let output = world.run(&["install", "--now"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_real_package_is_told_with_its_age() {
    if !have(&["npm", "node", "uv"]) {
        return;
    }
    for package in [
        "npm:@modelcontextprotocol/server-filesystem@2026.8.31",
        "pypi:mcp-server-time==2026.10.19",
    ] {
        let world = World::new();
        world.configure(&json!({ "mcpServers": { "real": { "package": package } } }));
        let mut client = world.legacy();
        let asked = client.call("real__connect", &json!({}));
        assert!(asks(&asked), "{asked}");
        // It goes on where the question did not wait for it.
        eventually("the registry answers", DEADLINE, || {
            let listed = &json_of(&world.run(&["list", "--json"]))["servers"][0];
            let starts =
                |member: &str, text: &str| listed[member].as_str().is_some_and(|told| told.starts_with(text));
            starts("published", "2026-") && listed["age"].as_str().unwrap().ends_with(" days ago")
        });
    }
}
