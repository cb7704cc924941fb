//! Files as people write and break them.

use std::path::Path;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::report::Hint as _;

fn checked(text: &str) -> Result<Config, String> {
    check(Path::new("/project/.pml.json"), text).map_err(|error| error.to_string())
}

fn refusal(text: &str) -> String {
    let error = checked(text).unwrap_err();
    error
        .strip_prefix("/project/.pml.json:")
        .map_or(error.clone(), str::to_owned)
}

fn source(line: usize, column: usize) -> FilePosition {
    FilePosition {
        file: "/project/.pml.json".into(),
        line,
        column,
    }
}

fn server(text: &str) -> Server {
    let config = checked(&format!(r#"{{"mcpServers": {{"x": {text}}}}}"#)).unwrap();
    config.servers.into_values().next().unwrap()
}

#[test]
fn a_whole_file_is_read_with_the_place_of_everything() {
    let config = checked(
        "\u{feff}{\r\n  \"version\": \"0.1.0\", // ours\r\n  \"permissions\": {\r\n    \"ask\": [\"*\"],\r\n    \"allow\": [\"fs\", /* é */ \"a:b\",],\r\n  },\r\n  \"mcpServers\": {\"fs\": {\"command\": \"npx\", \"args\": [\"-y\", \"p@1\"], \"env\": {\"T\": \"${T}\"}, \"startup\": \"eager\", \"idleSeconds\": 9}},\r\n  \"approvals\": {\"ttlSeconds\": 30},\r\n  \"limits\": {\"lineBytes\": 65536},\r\n}\r\n",
    )
    .unwrap();
    let rule = |text: &str, list, line, column| Rule {
        pattern: text.parse().unwrap(),
        list,
        source: Some(source(line, column)),
    };
    assert_eq!(
        config.rules,
        [
            rule("fs", RuleList::Allow, 5, 15),
            rule("a:b", RuleList::Allow, 5, 29),
            rule("*", RuleList::Ask, 4, 13),
        ]
    );
    let expected = Server {
        launch: Launch::Command {
            command: "npx".to_owned(),
            args: vec!["-y".to_owned(), "p@1".to_owned()],
        },
        env: BTreeMap::from([("T".to_owned(), "${T}".to_owned())]),
        variables_file: None,
        directory: "/project".into(),
        cwd: "/project".into(),
        disabled: false,
        allow_scripts: false,
        startup: Startup::Eager,
        opened_in: None,
        start_timeout: Duration::from_mins(1),
        call_timeout: None,
        idle: Some(Duration::from_secs(9)),
        tools: Vec::new(),
        source: source(7, 18),
    };
    assert_eq!(
        config.servers,
        BTreeMap::from([("fs".parse().unwrap(), expected)])
    );
    assert_eq!(config.approvals.time_to_live, Duration::from_secs(30));
    assert_eq!(config.line_limit, LineLimit(65536));
}

#[test]
fn every_way_to_reach_a_server_is_read() {
    assert_eq!(
        server(r#"{"type": "stdio", "package": "npm:p@1.2.3", "args": ["x"]}"#).launch,
        Launch::Package {
            package: "npm:p@1.2.3".to_owned(),
            args: vec!["x".to_owned()]
        }
    );
    assert_eq!(
        server(r#"{"type": "http", "url": "https://example.com/mcp", "headers": {"A": "b"}}"#).launch,
        Launch::Remote {
            url: "https://example.com/mcp".to_owned(),
            headers: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        }
    );
    assert_eq!(
        server(r#"{"command": "x", "cwd": "sub"}"#).cwd,
        Path::new("/project/sub")
    );
    assert_eq!(
        server(r#"{"command": "x", "cwd": "/abs"}"#).cwd,
        Path::new("/abs")
    );
    assert!(server(r#"{"command": "x", "disabled": true, "args": null}"#).disabled);
}

#[test]
fn what_is_wrong_is_said_with_line_and_column() {
    for (text, expected) in [
        ("", "1:1: the file is empty; write at least `{}`"),
        ("// nothing\n", "1:1: the file is empty; write at least `{}`"),
        (
            "[]",
            "1:1: expected an object with the keys of `.pml.json`, found a list",
        ),
        (
            "{\n  \"version\": ",
            "2:14: expected value after colon in object property",
        ),
        ("{} {}", "1:4: text cannot contain more than one JSON value"),
        ("{'version': 1}", "1:2: single-quoted strings are not allowed"),
        (
            "{\n  \"mcpServer\": {}\n}",
            "2:3: unknown key `mcpServer`; did you mean `mcpServers`?",
        ),
        (
            "{\"mcpServers\": {\"x\": {\n\"comand\": \"y\"}}}",
            "2:1: unknown key `comand`; did you mean `command`?",
        ),
        (
            "{\"mcpServers\": {\"x\": {\"Command\": \"y\"}}}",
            "1:23: unknown key `Command`; did you mean `command`?",
        ),
        ("{\"zzz\": 1}", "1:2: unknown key `zzz`"),
        (
            "{\"permissions\": {}, \"permissions\": {}}",
            "1:21: the key `permissions` stands here a second time",
        ),
        (
            "{\"mcpServers\": {\"x\": {\"env\": {\"A\": \"1\", \"A\": \"2\"}}}}",
            "1:41: the key `A` stands here a second time",
        ),
        (
            "{\"permissions\": {\"allow\": \"x\"}}",
            "1:27: expected a list, found a string",
        ),
        (
            "{\"permissions\": {\"allow\": [\"x\",\n 5]}}",
            "2:2: expected a string, found a whole number",
        ),
        (
            "{\"permissions\": {\"deny\": [\"x\",\n \"a:{b\"]}}",
            "2:2: pattern `a:{b` is not a glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
        ),
        (
            "{\"approvals\": {\"ttlSeconds\": 29}}",
            "1:30: `29` is out of range; from 30 to 3600 is possible",
        ),
        (
            "{\"approvals\": {\"ttlSeconds\": 30.5}}",
            "1:30: expected a whole number, found a number with a fraction",
        ),
        (
            "{\"approvals\": {\"ttlSeconds\": -30}}",
            "1:30: expected a whole number, found a negative number",
        ),
        (
            "{\"version\": \"1.0.0\"}",
            "1:13: this file is of version `1.0.0`; this pml reads versions `0.x.y`",
        ),
        (
            "{\"version\": \"x\"}",
            "1:13: a version is three numbers, such as `0.1.0`",
        ),
        (
            "{\"version\": 1}",
            "1:13: expected a string, found a whole number",
        ),
        (
            "{\n  \"notify\": [\"notify-send\", \"{text}\"]}",
            "2:3: `{text}` is not known in `notify`; possible are `{title}`, `{body}`",
        ),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_server_is_said_at_its_name() {
    for (text, expected) in [
        (
            "{\"mcpServers\": {\"a__b\": {}}}",
            "1:17: server name `a__b` contains `__`, which separates server and tool in wire names",
        ),
        (
            "{\"mcpServers\": {\"a:b\": {}}}",
            "1:17: server name `a:b` contains `:`; letters, digits, `-`, `_` and `.` are allowed",
        ),
        (
            "{\"mcpServers\": {\"x\": {}}}",
            "1:17: server `x`: one of `command`, `package` and `url` is needed",
        ),
        (
            "{\"mcpServers\": {\"x\": {\"command\": \"a\", \"url\": \"b\"}}}",
            "1:17: server `x`: only one of `command`, `package` and `url` is possible",
        ),
        (
            "{\"mcpServers\": {\"x\": {\"type\": \"http\", \"command\": \"a\"}}}",
            "1:17: server `x`: a server of type `http` or `sse` needs a `url`",
        ),
        (
            "{\"mcpServers\": {\"x\": {\"command\": \" \"}}}",
            "1:17: server `x`: `command` is empty",
        ),
        (
            "{\"mcpServers\": {\"x\": {\"command\": \"a\", \"startup\": \"soon\"}}}",
            "1:50: `soon` is not known here; possible are `lazy`, `eager`",
        ),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn a_key_like_no_other_is_answered_with_all_of_them() {
    let error = check(Path::new("x"), r#"{"zzz": 1}"#).unwrap_err();
    assert_eq!(
        error.hint().unwrap(),
        "the keys here are `$schema`, `version`, `permissions`, `mcpServers`, `approvals`, `askUser`, `notify`, `limits`, `projectTrust`, `audit`, `pinTools`, `advisories`, `requireProvenance`, `sigstoreRoot`, `minReleaseAgeDays`, `run`, `channels`"
    );
}

#[test]
fn no_error_repeats_a_value_of_the_file() {
    for text in [
        r#"{"mcpServers": {"x": {"command": "a", "env": "TOKEN=s3cret"}}}"#,
        r#"{"mcpServers": {"x": {"command": "a", "env": {"TOKEN": ["s3cret"]}}}}"#,
        r#"{"mcpServers": {"x": {"command": "a", "args": "s3cret"}}}"#,
        r#"{"mcpServers": {"x": {"command": "a", "headers": {"Authorization": "s3cret"}}}}"#,
        r#"{"mcpServers": {"x": {"command": "a", "startTimeoutSeconds": "s3cret"}}}"#,
        r#"{"mcpServers": {"x": "s3cret"}}"#,
    ] {
        let error = refusal(text);
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn more_wildcards_than_anyone_writes_are_refused() {
    let file = |patterns: usize| {
        let patterns: Vec<_> = (0..patterns).map(|number| format!("\"a:{number}*\"")).collect();
        format!("{{\"permissions\": {{\"allow\": [\n{}]}}}}", patterns.join(",\n"))
    };
    assert_eq!(checked(&file(1000)).unwrap().rules.len(), 1000);
    assert_eq!(
        refusal(&file(1001)),
        "1002:1: more than 1000 patterns with wildcards"
    );
}

#[test]
fn depth_is_an_error_and_not_a_crash() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let bomb = open.repeat(100_000) + &close.repeat(100_000);
        assert!(refusal(&bomb).ends_with("maximum nesting depth exceeded"));
        assert!(refusal(&open.repeat(100_000)).ends_with("maximum nesting depth exceeded"));
    }
}

mod on_disk;

#[test]
fn the_committed_schema_is_current() {
    let committed = include_str!("../../schema/pml.schema.json");
    assert!(
        committed == schema(),
        "the types have changed; to write their schema: cargo run -- schema > schema/pml.schema.json"
    );
}

/// What the schema says about a text that is JSON.
fn schema_accepts(text: &str) -> bool {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let tree = document::parse(text).unwrap();
    jsonschema::is_valid(&schema, &tree.into())
}

#[test]
fn the_example_is_valid_and_loads() {
    let example = include_str!("../../.pml.json.example");
    assert!(schema_accepts(example));
    let config = checked(example).unwrap();
    let names: Vec<_> = config.servers.keys().map(DependencyName::as_str).collect();
    assert_eq!(names, ["docs", "everything", "filesystem", "mine", "time"]);
    assert_eq!(config.rules.len(), 7);
}

#[test]
fn the_schema_and_the_reader_refuse_the_same() {
    for (text, accepted) in [
        ("{}", true),
        (r#"{"version": "0.9.9", "$schema": "x"}"#, true),
        (r#"{"version": "1.0.0"}"#, false),
        (r#"{"versoin": "0.1.0"}"#, false),
        (r#"{"permissions": {"allow": [1]}}"#, false),
        (r#"{"permissions": {"allow": [""]}}"#, false),
        (r#"{"mcpServers": {"a__b": {"command": "x"}}}"#, false),
        (r#"{"mcpServers": {"_a": {"command": "x"}}}"#, false),
        (r#"{"mcpServers": {"a.b-c_d": {"command": "x"}}}"#, true),
        (r#"{"mcpServers": {"a": {}}}"#, false),
        (
            r#"{"mcpServers": {"a": {"command": "x", "package": "npm:y@1"}}}"#,
            false,
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "startup": "eager", "idleSeconds": 1}}}"#,
            true,
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "idleSeconds": 0}}}"#,
            false,
        ),
        (r#"{"approvals": {"ttlSeconds": 3600}}"#, true),
        (r#"{"approvals": {"ttlSeconds": 3601}}"#, false),
        (r#"{"limits": {"lineBytes": 1}}"#, false),
        (r#"{"notify": ["notify-send", "{title}", "{body}"]}"#, true),
        (r#"{"notify": []}"#, false),
        (r#"{"notify": "notify-send"}"#, false),
        (r#"{"notify": ["notify-send", 1]}"#, false),
        (
            r#"{"advisories": {"url": "https://x.test", "send": "all", "private": ["@a/*"]}}"#,
            true,
        ),
        (
            r#"{"run": {"claude": "/opt/claude", "patienceMinutes": 0, "most": 64}}"#,
            true,
        ),
        (r#"{"run": {"patienceMinutes": 1441}}"#, false),
        (r#"{"run": {"most": 0}}"#, false),
        (r#"{"run": {"lateAnswers": "keep"}}"#, true),
        (r#"{"run": {"lateAnswers": "drop"}}"#, false),
        (r#"{"run": {"model": "x"}}"#, false),
        (r#"{"advisories": {"send": "none"}}"#, false),
        (r#"{"advisories": {"key": "x"}}"#, false),
        (r#"{"mcpServers": {"a": [null, "x"]}}"#, false),
        (r#"{"permissions": []}"#, false),
    ] {
        assert_eq!(
            (checked(text).is_ok(), schema_accepts(text)),
            (accepted, accepted),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_a_configuration_or_a_reason(text in "[\\[\\]{}:,\"/* \na-z0-9\\\\u.-]{0,80}") {
        let _ = checked(&text);
    }

    #[test]
    fn a_damaged_example_is_a_configuration_or_a_reason(at in 0usize..2600, with in any::<char>()) {
        let mut text: Vec<char> = include_str!("../../.pml.json.example").chars().collect();
        let at = at % text.len();
        text[at] = with;
        let _ = checked(&text.into_iter().collect::<String>());
    }
}
