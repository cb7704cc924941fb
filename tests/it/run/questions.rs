//! Questions of the agent to its person: by its own tool, and by those of pml.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::scene::{Ended, Scene};
use super::{CHOSEN, asked, database, question};
use crate::support::messages_api::{ToolResult, Turn};

/// Asks by a tool, has `say` give the answer to its code, and returns what the model read as the result.
fn answered(tool: &str, input: Value, say: impl Fn(&str) -> Vec<String>) -> Option<(ToolResult, Ended)> {
    let scene = Scene::scripted([Turn::tool(tool, input), Turn::text("I see.")])?;
    let run = scene.start(&["ask me"]);
    let code = scene.asking();
    let words = say(&code);
    scene.say(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let ended = run.ended().with(0);
    let mut results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert!(scene.pending().is_empty());
    assert!(scene.record().asks.is_empty(), "{:#?}", scene.record());
    Some((results.remove(0), ended))
}

/// The words of `pml answer`.
fn answer(words: &[&str]) -> impl Fn(&str) -> Vec<String> + use<> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    move |code| {
        let mut all = vec!["answer".to_owned(), code.to_owned()];
        all.extend(words.clone());
        all
    }
}

/// Questions as both tools that ask several take them.
fn listed(questions: &[Value]) -> Value {
    json!({ "questions": questions })
}

#[test]
fn a_choice_is_the_result_of_the_call() {
    let Some((result, ended)) = answered("AskUserQuestion", listed(&[database()]), answer(&["pg"])) else {
        return;
    };
    assert_eq!((result.text.as_str(), result.is_error), (CHOSEN, false));
    let told = format!("{}{}", ended.stdout, ended.stderr);
    for word in ["Which database?", "pg", "sqlite", "I see."] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

#[test]
fn several_choices_are_told_together() {
    let mut question = asked("Which ones?", "Ones", &["red", "green", "blue"]);
    question["multiSelect"] = json!(true);
    let Some((result, _)) = answered("AskUserQuestion", listed(&[question]), answer(&["red", "blue"])) else {
        return;
    };
    assert!(
        result.text.contains(r#""Which ones?"="red, blue""#),
        "{}",
        result.text
    );
}

#[test]
fn own_words_are_told_as_they_are() {
    let own = answer(&["--text", "neither, \"ask\" again\nin a year"]);
    let Some((result, _)) = answered("AskUserQuestion", listed(&[database()]), own) else {
        return;
    };
    let told = result.text.replace("\\n", "\n").replace("\\\"", "\"");
    assert!(
        told.contains("neither, \"ask\" again\nin a year"),
        "{}",
        result.text
    );
}

#[test]
fn four_questions_are_answered_at_once() {
    let mut colours = asked("Which colours?", "Colours", &["red", "blue"]);
    colours["multiSelect"] = json!(true);
    let questions = [
        database(),
        colours,
        asked("How many?", "Many", &["one", "two"]),
        asked("Why?", "Why", &["because", "so"]),
    ];
    let answers = r#"[{"labels":["sqlite"]},{"labels":["red","blue"]},{"text":"seven"},null]"#;
    let given = answer(&["--answers", answers]);
    let Some((result, _)) = answered("AskUserQuestion", listed(&questions), given) else {
        return;
    };
    for pair in [
        r#""Which database?"="sqlite""#,
        r#""Which colours?"="red, blue""#,
        r#""How many?"="seven""#,
    ] {
        assert!(result.text.contains(pair), "{pair}: {}", result.text);
    }
    assert!(!result.text.contains(r#""Why?"="because""#), "{}", result.text);
}

#[test]
fn labels_with_commas_stay_apart() {
    let mut question = asked("Which ones?", "Ones", &["a, b", "c", "d"]);
    question["multiSelect"] = json!(true);
    let both = answer(&["--answers", r#"[{"labels":["a, b","c"]}]"#]);
    let Some((result, _)) = answered("AskUserQuestion", listed(&[question.clone()]), both) else {
        return;
    };
    assert!(
        result.text.contains(r#""a, b", c"#) || result.text.contains(r#"\"a, b\", c"#),
        "{}",
        result.text
    );
    let one = answered("AskUserQuestion", listed(&[question]), answer(&["a, b"]));
    let (result, _) = one.unwrap();
    assert!(result.text.contains(r#""Which ones?"="a, b""#), "{}", result.text);
}

#[test]
fn a_question_that_is_refused_tells_the_model_why() {
    let refused = |code: &str| {
        ["refuse", code, "--reason", "decide yourself"]
            .map(str::to_owned)
            .to_vec()
    };
    let tools = [
        ("AskUserQuestion", listed(&[database()])),
        ("mcp__pml__ask_user", json!({ "question": "Which?" })),
    ];
    for (tool, input) in tools {
        let Some((result, _)) = answered(tool, input, refused) else {
            return;
        };
        assert!(
            result.is_error
                && result
                    .text
                    .contains("The person would not answer: decide yourself"),
            "{result:?}"
        );
    }
}

#[test]
fn the_tool_of_pml_returns_the_answer() {
    let choice = json!({ "question": "Which?", "options": [{ "label": "tea" }, { "label": "mate" }] });
    let Some((result, _)) = answered("mcp__pml__ask_user", choice, answer(&["mate"])) else {
        return;
    };
    assert!(!result.is_error && result.text.contains("mate"), "{result:?}");
    assert!(
        !result.text.contains("workflow_id"),
        "it waits for nothing: {result:?}"
    );
    let free = answered(
        "mcp__pml__ask_user",
        json!({ "question": "Why?" }),
        answer(&["--text", "because I say so"]),
    );
    let (result, _) = free.unwrap();
    assert!(
        !result.is_error && result.text.contains("because I say so"),
        "{result:?}"
    );
}

#[test]
fn the_tool_of_pml_for_several_questions_returns_all_answers() {
    let questions = listed(&[
        asked("Which drink?", "Drink", &["tea", "mate"]),
        asked("Which cup?", "Cup", &["large", "small"]),
    ]);
    let given = answer(&["--answers", r#"[{"labels":["tea"]},{"text":"the blue one"}]"#]);
    let Some((result, _)) = answered("mcp__pml__ask_user_questions", questions, given) else {
        return;
    };
    assert!(
        !result.is_error && result.text.contains("tea") && result.text.contains("the blue one"),
        "{result:?}"
    );
}

#[test]
fn where_questions_are_off_the_model_is_told_so_at_once() {
    let Some(scene) = Scene::scripted([question(), Turn::text("I decide.")]) else {
        return;
    };
    scene.world.configure(&json!({ "askUser": { "enabled": false } }));
    let ended = scene.run(&["ask me"]).with(0);
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert!(
        results[0].is_error
            && results[0]
                .text
                .contains("Questions to the person are turned off in this project"),
        "{results:#?}"
    );
    assert!(ended.stdout.contains("I decide."), "{}", ended.stdout);
    assert_eq!(scene.pending(), Vec::<Value>::new());
}
