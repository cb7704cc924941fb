//! Reading, dispatching, answering: the loop between a client and the proxy.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::calling::Road;
use super::dialog::Dialogs;
use super::era::{self, Era, Fault, Opened};
use super::form::Style;
use super::offered::List;
use super::present::{self, Answer};
use super::promises::Promises;
use super::prompts::Prompt;
use super::requests::{NotTaken, Requests, UnderWay};
use super::{greeting, listing, offered, told};
use crate::config::Dialog;
use crate::protocol::{
    EnvelopeError, Json, Kind, Line, Message, Object, Outcome as Returned, Payload, id_in_head,
};
use crate::proxy::{Declared, Proxy, WorkflowId};
use crate::wire::{Frame, Outbox};

/// One client's conversation; clones share it.
#[derive(Clone)]
pub(super) struct Conversation(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) proxy: Proxy,
    pub(super) outbox: Outbox,
    /// The dialogs that are open at the client.
    pub(super) dialogs: Dialogs,
    /// When a Modern client was last shown a form, by workflow.
    pub(super) shown: Mutex<HashMap<WorkflowId, Instant>>,
    /// How forms are written for this client on a Legacy connection, if it can show any.
    forms: Mutex<Option<Style>>,
    tasks: TaskTracker,
    requests: Requests,
    initialized: AtomicBool,
    /// Whether the eager servers were started.
    eager: AtomicBool,
    /// The raw ids of `subscriptions/listen` requests, and the lists whose changes each wants to know.
    subscriptions: Mutex<Vec<(String, Vec<Kind>)>>,
    pub(super) promises: Promises,
}

impl Conversation {
    /// Opens a conversation whose answers go to `outbox`.
    pub(super) fn new(proxy: Proxy, outbox: Outbox, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared {
            proxy,
            outbox,
            dialogs: Dialogs::default(),
            shown: Mutex::default(),
            forms: Mutex::new(None),
            tasks,
            requests: Requests::default(),
            initialized: AtomicBool::new(false),
            eager: AtomicBool::new(false),
            subscriptions: Mutex::default(),
            promises: Promises::default(),
        }))
    }

    /// Returns the requests under way.
    pub(super) fn requests(&self) -> &Requests {
        &self.0.requests
    }

    /// Takes one line of the client; returns as soon as the next one can be read.
    pub(super) async fn receive(&self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { head } => {
                let fault = Fault::new(Fault::INVALID_REQUEST, "the line is longer than pml reads");
                return self
                    .answer(id_in_head(&head).as_deref().unwrap_or("null"), fault.into())
                    .await;
            }
        };
        match Message::parse(&line) {
            Ok(Message::Request { id, method, params }) => {
                self.request(&line, id, &method, params.as_ref()).await;
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, params.as_ref()),
            Ok(Message::Response { id, outcome }) => {
                let result = match outcome {
                    Returned::Result(raw) => serde_json::from_str(raw.get()).ok(),
                    Returned::Error(_) => None,
                };
                self.0.dialogs.answered(id.get(), result);
            }
            Err(EnvelopeError::Syntax(error)) => {
                let fault = Fault::new(Fault::PARSE, format!("Parse error: {error}"));
                self.answer("null", fault.into()).await;
            }
            Err(EnvelopeError::Shape { reason, id }) => {
                let fault = Fault::new(Fault::INVALID_REQUEST, format!("Invalid request: {reason}"));
                self.answer(id.as_deref().unwrap_or("null"), fault.into()).await;
            }
        }
    }

    async fn request(&self, line: &Bytes, id: Json<'_>, method: &str, params: Option<&Payload<'_>>) {
        let under_way = match self.0.requests.begin(id.get()) {
            Ok(under_way) => under_way,
            Err(NotTaken::Duplicate) => {
                let fault = Fault::new(Fault::INVALID_REQUEST, "a request with this id is under way");
                return self.answer(id.get(), fault.into()).await;
            }
            Err(NotTaken::TooMany) => {
                let fault = Fault::new(Fault::INVALID_REQUEST, "too many requests are under way");
                return self.answer(id.get(), fault.into()).await;
            }
        };
        let answer = match method {
            "initialize" => Ok(self.initialize(params)),
            "server/discover" => Ok(greeting::discover(&self.0.proxy.introduction())),
            "ping" => Ok(present::own_result(
                json!({}),
                self.era(params).unwrap_or(Era::Legacy),
            )),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                let wanted = self
                    .era(params)
                    .and_then(|era| Ok((List::read(method, params)?, era)));
                match wanted {
                    Ok((list, era)) => return self.list(under_way, list, era),
                    Err(fault) => Err(fault),
                }
            }
            "tools/call" => match self.era(params) {
                Ok(era) => return self.call(line, under_way, params, era),
                Err(fault) => Err(fault),
            },
            "prompts/get" => match self.era(params).and_then(|era| Ok((Prompt::read(params)?, era))) {
                Ok((prompt, era)) => return self.prompt(under_way, prompt, era),
                Err(fault) => Err(fault),
            },
            "subscriptions/listen" => match self.era(params) {
                Ok(Era::Modern) => return self.listen(under_way, params),
                Ok(Era::Legacy) => Err(Fault::new(Fault::METHOD_NOT_FOUND, "Method not found")),
                Err(fault) => Err(fault),
            },
            _ => Err(Fault::new(Fault::METHOD_NOT_FOUND, "Method not found")),
        };
        self.answer(&under_way.id, answer.unwrap_or_else(Answer::from))
            .await;
    }

    fn notified(&self, method: &str, params: Option<&Payload<'_>>) {
        if method == "notifications/cancelled"
            && let Some(params) = params.and_then(Payload::object)
            && let Some(id) = params.value("requestId")
        {
            self.0.requests.cancel(id.get());
        }
    }

    fn era(&self, params: Option<&Payload<'_>>) -> Result<Era, Fault> {
        let initialized = self.0.initialized.load(Ordering::Relaxed);
        era::of_request(
            params,
            if initialized {
                Opened::ByInitialize
            } else {
                Opened::Not
            },
        )
    }

    fn initialize(&self, params: Option<&Payload<'_>>) -> Answer {
        self.0.initialized.store(true, Ordering::Relaxed);
        let params = params.and_then(Payload::object);
        let requested = params.and_then(|params| params.text("protocolVersion"));
        let capabilities_of_client = params.and_then(|params| params.value("capabilities"));
        let elicits = capabilities_of_client.is_some_and(|raw| era::shows_forms(raw.get()));
        let version = era::negotiate(requested.as_deref());
        // Versions are dates, so they compare as text.
        let style = match version.as_str() {
            version if version >= ProtocolVersion::V_2025_11_25.as_str() => Some(Style::Titled),
            version if version >= ProtocolVersion::V_2025_06_18.as_str() => Some(Style::Plain),
            _ => None,
        };
        *self.forms() = style.filter(|_style| elicits);
        let client = params.and_then(|params| params.value("clientInfo"));
        self.0.proxy.declare(Declared::new(
            capabilities_of_client.map(Json::get),
            client.map(Json::get),
        ));
        greeting::initialize(requested.as_deref(), &self.0.proxy.introduction())
    }

    /// Answers a list in a task of its own: a running server may have to be asked for it.
    fn list(&self, under_way: UnderWay, list: List, era: Era) {
        let conversation = self.clone();
        self.0.tasks.spawn(async move {
            let proxy = &conversation.0.proxy;
            let cancelled = under_way.cancelled.clone();
            if cancelled
                .run_until_cancelled(proxy.refresh(list.kind()))
                .await
                .is_none()
            {
                return;
            }
            let answer = match list {
                List::Tools => conversation.tools(era),
                List::Prompts | List::Resources | List::Templates => list.answer(proxy, era),
            };
            conversation.answer(&under_way.id, answer).await;
            if list == List::Tools {
                conversation.start_eager();
            }
        });
    }

    fn tools(&self, era: Era) -> Answer {
        let listed = self.0.proxy.list();
        self.0.promises.renew(&listed);
        let own = told::definitions(self.0.proxy.ask_user().tools);
        let tools = listing::tools(&listed, &own, self.0.proxy.approvals().by);
        offered::page("tools", &tools, era)
    }

    /// The first list shows that this client means to stay: what it is likely to call is started behind its back.
    fn start_eager(&self) {
        if !self.0.eager.swap(true, Ordering::Relaxed) {
            self.0.proxy.start_eager();
        }
    }

    /// Answers a call in a task of its own: it may take as long as it likes.
    fn call(&self, line: &Bytes, under_way: UnderWay, params: Option<&Payload<'_>>, era: Era) {
        let params = params.map(|params| line.slice_ref(params.get().as_bytes()));
        let conversation = self.clone();
        self.0.tasks.spawn(async move {
            let cancelled = under_way.cancelled.clone();
            // Nothing more is sent for a cancelled call.
            let Some(answer) = cancelled
                .run_until_cancelled(Box::pin(conversation.called(params, era)))
                .await
            else {
                return;
            };
            conversation.answer(&under_way.id, answer).await;
        });
    }

    /// Answers a prompt in a task of its own, to its end: what a person said is recorded even if they look away.
    fn prompt(&self, under_way: UnderWay, prompt: Prompt, era: Era) {
        let conversation = self.clone();
        self.0.tasks.spawn(async move {
            let answer = prompt.run(&conversation.0.proxy, era).await;
            if !under_way.cancelled.is_cancelled() {
                conversation.answer(&under_way.id, answer).await;
            }
        });
    }

    /// Keeps a Modern subscription open until it is cancelled.
    fn listen(&self, under_way: UnderWay, params: Option<&Payload<'_>>) {
        let granted = offered::wishes(params);
        let conversation = self.clone();
        self.0.tasks.spawn(async move {
            let id = under_way.id.clone();
            let granting = granted.iter().map(|kind| (kind.wish().to_owned(), json!(true)));
            let acknowledged = json!({ "notifications": granting.collect::<serde_json::Map<_, _>>() });
            conversation
                .notify_subscriber("notifications/subscriptions/acknowledged", &id, acknowledged)
                .await;
            conversation.subscriptions().push((id.clone(), granted));
            under_way.cancelled.cancelled().await;
            conversation.subscriptions().retain(|(other, _)| *other != id);
        });
    }

    /// Tells how a person can be reached through the client itself.
    pub(super) fn road(&self, params: &Object<'_>, era: Era) -> Road {
        if self.0.proxy.approvals().dialog == Dialog::Never {
            return Road::None;
        }
        match era {
            Era::Modern if era::request_shows_forms(params) => Road::Dialog,
            Era::Legacy if self.forms().is_some() => Road::Elicitation,
            Era::Modern | Era::Legacy => Road::None,
        }
    }

    /// Returns how forms are written for this client.
    pub(super) fn forms(&self) -> std::sync::MutexGuard<'_, Option<Style>> {
        self.0.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscriptions(&self) -> std::sync::MutexGuard<'_, Vec<(String, Vec<Kind>)>> {
        self.0
            .subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the client when a list has changed.
    pub(super) async fn announce(self) {
        let mut changes = self.0.proxy.list_changes();
        let mut told = *changes.borrow_and_update();
        while changes.changed().await.is_ok() {
            let now = *changes.borrow_and_update();
            for kind in now.since(told) {
                let method = kind.list_changed();
                if self.0.initialized.load(Ordering::Relaxed) {
                    let message = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
                    let _ = self.0.outbox.send(message).await;
                }
                for id in self.subscribers(kind) {
                    self.notify_subscriber(method, &id, json!({})).await;
                }
            }
            told = now;
        }
    }

    fn subscribers(&self, kind: Kind) -> Vec<String> {
        let subscriptions = self.subscriptions();
        let wants = |subscription: &&(String, Vec<Kind>)| subscription.1.contains(&kind);
        subscriptions
            .iter()
            .filter(wants)
            .map(|(id, _)| id.clone())
            .collect()
    }

    async fn notify_subscriber(&self, method: &str, id: &str, mut params: Value) {
        let id: Value = serde_json::from_str(id).unwrap_or_default();
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let _ = self.0.outbox.send(message.to_string()).await;
    }

    pub(super) async fn answer(&self, id: &str, answer: Answer) {
        let (member, parts) = match answer {
            Answer::Result(parts) => ("result", parts),
            Answer::Error(parts) => ("error", parts),
        };
        let mut frame = Frame::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":"#));
        frame.extend(parts);
        frame.push("}");
        // A client that is gone is noticed by the reader.
        let _ = self.0.outbox.send(frame).await;
    }
}
