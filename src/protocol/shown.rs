//! The type of text from outside that is safe to show to a person.
//!
//! A tool name, a description or an install line may carry escape sequences, direction overrides or characters
//! without width, so that a person reads something other than what is granted. [`Shown`] is the one road from
//! such text to a terminal, a dialog or a log: what could deceive is written out as `\u{…}`.

use std::fmt::{self, Write as _};
use std::path::Path;

/// Displays text with everything that could deceive a reader written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    text: &'a str,
    keeps_line_breaks: bool,
}

impl<'a> Shown<'a> {
    /// Shows `text` on one line: line breaks are written out too.
    #[must_use]
    pub fn line(text: &'a str) -> Self {
        Self {
            text,
            keeps_line_breaks: false,
        }
    }

    /// Shows a path on one line; bytes that are no text become `\u{fffd}`.
    #[must_use]
    pub fn path(path: &Path) -> String {
        Shown::line(&path.to_string_lossy()).to_string()
    }

    /// Writes out what could deceive in the text of a JSON value, which stays the same value.
    #[must_use]
    pub fn json(text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for found in text.chars() {
            // Line breaks stand between members; inside a string they are written out already.
            if found != '\n' && deceives(found) {
                for unit in found.encode_utf16(&mut [0; 2]) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            } else {
                shown.push(found);
            }
        }
        shown
    }

    /// Shows `text` as a block: line feeds and tabs are kept.
    #[must_use]
    pub fn block(text: &'a str) -> Self {
        Self {
            text,
            keeps_line_breaks: true,
        }
    }
}

impl Shown<'_> {
    /// Tells whether a character does not show and is not an ordinary part of text: line breaks, tabs, the joiners and
    /// selectors of emoji are.
    #[must_use]
    pub fn hides(found: char) -> bool {
        let ordinary = matches!(
            found,
            '\n' | '\r' | '\t' | '\u{a0}' | '\u{200d}' | '\u{3000}' | '\u{fe0e}' | '\u{fe0f}'
        );
        deceives(found) && !ordinary
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for found in self.text.chars() {
            match found {
                '\n' | '\t' if self.keeps_line_breaks => write!(formatter, "{found}")?,
                '\n' => formatter.write_str("\\n")?,
                '\r' => formatter.write_str("\\r")?,
                '\t' => formatter.write_str("\\t")?,
                found if deceives(found) => write!(formatter, "{}", found.escape_unicode())?,
                found => write!(formatter, "{found}")?,
            }
        }
        Ok(())
    }
}

/// Tells whether a character can hide, reorder or move what stands around it.
pub(super) fn deceives(found: char) -> bool {
    found.is_control()
        || matches!(found,
            '\u{00ad}'                  // soft hyphen
            | '\u{034f}'                // combining grapheme joiner
            | '\u{061c}'                // Arabic letter mark
            | '\u{115f}' | '\u{1160}'   // Hangul fillers
            | '\u{17b4}' | '\u{17b5}'   // Khmer inherent vowels
            | '\u{180b}'..='\u{180f}'   // Mongolian variation selectors and vowel separator
            | '\u{2000}'..='\u{200f}'   // spaces of other widths, zero-width characters, direction marks
            | '\u{2028}'..='\u{202f}'   // line and paragraph separators, direction overrides
            | '\u{205f}'..='\u{206f}'   // invisible operators, direction isolates
            | '\u{2800}'                // blank braille pattern
            | '\u{3000}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}'   // variation selectors
            | '\u{feff}'                // byte order mark
            | '\u{fff0}'..='\u{fffb}'   // interlinear annotations
            | '\u{1bca0}'..='\u{1bca3}' // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}' // musical format controls
            | '\u{e0000}'..='\u{e0fff}' // tags and further variation selectors
        )
        || found == '\u{a0}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_deceive_is_written_out() {
        assert_eq!(
            Shown::line("\u{1b}[31mred\u{202e}x\u{200b}\n").to_string(),
            "\\u{1b}[31mred\\u{202e}x\\u{200b}\\n"
        );
        assert_eq!(Shown::block("a\n\tb\r").to_string(), "a\n\tb\\r");
    }

    #[test]
    fn a_path_cannot_deceive_either() {
        assert_eq!(Shown::path(Path::new("/a\u{1b}[2J/b\n")), "/a\\u{1b}[2J/b\\n");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "a\u{202e}": "\u{1b}[2J\n\u{7f}\u{e0041} Grüße 🦀" });
        let shown = Shown::json(&format!("{value:#}"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert!(!shown.contains(['\u{202e}', '\u{7f}', '\u{e0041}']), "{shown}");
        assert!(shown.contains("Grüße 🦀"), "{shown}");
    }

    #[test]
    fn letters_of_every_script_stay() {
        let text = "Grüße, 你好, שלום, नमस्ते, emoji 🦀";
        assert_eq!(Shown::line(text).to_string(), text);
    }

    #[test]
    fn no_control_or_format_character_survives() {
        for found in '\0'..=char::MAX {
            let text = found.to_string();
            let shown = Shown::line(&text).to_string();
            if found.is_control()
                || matches!(found, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            {
                assert!(shown.is_ascii(), "{found:?} is shown as {shown:?}");
            }
        }
    }
}
