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
    /// The registry does not have its package, which stands in no file yet.
    #[error("`{name}` was not added")]
    NotFound {
        /// The server.
        name: DependencyName,
        /// What the registry does not have.
        #[source]
        source: InstallError,
    },
    /// It could not be installed or started.
    #[error("`{name}` was not added{}", .what.map(|what| format!(": it could not be {what}")).unwrap_or_default())]
    Start {
        /// The server.
        name: DependencyName,
        /// What could not be done with it: `started`, or `reached`; `None` where the cause begins so.
        what: Option<&'static str>,
        /// The same command with its install scripts, as it would be typed.
        with_scripts: String,
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
            Self::NotFound { name, .. } => Some(format!(
                "check the name and the version that you typed, and add it again: pml add {name} …"
            )),
            Self::Start { name, source, .. } if source.is_about_age() => Some(now_hint(name)),
            Self::Start {
                source, with_scripts, ..
            } if matches!(**source, LoadError::NativeModule { .. }) => {
                Some(format!("to see each of these scripts and decide: {with_scripts}"))
            }
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
