//! What an edit keeps: everything it was not asked to change.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use RuleList::{Allow, Ask, Deny};

fn add(list: RuleList, pattern: &str) -> ConfigChange {
    ConfigChange::AddRule {
        list,
        pattern: pattern.parse().unwrap(),
    }
}

fn forget(pattern: &str) -> ConfigChange {
    ConfigChange::ForgetRule {
        pattern: pattern.to_owned(),
    }
}

fn edited(text: &str, change: ConfigChange) -> String {
    apply(text, &[change]).unwrap()
}

#[test]
fn a_rule_joins_its_list_in_the_style_of_the_list() {
    for (before, after) in [
        (
            r#"{"permissions":{"allow":["a"]}}"#,
            r#"{"permissions":{"allow":["a", "x:y"]}}"#,
        ),
        (
            r#"{"permissions":{"allow":[]}}"#,
            r#"{"permissions":{"allow":["x:y"]}}"#,
        ),
        (
            "{\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"a\" // why a\n\t\t]\n\t}\n}\n",
            "{\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"a\", // why a\n\t\t\t\"x:y\"\n\t\t]\n\t}\n}\n",
        ),
        (
            "{\r\n  \"permissions\": {\r\n    \"allow\": [\r\n      \"a\",\r\n    ],\r\n  },\r\n}\r\n",
            "{\r\n  \"permissions\": {\r\n    \"allow\": [\r\n      \"a\",\r\n      \"x:y\",\r\n    ],\r\n  },\r\n}\r\n",
        ),
        (
            "\u{feff}{\n  // rules\n  \"permissions\": {}\n}",
            "\u{feff}{\n  // rules\n  \"permissions\": {\n    \"allow\": [\"x:y\"]\n  }\n}",
        ),
        ("{}", "{\n  \"permissions\": {\n    \"allow\": [\"x:y\"]\n  }\n}"),
    ] {
        assert_eq!(edited(before, add(Allow, "x:y")), after, "{before}");
    }
}

#[test]
fn a_rule_moves_between_lists() {
    let text = r#"{"permissions": {"allow": ["a", "b"], "deny": ["b"], "ask": ["*"]}}"#;
    assert_eq!(
        edited(text, add(Ask, "b")),
        r#"{"permissions": {"allow": ["a"], "deny": [], "ask": ["*", "b"]}}"#
    );
    assert_eq!(
        edited(text, forget("b")),
        r#"{"permissions": {"allow": ["a"], "deny": [], "ask": ["*"]}}"#
    );
}

#[test]
fn always_moves_an_ask_and_never_lifts_a_deny() {
    let always = || ConfigChange::AllowTool {
        tool: "a:b*".parse().unwrap(),
    };
    assert_eq!(
        edited(
            r#"{"permissions": {"deny": [], "ask": ["a:b\\*", "a:b"]}}"#,
            always()
        ),
        "{\"permissions\": {\n    \"deny\": [],\n    \"ask\": [\"a:b\"],\n    \"allow\": [\"a:b\\\\*\"]\n  }}"
    );
    assert_eq!(
        edited(r#"{"permissions": {"allow": [], "deny": ["a:b\\*"]}}"#, always()),
        r#"{"permissions": {"allow": ["a:b\\*"], "deny": ["a:b\\*"]}}"#
    );
}

#[test]
fn what_is_there_already_changes_no_byte() {
    let text = "{ \"permissions\": {\n\n \"allow\": [ \"a\" ,\n\n ] } }";
    for change in [
        add(Allow, "a"),
        forget("nothing"),
        ConfigChange::RemoveServer {
            name: "nothing".to_owned(),
        },
    ] {
        assert_eq!(edited(text, change), text);
    }
}

#[test]
fn servers_come_and_go_in_a_clients_file() {
    let text =
        "{\n  // mine\n  \"other\": 1e400,\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}\n  }\n}\n";
    let put = |entry| ConfigChange::PutServer {
        name: "pml".to_owned(),
        entry,
    };
    let with = edited(text, put(json!({"command": "pml", "args": ["stdio"]})));
    assert_eq!(
        with,
        "{\n  // mine\n  \"other\": 1e400,\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"},\n    \"pml\": {\n      \"command\": \"pml\",\n      \"args\": [\"stdio\"]\n    }\n  }\n}\n"
    );
    assert_eq!(
        edited(&with, put(json!({"command": "pml", "args": ["stdio"]}))),
        with
    );
    assert!(edited(&with, put(json!({"command": "other"}))).contains("\"command\": \"other\""));
    assert_eq!(
        edited(
            &with,
            ConfigChange::RemoveServer {
                name: "pml".to_owned()
            }
        ),
        text
    );
}

#[test]
fn a_server_that_is_declared_already_keeps_its_bytes_while_others_change() {
    let own = r#"{"mcpServers": {"a": {  "command": /* mine */ "a" }, "b": {"command": "b"}}}"#;
    let put = |name: &str, command: &str| ConfigChange::PutServer {
        name: name.to_owned(),
        entry: json!({ "command": command }),
    };
    let edited = apply(own, &[put("a", "a"), put("b", "c")]).unwrap();
    let kept = r#"{"mcpServers": {"a": {  "command": /* mine */ "a" }, "b": {"#;
    assert!(edited.starts_with(kept), "{edited}");
    assert_eq!(servers(&edited).unwrap()["b"], json!({"command": "c"}));
}

#[test]
fn the_servers_of_a_file_are_read_in_their_order() {
    let text = "\u{feff}{\"mcpServers\": {\"b\": {\"command\": \"b\"}, /* then */ \"a\": {\"url\": \"u\"}}}";
    let found = servers(text).unwrap();
    let found: Vec<(&str, &Value)> = found.iter().map(|(name, entry)| (name.as_str(), entry)).collect();
    assert_eq!(
        found,
        [("b", &json!({"command": "b"})), ("a", &json!({"url": "u"})),]
    );
    assert_eq!(servers("{}"), Ok(Map::new()));
    let refused = servers(r#"{"mcpServers": []}"#).unwrap_err();
    assert_eq!(refused.to_string(), "mcpServers is not an object");
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |text: &str| apply(text, &[add(Deny, "a")]).unwrap_err().to_string();
    assert_eq!(refused("[]"), "the file is not an object");
    assert_eq!(refused(r#"{"permissions": 5}"#), "permissions is not an object");
    assert_eq!(refused(r#"{"permissions": {"deny": {}}}"#), "deny is not a list");
    assert_eq!(refused("{"), "Unterminated object on line 1 column 1");
}

/// A file of rules with comments and blank space in every possible place.
fn documents() -> impl Strategy<Value = String> {
    let trivia = || {
        proptest::collection::vec(
            prop_oneof![
                4 => Just(String::new()),
                2 => Just(" ".to_owned()),
                2 => Just("\n".to_owned()),
                1 => Just("\r\n\t".to_owned()),
                1 => "/\\*[a-z \"\\[]{0,3}\\*/",
                1 => "//[a-z,\\]\"]{0,3}\n",
            ],
            0..3,
        )
        .prop_map(|parts| parts.concat())
    };
    let list = || {
        (
            proptest::collection::vec(("[a-c]:[a-c]", trivia(), trivia()), 0..4),
            trivia(),
            any::<bool>(),
        )
            .prop_map(|(entries, inner, trailing)| {
                let comma = if trailing && !entries.is_empty() { "," } else { "" };
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(entry, before, after)| format!("{before}\"{entry}\"{after}"))
                    .collect();
                format!("[{}{comma}{inner}]", entries.join(","))
            })
    };
    (trivia(), list(), trivia(), list(), trivia(), list(), trivia(), trivia()).prop_map(
        |(t0, allow, t1, deny, t2, ask, t3, t4)| {
            format!("{t0}{{{t1}\"permissions\"{t2}:{{\"allow\":{allow},{t3}\"deny\":{deny}{t2},\"ask\":{t1}{ask}{t3}}}{t4}}}{t0}")
        },
    )
}

/// Tells whether `part` can be had from `whole` by leaving out characters, white space of `part` apart.
fn survives(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars()
        .filter(|found| !found.is_whitespace())
        .all(|found| rest.any(|other| other == found))
}

fn lists() -> impl Strategy<Value = RuleList> {
    prop_oneof![Just(Allow), Just(Ask), Just(Deny)]
}

#[test]
fn a_server_is_pinned_and_every_other_byte_stays() {
    let text = r#"{
  "mcpServers": {
    // the one we use
    "files": {
      "command": "npx", // not bunx
      "args": ["-y", "pkg@1.0.0", /* here */ "."],
      "env": { "A": "1" },
    },
    "time": { "package": "pypi:t==1" }
  }
}
"#;
    let pin = |name: &str, word, text: &str| ConfigChange::PinServer {
        name: name.to_owned(),
        word,
        text: text.to_owned(),
    };
    let changes = [
        pin("files", LaunchWord::Argument(1), "pkg@2.0.0"),
        pin("time", LaunchWord::Package, "pypi:t==2"),
    ];
    let expected = text.replace("pkg@1.0.0", "pkg@2.0.0").replace("t==1", "t==2");
    assert_eq!(apply(text, &changes).unwrap(), expected);
    for missing in [
        pin("none", LaunchWord::Package, "x"),
        pin("files", LaunchWord::Package, "x"),
        pin("files", LaunchWord::Argument(3), "x"),
    ] {
        assert!(apply(text, &[missing]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn adding_a_new_rule_keeps_everything_else(text in documents(), list in lists()) {
        let after = apply(&text, &[add(list, "new:\"rule\\\\")]).unwrap();
        prop_assert!(survives(&text, &after), "{text:?} became {after:?}");
        prop_assert_eq!(after.matches("/*").count(), text.matches("/*").count());
        // A second time there is nothing to do, and forgetting it brings the meaning back.
        prop_assert_eq!(&apply(&after, &[add(list, "new:\"rule\\\\")]).unwrap(), &after);
        let back = apply(&after, &[forget("new:\"rule\\\\")]).unwrap();
        prop_assert_eq!(values(&back).unwrap(), values(&text).unwrap());
    }

    #[test]
    fn any_change_comes_out_as_meant(text in documents(), changes in proptest::collection::vec(
        (lists(), "[a-d]:[a-d]", any::<bool>()), 1..5,
    )) {
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(list, pattern, adds)| if adds { add(list, &pattern) } else { forget(&pattern) })
            .collect();
        let after = apply(&text, &changes).unwrap();
        prop_assert_eq!(apply(&after, &changes[changes.len() - 1..]).unwrap(), after);
    }

    #[test]
    fn crlf_stays_crlf(entries in proptest::collection::vec("[a-c]:[a-c]", 0..4), list in lists()) {
        let entries: Vec<_> = entries.iter().map(|entry| format!("\r\n      \"{entry}\"")).collect();
        let text = format!("{{\r\n  \"permissions\": {{\r\n    \"ask\": [{}\r\n    ]\r\n  }}\r\n}}\r\n", entries.join(","));
        let after = apply(&text, &[add(list, "new:rule")]).unwrap();
        prop_assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    }
}
