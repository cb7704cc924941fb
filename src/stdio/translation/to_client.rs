//! A result of a dependency as the client's era requires it, with the notes of pml.
//!
//! Pure. A result that needs nothing passes as the bytes it was; otherwise only what is named here changes.

use std::fmt::Write as _;
use std::ops::Range;

use bytes::Bytes;
use serde_json::json;

use super::impersonation::Disguise;
use super::request::Method;
use super::server_label::REQUESTS;
use super::to_server::STATE;
use crate::protocol::{DependencyName, Json, Object, Payload, Splice, Twin};
use crate::stdio::era::{self, Era};

/// What a Modern result says of itself.
const KIND: &str = "resultType";

/// What only a Modern client reads of a result.
const MODERN_MEMBERS: [&str; 3] = [KIND, "ttlMs", "cacheScope"];

/// Tells whether a Modern dependency wants to know something before it answers.
pub(crate) fn requires_input(result: &Payload<'_>) -> bool {
    result
        .object()
        .and_then(|object| object.text(KIND))
        .is_some_and(|kind| kind == "input_required")
}

/// Tells whether a result names questions.
pub(crate) fn has_questions(result: &Payload<'_>) -> bool {
    let requests = result.object().and_then(|object| object.value(REQUESTS));
    requests.is_some_and(|requests| Object::parse(requests.get()).is_some())
}

/// Fails if a Modern result asks in a way that different readers understand differently.
pub(crate) fn without_twins(result: &Payload<'_>) -> Result<(), Twin> {
    let object = result.object();
    object.map_or(Ok(()), |object| object.without_twins(&[KIND, STATE, REQUESTS]))
}

/// Which way a result goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage<'a> {
    pub(crate) method: &'a Method,
    /// The era of the dependency.
    pub(crate) from: Era,
    /// The era of the client.
    pub(crate) to: Era,
    /// Whose result it is.
    pub(crate) server: &'a DependencyName,
    /// What pml has to say about it.
    pub(crate) notes: &'a [String],
}

/// Passes a result on.
pub(crate) fn result(raw: Bytes, payload: &Payload<'_>, passage: Passage<'_>) -> Vec<Bytes> {
    let Passage {
        method,
        from,
        to,
        server,
        notes,
    } = passage;
    let Some(object) = payload.object() else {
        return vec![raw];
    };
    let Disguise { renamed, note } = Disguise::of_result(object, server);
    let asking = questions(object, from, to);
    if from == to && notes.is_empty() && renamed.is_empty() && note.is_none() && asking.is_empty() {
        return vec![raw];
    }
    let notes: Vec<&String> = notes.iter().chain(&note).collect();
    let mut splice = Splice::new(raw);
    let mut front = String::new();
    let mut cut: Vec<&str> = Vec::new();
    for (place, name) in renamed {
        splice.replace(place, name);
    }
    for range in object.cuts_of(&asking) {
        splice.replace(range, "");
    }
    match (from, to) {
        (Era::Legacy, Era::Modern) => {
            if object.value(KIND).is_none_or(|kind| asking.contains(&kind)) {
                add(&mut front, r#""resultType":"complete""#);
            }
            // Nobody knows how long a Legacy dependency's answer holds.
            if *method == Method::Read {
                for (name, member) in [
                    ("ttlMs", r#""ttlMs":0"#),
                    ("cacheScope", r#""cacheScope":"private""#),
                ] {
                    if object.value(name).is_none() {
                        add(&mut front, member);
                    }
                }
            }
        }
        (Era::Modern, Era::Legacy) => {
            cut.extend(MODERN_MEMBERS);
            match Envelope::of(object) {
                Envelope::All => cut.push("_meta"),
                Envelope::Part(ranges) => take_out(&mut splice, ranges),
            }
        }
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => {}
    }
    if !notes.is_empty() && *method == Method::Call {
        let blocks: Vec<String> = notes
            .iter()
            .map(|note| json!({ "type": "text", "text": note }).to_string())
            .collect();
        let blocks = blocks.join(",");
        let content = object.place("content");
        if let Some(place) = content.filter(|place| object.source()[place.clone()].starts_with('[')) {
            let empty = object.source()[place.start + 1..place.end - 1].trim().is_empty();
            let comma = if empty { "" } else { "," };
            splice.replace(place.end - 1..place.end - 1, format!("{comma}{blocks}"));
        } else {
            add(&mut front, &format!("\"content\":[{blocks}]"));
        }
    }
    if cut.iter().any(|name| object.value(name).is_some()) {
        for range in object.cuts(&cut) {
            splice.replace(range, "");
        }
    }
    if !front.is_empty() {
        if object.has_others(&cut) && object.members().count() > asking.len() {
            front.push(',');
        }
        splice.replace(object.front()..object.front(), front);
    }
    splice.into_parts()
}

/// Returns the members by which a result asks a Modern client, where it may not.
///
/// What a Modern server may ask is passed on elsewhere, its state wrapped. Everything else could bring a state of
/// pml's own, with which the client's next request would answer a question that the person was never shown.
fn questions<'a>(result: &Object<'a>, from: Era, to: Era) -> Vec<Json<'a>> {
    if to == Era::Legacy {
        return Vec::new();
    }
    let asking = result.reading_as(&[KIND, STATE, REQUESTS]);
    let complete = |(name, raw): &(&str, Json<'_>)| *name == KIND && raw.get() == r#""complete""#;
    let kinds = asking.iter().filter(|(name, _)| *name == KIND).count();
    let kept = |found: &(&str, Json<'a>)| {
        found.0 == KIND
            && (from == Era::Modern || (kinds == 1 && complete(found) && result.value(KIND).is_some()))
    };
    asking
        .iter()
        .filter(|found| !kept(found))
        .map(|(_, raw)| *raw)
        .collect()
}

fn add(front: &mut String, member: &str) {
    let comma = if front.is_empty() { "" } else { "," };
    let _ = write!(front, "{comma}{member}");
}

/// Returns the parameters of a server's notification as the era of the client has them.
pub(crate) fn notification(line: &Bytes, params: &Payload<'_>, from: Era, to: Era) -> Splice {
    let mut splice = Splice::new(line.slice_ref(params.get().as_bytes()));
    if let (Era::Modern, Era::Legacy, Some(object)) = (from, to, params.object()) {
        without_envelope(&mut splice, object);
    }
    splice
}

/// Takes what only Modern clients read out of the `_meta` of parameters.
fn without_envelope(splice: &mut Splice, object: &Object<'_>) {
    let ranges = match Envelope::of(object) {
        Envelope::All => object.cuts(&["_meta"]),
        Envelope::Part(ranges) => ranges,
    };
    take_out(splice, ranges);
}

fn take_out(splice: &mut Splice, ranges: Vec<Range<usize>>) {
    for range in ranges {
        splice.replace(range, "");
    }
}

/// How much of a `_meta` only Modern clients read.
enum Envelope {
    /// All of it: nobody would have sent an empty one.
    All,
    /// These places in the object that has it.
    Part(Vec<Range<usize>>),
}

impl Envelope {
    fn of(object: &Object<'_>) -> Self {
        let meta = object.value("_meta").and_then(|raw| Object::parse(raw.get()));
        let Some((place, meta)) = object.place("_meta").zip(meta) else {
            return Self::Part(Vec::new());
        };
        let envelope = era::envelope_members(&meta);
        if envelope.is_empty() {
            Self::Part(Vec::new())
        } else if meta.members().count() > envelope.len() {
            let cuts = meta.cuts_of(&envelope).into_iter();
            Self::Part(
                cuts.map(|range| place.start + range.start..place.start + range.end)
                    .collect(),
            )
        } else {
            Self::All
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::{assert_linear_from, assert_linear_on_hostile, envelope};

    fn passed(raw: &str, notes: &[&str], from: Era, to: Era) -> String {
        of(&Method::Call, raw, notes, from, to)
    }

    fn of(method: &Method, raw: &str, notes: &[&str], from: Era, to: Era) -> String {
        let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
        let passage = Passage {
            method,
            from,
            to,
            server: &"fake".parse().unwrap(),
            notes: &notes,
        };
        let payload = Payload::parse(raw).unwrap();
        let parts = result(Bytes::copy_from_slice(raw.as_bytes()), &payload, passage);
        String::from_utf8(parts.concat()).unwrap()
    }

    #[test]
    fn passing_a_result_on_is_linear() {
        assert_linear_on_hostile("result", |text| {
            let inside = format!(r#"{{"content":[],"_meta":{text},"structuredContent":{text}}}"#);
            for raw in [text, inside.as_str()] {
                for (from, to) in [
                    (Era::Legacy, Era::Legacy),
                    (Era::Legacy, Era::Modern),
                    (Era::Modern, Era::Legacy),
                    (Era::Modern, Era::Modern),
                ] {
                    if Payload::parse(raw).is_some() {
                        passed(raw, &["note"], from, to);
                    }
                }
            }
        });
    }

    #[test]
    fn taking_a_large_envelope_out_of_a_result_is_linear() {
        let result = |size: usize| format!(r#"{{"_meta":{}}}"#, envelope(size));
        assert_linear_from(1 << 18, "envelope", result, |raw| {
            assert_eq!(passed(raw, &[], Era::Modern, Era::Legacy), r#"{"_meta":{"a":0}}"#);
        });
    }

    #[test]
    fn a_client_of_the_same_era_gets_the_very_bytes() {
        let raw = r#"{ "content":[{"type":"odd","n":12345678901234567890123}], "x":1.0, "tools":null }"#;
        assert_eq!(passed(raw, &[], Era::Legacy, Era::Legacy), raw);
        let modern = r#"{ "resultType":"complete", "x":-0 }"#;
        assert_eq!(passed(modern, &[], Era::Modern, Era::Modern), modern);
        assert_eq!(passed("[1]", &[], Era::Legacy, Era::Modern), "[1]");
    }

    #[test]
    fn a_modern_client_gets_a_result_type_and_nothing_else_changes() {
        for (raw, expected) in [
            (r#"{ "x":1.0 }"#, r#"{"resultType":"complete", "x":1.0 }"#),
            ("{}", r#"{"resultType":"complete"}"#),
            (r#"{"resultType":"complete"}"#, r#"{"resultType":"complete"}"#),
        ] {
            assert_eq!(passed(raw, &[], Era::Legacy, Era::Modern), expected);
        }
        assert_eq!(
            of(&Method::Read, r#"{"contents":[]}"#, &[], Era::Legacy, Era::Modern),
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#
        );
    }

    #[test]
    fn a_legacy_client_sees_nothing_of_the_modern_envelope() {
        assert_eq!(
            passed(
                r#"{"resultType":"complete", "content":[], "_meta":{"io.modelcontextprotocol/serverInfo":{},"x":1.0},"ttlMs":1}"#,
                &[],
                Era::Modern,
                Era::Legacy
            ),
            r#"{"content":[], "_meta":{"x":1.0}}"#
        );
        let only =
            r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"resultType":"complete","x":{"_meta":{}}}"#;
        assert_eq!(
            passed(only, &[], Era::Modern, Era::Legacy),
            r#"{"x":{"_meta":{}}}"#
        );
    }

    #[test]
    fn no_result_asks_a_modern_client_but_a_modern_servers_question() {
        for (raw, expected) in [
            (
                r#"{"resultType":"input_required","inputRequests":{},"requestState":"x","a":1}"#,
                r#"{"resultType":"complete","a":1}"#,
            ),
            (
                r#"{"RESULTTYPE":"input_required","request\u0053tate":"x"}"#,
                r#"{"resultType":"complete"}"#,
            ),
            (
                r#"{"resultType":"complete","resultType":"input_required","a":1}"#,
                r#"{"resultType":"complete","a":1}"#,
            ),
            (
                r#"{"a":1,"requestState":"x","resultType":"complete"}"#,
                r#"{"a":1,"resultType":"complete"}"#,
            ),
        ] {
            assert_eq!(passed(raw, &[], Era::Legacy, Era::Modern), expected);
        }
        assert_eq!(
            passed(
                r#"{"resultType":"complete","a":1.0,"requestState":"x"}"#,
                &[],
                Era::Modern,
                Era::Modern
            ),
            r#"{"resultType":"complete","a":1.0}"#
        );
        let legacy = r#"{"resultType":"input_required","requestState":"x"}"#;
        assert_eq!(passed(legacy, &[], Era::Legacy, Era::Legacy), legacy);
    }

    #[test]
    fn notes_follow_the_content_of_the_dependency() {
        let noted = |raw: &str| passed(raw, &["n"], Era::Legacy, Era::Legacy);
        assert_eq!(
            noted(r#"{"content":[{"type":"text","text":"a"}],"b":1}"#),
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"n"}],"b":1}"#
        );
        assert_eq!(
            noted(r#"{"content":[ ]}"#),
            r#"{"content":[ {"type":"text","text":"n"}]}"#
        );
        assert_eq!(
            passed(r#"{"a":1}"#, &["n"], Era::Legacy, Era::Modern),
            r#"{"resultType":"complete","content":[{"type":"text","text":"n"}],"a":1}"#
        );
    }
}
