//! `pml sbom [NAME…]`: prints the bill of materials of what is installed.

use std::process::ExitCode;

use clap::Args;

use super::pinned_servers::{self, Kept};
use super::{CommandContext, Haste, output};
use crate::loader::Packages;
use crate::pins::cyclonedx;
use crate::protocol::DependencyName;

/// What `pml sbom --help` adds.
pub(super) const HELP: &str = "\
Examples:
  pml sbom > servers.cdx.json          every declared server
  pml sbom time files

CycloneDX 1.6 in JSON: each server, every package that is installed with it, and the hashes of their archives where
one is known. The same installation gives the same bytes. Exit code: 0 printed, 2 error.";

/// Which servers to list.
#[derive(Debug, Args)]
pub(crate) struct SbomArguments {
    /// The servers to list; without a name, all of them
    #[arg(value_name = "NAME")]
    names: Vec<DependencyName>,
}

/// Prints the list; what is left out is told on stderr.
pub(crate) fn run(context: &CommandContext, arguments: &SbomArguments) -> anyhow::Result<ExitCode> {
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    );
    let config = context.read()?;
    let found = pinned_servers::of_store(context, &config, &packages, &arguments.names, Kept::Installed)?;
    for note in &found.notes {
        output::note(note);
    }
    output::json(&cyclonedx(&found.pins, env!("CARGO_PKG_VERSION")))?;
    Ok(ExitCode::SUCCESS)
}
