//! The questions in the result of a Modern server, as raw as they came.

use std::borrow::Cow;

use crate::protocol::{Json, Object};
use crate::stdio::translation::server_label::REQUESTS;

/// A question in the result of a Modern server.
pub(crate) struct ServerQuestion<'a> {
    /// The server's name for it, if that is text: an answer could not be given under any other.
    key: Option<String>,
    /// The whole question.
    pub(crate) raw: Json<'a>,
    members: Option<Object<'a>>,
}

impl<'a> ServerQuestion<'a> {
    /// Returns the questions of a result.
    pub(crate) fn all(result: &Object<'a>) -> Vec<Self> {
        let requests = result.value(REQUESTS).and_then(|raw| Object::parse(raw.get()));
        let requests = requests.iter().flat_map(Object::members);
        requests
            .map(|(key, raw)| Self {
                key: key.map(str::to_owned),
                raw,
                members: Object::parse(raw.get()),
            })
            .collect()
    }

    /// Returns the server's name for it; `None` where it cannot be asked by a request.
    pub(crate) fn askable(&self) -> Option<&str> {
        self.key.as_deref().filter(|_key| self.members.is_some())
    }

    /// Returns what is wanted.
    pub(crate) fn method(&self) -> Cow<'a, str> {
        let method = self.members.as_ref().and_then(|members| members.text("method"));
        method.unwrap_or_default()
    }

    /// Returns the raw parameters.
    pub(crate) fn params(&self) -> Option<&'a str> {
        self.members.as_ref()?.value("params").map(Json::get)
    }
}
