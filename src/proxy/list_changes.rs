//! Finds the lists that an edit of the configuration changes for a client.
//!
//! A client answers `list_changed` by asking for the list again before its next call, which costs it up to a second.
//! Most edits of a rule, those of pml itself above all, leave every list as it was.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{AskPossibility, ListedItem, ListedTool, Proxy, View};
use crate::protocol::ListKind;

impl Proxy {
    /// Returns the kinds whose lists no longer serve a client that was shown them under the configuration `before`.
    pub(super) fn changed_lists(&self, before: &Arc<View>, now: &Arc<View>) -> Vec<ListKind> {
        let changed = |kind: &ListKind| match kind {
            ListKind::Tools => {
                // They decide which of pml's own tools are listed, and how.
                let own = |view: &View| (view.config.ask_user.tools, view.config.approvals.by);
                own(before) != own(now)
                    || !all(&self.list_of(before), &self.list_of(now), is_callable_as_before)
            }
            ListKind::Prompts => !all(&self.prompts_of(before), &self.prompts_of(now), is_same),
            ListKind::Resources => {
                !all(&self.resources_of(before), &self.resources_of(now), is_same)
                    || !all(&self.templates_of(before), &self.templates_of(now), is_same)
            }
        };
        ListKind::ALL.into_iter().filter(changed).collect()
    }
}

/// Tells whether two lists agree entry by entry.
fn all<T>(before: &[T], now: &[T], agree: fn(&T, &T) -> bool) -> bool {
    before.len() == now.len() && before.iter().zip(now).all(|(before, now)| agree(before, now))
}

/// Tells whether a tool can be called by the definition it had before.
///
/// A tool that no longer asks gets its `outputSchema` back and takes no continuation. A client that holds the older
/// definition calls it just as well, so a person's `always` does not cost the next call a round trip. A tool that
/// begins to ask may answer what its schema forbids: that is a change.
fn is_callable_as_before(before: &ListedTool, now: &ListedTool) -> bool {
    match (before, now) {
        (
            ListedTool::Known {
                tool,
                definition,
                asking,
                ..
            },
            ListedTool::Known {
                tool: tool_now,
                definition: definition_now,
                asking: asking_now,
                ..
            },
        ) => {
            let asks_newly = (asking, asking_now) == (&AskPossibility::Never, &AskPossibility::Possible);
            tool == tool_now && !asks_newly && is_same_text(definition, definition_now)
        }
        (
            ListedTool::Connect { tool, about },
            ListedTool::Connect {
                tool: tool_now,
                about: about_now,
            },
        ) => (tool, about) == (tool_now, about_now),
        (ListedTool::Known { .. }, ListedTool::Connect { .. })
        | (ListedTool::Connect { .. }, ListedTool::Known { .. }) => false,
    }
}

fn is_same(before: &ListedItem, now: &ListedItem) -> bool {
    before.seen == now.seen && is_same_text(&before.definition, &now.definition)
}

fn is_same_text(before: &Arc<RawValue>, now: &Arc<RawValue>) -> bool {
    Arc::ptr_eq(before, now) || before.get() == now.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(definition: &str, asking: AskPossibility) -> ListedTool {
        ListedTool::Known {
            tool: "fs:read".parse().unwrap(),
            definition: RawValue::from_string(definition.to_owned()).unwrap().into(),
            place: 0..0,
            asking,
        }
    }

    #[test]
    fn a_tool_is_as_before_until_it_is_called_otherwise() {
        let (a, b) = (r#"{"name":"read"}"#, r#"{"name":"read","description":"x"}"#);
        let connect = |about: &str| ListedTool::Connect {
            tool: "fs:connect".parse().unwrap(),
            about: about.to_owned(),
        };
        for (before, now, expected) in [
            (
                known(a, AskPossibility::Never),
                known(a, AskPossibility::Never),
                true,
            ),
            (
                known(a, AskPossibility::Possible),
                known(a, AskPossibility::Never),
                true,
            ),
            (
                known(a, AskPossibility::Never),
                known(a, AskPossibility::Possible),
                false,
            ),
            (
                known(a, AskPossibility::Never),
                known(b, AskPossibility::Never),
                false,
            ),
            (connect("x"), connect("x"), true),
            (connect("x"), connect("y"), false),
            (connect("x"), known(a, AskPossibility::Never), false),
        ] {
            assert_eq!(
                is_callable_as_before(&before, &now),
                expected,
                "{before:?} {now:?}"
            );
        }
        let one = [known(a, AskPossibility::Never)];
        assert!(all(&one, &one, is_callable_as_before) && !all(&one, &[], is_callable_as_before));
    }
}
