//! The page in real Chromium: the conversation, the panels in it, guidance and its receipts, across reloads.

use std::time::Duration;

use pml::config::By;
use pml::host::{KeptAsk, KeptAskKind, RunInput, RunOutcome, RunState};
use pml::protocol::Digest;
use pml::protocol::question::{Choice, Question, Selection};
use pml::workflow::{
    Arguments, Ask, AskAttendance, Asker, AskingClient, NewWorkflow, Origin, Place, SuspendedCall, WorkflowId,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Run;
use crate::browser::{Server, opened, real_browser};
use crate::support::browser::{Browser, Look};
use crate::support::eventually;
use crate::support::world::{World, state};

const SOON: Duration = Duration::from_mins(1);

fn said(text: &str) -> Value {
    json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } })
}

fn piece(text: &str) -> Value {
    json!({ "type": "pml", "event": "text", "text": text })
}

fn called(id: &str, name: &str, input: &Value) -> Value {
    let call = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    json!({ "type": "assistant", "message": { "content": [call] } })
}

fn returned(id: &str, text: &str, failed: bool) -> Value {
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed });
    json!({ "type": "user", "message": { "content": [result] } })
}

fn message(uuid: &str, text: &str) -> Value {
    json!({ "type": "pml", "event": "message", "uuid": uuid, "text": text, "images": 0, "priority": "next" })
}

fn receipt(uuid: &str, state: &str) -> Value {
    json!({ "type": "command_lifecycle", "command_uuid": uuid, "state": state })
}

/// Puts a question of the run into the store, as its host does.
fn ask(world: &World, run: &Run, question: &str, options: &[(&str, &str)]) -> WorkflowId {
    let options = options.iter().map(|(label, description)| Choice {
        label: (*label).to_owned(),
        description: Some((*description).to_owned()),
    });
    let question = Question {
        question: question.to_owned(),
        header: None,
        options: options.collect(),
        selection: Selection::One,
    };
    let new = NewWorkflow {
        ask: Ask::Questions {
            questions: vec![question],
        },
        call: SuspendedCall {
            tool: "client:AskUserQuestion".parse().unwrap(),
            arguments: Arguments::Absent,
            launch: Digest::of(["run"]),
        },
        time_to_live: Duration::from_mins(30),
        project: "/home/me/shop".into(),
        origin: Origin {
            config: "/home/me/shop/.pml.json".into(),
            by: By::Client,
            client: AskingClient {
                name: Some("Claude Code".to_owned()),
                run: Some(run.id().to_owned()),
                process: pml::proxy::process_name(std::process::id()),
                ..AskingClient::default()
            },
            asker: Asker::random(),
        },
        attended: AskAttendance::ByItsCall,
        twin: 0,
        channel: None,
    };
    let place = Place::File(state(world).join("workflows.db"));
    let mut store = place.open().unwrap();
    store
        .create(new, pml::proxy::now())
        .unwrap()
        .suspension
        .workflow()
        .id
}

fn asked(id: WorkflowId, call: &str) -> Value {
    json!({ "type": "pml", "event": "ask", "id": id, "code": "abcde", "call": call })
}

/// Opens the page of a run in a browser that is let in.
fn open_run(world: &World, run: &Run, look: Look) -> (Server, Browser) {
    let (server, browser) = opened(world, look);
    goto(&server, &browser, &format!("runs/{}", run.id()));
    browser.wait_for_element("[data-caught-up=true]");
    (server, browser)
}

fn goto(server: &Server, browser: &Browser, path: &str) {
    browser.goto(&format!("http://127.0.0.1:{}/{path}", server.port()));
}

pub(super) fn shows(browser: &Browser, text: &str) {
    let script = format!(
        "return document.querySelector('#chat').innerText.includes({})",
        json!(text)
    );
    browser.wait_for(&format!("the page shows `{text}`"), &script);
}

/// Writes the beginning of a conversation into the log, up to what the model says at this moment.
fn work(run: &mut Run) {
    let begin = pml::proxy::now().millis() - 90_000;
    let lines = [
        (
            0,
            message(
                "m1",
                "Fix the failing test in the cart, and tell me what was wrong.",
            ),
        ),
        (100, receipt("m1", "started")),
        (900, said("I'll run the tests first.")),
        (
            1_000,
            called("t1", "Bash", &json!({ "command": "cargo test --quiet cart" })),
        ),
        (
            9_400,
            returned("t1", "test cart::total_is_rounded_once ... FAILED", true),
        ),
        (
            10_000,
            called("t2", "Read", &json!({ "file_path": "/home/me/shop/src/cart.rs" })),
        ),
        (10_200, returned("t2", "pub fn total(&self) -> Money {", false)),
        (
            14_000,
            said(
                "The total is rounded **for each line** and once more at the end. `Money::round` belongs at the end only:\n\n```rust\nlet total: Money = lines.iter().map(Line::amount).sum();\ntotal.round()\n```",
            ),
        ),
        (
            15_000,
            called(
                "t3",
                "Edit",
                &json!({ "file_path": "/home/me/shop/src/cart.rs", "old_string": "line.amount().round()", "new_string": "line.amount()" }),
            ),
        ),
        (15_300, returned("t3", "The file was changed.", false)),
    ];
    for (after, line) in lines {
        run.log_at(begin + after, &line);
    }
}

#[test]
fn a_conversation_streams_and_a_reload_in_mid_turn_keeps_everything() {
    if !real_browser() {
        return;
    }
    let world = World::new();
    let mut run = Run::begin(&world, "Fix the failing test");
    work(&mut run);
    let (_server, browser) = open_run(&world, &run, Look::Light);
    let tools = "return [...document.querySelectorAll('#chat .tool')].map(one => one.dataset.state + ' ' + one.innerText.replace(/\\s+/g, ' ').trim())";
    let expected = json!([
        "failed ✕ Bash cargo test --quiet cart failed 8.4 s",
        "done ✓ Read src/cart.rs done 0.2 s",
        "done ✓ Edit src/cart.rs done 0.3 s"
    ]);
    browser.wait_for(
        "all tools are there",
        "return document.querySelectorAll('#chat .tool').length === 3",
    );
    assert_eq!(browser.eval(tools), expected);
    assert_eq!(browser.text("#chat .code-block").lines().count(), 2);
    let facts = browser.text("#status");
    for fact in ["running", "shop", "claude-opus-5", "$0.042", " min "] {
        assert!(facts.contains(fact), "{fact} in {facts}");
    }
    // What the model says, as it comes.
    run.log(&piece("Now the whole "));
    run.log(&piece("suite <img src=x onerror=alert(1)>"));
    shows(&browser, "Now the whole suite <img src=x onerror=alert(1)>");
    run.log(&called("t4", "Bash", &json!({ "command": "cargo test" })));
    browser.wait_for_element("[data-tool=t4][data-state=running]");
    browser.reload();
    shows(&browser, "Now the whole suite <img src=x onerror=alert(1)>");
    browser.wait_for_element("[data-tool=t4][data-state=running]");
    assert_eq!(browser.eval(tools).as_array().unwrap().len(), 4);
    // Pieces are replaced by the whole.
    run.log(&piece("All gre"));
    shows(&browser, "All gre");
    run.log(&said("All green."));
    run.log(&returned("t4", "ok", false));
    browser.wait_for_element("[data-tool=t4][data-state=done]");
    shows(&browser, "All green.");
    assert_eq!(
        browser.eval("return document.querySelectorAll('#chat .agent').length"),
        4
    );
    assert_eq!(
        browser.eval("return document.querySelectorAll('#chat img').length"),
        0
    );
    // What a tool was given and what it returned is folded.
    browser.click("[data-tool=t3] summary");
    assert_eq!(
        browser.text("[data-tool=t3] .diff"),
        "- line.amount().round()\n+ line.amount()"
    );
    run.log(&json!({ "type": "result", "subtype": "success", "result": "All green.", "num_turns": 5, "duration_ms": 95_000, "total_cost_usd": 0.0512 }));
    shows(&browser, "Turn done · 5 steps · 1 min 35 s · $0.051");
    run.stand(RunState::Ended {
        outcome: RunOutcome::Done,
    });
    browser.wait_for(
        "the run is over",
        "return document.querySelector('#over').innerText.includes('pml run --resume')",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_question_is_answered_in_the_conversation_and_stays_there_as_a_summary() {
    if !real_browser() {
        return;
    }
    let world = World::new();
    let mut run = Run::begin(&world, "Fix the failing test");
    work(&mut run);
    run.log(&called("t5", "AskUserQuestion", &json!({ "questions": [] })));
    let way = ask(
        &world,
        &run,
        "Which way?",
        &[("Left", "by the river"), ("Right", "by the road")],
    );
    run.log(&asked(way, "t5"));
    run.stand(RunState::Asking);
    let (server, browser) = open_run(&world, &run, Look::Light);
    let pending = format!("#chat [data-ask='{way}'] article[data-state=pending]");
    browser.wait_for_element(&pending);
    browser.click(&format!("{pending} [data-label=Right]"));
    browser.reload();
    browser.wait_for_element(&format!("{pending} [data-label=Right]:checked"));
    assert_eq!(
        browser.eval("return document.querySelector('[data-tool=t5]').hidden"),
        true
    );
    browser.click(&format!("{pending} [data-send]"));
    browser.wait_for_element(&format!("#chat [data-ask='{way}'] article[data-state=answered]"));
    shows(&browser, "Right · on the page");
    // The next one is answered with what is written in the box.
    let name = ask(&world, &run, "What is it called?", &[]);
    run.log(&asked(name, "t6"));
    browser.wait_for_element(&format!("#chat [data-ask='{name}'] article[data-state=pending]"));
    browser.wait_for(
        "it is announced",
        "return document.querySelector('#announcer').textContent.includes('What is it called?')",
    );
    browser.wait_for_element("#reply:not([hidden])");
    browser.type_into("#text", "Bobby\n");
    browser.wait_for_element(&format!("#chat [data-ask='{name}'] article[data-state=answered]"));
    shows(&browser, "Bobby · on the page");
    assert_eq!(run.inputs(), [], "it was no message");
    browser.reload();
    shows(&browser, "Bobby · on the page");
    shows(&browser, "Right · on the page");
    // From the inbox to the run and back.
    let third = ask(&world, &run, "And now?", &[]);
    browser.click("nav a[href='/']");
    browser.click(&format!("#waiting article[data-id='{third}'] a.run"));
    // Without a word of the log it stands where it belongs by its time.
    browser.wait_for_element(&format!("#chat > article[data-id='{third}'][data-state=pending]"));
    browser.click("nav a[href='/runs']");
    browser.wait_for_element(&format!("[data-run='{}'][data-state=asking]", run.id()));
    let row = browser.text(".run-row");
    for fact in ["Fix the failing test", "shop", "$0.042", run.id()] {
        assert!(row.contains(fact), "{fact} in {row}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    drop(server);
}

#[test]
fn guidance_with_a_picture_gets_its_receipts_and_the_run_is_interrupted_and_stopped() {
    if !real_browser() {
        return;
    }
    let world = World::new();
    let mut run = Run::begin(&world, "Fix the failing test");
    work(&mut run);
    let (_server, browser) = open_run(&world, &run, Look::Phone);
    browser.type_into("#text", "like this\u{e008}\u{e007}\u{e008}please");
    browser.eval(
        "const canvas = document.createElement('canvas');
         canvas.width = canvas.height = 8;
         canvas.toBlob((blob) => {
             const data = new DataTransfer();
             data.items.add(new File([blob], 'shot.png', { type: 'image/png' }));
             document.querySelector('#text').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true }));
         });",
    );
    browser.wait_for_element("#images canvas");
    browser.eval("document.querySelector('#priority').value = 'later'");
    browser.type_into("#text", "\n");
    let mut taken = Vec::new();
    eventually("the message is an input of the run", SOON, || {
        taken.extend(run.inputs());
        !taken.is_empty()
    });
    let [RunInput::Message(guidance)] = taken.as_slice() else {
        panic!("{taken:?}");
    };
    assert_eq!(guidance.text, "like this\nplease");
    assert_eq!(
        (guidance.images.len(), guidance.images[0].media_type.as_str()),
        (1, "image/png")
    );
    assert_eq!(json!(guidance.priority), "later");
    browser.wait_for(
        "the box is empty",
        "return document.querySelector('#text').value === '' && !document.querySelector('#images canvas')",
    );
    let bubble = format!("[data-message='{}']", guidance.uuid);
    run.log(&json!({ "type": "pml", "event": "message", "uuid": guidance.uuid, "text": guidance.text, "images": 1, "priority": "later" }));
    for (state, shown) in [
        ("queued", "queued"),
        ("started", "started"),
        ("completed", "done"),
    ] {
        run.log(&receipt(&guidance.uuid, state));
        browser.wait_for_element(&format!("{bubble} .receipt[data-state={state}]"));
        assert!(browser.text(&bubble).contains(shown), "{shown}");
    }
    browser.reload();
    browser.wait_for_element(&format!("{bubble} .receipt[data-state=completed]"));
    assert!(browser.text(&bubble).contains("1 image · after the turn"));
    browser.click("#interrupt");
    browser.click("#stop");
    browser.wait_for_element("#stop[data-sure=true]");
    browser.click("#stop");
    let mut taken = Vec::new();
    eventually("both are inputs of the run", SOON, || {
        taken.extend(run.inputs());
        taken.len() == 2
    });
    assert_eq!(taken, [RunInput::Interrupt, RunInput::Stop]);
    let wide = browser.eval("return document.documentElement.scrollWidth > innerWidth");
    assert_eq!(wide, false, "nothing is wider than a telephone");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A run in mid-work that asks something.
fn example(world: &World) -> Run {
    let mut run = Run::begin(world, "Fix the failing test in the cart");
    work(&mut run);
    run.log(&message("m2", "Please keep the old rounding for refunds."));
    run.log(&receipt("m2", "queued"));
    run.log(&said("Refunds use the same function, so I need to know:"));
    let options = [
        ("Round refunds per line", "As before; two functions"),
        (
            "Round once everywhere",
            "One function, totals of old refunds differ by a cent",
        ),
    ];
    let id = ask(world, &run, "How should refunds be rounded?", &options);
    run.log(&asked(id, "t5"));
    run.stand(RunState::Asking);
    run
}

#[test]
fn a_key_opens_the_page_of_a_run_and_a_run_that_is_not_there_is_told() {
    if !real_browser() {
        return;
    }
    let world = World::new();
    let run = Run::begin(&world, "Fix the failing test");
    let server = Server::start_on(&world, 0);
    let browser = Browser::start(Look::Light);
    let key = server.url.split_once('?').unwrap().1;
    goto(&server, &browser, &format!("runs/{}?{key}", run.id()));
    browser.wait_for_element("[data-caught-up=true]");
    let address = browser.eval("return location.pathname + location.search");
    assert_eq!(address, format!("/runs/{}", run.id()));
    goto(&server, &browser, "runs/zzzzz");
    browser.wait_for_element("#missing:not([hidden])");
    browser.wait_for_element("#compose[hidden]");
}

#[test]
#[ignore = "draws pictures to look at; run it by hand"]
fn pictures_of_a_run() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (look, name) in [
        (Look::Light, "target/run-page.png"),
        (Look::Dark, "target/run-page-dark.png"),
        (Look::Phone, "target/run-page-phone.png"),
    ] {
        let world = World::new();
        let run = example(&world);
        let (server, browser) = open_run(&world, &run, look);
        browser.wait_for_element("#chat article[data-state=pending]");
        browser.wait_for(
            "it stands still",
            "return document.getAnimations().every(one => one.playState !== 'running')",
        );
        std::fs::write(directory.join(name), browser.screenshot()).unwrap();
        goto(&server, &browser, "runs");
        browser.wait_for_element(".run-row");
        std::fs::write(
            directory.join("target").join(format!("runs-{look:?}.png")),
            browser.screenshot(),
        )
        .unwrap();
    }
}

#[test]
fn an_answer_whose_run_does_not_go_on_says_why_on_its_card_and_on_the_pages_of_the_run() {
    if !real_browser() {
        return;
    }
    let world = World::new();
    world.set("PML_CLAUDE", "/nowhere/claude");
    let mut run = Run::begin(&world, "Choose a database");
    let id = ask(
        &world,
        &run,
        "Which database?",
        &[("pg", "a server"), ("sqlite", "a file")],
    );
    run.record.asks = vec![KeptAsk {
        workflow: id,
        call: "t1".to_owned(),
        kind: KeptAskKind::Questions,
    }];
    run.stand(RunState::Lost);
    // No process drives it.
    run.lock = None;
    let (server, browser) = opened(&world, Look::Light);
    browser.click("[data-label=pg]");
    browser.click("[data-send]");
    let why = "Claude Code is not there";
    let shown = |css: &str| {
        browser.wait_for_element(css);
        let text = browser.text(css);
        assert!(text.contains(why) && text.contains("/nowhere/claude"), "{text}");
    };
    shown(".card.done .trouble");
    goto(&server, &browser, "runs");
    shown(".run-row .trouble");
    goto(&server, &browser, &format!("runs/{}", run.id()));
    shown(".top > .trouble:not([hidden])");
}
