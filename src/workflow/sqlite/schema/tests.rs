use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::report::{self, Hint as _};
use crate::workflow::Store as _;
use crate::workflow::samples::{NOON, new};
use crate::workflow::sqlite::SqliteStore;

fn file(directory: &TempDir) -> Place {
    Place::File(directory.path().join("state/workflows.db"))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn only_the_user_can_read_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let open_and_check = || {
        let mut store = SqliteStore::open(file(&directory)).unwrap();
        store.create(new("{}"), NOON).unwrap();
        assert_eq!(mode(&state), 0o700);
        let mut names: Vec<_> = std::fs::read_dir(&state)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path())))
            .collect();
        names.sort();
        let expected = [
            "workflows.db",
            "workflows.db-shm",
            "workflows.db-turns",
            "workflows.db-wal",
        ];
        assert_eq!(names, expected.map(|name| (name.to_owned(), 0o600)));
    };
    open_and_check();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(state.join("workflows.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    open_and_check();
}

#[test]
fn an_empty_file_of_format_zero_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/workflows.db");
    std::fs::create_dir(directory.path().join("state")).unwrap();
    let old = connect(&path_created_empty(&path)).unwrap();
    assert_eq!(
        old.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
            .unwrap(),
        0
    );
    drop(old);
    let mut store = SqliteStore::open(file(&directory)).unwrap();
    let workflow = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    drop(store);
    assert_eq!(
        SqliteStore::open(file(&directory))
            .unwrap()
            .pending(NOON)
            .unwrap(),
        [workflow]
    );
}

fn path_created_empty(path: &Path) -> PathBuf {
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .unwrap();
    path.to_owned()
}

#[test]
fn a_file_from_the_future_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(file(&directory)).unwrap();
    store.create(new("{}"), NOON).unwrap();
    store.connection.pragma_update(None, "user_version", 99).unwrap();
    drop(store);
    let path = directory.path().join("state/workflows.db");
    let before = std::fs::read(&path).unwrap();
    let error = SqliteStore::open(file(&directory)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "`{}` has format 99; this pml knows formats up to 5",
            path.display()
        )
    );
    assert!(error.hint().unwrap().starts_with("update this pml"));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_broken_file_is_refused_with_what_to_do_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it's broken.db");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::io::Write::write_all(&mut file, &b"this is not a database ".repeat(100)).unwrap();
    drop(file);
    let error = SqliteStore::open(Place::File(path.clone())).unwrap_err();
    assert!(matches!(error, WorkflowError::Corrupt { .. }), "{error:?}");
    let told = report::render_hinted(&error).replace(directory.path().to_str().unwrap(), "DIR");
    insta::assert_snapshot!(told, @r"
    the workflows in `DIR/it's broken.db` cannot be read
      caused by: file is not a database
      caused by: Error code 26: file is not a database

    hint: to set it aside and begin anew (what waits in it is lost):
      mkdir 'DIR/it'\''s broken.broken' && mv 'DIR/it'\''s broken.db'* 'DIR/it'\''s broken.broken'
    ");
    assert_eq!(
        std::fs::read(&path).unwrap(),
        b"this is not a database ".repeat(100)
    );
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_with_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let blocked = path_created_empty(&directory.path().join("file"));
    let error = SqliteStore::open(Place::File(blocked.join("workflows.db"))).unwrap_err();
    assert!(
        matches!(&error, WorkflowError::Directory { path, .. } if *path == blocked),
        "{error:?}"
    );
}
