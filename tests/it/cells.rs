//! Questions in the middle of a call, and what else a call has, in each of the four cells of client era × server era.
//!
//! The clients are the official ones in Python and Rust (`tests/interop/questions.py` and [`rust`]); the TypeScript
//! clients go through the same servers in `differential.rs`. All of them must have seen the same.

mod rust;

use std::path::PathBuf;
use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::sdk::{self, Python};
use crate::support::world::World;
use crate::support::{have, pml, sdk_server};

/// A server, by the era in which pml speaks to it: `initialize` comes first.
#[derive(Debug, Clone, Copy)]
enum Server {
    LegacyPython(Python),
    LegacyTypeScript,
    LegacyRust,
    ModernTypeScript,
    ModernRust,
}

impl Server {
    /// The command line.
    fn line(self) -> Vec<PathBuf> {
        let node = |line: &str| {
            vec![
                which::which("node").unwrap(),
                sdk::script("server.mjs"),
                line.into(),
                sdk::typescript(),
            ]
        };
        match self {
            Self::LegacyPython(line) => vec![sdk::python(line), sdk::script("server.py")],
            Self::LegacyTypeScript => node("v1"),
            Self::LegacyRust => vec![sdk_server()],
            Self::ModernTypeScript => node("modern"),
            Self::ModernRust => vec![sdk_server(), "--modern".into()],
        }
    }

    /// A world where it is allowed, as `server`.
    fn world(self) -> World {
        let world = World::new();
        let line = self.line();
        let entry = json!({ "command": line[0], "args": line[1..] });
        world
            .configure(&json!({ "permissions": { "allow": ["server"] }, "mcpServers": { "server": entry } }));
        world.legacy().call("server__connect", &json!({}));
        world
    }
}

/// What every client must have seen.
fn expected() -> Value {
    json!({
        "listed": ["ask", "ask_everything", "echo", "roots", "sample", "work"],
        "ask": "Ada is 36",
        "sample": "fixed: sampled",
        "roots": "file:///one file:///two",
        "ask_everything": "Ada is 36 with 2 roots",
        "worked": "worked",
        "rises": true,
        "cancelled": true,
        "echo": "still here",
        "asked": [
            ["elicitation/create", "[server] All of it?"],
            ["elicitation/create", "[server] What is your name?"],
            ["roots/list", ""],
            ["roots/list", ""],
            ["sampling/createMessage", "Say something"],
        ],
    })
}

fn assert_python_sees(line: Python, mode: &str, server: Server) {
    let world = server.world();
    let script = sdk::script("questions.py");
    let output = world
        .program(&sdk::python(line))
        .arg(script)
        .args([mode, "server__"])
        .arg(pml())
        .arg("stdio")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line:?} {mode} and {server:?}: {told}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen, expected(), "{line:?} {mode} and {server:?}");
    world.assert_no_survivor("after the client closed");
}

#[test]
fn a_legacy_client_and_a_legacy_server() {
    if have(&["uv", "node", "npm"]) {
        assert_python_sees(Python::One, "session", Server::LegacyPython(Python::One));
        assert_python_sees(Python::One, "session", Server::LegacyTypeScript);
        assert_python_sees(Python::Two, "legacy", Server::LegacyPython(Python::Two));
        rust::assert_sees(rust::Era::Legacy, Server::LegacyTypeScript);
        rust::assert_sees(rust::Era::Legacy, Server::LegacyRust);
    }
}

#[test]
fn a_legacy_client_and_a_modern_server() {
    if have(&["uv", "node", "npm"]) {
        assert_python_sees(Python::One, "session", Server::ModernTypeScript);
        assert_python_sees(Python::Two, "legacy", Server::ModernRust);
        rust::assert_sees(rust::Era::Legacy, Server::ModernTypeScript);
        rust::assert_sees(rust::Era::Legacy, Server::ModernRust);
    }
}

#[test]
fn a_modern_client_and_a_legacy_server() {
    if have(&["uv", "node", "npm"]) {
        assert_python_sees(Python::Two, "2026-07-28", Server::LegacyPython(Python::One));
        assert_python_sees(Python::Two, "2026-07-28", Server::LegacyTypeScript);
        rust::assert_sees(rust::Era::Modern, Server::LegacyPython(Python::Two));
        rust::assert_sees(rust::Era::Modern, Server::LegacyRust);
    }
}

#[test]
fn a_modern_client_and_a_modern_server() {
    if have(&["uv", "node", "npm"]) {
        assert_python_sees(Python::Two, "2026-07-28", Server::ModernTypeScript);
        assert_python_sees(Python::Two, "2026-07-28", Server::ModernRust);
        rust::assert_sees(rust::Era::Modern, Server::ModernTypeScript);
        rust::assert_sees(rust::Era::Modern, Server::ModernRust);
    }
}
