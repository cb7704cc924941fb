//! Hides values given in confidence in any text that is shown, logged or passed to a model.
//!
//! Servers and installers print their own configuration when they fail, tokens included. A value is hidden by what it
//! is, not by where it stands, and in every spelling in which it may come back: as it is, line by line, percent-encoded,
//! with the escapes of JSON, of Rust or of [`super::Shown`], and in base64 (see `finder`).
//!
//! How short a value may be is a trade: hiding `1` or `true` would wreck every text and protect nothing, yet a password
//! of four characters is one. So values of [`EVERYWHERE`] characters and more are hidden wherever they stand, shorter
//! ones where they are a word of their own, and values below [`SHORTEST`] or in [`WORDS`] are not hidden.

mod finder;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use self::finder::Finder;
use super::lexer::{Lexeme, Lexer};
use super::quoted;

/// Shorter values are flags and small numbers; as secrets they are guessed in moments.
const SHORTEST: usize = 4;

/// From this length on a value is hardly ever part of another word.
const EVERYWHERE: usize = 8;

/// Values that settings have everywhere, and the words before a token: they are no secret, and texts are full of them.
const WORDS: [&str; 29] = [
    "auto",
    "basic",
    "bearer",
    "debug",
    "default",
    "development",
    "digest",
    "disabled",
    "enabled",
    "error",
    "false",
    "http",
    "https",
    "info",
    "json",
    "localhost",
    "main",
    "none",
    "null",
    "prod",
    "production",
    "stdio",
    "test",
    "text",
    "token",
    "trace",
    "true",
    "warn",
    "warning",
];

/// The values that must not be shown, each with the name it is replaced by.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<Secret>,
    /// Made at the first use: most servers never say anything that is shown.
    finder: OnceLock<Arc<Finder>>,
}

#[derive(Clone, PartialEq, Eq)]
struct Secret {
    name: String,
    value: String,
}

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for Secrets {}

impl fmt::Debug for Secrets {
    /// Shows the names alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.values.iter().map(|secret| &secret.name);
        formatter.debug_set().entries(names).finish()
    }
}

impl Secrets {
    /// Takes values with their names. A value of several lines is hidden as a whole and line by line, because output is
    /// read by lines; values too short or too ordinary are left out.
    pub fn new<N: Into<String>, V: AsRef<str>>(named: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values: Vec<Secret> = Vec::new();
        for (name, value) in named {
            let (name, value) = (name.into(), value.as_ref());
            for part in std::iter::once(value.trim()).chain(value.lines().map(str::trim)) {
                let counts = part.chars().count() >= SHORTEST
                    && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(part));
                if counts && values.iter().all(|known| known.value != part) {
                    values.push(Secret {
                        name: name.clone(),
                        value: part.to_owned(),
                    });
                }
            }
        }
        Self {
            values,
            finder: OnceLock::new(),
        }
    }

    /// Returns these and others.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let all = self.values.iter().chain(&others.values);
        Self::new(all.map(|secret| (secret.name.clone(), &secret.value)))
    }

    /// Returns `text` with the name of each secret in its place.
    #[must_use]
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.values.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut hidden = String::new();
        let mut kept = 0;
        for place in self.finder().places(text) {
            hidden.push_str(&text[kept..place.range.start]);
            hidden.push('[');
            hidden.push_str(&self.values[place.secret].name);
            hidden.push(']');
            kept = place.range.end;
        }
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        hidden.push_str(&text[kept..]);
        Cow::Owned(hidden)
    }

    /// Returns the text of a JSON value with the name of each secret in its place; it stays one JSON value.
    ///
    /// Strings are compared by what they mean, so that no escape hides a secret; what holds none stays as written.
    #[must_use]
    pub fn hide_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if self.values.is_empty() {
            return Cow::Borrowed(json);
        }
        let mut hidden = String::new();
        let mut kept = 0;
        for token in tokens(json) {
            let text = &json[token.clone()];
            let meant: Cow<'_, str> = match serde_json::from_str::<String>(text) {
                Ok(meant) => meant.into(),
                Err(_not_a_string) => text.into(),
            };
            if let Cow::Owned(without) = self.hide(&meant) {
                hidden.push_str(&json[kept..token.start]);
                hidden.push_str(&quoted(&without));
                kept = token.end;
            }
        }
        if kept == 0 {
            return Cow::Borrowed(json);
        }
        hidden.push_str(&json[kept..]);
        Cow::Owned(hidden)
    }

    fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| {
            Arc::new(Finder::new(
                self.values.iter().map(|secret| secret.value.as_str()),
            ))
        })
    }
}

/// Returns where the strings, numbers and words of a JSON text stand.
fn tokens(json: &str) -> impl Iterator<Item = Range<usize>> {
    Lexer::of(json)
        .filter(|(lexeme, _)| !matches!(lexeme, Lexeme::Sign(_)))
        .map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Shown;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    const VALUE: &str = "p/ä ss+\"w\\ord\u{202e}";

    fn secrets(pairs: &[(&str, &str)]) -> Secrets {
        Secrets::new(pairs.iter().copied())
    }

    #[test]
    fn values_are_replaced_by_their_names_the_longer_one_first() {
        let secrets = secrets(&[
            ("LEVEL", "debug"),
            ("TOKEN", "abcdefgh"),
            ("LONGER", "abcdefgh-and-more"),
            ("KEY", "-----BEGIN-----\nc2VjcmV0IQ==\n"),
        ]);
        assert_eq!(
            secrets.hide("debug /home/user abcdefgh-and-more, abcdefgh, c2VjcmV0IQ=="),
            "debug /home/user [LONGER], [TOKEN], [KEY]"
        );
        assert!(matches!(secrets.hide("nothing of them"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_short_value_is_hidden_as_a_word_of_its_own_and_a_trivial_one_never() {
        let secrets = secrets(&[("PIN", "4711"), ("FLAG", "1"), ("ON", "true"), ("PASS", "pass")]);
        assert_eq!(
            secrets.hide("pin=4711, port 14711, 1 true pass of password"),
            "pin=[PIN], port 14711, 1 true [PASS] of password"
        );
    }

    #[test]
    fn a_value_is_found_in_every_spelling() {
        let secrets = secrets(&[("KEY", VALUE)]);
        let url = url::Url::parse_with_params("https://host.test/", [("key", VALUE)]).unwrap();
        let mut path = url::Url::parse("https://host.test/").unwrap();
        path.set_path(VALUE);
        let json = serde_json::Value::from(VALUE).to_string();
        let ascii: Vec<String> = VALUE
            .chars()
            .map(|found| format!("\\u{:04X}", found as u32))
            .collect();
        let percent: Vec<String> = VALUE.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (ascii, percent) = (ascii.concat(), percent.concat());
        for spelling in [
            VALUE.to_owned(),
            url.to_string(),
            path.to_string(),
            Shown::line(VALUE).to_string(),
            Shown::json(&json),
            format!("{VALUE:?}"),
            serde_json::Value::from(json.clone()).to_string(),
            json,
            ascii,
            percent.clone(),
            percent.replace('%', "%25"),
            STANDARD.encode(VALUE),
            URL_SAFE_NO_PAD.encode(VALUE),
            STANDARD.encode(format!("u:{VALUE}")),
            STANDARD.encode(format!("us:{VALUE}")),
            STANDARD.encode(format!("user:{VALUE}")),
        ] {
            let text = format!("before {spelling} after");
            let hidden = secrets.hide(&text).into_owned();
            assert!(hidden.contains("[KEY]"), "{spelling} is told: {hidden}");
            assert!(
                hidden.starts_with("before ") && hidden.ends_with(" after"),
                "{hidden}"
            );
        }
    }

    #[test]
    fn a_json_value_stays_one_and_what_holds_no_secret_stays_as_written() {
        let secrets = secrets(&[("TOKEN", "nabcdefg"), ("PIN", "47114711")]);
        let json =
            r#"{"a": 1.0, "t\u006f": "x\nabcdefg", "u":"\u006eabcdefg", "pin": 47114711, "nabcdefg":[]}"#;
        assert_eq!(
            secrets.hide_json(json),
            r#"{"a": 1.0, "t\u006f": "x\nabcdefg", "u":"[TOKEN]", "pin": "[PIN]", "[TOKEN]":[]}"#
        );
        assert!(matches!(secrets.hide_json(r#"{"a" : 1}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn secrets_do_not_show_themselves() {
        let secrets = secrets(&[("TOKEN", "abcdefgh")]);
        let _ = secrets.hide("made ready");
        assert_eq!(format!("{secrets:?}"), r#"{"TOKEN"}"#);
    }

    proptest! {
        #[test]
        fn any_text_can_be_looked_through(value in "\\PC{0,12}", text in "[a-f%\\\\\"u{}0-9é]{0,40}") {
            let secrets = secrets(&[("KEY", &value), ("SHORT", "abcd"), ("LONG", "abcdefabcdef")]);
            let _ = secrets.hide(&text);
            let _ = secrets.hide_json(&text);
        }

        #[test]
        fn a_value_between_other_text_is_always_found(value in "[a-zA-Z0-9/+%\\\\\"é]{8,20}", around in "[a-z ]{0,8}") {
            let secrets = secrets(&[("KEY", &value)]);
            let text = format!("{around}{value}{around}");
            prop_assert!(!secrets.hide(&text).contains(&value));
            let json = serde_json::json!({ "error": text }).to_string();
            let hidden: serde_json::Value = serde_json::from_str(&secrets.hide_json(&json)).unwrap();
            prop_assert!(!hidden["error"].as_str().unwrap().contains(&value));
        }
    }
}
