//! The remains of a message that cannot be read: its id, and whether it is a request or an answer.
//!
//! Some servers write the `id` first, others (those on the TypeScript SDK) last, behind a payload that may be too
//! deep, too long or broken. So the whole line is skimmed, piece by piece as it comes: strings and brackets are
//! followed, nothing of the payload is kept, and only what stands in the outermost object is believed. Nothing
//! recurses, and the memory does not depend on the line.
//!
//! The scanner cannot do this: it needs a whole text that is UTF-8, gives up at the first error and at depth 128, and
//! a line that is too long is never whole in memory. Here a line is broken by definition, comes in pieces that end
//! anywhere, and goes on behind an error. What is believed of it, a name or an id, is read by the scanner.

use super::Json;
use super::envelope::is_id;
use super::json::text;

/// More than any name or id that means something here; what is longer is followed to its end and forgotten.
const KEPT: usize = 1024;

/// What can still be told of a message that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    /// It asks something: its sender waits for an answer to this raw id.
    Request(String),
    /// It answers our request with this raw id.
    Answer(String),
    /// It has this raw id, and nothing that tells which of the two it is.
    Either(String),
    /// It was read to its end, is a notification and has no id: no request waits for it.
    Notification,
    /// It has no id that could be found, so no waiting request can be answered.
    Nothing,
}

impl Remains {
    /// Looks at a whole line.
    #[must_use]
    pub fn of(line: &[u8]) -> Self {
        let mut skim = MessageSkim::default();
        skim.pass(line);
        skim.remains()
    }
}

/// Passes over a message piece by piece.
#[derive(Debug, Default)]
pub struct MessageSkim {
    place: SkimPosition,
    string: StringState,
    /// How many containers are open inside of the value that is being passed.
    depth: usize,
    /// The name or the plain value that is being passed, as far as it is kept.
    token: Vec<u8>,
    member: SkimmedMember,
    id: Id,
    kind: MessageKind,
}

/// What is known of the id.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Id {
    #[default]
    Unseen,
    /// There is one that is none.
    Unusable,
    Found(String),
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SkimPosition {
    #[default]
    Before,
    /// Where a name is expected, or within one.
    Name,
    /// Behind the colon.
    Value,
    /// Behind the outermost object.
    Behind,
    /// Where no message can be: nothing more is believed.
    Lost,
}

/// Where a byte stands with regard to strings.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum StringState {
    #[default]
    None,
    String,
    /// The next byte is escaped.
    Escape,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SkimmedMember {
    Id,
    #[default]
    Other,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    #[default]
    Unknown,
    Request,
    Answer,
}

impl MessageSkim {
    /// Passes over the next bytes.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((byte, rest)) = bytes.split_first() {
            if self.place == SkimPosition::Lost {
                return;
            }
            bytes = rest;
            match self.string {
                StringState::None => self.step(*byte),
                StringState::Escape => {
                    self.keep(&[*byte]);
                    self.string = StringState::String;
                }
                StringState::String => {
                    self.keep(&[*byte]);
                    match byte {
                        b'"' => self.string = StringState::None,
                        b'\\' => self.string = StringState::Escape,
                        _ => {
                            // Most of a long message is text.
                            let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                            self.keep(&rest[..plain]);
                            bytes = &rest[plain..];
                        }
                    }
                }
            }
        }
    }

    /// Tells what was found.
    #[must_use]
    pub fn remains(self) -> Remains {
        match (self.id, self.kind) {
            (Id::Found(id), MessageKind::Request) => Remains::Request(id),
            (Id::Found(id), MessageKind::Answer) => Remains::Answer(id),
            (Id::Found(id), MessageKind::Unknown) => Remains::Either(id),
            // Of one that breaks off the id may have been still to come.
            (Id::Unseen, MessageKind::Request) if self.place == SkimPosition::Behind => Remains::Notification,
            (Id::Unseen | Id::Unusable, _) => Remains::Nothing,
        }
    }

    /// Passes a byte that stands in no string.
    fn step(&mut self, byte: u8) {
        let blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match (self.place, byte) {
            (SkimPosition::Before, b'{') => self.place = SkimPosition::Name,
            (SkimPosition::Name | SkimPosition::Value, b'"') => {
                self.keep(b"\"");
                self.string = StringState::String;
            }
            (SkimPosition::Name, b':') => self.named(),
            (SkimPosition::Name, b'}') if self.token.is_empty() => self.place = SkimPosition::Behind,
            (SkimPosition::Value, b'{' | b'[') => self.depth += 1,
            (SkimPosition::Value, b'}' | b']') if self.depth > 0 => self.depth -= 1,
            (SkimPosition::Value, b'}') => self.valued(SkimPosition::Behind),
            (SkimPosition::Value, b',') if self.depth == 0 => self.valued(SkimPosition::Name),
            (SkimPosition::Before | SkimPosition::Name | SkimPosition::Behind, _) if blank => {}
            (SkimPosition::Value, byte) if byte != b']' => self.keep(&[byte]),
            _ => self.place = SkimPosition::Lost,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.depth == 0 {
            let room = (KEPT + 1).saturating_sub(self.token.len());
            self.token.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// Returns the token as one JSON value, if it is one and was kept whole.
    fn value(token: &[u8]) -> Option<Json<'_>> {
        let whole = Some(token).filter(|token| token.len() <= KEPT)?;
        Json::parse(std::str::from_utf8(whole).ok()?)
    }

    fn named(&mut self) {
        let token = std::mem::take(&mut self.token);
        let name = Self::value(&token).and_then(text);
        self.place = SkimPosition::Value;
        self.member = SkimmedMember::Other;
        match name.as_deref() {
            Some("id") => self.member = SkimmedMember::Id,
            Some("method" | "params") => self.kind = MessageKind::Request,
            // A request may have `"error": null`.
            Some("result" | "error") if self.kind == MessageKind::Unknown => self.kind = MessageKind::Answer,
            _ => {}
        }
    }

    fn valued(&mut self, next: SkimPosition) {
        let token = std::mem::take(&mut self.token);
        self.place = next;
        // Of two ids the first is believed: each reader would believe another one.
        if self.member == SkimmedMember::Id && !matches!(self.id, Id::Found(_)) {
            let id = Self::value(&token).filter(|id| is_id(*id));
            self.id = id.map_or(Id::Unusable, |id| Id::Found(id.get().to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Message;
    use proptest::prelude::*;

    fn request(id: &str) -> Remains {
        Remains::Request(id.to_owned())
    }

    fn answer(id: &str) -> Remains {
        Remains::Answer(id.to_owned())
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for (line, remains) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":42,"result":{{"a":{deep}}}}}"#),
                answer("42"),
            ),
            (
                format!(r#"{{"result":{{"id":7,"a":{deep}}},"jsonrpc":"2.0","id":42}}"#),
                answer("42"),
            ),
            (
                format!(r#" {{ "error" : {deep} , "id" : "a\"b" }} "#),
                answer(r#""a\"b""#),
            ),
            (
                format!(r#"{{"method":"m","params":{deep},"id":-1.0}}"#),
                request("-1.0"),
            ),
            (format!(r#"{{"params":{deep},"i\u0064":1,"id":2}}"#), request("1")),
            (r#"{"result":{"x":NaN},"id":3}"#.to_owned(), answer("3")),
            (r#"{"error":null,"id":3,"method":7}"#.to_owned(), request("3")),
            (r#"{"id":3}"#.to_owned(), Remains::Either("3".to_owned())),
        ] {
            assert_eq!(Remains::of(line.as_bytes()), remains, "{line:.80}");
        }
    }

    #[test]
    fn a_line_that_breaks_off_has_the_id_that_stood_before() {
        assert_eq!(Remains::of(br#"{"id":42,"result":{"content":"xx"#), answer("42"));
        assert_eq!(Remains::of(b"{\"id\":\"a\",\"params\":\"\xc3"), request(r#""a""#));
    }

    #[test]
    fn an_id_that_is_cut_or_stands_elsewhere_is_not_believed() {
        let long = format!(r#"{{"id":"{}","result":1}}"#, "x".repeat(KEPT));
        for line in [
            r#"{"id":42"#,
            r#"{"id":"a"#,
            r#"{"result":{"id":42"#,
            r#"{"result":{"text":"\",\"id\":5}"#,
            r#"{"result":{"text":"broken "quote","id":5}"#,
            r#"{"result":1}],"id":5}"#,
            r#"{"result":],"id":5}"#,
            r#"{"id":null,"method":"a"}"#,
            r#"{"id":{"id":1},"method":"a"}"#,
            r#"[{"id":1,"result":2}]"#,
            r#"{"method":"a""#,
            r#"{"method":"a"}]"#,
            r#"{"a":1}"#,
            r#"{x"id":1}"#,
            "noise",
            "",
            &long,
        ] {
            assert_eq!(Remains::of(line.as_bytes()), Remains::Nothing, "{line}");
        }
    }

    #[test]
    fn a_notification_is_known_once_it_is_at_its_end() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"a","params":{"id":1}}"#,
            r#" {"params":[NaN],"method":"a"} "#,
        ] {
            assert_eq!(Remains::of(line.as_bytes()), Remains::Notification, "{line}");
        }
    }

    #[test]
    fn a_long_line_leaves_nothing_behind() {
        let mut skim = MessageSkim::default();
        skim.pass(br#"{"result":["#);
        for _ in 0..1000 {
            skim.pass(br#"{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"#);
        }
        assert!(skim.token.capacity() <= 2 * KEPT, "{}", skim.token.capacity());
        skim.pass(br#"null],"id":1}"#);
        assert_eq!(skim.remains(), answer("1"));
    }

    /// Tells what `serde_json` reads of a message that is valid.
    fn read(members: &[(&str, serde_json::Value)]) -> Remains {
        let any = |names: [&str; 2]| members.iter().any(|(name, _)| names.contains(name));
        let mut ids = members.iter().filter(|(name, _)| *name == "id").map(|(_, id)| id);
        let usable = ids.clone().find(|id| id.is_string() || id.is_number());
        match usable.map(ToString::to_string) {
            Some(id) if any(["method", "params"]) => Remains::Request(id),
            Some(id) if any(["result", "error"]) => Remains::Answer(id),
            Some(id) => Remains::Either(id),
            None if any(["method", "params"]) && ids.next().is_none() => Remains::Notification,
            None => Remains::Nothing,
        }
    }

    fn payloads() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::Value;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i8>().prop_map(Value::from),
            "[a\"\\\\{}\\[\\],: \u{e4}\n]{0,5}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::vec(("id|method|[\"{]", inner), 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn of_a_valid_message_the_same_is_told_as_serde_json_reads(
            members in proptest::collection::vec(
                (prop::sample::select(vec!["id", "method", "params", "result", "error", "x"]), payloads()), 0..6,
            ),
        ) {
            let written = members.iter().map(|(name, value)| format!(" {name:?} : {value:#}"));
            let line = format!("{{{}}}", written.collect::<Vec<_>>().join(","));
            prop_assert_eq!(Remains::of(line.as_bytes()), read(&members), "{}", line);
        }

        #[test]
        fn where_the_pieces_end_does_not_matter(
            line in r#"\{("(id|method|result)":[\["a\\1,\]}]{0,6},?){0,4}\}?"#, size in 1usize..9,
        ) {
            let mut skim = MessageSkim::default();
            for piece in line.as_bytes().chunks(size) {
                skim.pass(piece);
            }
            prop_assert_eq!(skim.remains(), Remains::of(line.as_bytes()));
        }

        #[test]
        fn what_can_be_read_is_told_as_it_is_read(
            id in r#"-?[1-9][0-9]{0,4}|"[a-z]{0,5}""#, text in "[ -~]{0,20}", first in any::<bool>(),
            kind in prop::sample::select(vec!["result", "error", "method"]),
        ) {
            let payload = serde_json::Value::from(text).to_string();
            let line = if first {
                format!(r#"{{"id":{id},"x":[{payload}],"{kind}":{payload}}}"#)
            } else {
                format!(r#"{{"{kind}":{payload},"x":{{"y":{payload}}},"id":{id}}}"#)
            };
            let expected = match Message::parse(line.as_bytes()) {
                Ok(Message::Request { id, .. }) => request(id.get()),
                Ok(Message::Response { id, .. }) => answer(id.get()),
                _ => Remains::Nothing,
            };
            prop_assert_eq!(Remains::of(line.as_bytes()), expected);
        }
    }
}
