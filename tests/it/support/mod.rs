//! What several behaviours need: the binaries, and a look at what runs.

pub(crate) mod browser;
pub(crate) mod claude;
pub(crate) mod fake_ntfy;
pub(crate) mod fake_slack;
pub(crate) mod fake_telegram;
#[cfg(target_os = "linux")]
pub(crate) mod faults;
pub(crate) mod hostile;
pub(crate) mod messages_api;
pub(crate) mod osv;
pub(crate) mod packages;
pub(crate) mod recorder;
pub(crate) mod registry;
pub(crate) mod sdk;
pub(crate) mod stalls;
pub(crate) mod terminal;
pub(crate) mod web;
pub(crate) mod world;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than anything here may take on a busy machine; reaching it is a failure.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// The binary under test.
pub(crate) fn pml() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pml"))
}

/// The server that misbehaves on demand: `support/fake_server.rs` says how.
pub(crate) fn fake_server() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    example("fake_server", &BUILT)
}

/// The server on the official Rust SDK: `support/sdk_server.rs`.
pub(crate) fn sdk_server() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    example("sdk_server", &BUILT)
}

fn example(name: &str, built: &std::sync::Once) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let server = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    // `cargo test --test it` does not build examples.
    built.call_once(|| {
        if !server.exists() {
            let built = std::process::Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--example", name])
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status();
            assert!(built.unwrap().success(), "cargo build --example {name} failed");
        }
    });
    server
}

/// Waits for a condition; panics with `what` when it does not come true in time.
pub(crate) fn eventually(what: &str, within: Duration, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(3);
    while !condition() {
        assert!(begin.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(pause);
        // Who looks all the time slows down what it waits for.
        pause = (pause * 5 / 4).min(Duration::from_millis(50));
    }
}

/// The name of a variable that marks a process and everything it starts.
pub(crate) const MARK: &str = "PML_TEST_MARK";

/// A value for [`MARK`] that no other test has.
pub(crate) fn mark() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Lists the command lines of the processes that carry a mark; the dead that nobody reaped yet do not count.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let variable = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| {
            std::fs::read(process.path().join("environ")).is_ok_and(|environment| {
                environment
                    .split(|byte| *byte == 0)
                    .any(|found| found == variable.as_bytes())
            })
        })
        .map(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            format!("{} {line}", process.file_name().display())
        })
        .collect()
}

/// Waits until nothing carries a mark: three seconds are what THREATS grant.
pub(crate) fn assert_no_survivor(mark: &str, told: &str) {
    let mut left = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        left = marked(mark);
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{told}: survivors: {left:#?}");
}

/// Tells whether programs of the machine are there, which tests against real packages need.
///
/// Without them a test says on the real stderr that it was skipped; where `PML_TESTS_REQUIRE_REAL=1` is set, it fails.
pub(crate) fn have(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| which::which(program).is_err())
        .collect();
    missing.is_empty() || skipped(&missing.join(" and "))
}

/// Tells whether files can be given to another user, which tests about owners need.
pub(crate) fn superuser() -> bool {
    rustix::process::geteuid().is_root() || skipped("the superuser")
}

fn skipped(needs: &str) -> bool {
    use std::io::Write as _;
    let told = format!(
        "{} needs {needs}",
        std::thread::current().name().unwrap_or("a test"),
    );
    assert!(
        std::env::var("PML_TESTS_REQUIRE_REAL").as_deref() != Ok("1"),
        "{told}"
    );
    // Not `eprintln!`, which the test runner captures.
    let _ = writeln!(std::io::stderr(), "skipped: {told}");
    false
}
