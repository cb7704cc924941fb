//! Arguments that a Modern server wants in headers too: its tools mark them by `x-mcp-header`. Pure.
//!
//! What a server lists passes through here on its way, and only a list with such a mark is read. The headers go to
//! the server that asked for them, with values that stand in the body of the same request.

use std::collections::HashMap;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::outgoing_line::encoded;
use crate::protocol::{Message, Object, Payload, ResponseOutcome, text};

const MARK: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";

/// Which arguments of which tools are mirrored.
#[derive(Debug, Default)]
pub(super) struct Parameters(HashMap<String, Vec<Parameter>>);

/// How many arguments of one tool are mirrored: servers refuse requests with more headers than this.
const MIRRORED: usize = 64;

/// How many tools with such arguments are remembered: as many as one list may have.
const TOOLS: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    /// The names that lead to the argument.
    path: Vec<String>,
    header: HeaderName,
}

impl Parameters {
    /// Takes note of the tools that an answer lists.
    pub(super) fn learn(&mut self, message: &[u8]) {
        if memchr::memmem::find(message, MARK.as_bytes()).is_none() {
            return;
        }
        let Ok(Message::Response {
            outcome: ResponseOutcome::Result(result),
            ..
        }) = Message::parse(message)
        else {
            return;
        };
        let tools = result.object().and_then(|object| object.value("tools"));
        let tools = tools.and_then(|tools| serde_json::from_str::<Vec<Value>>(tools.get()).ok());
        for tool in tools.unwrap_or_default() {
            let mut marked = Vec::new();
            collect(&tool["inputSchema"]["properties"], &mut Vec::new(), &mut marked);
            let name = tool["name"].as_str().unwrap_or_default();
            if marked.is_empty() {
                self.0.remove(name);
            } else if self.0.len() < TOOLS || self.0.contains_key(name) {
                self.0.insert(name.to_owned(), marked);
            }
        }
    }

    /// Returns the headers that a call must carry.
    pub(super) fn headers(&self, line: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.0.is_empty() {
            return headers;
        }
        let Ok(Message::Request { params, .. }) = Message::parse(line) else {
            return headers;
        };
        let object = params.as_ref().and_then(Payload::object);
        let marked = object
            .and_then(|object| object.text("name"))
            .and_then(|name| self.0.get(name.as_ref()));
        let arguments = object.and_then(|object| object.value("arguments"));
        for parameter in marked.into_iter().flatten() {
            let value = parameter.path.iter().try_fold(arguments, |value, name| {
                Some(Object::parse(value?.get())?.value(name))
            });
            let Some(value) = value.flatten() else { continue };
            let value = match value.get().as_bytes().first() {
                Some(b'"') => text(value),
                Some(b'{' | b'[' | b'n') | None => None,
                // A number or a truth value is written as it is.
                Some(_) => Some(value.get().into()),
            };
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&encoded(&value)).ok()) {
                headers.insert(parameter.header.clone(), value);
            }
        }
        headers
    }
}

fn collect(properties: &Value, path: &mut Vec<String>, marked: &mut Vec<Parameter>) {
    for (name, schema) in properties.as_object().into_iter().flatten() {
        if marked.len() == MIRRORED {
            return;
        }
        path.push(name.clone());
        if let Some(header) = schema[MARK].as_str().filter(|header| !header.is_empty())
            && let Ok(header) = format!("{PREFIX}{header}").parse()
        {
            let path = path.clone();
            marked.push(Parameter { path, header });
        }
        collect(&schema["properties"], path, marked);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirroring_is_linear_however_many_arguments_are_marked() {
        let members = |size: usize, value: &str| -> String {
            let all: Vec<String> = (0..size / 32)
                .map(|number| format!(r#""a{number}":{value}"#))
                .collect();
            format!("{{{}}}", all.join(","))
        };
        let input = |size: usize| {
            let properties = members(size, &format!(r#"{{"{MARK}":"Name"}}"#));
            let tool = format!(r#"{{"name":"t","inputSchema":{{"properties":{properties}}}}}"#);
            let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}"#);
            let params = format!(r#"{{"name":"t","arguments":{}}}"#, members(size, "1"));
            let call = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#);
            (answer, call)
        };
        crate::protocol::growth::assert_linear("mirrored arguments", input, |(answer, call)| {
            let mut parameters = Parameters::default();
            parameters.learn(answer.as_bytes());
            assert!(!parameters.headers(call.as_bytes()).is_empty());
        });
    }

    #[test]
    fn marked_arguments_are_mirrored_as_they_are_written() {
        let mut parameters = Parameters::default();
        parameters.learn(
            br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"deploy","inputSchema":{"properties":{
                "region":{"type":"string","x-mcp-header":"Region"},"plain":{"type":"string"},
                "size":{"properties":{"count":{"type":"integer","x-mcp-header":"Count"}}}}}}]}}"#,
        );
        let headers = |arguments: &str, name: &str| {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
            );
            let headers = parameters.headers(line.as_bytes());
            let mut told: Vec<String> = headers
                .iter()
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            told.sort();
            told
        };
        assert_eq!(
            headers(
                r#"{"region":"eu\u00e9","plain":"x","size":{"count":12345678901234567890123}}"#,
                "deploy"
            ),
            [
                "mcp-param-count: 12345678901234567890123",
                "mcp-param-region: =?base64?ZXXDqQ==?="
            ]
        );
        assert_eq!(headers(r#"{"region":null}"#, "deploy"), Vec::<String>::new());
        assert_eq!(headers(r#"{"region":"eu"}"#, "other"), Vec::<String>::new());
    }
}
