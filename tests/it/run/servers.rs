//! What pml itself asks in a run about the servers behind it, and what other servers of the agent ask.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{PATIENCE, Scene};
use crate::support::eventually;
use crate::support::messages_api::Turn;

/// A world with one server behind pml that no person has approved.
fn scene(script: impl IntoIterator<Item = Turn>) -> Option<Scene> {
    let scene = Scene::scripted(script)?;
    let fake = scene.world.fake(&[]);
    scene.world.configure(&json!({ "mcpServers": { "fake": fake } }));
    Some(scene)
}

fn connect() -> Turn {
    Turn::tool("mcp__pml__fake__connect", json!({}))
}

/// Waits until pml asks about its server; returns the code.
fn asks_about_the_server(scene: &Scene) -> String {
    let mut found = None;
    eventually("pml asks about its server", PATIENCE, || {
        found = scene
            .pending()
            .into_iter()
            .find(|ask| ask["tool"].as_str().is_some_and(|tool| tool.starts_with("fake")));
        found.is_some()
    });
    found.unwrap()["code"].as_str().unwrap().to_owned()
}

#[test]
fn an_approval_of_pml_itself_is_an_ask_of_the_run() {
    let Some(scene) = scene([connect(), Turn::text("Connected.")]) else {
        return;
    };
    let run = scene.start(&["--json", "connect"]);
    let code = asks_about_the_server(&scene);
    eventually("the run asks", PATIENCE, || scene.is("asking"));
    let record = scene.record();
    assert_eq!(record.asks.len(), 1, "{record:#?}");
    scene.say(&["approve", &code]);
    let lines = run.ended().with(0).lines();
    let own = |event: &str| {
        let found = lines
            .iter()
            .filter(|line| line["type"] == "pml" && line["event"] == *event);
        found.cloned().collect::<Vec<Value>>()
    };
    let (asks, answered) = (own("ask"), own("answered"));
    assert_eq!((asks.len(), answered.len()), (1, 1), "{lines:#?}");
    assert_eq!(asks[0]["code"], *code);
    assert_eq!(asks[0]["id"], answered[0]["id"]);
    let results = scene.api.tool_results();
    assert!(results.len() == 1 && !results[0].is_error, "{results:#?}");
    assert!(scene.record().asks.is_empty());
}

#[test]
fn a_run_whose_server_nobody_approves_is_left_and_goes_on_with_a_late_approval() {
    let again = Turn::respond(|request| {
        let told = request.user_texts().join("\n");
        assert!(
            told.contains("You previously asked for permission to use"),
            "{told}"
        );
        connect()
    });
    let Some(scene) = scene([connect(), again, Turn::text("Connected.")]) else {
        return;
    };
    let run = scene.start(&["--patience", "2s", "connect"]);
    let code = asks_about_the_server(&scene);
    run.ended().with(75);
    assert_eq!(scene.told_state(), json!({ "name": "lost" }));
    assert_eq!(scene.code(), code, "it still stands in the inbox");
    scene.say(&["approve", &code]);
    scene.run(&["--resume", &scene.id()]).with(0);
    let results = scene.api.tool_results();
    let failed: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(failed, [true, false], "{results:#?}");
    assert_eq!(scene.pending(), Vec::<Value>::new());
}

#[test]
fn a_form_of_another_server_of_the_agent_is_filled_in_by_its_person() {
    let Some(scene) = Scene::scripted([Turn::tool("mcp__fake__ask", json!({})), Turn::text("Done.")]) else {
        return;
    };
    let record = scene.world.path("record");
    let fake = scene
        .world
        .fake(&["--modern", "--record", record.to_str().unwrap()]);
    let config = json!({ "mcpServers": { "fake": fake } });
    scene.world.write("servers.json", &config.to_string());
    let scene = scene.permissions(&json!({ "allow": ["client:mcp__fake__ask"] }));
    let run = scene.start(&["ask me", "--", "--mcp-config", "servers.json"]);
    let code = scene.asking();
    let asked = scene.pending()[0].to_string();
    assert!(asked.contains("fake: Who?"), "{asked}");
    scene.say(&["answer", &code, "--text", "Ada of the form"]);
    eventually("the server is answered", PATIENCE, || {
        std::fs::read_to_string(&record).is_ok_and(|lines| lines.contains("Ada of the form"))
    });
    run.ended().with(0);
    // What was filled in is for the server, and for no log.
    let events = scene.runs().directory(&scene.record().id).join("events");
    let events = std::fs::read_to_string(events).unwrap();
    let asked = events.lines().filter(|line| line.contains(r#""type":"control_"#));
    let asked: Vec<&str> = asked.collect();
    assert!(
        asked.iter().any(|line| line.contains("elicitation")),
        "{asked:#?}"
    );
    for line in asked {
        assert!(
            !line.contains("Ada of the form") && !line.contains("Who?"),
            "{line}"
        );
    }
    assert!(!events.contains("transcript_path"), "{events}");
}

#[test]
fn a_run_that_is_stopped_withdraws_what_pml_asks() {
    let Some(scene) = scene([connect()]) else {
        return;
    };
    let run = scene.start(&["connect"]);
    asks_about_the_server(&scene);
    eventually("the run asks", PATIENCE, || scene.is("asking"));
    run.signal(Signal::INT);
    run.ended().with(1);
    assert_eq!(
        scene.told_state(),
        json!({ "name": "ended", "outcome": "stopped" })
    );
    assert_eq!(scene.pending(), Vec::<Value>::new());
}

#[test]
fn an_answer_that_does_not_fit_a_form_is_asked_for_again() {
    let ask = Turn::tool("mcp__fake__ask", json!({ "for": "integer" }));
    let Some(scene) = Scene::scripted([ask, Turn::text("Done.")]) else {
        return;
    };
    let record = scene.world.path("record");
    let fake = scene
        .world
        .fake(&["--modern", "--record", record.to_str().unwrap()]);
    let config = json!({ "mcpServers": { "fake": fake } });
    scene.world.write("servers.json", &config.to_string());
    let scene = scene.permissions(&json!({ "allow": ["client:mcp__fake__ask"] }));
    let run = scene.start(&["ask me", "--", "--mcp-config", "servers.json"]);
    let first = scene.asking();
    scene.say(&["answer", &first, "--text", "about three"]);
    eventually("it is asked again", PATIENCE, || {
        let pending = scene.pending();
        pending.len() == 1 && pending[0]["code"] != first.as_str()
    });
    let again = scene.pending()[0].to_string();
    assert!(
        again.contains("Your last answer does not fit: it must be a whole number."),
        "{again}"
    );
    scene.say(&["answer", &scene.code(), "--text", "3"]);
    run.ended().with(0);
    let lines = std::fs::read_to_string(&record).unwrap();
    assert!(lines.contains(r#""action":"accept""#), "{lines}");
    assert!(!lines.contains("decline"), "{lines}");
}
