//! `"envFile"` of a server: its variables reach the server alone, and what cannot be used is said.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::world::{World, json_of, stderr, stdout, texts};

const TOKEN: &str = "t0ken-of-the-file";

/// A world with a server that has these members besides, and that a rule allows.
fn world(members: &Value) -> World {
    let world = World::new();
    let mut server = world.fake(&[]);
    server
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } }));
    world
}

fn given(world: &World) -> Value {
    let answer = world.legacy().call("fake__environment", &json!({}));
    serde_json::from_str(&texts(&answer).concat()).unwrap()
}

/// Asserts that no file but `a.env` holds the token.
fn assert_written_nowhere(world: &World) {
    for file in world.files() {
        let text = std::fs::read(world.home().join(&file)).unwrap_or_default();
        let holds = memchr::memmem::find(&text, TOKEN.as_bytes()).is_some();
        assert!(!holds, "{}", file.display());
    }
}

#[test]
fn its_variables_reach_the_server_as_they_are_when_it_starts_and_env_wins() {
    let world = world(&json!({ "envFile": "config/a.env" }));
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    config["mcpServers"]["fake"]["env"]["LEVEL"] = json!("declared");
    world.configure(&config);
    std::fs::create_dir(world.path("config")).unwrap();
    let text = |token: &str| format!("# mine\nexport API_TOKEN=\"{token}\" # why\nLEVEL=of-the-file\n");
    world.write("config/a.env", &text(TOKEN));
    let first = given(&world);
    assert_eq!(
        (&first["API_TOKEN"], &first["LEVEL"]),
        (&json!(TOKEN), &json!("declared"))
    );
    // Another value is no other launch: the next start has it, and nothing is asked.
    world.write("config/a.env", &text("another"));
    assert_eq!(given(&world)["API_TOKEN"], "another");
    let server = &json_of(&world.run(&["list", "--json"]))["servers"][0];
    assert_eq!(server["problems"], json!([]), "{server}");
    assert_eq!(server["envFile"], json!(world.path("config/a.env")), "{server}");
    assert_written_nowhere(&world);
}

#[test]
fn what_a_failing_server_repeats_of_it_is_hidden() {
    let world = World::new();
    world.write("a.env", &format!("API_TOKEN={TOKEN}\n"));
    let server = json!({ "command": "/bin/sh", "args": ["-c", "echo \"broke $API_TOKEN\" >&2; exit 3"], "envFile": "a.env" });
    world.configure(&json!({ "permissions": { "allow": ["loud"] }, "mcpServers": { "loud": server } }));
    world.set("PML_LOG", "trace");
    let failed = world.run(&["call", "loud", "x"]);
    let said = format!("{}{}", stderr(&failed), stdout(&failed));
    assert!(said.contains("broke [API_TOKEN]"), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
    for arguments in [&["list"][..], &["doctor"], &["history"]] {
        let output = world.run(arguments);
        let said = format!("{}{}", stderr(&output), stdout(&output));
        assert!(!said.contains(TOKEN), "{arguments:?}: {said}");
    }
    assert_written_nowhere(&world);
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_server_wherever_it_matters() {
    let world = world(&json!({ "envFile": "a.env" }));
    let path = world.path("a.env");
    let shown = path.display();
    let mut client = world.legacy();
    let mut assert_refused = |reason: &str| {
        let refused = client.call("fake__echo", &json!({}));
        let said = texts(&refused).concat();
        assert_eq!(refused["isError"], true, "{said}");
        assert!(
            said.contains("cannot start `fake`: its `envFile` cannot be used") && said.contains(reason),
            "{reason}: {said}"
        );
        for arguments in [&["list"][..], &["doctor"]] {
            let output = world.run(arguments);
            let said = format!("{}{}", stdout(&output), stderr(&output));
            assert!(
                said.contains("`fake`") && said.contains(reason),
                "{arguments:?}: {reason}: {said}"
            );
            assert!(!said.contains(TOKEN), "{said}");
        }
    };
    assert_refused(&format!("there is no file `{shown}`"));
    std::fs::create_dir(&path).unwrap();
    assert_refused(&format!("`{shown}` is not a regular file"));
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, format!("A={}\n", "x".repeat(300 * 1024))).unwrap();
    assert_refused(&format!("`{shown}` has more than 256 KiB"));
    std::fs::write(
        &path,
        format!("API_TOKEN={TOKEN}\nNODE_OPTIONS=--require={TOKEN}\n"),
    )
    .unwrap();
    assert_refused("sets `NODE_OPTIONS`, which decides what runs or what it reaches");
    assert_refused("put `NODE_OPTIONS` into the \"env\" of the server");
    std::fs::write(&path, format!("API_TOKEN={TOKEN}\n")).unwrap();
    let ran = client.call("fake__echo", &json!({}));
    assert_ne!(ran["isError"], true, "{ran}");
}

#[test]
fn a_declaration_that_no_file_can_have_is_refused_with_its_place() {
    for (entry, reason) in [
        (json!({ "command": "x", "envFile": "" }), "`envFile` is empty"),
        (
            json!({ "command": "x", "envFile": "${workspaceFolder}/.env" }),
            "write `.env` for `${workspaceFolder}/.env`",
        ),
        (
            json!({ "url": "https://e.example/mcp", "envFile": ".env" }),
            "`envFile` means nothing to a server with a `url`",
        ),
        (json!({ "command": "x", "envFile": 1 }), "expected a string"),
    ] {
        let world = World::new();
        world.configure(&json!({ "mcpServers": { "fake": entry } }));
        let said = stderr(&world.run(&["list"]));
        assert!(said.contains(".pml.json:") && said.contains(reason), "{said}");
    }
}

#[test]
fn a_person_is_shown_the_file_and_no_name_or_value_of_it() {
    let world = World::new();
    world.write("a.env", &format!("API_TOKEN={TOKEN}\n"));
    let mut server = world.fake(&[]);
    server["envFile"] = json!("a.env");
    world.configure(&json!({ "mcpServers": { "fake": server } }));
    let asked = world.legacy().call("fake__echo", &json!({}));
    let dependency = &asked["approval_context"]["dependency"];
    assert_eq!(dependency["env_file"], json!(world.path("a.env")), "{asked}");
    let shown = stdout(&world.run(&["pending"]));
    assert!(
        !shown.contains(TOKEN) && !asked.to_string().contains(TOKEN),
        "{shown}"
    );
    let approved = world.run(&["approve", "--yes", "fake"]);
    let said = stderr(&approved);
    assert!(
        said.contains(&format!("env file   {}", world.path("a.env").display())),
        "{said}"
    );
    assert_eq!(given(&world)["API_TOKEN"], TOKEN);
}
