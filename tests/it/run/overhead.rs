//! What pml adds to the stream of an agent, against reading Claude Code's output directly; prints a figure.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::scene::Scene;
use crate::support::claude::{claude_environment, claude_program};
use crate::support::messages_api::Turn;

/// How often each way is measured, in turns.
const ROUNDS: usize = 7;

/// A long answer in small pieces: some minutes of a model, as fast as it can be read.
const PIECES: usize = 4_000;

fn answer() -> Turn {
    Turn::streamed(&"eight ch".repeat(PIECES), 8)
}

/// Measures from the first piece of the answer until the turn is over, where the lines are read.
fn streamed(command: &mut Command) -> Duration {
    let mut agent = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    let (mut begin, mut took) = (None, None);
    for line in lines.map_while(Result::ok) {
        if begin.is_none() && line.contains("text_delta") {
            begin = Some(Instant::now());
        }
        if line.contains(r#""type":"result""#) {
            took = begin.map(|begin| begin.elapsed());
        }
    }
    assert!(agent.wait().unwrap().success());
    took.unwrap()
}

#[test]
#[ignore = "a measurement; run it alone on a quiet machine"]
fn the_stream_of_an_agent_is_not_slowed() {
    let Some(scene) = Scene::scripted((0..=2 * ROUNDS).map(|_| answer())) else {
        return;
    };
    let direct = || {
        let mut command = scene.world.program(&claude_program().unwrap());
        command
            .envs(claude_environment(scene.world.home(), &scene.api.url()))
            .args([
                "-p",
                "fix it",
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
            ]);
        streamed(&mut command)
    };
    let through = || streamed(&mut scene.world.command(&["run", "--json", "fix it"]));
    let (mut of_claude, mut of_pml) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_claude.push(direct());
        of_pml.push(through());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let (of_claude, of_pml) = (median(&mut of_claude), median(&mut of_pml));
    let ratio = of_pml.as_secs_f64() / of_claude.as_secs_f64();
    println!(
        "{PIECES} pieces, median of {ROUNDS}: direct {of_claude:?}, through pml {of_pml:?}, ratio {ratio:.3}"
    );
    assert!(ratio < 1.05, "{ratio:.3}");
}
