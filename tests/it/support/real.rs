//! What tests against real packages and programs need of the machine.

use std::io::Write as _;

/// Tells whether a program is on the `PATH`; says that a test is skipped without it.
///
/// With `PML_TESTS_REQUIRE_REAL=1`, as in CI, a missing program is a failure.
pub(crate) fn require(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join(program).is_file()) {
        return true;
    }
    assert!(
        std::env::var_os("PML_TESTS_REQUIRE_REAL").is_none_or(|value| value != "1"),
        "`{program}` is not on the PATH"
    );
    // Straight to the descriptor: what a passing test prints is otherwise not seen.
    let _ = writeln!(std::io::stderr(), "skipped: `{program}` is not on the PATH");
    false
}
