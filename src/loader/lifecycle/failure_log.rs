//! The last failure of each server, in a file for the user: what happened, and the last lines that it wrote.
//!
//! One file for each name, replaced by the next failure, so they are as many as names and each is as long as what is kept
//! of a server's stderr. The values that a server was given are hidden in it as in every error.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::error::LoadError;
use crate::config::Locations;
use crate::disk;
use crate::loader::install::InstallError;
use crate::loader::plan::Plan;
use crate::loader::session::Ended;
use crate::protocol::{DependencyName, Digest, Shown};
use crate::report;

/// Longer than the longest text of a failure; a longer file was not written by pml.
const LONGEST: u64 = 1 << 20;

/// The last failure of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// When it was, in milliseconds since 1970.
    pub at: i64,
    /// What happened, on one line.
    pub what: String,
    /// The file that tells all of it.
    pub log: PathBuf,
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    server: String,
    /// What was launched: another declaration of the same name has not failed.
    launch: Digest,
}

/// The directory of the files.
#[derive(Debug)]
pub(super) struct FailureLogs(PathBuf);

impl FailureLogs {
    pub(super) fn new(locations: &Locations) -> Self {
        Self(locations.failures())
    }

    fn file(&self, name: &DependencyName) -> PathBuf {
        self.0.join(format!("{name}.log"))
    }

    /// Returns the last failure of exactly what is planned.
    pub(super) fn read(&self, plan: &Plan) -> Option<LastFailure> {
        let log = self.file(plan.dependency());
        let found = log.metadata().ok().filter(|found| found.len() <= LONGEST)?;
        let text = std::fs::read_to_string(&log).ok()?;
        let (head, rest) = text.split_once('\n')?;
        let head: Head = serde_json::from_str(head).ok()?;
        if head.launch != *plan.digest() {
            return None;
        }
        let since = found
            .modified()
            .ok()?
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()?;
        let first = rest.lines().find(|line| !line.trim().is_empty())?;
        // The lines themselves stand below, in the file.
        let first = first.strip_suffix("; the last lines it wrote:").unwrap_or(first);
        Some(LastFailure {
            at: i64::try_from(since.as_millis()).ok()?,
            what: Shown::line(first.trim_end_matches([':', ';'])).to_string(),
            log,
        })
    }

    /// Keeps why a server could not be started; what was refused or put off is no failure of it.
    pub(super) async fn keep_failed_start(&self, plan: &Plan, error: &LoadError) {
        let failed = match error {
            LoadError::Install(InstallError::Scripts { .. })
            | LoadError::GivenUp(_)
            | LoadError::Changed { .. }
            | LoadError::History(_)
            | LoadError::Dismissed { .. }
            | LoadError::Closing => false,
            LoadError::Install(_) => !error.is_about_age() && !error.is_changed_package(),
            LoadError::NativeModule { .. }
            | LoadError::Spawn(_)
            | LoadError::Ended(_)
            | LoadError::NotReady { .. }
            | LoadError::Handshake(_) => true,
        };
        if failed {
            let mut text = report::render_hinted(error);
            if let LoadError::NativeModule { ended, .. } = error {
                // Too long for the error itself.
                let _ = write!(
                    text,
                    "\n\nthe last lines it wrote:\n{}",
                    Shown::block(ended.last_lines())
                );
            }
            self.keep_failure(plan, text).await;
        }
    }

    /// Keeps how a server that ran has ended.
    pub(super) async fn keep_death(&self, plan: &Plan, ended: &Ended) {
        self.keep_failure(plan, format!("it {ended}")).await;
    }

    async fn keep_failure(&self, plan: &Plan, text: String) {
        let head = Head {
            server: plan.dependency().to_string(),
            launch: plan.digest().clone(),
        };
        let Ok(head) = serde_json::to_string(&head) else {
            return;
        };
        let (directory, file) = (self.0.clone(), self.file(plan.dependency()));
        let writing = move || write(&directory, &file, &format!("{head}\n{text}\n"));
        let written = tokio::task::spawn_blocking(writing).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "why a server failed could not be kept");
        }
    }
}

fn write(directory: &Path, file: &Path, text: &str) -> std::io::Result<()> {
    disk::create_private_directory(directory)?;
    disk::replace(file, text.as_bytes())
}
