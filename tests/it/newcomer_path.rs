//! A newcomer's path, timed: from a home with six servers in three clients to the first call that a person approved, in the
//! real Claude Code with a script for a model.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::browser::{card, opened};
use crate::support::browser::{Browser, Look};
use crate::support::claude::{claude_environment, claude_program};
use crate::support::messages_api::{MessagesApi, Turn};
use crate::support::world::{World, stderr};
use crate::support::{have, sdk};

/// Claude Code starts, connects and shows a dialog within seconds; reaching this is a failure.
const PATIENCE: Duration = Duration::from_mins(2);

/// Empties the caches of downloads first, as on a machine that never ran pml.
const FRESH: &str = "PML_TESTS_FRESH_DOWNLOADS";

/// Six servers, as people have them: floating, each in the file of its client.
fn have_servers(world: &World) {
    let home = world.home();
    let npx = |package: &str| json!({ "command": "npx", "args": ["-y", format!("@modelcontextprotocol/server-{package}")] });
    let claude = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": { "approved": ["dummy"], "rejected": [] },
        "projects": { (world.project().canonicalize().unwrap().to_string_lossy().into_owned()): { "hasTrustDialogAccepted": true } },
        "mcpServers": { "memory": npx("memory"), "thinking": npx("sequential-thinking") },
    });
    std::fs::write(home.join(".claude.json"), claude.to_string()).unwrap();
    let cursor = json!({ "mcpServers": {
        "everything": npx("everything"),
        "time": { "command": "uvx", "args": ["mcp-server-time"] },
    }});
    std::fs::create_dir(home.join(".cursor")).unwrap();
    std::fs::write(home.join(".cursor/mcp.json"), cursor.to_string()).unwrap();
    std::fs::create_dir(home.join(".codex")).unwrap();
    let codex = "[mcp_servers.fetch]\ncommand = \"uvx\"\nargs = [\"mcp-server-fetch\"]\n\n[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\n";
    std::fs::write(home.join(".codex/config.toml"), codex).unwrap();
}

/// A world as a newcomer has it; `None` where something of it is not there.
fn newcomer() -> Option<(World, PathBuf, MessagesApi)> {
    if !have(&["npm", "node", "uv", "tmux"]) {
        return None;
    }
    let claude = claude_program()?;
    let world = World::new();
    if std::env::var_os(FRESH).is_none() {
        let cache = world.home().join(".cache/pml");
        std::fs::create_dir_all(&cache).unwrap();
        for downloads in ["npm", "uv"] {
            std::os::unix::fs::symlink(sdk::kept(downloads), cache.join(downloads)).unwrap();
        }
    }
    let entity =
        json!({ "name": "pml", "entityType": "program", "observations": ["asks before anything runs"] });
    let api = MessagesApi::start([
        Turn::text("I remember that.").and_tool(
            "mcp__pml__memory__create_entities",
            json!({ "entities": [entity] }),
        ),
        Turn::text("Remembered."),
    ]);
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(&claude, bin.join("claude")).unwrap();
    for (name, value) in claude_environment(world.home(), &api.url()) {
        world.set(name, &value);
    }
    world.set(
        "PATH",
        &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    have_servers(&world);
    Some((world, claude, api))
}

/// Claude Code in a terminal of tmux.
struct Terminal<'a> {
    world: &'a World,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    fn start(world: &'a World, claude: &Path) -> Self {
        let terminal = Self {
            world,
            socket: world.home().join("tmux"),
        };
        let line = format!(
            "{} --permission-mode default --allowedTools mcp__pml",
            claude.display()
        );
        let begin = [
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "34",
        ];
        assert!(terminal.command(&begin).arg(line).status().unwrap().success());
        terminal
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.program(Path::new("tmux"));
        command
            .env("LC_ALL", "C.UTF-8")
            .args(["-S".as_ref(), self.socket.as_os_str()])
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until a text stands on the screen; returns the screen.
    fn shows(&self, text: &str) -> String {
        let begin = Instant::now();
        loop {
            let picture = self.run(&["capture-pane", "-p"]);
            if picture.contains(text) {
                return picture;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "{text:?} is not on the screen:\n{picture}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

/// What a newcomer types, up to the dialog of the first call; returns how long each step took.
fn until_the_dialog<'a>(world: &'a World, claude: &Path) -> (Terminal<'a>, Vec<(&'static str, Duration)>) {
    let mut took = Vec::new();
    let mut begin = Instant::now();
    let mut step = |what| {
        took.push((what, begin.elapsed()));
        begin = Instant::now();
    };
    let imported = world.run(&["import", "--yes"]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    step("pml import: six servers installed, started once and registered in three clients");
    let asked = world.run(&["ask", "memory:create_entities"]);
    assert!(asked.status.success(), "{}", stderr(&asked));
    let terminal = Terminal::start(world, claude);
    terminal.shows("❯");
    step("Claude Code starts with pml as its only server");
    terminal.run(&["send-keys", "-l", "Remember what pml does"]);
    terminal.run(&["send-keys", "Enter"]);
    terminal.shows("Call memory:create_entities?");
    step("the first call is asked about");
    (terminal, took)
}

#[test]
#[ignore = "a measurement; run it alone on a quiet machine"]
fn six_servers_in_three_clients_lead_to_an_approved_call() {
    let Some((world, claude, api)) = newcomer() else {
        return;
    };
    let (terminal, mut took) = until_the_dialog(&world, &claude);
    let begin = Instant::now();
    // The dialog is Claude Code's own: its field is opened, the first choice taken, then the form is sent.
    terminal.shows("→ to expand");
    for key in ["Right", "Enter"] {
        terminal.run(&["send-keys", key]);
        terminal.shows("Continue");
    }
    // What was chosen leads on to the button, which takes no key in its first moment.
    terminal.shows("❯ Accept");
    let asked = Instant::now();
    while terminal.run(&["capture-pane", "-p"]).contains("❯ Accept") {
        assert!(asked.elapsed() < PATIENCE, "the form is not sent");
        terminal.run(&["send-keys", "Enter"]);
        std::thread::sleep(Duration::from_millis(200));
    }
    terminal.shows("Remembered.");
    took.push(("approved, it runs and the model goes on", begin.elapsed()));
    for (what, time) in &took {
        println!("{:6.1} s  {what}", time.as_secs_f64());
    }
    let all: Duration = took.iter().map(|(_, time)| *time).sum();
    println!("{:6.1} s  in all, the person's own time apart", all.as_secs_f64());
    let results = api.tool_results();
    assert!(
        !results[0].is_error && results[0].text.contains("asks before anything runs"),
        "{results:?}"
    );
    for file in [".claude.json", ".cursor/mcp.json", ".codex/config.toml"] {
        let text = std::fs::read_to_string(world.home().join(file)).unwrap();
        assert!(
            text.contains("stdio") && !text.contains("uvx") && !text.contains("server-memory"),
            "{text}"
        );
    }
}

/// Draws a screen as a terminal shows it.
fn draw(screen: &str, name: &str) {
    let text = screen.trim_end().replace('&', "&amp;").replace('<', "&lt;");
    let page = format!(
        "<!doctype html><meta charset=utf-8><body style='margin:0;background:#1b1d23'>\
         <pre style='margin:24px;color:#d7dae0;font:16px/1.35 DejaVu Sans Mono,monospace'>{text}</pre>"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("screen.html");
    std::fs::write(&file, page).unwrap();
    let browser = Browser::start(Look::Dark);
    browser.goto(&format!("file://{}", file.display()));
    browser.wait_for_element("pre");
    keep(&browser, name);
}

/// Puts a picture of what a browser shows into the documentation.
fn keep(browser: &Browser, name: &str) {
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    std::fs::write(picture, browser.screenshot()).unwrap();
}

#[test]
#[ignore = "draws the pictures of the documentation; run it by hand"]
fn pictures_for_the_documentation() {
    let (world, claude, _api) = newcomer().unwrap();
    let (terminal, _) = until_the_dialog(&world, &claude);
    // All of it has to be drawn, not the first line alone.
    let dialog = terminal.shows("Esc to cancel");
    let inbox = format!("exec {} inbox", crate::support::pml().display());
    terminal.run(&["new-window", "-c", world.project().to_str().unwrap(), &inbox]);
    let screen = terminal.shows("memory:create_entities");
    let home = world.home().to_string_lossy().into_owned();
    for (text, name) in [(dialog, "newcomer-dialog.png"), (screen, "newcomer-terminal.png")] {
        draw(&text.replace(&home, "~"), name);
    }
    let (_server, browser) = opened(&world, Look::Dark);
    browser.wait_for_element(&card("pending"));
    let project = world.project().canonicalize().unwrap();
    for (path, shown) in [(project.display().to_string(), "~/project"), (home, "~")] {
        browser.eval(&format!(
            "const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
             while (texts.nextNode()) {{
                 texts.currentNode.data = texts.currentNode.data.replaceAll({path:?}, {shown:?});
             }}"
        ));
    }
    keep(&browser, "newcomer-page.png");
}
