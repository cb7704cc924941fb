//! The real Claude Code, Codex and Gemini CLI after an import: each shows the tools of pml to its model.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::{filled, read, write};
use crate::support::claude::{claude_environment, claude_program};
use crate::support::world::{World, stderr};
use crate::support::{have, sdk};

const CODEX: &str = "@openai/codex@0.166.0";

const GEMINI: &str = "@google/gemini-cli@0.61.0";

/// An API that keeps what it is asked and has no answer.
struct Recorder {
    url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    let mut seen = Vec::new();
                    let mut chunk = vec![0; 65_536];
                    let (head, length) = loop {
                        let Ok(count) = stream.read(&mut chunk) else {
                            return;
                        };
                        if count == 0 {
                            return;
                        }
                        seen.extend_from_slice(&chunk[..count]);
                        let text = String::from_utf8_lossy(&seen).to_lowercase();
                        if let Some(head) = text.find("\r\n\r\n") {
                            let length = text[..head].split("content-length:").nth(1);
                            let length =
                                length.and_then(|rest| rest.split("\r\n").next()?.trim().parse().ok());
                            break (head + 4, length.unwrap_or(0_usize));
                        }
                    };
                    while seen.len() < head + length {
                        match stream.read(&mut chunk) {
                            Ok(count) if count > 0 => seen.extend_from_slice(&chunk[..count]),
                            _ => break,
                        }
                    }
                    kept.lock()
                        .unwrap()
                        .push(String::from_utf8_lossy(&seen).into_owned());
                    let body = r#"{"type":"error","error":{"type":"invalid_request_error","code":400,"message":"no","status":"INVALID_ARGUMENT"}}"#;
                    let _ = write!(
                        stream,
                        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    );
                });
            }
        });
        Self { url, bodies }
    }

    fn has(&self, text: &str) -> bool {
        self.bodies.lock().unwrap().iter().any(|body| body.contains(text))
    }

    fn told(&self) -> String {
        let bodies = self.bodies.lock().unwrap();
        bodies
            .iter()
            .map(|body| body.chars().take(2_000).collect::<String>())
            .collect()
    }
}

fn program(name: &str, package: &str, below: &str) -> Option<PathBuf> {
    have(&["npm", "node"]).then(|| sdk::npm(name, &[package]).join("node_modules").join(below))
}

fn ran(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output))
}

fn imported(world: &World, client: &str) {
    let done = world.run(&["import", "--yes", client]);
    assert!(done.status.success(), "{}", stderr(&done));
}

#[test]
fn claude_code_offers_the_tools_of_pml_after_an_import_of_its_own_file() {
    let Some(claude) = claude_program() else { return };
    let world = World::new();
    let api = Recorder::start();
    // Its own program is found as the user has it: on the `PATH`.
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(&claude, bin.join("claude")).unwrap();
    for (name, value) in claude_environment(world.home(), &api.url) {
        world.set(name, &value);
    }
    world.set(
        "PATH",
        &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    write(
        &world,
        ".claude.json",
        r#"{ "hasCompletedOnboarding": true, "mcpServers": { "one": { "type": "stdio", "command": "FAKE", "env": { "PML_TEST_MARK": "MARK" } } } }"#,
    );
    imported(&world, "claude");
    let own = read(&world, ".claude.json");
    assert!(own.contains("\"pml\"") && !own.contains("\"one\""), "{own}");
    let mut asked = world.program(&claude);
    asked.args(["-p", "go", "--output-format", "stream-json", "--verbose"]);
    let told = ran(asked);
    assert!(told.contains("mcp__pml__one__echo"), "{told}");

    let undone = world.run(&["import", "--undo", "--yes"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    let own: serde_json::Value = serde_json::from_str(&read(&world, ".claude.json")).unwrap();
    let names: Vec<_> = own["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["one"]);
}

#[test]
fn codex_offers_the_tools_of_pml_after_an_import() {
    let Some(codex) = program("codex", CODEX, "@openai/codex/bin/codex.js") else {
        return;
    };
    let world = World::new();
    let api = Recorder::start();
    let text = format!(
        "model = \"m\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\nsupports_websockets = false\nenv_key = \"MOCK_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n\n[mcp_servers.one]\ncommand = \"FAKE\"\n\n[mcp_servers.one.env]\nPML_TEST_MARK = \"MARK\"\n",
        api.url
    );
    write(&world, ".codex/config.toml", &text);
    world.set("MOCK_KEY", "dummy");
    world.set("NO_PROXY", "127.0.0.1,localhost");
    imported(&world, "codex");
    let mut asked = world.program(Path::new("node"));
    asked
        .arg(codex)
        .args(["exec", "--skip-git-repo-check", "--json", "go"]);
    let told = ran(asked);
    assert!(api.has("one__echo"), "{told}\n{}", api.told());
    assert!(world.run(&["import", "--undo", "--yes"]).status.success());
    assert_eq!(
        read(&world, ".codex/config.toml")
            .split("[projects")
            .next()
            .unwrap()
            .trim_end(),
        filled(&world, &text).trim_end()
    );
}

#[test]
fn gemini_offers_the_tools_of_pml_after_an_import() {
    let Some(gemini) = program("gemini", GEMINI, "@google/gemini-cli") else {
        return;
    };
    let world = World::new();
    let api = Recorder::start();
    let manifest = std::fs::read_to_string(gemini.join("package.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let script = gemini.join(manifest["bin"]["gemini"].as_str().unwrap());
    write(
        &world,
        ".gemini/settings.json",
        r#"{ "security": { "auth": { "selectedType": "gemini-api-key" } }, "privacy": { "usageStatisticsEnabled": false },
  "general": { "disableAutoUpdate": true }, "mcpServers": { "one": { "command": "FAKE", "env": { "PML_TEST_MARK": "MARK" }, "trust": true } } }"#,
    );
    for (name, value) in [
        ("GEMINI_API_KEY", "dummy"),
        ("GOOGLE_GEMINI_BASE_URL", api.url.as_str()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("NO_PROXY", "127.0.0.1,localhost"),
    ] {
        world.set(name, value);
    }
    imported(&world, "gemini");
    let mut asked = world.program(Path::new("node"));
    asked
        .arg(script)
        .args(["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go"]);
    let told = ran(asked);
    assert!(api.has("one__echo"), "{told}\n{}", api.told());
}
