//! `pml demo`, with every answer.

use pretty_assertions::assert_eq;

use crate::support::pml;
use crate::support::world::World;

/// Runs the demo and returns what it shows, without what differs from run to run.
fn demo(arguments: &[&str]) -> String {
    let world = World::new();
    let temporary = tempfile::tempdir().unwrap();
    world.set("TMPDIR", temporary.path().to_str().unwrap());
    let before = world.files();
    let ended = world.run(&[&["demo"], arguments].concat());
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), told.as_str()), (Some(0), ""));
    assert_eq!(world.files(), before, "the demo touches the person's home");
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "the demo leaves {left:?}");
    world.assert_no_survivor("after the demo");

    let shown = String::from_utf8(ended.stdout).unwrap();
    assert!(!shown.contains('\u{1b}'), "colours without a terminal: {shown}");
    let shown = shown.replace(pml().to_str().unwrap(), "PML");
    let folder = format!("{}/pml-demo-", temporary.path().display());
    let mut cleaned = Vec::new();
    for line in shown.lines() {
        let mut line = line.to_owned();
        if let Some((before, after)) = line.split_once(&folder) {
            line = format!("{before}TEMPORARY{}", &after["XXXXXX".len()..]);
        }
        if let Some((before, after)) = line.clone().split_once(r#""workflow_id":""#) {
            let (_, after) = after.split_once('"').unwrap();
            line = format!(r#"{before}"workflow_id":"ID"{after}"#);
        }
        cleaned.push(line);
    }
    cleaned.join("\n")
}

/// What stands from a heading on, up to the closing advice.
fn from_heading<'a>(shown: &'a str, heading: &str) -> &'a str {
    let start = shown
        .find(heading)
        .unwrap_or_else(|| panic!("no `{heading}` in {shown}"));
    let end = shown.find("What to do next").unwrap();
    shown[start..end].trim_end()
}

#[test]
fn always_asks_runs_writes_the_rule_and_asks_no_more() {
    let shown = demo(&["--answer", "always"]);
    assert_eq!(
        from_heading(&shown, "> The client connects"),
        r#"> The client connects to pml and lists the tools
    sample__connect    Starts the MCP server `sample` and lists its tools
    ask_user           Ask the user a question and wait for their response
    ask_user_questions Ask the user one to four structured questions
    approval_prompt    For clients
    pml_status         Tells which servers stand behind pml
    pml_continue       Continues a tool call that answered `approval_required`
  `sample` has not been started, so its own tools are not known yet.

> The model calls sample__greet {"name":"world"}
  pml suspends the call and answers at once, so that nothing blocks:
    Approval required to run sample
    who asks    the model, by calling sample:greet
    would run   PML sample-server
  Why it asks, by `pml check sample:greet`:
    ask: `sample:greet` asks before its server is first installed or started
      rule `*` in the ask list (.pml.json:6)

> A person decides
    c  Continue  run this call, and approve exactly this server on this machine
    a  Always    the same, and write a rule for sample:greet into .pml.json
    x  Abort     nothing runs
  The answer is given: Always.

> The client carries the answer back, on the same tool
    sample__greet {"continue_workflow":{"workflow_id":"ID","approved":true,"always":true}}
  pml answers:
    Hello, world!
    pml: `sample:greet` is in the allow list of TEMPORARY/project/.pml.json

> What changed in .pml.json
        "permissions": {
    -     "allow": [],
    +     "allow": ["sample:greet"],
          "deny": [],

> The same project on another machine (an empty home): sample__greet {"name":"again"}
    Hello, again!
  No question: the rule allows it. To take it back: pml forget sample:greet"#
    );
}

#[test]
fn continue_runs_the_call_and_approves_the_server() {
    let shown = demo(&["--answer", "continue"]);
    assert_eq!(
        from_heading(&shown, "> The client carries"),
        r#"> The client carries the answer back, on the same tool
    sample__greet {"continue_workflow":{"workflow_id":"ID","approved":true}}
  pml answers:
    Hello, world!

> The model calls another tool of it: sample__add {"a":2,"b":3}
    {"sum":5.0}
  No question: this very command was approved. A changed command would ask again.

> The client lists the tools again
    sample__greet      Greets somebody by name
    sample__echo       Returns its arguments as they came
    sample__roll_dice  Rolls one die
    sample__add        Adds two numbers
    ask_user           Ask the user a question and wait for their response
    ask_user_questions Ask the user one to four structured questions
    approval_prompt    For clients
    pml_status         Tells which servers stand behind pml
    pml_continue       Continues a tool call that answered `approval_required`"#
    );
}

#[test]
fn abort_runs_nothing() {
    let shown = demo(&["--answer", "abort"]);
    assert_eq!(
        from_heading(&shown, "> The client carries"),
        r#"> The client carries the answer back, on the same tool
    sample__greet {"continue_workflow":{"workflow_id":"ID","approved":false}}
  pml answers:
    Workflow aborted by user
    It did not run. Do not call it again unless the person asks for it.

> Nothing ran: the client lists the tools again
    sample__connect    Starts the MCP server `sample` and lists its tools
    ask_user           Ask the user a question and wait for their response
    ask_user_questions Ask the user one to four structured questions
    approval_prompt    For clients
    pml_status         Tells which servers stand behind pml
    pml_continue       Continues a tool call that answered `approval_required`
  `sample` is still a stranger. The next call asks again; `pml deny sample` ends the questions."#
    );
}

#[test]
fn without_a_terminal_all_three_answers_are_shown() {
    let shown = demo(&[]);
    let told: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("===") || line.starts_with("Standard") || line.contains("is given"))
        .collect();
    assert_eq!(
        told,
        [
            "Standard input is no terminal, so nobody can be asked: here are all three answers.",
            "=== Continue ===",
            "  The answer is given: Continue.",
            "=== Always ===",
            "  The answer is given: Always.",
            "=== Abort ===",
            "  The answer is given: Abort.",
        ]
    );
}

#[test]
fn the_wire_can_be_seen() {
    let shown = demo(&["--wire", "--answer", "abort"]);
    let sent: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("  -> "))
        .collect();
    assert_eq!(
        sent[3..],
        [
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sample__greet","arguments":{"name":"world"}}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"sample__greet","arguments":{"continue_workflow":{"workflow_id":"ID","approved":false}}}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{}}"#,
        ]
    );
    assert!(
        shown.contains(r#"  <- {"jsonrpc":"2.0","id":3,"result":{"content":"#),
        "{shown}"
    );
}
