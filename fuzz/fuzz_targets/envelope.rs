//! The envelope is read as `serde_json` would read it, every span is where it stands, and a splice changes its ranges only.

#![no_main]

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use pml_fuzz::protocol::{EnvelopeError, Json, Message, Object, ResponseOutcome, Payload, Remains, Splice};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

fuzz_target!(|line: &[u8]| {
    let _ = Remains::of(line);
    let Ok(text) = std::str::from_utf8(line) else {
        assert!(matches!(Message::parse(line), Err(EnvelopeError::Syntax(_))));
        return;
    };
    let expected = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    let expected = expected.filter(|text| depth(text) < 128);
    assert_eq!(Json::parse(text).map(|json| span(json.get())), expected.map(span));
    match expected {
        Some(value) => {
            assert_eq!(describe(line), describe_as_expected(value));
            look_into(text);
        }
        // A member that stands twice is told before what is wrong behind it.
        None => assert!(matches!(describe(line).as_str(), "syntax" | "shape")),
    }
});

fn span(part: &str) -> (*const u8, usize) {
    (part.as_ptr(), part.len())
}

/// Counts how deep a valid text is nested.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => drop(bytes.next()),
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Compares the members of an object and the splices of them.
fn look_into(text: &str) {
    let object = Object::parse(text);
    let expected = members(text).map(|members| {
        let members = members.into_iter();
        members
            .map(|(name, value)| (name, span(value)))
            .collect::<Vec<_>>()
    });
    let found = object.as_ref().map(|object| {
        let members = object.members();
        members
            .map(|(name, value)| (name.map(Cow::Borrowed), span(value.get())))
            .collect::<Vec<_>>()
    });
    assert_eq!(found, expected);
    let Some(object) = object else { return };

    let mut again = String::new();
    let mut changed = String::new();
    let mut splice = Splice::new(Bytes::copy_from_slice(text.as_bytes()));
    let mut from = 0;
    for (number, (_, value)) in object.members().enumerate() {
        let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
        let end = start + value.get().len();
        again.push_str(&text[from..start]);
        again.push_str(value.get());
        changed.push_str(&text[from..start]);
        if number % 2 == 0 {
            splice.replace(start..end, "\"new\"");
            changed.push_str("\"new\"");
        } else {
            changed.push_str(value.get());
        }
        from = end;
    }
    again.push_str(&text[from..]);
    changed.push_str(&text[from..]);
    assert_eq!(again, text);
    assert_eq!(splice.into_text(), changed);
    assert_eq!(object.without(&[]), text);
}

fn describe(line: &[u8]) -> String {
    let params = |params: Option<Payload<'_>>| params.map_or_else(String::new, |params| payload(&params));
    match Message::parse(line) {
        Ok(Message::Request {
            id,
            method,
            params: found,
        }) => format!("{id} {method} {}", params(found)),
        Ok(Message::Notification {
            method,
            params: found,
        }) => format!("{method} {}", params(found)),
        Ok(Message::Response {
            id,
            outcome: ResponseOutcome::Result(result),
        }) => format!("{id} = {}", payload(&result)),
        Ok(Message::Response {
            id,
            outcome: ResponseOutcome::Error(error),
        }) => format!("{id} ! {error}"),
        Err(EnvelopeError::Syntax(_)) => "syntax".to_owned(),
        Err(EnvelopeError::Shape { .. }) => "shape".to_owned(),
    }
}

/// Writes a payload, after comparing its members with those of a reading of their own.
fn payload(payload: &Payload<'_>) -> String {
    let members = |object: &Object<'_>| {
        let members = object.members();
        members
            .map(|(name, value)| (name.map(str::to_owned), span(value.get())))
            .collect::<Vec<_>>()
    };
    let alone = Object::parse(payload.get());
    assert_eq!(payload.object().map(members), alone.as_ref().map(members));
    payload.get().to_owned()
}

/// Says what a line that is valid JSON must be taken for.
fn describe_as_expected(text: &str) -> String {
    let shape = || "shape".to_owned();
    let Some(members) = members(text) else {
        return shape();
    };
    let mut slots: [Option<&str>; 5] = [None; 5];
    for (name, value) in members {
        let names = ["id", "method", "params", "result", "error"];
        if let Some(slot) = names.iter().position(|known| name.as_deref() == Some(known)) {
            if slots[slot].is_some() {
                return shape();
            }
            slots[slot] = Some(value);
        }
    }
    let [id, method, params, result, error] = slots;
    let method: Option<String> = match method.map(serde_json::from_str) {
        None => None,
        Some(Ok(method)) => Some(method),
        Some(Err(_)) => return shape(),
    };
    if id.is_some_and(|id| !id.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])) {
        return shape();
    }
    let params = params.unwrap_or_default();
    match (id, method, result, error.filter(|error| *error != "null")) {
        (Some(id), Some(method), _, _) => format!("{id} {method} {params}"),
        (None, Some(method), _, _) => format!("{method} {params}"),
        (Some(id), None, Some(result), None) => format!("{id} = {result}"),
        (Some(id), None, None, Some(error)) => format!("{id} ! {error}"),
        _ => shape(),
    }
}

type Members<'a> = Vec<(Option<Cow<'a, str>>, &'a str)>;

/// Reads the members of an object by `serde_json`; a name that is no text is `None`.
fn members(text: &str) -> Option<Members<'_>> {
    struct Reader;
    impl<'de> Visitor<'de> for Reader {
        type Value = Members<'de>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                members.push((serde_json::from_str(name.get()).ok().map(Cow::Owned), value.get()));
            }
            Ok(members)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Reader).ok()
}
