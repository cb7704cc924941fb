//! The last look at whether an answer counts: inside the transaction that records it, right before it is written.
//!
//! Recording may wait for other processes, and what decides who may answer can change meanwhile. Here nothing comes
//! between the look and the record any more.

use std::fmt;
use std::sync::Arc;

use super::{DatabaseFault, Workflow};

/// Says of an ask whether an answer to it still counts, or why not. It may block and must not use the store.
type Look = dyn Fn(&Workflow) -> Result<(), DatabaseFault> + Send + Sync;

/// What is asked once more of an answer before it is written down.
#[derive(Clone)]
pub struct LastCheck(Arc<Look>);

impl LastCheck {
    /// Asks `look`, on the thread that owns the store.
    pub fn new(look: impl Fn(&Workflow) -> Result<(), DatabaseFault> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    /// Asks nothing: whoever answers may, whatever changes.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| Ok(()))
    }

    /// Tells whether the answer still counts.
    pub(crate) fn look(&self, workflow: &Workflow) -> Result<(), DatabaseFault> {
        (self.0)(workflow)
    }
}

impl fmt::Debug for LastCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LastCheck")
    }
}
