//! What 200 tools of ten servers cost the first request of real clients, and what `"tools"` of each server saves.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::claude::{claude_environment, claude_program};
use crate::support::pml;
use crate::support::recorder::{Recorder, codex_program, gemini_program};
use crate::support::world::{World, stderr};

const SERVERS: usize = 10;

/// Of each server.
const TOOLS: usize = 20;

/// The tools that are offered where `"tools"` says so, of each server.
const OFFERED: [&str; 2] = ["operation_00", "operation_01"];

/// Less than 180 definitions of these have, in bytes, however a client writes them.
const SAVED: usize = 90_000;

/// A definition as servers have them: two sentences, four described parameters.
fn tool(number: usize) -> Value {
    let property = |name: &str| json!({ "type": "string", "description": format!("The {name} that is looked for, as it is written there.") });
    let names = ["query", "filter", "project", "page"];
    let properties: serde_json::Map<_, _> = names
        .map(|name| (name.to_owned(), property(name)))
        .into_iter()
        .collect();
    json!({
        "name": format!("operation_{number:02}"),
        "description": format!(
            "Searches the records of this service and returns what was found, newest first. Filters narrow what is returned; \
             a page holds at most fifty records. Operation {number}."
        ),
        "inputSchema": { "type": "object", "properties": properties, "required": ["query"] },
    })
}

/// A world with the servers, whose tools are known.
fn world(offered: &Value) -> World {
    let world = World::new();
    let tools: Vec<Value> = (0..TOOLS).map(tool).collect();
    world.write("tools.json", &json!({ "tools": tools }).to_string());
    let file = world.path("tools.json");
    let mut server = world.fake(&["--answer", "tools/list", file.to_str().unwrap()]);
    if !offered.is_null() {
        server["tools"] = offered.clone();
    }
    let names = (0..SERVERS).map(|number| format!("service{number}"));
    let servers: serde_json::Map<_, _> = names.clone().map(|name| (name, server.clone())).collect();
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));
    for name in names {
        let learned = world.run(&["approve", "--yes", &name]);
        assert!(learned.status.success(), "{}", stderr(&learned));
    }
    world
}

/// The bytes of the first model request of a client that `ask` runs, with every tool and with those that are offered.
#[expect(clippy::print_stdout, reason = "the figure is what the documentation tells")]
fn measure(client: &str, ask: fn(&World, &Recorder) -> Command) {
    let bytes = [Value::Null, json!(OFFERED)].map(|offered| {
        let (world, api) = (world(&offered), Recorder::start());
        let output = ask(&world, &api).stdin(Stdio::null()).output().unwrap();
        let request = api.longest();
        let told = || format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        // A client may write what names a tool more than once: which are there counts.
        for number in 0..SERVERS {
            for tool in 0..TOOLS {
                let name = format!("operation_{tool:02}");
                let listed = request.contains(&format!("service{number}__{name}"));
                assert_eq!(
                    listed,
                    offered.is_null() || OFFERED.contains(&name.as_str()),
                    "{number} {name}: {}",
                    told()
                );
            }
        }
        request.len()
    });
    let [all, few] = bytes;
    println!(
        "{client}: {all} bytes with {} tools, {few} with {}",
        SERVERS * TOOLS,
        SERVERS * OFFERED.len()
    );
    assert!(all - few > SAVED, "{client}: {all} {few}");
}

#[test]
fn claude_code_sends_the_definitions_of_offered_tools_alone() {
    if claude_program().is_none() {
        return;
    }
    measure("Claude Code", |world, api| {
        for (name, value) in claude_environment(world.home(), &api.url) {
            world.set(name, &value);
        }
        // All definitions up front: deferred ones are found by a search of its own, later.
        world.set("ENABLE_TOOL_SEARCH", "false");
        let entry = json!({ "mcpServers": { "pml": { "command": pml(), "args": ["stdio"] } } });
        world.write("mcp.json", &entry.to_string());
        let mut command = world.program(&claude_program().unwrap());
        command.args(["-p", "hello", "--strict-mcp-config", "--mcp-config", "mcp.json"]);
        command
    });
}

#[test]
fn codex_sends_the_definitions_of_offered_tools_alone() {
    if codex_program().is_none() {
        return;
    }
    measure("Codex", |world, api| {
        let folder = world.home().join(".codex");
        std::fs::create_dir(&folder).unwrap();
        let text = format!(
            "model = \"gpt-5\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = \"{}/v1\"\n\
             wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n[mcp_servers.pml]\ncommand = \"{}\"\n\
             args = [\"stdio\"]\nstartup_timeout_sec = 120\n",
            api.url,
            pml().display()
        );
        std::fs::write(folder.join("config.toml"), text).unwrap();
        world.set("NO_PROXY", "127.0.0.1,localhost");
        let mut command = world.program(Path::new("node"));
        command
            .arg(codex_program().unwrap())
            .args(["exec", "--skip-git-repo-check", "hello"]);
        command
    });
}

#[test]
fn gemini_sends_the_definitions_of_offered_tools_alone() {
    if gemini_program().is_none() {
        return;
    }
    measure("Gemini CLI", |world, api| {
        let folder = world.home().join(".gemini");
        std::fs::create_dir(&folder).unwrap();
        let settings = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "privacy": { "usageStatisticsEnabled": false },
            "general": { "disableAutoUpdate": true },
            "mcpServers": { "pml": { "command": pml(), "args": ["stdio"], "trust": true, "timeout": 120_000 } },
        });
        std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
        for (name, value) in [
            ("GEMINI_API_KEY", "dummy"),
            ("GOOGLE_GEMINI_BASE_URL", api.url.as_str()),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("NO_PROXY", "127.0.0.1,localhost"),
        ] {
            world.set(name, value);
        }
        let mut command = world.program(Path::new("node"));
        command.arg(gemini_program().unwrap()).args([
            "-m",
            "gemini-2.5-flash",
            "--approval-mode",
            "yolo",
            "-p",
            "hello",
        ]);
        command
    });
}
