//! A request of the client that a dependency is answering: what comes back, and what is asked in between.
//!
//! It is data, not a task: the reader of the dependency's lines tells it what came, and it writes to the client at
//! once. What is asked in the middle of a call across the eras is in `era_bridge.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Calls;
use super::deadline::{Deadline, Progressing};
use super::progress::ProgressReport;
use super::state::{CallEnd, CallState, Open, held};
use crate::protocol::{Object, Payload, ResponseOutcome};
use crate::proxy::{Arguments, Caller, Failure, Inquiry, OfferResult, ReadyRequest, Refusal, Route};
use crate::stdio::ask::ladder::Ladder;
use crate::stdio::ask::parking::ParkedItem;
use crate::stdio::ask::retry::Retry;
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::client::in_flight::{Cancel, UnderWay};
use crate::stdio::client::link::Link;
use crate::stdio::era::{self, Era};
use crate::stdio::lists::output_schemas::ExpectedContent;
use crate::stdio::present;
use crate::stdio::translation::impersonation;
use crate::stdio::translation::request::{self, Method, Request};
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::to_client::{self, Passage};
use crate::stdio::translation::to_server::{self, Input, RequestAddress};

/// A request of the client that a dependency is answering.
pub(crate) struct OpenCall {
    pub(super) calls: Calls,
    pub(super) request: Request,
    pub(super) route: Arc<Route>,
    pub(super) suspended: Option<Arguments>,
    pub(super) notes: Vec<String>,
    pub(super) state: Mutex<CallState>,
}

impl OpenCall {
    /// Sends a request on its way; from here on nobody needs to look after it.
    pub(crate) fn send(
        calls: &Calls,
        request: Request,
        object: &Object<'_>,
        ready: ReadyRequest,
        under_way: UnderWay,
        report: ProgressReport,
    ) {
        let ReadyRequest {
            route,
            suspended,
            notes,
        } = ready;
        let input = match Retry::read(object).map(|retry| retry.state) {
            Some(RequestState::OfServer(_, state)) => Some(Input {
                responses: None,
                state: state.map(|state| Value::from(state).to_string()),
            }),
            Some(RequestState::Parked(_) | RequestState::Own(_)) | None => None,
        };
        let meta = to_server::meta_of(object);
        let token = token_in(meta.as_ref());
        // Told before the call: a dependency that knows a level of the whole conversation only takes it in this order.
        if let (Era::Modern, Some(level)) = (request.era, meta.as_ref().and_then(era::log_level)) {
            calls.0.subscriptions.ask_for_messages(level);
        }
        let call = Arc::new(Self {
            calls: calls.clone(),
            request,
            route,
            suspended,
            notes,
            state: Mutex::new(CallState::Ended),
        });
        under_way.answered_by(call.cancellation());
        let open = Open {
            under_way,
            token,
            report,
            downstream: 0,
            rounds: 0,
        };
        call.dispatch(open, object, meta.as_ref(), input.as_ref());
        call.route.session.settle();
    }

    /// Returns the same call on another way.
    pub(super) fn along(&self, ready: ReadyRequest) -> Arc<Self> {
        let mut notes = self.notes.clone();
        notes.extend(ready.notes);
        Arc::new(Self {
            calls: self.calls.clone(),
            request: self.request.clone(),
            route: ready.route,
            suspended: self.suspended.clone(),
            notes,
            state: Mutex::new(CallState::Ended),
        })
    }

    pub(super) fn dispatch(
        self: &Arc<Self>,
        open: Open,
        object: &Object<'_>,
        meta: Option<&Object<'_>>,
        input: Option<&Input>,
    ) {
        let session = &self.route.session;
        self.open(open);
        let id = session.register(Arc::clone(self) as Arc<dyn Caller>);
        match &mut *self.lock() {
            CallState::Open(open, _) => open.downstream = id,
            // The dependency was gone, and the client has been told so.
            _ => return,
        }
        let to = session.era();
        let envelope = match (self.request.era, to) {
            (Era::Legacy, Era::Modern) => self.calls.0.subscriptions.envelope(),
            _ => String::new(),
        };
        let address = RequestAddress {
            method: &self.request.method,
            from: self.request.era,
            to,
            own: &self.route.own_json,
            continuing: self.request.continuing,
            id,
            suspended: self.suspended.as_ref(),
            envelope: &envelope,
            input,
            meta,
        };
        let params = to_server::params(&self.request.params, object, &address);
        session.send_call(id, self.request.method.name(), params);
    }

    /// Leaves the call to the dependency, which has its whole time for it: nobody else's time counts.
    pub(super) fn open(self: &Arc<Self>, open: Open) {
        *self.lock() = CallState::Open(open, self.deadline());
    }

    fn deadline(self: &Arc<Self>) -> Option<Deadline> {
        let after = self.route.timeout?;
        let (call, late) = (Arc::downgrade(self), Arc::downgrade(self));
        let state = move || match call.upgrade() {
            Some(call) if call.link().outstanding().waits(&call.route.session) => Progressing::Waits,
            Some(_) => Progressing::Works,
            None => Progressing::Ended,
        };
        Some(Deadline::start(self.link(), after, state, move || {
            if let Some(call) = late.upgrade() {
                call.time_out(after);
            }
        }))
    }

    /// Returns what cancels the call.
    pub(super) fn cancellation(self: &Arc<Self>) -> Weak<dyn Cancel> {
        let call: Arc<dyn Cancel> = Arc::clone(self) as Arc<dyn Cancel>;
        Arc::downgrade(&call)
    }

    pub(super) fn link(&self) -> &Link {
        &self.calls.0.link
    }

    pub(super) fn ladder(&self) -> &Ladder {
        &self.calls.0.ladder
    }

    fn cancel_downstream(&self, id: u64, notice: Option<&str>) {
        let object = notice.and_then(Object::parse);
        let place = object.as_ref().and_then(|object| object.place("requestId"));
        let params = match (notice, place) {
            (Some(notice), Some(place)) => {
                format!("{}{id}{}", &notice[..place.start], &notice[place.end..])
            }
            _ => json!({ "requestId": id }).to_string(),
        };
        self.route.session.cancel(id, &params);
    }

    /// Ends the call because its dependency took too long.
    pub(super) fn time_out(&self, after: Duration) {
        match self.end() {
            CallState::Open(open, _) => {
                let params = json!({ "requestId": open.downstream, "reason": "it took too long" });
                self.route.session.cancel(open.downstream, &params.to_string());
                let tool = self.route.tool.clone();
                self.answer(&open.under_way, self.refused(&Refusal::TimedOut { tool, after }));
            }
            state => *self.lock() = state,
        }
    }

    pub(super) fn deliver(self: &Arc<Self>, open: Open, line: &Bytes, outcome: &ResponseOutcome<'_>) {
        let payload = match outcome {
            ResponseOutcome::Error(raw) => {
                let raw = line.slice_ref(raw.get().as_bytes());
                let error = impersonation::error(raw, self.route.tool.dependency());
                return self.answer(&open.under_way, ResponseBody::Error(error));
            }
            ResponseOutcome::Result(payload) => payload,
        };
        if self.request.method == Method::Subscribe {
            self.watched();
        }
        let from = self.route.session.era();
        if let (Era::Modern, Err(twin)) = (from, to_client::without_twins(payload)) {
            return self.fail(&open, Failure::Unusable(format!("in its answer {twin}")));
        }
        // A server of both eras may ask a Modern client in its own way, however pml opened it.
        let asks_anyway = || {
            self.request.era == Era::Modern
                && self.request.method.may_ask()
                && to_client::has_questions(payload)
                && to_client::without_twins(payload).is_ok()
        };
        if to_client::requires_input(payload) && (from == Era::Modern || asks_anyway()) {
            return self.put_questions(open, line, payload);
        }
        let passage = Passage {
            method: &self.request.method,
            from,
            to: self.request.era,
            server: self.route.tool.dependency(),
            notes: &self.notes,
        };
        let raw = line.slice_ref(payload.get().as_bytes());
        self.answer(
            &open.under_way,
            ResponseBody::Result(to_client::result(raw, payload, passage)),
        );
    }

    /// Takes note that the client watches what it asked for: only what a dependency accepted is watched.
    fn watched(&self) {
        let object = Object::parse(self.request.text());
        if let Some(Ok(name)) = object.map(|object| request::name(&self.request.method, &object)) {
            self.calls.0.subscriptions.watch(&self.route, name);
        }
    }

    /// Returns what the client expects of the result.
    pub(super) fn expected_output(&self) -> ExpectedContent {
        let object = Object::parse(self.request.text());
        let name = object.and_then(|object| request::name(&self.request.method, &object).ok());
        self.calls.0.output_schemas.expected(&name.unwrap_or_default())
    }

    pub(super) fn fail(&self, open: &Open, failure: Failure) {
        let dependency = self.route.tool.dependency().clone();
        let refusal = match failure {
            Failure::Unusable(reason) => Refusal::Unusable { dependency, reason },
            Failure::Ended(ended) => Refusal::Died { dependency, ended },
        };
        self.answer(&open.under_way, self.refused(&refusal));
    }

    pub(super) fn refused(&self, refusal: &Refusal) -> ResponseBody {
        present::refused(refusal, &self.request.method, self.request.era)
    }

    pub(super) fn answer(&self, under_way: &UnderWay, answer: ResponseBody) {
        self.link().respond(&under_way.id, answer);
    }

    /// Takes the state out, leaving it ended.
    pub(super) fn end(&self) -> CallState {
        std::mem::replace(&mut *self.lock(), CallState::Ended)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn token_of(object: &Object<'_>) -> Option<String> {
    token_in(to_server::meta_of(object).as_ref())
}

fn token_in(meta: Option<&Object<'_>>) -> Option<String> {
    meta?.value("progressToken").map(|token| token.get().to_owned())
}

impl Cancel for OpenCall {
    fn cancel(&self, notice: Option<&str>) {
        match self.end() {
            CallState::Open(open, _) => self.cancel_downstream(open.downstream, notice),
            // What the client was asked is withdrawn with it.
            CallState::Collecting(collecting) => drop(collecting),
            state @ (CallState::Parked(_) | CallState::Relayed(_)) => *self.lock() = state,
            CallState::Ended => {}
        }
    }
}

impl ParkedItem for Arc<OpenCall> {
    fn bytes(&self) -> usize {
        let waiting = match &*self.lock() {
            CallState::Parked(parked) => parked.bytes(),
            CallState::Relayed(relayed) => relayed.bytes(),
            CallState::Open(..) | CallState::Collecting(_) | CallState::Ended => 0,
        };
        self.request.params.len() + held(self.suspended.as_ref()) + waiting
    }
}

impl Caller for OpenCall {
    fn progressed(&self, line: &Bytes, params: &Payload<'_>) {
        let mut state = self.lock();
        if let CallState::Open(
            Open {
                token: Some(token),
                report,
                ..
            },
            _,
        ) = &mut *state
            && let Some(parts) = report.forwarded(token, line, params)
        {
            self.link().notify("notifications/progress", parts);
        }
    }

    fn replied(self: Arc<Self>, line: &Bytes, outcome: &ResponseOutcome<'_>) {
        match self.end() {
            CallState::Open(open, _) => self.deliver(open, line, outcome),
            CallState::Parked(mut parked) => {
                parked.end = Some(CallEnd::Replied(line.clone()));
                self.stay_parked(parked);
            }
            state => *self.lock() = state,
        }
    }

    fn failed(&self, failure: Failure) {
        match self.end() {
            CallState::Open(open, _) => self.fail(&open, failure),
            CallState::Parked(mut parked) => {
                parked.end = Some(CallEnd::Failed(failure));
                *self.lock() = CallState::Parked(parked);
            }
            state => *self.lock() = state,
        }
    }

    fn asked(self: Arc<Self>, inquiry: &Arc<Inquiry>) -> OfferResult {
        self.take_question(inquiry)
    }
}
