//! Why a server could not be supervised; its text is the one line on stderr that pml reads.

use std::io;
use std::path::Path;

/// What the one line on stderr starts with when the server could not be started.
pub(in crate::loader) const CANNOT_START: &str = "pml supervise: cannot start ";

/// Says why a server could not be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// The program is not there, or its interpreter is not.
    #[error("{CANNOT_START}`{program}`: {}", absence(program))]
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

/// Says what is not there: the program, or the interpreter of one that is.
#[expect(
    clippy::disallowed_methods,
    reason = "looks where the kernel looked for the program: in the server's own PATH"
)]
fn absence(program: &str) -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_named = !program.contains('/');
    let is_there = if is_named {
        std::env::split_paths(&path).any(|directory| directory.join(program).exists())
    } else {
        Path::new(program).exists()
    };
    match (is_there, is_named) {
        (true, _) => {
            "its interpreter is missing: the program of its first line, or the loader it was built for"
        }
        (false, true) => "there is no such program on the PATH",
        (false, false) => "there is no such program",
    }
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
