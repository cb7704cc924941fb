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
    assert_snapshot!(home.run(&["allow", "serena:analyze"]), @r#"
    exit: 0
    --- stderr
    created .pml.json: allow `serena:analyze`
    "#);
    assert_snapshot!(read(&home.config()), @r#"
    {
      "version": "0.1.0",
      "permissions": {
        "allow": ["serena:analyze"],
        "deny": [],
        "ask": ["*"]
      }
    }
    "#);
    assert_eq!(names(&home.project()), [".pml.json"]);
}

#[test]
fn a_rule_joins_a_file_without_disturbing_it() {
    let home = Home::new().with_config(SERVERS);
    assert_snapshot!(home.run(&["ask", "filesystem:write_*", "filesystem:edit_file"]), @r#"
    exit: 0
    --- stderr
    changed .pml.json: ask `filesystem:write_*`, `filesystem:edit_file`
    "#);
    assert_snapshot!(read(&home.config()), @r#"
    {
      // what runs here
      "permissions": {
        "allow": ["filesystem:read_*"], // reading is fine
        "deny": ["filesystem:move_file"],
        "ask": ["*", "filesystem:write_*", "filesystem:edit_file"],
      },
      "mcpServers": { "filesystem": { "command": "npx", "args": ["-y", "fs@1.0.0"] } },
    }
    "#);
    assert_snapshot!(home.run(&["ask", "filesystem:write_*"]), @r#"
    exit: 0
    --- stderr
    .pml.json says so already: ask `filesystem:write_*`
    "#);
}

#[test]
fn a_rule_that_does_not_decide_says_what_does() {
    let home = Home::new().with_config(SERVERS);
    assert_snapshot!(home.run(&["allow", "filesystem:move_file", "filesystem", "filesystm:x"]), @r#"
    exit: 0
    --- stderr
    changed .pml.json: allow `filesystem:move_file`, `filesystem`, `filesystm:x`
    note: `filesystem:move_file` was in the deny list before
    note: `filesystm:x` covers no declared server; did you mean `filesystem`?
    "#);
    assert_snapshot!(home.run(&["deny", "--user", "filesystem"]), @r#"
    exit: 0
    --- stderr
    created ~/config/pml/pml.json: deny `filesystem`
    note: rule `filesystem:read_*` in the allow list decides nothing any more (.pml.json:4)
    note: rule `filesystem:move_file` in the allow list decides nothing any more (.pml.json:4)
    note: rule `filesystem` in the allow list decides nothing any more (.pml.json:4)
    "#);
    assert_snapshot!(home.run(&["allow", "filesystem:read_file"]), @r#"
    exit: 0
    --- stderr
    changed .pml.json: allow `filesystem:read_file`
    note: `filesystem:read_file` is still denied: rule `filesystem` in the deny list wins (~/config/pml/pml.json:5)
    "#);
    assert_snapshot!(home.run(&["allow", "--json", "filesystem:list"]), @r#"
    exit: 0
    --- stdout
    {
      "file": "[HOME]/project/.pml.json",
      "changed": true,
      "list": "allow",
      "patterns": [
        {
          "pattern": "filesystem:list",
          "movedFrom": null,
          "overruledBy": {
            "pattern": "filesystem",
            "list": "deny",
            "file": "[HOME]/config/pml/pml.json",
            "line": 5,
            "column": 14
          }
        }
      ]
    }
    "#);
}

#[test]
fn check_names_the_rule_and_its_place() {
    let home = Home::new().with_config(SERVERS);
    write(
        &home.user_config(),
        "{\n  \"permissions\": {\"ask\": [\"filesystem:read_secret\"]}\n}\n",
    );
    assert_snapshot!(home.run(&["check", "filesystem:read_file"]), @r#"
    exit: 0
    --- stdout
    allow: `filesystem:read_file` runs without a question
      rule `filesystem:read_*` in the allow list (.pml.json:4)
    "#);
    assert_snapshot!(home.run(&["check", "filesystem__move_file"]), @r#"
    exit: 1
    --- stdout
    deny: `filesystem:move_file` never runs
      rule `filesystem:move_file` in the deny list (.pml.json:5)
    "#);
    assert_snapshot!(home.run(&["check", "mcp__pml__filesystem__read_secret"]), @r#"
    exit: 1
    --- stdout
    ask: `filesystem:read_secret` asks before every call
      rule `filesystem:read_secret` in the ask list (~/config/pml/pml.json:2)
    "#);
    assert_snapshot!(home.run(&["check", "filesytem:read_file"]), @r#"
    exit: 1
    --- stdout
    ask: `filesytem:read_file` asks before its server is first installed or started
      rule `*` in the ask list (.pml.json:6)
    --- stderr
    note: no server `filesytem` is declared; did you mean `filesystem`?
    "#);
    assert_snapshot!(home.run(&["check", "--json", "filesystem:read_file"]), @r#"
    exit: 0
    --- stdout
    {
      "tool": "filesystem:read_file",
      "command": null,
      "decision": "allow",
      "asks": null,
      "reason": "rule `filesystem:read_*` in the allow list (.pml.json:4)",
      "outlook": "runs: allowed by a rule",
      "approval": null,
      "rule": {
        "pattern": "filesystem:read_*",
        "list": "allow",
        "file": "[HOME]/project/.pml.json",
        "line": 4,
        "column": 15
      },
      "mistakableFor": null
    }
    "#);
    assert_snapshot!(home.run(&["check", "filesystem"]), @r#"
    exit: 2
    --- stderr
    error: invalid value 'filesystem' for '<TOOL>': `filesystem` is not a tool name; write `server:tool`

    For more information, try '--help'.
    "#);
}

#[test]
fn without_any_file_everything_asks() {
    let home = Home::new();
    assert_snapshot!(home.run(&["check", "a:b"]), @r#"
    exit: 1
    --- stdout
    ask: `a:b` asks before its server is first installed or started
      rule `*` in the ask list (built in)
    --- stderr
    note: no server `a` is declared
    "#);
    assert_snapshot!(home.run(&["rules"]), @r#"
    exit: 0
    --- stdout
    ask    *  built in
    "#);
    assert_eq!(names(&home.project()), [""; 0]);
}

#[test]
fn rules_are_listed_in_the_order_in_which_they_decide() {
    let home = Home::new().with_config(SERVERS);
    write(
        &home.user_config(),
        "{\"permissions\": {\"allow\": [\"time\"], \"deny\": [\"*:delete_*\"]}}",
    );
    assert_snapshot!(home.run(&["rules"]), @r#"
    exit: 0
    --- stdout
    deny   filesystem:move_file  .pml.json:5
    deny   *:delete_*            ~/config/pml/pml.json:1
    allow  filesystem:read_*     .pml.json:4
    allow  time                  ~/config/pml/pml.json:1
    ask    *                     .pml.json:6
    --- stderr
    note: `time` covers no declared server
    "#);
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
    assert_snapshot!(home.run(&["forget", "filesystem:read_*"]), @r#"
    exit: 0
    --- stderr
    changed .pml.json: forgot `filesystem:read_*`
    "#);
    assert_snapshot!(read(&home.config()), @r#"
    {
      // what runs here
      "permissions": {
        "allow": [], // reading is fine
        "deny": ["filesystem:move_file"],
        "ask": ["*"],
      },
      "mcpServers": { "filesystem": { "command": "npx", "args": ["-y", "fs@1.0.0"] } },
    }
    "#);
    assert_snapshot!(home.run(&["forget", "time", "filesystem:move_fil"]), @r#"
    exit: 1
    --- stderr
    no rule `time` in .pml.json
    note: it stands in ~/config/pml/pml.json; to forget it there: pml forget --user time
    no rule `filesystem:move_fil` in .pml.json
    note: did you mean `filesystem:move_file`?
    "#);
    assert_snapshot!(home.run(&["forget", "--user", "time"]), @r#"
    exit: 0
    --- stderr
    changed ~/config/pml/pml.json: forgot `time`
    "#);
}

#[test]
fn a_broken_file_is_told_with_its_place_and_never_touched() {
    let broken = "{\n  \"permisions\": {\"allow\": []}\n}\n";
    let home = Home::new().with_config(broken);
    assert_snapshot!(home.run(&["allow", "a:b"]), @r#"
    exit: 2
    --- stderr
    error: [HOME]/project/.pml.json:2:3: unknown key `permisions`; did you mean `permissions`?
    "#);
    assert_snapshot!(home.run(&["check", "a:b"]), @r#"
    exit: 2
    --- stderr
    error: [HOME]/project/.pml.json:2:3: unknown key `permisions`; did you mean `permissions`?
    "#);
    assert_snapshot!(home.run(&["rules"]), @r#"
    exit: 2
    --- stderr
    error: [HOME]/project/.pml.json:2:3: unknown key `permisions`; did you mean `permissions`?
    "#);
    assert_eq!(read(&home.config()), broken);
    assert_eq!(names(&home.project()), [".pml.json"]);
}

#[test]
fn a_bad_pattern_is_a_usage_error() {
    let home = Home::new();
    assert_snapshot!(home.run(&["allow", "a:{b"]), @r#"
    exit: 2
    --- stderr
    error: invalid value 'a:{b' for '<PATTERN>...': pattern `a:{b` is not a glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)

    For more information, try '--help'.
    "#);
    assert_eq!(names(&home.project()), [""; 0]);
}

#[test]
fn the_file_can_be_named_by_flag_and_by_variable() {
    let home = Home::new();
    assert_snapshot!(home.run(&["--config", "sub/one.json", "allow", "a:b"]), @r#"
    exit: 0
    --- stderr
    created sub/one.json: allow `a:b`
    "#);
    let output = home
        .pml()
        .env("PML_CONFIG", "sub/one.json")
        .args(["check", "a:b"])
        .output()
        .unwrap();
    assert_snapshot!(home.told(&output), @r#"
    exit: 0
    --- stdout
    allow: `a:b` runs without a question
      rule `a:b` in the allow list (sub/one.json:4)
    --- stderr
    note: no server `a` is declared
    "#);
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
    assert_snapshot!(home.told(&output), @r#"
    exit: 0
    --- stdout
    allow: `filesystem:read_file` runs without a question
      rule `filesystem:read_*` in the allow list (~/project/.pml.json:4)
    "#);
}

#[test]
fn help_teaches_by_examples() {
    let home = Home::new();
    assert_snapshot!(home.run(&["check", "--help"]), @r#"
    exit: 0
    --- stdout
    Say what a call of a tool would do, and which rule or approval decides that

    Usage: pml check [OPTIONS] <TOOL>

    Arguments:
      <TOOL>  The tool, as `server:tool` or as the client spells it, `server__tool`

    Options:
          --config <FILE>  Use this file instead of looking for `.pml.json` [env: PML_CONFIG]
          --json           Print it as JSON
      -h, --help           Print help
      -V, --version        Print version

    Examples:
      pml check filesystem:read_file
      pml check filesystem__read_file      as the client spells it
      pml check 'client:Bash(git status)'  a command of the client's shell
      pml check --json github:get_issue

    Exit code: 0 it runs, 1 it asks or is denied, 2 error.
    "#);
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
