//! Dispatches a request of the client: on a known route at once, otherwise in a task of its own.
//!
//! On a known route it goes in the reader's own turn: no task, no question. Everything else is decided in a task, which
//! ends when the request is on its way or answered.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;

use super::{Conversation, Shared};
use crate::protocol::continuation::{Continuation, ContinuationError, MEMBER};
use crate::protocol::own_tool::CONTINUE;
use crate::protocol::{Json, Object};
use crate::proxy::{
    Carrier, ClientRequest, Outcome, Progress, Proxy, ReadyRequest, Refusal, Route, WaitMode,
};
use crate::stdio::ask::approval::{Approver, Call};
use crate::stdio::ask::ladder::{ClientRoad, Requester, Resolution};
use crate::stdio::ask::retry::Retry;
use crate::stdio::call::OpenCall;
use crate::stdio::call::progress::ProgressReport;
use crate::stdio::client::answer::own_result;
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::era::{self, Era, RpcError};
use crate::stdio::lists::resource_lookup;
use crate::stdio::subscriptions::WatchStatus;
use crate::stdio::translation::request::{self, Continuing, Method, Request};
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::to_server::{RESPONSES, STATE, meta_of};
use crate::stdio::{own_tools, present};

/// A server with this much unread input does not read: further calls are refused rather than kept.
const STUFFED: usize = 64 << 20;

/// Progress that may wait for a slow client before its source waits too.
const PROGRESS_AHEAD: usize = 16;

impl Conversation {
    /// Dispatches a request: on a known route at once, else in a task of its own.
    pub(super) fn dispatch(&self, request: Request, object: Option<&Object<'_>>, under_way: UnderWay) {
        let Shared {
            proxy, link, calls, ..
        } = &*self.0;
        if let Some(object) = object {
            if request.method == Method::Call
                && let Some(name) = plain_name(object, request.continuing)
                && let Some(route) = proxy.known_route(&name, request.batch)
            {
                let ready = ReadyRequest {
                    route,
                    suspended: None,
                    notes: Vec::new(),
                };
                return self.forward(request, object, ready, under_way, ProgressReport::default());
            }
            if let Some(retry) = Retry::read(object) {
                let of_server = !matches!(retry.state, RequestState::Own(_));
                if of_server && !proxy.knows_approvals() {
                    return self.dispatch_by_new_approvals(request, under_way);
                }
                match retry.state {
                    RequestState::Parked(id) => {
                        return calls.go_on(id, &retry, &request, object, under_way);
                    }
                    RequestState::OfServer(id, _) => {
                        if let Some(ready) = calls.let_through(id, &request) {
                            return self.forward(
                                request,
                                object,
                                ready,
                                under_way,
                                ProgressReport::default(),
                            );
                        }
                    }
                    RequestState::Own(_) => {}
                }
            }
        }
        let under_way = match object.filter(|_object| request.method == Method::Call) {
            Some(object) if object.text("name").is_some_and(|name| name == CONTINUE) => {
                match calls.relayed(under_way, object) {
                    Some(under_way) => under_way,
                    None => return,
                }
            }
            _ => under_way,
        };
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        link.spawn(async move {
            let mut report = ProgressReport::default();
            // Nothing more is sent for a cancelled call. Boxed: few calls need the asking of a person.
            let resolving = Box::pin(async {
                conversation.0.proxy.read_configuration().await;
                conversation.resolve(&request, &mut report).await
            });
            let Some(resolution) = cancelled.run_until_cancelled(resolving).await else {
                return;
            };
            conversation.conclude(request, resolution, under_way, report);
        });
    }

    /// Dispatches a request once the approvals are read again: one changed since, in this or another process.
    fn dispatch_by_new_approvals(&self, request: Request, under_way: UnderWay) {
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.0.link.spawn(async move {
            let reading = conversation.0.proxy.read_approvals();
            match cancelled.run_until_cancelled(reading).await {
                Some(Ok(())) => {
                    let text = request.params.clone();
                    let object = std::str::from_utf8(&text).ok().and_then(Object::parse);
                    conversation.dispatch(request, object.as_ref(), under_way);
                }
                Some(Err(refusal)) => {
                    let answer = present::refused(&refusal, &request.method, request.era);
                    conversation.0.link.respond(&under_way.id, answer);
                }
                None => {}
            }
        });
    }

    fn conclude(
        &self,
        request: Request,
        resolution: Result<Resolution, RpcError>,
        under_way: UnderWay,
        report: ProgressReport,
    ) {
        let text = request.params.clone();
        let object = std::str::from_utf8(&text).ok().and_then(Object::parse);
        let answer = match (resolution, object) {
            (Ok(Resolution::Outcome(Outcome::Ready(ready))), Some(object)) => {
                return self.forward(request, &object, ready, under_way, report);
            }
            (Ok(Resolution::Outcome(outcome)), object) => {
                let name = object.and_then(|object| request::name(&request.method, &object).ok());
                let expected = self.0.output_schemas.expected(&name.unwrap_or_default());
                present::outcome(outcome, expected, &request)
            }
            (Ok(Resolution::OwnResult(result)), _) => own_result(result, request.era),
            (Ok(Resolution::Form(form)), _) => self.0.ladder.input_required(&request, form),
            (Err(fault), _) => fault.into(),
        };
        self.0.link.respond(&under_way.id, answer);
    }

    /// Sends a request that may run to its server.
    fn forward(
        &self,
        request: Request,
        object: &Object<'_>,
        ready: ReadyRequest,
        under_way: UnderWay,
        report: ProgressReport,
    ) {
        let Shared {
            link,
            calls,
            subscriptions,
            ..
        } = &*self.0;
        let waiting = ready.route.session.queued();
        if waiting > STUFFED {
            let dependency = ready.route.tool.dependency().clone();
            let refusal = Refusal::Stuffed { dependency, waiting };
            let answer = present::refused(&refusal, &request.method, request.era);
            return link.respond(&under_way.id, answer);
        }
        if let Method::Subscribe | Method::Unsubscribe = request.method
            && let Ok(name) = request::name(&request.method, object)
        {
            let unsubscribes = request.method == Method::Unsubscribe;
            if unsubscribes && subscriptions.forget(&ready.route, &name) == WatchStatus::Watched {
                ready.route.session.settle();
                return link.respond(&under_way.id, own_result(json!({}), request.era));
            }
            if ready.route.session.era() == Era::Modern {
                return self.subscribe_anew(request, name, ready.route, under_way);
            }
        }
        OpenCall::send(calls, request, object, ready, under_way, report);
    }

    /// Subscribes at a Modern server to what the client watches there, with this request.
    fn subscribe_anew(&self, request: Request, name: String, route: Arc<Route>, under_way: UnderWay) {
        let Shared {
            link, subscriptions, ..
        } = &*self.0;
        if request.method == Method::Subscribe {
            subscriptions.watch(&route, name.clone());
        }
        let (link, subscriptions) = (link.clone(), subscriptions.clone());
        let cancelled = under_way.cancelled();
        self.0.link.spawn(async move {
            let subscribing = subscriptions.subscribe_at(&route.session);
            if cancelled.run_until_cancelled(subscribing).await.is_some() {
                link.respond(&under_way.id, own_result(json!({}), request.era));
            } else if request.method == Method::Subscribe {
                drop(under_way);
                subscriptions.take_back(&route, &name);
                subscriptions.subscribe_at(&route.session).await;
            }
        });
    }

    /// Finds out what becomes of a request, reporting the steps of that.
    async fn resolve(&self, request: &Request, report: &mut ProgressReport) -> Result<Resolution, RpcError> {
        let Shared {
            proxy,
            ladder,
            subscriptions,
            ..
        } = &*self.0;
        let invalid = |reason: &str| RpcError::new(RpcError::INVALID_PARAMS, reason);
        let object = Object::parse(request.text()).ok_or_else(|| invalid("`params` is not an object"))?;
        let name = request::name(&request.method, &object)?;
        declare(proxy, Some(&object), request.era);
        let meta = meta_of(&object);
        if request.era == Era::Modern {
            // What is started for it logs at its level from its first word on.
            if let Some(level) = meta.as_ref().and_then(era::log_level) {
                subscriptions.ask_for_messages(level);
            }
        }
        let arguments = match object.value("arguments").filter(|raw| raw.get() != "null") {
            Some(raw) if request.method == Method::Call => {
                Some(Object::parse(raw.get()).ok_or_else(|| invalid("`params.arguments` is not an object"))?)
            }
            Some(_) | None => None,
        };
        let token = meta.and_then(|meta| meta.value("progressToken").map(|token| token.get().to_owned()));
        let (progress, progressed) = mpsc::channel(PROGRESS_AHEAD);
        let progress = token.is_some().then_some(progress);
        let road = if request.method.may_ask() {
            ladder.road(&object, request.era)
        } else {
            ClientRoad::None
        };
        let requester = Requester {
            road,
            retry: ladder.returned_form(request, &object),
            progress: progress.clone(),
        };
        let call = Call {
            requested: request::requested_item(&request.method, &object, &name),
            client_request: ClientRequest {
                params: request.params.clone(),
                progress,
                patience: match road {
                    ClientRoad::Elicitation => WaitMode::InTheCall,
                    ClientRoad::Dialog => WaitMode::ForARetry,
                    ClientRoad::None => WaitMode::None,
                },
            },
            requester: &requester,
        };
        let resolving = async {
            if request.method != Method::Call {
                return Box::pin(self.resolve_other(request, &name, &call)).await;
            }
            let raw = object.value("arguments");
            if let Some(own) = Box::pin(own_tools::run(&name, raw, &requester, proxy, ladder)).await {
                return own;
            }
            let approver = Approver { proxy, ladder };
            match continuation(&name, raw, arguments.as_ref()) {
                Some(continuation) => {
                    let on = if name == CONTINUE {
                        Carrier::Continue
                    } else {
                        Carrier::Request(call.requested)
                    };
                    Resolution::Outcome(Box::pin(approver.resume(on, continuation, &call)).await)
                }
                None => Box::pin(approver.resolve(&call)).await,
            }
        };
        Ok(self
            .with_progress(resolving, token.as_deref(), progressed, report)
            .await)
    }

    /// Finds out what becomes of a request other than a tool call.
    async fn resolve_other(&self, request: &Request, name: &str, call: &Call<'_>) -> Resolution {
        let Shared {
            proxy,
            ladder,
            subscriptions,
            ..
        } = &*self.0;
        let resolution = Approver { proxy, ladder }.resolve(call).await;
        if let (Method::Read, Resolution::Outcome(Outcome::Unknown(_))) = (&request.method, &resolution)
            && let Some(ready) = resource_lookup::find(proxy, name, &subscriptions.envelope()).await
        {
            return Resolution::Outcome(Outcome::Ready(ready));
        }
        resolution
    }

    /// Reports the steps of a call while it is decided about, in order and before its answer.
    async fn with_progress<T>(
        &self,
        outcome: impl Future<Output = T>,
        token: Option<&str>,
        mut progressed: mpsc::Receiver<Progress>,
        report: &mut ProgressReport,
    ) -> T {
        let Some(token) = token else { return outcome.await };
        let mut send = |Progress(text): &Progress| {
            let params = report.step(token, text).map(Into::into);
            if params.is_some() {
                self.0.link.notify("notifications/progress", params);
            }
        };
        tokio::pin!(outcome);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(progress) = progressed.recv() => send(&progress),
                outcome = &mut outcome => break outcome,
            }
        };
        while let Ok(progress) = progressed.try_recv() {
            send(&progress);
        }
        outcome
    }
}

/// Takes note of what a Modern request says of its client; what is started for it is told so.
pub(super) fn declare(proxy: &Proxy, params: Option<&Object<'_>>, era: Era) {
    if let (Era::Modern, Some(params)) = (era, params) {
        proxy.declare(era::declared(params));
    }
}

/// Reads the continuation that a call brings; `None` where it brings none.
fn continuation(
    name: &str,
    raw: Option<Json<'_>>,
    arguments: Option<&Object<'_>>,
) -> Option<Result<Continuation, ContinuationError>> {
    if name == CONTINUE {
        let found = raw.map_or(Ok(None), Continuation::parse);
        let missing = ContinuationError::Missing {
            member: "workflow_id",
        };
        return Some(found.and_then(|found| found.ok_or(missing)));
    }
    Continuation::parse(arguments?.value(MEMBER)?).transpose()
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
