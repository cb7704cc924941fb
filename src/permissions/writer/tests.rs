//! Files as they lie around: linked, read-only, broken, shared.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::LazyLock;

use pretty_assertions::assert_eq;

use super::*;
use crate::config::{Environment, Locations, RuleList};

/// A project whose file is the user's own work; nothing of it is recorded anywhere.
fn project_file() -> FileKind<'static> {
    static FILES: LazyLock<Files> = LazyLock::new(|| {
        let nowhere = Path::new("/proc/nowhere");
        let environment = Environment::new([("HOME", nowhere)], nowhere);
        let locations = Locations::of(&environment).unwrap();
        Files::new(nowhere.join(".pml.json"), &locations)
    });
    FileKind::Pml(&FILES)
}

fn allow(pattern: &str) -> [ConfigChange; 1] {
    [ConfigChange::AddRule {
        list: RuleList::Allow,
        pattern: pattern.parse().unwrap(),
    }]
}

#[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_missing_file_is_created_with_defaults() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("new/pml.json");
    let edited = edit(&path, project_file(), &allow("a:b")).unwrap();
    let expected = DEFAULTS.replace("\"allow\": []", "\"allow\": [\"a:b\"]");
    assert_eq!(
        edited,
        FileEdit {
            file: path.clone(),
            before: None,
            after: expected.clone(),
            durability: WriteDurability::Confirmed,
        }
    );
    assert_eq!(read(&path), expected);
    assert_eq!(names(&root.path().join("new")), ["pml.json"]);
}

#[test]
fn a_link_is_followed_and_the_mode_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("dotfiles.json");
    let link = root.path().join(".pml.json");
    write(&target, "{}");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("dotfiles.json", &link).unwrap();
    edit(&link, project_file(), &allow("a:b")).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(read(&target).contains("a:b"));
    assert_eq!(target.metadata().unwrap().mode() & 0o7777, 0o640);
    assert_eq!(names(root.path()), [".pml.json", "dotfiles.json"]);
}

#[test]
fn a_link_to_nothing_creates_its_target() {
    let root = tempfile::tempdir().unwrap();
    let link = root.path().join(".pml.json");
    symlink("there/real.json", &link).unwrap();
    edit(&link, project_file(), &allow("a:b")).unwrap();
    assert!(read(&root.path().join("there/real.json")).contains("a:b"));
    symlink("b", root.path().join("a")).unwrap();
    symlink("a", root.path().join("b")).unwrap();
    let error = edit(&root.path().join("a"), project_file(), &allow("a:b")).unwrap_err();
    assert!(matches!(error, WriteError::Write { .. }), "{error}");
}

#[test]
fn a_broken_file_is_never_touched() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    for text in [
        "",
        "{",
        "{\"permisions\": {}}",
        "[]",
        "{\"permissions\": {\"allow\": [5]}}",
    ] {
        write(&path, text);
        let before = path.metadata().unwrap().ino();
        let error = edit(&path, project_file(), &allow("a:b")).unwrap_err();
        assert!(matches!(error, WriteError::Broken { .. }), "{error}");
        assert_eq!(
            (read(&path).as_str(), path.metadata().unwrap().ino()),
            (text, before)
        );
    }
    assert_eq!(names(root.path()), [".pml.json"]);
}

#[test]
fn a_change_that_would_break_the_file_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    write(&path, "{}");
    let change = ConfigChange::PutServer {
        name: "x".to_owned(),
        entry: serde_json::json!({"comand": "y"}),
    };
    let error = edit(&path, project_file(), &[change]).unwrap_err();
    assert!(matches!(error, WriteError::Breaking { .. }), "{error}");
    assert_eq!(read(&path), "{}");
}

#[test]
fn nothing_to_change_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    let text = "{\"permissions\": {\"allow\": [\"a:b\"]}}";
    write(&path, text);
    let before = path.metadata().unwrap().ino();
    assert!(!edit(&path, project_file(), &allow("a:b")).unwrap().changed());
    assert_eq!(path.metadata().unwrap().ino(), before);
}

#[test]
fn what_lies_under_the_temporary_name_is_cleared_and_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    let victim = root.path().join("victim");
    write(&path, "{}");
    write(&victim, "precious");
    symlink(&victim, root.path().join(".pml.json.tmp")).unwrap();
    edit(&path, project_file(), &allow("a:b")).unwrap();
    assert_eq!(read(&victim), "precious");
    assert_eq!(names(root.path()), [".pml.json", "victim"]);
}

#[test]
fn directories_under_the_temporary_names_block_nothing_and_stay() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    write(&path, "{}");
    std::fs::create_dir(root.path().join(".pml.json.tmp")).unwrap();
    // What a killed writer left under the next name.
    write(&root.path().join(".pml.json.tmp.1"), "half");
    edit(&path, project_file(), &allow("a:b")).unwrap();
    assert!(read(&path).contains("a:b"));
    assert_eq!(names(root.path()), [".pml.json", ".pml.json.tmp"]);
    for number in 1..20 {
        std::fs::create_dir(root.path().join(format!(".pml.json.tmp.{number}"))).unwrap();
    }
    edit(&path, project_file(), &allow("c:d")).unwrap();
    assert!(read(&path).contains("c:d"));
    assert_eq!(names(root.path()).len(), 21);
}

#[test]
fn a_link_leads_out_however_it_is_written() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("project");
    std::fs::create_dir_all(project.join("inside")).unwrap();
    symlink("..", project.join("up")).unwrap();
    let link = project.join(".pml.json");
    let elsewhere = root.path().join("elsewhere.json");
    for leading in [
        elsewhere.to_str().unwrap(),
        "../elsewhere.json",
        "up/elsewhere.json",
        "inside/../../elsewhere.json",
        "missing/../../elsewhere.json",
        "inside/../up/new/elsewhere.json",
    ] {
        symlink(leading, &link).unwrap();
        let error = edit(&link, project_file(), &allow("a:b")).unwrap_err();
        assert!(matches!(error, WriteError::LeadsOut { .. }), "{leading}: {error}");
        std::fs::remove_file(&link).unwrap();
    }
    assert_eq!(names(root.path()), ["project"]);
    // The user's own file may be a link to anywhere.
    symlink("../elsewhere.json", &link).unwrap();
    let edited = edit(&link, FileKind::User, &allow("a:b")).unwrap();
    assert_eq!(
        edited.file.canonicalize().unwrap(),
        elsewhere.canonicalize().unwrap()
    );
    assert_eq!(names(root.path()), ["elsewhere.json", "project"]);
    assert_eq!(names(&project), [".pml.json", "inside", "up"]);
}

#[test]
fn an_edit_that_falls_with_something_else_leaves_the_old_bytes() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    let jointly = |check: Result<(), &'static str>, other: Result<(), &'static str>| {
        edit_jointly(&path, project_file(), &allow("a:b"), || check, || other)
    };
    assert!(matches!(jointly(Ok(()), Err("no")), Err(JointError::Other("no"))));
    assert_eq!(names(root.path()), Vec::<String>::new(), "there was no file");
    write(&path, "{ } // mine\n");
    assert!(matches!(jointly(Ok(()), Err("no")), Err(JointError::Other("no"))));
    assert!(matches!(
        jointly(Err("late"), Ok(())),
        Err(JointError::Other("late"))
    ));
    assert_eq!(read(&path), "{ } // mine\n");
    let (edited, ()) = jointly(Ok(()), Ok(())).unwrap();
    assert_eq!(read(&path), edited.after);
    assert!(edited.changed());
    // What stands there already is not taken away by an answer that does not count.
    assert!(matches!(jointly(Ok(()), Err("no")), Err(JointError::Other("no"))));
    assert_eq!(read(&path), edited.after);
    assert_eq!(names(root.path()), [".pml.json"]);
}

#[test]
fn what_a_person_saves_while_an_edit_may_still_fall_is_not_overwritten() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    let failing = |saved: &str| {
        write(&path, "{}");
        let other = || {
            write(&path, saved);
            Err::<(), _>("no")
        };
        let outcome = edit_jointly(&path, project_file(), &allow("a:b"), || Ok(()), other);
        assert_eq!(read(&path), saved);
        outcome.unwrap_err()
    };
    let theirs = r#"{ "approvals": { "by": "human" } }"#;
    assert!(matches!(failing(theirs), JointError::Other("no")));
    for with_it in [r#"{ "permissions": { "allow": ["a:b", "c"] } }"#, "{ half a fi"] {
        assert!(matches!(
            failing(with_it),
            JointError::Stands {
                error: "no",
                source: WriteError::Overtaken { .. }
            }
        ));
    }
}

#[test]
fn what_happens_while_the_lock_is_waited_for_is_seen_before_anything_is_written() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    write(&path, "{}");
    let refused = std::sync::atomic::AtomicBool::new(false);
    let (locked, waits) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (path, refused) = (&path, &refused);
        let first = scope.spawn(move || {
            edit_jointly(
                path,
                project_file(),
                &allow("c:d"),
                || Ok::<(), &str>(()),
                || {
                    // The other writer waits for the lock from now on.
                    locked.send(()).unwrap();
                    refused.store(true, std::sync::atomic::Ordering::SeqCst);
                    Ok(())
                },
            )
        });
        let second = scope.spawn(move || {
            waits.recv().expect("the first edit was made");
            let check = || {
                if refused.load(std::sync::atomic::Ordering::SeqCst) {
                    Err("refused")
                } else {
                    Ok(())
                }
            };
            edit_jointly(path, project_file(), &allow("a:b"), check, || Ok(()))
        });
        let (edited, ()) = first.join().unwrap().unwrap();
        assert!(matches!(
            second.join().unwrap(),
            Err(JointError::Other("refused"))
        ));
        assert_eq!(read(path), edited.after);
    });
}

/// A user who wants to be asked about every project's file, and such a file.
fn strict_project(root: &Path, text: &str) -> Files {
    let environment = Environment::new([("HOME", root)], root);
    let locations = Locations::of(&environment).unwrap();
    let files = Files::new(root.join("project/.pml.json"), &locations);
    for file in [&files.user, &files.project] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
    write(&files.user, r#"{"projectTrust": "strict"}"#);
    write(&files.project, text);
    files
}

#[test]
fn an_unaccepted_file_is_left_as_it_is_and_an_accepted_one_stays_accepted_by_every_edit() {
    let root = tempfile::tempdir().unwrap();
    let text = r#"{"permissions": {"allow": ["*"]}}"#;
    let files = strict_project(root.path(), text);
    let kind = FileKind::Pml(&files);
    let jointly = |pattern: &str, other: Result<(), &'static str>| {
        edit_jointly(&files.project, kind, &allow(pattern), || Ok(()), || other)
    };
    let unaccepted = || config::read(&files).unwrap().project.unaccepted().cloned();
    for error in [
        edit(&files.project, kind, &allow("a:b")).unwrap_err(),
        preview(&files.project, kind, &allow("a:b")).unwrap_err(),
        match jointly("a:b", Ok(())) {
            Err(JointError::Write(error)) => error,
            other => panic!("{other:?}"),
        },
    ] {
        let WriteError::Unaccepted { file } = &error else {
            panic!("{error}")
        };
        assert_eq!(Some(file), unaccepted().as_ref());
        let hint = error.hint().unwrap();
        assert_eq!(hint, "to see what it wants and to accept it: pml trust");
    }
    assert_eq!(read(&files.project), text);

    let file = unaccepted().unwrap();
    trust::accept(&files.accepted, &trust::mark_of(&file, "cli")).unwrap();
    assert_eq!(unaccepted(), None);
    let seen = preview(&files.project, kind, &allow("a:b")).unwrap();
    assert_eq!(read(&files.project), text, "a preview writes nothing");
    let edited = edit(&files.project, kind, &allow("a:b")).unwrap();
    assert_eq!(edited, seen);
    assert_eq!((unaccepted(), read(&files.project)), (None, edited.after));
    jointly("c:d", Ok(())).unwrap();
    assert_eq!(unaccepted(), None);
    let kept = files.accepted.latest_of(&files.project).unwrap();
    assert_eq!(kept, config::mark_for(&files, &read(&files.project)).unwrap());
}

#[test]
fn a_new_file_is_created_once_and_counts_as_the_users_word() {
    let root = tempfile::tempdir().unwrap();
    let files = strict_project(root.path(), "{}");
    let kind = FileKind::Pml(&files);
    std::fs::remove_file(&files.project).unwrap();
    let text = r#"{"permissions": {"allow": ["a"]}}"#;
    let created = create(&files.project, kind, text).unwrap();
    assert_eq!(created, FileCreation::New(WriteDurability::Confirmed));
    assert_eq!(config::read(&files).unwrap().project, ProjectTrust::Obeyed);
    assert_eq!(create(&files.project, kind, "{}").unwrap(), FileCreation::Existed);
    assert_eq!(read(&files.project), text);
    let error = create(&root.path().join("x.json"), kind, "{").unwrap_err();
    assert!(matches!(error, WriteError::Breaking { .. }), "{error}");
}

#[test]
fn what_a_person_can_do_about_a_link_that_leads_out_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let link = root.join("project/.pml.json");
    std::fs::create_dir(root.join("project")).unwrap();
    symlink(root.join("elsewhere.json"), &link).unwrap();
    let hint = resolve(&link, project_file()).unwrap_err().hint();
    let expected = format!(
        "to edit that file itself, name it: pml --config {} …\nto have a file of its own here, first remove the link: rm {}",
        root.join("elsewhere.json").display(),
        link.display()
    );
    assert_eq!(hint, Some(expected));
}

#[test]
fn a_power_cut_is_warned_of_only_where_it_may_undo() {
    assert_eq!(WriteDurability::Confirmed.warning(), None);
    let unconfirmed = WriteDurability::Unconfirmed {
        reason: "no space".to_owned(),
    };
    assert_eq!(
        unconfirmed.warning().unwrap(),
        "the change stands, but a power cut may undo it: the disk did not confirm it (no space)"
    );
}
