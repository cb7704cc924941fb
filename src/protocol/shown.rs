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
    /// Returns how many characters of a text do not show and are no ordinary part of it: line breaks and tabs are, and the
    /// joiners and selectors of emoji where they stand in one.
    #[must_use]
    pub fn hidden_characters(text: &str) -> usize {
        let mut before = None;
        let mut hidden = 0;
        let mut rest = text.chars();
        while let Some(found) = rest.next() {
            let is_ordinary = match found {
                // One selector for each character; that of a keycap stands before its frame.
                EMOJI_STYLE | TEXT_STYLE => {
                    before.is_some_and(is_emoji)
                        || before.is_some_and(is_keycap) && rest.clone().next() == Some('\u{20e3}')
                }
                // Nothing is joined to a joiner: a row of them says something to a model alone.
                JOINER => before.is_some_and(|before| is_emoji(before) || joins_letters(before)),
                found => !Self::hides(found),
            };
            hidden += usize::from(!is_ordinary);
            before = match (found, before) {
                // An emoji with its selector may still be joined to the next one.
                (EMOJI_STYLE, Some(emoji)) if is_emoji(emoji) && rest.clone().next() == Some(JOINER) => {
                    before
                }
                _ => Some(found),
            };
        }
        hidden
    }

    /// Tells whether a character does not show and is not an ordinary part of text, wherever it stands.
    #[must_use]
    pub fn hides(found: char) -> bool {
        let ordinary = matches!(
            found,
            '\n' | '\r' | '\t' | '\u{a0}' | '\u{3000}' | JOINER | TEXT_STYLE | EMOJI_STYLE
        );
        deceives(found) && !ordinary
    }
}

/// Makes one emoji of two, and in some scripts one letter of two.
const JOINER: char = '\u{200d}';

/// Has the character before it drawn as text.
const TEXT_STYLE: char = '\u{fe0e}';

/// Has the character before it drawn as an emoji.
const EMOJI_STYLE: char = '\u{fe0f}';

/// Tells whether a character is drawn as an emoji, alone or with a selector.
fn is_emoji(found: char) -> bool {
    matches!(found,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{2199}' | '\u{21a9}' | '\u{21aa}'
        | '\u{231a}' | '\u{231b}' | '\u{2328}' | '\u{23cf}' | '\u{23e9}'..='\u{23fa}' | '\u{24c2}'
        | '\u{25aa}' | '\u{25ab}' | '\u{25b6}' | '\u{25c0}' | '\u{25fb}'..='\u{25fe}'
        | '\u{2600}'..='\u{27bf}'
        | '\u{2934}' | '\u{2935}' | '\u{2b05}'..='\u{2b07}' | '\u{2b1b}' | '\u{2b1c}' | '\u{2b50}' | '\u{2b55}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}'
    )
}

/// Tells whether a character is written on a keycap.
fn is_keycap(found: char) -> bool {
    found.is_ascii_digit() || matches!(found, '#' | '*')
}

/// Tells whether a script needs the joiner after this character: the sign that takes the vowel from an Indic letter.
fn joins_letters(found: char) -> bool {
    matches!(
        found,
        '\u{94d}'
            | '\u{9cd}'
            | '\u{a4d}'
            | '\u{acd}'
            | '\u{b4d}'
            | '\u{bcd}'
            | '\u{c4d}'
            | '\u{ccd}'
            | '\u{d4d}'
            | '\u{dca}'
    )
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
            | '\u{0600}'..='\u{0605}'   // Arabic signs that reach over what follows
            | '\u{061c}'                // Arabic letter mark
            | '\u{06dd}' | '\u{070f}'   // end of verse, Syriac abbreviation
            | '\u{0890}' | '\u{0891}' | '\u{08e2}' // further Arabic signs
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
            | '\u{110bd}' | '\u{110cd}' // Kaithi number signs
            | '\u{13430}'..='\u{1343f}' // hieroglyph format controls
            | '\u{16fe4}'               // Khitan filler
            | '\u{1bca0}'..='\u{1bca3}' // shorthand format controls
            | '\u{1d159}'               // musical null notehead
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
    fn every_character_of_the_format_category_is_written_out() {
        // General category Cf of Unicode 16.
        let format = [
            ('\u{ad}', '\u{ad}'),
            ('\u{600}', '\u{605}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{6dd}', '\u{6dd}'),
            ('\u{70f}', '\u{70f}'),
            ('\u{890}', '\u{891}'),
            ('\u{8e2}', '\u{8e2}'),
            ('\u{180e}', '\u{180e}'),
            ('\u{200b}', '\u{200f}'),
            ('\u{202a}', '\u{202e}'),
            ('\u{2060}', '\u{2064}'),
            ('\u{2066}', '\u{206f}'),
            ('\u{feff}', '\u{feff}'),
            ('\u{fff9}', '\u{fffb}'),
            ('\u{110bd}', '\u{110bd}'),
            ('\u{110cd}', '\u{110cd}'),
            ('\u{13430}', '\u{1343f}'),
            ('\u{1bca0}', '\u{1bca3}'),
            ('\u{1d173}', '\u{1d17a}'),
            ('\u{e0001}', '\u{e0001}'),
            ('\u{e0020}', '\u{e007f}'),
        ];
        for found in format.into_iter().flat_map(|(first, last)| first..=last) {
            let text = found.to_string();
            assert!(Shown::line(&text).to_string().is_ascii(), "{found:?}");
            assert!(found == JOINER || Shown::hides(found), "{found:?}");
        }
    }

    #[test]
    fn joiners_and_selectors_count_unless_they_stand_in_an_emoji_or_join_letters() {
        for (text, hidden) in [
            ("\u{2764}\u{fe0f} \u{1f44d}\u{1f3fd} \u{a9}\u{fe0e}", 0),
            // A family, a heart on fire, a rainbow flag, a keycap.
            ("\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}", 0),
            ("\u{2764}\u{fe0f}\u{200d}\u{1f525}", 0),
            ("\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}", 0),
            ("1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}", 0),
            (
                "\u{915}\u{94d}\u{200d}\u{937} \u{dc1}\u{dca}\u{200d}\u{dbb}\u{dd3}",
                0,
            ),
            ("a\u{200d}", 1),
            ("a\u{fe0f}\u{fe0e}", 2),
            ("1\u{fe0f}", 1),
            ("\u{fe0f}", 1),
            ("\u{2764}\u{fe0f}\u{fe0f}\u{fe0e}", 2),
            ("\u{2764}\u{200d}\u{200d}\u{fe0f}\u{200d}", 3),
            ("\u{2764}\u{fe0f}\u{200d}\u{200d}", 1),
            ("\u{94d}\u{200d}\u{200d}", 1),
            ("a\u{200b}\u{200c}b", 2),
            ("line\nline\ttab\r\n\u{a0}", 0),
        ] {
            assert_eq!(
                Shown::hidden_characters(text),
                hidden,
                "{}",
                text.escape_unicode()
            );
        }
        let stream: String = (0..64)
            .map(|bit| if bit % 3 == 0 { '\u{fe0e}' } else { JOINER })
            .collect();
        assert!(Shown::hidden_characters(&format!("Reads a file.\u{2764}{stream}")) >= 63);
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
