//! How a process ends while something is asked, and how another one goes on.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;

use super::host::{Host, Session, Start};
use super::{READ_BY_THE_MODEL, answered, question};
use crate::support::messages_api::Turn;
use crate::support::{DEADLINE, eventually};

/// Starts a conversation and lets it ask.
fn asked(session: &Session) -> (Host, Value) {
    let mut host = session.start(Start::New);
    host.initialize(None);
    host.user("Ask me");
    let hook = host.asked("hook_callback");
    (host, hook)
}

/// Parks a question; returns the id of its call.
fn parked(session: &Session) -> String {
    let (mut host, hook) = asked(session);
    host.decide(&hook, "defer", &json!({}));
    let result = host.result();
    let id = hook["request"]["input"]["tool_use_id"].as_str().unwrap();
    assert_eq!(
        [&result["stop_reason"], &result["terminal_reason"]],
        ["tool_deferred"; 2]
    );
    assert_eq!(
        [
            &result["deferred_tool_use"]["id"],
            &result["deferred_tool_use"]["name"]
        ],
        [id, "AskUserQuestion"]
    );
    // It does not end by itself: it still answers, and goes once its input is closed.
    assert_eq!(
        host.control(&json!({ "subtype": "mcp_status" }))["subtype"],
        "success"
    );
    assert_eq!(host.close().code(), Some(0));
    id.to_owned()
}

/// The next process asks at once: before `init`, before the model is asked, and without a line of the user.
#[test]
fn a_parked_question_is_asked_again_and_its_answer_is_the_result_of_the_call() {
    let Some(session) = Session::scripted([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let id = parked(&session);
    // Twice, since it may be parked again.
    let mut again = session.start(Start::Resumed);
    again.initialize(None);
    let hook = again.asked("hook_callback");
    again.decide(&hook, "defer", &json!({}));
    assert_eq!(again.result()["stop_reason"], "tool_deferred");
    assert_eq!(again.close().code(), Some(0));

    let mut host = session.start(Start::Resumed);
    host.initialize(None);
    let hook = host.asked("hook_callback");
    let input = &hook["request"]["input"];
    assert_eq!(input["tool_use_id"], *id);
    assert_eq!(input["transcript_path"], session.transcript().to_str().unwrap());
    assert!(!host.summary().iter().any(|line| line == "system init"));
    assert_eq!(session.api.requests().len(), 1);
    host.decide(&hook, "allow", &answered());
    let result = host.result();
    assert_eq!(
        [&result["result"], &result["session_id"]],
        ["Postgres it is.", &session.id]
    );
    let results = session.api.tool_results();
    assert_eq!(results.len(), 1);
    assert_eq!(
        (results[0].tool_use_id.as_str(), results[0].text.as_str()),
        (id.as_str(), READ_BY_THE_MODEL)
    );
    assert!(!results[0].is_error);
    assert!(session.transcript().exists());
}

/// So a host writes its `initialize` before anything else, and knows the question by its call on either road.
#[test]
fn a_parked_question_is_asked_as_a_permission_where_no_hook_is_known_yet() {
    let Some(session) = Session::scripted([question()]) else {
        return;
    };
    let id = parked(&session);
    let mut host = session.start(Start::Resumed);
    let asked = host.asked("can_use_tool");
    assert_eq!(
        [&asked["request"]["tool_name"], &asked["request"]["tool_use_id"]],
        ["AskUserQuestion", &id]
    );
    let input = &answered()["updatedInput"];
    host.reply(&asked, &json!({ "behavior": "allow", "updatedInput": input }));
    host.result();
    assert_eq!(session.api.tool_results()[0].text, READ_BY_THE_MODEL);
}

/// Kills the process while it asks, and goes on with a message; returns what the model read as the result of the call.
fn interrupted(session: &Session, signal: Signal) -> String {
    let (mut host, hook) = asked(session);
    // It is written a little after it is asked: what is killed before that cannot be resumed.
    let call = hook["request"]["tool_use_id"].as_str().unwrap();
    eventually("the call is written", DEADLINE, || {
        std::fs::read_to_string(session.transcript()).is_ok_and(|lines| lines.contains(call))
    });
    host.signal(signal);
    let status = host.ended();
    if signal == Signal::KILL {
        assert_eq!(status.signal(), Some(9));
    } else {
        assert_eq!(status.code(), Some(143));
    }
    session.api.then([Turn::text("Postgres it is.")]);
    let mut host = session.start(Start::Resumed);
    host.initialize(None);
    let said = "You asked which database. The user answered: pg. Continue.";
    host.user(said);
    let result = host.result();
    assert_eq!(
        [&result["result"], &result["session_id"]],
        ["Postgres it is.", &session.id]
    );
    session.api.wait_until("the answer", |api| {
        api.user_texts().iter().any(|text| text == said)
    });
    let asks_again = host.summary().iter().any(|line| line.contains("hook_callback"));
    assert!(!asks_again, "{:#?}", host.summary());
    let results = session.api.tool_results();
    assert_eq!(results.len(), 1);
    assert!(results[0].is_error);
    results[0].text.clone()
}

const OUTCOME_UNKNOWN: &str = "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown.";

#[test]
fn a_killed_process_is_resumed_with_a_message() {
    let Some(session) = Session::scripted([question()]) else {
        return;
    };
    let told = interrupted(&session, Signal::KILL);
    assert!(told.starts_with(OUTCOME_UNKNOWN), "{told}");
}

#[test]
fn a_process_that_was_told_to_end_is_resumed_with_a_message() {
    let Some(session) = Session::scripted([question()]) else {
        return;
    };
    let told = interrupted(&session, Signal::TERM);
    assert!(told.starts_with(OUTCOME_UNKNOWN), "{told}");
}

/// Why a host never closes the input while something is asked: the model goes on without an answer.
#[test]
fn a_closed_input_refuses_what_is_asked_in_the_name_of_the_user() {
    let Some(session) = Session::scripted([question()]) else {
        return;
    };
    let (mut host, _) = asked(&session);
    assert_eq!(host.close().code(), Some(0));
    assert_eq!(session.api.wait_for_requests(2).len(), 2);
    let results = session.api.tool_results();
    let refused = "The user doesn't want to take this action right now.";
    assert!(
        results[0].is_error && results[0].text.starts_with(refused),
        "{results:?}"
    );
}

#[test]
fn an_idle_process_ends_with_its_input_or_a_signal() {
    let Some(session) = Session::scripted([]) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.initialize(None);
    assert_eq!(host.close().code(), Some(0));
    for (start, signal) in [(Start::New, false), (Start::Resumed, true)] {
        let mut host = session.start(start);
        host.user("Hello");
        host.result();
        if signal {
            host.signal(Signal::TERM);
            assert_eq!(host.ended().code(), Some(143));
        } else {
            assert_eq!(host.close().code(), Some(0));
        }
    }
    assert_eq!(
        session
            .api
            .last_messages()
            .iter()
            .filter(|one| one["role"] == "assistant")
            .count(),
        1
    );
}
