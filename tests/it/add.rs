//! `pml add`: shown, agreed to, started, learned, approved; or nothing at all.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::have;
use crate::support::terminal::typed;
use crate::support::world::{World, asks, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually, fake_server};

const COMMENTED: &str =
    "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"./other\" }, // stays\n  },\n}\n";

fn fake() -> String {
    fake_server().to_str().unwrap().to_owned()
}

#[test]
fn a_plain_command_is_started_learned_and_approved() {
    let world = World::new();
    let fake = fake();
    let output = world.run(&[
        "add",
        "--yes",
        "fake",
        "--env",
        "LEVEL=${LEVEL:-low}",
        "--",
        &fake,
        "--banner",
    ]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(stdout(&output).starts_with("fake:echo\n"), "{}", stdout(&output));
    assert!(
        said.contains(&format!("\nruns       {fake} --banner\n")),
        "{said}"
    );
    assert!(said.contains("created .pml.json: `fake`\n"), "{said}");
    let written: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(
        written["mcpServers"],
        json!({ "fake": { "command": fake, "args": ["--banner"], "env": { "LEVEL": "${LEVEL:-low}" } } })
    );
    world.assert_no_survivor("after an add");

    // The very first list is complete, and the approval counts.
    let mut client = world.legacy();
    assert!(client.tools().contains(&"fake__echo".to_owned()));
    let result = client.call("fake__echo", &json!({ "a": 1 }));
    assert!(!asks(&result), "{result}");
    assert!(texts(&result)[0].contains("\"a\":1"), "{result}");
}

#[test]
fn without_a_terminal_and_without_yes_nothing_happens() {
    let world = World::new();
    let started = world.path("started");
    let output = world.run(&[
        "add",
        "fake",
        "--",
        &fake(),
        "--started",
        started.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.ends_with(
            "error: `fake` was not added: there is no terminal to ask in\n\n\
             hint: to agree beforehand: pml add --yes …\n"
        ),
        "{said}"
    );
    assert!(!started.exists() && !world.path(".pml.json").exists());
}

#[test]
fn a_server_that_does_not_start_leaves_everything_as_it_was() {
    let world = World::new();
    world.write(".pml.json", COMMENTED);
    let output = world.run(&["add", "--yes", "bad", "--", &fake(), "--exit-at-once", "3"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("error: `bad` was not added: it could not be started\n"),
        "{said}"
    );
    assert!(said.contains("caused by: it exited with code 3"), "{said}");
    assert_eq!(world.read(".pml.json"), COMMENTED);
    let mut files = world.files();
    let is_told = |path: &str| path.contains("/pml/history/") || path.ends_with("/pml/failures/bad.log");
    files.retain(|file| !is_told(&file.to_string_lossy()));
    assert_eq!(
        files,
        Vec::<std::path::PathBuf>::new(),
        "no approval, no catalog; that it was started is recorded, and why it failed"
    );
    world.assert_no_survivor("after a failed add");
}

#[test]
fn the_rest_of_the_file_stays_and_a_taken_name_is_refused() {
    let world = World::new();
    world.write(".pml.json", COMMENTED);
    let output = world.run(&["add", "--yes", "other", "--", &fake()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "error: `other` is declared in .pml.json already\n\n\
         hint: to put this one in its place: pml add --replace …\n"
    );
    assert_eq!(world.read(".pml.json"), COMMENTED);

    let output = world.run(&["add", "--yes", "--json", "fake", "--", &fake()]);
    let done = json_of(&output);
    assert_eq!(
        (&done["approved"], &done["version"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(
        done["tools"][0],
        json!({ "tool": "fake:echo", "wireName": "fake__echo" })
    );
    let after = world.read(".pml.json");
    assert!(
        after.starts_with(
            "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"./other\" }, // stays\n"
        ),
        "{after}"
    );

    let output = world.run(&["add", "--yes", "--replace", "other", "--", &fake()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(world.read(".pml.json").contains("// mine"));
}

#[test]
fn a_declaration_alone_starts_and_approves_nothing() {
    let world = World::new();
    let started = world.path("started");
    let started = started.to_str().unwrap();
    let arguments = [
        "add",
        "--no-install",
        "--user",
        "--startup",
        "eager",
        "fake",
        "--",
        &fake(),
        "--started",
        started,
    ];
    let output = world.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!std::path::Path::new(started).exists() && !world.path(".pml.json").exists());
    let listed = json_of(&world.run(&["list", "--json"]));
    let server = &listed["servers"][0];
    let file = world.home().join(".config/pml/pml.json");
    assert_eq!(
        (
            &server["approved"],
            &server["startup"],
            &server["file"],
            &server["tools"]
        ),
        (&json!(false), &json!("eager"), &json!(file), &Value::Null)
    );
    let mut client = world.legacy();
    assert!(asks(&client.call("fake__connect", &json!({}))));
}

#[test]
fn an_exact_version_is_declared_without_a_registry() {
    let world = World::new();
    world.set("PATH", "/nowhere");
    let arguments = [
        "add",
        "--no-install",
        "--allow-scripts",
        "p",
        "--package",
        "npm:left-pad@1.3.0",
        "--",
        "a",
    ];
    let output = world.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let written: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(
        written["mcpServers"]["p"],
        json!({ "package": "npm:left-pad@1.3.0", "args": ["a"], "allowScripts": true })
    );
}

#[test]
fn a_bad_name_or_line_is_told_before_anything_happens() {
    let world = World::new();
    for (arguments, told) in [
        (&["a__b", "--", "x"][..], "contains `__`"),
        (&["x"][..], "required arguments were not provided"),
        (&["x", "--env", "A", "--", "x"], "write it as NAME=VALUE"),
        (&["x", "--env", "=1", "--", "x"], "is empty or contains `=`"),
        (&["x", "--", ""], "`command` is empty"),
        (
            &["x", "--", "npx", "--call", "y"],
            "does not know the option `--call` of `npx`",
        ),
        (
            &["x", "--", "npx", "git+ssh://host/x"],
            "is not a package of a registry",
        ),
        (
            &["x", "--package", "left-pad"],
            "does not start with `npm:` or `pypi:`",
        ),
        (&["x", "--", "./x", "${UNSET_ONE}"], "`UNSET_ONE` is not set"),
    ] {
        let output = world.run(&[&["add", "--yes"], arguments].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(told), "{arguments:?}: {said}");
    }
    assert!(!world.path(".pml.json").exists());
    assert_eq!(world.files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_person_at_the_terminal_decides() {
    if !have(&["script"]) {
        return;
    }
    for (line, code) in [("n\n", 1), ("\n", 1), ("y\n", 0)] {
        let world = World::new();
        let (status, said) = typed(&world, &format!("add fake -- {}", fake()), line);
        assert_eq!(status, Some(code), "{line:?}: {said}");
        assert!(said.contains("Start and add it? [y/N]"), "{said}");
        assert_eq!(world.path(".pml.json").exists(), code == 0, "{said}");
    }
}

#[test]
fn an_interrupted_add_leaves_nothing_behind() {
    let world = World::new();
    let started = world.path("started");
    let arguments = [
        "add",
        "--yes",
        "fake",
        "--",
        &fake(),
        "--silent",
        "--started",
        started.to_str().unwrap(),
    ];
    let mut command = world.command(&arguments);
    let adding = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the server runs", DEADLINE, || started.exists());
    let id = rustix::process::Pid::from_raw(i32::try_from(adding.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = adding.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.ends_with("interrupted; nothing was changed\n"), "{said}");
    assert!(!world.path(".pml.json").exists());
    world.assert_no_survivor("after an interrupted add");
}

/// Adds a real package by a floating line and returns the words that were written.
fn pinned(world: &World, name: &str, line: &[&str]) -> (Value, String) {
    let arguments = [&["add", "--yes", "--json", name, "--"], line].concat();
    let done = json_of(&world.run(&arguments));
    let version = done["version"].as_str().unwrap().to_owned();
    assert!(
        version.starts_with(|first: char| first.is_ascii_digit()),
        "{done:#}"
    );
    let written: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(written["mcpServers"][name], done["entry"]);
    let listed = json_of(&world.run(&["list", "--json"]));
    let server = &listed["servers"][0];
    assert_eq!(
        (
            &server["installed"],
            &server["approved"],
            &server["version"],
            &server["integrity"]
        ),
        (&json!(true), &json!(true), &done["version"], &done["integrity"])
    );
    assert_eq!(server["problems"], json!([]));
    (done["entry"].clone(), version)
}

#[test]
fn a_real_npm_package_is_pinned_in_its_own_words_and_runs_unasked() {
    if !have(&["npm"]) || !have(&["node"]) {
        return;
    }
    let world = World::new();
    let package = "@modelcontextprotocol/server-filesystem";
    let (entry, version) = pinned(&world, "files", &["npx", "-y", package, "."]);
    let spec = format!("{package}@{version}");
    assert_eq!(entry, json!({ "command": "npx", "args": ["-y", spec, "."] }));
    let mut client = world.legacy();
    assert!(client.tools().contains(&"files__list_directory".to_owned()));
    let result = client.call("files__list_directory", &json!({ "path": "." }));
    assert!(texts(&result)[0].contains(".pml.json"), "{result}");
}

#[test]
fn a_real_package_that_does_not_start_is_taken_out_of_the_store_again() {
    if !have(&["uv"]) {
        return;
    }
    let world = World::new();
    let output = world.run(&[
        "add",
        "--yes",
        "time",
        "--",
        "uvx",
        "mcp-server-time",
        "--no-such-option",
    ]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("installing time: downloading"), "{said}");
    assert!(said.contains("--no-such-option"), "what it wrote is told: {said}");
    assert!(!world.path(".pml.json").exists());
    let kept: Vec<_> = world
        .files()
        .into_iter()
        .filter(|file| file.components().any(|part| part.as_os_str() == "env"))
        .collect();
    assert_eq!(kept, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_real_pypi_package_is_pinned_in_its_own_words_and_runs_unasked() {
    if !have(&["uv"]) {
        return;
    }
    let world = World::new();
    let (entry, version) = pinned(&world, "time", &["uvx", "mcp-server-time"]);
    let spec = format!("mcp-server-time=={version}");
    assert_eq!(entry, json!({ "command": "uvx", "args": [spec] }));
    let mut client = world.legacy();
    let result = client.call("time__get_current_time", &json!({ "timezone": "UTC" }));
    assert!(texts(&result)[0].contains("UTC"), "{result}");
    client.close();

    // What was approved is taken out with its declaration; what was installed is named.
    let removed = stderr(&world.run(&["remove", "time"]));
    assert!(
        removed.contains(&format!("`{spec}` stays installed")),
        "{removed}"
    );
}
