//! An upgrade of a real server, walked through on every surface: shown and refused in a dialog, accepted on the page, in a
//! terminal, on the screen and in a chat, rolled back.

use serde_json::{Value, json};

use crate::browser::{card, decide, opened, real_browser};
use crate::inbox::screen::Tmux;
use crate::serve::Served;
use crate::shown_contents::asked_with_contents;
use crate::slack::serve::{connected, edited, person_in_slack};
use crate::support::browser::{Browser, Look};
use crate::support::fake_slack::{FakeSlack, Filled};
use crate::support::world::{World, asks, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually, have, sdk};

const OLD: &str = "2026.1.26";
const NEW: &str = "2026.8.31";

fn declare(world: &World, version: &str) {
    let package = format!("@modelcontextprotocol/server-everything@{version}");
    world.configure(&json!({
        "permissions": { "allow": ["every"] },
        "mcpServers": { "every": { "command": "npx", "args": ["-y", package] } },
    }));
}

fn echo(client: &mut crate::support::world::Client) -> Value {
    client.call("every__echo", &json!({ "message": "hi" }))
}

fn installed(world: &World, version: &str) -> bool {
    let store = world.home().join(".local/share/pml/store/npm");
    let entries = std::fs::read_dir(store).into_iter().flatten().flatten();
    { entries }.any(|entry| entry.file_name().to_string_lossy().contains(version))
}

/// Keeps what the page looks like, for a person who wants to see it.
fn keep_picture(name: &str, browser: &Browser) {
    if let Some(directory) = std::env::var_os("PML_PICTURES") {
        std::fs::write(std::path::Path::new(&directory).join(name), browser.screenshot()).unwrap();
    }
}

/// A user who has the old version and used it.
fn accepted() -> World {
    let world = World::new();
    let cache = world.home().join(".cache/pml");
    std::fs::create_dir_all(&cache).unwrap();
    std::os::unix::fs::symlink(sdk::kept("npm"), cache.join("npm")).unwrap();
    declare(&world, OLD);
    assert_runs(&world);
    world
}

fn assert_runs(world: &World) {
    let ran = echo(&mut world.legacy());
    assert!(!asks(&ran) && texts(&ran).concat().contains("hi"), "{ran}");
}

#[test]
fn an_upgrade_of_a_real_server_is_shown_refused_accepted_and_rolled_back() {
    if !have(&["node", "npm"]) || !real_browser() {
        return;
    }
    let world = accepted();

    // A dialog: the difference, and a no.
    declare(&world, NEW);
    let mut client = world.client();
    client.initialize_with_forms();
    let call = client.send(
        "tools/call",
        &json!({ "name": "every__echo", "arguments": { "message": "hi" } }),
    );
    let form = client.notified("elicitation/create");
    let message = form["params"]["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("every@{NEW} is not what you accepted.")),
        "{message}"
    );
    assert!(
        message.contains(&format!("- version {OLD}; + version {NEW}")),
        "{message}"
    );
    assert!(
        message.lines().all(|line| line.chars().count() <= 74),
        "{message}"
    );
    client.reply(
        &form,
        &json!({ "action": "accept", "content": { "decision": "abort" } }),
    );
    let refused = client.answer(call);
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(!installed(&world, NEW), "what was refused is not fetched");
    client.close();

    // The command shows it too, with every package, and changes nothing where nobody agrees.
    let diff = world.run(&["diff", "every"]);
    assert_eq!(diff.status.code(), Some(1), "{diff:?}");
    let text = stdout(&diff);
    assert!(
        text.contains(&format!("- version {OLD}")) && text.contains("packages more: "),
        "{text}"
    );
    assert!(
        text.contains(&format!("@modelcontextprotocol/server-everything@{NEW}")),
        "{text}"
    );
    assert!(
        stderr(&diff).contains("published  ") && stderr(&diff).contains("scripts    none"),
        "{diff:?}"
    );

    // The page: accepted as it is shown.
    let (_server, browser) = opened(&world, Look::Light);
    let mut client = world.legacy();
    asked_with_contents(&world, || echo(&mut client));
    let pending = card("pending");
    browser.wait_for_element(&pending);
    let shown = browser.text(&pending);
    for wanted in [
        "which has changed?",
        &format!("- version {OLD}"),
        &format!("+ version {NEW}"),
        "packages more: ",
        &format!("@modelcontextprotocol/server-everything@{NEW}"),
        "exactly this, from now on",
    ] {
        assert!(shown.contains(wanted), "{wanted:?} is not in {shown}");
    }
    keep_picture("integrity-package.png", &browser);
    decide(&browser, &pending, "once");

    // It runs now, and what its tools say has changed as well: another question, answered in a terminal.
    let asked = echo(&mut client);
    assert!(asks(&asked), "{asked}");
    let change = &asked["approval_context"]["dependency"]["change"];
    assert_eq!(change["part"], "tools", "{asked}");
    assert!(installed(&world, NEW));
    browser.wait_for_element(&pending);
    keep_picture("integrity-tools.png", &browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    world.approve_oldest();
    let ran = echo(&mut client);
    assert!(!asks(&ran) && texts(&ran).concat().contains("hi"), "{ran}");

    // Back: what was accepted once runs without a question, with the tools it had.
    declare(&world, OLD);
    let ran = echo(&mut world.legacy());
    assert!(!asks(&ran) && texts(&ran).concat().contains("hi"), "{ran}");
}

#[test]
fn an_upgrade_of_a_real_server_by_the_command_is_shown_accepted_and_taken_back() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = accepted();
    let before = world.read(".pml.json");
    let refused = world.run(&["upgrade", "every", "--to", NEW]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let shown = stderr(&refused);
    for wanted in [
        format!("- version {OLD}"),
        format!("+ version {NEW}"),
        "there is no terminal to ask in".to_owned(),
    ] {
        assert!(shown.contains(&wanted), "{wanted:?} is not in {shown}");
    }
    assert_eq!(world.read(".pml.json"), before);
    assert!(!installed(&world, NEW), "what nobody agreed to is not fetched");

    let done = world.run(&["upgrade", "--yes", "every", "--to", NEW]);
    assert!(done.status.success(), "{done:?}");
    assert!(
        stderr(&done).contains("its tools, which are known now:"),
        "{done:?}"
    );
    assert_eq!(world.read(".pml.json"), before.replace(OLD, NEW));
    assert_runs(&world);
    let back = world.run(&["upgrade", "--yes", "every", "--to", OLD]);
    assert!(back.status.success(), "{back:?}");
    assert_eq!(world.read(".pml.json"), before);
    assert_runs(&world);

    // Without a version: the newest there is.
    let newest = world.run(&["upgrade", "--yes", "every"]);
    assert!(newest.status.success(), "{newest:?}");
    assert_ne!(world.read(".pml.json"), before);
    assert_runs(&world);
    let accepted = world.recorded("accept");
    assert!(accepted.len() >= 3, "{accepted:?}");
    for command in [&["verify"][..], &["history", "verify"]] {
        let verified = world.run(command);
        assert!(verified.status.success(), "{command:?}: {verified:?}");
    }
}

#[test]
fn an_upgrade_of_a_real_server_is_accepted_on_the_screen_of_the_inbox() {
    if !have(&["node", "npm", "tmux"]) {
        return;
    }
    let world = accepted();
    declare(&world, NEW);
    // Its lock is made before, so that one question is enough.
    assert_eq!(world.run(&["diff", "every"]).status.code(), Some(1));
    let mut client = world.legacy();
    let asked = echo(&mut client);
    assert!(asks(&asked), "{asked}");
    {
        let tmux = Tmux::start(&world);
        tmux.shows("what changed", &format!("+ version {NEW}"));
        tmux.shows("what is installed with it", "packages more:");
        tmux.key_until("c", "Enter says yes.");
        assert!(!installed(&world, NEW), "one key is no answer");
        tmux.key("Enter");
        tmux.shows("what became of it", "ANSWERED by cli");
    }
    let asked = echo(&mut client);
    let change = &asked["approval_context"]["dependency"]["change"];
    assert_eq!(change["part"], "tools", "{asked}");
    {
        let tmux = Tmux::start(&world);
        tmux.key_until("c", "Enter says yes.");
        tmux.key("Enter");
        tmux.shows("what became of it", "ANSWERED by cli");
    }
    let ran = echo(&mut client);
    assert!(!asks(&ran) && texts(&ran).concat().contains("hi"), "{ran}");
    let by: Vec<Value> = world
        .recorded("answer")
        .iter()
        .map(|answer| answer["by"].clone())
        .collect();
    assert!(
        by.iter().all(|by| by.as_str().unwrap().starts_with("cli:pts/")),
        "{by:?}"
    );
}

/// The message of Slack that stands in this place, once it was sent.
fn in_slack(slack: &FakeSlack, place: usize) -> (String, String) {
    eventually("the question is in Slack", DEADLINE, || {
        slack.messages().len() == place
    });
    let ts = slack.messages()[place - 1]["ts"].as_str().unwrap().to_owned();
    let text = slack.message(&ts).to_string();
    (ts, text)
}

#[test]
fn an_upgrade_of_a_real_server_is_refused_and_accepted_in_a_chat() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = accepted();
    let slack = FakeSlack::start();
    person_in_slack(&world, &slack, &json!({ "details": true }));
    let _served = Served::start(&world);
    connected(&slack, 1);
    declare(&world, NEW);
    // Its lock is made before, so that one question is enough.
    assert_eq!(world.run(&["diff", "every"]).status.code(), Some(1));

    let mut client = world.legacy();
    assert!(asks(&echo(&mut client)));
    let (ts, shown) = in_slack(&slack, 1);
    for wanted in [
        format!("Accept every@{NEW}, which has changed?"),
        format!("- version {OLD}\\n+ version {NEW}\\n"),
        "packages more: ".to_owned(),
        format!("@modelcontextprotocol/server-everything@{NEW}"),
        "Accept: exactly this, from now on".to_owned(),
    ] {
        assert!(shown.contains(&wanted), "{wanted:?} is not in {shown}");
    }
    slack.press("U1", &ts, "abort", &Filled::nothing());
    assert!(edited(&slack, &ts).contains("Refused in Slack"));
    assert!(!installed(&world, NEW), "what was refused is not fetched");

    assert!(asks(&echo(&mut client)));
    let (ts, _) = in_slack(&slack, 2);
    slack.press("U1", &ts, "once", &Filled::nothing());
    edited(&slack, &ts);
    let asked = echo(&mut client);
    let change = &asked["approval_context"]["dependency"]["change"];
    assert_eq!(change["part"], "tools", "{asked}");
    let (ts, shown) = in_slack(&slack, 3);
    assert!(shown.contains("! tool "), "{shown}");
    slack.press("U1", &ts, "once", &Filled::nothing());
    edited(&slack, &ts);
    let ran = echo(&mut client);
    assert!(!asks(&ran) && texts(&ran).concat().contains("hi"), "{ran}");
    assert_eq!(slack.broken_limits(), Vec::<String>::new());
    let answers = world.recorded("answer");
    let by = answers.iter().map(|answer| answer["by"].as_str().unwrap());
    assert_eq!(by.collect::<Vec<_>>(), ["chat:slack:T1/U1"; 3]);

    declare(&world, OLD);
    assert_runs(&world);
}

#[test]
fn no_word_of_a_model_accepts_an_upgrade_of_a_real_server() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = accepted();
    declare(&world, NEW);
    let mut client = world.legacy();
    for decision in [
        json!({ "approved": true }),
        json!({ "approved": true, "always": true }),
        json!({ "approved": true, "session": true }),
    ] {
        let asked = echo(&mut client);
        assert!(asks(&asked), "{asked}");
        let mut continued = decision.clone();
        continued["workflow_id"] = asked["approval_context"]["workflow_id"].clone();
        let answers = [
            client.proceed("every__echo", &asked, &decision),
            client.call("pml_continue", &json!({ "continue_workflow": continued })),
            client.call("pml_continue", &continued),
        ];
        for answer in answers {
            assert!(is_held(&answer), "{decision}: {answer}");
            assert!(!texts(&answer).concat().contains("Echo"), "{decision}: {answer}");
        }
        assert!(!installed(&world, NEW), "{decision}");
    }
    let declared = world.read(".pml.json");
    assert!(
        declared.contains(NEW) && !declared.contains("every:echo"),
        "{declared}"
    );
    // What it cannot do for its person, they can.
    asked_with_contents(&world, || echo(&mut client));
    eventually("a question that knew less is gone", DEADLINE, || {
        json_of(&world.run(&["pending", "--json"]))["pending"]
            .as_array()
            .unwrap()
            .len()
            == 1
    });
    world.approve_oldest();
    let asked = echo(&mut client);
    assert_eq!(
        asked["approval_context"]["dependency"]["change"]["part"], "tools",
        "{asked}"
    );
    let tools = client.proceed("every__echo", &asked, &json!({ "approved": true }));
    assert!(is_held(&tools), "{tools}");
}

/// Tells whether a call did not run: it asks, waits for a person, or is an error.
fn is_held(answer: &Value) -> bool {
    let waits = answer["structuredContent"]["status"] == "waiting_for_person";
    asks(answer) || waits || answer["isError"] == true
}
