//! What a line that is typed is for: the ask that was on the screen when it was begun, and no other.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::scene::PATIENCE;
use super::terminal::scene;
use super::tmux::Terminal;
use super::{CHOSEN, bash, question};
use crate::support::eventually;
use crate::support::messages_api::Turn;

/// Two files that Claude Code asks about at the same time, because it may read them at the same time.
fn two_reads() -> Turn {
    let read = |path: &str| json!({ "file_path": path });
    Turn::tool("Read", read("/etc/hostname")).and_tool("Read", read("/etc/hosts"))
}

fn codes(pending: &[Value]) -> Vec<String> {
    let code = |ask: &Value| ask["code"].as_str().unwrap().to_owned();
    pending.iter().map(code).collect()
}

#[test]
fn of_two_asks_one_is_shown_and_a_line_begun_for_it_never_answers_the_other() {
    let Some(scene) = scene([two_reads(), Turn::text("Read.")]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "'read them'");
    eventually("both are asked about", PATIENCE, || scene.pending().len() == 2);
    terminal.shows(" and 1 more");
    terminal.shows("answer ");
    let pending = codes(&scene.pending());
    let picture = terminal.picture();
    let first = pending
        .iter()
        .find(|code| picture.contains(&format!("answer {code}>")))
        .unwrap();
    let second = pending.iter().find(|code| *code != first).unwrap();
    assert!(!picture.contains(second.as_str()), "{picture}");
    // A letter is typed, and before its Enter the ask that it was typed for is answered elsewhere.
    terminal.letters("c");
    terminal.shows(&format!("answer {first}> c"));
    scene.say(&["approve", first]);
    terminal.shows(&format!("? {second}"));
    terminal.key("Enter");
    terminal.shows(&format!("not sent: `{first}`"));
    assert_eq!(codes(&scene.pending()), [second.as_str()]);
    terminal.shows(&format!("answer {second}>"));
    terminal.line("x not that one");
    terminal.shows("Read.");
    terminal.ends();
    let results = scene.api.tool_results();
    let refused = results.iter().filter(|result| result.is_error).count();
    assert_eq!((results.len(), refused), (2, 1), "{results:#?}");
    let said = scene.api.user_texts();
    assert!(!said.iter().any(|text| text.trim() == "c"), "{said:?}");
}

#[test]
fn a_line_for_an_ask_that_was_answered_a_moment_ago_does_not_go_to_the_agent() {
    let Some(scene) = scene([question(), bash("touch one"), Turn::text("Done.")]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "'ask me'");
    let code = scene.asking();
    terminal.shows(&format!("answer {code}>"));
    terminal.letters("sqlite");
    scene.say(&["answer", &code, "pg"]);
    terminal.shows("touch one");
    terminal.key("Enter");
    terminal.shows(&format!("not sent: `{code}`"));
    let next = scene.code();
    terminal.shows(&format!("answer {next}>"));
    terminal.line("c");
    terminal.shows("Done.");
    terminal.ends();
    assert_eq!(scene.api.tool_results()[0].text, CHOSEN);
    let said = scene.api.user_texts();
    assert!(!said.iter().any(|text| text.contains("sqlite")), "{said:?}");
    assert!(scene.world.path("one").exists());
}

#[test]
fn what_is_said_while_the_agent_is_put_aside_is_kept_until_it_goes_on() {
    let Some(scene) = scene([
        question(),
        Turn::text("Postgres it is."),
        Turn::text("With tabs."),
    ]) else {
        return;
    };
    let terminal = Terminal::start(&scene, "--patience 1s 'ask me'");
    terminal.shows("the agent is put aside; type your answer");
    for line in ["> and use tabs", "> and no spaces"] {
        terminal.line(line);
    }
    terminal.shows("\nanswer ");
    terminal.becomes("both are kept", |picture| {
        picture.matches("kept; the agent").count() == 2
    });
    terminal.line("pg");
    terminal.shows("Postgres it is.");
    scene.api.wait_until("both reach the model", |api| {
        let said = api.user_texts();
        ["and use tabs", "and no spaces"]
            .iter()
            .all(|line| said.iter().any(|text| text.contains(line)))
    });
    terminal.ends();
    let results = scene.api.tool_results();
    assert_eq!((results.len(), results[0].text.as_str()), (1, CHOSEN));
}

#[test]
fn a_picture_is_added_to_a_line_by_its_file() {
    let Some(scene) = scene([question(), Turn::text("I see.")]) else {
        return;
    };
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\xdac\xfc\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82";
    std::fs::write(scene.world.path("my shot.png"), picture).unwrap();
    scene.world.write("text.png", "no picture");
    let terminal = Terminal::start(&scene, "'ask me'");
    let code = scene.asking();
    terminal.shows(&format!("answer {code}>"));
    terminal.line("/image text.png look");
    terminal.shows("is no picture that the agent reads");
    terminal.line("/image 'my shot.png' like this");
    terminal.shows("< like this (+1 image");
    terminal.shows("  queued: like this");
    terminal.line("pg");
    terminal.shows("I see.");
    terminal.ends();
    let requests = scene.api.requests();
    let sent = requests.last().unwrap().body().to_string();
    assert!(
        sent.contains("like this") && sent.contains("iVBORw0KGgo"),
        "{sent}"
    );
    assert!(!sent.contains("no picture"));
}
