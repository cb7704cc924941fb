//! Secrets that stand in the clear among the words of a command and in an address: they reach their server and no file of pml.

use std::os::unix::fs::PermissionsExt as _;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{filled, read, started_by, write};
use crate::support::web::{Answer, Web};
use crate::support::world::{World, stderr, stdout, texts};

/// A runner of containers that understands the variables of `run` and starts the fake server with them.
const DOCKER: &str = r#"#!/bin/sh
[ "$1" = run ] || exit 3
shift
while [ "$#" -gt 1 ]; do
    case "$1" in
    -e | --env) export "$2"; shift ;;
    --env=*) export "${1#--env=}" ;;
    -e*) export "${1#-e}" ;;
    esac
    shift
done
[ "$1" = image ] || exit 4
exec "FAKE"
"#;

const KEYS: [&str; 4] = ["w0rd-key-1111", "w0rd-key-2222", "w0rd-key-3333", "w0rd-key-4444"];

/// Writes the runner of containers; returns the words that start a server in it.
fn docker(world: &World) -> Value {
    write(world, "bin/docker", DOCKER);
    let path = world.home().join("bin/docker");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let args = [
        "run",
        "-i",
        "-e",
        &format!("ONE_TOKEN={}", KEYS[0]),
        "--env",
        &format!("TWO_TOKEN={}", KEYS[1]),
        &format!("--env=THREE_TOKEN={}", KEYS[2]),
        &format!("-eFOUR_TOKEN={}", KEYS[3]),
        "-e",
        "LEVEL=debug",
        "image",
    ];
    json!({ "command": path, "args": args, "env": { "PML_TEST_MARK": "MARK" } })
}

fn servers(servers: &Value) -> String {
    json!({ "mcpServers": servers }).to_string()
}

/// Asserts that no file but that of the client and the journal holds one of these, and that nothing said does.
fn assert_nowhere_else(world: &World, secrets: &[&str], client: &str, said: &str) {
    for secret in secrets {
        assert!(!said.contains(secret), "{said}");
        for file in world.files() {
            let text = std::fs::read(world.home().join(&file)).unwrap_or_default();
            let holds = memchr::memmem::find(&text, secret.as_bytes()).is_some();
            let may = file.ends_with(client) || file.starts_with(".local/state/pml/imports");
            assert!(!holds || may, "{secret} stands in {}", file.display());
        }
    }
}

#[test]
fn what_stands_in_the_clear_among_words_reaches_its_server_and_no_file_of_pml() {
    let world = World::new();
    let file = ".cursor/mcp.json";
    write(&world, file, &servers(&json!({ "box": docker(&world) })));
    let before = read(&world, file);
    let shown = world.run(&["import", "--dry-run", "--json"]);
    let said = format!("{}{}", stderr(&shown), stdout(&shown));
    for name in ["ONE", "TWO", "THREE", "FOUR"] {
        let line = format!("{name}_TOKEN stands in the clear; it becomes ${{{name}_TOKEN}}");
        assert!(said.contains(&line), "{said}");
    }
    assert_nowhere_else(&world, &KEYS, file, &said);

    let done = world.run(&["import", "--yes"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let own: Value = serde_json::from_str(&read(&world, ".config/pml/pml.json")).unwrap();
    assert_eq!(
        own["mcpServers"]["box"]["args"],
        json!([
            "run",
            "-i",
            "-e",
            "ONE_TOKEN=${ONE_TOKEN}",
            "--env",
            "TWO_TOKEN=${TWO_TOKEN}",
            "--env=THREE_TOKEN=${THREE_TOKEN}",
            "-eFOUR_TOKEN=${FOUR_TOKEN}",
            "-e",
            "LEVEL=debug",
            "image"
        ])
    );
    let mut client = started_by(&world, file);
    let answer = client.call("box__environment", &json!({}));
    let given: Value = serde_json::from_str(&texts(&answer).concat()).unwrap();
    let tokens = ["ONE_TOKEN", "TWO_TOKEN", "THREE_TOKEN", "FOUR_TOKEN"].map(|name| given[name].clone());
    assert_eq!(tokens, KEYS.map(Value::from));
    assert!(client.close().success());
    assert_nowhere_else(&world, &KEYS, file, &stderr(&done));

    assert!(world.run(&["import", "--undo", "--yes"]).status.success());
    assert_eq!(read(&world, file), before);
}

#[test]
fn a_key_in_an_address_reaches_its_server_and_nobody_is_shown_it() {
    let key = "qu3ry-key-1111";
    let web = Web::mcp(move |request| {
        (request.rpc() == "tools/call")
            .then(|| Answer::Whole(500, Vec::new(), format!("broke: {}", request.path)))
    });
    let world = World::new();
    let file = ".cursor/mcp.json";
    let address = web.url(&format!("/mcp?mode=all&api_key={key}"));
    write(&world, file, &servers(&json!({ "web": { "url": address } })));
    let before = read(&world, file);
    let done = world.run(&["import", "--yes", "--json"]);
    let said = format!("{}{}", stderr(&done), stdout(&done));
    assert!(done.status.success(), "{said}");
    let own: Value = serde_json::from_str(&read(&world, ".config/pml/pml.json")).unwrap();
    let declared = web.url("/mcp?mode=all&api_key=${WEB_API_KEY}");
    assert_eq!(
        own["mcpServers"]["web"],
        json!({ "type": "http", "url": declared })
    );
    let cursor: Value = serde_json::from_str(&read(&world, file)).unwrap();
    assert_eq!(cursor["mcpServers"]["pml"]["env"], json!({ "WEB_API_KEY": key }));

    let mut client = started_by(&world, file);
    let call = json!({ "name": "web__echo", "arguments": {} });
    let answer = client.request("tools/call", &call).to_string();
    assert!(answer.contains("broke: ") && !answer.contains(key), "{answer}");
    assert!(client.close().success());
    let asked = web.asked();
    let call = asked
        .iter()
        .find(|request| request.rpc() == "tools/call")
        .unwrap();
    assert_eq!(call.path, format!("/mcp?mode=all&api_key={key}"));
    assert_nowhere_else(&world, &[key], file, &said);

    assert!(world.run(&["import", "--undo", "--yes"]).status.success());
    assert_eq!(read(&world, file), before);
}

#[test]
fn two_words_of_one_name_keep_their_own_values_and_those_of_a_project_are_written_nowhere() {
    let world = World::new();
    let given = |key: &str| {
        json!({ "command": "/usr/bin/env", "args": [format!("API_KEY={key}"), "FAKE"],
            "env": { "PML_TEST_MARK": "MARK" } })
    };
    let cursor = ".cursor/mcp.json";
    let both = json!({ "one": given(KEYS[0]), "two": given(KEYS[1]) });
    write(&world, cursor, &servers(&both));
    let project = "project/.mcp.json";
    write(&world, project, &servers(&json!({ "theirs": given(KEYS[2]) })));
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert!(done.status.success(), "{said}");
    let mut client = started_by(&world, cursor);
    for (server, key) in [("one", KEYS[0]), ("two", KEYS[1])] {
        let answer = client.call(&format!("{server}__environment"), &json!({}));
        let text = texts(&answer).concat();
        assert!(
            text.contains(&format!("\"API_KEY\":\"{key}\"")),
            "{server}: {text}"
        );
    }
    assert!(client.close().success());
    let theirs = read(&world, project) + &world.read(".pml.json");
    assert!(!theirs.contains(KEYS[2]), "{theirs}");
    assert!(
        said.contains("in the environment that Claude Code is started in"),
        "{said}"
    );
}

#[test]
fn what_pml_cannot_hand_over_stays_and_says_why() {
    let world = World::new();
    let file = ".claude.json";
    let given = json!({
        "signed": { "type": "http", "url": "https://me:p4ssword@e.example/mcp" },
        "default": { "command": "FAKE", "env": { "API_KEY": "${API_KEY:-sk-0123456789abcdef}" } },
    });
    write(&world, file, &servers(&given));
    let shown = world.run(&["import", "--dry-run"]);
    let said = stderr(&shown);
    assert!(
        said.contains(
            "its `url` holds a user name or a password, which would be shown wherever the address is"
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "a secret stands in the clear as the default of `${API_KEY}`; to take it as well, set `API_KEY` and take the \
             default out"
        ),
        "{said}"
    );
    assert!(!said.contains("p4ssword") && !said.contains("sk-0123"), "{said}");
    assert_eq!(read(&world, file), filled(&world, &servers(&given)));
}
