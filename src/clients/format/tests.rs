use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

fn key(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn replaced(names: &[&str]) -> Vec<Change> {
    let removed = names.iter().map(|name| Change::Remove((*name).to_owned()));
    let own = Change::Put(
        "pml".to_owned(),
        json!({ "command": "/bin/pml", "args": ["stdio"] }),
    );
    removed.chain([own]).collect()
}

#[test]
fn of_json_every_other_byte_stays() {
    let text = "\u{feff}{\r\n\t// mine\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"}, // a\r\n\t\t\"b\": {},\r\n\t},\r\n\t\"other\": 1.0, /* kept */\r\n}\r\n";
    let edited = Format::Json
        .edited(text, &key(&["mcpServers"]), &replaced(&["a", "b"]))
        .unwrap();
    assert!(
        edited.starts_with("\u{feff}{\r\n\t// mine\r\n\t\"mcpServers\": {"),
        "{edited}"
    );
    assert!(
        edited.ends_with("\r\n\t},\r\n\t\"other\": 1.0, /* kept */\r\n}\r\n"),
        "{edited}"
    );
    assert_eq!(edited.matches('\n').count(), edited.matches("\r\n").count());
    let values = Format::Json.values(&edited).unwrap();
    assert_eq!(
        values["mcpServers"],
        json!({ "pml": { "command": "/bin/pml", "args": ["stdio"] } })
    );
}

#[test]
fn of_toml_every_other_byte_stays() {
    let text = "# mine\nmodel = \"o\" # why\n\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.a.env]\nA = '1'\n\n[tui]\n# kept\ntheme = 'x'\n";
    let edited = Format::Toml
        .edited(text, &key(&["mcp_servers"]), &replaced(&["a"]))
        .unwrap();
    assert_eq!(
        edited,
        "# mine\nmodel = \"o\" # why\n\n[mcp_servers.pml]\ncommand = \"/bin/pml\"\nargs = [\"stdio\"]\n\n[tui]\n# kept\ntheme = 'x'\n"
    );
    let returns = text.replace('\n', "\r\n");
    let with_returns = Format::Toml
        .edited(&returns, &key(&["mcp_servers"]), &replaced(&["a"]))
        .unwrap();
    assert_eq!(with_returns, edited.replace('\n', "\r\n"));
    let mixed = text.replacen('\n', "\r\n", 2);
    let refused = Format::Toml.edited(&mixed, &key(&["mcp_servers"]), &replaced(&["a"]));
    assert!(refused.unwrap_err().contains("end in two ways"));
}

#[test]
fn an_inline_table_of_servers_stays_one() {
    let text = "mcp_servers = { a = { command = \"x\" } }\n";
    let edited = Format::Toml
        .edited(text, &key(&["mcp_servers"]), &replaced(&["a"]))
        .unwrap();
    assert_eq!(edited.lines().count(), 1, "{edited}");
    assert!(
        edited.contains("pml = { command = \"/bin/pml\", args = [\"stdio\"] }"),
        "{edited}"
    );
}

#[test]
fn a_missing_key_and_an_empty_file_get_one() {
    let edited = Format::Json
        .edited("", &key(&["mcp", "servers"]), &replaced(&[]))
        .unwrap();
    let values = Format::Json.values(&edited).unwrap();
    assert_eq!(values["mcp"]["servers"]["pml"]["args"], json!(["stdio"]));
    let edited = Format::Toml
        .edited("", &key(&["mcp_servers"]), &replaced(&[]))
        .unwrap();
    assert_eq!(
        edited,
        "[mcp_servers.pml]\ncommand = \"/bin/pml\"\nargs = [\"stdio\"]\n"
    );
}

#[test]
fn nothing_to_change_is_the_same_text() {
    for (format, text) in [
        (Format::Json, "{ \"mcpServers\":{} }"),
        (Format::Toml, "a=1"),
        (Format::Yaml, "a: 1"),
    ] {
        let changes = [Change::Remove("absent".to_owned())];
        assert_eq!(
            format.edited(text, &key(&["mcpServers"]), &changes).unwrap(),
            text
        );
    }
}

#[test]
fn what_is_broken_is_refused_without_its_text() {
    let secret = "ghp_secret";
    for (format, text) in [
        (Format::Json, format!("{{ \"a\": {secret} }}")),
        (Format::Toml, format!("a = {secret}")),
        (Format::Yaml, format!("a: [{secret}")),
    ] {
        let reason = format.values(&text).unwrap_err();
        assert!(!reason.contains(secret), "{reason}");
    }
}

#[test]
fn yaml_is_read_with_its_types_and_aliases() {
    let text = "extensions:\n  time: &t\n    cmd: uvx\n    args: [\"a\", b]\n    timeout: 300\n    enabled: yes\n  again: *t\n";
    let values = Format::Yaml.values(text).unwrap();
    assert_eq!(
        values["extensions"]["time"],
        json!({ "cmd": "uvx", "args": ["a", "b"], "timeout": 300, "enabled": "yes" })
    );
    assert_eq!(values["extensions"]["again"], values["extensions"]["time"]);
}
