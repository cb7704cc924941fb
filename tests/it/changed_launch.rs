//! A server that is declared otherwise than it was accepted, while a rule allows it: nothing of it runs before a person has
//! seen what differs.

use serde_json::{Value, json};

use crate::support::packages::files_below;
use crate::support::world::{World, approvals, asks, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually};

/// A world with a server that a rule allows, and that was used once.
fn accepted() -> World {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    assert_runs(&world);
    world
}

fn call(world: &World) -> Value {
    world.legacy().call("fake__echo", &json!({}))
}

fn assert_runs(world: &World) {
    let ran = call(world);
    assert!(!asks(&ran) && ran["isError"] != true, "{ran}");
}

fn config(world: &World) -> Value {
    serde_json::from_str(&world.read(".pml.json")).unwrap()
}

/// Declares the server with these members besides.
fn declare(world: &World, members: &Value) {
    let mut config = config(world);
    for (name, value) in members.as_object().unwrap() {
        let member = &mut config["mcpServers"]["fake"][name];
        match (member.as_object_mut(), value.as_object()) {
            (Some(variables), Some(more)) => variables.extend(more.clone()),
            _ => *member = value.clone(),
        }
    }
    world.configure(&config);
}

/// What differs, as the newest ask shows it.
fn difference(world: &World) -> Vec<String> {
    let pending = json_of(&world.run(&["pending", "--json"]));
    let newest = pending["pending"].as_array().unwrap().last().unwrap();
    let change = &newest["dependency"]["change"];
    assert_eq!(change["part"], "launch", "{newest}");
    let lines = change["lines"].as_array().unwrap().iter();
    lines.map(|line| line.as_str().unwrap().to_owned()).collect()
}

/// The texts of what was accepted.
fn pins(world: &World) -> String {
    let pins = world.home().join(".local/state/pml/pins");
    let texts = files_below(&pins)
        .into_iter()
        .map(|file| std::fs::read_to_string(pins.join(file)).unwrap());
    texts.collect()
}

#[test]
fn another_launch_of_an_accepted_server_asks_with_the_difference_although_a_rule_allows_it() {
    let program = World::new().fake(&[])["command"].as_str().unwrap().to_owned();
    for (members, lines) in [
        (
            json!({ "args": ["--banner"] }),
            vec![format!("- {program}"), format!("+ {program} --banner")],
        ),
        (
            json!({ "command": "env", "args": [program] }),
            vec![format!("- {program}"), format!("+ env {program}")],
        ),
        (
            json!({ "cwd": "elsewhere" }),
            vec!["+ runs in PROJECT/elsewhere".to_owned()],
        ),
        (
            json!({ "env": { "NODE_OPTIONS": "--require evil.js" } }),
            vec![
                "+ gets the variable NODE_OPTIONS, which decides what code runs: '--require evil.js'"
                    .to_owned(),
            ],
        ),
        (
            json!({ "env": { "TOKEN": "x${SECRET}" } }),
            vec!["+ gets the variable TOKEN, made of your ${SECRET}".to_owned()],
        ),
        (
            json!({ "envFile": "a.env" }),
            vec!["+ gets all variables of the file PROJECT/a.env".to_owned()],
        ),
    ] {
        let world = accepted();
        world.write("a.env", "KEY=hunter2\n");
        world.set("SECRET", "hunter2");
        std::fs::create_dir(world.path("elsewhere")).unwrap();
        let project = world.project().display().to_string();
        let lines: Vec<String> = { lines.iter() }
            .map(|line| line.replace("PROJECT", &project))
            .collect();
        let first = config(&world);
        declare(&world, &members);
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        assert!(asks(&asked), "{members}: {asked}");
        assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
        assert_eq!(difference(&world), lines, "{members}");
        let diff = world.run(&["diff", "fake"]);
        assert_eq!(diff.status.code(), Some(1), "{diff:?}");
        assert_eq!(stdout(&diff).lines().collect::<Vec<_>>(), lines, "{members}");

        // Neither the word of a model nor its shell accepts it.
        let continued = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
        assert!(texts(&continued).concat().contains("person"), "{continued}");
        world.set("CLAUDECODE", "1");
        let approved = world.run(&["approve", "--yes", "fake"]);
        world.set("CLAUDECODE", "");
        assert_eq!(approved.status.code(), Some(1), "{approved:?}");
        assert!(stderr(&approved).contains(&lines.join("\n")), "{approved:?}");
        assert!(asks(&client.call("fake__echo", &json!({}))), "{members}");

        world.approve_oldest();
        let ran = client.call("fake__echo", &json!({}));
        assert!(!asks(&ran), "{members}: {ran}");
        assert!(
            approvals(&world).is_empty(),
            "the answer accepts the launch, and replaces no rule"
        );
        assert_runs(&world);
        assert!(!pins(&world).contains("hunter2"));
        // What was accepted before comes back without a question.
        world.configure(&first);
        assert_runs(&world);
    }
}

#[test]
fn an_answer_counts_for_the_launch_that_was_shown_and_for_no_other() {
    let world = accepted();
    declare(&world, &json!({ "args": ["--banner"] }));
    let mut client = world.legacy();
    assert!(asks(&client.call("fake__echo", &json!({}))));
    world.approve_oldest();
    declare(&world, &json!({ "args": ["--banner", "--odd-tools"] }));
    let asked = client.call("fake__echo", &json!({}));
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
    assert!(difference(&world)[1].ends_with(" --banner --odd-tools"));
}

#[test]
fn a_command_that_becomes_an_address_is_not_connected_to_before_a_person_agreed() {
    let world = accepted();
    let program = config(&world)["mcpServers"]["fake"]["command"].clone();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    world.configure(&json!({
        "permissions": { "allow": ["fake"] },
        "mcpServers": { "fake": { "type": "http", "url": format!("{address}?key=hunter2") } },
    }));
    let asked = call(&world);
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
    assert_eq!(
        difference(&world),
        [
            format!("- the command {}", program.as_str().unwrap()),
            "- gets the variable PML_TEST_MARK".to_owned(),
            format!("+ the address {address}")
        ]
    );
    let connected = listener.accept();
    assert_eq!(connected.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_changed_value_that_decides_nothing_neither_asks_nor_is_kept() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    declare(&world, &json!({ "env": { "LEVEL": "value-one" } }));
    assert_runs(&world);
    declare(&world, &json!({ "env": { "LEVEL": "value-two" } }));
    assert_runs(&world);
    let pins = pins(&world);
    assert!(pins.contains("LEVEL") && !pins.contains("value-"), "{pins}");
}

#[test]
fn where_no_rule_allows_a_server_its_other_launch_asks_once() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
    let (asked, ran) = world.legacy().call_agreeing(&world, "fake__echo", &json!({}));
    assert!(asks(&asked) && !asks(&ran), "{ran}");
    declare(&world, &json!({ "args": ["--banner"] }));
    let mut client = world.legacy();
    let (asked, ran) = client.call_agreeing(&world, "fake__echo", &json!({}));
    assert_eq!(asked["approval_context"]["type"], "dependency_install", "{asked}");
    assert!(!asks(&ran), "{ran}");
    // Nor does it ask once more when a rule comes to allow it, used since or not.
    assert!(world.run(&["allow", "fake"]).status.success());
    assert_runs(&world);
    declare(&world, &json!({ "args": [] }));
    assert_runs(&world);
}

#[test]
fn what_a_person_writes_with_pml_does_not_ask_again() {
    let world = accepted();
    let program = config(&world)["mcpServers"]["fake"]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let mark = format!("PML_TEST_MARK={}", world.mark());
    let added = world.run(&[
        "add",
        "--yes",
        "--replace",
        "fake",
        "--env",
        &mark,
        "--",
        &program,
        "--banner",
    ]);
    assert!(added.status.success(), "{added:?}");
    let shown = format!("- {program}\n+ {program} --banner\n");
    assert!(stderr(&added).contains(&shown), "{added:?}");
    assert_runs(&world);
    declare(&world, &json!({ "args": ["--odd-tools"] }));
    let approved = world.run(&["approve", "--yes", "fake"]);
    assert!(approved.status.success(), "{approved:?}");
    assert_runs(&world);
}

/// Leaves of what was accepted what an older pml kept.
fn forget_surroundings(world: &World) {
    let directory = world.home().join(".local/state/pml/pins");
    let files = files_below(&directory);
    let file = files.iter().find(|file| file.starts_with("fake-")).unwrap();
    let mut record: Value = serde_json::from_slice(&std::fs::read(directory.join(file)).unwrap()).unwrap();
    let launch = record["launches"][0].as_object_mut().unwrap();
    assert!(launch.remove("surroundings").is_some(), "{record}");
    std::fs::write(directory.join(file), record.to_string()).unwrap();
}

#[test]
fn of_what_an_older_pml_accepted_the_words_are_compared_alone() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    declare(&world, &json!({ "env": { "TOKEN": "x" } }));
    assert_runs(&world);
    forget_surroundings(&world);

    declare(&world, &json!({ "env": { "OTHER": "x" } }));
    assert_runs(&world);
    declare(&world, &json!({ "args": ["--banner"] }));
    assert!(asks(&call(&world)));
    assert_eq!(difference(&world).len(), 2);
}

#[test]
fn what_an_older_pml_accepted_is_compared_whole_once_it_ran_again() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    declare(&world, &json!({ "env": { "TOKEN": "x" } }));
    assert_runs(&world);
    forget_surroundings(&world);
    assert_runs(&world);
    declare(&world, &json!({ "env": { "OTHER": "x" } }));
    assert!(asks(&call(&world)));
}

#[test]
fn the_launch_that_a_lock_names_is_what_a_first_use_is_compared_with() {
    let world = accepted();
    assert!(world.run(&["lock"]).status.success());
    let first = config(&world);
    let begin_anew = || std::fs::remove_dir_all(world.home().join(".local/state/pml")).unwrap();

    begin_anew();
    assert_runs(&world);

    begin_anew();
    declare(&world, &json!({ "args": ["--banner"] }));
    let asked = call(&world);
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
    let lines = difference(&world);
    assert!(
        lines[1].starts_with("+ ") && lines[1].ends_with(" --banner"),
        "{lines:?}"
    );
    world.approve_oldest();
    assert_runs(&world);

    // Another variable and another directory count as other words do, also where the project lies elsewhere.
    for (members, expected) in [
        (
            json!({ "env": { "NODE_OPTIONS": "--require evil.js" } }),
            "+ gets the variable NODE_OPTIONS, which decides what code runs: '--require evil.js'".to_owned(),
        ),
        (
            json!({ "cwd": "elsewhere" }),
            format!("+ runs in {}/elsewhere", world.project().display()),
        ),
    ] {
        begin_anew();
        world.configure(&first);
        declare(&world, &members);
        std::fs::create_dir_all(world.path("elsewhere")).unwrap();
        let asked = call(&world);
        assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
        assert_eq!(difference(&world), [expected]);
        world.assert_foretells_change(
            "fake:echo",
            "its server is declared otherwise than you accepted it",
        );
        world.approve_oldest();
        assert_runs(&world);
        // What is locked so is what the next first use is compared with.
        assert!(world.run(&["lock"]).status.success());
        begin_anew();
        assert_runs(&world);
        world.configure(&first);
        assert!(world.run(&["lock"]).status.success());
    }

    // With the launch the tools of the lock are not accepted: they are compared.
    begin_anew();
    world.configure(&first);
    declare(
        &world,
        &json!({ "args": ["--tool", r#"{"name":"more","inputSchema":{"type":"object"}}"#] }),
    );
    assert!(asks(&call(&world)));
    world.approve_oldest();
    let told = texts(&call(&world)).concat();
    assert!(
        told.contains("`fake` has tools that its lock does not have: `more`"),
        "{told}"
    );
}

#[test]
fn nothing_starts_another_launch_behind_the_back_of_a_person() {
    let world = accepted();
    let (changed, new) = (world.path("changed"), world.path("new"));
    let mut config = config(&world);
    config["permissions"]["allow"] = json!(["fake", "new"]);
    config["mcpServers"]["fake"] = world.fake(&["--started", changed.to_str().unwrap()]);
    config["mcpServers"]["fake"]["startup"] = json!("eager");
    config["mcpServers"]["new"] = world.fake(&["--started", new.to_str().unwrap()]);
    config["mcpServers"]["new"]["startup"] = json!("eager");
    world.configure(&config);
    let mut client = world.legacy();
    client.tools();
    eventually("what is new and allowed is started", DEADLINE, || new.exists());
    assert!(asks(&client.call("fake__echo", &json!({}))));
    assert!(!changed.exists());
    world.approve_oldest();
    assert!(!asks(&client.call("fake__echo", &json!({}))));
    assert!(changed.exists());
}

#[test]
fn a_server_under_development_asks_about_its_launch_too() {
    let world = accepted();
    std::fs::create_dir_all(world.home().join(".config/pml")).unwrap();
    let user = world.home().join(".config/pml/pml.json");
    std::fs::write(&user, r#"{"version": "0.1.0", "pinTools": {"fake": false}}"#).unwrap();
    declare(&world, &json!({ "args": ["--banner"] }));
    assert!(asks(&call(&world)));
    assert_eq!(difference(&world).len(), 2);
}

#[test]
fn a_person_who_accepted_the_file_was_shown_the_launch_and_what_pml_writes_is_no_person() {
    let world = accepted();
    let git = |arguments: &[&str]| {
        let done = world.program("git".as_ref()).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    declare(&world, &json!({ "args": ["--banner"] }));
    git(&["add", ".pml.json"]);
    // It came with the repository: its rule has no effect before it is accepted.
    let asked = call(&world);
    assert_eq!(asked["approval_context"]["type"], "project_trust", "{asked}");
    let trusted = world.run(&["trust", "--yes"]);
    assert!(trusted.status.success(), "{trusted:?}");
    assert!(stdout(&trusted).contains("--banner"), "{trusted:?}");
    assert_runs(&world);

    // What an agent changed stays a question, also where it has pml write the file.
    declare(&world, &json!({ "args": ["--odd-tools"] }));
    world.set("CLAUDECODE", "1");
    let allowed = world.run(&["allow", "other:tool", "--force"]);
    world.set("CLAUDECODE", "");
    assert!(allowed.status.success(), "{allowed:?}");
    assert!(asks(&call(&world)));
    assert_eq!(difference(&world).len(), 2);
}
