//! Passes the questions of a server to a Modern client: labelled, their state wrapped, and only those it can answer.
//!
//! A Modern client declares with every request what it can answer. A server of both eras that pml opened by
//! `initialize` knows only what was declared then, so what this request does not cover is taken out.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::granted::Granted;
use super::open_call::OpenCall;
use super::state::Open;
use crate::protocol::{Json, Object, Payload, Splice};
use crate::proxy::{Failure, Refusal};
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::era::{self, Covered};
use crate::stdio::translation::impersonation::Disguise;
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::server_label::{REQUESTS, label_all};
use crate::stdio::translation::to_server::STATE;

/// What is left of the questions of a server.
#[derive(Debug, PartialEq, Eq)]
enum Answerable {
    /// All of them, but for those at these places.
    But(Vec<Range<usize>>),
    /// None; the first of them asks by this method.
    None(String),
}

impl OpenCall {
    /// Passes a question of a dependency to a Modern client, its state wrapped so that it finds its way back.
    pub(super) fn pass_question(self: &Arc<Self>, open: &Open, line: &Bytes, payload: &Payload<'_>) {
        let Some(object) = payload.object() else { return };
        let cuts = match self.undeclared(object) {
            Ok(cuts) => cuts,
            Err(refusal) => return self.answer(&open.under_way, self.refused(&refusal)),
        };
        let labels = match label_all(self.route.tool.dependency(), object) {
            Ok(labels) => labels,
            Err(twin) => return self.fail(open, Failure::Unusable(format!("in its question {twin}"))),
        };
        let theirs = object.text(STATE).map(Cow::into_owned);
        let id = self.calls.remember(Granted::of(self));
        let state = json!(RequestState::OfServer(id, theirs).text()).to_string();
        let mut splice = Splice::new(line.slice_ref(payload.get().as_bytes()));
        match object.place(STATE) {
            Some(place) => splice.replace(place, state),
            None => splice.replace(object.front()..object.front(), format!(r#""{STATE}":{state},"#)),
        }
        let disguise = Disguise::of_result(object, self.route.tool.dependency());
        // The cuts stand in the order of the text.
        let is_cut = |place: &Range<usize>| {
            let before = cuts.partition_point(|cut| cut.start <= place.start);
            before > 0 && place.end <= cuts[before - 1].end
        };
        for (place, text) in labels.into_iter().chain(disguise.renamed) {
            if !is_cut(&place) {
                splice.replace(place, text);
            }
        }
        for cut in cuts {
            splice.replace(cut, "");
        }
        self.answer(&open.under_way, ResponseBody::Result(splice.into_parts()));
    }

    /// Returns the places of the questions that this request's client cannot answer; fails if that is all of them.
    fn undeclared(&self, result: &Object<'_>) -> Result<Vec<Range<usize>>, Refusal> {
        let params = Object::parse(self.request.text());
        let capabilities = params.as_ref().and_then(era::capabilities_of).unwrap_or("{}");
        let raw = result.value(REQUESTS);
        let Some((raw, requests)) = raw.and_then(|raw| Some((raw, Object::parse(raw.get())?))) else {
            return Ok(Vec::new());
        };
        let start = result.value_place(raw).start;
        match answerable(&requests, capabilities) {
            Answerable::But(cuts) => Ok(cuts
                .into_iter()
                .map(|cut| start + cut.start..start + cut.end)
                .collect()),
            Answerable::None(method) => Err(Refusal::Unanswerable {
                dependency: self.route.tool.dependency().clone(),
                method,
            }),
        }
    }
}

/// Finds the questions in `requests` that `capabilities` do not cover.
fn answerable(requests: &Object<'_>, capabilities: &str) -> Answerable {
    let mut refused: Vec<Json<'_>> = Vec::new();
    let mut first = None;
    let mut all = 0;
    for (_, raw) in requests.members() {
        all += 1;
        let Some(question) = Object::parse(raw.get()) else {
            continue;
        };
        let method = question.text("method").unwrap_or_default();
        let params = question.value("params").map(Json::get);
        if era::covers(capabilities, &method, params) == Covered::No {
            first.get_or_insert_with(|| method.into_owned());
            refused.push(raw);
        }
    }
    match first {
        Some(method) if refused.len() == all => Answerable::None(method),
        _ => Answerable::But(requests.cuts_of(&refused)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(capabilities: &str) -> Result<String, String> {
        let requests = r#"{"a":{"method":"elicitation/create"},"b":{"method":"sampling/createMessage"},"c":{"method":"roots/list"}}"#;
        match answerable(&Object::parse(requests).unwrap(), capabilities) {
            Answerable::None(method) => Err(method),
            Answerable::But(cuts) => {
                let mut text = requests.to_owned();
                for cut in cuts.into_iter().rev() {
                    text.replace_range(cut, "");
                }
                Ok(text)
            }
        }
    }

    #[test]
    fn what_the_client_declared_stays() {
        assert_eq!(left("{}"), Err("elicitation/create".to_owned()));
        assert_eq!(
            left(r#"{"sampling":{}}"#).as_deref(),
            Ok(r#"{"b":{"method":"sampling/createMessage"}}"#)
        );
        assert_eq!(
            left(r#"{"elicitation":{},"roots":{}}"#).as_deref(),
            Ok(r#"{"a":{"method":"elicitation/create"},"c":{"method":"roots/list"}}"#)
        );
    }
}
