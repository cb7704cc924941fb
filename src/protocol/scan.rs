//! One pass over a JSON text: checks its grammar and finds where values stand, without reading what they say.
//!
//! Accepts what `serde_json` accepts for a `RawValue`, and bounds the depth. Nothing recurses: open containers are
//! bits of one integer, so a text of a million brackets costs no more than an error. Values are handed out as slices
//! of the text, so nothing is copied and nothing can be lost.

mod string;

use std::borrow::Cow;
use std::fmt;

use self::string::{near, rest_of_string, special, string};
use super::Json;

/// The first depth that is refused: that of `serde_json`, so that what passes here can be read by it afterwards.
const TOO_DEEP: u32 = 128;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyntaxError {
    reason: &'static str,
    at: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at column {}", self.reason, self.at + 1)
    }
}

#[cold]
fn wrong<T>(reason: &'static str, at: usize) -> Result<T, SyntaxError> {
    Err(SyntaxError { reason, at })
}

/// The name of a member as it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key<'a> {
    /// Without escapes: what stands between the quotes is the name.
    Plain(&'a str),
    /// With escapes, and with its quotes.
    Escaped(&'a str),
}

impl<'a> Key<'a> {
    /// Returns the name; `None` where it holds half of a surrogate pair, which no text can be.
    pub(super) fn name(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Plain(name) => Some(Cow::Borrowed(name)),
            Self::Escaped(raw) => serde_json::from_str(raw).ok().map(Cow::Owned),
        }
    }
}

/// What stands next in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// An object, which has been entered: its members come one by one.
    Object,
    /// Another value, or none: nothing has been taken.
    Other,
}

/// A value that has been entered, or taken where there is nothing to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened<'a> {
    /// An object, which has been entered: its members come by [`Scanner::key`].
    Object,
    /// An array, which has been entered: its elements come by [`Scanner::element`].
    Array,
    /// A string, a number or a word, which has been taken.
    Scalar(Json<'a>),
}

/// A place in a text; it moves over one value after the other.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How many containers have been entered and not left.
    depth: u32,
    /// Nothing of the container entered last has been taken yet, so no comma stands before what comes next in it.
    entered: bool,
}

impl<'a> Scanner<'a> {
    /// Starts in front of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            entered: false,
        }
    }

    /// Passes white space and returns the place behind it.
    pub(super) fn place(&mut self) -> usize {
        self.at = blank(self.text.as_bytes(), self.at);
        self.at
    }

    /// Returns the text from `start`, a place returned earlier, to here.
    pub(super) fn since(&self, start: usize) -> Json<'a> {
        Json::known(&self.text[start..self.at])
    }

    /// Enters the value that comes next, if it is an object.
    pub(super) fn enter(&mut self) -> Result<Next, SyntaxError> {
        let at = self.place();
        if self.text.as_bytes().get(at) != Some(&b'{') {
            return Ok(Next::Other);
        }
        self.depth = deeper(self.depth, at)?;
        self.at = at + 1;
        self.entered = true;
        Ok(Next::Object)
    }

    /// Enters the value that comes next, or takes it where it is no container.
    pub(super) fn open(&mut self) -> Result<Opened<'a>, SyntaxError> {
        if self.enter()? == Next::Object {
            return Ok(Opened::Object);
        }
        if self.text.as_bytes().get(self.at) != Some(&b'[') {
            return Ok(Opened::Scalar(self.value()?));
        }
        self.depth = deeper(self.depth, self.at)?;
        self.at += 1;
        self.entered = true;
        Ok(Opened::Array)
    }

    /// Tells whether the array entered last has another element; leaves the array where it has none.
    ///
    /// Each element must be taken, or entered and left, before the next.
    pub(super) fn element(&mut self) -> Result<bool, SyntaxError> {
        let at = self.place();
        let first = std::mem::take(&mut self.entered);
        match self.text.as_bytes().get(at) {
            Some(b']') => {
                self.at = at + 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at = at + 1;
                Ok(true)
            }
            _ if first => Ok(true),
            _ => wrong("expected `,` or `]`", at),
        }
    }

    /// Takes the key of the next member of the object entered last; `None` leaves the object at its end.
    ///
    /// Each member's value must be taken, or entered and left, before the next key.
    pub(super) fn key(&mut self) -> Result<Option<Key<'a>>, SyntaxError> {
        let bytes = self.text.as_bytes();
        let mut at = blank(bytes, self.at);
        let first = std::mem::take(&mut self.entered);
        match bytes.get(at) {
            Some(b'}') => {
                self.at = at + 1;
                self.depth -= 1;
                return Ok(None);
            }
            Some(b',') if !first => at = blank(bytes, at + 1),
            _ if first => {}
            _ => return wrong("expected `,` or `}`", at),
        }
        let open = quote(bytes, at)?;
        let mut stop = near(bytes, open);
        if bytes.get(stop) != Some(&b'"') {
            stop = special(bytes, stop);
        }
        let (key, end) = if bytes.get(stop) == Some(&b'"') {
            (Key::Plain(&self.text[open..stop]), stop + 1)
        } else {
            let end = rest_of_string(bytes, stop)?;
            (Key::Escaped(&self.text[at..end]), end)
        };
        self.at = colon(bytes, end)?;
        Ok(Some(key))
    }

    /// Takes the value that comes next, whatever it is.
    pub(super) fn value(&mut self) -> Result<Json<'a>, SyntaxError> {
        let start = self.place();
        self.at = skip(self.text.as_bytes(), start, self.depth)?;
        self.entered = false;
        Ok(self.since(start))
    }

    /// Makes sure that nothing but white space is left.
    pub(super) fn end(mut self) -> Result<(), SyntaxError> {
        let at = self.place();
        if at == self.text.len() {
            Ok(())
        } else {
            wrong("expected nothing more", at)
        }
    }
}

/// Returns the end of the value that starts at `at`, inside of `outside` open containers.
fn skip(bytes: &[u8], mut at: usize, outside: u32) -> Result<usize, SyntaxError> {
    // One bit for each container opened here, the innermost lowest: an object is a one.
    let mut kinds: u128 = 0;
    let mut depth = outside;
    loop {
        match bytes.get(at) {
            Some(b'"') => at = string(bytes, at + 1)?,
            Some(b'{') => {
                depth = deeper(depth, at)?;
                at = blank(bytes, at + 1);
                if bytes.get(at) != Some(&b'}') {
                    kinds = kinds << 1 | 1;
                    at = member(bytes, at)?;
                    continue;
                }
                at += 1;
                depth -= 1;
            }
            Some(b'[') => {
                depth = deeper(depth, at)?;
                at = blank(bytes, at + 1);
                if bytes.get(at) != Some(&b']') {
                    kinds <<= 1;
                    continue;
                }
                at += 1;
                depth -= 1;
            }
            Some(b'-' | b'0'..=b'9') => at = number(bytes, at)?,
            Some(b't') => at = literal(bytes, at, b"true")?,
            Some(b'f') => at = literal(bytes, at, b"false")?,
            Some(b'n') => at = literal(bytes, at, b"null")?,
            _ => return wrong("expected a value", at),
        }
        // A value has ended, and with it perhaps containers.
        loop {
            if depth == outside {
                return Ok(at);
            }
            at = blank(bytes, at);
            let in_object = kinds & 1 == 1;
            match bytes.get(at) {
                Some(b',') => {
                    at = blank(bytes, at + 1);
                    if in_object {
                        at = member(bytes, at)?;
                    }
                    break;
                }
                Some(b'}') if in_object => {}
                Some(b']') if !in_object => {}
                _ if in_object => return wrong("expected `,` or `}`", at),
                _ => return wrong("expected `,` or `]`", at),
            }
            at += 1;
            depth -= 1;
            kinds >>= 1;
        }
    }
}

fn deeper(depth: u32, at: usize) -> Result<u32, SyntaxError> {
    if depth + 1 == TOO_DEEP {
        return wrong("too deeply nested", at);
    }
    Ok(depth + 1)
}

/// Passes a key and its colon; returns the place of the value.
#[inline]
fn member(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let end = string(bytes, quote(bytes, at)?)?;
    Ok(blank(bytes, colon(bytes, end)?))
}

#[inline]
fn quote(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match bytes.get(at) {
        Some(b'"') => Ok(at + 1),
        _ => wrong("expected a member's name in quotes", at),
    }
}

#[inline]
fn colon(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let at = blank(bytes, at);
    match bytes.get(at) {
        Some(b':') => Ok(at + 1),
        _ => wrong("expected `:`", at),
    }
}

/// Passes white space.
#[inline]
pub(super) fn blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

fn literal(bytes: &[u8], at: usize, word: &'static [u8]) -> Result<usize, SyntaxError> {
    if bytes[at..].starts_with(word) {
        Ok(at + word.len())
    } else {
        wrong("expected a value", at)
    }
}

/// Returns the end of a number; `at` is its sign or its first digit.
#[inline]
fn number(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let mut at = at + usize::from(bytes[at] == b'-');
    at = match bytes.get(at) {
        // Nothing but one zero: `01` would be read as another number elsewhere.
        Some(b'0') if !matches!(bytes.get(at + 1), Some(b'0'..=b'9')) => at + 1,
        Some(b'1'..=b'9') => digits(bytes, at)?,
        _ => return wrong("expected a number", at),
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(bytes, at + 1 + usize::from(sign))?;
    }
    Ok(at)
}

/// Passes one digit or more.
#[inline]
fn digits(bytes: &[u8], start: usize) -> Result<usize, SyntaxError> {
    let mut at = start;
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    if at == start {
        return wrong("expected a digit", at);
    }
    Ok(at)
}

impl<'a> Json<'a> {
    /// Takes a text that is one JSON value; `None` if it is not.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let value = scanner.value().ok()?;
        scanner.end().ok()?;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::string::{BLOCK, WORD};
    use super::*;
    use crate::protocol::{EnvelopeError, Message, Object};
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    /// Reads a text as `serde_json` does.
    fn expected(text: &str) -> Option<&str> {
        serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
    }

    /// Reads the members of an object as `serde_json` does, names decoded, values as their places.
    fn expected_members(text: &str) -> Option<Vec<(Option<String>, &str)>> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Vec<(Option<String>, &'de str)>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    // A name that is no text is a name all the same.
                    members.push((serde_json::from_str(name.get()).ok(), value.get()));
                }
                Ok(members)
            }
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = serde::Deserializer::deserialize_map(&mut deserializer, Members).ok()?;
        deserializer.end().ok()?;
        Some(members)
    }

    /// Reads every value of a text by entering whatever can be entered, and writes it without blanks.
    fn entered(text: &str) -> Result<String, SyntaxError> {
        fn write(scanner: &mut Scanner<'_>, out: &mut String) -> Result<(), SyntaxError> {
            let mut comma = "";
            match scanner.open()? {
                Opened::Scalar(json) => out.push_str(json.get()),
                Opened::Array => {
                    out.push('[');
                    while scanner.element()? {
                        out.push_str(std::mem::replace(&mut comma, ","));
                        write(scanner, out)?;
                    }
                    out.push(']');
                }
                Opened::Object => {
                    out.push('{');
                    while let Some(key) = scanner.key()? {
                        out.push_str(std::mem::replace(&mut comma, ","));
                        match key {
                            Key::Plain(name) => out.extend(["\"", name, "\":"]),
                            Key::Escaped(written) => out.extend([written, ":"]),
                        }
                        write(scanner, out)?;
                    }
                    out.push('}');
                }
            }
            Ok(())
        }
        let mut scanner = Scanner::new(text);
        let mut out = String::new();
        write(&mut scanner, &mut out)?;
        scanner.end()?;
        Ok(out)
    }

    /// Takes the blanks out of a text that is JSON.
    fn without_blanks(text: &str) -> String {
        let mut in_string = false;
        let mut escaped = false;
        let kept = text.chars().filter(|letter| {
            let kept = in_string || !letter.is_ascii_whitespace();
            in_string ^= *letter == '"' && !escaped;
            escaped = *letter == '\\' && !escaped;
            kept
        });
        kept.collect()
    }

    /// Fails unless the scanner and `serde_json` say the same of a text, down to where each member stands.
    fn agree(text: &str) {
        let found = Json::parse(text).map(Json::get);
        assert_eq!(found.map(places), expected(text).map(places), "{text:?}");
        assert_eq!(entered(text).ok(), found.map(without_blanks), "{text:?}");
        let found = Object::parse(text);
        let found: Option<Vec<_>> = found.as_ref().map(|object| {
            let members = object.members();
            members
                .map(|(name, value)| (name.map(str::to_owned), places(value.get())))
                .collect()
        });
        let expected = expected_members(text).map(|members| {
            let members = members.into_iter();
            members.map(|(name, value)| (name, places(value))).collect()
        });
        assert_eq!(found, expected, "{text:?}");
    }

    fn places(part: &str) -> (*const u8, usize) {
        (part.as_ptr(), part.len())
    }

    #[test]
    fn the_grammar_is_that_of_serde_json() {
        for text in [
            "",
            " ",
            "0",
            "-0",
            "-",
            "00",
            "01",
            "-01",
            "1.",
            ".1",
            "1.0",
            "1e",
            "1e+",
            "1E-05",
            "1e999",
            "+1",
            "0x1",
            "1 ",
            " 1",
            "1 2",
            "-a",
            "1a",
            "0.e1",
            "nul",
            "null",
            "nulll",
            "true",
            "True",
            "fals",
            "false",
            "NaN",
            "12345678901234567890123",
            "[",
            "]",
            "[]",
            "[ ]",
            "[,]",
            "[1,]",
            "[1 2]",
            "[1,2]",
            "[1}",
            "{",
            "}",
            "{}",
            "{ }",
            "{,}",
            "{1:2}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1]"#,
            r#"{"a" : 1 , "a":2 }"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":1}}"#,
            "{a:1}",
            "{'a':1}",
            "\"",
            r#""""#,
            r#""a"#,
            r#""\"#,
            r#""\""#,
            r#""\x""#,
            r#""\u12""#,
            r#""\u12G4""#,
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud83d\ude00""#,
            r#""\"\\\/\b\f\n\r\t""#,
            "\"\u{0}\"",
            "\"\u{1f}\"",
            "\"\t\"",
            "\"\u{7f}\"",
            "\u{feff}1",
            "\u{a0}1",
            "1\u{b}",
            "[1]\n",
            "\t\r\n {\t}\r",
            "{\"\u{e9}\":\"\u{1f600}\"}",
            r#"{"\ud800":1}"#,
            r#"{"\u0061":1}"#,
            "// a\n1",
            "[1,/**/2]",
            "\u{0}",
        ] {
            agree(text);
        }
    }

    #[test]
    fn what_ends_a_string_is_found_wherever_it_stands() {
        for length in 0..2 * BLOCK + 2 * WORD {
            for end in ["\"", "\\\"\"", "\\u00e9\"", "\n\"", "\u{e9}\"", "", "\\"] {
                let text = format!("\"{}{end}", "a".repeat(length));
                agree(&text);
                agree(&format!(
                    "{text}, and a tail that is longer than a block of the scanner"
                ));
                agree(&format!("{{{text}:{text}}}"));
            }
        }
    }

    #[test]
    fn the_depth_is_bounded_where_serde_json_bounds_it() {
        for depth in [126, 127, 128, 129] {
            for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
                let text = format!("{}0{}", open.repeat(depth), close.repeat(depth));
                let read = serde_json::from_str::<serde_json::Value>(&text).is_ok();
                assert_eq!(Json::parse(&text).is_some(), read, "{depth} {open}");
                assert_eq!(entered(&text).is_ok(), read, "{depth} {open}");
                assert_eq!(Object::parse(&text).is_some(), read && open.starts_with('{'));
            }
        }
        assert_eq!(Json::parse(&"[".repeat(1_000_000)), None);
    }

    #[test]
    fn an_error_says_what_and_where() {
        let error = |text: &str| Scanner::new(text).value().unwrap_err().to_string();
        assert_eq!(error(r#"{"a":tru}"#), "expected a value at column 6");
        assert_eq!(error(r#"["a"#), "a string without an end at column 4");
        assert_eq!(error("[1;"), "expected `,` or `]` at column 3");
    }

    fn blanks() -> impl Strategy<Value = String> {
        "[ \t\r\n]{0,2}"
    }

    fn strings() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[ -!#-\\[\\]-~]{0,40}",
            1 => "[^\"\\\\\\x00-\\x1f]{0,6}",
            1 => r#"\\["\\/bfnrt]"#,
            1 => r"\\u[0-9a-fA-F]{4}",
        ];
        proptest::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
    }

    /// Any JSON text, with white space in odd places.
    fn texts() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("false".to_owned()),
            r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?",
            strings(),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            let item = (blanks(), inner.clone(), blanks()).prop_map(|(a, value, b)| a + &value + &b);
            let member = (blanks(), strings(), blanks(), blanks(), inner, blanks())
                .prop_map(|(a, key, b, c, value, d)| format!("{a}{key}{b}:{c}{value}{d}"));
            prop_oneof![
                proptest::collection::vec(item, 1..6).prop_map(|items| format!("[{}]", items.join(","))),
                proptest::collection::vec(member, 1..6)
                    .prop_map(|members| format!("{{{}}}", members.join(","))),
                blanks().prop_map(|blank| format!("[{blank}]")),
                blanks().prop_map(|blank| format!("{{{blank}}}")),
            ]
        })
    }

    #[derive(Debug, Clone)]
    enum Mutation {
        Set(prop::sample::Index, u8),
        Insert(prop::sample::Index, u8),
        Cut(prop::sample::Index, prop::sample::Index),
    }

    fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
        let byte = || {
            prop_oneof![
                8 => prop::sample::select(b"{}[]:,\"\\ \t\n0123456789-+.eEtrufalsn/\0\x1f\x7f".to_vec()),
                1 => any::<u8>(),
            ]
        };
        let mutation = prop_oneof![
            (any::<prop::sample::Index>(), byte()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
            (any::<prop::sample::Index>(), byte()).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
            any::<(prop::sample::Index, prop::sample::Index)>()
                .prop_map(|(from, to)| Mutation::Cut(from, to)),
        ];
        proptest::collection::vec(mutation, 1..4)
    }

    fn mutate(text: String, mutations: &[Mutation]) -> Vec<u8> {
        let mut bytes = text.into_bytes();
        for mutation in mutations {
            match mutation {
                _ if bytes.is_empty() => {}
                Mutation::Set(at, byte) => {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
                Mutation::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
                Mutation::Cut(from, to) => {
                    let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                    bytes.drain(from.min(to)..from.max(to));
                }
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_serde_json_reads_it(before in blanks(), text in texts(), after in blanks()) {
            agree(&format!("{before}{text}{after}"));
        }

        #[test]
        fn any_broken_text_is_refused_as_serde_json_refuses_it(text in texts(), mutations in mutations()) {
            let bytes = mutate(text, &mutations);
            match std::str::from_utf8(&bytes) {
                Ok(text) => agree(text),
                Err(_) => prop_assert!(matches!(Message::parse(&bytes), Err(EnvelopeError::Syntax(_)))),
            }
        }

        #[test]
        fn any_bytes_that_look_like_json_are_read_as_serde_json_reads_them(text in r#"[\[\]{}:,"\\ 0-2.e\-tnu]{0,24}"#) {
            agree(&text);
        }
    }
}
