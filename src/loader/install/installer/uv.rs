//! Runs `uv` with the user's index and none of the project's files.

use std::ffi::OsString;
use std::path::Path;

use super::indexes;
use super::patience;
use super::process::{InstallerOutput, Program};
use super::tools::Tools;
use crate::loader::install::background::write_for_installer;
use crate::loader::install::error::InstallError;

/// The file that says what is wanted.
pub(super) const WANTED: &str = "requirements.in";

/// Wheels only, every archive with its hashes, nothing but requirements in the output.
///
/// Not quiet: what is yanked is told on stderr.
pub(super) const COMPILE: [&str; 7] = [
    "pip",
    "compile",
    "--no-build",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
];

/// Makes uv say which entries of a wheel it leaves out.
pub(super) const TELL_SKIPPED: (&str, &str) = ("RUST_LOG", "warn");

pub(super) async fn run(
    tools: &Tools,
    uv: &Program,
    spec: &str,
    directory: &Path,
    arguments: impl IntoIterator<Item = &str>,
) -> Result<InstallerOutput, InstallError> {
    run_with(tools, uv, spec, directory, arguments, None).await
}

/// Runs uv with one more variable.
pub(super) async fn run_with(
    tools: &Tools,
    uv: &Program,
    spec: &str,
    directory: &Path,
    arguments: impl IntoIterator<Item = &str>,
    variable: Option<(&'static str, &'static str)>,
) -> Result<InstallerOutput, InstallError> {
    let mut all: Vec<OsString> = vec!["--no-progress".into()];
    // One of the two always: without them uv reads the project's files.
    match indexes::uv_configuration(tools.environment()) {
        Some(path) => all.extend(["--config-file".into(), path.into_os_string()]),
        None => all.push("--no-config".into()),
    }
    all.extend(arguments.into_iter().map(OsString::from));
    let mut extra = indexes::of_pip(tools.environment());
    extra.push(("UV_CACHE_DIR", tools.cache("uv").into_os_string()));
    extra.extend(patience::uv_patience(tools.environment()));
    extra.extend(variable.map(|(name, value)| (name, value.into())));
    tools.run(uv, spec, directory, all, extra).await
}

pub(super) async fn write(directory: &Path, name: &str, text: &str) -> Result<(), InstallError> {
    write_for_installer(directory.join(name), format!("{text}\n")).await
}
