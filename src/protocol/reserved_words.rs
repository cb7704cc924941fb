//! The words by which pml asks and is answered, and a quick search for them in what others send.
//!
//! A message is looked at closely only where one of these words may stand in it, in any case and behind any escape.
//! That is found by two searches over its bytes, which cost little beside reading it.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::continuation;

/// The members by which pml asks for an approval or an answer.
pub const RESERVED: [&str; 4] = [
    "approval_required",
    "approval_context",
    "workflow_id",
    "input_required",
];

/// The names of the tools of pml itself, as clients see them.
pub mod own_tool {
    /// Continues any suspended call, for clients that check arguments against a tool's own schema.
    pub const CONTINUE: &str = "pml_continue";
    /// Says what is installed, running, pending and denied.
    pub const STATUS: &str = "pml_status";
    /// Asks a person one question.
    pub const ASK_USER: &str = "ask_user";
    /// Asks a person one to four questions with choices.
    pub const ASK_USER_QUESTIONS: &str = "ask_user_questions";
    /// Decides about a tool of the client: its name is given to `--permission-prompt-tool`.
    pub const APPROVAL_PROMPT: &str = "approval_prompt";

    /// All of them.
    pub const ALL: [&str; 5] = [CONTINUE, STATUS, ASK_USER, ASK_USER_QUESTIONS, APPROVAL_PROMPT];
}

/// Tells whether a text may hold one of pml's words, or the name of what continues a call.
///
/// May say yes where there is none; never says no where there is one.
#[must_use]
pub fn may_hold_reserved(text: &str) -> bool {
    let bytes = text.as_bytes();
    if is_plain(bytes) {
        return false;
    }
    // The letters right before the underscore of each word; none of them is another letter in another case.
    underscored(bytes, &[b"val", b"flow", b"put", b"nue", b"pml"]) || escapes_a_letter(bytes)
}

/// Tells whether a text may hold the member that continues a workflow.
#[must_use]
pub fn may_continue(text: &str) -> bool {
    debug_assert!(continuation::MEMBER.contains("nue_"));
    let bytes = text.as_bytes();
    !is_plain(bytes) && (underscored(bytes, &[b"nue"]) || escapes_a_letter(bytes))
}

/// Tells whether a short text has neither an underscore nor an escape, which one search finds out.
fn is_plain(bytes: &[u8]) -> bool {
    /// In longer texts there are escapes, which end such a search again and again.
    const SHORT: usize = 256;
    bytes.len() <= SHORT && memchr::memchr2(b'_', b'\\', bytes).is_none()
}

/// Tells whether an underscore stands behind one of these beginnings, in any case.
fn underscored(bytes: &[u8], before: &[&[u8]]) -> bool {
    memchr::memchr_iter(b'_', bytes).any(|at| {
        before.iter().any(|before| {
            at.checked_sub(before.len())
                .is_some_and(|start| bytes[start..at].eq_ignore_ascii_case(before))
        })
    })
}

/// Tells whether an escape may stand for a letter or an underscore of ASCII, or for what folds to one.
fn escapes_a_letter(bytes: &[u8]) -> bool {
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));
    ESCAPE.find_iter(bytes).any(|at| {
        matches!(
            bytes[at + 2..],
            [b'0', b'0', b'4'..=b'7', _, ..]
                | [b'0', b'1', b'3' | b'7', _, ..]
                | [b'2', b'1', b'2', b'a' | b'A', ..]
                // Half of a pair, which some readers leave out, and the zero that ends a text for others.
                | [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', _, _, ..]
                | [b'0', b'0', b'0', b'0', ..]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case_and_behind_any_escape() {
        for word in RESERVED {
            assert!(may_hold_reserved(&format!(r#"{{"{word}":1}}"#)), "{word}");
            assert!(may_hold_reserved(&word.to_uppercase()), "{word}");
            for (at, letter) in word.char_indices() {
                let escaped = format!("{}\\u{:04X}{}", &word[..at], u32::from(letter), &word[at + 1..]);
                assert!(may_hold_reserved(&escaped), "{escaped}");
            }
            let dotless = word.replace('i', "\u{131}").replace('k', "\u{212a}");
            assert!(may_hold_reserved(&dotless), "{dotless}");
        }
        for text in [
            "continue_workflow",
            "CONTINUE_wor\u{212a}flow",
            "continue\\u005fworkflow",
        ] {
            assert!(may_continue(text), "{text}");
        }
    }

    #[test]
    fn ordinary_texts_are_not_looked_at() {
        for text in [
            "",
            "_",
            "snake_case_value",
            "a\\nb\\u00e9\\u003c\\u2028",
            r#"{"content":[{"type":"text","text":"x"}]}"#,
        ] {
            assert!(!may_hold_reserved(text), "{text}");
            assert!(!may_continue(text), "{text}");
        }
    }
}
