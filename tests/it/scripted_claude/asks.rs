//! Who is asked what while a tool is used.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::host::{Session, Start};
use super::{READ_BY_THE_MODEL, answered, bash, question, questions};
use crate::support::messages_api::Turn;
use crate::support::{DEADLINE, eventually};

#[test]
fn a_permission_is_asked_with_suggestions_and_a_refusal_reaches_the_model() {
    let script = [
        Turn::text("I make a file.").and_tool("Bash", bash("touch allowed")),
        Turn::respond(|request| {
            assert!(request.last_result().contains("no output"), "{request:?}");
            Turn::tool("Bash", bash("touch refused"))
        }),
        Turn::respond(|request| Turn::text(request.last_result())),
    ];
    let Some(session) = Session::scripted(script) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.user("Make files");
    let asked = host.asked("can_use_tool");
    let request = &asked["request"];
    assert_eq!(
        [&request["tool_name"], &request["input"]],
        [&json!("Bash"), &bash("touch allowed")]
    );
    let suggested = &request["permission_suggestions"];
    // Not the command but what begins with it.
    assert_eq!(
        suggested[0],
        json!({
            "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "touch allowed *" }],
            "behavior": "allow", "destination": "localSettings",
        })
    );
    assert_eq!(
        [
            &suggested[1]["type"],
            &suggested[2]["type"],
            &suggested[2]["mode"]
        ],
        ["addDirectories", "setMode", "acceptEdits"]
    );
    host.reply(
        &asked,
        &json!({ "behavior": "allow", "updatedInput": request["input"] }),
    );
    let asked = host.asked("can_use_tool");
    host.reply(
        &asked,
        &json!({ "behavior": "deny", "message": "The person said: not this one" }),
    );
    assert_eq!(host.result()["result"], "The person said: not this one");
    let results = session.api.tool_results();
    assert_eq!(
        results.iter().map(|one| one.is_error).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(results[1].tool, "Bash");
    assert_eq!(results[1].input, bash("touch refused"));
    assert_eq!(
        ["allowed", "refused"].map(|name| session.world.path(name).exists()),
        [true, false]
    );
}

#[test]
fn a_question_is_answered_by_its_hook() {
    let Some(session) = Session::scripted([question()]) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.initialize(Some("AskUserQuestion"));
    host.user("Ask me");
    let hook = host.asked("hook_callback");
    let input = &hook["request"]["input"];
    assert_eq!(
        input["tool_input"]["questions"][0]["question"],
        questions()["questions"][0]["question"]
    );
    assert_eq!(input["transcript_path"], session.transcript().to_str().unwrap());
    host.decide(&hook, "allow", &answered());
    host.result();
    let results = session.api.tool_results();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].tool_use_id, input["tool_use_id"].as_str().unwrap());
    assert_eq!(results[0].text, READ_BY_THE_MODEL);
    assert!(!results[0].is_error);
    assert!(!host.summary().iter().any(|line| line.contains("can_use_tool")));
}

#[test]
fn a_refused_question_gives_the_model_the_reason() {
    let Some(session) = Session::scripted([question()]) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.initialize(None);
    host.user("Ask me");
    let hook = host.asked("hook_callback");
    host.decide(&hook, "deny", &json!({ "permissionDecisionReason": "not now" }));
    host.result();
    let results = session.api.tool_results();
    assert!(
        results[0].is_error && results[0].text.contains("not now"),
        "{results:?}"
    );
}

/// Claude Code does not wait for the end of a message: a hook is asked while later calls are still on their way. Whether
/// a call is the only one of its message is known at `message_stop`, not before.
#[test]
fn a_sibling_that_only_reads_runs_while_a_hook_is_held() {
    let Some(session) = Session::scripted([question().and_tool("Bash", bash("echo beside"))]) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.initialize(None);
    host.user("Ask me");
    let held = host.asked("hook_callback");
    let beside = host.asked("hook_callback");
    assert_eq!(beside["request"]["input"]["tool_name"], "Bash");
    host.reply(&beside, &json!({}));
    let returned = host.returned(beside["request"]["tool_use_id"].as_str().unwrap());
    assert_eq!(returned["message"]["content"][0]["content"], "beside");
    assert_eq!(session.api.requests().len(), 1);
    host.decide(&held, "allow", &answered());
    host.result();
    let results = session.api.tool_results();
    // In the order in which they ended, not in that of the calls.
    assert_eq!(
        results.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(),
        ["beside", READ_BY_THE_MODEL]
    );
    let place = |wanted: &dyn Fn(&Value) -> bool| host.seen.iter().position(wanted).unwrap();
    let asked = place(&|line| line["request_id"] == held["request_id"]);
    let whole = place(&|line| line["event"]["type"] == "message_stop");
    assert!(asked < whole, "{:#?}", host.summary());
}

/// A sibling that changes something is not even asked about before: `message_stop` comes, its hook does not.
#[test]
fn a_sibling_that_writes_waits_for_the_hook_before_it() {
    let Some(session) = Session::scripted([question().and_tool("Bash", bash("touch beside"))]) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.initialize(None);
    host.user("Ask me");
    let held = host.asked("hook_callback");
    host.until("the end of the message", |line| {
        line["event"]["type"] == "message_stop"
    });
    host.decide(&held, "allow", &answered());
    let beside = host.asked("hook_callback");
    host.decide(&beside, "allow", &json!({}));
    host.result();
    let hook_of_the_sibling = host.seen.iter().position(|line| *line == beside).unwrap();
    let echo_of_the_answer = host.seen.iter().position(|line| {
        line["type"] == "control_response" && line["response"]["request_id"] == held["request_id"]
    });
    assert!(echo_of_the_answer.unwrap() < hook_of_the_sibling);
    assert!(session.world.path("beside").exists());
}

/// A hook without a matcher is asked of every tool; `{}` leaves the decision to the permission. The form of a server
/// names the server but not the call, in either era.
#[test]
fn a_tool_of_a_server_is_asked_by_hook_then_permission_then_form() {
    for options in [&["--modern"][..], &[]] {
        let Some(session) = Session::scripted([Turn::tool("mcp__fake__ask", json!({}))]) else {
            return;
        };
        let record = session.world.path("record");
        let options = [options, &["--record", record.to_str().unwrap()]].concat();
        let config = json!({ "mcpServers": { "fake": session.world.fake(&options) } });
        session.world.write("servers.json", &config.to_string());
        let mut host = session.start_with(
            Start::New,
            &["--mcp-config", "servers.json", "--strict-mcp-config"],
        );
        host.initialize(None);
        host.user("Use it");
        let hook = host.asked("hook_callback");
        assert_eq!(hook["request"]["input"]["tool_name"], "mcp__fake__ask");
        host.reply(&hook, &json!({}));
        let asked = host.asked("can_use_tool");
        assert_eq!(asked["request"]["tool_use_id"], hook["request"]["tool_use_id"]);
        host.reply(&asked, &json!({ "behavior": "allow", "updatedInput": {} }));
        let form = host.asked("elicitation");
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        assert_eq!(
            form["request"],
            json!({
                "subtype": "elicitation", "mcp_server_name": "fake", "message": "Who?", "mode": "form",
                "requested_schema": schema, "property_order": ["name"],
            })
        );
        host.reply(
            &form,
            &json!({ "action": "accept", "content": { "name": "Ada" } }),
        );
        // In the Legacy era this call never ends.
        eventually("the server is answered", DEADLINE, || {
            std::fs::read_to_string(&record).is_ok_and(|lines| lines.contains("Ada"))
        });
    }
}
