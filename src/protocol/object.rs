//! A shallow look into a raw JSON object, and splicing: changing one place while every other byte stays.
//!
//! Members are slices of the source text, so the place of each is known by its address, and a change is a
//! replacement of that range. Nothing is parsed deeper than one level, nothing is written again.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use smallvec::SmallVec;

use super::Json;
use super::scan::{Key, Next, Scanner, SyntaxError};

/// What is changed in most messages: a name and a token. They are collected without an allocation.
const CHANGES_EXPECTED: usize = 2;

/// Room for the members of most payloads, so that they are collected without growing.
const MEMBERS_EXPECTED: usize = 8;

/// The name of a member, as it stands in the source and as it reads.
#[derive(Debug)]
enum Name<'a> {
    /// Written as it reads; this is what stands between its quotes.
    Plain(&'a str),
    /// Written with escapes; boxed, because it is rare and a member is moved often.
    Escaped(Box<EscapedName<'a>>),
}

#[derive(Debug)]
struct EscapedName<'a> {
    /// With its quotes.
    written: &'a str,
    /// `None` where it holds half of a surrogate pair, which JSON allows and no text can be.
    text: Option<String>,
}

impl<'a> Name<'a> {
    fn of(key: Key<'a>) -> Self {
        match key {
            Key::Plain(name) => Self::Plain(name),
            Key::Escaped(written) => Self::Escaped(Box::new(EscapedName {
                written,
                text: key.name().map(Cow::into_owned),
            })),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Plain(name) => Some(name),
            Self::Escaped(escaped) => escaped.text.as_deref(),
        }
    }

    /// Returns where it stands in the source, quotes included.
    fn place(&self, source: &str) -> Range<usize> {
        match self {
            Self::Plain(name) => {
                let inside = place_of(name, source);
                inside.start - 1..inside.end + 1
            }
            Self::Escaped(escaped) => place_of(escaped.written, source),
        }
    }
}

/// The members of a JSON object, one level deep, in their order.
#[derive(Debug)]
pub struct Object<'a> {
    source: &'a str,
    members: Vec<(Name<'a>, Json<'a>)>,
}

impl<'a> Object<'a> {
    /// Reads the members of `source`; `None` if it is not an object.
    #[must_use]
    pub fn parse(source: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(source);
        if scanner.enter().ok()? == Next::Other {
            return None;
        }
        let object = Self::scan(&mut scanner, 0).ok()?;
        scanner.end().ok()?;
        // What stands around the object belongs to the source, so that places count from its start.
        Some(Self { source, ..object })
    }

    /// Collects the members of the object that was entered at `start`.
    pub(super) fn scan(scanner: &mut Scanner<'a>, start: usize) -> Result<Self, SyntaxError> {
        let mut members = Vec::new();
        while let Some(key) = scanner.key()? {
            let value = scanner.value()?;
            if members.is_empty() {
                members.reserve(MEMBERS_EXPECTED);
            }
            members.push((Name::of(key), value));
        }
        let source = scanner.since(start).get();
        Ok(Self { source, members })
    }

    /// Returns the value of a member; the last one, where it stands more than once.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Json<'a>> {
        self.members
            .iter()
            .rev()
            .find(|(found, _)| found.text() == Some(name))
            .map(|(_, value)| *value)
    }

    /// Returns the text of a member that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.value(name).and_then(super::text)
    }

    /// Returns the text it was read from.
    #[must_use]
    pub fn source(&self) -> &'a str {
        self.source
    }

    /// Returns the members in their order; one whose name is no text comes without it.
    pub fn members(&self) -> impl Iterator<Item = (Option<&str>, Json<'a>)> {
        self.members.iter().map(|(name, value)| (name.text(), *value))
    }

    /// Returns where the names of its members stand in the source, quotes included, in their order.
    pub(super) fn key_places(&self) -> impl Iterator<Item = Range<usize>> {
        self.members.iter().map(|(name, _)| name.place(self.source))
    }

    /// Returns where the name of a member stands, quotes included; `value` is one of its members' values.
    #[must_use]
    pub fn key_place(&self, value: Json<'_>) -> Range<usize> {
        let start = self.value_place(value).start;
        // Values stand in the order of their members, so that the member of one is found without a look at all.
        let before = |(_, value): &(Name<'_>, Json<'_>)| place_of(value.get(), self.source).start < start;
        let member = self.members.get(self.members.partition_point(before));
        member.map_or(start..start, |(name, _)| name.place(self.source))
    }

    /// Returns the name of a member as it is written, quotes included.
    pub(super) fn key_of(&self, value: Json<'_>) -> &str {
        &self.source[self.key_place(value)]
    }

    /// Returns the place of a member's value in the source.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<Range<usize>> {
        self.value(name).map(|value| place_of(value.get(), self.source))
    }

    /// Returns the place of a value, which is one of its members', in the source.
    #[must_use]
    pub fn value_place(&self, value: Json<'_>) -> Range<usize> {
        place_of(value.get(), self.source)
    }

    /// Returns where a member can be inserted before all others: right behind the opening brace.
    #[must_use]
    pub fn front(&self) -> usize {
        self.source.find('{').map_or(0, |brace| brace + 1)
    }

    /// Tells whether the object has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// Returns where `part`, a slice of `source`, stands in it.
pub(crate) fn place_of(part: &str, source: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - source.as_ptr() as usize;
    start..start + part.len()
}

/// A source text with places that change: collected in any order, written in one pass.
#[derive(Debug)]
pub struct Splice {
    source: Bytes,
    changes: SmallVec<[(Range<usize>, Bytes); CHANGES_EXPECTED]>,
}

impl Splice {
    /// Starts from a source that stays as it is where nothing is changed.
    #[must_use]
    pub fn new(source: Bytes) -> Self {
        Self {
            source,
            changes: SmallVec::new(),
        }
    }

    /// Puts `text` in the place of `range`; an empty range inserts. Ranges must not overlap.
    pub fn replace(&mut self, range: Range<usize>, text: impl Into<Bytes>) {
        self.changes.push((range, text.into()));
    }

    /// Returns the parts of the changed text; what was not changed is shared with the source.
    #[must_use]
    pub fn into_parts(mut self) -> Vec<Bytes> {
        if self.changes.is_empty() {
            return vec![self.source];
        }
        self.changes.sort_by_key(|(range, _)| (range.start, range.end));
        let mut parts = Vec::with_capacity(self.changes.len() * 2 + 1);
        let mut from = 0;
        for (range, text) in self.changes {
            parts.push(self.source.slice(from..range.start));
            parts.push(text);
            from = range.end;
        }
        parts.push(self.source.slice(from..));
        parts
    }

    /// Returns the changed text in one piece.
    #[must_use]
    pub fn into_text(self) -> String {
        let bytes = self.into_parts().concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_changed_place_changes() {
        let source = r#"{ "name" : "a", "x":1.0 , "arguments":{"n":12345678901234567890123}}"#;
        let object = Object::parse(source).unwrap();
        let mut splice = Splice::new(Bytes::from(source.to_owned()));
        splice.replace(object.place("name").unwrap(), r#""b""#);
        splice.replace(object.front()..object.front(), r#""first":0,"#);
        assert_eq!(
            splice.into_text(),
            r#"{"first":0, "name" : "b", "x":1.0 , "arguments":{"n":12345678901234567890123}}"#
        );
    }

    #[test]
    fn members_are_found_by_their_unescaped_name() {
        let object = Object::parse(r#"{"n\u0061me":"x\ty","a":[1]}"#).unwrap();
        assert_eq!(object.text("name").unwrap(), "x\ty");
        assert_eq!(object.value("a").unwrap().get(), "[1]");
        assert_eq!(object.text("a"), None);
        assert!(Object::parse("[]").is_none());
    }

    #[test]
    fn a_name_that_is_no_text_hides_nothing_beside_it() {
        let object = Object::parse(r#"{"\ud800":1,"a":2,"\udc00\ud800":3}"#).unwrap();
        assert_eq!(object.value("a").unwrap().get(), "2");
        let names: Vec<_> = object.members().map(|(name, _)| name).collect();
        assert_eq!(names, [None, Some("a"), None]);
    }

    proptest! {
        #[test]
        fn a_name_stands_where_serde_json_reads_it(
            members in proptest::collection::vec(
                (r#"([a1{,:]|\\["\\n]|\\u(0061|d800|00e4)|é){0,4}"#, "[ \n]{0,2}", r#"1|"\\":"|\{"a":"b"\}"#), 0..6,
            ),
        ) {
            let written = members.iter().map(|(name, blank, value)| format!(r#"{blank}"{name}"{blank}:{blank}{value}"#));
            let text = format!(" {{{}}}", written.collect::<Vec<_>>().join(","));
            let object = Object::parse(&text).unwrap();
            let found: Vec<_> = object
                .members()
                .map(|(name, value)| (name.map(str::to_owned), object.key_of(value).to_owned()))
                .collect();
            let expected: Vec<_> = members
                .iter()
                .map(|(name, ..)| format!(r#""{name}""#))
                .map(|written| (serde_json::from_str::<String>(&written).ok(), written))
                .collect();
            prop_assert_eq!(found, expected);
            let places: Vec<_> = object.members().map(|(_, value)| object.key_place(value)).collect();
            prop_assert_eq!(object.key_places().collect::<Vec<_>>(), places);
        }

        #[test]
        fn a_splice_without_changes_is_its_source(source in "\\PC{0,40}") {
            prop_assert_eq!(Splice::new(Bytes::from(source.clone())).into_text(), source);
        }
    }
}
