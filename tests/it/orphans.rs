//! Nothing outlives pml, however it ends: the bug behind many a leftover `node`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pml::loader::process::{LaunchLine, spawn};
use pml::protocol::Secrets;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{DEADLINE, MARK, assert_no_survivor, eventually, fake_server, mark, marked, pml};

/// Rounds of [`no_descendant_survives_its_pml_whenever_and_however_it_ends`], spread over threads.
const THREADS: u64 = 5;
const ROUNDS_PER_THREAD: u64 = 10;

/// What a pml ends of.
#[derive(Debug, Clone, Copy)]
enum Cause {
    Killed,
    GroupKilled,
    Terminated,
    StdinClosed,
}

impl Cause {
    fn of_round(round: u64) -> Self {
        [
            Self::Killed,
            Self::GroupKilled,
            Self::Terminated,
            Self::StdinClosed,
        ][usize::try_from(round % 4).unwrap()]
    }

    fn bring(self, parent: &mut Child) {
        let pid = Pid::from_child(parent);
        match self {
            Self::Killed => kill_process(pid, Signal::KILL).unwrap(),
            Self::GroupKilled => kill_process_group(pid, Signal::KILL).unwrap(),
            Self::Terminated => kill_process(pid, Signal::TERM).unwrap(),
            Self::StdinClosed => drop(parent.stdin.take()),
        }
        parent.wait().unwrap();
    }
}

#[test]
fn no_descendant_survives_its_pml_whenever_and_however_it_ends() {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..ROUNDS_PER_THREAD {
                    one_round(thread * ROUNDS_PER_THREAD + round);
                }
            });
        }
    });
}

fn one_round(round: u64) {
    let directory = tempfile::tempdir().unwrap();
    let mark = mark();
    let cause = Cause::of_round(round);
    let mut parent = start_parent(&mark, directory.path());
    // Every third round ends when the orphan is known to live, the others at a moment that is as good as random.
    let moment = (round * 7919) % 97;
    if round.is_multiple_of(3) {
        eventually("the orphan lives", DEADLINE, || {
            directory.path().join("orphan").exists()
        });
        assert!(marked(&mark).len() >= 3, "the round tests nothing");
    } else {
        std::thread::sleep(Duration::from_millis(moment));
    }
    cause.bring(&mut parent);
    assert_no_survivor(&mark, &format!("round {round}, {cause:?} after {moment} ms"));
}

/// Starts this test binary again, as the pml that is going to end.
fn start_parent(mark: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "orphans::parent", "--ignored", "--nocapture"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("PARENT_DIRECTORY", directory)
        .env("PARENT_MARK", mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Holds one stubborn server with an orphan until its own stdin ends.
#[test]
#[ignore = "the process that the test above starts and ends"]
fn parent() {
    let (Some(directory), Some(mark), Some(path)) = (
        std::env::var_os("PARENT_DIRECTORY"),
        std::env::var_os("PARENT_MARK"),
        std::env::var_os("PATH"),
    ) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let line = LaunchLine {
        program: fake_server(),
        arguments: vec![
            "--stubborn".into(),
            "--orphan".into(),
            Path::new(&directory).join("orphan").into(),
        ],
        variables: BTreeMap::from([(MARK.into(), mark), ("PATH".into(), path)]),
        directory: "/".into(),
        secrets: Secrets::default(),
    };
    let held = spawn(&"fake".parse().unwrap(), &line, pml()).unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    // A pml that ends runs no destructors either.
    std::mem::forget(held);
}
