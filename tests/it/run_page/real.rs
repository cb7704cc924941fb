//! The page of a run of the real Claude Code in Chromium, opened by `pml run --web`.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::chromium::shows;
use crate::browser::{Server, decide, real_browser};
use crate::run::scene::{PATIENCE, Running, Scene, agent_of, nothing_is_left_of};
use crate::run::{bash, question};
use crate::support::browser::{Browser, Look};
use crate::support::eventually;
use crate::support::messages_api::{Gate, Turn};

/// Pastes a small picture into the box.
const PASTE: &str = "const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 8;
    canvas.toBlob((blob) => {
        const data = new DataTransfer();
        data.items.add(new File([blob], 'shot.png', { type: 'image/png' }));
        document.querySelector('#text').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true }));
    });";

/// Starts a run with its page, and opens the page as the browser of the person would.
fn on_the_web(scene: &Scene, prompt: &str, look: Look) -> (Running, Browser, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let opener = scene.world.home().join("opener");
    let address = scene.world.home().join("opened");
    let script = format!(
        "#!/bin/sh\nprintf %s \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n",
        address.display()
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    scene.world.set("BROWSER", opener.to_str().unwrap());
    let run = scene.start(&["--web", prompt]);
    eventually("the browser is started", PATIENCE, || address.exists());
    let url = std::fs::read_to_string(address).unwrap();
    let browser = Browser::start(look);
    browser.goto(&url);
    browser.wait_for_element("[data-caught-up=true]");
    (run, browser, url)
}

#[test]
fn a_run_is_followed_permitted_answered_guided_and_interrupted_on_its_page() {
    if !real_browser() {
        return;
    }
    let (looks, answers, works) = (Gate::new(), Gate::new(), Gate::new());
    let touch = json!({ "command": "touch one", "description": "a command" });
    let script = [
        Turn::streamed("I look at it first.", 3)
            .and_wait(&looks)
            .and_tool("Bash", touch),
        question(),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    // What is said meanwhile is read with the result of the tool.
    let read = json!({ "file_path": scene.world.path("one") });
    scene.api.then([
        Turn::text("Postgres").and_wait(&answers).and_tool("Read", read),
        Turn::text("With tabs").and_wait(&works).and_text(", never said"),
    ]);
    let (run, browser, url) = on_the_web(&scene, "fix it", Look::Light);
    assert!(url.contains(&format!("/runs/{}?key=", scene.id())), "{url}");
    // What it says comes while it says it, and a reload in mid-turn keeps it.
    looks.wait_until_reached();
    shows(&browser, "I look at it first.");
    browser.reload();
    shows(&browser, "I look at it first.");
    looks.release();
    let pending = |code: &str| format!("#chat article[data-code={code}][data-state=pending]");
    let permission = scene.asking();
    let panel = pending(&permission);
    browser.wait_for_element(&panel);
    let asker = browser.text(&format!("{panel} .who"));
    assert!(asker.contains("Claude Code"), "{asker}");
    decide(&browser, &pending(&permission), "once");
    eventually("it ran", PATIENCE, || scene.world.path("one").exists());
    let mut choice = String::new();
    eventually("the question is asked", PATIENCE, || {
        let asks = scene.pending();
        let found = asks.iter().find(|ask| ask["code"] != *permission);
        found.is_some_and(|ask| {
            ask["code"].as_str().unwrap().clone_into(&mut choice);
            true
        })
    });
    browser.click(&format!("{} [data-label=pg]", pending(&choice)));
    browser.click(&format!("{} [data-send]", pending(&choice)));
    answers.wait_until_reached();
    shows(&browser, "Postgres");
    browser.reload();
    shows(&browser, "Postgres");
    shows(&browser, "pg · on the page");
    // Guidance with a picture, while the agent works.
    browser.wait_for_element("#reply[hidden]");
    browser.type_into("#text", "with tabs");
    browser.eval(PASTE);
    browser.wait_for_element("#images canvas");
    browser.type_into("#text", "\n");
    browser.wait_for_element("#chat .receipt[data-state=queued]");
    answers.release();
    works.wait_until_reached();
    shows(&browser, "With tabs");
    let requests = scene.api.requests();
    let sent = requests.last().unwrap();
    assert!(sent.user_texts().iter().any(|text| text.contains("with tabs")));
    assert!(sent.body().to_string().contains("image/png"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Nobody types in its terminal, so a turn that is broken off ends the run.
    browser.click("#interrupt");
    run.ended().with(1);
    works.release();
    nothing_is_left_of(&scene.record().id);
    assert_eq!(scene.api.requests().len(), 4);
}

#[test]
fn a_run_that_is_stopped_on_its_page_is_gone_and_the_running_server_goes_on() {
    if !real_browser() {
        return;
    }
    let gate = Gate::new();
    let Some(scene) = Scene::scripted([bash("true"), Turn::text("I begin").and_wait(&gate)]) else {
        return;
    };
    let scene = scene.permissions(&json!({ "allow": ["client:Bash"] }));
    let server = Server::start_on(&scene.world, 0);
    let (run, browser, url) = on_the_web(&scene, "fix it", Look::Phone);
    assert!(url.contains(&format!(":{}/", server.port())), "{url}");
    gate.wait_until_reached();
    shows(&browser, "I begin");
    let id = scene.record().id;
    assert!(agent_of(&id).is_some());
    std::fs::write(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/run-page-real-phone.png"),
        browser.screenshot(),
    )
    .unwrap();
    browser.click("#stop");
    browser.wait_for_element("#stop[data-sure=true]");
    browser.click("#stop");
    run.ended().with(1);
    gate.release();
    nothing_is_left_of(&id);
    browser.wait_for(
        "the run is over",
        "return document.querySelector('#over').innerText.includes('pml run --resume')",
    );
    let wide = browser.eval("return document.documentElement.scrollWidth > innerWidth");
    assert_eq!(wide, false, "nothing is wider than a telephone");
    browser.goto(&format!("http://127.0.0.1:{}/runs", server.port()));
    browser.wait_for_element(&format!("[data-run='{id}'][data-state=stopped]"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "draws a picture of the documentation; run it by hand"]
fn picture_of_a_run() {
    let cart = "pub fn total(lines: &[Line]) -> Money {\n    lines.iter().map(|line| line.amount().round()).sum()\n}\n";
    let Some(scene) = Scene::scripted([]) else { return };
    let scene = scene.permissions(&json!({ "allow": ["client:*"] }));
    scene.world.write("cart.rs", cart);
    let path = scene.world.path("cart.rs");
    let refunds = json!({ "questions": [{
        "question": "How should refunds be rounded?", "header": "Refunds", "multiSelect": false, "options": [
            { "label": "For each line", "description": "As before; two functions" },
            { "label": "Once at the end", "description": "One function; totals of old refunds differ by a cent" },
        ],
    }] });
    scene.api.then([
        Turn::text("I look at how the total is made.").and_tool("Read", json!({ "file_path": path })),
        Turn::text("It is rounded **for each line**, and belongs rounded once, at the end:\n\n```rust\nlines.iter().map(Line::amount).sum::<Money>().round()\n```").and_tool(
            "Edit",
            json!({
                "file_path": path,
                "old_string": "lines.iter().map(|line| line.amount().round()).sum()",
                "new_string": "lines.iter().map(Line::amount).sum::<Money>().round()",
            }),
        ),
        Turn::text("Refunds use the same function, so I need to know:").and_tool("AskUserQuestion", refunds),
    ]);
    let (run, browser, _) = on_the_web(&scene, "Fix the failing test in the cart", Look::Light);
    browser.wait_for_element("#chat article[data-state=pending]");
    browser.wait_for(
        "it stands still",
        "return document.getAnimations().every(one => one.playState !== 'running')",
    );
    let picture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/run-page.png");
    std::fs::write(picture, browser.screenshot()).unwrap();
    run.signal(rustix::process::Signal::TERM);
    run.ended().with(75);
}
