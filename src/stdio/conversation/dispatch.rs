//! Carrying a request to whoever answers it.
//!
//! Along a known way it goes at once, in the reader's own turn: no task, no question. Everything else is decided in
//! a task of its own, which ends when the request is on its way or answered.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::protocol::continuation::{Continuation, MEMBER};
use crate::protocol::{Json, Object};
use crate::proxy::{Carried, GoingOn, Outcome, Patience, Progress, Ready, Refusal, Route};
use crate::stdio::ask::ladder::{Calling, Reached, Road};
use crate::stdio::call::open_call::OpenCall;
use crate::stdio::call::parked::{Found, Granted, State as Returned};
use crate::stdio::call::progress::Told;
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::conversation::Conversation;
use crate::stdio::era::{self, Era, Fault};
use crate::stdio::lists::output_schemas::Expected;
use crate::stdio::lists::tools::CONTINUE;
use crate::stdio::present;
use crate::stdio::subscriptions::watched_resources::Left;
use crate::stdio::translation::request::{self, Continuing, Method, Request};
use crate::stdio::translation::to_server::{RESPONSES, STATE, meta_of};

/// A dependency with this much unread input does not read: further calls are refused rather than kept.
const STUFFED: usize = 64 << 20;

/// Progress that may wait for a slow client before its source waits too.
const PROGRESS_AHEAD: usize = 16;

impl Conversation {
    /// Carries a request to whoever answers it: along a known way at once, else in a task of its own.
    pub(crate) fn carry(&self, request: Request, object: Option<&Object<'_>>, under_way: UnderWay) {
        if let Some(object) = object {
            if request.method == Method::Call
                && let Some(name) = plain_name(object, request.continuing)
                && let Some(route) = self.0.proxy.known_route(&name, request.batch)
            {
                let ready = Ready {
                    route,
                    suspended: None,
                    notes: Vec::new(),
                };
                return self.forward(request, object, ready, under_way, Told::default());
            }
            match object.text(STATE).as_deref().map(Returned::read) {
                Some(Returned::Parked(id)) => return self.came_back(id, &request, object, under_way),
                Some(Returned::Owned(id, _)) => {
                    if let Some(ready) = self.let_through(id, &request) {
                        return self.forward(request, object, ready, under_way, Told::default());
                    }
                }
                Some(Returned::Own(_)) | None => {}
            }
        }
        let under_way = match object.filter(|_object| request.method == Method::Call) {
            Some(object) if object.text("name").is_some_and(|name| name == CONTINUE) => {
                match self.relayed(under_way, object) {
                    Some(under_way) => under_way,
                    None => return,
                }
            }
            _ => under_way,
        };
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.spawn(async move {
            // Nothing more is sent for a cancelled call.
            let called = Box::pin(conversation.called(&request));
            let Some((reached, told)) = cancelled.run_until_cancelled(called).await else {
                return;
            };
            conversation.conclude(request, reached, under_way, told);
        });
    }

    fn conclude(&self, request: Request, reached: Result<Reached, Fault>, under_way: UnderWay, told: Told) {
        let text = request.params.clone();
        let object = std::str::from_utf8(&text).ok().and_then(Object::parse);
        let answer = match (reached, object) {
            (Ok(Reached::Outcome(Outcome::Ready(ready))), Some(object)) => {
                return self.forward(request, &object, ready, under_way, told);
            }
            (Ok(Reached::Outcome(outcome)), object) => {
                let name = object.and_then(|object| request::name(&request.method, &object).ok());
                let expected = self.0.promises.expected(&name.unwrap_or_default());
                present::outcome(outcome, expected, &request)
            }
            (Ok(Reached::Own(result)), _) => present::own_result(result, request.era),
            (Ok(Reached::InputRequired(form)), _) => self.input_required(&request, form),
            (Err(fault), _) => fault.into(),
        };
        self.respond(&under_way.id, answer);
    }

    /// Sends a request that may run to its dependency.
    fn forward(&self, request: Request, object: &Object<'_>, ready: Ready, under_way: UnderWay, told: Told) {
        let waiting = ready.route.session.queued();
        if waiting > STUFFED {
            let dependency = ready.route.tool.dependency().clone();
            let refusal = Refusal::Stuffed { dependency, waiting };
            let answer = present::refused(&refusal, &request.method, request.era);
            return self.respond(&under_way.id, answer);
        }
        if let Method::Subscribe | Method::Unsubscribe = request.method
            && let Ok(name) = request::name(&request.method, object)
        {
            if request.method == Method::Unsubscribe && self.forget(&ready.route, &name) == Left::Watched {
                ready.route.session.settle();
                return self.respond(&under_way.id, present::own_result(json!({}), request.era));
            }
            if ready.route.session.era() == Era::Modern {
                return self.subscribe_anew(request, name, ready.route, under_way);
            }
        }
        OpenCall::send(self, request, object, ready, under_way, told);
    }

    /// Subscribes at a Modern dependency to what the client watches there, with this request.
    fn subscribe_anew(&self, request: Request, name: String, route: Arc<Route>, under_way: UnderWay) {
        if request.method == Method::Subscribe {
            self.watch(&route, name.clone());
        }
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.spawn(async move {
            let listening = conversation.listen_at(&route.session);
            if cancelled.run_until_cancelled(listening).await.is_some() {
                conversation.respond(&under_way.id, present::own_result(json!({}), request.era));
            } else if request.method == Method::Subscribe {
                drop(under_way);
                conversation.take_back(&route, &name);
                conversation.listen_at(&route.session).await;
            }
        });
    }

    /// Returns what the client expects of the result of a call.
    pub(crate) fn expected(&self, call: &OpenCall) -> Expected {
        let object = Object::parse(call.request.text());
        let name = object.and_then(|object| request::name(&call.request.method, &object).ok());
        self.0.promises.expected(&name.unwrap_or_default())
    }

    /// Goes on with a parked call.
    fn came_back(&self, id: Uuid, request: &Request, object: &Object<'_>, under_way: UnderWay) {
        let found = self
            .0
            .parked
            .take(id, Instant::now(), |call| call.is_same(request));
        let refusal = match found {
            Found::Wanted(call) => match self.0.proxy.going_on(&call.route) {
                Ok(_) => return call.go_on(object, under_way),
                Err(refusal) => {
                    call.abandon();
                    refusal
                }
            },
            Found::Another => Refusal::OtherCall,
            Found::Nothing => Refusal::Expired,
        };
        let answer = present::refused(&refusal, &request.method, request.era);
        self.respond(&under_way.id, answer);
    }

    /// Lets a call through that was let through before its dependency asked something, unless a rule forbids it now.
    fn let_through(&self, id: Uuid, request: &Request) -> Option<Ready> {
        let same = |granted: &Granted| granted.covers(request);
        let Found::Wanted(granted) = self.0.continued.take(id, Instant::now(), same) else {
            return None;
        };
        let going_on = self.0.proxy.going_on(granted.route());
        matches!(going_on, Ok(GoingOn::AsBefore)).then(|| granted.ready())
    }

    /// Takes note of what a Modern request says of its client; what is started for it is told so.
    pub(crate) fn declare(&self, params: Option<&Object<'_>>, era: Era) {
        if let (Era::Modern, Some(params)) = (era, params) {
            self.0.proxy.declare(era::declared(params));
        }
    }

    /// Finds out what becomes of a request.
    async fn called(&self, request: &Request) -> (Result<Reached, Fault>, Told) {
        let mut told = Told::default();
        // Most of it is the asking of a person, which few calls need.
        let reached = Box::pin(self.called_telling(request, &mut told)).await;
        (reached, told)
    }

    async fn called_telling(&self, request: &Request, told: &mut Told) -> Result<Reached, Fault> {
        let invalid = |reason: &str| Fault::new(Fault::INVALID_PARAMS, reason);
        let object = Object::parse(request.text()).ok_or_else(|| invalid("`params` is not an object"))?;
        let name = request::name(&request.method, &object)?;
        self.declare(Some(&object), request.era);
        if request.era == Era::Modern {
            // So is the level of what it logs, from its first word on.
            if let Some(level) = meta_of(&object).as_ref().and_then(era::log_level) {
                self.hears_messages(level);
            }
        }
        let arguments = match object.value("arguments").filter(|raw| raw.get() != "null") {
            Some(raw) if request.method == Method::Call => {
                Some(Object::parse(raw.get()).ok_or_else(|| invalid("`params.arguments` is not an object"))?)
            }
            Some(_) | None => None,
        };
        let meta = object.value("_meta").and_then(|meta| Object::parse(meta.get()));
        let token = meta.and_then(|meta| meta.value("progressToken").map(|token| token.get().to_owned()));
        let (progress, progressed) = mpsc::channel(PROGRESS_AHEAD);
        let road = if request.method.may_ask() {
            self.road(&object, request.era)
        } else {
            Road::None
        };
        let calling = Calling {
            name: &name,
            wanted: request::wanted(&request.method, &object, &name),
            carried: Carried {
                params: request.params.clone(),
                progress: token.is_some().then_some(progress),
                patience: match road {
                    Road::Elicitation => Patience::InTheCall,
                    Road::Dialog => Patience::ForARetry,
                    Road::None => Patience::None,
                },
            },
            road,
            retry: self.retry(request, &object),
        };
        let reached = async {
            if request.method != Method::Call {
                let reached = self.reach(&calling, Ok(None)).await;
                if let (Method::Read, Reached::Outcome(Outcome::Unknown(_))) = (&request.method, &reached)
                    && let Some(ready) = self.guess(&name).await
                {
                    return Reached::Outcome(Outcome::Ready(ready));
                }
                return reached;
            }
            if let Some(reached) = self.own_tool(&calling, object.value("arguments")).await {
                return reached;
            }
            let continuation = match arguments.as_ref().and_then(|arguments| arguments.value(MEMBER)) {
                _ if name == CONTINUE => object.value("arguments").map_or(Ok(None), Continuation::parse),
                Some(raw) => Continuation::parse(raw),
                None => Ok(None),
            };
            Box::pin(self.reach(&calling, continuation)).await
        };
        Ok(self
            .with_progress(reached, token.as_deref(), progressed, told)
            .await)
    }

    /// Tells of the steps of a call while it is decided about, in order and before its answer.
    async fn with_progress<T>(
        &self,
        outcome: impl Future<Output = T>,
        token: Option<&str>,
        mut progressed: mpsc::Receiver<Progress>,
        told: &mut Told,
    ) -> T {
        let Some(token) = token else { return outcome.await };
        tokio::pin!(outcome);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(progress) = progressed.recv() => self.tell_step(told, token, &progress),
                outcome = &mut outcome => break outcome,
            }
        };
        while let Ok(progress) = progressed.try_recv() {
            self.tell_step(told, token, &progress);
        }
        outcome
    }

    fn tell_step(&self, told: &mut Told, token: &str, Progress(text): &Progress) {
        self.notify("notifications/progress", [told.step(token, text).into()]);
    }
}

/// Returns the name of the tool, where a call is nothing but a call: no continuation, no answer to a question.
fn plain_name<'a>(object: &Object<'a>, continuing: Continuing) -> Option<Cow<'a, str>> {
    let arguments = object.value("arguments").map_or("{}", Json::get);
    let plain = object.value(STATE).is_none()
        && object.value(RESPONSES).is_none()
        && arguments.starts_with('{')
        && continuing == Continuing::No;
    object.text("name").filter(|_name| plain)
}
