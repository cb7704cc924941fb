use std::path::Path;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::workflow::samples::{APPROVE, NOON, REFUSE, new, on_its_tool};
use crate::workflow::{Answer, Event, LastCheck, RecordedAnswer, Road, Store as _, WorkflowId};

fn approval(dependency: &str) -> LaunchApproval {
    LaunchApproval {
        dependency: dependency.parse().unwrap(),
        version: Some("1.2.3".to_owned()),
        integrity: None,
        package: None,
        lock: None,
        at_unix_ms: 7,
    }
}

fn approved(launch: &str, approval: LaunchApproval) -> ApprovedLaunch {
    ApprovedLaunch {
        launch: Digest::of([launch]),
        approval,
    }
}

fn place(directory: &TempDir) -> Place {
    Place::File(directory.path().join("state/workflows.db"))
}

fn open(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(place(directory)).unwrap()
}

fn found(store: &mut SqliteStore, launch: &str) -> Option<LaunchApproval> {
    store.approvals().unwrap().find(&Digest::of([launch])).cloned()
}

#[test]
fn an_approval_covers_exactly_its_digest() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    assert_eq!(found(&mut store, "one"), None);
    store.approve_launch(&approved("one", approval("fs"))).unwrap();
    assert_eq!(found(&mut store, "one"), Some(approval("fs")));
    assert_eq!(found(&mut store, "other"), None);
}

#[test]
fn other_content_than_was_approved_is_not_covered() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    let exact = LaunchApproval {
        integrity: Some("sha512-a".to_owned()),
        ..approval("fs")
    };
    store.approve_launch(&approved("early", approval("fs"))).unwrap();
    store.approve_launch(&approved("exact", exact)).unwrap();
    let approvals = store.approvals().unwrap();
    let covers = |launch: &str, found| approvals.covers(&Digest::of([launch]), found, None);
    assert_eq!(
        (covers("early", None), covers("early", Some("sha512-a"))),
        (true, true)
    );
    assert_eq!(
        (covers("exact", None), covers("exact", Some("sha512-a"))),
        (true, true)
    );
    assert!(!covers("exact", Some("sha512-b")) && !covers("none", None));
    let lock = |name: &str| Digest::of([name]);
    let whole = LaunchApproval {
        lock: Some(lock("a")),
        ..approval("fs")
    };
    store.approve_launch(&approved("exact", whole)).unwrap();
    let approvals = store.approvals().unwrap();
    let covers = |found: Option<Digest>| approvals.covers(&Digest::of(["exact"]), None, found.as_ref());
    assert!(covers(None) && covers(Some(lock("a"))) && !covers(Some(lock("b"))));
}

#[test]
fn what_another_process_forgets_or_records_is_announced_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let (mut here, mut there) = (open(&directory), open(&directory));
    for (launch, dependency) in [("one", "fs"), ("two", "fs"), ("three", "time")] {
        here.approve_launch(&approved(launch, approval(dependency)))
            .unwrap();
    }
    let known = here.approvals().unwrap();
    assert!(known.are_current(&place(&directory)));
    assert_eq!(there.forget_approvals(&"fs".parse().unwrap()).unwrap().len(), 2);
    assert!(!known.are_current(&place(&directory)), "one look tells");
    assert_eq!(found(&mut here, "one"), None);
    there.approve_launch(&approved("one", approval("git"))).unwrap();
    assert_eq!(found(&mut here, "one"), Some(approval("git")));
    assert_eq!(found(&mut here, "three"), Some(approval("time")));
    let known = here.approvals().unwrap();
    there.create(new("{}"), NOON).unwrap();
    assert_eq!(there.forget_approvals(&"none".parse().unwrap()).unwrap(), []);
    assert!(known.are_current(&place(&directory)), "no approval changed");
}

#[test]
fn what_was_taken_back_is_not_completed() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    let launch = Digest::of(["one"]);
    store.approve_launch(&approved("one", approval("fs"))).unwrap();
    let content = FoundContent {
        version: "1.2.3".to_owned(),
        integrity: Some("sha512-a".to_owned()),
        package: None,
        lock: None,
    };
    let completed = LaunchApproval {
        integrity: Some("sha512-a".to_owned()),
        ..approval("fs")
    };
    assert_eq!(
        store.complete_approval(&launch, &content).unwrap(),
        Some(completed.clone())
    );
    assert_eq!(found(&mut store, "one"), Some(completed.clone()));
    let other = FoundContent {
        integrity: Some("sha512-b".to_owned()),
        ..content.clone()
    };
    assert_eq!(
        store.complete_approval(&launch, &other).unwrap(),
        Some(completed),
        "what was found first stays"
    );
    assert_eq!(store.forget_approvals(&"fs".parse().unwrap()).unwrap().len(), 1);
    assert_eq!(store.complete_approval(&launch, &content).unwrap(), None);
    assert_eq!(found(&mut store, "one"), None);
}

fn suspended(store: &mut SqliteStore) -> WorkflowId {
    store.create(new("{}"), NOON).unwrap().suspension.workflow().id
}

fn approving(answer: Answer) -> RecordedAnswer {
    RecordedAnswer {
        answer,
        by: Road::Cli.into(),
        approves: Some(approved("one", approval("fs"))),
        check: LastCheck::none(),
    }
}

#[test]
fn an_answer_that_does_not_count_approves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    let id = suspended(&mut store);
    let refusal = RecordedAnswer {
        approves: None,
        ..approving(REFUSE)
    };
    store.answer(id, refusal, NOON).unwrap();
    store.answer(id, approving(APPROVE), NOON).unwrap_err();
    store
        .answer_and_take(id, &on_its_tool(), approving(APPROVE), NOON)
        .unwrap_err();
    assert_eq!(found(&mut store, "one"), None);

    let id = suspended(&mut store);
    store.apply(id, Event::Withdraw, NOON).unwrap();
    store
        .answer_and_take(id, &on_its_tool(), approving(APPROVE), NOON)
        .unwrap_err();
    assert_eq!(found(&mut store, "one"), None);

    let id = suspended(&mut store);
    store
        .answer_and_take(id, &on_its_tool(), approving(APPROVE), NOON)
        .unwrap();
    assert_eq!(found(&mut store, "one"), Some(approval("fs")));
}

#[test]
fn an_answer_that_is_vetoed_at_the_last_moment_leaves_the_ask_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    let id = suspended(&mut store);
    let vetoed = || RecordedAnswer {
        check: LastCheck::new(move |workflow| {
            assert_eq!(workflow.id, id);
            Err("not any more".into())
        }),
        ..approving(APPROVE)
    };
    for outcome in [
        store.answer(id, vetoed(), NOON),
        store.answer_and_take(id, &on_its_tool(), vetoed(), NOON),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, WorkflowError::Vetoed { .. }), "{error}");
    }
    assert_eq!(store.pending(NOON).unwrap().len(), 1);
    assert_eq!(found(&mut store, "one"), None);
    // What was answered before is taken under that answer, which was looked at then.
    store.answer(id, approving(APPROVE), NOON).unwrap();
    store.answer_and_take(id, &on_its_tool(), vetoed(), NOON).unwrap();
}

#[test]
fn an_approval_that_cannot_be_announced_leaves_the_ask_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    let id = suspended(&mut store);
    let Place::File(file) = place(&directory) else {
        unreachable!()
    };
    std::fs::create_dir(mark(&file)).unwrap();
    let error = store.answer(id, approving(APPROVE), NOON).unwrap_err();
    assert!(matches!(error, WorkflowError::Create { .. }), "{error}");
    assert_eq!(store.pending(NOON).unwrap().len(), 1);
    std::fs::remove_dir(mark(&file)).unwrap();
    store.answer(id, approving(APPROVE), NOON).unwrap();
    assert_eq!(found(&mut store, "one"), Some(approval("fs")));
}

#[test]
fn a_damaged_row_is_no_approval() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    store.approve_launch(&approved("one", approval("fs"))).unwrap();
    store.execute("UPDATE approval SET record = '{'");
    assert_eq!(found(&mut store, "one"), None);
    assert_eq!(store.forget_approvals(&"fs".parse().unwrap()).unwrap(), []);
    store.approve_launch(&approved("one", approval("fs"))).unwrap();
    assert_eq!(found(&mut store, "one"), Some(approval("fs")));
}

/// Brings a state directory of the second format into a temporary one: its database as SQL, its approvals as files.
fn second_format(directory: &TempDir) -> std::path::PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/state-format-2");
    let state = directory.path().join("state");
    std::fs::create_dir_all(state.join("approved")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the file of an older pml")]
    let database = rusqlite::Connection::open(state.join("workflows.db")).unwrap();
    database
        .execute_batch(&std::fs::read_to_string(fixtures.join("workflows.sql")).unwrap())
        .unwrap();
    for entry in std::fs::read_dir(fixtures.join("approved")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, state.join("approved").join(path.file_name().unwrap())).unwrap();
    }
    state
}

fn entries(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_approvals_of_the_second_format_are_migrated_once_and_kept_aside() {
    let directory = tempfile::tempdir().unwrap();
    let state = second_format(&directory);
    let before = entries(&state.join("approved"));
    let texts = |folder: &str| -> Vec<String> {
        let read = |name: &String| std::fs::read_to_string(state.join(folder).join(name)).unwrap();
        before.iter().map(read).collect()
    };
    let old = texts("approved");
    let mut store = open(&directory);
    // Byte for byte, under the name of its file.
    let rows = |store: &SqliteStore| {
        store.text(
            "SELECT group_concat(launch || '=' || record, ';') FROM (SELECT * FROM approval ORDER BY launch)",
        )
    };
    let records = before.iter().zip(&old).filter_map(|(name, text)| {
        let key = name.strip_suffix(".json")?;
        Some(format!("{key}={text}"))
    });
    assert_eq!(rows(&store), records.collect::<Vec<_>>().join(";"));
    assert_eq!(texts("approved.migrated"), old);
    assert!(!state.join("approved").exists());
    let approvals = store.approvals().unwrap();
    let plain = approvals.find(&Digest::of(["plain"])).unwrap();
    assert_eq!(
        (plain.dependency.as_str(), &plain.integrity, plain.at_unix_ms),
        ("files", &None, 1_794_830_400_000)
    );
    assert!(approvals.covers(&Digest::of(["package"]), Some("sha512-abc"), None));
    assert!(!approvals.covers(&Digest::of(["package"]), Some("sha512-abd"), None));
    assert_eq!(store.recent(10).unwrap().len(), 2, "the workflows stay");
    assert_eq!(store.pending(NOON).unwrap().len(), 1);

    store.forget_approvals(&"files".parse().unwrap()).unwrap();
    drop(store);
    assert_eq!(found(&mut open(&directory), "plain"), None, "never a second time");
}

#[test]
fn an_unreadable_file_of_the_second_format_refuses_and_names_itself() {
    let directory = tempfile::tempdir().unwrap();
    let state = second_format(&directory);
    let broken = state.join("approved/broken.json");
    std::fs::copy(state.join("workflows.db"), &broken).unwrap();
    let before = std::fs::read(state.join("workflows.db")).unwrap();
    for _ in 0..2 {
        let error = SqliteStore::open(place(&directory)).unwrap_err();
        let rendered = crate::report::render_hinted(&error);
        assert!(
            rendered.contains("broken.json` of an older pml cannot be read, so no approval counts"),
            "{rendered}"
        );
        assert!(
            rendered.ends_with(&format!(
                "to be asked again for what it approved: rm {}",
                broken.display()
            )),
            "{rendered}"
        );
    }
    assert_eq!(entries(&state.join("approved")).len(), 4, "nothing was moved");
    assert_eq!(
        std::fs::read(state.join("workflows.db")).unwrap().len(),
        before.len(),
        "the format is the old one"
    );
    std::fs::remove_file(&broken).unwrap();
    assert!(found(&mut open(&directory), "plain").is_some());
}

#[test]
fn a_migration_that_died_before_the_files_were_set_aside_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let state = second_format(&directory);
    let mut store = open(&directory);
    store.forget_approvals(&"files".parse().unwrap()).unwrap();
    drop(store);
    // As if the process had died between the commit and the move.
    disk::rename(&state.join("approved.migrated"), &state.join("approved")).unwrap();
    let mut store = open(&directory);
    assert_eq!(found(&mut store, "plain"), None, "what was taken back stays so");
    assert!(found(&mut store, "package").is_some());
    assert!(!state.join("approved").exists() && state.join("approved.migrated").exists());
    // An older pml that still runs records where nothing is read any more: kept, under another name.
    std::fs::create_dir(state.join("approved")).unwrap();
    drop(open(&directory));
    assert!(state.join("approved.migrated.1").exists() && !state.join("approved").exists());
}

#[test]
fn approvals_whose_mark_was_lost_count_again_once_the_database_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(&directory);
    let mark = place.approvals_mark().unwrap();
    drop(open(&directory));
    assert!(!mark.exists(), "without an approval there is no mark");
    open(&directory)
        .approve_launch(&approved("one", approval("fs")))
        .unwrap();
    std::fs::remove_file(&mark).unwrap();
    assert_eq!(place.approvals().unwrap().all().count(), 0);
    drop(open(&directory));
    let known = place.approvals().unwrap();
    assert_eq!(known.find(&Digest::of(["one"])), Some(&approval("fs")));
    drop(open(&directory));
    assert!(known.are_current(&place), "opening changed none");
}

#[test]
fn files_beside_a_database_whose_approvals_are_in_a_table_approve_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let state = second_format(&directory);
    #[expect(clippy::disallowed_methods, reason = "the file of an older pml")]
    let database = rusqlite::Connection::open(state.join("workflows.db")).unwrap();
    database.execute_batch(include_str!("../3.sql")).unwrap();
    database.pragma_update(None, "user_version", 3).unwrap();
    drop(database);
    let mut store = open(&directory);
    assert_eq!(store.approvals().unwrap().all().count(), 0);
    assert!(state.join("approved.migrated").exists() && !state.join("approved").exists());
}
