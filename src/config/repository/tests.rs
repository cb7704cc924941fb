//! The reader of the index, judged by the git of this machine.

#![expect(
    clippy::disallowed_methods,
    reason = "a test runs git and lays out its own files"
)]

use std::path::Path;
use std::process::Command;

use super::*;

const TEXT: &str = "{ \"permissions\": { \"allow\": [\"*\"] } }\n";

fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "-c",
            "core.autocrlf=false",
        ])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is installed");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Tracks `count` files that are not there, in front of every other, in a repository of SHA-256.
fn track_missing_files(directory: &Path, count: usize) {
    let object = "1".repeat(64);
    let lines: Vec<String> = (0..count)
        .map(|number| format!("100644 {object}\t!/a-file-with-a-long-name/{number:05}\n"))
        .collect();
    let list = directory.join(".git/list");
    std::fs::write(&list, lines.concat()).unwrap();
    let output = Command::new("git")
        .args(["update-index", "--index-info"])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(std::fs::File::open(&list).unwrap())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn state(file: &Path) -> RepositoryState {
    let text = std::fs::read(file).unwrap();
    state_of(file, &text, &file.metadata().unwrap())
}

/// A repository with many neighbours of the file, so that names share beginnings.
fn repository(init: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &[&["init", "-q"], init].concat());
    std::fs::create_dir_all(directory.path().join("sub/dir")).unwrap();
    for name in [
        ".a",
        ".pml.jso",
        ".pml.json",
        ".pml.json5",
        "sub/.pml.json",
        "sub/dir/.pml.json",
        "z",
    ] {
        std::fs::write(directory.path().join(name), TEXT).unwrap();
    }
    git(directory.path(), &["add", "-A"]);
    git(directory.path(), &["commit", "-qm", "all"]);
    directory
}

#[test]
fn a_file_came_with_its_repository_until_somebody_changes_it() {
    for (init, version) in [
        (&[][..], "2"),
        (&[], "3"),
        (&[], "4"),
        (&["--object-format=sha256"], "2"),
        (&["--object-format=sha256"], "4"),
    ] {
        let directory = repository(init);
        git(directory.path(), &["update-index", "--index-version", version]);
        if version == "3" {
            git(
                directory.path(),
                &["update-index", "--skip-worktree", ".pml.jso", ".pml.json"],
            );
        }
        for name in [".pml.json", "sub/.pml.json", "sub/dir/.pml.json"] {
            let file = directory.path().join(name);
            assert_eq!(
                state(&file),
                RepositoryState::Unchanged,
                "{name} {init:?} {version}"
            );
            std::fs::write(&file, format!("// mine\n{TEXT}")).unwrap();
            assert_eq!(
                state(&file),
                RepositoryState::Changed,
                "{name} {init:?} {version}"
            );
            // Written again, it looks different and says the same.
            std::fs::write(&file, TEXT).unwrap();
            assert_eq!(
                state(&file),
                RepositoryState::Unchanged,
                "{name} {init:?} {version}"
            );
        }
        let untracked = directory.path().join("sub/other.json");
        std::fs::write(&untracked, TEXT).unwrap();
        assert_eq!(state(&untracked), RepositoryState::Untracked);
    }
}

#[test]
fn a_clone_a_worktree_and_a_staged_file_came_with_the_repository() {
    let origin = repository(&[]);
    let place = tempfile::tempdir().unwrap();
    let clone = place.path().join("clone");
    let (from, to) = (origin.path().to_str().unwrap(), clone.to_str().unwrap());
    git(place.path(), &["clone", "-q", from, to]);
    assert_eq!(state(&clone.join(".pml.json")), RepositoryState::Unchanged);

    let tree = place.path().join("tree");
    git(&clone, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    assert_eq!(state(&tree.join(".pml.json")), RepositoryState::Unchanged);

    std::fs::write(clone.join("new.json"), TEXT).unwrap();
    assert_eq!(state(&clone.join("new.json")), RepositoryState::Untracked);
    git(&clone, &["add", "new.json"]);
    assert_eq!(state(&clone.join("new.json")), RepositoryState::Unchanged);
}

#[test]
fn line_ends_that_the_repository_asks_for_are_no_change_of_the_user() {
    let origin = repository(&[]);
    std::fs::write(origin.path().join(".gitattributes"), "*.json text eol=crlf\n").unwrap();
    git(origin.path(), &["add", "-A"]);
    git(origin.path(), &["commit", "-qm", "line ends"]);
    let place = tempfile::tempdir().unwrap();
    git(
        place.path(),
        &["clone", "-q", origin.path().to_str().unwrap(), "clone"],
    );
    let file = place.path().join("clone/.pml.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\r\n"), "git wrote other line ends: {text:?}");
    assert_eq!(state(&file), RepositoryState::Unchanged);
    // Copied elsewhere with its repository it looks different.
    std::fs::write(&file, &text).unwrap();
    assert_eq!(state(&file), RepositoryState::Unchanged);
}

#[test]
fn a_keyword_that_git_fills_in_is_no_change_of_the_user() {
    let origin = repository(&[]);
    let file = origin.path().join(".pml.json");
    std::fs::write(&file, format!("// $Id$\n{TEXT}")).unwrap();
    std::fs::write(origin.path().join(".gitattributes"), "*.json ident\n").unwrap();
    git(origin.path(), &["add", "-A"]);
    git(origin.path(), &["commit", "-qm", "keyword"]);
    let place = tempfile::tempdir().unwrap();
    git(
        place.path(),
        &["clone", "-q", origin.path().to_str().unwrap(), "clone"],
    );
    let file = place.path().join("clone/.pml.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains("$Id: "));
    assert_eq!(state(&file), RepositoryState::Unchanged);

    // A copy has times of its own, and is no work of the user's either.
    let copy = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, &copy).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(state(&file), RepositoryState::Unchanged);
}

#[test]
fn a_tracked_file_that_a_filter_may_have_written_is_not_taken_for_the_users_work() {
    let directory = repository(&[]);
    let file = directory.path().join(".pml.json");
    std::fs::write(&file, "{ }").unwrap();
    assert_eq!(state(&file), RepositoryState::Changed);
    std::fs::write(directory.path().join(".gitattributes"), "* filter=any\n").unwrap();
    assert_eq!(state(&file), RepositoryState::Unclear);
}

#[test]
fn a_link_that_came_with_the_repository_came_with_it_wherever_it_leads() {
    let directory = repository(&[]);
    std::os::unix::fs::symlink("z", directory.path().join("link.json")).unwrap();
    let link = directory.path().join("link.json");
    std::fs::write(directory.path().join("z"), "{}").unwrap();
    assert_eq!(
        state(&link),
        RepositoryState::Changed,
        "a link of the user's to a file they changed"
    );
    git(directory.path(), &["add", "link.json"]);
    assert_eq!(state(&link), RepositoryState::Unchanged);
}

#[test]
fn what_cannot_be_understood_is_unclear_and_without_a_repository_nothing_is_tracked() {
    let directory = repository(&[]);
    let file = directory.path().join("sub/other.json");
    std::fs::write(&file, TEXT).unwrap();
    git(directory.path(), &["update-index", "--split-index"]);
    assert_eq!(
        state(&file),
        RepositoryState::Unclear,
        "some entries stand in another file"
    );

    let directory = repository(&[]);
    let file = directory.path().join(".pml.json");
    let index = directory.path().join(".git/index");
    let whole = std::fs::read(&index).unwrap();
    // The entry of the file stands behind one other.
    for length in (0..150).step_by(7) {
        std::fs::write(&index, &whole[..length]).unwrap();
        assert_eq!(state(&file), RepositoryState::Unclear, "{length} bytes");
    }
    std::fs::write(&index, b"DIRC\0\0\0\x09\0\0\0\0").unwrap();
    assert_eq!(state(&file), RepositoryState::Unclear);

    let alone = tempfile::tempdir().unwrap();
    let file = alone.path().join(".pml.json");
    std::fs::write(&file, TEXT).unwrap();
    assert_eq!(state(&file), RepositoryState::Untracked);
    git(alone.path(), &["init", "-q"]);
    assert_eq!(state(&file), RepositoryState::Untracked);
}

#[test]
fn a_file_is_found_in_the_long_index_of_a_repository_with_long_settings() {
    let directory = repository(&["--object-format=sha256"]);
    track_missing_files(directory.path(), 12_000);
    let index = directory.path().join(".git/index");
    assert!(index.metadata().unwrap().len() > 1024 * 1024 + 64 * 1024);
    let settings = directory.path().join(".git/config");
    let text = std::fs::read_to_string(&settings).unwrap();
    let comments = "# a comment\n".repeat(1000);
    std::fs::write(&settings, format!("{comments}{text}")).unwrap();
    let file = directory.path().join(".pml.json");
    assert_eq!(state(&file), RepositoryState::Unchanged);
}

#[test]
fn an_index_that_cannot_be_opened_is_not_taken_for_none() {
    let directory = repository(&[]);
    let index = directory.path().join(".git/index");
    std::fs::remove_file(&index).unwrap();
    std::os::unix::fs::symlink("index", &index).unwrap();
    let file = directory.path().join(".pml.json");
    assert_eq!(state(&file), RepositoryState::Unclear);
}

#[test]
fn the_index_is_the_one_of_the_repository_or_worktree_around_a_file() {
    let directory = repository(&[]);
    let inside = directory.path().join("sub/dir/.pml.json");
    assert_eq!(index_of(&inside), Some(directory.path().join(".git/index")));
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    git(
        directory.path(),
        &["worktree", "add", "-q", tree.to_str().unwrap()],
    );
    let index = index_of(&tree.join(".pml.json")).unwrap();
    let expected = directory.path().join(".git/worktrees/tree/index");
    assert_eq!(index.canonicalize().unwrap(), expected.canonicalize().unwrap());
    assert_eq!(index_of(&place.path().join(".pml.json")), None);
}

#[test]
fn no_bytes_of_an_index_break_the_reader() {
    let directory = repository(&[]);
    let whole = std::fs::read(directory.path().join(".git/index")).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0xff;
        let _ = find_entry(&flipped, ObjectHash::Sha1, b"zz");
        let _ = find_entry(&whole[..at], ObjectHash::Sha1, b"zz");
    }
}

#[test]
fn a_file_of_other_bytes_is_as_git_wrote_it_while_its_time_and_length_are_those_of_the_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, TEXT).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, 5);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    let found = file.metadata().unwrap();
    let size = u32::try_from(TEXT.len()).unwrap();
    for (modified, size, expected) in [
        ((1_700_000_000, 5), size, true),
        // Some file systems and some builds of git keep whole seconds.
        ((1_700_000_000, 0), size, true),
        ((1_700_000_000, 6), size, false),
        ((1_700_000_001, 5), size, false),
        ((1_700_000_001, 0), size, false),
        ((1_700_000_000, 5), size + 1, false),
        ((1_700_000_000, 0), size - 1, false),
    ] {
        let entry = IndexEntry {
            modified,
            size,
            hash: ObjectHash::Sha1,
            object: vec![0; 20],
        };
        assert_eq!(entry.is_unchanged(TEXT.as_bytes(), &found), expected, "{entry:?}");
    }
}

#[test]
fn only_a_return_before_a_line_feed_belongs_to_the_line_end() {
    assert_eq!(with_line_feeds(b"a\r\nb\rc\nd\r\r\n\r"), b"a\nb\rc\nd\r\n\r");
}
