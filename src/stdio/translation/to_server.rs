//! A request as its dependency may see it: its own name for the thing, our token, the era it speaks.
//!
//! Pure. Everything that is not named here stays the bytes the client sent, and large parts are shared with them.

use bytes::Bytes;

use super::request::{Continuing, Method};
use crate::protocol::continuation::MEMBER;
use crate::protocol::{Object, Splice};
use crate::proxy::Arguments;
use crate::stdio::era::{self, Era};

/// The member of a Modern retry that says which question it answers.
pub(crate) const STATE: &str = "requestState";
/// The member of a Modern retry that carries what was asked for.
pub(crate) const RESPONSES: &str = "inputResponses";

/// What a Modern request brings back to its dependency.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    /// The raw `inputResponses`; `None` leaves what the client sent.
    pub(crate) responses: Option<String>,
    /// The raw `requestState` of the dependency, if it gave one.
    pub(crate) state: Option<String>,
}

/// How a request is addressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestAddress<'a> {
    pub(crate) method: &'a Method,
    /// The era of the client.
    pub(crate) from: Era,
    /// The era of the dependency.
    pub(crate) to: Era,
    /// What the dependency calls the thing that is wanted, as JSON.
    pub(crate) own: &'a Bytes,
    /// The id of the request on the dependency's side.
    pub(crate) id: u64,
    pub(crate) continuing: Continuing,
    /// The arguments that were suspended, in place of those it came with.
    pub(crate) suspended: Option<&'a Arguments>,
    /// The members of `_meta` that a Modern dependency wants from a Legacy client.
    pub(crate) envelope: &'a str,
    /// What a Modern dependency asked for.
    pub(crate) input: Option<&'a Input>,
    /// The members of the request's `_meta`.
    pub(crate) meta: Option<&'a Object<'a>>,
}

/// Reads the `_meta` of a request.
pub(crate) fn meta_of<'a>(params: &Object<'a>) -> Option<Object<'a>> {
    Object::parse(params.value("_meta")?.get())
}

/// Writes the parameters of a request for its dependency.
pub(crate) fn params(source: &Bytes, object: &Object<'_>, address: &RequestAddress<'_>) -> Vec<Bytes> {
    let mut splice = Splice::new(source.clone());
    let mut cut: Vec<&str> = Vec::new();
    // Written before all members that stay.
    let mut front: Vec<String> = Vec::new();
    rename(&mut splice, object, address);
    match address.suspended {
        None => {
            if let Some((place, arguments)) = without_null_continuation(object, address.continuing) {
                splice.replace(place, arguments);
            }
        }
        Some(Arguments::Json(arguments)) => match object.place("arguments") {
            Some(place) => splice.replace(place, arguments.clone()),
            None => front.push(format!(r#""arguments":{arguments}"#)),
        },
        Some(Arguments::Absent | Arguments::Erased) => cut.push("arguments"),
    }
    match (object.place("_meta"), address.meta) {
        (Some(place), Some(meta)) => {
            if let Some(at) = meta.place("progressToken") {
                splice.replace(
                    place.start + at.start..place.start + at.end,
                    address.id.to_string(),
                );
            }
            match (address.from, address.to) {
                (Era::Modern, Era::Legacy) => {
                    for range in meta.cuts_of(&era::envelope_members(meta)) {
                        splice.replace(place.start + range.start..place.start + range.end, "");
                    }
                }
                (Era::Legacy, Era::Modern) => {
                    let comma = if meta.is_empty() { "" } else { "," };
                    let at = place.start + meta.front();
                    splice.replace(at..at, format!("{}{comma}", address.envelope));
                }
                (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => {}
            }
        }
        (_, _) if (address.from, address.to) == (Era::Legacy, Era::Modern) => {
            cut.push("_meta");
            front.push(format!(r#""_meta":{{{}}}"#, address.envelope));
        }
        _ => {}
    }
    // What answers a question goes only to the server that asked it.
    if object.value(STATE).is_some() || address.input.is_some() {
        cut.push(STATE);
        front.extend(
            address
                .input
                .and_then(|input| input.state.as_ref())
                .map(|state| format!(r#""{STATE}":{state}"#)),
        );
    }
    match address.input {
        None => {
            // Every question that passes pml carries a state. What comes without one answers none of them, and is
            // between a Modern client and its server.
            let unasked = object.value(STATE).is_none() && address.suspended.is_none();
            let modern = (address.from, address.to) == (Era::Modern, Era::Modern);
            if object.value(RESPONSES).is_some() && !(unasked && modern) {
                cut.push(RESPONSES);
            }
        }
        Some(Input {
            responses: Some(responses),
            ..
        }) => {
            cut.push(RESPONSES);
            front.push(format!(r#""{RESPONSES}":{responses}"#));
        }
        Some(Input { responses: None, .. }) => {}
    }
    if cut.iter().any(|name| object.value(name).is_some()) {
        for range in object.cuts(&cut) {
            splice.replace(range, "");
        }
    }
    if !front.is_empty() {
        let comma = if object.has_others(&cut) { "," } else { "" };
        splice.replace(
            object.front()..object.front(),
            format!("{}{comma}", front.join(",")),
        );
    }
    splice.into_parts()
}

fn rename(splice: &mut Splice, object: &Object<'_>, address: &RequestAddress<'_>) {
    let place = match address.method.naming(object) {
        [] => None,
        [member] => object.place(member),
        [outer, inner, ..] => object.place(outer).and_then(|outer| {
            let inner = Object::parse(&object.source()[outer.clone()])?.place(inner)?;
            Some(outer.start + inner.start..outer.start + inner.end)
        }),
    };
    if let Some(place) = place {
        splice.replace(place, address.own.clone());
    }
}

/// A continuation that is `null` is none: clients that fill in every property of a schema send it.
fn without_null_continuation(
    object: &Object<'_>,
    continuing: Continuing,
) -> Option<(std::ops::Range<usize>, String)> {
    let raw = object
        .value("arguments")
        .filter(|_raw| continuing == Continuing::Perhaps)?;
    let arguments = Object::parse(raw.get())?;
    let null = arguments.value(MEMBER).is_some_and(|raw| raw.get() == "null");
    null.then(|| Some((object.place("arguments")?, arguments.without(&[MEMBER]))))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::{assert_linear_from, assert_linear_on_hostile, envelope};

    static OWN: Bytes = Bytes::from_static(br#""read""#);

    fn address<'a>(from: Era, to: Era) -> RequestAddress<'a> {
        RequestAddress {
            method: &Method::Call,
            from,
            to,
            own: &OWN,
            continuing: Continuing::No,
            id: 7,
            suspended: None,
            envelope: r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
            input: None,
            meta: None,
        }
    }

    fn sent(text: &str, address: &RequestAddress<'_>) -> String {
        let object = Object::parse(text).unwrap();
        let meta = meta_of(&object);
        let address = RequestAddress {
            continuing: Continuing::of(Some(&object)),
            meta: meta.as_ref(),
            ..*address
        };
        let parts = params(&Bytes::copy_from_slice(text.as_bytes()), &object, &address);
        String::from_utf8(parts.concat()).unwrap()
    }

    const CALL: &str = r#"{ "_meta":{"x":1, "progressToken":"t" }, "name":"fs__read", "arguments":{ "n":1.0 },"future":[1]}"#;

    #[test]
    fn passing_parameters_on_is_linear() {
        assert_linear_on_hostile("parameters", |text| {
            let inside = format!(r#"{{"name":"fs__read","arguments":{text},"_meta":{text},"x":{text}}}"#);
            for params in [text, inside.as_str()] {
                for (from, to) in [
                    (Era::Legacy, Era::Legacy),
                    (Era::Legacy, Era::Modern),
                    (Era::Modern, Era::Legacy),
                ] {
                    if Object::parse(params).is_some() {
                        sent(params, &address(from, to));
                    }
                }
            }
        });
    }

    #[test]
    fn taking_a_large_envelope_out_of_parameters_is_linear() {
        let params = |size: usize| format!(r#"{{"_meta":{}}}"#, envelope(size));
        assert_linear_from(1 << 18, "envelope", params, |params| {
            let legacy = sent(params, &address(Era::Modern, Era::Legacy));
            assert_eq!(legacy, r#"{"_meta":{"a":0}}"#);
        });
    }

    #[test]
    fn only_the_name_and_the_token_change() {
        assert_eq!(
            sent(CALL, &address(Era::Legacy, Era::Legacy)),
            r#"{ "_meta":{"x":1, "progressToken":7 }, "name":"read", "arguments":{ "n":1.0 },"future":[1]}"#
        );
    }

    #[test]
    fn a_resumed_call_carries_the_suspended_arguments_and_no_others() {
        let carrier = r#"{"name":"pml_continue","arguments":{"workflow_id":"x","approved":true},"_meta":{"progressToken":1}}"#;
        let suspended = Arguments::Json(r#"{ "path":"a", "n":12345678901234567890123 }"#.to_owned());
        let with = |suspended| RequestAddress {
            suspended: Some(suspended),
            ..address(Era::Legacy, Era::Legacy)
        };
        assert_eq!(
            sent(carrier, &with(&suspended)),
            r#"{"name":"read","arguments":{ "path":"a", "n":12345678901234567890123 },"_meta":{"progressToken":7}}"#
        );
        assert_eq!(
            sent(carrier, &with(&Arguments::Absent)),
            r#"{"name":"read","_meta":{"progressToken":7}}"#
        );
        assert_eq!(
            sent(r#"{"name":"pml_continue"}"#, &with(&suspended)),
            r#"{"arguments":{ "path":"a", "n":12345678901234567890123 },"name":"read"}"#
        );
    }

    #[test]
    fn the_envelope_is_taken_away_or_added_as_the_dependency_requires() {
        let modern = r#"{"name":"fs__read","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","a":1.0,"io.modelcontextprotocol/clientCapabilities":{}},"requestState":"s","inputResponses":{}}"#;
        assert_eq!(
            sent(modern, &address(Era::Modern, Era::Legacy)),
            r#"{"name":"read","_meta":{"a":1.0}}"#
        );
        assert_eq!(
            sent(r#"{"name":"fs__read"}"#, &address(Era::Legacy, Era::Modern)),
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"read"}"#
        );
        assert_eq!(
            sent(CALL, &address(Era::Legacy, Era::Modern)),
            r#"{ "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":1, "progressToken":7 }, "name":"read", "arguments":{ "n":1.0 },"future":[1]}"#
        );
        assert_eq!(
            sent(r#"{"_meta":null,"name":"a"}"#, &address(Era::Legacy, Era::Modern)),
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"read"}"#
        );
    }

    #[test]
    fn what_was_asked_for_goes_back_with_the_state_of_whoever_asked() {
        let retry = r#"{"requestState":"ours","name":"fs__read","inputResponses":{"a": 1.0}}"#;
        let with = |input| RequestAddress {
            input: Some(input),
            ..address(Era::Modern, Era::Modern)
        };
        let theirs = Input {
            responses: None,
            state: Some(r#""theirs""#.to_owned()),
        };
        assert_eq!(
            sent(retry, &with(&theirs)),
            r#"{"requestState":"theirs","name":"read","inputResponses":{"a": 1.0}}"#
        );
        let collected = Input {
            responses: Some(r#"{"b":2}"#.to_owned()),
            state: None,
        };
        assert_eq!(
            sent(retry, &with(&collected)),
            r#"{"inputResponses":{"b":2},"name":"read"}"#
        );
    }

    #[test]
    fn responses_without_a_state_pass_between_modern_peers_only() {
        let ahead = r#"{"name":"fs__read","inputResponses":{"a": 1.0}}"#;
        assert_eq!(
            sent(ahead, &address(Era::Modern, Era::Modern)),
            r#"{"name":"read","inputResponses":{"a": 1.0}}"#
        );
        assert_eq!(
            sent(ahead, &address(Era::Modern, Era::Legacy)),
            r#"{"name":"read"}"#
        );
        let ours = r#"{"name":"fs__read","requestState":"ours","inputResponses":{"a": 1.0}}"#;
        assert_eq!(
            sent(ours, &address(Era::Modern, Era::Modern)),
            r#"{"name":"read"}"#
        );
    }

    #[test]
    fn a_null_continuation_is_none() {
        assert_eq!(
            sent(
                r#"{"name":"x","arguments":{"a":1,"continue_workflow":null}}"#,
                &address(Era::Legacy, Era::Legacy)
            ),
            r#"{"name":"read","arguments":{"a":1}}"#
        );
    }

    #[test]
    fn a_reference_is_renamed_where_it_names() {
        let complete = |text| {
            sent(
                text,
                &RequestAddress {
                    method: &Method::Complete,
                    ..address(Era::Legacy, Era::Legacy)
                },
            )
        };
        assert_eq!(
            complete(r#"{"ref":{"type":"ref/prompt","name":"fs__x"},"argument":{"name":"y"}}"#),
            r#"{"ref":{"type":"ref/prompt","name":"read"},"argument":{"name":"y"}}"#
        );
        assert_eq!(
            complete(r#"{"ref":{"type":"ref/resource","uri":"pml://fs/a"}}"#),
            r#"{"ref":{"type":"ref/resource","uri":"read"}}"#
        );
    }
}
