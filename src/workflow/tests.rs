use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::samples::{APPROVE, FIVE_MINUTES, NOON, REFUSE, given, new, on_its_tool};
use super::sqlite::SqliteStore;
use super::*;
use crate::config::{Environment, Files, Locations};
use crate::report::Hint as _;

/// Far longer than anything here takes, even on a machine that does something else.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two clocks that stand still until they are moved.
#[derive(Clone)]
struct Hands {
    wall: Arc<AtomicI64>,
    steady: Arc<AtomicU64>,
    start: Instant,
}

impl Hands {
    fn at_noon() -> Self {
        Self {
            wall: Arc::new(AtomicI64::new(NOON.millis())),
            steady: Arc::default(),
            start: Instant::now(),
        }
    }

    fn clock(&self) -> Clock {
        let hands = self.clone();
        Arc::new(move || Moment {
            wall: Timestamp::from_millis(hands.wall.load(Ordering::SeqCst)),
            steady: hands.start + Duration::from_millis(hands.steady.load(Ordering::SeqCst)),
        })
    }

    fn pass(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap();
        self.wall
            .fetch_add(i64::try_from(millis).unwrap(), Ordering::SeqCst);
        self.steady.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the clock on the wall back.
    fn set_back(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap();
        self.wall.fetch_sub(millis, Ordering::SeqCst);
    }
}

fn file(directory: &TempDir) -> Place {
    Place::File(directory.path().join("state/workflows.db"))
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("too slow") })
}

/// Resolves when `waiting` waiters are registered.
async fn registered(workflows: &Workflows, waiting: usize) {
    while workflows
        .shared
        .waiters
        .iter()
        .map(|waiter| waiter.receiver_count())
        .sum::<usize>()
        != waiting
    {
        tokio::task::yield_now().await;
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn nothing_is_touched_before_the_first_use_and_closing_leaves_no_log() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let workflows = Workflows::new(file(&directory), Hands::at_noon().clock());
        workflows.close().await;
        assert_eq!(names(directory.path()), Vec::<String>::new());
        assert!(workflows.shared.thread.lock().unwrap().is_none());

        let created = workflows.create(new("{}")).await.unwrap().workflow();
        workflows.close().await;
        assert_eq!(
            names(&directory.path().join("state")),
            ["workflows.db", "workflows.db-turns"]
        );
        assert_eq!(workflows.pending().await.unwrap(), [created]);
    });
}

#[test]
fn a_call_is_suspended_answered_and_taken() {
    run(async {
        let workflows = Workflows::new(Place::Memory, Hands::at_noon().clock());
        let created = workflows.create(new("{}")).await.unwrap().workflow();
        assert_eq!(
            workflows
                .find_by_code_or_prefix(created.code.as_str())
                .await
                .unwrap(),
            created
        );
        let by = || Provenance::from(Road::Continuation);
        let taken = workflows
            .answer_and_take(created.id, on_its_tool(), given(APPROVE, by()))
            .await
            .unwrap();
        let state = State::Taken {
            answer: APPROVE,
            by: by(),
            at: NOON,
            taken_at: NOON,
        };
        let revision = created.revision + 1;
        let expected = Workflow {
            state,
            revision,
            ..created
        };
        assert_eq!(taken, expected);
        let again = workflows
            .answer_and_take(taken.id, on_its_tool(), given(APPROVE, by()))
            .await
            .unwrap_err();
        assert_eq!(
            again.to_string(),
            format!(
                "workflow `{}` was already used at 2026-11-16 12:00:00Z",
                taken.code
            )
        );
    });
}

#[test]
fn every_waiter_hears_an_answer_of_the_same_process() {
    run(async {
        let workflows = Workflows::new(Place::Memory, Hands::at_noon().clock());
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        let answer = async {
            registered(&workflows, 2).await;
            workflows
                .apply(
                    id,
                    Event::Answer {
                        answer: APPROVE,
                        by: Road::Web.into(),
                    },
                )
                .await
                .unwrap()
        };
        let (one, other, answered) = tokio::join!(workflows.wait(id), workflows.wait(id), answer);
        assert_eq!(
            [one.unwrap(), other.unwrap()],
            [answered.clone(), answered.clone()]
        );
        assert_eq!(workflows.wait(id).await.unwrap(), answered);
    });
}

#[test]
fn a_waiter_hears_an_answer_of_another_process() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let workflows = Workflows::new(file(&directory), Hands::at_noon().clock());
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        let answer = async {
            registered(&workflows, 1).await;
            // The wait has looked once before this job, so only looking again can bring the answer.
            workflows.pending().await.unwrap();
            let mut elsewhere = SqliteStore::open(file(&directory)).unwrap();
            elsewhere
                .apply(
                    id,
                    Event::Answer {
                        answer: REFUSE,
                        by: Road::Cli.into(),
                    },
                    NOON,
                )
                .unwrap()
        };
        let (heard, answered) = tokio::join!(workflows.wait(id), answer);
        assert_eq!(heard.unwrap(), answered);
    });
}

#[test]
fn a_surface_hears_every_change_and_its_own_looks_are_none() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let workflows = Workflows::new(file(&directory), Hands::at_noon().clock());
        let mut revisions = workflows.revisions().await.unwrap();
        revisions.borrow_and_update();
        workflows.changed_since(0).await.unwrap();
        // Whatever the look above brought about has happened once the next one is answered.
        workflows.pending().await.unwrap();
        assert!(!revisions.has_changed().unwrap());
        let mut elsewhere = SqliteStore::open(file(&directory)).unwrap();
        elsewhere.create(new("{}"), NOON).unwrap();
        revisions.changed().await.unwrap();
        assert_eq!(*revisions.borrow_and_update(), 1);
    });
}

#[test]
fn a_waiter_hears_that_time_is_up() {
    run(async {
        let hands = Hands::at_noon();
        let workflows = Workflows::new(Place::Memory, hands.clock());
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        let pass = async {
            registered(&workflows, 1).await;
            hands.pass(FIVE_MINUTES);
        };
        let (heard, ()) = tokio::join!(workflows.wait(id), pass);
        assert_eq!(heard.unwrap().state, State::Expired);
    });
}

#[test]
fn a_clock_set_back_before_the_ask_ends_it_at_once() {
    run(async {
        let hands = Hands::at_noon();
        let workflows = Workflows::new(Place::Memory, hands.clock());
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        let set_back = async {
            registered(&workflows, 1).await;
            hands.set_back(Duration::from_hours(1));
        };
        let (heard, ()) = tokio::join!(workflows.wait(id), set_back);
        assert_eq!(heard.unwrap().state, State::Expired);
        let fresh = workflows.create(new("{}")).await.unwrap();
        assert!(matches!(fresh, Suspension::New(_)), "{fresh:?}");
        assert_eq!(workflows.pending().await.unwrap(), [fresh.workflow()]);
    });
}

#[test]
fn a_clock_set_back_within_the_life_of_an_ask_does_not_make_it_live_longer() {
    run(async {
        let hands = Hands::at_noon();
        let workflows = Workflows::new(Place::Memory, hands.clock());
        hands.pass(Duration::from_mins(1));
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        // The thread has looked around after the creation once it answers again.
        assert_eq!(workflows.pending().await.unwrap().len(), 1);
        hands.pass(Duration::from_mins(4));
        hands.set_back(Duration::from_mins(3));
        let pending = workflows.pending().await.unwrap();
        assert_eq!(pending.len(), 1, "by either clock it lives");
        let pass = async {
            registered(&workflows, 1).await;
            hands.pass(Duration::from_mins(1));
        };
        let (heard, ()) = tokio::join!(workflows.wait(id), pass);
        assert_eq!(heard.unwrap().state, State::Expired, "five minutes went by");
        let by = || Provenance::from(Road::Continuation);
        let late = workflows
            .answer_and_take(id, on_its_tool(), given(APPROVE, by()))
            .await;
        assert!(matches!(late, Err(WorkflowError::Refused { .. })), "{late:?}");
    });
}

#[test]
fn what_expires_is_swept_without_anybody_asking() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let clock: Clock = Arc::new(move || Moment {
            wall: NOON.plus(started.elapsed()),
            steady: Instant::now(),
        });
        let workflows = Workflows::new(file(&directory), clock);
        let mut brief = new("{}");
        brief.time_to_live = Duration::from_millis(50);
        let id = workflows.create(brief).await.unwrap().workflow().id;
        // Watched from outside, so that the front is not woken by the question.
        let outside = SqliteStore::open(file(&directory)).unwrap();
        while outside.find(id).unwrap().state != State::Expired {
            tokio::task::yield_now().await;
        }
    });
}

/// A history that belongs to this directory, and the place of its first part.
fn history_in(directory: &TempDir) -> (History, PathBuf) {
    let environment = Environment::new([("HOME", directory.path())], directory.path());
    let locations = Locations::of(&environment).unwrap();
    let files = Files::new(directory.path().join(".pml.json"), &locations);
    let part = locations.history().join("part-00000001.jsonl");
    (History::new(&locations, files, || NOON.millis()), part)
}

/// The lapses that are recorded: the ids and why, in the order of the ids.
fn lapses(part: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(part).unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let lapses = lines.filter(|line| line["event"] == "lapse");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let mut lapses: Vec<_> = lapses
        .map(|line| (text(&line["id"]), text(&line["why"])))
        .collect();
    lapses.sort();
    lapses
}

#[test]
fn an_ask_that_ends_unused_is_recorded_once_among_processes_and_a_used_one_is_not() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let hands = Hands::at_noon();
        let (history, part) = history_in(&directory);
        let open = || Workflows::with_history(file(&directory), hands.clock(), history.clone());
        let (here, there) = (open(), open());
        let mut ids = Vec::new();
        for number in 0..5 {
            let asked = here.create(new(&number.to_string())).await.unwrap();
            ids.push(asked.workflow().id);
        }
        let [unanswered, withdrawn, used, unused, refused] = ids[..] else {
            panic!("{ids:?}");
        };
        there.apply(withdrawn, Event::Withdraw).await.unwrap();
        assert!(here.apply(withdrawn, Event::Withdraw).await.is_err());
        let expected = on_its_tool();
        let by_hand = |answer| given(answer, Road::Cli.into());
        there
            .answer_and_take(used, expected, by_hand(APPROVE))
            .await
            .unwrap();
        there.answer(unused, by_hand(APPROVE)).await.unwrap();
        there.answer(refused, by_hand(REFUSE)).await.unwrap();
        hands.pass(FIVE_MINUTES);
        let (one, other) = tokio::join!(here.pending(), there.pending());
        assert_eq!((one.unwrap(), other.unwrap()), (Vec::new(), Vec::new()));
        open().pending().await.unwrap();
        let mut expected = vec![
            (unanswered.to_string(), "expired".to_owned()),
            (withdrawn.to_string(), "withdrawn".to_owned()),
            (unused.to_string(), "expired".to_owned()),
        ];
        expected.sort();
        assert_eq!(lapses(&part), expected);
    });
}

#[test]
fn an_ask_that_is_found_over_by_the_one_in_its_place_is_recorded_as_well() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let hands = Hands::at_noon();
        let (history, part) = history_in(&directory);
        let workflows = Workflows::with_history(file(&directory), hands.clock(), history);
        workflows.pending().await.unwrap();
        // Asked by another process while this one has nothing to look for: it does not know the deadline.
        let mut outside = SqliteStore::open(file(&directory)).unwrap();
        let over = outside.create(new("{}"), NOON).unwrap().suspension.workflow();
        hands.pass(FIVE_MINUTES);
        let again = workflows.create(new("{}")).await.unwrap().workflow();
        assert_ne!(again.id, over.id);
        assert_eq!(lapses(&part), [(over.id.to_string(), "expired".to_owned())]);
    });
}

#[test]
fn a_sweep_that_fails_breaks_nothing() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let hands = Hands::at_noon();
        let workflows = Workflows::new(file(&directory), hands.clock());
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        let outside = SqliteStore::open(file(&directory)).unwrap();
        outside.execute("ALTER TABLE workflow RENAME TO hidden");
        hands.pass(FIVE_MINUTES);
        for _ in 0..3 {
            let error = workflows.wait(id).await.unwrap_err();
            assert!(matches!(error, WorkflowError::Database { .. }), "{error:?}");
        }
        outside.execute("ALTER TABLE hidden RENAME TO workflow");
        assert_eq!(workflows.wait(id).await.unwrap().state, State::Expired);
    });
}

#[test]
fn a_waiter_outlives_the_thread_that_watched_for_it() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let workflows = Workflows::new(file(&directory), Hands::at_noon().clock());
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        let answer = async {
            registered(&workflows, 1).await;
            workflows.close().await;
            let mut elsewhere = SqliteStore::open(file(&directory)).unwrap();
            elsewhere
                .apply(
                    id,
                    Event::Answer {
                        answer: APPROVE,
                        by: Road::Cli.into(),
                    },
                    NOON,
                )
                .unwrap()
        };
        let (heard, answered) = tokio::join!(workflows.wait(id), answer);
        assert_eq!(heard.unwrap(), answered);
    });
}

#[test]
fn a_waiter_that_leaves_is_forgotten() {
    run(async {
        let workflows = Workflows::new(Place::Memory, Hands::at_noon().clock());
        let id = workflows.create(new("{}")).await.unwrap().workflow().id;
        tokio::select! {
            biased;
            _ = workflows.wait(id) => panic!("nobody answered"),
            () = registered(&workflows, 1) => {}
        }
        while !workflows.shared.waiters.is_empty() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn waiting_for_an_unknown_workflow_is_an_error() {
    run(async {
        let workflows = Workflows::new(Place::Memory, Hands::at_noon().clock());
        let id = WorkflowId::new(uuid::Uuid::from_u128(7));
        let error = workflows.wait(id).await.unwrap_err();
        assert!(matches!(error, WorkflowError::Unknown { .. }), "{error:?}");
        assert!(!error.is_of_the_store(), "it refused what was asked of it");
    });
}

#[test]
fn a_database_that_cannot_be_opened_refuses_everything_until_it_can() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let blocking = directory.path().join("state");
        drop(
            std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&blocking)
                .unwrap(),
        );
        let workflows = Workflows::new(file(&directory), Hands::at_noon().clock());
        let id = WorkflowId::new(uuid::Uuid::from_u128(7));
        let by = || Provenance::from(Road::Continuation);
        for error in [
            workflows.create(new("{}")).await.map(drop).unwrap_err(),
            workflows
                .answer_and_take(id, on_its_tool(), given(APPROVE, by()))
                .await
                .map(drop)
                .unwrap_err(),
            workflows.wait(id).await.map(drop).unwrap_err(),
            workflows.pending().await.map(drop).unwrap_err(),
        ] {
            assert!(matches!(error, WorkflowError::Directory { .. }), "{error:?}");
            assert!(error.is_of_the_store());
            assert!(error.hint().unwrap().starts_with("to see who owns it: ls -ld /"));
        }
        std::fs::remove_file(&blocking).unwrap();
        assert_eq!(workflows.pending().await.unwrap(), []);
    });
}

#[test]
fn a_surface_is_told_what_is_newer_and_nothing_because_it_looked() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let workflows = Workflows::new(file(&directory), Hands::at_noon().clock());
        workflows.create(new("{}")).await.unwrap();
        let mut revisions = workflows.revisions().await.unwrap();
        let seen = *revisions.borrow_and_update();
        // What follows a job is done before the next one.
        for _ in 0..3 {
            workflows.changed_since(seen).await.unwrap();
        }
        assert!(!revisions.has_changed().unwrap(), "reading is no news");
        workflows.create(new("{\"a\":1}")).await.unwrap();
        revisions.changed().await.unwrap();
        assert!(*revisions.borrow_and_update() > seen);
    });
}

#[test]
fn approvals_are_read_again_only_when_one_changed_and_nothing_is_opened_where_there_are_none() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let place = file(&directory);
        let workflows = Workflows::new(place.clone(), Hands::at_noon().clock());
        let mark = directory.path().join("state/workflows.db-approvals");
        assert_eq!(workflows.approvals_mark(), Some(mark));
        let none = workflows.known_approvals().unwrap();
        assert_eq!(none.all().count(), 0);
        assert_eq!(place.approvals().unwrap(), *none);
        let serena = "serena".parse().unwrap();
        assert_eq!(place.forget_approvals(&serena).unwrap(), []);
        assert_eq!(names(directory.path()), Vec::<String>::new());

        let launch = Digest::of(["launch"]);
        let given = LaunchApproval {
            dependency: serena.clone(),
            version: None,
            integrity: None,
            package: None,
            lock: None,
            at_unix_ms: 7,
        };
        let mut elsewhere = SqliteStore::open(place.clone()).unwrap();
        elsewhere
            .approve_launch(&ApprovedLaunch {
                launch: launch.clone(),
                approval: given.clone(),
            })
            .unwrap();
        assert_eq!(workflows.known_approvals(), None, "another process gave one");
        let read = workflows.approvals().await.unwrap();
        assert_eq!(read.all().collect::<Vec<_>>(), [&given]);
        assert!(Arc::ptr_eq(&workflows.known_approvals().unwrap(), &read));

        let found = FoundContent {
            version: "1.2.3".to_owned(),
            integrity: Some("sha512-a".to_owned()),
            package: Some("npm:serena".to_owned()),
            lock: Some(Digest::of(["lock"])),
        };
        let completed = LaunchApproval {
            version: Some(found.version.clone()),
            integrity: found.integrity.clone(),
            package: found.package.clone(),
            lock: found.lock.clone(),
            ..given
        };
        let complete = || workflows.complete_approval(launch.clone(), found.clone());
        assert_eq!(complete().await.unwrap().as_ref(), Some(&completed));
        assert_eq!(place.approvals().unwrap().find(&launch), Some(&completed));
        assert_eq!(place.forget_approvals(&serena).unwrap(), [completed]);
        assert_eq!(complete().await.unwrap(), None, "it was taken back");
        assert_eq!(workflows.approvals().await.unwrap().all().count(), 0);
    });
}

#[test]
fn in_memory_no_other_process_can_change_an_approval() {
    let workflows = Workflows::new(Place::Memory, Hands::at_noon().clock());
    assert_eq!(workflows.approvals_mark(), None);
    assert_eq!(workflows.known_approvals(), None);
}

#[test]
fn the_newest_workflow_is_listed_first_and_shows_that_its_call_has_left() {
    run(async {
        let hands = Hands::at_noon();
        let workflows = Workflows::new(Place::Memory, hands.clock());
        let old = workflows.create(new("{}")).await.unwrap().workflow();
        hands.pass(Duration::from_millis(1));
        let newer = workflows.create(new("{\"a\":1}")).await.unwrap().workflow();
        workflows.leave_unattended(newer.id).await.unwrap();
        let left = Workflow {
            attended: AskAttendance::ByNone,
            ..workflows.find(newer.id).await.unwrap()
        };
        assert_eq!(workflows.recent(2).await.unwrap(), [left.clone(), old]);
        assert_eq!(workflows.recent(1).await.unwrap(), [left]);
    });
}

#[test]
fn a_second_surface_is_no_news_to_the_first() {
    run(async {
        let workflows = Workflows::new(Place::Memory, Hands::at_noon().clock());
        workflows.create(new("{}")).await.unwrap();
        let mut first = workflows.revisions().await.unwrap();
        let latest = workflows.latest_revision().await.unwrap();
        assert_eq!(*first.borrow_and_update(), latest);
        let second = workflows.revisions().await.unwrap();
        assert_eq!((first.has_changed().unwrap(), *second.borrow()), (false, latest));
    });
}
