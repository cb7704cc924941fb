//! `pml completions`: every shell gets the commands of people and none of pml's own.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::have;
use crate::support::world::{World, stdout};

#[test]
fn every_shell_completes_the_commands_of_people_alone() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = world.run(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = stdout(&output);
        for command in ["allow", "check", "add", "list", "completions"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
        for inner in ["supervise", "launch", "sample-server"] {
            assert!(!script.contains(inner), "{shell}: {inner}");
        }
    }
    assert_eq!(world.run(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn bash_can_read_its_script() {
    if !have(&["bash"]) {
        return;
    }
    let script = stdout(&World::new().run(&["completions", "bash"]));
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
}
