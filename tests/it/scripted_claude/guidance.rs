//! What a user says in the middle of a turn.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use pretty_assertions::assert_eq;
use rustix::fs::OFlags;
use serde_json::json;

use super::bash;
use super::host::{Session, Start};
use crate::support::messages_api::Turn;
use crate::support::world::World;
use crate::support::{DEADLINE, eventually};

/// A command that waits in the project until the test writes to its pipe.
const WAITS: &str = "cat pipe";

fn pipe(world: &World) {
    let made = world.program(Path::new("mkfifo")).arg("pipe").status();
    assert!(made.unwrap().success());
}

/// Waits until the command runs, and returns the end that lets it go on.
fn running(world: &World) -> File {
    let mut options = std::fs::OpenOptions::new();
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    options.write(true).custom_flags(flags);
    let mut opened = None;
    // Nobody can write before somebody reads.
    eventually("the command runs", DEADLINE, || {
        opened = options.open(world.path("pipe")).ok();
        opened.is_some()
    });
    opened.unwrap()
}

#[test]
fn guidance_reaches_the_model_with_the_result_of_the_running_tool() {
    let script = [
        Turn::tool("Bash", bash(WAITS)),
        Turn::tool("Bash", bash("echo next")),
        Turn::text("done"),
    ];
    let Some(session) = Session::scripted(script) else {
        return;
    };
    pipe(&session.world);
    let mut host = session.start_with(Start::New, &["--allowedTools", "Bash"]);
    let first = host.user("Begin");
    let mut pipe = running(&session.world);
    let guidance = host.user("Use tabs");
    host.lifecycle(&guidance, "queued");
    assert_eq!(host.states(&guidance), ["queued"]);
    pipe.write_all(b"one\n").unwrap();
    drop(pipe);
    assert_eq!(host.result()["result"], "done");
    host.lifecycle(&guidance, "completed");
    host.lifecycle(&first, "completed");
    for id in [&first, &guidance] {
        assert_eq!(host.states(id), ["queued", "started", "completed"]);
    }
    let requests = session.api.requests();
    assert_eq!(requests.len(), 3);
    let guided = |place: usize| {
        requests[place]
            .user_texts()
            .iter()
            .any(|text| text.contains("Use tabs"))
    };
    assert_eq!([guided(0), guided(1)], [false, true]);
    assert_eq!(requests[1].last_result(), "one");
}

#[test]
fn an_interrupt_withdraws_what_is_asked_and_what_is_queued() {
    let script = [Turn::tool("Bash", bash("touch made")), Turn::text("still here")];
    let Some(session) = Session::scripted(script) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.user("Begin");
    let asked = host.asked("can_use_tool");
    let queued = host.user("And then this");
    host.lifecycle(&queued, "queued");
    let receipt = host.control(&json!({ "subtype": "interrupt", "cancel_queued": true }));
    assert_eq!(receipt["response"]["still_queued"], json!([]));
    assert_eq!(receipt["response"]["cancelled"], json!([queued]));
    let result = host.result();
    assert_eq!(
        [&result["subtype"], &result["terminal_reason"]],
        ["error_during_execution", "aborted_tools"]
    );
    host.until("the ask is withdrawn", |line| {
        line["type"] == "control_cancel_request" && line["request_id"] == asked["request_id"]
    });
    assert_eq!(host.states(&queued), ["queued", "cancelled"]);
    // Too late, and without effect.
    host.reply(
        &asked,
        &json!({ "behavior": "allow", "updatedInput": bash("touch made") }),
    );
    host.user("Are you there?");
    assert_eq!(host.result()["result"], "still here");
    assert!(!session.world.path("made").exists());
    let said = session.api.user_texts();
    assert!(
        !said.iter().any(|text| text.contains("And then this")),
        "{said:?}"
    );
}
