//! Refuses a message of the client that another reader would read differently.
//!
//! pml decides by some members and forwards the bytes. A server that reads another of two members, or a member in
//! another case, would do what was never decided about. Checked once, before anything is read of a message.

use std::collections::HashSet;

use crate::protocol::continuation::{MEMBER, MEMBERS};
use crate::protocol::own_tool::{APPROVAL_PROMPT, CONTINUE};
use crate::protocol::{Json, Object, Twin};
use crate::stdio::client::outstanding::FILLED;
use crate::stdio::era::RpcError;
use crate::stdio::translation::request::Continuing;
use crate::stdio::translation::to_server::{RESPONSES, STATE};

/// What pml reads in the wishes of a subscription.
const WISHES: [&str; 4] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
];

impl From<Twin> for RpcError {
    fn from(twin: Twin) -> Self {
        Self::new(Self::INVALID_PARAMS, twin.to_string())
    }
}

/// The bits of what stands first among what is judged, so that what is not there is not looked for.
const META: u32 = 1;
const ANSWERS: u32 = 2;

/// Names what pml reads in the parameters of a method: `_meta` first, then the answers of a retry.
fn judged(method: &str) -> &'static [&'static str] {
    match method {
        "tools/call" | "prompts/get" => &["_meta", RESPONSES, STATE, "name", "arguments"],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            &["_meta", RESPONSES, STATE, "uri"]
        }
        "completion/complete" => &["_meta", RESPONSES, STATE, "ref"],
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            &["_meta", RESPONSES, "cursor"]
        }
        "initialize" => &[
            "_meta",
            RESPONSES,
            "protocolVersion",
            "capabilities",
            "clientInfo",
        ],
        "subscriptions/listen" => &["_meta", RESPONSES, "notifications"],
        "logging/setLevel" => &["_meta", RESPONSES, "level"],
        "notifications/cancelled" => &["_meta", RESPONSES, "requestId"],
        "notifications/progress" => &["_meta", RESPONSES, "progressToken"],
        _ => &["_meta", RESPONSES, STATE],
    }
}

/// Fails if the parameters of a request or a notification mean different things to different readers.
pub(crate) fn check(method: &str, params: Option<&Object<'_>>, continuing: Continuing) -> Result<(), Twin> {
    let Some(object) = params else {
        return Ok(());
    };
    let met = object.met(judged(method));
    met.and_then(|met| inside(method, object, met, continuing))
        .map_err(|twin| twin.within("params"))
}

fn inside(method: &str, params: &Object<'_>, met: u32, continuing: Continuing) -> Result<(), Twin> {
    let opened = |name: &str| params.value(name).and_then(|raw| Object::parse(raw.get()));
    if met & META != 0
        && let Some(meta) = opened("_meta")
    {
        meta.without_meta_twins().map_err(|twin| twin.within("_meta"))?;
    }
    if met & ANSWERS != 0
        && let Some(responses) = opened(RESPONSES)
    {
        filled_in(&responses).map_err(|twin| twin.within(RESPONSES))?;
    }
    match method {
        "tools/call" => {
            let found = match params.text("name").as_deref() {
                Some(CONTINUE) => params.value("arguments").map_or(Ok(()), continuation),
                Some(APPROVAL_PROMPT) => opened("arguments")
                    .map_or(Ok(()), |members| members.without_twins(&["tool_name", "input"])),
                _ if continuing == Continuing::Perhaps => params.value("arguments").map_or(Ok(()), call),
                _ => Ok(()),
            };
            found.map_err(|twin| twin.within("arguments"))
        }
        "subscriptions/listen" => opened("notifications").map_or(Ok(()), |wishes| {
            let found = wishes.without_twins(&WISHES);
            found.map_err(|twin| twin.within("notifications"))
        }),
        "completion/complete" => opened("ref").map_or(Ok(()), |reference| {
            let found = reference.without_twins(&["type", "name", "uri"]);
            found.map_err(|twin| twin.within("ref"))
        }),
        _ => Ok(()),
    }
}

/// Checks the arguments of a call, which may have a continuation.
fn call(arguments: Json<'_>) -> Result<(), Twin> {
    let Some(members) = Object::parse(arguments.get()) else {
        return Ok(());
    };
    members.without_twins(&[MEMBER])?;
    let found = members.value(MEMBER).map_or(Ok(()), continuation);
    found.map_err(|twin| twin.within(MEMBER))
}

fn continuation(raw: Json<'_>) -> Result<(), Twin> {
    Object::parse(raw.get()).map_or(Ok(()), |members| members.without_twins(&MEMBERS))
}

/// Answers stand once each, and so does what they say.
fn filled_in(responses: &Object<'_>) -> Result<(), Twin> {
    let mut met = HashSet::new();
    for (name, value) in responses.members() {
        let name = name.unwrap_or_default();
        if !met.insert(name.to_lowercase()) {
            return Err(Twin {
                path: crate::protocol::Shown::line(name).to_string(),
            });
        }
        if let Some(answer) = Object::parse(value.get()) {
            let found = answer.without_twins(&FILLED);
            found.map_err(|twin| twin.within(&crate::protocol::Shown::line(name).to_string()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Payload;
    use crate::protocol::growth::assert_linear_on_hostile;
    use proptest::prelude::*;

    #[test]
    fn checking_the_readings_is_linear() {
        assert_linear_on_hostile("readings", |text| {
            let inside = format!(
                r#"{{"name":"a","arguments":{text},"_meta":{text},"inputResponses":{text},"ref":{text},"notifications":{text}}}"#
            );
            for params in [text, inside.as_str()] {
                let Some(payload) = Payload::parse(params) else {
                    continue;
                };
                let continuing = Continuing::of(payload.object());
                for method in ["tools/call", "completion/complete", "subscriptions/listen"] {
                    let _ = check(method, payload.object(), continuing);
                }
            }
        });
    }

    fn found(method: &str, params: &str) -> Option<String> {
        let payload = Payload::parse(params).unwrap();
        let continuing = Continuing::of(payload.object());
        let found = check(method, payload.object(), continuing);
        found.err().map(|twin| twin.path)
    }

    #[test]
    fn a_twin_of_what_is_judged_is_named_by_its_path() {
        for (method, params, path) in [
            ("tools/call", r#"{"name":"a","Name":"b"}"#, "params.name"),
            (
                "tools/call",
                r#"{"name":"a","arguments":{},"arguments":{"x":1}}"#,
                "params.arguments",
            ),
            ("resources/read", r#"{"uri":"a:b","URI":"c:d"}"#, "params.uri"),
            ("prompts/get", r#"{"name":"a","n\u0061me":"b"}"#, "params.name"),
            ("x/unknown", r#"{"_meta":{},"_Meta":{}}"#, "params._meta"),
            (
                "x/unknown",
                r#"{"requestState":"a","RequestState":"b"}"#,
                "params.requestState",
            ),
            (
                "tools/call",
                r#"{"name":"a","_meta":{"progressToken":1,"ProgressToken":2}}"#,
                "params._meta.progressToken",
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"a","NAME":"b"}}"#,
                "params.ref.name",
            ),
            (
                "tools/call",
                r#"{"name":"a","arguments":{"continue_workflow":{},"Continue_Workflow":{}}}"#,
                "params.arguments.continue_workflow",
            ),
            (
                "tools/call",
                r#"{"name":"a","arguments":{"continue\u005fworkflow":{"approved":false,"approved":true}}}"#,
                "params.arguments.continue_workflow.approved",
            ),
            (
                "tools/call",
                r#"{"name":"approval_prompt","arguments":{"tool_name":"Read","Tool_Name":"Bash"}}"#,
                "params.arguments.tool_name",
            ),
            (
                "tools/call",
                r#"{"name":"pml_continue","arguments":{"approved":false,"Approved":true}}"#,
                "params.arguments.approved",
            ),
            (
                "tools/call",
                r#"{"name":"a","inputResponses":{"q":{"action":"decline","action":"accept"}}}"#,
                "params.inputResponses.q.action",
            ),
            (
                "tools/call",
                r#"{"name":"a","inputResponses":{"q":{},"Q":{}}}"#,
                "params.inputResponses.Q",
            ),
        ] {
            assert_eq!(found(method, params).as_deref(), Some(path), "{method} {params}");
        }
    }

    #[test]
    fn what_is_not_judged_may_stand_as_often_as_it_likes() {
        for (method, params) in [
            (
                "tools/call",
                r#"{"name":"a","arguments":{"x":1,"x":2,"name":3,"Name":4},"y":1,"Y":2}"#,
            ),
            ("x/unknown", r#"{"name":1,"Name":2,"uri":3,"URI":4}"#),
            ("tools/call", "[1]"),
            ("tools/call", r#"{"name":"a","_meta":{"x":1,"x":2}}"#),
        ] {
            assert_eq!(found(method, params), None, "{method} {params}");
        }
    }

    /// What three readers may read: the first or the last of two, with or without case.
    #[derive(Debug, Clone)]
    enum Node {
        Leaf(u8),
        Object(Vec<(String, Node)>),
    }

    /// How a reader finds a member.
    type Finds = fn(&[(String, Node)], &str) -> Option<usize>;

    impl Node {
        fn text(&self) -> String {
            match self {
                Self::Leaf(number) => number.to_string(),
                Self::Object(members) => {
                    let members: Vec<String> = members
                        .iter()
                        .map(|(name, value)| format!("\"{name}\":{}", value.text()))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }
            }
        }

        fn read(&self, path: &[&str], finds: Finds) -> Option<String> {
            match (path, self) {
                ([], node) => Some(node.text()),
                ([name, rest @ ..], Self::Object(members)) => {
                    members[finds(members, name)?].1.read(rest, finds)
                }
                _ => None,
            }
        }
    }

    fn names() -> impl Strategy<Value = String> {
        let judged = [
            "name",
            "arguments",
            "_meta",
            "requestState",
            "progressToken",
            "continue_workflow",
            "approved",
            "ref",
            "type",
            "uri",
        ];
        let cases = |name: &'static str| {
            prop::collection::vec(prop::bool::weighted(0.1), name.len()).prop_map(|raised| {
                let letters = name.chars().zip(raised);
                let letter = |(letter, raised): (char, bool)| {
                    if raised {
                        letter.to_ascii_uppercase()
                    } else {
                        letter
                    }
                };
                letters.map(letter).collect::<String>()
            })
        };
        prop::sample::select(judged.to_vec()).prop_flat_map(cases)
    }

    fn nodes() -> impl Strategy<Value = Node> {
        any::<u8>()
            .prop_map(Node::Leaf)
            .prop_recursive(3, 24, 5, |inner| {
                prop::collection::vec((names(), inner), 0..5).prop_map(Node::Object)
            })
    }

    proptest! {
        #[test]
        fn what_passes_is_read_alike_by_every_reader(params in nodes(), method in prop::sample::select(vec!["tools/call", "completion/complete", "resources/read"])) {
            let text = params.text();
            let payload = Payload::parse(&text).unwrap();
            if check(method, payload.object(), Continuing::of(payload.object())).is_err() {
                return Ok(());
            }
            let mut paths: Vec<&[&str]> = vec![&["_meta"], &["_meta", "progressToken"], &["requestState"]];
            paths.extend(match method {
                "tools/call" => vec![
                    &["name"][..],
                    &["arguments"],
                    &["arguments", "continue_workflow"],
                    &["arguments", "continue_workflow", "approved"],
                ],
                "completion/complete" => vec![&["ref"][..], &["ref", "type"], &["ref", "name"], &["ref", "uri"]],
                _ => vec![&["uri"][..]],
            });
            for path in paths {
                let first = params.read(path, |members, name| members.iter().position(|(found, _)| found == name));
                let last = params.read(path, |members, name| members.iter().rposition(|(found, _)| found == name));
                let folding = params.read(path, |members, name| {
                    members.iter().rposition(|(found, _)| found.eq_ignore_ascii_case(name))
                });
                prop_assert_eq!(&first, &last, "{:?} of {}", path, text);
                prop_assert_eq!(&first, &folding, "{:?} of {}", path, text);
            }
        }
    }
}
