//! The real Claude Code, Codex and Gemini CLI after an import: each shows the tools of pml to its model.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{filled, read, write};
use crate::support::claude::{claude_environment, claude_program};
use crate::support::recorder::{Recorder, codex_program, gemini_program};
use crate::support::world::{World, stderr, stdout};

fn ran(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output))
}

fn imported(world: &World, client: &str) {
    let done = world.run(&["import", "--yes", client]);
    assert!(done.status.success(), "{}", stderr(&done));
}

/// Its own program is found as the user has it: on the `PATH`.
fn have_claude(world: &World, claude: &Path, api: &Recorder) {
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(claude, bin.join("claude")).unwrap();
    for (name, value) in claude_environment(world.home(), &api.url) {
        world.set(name, &value);
    }
    world.set(
        "PATH",
        &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
}

#[test]
fn claude_code_offers_the_tools_of_pml_after_an_import_of_its_own_file() {
    let Some(claude) = claude_program() else { return };
    let world = World::new();
    let api = Recorder::start();
    have_claude(&world, &claude, &api);
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
fn claude_codes_servers_of_one_project_come_behind_pml_and_go_back() {
    let Some(claude) = claude_program() else { return };
    let world = World::new();
    let api = Recorder::start();
    have_claude(&world, &claude, &api);
    // As `claude mcp add` without a scope writes it: below the path of the project, beside those of other projects.
    let project = world.project().canonicalize().unwrap();
    let entry = serde_json::json!({ "type": "stdio", "command": crate::support::fake_server(), "env": { "PML_TEST_MARK": world.mark() } });
    let before = serde_json::json!({
        "hasCompletedOnboarding": true,
        "projects": {
            (project.to_string_lossy().into_owned()): { "mcpServers": { "local-one": entry }, "hasTrustDialogAccepted": true },
            "/elsewhere": { "mcpServers": { "not-here": entry } },
        },
    });
    std::fs::write(world.home().join(".claude.json"), before.to_string()).unwrap();
    let shown = world.run(&["import", "--dry-run", "claude"]);
    let told = format!("{}{}", stdout(&shown), stderr(&shown));
    assert!(told.contains("local-one") && !told.contains("not-here"), "{told}");

    imported(&world, "claude");
    let servers = |place: &str| -> Vec<String> {
        let own: serde_json::Value = serde_json::from_str(&read(&world, ".claude.json")).unwrap();
        let listed = own["projects"][place]["mcpServers"].as_object();
        listed
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    };
    assert_eq!(servers(&project.to_string_lossy()), ["pml"]);
    assert_eq!(servers("/elsewhere"), ["not-here"]);
    let mut asked = world.program(&claude);
    asked.args(["-p", "go", "--output-format", "stream-json", "--verbose"]);
    let told = ran(asked);
    assert!(told.contains("mcp__pml__local-one__echo"), "{told}");

    let undone = world.run(&["import", "--undo", "--yes"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(servers(&project.to_string_lossy()), ["local-one"]);
    assert_eq!(servers("/elsewhere"), ["not-here"]);
}

#[test]
fn codex_offers_the_tools_of_pml_after_an_import() {
    let Some(codex) = codex_program() else {
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
    let Some(script) = gemini_program() else {
        return;
    };
    let world = World::new();
    let api = Recorder::start();
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
