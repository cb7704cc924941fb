//! `pml supervise -- PROGRAM ARGS…`: the process between pml and one server; started by pml, not by people.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::loader::supervise;

/// Runs one server and ends everything it started.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server's program
    #[arg(required = true, value_name = "PROGRAM")]
    program: OsString,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// Supervises until the server is gone. Needs no home, no configuration and no log: it must start fast.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match supervise::run(&arguments.program, &arguments.arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            anstream::eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
