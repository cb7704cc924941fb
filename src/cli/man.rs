//! `pml man DIRECTORY`: the manual pages of pml, for those who package it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use super::output;
use crate::protocol::Shown;

/// Where the pages go.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The directory; it is created if needed
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// Writes a page for pml and one for each of its commands.
pub(crate) fn run(arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    let directory = &arguments.directory;
    let shown = Shown::path(directory);
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create `{shown}`"))?;
    clap_mangen::generate_to(super::visible(), directory)
        .with_context(|| format!("cannot write the pages into `{shown}`"))?;
    output::say(&format!("wrote the pages into {shown}"));
    Ok(ExitCode::SUCCESS)
}
