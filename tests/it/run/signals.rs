//! Signals, and readers that stop or go away: a run that is left can be gone on with, and its process ends.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use pretty_assertions::assert_eq;
use rustix::process::{Pid, Signal, kill_process};

use super::scene::{PATIENCE, Scene, nothing_is_left_of};
use super::terminal::scene;
use super::tmux::Terminal;
use super::{CHOSEN, question};
use crate::support::eventually;
use crate::support::messages_api::{Gate, Turn};

/// The process of pml that drives the only run.
fn driver(scene: &Scene) -> Pid {
    let process = scene.record().process.unwrap();
    Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap()
}

#[test]
fn a_terminal_that_is_closed_and_a_process_that_is_told_to_end_park_the_run() {
    for signal in [Signal::HUP, Signal::TERM] {
        let Some(scene) = scene([question(), Turn::text("Postgres it is.")]) else {
            return;
        };
        let terminal = Terminal::start(&scene, "'ask me'");
        let code = scene.asking();
        kill_process(driver(&scene), signal).unwrap();
        terminal.shows("left with 75");
        assert_eq!(scene.told_state()["name"], "parked", "{signal:?}");
        nothing_is_left_of(&scene.record().id);
        scene.say(&["answer", &code, "pg"]);
        scene.run(&["--resume", &scene.id()]).with(0);
        assert_eq!(scene.api.tool_results()[0].text, CHOSEN);
    }
}

#[test]
fn a_run_whose_host_is_told_to_end_while_the_agent_works_is_gone_on_with() {
    let gate = Gate::new();
    let Some(scene) = Scene::scripted([Turn::text("I begin").and_wait(&gate), Turn::text("All done.")])
    else {
        return;
    };
    let run = scene.start(&["fix it"]);
    gate.wait_until_reached();
    eventually("it works", PATIENCE, || scene.is("running"));
    run.signal(Signal::TERM);
    let left = run.ended().with(75);
    gate.release();
    assert!(left.stderr.contains("pml run --resume"), "{}", left.stderr);
    assert_eq!(scene.told_state()["name"], "lost");
    nothing_is_left_of(&scene.record().id);
    // Watching it shows what it did, and how it goes on.
    let watched = scene.run(&["--attach", &scene.id()]).with(75);
    assert!(
        watched.stderr.contains("was left while its agent worked"),
        "{}",
        watched.stderr
    );
    let resumed = scene.run(&["--resume", &scene.id()]).with(0);
    assert!(resumed.stdout.contains("All done."), "{}", resumed.stdout);
    let said = scene.api.user_texts();
    assert!(
        said.iter()
            .any(|text| text.contains("Continue where you left off")),
        "{said:?}"
    );
}

#[test]
fn a_reader_that_goes_away_leaves_the_run_so_that_it_can_be_gone_on_with() {
    let gate = Gate::new();
    let script = [
        Turn::streamed(&"many words ".repeat(200), 20).and_wait(&gate),
        Turn::text("All done."),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let mut command = scene.world.command(&["run", "--json", "fix it"]);
    let mut run = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with('{'), "{line}");
    // As `head -1` does.
    drop(stdout);
    let mut code = None;
    eventually("pml ends", PATIENCE, || {
        code = run.try_wait().unwrap().map(|status| status.code());
        code.is_some()
    });
    gate.release();
    assert_eq!(code, Some(Some(75)));
    assert_eq!(scene.told_state()["name"], "lost");
    nothing_is_left_of(&scene.record().id);
}

#[test]
fn a_reader_that_stops_keeps_no_run_from_asking_and_no_process_from_ending() {
    for format in ["--json", "--once"] {
        // More than a pipe holds.
        let Some(scene) = Scene::scripted([
            Turn::streamed(&"many words ".repeat(20_000), 2_000),
            Turn::text("All done."),
        ]) else {
            return;
        };
        scene.api.then([]);
        let mut command = scene.world.command(&["run", format, "fix it"]);
        let mut run = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the agent is done although nobody reads", PATIENCE, || {
            scene.is("done")
        });
        assert!(
            run.try_wait().unwrap().is_none(),
            "{format}: what was said has to be read first"
        );
        let pid = Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        eventually("pml ends", PATIENCE, || run.try_wait().unwrap().is_some());
        assert_eq!(run.wait().unwrap().code(), Some(0), "{format}");
    }
}

#[test]
fn whoever_reads_late_misses_nothing() {
    let text = "many words ".repeat(20_000);
    let Some(scene) = Scene::scripted([Turn::streamed(&text, 2_000)]) else {
        return;
    };
    let mut command = scene.world.command(&["run", "fix it"]);
    let mut run = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the agent is done", PATIENCE, || scene.is("done"));
    let mut read = String::new();
    run.stdout.take().unwrap().read_to_string(&mut read).unwrap();
    assert_eq!(read, format!("{text}\n"));
    assert_eq!(run.wait().unwrap().code(), Some(0));
}

#[test]
fn a_watcher_that_is_told_to_end_leaves_the_run_alone() {
    let Some(scene) = Scene::scripted([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let run = scene.start(&["ask me"]);
    let code = scene.asking();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut command = scene.world.command(&["run", "--attach", &scene.id()]);
        let mut watcher = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It listens once it shows what is asked.
        let mut told = BufReader::new(watcher.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("Which database?") {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "{signal:?}");
        }
        let pid = Pid::from_raw(i32::try_from(watcher.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        eventually("the watcher ends", PATIENCE, || {
            watcher.try_wait().unwrap().is_some()
        });
        assert_eq!(watcher.wait().unwrap().code(), Some(0), "{signal:?}");
        assert!(scene.is("asking"), "{signal:?}");
    }
    scene.say(&["answer", &code, "pg"]);
    run.ended().with(0);
}

#[test]
fn a_run_without_anything_to_do_is_a_wrong_use() {
    let Some(scene) = Scene::scripted([]) else { return };
    for arguments in [[].as_slice(), &["-"], &[" "]] {
        let ended = scene.run(arguments).with(2);
        assert!(
            ended.stderr.contains("nothing for the agent to do"),
            "{}",
            ended.stderr
        );
    }
    assert!(scene.records().is_empty());
}
