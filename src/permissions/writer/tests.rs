//! Files as they lie around: linked, read-only, broken, shared.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use pretty_assertions::assert_eq;

use super::*;
use crate::config::RuleList;

fn allow(pattern: &str) -> [Change; 1] {
    [Change::AddRule {
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
    let edited = edit(&path, Kind::Pml, &allow("a:b")).unwrap();
    let expected = DEFAULTS.replace("\"allow\": []", "\"allow\": [\"a:b\"]");
    assert_eq!(
        edited,
        Edited {
            before: None,
            after: expected.clone()
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
    edit(&link, Kind::Pml, &allow("a:b")).unwrap();
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
    edit(&link, Kind::Pml, &allow("a:b")).unwrap();
    assert!(read(&root.path().join("there/real.json")).contains("a:b"));
    symlink("b", root.path().join("a")).unwrap();
    symlink("a", root.path().join("b")).unwrap();
    let error = edit(&root.path().join("a"), Kind::Pml, &allow("a:b")).unwrap_err();
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
        let error = edit(&path, Kind::Pml, &allow("a:b")).unwrap_err();
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
    let change = Change::PutServer {
        name: "x".to_owned(),
        entry: serde_json::json!({"comand": "y"}),
    };
    let error = edit(&path, Kind::Pml, std::slice::from_ref(&change)).unwrap_err();
    assert!(matches!(error, WriteError::Breaking { .. }), "{error}");
    assert_eq!(read(&path), "{}");
    // A client's file may hold what it likes.
    edit(&path, Kind::Client, &[change]).unwrap();
    assert!(read(&path).contains("comand"));
}

#[test]
fn nothing_to_change_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    let text = "{\"permissions\": {\"allow\": [\"a:b\"]}}";
    write(&path, text);
    let before = path.metadata().unwrap().ino();
    assert!(!edit(&path, Kind::Pml, &allow("a:b")).unwrap().changed());
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
    edit(&path, Kind::Pml, &allow("a:b")).unwrap();
    assert_eq!(read(&victim), "precious");
    assert_eq!(names(root.path()), [".pml.json", "victim"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_and_the_file_stays() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".pml.json");
    write(&path, "{}");
    // A directory under the temporary name stands in the way of everyone, the superuser included.
    std::fs::create_dir(root.path().join(".pml.json.tmp")).unwrap();
    let error = edit(&path, Kind::Pml, &allow("a:b")).unwrap_err();
    assert!(matches!(error, WriteError::Write { .. }), "{error}");
    assert_eq!(read(&path), "{}");
}
