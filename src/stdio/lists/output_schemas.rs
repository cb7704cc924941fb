//! The tools that the client was last shown with an output schema.
//!
//! A rule, an approval or a version may change while a client holds its list, so a tool that was listed as simply
//! running may come to ask all the same. The last list counts: clients take their schemas from it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// What the client expects of a result's `structuredContent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedContent {
    /// Nothing: the tool was listed without an output schema, or not at all.
    Anything,
    /// What the output schema says that this client was shown.
    Schema,
}

/// The wire names of the tools last listed with an output schema.
#[derive(Debug, Default)]
pub(crate) struct OutputSchemas(Mutex<HashSet<String>>);

impl OutputSchemas {
    /// Remembers the names of a list, in place of those of an older one.
    pub(crate) fn renew(&self, names: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = names.into_iter().collect();
    }

    /// Returns what the client expects of a call by this name.
    pub(crate) fn expected(&self, name: &str) -> ExpectedContent {
        if self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(name)
        {
            ExpectedContent::Schema
        } else {
            ExpectedContent::Anything
        }
    }
}
