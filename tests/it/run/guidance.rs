//! What a person says to a run while its agent works, from another process.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use pml::host::{Image, Message, Priority, RunInput, RunState};
use pretty_assertions::assert_eq;
use rustix::fs::OFlags;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{PATIENCE, Running, Scene, nothing_is_left_of};
use super::{bash, question};
use crate::support::eventually;
use crate::support::messages_api::{Gate, Turn};

/// The smallest picture.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A run whose agent is in the middle of a command, which goes on once something is written to the pipe.
fn working(script: impl IntoIterator<Item = Turn>) -> Option<(Scene, Running, File)> {
    let scene = Scene::scripted([bash("cat pipe")])?.permissions(&json!({ "allow": ["client:Bash"] }));
    scene.api.then(script);
    make_pipe(&scene);
    let run = scene.start(&["begin"]);
    let pipe = open_pipe(&scene);
    Some((scene, run, pipe))
}

/// Makes the pipe that a command of the agent reads.
pub(super) fn make_pipe(scene: &Scene) {
    let made = scene.world.program(Path::new("mkfifo")).arg("pipe").status();
    assert!(made.unwrap().success());
}

/// Waits until the command reads the pipe, and opens its other end.
pub(super) fn open_pipe(scene: &Scene) -> File {
    let mut options = std::fs::OpenOptions::new();
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    options.write(true).custom_flags(flags);
    let mut opened = None;
    // Nobody can write before the command reads.
    eventually("the command runs", PATIENCE, || {
        opened = options.open(scene.world.path("pipe")).ok();
        opened.is_some()
    });
    opened.unwrap()
}

/// Says something to the only run, from here.
fn put(scene: &Scene, input: &RunInput) {
    scene.runs().put_input(&scene.record().id, input).unwrap();
}

fn message(text: &str) -> Message {
    Message {
        uuid: uuid::Uuid::new_v4().to_string(),
        text: text.to_owned(),
        images: Vec::new(),
        priority: Priority::Next,
    }
}

fn ended_as(scene: &Scene) -> String {
    scene.record().state.word().to_owned()
}

#[test]
fn guidance_with_an_image_reaches_the_model_with_the_result_of_the_running_tool() {
    let Some((scene, run, mut pipe)) = working([Turn::text("With tabs.")]) else {
        return;
    };
    let picture = Image {
        media_type: "image/png".to_owned(),
        data: PICTURE.to_owned(),
    };
    let guidance = Message {
        images: vec![picture],
        ..message("use tabs, as here")
    };
    put(&scene, &RunInput::Message(guidance.clone()));
    eventually("the agent has it", PATIENCE, || {
        let events = scene.events();
        events
            .iter()
            .any(|event| event["command_uuid"] == *guidance.uuid && event["state"] == "queued")
    });
    pipe.write_all(b"one\n").unwrap();
    drop(pipe);
    let ended = run.ended().with(0);
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(shown.contains("< use tabs, as here (+1 images)"), "{shown}");
    let requests = scene.api.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].tool_results()[0].text, "one");
    let said = requests[1].user_texts();
    assert!(
        said.iter().any(|text| text.contains("use tabs, as here")),
        "{said:?}"
    );
    assert!(requests[1].body().to_string().contains(PICTURE));
    let told = scene.events();
    let told = told
        .iter()
        .find(|event| event["event"] == "message" && event["images"] == 1);
    assert_eq!(told.unwrap()["uuid"], *guidance.uuid);
}

#[test]
fn what_is_no_image_is_not_sent_and_the_run_goes_on() {
    let Some((scene, run, mut pipe)) = working([Turn::text("Fine.")]) else {
        return;
    };
    let text = Image {
        media_type: "text/html".to_owned(),
        data: PICTURE.to_owned(),
    };
    put(
        &scene,
        &RunInput::Message(Message {
            images: vec![text],
            ..message("look at this")
        }),
    );
    eventually("it is told", PATIENCE, || {
        let events = scene.events();
        events
            .iter()
            .any(|event| event["event"] == "note" && event["text"].to_string().contains("no kind of image"))
    });
    pipe.write_all(b"one\n").unwrap();
    drop(pipe);
    run.ended().with(0);
    let said = scene.api.user_texts();
    assert!(!said.iter().any(|text| text.contains("look at this")), "{said:?}");
}

#[test]
fn an_interrupt_ends_the_turn_and_a_run_that_was_interrupted_can_be_told_more() {
    let Some((scene, run, _pipe)) = working([Turn::text("Something else.")]) else {
        return;
    };
    put(&scene, &RunInput::Interrupt);
    run.ended().with(1);
    assert_eq!(scene.api.requests().len(), 1);
    let id = scene.record().id;
    nothing_is_left_of(&id);
    let more = scene.run(&["--resume", id.as_str(), "do something else"]).with(0);
    assert!(more.stdout.contains("Something else."), "{}", more.stdout);
    assert_eq!(ended_as(&scene), "done");
}

#[test]
fn an_interrupt_withdraws_what_is_asked() {
    let Some(scene) = Scene::scripted([question()]) else {
        return;
    };
    let run = scene.start(&["ask me"]);
    scene.asking();
    put(&scene, &RunInput::Interrupt);
    run.ended().with(1);
    assert_eq!(scene.pending(), Vec::<Value>::new());
    assert!(scene.record().asks.is_empty());
    assert_eq!(scene.api.requests().len(), 1);
}

#[test]
fn a_run_that_is_stopped_is_over_and_asks_nothing_any_more() {
    // By what another process says, and by Ctrl-C where nobody can type.
    for by_signal in [false, true] {
        let Some(scene) = Scene::scripted([question()]) else {
            return;
        };
        let run = scene.start(&["ask me"]);
        scene.asking();
        if by_signal {
            run.signal(Signal::INT);
        } else {
            put(&scene, &RunInput::Stop);
        }
        run.ended().with(1);
        assert_eq!(ended_as(&scene), "stopped");
        assert_eq!(scene.pending(), Vec::<Value>::new());
        nothing_is_left_of(&scene.record().id);
        assert_eq!(scene.api.requests().len(), 1);
    }
}

#[test]
fn a_watcher_sees_what_a_run_says_and_ends_with_it() {
    let gate = Gate::new();
    let script = [
        question(),
        Turn::text("Postgres").and_wait(&gate).and_text(" it is."),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let run = scene.start(&["ask me"]);
    let code = scene.asking();
    let id = scene.id();
    let (watcher, lines) = (
        scene.start(&["--attach", &id]),
        scene.start(&["--attach", &id, "--json"]),
    );
    scene.say(&["answer", &code, "pg"]);
    gate.wait_until_reached();
    gate.release();
    run.ended().with(0);
    let seen = watcher.ended().with(0);
    let shown = format!("{}{}", seen.stdout, seen.stderr);
    for word in ["Which database?", "Postgres it is."] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let lines = lines.ended().with(0).lines();
    assert!(lines.iter().any(|line| line["type"] == "result"), "{lines:#?}");
    assert!(
        lines
            .iter()
            .any(|line| line["event"] == "ask" && line["code"] == *code)
    );
}

#[test]
fn a_watcher_ends_as_a_run_that_is_parked_does() {
    let Some(scene) = Scene::scripted([question()]) else {
        return;
    };
    let run = scene.start(&["ask me"]);
    scene.asking();
    let watcher = scene.start(&["--attach", &scene.id()]);
    run.signal(Signal::TERM);
    run.ended().with(75);
    watcher.ended().with(75);
    assert!(matches!(scene.record().state, RunState::Parked { .. }));
}
