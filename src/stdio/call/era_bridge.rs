//! What is asked in the middle of a call, across the eras.
//!
//! A Legacy dependency asks by a request: for a Modern client the call is *parked*, the question is its result, and
//! the client's next request brings the answer. A Modern dependency asks by a result: a Legacy client is sent the
//! questions as requests, and the call is sent again with what it says; a Modern client gets it as it is, but for a
//! state that finds the way back.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::in_result::NamedQuestion;
use super::open_call::{OpenCall, token_of};
use super::progress::ProgressReport;
use super::state::{CallEnd, CallState, Collecting, Open, Parked, weight};
use crate::config::By;
use crate::protocol::{Json, Message, Object, Payload, ResponseOutcome, Splice};
use crate::proxy::{Failure, Inquiry, OfferResult, Refusal, ResumedRoute};
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::client::outstanding::{Collector, Recipient};
use crate::stdio::era::{self, Covered, Era};
use crate::stdio::translation::request::{Method, Request};
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::server_label::{REQUESTS, label_all, labelled};
use crate::stdio::translation::to_server::{Input, RESPONSES, STATE, meta_of};

/// More rounds of questions than any dependency has; one that asks for ever must end here.
const ROUNDS: u32 = 100;

/// How many bytes of questions wait for a client beside the first: more than a person is ever asked at once.
const QUESTIONS: usize = 1 << 20;

impl OpenCall {
    /// Tells whether a request asks for the very same as this call.
    pub(super) fn is_same(&self, other: &Request) -> bool {
        let gist = self.request.gist();
        gist.is_some() && gist == other.gist()
    }

    /// Gives a question of a Legacy dependency to the client that waits for this call, if it can answer it there.
    pub(super) fn take_question(self: &Arc<Self>, inquiry: &Arc<Inquiry>) -> OfferResult {
        if self.request.era != Era::Modern || !self.request.method.may_ask() {
            return OfferResult::No;
        }
        let params = inquiry
            .params
            .as_deref()
            .and_then(|params| std::str::from_utf8(params).ok());
        let object = Object::parse(self.request.text());
        let capabilities = object.as_ref().and_then(era::capabilities_of).unwrap_or("{}");
        if era::covers(capabilities, &inquiry.method, params) != Covered::Yes {
            return OfferResult::No;
        }
        match self.end() {
            CallState::Open(mut open, _) if open.rounds < ROUNDS => {
                open.rounds += 1;
                let key = format!("question-{}", open.rounds);
                self.park(&open, vec![(key, Arc::clone(inquiry))]);
                OfferResult::Yes
            }
            CallState::Parked(mut parked)
                if parked.rounds < ROUNDS && parked.asked() + weight(inquiry) <= QUESTIONS =>
            {
                parked.rounds += 1;
                let key = format!("question-{}", parked.rounds);
                parked.inquiries.push((key, Arc::clone(inquiry)));
                self.stay_parked(parked);
                OfferResult::Yes
            }
            state => {
                *self.lock() = state;
                OfferResult::No
            }
        }
    }

    /// Goes on with a parked call: the dependency gets its answers, the client waits again.
    pub(super) fn go_on(self: &Arc<Self>, object: &Object<'_>, under_way: UnderWay) {
        let parked = match self.end() {
            CallState::Parked(parked) => parked,
            state => {
                *self.lock() = state;
                return self.answer(&under_way, self.refused(&Refusal::Expired));
            }
        };
        let session = &self.route.session;
        let responses = object.value(RESPONSES).and_then(|raw| Object::parse(raw.get()));
        let mut missing = Vec::new();
        for (key, inquiry) in parked.inquiries {
            let response = responses.as_ref().and_then(|responses| responses.value(&key));
            match response.map(Json::get) {
                Some(response) => session.answer(&inquiry.id, Bytes::copy_from_slice(response.as_bytes())),
                None => missing.push((key, inquiry)),
            }
        }
        under_way.answered_by(self.cancellation());
        let open = Open {
            under_way,
            token: token_of(object),
            report: ProgressReport::default(),
            downstream: parked.downstream,
            rounds: parked.rounds,
        };
        match parked.end {
            Some(CallEnd::Replied(line)) => {
                if let Ok(Message::Response { outcome, .. }) = Message::parse(&line) {
                    self.deliver(open, &line, &outcome);
                }
            }
            Some(CallEnd::Failed(failure)) => self.fail(&open, failure),
            None if missing.is_empty() => self.open(open),
            None => self.park(&open, missing),
        }
    }

    /// Gives the client the questions of the dependency as a result, and waits for its next request.
    fn park(self: &Arc<Self>, open: &Open, inquiries: Vec<(String, Arc<Inquiry>)>) {
        let id = self.calls.park(Arc::clone(self));
        let mut asked = String::new();
        let server = self.route.tool.dependency();
        for (key, inquiry) in &inquiries {
            let comma = if asked.is_empty() { "" } else { "," };
            let params = inquiry.params.as_deref().map(String::from_utf8_lossy);
            let params = params
                .as_deref()
                .map(|params| labelled(server, &inquiry.method, params));
            let params = params.map_or_else(String::new, |params| format!(r#","params":{params}"#));
            let (key, method) = (json!(key), json!(inquiry.method));
            let _ = write!(asked, r#"{comma}{key}:{{"method":{method}{params}}}"#);
        }
        let state = json!(RequestState::Parked(id).text());
        let result =
            format!(r#"{{"resultType":"input_required","inputRequests":{{{asked}}},"{STATE}":{state}}}"#);
        self.stay_parked(Parked {
            place: id,
            inquiries,
            downstream: open.downstream,
            rounds: open.rounds,
            end: None,
        });
        self.answer(&open.under_way, ResponseBody::Result(vec![Bytes::from(result)]));
    }

    /// Waits for the client with what is there now.
    pub(super) fn stay_parked(&self, parked: Parked) {
        let place = parked.place;
        *self.lock() = CallState::Parked(parked);
        self.calls.weigh(place);
    }

    /// Forgets a parked call that nobody came back for.
    pub(super) fn abandon(&self) {
        match self.end() {
            CallState::Parked(parked) => {
                let session = &self.route.session;
                let error = json!({ "code": -32603, "message": "the client did not answer" }).to_string();
                for (_, inquiry) in parked.inquiries {
                    session.refuse(&inquiry.id, Bytes::from(error.clone()));
                }
                let params =
                    json!({ "requestId": parked.downstream, "reason": "the client did not come back" });
                session.cancel(parked.downstream, &params.to_string());
            }
            state => *self.lock() = state,
        }
    }

    /// Asks a Legacy client for what a Modern dependency requires.
    pub(super) fn collect(self: &Arc<Self>, mut open: Open, payload: &Payload<'_>) {
        let object = payload.object();
        let ambiguous = object.map(|object| label_all(self.route.tool.dependency(), object));
        if let Some(Err(twin)) = ambiguous {
            return self.fail(&open, Failure::Unusable(format!("in its question {twin}")));
        }
        let state = object
            .and_then(|object| object.value(STATE))
            .map(|raw| raw.get().to_owned());
        let requests = object.and_then(|object| object.value(REQUESTS));
        let requests = requests.and_then(|raw| Object::parse(raw.get()));
        open.rounds += 1;
        let mut asked = Vec::new();
        for (key, raw) in requests.iter().flat_map(Object::members) {
            // An answer could not be given under a name that is no text.
            let Some((key, request)) = key.zip(Object::parse(raw.get())) else {
                continue;
            };
            let method = request.text("method").unwrap_or_default().into_owned();
            let params = request.value("params").map(Json::get);
            asked.push((key.to_owned(), method, params.map(str::to_owned)));
        }
        let declared = self.link().declared();
        let uncovered = |(_, method, params): &&(String, String, Option<String>)| {
            era::covers(declared.capabilities(), method, params.as_deref()) == Covered::No
        };
        if let Some((_, method, _)) = asked.iter().find(uncovered) {
            if let Some(forms) = self.relayable(&asked).filter(|_forms| open.rounds <= ROUNDS) {
                return self.relay(&open, forms, state);
            }
            let dependency = self.route.tool.dependency().clone();
            let method = method.clone();
            let refusal = Refusal::Unanswerable { dependency, method };
            return self.answer(&open.under_way, self.refused(&refusal));
        }
        if open.rounds > ROUNDS {
            let dependency = self.route.tool.dependency().clone();
            let reason = "it asks its client without end".to_owned();
            return self.answer(
                &open.under_way,
                self.refused(&Refusal::Unusable { dependency, reason }),
            );
        }
        let waiting: Vec<(String, String)> = asked
            .iter()
            .map(|(key, ..)| {
                let recipient = Recipient::Call {
                    call: Arc::clone(self) as Arc<dyn Collector>,
                    key: key.clone(),
                };
                (self.link().outstanding().register(recipient), key.clone())
            })
            .collect();
        *self.lock() = CallState::Collecting(Collecting {
            open,
            waiting: waiting.iter().map(|(id, _)| id.clone()).collect(),
            responses: Vec::new(),
            state,
        });
        let server = self.route.tool.dependency();
        for ((id, _), (_, method, params)) in waiting.iter().zip(&asked) {
            let params = params.as_deref().map(|params| labelled(server, method, params));
            let params = params.as_deref().map(|params| for_legacy(id, method, params));
            self.link()
                .request(id, method, params.map(|params| Bytes::from(params.into_owned())));
        }
        // Nothing is asked: it only wants to be called again.
        if waiting.is_empty() {
            self.resend();
        }
    }

    /// Returns the forms that can be told in a tool's result, where a client may carry a person's word at all.
    fn relayable(&self, asked: &[(String, String, Option<String>)]) -> Option<Vec<NamedQuestion>> {
        let by = self.calls.0.proxy.approvals().by;
        if self.request.method != Method::Call || by != By::Client {
            return None;
        }
        let form = |(key, method, params): &(String, String, Option<String>)| {
            let params: Value = serde_json::from_str(params.as_deref()?).ok()?;
            let is_form =
                method == "elicitation/create" && params.get("mode").is_none_or(|mode| mode == "form");
            is_form.then(|| (key.clone(), params))
        };
        asked.iter().map(form).collect()
    }

    /// Sends the request again with what was collected.
    fn resend(self: &Arc<Self>) {
        let CallState::Collecting(collecting) = self.end() else {
            return;
        };
        let responses: Vec<String> = collecting
            .responses
            .iter()
            .map(|(key, raw)| format!("{}:{raw}", json!(key)))
            .collect();
        let input = Input {
            responses: Some(format!("{{{}}}", responses.join(","))),
            state: collecting.state,
        };
        self.send_again(collecting.open, input);
    }

    /// Sends the request again with what its dependency asked for, if the rules of now let it.
    pub(super) fn send_again(self: &Arc<Self>, open: Open, input: Input) {
        let proxy = self.calls.0.proxy.clone();
        match proxy.going_on(&self.route) {
            Ok(ResumedRoute::AsBefore) => self.dispatch_again(open, &input),
            Err(refusal) => self.answer(&open.under_way, self.refused(&refusal)),
            Ok(ResumedRoute::Anew) => {
                let call = Arc::clone(self);
                let cancelled = open.under_way.cancelled();
                self.link().spawn(async move {
                    match cancelled.run_until_cancelled(proxy.reopen(&call.route)).await {
                        Some(Ok(ready)) => call.along(ready).dispatch_again(open, &input),
                        Some(Err(refusal)) => call.answer(&open.under_way, call.refused(&refusal)),
                        None => {}
                    }
                });
            }
        }
    }

    fn dispatch_again(self: &Arc<Self>, open: Open, input: &Input) {
        open.under_way.answered_by(self.cancellation());
        if let Some(object) = Object::parse(self.request.text()) {
            self.dispatch(open, &object, meta_of(&object).as_ref(), Some(input));
        }
    }
}

impl Collector for OpenCall {
    fn collected(self: Arc<Self>, id: &str, key: &str, outcome: &ResponseOutcome<'_>) {
        let mut state = self.lock();
        let CallState::Collecting(collecting) = &mut *state else {
            return;
        };
        collecting.waiting.retain(|waiting| waiting != id);
        match outcome {
            ResponseOutcome::Result(payload) => {
                collecting
                    .responses
                    .push((key.to_owned(), payload.get().to_owned()));
                let complete = collecting.waiting.is_empty();
                drop(state);
                if complete {
                    self.resend();
                }
            }
            // A Modern dependency cannot be told of an error: the call fails with it.
            ResponseOutcome::Error(raw) => {
                drop(state);
                if let CallState::Collecting(collecting) = self.end() {
                    self.withdraw(&collecting.waiting);
                    let error = Bytes::copy_from_slice(raw.get().as_bytes());
                    self.answer(&collecting.open.under_way, ResponseBody::Error(vec![error]));
                }
            }
        }
    }
}

/// Names a question on a page, as a Legacy client requires; the Modern era has no such name. `id` is a JSON string.
fn for_legacy<'a>(id: &str, method: &str, params: &'a str) -> Cow<'a, str> {
    const NAME: &str = "elicitationId";
    match Object::parse(params) {
        Some(object)
            if method == "elicitation/create"
                && object.text("mode").as_deref() == Some("url")
                && object.value(NAME).is_none() =>
        {
            let mut splice = Splice::new(Bytes::copy_from_slice(params.as_bytes()));
            splice.replace(object.front()..object.front(), format!(r#""{NAME}":{id},"#));
            Cow::Owned(splice.into_text())
        }
        _ => Cow::Borrowed(params),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_question_on_a_page_gets_a_name_and_only_where_it_has_none() {
        let named = |params| for_legacy("\"pml-1\"", "elicitation/create", params).into_owned();
        assert_eq!(
            named(r#"{"mode":"url","url":"a:b"}"#),
            r#"{"elicitationId":"pml-1","mode":"url","url":"a:b"}"#
        );
        for other in [r#"{"mode":"url","elicitationId":"x"}"#, r#"{"message":"m"}"#] {
            assert_eq!(named(other), other);
        }
    }
}
