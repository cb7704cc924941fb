//! A run in a terminal: what its person sees and types.

use std::io::Write as _;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::guidance::{make_pipe, open_pipe};
use super::scene::{PATIENCE, Scene, nothing_is_left_of};
use super::tmux::Terminal;
use super::{CHOSEN, bash, question};
use crate::support::messages_api::{Gate, Turn};
use crate::support::{eventually, have};

pub(super) fn scene(script: impl IntoIterator<Item = Turn>) -> Option<Scene> {
    have(&["tmux"]).then(|| Scene::scripted(script)).flatten()
}

#[test]
fn a_number_that_is_typed_answers_and_the_end_of_the_input_ends_the_run() {
    let Some(scene) = scene([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "'ask me'");
    terminal.shows("type a number, a label or your own words");
    terminal.shows("\nanswer ");
    terminal.shows("Which database?");
    terminal.line("1");
    terminal.shows("Postgres it is.");
    terminal.ends();
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(results[0].text, CHOSEN);
    nothing_is_left_of(&scene.record().id);
}

#[test]
fn a_call_is_approved_and_refused_by_the_letters_of_the_inbox() {
    let script = [bash("touch one"), bash("touch two"), Turn::text("One of them.")];
    let Some(scene) = scene(script) else {
        return;
    };
    let terminal = Terminal::start(&scene, "'make them'");
    let first = scene.asking();
    terminal.shows("  c  ");
    terminal.shows(&format!("answer {first}>"));
    // What is none of the letters decides nothing.
    terminal.line("yes please");
    terminal.shows("type one of the letters");
    assert_eq!(scene.code(), first);
    terminal.line("c");
    eventually("the second is asked about", PATIENCE, || {
        let pending = scene.pending();
        pending.len() == 1 && pending[0]["code"] != *first
    });
    terminal.shows("touch two");
    eventually("it is put to the person", PATIENCE, || {
        terminal.picture().matches("  c  ").count() == 2
    });
    terminal.shows(&format!("answer {}>", scene.code()));
    terminal.line("x not the second");
    terminal.shows("One of them.");
    terminal.ends();
    let results = scene.api.tool_results();
    let made = [scene.world.path("one").exists(), scene.world.path("two").exists()];
    assert_eq!((made, results.len()), ([true, false], 2));
    assert!(
        results[1].text.contains("The person refused: not the second"),
        "{results:#?}"
    );
}

#[test]
fn an_interrupt_ends_what_the_agent_does_and_a_line_begins_the_next_turn() {
    let gate = Gate::new();
    let script = [
        Turn::text("I begin").and_wait(&gate),
        Turn::text("Something else."),
    ];
    let Some(scene) = scene(script) else {
        return;
    };
    let terminal = Terminal::start(&scene, "begin");
    gate.wait_until_reached();
    terminal.shows("I begin");
    terminal.key("C-c");
    terminal.shows("interrupted; once more ends the run");
    eventually("the turn is over", PATIENCE, || scene.is("idle"));
    gate.release();
    terminal.line("do something else");
    terminal.shows("Something else.");
    terminal.ends();
    let said = scene.api.user_texts();
    assert!(said.iter().any(|text| text == "do something else"), "{said:?}");
}

#[test]
fn a_second_interrupt_ends_the_run() {
    let Some(scene) = scene([question()]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "'ask me'");
    scene.asking();
    // Twice at once: on a busy machine looking at the screen between them takes longer than the window.
    terminal.run(&["send-keys", "C-c"]);
    terminal.run(&["send-keys", "C-c"]);
    terminal.shows("left with 1");
    assert_eq!(
        scene.told_state(),
        json!({ "name": "ended", "outcome": "stopped" })
    );
    assert_eq!(scene.pending(), Vec::<Value>::new());
}

#[test]
fn a_line_can_be_said_to_the_agent_while_it_asks() {
    let Some(scene) = scene([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "'ask me'");
    terminal.shows("type a number, a label or your own words");
    terminal.shows("\nanswer ");
    terminal.line("> and use tabs");
    terminal.shows("< and use tabs");
    terminal.shows("  queued: and use tabs");
    assert_eq!(scene.pending().len(), 1);
    terminal.line("pg");
    terminal.shows("  started: and use tabs");
    terminal.shows("Postgres it is.");
    terminal.ends();
    let said = scene.api.user_texts();
    assert!(said.iter().any(|text| text.contains("and use tabs")), "{said:?}");
    assert_eq!(scene.api.tool_results()[0].text, CHOSEN);
}

#[test]
fn a_run_that_was_parked_in_a_terminal_goes_on_with_what_is_typed_there() {
    let Some(scene) = scene([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "--patience 1s 'ask me'");
    terminal.shows("the agent is put aside; type your answer");
    terminal.shows("\nanswer ");
    assert_eq!(scene.told_state()["name"], "parked");
    nothing_is_left_of(&scene.record().id);
    terminal.line("1");
    terminal.shows("Postgres it is.");
    terminal.ends();
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(results[0].text, CHOSEN);
}

#[test]
fn the_end_of_the_input_in_the_middle_of_a_turn_leaves_its_questions_to_be_answered() {
    let Some(scene) = scene([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "'ask me'");
    terminal.shows("\nanswer ");
    terminal.key("C-d");
    terminal.line("1");
    terminal.shows("Postgres it is.");
    terminal.shows("left with 0");
    assert_eq!(scene.api.tool_results()[0].text, CHOSEN);
}

#[test]
fn what_is_said_for_later_is_read_after_the_turn_and_the_rest_with_the_running_tool() {
    let script = [
        bash("cat pipe"),
        Turn::text("The turn is over."),
        Turn::text("And tested."),
    ];
    let Some(scene) = scene(script) else {
        return;
    };
    let scene = scene.permissions(&json!({ "allow": ["client:Bash"] }));
    make_pipe(&scene);
    let terminal = Terminal::start(&scene, "'begin'");
    let mut pipe = open_pipe(&scene);
    terminal.line("/later and test it");
    terminal.shows("  queued: and test it");
    terminal.line("use tabs");
    terminal.shows("  queued: use tabs");
    pipe.write_all(b"one\n").unwrap();
    drop(pipe);
    terminal.shows("And tested.");
    terminal.ends();
    let requests = scene.api.requests();
    assert_eq!(requests.len(), 3);
    let says = |request: usize, text: &str| {
        let texts = requests[request].user_texts();
        texts.iter().any(|said| said.contains(text))
    };
    assert!(says(1, "use tabs") && !says(1, "and test it"));
    assert!(says(2, "and test it"));
}

#[test]
fn what_is_said_now_drops_what_the_turn_still_meant_to_do() {
    let script = [
        bash("cat pipe").and_tool(
            "Bash",
            json!({ "command": "touch two", "description": "a command" }),
        ),
        Turn::text("Stopped."),
    ];
    let Some(scene) = scene(script) else {
        return;
    };
    let scene = scene.permissions(&json!({ "allow": ["client:Bash"] }));
    make_pipe(&scene);
    let terminal = Terminal::start(&scene, "'begin'");
    let mut pipe = open_pipe(&scene);
    terminal.line("/now stop that");
    terminal.shows("< stop that");
    eventually("the agent has it", PATIENCE, || {
        scene
            .events()
            .iter()
            .any(|event| event["command_uuid"].is_string() && event["state"] == "queued")
    });
    pipe.write_all(b"one\n").unwrap();
    drop(pipe);
    terminal.shows("Stopped.");
    terminal.ends();
    let said = scene.api.user_texts();
    assert!(said.iter().any(|text| text.contains("stop that")), "{said:?}");
    assert!(
        !scene.world.path("two").exists(),
        "{:#?}",
        scene.api.tool_results()
    );
}
