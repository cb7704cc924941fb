//! `pml allow`, `deny`, `ask`, `forget`, `check`, `rules` as a person and a script see them.

use insta::assert_snapshot;

use crate::home::{Home, names, read, write};

const SERVERS: &str = r#"{
  // what runs here
  "permissions": {
    "allow": ["filesystem:read_*"], // reading is fine
    "deny": ["filesystem:move_file"],
    "ask": ["*"],
  },
  "mcpServers": { "filesystem": { "command": "npx", "args": ["-y", "fs@1.0.0"] } },
}
"#;

#[test]
fn a_first_rule_creates_the_file() {
    let home = Home::new();
    assert_snapshot!(home.run(&["allow", "serena:analyze"]), @"");
    assert_snapshot!(read(&home.config()), @"");
    assert_eq!(names(&home.project()), [".pml.json"]);
}

#[test]
fn a_rule_joins_a_file_without_disturbing_it() {
    let home = Home::new().with_config(SERVERS);
    assert_snapshot!(home.run(&["ask", "filesystem:write_*", "filesystem:edit_file"]), @"");
    assert_snapshot!(read(&home.config()), @"");
    assert_snapshot!(home.run(&["ask", "filesystem:write_*"]), @"");
}

#[test]
fn a_rule_that_does_not_decide_says_what_does() {
    let home = Home::new().with_config(SERVERS);
    assert_snapshot!(home.run(&["allow", "filesystem:move_file", "filesystem", "filesystm:x"]), @"");
    assert_snapshot!(home.run(&["deny", "--user", "filesystem"]), @"");
    assert_snapshot!(home.run(&["allow", "--json", "filesystem:list"]), @"");
}

#[test]
fn check_names_the_rule_and_its_place() {
    let home = Home::new().with_config(SERVERS);
    write(
        &home.user_config(),
        "{\n  \"permissions\": {\"ask\": [\"filesystem:read_secret\"]}\n}\n",
    );
    assert_snapshot!(home.run(&["check", "filesystem:read_file"]), @"");
    assert_snapshot!(home.run(&["check", "filesystem__move_file"]), @"");
    assert_snapshot!(home.run(&["check", "mcp__pml__filesystem__read_secret"]), @"");
    assert_snapshot!(home.run(&["check", "filesytem:read_file"]), @"");
    assert_snapshot!(home.run(&["check", "--json", "filesystem:read_file"]), @"");
    assert_snapshot!(home.run(&["check", "filesystem"]), @"");
}

#[test]
fn without_any_file_everything_asks() {
    let home = Home::new();
    assert_snapshot!(home.run(&["check", "a:b"]), @"");
    assert_snapshot!(home.run(&["rules"]), @"");
    assert_eq!(names(&home.project()), [""; 0]);
}

#[test]
fn rules_are_listed_in_the_order_in_which_they_decide() {
    let home = Home::new().with_config(SERVERS);
    write(
        &home.user_config(),
        "{\"permissions\": {\"allow\": [\"time\"], \"deny\": [\"*:delete_*\"]}}",
    );
    assert_snapshot!(home.run(&["rules"]), @"");
    let json = home.pml().args(["rules", "--json"]).output().unwrap().stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let patterns: Vec<_> = json["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["pattern"])
        .collect();
    assert_eq!(
        patterns,
        [
            "filesystem:move_file",
            "*:delete_*",
            "filesystem:read_*",
            "time",
            "*"
        ]
    );
}

#[test]
fn a_forgotten_rule_is_gone_and_a_missing_one_is_told() {
    let home = Home::new().with_config(SERVERS);
    write(&home.user_config(), "{\"permissions\": {\"allow\": [\"time\"]}}");
    assert_snapshot!(home.run(&["forget", "filesystem:read_*"]), @"");
    assert_snapshot!(read(&home.config()), @"");
    assert_snapshot!(home.run(&["forget", "time", "filesystem:move_fil"]), @"");
    assert_snapshot!(home.run(&["forget", "--user", "time"]), @"");
}

#[test]
fn a_broken_file_is_told_with_its_place_and_never_touched() {
    let broken = "{\n  \"permisions\": {\"allow\": []}\n}\n";
    let home = Home::new().with_config(broken);
    assert_snapshot!(home.run(&["allow", "a:b"]), @"");
    assert_snapshot!(home.run(&["check", "a:b"]), @"");
    assert_snapshot!(home.run(&["rules"]), @"");
    assert_eq!(read(&home.config()), broken);
    assert_eq!(names(&home.project()), [".pml.json"]);
}

#[test]
fn a_bad_pattern_is_a_usage_error() {
    let home = Home::new();
    assert_snapshot!(home.run(&["allow", "a:{b"]), @"");
    assert_eq!(names(&home.project()), [""; 0]);
}

#[test]
fn the_file_can_be_named_by_flag_and_by_variable() {
    let home = Home::new();
    assert_snapshot!(home.run(&["--config", "sub/one.json", "allow", "a:b"]), @"");
    let output = home
        .pml()
        .env("PML_CONFIG", "sub/one.json")
        .args(["check", "a:b"])
        .output()
        .unwrap();
    assert_snapshot!(home.told(&output), @"");
    assert_eq!(names(&home.project()), ["sub"]);
}

#[test]
fn a_project_of_the_client_is_found_from_anywhere() {
    let home = Home::new().with_config(SERVERS);
    let output = home
        .pml()
        .current_dir("/")
        .env("CLAUDE_PROJECT_DIR", home.project())
        .args(["check", "filesystem:read_file"])
        .output()
        .unwrap();
    assert_snapshot!(home.told(&output), @"");
}

#[test]
fn help_teaches_by_examples() {
    let home = Home::new();
    assert_snapshot!(home.run(&["check", "--help"]), @"");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = Home::new();
    let mut child = home
        .pml()
        .arg("schema")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(home.told(&output), "exit: 0\n");
}
