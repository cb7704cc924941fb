//! The errors of starting the server of the inbox, and of finding the one that runs.

use std::io;
use std::path::PathBuf;

use crate::protocol::Shown;
use crate::report::Hint;

/// Says why the page of the inbox cannot be served, or the server that runs cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A file of the state directory cannot be read or written.
    #[error("cannot {attempted} `{}`", Shown::path(.path))]
    File {
        /// What was attempted.
        attempted: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The port cannot be listened on.
    #[error("cannot listen on port {port} of 127.0.0.1")]
    Listen {
        /// The port.
        port: u16,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Another server holds the lock and does not tell where it listens.
    #[error("another `pml serve` starts or hangs: it holds `{}` and does not tell where it listens", Shown::path(.lock))]
    Silent {
        /// The lock.
        lock: PathBuf,
    },
    /// The server that runs did not give a key.
    #[error("`pml serve` at {url} gave no key")]
    NoKey {
        /// Where it listens.
        url: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// No server runs.
    #[error("`pml serve` does not run")]
    NotRunning,
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// The server stopped by itself.
    #[error("the server of the inbox stopped")]
    Stopped(#[source] io::Error),
}

impl ServeError {
    /// Makes an error of a failed step on a file.
    pub(super) fn file(attempted: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            attempted,
            path,
            source,
        }
    }
}

impl Hint for ServeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Listen { .. } => Some("leave out --port, or choose another".to_owned()),
            Self::NotRunning => Some("to start it: pml serve".to_owned()),
            Self::File { .. }
            | Self::Silent { .. }
            | Self::NoKey { .. }
            | Self::NoProcess { .. }
            | Self::Stopped(_) => None,
        }
    }
}
