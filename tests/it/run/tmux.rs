//! A terminal in which `pml run` runs and a person types.

use std::path::{Path, PathBuf};
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::scene::{PATIENCE, Scene};
use crate::support::world::stderr;
use crate::support::{eventually, pml};

/// A terminal in tmux in which a shell runs `pml run`, and tells afterwards how it ended.
pub(super) struct Terminal<'a> {
    scene: &'a Scene,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    pub(super) fn start(scene: &'a Scene, arguments: &str) -> Self {
        Self::sized(scene, arguments, 160, 50)
    }

    /// A terminal of this size.
    pub(super) fn sized(scene: &'a Scene, arguments: &str, columns: u16, rows: u16) -> Self {
        let terminal = Self {
            scene,
            socket: scene.world.home().join("tmux"),
        };
        // Ctrl-C is for every process of the terminal; the shell is to tell how pml took it.
        let line = format!(
            "trap : INT; {} run {arguments}; echo \"left with $?\"; exec cat",
            pml().display()
        );
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let begin = [
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
        ];
        let started = terminal.command(&begin).arg(line).status();
        assert!(started.unwrap().success());
        terminal
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.scene.world.program(Path::new("tmux"));
        command
            .env("LC_ALL", "C.UTF-8")
            .args(["-S".as_ref(), self.socket.as_os_str()])
            .args(arguments);
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn picture(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Types a line.
    pub(super) fn line(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.key("Enter");
    }

    pub(super) fn key(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    /// Waits until a text stands on the screen.
    pub(super) fn shows(&self, text: &str) {
        let begin = std::time::Instant::now();
        loop {
            let picture = self.picture();
            if picture.contains(text) {
                return;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "{text:?} is not on the screen:\n{picture}"
            );
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Waits until something is true of the screen.
    pub(super) fn becomes(&self, what: &str, condition: impl Fn(&str) -> bool) {
        let begin = std::time::Instant::now();
        loop {
            let picture = self.picture();
            if condition(&picture) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{what}:\n{picture}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Types letters without finishing their line.
    pub(super) fn letters(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Gives the terminal another size.
    pub(super) fn resize(&self, columns: u16) {
        self.run(&["resize-window", "-x", &columns.to_string()]);
    }

    /// Waits until the run has nothing to do, and ends it.
    pub(super) fn ends(&self) {
        eventually("the run is idle", PATIENCE, || self.scene.is("idle"));
        self.key("C-d");
        self.shows("left with 0");
        assert_eq!(
            self.scene.told_state(),
            json!({ "name": "ended", "outcome": "done" })
        );
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}
