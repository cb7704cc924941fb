//! The JSON-RPC envelope over raw values: only `id`, `method`, `params`, `result` and `error` are looked at.
//!
//! Of `params` and `result` the members are found in the same pass, as slices of the line. Nothing is ever written
//! again, so nothing can be lost: unknown fields, key order, long integers, `1.0` and escapes stay the bytes they were.

use std::borrow::Cow;

use super::json::text;
use super::scan::{Next, Scanner, SyntaxError};
use super::{Json, Object};

/// One message of a peer.
#[derive(Debug)]
pub enum Message<'a> {
    /// A call that wants an answer.
    Request {
        /// The raw id: a string or a number.
        id: Json<'a>,
        /// What is wanted.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<Payload<'a>>,
    },
    /// A message without an answer.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// Its parameters.
        params: Option<Payload<'a>>,
    },
    /// The answer to a request of ours.
    Response {
        /// The raw id of that request.
        id: Json<'a>,
        /// What came back.
        outcome: ResponseOutcome<'a>,
    },
}

/// What a message carries: its text, and its members where it is an object.
#[derive(Debug)]
pub struct Payload<'a> {
    raw: Json<'a>,
    members: Option<Object<'a>>,
}

impl<'a> Payload<'a> {
    /// Looks at a text that is one JSON value; `None` if it is not.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let payload = Self::scan(&mut scanner).ok()?;
        scanner.end().ok()?;
        Some(payload)
    }

    /// Takes the value that comes next, and its members in the same pass.
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, SyntaxError> {
        let start = scanner.place();
        let members = match scanner.enter()? {
            Next::Object => Some(Object::scan(scanner, start)?),
            Next::Other => {
                scanner.value()?;
                None
            }
        };
        Ok(Self {
            raw: scanner.since(start),
            members,
        })
    }

    /// Returns its text.
    #[must_use]
    pub fn get(&self) -> &'a str {
        self.raw.get()
    }

    /// Returns its text as one value.
    #[must_use]
    pub fn raw(&self) -> Json<'a> {
        self.raw
    }

    /// Returns its members; `None` where it is not an object.
    #[must_use]
    pub fn object(&self) -> Option<&Object<'a>> {
        self.members.as_ref()
    }
}

/// How a request ended.
#[derive(Debug)]
pub enum ResponseOutcome<'a> {
    /// With a result.
    Result(Payload<'a>),
    /// With an error object.
    Error(Json<'a>),
}

/// Says why a line is no message.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// The line is not JSON.
    #[error("the line is not valid JSON: {0}")]
    Syntax(String),
    /// The line is JSON, but not a JSON-RPC message.
    #[error("the line is not a JSON-RPC message: {reason}")]
    Shape {
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl<'a> Message<'a> {
    /// Reads one line: the envelope and the members of its payload, in one pass.
    pub fn parse(line: &'a [u8]) -> Result<Self, EnvelopeError> {
        let text = simdutf8::compat::from_utf8(line).map_err(|error| {
            EnvelopeError::Syntax(format!("not UTF-8 at column {}", error.valid_up_to() + 1))
        })?;
        let mut fields = Fields::default();
        match fields.read(text) {
            Ok(()) => fields.message(),
            Err(EnvelopeFault::Syntax(error)) => Err(EnvelopeError::Syntax(error.to_string())),
            Err(EnvelopeFault::Shape) => Err(EnvelopeError::Shape {
                reason: "it is not an object, or a member stands twice",
            }),
        }
    }
}

/// The members of an envelope that mean something.
#[derive(Default)]
struct Fields<'a> {
    id: Option<Json<'a>>,
    method: Option<Json<'a>>,
    params: Option<Payload<'a>>,
    result: Option<Payload<'a>>,
    error: Option<Json<'a>>,
}

/// Why an envelope was not read to its end.
enum EnvelopeFault {
    Syntax(SyntaxError),
    Shape,
}

impl From<SyntaxError> for EnvelopeFault {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl<'a> Fields<'a> {
    fn read(&mut self, text: &'a str) -> Result<(), EnvelopeFault> {
        let mut scanner = Scanner::new(text);
        if scanner.enter()? == Next::Other {
            scanner.value()?;
            scanner.end()?;
            return Err(EnvelopeFault::Shape);
        }
        while let Some(key) = scanner.key()? {
            match key.name().as_deref() {
                Some("id") => once(&mut self.id, scanner.value()?)?,
                Some("method") => once(&mut self.method, scanner.value()?)?,
                Some("params") => once(&mut self.params, Payload::scan(&mut scanner)?)?,
                Some("result") => once(&mut self.result, Payload::scan(&mut scanner)?)?,
                Some("error") => once(&mut self.error, scanner.value()?)?,
                _ => {
                    scanner.value()?;
                }
            }
        }
        Ok(scanner.end()?)
    }

    fn message(self) -> Result<Message<'a>, EnvelopeError> {
        let shape = |reason| EnvelopeError::Shape { reason };
        let method = match self.method {
            None => None,
            Some(raw) => Some(text(raw).ok_or_else(|| shape("`method` is not a string"))?),
        };
        // `"error": null` beside a result is what some servers write for "no error".
        let error = self.error.filter(|error| error.get() != "null");
        // And `"result": null` beside an error, as JSON-RPC 1.0 had it.
        let result = self
            .result
            .filter(|result| error.is_none() || result.get() != "null");
        match (self.id, method) {
            (Some(id), _) if !is_id(id) => Err(shape("`id` is neither a string nor a number")),
            (Some(id), Some(method)) => Ok(Message::Request {
                id,
                method,
                params: self.params,
            }),
            (None, Some(method)) => Ok(Message::Notification {
                method,
                params: self.params,
            }),
            (Some(id), None) => match (result, error) {
                (Some(_), Some(_)) => Err(shape("it has both `result` and `error`")),
                (Some(result), None) => Ok(Message::Response {
                    id,
                    outcome: ResponseOutcome::Result(result),
                }),
                (None, Some(error)) => Ok(Message::Response {
                    id,
                    outcome: ResponseOutcome::Error(error),
                }),
                (None, None) => Err(shape("it has neither `method` nor `result` nor `error`")),
            },
            (None, None) => Err(shape("it has neither `id` nor `method`")),
        }
    }
}

/// Fills a slot that is empty. Two ids in one message: each reader would believe another one.
fn once<T>(slot: &mut Option<T>, found: T) -> Result<(), EnvelopeFault> {
    if slot.is_some() {
        return Err(EnvelopeFault::Shape);
    }
    *slot = Some(found);
    Ok(())
}

/// Tells whether a value can be the id of a message.
pub(super) fn is_id(raw: Json<'_>) -> bool {
    raw.get()
        .starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Splice;
    use crate::protocol::object::place_of;

    fn describe(line: &str) -> String {
        match Message::parse(line.as_bytes()) {
            Ok(Message::Request { id, method, params }) => {
                format!(
                    "request {id} {method} {}",
                    params.map_or("-", |params| params.get())
                )
            }
            Ok(Message::Notification { method, params }) => {
                format!(
                    "notification {method} {}",
                    params.map_or("-", |params| params.get())
                )
            }
            Ok(Message::Response {
                id,
                outcome: ResponseOutcome::Result(raw),
            }) => format!("result {id} {}", raw.get()),
            Ok(Message::Response {
                id,
                outcome: ResponseOutcome::Error(raw),
            }) => format!("error {id} {raw}"),
            Err(EnvelopeError::Syntax(_)) => "syntax".to_owned(),
            Err(EnvelopeError::Shape { reason }) => format!("shape {reason}"),
        }
    }

    #[test]
    fn the_payload_stays_the_bytes_it_was() {
        let params = r#"{ "b":1.0, "a":12345678901234567890123, "c":"\u00e9\/", "n":null,"z":-0 }"#;
        assert_eq!(
            describe(&format!(
                r#"{{"jsonrpc":"2.0","x":[1],"params":{params},"method":"tools\/call","id":"a"}}"#
            )),
            format!(r#"request "a" tools/call {params}"#)
        );
    }

    #[test]
    fn each_kind_of_message_is_told_apart() {
        assert_eq!(describe(r#"{"method":"a"}"#), "notification a -");
        assert_eq!(describe(r#"{"id":1,"result":null}"#), "result 1 null");
        assert_eq!(describe(r#"{"id":1,"result":{},"error":null}"#), "result 1 {}");
        assert_eq!(describe(r#"{"id":1,"result":null,"error":{}}"#), "error 1 {}");
        assert_eq!(
            describe(r#"{"id":1.0,"error":{"code":1}}"#),
            r#"error 1.0 {"code":1}"#
        );
    }

    #[test]
    fn what_is_no_message_says_why() {
        assert_eq!(describe("nonsense"), "syntax");
        assert_eq!(describe("{\"id\":1"), "syntax");
        assert_eq!(describe("{} {}"), "syntax");
        assert_eq!(
            describe("[]"),
            "shape it is not an object, or a member stands twice"
        );
        assert_eq!(
            describe(r#"{"id":1,"id":2,"method":"a"}"#),
            "shape it is not an object, or a member stands twice"
        );
        assert_eq!(
            describe(r#"{"id":null,"method":"a"}"#),
            "shape `id` is neither a string nor a number"
        );
        assert_eq!(
            describe(r#"{"id":1,"method":2}"#),
            "shape `method` is not a string"
        );
        assert_eq!(
            describe(r#"{"id":1,"result":1,"error":2}"#),
            "shape it has both `result` and `error`"
        );
        assert_eq!(
            describe(r#"{"id":1}"#),
            "shape it has neither `method` nor `result` nor `error`"
        );
        assert_eq!(describe("{}"), "shape it has neither `id` nor `method`");
    }

    /// What typed proxies lose: each of these must pass as the bytes it is.
    const HARD: [&str; 12] = [
        "12345678901234567890123",
        "-98765432109876543210987",
        "1.0",
        "-0",
        "-0.0e+00",
        "1E400",
        "null",
        r#""\u00e9\/\ud83d\ude00\ud800 \u0000""#,
        r#"{"z":null,"a":{"z":1.0,"a":[-0,null,{}]},"z":2}"#,
        r#"[ 1 ,2,	{ "type" : "x-unknown","_meta":{"a/b":null} } ]"#,
        r#"{"tools":[],"messages":[],"contents":[],"action":"accept"}"#,
        r#"{"icons":[{"src":"data:"}],"annotations":{"x-y":[]},"execution":{"taskSupport":"optional"}}"#,
    ];

    #[test]
    fn only_what_is_spliced_changes_whatever_stands_around_it() {
        for hard in HARD {
            let line = format!(
                r#" {{"x-first":{hard},"params" : {{"x":{hard}, "name":"a__b" ,"_meta":{{"k":{hard},"progressToken":7,"l":{hard}}},"arguments":{hard},"y":{hard}}},"id":3,"method":"tools/call", "x-last":{hard}}} "#
            );
            let Ok(Message::Request {
                id,
                params: Some(params),
                ..
            }) = Message::parse(line.as_bytes())
            else {
                panic!("not a request: {line}");
            };
            let object = params.object().unwrap();
            let meta = Object::parse(object.value("_meta").unwrap().get()).unwrap();
            let mut splice = Splice::new(line.clone().into());
            for (value, text) in [
                (meta.value("progressToken").unwrap(), "81"),
                (object.value("name").unwrap(), r#""b""#),
                (id, "12"),
            ] {
                splice.replace(place_of(value.get(), &line), text);
            }
            let expected = line
                .replace(r#""progressToken":7"#, r#""progressToken":81"#)
                .replace(r#""a__b""#, r#""b""#)
                .replace(r#""id":3"#, r#""id":12"#);
            assert_eq!(splice.into_text(), expected);
            assert_eq!(object.value("arguments").unwrap().get(), hard);
            assert_eq!(object.value("y").unwrap().get(), hard);
        }
    }

    #[test]
    fn a_payload_is_what_it_is_by_itself() {
        for hard in HARD {
            for (line, kind) in [
                (
                    format!(r#"{{"jsonrpc":"2.0","id":1,"result": {hard} }}"#),
                    "result 1",
                ),
                (
                    format!(r#"{{"jsonrpc":"2.0","method":"m","params":{hard}}}"#),
                    "notification m",
                ),
            ] {
                assert_eq!(describe(&line), format!("{kind} {hard}"));
                let members = |object: &Object<'_>| format!("{:?}", object.members().collect::<Vec<_>>());
                let payload = match Message::parse(line.as_bytes()) {
                    Ok(Message::Notification { params, .. }) => params.unwrap(),
                    Ok(Message::Response {
                        outcome: ResponseOutcome::Result(result),
                        ..
                    }) => result,
                    other => panic!("no payload: {other:?}"),
                };
                assert_eq!(
                    payload.object().map(members),
                    Object::parse(hard).as_ref().map(members)
                );
            }
        }
    }

    #[test]
    fn a_name_that_is_no_text_hides_neither_the_payload_nor_its_members() {
        let params = r#"{"\ud800":1,"name":"a"}"#;
        let line = format!(r#"{{"method":"m","params":{params},"\ud800":[]}}"#);
        assert_eq!(describe(&line), format!("notification m {params}"));
        let payload = Payload::parse(params).unwrap();
        assert_eq!(payload.object().unwrap().text("name").unwrap(), "a");
    }

    #[test]
    fn what_is_not_utf_8_is_not_json() {
        let error = Message::parse(b"{\"x\":\"\xff\"}").unwrap_err().to_string();
        assert_eq!(error, "the line is not valid JSON: not UTF-8 at column 7");
    }

    #[test]
    fn a_depth_bomb_is_a_syntax_error() {
        let bomb = format!(r#"{{"id":1,"method":"a","params":{}"#, "[".repeat(1_000_000));
        assert_eq!(describe(&bomb), "syntax");
    }
}
