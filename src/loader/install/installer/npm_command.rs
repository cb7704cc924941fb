//! How npm is run: with a cache of pml's own, and without a log.

use std::ffi::OsString;
use std::path::Path;

use super::patience;
use super::process::{InstallerOutput, Program};
use super::tools::Tools;
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;

/// Runs npm to a successful end.
pub(super) async fn run(
    tools: &Tools,
    npm: &Program,
    spec: &str,
    directory: &Path,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<InstallerOutput, InstallError> {
    let mut cache = OsString::from("--cache=");
    cache.push(tools.cache("npm"));
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    arguments.insert(1, cache);
    // Its log of every run would keep the credentials of registries, and pml reports what npm says anyway.
    arguments.insert(2, "--logs-max=0".into());
    if !arguments
        .iter()
        .any(|argument| argument.to_string_lossy().starts_with("--loglevel"))
    {
        // It tells of each attempt that failed: of a registry that does not answer nothing else is heard for a minute.
        arguments.insert(3, "--loglevel=http".into());
    }
    let environment = tools.environment().clone();
    let patience = off_thread(move || patience::npm_patience(&environment)).await;
    arguments.splice(1..1, patience.unwrap_or_default());
    tools.run(npm, spec, directory, arguments, []).await
}
