//! The screen of a run: its last rows, changes of files, other sizes, and other processes that watch.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::scene::{PATIENCE, nothing_is_left_of};
use super::terminal::scene;
use super::tmux::Terminal;
use super::{CHOSEN, question};
use crate::support::eventually;
use crate::support::messages_api::Turn;

#[test]
fn the_last_rows_tell_what_is_waited_for_in_wide_and_in_narrow_terminals() {
    let Some(scene) = scene([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let terminal = Terminal::sized(&scene, "'ask me'", 80, 24);
    let code = scene.asking();
    let waiting = format!("waiting for you: {code} · turn 1");
    terminal.shows(&format!("answer {code}>"));
    terminal.shows(&waiting);
    assert!(terminal.picture().contains("claude-"), "{}", terminal.picture());
    terminal.letters("sqli");
    for columns in [40, 80, 40] {
        terminal.resize(columns);
        terminal.becomes("the rows stand once", |picture| {
            let rows: Vec<_> = picture.trim_end().lines().collect();
            let [.., status, prompt] = rows.as_slice() else {
                return false;
            };
            status.starts_with(&waiting[..27])
                && *prompt == format!("answer {code}> sqli")
                && picture.matches("waiting for you").count() == 1
        });
    }
    for _ in 0..4 {
        terminal.key("BSpace");
    }
    terminal.line("pg");
    terminal.shows("Postgres it is.");
    terminal.shows("your turn; Ctrl-D ends the run");
    terminal.ends();
    assert!(
        !terminal.picture().contains("your turn"),
        "{}",
        terminal.picture()
    );
    assert_eq!(scene.api.tool_results()[0].text, CHOSEN);
}

#[test]
fn a_change_of_a_file_is_shown_folded() {
    let lines: Vec<String> = (1..=9).map(|line| format!("line {line}")).collect();
    let text = lines.join("\n");
    let write = |scene: &super::scene::Scene| {
        let path = scene.world.path("new.txt");
        Turn::tool("Write", json!({ "file_path": path, "content": text }))
    };
    let Some(scene) = scene([]) else { return };
    let scene = scene.permissions(&json!({ "allow": ["client:Write"] }));
    scene.api.then([write(&scene), Turn::text("Written.")]);
    let terminal = Terminal::start(&scene, "'write it'");
    terminal.shows("+ line 6");
    terminal.shows("… 3 more lines");
    terminal.shows("Written.");
    terminal.ends();
    let picture = terminal.picture();
    assert!(!picture.contains("+ line 7"), "{picture}");
    assert_eq!(
        std::fs::read_to_string(scene.world.path("new.txt")).unwrap(),
        text
    );
}

#[test]
fn a_watcher_in_a_terminal_answers_and_leaves_by_the_end_of_its_input() {
    let Some(scene) = scene([question(), question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let run = scene.start(&["ask me"]);
    let code = scene.asking();
    let terminal = Terminal::start(&scene, &format!("--attach {}", scene.id()));
    terminal.shows(&format!("answer {code}>"));
    terminal.line("pg");
    eventually("it asks again", PATIENCE, || {
        let pending = scene.pending();
        pending.len() == 1 && pending[0]["code"] != *code
    });
    terminal.shows(&format!("answer {}>", scene.code()));
    terminal.key("C-d");
    terminal.shows("the run goes on");
    terminal.shows("left with 0");
    assert!(scene.is("asking"));
    scene.say(&["answer", &scene.code(), "pg"]);
    run.ended().with(0);
    nothing_is_left_of(&scene.record().id);
}
