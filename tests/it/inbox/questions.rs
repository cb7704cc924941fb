//! Questions in the inbox: shown without deceit, answered strictly.

use std::sync::Arc;
use std::time::Duration;

use pml::config::By;
use pml::protocol::question::{Choice, Question, QuestionAnswer, Selection};
use pml::protocol::{Digest, ToolName};
use pml::proxy::{moment, now};
use pml::workflow::{
    Answer, Arguments, Ask, AskAttendance, Asker, AskingClient, NewWorkflow, Origin, Place, Provenance, Road,
    State, SuspendedCall, Workflow, Workflows,
};
use serde_json::json;

use super::{log, refused};
use crate::support::DEADLINE;
use crate::support::have;
use crate::support::terminal::typed;
use crate::support::world::{World, json_of, stderr, stdout};

/// Puts questions into the store, as a pml that has died since.
pub(super) fn put(world: &World, questions: Vec<Question>) -> Workflow {
    put_as(world, "ask_user", questions)
}

fn place(world: &World) -> Place {
    Place::File(world.home().join(".local/state/pml/workflows.db"))
}

fn put_as(world: &World, tool: &str, questions: Vec<Question>) -> Workflow {
    let call = SuspendedCall {
        tool: ToolName::new("pml".parse().unwrap(), tool),
        arguments: Arguments::Absent,
        launch: Digest::of(["questions"]),
    };
    let new = NewWorkflow {
        ask: Ask::Questions { questions },
        call,
        time_to_live: Duration::from_mins(5),
        project: world.project(),
        origin: Origin {
            config: world.path(".pml.json"),
            by: By::Client,
            client: AskingClient::default(),
            asker: Asker::random(),
        },
        attended: AskAttendance::ByNone,
        twin: 0,
        channel: None,
    };
    place(world)
        .open()
        .unwrap()
        .create(new, now())
        .unwrap()
        .suspension
        .workflow()
}

/// A question without options.
pub(super) fn free(text: &str) -> Question {
    Question {
        question: text.to_owned(),
        header: None,
        options: Vec::new(),
        selection: Selection::One,
    }
}

pub(super) fn choice(text: &str, labels: &[&str], selection: Selection) -> Question {
    let option = |label: &&str| Choice {
        label: (*label).to_owned(),
        description: Some(format!("means {label}")),
    };
    Question {
        options: labels.iter().map(option).collect(),
        selection,
        ..free(text)
    }
}

fn colour() -> Question {
    choice("Which colour?", &["Red", "Blue"], Selection::One)
}

#[test]
fn a_question_is_shown_with_its_options_and_answered_by_label() {
    let world = World::new();
    let code = put(&world, vec![colour()]).code;
    let code = code.as_str();
    let told = stdout(&world.run(&["pending"]));
    let lines: Vec<&str> = told.lines().skip(1).collect();
    assert_eq!(
        lines[..4],
        [
            "  Which colour?",
            "    1. Red: means Red",
            "    2. Blue: means Blue",
            "    (one of these, or your own words)"
        ]
    );
    assert_eq!(lines[5], format!("  answer     pml answer {code}"));

    let answered = world.run(&["answer", code, "Blue"]);
    assert_eq!(
        stderr(&answered),
        format!("answered `{code}`: User selected: Blue\n")
    );
    let log = log(&world);
    assert_eq!(
        [&log[0]["state"], &log[0]["by"], &log[0]["answer"]["answers"]],
        [
            &json!("answered"),
            &json!("cli"),
            &json!([{ "labels": ["Blue"] }])
        ]
    );
    assert!(
        !stdout(&world.run(&["log"])).contains("Blue"),
        "what was said is nobody's business"
    );
    let late = refused(&world.run(&["answer", code, "Red"]));
    assert!(late.contains("was already answered by cli at "), "{late}");
}

#[test]
fn an_answer_that_does_not_fit_is_refused_and_the_question_still_waits() {
    let world = World::new();
    let one = put(&world, vec![colour()]).code;
    let two = put(&world, vec![colour(), free("Why?")]).code;
    let (one, two) = (one.as_str(), two.as_str());
    for (arguments, reason) in [
        (
            vec!["answer", one, "blu"],
            "`blu` is not an option of `answer`; did you mean `Blue`?",
        ),
        (
            vec!["answer", one, "Red", "Blue"],
            "`answer` takes 2 choices; only one is allowed",
        ),
        (
            vec!["answer", one, "--text", " "],
            "`answer` is empty; choose an option or write something",
        ),
        (vec!["answer", one], "there is no terminal to ask in"),
        (
            vec!["answer", two, "Red"],
            "needs one answer for each of its questions: 2, not 1",
        ),
        (
            vec!["answer", two, "--answers", "{}"],
            "are not a list of {\"labels\": […], \"text\": \"…\"}",
        ),
        (
            vec!["answer", two, "--answers", r#"[{"labels":["Red"]},{"txt":"x"}]"#],
            "unknown field `txt`",
        ),
        (
            vec![
                "answer",
                two,
                "--answers",
                r#"[{"labels":["Red"]},{"labels":["x"]}]"#,
            ],
            "`x` is not an option of `answers[1]`, which has none",
        ),
    ] {
        let output = world.run(&arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(reason) && told.contains("\n\nhint: "), "{told}");
    }
    let unfit = refused(&world.run(&["approve", one]));
    assert_eq!(
        unfit,
        format!(
            "error: workflow `{one}` asks for an answer to each of its questions\n\nhint: to answer it: pml answer {one}\n"
        )
    );
    let pending = json_of(&world.run(&["pending", "--json"]));
    assert_eq!(pending["pending"].as_array().unwrap().len(), 2);
    let answers = r#"[{"labels":["Red"]},{"text":"it is warm"}]"#;
    assert!(world.run(&["answer", two, "--answers", answers]).status.success());
    assert!(world.run(&["answer", one, "--text", "green"]).status.success());
    let said: Vec<_> = log(&world)
        .iter()
        .map(|kept| kept["answer"]["answers"].clone())
        .collect();
    assert!(
        said.contains(&json!([{ "labels": ["Red"] }, { "labels": [], "text": "it is warm" }]))
            && said.contains(&json!([{ "labels": [], "text": "green" }])),
        "{said:?}"
    );
}

#[test]
fn an_option_may_be_named_as_it_is_shown() {
    let world = World::new();
    let asked = choice("Which?", &["a\u{202e}b", "c"], Selection::One);
    let code = put(&world, vec![asked]).code;
    let answered = world.run(&["answer", code.as_str(), "a\\u{202e}b"]);
    assert!(answered.status.success(), "{}", stderr(&answered));
    assert_eq!(
        log(&world)[0]["answer"]["answers"],
        json!([{ "labels": ["a\u{202e}b"] }])
    );
}

#[test]
fn nothing_that_came_from_outside_can_move_the_cursor_or_turn_the_text() {
    let evil = "a\u{1b}[2J\u{202e}b\u{200b}\u{9b}c\u{7f}\u{e0041}";
    let world = World::new();
    let mut question = choice(evil, &[evil, "B"], Selection::Several);
    question.header = Some(evil.to_owned());
    let code = put_as(&world, evil, vec![question]).code;
    let code = code.as_str();
    let clean = |text: &str| {
        let found = text.chars().find(|found| {
            found.is_control() && *found != '\n' || matches!(found, '\u{202e}' | '\u{200b}' | '\u{e0041}')
        });
        assert_eq!(found, None, "{text}");
    };
    for command in [
        vec!["pending"],
        vec!["pending", "--json"],
        vec!["log"],
        vec!["log", "--json"],
        vec!["answer", code, "a\u{1b}"],
        vec!["refuse", code, "--reason", evil],
        vec!["log", "--json"],
    ] {
        let output = world.run(&command);
        assert!(!stdout(&output).is_empty() || !stderr(&output).is_empty());
        clean(&stdout(&output));
        clean(&stderr(&output));
    }
    assert_eq!(log(&world)[0]["answer"]["reason"], evil, "JSON loses nothing");
}

#[test]
fn a_person_at_a_terminal_is_asked_one_question_after_the_other() {
    if !have(&["script"]) {
        return;
    }
    let world = World::new();
    world.configure(&json!({ "approvals": { "by": "human" } }));
    let code = put(&world, vec![colour(), free("Why?")]).code;
    // With a terminal it is a person, also inside a client.
    world.set("CLAUDECODE", "1");
    let answer = format!("answer {code}");
    let (left, screen) = typed(&world, &answer, "2\n\u{4}");
    assert_eq!(left, Some(1), "{screen}");
    assert!(screen.contains("is not answered: it still waits"), "{screen}");
    let (done, screen) = typed(&world, &answer, "\n7\n1\nwarm\nn\n2\nit is cold, and late\n\n");
    assert_eq!(done, Some(0), "{screen}");
    assert!(
        screen.contains("  2. Blue: means Blue") && screen.contains("note: `answer` is empty"),
        "{screen}"
    );
    assert!(
        screen.contains("note: `answer` has no option 7; its options are 1 to"),
        "a number is never free text: {screen}"
    );
    assert!(
        screen.contains("  Red")
            && screen.contains("Send this? [Y/n]")
            && screen.contains("Nothing was sent"),
        "what is final is read back first: {screen}"
    );
    assert_eq!(
        log(&world)[0]["answer"]["answers"],
        json!([{ "labels": ["Blue"] }, { "labels": [], "text": "it is cold, and late" }])
    );
    let (late, screen) = typed(&world, &answer, "");
    assert_eq!(late, Some(1), "{screen}");
    assert!(
        screen.contains("was already answered by cli") && !screen.contains("Which colour?"),
        "nobody is asked in vain: {screen}"
    );
}

#[test]
fn a_question_is_left_unanswered_only_where_the_person_says_so() {
    let world = World::new();
    world.configure(&json!({ "approvals": { "by": "human" } }));
    let two = |why: &str| put(&world, vec![colour(), free(why)]).code;
    let one_of_two = json!([{ "labels": ["Blue"] }, { "labels": [] }]);

    let code = two("Why?");
    let nothing = world.run(&["answer", code.as_str(), "--answers", "[null, null]"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        stderr(&nothing).contains("no question is answered"),
        "{}",
        stderr(&nothing)
    );
    let answered = world.run(&[
        "answer",
        code.as_str(),
        "--answers",
        r#"[{"labels":["Blue"]}, null]"#,
    ]);
    assert!(
        stderr(&answered).contains("User left this question unanswered."),
        "{}",
        stderr(&answered)
    );
    assert_eq!(log(&world)[0]["answer"]["answers"], one_of_two);

    if !have(&["script"]) {
        return;
    }
    let answer = format!("answer {}", two("Why not?"));
    // Enter alone sends nothing so; neither does a person who left everything.
    let (done, screen) = typed(&world, &answer, "-\n-\n2\n-\n\n2\n-\ny\n");
    assert_eq!(done, Some(0), "{screen}");
    assert_eq!(screen.matches("Nothing was sent").count(), 2, "{screen}");
    assert!(
        screen.contains("  (left unanswered)") && screen.contains("1 unanswered: send it so? [y/N]"),
        "{screen}"
    );
    assert_eq!(log(&world)[0]["answer"]["answers"], one_of_two);
    // Alone, it is a text like any other.
    let answer = format!("answer {}", put(&world, vec![free("Which sign?")]).code);
    let (done, screen) = typed(&world, &answer, "-\n\n");
    assert_eq!(done, Some(0), "{screen}");
    assert_eq!(
        log(&world)[0]["answer"]["answers"],
        json!([{ "labels": [], "text": "-" }])
    );
}

#[test]
fn whoever_waits_hears_an_answer_from_a_terminal() {
    let world = World::new();
    let asked = put(&world, vec![free("Why?")]);
    let mut command = world.command(&["answer", asked.code.as_str(), "--text", "because"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let heard = runtime.block_on(async {
        let workflows = Workflows::new(place(&world), Arc::new(moment));
        let waiting = tokio::time::timeout(DEADLINE, workflows.wait(asked.id));
        let answering = tokio::task::spawn_blocking(move || command.output().unwrap());
        let (heard, answered) = tokio::join!(waiting, answering);
        assert!(answered.unwrap().status.success());
        heard.unwrap().unwrap()
    });
    let State::Answered { answer, by, .. } = heard.state else {
        panic!("{heard:?}")
    };
    let because = QuestionAnswer {
        labels: Vec::new(),
        text: Some("because".to_owned()),
    };
    let answers = vec![because];
    assert_eq!(
        (answer, by),
        (Answer::Answers { answers }, Provenance::from(Road::Cli))
    );
}
