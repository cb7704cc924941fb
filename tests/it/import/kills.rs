//! An import that is killed at each of its writes in turn, and met by a full disk: it can be taken back or finished.

use rustix::io::Errno;

use super::{FIXTURES, filled, read, write};
use crate::support::faults::inject_nth;
use crate::support::have;
use crate::support::world::{World, stderr};

/// The clients of the sweep: JSON with a byte order mark and comments, TOML, and a file of the project.
const SWEPT: [usize; 3] = [0, 4, 12];

/// More than an import needs; a sweep that gets here does not end.
const CALLS: u32 = 1_000;

fn prepared() -> World {
    let world = World::new();
    for at in SWEPT {
        write(&world, FIXTURES[at].0, FIXTURES[at].1);
    }
    world
}

fn is_as_before(world: &World) -> bool {
    SWEPT
        .iter()
        .all(|at| read(world, FIXTURES[*at].0) == filled(world, FIXTURES[*at].1))
}

/// Each file is the old one or the new one.
fn assert_whole(world: &World, told: &str) {
    for at in SWEPT {
        let (file, old) = FIXTURES[at];
        let now = read(world, file);
        let is_new = now.contains("pml") && !now.contains("-one\"");
        assert!(now == filled(world, old) || is_new, "{told}: {now}");
    }
}

/// Runs an import that meets a fault at its `nth` call; returns what it met.
fn broken_off(world: &World, nth: u32, errno: Option<Errno>) -> Option<String> {
    let mut command = world.command(&["import", "--yes"]);
    let met = inject_nth(&mut command, world.home(), nth, errno);
    let output = command.output().unwrap();
    let told = format!("call {nth} with {errno:?}: {}", stderr(&output));
    assert_whole(world, &told);
    met.call()
}

fn sweep(errno: Option<Errno>, after: fn(&World, &str)) {
    if !have(&["cc"]) {
        return;
    }
    let next = std::sync::atomic::AtomicU32::new(1);
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    let nth = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    assert!(nth < CALLS, "the sweep does not end");
                    let world = prepared();
                    match broken_off(&world, nth, errno) {
                        Some(call) => after(&world, &format!("after call {nth}: {call}")),
                        None => ended.store(true, std::sync::atomic::Ordering::Relaxed),
                    }
                }
            });
        }
    });
    assert!(next.into_inner() > 10, "it met no fault");
}

fn undo(world: &World, told: &str) {
    let undone = world.run(&["import", "--undo", "--yes"]);
    let said = stderr(&undone);
    if undone.status.code() == Some(1) {
        assert!(said.contains("there is no import"), "{told}: {said}");
    } else {
        assert!(undone.status.success(), "{told}: {said}");
    }
    assert!(is_as_before(world), "{told}: {said}");
    assert!(
        !world.home().join(".config/pml/pml.json").exists() && !world.path(".pml.json").exists(),
        "{told}: {said}"
    );
}

fn finish(world: &World, told: &str) {
    let again = world.run(&["import", "--yes"]);
    assert!(again.status.success(), "{told}: {}", stderr(&again));
    let own = read(world, ".config/pml/pml.json");
    assert!(
        own.contains("cursor-one") && own.contains("codex-one"),
        "{told}: {own}"
    );
    for at in SWEPT {
        let now = read(world, FIXTURES[at].0);
        assert!(now.contains("pml") && !now.contains("-one"), "{told}: {now}");
    }
}

#[test]
fn an_import_that_is_killed_at_any_write_can_be_taken_back() {
    sweep(None, undo);
}

#[test]
fn an_import_that_is_killed_at_any_write_can_be_finished() {
    sweep(None, finish);
}

#[test]
fn an_import_that_meets_a_full_disk_at_any_write_can_be_taken_back() {
    sweep(Some(Errno::NOSPC), undo);
}

/// An undo that is killed goes on where it was.
#[test]
fn an_undo_that_is_killed_at_any_write_can_be_finished() {
    if !have(&["cc"]) {
        return;
    }
    for nth in 1..CALLS {
        let world = prepared();
        assert!(world.run(&["import", "--yes"]).status.success());
        let mut command = world.command(&["import", "--undo", "--yes"]);
        let met = inject_nth(&mut command, world.home(), nth, None);
        command.output().unwrap();
        let Some(call) = met.call() else {
            assert!(nth > 5, "it met no fault");
            return;
        };
        undo(&world, &format!("after call {nth}: {call}"));
    }
    panic!("the sweep does not end");
}
