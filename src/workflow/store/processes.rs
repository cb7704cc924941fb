//! Tests with real processes: the test binary starts itself again with one ignored test and a file in its
//! environment.

use crate::workflow::Road;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use uuid::Uuid;

use super::super::samples::{APPROVE, FIVE_MINUTES, NOON, given, new, on_its_tool};
use super::super::sqlite::SqliteStore;
use super::super::{Arguments, TransitionError};
use super::*;
use crate::config::Environment;
use crate::workflow::Place;

const FILE: &str = "PML_TEST_STORE";
const IDS: &str = "PML_TEST_IDS";
const PROCESSES: usize = 4;
const THREADS: usize = 25;

#[expect(clippy::disallowed_methods, reason = "a test that needs real processes")]
fn start(test: &str, file: &Path, ids: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("workflow::store::processes::{test}"),
            "--ignored",
            "--nocapture",
        ])
        .env(FILE, file)
        .env(IDS, ids)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the file this process was started for, or nothing if it was not started by a test of this file.
fn place_and_ids() -> Option<(Place, String)> {
    let environment = Environment::of_process().unwrap();
    let file = environment.variable(FILE)?.into();
    let ids = environment
        .variable(IDS)
        .and_then(|ids| ids.to_str())
        .unwrap_or_default()
        .to_owned();
    Some((Place::File(file), ids))
}

/// Reads on until a line ends in `word`.
fn await_word(lines: &mut impl Iterator<Item = std::io::Result<String>>, word: &str) -> String {
    lines
        .map(Result::unwrap)
        .find(|line| line.contains(word))
        .unwrap_or_else(|| panic!("no `{word}`"))
}

#[test]
fn a_hundred_racers_in_four_processes_take_a_call_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("workflows.db");
    let mut store = Place::File(file.clone()).open().unwrap();
    let ids: Vec<String> = (0..5)
        .map(|number| {
            store
                .create(new(&number.to_string()), NOON)
                .unwrap()
                .suspension
                .workflow()
                .id
                .to_string()
        })
        .collect();
    let mut racers: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let mut child = start("racer", &file, &ids.join(","));
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            (child, lines)
        })
        .collect();
    for (_, lines) in &mut racers {
        await_word(lines, "ready");
    }
    // The end of their input is the starting shot.
    for (child, _) in &mut racers {
        drop(child.stdin.take());
    }
    let mut counted = [0, 0];
    for (child, lines) in &mut racers {
        let line = await_word(lines, "counted");
        let mut numbers = line.split(' ').filter_map(|word| word.parse::<usize>().ok());
        counted[0] += numbers.next().unwrap();
        counted[1] += numbers.next().unwrap();
        assert!(lines.all(|line| line.is_ok()));
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(counted, [ids.len(), ids.len() * (PROCESSES * THREADS - 1)]);
}

#[test]
#[ignore = "one of the processes of a_hundred_racers_in_four_processes_take_a_call_once"]
fn racer() {
    let Some((place, ids)) = place_and_ids() else {
        return;
    };
    let ids: Vec<WorkflowId> = ids.split(',').map(|id| id.parse().unwrap()).collect();
    let stores: Vec<Box<dyn Store>> = (0..THREADS).map(|_| place.open().unwrap()).collect();
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let outcomes: Vec<Result<Workflow, WorkflowError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = stores
            .into_iter()
            .map(|mut store| {
                let ids = &ids;
                scope.spawn(move || {
                    let by = || Road::Continuation.into();
                    ids.iter()
                        .map(|id| store.answer_and_take(*id, &on_its_tool(), given(APPROVE, by()), NOON))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let taken = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let used = outcomes
        .iter()
        .filter(|outcome| {
            let already_used =
                |refusal: &TransitionError| matches!(refusal, TransitionError::AlreadyUsed { .. });
            matches!(outcome, Err(WorkflowError::Refused { refusal, .. }) if already_used(refusal))
        })
        .count();
    println!("counted {taken} {used} of");
}

#[test]
fn processes_that_create_the_database_at_once_all_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state/workflows.db");
    let children: Vec<Child> = (0..PROCESSES).map(|_| start("opener", &file, "")).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let store = Place::File(file).open().unwrap();
    assert_eq!(store.pending(NOON).unwrap().len(), 1);
}

#[test]
#[ignore = "one of the processes of processes_that_create_the_database_at_once_all_succeed"]
fn opener() {
    let Some((place, _)) = place_and_ids() else { return };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| place.open().unwrap().create(new("{}"), NOON).unwrap());
        }
    });
}

#[test]
fn a_process_killed_while_it_writes_leaves_whole_rows() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("workflows.db");
    for round in 1..=6 {
        let mut child = start("writer", &file, "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..round * 3 {
            await_word(&mut lines, "moved");
        }
        // SIGKILL, at whatever it is doing.
        child.kill().unwrap();
        child.wait().unwrap();

        let store = SqliteStore::open(Place::File(file.clone())).unwrap();
        assert_eq!(store.text("PRAGMA integrity_check"), "ok");
        let found = store.recent(usize::MAX).unwrap();
        for workflow in &found {
            let expected = match workflow.state.phase() {
                Phase::Pending | Phase::Approved => Arguments::Json(written_by_the_writer(&workflow.project)),
                Phase::Final => Arguments::Erased,
            };
            assert!(workflow.call.arguments == expected, "{workflow:?}");
        }
        let counted = store.text("SELECT CAST(count(*) AS TEXT) FROM workflow");
        assert_eq!(found.len().to_string(), counted);
        let kept = store.text(
            "SELECT CAST(count(*) AS TEXT) FROM workflow
             WHERE phase = 'final' AND (arguments IS NOT NULL OR identity IS NOT NULL)",
        );
        assert_eq!(kept, "0");
    }
}

fn written_by_the_writer(project: &Path) -> String {
    project.display().to_string().repeat(20_000)
}

#[test]
#[ignore = "the process of a_process_killed_while_it_writes_leaves_whole_rows"]
fn writer() {
    let Some((place, _)) = place_and_ids() else { return };
    let mut store = place.open().unwrap();
    for number in 0.. {
        let mut suspended = new("");
        suspended.project = std::path::PathBuf::from(format!("/{number}-{}", Uuid::new_v4()));
        suspended.call.arguments = Arguments::Json(written_by_the_writer(&suspended.project));
        let id = store.create(suspended, NOON).unwrap().suspension.workflow().id;
        match number % 4 {
            0 => {}
            1 => drop(
                store
                    .apply(
                        id,
                        Event::Answer {
                            answer: APPROVE,
                            by: Road::Cli.into(),
                        },
                        NOON,
                    )
                    .unwrap(),
            ),
            2 => drop(
                store
                    .answer_and_take(id, &on_its_tool(), given(APPROVE, Road::Cli.into()), NOON)
                    .unwrap(),
            ),
            _ => drop(store.sweep(NOON.plus(FIVE_MINUTES), &[]).unwrap()),
        }
        println!("moved");
    }
}

#[test]
fn the_life_of_a_workflow_is_logged_without_its_arguments() {
    let child = start("logger", Path::new("unused"), "");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    let log: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split_once(" INFO pml::workflow: "))
        .map(|(_, line)| line)
        .collect();
    let steps: Vec<&str> = log.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        steps,
        [
            "created",
            "answered",
            "taken",
            "created",
            "answered",
            "created",
            "withdrawn",
            "created",
            "expired"
        ]
    );
    for line in &log {
        assert!(line.contains(" id=") && line.contains(" code="), "{line}");
        assert!(line.contains(r" tool=serena:a\u{1b}b"), "{line}");
    }
    assert!(
        !output.contains("secret") && !output.contains('\u{1b}'),
        "{output}"
    );
}

/// In a process of its own: what is logged in a process depends on who asked first.
#[test]
#[ignore = "the process of the_life_of_a_workflow_is_logged_without_its_arguments"]
fn logger() {
    let Some(_) = place_and_ids() else { return };
    tracing_subscriber::fmt()
        .with_writer(std::io::stdout)
        .with_ansi(false)
        .init();
    let mut store = Place::Memory.open().unwrap();
    let create = |store: &mut dyn Store| {
        let mut new = new(r#"{"token":"secret"}"#);
        new.call.tool = "serena:a\u{1b}b".parse().unwrap();
        store.create(new, NOON).unwrap().suspension.workflow().id
    };
    let id = create(&mut *store);
    store
        .answer_and_take(
            id,
            &ToolExpectation::AnyTool,
            given(APPROVE, Road::Continuation.into()),
            NOON,
        )
        .unwrap();
    let id = create(&mut *store);
    let refuse = Answer::Refuse {
        reason: Some("secret".to_owned()),
    };
    store
        .apply(
            id,
            Event::Answer {
                answer: refuse,
                by: Road::Web.into(),
            },
            NOON,
        )
        .unwrap();
    let id = create(&mut *store);
    store.apply(id, Event::Withdraw, NOON).unwrap();
    create(&mut *store);
    store.sweep(NOON.plus(FIVE_MINUTES), &[]).unwrap();
}
