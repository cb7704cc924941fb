//! The page of the inbox in real Chromium: what a person sees, presses and reads, and what reaches the agent.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use pml::config::By;
use pml::protocol::Digest;
use pml::protocol::approval::ShownDependency;
use pml::protocol::question::{Choice, Question, Selection};
use pml::workflow::{
    Arguments, Ask, AskAttendance, Asker, AskingClient, NewWorkflow, Origin, Place, SuspendedCall,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::browser::{Browser, Look};
use crate::support::world::{Client, World, json_of, texts};
use crate::support::{eventually, have};

/// What a busy machine needs at most until a person's answer is at the agent.
const SOON: Duration = Duration::from_secs(20);

/// A running `pml serve`.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
}

impl Server {
    fn start(world: &World) -> Self {
        Self::start_on(world, 0)
    }

    pub(crate) fn start_on(world: &World, port: u16) -> Self {
        let mut process = world
            .command(&["serve", "--json", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self {
            process,
            url: said["url"].as_str().unwrap().to_owned(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        let url: url::Url = self.url.parse().unwrap();
        url.port().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn real_browser() -> bool {
    have(&["chromium", "chromedriver"])
}

/// A world whose questions hold their call until a person answers.
fn world() -> World {
    let world = World::new();
    world.configure(&json!({ "askUser": { "mode": "blocking", "timeoutSeconds": 900 } }));
    world
}

pub(crate) fn opened(world: &World, look: Look) -> (Server, Browser) {
    let server = Server::start(world);
    let browser = Browser::start(look);
    browser.goto(&server.url);
    browser.wait_for_element("[data-connected=true]");
    (server, browser)
}

/// A second browser, let in by a key of its own.
fn another_browser(world: &World) -> Browser {
    // Where no browser can be started, the address with its key is printed.
    world.set("BROWSER", "/no/such/browser");
    let fresh = world.run(&["serve", "--json", "--open"]);
    let browser = Browser::start(Look::Light);
    browser.goto(json_of(&fresh)["url"].as_str().unwrap());
    browser.wait_for_element("[data-connected=true]");
    browser
}

fn asked(client: &mut Client, question: &str, options: &[&str], several: bool) -> u64 {
    let options: Vec<Value> = options.iter().map(|label| json!({ "label": label })).collect();
    let mut arguments = json!({ "question": question, "multiSelect": several });
    if !options.is_empty() {
        arguments["options"] = json!(options);
    }
    client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": arguments }),
    )
}

fn result(client: &mut Client, id: u64) -> Value {
    client.answer(id)["result"].clone()
}

/// The one card in this state.
pub(crate) fn card(state: &str) -> String {
    format!("#waiting article[data-state={state}]")
}

#[test]
fn a_question_goes_through_every_state_of_its_panel() {
    if !real_browser() {
        return;
    }
    let world = world();
    let (_server, browser) = opened(&world, Look::Light);
    let mut agent = world.legacy();
    let id = asked(&mut agent, "Which database?", &["PostgreSQL", "SQLite"], false);
    browser.wait_for_element(&card("pending"));
    assert!(browser.text(&card("pending")).contains("Which database?"));
    let checked = browser.eval("return document.querySelectorAll('#waiting input:checked').length");
    assert_eq!(checked, 0, "nothing is preselected");
    browser.reload();
    browser.click(&format!("{} [data-label=SQLite]", card("pending")));
    browser.click(&format!("{} [data-send]", card("pending")));
    let answer = result(&mut agent, id);
    assert_eq!(texts(&answer), ["User selected: SQLite"]);
    browser.wait_for(
        "the panel is folded to what was answered",
        "return document.body.innerText.includes('You answered: SQLite')",
    );
    browser.reload();
    browser.wait_for(
        "so it is after a reload",
        "return document.body.innerText.includes('You answered: SQLite')",
    );
    let by = json_of(&world.run(&["log", "--json"]))["workflows"][0]["by"].clone();
    let by = by.as_str().unwrap();
    assert!(by.starts_with("web:") && by.contains("chrom"), "{by}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn several_choices_own_words_and_free_text_reach_the_agent_as_they_were_given() {
    if !real_browser() {
        return;
    }
    let world = world();
    let (_server, browser) = opened(&world, Look::Phone);
    let mut agent = world.legacy();
    let pending = card("pending");

    let id = asked(&mut agent, "Which checks?", &["fmt", "clippy", "tests"], true);
    browser.click(&format!("{pending} [data-label=fmt]"));
    browser.click(&format!("{pending} [data-label=tests]"));
    browser.type_into(&format!("{pending} [data-other]"), "and a bench, please");
    browser.click(&format!("{pending} [data-send]"));
    assert_eq!(
        texts(&result(&mut agent, id)),
        ["User selected: fmt, tests, and a bench, please"]
    );

    let id = asked(&mut agent, "Which way?", &["left", "right"], false);
    browser.type_into(&format!("{pending} [data-other]"), "straight on 直進");
    browser.click(&format!("{pending} [data-send]"));
    assert_eq!(
        texts(&result(&mut agent, id)),
        ["User answered: straight on 直進"]
    );

    let id = asked(&mut agent, "What is it called?", &[], false);
    browser.type_into(&format!("{pending} textarea"), "<b>Bobby</b>");
    browser.reload();
    browser.wait_for(
        "what was typed survives a reload",
        "return document.querySelector('#waiting textarea')?.value === '<b>Bobby</b>'",
    );
    browser.click(&format!("{pending} [data-send]"));
    assert_eq!(texts(&result(&mut agent, id)), ["User answered: <b>Bobby</b>"]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn what_is_unanswered_is_sent_only_by_a_button_that_says_so() {
    if !real_browser() {
        return;
    }
    let world = world();
    let (_server, browser) = opened(&world, Look::Light);
    let mut agent = world.legacy();
    let question = |text: &str| {
        json!({
            "question": text, "header": "Way", "multiSelect": false,
            "options": [{ "label": "left", "description": "l" }, { "label": "right", "description": "r" }],
        })
    };
    let questions = json!({ "questions": [question("Which way?"), question("And back?")] });
    let call = json!({ "name": "ask_user_questions", "arguments": questions });
    let id = agent.send("tools/call", &call);
    let pending = card("pending");
    browser.wait_for_element(&pending);
    browser.click(&format!("{pending} [data-send]"));
    browser.wait_for_element(&format!("{pending} .message:not([hidden])"));
    let offers = "return document.querySelectorAll('#waiting [data-more]').length";
    assert_eq!(browser.eval(offers), 0, "silence is no answer");
    browser.click(&format!("{pending} [data-question='0'] [data-label=right]"));
    browser.click(&format!("{pending} [data-send]"));
    browser.wait_for_element(&format!("{pending} [data-more]"));
    let told = browser.text(&format!("{pending} .message"));
    assert!(told.contains("1 of 2 unanswered"), "{told}");
    browser.click(&format!("{pending} [data-more]"));
    let answer = result(&mut agent, id);
    assert_eq!(
        texts(&answer),
        ["Which way?\nUser selected: right\n\nAnd back?\nUser left this question unanswered."]
    );
    browser.wait_for(
        "the page says what was left",
        "return document.body.innerText.includes('You answered: right; (left unanswered)')",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_approval_shows_the_command_and_each_button_does_what_it_says() {
    if !real_browser() {
        return;
    }
    let world = World::with_fake(&json!({}), &[]);
    let (_server, browser) = opened(&world, Look::Dark);
    let mut agent = world.legacy();
    let asked = agent.call("fake__echo", &json!({ "text": "hi" }));
    let pending = card("pending");
    browser.wait_for_element(&pending);
    let shown = browser.text(&pending);
    let command = asked["approval_context"]["dependency"]["install"]
        .as_str()
        .unwrap();
    let folded = |text: &str| text.split_whitespace().collect::<String>();
    assert!(folded(&shown).contains(&folded(command)), "{shown}\n{command}");
    assert!(
        shown.contains("fake:echo") && shown.contains(".pml.json"),
        "{shown}"
    );
    decide(&browser, &pending, "always");
    let continued = agent.proceed("fake__echo", &asked, &json!({}));
    assert_eq!(continued.get("isError"), None, "{continued}");
    assert!(world.read(".pml.json").contains("fake:echo"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_projects_file_is_trusted_on_the_page_with_all_that_it_wants_in_sight() {
    if !real_browser() {
        return;
    }
    let world = World::with_fake(&json!({ "allow": ["fake", "shell:*"] }), &[]);
    let user = world.home().join(".config/pml/pml.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, r#"{ "projectTrust": "strict" }"#).unwrap();
    let (_server, browser) = opened(&world, Look::Light);
    let mut agent = world.legacy();
    let suspended = agent.call("fake__echo", &json!({ "a": 1 }));
    let pending = card("pending");
    browser.wait_for_element(&pending);
    let shown = browser.text(&pending);
    for wanted in [
        "Trust ",
        "runs without a question: `shell:*`",
        "declares `fake`: ",
        "this file exactly as it is, from now on",
    ] {
        assert!(shown.contains(wanted), "{wanted:?} is not in {shown}");
    }
    let offered = format!(
        "return [...document.querySelectorAll('{pending} [data-decision]')].map((one) => one.dataset.decision)"
    );
    assert_eq!(browser.eval(&offered), json!(["once", "abort"]));
    decide(&browser, &pending, "once");
    let id = suspended["structuredContent"]["approval_context"]["workflow_id"].clone();
    let ran = agent.request(
        "tools/call",
        &json!({ "name": "pml_continue", "arguments": { "workflow_id": id } }),
    );
    assert!(texts(&ran["result"])[0].contains(r#"{"a":1}"#), "{ran}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Presses a button until the card is decided: a press right after the card appeared is not an answer, only a later one is.
pub(crate) fn decide(browser: &Browser, pending: &str, decision: &str) {
    eventually("the decision is recorded", SOON, || {
        browser.try_click(&format!("{pending} [data-decision={decision}]"));
        let state = format!("return document.querySelector({}) === null", json!(pending));
        browser.eval(&state) == json!(true)
    });
}

#[test]
fn a_refusal_brings_its_reason_to_the_agent() {
    if !real_browser() {
        return;
    }
    let world = world();
    let (_server, browser) = opened(&world, Look::Light);
    let mut agent = world.legacy();
    let id = asked(&mut agent, "May I?", &["yes"], false);
    let pending = card("pending");
    browser.click(&format!("{pending} [data-refuse]"));
    browser.type_into(&format!("{pending} [data-reason]"), "not on a Friday");
    decide(&browser, &pending, "abort");
    let refused = result(&mut agent, id);
    assert!(texts(&refused).join(" ").contains("not on a Friday"), "{refused}");
}

#[test]
fn what_is_answered_in_a_terminal_says_so_on_every_open_page() {
    if !real_browser() {
        return;
    }
    let world = world();
    let (server, first) = opened(&world, Look::Light);
    let second = another_browser(&world);
    let mut agent = world.legacy();
    let id = asked(&mut agent, "Which database?", &["PostgreSQL", "SQLite"], false);
    for browser in [&first, &second] {
        browser.wait_for_element(&card("pending"));
    }
    let code = first.eval("return document.querySelector('#waiting article').dataset.code");
    let answered = world.run(&["answer", code.as_str().unwrap(), "PostgreSQL"]);
    assert!(answered.status.success(), "{answered:?}");
    assert_eq!(texts(&result(&mut agent, id)), ["User selected: PostgreSQL"]);
    for browser in [&first, &second] {
        browser.wait_for(
            "the page says what was answered elsewhere",
            "return /PostgreSQL/.test(document.body.innerText) && !document.querySelector('#waiting [data-state=pending]')",
        );
    }
    drop(server);
}

#[test]
fn of_two_browsers_the_first_counts_and_the_second_is_told() {
    if !real_browser() {
        return;
    }
    let world = world();
    let (_server, first) = opened(&world, Look::Light);
    let second = another_browser(&world);
    let mut agent = world.legacy();
    let id = asked(&mut agent, "Which way?", &["left", "right"], false);
    let pending = card("pending");
    for (browser, label) in [(&first, "left"), (&second, "right")] {
        browser.click(&format!("{pending} [data-label={label}]"));
    }
    first.click(&format!("{pending} [data-send]"));
    assert_eq!(texts(&result(&mut agent, id)), ["User selected: left"]);
    second.wait_for(
        "the second browser says who was first",
        "return /left/.test(document.body.innerText) && !document.querySelector('#waiting [data-state=pending]')",
    );
}

#[test]
fn a_page_survives_the_restart_of_its_server() {
    if !real_browser() {
        return;
    }
    let world = world();
    let (server, browser) = opened(&world, Look::Light);
    let mut agent = world.legacy();
    let id = asked(&mut agent, "Before?", &["yes"], false);
    browser.wait_for_element(&card("pending"));
    let port = server.port();
    drop(server);
    browser.wait_for_element("[data-connected=false]");
    let server = Server::start_on(&world, port);
    // The key of the page was made anew with the server.
    browser.goto(&server.url);
    browser.click(&format!("{} [data-label=yes]", card("pending")));
    browser.click(&format!("{} [data-send]", card("pending")));
    assert_eq!(texts(&result(&mut agent, id)), ["User selected: yes"]);
}

#[test]
fn two_hundred_asks_and_eight_tabs_stay_usable() {
    if !real_browser() {
        return;
    }
    let world = World::new();
    let (_server, browser) = opened(&world, Look::Light);
    // A conversation may have a hundred asks that wait.
    let mut agents = [world.legacy(), world.legacy(), world.legacy()];
    for index in 0..200 {
        let agent = &mut agents[index % 2];
        agent.call("ask_user", &json!({ "question": format!("Question {index}?") }));
    }
    let count = "return document.querySelectorAll('#waiting [data-state=pending]').length === 200";
    browser.wait_for("all cards are there", count);
    for _ in 1..8 {
        let url = browser.eval("return location.origin + '/'");
        browser.new_tab();
        browser.goto(url.as_str().unwrap());
        browser.wait_for("all cards are there in another tab", count);
    }
    // The tab that holds the stream is closed; another takes its place and misses nothing.
    browser.turn_to_tab(0);
    browser.close_tab();
    agents[2].call("ask_user", &json!({ "question": "One more?" }));
    for tab in 0..7 {
        browser.turn_to_tab(tab);
        browser.wait_for(
            "a new ask is in every tab",
            "return document.body.innerText.includes('One more?')",
        );
    }
    browser.type_into("#waiting [data-state=pending] textarea", "the first");
    browser.click("#waiting [data-state=pending] [data-send]");
    for tab in 0..7 {
        browser.turn_to_tab(tab);
        browser.wait_for(
            "an answer is in every tab",
            "return document.querySelectorAll('#waiting [data-state=pending]').length === 200",
        );
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Fetches the script that finds what keeps people from using a page.
pub(crate) fn axe() -> String {
    let tools = tempfile::tempdir().unwrap();
    let installed = std::process::Command::new("npm")
        .args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "axe-core@4.10.3",
        ])
        .current_dir(tools.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    std::fs::read_to_string(tools.path().join("node_modules/axe-core/axe.min.js")).unwrap()
}

/// Names the serious obstacles of the page that is open.
pub(crate) fn obstacles(browser: &Browser, axe: &str) -> Value {
    browser.eval(axe);
    browser.eval_async(
        "const done = arguments[arguments.length - 1];
         axe.run().then(found => done(found.violations
             .filter(({ impact }) => ['serious', 'critical'].includes(impact))
             .map(({ id, nodes }) => id + ': ' + nodes.map(node => node.html).join(' | '))));",
    )
}

#[test]
fn a_reader_of_the_screen_meets_no_serious_obstacle() {
    if !real_browser() || !have(&["npm"]) {
        return;
    }
    let axe = axe();
    let world = World::with_fake(&json!({}), &[]);
    for look in [Look::Light, Look::Dark, Look::Phone] {
        let (_server, browser) = opened(&world, look);
        let mut agent = world.legacy();
        agent.call("fake__echo", &json!({}));
        agent.call(
            "ask_user",
            &json!({ "question": "Which?", "options": [{ "label": "A" }, { "label": "B", "description": "b" }] }),
        );
        browser.wait_for_element(&card("pending"));
        // What is still fading in has less contrast than it will have.
        browser.wait_for("both cards stand still", "return document.querySelectorAll('#waiting article').length >= 2 && document.getAnimations().every(one => one.playState !== 'running')");
        assert_eq!(obstacles(&browser, &axe), json!([]), "{look:?}");
    }
}

#[test]
#[ignore = "draws the pictures of the documentation; run it by hand"]
fn pictures_for_the_documentation() {
    let world = World::new();
    put_examples(&world);
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for (look, name) in [
        (Look::Light, "inbox-light.png"),
        (Look::Dark, "inbox-dark.png"),
        (Look::Phone, "inbox-phone.png"),
    ] {
        let (_server, browser) = opened(&world, look);
        browser.wait_for_element(&card("pending"));
        std::fs::write(directory.join(name), browser.screenshot()).unwrap();
    }
}

/// Puts an install and a question into the store, as an agent in a project of a person would.
fn put_examples(world: &World) {
    let install = Ask::Install {
        dependency: ShownDependency {
            name: "filesystem".to_owned(),
            version: Some("2026.8.31".to_owned()),
            install: "npx @modelcontextprotocol/server-filesystem@2026.8.31 .".to_owned(),
            integrity: Some("sha512-kKaFkyAh6oipvc9XUWyDw1vRjdF3kT1ZqOeZ0vVv6l5a==".to_owned()),
            scripts: false,
            surroundings: Box::default(),
            installation: Box::default(),
            remote: None,
        },
    };
    let option = |label: &str, description: &str| Choice {
        label: label.to_owned(),
        description: Some(description.to_owned()),
    };
    let question = Ask::Questions {
        questions: vec![Question {
            question: "Which database should the migration target?".to_owned(),
            header: Some("Database".to_owned()),
            options: vec![
                option("PostgreSQL 16", "What production runs; needs the new driver"),
                option("SQLite", "Keeps the tests fast, no server"),
            ],
            selection: Selection::One,
        }],
    };
    let place = Place::File(world.home().join(".local/state/pml/workflows.db"));
    let mut store = place.open().unwrap();
    let process = pml::proxy::process_name(std::process::id());
    for (ask, tool) in [(install, "filesystem:read_file"), (question, "pml:ask_user")] {
        let new = NewWorkflow {
            ask,
            call: SuspendedCall {
                tool: tool.parse().unwrap(),
                arguments: Arguments::Absent,
                launch: Digest::of(["example"]),
            },
            time_to_live: Duration::from_mins(5),
            project: "/home/me/shop".into(),
            origin: Origin {
                config: "/home/me/shop/.pml.json".into(),
                by: By::Client,
                client: AskingClient {
                    name: Some("Claude Code 2.1".to_owned()),
                    process,
                    ..AskingClient::default()
                },
                asker: Asker::random(),
            },
            attended: AskAttendance::ByItsCall,
            twin: 0,
            channel: None,
        };
        store.create(new, pml::proxy::now()).unwrap();
    }
}
