//! A request of the client that a dependency is answering: what comes back, and what is asked in between.
//!
//! It is data, not a task: the reader of the dependency's lines tells it what came, and it writes to the client at
//! once. What is asked in the middle of a call across the eras is in `era_bridge.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::protocol::{Object, Outcome, Payload};
use crate::proxy::{Arguments, Caller, Failure, Inquiry, Ready, Refusal, Route, Taken};
use crate::stdio::call::deadline::Deadline;
use crate::stdio::call::in_result::Relayed;
use crate::stdio::call::parked::State as Returned;
use crate::stdio::call::progress::Told;
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::conversation::Conversation;
use crate::stdio::era::{self, Era};
use crate::stdio::present::{self, Answer};
use crate::stdio::translation::impersonation;
use crate::stdio::translation::request::{self, Method, Request};
use crate::stdio::translation::to_client::{self, Passage};
use crate::stdio::translation::to_server::{self, Address, Input, STATE};

/// A request of the client that a dependency is answering.
pub(crate) struct OpenCall {
    pub(crate) conversation: Conversation,
    pub(crate) request: Request,
    pub(crate) route: Arc<Route>,
    pub(crate) suspended: Option<Arguments>,
    pub(crate) notes: Vec<String>,
    pub(crate) state: Mutex<State>,
}

/// Where a call stands.
pub(crate) enum State {
    /// The dependency works on it, and the client waits; only then its time runs.
    Open(
        Open,
        #[expect(dead_code, reason = "what counts is when it is dropped")] Deadline,
    ),
    /// The dependency waits for an answer that the client brings with its next request.
    Parked(Parked),
    /// The client is being asked for what the dependency requires.
    Collecting(Collecting),
    /// The client was told in a result what the dependency wants to know.
    Relayed(Relayed),
    /// It was answered, or nobody wants an answer any more.
    Ended,
}

/// A call that a client waits for.
pub(crate) struct Open {
    pub(crate) under_way: UnderWay,
    /// The raw token under which the client wants to hear of progress.
    pub(crate) token: Option<String>,
    pub(crate) told: Told,
    /// The id of the request on the dependency's side.
    pub(crate) downstream: u64,
    pub(crate) rounds: u32,
}

/// A call that waits for its client to come back.
pub(crate) struct Parked {
    /// Where it is kept.
    pub(crate) place: Uuid,
    pub(crate) inquiries: Vec<(String, Arc<Inquiry>)>,
    pub(crate) downstream: u64,
    pub(crate) rounds: u32,
    /// What came meanwhile.
    pub(crate) end: Option<End>,
}

impl Parked {
    /// Returns how many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        let reply = match &self.end {
            Some(End::Replied(line)) => line.len(),
            Some(End::Failed(_)) | None => 0,
        };
        self.asked() + reply
    }

    /// Returns how many bytes of questions it holds.
    pub(crate) fn asked(&self) -> usize {
        self.inquiries.iter().map(|(_, inquiry)| weight(inquiry)).sum()
    }
}

/// Returns how many bytes a question holds.
pub(crate) fn weight(inquiry: &Inquiry) -> usize {
    inquiry.id.len() + inquiry.method.len() + inquiry.params.as_ref().map_or(0, Bytes::len)
}

/// The end of a call that came while nobody waited for it.
pub(crate) enum End {
    Replied(Bytes),
    Failed(Failure),
}

/// A call whose client is being asked.
pub(crate) struct Collecting {
    pub(crate) open: Open,
    /// Our ids of the requests that the client has not answered yet.
    pub(crate) waiting: Vec<String>,
    /// What it answered, by the dependency's names.
    pub(crate) responses: Vec<(String, String)>,
    /// The dependency's own state, raw.
    pub(crate) state: Option<String>,
}

impl OpenCall {
    /// Sends a request on its way; from here on nobody needs to look after it.
    pub(crate) fn send(
        conversation: &Conversation,
        request: Request,
        object: &Object<'_>,
        ready: Ready,
        under_way: UnderWay,
        told: Told,
    ) {
        let Ready {
            route,
            suspended,
            notes,
        } = ready;
        let input = match object.text(STATE).as_deref().map(Returned::read) {
            Some(Returned::Owned(_, state)) => Some(Input {
                responses: None,
                state: state.map(|state| Value::from(state).to_string()),
            }),
            Some(Returned::Parked(_) | Returned::Own(_)) | None => None,
        };
        let meta = to_server::meta_of(object);
        let token = token_in(meta.as_ref());
        // Told before the call: a dependency that knows a level of the whole conversation only takes it in this order.
        if let (Era::Modern, Some(level)) = (request.era, meta.as_ref().and_then(era::log_level)) {
            conversation.hears_messages(level);
        }
        let call = Arc::new(Self {
            conversation: conversation.clone(),
            request,
            route,
            suspended,
            notes,
            state: Mutex::new(State::Ended),
        });
        under_way.answered_by(&call);
        let open = Open {
            under_way,
            token,
            told,
            downstream: 0,
            rounds: 0,
        };
        call.dispatch(open, object, meta.as_ref(), input.as_ref());
        call.route.session.settle();
    }

    /// Returns the same call on another way.
    pub(crate) fn along(&self, ready: Ready) -> Arc<Self> {
        let mut notes = self.notes.clone();
        notes.extend(ready.notes);
        Arc::new(Self {
            conversation: self.conversation.clone(),
            request: self.request.clone(),
            route: ready.route,
            suspended: self.suspended.clone(),
            notes,
            state: Mutex::new(State::Ended),
        })
    }

    pub(crate) fn dispatch(
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
            State::Open(open, _) => open.downstream = id,
            // The dependency was gone, and the client has been told so.
            _ => return,
        }
        let to = session.era();
        let envelope = match (self.request.era, to) {
            (Era::Legacy, Era::Modern) => self.conversation.envelope(),
            _ => String::new(),
        };
        let address = Address {
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
        session.send(id, self.request.method.name(), params);
    }

    /// Leaves the call to the dependency, which has its whole time for it: nobody else's time counts.
    pub(crate) fn open(self: &Arc<Self>, open: Open) {
        *self.lock() = State::Open(open, Deadline::of(self));
    }

    /// Ends the call because the client no longer wants it; `notice` are the raw parameters of its cancellation.
    pub(crate) fn cancel(&self, notice: Option<&str>) {
        match self.end() {
            State::Open(open, _) => self.cancel_downstream(open.downstream, notice),
            State::Collecting(collecting) => self.withdraw(&collecting.waiting),
            state @ (State::Parked(_) | State::Relayed(_)) => *self.lock() = state,
            State::Ended => {}
        }
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

    pub(crate) fn withdraw(&self, waiting: &[String]) {
        for id in waiting {
            if self.conversation.inquiries().take(id).is_some() {
                self.conversation.withdraw(id);
            }
        }
    }

    /// Ends the call because its dependency took too long.
    pub(crate) fn time_out(&self, after: Duration) {
        match self.end() {
            State::Open(open, _) => {
                let params = json!({ "requestId": open.downstream, "reason": "it took too long" });
                self.route.session.cancel(open.downstream, &params.to_string());
                let tool = self.route.tool.clone();
                self.answer(&open.under_way, self.refused(&Refusal::TimedOut { tool, after }));
            }
            state => *self.lock() = state,
        }
    }

    pub(crate) fn deliver(self: &Arc<Self>, open: Open, line: &Bytes, outcome: &Outcome<'_>) {
        let payload = match outcome {
            Outcome::Error(raw) => {
                let raw = line.slice_ref(raw.get().as_bytes());
                let error = impersonation::error(raw, self.route.tool.dependency());
                return self.answer(&open.under_way, Answer::Error(error));
            }
            Outcome::Result(payload) => payload,
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
            return match self.request.era {
                Era::Modern => self.pass_question(&open, line, payload),
                Era::Legacy => self.collect(open, payload),
            };
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
            Answer::Result(to_client::result(raw, payload, passage)),
        );
    }

    /// Takes note that the client watches what it asked for: only what a dependency accepted is watched.
    fn watched(&self) {
        let object = Object::parse(self.request.text());
        if let Some(Ok(name)) = object.map(|object| request::name(&self.request.method, &object)) {
            self.conversation.watch(&self.route, name);
        }
    }

    pub(crate) fn fail(&self, open: &Open, failure: Failure) {
        let dependency = self.route.tool.dependency().clone();
        let refusal = match failure {
            Failure::Unusable(reason) => Refusal::Unusable { dependency, reason },
            Failure::Ended(ended) => Refusal::Died { dependency, ended },
        };
        self.answer(&open.under_way, self.refused(&refusal));
    }

    pub(crate) fn refused(&self, refusal: &Refusal) -> Answer {
        present::refused(refusal, &self.request.method, self.request.era)
    }

    pub(crate) fn answer(&self, under_way: &UnderWay, answer: Answer) {
        self.conversation.respond(&under_way.id, answer);
    }

    /// Takes the state out, leaving it ended.
    pub(crate) fn end(&self) -> State {
        std::mem::replace(&mut *self.lock(), State::Ended)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn token_of(object: &Object<'_>) -> Option<String> {
    token_in(to_server::meta_of(object).as_ref())
}

fn token_in(meta: Option<&Object<'_>>) -> Option<String> {
    meta?.value("progressToken").map(|token| token.get().to_owned())
}

impl Caller for OpenCall {
    fn progressed(&self, line: &Bytes, params: &Payload<'_>) {
        let state = self.lock();
        if let State::Open(
            Open {
                token: Some(token),
                told,
                ..
            },
            _,
        ) = &*state
            && let Some(parts) = told.forwarded(token, line, params)
        {
            self.conversation.notify("notifications/progress", parts);
        }
    }

    fn replied(self: Arc<Self>, line: &Bytes, outcome: &Outcome<'_>) {
        match self.end() {
            State::Open(open, _) => self.deliver(open, line, outcome),
            State::Parked(mut parked) => {
                parked.end = Some(End::Replied(line.clone()));
                self.stay_parked(parked);
            }
            state => *self.lock() = state,
        }
    }

    fn failed(&self, failure: Failure) {
        match self.end() {
            State::Open(open, _) => self.fail(&open, failure),
            State::Parked(mut parked) => {
                parked.end = Some(End::Failed(failure));
                *self.lock() = State::Parked(parked);
            }
            state => *self.lock() = state,
        }
    }

    fn asked(self: Arc<Self>, inquiry: &Arc<Inquiry>) -> Taken {
        self.take_question(inquiry)
    }
}
