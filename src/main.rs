//! Parses, runs, turns the outcome into an exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    pml::cli::run()
}
