//! `pml supervise` and `pml launch`: the processes between pml and one server; started by pml, not by people.
//!
//! They need no home, no configuration and no log, and must start fast: a server waits behind them.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::output;
use crate::loader::process::supervisor::{self, Life, SuperviseError};

/// Runs one server and ends everything it started.
#[derive(Debug, Args)]
pub(crate) struct Supervise {
    /// The number of the pipe whose end is the end of the server; its stdin where there is none
    #[arg(long)]
    life: Option<i32>,
    #[command(flatten)]
    line: Line,
}

/// Becomes one server that dies with its supervisor.
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// The process to die with
    supervisor: i32,
    #[command(flatten)]
    line: Line,
}

#[derive(Debug, Args)]
struct Line {
    /// The server's program
    program: OsString,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// Supervises until the server is gone.
pub(crate) fn supervise(Supervise { life, line }: &Supervise) -> ExitCode {
    let life = life.map_or(Life::Stdin, Life::Inherited);
    match supervisor::run(life, &line.program, &line.arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => tell(&error),
    }
}

/// Becomes the server.
pub(crate) fn launch(Launch { supervisor, line }: &Launch) -> ExitCode {
    match supervisor::launch(*supervisor, &line.program, &line.arguments) {
        Ok(never) => match never {},
        Err(error) => tell(&error),
    }
}

/// Writes the one line that pml reads from stderr.
fn tell(error: &SuperviseError) -> ExitCode {
    output::say(&error.to_string());
    ExitCode::from(error.exit_code())
}
