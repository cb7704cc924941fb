//! What the opening of every server needs.

use std::sync::{OnceLock, Weak};

use tokio_util::sync::CancellationToken;

use crate::config::Environment;
use crate::loader::session::Client;

/// What opening needs that does not change.
pub(in crate::loader) struct Settings {
    pub(in crate::loader) environment: Environment,
    /// Ends every process at once, also those that are not ready yet.
    pub(in crate::loader) at_once: CancellationToken,
    /// The client that dependencies talk to, once there is one.
    pub(in crate::loader) client: OnceLock<Weak<dyn Client>>,
}
