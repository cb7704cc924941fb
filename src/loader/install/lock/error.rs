//! Why a lock is refused; what comes from outside in it is escaped.

/// Says why resolved dependencies are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// The lock is not what the installer writes.
    #[error("its lock cannot be read: {reason}")]
    Unreadable {
        /// What is wrong, escaped.
        reason: String,
    },
    /// The package itself is not in its lock.
    #[error("its lock does not contain `{name}` at version {version}")]
    Absent {
        /// The package.
        name: String,
        /// The version that was asked for.
        version: String,
    },
    /// An entry has no strong integrity.
    #[error("its dependency `{entry}` has no {algorithm} integrity")]
    Integrity {
        /// The entry, escaped.
        entry: String,
        /// The algorithm that is demanded.
        algorithm: &'static str,
    },
    /// An entry is another package than its name says, and none asks for it as an alias.
    #[error("its dependency `{entry}` is another package: `{found}`")]
    Name {
        /// The entry, escaped.
        entry: String,
        /// The name of the package that lies there, escaped.
        found: String,
    },
    /// An entry is a link, or lies outside the installation.
    #[error("its dependency `{entry}` is a link or lies outside the installation")]
    Link {
        /// The entry, escaped.
        entry: String,
    },
    /// An entry does not come from a registry.
    #[error("its dependency `{entry}` does not come from a registry: `{origin}`")]
    Origin {
        /// The entry, escaped.
        entry: String,
        /// Where it would come from, escaped.
        origin: String,
    },
}
