use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use pretty_assertions::assert_eq;
use rusqlite::params;
use tempfile::TempDir;
use uuid::Uuid;

use super::super::samples::{APPROVE, FIVE_MINUTES, NOON, REFUSE, given, new, on_its_tool};
use super::super::store::OWNERS_TURN;
use super::super::{
    Answer, Ask, AskAttendance, Asker, Cap, ChangedWorkflows, Provenance, Road, Scope, Suspension, UseReach,
};
use super::*;
use crate::protocol::Digest;
use crate::report;

fn file(directory: &TempDir) -> Place {
    Place::File(directory.path().join("state/workflows.db"))
}

fn opened() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(file(&directory)).unwrap();
    (directory, store)
}

fn refused(outcome: Result<Workflow, WorkflowError>) -> TransitionError {
    match outcome {
        Err(WorkflowError::Refused { refusal, .. }) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_suspended_call_is_read_back_byte_for_byte() {
    let (_directory, mut store) = opened();
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    for arguments in [
        Arguments::Absent,
        Arguments::Json("{}".to_owned()),
        Arguments::Json(r#"{ "lone":"\ud800\udc","big":12345678901234567890123,"a":1.0,"a":2 }"#.to_owned()),
        Arguments::Json("{\"nul\":\"\0\",\"\u{202e}\":\"🦀\"}".to_owned()),
        Arguments::Json(large),
    ] {
        let mut suspended = new("");
        suspended.call.arguments = arguments;
        suspended.project = PathBuf::from(OsStr::from_bytes(b"/not/utf-8/\xff"));
        let created = store
            .create(suspended.clone(), NOON)
            .unwrap()
            .suspension
            .workflow();
        let expected = Workflow {
            id: created.id,
            code: created.code.clone(),
            ask: suspended.ask,
            call: suspended.call.clone(),
            project: suspended.project,
            origin: suspended.origin,
            created_at: NOON,
            expires_at: NOON.plus(FIVE_MINUTES),
            attended: suspended.attended,
            channel: None,
            revision: created.revision,
            state: State::Pending,
        };
        assert_eq!(created, expected);
        assert_eq!(store.find(created.id).unwrap(), expected);
        let taken = store
            .answer_and_take(
                created.id,
                &on_its_tool(),
                given(APPROVE, Road::Continuation.into()),
                NOON,
            )
            .unwrap();
        assert_eq!(taken.call, suspended.call);
    }
}

#[test]
fn the_arguments_leave_the_disk_with_the_last_state_that_could_run() {
    let (directory, mut store) = opened();
    let canary = "canary-7f3a9c";
    let moves: [fn(&mut SqliteStore, WorkflowId); 4] = [
        |store, id| {
            store
                .answer_and_take(
                    id,
                    &ToolExpectation::AnyTool,
                    given(APPROVE, Road::Cli.into()),
                    NOON,
                )
                .unwrap();
        },
        |store, id| {
            store
                .apply(
                    id,
                    Event::Answer {
                        answer: REFUSE,
                        by: Road::Cli.into(),
                    },
                    NOON,
                )
                .unwrap();
        },
        |store, id| {
            store.apply(id, Event::Withdraw, NOON).unwrap();
        },
        |store, _| {
            store.sweep(NOON.plus(FIVE_MINUTES), &[]).unwrap();
        },
    ];
    let on_disk = || {
        std::fs::read_dir(directory.path().join("state"))
            .unwrap()
            .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
            .any(|bytes| {
                bytes
                    .windows(canary.len())
                    .any(|window| window == canary.as_bytes())
            })
    };
    let asked = || new(&format!(r#"{{"token":"{canary}"}}"#));
    // What a client proposes repeats what the call does.
    let proposing = || NewWorkflow {
        ask: Ask::Use {
            reach: UseReach::Proposed {
                grants: vec![format!("Bash(echo {canary})")],
            },
        },
        ..new("{}")
    };
    for finish in moves {
        for asked in [asked(), proposing()] {
            let id = store.create(asked, NOON).unwrap().suspension.workflow().id;
            assert!(on_disk());
            finish(&mut store, id);
            assert_eq!(store.find(id).unwrap().call.arguments, Arguments::Erased);
            store.erase_traces().unwrap();
            assert!(!on_disk(), "{:?}", store.find(id).unwrap().state);
        }
    }
}

#[test]
fn arguments_are_not_shown_by_debug() {
    let shown = format!("{:?}", new(r#"{"token":"secret"}"#));
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_finished_call_cannot_be_suspended_again() {
    let mut store = SqliteStore::open(Place::Memory).unwrap();
    let mut again = new("{}");
    again.call.arguments = Arguments::Erased;
    assert!(matches!(
        store.create(again, NOON),
        Err(WorkflowError::Erased { .. })
    ));
}

#[test]
fn identical_asks_share_one_workflow_while_it_is_pending() {
    let (directory, mut store) = opened();
    let mut elsewhere = SqliteStore::open(file(&directory)).unwrap();
    let first = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    let later = NOON.plus(Duration::from_secs(1));
    assert_eq!(
        elsewhere.create(new("{}"), later).unwrap().suspension,
        Suspension::Existing(first.clone())
    );

    let others: [fn(&mut NewWorkflow); 6] = [
        |new| new.call.arguments = Arguments::Json("{ }".to_owned()),
        |new| new.call.arguments = Arguments::Absent,
        |new| new.call.tool = "serena:other".parse().unwrap(),
        |new| new.call.launch = Digest::of(["serena", "0.6.0"]),
        |new| new.project = PathBuf::from("/other"),
        |new| {
            let Ask::Install { dependency } = new.ask.clone() else {
                panic!()
            };
            new.ask = Ask::Permit { dependency };
        },
    ];
    for differ in others {
        let mut other = new("{}");
        differ(&mut other);
        assert!(matches!(
            store.create(other, NOON).unwrap().suspension,
            Suspension::New(_)
        ));
    }

    store
        .apply(
            first.id,
            Event::Answer {
                answer: APPROVE,
                by: Road::Cli.into(),
            },
            NOON,
        )
        .unwrap();
    assert!(
        matches!(store.create(new("{}"), NOON).unwrap().suspension, Suspension::Answered(found) if found.id == first.id)
    );
}

#[test]
fn conversations_and_twins_have_asks_of_their_own() {
    let (_directory, mut store) = opened();
    let first = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    let mut other = new("{}");
    other.origin.asker = Asker::random();
    let theirs = store.create(other.clone(), NOON).unwrap().suspension;
    assert!(matches!(&theirs, Suspension::New(theirs) if theirs.id != first.id));
    let mut twin = new("{}");
    twin.twin = 1;
    assert!(matches!(
        store.create(twin, NOON).unwrap().suspension,
        Suspension::New(_)
    ));
    assert_eq!(
        store.create(other, NOON).unwrap().suspension,
        Suspension::Existing(theirs.workflow())
    );
}

#[test]
fn an_answer_that_no_call_took_serves_the_next_identical_call_of_any_conversation() {
    let (_directory, mut store) = opened();
    let first = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    let answer = Event::Answer {
        answer: APPROVE,
        by: Road::Cli.into(),
    };
    store.apply(first.id, answer, NOON).unwrap();
    let mut other = new("{}");
    other.origin.asker = Asker::random();
    // What was found out meanwhile about the dependency does not make another call of it.
    if let Ask::Install { dependency } = &mut other.ask {
        dependency.integrity = Some("sha512-x".to_owned());
    }
    let at_once = store.create(other.clone(), NOON).unwrap().suspension;
    assert!(
        matches!(at_once, Suspension::New(_)),
        "the one that asked comes first"
    );
    let later = NOON.plus(OWNERS_TURN);
    assert!(
        matches!(store.create(other.clone(), later).unwrap().suspension, Suspension::Answered(found) if found.id == first.id)
    );
    let mut elsewhere = other.clone();
    elsewhere.project = PathBuf::from("/other");
    assert!(matches!(
        store.create(elsewhere, later).unwrap().suspension,
        Suspension::New(_)
    ));
    store.apply(first.id, Event::Take, later).unwrap();
    assert!(
        matches!(
            store.create(other, later).unwrap().suspension,
            Suspension::Existing(_)
        ),
        "its own ask"
    );
}

#[test]
fn a_row_of_the_first_format_takes_a_person_only_and_belongs_to_the_file_of_its_project() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("workflows.db");
    #[expect(clippy::disallowed_methods, reason = "the file of an older pml")]
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("1.sql")).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    let ask = row::written(&new("{}").ask).unwrap();
    let (id, state) = (Uuid::new_v4().to_string(), row::written(&State::Pending).unwrap());
    let created = [NOON.millis(), NOON.plus(FIVE_MINUTES).millis()];
    old.execute(
        "INSERT INTO workflow (id, code, ask, tool, arguments, launch, project, state, phase, identity, created_at, expires_at)
         VALUES (?1, 'abcde', ?2, 'serena:analyze', x'7b7d', 'launch', CAST('/project' AS BLOB), ?3, 'pending', 'identity', ?4, ?5)",
        params![id, ask, state, created[0], created[1]],
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::open(Place::File(path)).unwrap();
    let found = store.find(id.parse().unwrap()).unwrap();
    assert_eq!(found.origin.by, crate::config::By::Human);
    assert_eq!(found.origin.config, PathBuf::from("/project/.pml.json"));
    assert_eq!(found.call.arguments, Arguments::Json("{}".to_owned()));
}

#[test]
fn an_expired_twin_is_not_shared() {
    let (_directory, mut store) = opened();
    let first = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    let after = NOON.plus(FIVE_MINUTES);
    let second = store.create(new("{}"), after).unwrap().suspension;
    assert!(matches!(&second, Suspension::New(second) if second.id != first.id));
    assert_eq!(store.find(first.id).unwrap().state, State::Expired);
}

/// Suspends calls of one conversation of a project until no more may wait; returns how many did, and why no more.
fn fill(store: &mut SqliteStore, project: &str, asker: Asker) -> (usize, WorkflowError) {
    for number in 0.. {
        let mut one = new(&number.to_string());
        one.project = PathBuf::from(project);
        one.origin.asker = asker;
        if let Err(error) = store.create(one, NOON) {
            return (number, error);
        }
    }
    unreachable!("a limit is reached")
}

#[test]
fn a_looping_conversation_fills_its_own_share_and_no_other() {
    let mut store = SqliteStore::open(Place::Memory).unwrap();
    let asker = Asker::random();
    let (waiting, full) = fill(&mut store, "/project", asker);
    assert_eq!(waiting, Cap::Conversation.limit());
    assert_eq!(
        report::render_hinted(&full),
        "100 calls of this conversation already wait for an answer, and no more may\n\n\
         hint: to see what waits: pml pending\nto make room for another: pml refuse CODE"
    );
    let mut again = new("0");
    again.origin.asker = asker;
    let found = store.create(again, NOON).unwrap().suspension;
    assert!(
        matches!(found, Suspension::Existing(_)),
        "what asks already is found"
    );
    let mut other = new("other");
    other.origin.asker = Asker::random();
    store.create(other, NOON).unwrap();
    let mut later = new("later");
    later.origin.asker = asker;
    store.create(later, NOON.plus(FIVE_MINUTES)).unwrap();
}

#[test]
fn looping_conversations_of_a_project_leave_room_for_other_projects() {
    let mut store = SqliteStore::open(Place::Memory).unwrap();
    for _ in 0..3 {
        assert!(matches!(
            fill(&mut store, "/looping", Asker::random()),
            (
                100,
                WorkflowError::Full {
                    cap: Cap::Conversation
                }
            )
        ));
    }
    let (asked, full) = fill(&mut store, "/looping", Asker::random());
    assert!(
        matches!(full, WorkflowError::Full { cap: Cap::Project }),
        "{full}"
    );
    assert_eq!(asked, 0);
    store.create(new("another project"), NOON).unwrap();
}

#[test]
fn a_thousand_calls_may_wait_in_all_and_no_more() {
    let mut store = SqliteStore::open(Place::Memory).unwrap();
    let mut total = 0;
    let full = loop {
        let project = format!("/project{}", total / Cap::Conversation.limit() / 2);
        let (asked, full) = fill(&mut store, &project, Asker::random());
        total += asked;
        if matches!(full, WorkflowError::Full { cap: Cap::Total }) {
            break full;
        }
    };
    assert_eq!(total, Cap::Total.limit());
    let codes: std::collections::BTreeSet<_> = store
        .pending(NOON)
        .unwrap()
        .into_iter()
        .map(|workflow| workflow.code)
        .collect();
    assert_eq!(codes.len(), total);
    assert!(
        full.to_string().starts_with("1000 calls in all projects"),
        "{full}"
    );
    store.create(new("one more"), NOON.plus(FIVE_MINUTES)).unwrap();
}

#[test]
fn the_wrong_tool_leaves_the_workflow_as_it_was() {
    let (_directory, mut store) = opened();
    let workflow = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    let other = ToolExpectation::Tool("serena:other".parse().unwrap());
    let error = store
        .answer_and_take(
            workflow.id,
            &other,
            given(REFUSE, Road::Continuation.into()),
            NOON,
        )
        .unwrap_err();
    let code = &workflow.code;
    assert_eq!(
        report::render_hinted(&error),
        format!(
            "workflow `{code}` belongs to `serena:analyze`\n\nhint: continue it by calling `serena:analyze`"
        )
    );
    assert_eq!(store.find(workflow.id).unwrap(), workflow);
}

#[test]
fn a_continuation_takes_what_a_terminal_approved_under_the_terminals_answer() {
    let (directory, mut store) = opened();
    let mut terminal = SqliteStore::open(file(&directory)).unwrap();
    let id = store.create(new("{}"), NOON).unwrap().suspension.workflow().id;
    let always = Answer::Approve { scope: Scope::Always };
    let by = || Provenance::from(Road::Cli);
    terminal
        .apply(
            id,
            Event::Answer {
                answer: always.clone(),
                by: by(),
            },
            NOON,
        )
        .unwrap();

    let later = NOON.plus(Duration::from_secs(2));
    let late = store.answer_and_take(
        id,
        &on_its_tool(),
        given(REFUSE, Road::Continuation.into()),
        later,
    );
    assert_eq!(
        refused(late),
        TransitionError::AlreadyAnswered {
            answer: always.clone(),
            by: by(),
            at: NOON
        }
    );
    let otherwise = store.answer_and_take(
        id,
        &on_its_tool(),
        given(APPROVE, Road::Continuation.into()),
        later,
    );
    assert_eq!(
        refused(otherwise),
        TransitionError::AlreadyAnswered {
            answer: always.clone(),
            by: by(),
            at: NOON
        },
        "what was granted is another"
    );
    let taken = store
        .answer_and_take(
            id,
            &on_its_tool(),
            given(always.clone(), Road::Continuation.into()),
            later,
        )
        .unwrap();
    assert_eq!(
        taken.state,
        State::Taken {
            answer: always,
            by: by(),
            at: NOON,
            taken_at: later
        }
    );
    let again = terminal.answer_and_take(
        id,
        &on_its_tool(),
        given(APPROVE, Road::Continuation.into()),
        later,
    );
    assert_eq!(refused(again), TransitionError::AlreadyUsed { taken_at: later });
}

#[test]
fn unknown_expired_withdrawn_and_refused_are_told_apart() {
    let (_directory, mut store) = opened();
    let resume = |store: &mut SqliteStore, id, now| {
        store.answer_and_take(id, &on_its_tool(), given(APPROVE, Road::Continuation.into()), now)
    };
    let unknown = WorkflowId::new(Uuid::from_u128(1));
    assert!(matches!(resume(&mut store, unknown, NOON), Err(WorkflowError::Unknown { id }) if id == unknown));
    let expires_at = NOON.plus(FIVE_MINUTES);
    let id = store.create(new("1"), NOON).unwrap().suspension.workflow().id;
    assert_eq!(
        refused(resume(&mut store, id, expires_at)),
        TransitionError::Expired { expires_at }
    );
    let id = store.create(new("2"), NOON).unwrap().suspension.workflow().id;
    store.apply(id, Event::Withdraw, NOON).unwrap();
    assert_eq!(refused(resume(&mut store, id, NOON)), TransitionError::Withdrawn);
    let id = store.create(new("3"), NOON).unwrap().suspension.workflow().id;
    let refusal = store
        .answer_and_take(id, &on_its_tool(), given(REFUSE, Road::Continuation.into()), NOON)
        .unwrap();
    assert_eq!(
        refusal.state,
        State::Answered {
            answer: REFUSE,
            by: Road::Continuation.into(),
            at: NOON
        }
    );
    let by = Road::Continuation.into();
    assert_eq!(
        refused(resume(&mut store, id, NOON)),
        TransitionError::Refused { reason: None, by }
    );
}

#[test]
fn people_find_workflows_by_code_or_by_the_beginning_of_an_id() {
    let (_directory, mut store) = opened();
    let workflow = store.create(new("1"), NOON).unwrap().suspension.workflow();
    let id = workflow.id.to_string();
    for typed in [
        workflow.code.as_str().to_uppercase(),
        id.clone(),
        id[..13].to_uppercase(),
        format!(" {id} "),
    ] {
        assert_eq!(store.find_by_code_or_prefix(&typed).unwrap(), workflow, "{typed}");
    }
    for nothing in [
        "",
        " ",
        "%",
        "_____",
        "\u{1b}[2J",
        "00000000-0000-0000-0000-0000000000000",
    ] {
        let found = store.find_by_code_or_prefix(nothing);
        assert!(
            matches!(found, Err(WorkflowError::NoMatch { .. })),
            "{nothing}: {found:?}"
        );
    }
    // Sixteen first digits: among seventeen ids two share one.
    let mut firsts = std::collections::BTreeMap::from([(id[..1].to_owned(), 1)]);
    for number in 0..16 {
        let id = store
            .create(new(&format!("other {number}")), NOON)
            .unwrap()
            .suspension
            .workflow()
            .id
            .to_string();
        *firsts.entry(id[..1].to_owned()).or_insert(0) += 1;
    }
    let (first, count) = firsts.into_iter().find(|(_, count)| *count > 1).unwrap();
    let ambiguous = store.find_by_code_or_prefix(&first).unwrap_err();
    assert_eq!(
        ambiguous.to_string(),
        format!("`{first}` could mean {count} workflows")
    );
}

#[test]
fn a_finished_workflow_is_found_only_where_no_live_one_is_meant() {
    let (_directory, mut store) = opened();
    let finished = store.create(new("1"), NOON).unwrap().suspension.workflow();
    store.apply(finished.id, Event::Withdraw, NOON).unwrap();
    assert_eq!(
        store
            .find_by_code_or_prefix(finished.code.as_str())
            .unwrap()
            .state,
        State::Withdrawn
    );
    let live = store.create(new("2"), NOON).unwrap().suspension.workflow();
    store
        .connection
        .execute(
            "UPDATE workflow SET code = ?1 WHERE id = ?2",
            params![finished.code.as_str(), live.id.to_string()],
        )
        .unwrap();
    assert_eq!(
        store.find_by_code_or_prefix(finished.code.as_str()).unwrap().id,
        live.id
    );
}

#[test]
fn a_sweep_marks_what_expired_and_deletes_what_is_a_day_old() {
    let (_directory, mut store) = opened();
    let mut long = new("long");
    long.time_to_live = Duration::from_hours(1);
    let long = store.create(long, NOON).unwrap().suspension.workflow();
    let short = store.create(new("short"), NOON).unwrap().suspension.workflow();
    let nothing = SweepReport {
        expired: vec![],
        deleted: 0,
    };
    assert_eq!(store.sweep(NOON, &[]).unwrap(), nothing);
    assert!(!store.needs_sweep(NOON).unwrap());
    assert!(
        store.needs_sweep(short.expires_at).unwrap(),
        "one is over and none is old"
    );
    assert_eq!(
        store.sweep(short.expires_at, &[]).unwrap(),
        SweepReport {
            expired: vec![short.id],
            deleted: 0,
        }
    );
    assert!(!store.needs_sweep(short.expires_at).unwrap());
    assert_eq!(
        store.pending(short.expires_at).unwrap(),
        std::slice::from_ref(&long)
    );
    let next_day = short.expires_at.plus(Duration::from_hours(24));
    assert_eq!(
        store.sweep(next_day, &[]).unwrap(),
        SweepReport {
            expired: vec![long.id],
            deleted: 1,
        }
    );
    assert!(matches!(store.find(short.id), Err(WorkflowError::Unknown { .. })));
    assert!(!store.needs_sweep(next_day).unwrap());
    let day_after = long.expires_at.plus(Duration::from_hours(24));
    assert!(
        store.needs_sweep(day_after).unwrap(),
        "one is old and none is over"
    );
}

#[test]
fn a_row_that_a_later_pml_wrote_hides_nothing_and_still_expires() {
    let (_directory, mut store) = opened();
    let strange = store.create(new("strange"), NOON).unwrap().suspension.workflow();
    let plain = store.create(new("plain"), NOON).unwrap().suspension.workflow();
    let change = |store: &SqliteStore, id: WorkflowId| {
        let changed = r#"UPDATE workflow SET ask = '{"ask":"telepathy"}' WHERE id = ?1"#;
        assert_eq!(store.connection.execute(changed, [id.to_string()]).unwrap(), 1);
    };
    change(&store, strange.id);
    assert_eq!(store.pending(NOON).unwrap(), std::slice::from_ref(&plain));
    let taken = store.answer_and_take(
        strange.id,
        &on_its_tool(),
        given(APPROVE, Road::Continuation.into()),
        NOON,
    );
    assert!(matches!(taken, Err(WorkflowError::Database { .. })), "{taken:?}");
    assert_eq!(store.sweep(plain.expires_at, &[]).unwrap().expired.len(), 2);
    assert_eq!(store.unfinished().unwrap(), []);
}

#[test]
fn what_was_created_in_the_future_is_over_for_every_operation() {
    let (_directory, mut store) = opened();
    let [asked, approved, plain] = ["asked", "approved", "plain"]
        .map(|name| store.create(new(name), NOON).unwrap().suspension.workflow());
    let approve = || Event::Answer {
        answer: APPROVE,
        by: Road::Cli.into(),
    };
    store.apply(approved.id, approve(), NOON).unwrap();
    let back = NOON.minus(Duration::from_hours(1));
    let expires_at = asked.expires_at;
    assert_eq!(store.pending(back).unwrap(), []);
    assert_eq!(
        refused(store.apply(asked.id, approve(), back)),
        TransitionError::Expired { expires_at }
    );
    assert_eq!(
        refused(store.apply(approved.id, Event::Take, back)),
        TransitionError::Expired { expires_at }
    );
    let again = store.create(new("asked"), back).unwrap().suspension;
    assert!(matches!(&again, Suspension::New(again) if again.id != asked.id));
    assert!(matches!(
        store.create(new("approved"), back).unwrap().suspension,
        Suspension::New(_)
    ));
    let swept = store.sweep(back, &[]).unwrap();
    assert_eq!(swept.expired.len(), 2, "the approved one and the plain one");
    assert_eq!(
        (swept.deleted, store.find(plain.id).unwrap().state),
        (0, State::Expired)
    );
    let far_back = NOON.minus(Duration::from_hours(48));
    assert_eq!(store.sweep(far_back, &[]).unwrap().deleted, 5);
}

#[test]
fn what_is_overdue_by_another_clock_is_swept_and_what_is_final_stays_as_it_is() {
    let (_directory, mut store) = opened();
    let [taken, waits] =
        ["taken", "waits"].map(|name| store.create(new(name), NOON).unwrap().suspension.workflow().id);
    let by = Road::Cli.into();
    let state = store
        .answer_and_take(taken, &on_its_tool(), given(APPROVE, by), NOON)
        .unwrap()
        .state;
    assert_eq!(store.sweep(NOON, &[taken, waits]).unwrap().expired, [waits]);
    assert_eq!(store.find(taken).unwrap().state, state);
}

#[test]
fn every_change_is_told_once_to_what_has_read_less_far() {
    let (_directory, mut store) = opened();
    let id_of = |store: &mut SqliteStore, arguments: &str| {
        let created = store.create(new(arguments), NOON).unwrap().suspension.workflow();
        created.id
    };
    let (first, second) = (id_of(&mut store, "1"), id_of(&mut store, "2"));
    let told = |store: &SqliteStore, since| match store.changed_since(since).unwrap() {
        ChangedWorkflows::These { latest, workflows } => (
            latest,
            workflows.iter().map(|workflow| workflow.id).collect::<Vec<_>>(),
        ),
        ChangedWorkflows::ReadAnew => panic!("nothing was deleted"),
    };
    assert_eq!(told(&store, 0), (2, vec![first, second]));
    assert_eq!(told(&store, 2), (2, vec![]));
    store
        .answer(first, given(APPROVE, Provenance::of(Road::Web, "laptop")), NOON)
        .unwrap();
    assert_eq!(told(&store, 2), (3, vec![first]));
    assert_eq!(
        told(&store, 0),
        (3, vec![second, first]),
        "the newest change is last"
    );
    store.leave_unattended(second).unwrap();
    assert_eq!(told(&store, 3), (4, vec![second]));
    assert_eq!(store.latest_revision().unwrap(), 4);
    assert_eq!(store.find(second).unwrap().attended, AskAttendance::ByNone);
    let answered = store.find(first).unwrap();
    let State::Answered { by, .. } = &answered.state else {
        panic!("{answered:?}")
    };
    assert_eq!(by.to_string(), "web:laptop");
}

#[test]
fn what_was_deleted_makes_everything_be_read_anew() {
    let (_directory, mut store) = opened();
    store.create(new("1"), NOON).unwrap();
    let much_later = NOON.plus(Duration::from_hours(48));
    assert!(store.needs_sweep(much_later).unwrap());
    assert_eq!(store.sweep(much_later, &[]).unwrap().deleted, 1);
    assert!(!store.needs_sweep(much_later).unwrap());
    assert_eq!(store.changed_since(0).unwrap(), ChangedWorkflows::ReadAnew);
    let latest = store.latest_revision().unwrap();
    assert!(matches!(
        store.changed_since(latest).unwrap(),
        ChangedWorkflows::These { workflows, .. } if workflows.is_empty()
    ));
    assert_eq!(
        store.changed_since(latest + 1).unwrap(),
        ChangedWorkflows::ReadAnew,
        "a revision of another database"
    );
}

#[test]
fn what_another_process_asks_while_a_sweep_waits_for_its_turn_is_not_swept() {
    let (_directory, mut store) = opened();
    // The sweep read the clock a moment before the other process did.
    let asked_at = NOON.plus(Duration::from_millis(3));
    let id = store
        .create(new("{}"), asked_at)
        .unwrap()
        .suspension
        .workflow()
        .id;
    assert_eq!(store.sweep(NOON, &[]).unwrap().expired, []);
    let set_back = NOON.minus(Duration::from_hours(1));
    assert_eq!(store.sweep(set_back, &[]).unwrap().expired, [id]);
}

#[test]
fn what_a_person_decided_survives_a_power_cut_and_an_ask_need_not() {
    const NORMAL: i64 = 1;
    const FULL: i64 = 2;
    let (_directory, mut store) = opened();
    let survives = |store: &SqliteStore| -> i64 {
        let connection = &store.connection;
        connection
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .unwrap()
    };
    let by = || Provenance::from(Road::Cli);
    let approved = ApprovedLaunch {
        launch: Digest::of(["launch"]),
        approval: LaunchApproval {
            dependency: "serena".parse().unwrap(),
            version: None,
            integrity: None,
            package: None,
            lock: None,
            at_unix_ms: 7,
        },
    };
    for round in 0..2 {
        let id = store.create(new("{}"), NOON).unwrap().suspension.workflow().id;
        assert_eq!(survives(&store), NORMAL, "an ask, round {round}");
        store.answer(id, given(APPROVE, by()), NOON).unwrap();
        assert_eq!(survives(&store), FULL, "an answer, round {round}");
        store.leave_unattended(id).unwrap();
        assert_eq!(survives(&store), NORMAL, "a call that left, round {round}");
        store.apply(id, Event::Take, NOON).unwrap();
        assert_eq!(survives(&store), FULL, "a taken call, round {round}");
        store.sweep(NOON, &[]).unwrap();
        assert_eq!(survives(&store), NORMAL, "a sweep, round {round}");
        store.approve_launch(&approved).unwrap();
        assert_eq!(survives(&store), FULL, "an approval, round {round}");
        store.approvals().unwrap();
        assert_eq!(survives(&store), NORMAL, "a look, round {round}");
        store.forget_approvals(&approved.approval.dependency).unwrap();
        assert_eq!(survives(&store), FULL, "a withdrawal, round {round}");
    }
}

#[test]
fn a_change_of_another_process_is_seen_once_and_an_own_one_never() {
    let (directory, mut here) = opened();
    let mut there = SqliteStore::open(file(&directory)).unwrap();
    assert_eq!(here.changes().unwrap(), StoreChanges::None);
    here.create(new("{}"), NOON).unwrap();
    assert_eq!(here.changes().unwrap(), StoreChanges::None);
    assert_eq!(there.changes().unwrap(), StoreChanges::ByOthers);
    assert_eq!(there.changes().unwrap(), StoreChanges::None);
}
