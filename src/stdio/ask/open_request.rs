//! A request that is open at a Legacy client, pml's own or a server's.

use crate::stdio::client::link::Link;
use crate::stdio::client::outstanding::Recipient;

/// A request that is open at the client: dropped before its answer came, it is withdrawn there.
pub(crate) struct OpenRequest {
    link: Link,
    id: String,
}

impl OpenRequest {
    /// Registers a request, which the caller sends; its answer goes to `recipient`.
    pub(crate) fn register(link: &Link, recipient: Recipient) -> Self {
        Self {
            id: link.outstanding().register(recipient),
            link: link.clone(),
        }
    }

    /// Returns its raw id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        // What was answered is not outstanding any more.
        if self.link.outstanding().take(&self.id).is_some() {
            self.link.withdraw(&self.id);
        }
    }
}
