//! What was approved is what runs later, down to the last dependency.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::have;
use crate::support::packages::{SERVER_PY, files_below, publish_server, publish_wheels, wheel};
use crate::support::registry::Registry;
use crate::support::world::{World, approvals, asks, rewrite_approvals, texts};

/// A world whose user has `registry` for both ecosystems, with one server `hello`.
fn world(registry: &Registry, line: &[&str]) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    world.configure(&json!({
        "permissions": { "ask": ["*"] },
        "mcpServers": { "hello": { "command": line[0], "args": line[1..] } },
    }));
    world
}

fn publish_dependency(registry: &Registry, version: &str) {
    let text = format!("module.exports = '{version}';");
    registry.publish(
        "dep",
        version,
        &json!({ "main": "index.js" }),
        &[("index.js", &text)],
    );
}

/// Publishes the Python server, and its dependency in each of `versions`.
fn publish_python(registry: &Registry, versions: &[&str]) {
    let hello = wheel("hello", "1.0", &["dep"], &[("hello.py", SERVER_PY)]);
    publish_wheels(registry, "hello", &[("1.0", &hello)]);
    let wheels: Vec<_> = versions
        .iter()
        .map(|version| {
            let text = format!("version = '{version}'\n");
            (*version, wheel("dep", version, &[], &[("dep.py", &text)]))
        })
        .collect();
    let wheels: Vec<_> = wheels
        .iter()
        .map(|(version, wheel)| (*version, &wheel[..]))
        .collect();
    publish_wheels(registry, "dep", &wheels);
}

fn data(world: &World) -> PathBuf {
    world.home().join(".local/share/pml")
}

/// Removes what can be fetched again, so that the registry is asked.
fn forget_downloads(world: &World) {
    std::fs::remove_dir_all(world.home().join(".cache/pml")).unwrap();
}

/// Calls the server in a conversation of its own and, where it asks, agrees.
fn called(world: &World) -> (Value, Value) {
    let mut client = world.legacy();
    let (first, last) = client.call_agreeing(world, "hello__look", &json!({}));
    client.close();
    (first, last)
}

/// The version of the dependency that the server saw.
fn dependency(result: &Value) -> &str {
    let found = texts(result)
        .into_iter()
        .find_map(|text| text.strip_prefix("dep "));
    found.unwrap_or_else(|| panic!("{result}"))
}

fn assert_runs_unasked(world: &World, version: &str) {
    let (first, _) = called(world);
    assert!(!asks(&first), "{first}");
    assert_eq!(dependency(&first), version);
}

/// Wipes everything that was installed and recorded; a newer dependency has been published.
fn assert_asks_about(world: &World, version: &str) {
    std::fs::remove_dir_all(data(world)).unwrap();
    forget_downloads(world);
    let (asked, answered) = called(world);
    assert!(asks(&asked), "{asked}");
    let lines = &asked["approval_context"]["dependency"]["change"]["lines"];
    let expected = format!("+ 1 package more: dep@{version}");
    assert_eq!(lines[1], expected, "{asked}");
    assert_eq!(dependency(&answered), version);
    assert_runs_unasked(world, version);
}

/// A world in which an npm server runs with version 1.0.0 of its dependency, as a person approved it.
fn approved(registry: &Registry) -> World {
    publish_dependency(registry, "1.0.0");
    publish_server(registry, "1.0.0", &json!({ "dep": "^1.0.0" }));
    let world = world(registry, &["npx", "hello@1.0.0"]);
    let (asked, answered) = called(&world);
    assert!(asks(&asked));
    assert_eq!(dependency(&answered), "1.0.0");
    world
}

#[test]
fn another_version_of_an_npm_dependency_does_not_run_under_an_old_approval() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let world = approved(&registry);

    publish_dependency(&registry, "1.1.0");
    std::fs::remove_dir_all(data(&world).join("store")).unwrap();
    forget_downloads(&world);
    assert_runs_unasked(&world, "1.0.0");
    assert_asks_about(&world, "1.1.0");
}

#[test]
fn another_version_of_a_python_dependency_does_not_run_under_an_old_approval() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    publish_python(&registry, &["1.0"]);
    let world = world(&registry, &["uvx", "hello==1.0"]);
    let (asked, answered) = called(&world);
    assert!(asks(&asked));
    assert_eq!(dependency(&answered), "1.0");

    publish_python(&registry, &["1.0", "1.1"]);
    forget_downloads(&world);
    // As after an upgrade of Python: the link of the environment leads nowhere.
    let store = data(&world).join("store/pypi");
    let python = |file: &String| file.ends_with("env/bin/python");
    let python = store.join(files_below(&store).into_iter().find(python).unwrap());
    std::fs::remove_file(&python).unwrap();
    std::os::unix::fs::symlink("/nowhere/python", &python).unwrap();
    assert_runs_unasked(&world, "1.0");
    assert_asks_about(&world, "1.1");
}

#[test]
fn what_is_wanted_beside_a_python_package_is_installed_with_it_and_as_fixed() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    publish_python(&registry, &["1.0"]);
    // The package itself knows nothing of the other one.
    let hello = wheel("hello", "1.0", &[], &[("hello.py", SERVER_PY)]);
    publish_wheels(&registry, "hello", &[("1.0", &hello)]);
    let world = world(&registry, &["uvx", "--with", "dep>=1", "hello==1.0"]);
    let (asked, answered) = called(&world);
    let shown = &asked["approval_context"]["dependency"]["install"];
    assert_eq!(shown, "uvx --with 'dep>=1' hello==1.0", "{asked}");
    assert_eq!(dependency(&answered), "1.0");

    publish_python(&registry, &["1.0", "1.1"]);
    publish_wheels(&registry, "hello", &[("1.0", &hello)]);
    std::fs::remove_dir_all(data(&world).join("store")).unwrap();
    forget_downloads(&world);
    assert_runs_unasked(&world, "1.0");

    // Without it, it is another installation, and a change to agree to.
    world.configure(&json!({
        "permissions": { "ask": ["*"] },
        "mcpServers": { "hello": { "command": "uvx", "args": ["hello==1.0"] } },
    }));
    let (asked, changed) = called(&world);
    assert!(asks(&asked), "{asked}");
    let lines = &changed["approval_context"]["dependency"]["change"]["lines"];
    let told = [
        "- uvx --with 'dep>=1' hello==1.0",
        "+ uvx hello==1.0",
        "- 1 package less: dep@1.0",
    ];
    assert_eq!(*lines, json!(told), "{changed}");
}

#[test]
fn an_approval_that_says_nothing_of_dependencies_is_completed_at_its_next_use() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let world = approved(&registry);
    // As an older pml has left it: no lock anywhere but in the installation.
    let recorded = approvals(&world);
    rewrite_approvals(&world, |record| {
        for member in ["lock", "package"] {
            assert!(record.as_object_mut().unwrap().remove(member).is_some());
        }
    });
    std::fs::remove_dir_all(data(&world).join("frozen")).unwrap();
    assert_runs_unasked(&world, "1.0.0");
    assert_eq!(approvals(&world), recorded);

    publish_dependency(&registry, "1.1.0");
    std::fs::remove_dir_all(data(&world).join("store")).unwrap();
    forget_downloads(&world);
    assert_runs_unasked(&world, "1.0.0");
    assert_asks_about(&world, "1.1.0");
}

#[test]
fn a_damaged_lock_is_not_installed_from() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let world = approved(&registry);
    publish_dependency(&registry, "1.1.0");
    let folder = data(&world).join("frozen");
    let file = folder.join(&files_below(&folder)[0]);
    // Another dependency under the digest of the old one.
    let newer = {
        let other = self::world(&registry, &["npx", "hello@1.0.0"]);
        called(&other);
        let folder = data(&other).join("frozen");
        std::fs::read_to_string(folder.join(&files_below(&folder)[0])).unwrap()
    };
    let [mut kept, newer] = [&std::fs::read_to_string(&file).unwrap(), &newer]
        .map(|text| serde_json::from_str::<Value>(text).unwrap());
    assert_ne!(kept["text"], newer["text"]);
    kept["text"] = newer["text"].clone();
    std::fs::write(&file, kept.to_string()).unwrap();
    std::fs::remove_dir_all(data(&world).join("store")).unwrap();
    forget_downloads(&world);
    let (asked, answered) = called(&world);
    assert!(asks(&asked), "{asked}");
    assert_eq!(dependency(&answered), "1.1.0");
}

#[test]
fn an_installation_of_another_lock_than_the_kept_one_does_not_run_although_a_person_agrees() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let world = approved(&registry);
    publish_dependency(&registry, "1.1.0");
    let kept = |world: &World| {
        let folder = data(world).join("frozen");
        let file = files_below(&folder).remove(0);
        folder.join(file)
    };
    let other = self::world(&registry, &["npx", "hello@1.0.0"]);
    called(&other);
    std::fs::copy(kept(&other), kept(&world)).unwrap();

    let (asked, answered) = called(&world);
    let lines = &asked["approval_context"]["dependency"]["change"]["lines"];
    assert!(lines.to_string().contains("dep@1.1.0"), "{asked}");
    let refused = texts(&answered).concat();
    for wanted in [
        "`hello` was not installed from the lock that is kept for it",
        "pml verify hello",
        "pml uninstall hello, then pml install hello",
    ] {
        assert!(refused.contains(wanted), "{wanted:?} is not in {refused}");
    }
    let installed = world.run(&["install", "hello"]);
    assert_eq!(installed.status.code(), Some(1), "{installed:?}");

    // The commands that it names.
    for command in [&["uninstall", "hello"][..], &["install", "--yes", "hello"]] {
        let output = world.run(command);
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
    let (_, answered) = called(&world);
    assert_eq!(dependency(&answered), "1.1.0");
}

/// Makes a JSON file as long as one that is read may be, without another word in it.
fn pad(path: &std::path::Path) {
    let mut text = std::fs::read_to_string(path).unwrap();
    text.extend(std::iter::repeat_n("\n ", 28_000_000));
    std::fs::write(path, text).unwrap();
}

#[test]
fn what_is_known_of_a_server_is_read_beside_the_thread_that_answers() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let world = approved(&registry);
    let folder = data(&world).join("frozen");
    let lock = folder.join(files_below(&folder).remove(0));
    let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(&lock).unwrap()).unwrap();
    let blanks = "\n".repeat(20_000_000);
    kept["text"] = format!("{}{blanks}", kept["text"].as_str().unwrap()).into();
    std::fs::write(&lock, kept.to_string()).unwrap();
    let catalog = world.home().join(".cache/pml/catalog");
    for file in files_below(&catalog) {
        pad(&catalog.join(file));
    }
    // A stall of the runtime thread fails the world at its end.
    let mut client = world.legacy();
    assert!(client.tools().contains(&"hello__look".to_owned()));
    let ran = client.call("hello__look", &json!({}));
    assert_eq!(dependency(&ran), "1.0.0", "{ran}");
    client.close();
    let mut client = world.legacy();
    let ran = client.call("hello__look", &json!({}));
    assert_eq!(dependency(&ran), "1.0.0", "{ran}");
}
