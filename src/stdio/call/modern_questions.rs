//! Passes the questions of a server to a Modern client: labelled, their state wrapped, and only those it can answer.
//!
//! What is asked and which of it the client can answer is the ladder's (`ask/forwarded.rs`); here the bytes of the
//! result are changed no further than that takes.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde_json::json;

use super::open_call::OpenCall;
use super::state::Open;
use crate::protocol::{Json, Object, Splice};
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::translation::impersonation::Disguise;
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::server_label::REQUESTS;
use crate::stdio::translation::to_server::STATE;

impl OpenCall {
    /// Passes the questions of a result to a Modern client, with these labels and without those it cannot answer.
    ///
    /// The state is wrapped so that it finds its way back.
    pub(super) fn pass_questions(
        &self,
        open: &Open,
        raw: Bytes,
        result: &Object<'_>,
        labels: Vec<(Range<usize>, String)>,
        uncovered: &[Json<'_>],
    ) {
        let cuts = places_of(uncovered, result);
        let theirs = result.text(STATE).map(Cow::into_owned);
        let id = self.calls.remember(self);
        let state = json!(RequestState::OfServer(id, theirs).text()).to_string();
        let mut splice = Splice::new(raw);
        match result.place(STATE) {
            Some(place) => splice.replace(place, state),
            None => splice.replace(result.front()..result.front(), format!(r#""{STATE}":{state},"#)),
        }
        let disguise = Disguise::of_result(result, self.route.tool.dependency());
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
}

/// Returns the places in a result that hold these of its questions.
fn places_of(questions: &[Json<'_>], result: &Object<'_>) -> Vec<Range<usize>> {
    let raw = result.value(REQUESTS);
    let Some((raw, requests)) = raw.and_then(|raw| Some((raw, Object::parse(raw.get())?))) else {
        return Vec::new();
    };
    let start = result.value_place(raw).start;
    let cuts = requests.cuts_of(questions).into_iter();
    cuts.map(|cut| start + cut.start..start + cut.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stdio::ask::server_question::ServerQuestion;

    #[test]
    fn what_is_cut_leaves_the_other_questions_as_they_are() {
        let text = r#"{"x":1,"inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"sampling/createMessage"},"c":{"method":"roots/list"}}}"#;
        let left = |cut: &[usize]| {
            let result = Object::parse(text).unwrap();
            let questions = ServerQuestion::all(&result);
            let raw: Vec<Json<'_>> = cut.iter().map(|index| questions[*index].raw).collect();
            let mut left = text.to_owned();
            for cut in places_of(&raw, &result).into_iter().rev() {
                left.replace_range(cut, "");
            }
            left
        };
        assert_eq!(left(&[]), text);
        assert_eq!(
            left(&[0, 2]),
            r#"{"x":1,"inputRequests":{"b":{"method":"sampling/createMessage"}}}"#
        );
        assert_eq!(
            left(&[1]),
            r#"{"x":1,"inputRequests":{"a":{"method":"elicitation/create"},"c":{"method":"roots/list"}}}"#
        );
    }
}
