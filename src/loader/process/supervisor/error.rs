//! Why a server could not be supervised; its text is the one line on stderr that pml reads.

use std::io;

/// What the one line on stderr starts with when the server could not be started.
pub(in crate::loader) const CANNOT_START: &str = "pml supervise: cannot start ";

/// Says why a server could not be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// The program is not there, or its interpreter is not.
    #[error("{CANNOT_START}`{program}`: there is no such program (or its interpreter is missing)")]
    NotFound {
        /// The program as given.
        program: String,
    },
    /// The program is there but cannot run.
    #[error("{CANNOT_START}`{program}`: {cause}")]
    NotExecutable {
        /// The program as given.
        program: String,
        /// Why; part of the text, because the line is all that reaches pml.
        cause: io::Error,
    },
    /// The supervisor could not be set up.
    #[error("{CANNOT_START}`{program}`: its supervisor failed: {cause}")]
    Setup {
        /// The program as given.
        program: String,
        /// Why; part of the text, because the line is all that reaches pml.
        cause: io::Error,
    },
}

impl SuperviseError {
    /// Returns the exit code that shells give for the same trouble.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } | Self::Setup { .. } => 126,
        }
    }
}
