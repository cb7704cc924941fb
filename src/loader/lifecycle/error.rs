//! Why a server does not run.

use std::sync::Arc;
use std::time::Duration;

use super::native_module;
use super::restart::GivenUpError;
use crate::history::HistoryError;
use crate::loader::install::InstallError;
use crate::loader::plan::{Ecosystem, Plan, Scripts};
use crate::loader::process::SpawnError;
use crate::loader::session::{EndReason, Ended, HandshakeError, HandshakeRefusal, LastLines};
use crate::pins::InstallScripts;
use crate::protocol::DependencyName;
use crate::report::Hint;

/// Says why a dependency does not run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its package could not be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Its process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It died too often.
    #[error(transparent)]
    GivenUp(#[from] GivenUpError),
    /// It ended before it was ready.
    #[error("it {0}")]
    Ended(Arc<Ended>),
    /// It ended before it was ready, because a part is missing that an install script would have built.
    #[error("{}, and install scripts did not run: it {}", native_module::missing(.module.as_deref()), .ended.reason)]
    NativeModule {
        /// The dependency.
        dependency: DependencyName,
        /// The package whose part is missing, escaped, where what it wrote names it.
        module: Option<String>,
        /// How it ended.
        ended: Arc<Ended>,
    },
    /// It did not get ready in time.
    #[error("it was not ready within {} seconds{}", .after.as_secs(), LastLines(.stderr))]
    NotReady {
        /// Its `startTimeoutSeconds`.
        after: Duration,
        /// What it wrote meanwhile.
        stderr: String,
    },
    /// It answered a request of pml's with an error or with something unreadable.
    #[error(transparent)]
    Handshake(HandshakeRefusal),
    /// What is installed is not what a person was shown.
    #[error("`{dependency}` has changed: {expected} was approved, {found} is installed")]
    Changed {
        /// The dependency.
        dependency: DependencyName,
        /// The integrity that was shown.
        expected: String,
        /// The integrity that is installed.
        found: String,
    },
    /// Its first start could not be recorded.
    #[error("it was not started for the first time")]
    History(#[from] HistoryError),
    /// It may no longer run.
    #[error("it was not started: {reason}")]
    Dismissed {
        /// Why.
        reason: &'static str,
    },
    /// pml is going.
    #[error("pml is shutting down")]
    Closing,
}

impl LoadError {
    /// Tells whether what would run is other content than was approved, so that a person can be asked again.
    #[must_use]
    pub fn is_other_content(&self) -> bool {
        matches!(self, Self::Install(InstallError::Dependencies { .. }))
    }

    /// Tells whether the package itself, or what is installed with it, is not what was shown, approved or locked.
    #[must_use]
    pub fn is_changed_package(&self) -> bool {
        let changed = matches!(
            self,
            Self::Install(InstallError::Changed { .. } | InstallError::BuiltElsewhere { .. })
        );
        changed || self.is_other_content()
    }

    /// Returns the install scripts that it was not installed for: a person has not accepted them as they are.
    #[must_use]
    pub fn unaccepted_scripts(&self) -> Option<&Arc<InstallScripts>> {
        match self {
            Self::Install(InstallError::Scripts { scripts, .. }) => Some(scripts),
            _ => None,
        }
    }

    /// Words the end of a server whose package has parts that only its install scripts make.
    pub(super) fn without_scripts(self, plan: &Plan) -> Self {
        let skipped = plan
            .package()
            .is_some_and(|package| package.ecosystem() == Ecosystem::Npm)
            && plan.scripts() == Scripts::Off;
        match self {
            Self::Ended(ended) if skipped && native_module::is_missing(&ended.stderr) => Self::NativeModule {
                dependency: plan.dependency().clone(),
                // Where it is the package itself its name says nothing new.
                module: native_module::package(&ended.stderr)
                    .filter(|module| plan.package().is_none_or(|package| package.name() != module)),
                ended,
            },
            error => error,
        }
    }

    /// Tells whether it was not installed because something was published too short a time ago.
    #[must_use]
    pub fn is_about_age(&self) -> bool {
        matches!(self, Self::Install(error) if error.is_about_age())
    }

    /// Returns why its connection ended, or why pml's own request over it failed; `None` for any other trouble.
    ///
    /// A flow that can mend the reason, such as a sign-in, begins here.
    #[must_use]
    pub fn end_reason(&self) -> Option<&EndReason> {
        match self {
            Self::Ended(ended) | Self::NativeModule { ended, .. } => Some(&ended.reason),
            Self::Handshake(refusal) => refusal.cause.as_ref(),
            Self::Install(_)
            | Self::Spawn(_)
            | Self::GivenUp(_)
            | Self::NotReady { .. }
            | Self::Changed { .. }
            | Self::History(_)
            | Self::Dismissed { .. }
            | Self::Closing => None,
        }
    }
}

impl Hint for LoadError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Install(error) => error.hint(),
            Self::Spawn(error) => error.hint(),
            Self::GivenUp(error) => error.hint(),
            Self::History(error) => error.hint(),
            Self::NotReady { .. } => {
                Some("raise \"startTimeoutSeconds\" of this server in .pml.json".to_owned())
            }
            Self::NativeModule { dependency, .. } => Some(format!(
                "to let them run after you saw each of them: \"allowScripts\": true in the entry of `{dependency}`, then \
                 pml install {dependency}"
            )),
            Self::Changed { dependency, .. } => Some(format!(
                "to start over with a new approval: pml uninstall {dependency}"
            )),
            Self::Ended(_) | Self::Handshake(_) | Self::Dismissed { .. } | Self::Closing => None,
        }
    }
}

impl From<HandshakeError> for LoadError {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Ended(ended) => Self::Ended(ended),
            HandshakeError::Refused(refusal) => Self::Handshake(refusal),
        }
    }
}
