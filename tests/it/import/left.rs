//! What does not work behind pml, or cannot be edited, stays in its client with the reason; everything else is imported.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{read, started_by, write};
use crate::support::fake_server;
use crate::support::terminal::typed;
use crate::support::world::{World, stderr, stdout, texts};

/// A server elsewhere that answers every request with this head; lives as long as the test.
fn answering(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let _ = stream.write_all(head.as_bytes());
        }
    });
    address
}

const WANTS_SIGN_IN: &str = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"https://a.example/b\"\r\n\
     content-length: 0\r\nconnection: close\r\n\r\n";

fn names(world: &World, file: &str, key: &str) -> Vec<String> {
    let file: Value = serde_json::from_str(&read(world, file)).unwrap();
    file[key].as_object().unwrap().keys().cloned().collect()
}

fn works() -> Value {
    json!({ "command": "FAKE", "env": { "PML_TEST_MARK": "MARK" } })
}

#[test]
fn a_server_that_its_client_signs_in_to_stays_there() {
    let world = World::new();
    let address = answering(WANTS_SIGN_IN);
    let servers = json!({ "linear": { "url": address }, "one": works(),
        "token": { "url": address, "headers": { "Authorization": "Bearer tok-123456" } } });
    write(
        &world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
    let done = world.run(&["import", "--yes", "--json"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains(
            "`linear` does not work here: it wants a sign-in, which its client does and pml cannot do for it"
        ),
        "{said}"
    );
    assert!(
        said.contains("`linear` stays in Cursor; to try again: pml import cursor"),
        "{said}"
    );
    let left = names(&world, ".cursor/mcp.json", "mcpServers");
    assert_eq!(left, ["linear", "token", "pml"]);
    assert!(
        read(&world, ".cursor/mcp.json").contains("tok-123456"),
        "no value is lost"
    );
    let own = names(&world, ".config/pml/pml.json", "mcpServers");
    assert_eq!(own, ["one"]);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let fates = &report["import"][0]["servers"];
    assert_eq!(fates[0]["fate"], "stays", "{fates}");
    assert!(world.run(&["import", "--undo", "--yes"]).status.success());
    assert_eq!(
        names(&world, ".cursor/mcp.json", "mcpServers"),
        ["linear", "one", "token"]
    );
}

#[test]
fn a_program_that_does_not_start_stays_and_a_person_can_take_it_all_the_same() {
    let world = World::new();
    let servers = json!({ "broken": { "command": "FAKE", "args": ["--exit-on", "initialize"] } });
    write(
        &world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
    let before = read(&world, ".cursor/mcp.json");
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(read(&world, ".cursor/mcp.json"), before);
    assert!(!world.home().join(".config/pml/pml.json").exists());
    assert!(
        !world.home().join(".local/state/pml/imports").exists(),
        "nothing to take back"
    );

    let (code, said) = typed(&world, "import", "y\nn\n");
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(read(&world, ".cursor/mcp.json"), before);
    let (code, said) = typed(&world, "import", "y\ny\n");
    assert_eq!(code, Some(1), "not all of it works: {said}");
    assert!(said.contains("Take `broken` behind pml all the same?"), "{said}");
    assert_eq!(names(&world, ".cursor/mcp.json", "mcpServers"), ["pml"]);
    let found = world.run(&["doctor"]);
    assert_eq!(found.status.code(), Some(1));
    let found = stdout(&found);
    assert!(found.contains("`broken`: failed on "), "{found}");
    assert!(found.contains("to try it: pml approve broken"), "{found}");
}

#[test]
fn one_that_fails_stays_in_every_client_that_has_it() {
    let world = World::new();
    let servers =
        json!({ "broken": { "command": "FAKE", "args": ["--exit-on", "initialize"] }, "one": works() });
    let file = json!({ "mcpServers": servers }).to_string();
    for client in [".cursor/mcp.json", ".gemini/settings.json"] {
        write(&world, client, &file);
    }
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert!(
        said.contains("`broken` stays in Cursor, Gemini CLI; to try again: pml import cursor gemini"),
        "{said}"
    );
    for client in [".cursor/mcp.json", ".gemini/settings.json"] {
        assert_eq!(names(&world, client, "mcpServers"), ["broken", "pml"], "{client}");
    }
}

#[test]
fn a_file_that_cannot_be_edited_keeps_its_servers_and_no_other_waits_for_it() {
    let world = World::new();
    let fake = fake_server();
    let fake = fake.to_str().unwrap();
    let twice = format!(
        "{{ \"mcpServers\": {{\n  \"a\": {{ \"command\": \"{fake}\" }},\n  \"b\": {{ \"command\": \"{fake}\" }},\n  \"a\": {{ \"command\": \"{fake}\" }}\n}} }}\n"
    );
    write(&world, ".cursor/mcp.json", &twice);
    let mixed = format!("model = \"m\"\r\n[mcp_servers.c]\ncommand = \"{fake}\"\n");
    write(&world, ".codex/config.toml", &mixed);
    write(
        &world,
        ".gemini/settings.json",
        &json!({ "mcpServers": { "one": works() } }).to_string(),
    );
    for arguments in [&["import", "--dry-run"][..], &["import", "--yes"]] {
        let done = world.run(arguments);
        let said = stderr(&done);
        assert!(!said.contains("the edit would not have come out"), "{said}");
        assert!(
            said.contains("`a` stands in it twice, in line 2 and in line 4; keep one of them"),
            "{arguments:?}: {said}"
        );
        assert!(
            said.contains("its lines end in two ways; save it with one of them"),
            "{arguments:?}: {said}"
        );
        assert!(
            !said.contains("Cursor (user)") && said.contains("Gemini CLI (user)"),
            "{said}"
        );
        assert_eq!(read(&world, ".cursor/mcp.json"), super::filled(&world, &twice));
        assert_eq!(read(&world, ".codex/config.toml"), super::filled(&world, &mixed));
    }
    assert_eq!(names(&world, ".gemini/settings.json", "mcpServers"), ["pml"]);
    assert_eq!(names(&world, ".config/pml/pml.json", "mcpServers"), ["one"]);
    let named = world.run(&["import", "--yes", "cursor"]);
    assert_eq!(named.status.code(), Some(2), "{}", stderr(&named));
}

#[test]
fn each_server_has_the_file_of_variables_that_its_client_gives_it_or_stays() {
    let world = World::new();
    write(&world, "project/a.env", "FOO_A='of-a'\n");
    write(&world, "project/b.env", "FOO_B=of-b\n");
    let with = |file: &str| {
        json!({ "type": "stdio", "command": "FAKE", "env": { "PML_TEST_MARK": "MARK" },
            "envFile": format!("${{workspaceFolder}}/{file}") })
    };
    let servers = json!({ "servers": { "a": with("a.env"), "b": with("b.env"), "c": with("a.env") } });
    write(&world, "project/.vscode/mcp.json", &servers.to_string());
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert!(
        done.status.success(),
        "those of one file are learned with its values: {said}"
    );
    assert!(
        said.contains(
            "its `envFile` is `${workspaceFolder}/b.env`, and the entry of pml in this file can name one alone, which is \
             `${workspaceFolder}/a.env`"
        ),
        "{said}"
    );
    let file: Value = serde_json::from_str(&read(&world, "project/.vscode/mcp.json")).unwrap();
    let left: Vec<_> = file["servers"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["b", "pml"]);
    assert_eq!(file["servers"]["pml"]["envFile"], "${workspaceFolder}/a.env");
    for kept in world.files() {
        let text = std::fs::read(&kept).unwrap_or_default();
        let holds = text.windows(4).any(|part| part == b"of-a");
        assert!(!holds || kept.ends_with("a.env"), "{}", kept.display());
    }
    // As the editor starts it: with what the file says.
    world.set("FOO_A", "of-a");
    let mut client = started_by(&world, "project/.vscode/mcp.json");
    for server in ["a", "c"] {
        let answer = client.call(&format!("{server}__environment"), &json!({}));
        assert!(texts(&answer).concat().contains("\"FOO_A\":\"of-a\""), "{answer}");
    }
    assert!(client.close().success());
    let again = world.run(&["import", "--dry-run"]);
    assert!(
        stderr(&again).contains("can name one alone"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn a_file_that_no_client_reads_is_only_read() {
    let world = World::new();
    let servers =
        json!({ "b": { "command": "FAKE", "env": { "API_KEY": "key-of-b-1111", "PML_TEST_MARK": "MARK" } } });
    write(
        &world,
        "backup.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
    let before = read(&world, "backup.json");
    for arguments in [
        &["import", "--dry-run", "--from", "../backup.json"][..],
        &["import", "--yes", "--from", "../backup.json"],
        &["import", "--yes", "--keep", "--from", "../backup.json"],
    ] {
        let done = world.run(arguments);
        let said = stderr(&done);
        assert!(done.status.success(), "{arguments:?}: {said}");
        assert!(said.contains("~/backup.json (read as mcpServers)"), "{said}");
        assert!(!said.contains("Junie"), "{said}");
        assert_eq!(read(&world, "backup.json"), before, "{arguments:?}");
    }
    let own = read(&world, ".config/pml/pml.json");
    assert!(
        own.contains("${API_KEY}") && !own.contains("key-of-b-1111"),
        "{own}"
    );
    assert!(world.run(&["import", "--undo", "--yes"]).status.success());
    assert_eq!(read(&world, "backup.json"), before);
    let said = stderr(&world.run(&["import", "--yes", "--from", "../backup.json"]));
    assert!(
        said.contains("set API_KEY in the environment that your clients are started in; the values stand in ~/backup.json"),
        "{said}"
    );
}
