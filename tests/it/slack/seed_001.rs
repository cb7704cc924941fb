//! A question of an agent in `pml run` that is answered in Slack once its agent is gone: put aside, or killed.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::serve::{connected, edited};
use crate::run::question;
use crate::run::scene::{PATIENCE, Scene, nothing_is_left_of};
use crate::serve::Served;
use crate::support::eventually;
use crate::support::fake_slack::{APP_TOKEN, BOT_TOKEN, FakeSlack, Filled};
use crate::support::messages_api::Turn;
use crate::support::world::state;

/// A scene whose person is asked in a Slack.
fn scene(slack: &FakeSlack, script: impl IntoIterator<Item = Turn>) -> Option<Scene> {
    let scene = Scene::scripted(script)?;
    scene.world.set("SLACK_APP_TOKEN", APP_TOKEN);
    scene.world.set("SLACK_BOT_TOKEN", BOT_TOKEN);
    scene.configure_user(&json!({ "channels": { "slack": {
        "appToken": "${SLACK_APP_TOKEN}", "botToken": "${SLACK_BOT_TOKEN}", "people": ["U1"],
        "apiUrl": slack.api_url(),
    } } }));
    Some(scene)
}

/// Waits for the only message, presses `pg` in it, and waits until the run is over; returns the message then.
fn pressed(scene: &Scene, slack: &FakeSlack) -> String {
    eventually("the question is in Slack", PATIENCE, || {
        slack.messages().len() == 1
    });
    let ts = slack.messages()[0]["ts"].as_str().unwrap().to_owned();
    assert!(slack.message(&ts).to_string().contains("Which database?"));
    slack.press("U1", &ts, "send", &Filled::nothing().options(0, &["0"]));
    eventually("the run is over", PATIENCE, || scene.is("done"));
    edited(slack, &ts)
}

/// The state of the only ask in the store.
fn row(scene: &Scene) -> Value {
    let store = rusqlite::Connection::open(state(&scene.world).join("workflows.db")).unwrap();
    let state = store.query_row("SELECT state FROM workflow", [], |row| row.get::<_, String>(0));
    serde_json::from_str(&state.unwrap()).unwrap()
}

fn assert_answered(scene: &Scene, message: &str) {
    assert!(message.contains("Answered in Slack: pg"), "{message}");
    let state = row(scene);
    assert_eq!(
        json!([state["state"], state["by"], state["answer"]["answers"]]),
        json!(["taken", "chat:slack:T1/U1", [{ "labels": ["pg"] }]])
    );
    assert_eq!(scene.pending(), Vec::<Value>::new());
    nothing_is_left_of(&scene.record().id);
}

#[test]
fn a_press_in_slack_resumes_a_run_that_was_put_aside_with_the_answer_as_its_result() {
    let slack = FakeSlack::start();
    let Some(scene) = scene(&slack, [question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let _served = Served::start(&scene.world);
    connected(&slack, 1);
    scene.run(&["--patience", "1s", "ask me"]).with(75);
    assert_eq!(scene.told_state()["name"], "parked");
    let record = scene.record();
    nothing_is_left_of(&record.id);
    let message = pressed(&scene, &slack);
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(results[0].tool_use_id, record.asks[0].call);
    assert!(
        !results[0].is_error && results[0].text.contains(r#""Which database?"="pg""#),
        "{results:#?}"
    );
    assert_answered(&scene, &message);
}

#[test]
fn a_press_in_slack_resumes_a_run_whose_agent_was_killed_with_the_answer_as_a_message() {
    let slack = FakeSlack::start();
    let Some(scene) = scene(&slack, [Turn::text("Ready.")]) else {
        return;
    };
    scene.api.then([question(), Turn::text("Postgres it is.")]);
    let _served = Served::start(&scene.world);
    connected(&slack, 1);
    scene.run(&["hello"]).with(0);
    let run = scene.start(&["--resume", &scene.id(), "ask me"]);
    scene.asking();
    scene.wait_until_written();
    scene.signal_agent(Signal::KILL);
    run.ended().with(75);
    assert_eq!(scene.told_state(), json!({ "name": "lost" }));
    let message = pressed(&scene, &slack);
    let said = scene.api.user_texts().join("\n");
    assert!(
        said.contains("You previously asked: Which database? The user answered: pg.\nContinue."),
        "{said}"
    );
    assert_answered(&scene, &message);
}
