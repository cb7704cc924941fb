//! The result that asks a Modern client something and to call again, pml's own form or questions of a server.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::json;

use crate::stdio::client::answer::ResponseBody;
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::server_label::REQUESTS;
use crate::stdio::translation::to_server::STATE;

/// The questions of one result, written as they are added.
#[derive(Default)]
pub(crate) struct InputRequired {
    questions: String,
}

impl InputRequired {
    /// Adds a question with these raw parameters.
    pub(crate) fn ask(&mut self, key: &str, method: &str, params: Option<&str>) {
        let comma = if self.questions.is_empty() { "" } else { "," };
        let params = params.map_or_else(String::new, |params| format!(r#","params":{params}"#));
        let (key, method) = (json!(key), json!(method));
        let _ = write!(self.questions, r#"{comma}{key}:{{"method":{method}{params}}}"#);
    }

    /// Writes the result, whose retry brings back this state.
    pub(crate) fn into_body(self, state: &RequestState) -> ResponseBody {
        let (questions, state) = (self.questions, json!(state.text()));
        let result =
            format!(r#"{{"resultType":"input_required","{REQUESTS}":{{{questions}}},"{STATE}":{state}}}"#);
        ResponseBody::Result(vec![Bytes::from(result)])
    }
}
