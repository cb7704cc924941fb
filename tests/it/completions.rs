//! `pml completions`: every shell gets the commands of people and none of pml's own.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::have;
use crate::support::world::{World, stderr, stdout};

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

#[test]
fn completions_are_put_where_the_shell_looks_and_taken_out_again() {
    let world = World::new();
    for (shell, file) in [
        ("bash", ".local/share/bash-completion/completions/pml"),
        ("zsh", ".local/share/zsh/site-functions/_pml"),
        ("fish", ".config/fish/completions/pml.fish"),
    ] {
        world.set("SHELL", &format!("/usr/bin/{shell}"));
        let file = world.home().join(file);
        let printed = stdout(&world.run(&["completions", shell]));
        let installed = world.run(&["completions", "--install"]);
        assert!(installed.status.success(), "{shell}");
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written.starts_with(printed.trim_end()), "{shell}");
        // Again is no trouble, and brings what is new.
        assert!(
            world.run(&["completions", "--install"]).status.success(),
            "{shell}"
        );
        assert!(
            world.run(&["completions", "--uninstall"]).status.success(),
            "{shell}"
        );
        assert!(!file.exists(), "{shell}");
        assert!(
            world.run(&["completions", "--uninstall"]).status.success(),
            "{shell}"
        );

        std::fs::write(&file, "my own").unwrap();
        for change in ["--install", "--uninstall"] {
            let refused = world.run(&["completions", shell, change]);
            assert_eq!(refused.status.code(), Some(1), "{shell} {change}");
            assert!(stderr(&refused).contains("is not of pml"), "{}", stderr(&refused));
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "my own", "{shell}");
    }
    world.set("SHELL", "/bin/unheard-of");
    let unknown = world.run(&["completions", "--install"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        stderr(&unknown).contains("pml completions --install bash"),
        "{}",
        stderr(&unknown)
    );
}
