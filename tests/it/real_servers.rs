//! Real servers from npm and PyPI through the real binary: asking, continuing, remembering, refusing.
//!
//! Every test has a store and a state of its own. Only the downloads of npm and uv are shared: what they keep is
//! checked against its integrity again at each installation.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, forget_approvals, stderr, texts};
use crate::support::{have, sdk};

const FILESYSTEM: &str = "npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .";
const UNPINNED: &str = "npx -y @modelcontextprotocol/server-filesystem .";
const EVERYTHING: &str = "npx -y @modelcontextprotocol/server-everything@2026.8.31";
const TIME: &str = "uvx mcp-server-time==2026.10.19";

fn servers(name: &str, line: &str) -> Value {
    let mut words = line.split(' ');
    json!({ name: { "command": words.next(), "args": words.collect::<Vec<_>>() } })
}

/// A world with one real server that nobody has approved yet.
fn world(name: &str, line: &str) -> World {
    let world = World::new();
    let cache = world.home().join(".cache/pml");
    std::fs::create_dir_all(&cache).unwrap();
    for downloads in ["npm", "uv"] {
        std::os::unix::fs::symlink(sdk::kept(downloads), cache.join(downloads)).unwrap();
    }
    rule(&world, name, line, &json!({ "ask": ["*"] }));
    world.write("a.txt", "from a file\n");
    world
}

fn rule(world: &World, name: &str, line: &str, permissions: &Value) {
    world.configure(&json!({ "permissions": permissions, "mcpServers": servers(name, line) }));
}

/// Whether anything was installed: every installation carries its manifest.
fn is_anything_installed(world: &World) -> bool {
    world
        .files()
        .iter()
        .any(|file| file.ends_with("pml-manifest.json"))
}

/// The `approval_context` but for its id, which is returned apart.
fn context(asked: &Value) -> (Value, String) {
    assert!(asks(asked), "{asked}");
    assert_eq!(
        asked["approval_context"],
        asked["structuredContent"]["approval_context"]
    );
    let mut context = asked["approval_context"].clone();
    let id = context.as_object_mut().unwrap().remove("workflow_id").unwrap();
    (context, id.as_str().unwrap().to_owned())
}

fn read_a() -> Value {
    json!({ "path": "a.txt" })
}

#[test]
fn the_filesystem_server_is_asked_for_installed_and_remembered() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = world("filesystem", FILESYSTEM);
    let mut client = world.legacy();
    assert_eq!(client.tools()[0], "filesystem__connect");

    let asked = client.call("filesystem__read_text_file", &read_a());
    assert!(
        !is_anything_installed(&world),
        "the question comes before the installation"
    );
    assert_eq!(
        texts(&asked)[0],
        "Approval required to install filesystem@2026.8.31"
    );
    let (mut context, _) = context(&asked);
    // How old it is depends on the day.
    let shown = context["dependency"].as_object_mut().unwrap();
    let (published, age) = (shown.remove("published"), shown.remove("age"));
    assert_eq!(published.is_some(), age.is_some());
    assert_eq!(
        context,
        json!({
            "type": "dependency_install",
            "tool": "filesystem:read_text_file",
            "dependency": {
                "name": "filesystem",
                "version": "2026.8.31",
                "install": context["dependency"]["install"],
                "integrity": context["dependency"]["integrity"],
            },
        })
    );
    // The registry is waited for a moment; where it takes longer, the integrity is recorded at first use.
    let integrity = context["dependency"]["integrity"].as_str();
    assert!(
        integrity.is_none_or(|text| text.starts_with("sha512-")),
        "{context}"
    );

    // The continuation brings other arguments along: the suspended ones are those that run.
    let id = &asked["approval_context"]["workflow_id"];
    let continuation =
        json!({ "path": "b.txt", "continue_workflow": { "workflow_id": id, "approved": true } });
    let result = client.call("filesystem__read_text_file", &continuation);
    assert_eq!(texts(&result)[0], "from a file\n", "{result}");
    assert_eq!(result["structuredContent"], json!({ "content": "from a file\n" }));
    client.notified("notifications/tools/list_changed");
    let tools = client.tools();
    assert!(tools.contains(&"filesystem__write_file".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"filesystem__connect".to_owned()), "{tools:?}");
    let used = client.call("filesystem__read_text_file", &read_a());
    assert_eq!(texts(&used), ["from a file\n"], "a note is told once");
    drop(client);

    let mut client = world.legacy();
    assert_eq!(client.tools(), tools, "the list is complete before anything runs");
    let direct = client.call("filesystem__list_allowed_directories", &json!({}));
    assert!(
        texts(&direct)[0].contains(world.project().to_str().unwrap()),
        "{direct}"
    );

    rule(
        &world,
        "filesystem",
        FILESYSTEM,
        &json!({ "deny": ["filesystem:read_*"] }),
    );
    let denied = client.call("filesystem__read_text_file", &read_a());
    assert_eq!(denied["isError"], true);
    let told = texts(&denied)[0];
    let expected =
        "`filesystem:read_text_file` is denied by rule `filesystem:read_*`\n  in the deny list of ";
    assert!(told.starts_with(expected), "{told}");
    assert!(told.contains(world.path(".pml.json").to_str().unwrap()), "{told}");
    assert!(client.close().success());
    world.assert_no_survivor("after the client closed");
}

#[test]
fn always_is_written_down_and_carries_the_everything_server_over_a_restart() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = world("everything", EVERYTHING);
    let mut client = world.legacy();
    let asked = client.call("everything__echo", &json!({ "message": "hi" }));
    let result = client.proceed(
        "everything__echo",
        &asked,
        &json!({ "approved": true, "always": true }),
    );
    assert_eq!(texts(&result)[0], "Echo: hi", "{result}");
    let config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(
        config["permissions"],
        json!({ "ask": ["*"], "allow": ["everything:echo"] })
    );
    drop(client);

    // Without the recorded approval only the rule is left, and it covers this tool alone.
    forget_approvals(&world);
    let mut client = world.legacy();
    let direct = client.call("everything__echo", &json!({ "message": "again" }));
    assert_eq!(texts(&direct), ["Echo: again"]);
    let sum = json!({ "a": 2, "b": 3 });
    let asked = client.call("everything__get-sum", &sum);
    let result = client.proceed("everything__get-sum", &asked, &json!({ "approved": true }));
    assert_eq!(texts(&result)[0], "The sum of 2 and 3 is 5.", "{result}");
    let weather = client.call(
        "everything__get-structured-content",
        &json!({ "location": "New York" }),
    );
    assert!(
        weather["structuredContent"]["temperature"].is_number(),
        "{weather}"
    );
}

#[test]
fn the_time_server_comes_from_pypi_and_is_remembered() {
    if !have(&["uv"]) {
        return;
    }
    let world = world("time", TIME);
    let noon =
        json!({ "source_timezone": "Europe/Paris", "time": "12:00", "target_timezone": "Asia/Kathmandu" });
    let mut client = world.legacy();
    let asked = client.call("time__convert_time", &noon);
    assert!(
        !is_anything_installed(&world),
        "the question comes before the installation"
    );
    assert_eq!(texts(&asked)[0], "Approval required to install time@2026.10.19");
    let (_, id) = context(&asked);
    let continuation = json!({ "workflow_id": id, "approved": true });
    let params =
        json!({ "name": "pml_continue", "arguments": continuation, "_meta": { "progressToken": "install" } });
    let result = client.request("tools/call", &params)["result"].clone();
    assert_progress(&client.aside, "install");
    let converted: Value = serde_json::from_str(texts(&result)[0]).unwrap_or_else(|_| panic!("{result}"));
    assert_eq!(converted["target"]["timezone"], "Asia/Kathmandu");
    drop(client);

    let direct = world.legacy().call("time__convert_time", &noon);
    let converted: Value = serde_json::from_str(texts(&direct)[0]).unwrap_or_else(|_| panic!("{direct}"));
    assert_eq!(converted["source"]["timezone"], "Europe/Paris");
    world.assert_no_survivor("after the client closed");
}

#[test]
fn an_unpinned_server_is_asked_for_with_what_the_registry_says_or_recorded_at_first_use() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = world("filesystem", UNPINNED);
    let mut client = world.legacy();
    let asked = client.call("filesystem__read_text_file", &read_a());
    let dependency = &asked["approval_context"]["dependency"];
    // The registry is waited for a moment, and may take longer.
    let known = dependency["version"]
        .as_str()
        .zip(dependency["integrity"].as_str());
    let named = known.map_or_else(String::new, |(version, _)| format!("@{version}"));
    assert_eq!(
        texts(&asked)[0],
        format!("Approval required to install filesystem{named}")
    );
    let expected = known.map_or("it is recorded at first use", |(_, integrity)| integrity);
    assert!(texts(&asked)[1].contains(expected), "{asked}");
    let result = client.proceed("filesystem__read_text_file", &asked, &json!({ "approved": true }));
    let told = texts(&result);
    assert_eq!(told[0], "from a file\n");
    let noted = told[1..]
        .iter()
        .any(|note| note.contains("sha512-") && note.contains("was recorded at this first use"));
    assert_eq!(noted, known.is_none(), "{result}");
    drop(client);

    let direct = world.legacy().call("filesystem__read_text_file", &read_a());
    assert_eq!(
        texts(&direct),
        ["from a file\n"],
        "what was recorded runs without a question and a note"
    );
}

#[test]
fn what_is_refused_aborted_expired_or_unknown_installs_nothing() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = world("filesystem", FILESYSTEM);
    let tool = "filesystem__read_text_file";
    let mut client = world.legacy();
    let asked = client.call(tool, &read_a());
    let aborted = client.proceed(tool, &asked, &json!({ "approved": false }));
    assert_eq!(texts(&aborted)[0], "Workflow aborted by user");
    let late = client.proceed(tool, &asked, &json!({ "approved": true }));
    assert_eq!(late["isError"], true, "what was aborted does not run: {late}");

    let asked = client.call(tool, &read_a());
    expire(&world, &context(&asked).1);
    let expired = client.proceed(tool, &asked, &json!({ "approved": true }));
    let nobody = json!({ "approval_context": { "workflow_id": "00000000-0000-4000-8000-000000000000" } });
    let unknown = client.proceed(tool, &nobody, &json!({ "approved": true }));
    for refused in [expired, unknown] {
        assert_eq!(
            (texts(&refused)[0], &refused["isError"]),
            ("Workflow expired or not found", &json!(true))
        );
    }

    let asked = client.call(tool, &read_a());
    rule(
        &world,
        "filesystem",
        FILESYSTEM,
        &json!({ "deny": ["filesystem"] }),
    );
    let denied = client.proceed(tool, &asked, &json!({ "approved": true }));
    assert!(
        texts(&denied)[0].contains("is denied by rule `filesystem`"),
        "a deny added meanwhile wins: {denied}"
    );
    drop(client);
    assert!(!is_anything_installed(&world));
    world.assert_no_survivor("after the client closed");
}

#[test]
fn the_everything_server_says_through_pml_what_it_says_directly() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = world("everything", EVERYTHING);
    rule(
        &world,
        "everything",
        EVERYTHING,
        &json!({ "allow": ["everything"] }),
    );
    let mut client = world.legacy();
    client.call("everything__connect", &json!({}));
    let installed = world.files();
    let program = installed
        .iter()
        .find(|file| file.ends_with("server-everything/dist/index.js"))
        .unwrap();
    let mut command = world.program(Path::new("node"));
    command.arg(world.home().join(program));
    let mut direct = Client::start(command);
    direct.initialize("2025-06-18");

    let mut expected = direct.request("tools/list", &json!({}))["result"]["tools"].clone();
    for tool in expected.as_array_mut().unwrap() {
        tool["name"] = json!(format!("everything__{}", tool["name"].as_str().unwrap()));
    }
    let mut listed = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let of_the_server = |tool: &Value| tool["name"].as_str().unwrap().starts_with("everything__");
    listed.as_array_mut().unwrap().retain(of_the_server);
    assert_eq!(listed, expected);

    for (tool, arguments) in [
        ("echo", json!({ "message": "\u{1f980} \u{202e} \"quoted\"" })),
        ("echo", json!({})),
        (
            "get-annotated-message",
            json!({ "messageType": "error", "includeImage": true }),
        ),
        ("get-resource-links", json!({ "count": 3 })),
        (
            "get-resource-reference",
            json!({ "resourceType": "Text", "resourceId": 1 }),
        ),
        ("get-structured-content", json!({ "location": "Chicago" })),
        ("get-sum", json!({ "a": 1e300, "b": -0.5 })),
        ("get-tiny-image", json!({})),
        ("no-such-tool", json!({})),
    ] {
        let call = |client: &mut Client, name: &str| {
            let mut answer = client.request("tools/call", &json!({ "name": name, "arguments": arguments }));
            answer.as_object_mut().unwrap().remove("id");
            // The text of a resource carries the moment it was made.
            without_moments(&mut answer);
            answer
        };
        let said = call(&mut client, &format!("everything__{tool}"));
        assert_eq!(said, call(&mut direct, tool), "{tool}");
    }

    let work = json!({
        "name": "everything__trigger-long-running-operation",
        "arguments": { "duration": 0.3, "steps": 3 },
        "_meta": { "progressToken": 7 },
    });
    client.request("tools/call", &work);
    assert_progress(&client.aside, 7);
}

fn without_moments(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((before, _)) = text.split_once(" created at ") {
                *text = before.to_owned();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(without_moments),
        Value::Object(members) => members.values_mut().for_each(without_moments),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Progress came for a token, and it rose.
fn assert_progress(messages: &[Value], token: impl Into<Value>) {
    let token = token.into();
    let steps: Vec<f64> = messages
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .filter(|message| message["params"]["progressToken"] == token)
        .map(|message| message["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(!steps.is_empty(), "{messages:?}");
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
}

/// Moves the deadline of a workflow into the past: the shortest one that can be configured is half a minute.
fn expire(world: &World, id: &str) {
    let store = rusqlite::Connection::open(world.home().join(".local/state/pml/workflows.db")).unwrap();
    store.busy_timeout(crate::support::DEADLINE).unwrap();
    let changed = store.execute(
        "UPDATE workflow SET expires_at = created_at + 1 WHERE id = ?1",
        [id],
    );
    assert_eq!(changed, Ok(1));
}

/// Adds a server by name as `docs/SERVERS.md` says, to a world whose downloads are kept; returns a client that may call it.
fn added(name: &str, line: &str) -> (World, Client) {
    let world = world(name, line);
    std::fs::remove_file(world.path(".pml.json")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let added = world.run(&[&["add", "--yes", name, "--"][..], &words].concat());
    assert!(added.status.success(), "{}", stderr(&added));
    let client = world.legacy();
    (world, client)
}

#[test]
fn the_memory_server_is_added_by_one_command_and_remembers() {
    if !have(&["npm", "node"]) {
        return;
    }
    let (_world, mut client) = added("memory", "npx -y @modelcontextprotocol/server-memory@2026.8.31");
    let entity = json!({ "name": "pml", "entityType": "program", "observations": ["asks"] });
    let created = client.call("memory__create_entities", &json!({ "entities": [entity] }));
    assert!(!asks(&created) && created["isError"] != true, "{created}");
    let graph = client.call("memory__read_graph", &json!({}));
    assert!(texts(&graph)[0].contains("\"asks\""), "{graph}");
}

#[test]
fn the_git_server_is_added_by_one_command_and_tells_the_status() {
    if !have(&["uv", "git"]) {
        return;
    }
    let (world, mut client) = added("git", "uvx mcp-server-git==2026.10.19");
    let made = world
        .program(Path::new("git"))
        .args(["init", "--quiet"])
        .status()
        .unwrap();
    assert!(made.success());
    let repository = json!({ "repo_path": world.project() });
    let status = client.call("git__git_status", &repository);
    assert!(!asks(&status) && status["isError"] != true, "{status}");
    assert!(texts(&status)[0].contains("a.txt"), "{status}");
}

#[test]
fn a_native_module_whose_script_was_skipped_is_named_with_the_line_that_lets_it_run() {
    if !have(&["npm", "node"]) {
        return;
    }
    let line = "npx -y mcp-server-sqlite-npx@0.8.0 ./x.db";
    let world = world("sqlite", line);
    std::fs::remove_file(world.path(".pml.json")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let refused = world.run(&[&["add", "--yes", "sqlite", "--"][..], &words].concat());
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    let (_, error) = said.split_once("\nerror: ").unwrap();
    assert_eq!(
        error,
        "`sqlite` was not added: it could not be started\n  \
         caused by: `sqlite3`, which it uses, lacks a part that an install script builds, and install scripts did not run: \
         it exited with code 1\n\n\
         hint: to see each of these scripts and decide: pml add --allow-scripts sqlite -- npx -y \
         mcp-server-sqlite-npx@0.8.0 ./x.db\n"
    );

    // Where it is declared its failure is listed, and the file has what it wrote.
    rule(&world, "sqlite", line, &json!({ "ask": ["*"] }));
    let approved = world.run(&["approve", "--yes", "sqlite"]);
    assert_eq!(approved.status.code(), Some(2), "{}", stderr(&approved));
    assert!(
        stderr(&approved).ends_with(
            "hint: to let them run after you saw each of them: \"allowScripts\": true in the entry of `sqlite`, then \
             pml install sqlite\n"
        ),
        "{}",
        stderr(&approved)
    );
    let listed = stderr(&world.run(&["list"]));
    assert!(
        listed.contains("install scripts did not run: it exited with code 1\n  all of it: ~/.local/state/pml/failures/sqlite.log\n"),
        "{listed}"
    );
    // The end of a long trace: of the paths that were tried, those of the module are in it.
    let log = world.home().join(".local/state/pml/failures/sqlite.log");
    let log = std::fs::read_to_string(log).unwrap();
    let (_, wrote) = log.split_once("\n\nthe last lines it wrote:\n").unwrap();
    assert!(wrote.contains("/node_modules/sqlite3/build/"), "{wrote}");
}
