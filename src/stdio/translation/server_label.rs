//! Questions of servers on their way to the client: each begins with the name of the server that asks.
//!
//! A client shows a question in the name of the server it talks to, which is pml. Without the label a server could
//! ask a person in pml's name.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::protocol::{DependencyName, Object, Splice, Twin, escaped, quoted};

/// What a person or a model reads first of a question, and what stands before it.
fn place_of(method: &str, server: &DependencyName) -> Option<(&'static str, String)> {
    match method {
        "elicitation/create" => Some(("message", format!("[{server}] "))),
        "sampling/createMessage" => Some((
            "systemPrompt",
            format!("This request comes from the MCP server `{server}`.\n\n"),
        )),
        _ => None,
    }
}

/// Returns the change that puts the server's name before a question; nothing where a question has no place for it.
pub(crate) fn label(
    server: &DependencyName,
    method: &str,
    params: &Object<'_>,
) -> Option<(Range<usize>, String)> {
    let (member, label) = place_of(method, server)?;
    Some(match params.value(member) {
        Some(text) if text.get().starts_with('"') => {
            let at = params.value_place(text).start + 1;
            (at..at, escaped(&label).into_owned())
        }
        // What is no text is not shown by any client.
        Some(other) => (params.value_place(other), quoted(label.trim_end())),
        None => {
            let comma = if params.is_empty() { "" } else { "," };
            let front = params.front();
            let member = format!(r#""{member}":{}{comma}"#, quoted(label.trim_end()));
            (front..front, member)
        }
    })
}

/// Returns the parameters of a question with the name of the server before it.
pub(crate) fn labelled<'a>(server: &DependencyName, method: &str, params: &'a str) -> Cow<'a, str> {
    let change = Object::parse(params).and_then(|object| label(server, method, &object));
    let Some((place, text)) = change else {
        return Cow::Borrowed(params);
    };
    let mut splice = Splice::new(Bytes::copy_from_slice(params.as_bytes()));
    splice.replace(place, text);
    Cow::Owned(splice.into_text())
}

/// Returns the changes that label every question of a Modern server's result, by their places in the result.
///
/// Fails where a question means different things to different readers.
pub(crate) fn label_all(
    server: &DependencyName,
    result: &Object<'_>,
) -> Result<Vec<(Range<usize>, String)>, Twin> {
    let mut changes = Vec::new();
    let Some(raw) = result.value(REQUESTS) else {
        return Ok(changes);
    };
    let Some(requests) = Object::parse(raw.get()) else {
        return Ok(changes);
    };
    let start = result.value_place(raw).start;
    for (_, raw) in requests.members() {
        let Some(request) = Object::parse(raw.get()) else {
            continue;
        };
        request.without_twins(&["method", "params"])?;
        let start = start + requests.value_place(raw).start;
        let method = request.text("method").unwrap_or_default();
        let Some((params, object)) = request
            .value("params")
            .and_then(|raw| Some((raw, Object::parse(raw.get())?)))
        else {
            continue;
        };
        object.without_twins(&["mode", "message", "systemPrompt", "messages"])?;
        let start = start + request.value_place(params).start;
        if let Some((place, text)) = label(server, &method, &object) {
            changes.push((start + place.start..start + place.end, text));
        }
    }
    Ok(changes)
}

/// The member of a Modern result that holds its questions.
pub(crate) const REQUESTS: &str = "inputRequests";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::assert_linear_on_hostile;

    #[test]
    fn labelling_a_question_is_linear() {
        let server: DependencyName = "fs".parse().unwrap();
        assert_linear_on_hostile("label", |text| {
            labelled(&server, "elicitation/create", text);
            let params = format!(r#"{{"message":"a","requestedSchema":{text},"messages":[{text}]}}"#);
            labelled(&server, "elicitation/create", &params);
            labelled(&server, "sampling/createMessage", &params);
        });
    }

    #[test]
    fn a_question_begins_with_the_name_of_its_server() {
        let server = "fake".parse().unwrap();
        for (method, params, expected) in [
            (
                "elicitation/create",
                r#"{"message": "\u0057ho?", "x":1.0}"#,
                r#"{"message": "[fake] \u0057ho?", "x":1.0}"#,
            ),
            (
                "elicitation/create",
                r#"{"x":1.0}"#,
                r#"{"message":"[fake]","x":1.0}"#,
            ),
            (
                "elicitation/create",
                r#"{"message":null}"#,
                r#"{"message":"[fake]"}"#,
            ),
            (
                "sampling/createMessage",
                r#"{"systemPrompt":"Be kind.","messages":[]}"#,
                r#"{"systemPrompt":"This request comes from the MCP server `fake`.\n\nBe kind.","messages":[]}"#,
            ),
            (
                "sampling/createMessage",
                "{}",
                r#"{"systemPrompt":"This request comes from the MCP server `fake`."}"#,
            ),
            ("roots/list", r#"{"message":"x"}"#, r#"{"message":"x"}"#),
        ] {
            assert_eq!(labelled(&server, method, params), expected);
        }
    }
}
