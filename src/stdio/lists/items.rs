//! How lists are written: everything on one page, each definition the text its server sent but for its name.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::protocol::{DefinitionKind, ListKind, Object, Payload, Splice, mended_definition};
use crate::proxy::{ListedItem, Proxy};
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::era::{Era, RpcError};

/// A list that a client may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    /// Reads a request for a list.
    pub(crate) fn read(method: &str, params: Option<&Payload<'_>>) -> Result<Self, RpcError> {
        let list = match method {
            "tools/list" => Self::Tools,
            "prompts/list" => Self::Prompts,
            "resources/list" => Self::Resources,
            "resources/templates/list" => Self::Templates,
            _ => return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, "Method not found")),
        };
        let cursor = params
            .and_then(Payload::object)
            .and_then(|params| params.value("cursor"));
        match cursor {
            Some(cursor) if cursor.get() != "null" => Err(RpcError::new(
                RpcError::INVALID_PARAMS,
                "`params.cursor` is not from pml: its lists have one page",
            )),
            _ => Ok(list),
        }
    }

    /// Returns the kind of thing that is listed.
    pub(crate) fn kind(self) -> ListKind {
        match self {
            Self::Tools => ListKind::Tools,
            Self::Prompts => ListKind::Prompts,
            Self::Resources | Self::Templates => ListKind::Resources,
        }
    }

    /// Answers with what is known now; tools have a writer of their own.
    pub(crate) fn answer(self, proxy: &Proxy, own_prompts: &[Value], era: Era) -> ResponseBody {
        match self {
            Self::Tools => page("tools", "[]".to_owned(), era),
            Self::Prompts => {
                let prompts = array(DefinitionKind::Prompt, "name", &proxy.prompts(), own_prompts);
                page("prompts", prompts, era)
            }
            Self::Resources => {
                let resources = array(DefinitionKind::Resource, "uri", &proxy.resources(), &[]);
                page("resources", resources, era)
            }
            Self::Templates => {
                let templates = array(DefinitionKind::Template, "uriTemplate", &proxy.templates(), &[]);
                page("resourceTemplates", templates, era)
            }
        }
    }
}

/// Writes the result of a list, which may be long and is not copied.
pub(crate) fn page(member: &str, array: impl Into<Bytes>, era: Era) -> ResponseBody {
    let (head, tail) = match era {
        Era::Legacy => (format!(r#"{{"{member}":"#), "}"),
        // Rules and servers may change at any moment: nobody should keep the list.
        Era::Modern => (
            format!(r#"{{"resultType":"complete","{member}":"#),
            r#","ttlMs":0,"cacheScope":"private"}"#,
        ),
    };
    ResponseBody::Result(vec![
        Bytes::from(head),
        array.into(),
        Bytes::from_static(tail.as_bytes()),
    ])
}

fn array(kind: DefinitionKind, member: &str, offered: &[ListedItem], own: &[Value]) -> String {
    let offered = offered.iter().map(|offered| {
        let sent = offered.definition.get();
        let mended = mended_definition(kind, sent);
        renamed(mended.as_deref().unwrap_or(sent), member, &offered.seen)
    });
    let all: Vec<String> = offered.chain(own.iter().map(Value::to_string)).collect();
    format!("[{}]", all.join(","))
}

/// Puts the name by which the client knows a thing into its definition; every other byte stays.
fn renamed(definition: &str, member: &str, seen: &str) -> String {
    let object = Object::parse(definition);
    match object.as_ref().and_then(|object| object.place(member)) {
        Some(place)
            if object.and_then(|object| object.text(member).map(|name| name != seen)) == Some(true) =>
        {
            let mut splice = Splice::new(Bytes::copy_from_slice(definition.as_bytes()));
            splice.replace(place, json!(seen).to_string());
            splice.into_text()
        }
        _ => definition.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_keeps_every_byte_but_its_name() {
        let definition = r#"{ "title":"A" , "name":"a", "x":12345678901234567890123,"y":1.0 }"#;
        assert_eq!(
            renamed(definition, "name", "s__a"),
            r#"{ "title":"A" , "name":"s__a", "x":12345678901234567890123,"y":1.0 }"#
        );
        let escaped = r#"{"uri":"a:\/b"}"#;
        assert_eq!(
            renamed(escaped, "uri", "a:/b"),
            escaped,
            "what is the same is not touched"
        );
    }

    #[test]
    fn a_cursor_is_refused_because_no_list_has_a_second_page() {
        let read = |text: &str| {
            let params = Payload::parse(text).unwrap();
            List::read("resources/list", Some(&params)).map_err(|fault| fault.code)
        };
        assert_eq!(read(r#"{"cursor":null}"#), Ok(List::Resources));
        assert_eq!(read("{}"), Ok(List::Resources));
        assert_eq!(read(r#"{"cursor":"2"}"#), Err(RpcError::INVALID_PARAMS));
    }
}
