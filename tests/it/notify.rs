//! The notifier of the user's file: when it is run, with what words, and that it costs nothing else.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::serve::Served;
use crate::support::world::{Client, World, asks, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually, have, pml};

/// What the notifier does besides: nothing.
const NOTHING: &str = "";

/// It goes on only when it is let go.
const HELD: &str = r#"while [ ! -e "$HOME/go" ]; do sleep 0.02; done"#;

/// One run of the notifier.
#[derive(Debug, Clone)]
struct Run {
    arguments: Vec<String>,
    /// Its environment, its directory and what it could read.
    surroundings: String,
}

/// Makes `notify-me` the notifier of a world: it writes down how it was run, then does `besides`.
fn install(world: &World, besides: &str) {
    let folder = world.home().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(world.home().join("runs")).unwrap();
    let script = format!(
        r#"#!/bin/sh
{{
    for argument in "$@"; do printf '%s\n' "$argument"; done
    echo ---
    env
    echo "directory $(pwd)"
    if read -r line; then echo "stdin $line"; else echo "no stdin"; fi
    echo said
    echo said >&2
}} > "$HOME/runs/.$$"
mv "$HOME/runs/.$$" "$HOME/runs/$(date +%s%N)"
echo "on stdout"; echo "on stderr" >&2
{besides}
"#
    );
    plant(&folder, &script);
    let path = std::env::var("PATH").unwrap();
    world.set("PATH", &format!("{}:{path}", folder.display()));
    configure(
        world,
        &json!({ "notify": ["notify-me", "--title={title}", "{body}"] }),
    );
}

fn plant(folder: &Path, script: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let program = folder.join("notify-me");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Writes the user's own file.
fn configure(world: &World, config: &Value) {
    let folder = world.home().join(".config/pml");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("pml.json"), config.to_string()).unwrap();
}

/// How often the notifier was run so far, in order.
fn runs(world: &World) -> Vec<Run> {
    let entries = std::fs::read_dir(world.home().join("runs")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.file_name().unwrap().to_str().unwrap().starts_with('.'));
    files.sort();
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let (arguments, surroundings) = text.split_once("---\n").unwrap();
        Run {
            arguments: arguments.lines().map(str::to_owned).collect(),
            surroundings: surroundings.to_owned(),
        }
    };
    files.iter().map(read).collect()
}

/// Waits until the notifier was run so often, and returns the newest run.
fn ran(world: &World, times: usize) -> Run {
    eventually(&format!("run {times} of the notifier"), DEADLINE, || {
        runs(world).len() >= times
    });
    let mut runs = runs(world);
    assert_eq!(runs.len(), times, "{runs:#?}");
    runs.remove(times - 1)
}

/// Asks a question that no call waits for; returns its code.
fn ask(client: &mut Client, question: &str) -> String {
    let asked = client.call("ask_user", &json!({ "question": question }));
    let code = asked["structuredContent"]["code"].as_str();
    code.unwrap_or_else(|| panic!("{asked}")).to_owned()
}

/// Asks in a conversation that ends: with it everything is told that is to be told.
fn ask_and_leave(world: &World, question: &str) {
    let mut client = world.legacy();
    ask(&mut client, question);
    client.close();
}

fn told(title: &str, body: &str) -> [String; 2] {
    [format!("--title={title}"), body.to_owned()]
}

#[test]
fn a_question_that_nothing_shows_calls_the_person_with_its_code_and_project() {
    let world = World::new();
    install(&world, NOTHING);
    // The project's own program of that name stands first on the PATH.
    plant(
        &world.path(".venv/bin"),
        "#!/bin/sh\n: > \"$HOME/of-the-project\"\n",
    );
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        world.path(".venv/bin").display(),
        world.home().join("bin").display()
    );
    world.set("PATH", &path);
    for (name, value) in [
        ("DISPLAY", ":7"),
        ("GITHUB_TOKEN", "canary-variable"),
        ("PYTHONPATH", "canary-path"),
    ] {
        world.set(name, value);
    }
    let mut client = world.legacy();
    let code = ask(&mut client, "Which way?");
    let run = ran(&world, 1);
    assert_eq!(
        run.arguments,
        told("pml: a question waits", &format!("{code} in project: Which way?"))
    );
    let surroundings = &run.surroundings;
    for expected in ["DISPLAY=:7\n", "directory /\n", "no stdin\n"] {
        assert!(surroundings.contains(expected), "{surroundings}");
    }
    assert!(!surroundings.contains("canary"), "{surroundings}");
    assert!(!world.home().join("of-the-project").exists());
    // What it writes is not on the wire, which still works.
    assert!(client.tools().contains(&"ask_user".to_owned()));
    client.close();
    world.assert_no_survivor("after the client closed");
}

#[test]
fn asks_that_come_together_are_told_together_and_one_notifier_runs_at_a_time() {
    let world = World::new();
    install(&world, HELD);
    let mut client = world.legacy();
    ask(&mut client, "First?");
    ran(&world, 1);
    let codes = ["One?", "Two?", "Three?", "Four?"].map(|question| ask(&mut client, question));
    // The second is answered before anybody could be called.
    let answered = world.run(&["answer", &codes[1], "--text", "yes"]);
    assert!(answered.status.success(), "{}", stderr(&answered));
    assert_eq!(runs(&world).len(), 1, "the first one still runs");
    std::fs::write(world.home().join("go"), "").unwrap();
    let [one, _, three, four] = codes;
    assert_eq!(
        ran(&world, 2).arguments,
        told(
            "pml: 3 asks wait",
            &format!("{one} in project: One? · {three} in project: Three? · {four} in project: Four?")
        )
    );
}

#[test]
fn what_was_answered_meanwhile_calls_nobody() {
    let world = World::new();
    install(&world, HELD);
    let mut client = world.legacy();
    ask(&mut client, "First?");
    ran(&world, 1);
    let code = ask(&mut client, "Answered at once?");
    assert!(world.run(&["answer", &code, "--text", "yes"]).status.success());
    std::fs::write(world.home().join("go"), "").unwrap();
    // With the conversation everything is told that is to be told.
    client.close();
    ask_and_leave(&world, "Last?");
    let runs = runs(&world);
    let bodies: Vec<&str> = runs.iter().map(|run| run.arguments[1].as_str()).collect();
    assert!(bodies.iter().all(|body| !body.contains("Answered")), "{bodies:?}");
}

#[test]
fn an_agent_that_asks_and_leaves_at_once_has_called_the_person() {
    let world = World::new();
    install(&world, NOTHING);
    // On a busy machine one of them may have to end before the notifier was started.
    eventually("one that left was told", DEADLINE, || {
        ask_and_leave(&world, "Are you there?");
        !runs(&world).is_empty()
    });
    assert!(runs(&world)[0].arguments[1].ends_with("Are you there?"));
}

/// A `pml inbox --json` that shows the asks, and is killed when it is dropped.
struct Watcher {
    process: Child,
    _lines: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(world: &World) -> Self {
        let mut process = world
            .command(&["inbox", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("snapshot"), "{line}");
        Self {
            process,
            _lines: lines,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A `pml inbox` in a terminal, which goes away with it.
struct Screen(Child);

impl Screen {
    fn start(world: &World) -> Self {
        let line = format!("exec {} inbox", pml().display());
        let mut terminal = world
            .program(Path::new("script"))
            .args(["-qec", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // What is drawn comes after the surface was told to others.
        let drawn = terminal.stdout.as_mut().unwrap().read(&mut [0; 1]);
        assert!(drawn.unwrap() > 0);
        Self(terminal)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn while_an_inbox_follows_the_asks_nobody_is_called_until_it_is_killed() {
    let world = World::new();
    install(&world, NOTHING);
    let mut before = world.legacy();
    ask(&mut before, "Before?");
    ran(&world, 1);
    let (first, second) = (Watcher::start(&world), Watcher::start(&world));
    ask_and_leave(&world, "Shown twice?");
    drop(first);
    ask_and_leave(&world, "Shown once?");
    assert_eq!(runs(&world).len(), 1, "{:#?}", runs(&world));
    drop(second);
    ask(&mut before, "After?");
    assert!(ran(&world, 2).arguments[1].ends_with("After?"));
}

#[test]
fn while_a_screen_shows_the_asks_nobody_is_called() {
    if !have(&["script"]) {
        return;
    }
    let world = World::new();
    install(&world, NOTHING);
    let screen = Screen::start(&world);
    ask_and_leave(&world, "On the screen?");
    assert!(runs(&world).is_empty());
    drop(screen);
    eventually("the person is called again", DEADLINE, || {
        ask_and_leave(&world, "Nowhere?");
        !runs(&world).is_empty()
    });
    assert!(runs(&world)[0].arguments[1].ends_with("Nowhere?"));
}

#[test]
fn a_page_counts_while_it_is_connected_and_its_server_alone_does_not() {
    let world = World::new();
    install(&world, NOTHING);
    let mut served = Served::start(&world);
    let mut client = world.legacy();
    ask(&mut client, "Nobody has a page open?");
    ran(&world, 1);
    let page = served.script("GET", "/api/events").events().opened();
    ask_and_leave(&world, "On the page?");
    assert_eq!(runs(&world).len(), 1, "{:#?}", runs(&world));
    served.end(rustix::process::Signal::KILL);
    ask(&mut client, "Killed?");
    assert!(ran(&world, 2).arguments[1].ends_with("Killed?"));
    drop(page);
    // A page that is closed makes no difference any more either.
    let served = Served::start(&world);
    let page = served.script("GET", "/api/events").events().opened();
    drop(page);
    eventually("the closed page is forgotten", DEADLINE, || {
        ask_and_leave(&world, "Closed?");
        runs(&world).len() > 2
    });
}

#[test]
fn what_a_program_asks_over_http_calls_the_person_too() {
    let world = World::new();
    install(&world, NOTHING);
    let served = Served::start(&world);
    let made = world.run(&["serve", "token", "--pid", &std::process::id().to_string()]);
    let token = stdout(&made).trim().to_owned();
    let question = json!({ "question": "By HTTP?", "streamToken": token });
    let relayed = served
        .request("POST", "/claude/relay-question?p=1")
        .json(&question)
        .send();
    assert_eq!(relayed.status, 200, "{relayed:?}");
    let run = ran(&world, 1);
    assert!(run.arguments[1].ends_with(" in project: By HTTP?"), "{run:?}");
}

#[test]
fn no_argument_of_a_call_no_command_and_no_secret_reaches_the_notifier() {
    let world = World::with_fake(&json!({ "ask": ["*", "fake:echo"] }), &["--canary-option"]);
    install(&world, NOTHING);
    let mut client = world.legacy();
    let secrets = json!({ "token": "canary-token", "text": "canary text", "canary-name": [1, 2] });
    let asked = client.call("fake__closed", &secrets);
    assert!(asks(&asked), "{asked}");
    let run = ran(&world, 1);
    assert!(run.arguments[1].ends_with(" in project: Run fake?"), "{run:?}");
    client.proceed("fake__closed", &asked, &json!({ "approved": true }));
    let asked = client.call("fake__echo", &secrets);
    assert_eq!(asked["approval_context"]["type"], "tool_permission", "{asked}");
    let run = ran(&world, 2);
    assert_eq!(run.arguments[0], "--title=pml: an approval waits");
    assert!(
        run.arguments[1].ends_with(" in project: Call fake:echo?"),
        "{run:?}"
    );
    let prompt = json!({ "tool_name": "Bash", "input": { "command": "echo canary" } });
    client.send(
        "tools/call",
        &json!({ "name": "approval_prompt", "arguments": prompt }),
    );
    let run = ran(&world, 3);
    assert!(run.arguments[1].ends_with(" in project: Allow Bash?"), "{run:?}");
    for run in runs(&world) {
        let all = format!("{run:?}").to_lowercase();
        assert!(!all.contains("canary"), "{all}");
    }
}

#[test]
fn a_hostile_question_is_one_plain_line() {
    let world = World::new();
    install(&world, NOTHING);
    let mut client = world.legacy();
    let code = ask(
        &mut client,
        "\u{1b}]0;x\u{7}\u{202e}evil\u{200b} \"; $(touch x) `id` & '<b>' \\\r--urgent\nsecond line ghp_x",
    );
    let run = ran(&world, 1);
    let body = "∖u001b]0;x∖u0007∖u202eevil∖u200b ”; ＄(touch x) ’id’ ＆ ’‹b›’ ∖∖∖r--urgent";
    assert_eq!(
        run.arguments,
        told("pml: a question waits", &format!("{code} in project: {body}"))
    );
}

#[test]
fn a_notifier_of_the_projects_file_is_an_error_that_says_where_it_belongs() {
    let world = World::with_fake(&json!({ "allow": ["*"] }), &[]);
    install(&world, NOTHING);
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    config["notify"] = json!(["/bin/sh", "-c", "touch ran"]);
    world.configure(&config);
    let refused = world.run(&["rules"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(
        said.contains(".pml.json") && said.contains("`notify` belongs into the user's file"),
        "{said}"
    );
    assert!(said.contains("hint: ") && said.contains("pml/pml.json"), "{said}");
    let mut client = world.legacy();
    let refused = client.call("fake__echo", &json!({}));
    let said = texts(&refused).join("\n");
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(said.contains("`notify` belongs into the user's file"), "{said}");
    client.close();
    assert!(runs(&world).is_empty() && !world.path("ran").exists());
}

/// A client whose log is kept, and its file.
fn logged(world: &World) -> (Client, PathBuf) {
    let log = world.home().join("log");
    let mut command: Command = world.program(Path::new("/bin/sh"));
    command
        .args(["-c", "exec \"$0\" stdio 2> \"$1\""])
        .args([pml(), &log])
        .env("PML_LOG", "warn");
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    (client, log)
}

fn warnings(log: &Path) -> usize {
    let log = std::fs::read_to_string(log).unwrap();
    log.matches("the notifier of your configuration failed").count()
}

#[test]
fn a_notifier_that_fails_is_logged_once_and_costs_no_call_anything() {
    let world = World::new();
    install(&world, "exit 3");
    let (mut client, log) = logged(&world);
    ask(&mut client, "First?");
    eventually("it is logged", DEADLINE, || warnings(&log) == 1);
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(
        logged.contains("notify-me") && logged.contains("exited with code 3"),
        "{logged}"
    );
    ask(&mut client, "Second?");
    ran(&world, 2);
    // One that is not there is no worse.
    configure(&world, &json!({ "notify": ["no-such-notifier", "{body}"] }));
    ask(&mut client, "Third?");
    client.close();
    assert_eq!(warnings(&log), 1);
}

#[test]
fn a_notifier_that_hangs_is_ended_with_everything_it_started() {
    let world = World::new();
    let hangs = r#"trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > "$HOME/left-the-group"; while :; do sleep 1; done' &
sh -c 'trap "" TERM; echo $$ > "$HOME/in-the-group"; while :; do sleep 1; done' &
echo $$ > "$HOME/itself"
while :; do sleep 1; done"#;
    install(&world, hangs);
    let (mut client, log) = logged(&world);
    ask(&mut client, "First?");
    ran(&world, 1);
    let pid = |name: &str| -> Option<u32> {
        let written = std::fs::read_to_string(world.home().join(name)).ok()?;
        written.trim().parse().ok()
    };
    let names = ["itself", "in-the-group", "left-the-group"];
    eventually("all of them run", DEADLINE, || {
        names.iter().all(|name| pid(name).is_some())
    });
    let pids = names.map(|name| pid(name).unwrap());
    let runs = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    assert!(pids.iter().all(runs));
    // Nothing waits for it: calls are answered meanwhile.
    ask(&mut client, "Second?");
    // Ten seconds, and what a busy machine takes besides.
    eventually("it is ended", Duration::from_secs(40), || !pids.iter().any(runs));
    eventually("it is logged", DEADLINE, || warnings(&log) == 1);
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("stopped after 10 seconds"), "{logged}");
    // The next one is run, and dies with pml.
    ran(&world, 2);
    let next = || pid("itself").filter(|pid| !pids.contains(pid));
    eventually("the next one runs", DEADLINE, || next().is_some());
    let next = next().unwrap();
    client.signal(rustix::process::Signal::KILL);
    eventually("it dies with pml", DEADLINE, || !runs(&next));
}
