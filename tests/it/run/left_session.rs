//! A Claude Code that a person began themselves and that ended with an open question: its session goes on as a run, where the
//! user's own file says so.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::scene::{PATIENCE, Running, Scene, seldom};
use crate::serve::Served;
use crate::support::claude::claude_program;
use crate::support::messages_api::Turn;
use crate::support::{eventually, pml};

/// Lets Claude Code, begun without pml, ask and end; returns the code of its question and its session.
fn asked_and_ended(scene: &Scene) -> (String, String) {
    let servers = json!({ "mcpServers": { "pml": { "command": pml(), "args": ["stdio"] } } });
    scene.world.write("servers.json", &servers.to_string());
    let mut command = scene.world.program(&claude_program().unwrap());
    command.args([
        "-p",
        "choose a database",
        "--output-format",
        "json",
        "--mcp-config",
        "servers.json",
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__pml__ask_user",
    ]);
    let ended = Running::start(command).ended().with(0);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["result"], "I come back for it.");
    let pending = scene.pending();
    assert_eq!(pending.len(), 1, "{pending:#?}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&pending[0]["code"]), text(&result["session_id"]))
}

fn script() -> Vec<Turn> {
    let question =
        json!({ "question": "Which database?", "options": [{ "label": "pg" }, { "label": "sqlite" }] });
    vec![
        Turn::tool("mcp__pml__ask_user", question),
        Turn::text("I come back for it."),
        Turn::text("Postgres it is."),
    ]
}

#[test]
fn a_session_that_ended_with_a_question_goes_on_with_the_late_answer_where_its_person_wants_it() {
    let Some(scene) = Scene::scripted(script()) else {
        return;
    };
    let (code, session) = asked_and_ended(&scene);
    scene.configure_user(&json!({ "run": { "lateAnswers": "resume" } }));
    let _served = Served::start(&scene.world);
    scene.say(&["answer", &code, "pg"]);
    eventually("the session has gone on", PATIENCE, || scene.is("done"));
    let record = scene.record();
    assert_eq!(record.session.to_string(), session);
    assert_eq!(record.title, "Which database?");
    let mut told = scene.api.user_texts();
    told.retain(|text| text.contains("You previously asked"));
    assert_eq!(
        told,
        ["You previously asked: Which database? The user answered: pg.\nContinue."]
    );
    let last = scene.api.requests().last().unwrap().body().to_string();
    assert!(last.contains("choose a database"), "it remembers: {last}");
    assert_eq!(scene.pending(), Vec::<Value>::new());
}

#[test]
fn without_a_word_of_its_person_the_answer_is_kept() {
    let Some(scene) = Scene::scripted(script()) else {
        return;
    };
    let (code, _) = asked_and_ended(&scene);
    let _served = Served::start(&scene.world);
    scene.say(&["answer", &code, "pg"]);
    let mut client = scene.world.legacy();
    seldom("the kept answer is told", || {
        let status = client.call("pml_status", &json!({}));
        status["structuredContent"]["answered"][0]["code"] == *code
    });
    assert_eq!(scene.records(), []);
}
