//! The list of tools as the client is sent it: its text is written once per change, not per request.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use super::output_schemas::OutputSchemas;
use super::tools::tools;
use crate::proxy::{ListBasis, Proxy};

/// The list that was sent last, and what it follows from.
#[derive(Default)]
pub(crate) struct ToolList(Mutex<Option<(ListBasis, Bytes)>>);

impl ToolList {
    /// Returns the `tools` array of a `tools/list` result; `own` writes the definitions of pml's own tools, which follow
    /// from the configuration as the list does.
    pub(crate) fn text(
        &self,
        proxy: &Proxy,
        schemas: &OutputSchemas,
        own: impl FnOnce() -> Vec<Value>,
    ) -> Bytes {
        let Some(basis) = proxy.list_basis() else {
            schemas.renew(&[]);
            return Bytes::from(tools(&[], &own()));
        };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, text)) = &*last
            && *before == basis
        {
            return text.clone();
        }
        let listed = proxy.list(&basis);
        schemas.renew(&listed);
        let text = Bytes::from(tools(&listed, &own()));
        *last = Some((basis, text.clone()));
        text
    }
}
