//! The text of one JSON value: a slice of the line it came in, never parsed further than a caller asks.

use std::borrow::Cow;
use std::fmt;

/// The text of one valid JSON value, without the white space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// Takes a text that a reader of this module has already found to be one JSON value.
    pub(super) fn known(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the text.
    #[must_use]
    pub fn get(self) -> &'a str {
        self.0
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

/// Writes a text as a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let inside = escaped(text);
    let mut quoted = String::with_capacity(inside.len() + 2);
    quoted.push('"');
    quoted.push_str(&inside);
    quoted.push('"');
    quoted
}

/// Writes what stands between the quotes of a JSON string; most texts are that already.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let quoted = serde_json::Value::from(text).to_string();
    Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
}

/// Reads a raw JSON string, borrowed where it has no escapes.
#[must_use]
pub fn text(raw: Json<'_>) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}
