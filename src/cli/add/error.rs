//! Why `pml add` added nothing, and what helps.

use std::sync::Arc;

use crate::loader::{InstallError, LoadError};
use crate::protocol::DependencyName;
use crate::report::Hint;

/// Says why a server was not added; the configuration is as it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddError {
    /// The package stands behind a variable.
    #[error("the exact version of `{name}` cannot be written into `{line}`")]
    Unpinnable {
        /// The server.
        name: DependencyName,
        /// The line as it was given, escaped.
        line: String,
    },
    /// The version that its package means was published too short a time ago.
    #[error("`{name}` was not added")]
    TooYoung {
        /// The server.
        name: DependencyName,
        /// How old it is.
        #[source]
        source: InstallError,
    },
    /// It could not be installed or started.
    #[error("`{name}` was not added: it could not be {what}")]
    Start {
        /// The server.
        name: DependencyName,
        /// What could not be done with it: `started`, or `reached`.
        what: &'static str,
        /// Why not.
        #[source]
        source: Arc<LoadError>,
    },
}

impl Hint for AddError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unpinnable { .. } => Some("write the package out instead of a `${VAR}`".to_owned()),
            Self::TooYoung { name, .. } => Some(now_hint(name)),
            Self::Start { name, source, .. } if source.is_about_age() => Some(now_hint(name)),
            Self::Start { name, source, .. } => source.hint().or_else(|| {
                Some(format!(
                    "to declare it all the same, without a start: pml add --no-install {name} …"
                ))
            }),
        }
    }
}

/// Says how a version is added that is too young: there is no declaration yet that `pml install` could take.
fn now_hint(name: &DependencyName) -> String {
    format!("to add it all the same: pml add --now {name} …")
}
