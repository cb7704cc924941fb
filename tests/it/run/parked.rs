//! A run whose person does not answer: its agent is put aside, and goes on with the answer as the result of its call.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{Ended, Scene, nothing_is_left_of};
use super::{CHOSEN, asked, bash, question};
use crate::support::messages_api::Turn;

/// A run that was parked with one question.
fn parked(script: impl IntoIterator<Item = Turn>) -> Option<(Scene, Ended)> {
    let scene = Scene::scripted(script)?;
    let ended = scene.run(&["--patience", "1s", "ask me"]).with(75);
    Some((scene, ended))
}

/// Checks that the only run is parked and that nothing of it runs; returns its call.
fn is_parked(scene: &Scene) -> String {
    let state = scene.told_state();
    assert_eq!(state["name"], "parked", "{state}");
    let record = scene.record();
    nothing_is_left_of(&record.id);
    let call = state["call"].as_str().unwrap();
    let asks: Vec<_> = record.asks.iter().map(|ask| ask.call.as_str()).collect();
    assert_eq!(asks, [call]);
    call.to_owned()
}

/// Checks that the model got one result, of this call.
fn one_result(scene: &Scene, call: &str, text: &str) {
    let results = scene.api.tool_results();
    let results: Vec<_> = results
        .iter()
        .map(|result| (result.tool_use_id.as_str(), result.text.as_str()))
        .collect();
    assert_eq!(results, [(call, text)]);
}

#[test]
fn an_answer_to_a_parked_run_is_the_result_of_its_call() {
    let Some((scene, ended)) = parked([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let id = scene.id();
    let told = format!("{}{}", ended.stdout, ended.stderr);
    for word in [
        "Which database?",
        "= parked",
        "pml inbox",
        &format!("pml run --resume {id}"),
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let call = is_parked(&scene);
    assert_eq!(scene.api.requests().len(), 1);
    // Without an answer there is nothing to resume with.
    let code = scene.code();
    let early = scene.run(&["--resume", &id]).with(75);
    assert!(
        early.stderr.contains("waits for an answer") && early.stderr.contains("pml inbox"),
        "{}",
        early.stderr
    );
    scene.say(&["answer", &code, "pg"]);
    let resumed = scene.run(&["--resume", &id]).with(0);
    assert!(resumed.stdout.contains("Postgres it is."), "{}", resumed.stdout);
    one_result(&scene, &call, CHOSEN);
    assert_eq!(scene.told_state(), json!({ "name": "ended", "outcome": "done" }));
    let said = scene.api.user_texts();
    assert!(
        !said.iter().any(|text| text.contains("You previously asked")),
        "{said:?}"
    );
    // It is over: nothing is delivered twice.
    let again = scene.run(&["--resume", &id]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert_eq!(scene.api.requests().len(), 2);
}

#[test]
fn a_parked_question_that_is_refused_tells_the_model_why() {
    let Some((scene, _)) = parked([question(), Turn::text("I decide.")]) else {
        return;
    };
    let call = is_parked(&scene);
    scene.say(&["refuse", &scene.code(), "--reason", "decide yourself"]);
    scene.run(&["--resume", &scene.id()]).with(0);
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(results[0].tool_use_id, call);
    assert!(
        results[0].is_error
            && results[0]
                .text
                .contains("The person would not answer: decide yourself"),
        "{results:#?}"
    );
}

#[test]
fn a_run_can_be_parked_twice_before_it_is_answered_once() {
    let second = Turn::tool(
        "AskUserQuestion",
        json!({ "questions": [asked("Which port?", "Port", &["1", "2"])] }),
    );
    let Some((scene, _)) = parked([question(), second, Turn::text("Done.")]) else {
        return;
    };
    let first = is_parked(&scene);
    scene.say(&["answer", &scene.code(), "pg"]);
    let again = scene.run(&["--resume", &scene.id()]).with(75);
    assert!(
        again.stderr.contains("Which port?") || again.stdout.contains("Which port?"),
        "{again:?}"
    );
    let second = is_parked(&scene);
    assert_ne!(first, second);
    scene.say(&["answer", &scene.code(), "2"]);
    scene.run(&["--resume", &scene.id()]).with(0);
    let results = scene.api.tool_results();
    let ids: Vec<_> = results.iter().map(|result| result.tool_use_id.as_str()).collect();
    assert_eq!(ids, [first.as_str(), &second]);
    assert!(results[1].text.contains(r#""Which port?"="2""#), "{results:#?}");
}

#[test]
fn a_question_of_the_tool_of_pml_is_parked_and_its_call_takes_the_answer() {
    let asks = Turn::tool("mcp__pml__ask_user", json!({ "question": "Why?" }));
    let Some((scene, _)) = parked([asks, Turn::text("Fine.")]) else {
        return;
    };
    let call = is_parked(&scene);
    scene.say(&["answer", &scene.code(), "--text", "because I say so"]);
    scene.run(&["--resume", &scene.id()]).with(0);
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(
        (results[0].tool_use_id.as_str(), results[0].is_error),
        (call.as_str(), false)
    );
    assert!(results[0].text.contains("because I say so"), "{results:#?}");
}

#[test]
fn a_run_that_is_told_to_end_while_it_asks_is_parked() {
    let Some(scene) = Scene::scripted([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let run = scene.start(&["ask me"]);
    let code = scene.asking();
    run.signal(Signal::TERM);
    run.ended().with(75);
    let call = is_parked(&scene);
    scene.say(&["answer", &code, "pg"]);
    scene.run(&["--resume", &scene.id()]).with(0);
    one_result(&scene, &call, CHOSEN);
}

#[test]
fn a_run_that_is_told_to_end_ends_although_its_answer_comes_at_once() {
    let Some(scene) = Scene::scripted([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let run = scene.start(&["ask me"]);
    let code = scene.asking();
    run.signal(Signal::TERM);
    scene.say(&["answer", &code, "pg"]);
    // The answer may have been faster than the signal; then it is the result of the call, too.
    if run.ended().code == Some(75) {
        scene.run(&["--resume", &scene.id()]).with(0);
    }
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(results[0].text, CHOSEN);
}

#[test]
fn a_use_that_a_rule_wants_a_person_to_see_is_parked_and_runs_with_a_late_approval() {
    let Some(scene) = Scene::scripted([bash("echo once >> made"), Turn::text("Made.")]) else {
        return;
    };
    let scene = scene.permissions(&json!({ "ask": ["client:Bash"] }));
    scene.run(&["--patience", "1s", "make it"]).with(75);
    let call = is_parked(&scene);
    assert_eq!(scene.pending()[0]["tool"], "client:Bash");
    scene.say(&["approve", &scene.code()]);
    scene.run(&["--resume", &scene.id()]).with(0);
    assert_eq!(scene.world.read("made"), "once\n");
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(
        (results[0].tool_use_id.as_str(), results[0].is_error),
        (call.as_str(), false)
    );
    assert!(scene.record().asks.is_empty());
}

#[test]
fn a_parked_use_that_is_refused_tells_the_model_why() {
    let Some(scene) = Scene::scripted([bash("touch made"), Turn::text("As you like.")]) else {
        return;
    };
    let scene = scene.permissions(&json!({ "ask": ["client:Bash"] }));
    scene.run(&["--patience", "1s", "make it"]).with(75);
    is_parked(&scene);
    scene.say(&["refuse", &scene.code(), "--reason", "not here"]);
    scene.run(&["--resume", &scene.id()]).with(0);
    let results = scene.api.tool_results();
    assert!(
        results.len() == 1 && results[0].is_error && results[0].text.contains("The person refused: not here"),
        "{results:#?}"
    );
    assert!(!scene.world.path("made").exists());
}

#[test]
fn a_permission_that_nobody_answers_is_left_for_later_where_no_person_is_there() {
    let Some(scene) = Scene::scripted([Turn::text("Ready.")]) else {
        return;
    };
    scene.api.then([
        bash("echo once >> made"),
        bash("echo once >> made"),
        Turn::text("Made."),
    ]);
    scene.run(&["hello"]).with(0);
    let ended = scene
        .run(&["--resume", &scene.id(), "--patience", "1s", "make it"])
        .with(75);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(told.contains("answer it and it resumes"), "{told}");
    nothing_is_left_of(&scene.record().id);
    scene.say(&["approve", &scene.code()]);
    scene.run(&["--resume", &scene.id()]).with(0);
    assert_eq!(scene.world.read("made"), "once\n");
}

#[test]
fn a_parked_run_can_be_told_something_else_instead() {
    let Some((scene, _)) = parked([question(), Turn::text("Never mind then.")]) else {
        return;
    };
    is_parked(&scene);
    let run = scene.start(&["--resume", &scene.id(), "never mind, use files"]);
    // It asks once more before it reads that, and has the answer that the person gives now.
    scene.say(&["refuse", &scene.asking(), "--reason", "see below"]);
    run.ended().with(0);
    let said = scene.api.user_texts();
    assert!(
        said.iter().any(|text| text.contains("never mind, use files")),
        "{said:?}"
    );
    assert_eq!(scene.pending(), Vec::<Value>::new());
}
