//! A conversation in which a call asks, is approved for ever and runs, with each write failing once.

use rustix::io::Errno;
use serde_json::{Value, json};

use super::{FAULTS, leftovers, rules_say, store, sweep};
use crate::support::faults::inject_nth;
use crate::support::have;
use crate::support::world::{Client, World, approvals, asks, texts};

use pml::workflow::State;

/// What a conversation came to.
struct Heard {
    /// What the call was answered with.
    asked: Option<Value>,
    /// What the approval was answered with.
    ran: Option<Value>,
}

fn call(client: &mut Client, arguments: &Value) -> Option<Value> {
    let params = json!({ "name": "fake__echo", "arguments": arguments });
    let answer = client.request_if_alive("tools/call", &params)?;
    Some(answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone())
}

fn approve(client: &mut Client, asked: &Value) -> Option<Value> {
    let workflow = &asked["approval_context"]["workflow_id"];
    let continuation = json!({ "workflow_id": workflow, "approved": true, "always": true });
    call(client, &json!({ "continue_workflow": continuation }))
}

fn is_error(result: &Value) -> bool {
    result["isError"] == true
}

fn open(client: &mut Client) -> Option<()> {
    let about = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
    client.request_if_alive("initialize", &params)?;
    Some(())
}

fn converse(client: &mut Client) -> Heard {
    let asked = open(client).and_then(|()| call(client, &json!({})));
    let ran = match &asked {
        Some(asked) if asks(asked) => approve(client, asked),
        _ => None,
    };
    Heard { asked, ran }
}

/// The state of the one ask that was made, if it was.
fn state(world: &World) -> Option<State> {
    let found = store(world).recent(2).unwrap();
    assert!(found.len() <= 1, "{found:?}");
    found.into_iter().next().map(|workflow| workflow.state)
}

/// Checks that what the client was told is what stands there.
fn check(world: &World, client: &mut Client, heard: &Heard, told: &str) {
    let asked = heard
        .asked
        .as_ref()
        .unwrap_or_else(|| panic!("no answer: {told}"));
    if !asks(asked) {
        assert!(is_error(asked), "{asked}: {told}");
        assert_eq!(state(world), None, "asked after all: {told}");
        let again = call(client, &json!({})).unwrap();
        assert!(asks(&again), "the next call: {again}: {told}");
        return;
    }
    let ran = heard.ran.as_ref().unwrap_or_else(|| panic!("no answer: {told}"));
    let said = texts(ran).join("\n");
    if said.contains("it was not started for the first time")
        || said.contains("cannot keep what you accepted")
    {
        // The answer counts; what could not be recorded is the start, or what was started.
        let again = call(client, &json!({})).unwrap();
        assert!(
            !is_error(&again) && !asks(&again),
            "the next call: {again}: {told}"
        );
    } else if is_error(ran) {
        assert_eq!(state(world), Some(State::Pending), "spent, but {said}: {told}");
        assert_eq!(approvals(world), Vec::<Value>::new(), "{said}: {told}");
        assert!(!rules_say(world, "fake:echo"), "{said}: {told}");
        let again = approve(client, asked).unwrap();
        assert!(!is_error(&again), "the same answer again: {again}: {told}");
    } else {
        let is_rule = said.contains("is in the allow list");
        assert_eq!(is_rule, rules_say(world, "fake:echo"), "{said}: {told}");
    }
    assert!(matches!(state(world), Some(State::Taken { .. })), "{told}");
    assert_eq!(approvals(world).len(), 1, "{told}");
}

fn meet(nth: u32, errno: Option<Errno>) -> bool {
    let world = World::with_fake(&json!({}), &[]);
    let old = world.read(".pml.json");
    let mut command = world.command(&["stdio"]);
    let met = inject_nth(&mut command, world.home(), nth, errno);
    let mut client = Client::start(command);
    let heard = converse(&mut client);
    let noted = met.call();
    let told = format!(
        "{errno:?} at call {nth} ({})",
        noted.as_deref().unwrap_or("none").trim_end()
    );
    if errno.is_some() || noted.is_none() {
        check(&world, &mut client, &heard, &told);
        let ended = client.close();
        let killed = errno.is_none() && met.call().is_some();
        assert_eq!(ended.success(), !killed, "{told}");
        // The call may also be met, and end pml, while it closes.
        if !killed {
            assert_eq!(leftovers(&world), Vec::<String>::new(), "{told}");
        }
    } else {
        drop(client);
        let rules = world.read(".pml.json");
        assert!(rules == old || rules.contains("fake:echo"), "{rules}: {told}");
    }

    let mut next = world.legacy();
    let result = next.call("fake__echo", &json!({ "text": "next" }));
    assert!(
        asks(&result) || !is_error(&result),
        "the next conversation: {result}: {told}"
    );
    assert!(next.close().success(), "{told}");
    met.call().is_some()
}

#[test]
fn a_conversation_reports_what_is_true_whichever_write_fails() {
    if !have(&["cc"]) {
        return;
    }
    let sweeps = FAULTS.map(|errno| ("conversation", move |nth| meet(nth, errno)));
    sweep(sweeps);
}
