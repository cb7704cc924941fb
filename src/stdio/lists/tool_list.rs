//! The list of tools as the client is sent it: its text is written once per change, not per request.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use super::output_schemas::OutputSchemas;
use super::tools::tools;
use crate::protocol::Era;
use crate::proxy::{ListBasis, Proxy};

/// The list that was sent last.
#[derive(Default)]
pub(crate) struct ToolList(Mutex<Option<Sent>>);

struct Sent {
    /// What it follows from.
    basis: ListBasis,
    /// The era for which its definitions were mended.
    era: Era,
    text: Bytes,
}

impl ToolList {
    /// Returns the `tools` array of a `tools/list` result; `own` writes the definitions of pml's own tools, which follow
    /// from the configuration as the list does.
    pub(crate) fn text(
        &self,
        proxy: &Proxy,
        schemas: &OutputSchemas,
        era: Era,
        own: impl FnOnce() -> Vec<Value>,
    ) -> Bytes {
        let Some(basis) = proxy.list_basis() else {
            schemas.renew(Vec::new());
            return Bytes::from(tools(&[], &own(), era).text);
        };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = &*last
            && sent.basis == basis
            && sent.era == era
        {
            return sent.text.clone();
        }
        let written = tools(&proxy.list(&basis), &own(), era);
        schemas.renew(written.with_output_schema);
        let text = Bytes::from(written.text);
        *last = Some(Sent {
            basis,
            era,
            text: text.clone(),
        });
        text
    }
}
