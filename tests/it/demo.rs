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

/// What stands from one heading on up to another.
fn between<'a>(shown: &'a str, heading: &str, end: &str) -> &'a str {
    let place = |text: &str| {
        shown
            .find(text)
            .unwrap_or_else(|| panic!("no `{text}` in {shown}"))
    };
    shown[place(heading)..place(end)].trim_end()
}

/// The heading of the last scene.
const QUESTION: &str = "> The model has a question of its own";

#[test]
fn always_asks_runs_writes_the_rule_and_asks_no_more() {
    let shown = demo(&["--answer", "always"]);
    assert_eq!(
        between(&shown, "> The client connects", QUESTION),
        r#"> The client connects to pml and lists the tools
    sample__connect    Starts the MCP server `sample` and lists its tools…
    ask_user           Ask the user a question and wait for their response
    ask_user_questions Ask the user one to four structured questions, each…
    approval_prompt    For clients, not for models…
    pml_status         Tells which servers stand behind pml, whether they are…
    pml_continue       Continues a tool call that answered `approval_required`…
  `sample` has not been started, so its own tools are not known yet.

> The model calls the tool that is listed: sample__connect
  pml suspends the call and answers at once, so that nothing blocks:
    Approval required to run sample
    who asks    the model, by calling sample:connect
    would run   PML sample-server
  Why it asks, by `pml check sample:connect`:
    ask: `sample:connect` asks before its server is first installed or started
      rule `*` in the ask list (.pml.json:6)

> A person decides
    c  Continue  run this call, and approve exactly this server on this machine
    a  Always    the same, and write a rule for sample:connect into .pml.json
    x  Abort     nothing runs
  The answer is given: Always.

> The client carries the answer back, on the same tool
    sample__connect {"continue_workflow":{"workflow_id":"ID","approved":true,"always":true}}
  pml answers:
    `sample` is running. Its tools:
    - sample__greet
    - sample__echo
    - sample__roll_dice
    - sample__add
    pml: `sample:connect` is in the allow list of TEMPORARY/project/.pml.json

> What changed in .pml.json
        "permissions": {
    -     "allow": [],
    +     "allow": ["sample:connect"],
          "deny": [],

> The same project on another machine (an empty home): sample__connect
    `sample` is running. Its tools:
    - sample__greet
    - sample__echo
    - sample__roll_dice
    - sample__add
  No question: the rule allows it. To take it back: pml forget sample:connect"#
    );
}

#[test]
fn continue_runs_the_call_and_approves_the_server() {
    let shown = demo(&["--answer", "continue"]);
    assert_eq!(
        between(&shown, "> The client carries", QUESTION),
        r#"> The client carries the answer back, on the same tool
    sample__connect {"continue_workflow":{"workflow_id":"ID","approved":true}}
  pml answers:
    `sample` is running. Its tools:
    - sample__greet
    - sample__echo
    - sample__roll_dice
    - sample__add

> The client lists the tools again
    sample__greet      Greets somebody by name
    sample__echo       Returns its arguments as they came
    sample__roll_dice  Rolls one die
    sample__add        Adds two numbers
    ask_user           Ask the user a question and wait for their response
    ask_user_questions Ask the user one to four structured questions, each…
    approval_prompt    For clients, not for models…
    pml_status         Tells which servers stand behind pml, whether they are…
    pml_continue       Continues a tool call that answered `approval_required`…

> The model calls one of them: sample__greet {"name":"world"}
    Hello, world!
  No question: this very command was approved. A changed command would ask again."#
    );
}

#[test]
fn abort_runs_nothing() {
    let shown = demo(&["--answer", "abort"]);
    assert_eq!(
        between(&shown, "> The client carries", QUESTION),
        r#"> The client carries the answer back, on the same tool
    sample__connect {"continue_workflow":{"workflow_id":"ID","approved":false}}
  pml answers:
    Workflow aborted by user
    It did not run. Do not call it again unless the person asks for it.

> Nothing ran: the client lists the tools again
    sample__connect    Starts the MCP server `sample` and lists its tools…
    ask_user           Ask the user a question and wait for their response
    ask_user_questions Ask the user one to four structured questions, each…
    approval_prompt    For clients, not for models…
    pml_status         Tells which servers stand behind pml, whether they are…
    pml_continue       Continues a tool call that answered `approval_required`…
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
            "=== A question ===",
            "  The answer is given: Hello.",
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
        sent[3..6],
        [
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sample__connect","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"sample__connect","arguments":{"continue_workflow":{"workflow_id":"ID","approved":false}}}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{}}"#,
        ]
    );
    assert!(
        shown.contains(r#"  <- {"jsonrpc":"2.0","id":3,"result":{"content":"#),
        "{shown}"
    );
}

#[test]
fn a_question_of_the_model_comes_last_and_its_answer_goes_back() {
    let shown = demo(&["--answer", "abort"]);
    let scene = between(&shown, QUESTION, "What to do next");
    let code = scene
        .split_once("`pml answer ")
        .unwrap()
        .1
        .split_once('`')
        .unwrap()
        .0;
    assert_eq!(code.len(), 5, "{scene}");
    assert_eq!(
        scene.replace(code, "CODE"),
        r#"> The model has a question of its own: ask_user
    {"question":"How shall the page greet its visitors?","options":[{"label":"Hello"},{"label":"Good morning"}]}
  pml keeps the question and answers at once, as this client shows no forms:
    The question waits for the person.
  It can be answered wherever the person is, such as by `pml answer CODE`.

> The person answers
    How shall the page greet its visitors?
    1  Hello
    2  Good morning
  The answer is given: Hello.

> The client carries the answer back, on the same tool
    ask_user {"continue_workflow":{"workflow_id":"ID","answer":"Hello"}}
  pml answers:
    User selected: Hello"#
    );
}

#[test]
fn what_to_do_next_can_be_typed_anywhere() {
    let shown = demo(&["--answer", "abort"]);
    let next = shown.split_once("What to do next\n").unwrap().1;
    assert_eq!(
        next,
        "  cargo install --locked pml-mcp        put pml where your clients find it
  pml import                            bring the servers of your clients behind pml
  pml init --client claude              or begin anew, and register pml in Claude Code
  pml add time -- uvx mcp-server-time   put a server behind pml
  pml demo --wire                       see the JSON-RPC lines of this demo"
    );
    let open = |line: &&str| line.matches('`').count() % 2 == 1;
    assert_eq!(shown.lines().find(open), None, "a backtick is left open");
}

#[test]
fn what_the_demo_calls_was_listed_before() {
    for answer in ["continue", "always", "abort"] {
        let shown = demo(&["--answer", answer, "--wire"]);
        let mut listed = Vec::new();
        for line in shown.lines() {
            let Some((arrow, text)) = line
                .trim()
                .split_once(' ')
                .filter(|(arrow, _)| matches!(*arrow, "->" | "<-"))
            else {
                continue;
            };
            let message: serde_json::Value = serde_json::from_str(text).unwrap();
            match arrow {
                "<-" => listed.extend(
                    message["result"]["tools"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(|tool| tool["name"].clone()),
                ),
                _ if message["method"] == "tools/call" => {
                    let name = &message["params"]["name"];
                    // The scene of the question has a client of its own, to which `ask_user` is no news.
                    assert!(listed.contains(name), "{name} in {shown}");
                }
                _ => {}
            }
        }
        assert!(listed.len() > 5, "{shown}");
    }
}
