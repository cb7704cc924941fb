//! The steps of an installation, as a person is shown them.

use std::fmt;

/// One step of an installation, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstallStep {
    /// Another call or another process installs the same package.
    Waiting,
    /// The registry is asked for the exact version.
    Resolving,
    /// The package and its dependencies are fetched.
    Downloading,
    /// The lock is checked before any code of the package can run.
    Verifying,
    /// Install scripts run, because the server allows them.
    RunningScripts,
    /// The finished installation is moved into the store.
    Activating,
}

impl InstallStep {
    /// How many steps there are.
    pub const TOTAL: u32 = 6;

    /// Returns the position of the step, from 1; it only rises during one installation.
    #[must_use]
    pub fn index(self) -> u32 {
        self as u32 + 1
    }
}

impl fmt::Display for InstallStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Waiting => "waiting for another installation",
            Self::Resolving => "resolving the version",
            Self::Downloading => "downloading",
            Self::Verifying => "verifying the lock",
            Self::RunningScripts => "running install scripts",
            Self::Activating => "moving into the store",
        })
    }
}

/// Is called at the begin of each step.
pub type InstallProgress<'a> = &'a (dyn Fn(InstallStep) + Send + Sync);
