//! Where stdout or stderr cannot be written, no command panics: the exit code still says what was done.

use std::fs::OpenOptions;
use std::process::{Output, Stdio};

use serde_json::json;

use crate::support::have;
use crate::support::packages::publish_server;
use crate::support::registry::Registry;
use crate::support::world::{World, json_of};

/// Something that takes no byte.
#[derive(Debug, Clone, Copy)]
enum Sink {
    /// A disk without room.
    Full,
    /// A pipe that is not read.
    Closed,
}

impl Sink {
    const ALL: [Self; 2] = [Self::Full, Self::Closed];

    fn open(self) -> Stdio {
        match self {
            Self::Full => OpenOptions::new().write(true).open("/dev/full").unwrap().into(),
            Self::Closed => std::io::pipe().unwrap().1.into(),
        }
    }
}

/// Runs a command whose stderr takes nothing.
fn muted(world: &World, sink: Sink, arguments: &[&str]) -> Output {
    let mut command = world.command(arguments);
    command.env("PML_LOG", "trace").stdin(Stdio::null());
    command
        .stdout(Stdio::piped())
        .stderr(sink.open())
        .output()
        .unwrap()
}

/// Runs a command whose stdout takes nothing; returns its exit code and what it said.
fn unheard(world: &World, sink: Sink, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = world.command(arguments);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let output = command.stdout(sink.open()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_change_counts_as_done_where_stderr_cannot_be_written() {
    for sink in Sink::ALL {
        let world = World::new();
        let succeeds = |arguments: &[&str]| {
            let output = muted(&world, sink, arguments);
            assert_eq!(output.status.code(), Some(0), "pml {arguments:?} with {sink:?}");
        };
        succeeds(&["init", "--yes"]);
        let fake = crate::support::fake_server();
        succeeds(&["add", "fake", "--yes", "--", fake.to_str().unwrap()]);
        for list in ["allow", "deny", "ask"] {
            // No tool has this name: it may have one day.
            succeeds(&[list, "--force", &format!("fake:{list}_this")]);
        }
        let config = world.read(".pml.json");
        for written in ["\"fake\"", "fake:allow_this", "fake:deny_this", "fake:ask_this"] {
            assert!(config.contains(written), "{written} is not in {config}");
        }
        succeeds(&["forget", "fake:deny_this"]);
        for reading in ["list", "rules", "pending", "log"] {
            succeeds(&[reading]);
        }
        succeeds(&["check", "fake:allow_this"]);
        succeeds(&["remove", "fake"]);
        assert!(!world.read(".pml.json").contains("fake_server"), "{sink:?}");
        // What fails says so by its code as well.
        assert_eq!(
            muted(&world, sink, &["remove", "fake"]).status.code(),
            Some(1),
            "{sink:?}"
        );
        assert_eq!(
            muted(&world, sink, &["no-such-command"]).status.code(),
            Some(2),
            "{sink:?}"
        );
    }
}

#[test]
fn an_answer_counts_where_stderr_cannot_be_written() {
    for sink in Sink::ALL {
        let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
        let mut client = world.legacy();
        for answer in ["refuse", "approve"] {
            client.call("fake__echo", &json!({ "for": answer }));
            let pending = json_of(&world.run(&["pending", "--json"]));
            let code = pending["pending"][0]["code"].as_str().unwrap().to_owned();
            let output = muted(&world, sink, &[answer, &code]);
            assert_eq!(output.status.code(), Some(0), "{answer} with {sink:?}");
            let pending = json_of(&world.run(&["pending", "--json"]));
            assert_eq!(pending["pending"], json!([]), "{answer} with {sink:?}");
        }
    }
}

#[test]
fn an_installation_counts_where_stderr_cannot_be_written() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    for sink in Sink::ALL {
        let world = World::new();
        std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
        world.configure(&json!({ "mcpServers": { "hello": { "package": "npm:hello@1.0.0" } } }));
        let output = muted(&world, sink, &["install", "--yes"]);
        assert_eq!(output.status.code(), Some(0), "{sink:?}");
        let listed = json_of(&world.run(&["list", "--json"]));
        assert_eq!(listed["servers"][0]["installed"], true, "{listed}");
        let output = muted(&world, sink, &["uninstall", "hello"]);
        assert_eq!(output.status.code(), Some(0), "{sink:?}");
    }
}

#[test]
fn a_server_is_called_where_the_log_cannot_be_written() {
    for sink in Sink::ALL {
        let world = World::with_fake(&json!({ "allow": ["*"] }), &[]);
        let mut command = world.command(&["stdio"]);
        let calling = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fake__echo","arguments":{}}}
"#;
        world.write("calls", calling);
        let calls = std::fs::File::open(world.path("calls")).unwrap();
        command.env("PML_LOG", "trace").stdin(calls).stderr(sink.open());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(r#""id":2,"result""#), "{said}");
    }
}

#[test]
fn what_cannot_be_read_of_the_wanted_log_is_told_and_the_command_runs() {
    let world = World::new();
    let mut command = world.command(&["rules"]);
    let output = command.env("PML_LOG", "pml=debug,verbose").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("`verbose` in `PML_LOG` is ignored"), "{said}");
    assert!(!said.contains("`pml=debug`"), "{said}");
}

#[test]
fn data_that_was_wanted_and_cannot_be_written_is_an_error() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["rules"],
        &["rules", "--json"],
        &["check", "fake:echo"],
        &["check", "fake:echo", "--json"],
        &["pending", "--json"],
        &["log", "--json"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ] {
        let (code, said) = unheard(&world, Sink::Full, arguments);
        assert_eq!(code, Some(2), "pml {arguments:?}: {said}");
        assert!(!said.contains("panicked"), "pml {arguments:?}: {said}");
        let (code, said) = unheard(&world, Sink::Closed, arguments);
        assert_eq!(
            code,
            Some(0),
            "a reader that went away has seen enough: {arguments:?} {said}"
        );
    }
}

#[test]
fn an_exit_code_that_is_an_answer_is_the_same_without_a_reader() {
    let world = World::with_fake(
        &json!({ "allow": ["fake:echo"], "deny": ["fake:big"], "ask": ["*"] }),
        &[],
    );
    for (arguments, expected) in [
        (&["check", "fake:echo"][..], 0),
        (&["check", "fake:big"], 1),
        (&["check", "fake:closed", "--json"], 1),
        (&["check", "none:such"], 1),
        (&["check", "no tool"], 2),
        (&["forget", "no:rule", "--json"], 1),
        (&["install", "none"], 2),
        (&["init", "--json"], 0),
        (&["approve", "XXXXX"], 1),
        (&["refuse", "XXXXX"], 1),
        (&["answer", "XXXXX", "1"], 1),
    ] {
        let heard = world.run(arguments).status.code();
        assert_eq!(heard, Some(expected), "pml {arguments:?}");
        let (unheard, said) = unheard(&world, Sink::Closed, arguments);
        assert_eq!(unheard, heard, "pml {arguments:?}: {said}");
        let (full, said) = self::unheard(&world, Sink::Full, arguments);
        assert_ne!((full, expected), (Some(0), 1), "pml {arguments:?}: {said}");
    }
}

#[test]
fn an_installation_that_fails_says_so_without_a_reader() {
    let world = World::new();
    world.configure(&json!({ "mcpServers": {
        "plain": { "command": "true" },
        "denied": { "package": "npm:hello@1.0.0" },
    }, "permissions": { "deny": ["denied"] } }));
    for arguments in [&["install", "--yes"][..], &["install", "--yes", "--json"]] {
        let heard = world.run(arguments).status.code();
        assert_eq!(heard, Some(1), "pml {arguments:?}");
        let (code, said) = unheard(&world, Sink::Closed, arguments);
        assert_eq!(code, heard, "pml {arguments:?}: {said}");
    }
}

#[test]
fn a_relative_home_is_refused_and_a_relative_directory_of_the_user_ignored() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
    for home in [".", "home", "../home"] {
        for arguments in [&["list"][..], &["allow", "fake"], &["stdio"]] {
            let mut command = world.command(arguments);
            let output = command.env("HOME", home).stdin(Stdio::null()).output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(2),
                "pml {arguments:?} with HOME={home}"
            );
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                said.starts_with(&format!(
                    "error: `HOME` is `{home}`, which is not an absolute path"
                )),
                "{said}"
            );
            assert!(said.contains("hint: set `HOME` to your home directory"), "{said}");
        }
    }
    let before = crate::home::names(&world.project());
    let mut command = world.command(&["stdio"]);
    for variable in [
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
    ] {
        command.env(variable, "here");
    }
    let mut client = crate::support::world::Client::start(command);
    client.initialize("2025-06-18");
    let asked = client.call("fake__echo", &json!({}));
    client.proceed(
        "fake__echo",
        &asked,
        &json!({ "approved": true, "scope": "session" }),
    );
    client.close();
    assert_eq!(crate::home::names(&world.project()), before);
    assert!(world.home().join(".local/state/pml/workflows.db").exists());
}
