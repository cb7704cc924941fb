//! How pml introduces itself, in either era.

use bytes::Bytes;
use rmcp::model::{DiscoverResult, Implementation, InitializeResult, ProtocolVersion, ServerCapabilities};
use serde_json::{Value, json};

use crate::protocol::{DependencyName, Json, Object, Payload, Shown, Splice};
use crate::proxy::{Declared, Introduction, Proxy};
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::client::link::{FormStyle, Link, Opening};
use crate::stdio::era;

/// What a model is told about pml once, at the start.
const INSTRUCTIONS: &str = "pml stands in front of other MCP servers. A tool named `server__connect` belongs to a \
    server that has not been started yet: call it to see that server's tools. A call may answer `approval_required`: \
    then show the person exactly what would run, let them decide, and continue as the result says. Never approve on \
    your own. To ask the person something, use `ask_user` or `ask_user_questions`; `pml_status` tells how things stand.";

/// As much as clients show of instructions; what is longer would be cut anywhere.
const INSTRUCTIONS_LIMIT: usize = 2048;

/// Opens a Legacy conversation with what `initialize` says of the client, and answers it.
pub(super) fn open(
    proxy: &Proxy,
    link: &Link,
    params: Option<&Payload<'_>>,
    behind: &Introduction,
) -> ResponseBody {
    let params = params.and_then(Payload::object);
    let raw = |name: &str| params.and_then(|params| params.value(name)).map(Json::get);
    let requested = params.and_then(|params| params.text("protocolVersion"));
    let capabilities = raw("capabilities").filter(|raw| Object::parse(raw).is_some());
    let capabilities = capabilities.unwrap_or("{}").to_owned();
    let version = era::negotiate(requested.as_deref());
    // Versions are dates, so they compare as text.
    let style = match version.as_str() {
        version if version >= ProtocolVersion::V_2025_11_25.as_str() => Some(FormStyle::Titled),
        version if version >= ProtocolVersion::V_2025_06_18.as_str() => Some(FormStyle::Plain),
        _ => None,
    };
    let opening = Opening {
        forms: style.filter(|_style| era::shows_forms(&capabilities)),
        declared: Declared::new(Some(&capabilities), raw("clientInfo")).speaking(version.as_str()),
        version,
    };
    proxy.declare(opening.declared.clone());
    link.open(opening);
    initialize(requested.as_deref(), behind)
}

/// Answers `initialize`.
fn initialize(requested: Option<&str>, behind: &Introduction) -> ResponseBody {
    let mut result = InitializeResult::new(ServerCapabilities::default())
        .with_instructions(instructions(&behind.instructions));
    result.protocol_version = era::negotiate(requested);
    result.server_info = implementation();
    capable(&json!(result), &behind.capabilities)
}

/// Answers `server/discover`.
pub(super) fn discover(behind: &Introduction) -> ResponseBody {
    let mut result = DiscoverResult::new(era::versions(), ServerCapabilities::default());
    result.instructions = Some(instructions(&behind.instructions));
    let mut result = json!(result);
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": implementation() });
    result["resultType"] = json!("complete");
    capable(&result, &behind.capabilities)
}

/// Puts the capabilities into a result as the text they are.
fn capable(result: &Value, capabilities: &str) -> ResponseBody {
    let text = result.to_string();
    let place = Object::parse(&text).and_then(|object| object.place("capabilities"));
    let mut splice = Splice::new(Bytes::copy_from_slice(text.as_bytes()));
    if let Some(place) = place {
        splice.replace(place, capabilities.to_owned());
    }
    ResponseBody::Result(splice.into_parts())
}

/// Joins pml's own words with those of the servers, each under its name and with a fair share of what is left.
fn instructions(servers: &[(DependencyName, String)]) -> String {
    let mut text = INSTRUCTIONS.to_owned();
    for (place, (server, words)) in servers.iter().enumerate() {
        let head = format!("\n\n# {server}\n");
        let share = INSTRUCTIONS_LIMIT.saturating_sub(text.len()) / (servers.len() - place);
        let words = Shown::block(words.trim()).to_string();
        let words = within(&words, share.saturating_sub(head.len()));
        if !words.is_empty() {
            text.push_str(&head);
            text.push_str(words);
        }
    }
    text
}

/// Cuts a text behind its last sentence that ends within `limit` bytes.
fn within(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let head = &text[..text.floor_char_boundary(limit)];
    let mut ends = head.char_indices().filter(|(place, found)| {
        let behind = text[place + found.len_utf8()..].chars().next();
        matches!(found, '.' | '!' | '?') && behind.is_none_or(char::is_whitespace)
    });
    let sentence = ends
        .next_back()
        .map_or(0, |(place, found)| place + found.len_utf8());
    let line = head.rfind('\n').unwrap_or(0);
    text[..sentence.max(line)].trim_end()
}

fn implementation() -> Implementation {
    Implementation::new("pml", env!("CARGO_PKG_VERSION")).with_title("pml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduced(servers: &[(&str, &str)]) -> String {
        let servers: Vec<_> = servers
            .iter()
            .map(|(name, text)| (name.parse().unwrap(), (*text).to_owned()))
            .collect();
        let text = instructions(&servers);
        assert!(text.len() <= INSTRUCTIONS_LIMIT, "{}", text.len());
        text.strip_prefix(INSTRUCTIONS).unwrap().to_owned()
    }

    #[test]
    fn servers_speak_under_their_names_and_nothing_deceives() {
        assert_eq!(introduced(&[]), "");
        assert_eq!(
            introduced(&[("fs", " Be kind.\nAlways. "), ("time", "x\u{202e}y")]),
            "\n\n# fs\nBe kind.\nAlways.\n\n# time\nx\\u{202e}y"
        );
    }

    #[test]
    fn long_words_are_cut_at_a_sentence_and_leave_room_for_the_others() {
        let long = "One sentence with v1.2 in it. ".repeat(100);
        let text = introduced(&[("a", &long), ("b", &"w".repeat(3000)), ("c", "Short.")]);
        let (first, rest) = text.split_once("\n\n# c\n").unwrap();
        assert_eq!(rest, "Short.");
        assert!(first.ends_with("in it."), "{first}");
        assert!(
            !first.contains("# b"),
            "what has no end within its share is left out"
        );
        assert_eq!(within("Ää. Öö", 5), "Ää.");
        assert_eq!(within("Ää. Öö", 4), "");
    }

    #[test]
    fn capabilities_pass_as_the_text_they_are() {
        let behind = Introduction {
            capabilities: r#"{ "x":1.0 }"#.to_owned(),
            instructions: Vec::new(),
        };
        for answer in [initialize(None, &behind), discover(&behind)] {
            let ResponseBody::Result(parts) = answer else {
                panic!()
            };
            let text = String::from_utf8(parts.concat()).unwrap();
            assert!(text.contains(r#""capabilities":{ "x":1.0 }"#), "{text}");
        }
    }
}
