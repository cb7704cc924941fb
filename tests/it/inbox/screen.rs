//! The screen of the inbox in a real terminal, its plain form and its JSON lines.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::questions::{choice, free, put};
use super::{asking, echoed, log, proceed};
use crate::support::terminal::typed;
use crate::support::world::{World, json_of, stderr};
use crate::support::{DEADLINE, eventually, have, pml};
use pml::protocol::question::Selection;

/// A terminal in tmux in which a shell runs `pml inbox`, and tells afterwards how it ended.
pub(crate) struct Tmux<'a> {
    world: &'a World,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    pub(crate) fn start(world: &'a World) -> Self {
        let tmux = Self {
            world,
            socket: world.home().join("tmux"),
        };
        let line = format!(
            "stty -a > before; {} inbox; echo \"left with $?\"; stty -a > after; exec cat",
            pml().display()
        );
        let started = tmux
            .command(&[
                "-f",
                "/dev/null",
                "-u",
                "new-session",
                "-d",
                "-x",
                "80",
                "-y",
                "24",
                &line,
            ])
            .status();
        assert!(started.unwrap().success());
        tmux.shows("pml", "PgUp/PgDn scroll|Nothing waits for you");
        tmux
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.program(Path::new("tmux"));
        command
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .args(["-S".as_ref(), self.socket.as_os_str()])
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn picture(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    pub(crate) fn key(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    /// Waits until one of the texts, separated by `|`, stands on the screen.
    pub(crate) fn shows(&self, what: &str, texts: &str) {
        let mut last = String::new();
        let begin = Instant::now();
        while !texts.split('|').any(|text| last.contains(text)) {
            assert!(
                begin.elapsed() < DEADLINE,
                "{what}: {texts:?} is not on the screen:\n{last}"
            );
            std::thread::sleep(Duration::from_millis(10));
            last = self.picture();
        }
    }

    /// Presses a key until a text stands on the screen: a key in the grace does not count.
    pub(crate) fn key_until(&self, key: &str, text: &str) {
        let begin = Instant::now();
        while !self.picture().contains(text) {
            assert!(
                begin.elapsed() < DEADLINE,
                "{key} does not lead to {text:?}:\n{}",
                self.picture()
            );
            self.key(key);
            let pressed = Instant::now();
            while pressed.elapsed() < Duration::from_millis(600) && !self.picture().contains(text) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// The process of `pml inbox`.
    fn pml(&self) -> Pid {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]);
        let shell = shell.trim();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }

    /// Waits until the screen is left, and checks that the terminal is as it was.
    fn is_left(&self) {
        self.shows("the shell", "left with 0");
        eventually("the shell went on", DEADLINE, || {
            self.world.path("after").exists() && !self.world.read("after").is_empty()
        });
        assert_eq!(self.world.read("before"), self.world.read("after"));
        let modes = self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(modes.trim(), "0 1", "no other screen, and a cursor");
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

#[test]
fn a_question_appears_by_itself_and_its_answer_reaches_the_call_that_waits() {
    if !have(&["tmux"]) {
        return;
    }
    let world = asking("human");
    let tmux = Tmux::start(&world);
    tmux.shows("an empty inbox", "Nothing waits for you");
    let mut client = world.legacy();
    let question = json!({
        "question": "どの言語を使いますか？",
        "options": [{ "label": "日本語" }, { "label": "English" }],
    });
    let asked = client.call("ask_user", &question);
    let id = &asked["structuredContent"]["workflow_id"];
    let waits = json!({ "continue_workflow": { "workflow_id": id, "wait_seconds": 50 } });
    let call = client.send("tools/call", &json!({ "name": "ask_user", "arguments": waits }));
    tmux.shows("the question", "どの言語を使いますか？");

    tmux.run(&["resize-window", "-x", "40", "-y", "10"]);
    tmux.shows("the list of a small terminal", "pml inbox: 1 waits");
    tmux.run(&["resize-window", "-x", "80", "-y", "24"]);
    tmux.shows("the list of a large terminal", "project");

    tmux.key_until("Enter", ">1 ( ) 日本語");
    tmux.run(&["set-buffer", "漢字 q\nh second line"]);
    tmux.run(&["paste-buffer", "-p"]);
    tmux.shows("what was pasted", "> h second line");
    tmux.shows("what was pasted", "> 漢字 q");
    tmux.key_until("Enter", "This will be sent:");
    tmux.shows("that the key counts", "Enter sends this.");
    tmux.key("Enter");
    tmux.shows("that it was sent", "is sent:");

    let answer = client.answer(call);
    assert!(answer.to_string().contains(r"漢字 q\nh second line"), "{answer}");
    let by = log(&world)[0]["by"].as_str().unwrap().to_owned();
    assert!(by.starts_with("cli:pts/"), "{by}");
    tmux.key("Escape");
    tmux.key_until("q", "left with");
    tmux.is_left();
}

#[test]
fn an_approval_takes_two_keys_and_lets_the_call_run() {
    if !have(&["tmux"]) {
        return;
    }
    let world = asking("human");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "a": 1 }));
    let tmux = Tmux::start(&world);
    tmux.shows("the command, whole", "would run");
    tmux.key_until("c", "Enter says yes.");
    assert_eq!(log(&world)[0]["state"], "pending", "{:?}", log(&world));
    tmux.key("Enter");
    tmux.shows("what became of it", "ANSWERED by cli");
    assert_eq!(echoed(&proceed(&mut client, &asked)), json!({ "a": 1 }));
}

#[test]
fn what_another_terminal_answers_is_told_and_what_was_typed_stays() {
    if !have(&["tmux"]) {
        return;
    }
    let world = asking("human");
    let code = put(&world, vec![free("Why?")]).code;
    let tmux = Tmux::start(&world);
    tmux.key_until("Enter", "^J new line");
    tmux.run(&["send-keys", "-l", "quite long"]);
    tmux.shows("what is typed", "> quite long");
    let answered = world.run(&["answer", code.as_str(), "--text", "first"]);
    assert!(answered.status.success(), "{}", stderr(&answered));
    tmux.shows("who was first", "was answered first by cli");
    let picture = tmux.picture();
    assert!(
        picture.contains("first") && picture.contains("quite long"),
        "{picture}"
    );
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    if !have(&["tmux"]) {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let world = World::new();
        let tmux = Tmux::start(&world);
        kill_process(tmux.pml(), signal).unwrap();
        tmux.is_left();
    }
}

#[test]
fn without_a_terminal_the_other_ways_are_named() {
    let world = World::new();
    let refused = world.run(&["inbox"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = stderr(&refused);
    for way in ["pml pending", "pml inbox --once", "pml inbox --json"] {
        assert!(told.contains(way), "{told}");
    }
}

#[test]
fn once_answers_the_oldest_in_plain_lines() {
    if !have(&["script"]) {
        return;
    }
    let world = asking("human");
    let (nothing, screen) = typed(&world, "inbox --once", "");
    assert_eq!(nothing, Some(1), "{screen}");
    assert!(screen.contains("nothing waits for an answer"), "{screen}");
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    put(&world, vec![choice("Which?", &["Red", "Blue"], Selection::One)]);
    let (left, screen) = typed(&world, "inbox --once", "q\n\n");
    assert_eq!(left, Some(1), "{screen}");
    assert!(
        screen.contains("none of these letters") && screen.contains("it still waits"),
        "{screen}"
    );
    let (approved, screen) = typed(&world, "inbox --once", "c\n");
    assert_eq!(approved, Some(0), "{screen}");
    assert!(
        screen.contains("  a  Always: from now on")
            && screen.contains("always writes")
            && screen.contains("approved:"),
        "{screen}"
    );
    let (answered, screen) = typed(&world, "inbox --once", "2\n\n");
    assert_eq!(answered, Some(0), "{screen}");
    assert_eq!(
        json_of(&world.run(&["pending", "--json"])),
        json!({ "pending": [] })
    );
}

#[test]
fn once_refuses_with_a_reason() {
    if !have(&["script"]) {
        return;
    }
    let world = asking("human");
    world.legacy().call("fake__echo", &json!({}));
    let (refused, screen) = typed(&world, "inbox --once", "x\nnot today\n");
    assert_eq!(refused, Some(0), "{screen}");
    assert_eq!(log(&world)[0]["answer"]["reason"], "not today");
}

#[test]
fn json_lines_tell_all_asks_and_then_each_change_until_a_signal_comes() {
    let world = asking("human");
    let first = put(&world, vec![free("One?")]);
    let mut watcher = world
        .command(&["inbox", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let snapshot = next();
    assert_eq!(snapshot["type"], "snapshot");
    assert_eq!(snapshot["pending"][0]["code"], json!(first.code));
    let second = put(&world, vec![free("Two?")]);
    let card = next();
    assert_eq!(
        (&card["type"], &card["card"]["code"]),
        (&json!("card"), &json!(second.code))
    );
    assert!(world.run(&["refuse", first.code.as_str()]).status.success());
    let card = next();
    assert_eq!(card["card"]["state"], "refused", "{card}");
    let id = Pid::from_raw(i32::try_from(watcher.id()).unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    assert!(watcher.wait().unwrap().success());
}

#[test]
fn json_lines_end_when_nobody_reads_them() {
    let world = World::new();
    let mut watcher = world
        .command(&["inbox", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    eventually("the watcher ends", DEADLINE, || {
        watcher.try_wait().unwrap().is_some()
    });
    assert!(watcher.wait().unwrap().success());
}
