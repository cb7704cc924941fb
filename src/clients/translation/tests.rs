use pretty_assertions::assert_eq;
use serde_json::json;

use super::super::reference::Handover;
use super::super::table::client;
use super::*;

fn of(id: &str, entry: Value) -> Result<Translation, Untakeable> {
    let Value::Object(entry) = entry else {
        unreachable!("the tests write objects")
    };
    let server = ClientServer {
        name: "git-hub".to_owned(),
        entry,
    };
    translate(
        client(id).unwrap(),
        &server,
        Scope::Project,
        Path::new("/project"),
    )
}

fn entry(id: &str, declared: Value) -> Value {
    Value::Object(of(id, declared).unwrap().entry)
}

#[test]
fn each_client_is_read_in_its_own_words() {
    for (id, declared, expected) in [
        (
            "claude",
            json!({ "type": "stdio", "command": "npx", "args": ["-y", "x"], "env": { "A": "${B:-c}" } }),
            json!({ "command": "npx", "args": ["-y", "x"], "env": { "A": "${B:-c}" } }),
        ),
        (
            "cursor",
            json!({ "type": "streamable-http", "url": "https://e.com", "headers": { "X": "${env:Y}" } }),
            json!({ "type": "http", "url": "https://e.com", "headers": { "X": "${Y}" } }),
        ),
        (
            "codex",
            json!({ "command": "a", "env_vars": ["K"], "startup_timeout_sec": 20, "tool_timeout_sec": 60.5,
                "enabled": false, "enabled_tools": ["x", "y"], "disabled_tools": ["z"] }),
            json!({ "command": "a", "env": { "K": "${K}" }, "tools": ["x", "y", "!z"], "disabled": true,
                "startTimeoutSeconds": 20, "callTimeoutSeconds": 61 }),
        ),
        (
            "codex",
            json!({ "url": "https://e.com", "bearer_token_env_var": "T", "env_http_headers": { "X": "Y" } }),
            json!({ "type": "http", "url": "https://e.com",
                "headers": { "Authorization": "Bearer ${T}", "X": "${Y}" } }),
        ),
        (
            "gemini",
            json!({ "url": "https://e.com", "timeout": 30000, "excludeTools": ["rm"], "trust": false }),
            json!({ "type": "sse", "url": "https://e.com", "tools": ["*", "!rm"], "callTimeoutSeconds": 30 }),
        ),
        (
            "windsurf",
            json!({ "serverUrl": "https://e.com" }),
            json!({ "type": "http", "url": "https://e.com" }),
        ),
        (
            "windsurf",
            json!({ "command": "a", "disabledTools": ["x", "y"], "disabled": false }),
            json!({ "command": "a", "tools": ["*", "!x", "!y"] }),
        ),
        (
            "copilot",
            json!({ "type": "local", "command": "a", "tools": ["x"] }),
            json!({ "command": "a", "tools": ["x"] }),
        ),
        (
            "amp",
            json!({ "command": "a", "includeTools": ["x*"] }),
            json!({ "command": "a", "tools": ["x*"] }),
        ),
        (
            "gemini",
            json!({ "command": "a", "includeTools": ["x", "y"], "excludeTools": ["y"] }),
            json!({ "command": "a", "tools": ["x", "y", "!y"] }),
        ),
        (
            "copilot",
            json!({ "type": "local", "command": "a", "args": [], "tools": ["*"] }),
            json!({ "command": "a" }),
        ),
        (
            "zed",
            json!({ "source": "custom", "command": { "path": "a", "args": ["${x}"], "env": { "L": 1 } } }),
            json!({ "command": "a", "args": ["$${x}"], "env": { "L": "1" } }),
        ),
        (
            "opencode",
            json!({ "type": "local", "command": ["bun", "x", "a"], "environment": { "A": "{env:B}" }, "enabled": true }),
            json!({ "command": "bun", "args": ["x", "a"], "env": { "A": "${B}" } }),
        ),
        (
            "opencode",
            json!({ "type": "remote", "url": "https://e.com", "oauth": false }),
            json!({ "type": "http", "url": "https://e.com" }),
        ),
        (
            "goose",
            json!({ "type": "stdio", "cmd": "uvx", "args": ["a"], "env_keys": ["K"], "timeout": 300,
                "available_tools": ["t"], "name": "A", "bundled": null, "enabled": true }),
            json!({ "command": "uvx", "args": ["a"], "env": { "K": "${K}" }, "tools": ["t"], "callTimeoutSeconds": 300 }),
        ),
        (
            "vscode",
            json!({ "type": "stdio", "command": "a", "args": ["${workspaceFolder}"], "cwd": "${workspaceFolder}" }),
            json!({ "command": "a", "args": ["."] }),
        ),
    ] {
        assert_eq!(entry(id, declared), expected, "{id}");
    }
}

#[test]
fn a_secret_in_the_clear_becomes_a_reference_wherever_it_stands() {
    for (declared, expected, name, value) in [
        (
            json!({ "command": "a", "env": { "GITHUB_TOKEN": "abc", "LEVEL": "debug" } }),
            json!({ "command": "a", "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}", "LEVEL": "debug" } }),
            "GITHUB_TOKEN",
            "abc",
        ),
        (
            json!({ "url": "https://e.com", "headers": { "Authorization": "Bearer abc" } }),
            json!({ "type": "http", "url": "https://e.com", "headers": { "Authorization": "Bearer ${GIT_HUB_TOKEN}" } }),
            "GIT_HUB_TOKEN",
            "abc",
        ),
        (
            json!({ "command": "a", "args": ["--api-key", "abc", "--key-file", "k.pem"] }),
            json!({ "command": "a", "args": ["--api-key", "${API_KEY}", "--key-file", "k.pem"] }),
            "API_KEY",
            "abc",
        ),
        (
            json!({ "command": "a", "args": ["--token=abc"] }),
            json!({ "command": "a", "args": ["--token=${TOKEN}"] }),
            "TOKEN",
            "abc",
        ),
        (
            json!({ "command": "a", "args": ["--header", "Authorization: Bearer abc"] }),
            json!({ "command": "a", "args": ["--header", "Authorization: Bearer ${GIT_HUB_TOKEN}"] }),
            "GIT_HUB_TOKEN",
            "abc",
        ),
        (
            json!({ "command": "a", "args": ["postgres://me:pw@host/db"] }),
            json!({ "command": "a", "args": ["postgres://me:${GIT_HUB_PASSWORD}@host/db"] }),
            "GIT_HUB_PASSWORD",
            "pw",
        ),
        (
            json!({ "command": "docker", "args": ["run", "-i", "-e", "API_KEY=abc", "img"] }),
            json!({ "command": "docker", "args": ["run", "-i", "-e", "API_KEY=${API_KEY}", "img"] }),
            "API_KEY",
            "abc",
        ),
        (
            json!({ "url": "https://e.com/mcp?mode=all&api_key=a%20b" }),
            json!({ "type": "http", "url": "https://e.com/mcp?mode=all&api_key=${GIT_HUB_API_KEY}" }),
            "GIT_HUB_API_KEY",
            "a%20b",
        ),
    ] {
        let translation = of("cursor", declared).unwrap();
        assert_eq!(Value::Object(translation.entry), expected);
        assert_eq!(translation.secrets, [name]);
        assert!(translation.variables[0].handover == Handover::Value(value.to_owned()));
    }
}

#[test]
fn a_secret_is_handed_over_as_the_client_spells_it() {
    for (id, declared) in [
        (
            "claude-desktop",
            json!({ "command": "a", "env": { "API_KEY": "k${x}y" } }),
        ),
        ("zed", json!({ "command": "a", "env": { "API_KEY": "k${x}y" } })),
        (
            "opencode",
            json!({ "type": "local", "command": ["a"], "environment": { "API_KEY": "k${x}y" } }),
        ),
    ] {
        let translation = of(id, declared).unwrap();
        assert_eq!(
            translation.entry["env"],
            json!({ "API_KEY": "${API_KEY}" }),
            "{id}"
        );
        assert!(
            translation.variables[0].handover == Handover::Value("k${x}y".to_owned()),
            "{id}"
        );
    }
}

#[test]
fn two_secrets_of_one_server_by_one_name_have_two_names() {
    let declared = json!({ "command": "a", "args": ["-e", "API_KEY=abc"], "env": { "API_KEY": "other" } });
    let translation = of("cursor", declared).unwrap();
    assert_eq!(translation.entry["args"], json!(["-e", "API_KEY=${API_KEY}"]));
    assert_eq!(translation.entry["env"], json!({ "API_KEY": "${API_KEY_}" }));
    assert_eq!(translation.secrets, ["API_KEY", "API_KEY_"]);
}

#[test]
fn what_cannot_be_taken_is_said_with_its_reason() {
    for (id, declared, reason) in [
        (
            "cursor",
            json!({ "url": "https://e.com", "oauth": {} }),
            "it is signed in to by the client",
        ),
        (
            "cursor",
            json!({ "command": "a", "args": ["${command:x}"] }),
            "known to the client alone",
        ),
        (
            "goose",
            json!({ "type": "builtin", "name": "developer" }),
            "part of the client itself",
        ),
        (
            "zed",
            json!({ "settings": {} }),
            "neither a command nor an address",
        ),
        (
            "claude",
            json!({ "command": "a", "env": { "KEY": "${KEY:-sk-0123456789ab}" } }),
            "a secret stands in the clear as the default of `${KEY}`",
        ),
        (
            "cursor",
            json!({ "command": "sh", "args": ["-c", "TOKEN=x;/tmp/evil"] }),
            "the value of `TOKEN` may be a secret, and may be a part of what runs, which must be seen",
        ),
        ("cursor", json!({ "command": 1 }), "its `command` is not a text"),
        (
            "cursor",
            json!({ "type": "ws", "url": "ws://e" }),
            "pml does not speak `ws`",
        ),
    ] {
        let Untakeable(found) = of(id, declared).unwrap_err();
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn what_pml_has_no_key_for_is_named() {
    let translation = of(
        "cursor",
        json!({ "command": "a", "autoApprove": ["read file"], "icon": "x", "alwaysAllow": [] }),
    );
    let translation = translation.unwrap();
    assert_eq!(translation.unasked.as_deref(), Some("read file"));
    insta::assert_snapshot!(translation.notes.join("\n"), @r"
    `autoApprove` is a question of the client and is not taken over; pml asks about a server once
    `icon` is not taken over: pml has no such key
    ");
}

#[test]
fn a_file_of_variables_is_read_for_its_names() {
    let root = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
    std::fs::write(root.path().join(".env"), "A=hidden-value\nB=2\n").unwrap();
    let server = ClientServer {
        name: "a".to_owned(),
        entry: Map::from_iter([
            ("command".to_owned(), json!("a")),
            ("env".to_owned(), json!({ "B": "own" })),
            ("envFile".to_owned(), json!("${workspaceFolder}/.env")),
        ]),
    };
    let found = translate(client("vscode").unwrap(), &server, Scope::Project, root.path()).unwrap();
    assert_eq!(found.entry["env"], json!({ "B": "own", "A": "${A}" }));
    assert_eq!(found.variables_file.as_deref(), Some("${workspaceFolder}/.env"));
    assert!(!format!("{found:?}").contains("hidden-value"));
}
