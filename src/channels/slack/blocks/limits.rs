//! What Slack takes at most. Lengths are counted in units of UTF-16, which are never fewer than characters.

/// Blocks of a message.
pub(in crate::channels::slack) const BLOCKS: usize = 50;

/// The text of a section.
pub(in crate::channels::slack) const SECTION: usize = 3_000;

/// The text of a header.
pub(in crate::channels::slack) const HEADER: usize = 150;

/// The label and the description of an option.
pub(in crate::channels::slack) const OPTION: usize = 75;

/// Options of a group of radio buttons or checkboxes.
pub(in crate::channels::slack) const GROUP: usize = 10;

/// Options of a select menu.
pub(in crate::channels::slack) const MENU: usize = 100;

/// The text of a dialog that confirms a press.
pub(in crate::channels::slack) const CONFIRMATION: usize = 300;

/// What a person may write into a field.
pub(in crate::channels::slack) const WRITTEN: usize = 3_000;

/// The text of all blocks together: Slack refuses from about 12,000 on, counts what it adds, and says nowhere how.
pub(in crate::channels::slack) const TEXT: usize = 10_000;

/// Returns the length of a text as it is counted.
pub(in crate::channels::slack) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}
