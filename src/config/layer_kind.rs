//! The kind of a configuration file.

/// Whose file a layer is, and how much of it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerKind {
    /// The user's own.
    User,
    /// One that is checked alone, the user's or a project's.
    Either,
    /// A project's that counts as the user's word.
    Project,
    /// A project's that may declare and narrow, and widen nothing.
    UnacceptedProject,
}
