//! `pml completions SHELL`: what a shell needs to complete `pml`.

use std::process::ExitCode;

use clap::Args;
use clap_complete::{Shell, generate};

use super::output;

/// Which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script for a shell; what pml starts of itself is not in it.
pub(crate) fn run(arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut super::visible(), "pml", &mut script);
    output::data(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
