//! What is asked in the middle of a call, across the eras.
//!
//! A Legacy dependency asks by a request: for a Modern client the call is *parked*, the question is its result, and
//! the client's next request brings the answer. A Modern dependency asks by a result: a Legacy client is sent the
//! questions as requests, and the call is sent again with what it says; a Modern client gets it as it is, but for a
//! state that finds the way back. How a question reaches the client is the ladder's (`ask/forwarded.rs`); here is what
//! becomes of the call that carries it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::open_call::{OpenCall, token_of};
use super::progress::ProgressReport;
use super::state::{CallEnd, CallState, Collecting, Open, Parked, weight};
use crate::protocol::{Json, Message, Object, Payload, ResponseOutcome};
use crate::proxy::{Failure, Inquiry, OfferResult, Refusal, ResumedRoute};
use crate::stdio::ask::forwarded::{self, Rung};
use crate::stdio::ask::retry::Retry;
use crate::stdio::ask::server_question::ServerQuestion;
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::client::outstanding::Collector;
use crate::stdio::era::Covered;
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::server_label::label_all;
use crate::stdio::translation::to_server::{Input, STATE, meta_of};

/// More rounds of questions than any dependency has; one that asks for ever must end here.
const ROUNDS: u32 = 100;

/// How many bytes of questions wait for a client beside the first: more than a person is ever asked at once.
const QUESTIONS: usize = 1 << 20;

impl OpenCall {
    /// Gives a question of a Legacy dependency to the client that waits for this call, if it can answer it there.
    pub(super) fn take_question(self: &Arc<Self>, inquiry: &Arc<Inquiry>) -> OfferResult {
        if forwarded::carries(&self.request, inquiry) != Covered::Yes {
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
    pub(super) fn go_on(self: &Arc<Self>, retry: &Retry<'_>, object: &Object<'_>, under_way: UnderWay) {
        let parked = match self.end() {
            CallState::Parked(parked) => parked,
            state => {
                *self.lock() = state;
                return self.answer(&under_way, self.refused(&Refusal::Expired));
            }
        };
        let session = &self.route.session;
        let responses = retry.responses();
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
        let state = RequestState::Parked(id);
        let answer = forwarded::as_result(self.route.tool.dependency(), &inquiries, &state);
        self.stay_parked(Parked {
            place: id,
            inquiries,
            downstream: open.downstream,
            rounds: open.rounds,
            end: None,
        });
        self.answer(&open.under_way, answer);
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

    /// Puts the questions of a Modern dependency to the client that waits for this call.
    pub(super) fn put_questions(self: &Arc<Self>, mut open: Open, line: &Bytes, payload: &Payload<'_>) {
        let dependency = self.route.tool.dependency();
        let labels = payload.object().map(|result| label_all(dependency, result));
        let (result, labels) = match (payload.object(), labels.transpose()) {
            (Some(result), Ok(labels)) => (result, labels.unwrap_or_default()),
            (None, _) => return self.fail(&open, Failure::Unusable("its question is no object".to_owned())),
            (_, Err(twin)) => {
                return self.fail(&open, Failure::Unusable(format!("in its question {twin}")));
            }
        };
        let questions = ServerQuestion::all(result);
        open.rounds += 1;
        let unanswerable = |method: String| Refusal::Unanswerable {
            dependency: dependency.clone(),
            method,
        };
        let refusal = match self.ladder().rung(&self.request, &questions) {
            Rung::Result { uncovered } => {
                let uncovered: Vec<Json<'_>> = uncovered.iter().map(|index| questions[*index].raw).collect();
                let raw = line.slice_ref(payload.get().as_bytes());
                return self.pass_questions(&open, raw, result, labels, &uncovered);
            }
            Rung::Requests if open.rounds <= ROUNDS => return self.collect(open, result, &questions),
            Rung::Requests => Refusal::Unusable {
                dependency: dependency.clone(),
                reason: "it asks its client without end".to_owned(),
            },
            Rung::Words(forms) if open.rounds <= ROUNDS => {
                return self.relay(&open, forms, state_of(result));
            }
            Rung::Words(_) => unanswerable("elicitation/create".to_owned()),
            Rung::None { method } => unanswerable(method),
        };
        self.answer(&open.under_way, self.refused(&refusal));
    }

    /// Asks a Legacy client by requests, and goes on with this call once all of them are answered.
    fn collect(self: &Arc<Self>, open: Open, result: &Object<'_>, questions: &[ServerQuestion<'_>]) {
        let call = Arc::clone(self) as Arc<dyn Collector>;
        let mut now = self.lock();
        // An answer finds the call collecting, however fast it comes.
        let collection = self
            .ladder()
            .collect(self.route.tool.dependency(), questions, &call);
        let asks_nothing = collection.is_complete();
        *now = CallState::Collecting(Collecting {
            open,
            collection,
            state: state_of(result),
        });
        drop(now);
        // It only wants to be called again.
        if asks_nothing {
            self.resend();
        }
    }

    /// Sends the request again with what was collected.
    fn resend(self: &Arc<Self>) {
        let CallState::Collecting(collecting) = self.end() else {
            return;
        };
        let input = Input {
            responses: Some(collecting.collection.into_responses()),
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
        match outcome {
            ResponseOutcome::Result(payload) => {
                collecting.collection.answered(id, key, payload.get());
                let complete = collecting.collection.is_complete();
                drop(state);
                if complete {
                    self.resend();
                }
            }
            // A Modern dependency cannot be told of an error: the call fails with it, and no answer is wanted any more.
            ResponseOutcome::Error(raw) => {
                drop(state);
                if let CallState::Collecting(Collecting { open, collection, .. }) = self.end() {
                    drop(collection);
                    let error = Bytes::copy_from_slice(raw.get().as_bytes());
                    self.answer(&open.under_way, ResponseBody::Error(vec![error]));
                }
            }
        }
    }

    fn waits(&self, text: &str) {
        if let CallState::Collecting(Collecting { open, .. }) = &mut *self.lock()
            && let Some(token) = &open.token
            && let Some(params) = open.report.step(token, text)
        {
            self.link().notify("notifications/progress", [params.into()]);
        }
    }
}

/// Returns the dependency's own state, raw.
fn state_of(result: &Object<'_>) -> Option<String> {
    result.value(STATE).map(|raw| raw.get().to_owned())
}
