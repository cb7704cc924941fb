//! What an official client sees of a server through pml is what it sees of that server directly.
//!
//! `tests/interop/differential.mjs` drives everything a server has and writes a transcript; here two transcripts are
//! compared. Where client and server are of different eras, the direct one is that of a client of the server's era, and
//! what only one era has is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::sdk::{self, Python};
use crate::support::world::World;
use crate::support::{have, pml, sdk_server};

/// A server that is asked directly and through pml.
#[derive(Debug, Clone, Copy)]
enum Server {
    /// `@modelcontextprotocol/server-everything`.
    Everything,
    Python(Python),
    TypeScriptOne,
    TypeScriptModern,
    Rust,
    RustModern,
}

/// A client, by the mode of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    One,
    Two,
    Modern,
}

impl Client {
    fn mode(self) -> &'static str {
        match self {
            Self::One => "v1",
            Self::Two => "legacy",
            Self::Modern => "2026-07-28",
        }
    }
}

impl Server {
    /// The command line.
    fn line(self) -> Vec<PathBuf> {
        let node = || which::which("node").unwrap();
        let typescript = |line: &str| vec![node(), sdk::script("server.mjs"), line.into(), sdk::typescript()];
        match self {
            Self::Everything => vec![node(), sdk::everything()],
            Self::Python(line) => vec![sdk::python(line), sdk::script("server.py")],
            Self::TypeScriptOne => typescript("v1"),
            Self::TypeScriptModern => typescript("modern"),
            Self::Rust => vec![sdk_server()],
            Self::RustModern => vec![sdk_server(), "--modern".into()],
        }
    }

    /// The client that speaks to this server directly in the era in which pml does: `initialize` comes first.
    fn native(self, client: Client) -> Client {
        match (self, client) {
            (Self::TypeScriptModern | Self::RustModern, _) => Client::Modern,
            (_, Client::Modern) => Client::Two,
            _ => client,
        }
    }
}

/// Runs the script; returns its lines.
fn transcript(world: &World, client: Client, prefix: &str, line: &[PathBuf]) -> Vec<Value> {
    let script = sdk::script("differential.mjs");
    let output = world
        .program(Path::new("node"))
        .arg(script)
        .arg(client.mode())
        .arg(sdk::typescript())
        .arg(prefix)
        .args(line)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{client:?} {prefix}: {told}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A world where `server` is allowed and known to the catalog.
fn world(server: Server) -> World {
    let world = World::new();
    let line = server.line();
    let entry = json!({ "command": line[0], "args": line[1..] });
    world.configure(&json!({ "permissions": { "allow": ["server"] }, "mcpServers": { "server": entry } }));
    let mut client = world.client();
    // With everything a client can have: some servers list more tools then.
    let capabilities =
        json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {}, "url": {} } });
    let about = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": about });
    client.request("initialize", &params);
    client.notify("notifications/initialized", &json!({}));
    client.call("server__connect", &json!({}));
    world
}

/// The transcript without what only one era, or one line of the client, has.
fn across_eras(lines: &[Value], common: &BTreeSet<String>) -> Vec<Value> {
    let keep = |line: &&Value| match (line["step"].as_str(), &line["heard"]) {
        (Some("capabilities"), _) => false,
        // An error that only the Legacy era has.
        (Some(step), _) => common.contains(step) && !step.contains("errorPath"),
        (None, heard) => match (heard["method"].as_str(), heard["during"].as_str()) {
            (Some("notifications/progress"), _) => true,
            (Some("notifications/resources/updated"), _) => common.contains("subscribed resources change"),
            // Outside a call only a Legacy client can be asked; of a Modern one this server wants it within a call.
            (None, Some("the first call" | "tools/call get-roots-list {}")) => false,
            (None, Some(during)) => common.contains(during) && !during.contains("errorPath"),
            _ => false,
        },
    };
    let mut kept: Vec<Value> = lines.iter().filter(keep).cloned().collect();
    for line in &mut kept {
        line.as_object_mut().unwrap().remove("trouble");
        // Only the Legacy era names such a question.
        if let Some(params) = line.pointer_mut("/heard/params").and_then(Value::as_object_mut) {
            params.remove("elicitationId");
        }
    }
    kept
}

/// Takes the name of the server off every question: the one thing that pml puts before what a server asks.
fn unlabelled(lines: &mut [Value]) {
    for line in lines {
        let asked = line.pointer("/heard/asked").cloned().unwrap_or_default();
        let (member, label) = match asked.as_str() {
            Some("elicitation/create") => ("message", "[server] "),
            Some("sampling/createMessage") => {
                ("systemPrompt", "This request comes from the MCP server `server`.")
            }
            _ => continue,
        };
        let params = line
            .pointer_mut("/heard/params")
            .and_then(Value::as_object_mut)
            .unwrap();
        let text = params[member].as_str().unwrap();
        let theirs = text
            .strip_prefix(label)
            .unwrap_or_else(|| panic!("no label: {text}"));
        let theirs = theirs.trim_start_matches('\n').to_owned();
        if theirs.is_empty() {
            params.remove(member);
        } else {
            params[member] = json!(theirs);
        }
    }
}

fn steps(lines: &[Value]) -> BTreeSet<String> {
    lines
        .iter()
        .filter_map(|line| line["step"].as_str().map(str::to_owned))
        .collect()
}

/// One line of text per line of the transcript, members in order, long ones cut where a person stops reading.
fn text(lines: &[Value]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut line = line.clone();
        line.sort_all_objects();
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

/// The capabilities through pml are those of the server; pml has tools and prompts of its own, and every list of it may
/// change, with the configuration.
fn assert_capabilities(direct: &[Value], through: &[Value]) {
    let (mut direct, mut through) = (direct[0]["answers"].clone(), through[0]["answers"].clone());
    for capabilities in [&mut direct, &mut through] {
        for own in ["tools", "prompts"] {
            capabilities[own] = json!({});
        }
        if let Some(resources) = capabilities.get_mut("resources").and_then(Value::as_object_mut) {
            resources.remove("listChanged");
            // What is not there and what is false are one.
            resources.retain(|_, value| *value != false);
        }
    }
    assert_eq!(through, direct, "capabilities");
}

fn assert_same(client: Client, server: Server) {
    let native = server.native(client);
    let world = world(server);
    let direct = transcript(&world, native, "-", &server.line());
    let mut through = transcript(&world, client, "server__", &[pml().to_owned(), "stdio".into()]);
    unlabelled(&mut through);
    let (expected, seen) = if native == client {
        assert_capabilities(&direct, &through);
        (text(&direct[1..]), text(&through[1..]))
    } else {
        let common = steps(&direct).intersection(&steps(&through)).cloned().collect();
        (
            text(&across_eras(&direct, &common)),
            text(&across_eras(&through, &common)),
        )
    };
    let difference = similar::TextDiff::from_lines(&expected, &seen);
    let told = difference
        .unified_diff()
        .context_radius(0)
        .header("directly", "through pml")
        .to_string();
    assert!(told.is_empty(), "{client:?} and {server:?}\n{told}");
    world.assert_no_survivor("after the client closed");
}

macro_rules! same {
    ($($name:ident: $client:ident, $server:expr, $($program:literal)+;)+) => {
        $(
            #[test]
            fn $name() {
                if have(&[$($program),+]) {
                    assert_same(Client::$client, $server);
                }
            }
        )+
    };
}

same! {
    the_everything_server_is_the_same_for_the_first_client: One, Server::Everything, "node" "npm";
    the_everything_server_is_the_same_for_the_second_client: Two, Server::Everything, "node" "npm";
    the_everything_server_is_the_same_for_the_modern_client: Modern, Server::Everything, "node" "npm";
    a_python_1_server_is_the_same_for_the_first_client: One, Server::Python(Python::One), "node" "npm" "uv";
    a_python_1_server_is_the_same_for_the_modern_client: Modern, Server::Python(Python::One), "node" "npm" "uv";
    a_python_2_server_is_the_same_for_the_second_client: Two, Server::Python(Python::Two), "node" "npm" "uv";
    a_python_2_server_is_the_same_for_the_modern_client: Modern, Server::Python(Python::Two), "node" "npm" "uv";
    a_typescript_1_server_is_the_same_for_the_first_client: One, Server::TypeScriptOne, "node" "npm";
    a_typescript_1_server_is_the_same_for_the_modern_client: Modern, Server::TypeScriptOne, "node" "npm";
    a_modern_typescript_server_is_the_same_for_the_first_client: One, Server::TypeScriptModern, "node" "npm";
    a_modern_typescript_server_is_the_same_for_the_modern_client: Modern, Server::TypeScriptModern, "node" "npm";
    a_rust_server_is_the_same_for_the_first_client: One, Server::Rust, "node" "npm";
    a_rust_server_is_the_same_for_the_modern_client: Modern, Server::Rust, "node" "npm";
    a_modern_rust_server_is_the_same_for_the_second_client: Two, Server::RustModern, "node" "npm";
    a_modern_rust_server_is_the_same_for_the_modern_client: Modern, Server::RustModern, "node" "npm";
}
