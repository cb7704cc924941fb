//! Where a trust root comes from, in the words of errors.

use std::fmt;
use std::path::PathBuf;

use crate::protocol::Shown;

/// Where a trust root comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootSource {
    /// The public one, as it was when pml was built.
    BuiltIn,
    /// A file that the user's own configuration names.
    File(PathBuf),
}

impl fmt::Display for RootSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => write!(
                formatter,
                "the trust root in pml {}, which is as old as this build of pml",
                env!("CARGO_PKG_VERSION")
            ),
            Self::File(path) => write!(formatter, "the trust root `{}`", Shown::path(path)),
        }
    }
}
