//! An errand: a small program that runs to its end, reads nothing and writes nowhere.
//!
//! It runs under a supervisor as a server does: at its deadline, and with pml, everything that it started is ended.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use super::child::{Exit, exit_of_status};
use super::launch_line::LaunchLine;
use super::supervisor;
use super::supervisor_process::{LifeLine, SupervisorProcess};

/// How an errand ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrandEnd {
    /// By itself.
    Exited(Exit),
    /// At its deadline, with everything that it started.
    Overdue,
}

/// Runs a program to its end, or for as long as `limit`; dropping the future ends it.
pub async fn run_errand(line: &LaunchLine, limit: Duration) -> io::Result<ErrandEnd> {
    let pipe = LifeLine::open()?;
    let child = pipe
        .command(&supervisor::program()?, line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut process = SupervisorProcess::new(child);
    let _held = pipe.held();
    if let Ok(status) = tokio::time::timeout(limit, process.exited()).await {
        return Ok(ErrandEnd::Exited(exit_of_status(status?)));
    }
    process.terminate();
    process.exited().await?;
    Ok(ErrandEnd::Overdue)
}
