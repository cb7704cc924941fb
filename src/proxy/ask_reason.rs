//! The reasons for which a person is asked about a call.

use crate::protocol::approval::ShownChange;

/// Why a person must decide about a call.
#[derive(Debug)]
pub(super) enum AskReason {
    /// Its server was not approved as it is declared.
    FirstUse,
    /// A rule wants a person to see every such call.
    EveryCall,
    /// It needs what only an accepted file may grant.
    ProjectTrust,
    /// The package of its server is not what was accepted.
    PackageChanged,
    /// Its server is declared otherwise than was accepted.
    LaunchChanged,
    /// The tool is not defined as it was accepted, or install scripts would run that were not.
    ServerChanged(ShownChange),
}
