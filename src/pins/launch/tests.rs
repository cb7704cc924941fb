//! What of a declaration is kept, compared and shown.

use super::*;
use crate::config::{Config, check};

/// The server `x` of a configuration with this entry.
fn server(entry: &serde_json::Value) -> Server {
    let text = serde_json::json!({ "version": "0.1.0", "mcpServers": { "x": entry } }).to_string();
    let config: Config = check(Path::new("/project/.pml.json"), &text).unwrap();
    config.servers.into_values().next().unwrap()
}

fn compared(entry: &serde_json::Value) -> ComparedLaunch {
    let server = server(entry);
    ComparedLaunch {
        line: server.launch.words(),
        kind: LaunchKind::of(&server.launch),
        words: server.launch.words(),
        surroundings: Some(LaunchSurroundings::of(&server)),
    }
}

fn lines(before: &serde_json::Value, now: &serde_json::Value) -> Vec<String> {
    let change = LaunchChange::between(&compared(before), &compared(now));
    change.map(|change| change.lines()).unwrap_or_default()
}

#[test]
fn what_decides_which_code_runs_is_shown_and_no_value_that_may_be_a_secret() {
    let before = serde_json::json!({
        "command": "run", "args": ["a b"], "cwd": "here",
        "env": { "TOKEN": "secret-one", "NODE_OPTIONS": "--no-warnings", "KEY": "${MINE}" },
    });
    let other_value = serde_json::json!({
        "command": "run", "args": ["a b"], "cwd": "here",
        "env": { "TOKEN": "secret-two", "NODE_OPTIONS": "--no-warnings", "KEY": "x-${MINE}" },
    });
    assert_eq!(lines(&before, &other_value), Vec::<String>::new());
    let kept = serde_json::to_string(&LaunchSurroundings::of(&server(&other_value))).unwrap();
    assert!(
        !kept.contains("secret-two") && kept.contains("--no-warnings"),
        "{kept}"
    );

    let now = serde_json::json!({
        "command": "run", "args": ["a", "b"],
        "env": { "NODE_OPTIONS": "--require ./evil.js", "KEY": "${YOURS}", "LD_PRELOAD": "evil\u{202e}.so", "B": "" },
    });
    assert_eq!(
        lines(&before, &now),
        [
            "- run 'a b'",
            "- runs in /project/here",
            "- gets the variable KEY, made of your ${MINE}",
            "- gets the variable NODE_OPTIONS, which decides what code runs: --no-warnings",
            "- gets the variable TOKEN",
            "+ run a b",
            "+ gets the variable B",
            "+ gets the variable KEY, made of your ${YOURS}",
            "+ gets the variable LD_PRELOAD, which decides what code runs: $'evil\\342\\200\\256.so'",
            "+ gets the variable NODE_OPTIONS, which decides what code runs: '--require ./evil.js'",
        ]
    );
}

#[test]
fn another_file_of_variables_is_another_launch() {
    let with = |file: &str| serde_json::json!({ "command": "run", "envFile": file });
    assert_eq!(lines(&with(".env"), &with("./.env")), Vec::<String>::new());
    assert_eq!(
        lines(&with(".env"), &with("../other.env")),
        [
            "- gets all variables of the file /project/.env",
            "+ gets all variables of the file /other.env"
        ]
    );
    assert_eq!(
        lines(&serde_json::json!({ "command": "run" }), &with(".env")),
        ["+ gets all variables of the file /project/.env"]
    );
    let kept = LaunchSurroundings::of(&server(&with(".env")));
    let text = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<LaunchSurroundings>(&text).unwrap(), kept);
}

#[test]
fn the_headers_of_an_address_count_by_name_and_by_what_they_are_made_of() {
    let remote = |headers: serde_json::Value| serde_json::json!({ "url": "https://example.com/mcp", "headers": headers });
    let before = remote(serde_json::json!({ "X-Key": "secret-one" }));
    assert_eq!(
        lines(&before, &remote(serde_json::json!({ "X-Key": "secret-two" }))),
        Vec::<String>::new()
    );
    let now = remote(serde_json::json!({ "X-Key": "secret-one", "Authorization": "Bearer ${TOKEN}" }));
    assert_eq!(
        lines(&before, &now),
        ["+ sends the header Authorization, made of your ${TOKEN}"]
    );
}

#[test]
fn surroundings_come_back_from_a_file_and_what_was_not_kept_does_not_differ() {
    let entry = serde_json::json!({
        "command": "run", "cwd": "here", "env": { "PATH": "${HOME}/bin", "TOKEN": "${MINE}", "PLAIN": "x" },
    });
    let kept = LaunchSurroundings::of(&server(&entry));
    let text = serde_json::to_string(&kept).unwrap();
    assert_eq!(
        serde_json::from_str::<LaunchSurroundings>(&text).unwrap(),
        kept,
        "{text}"
    );

    let now = compared(&entry);
    let older = ComparedLaunch {
        surroundings: None,
        ..compared(&serde_json::json!({ "command": "run" }))
    };
    assert_eq!(LaunchChange::between(&older, &now), None);
}

#[test]
fn what_lies_in_the_project_is_shared_by_its_name_there() {
    for (cwd, shared) in [("tools/x", "tools/x"), ("/srv/x", "/srv/x"), ("../y", "../y")] {
        let declared = server(&serde_json::json!({
            "command": "run", "cwd": cwd, "env": { "A": "${B}" }, "envFile": "conf/.env",
        }));
        let own = LaunchSurroundings::of(&declared);
        let for_all = LaunchSurroundings::shared_of(&declared);
        let text = serde_json::to_string(&for_all).unwrap();
        assert_eq!(
            text,
            format!(
                r#"{{"kind":"command","cwd":"{shared}","variables":{{"A":["B"]}},"variablesFile":"conf/.env"}}"#
            )
        );
        assert_eq!(for_all.in_project(Path::new("/project")), own, "{cwd}");
    }
}
