//! The form in which a person says why not.

use serde_json::{Value, json};

use super::text::plain;

/// What names the form when it comes back.
pub(in crate::channels::slack) const CALLBACK: &str = "pml:reason";

/// A reason is a few sentences; no more of it is kept.
const REASON: usize = 2_000;

/// Writes the form; `origin` comes back with it.
pub(in crate::channels::slack) fn reason(code: &str, rev: u64, origin: &Value) -> Value {
    let field = json!({
        "type": "plain_text_input", "action_id": "text", "multiline": true, "max_length": REASON,
    });
    json!({
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": origin.to_string(),
        "title": plain("Abort"),
        "submit": plain("Abort"),
        "close": plain("Back"),
        "blocks": [{
            "type": "input", "block_id": format!("pml:{code}:{rev}:reason"), "optional": true,
            "label": plain("Why not? The agent reads this."), "element": field,
        }],
    })
}
