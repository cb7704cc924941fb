//! An answer to a request of the client, without its envelope, and the plain results that pml writes itself.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::stdio::era::{Era, RpcError};

/// An answer on its way to the client, without its envelope.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// A result, in parts that are written one after the other.
    Result(Vec<Bytes>),
    /// An error object, likewise.
    Error(Vec<Bytes>),
}

impl From<RpcError> for ResponseBody {
    fn from(fault: RpcError) -> Self {
        Self::Error(vec![Bytes::from(fault.to_json())])
    }
}

/// Writes a result of pml's own.
pub(crate) fn own_result(mut result: Value, era: Era) -> ResponseBody {
    if let (Era::Modern, Some(members)) = (era, result.as_object_mut()) {
        members.insert("resultType".to_owned(), json!("complete"));
    }
    ResponseBody::Result(vec![Bytes::from(result.to_string())])
}

/// Writes an `isError` result: what happened, then the next step as a text of its own.
pub(crate) fn error_result(what: &str, hint: Option<&str>) -> Value {
    let mut content = vec![json!({ "type": "text", "text": what })];
    content.extend(hint.map(|hint| json!({ "type": "text", "text": format!("hint: {hint}") })));
    json!({ "content": content, "isError": true })
}
