//! Reading, dispatching, answering: the loop between a client and the proxy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rmcp::model::{
    DiscoverResult, Implementation, InitializeResult, PromptsCapability, ServerCapabilities,
    SubscriptionFilter, ToolsCapability,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::era::{self, Era, Fault, Opened};
use super::listing::{self, CONTINUE};
use super::present::{self, Answer};
use super::progress::Told;
use super::prompts::{self, Prompt};
use super::requests::{NotTaken, Requests, UnderWay};
use crate::protocol::continuation::{Continuation, MEMBER};
use crate::protocol::{EnvelopeError, Line, Message, Object, Splice, id_in_head};
use crate::proxy::{Carried, Carrier, Decided, Outcome, Progress, Provenance, Proxy, Refusal};
use crate::wire::{Frame, Outbox};

/// Progress that may wait for a slow client before its source waits too.
const PROGRESS_AHEAD: usize = 16;

/// What a model is told about pml once, at the start.
const INSTRUCTIONS: &str = "pml stands in front of other MCP servers. A tool named `server__connect` belongs to a \
    server that has not been started yet: call it to see that server's tools. A call may answer `approval_required`: \
    then show the person exactly what would run, let them decide, and continue as the result says. Never approve on \
    your own.";

/// One client's conversation; clones share it.
#[derive(Clone)]
pub(super) struct Conversation(Arc<Shared>);

struct Shared {
    proxy: Proxy,
    outbox: Outbox,
    tasks: TaskTracker,
    requests: Requests,
    initialized: AtomicBool,
    /// Whether the eager servers were started.
    eager: AtomicBool,
    /// The raw ids of `subscriptions/listen` requests that want to know of changed tools.
    subscriptions: Mutex<Vec<String>>,
}

impl Conversation {
    /// Opens a conversation whose answers go to `outbox`.
    pub(super) fn new(proxy: Proxy, outbox: Outbox, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared {
            proxy,
            outbox,
            tasks,
            requests: Requests::default(),
            initialized: AtomicBool::new(false),
            eager: AtomicBool::new(false),
            subscriptions: Mutex::default(),
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
            Ok(Message::Request { id, method, params }) => self.request(&line, id, &method, params).await,
            Ok(Message::Notification { method, params }) => self.notified(&method, params),
            // pml asks its client nothing.
            Ok(Message::Response { .. }) => {}
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

    async fn request(&self, line: &Bytes, id: &RawValue, method: &str, params: Option<&RawValue>) {
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
            "server/discover" => Ok(discover()),
            "ping" => Ok(present::own_result(
                json!({}),
                self.era(params).unwrap_or(Era::Legacy),
            )),
            "tools/list" => {
                let listed = self.era(params).map(|era| self.list(era));
                self.answer(&under_way.id, listed.unwrap_or_else(Answer::from))
                    .await;
                return self.start_eager();
            }
            "tools/call" => match self.era(params) {
                Ok(era) => return self.call(line, under_way, params, era),
                Err(fault) => Err(fault),
            },
            "prompts/list" => self.era(params).map(prompts::list),
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

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        if method == "notifications/cancelled"
            && let Some(params) = params.and_then(|params| Object::parse(params.get()))
            && let Some(id) = params.value("requestId")
        {
            self.0.requests.cancel(id.get());
        }
    }

    fn era(&self, params: Option<&RawValue>) -> Result<Era, Fault> {
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

    fn initialize(&self, params: Option<&RawValue>) -> Answer {
        self.0.initialized.store(true, Ordering::Relaxed);
        let params = params.and_then(|params| Object::parse(params.get()));
        let requested = params.and_then(|params| params.text("protocolVersion"));
        let mut result = InitializeResult::new(capabilities()).with_instructions(INSTRUCTIONS);
        result.protocol_version = era::negotiate(requested.as_deref());
        result.server_info = implementation();
        present::own_result(json!(result), Era::Legacy)
    }

    fn list(&self, era: Era) -> Answer {
        let tools = listing::tools(&self.0.proxy.list());
        Answer::Result(vec![Bytes::from(match era {
            Era::Legacy => format!(r#"{{"tools":{tools}}}"#),
            // Rules may change at any moment: nobody should keep the list.
            Era::Modern => {
                format!(r#"{{"resultType":"complete","tools":{tools},"ttlMs":0,"cacheScope":"private"}}"#)
            }
        })])
    }

    /// The first list shows that this client means to stay: what it is likely to call is started behind its back.
    fn start_eager(&self) {
        if !self.0.eager.swap(true, Ordering::Relaxed) {
            self.0.proxy.start_eager();
        }
    }

    /// Answers a call in a task of its own: it may take as long as it likes.
    fn call(&self, line: &Bytes, under_way: UnderWay, params: Option<&RawValue>, era: Era) {
        let params = params.map(|params| line.slice_ref(params.get().as_bytes()));
        let conversation = self.clone();
        self.0.tasks.spawn(async move {
            let cancelled = under_way.cancelled.clone();
            // Nothing more is sent for a cancelled call.
            let Some(answer) = cancelled
                .run_until_cancelled(conversation.called(params, era))
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

    async fn called(&self, params: Option<Bytes>, era: Era) -> Answer {
        let invalid = |reason: &str| Answer::from(Fault::new(Fault::INVALID_PARAMS, reason));
        let Some(params) = params else {
            return invalid("`params` is missing");
        };
        let text = String::from_utf8_lossy(&params);
        let Some(object) = Object::parse(&text) else {
            return invalid("`params` is not an object");
        };
        let Some(name) = object.text("name") else {
            return invalid("`params.name` is not a string");
        };
        let arguments = object.value("arguments").filter(|raw| raw.get() != "null");
        let arguments = match arguments.map(|raw| Object::parse(raw.get())) {
            Some(None) => return invalid("`params.arguments` is not an object"),
            Some(Some(arguments)) => Some(arguments),
            None => None,
        };
        let meta = object.value("_meta").and_then(|meta| Object::parse(meta.get()));
        let token = meta.and_then(|meta| meta.value("progressToken").map(|token| token.get().to_owned()));
        let outgoing = outgoing(&params, &object, arguments.as_ref(), era);
        let continuation = match (name.as_ref(), &arguments) {
            (CONTINUE, _) => {
                let raw = object.value("arguments").map_or(Ok(None), Continuation::parse);
                match raw {
                    Ok(None) => return invalid("`params.arguments` is missing"),
                    continuation => continuation,
                }
            }
            (_, Some(arguments)) => arguments.value(MEMBER).map_or(Ok(None), Continuation::parse),
            (_, None) => Ok(None),
        };
        let (progress, progressed) = mpsc::channel(PROGRESS_AHEAD);
        let carried = Carried {
            params: outgoing,
            progress: token.is_some().then_some(progress),
        };
        let outcome = async {
            match continuation {
                Err(error) => Outcome::Refused(Refusal::Continuation(error)),
                Ok(None) => self.0.proxy.call(&name, carried).await,
                Ok(Some(continuation)) => {
                    let carrier = if name == CONTINUE {
                        Carrier::AnyTool
                    } else {
                        Carrier::Tool(&name)
                    };
                    let decided = Decided::Now(continuation.decision, Provenance::Continuation);
                    self.0
                        .proxy
                        .resume(carrier, &continuation.workflow_id, decided, carried)
                        .await
                }
            }
        };
        let outcome = self.with_progress(outcome, token.as_deref(), progressed).await;
        present::outcome(outcome, era)
    }

    /// Passes progress on while a call runs, in order and before its answer.
    async fn with_progress(
        &self,
        outcome: impl Future<Output = Outcome>,
        token: Option<&str>,
        mut progressed: mpsc::Receiver<Progress>,
    ) -> Outcome {
        let Some(token) = token else { return outcome.await };
        let mut told = Told::default();
        tokio::pin!(outcome);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(progress) = progressed.recv() => self.tell(&mut told, token, progress).await,
                outcome = &mut outcome => break outcome,
            }
        };
        while let Ok(progress) = progressed.try_recv() {
            self.tell(&mut told, token, progress).await;
        }
        outcome
    }

    async fn tell(&self, told: &mut Told, token: &str, progress: Progress) {
        if let Some(params) = told.params(token, progress) {
            let mut frame = Frame::from(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":"#);
            frame.extend(params);
            frame.push("}");
            let _ = self.0.outbox.send(frame).await;
        }
    }

    /// Keeps a Modern subscription open until it is cancelled.
    fn listen(&self, under_way: UnderWay, params: Option<&RawValue>) {
        let filter: SubscriptionFilter = params
            .and_then(|params| Object::parse(params.get()))
            .and_then(|params| serde_json::from_str(params.value("notifications")?.get()).ok())
            .unwrap_or_default();
        let mut granted = SubscriptionFilter::default();
        granted.tools_list_changed = filter.tools_list_changed.filter(|wanted| *wanted);
        let conversation = self.clone();
        self.0.tasks.spawn(async move {
            let id = under_way.id.clone();
            let acknowledged = json!({ "notifications": granted });
            conversation
                .notify_subscriber("notifications/subscriptions/acknowledged", &id, acknowledged)
                .await;
            if granted.tools_list_changed.is_some() {
                conversation.subscriptions().push(id.clone());
            }
            under_way.cancelled.cancelled().await;
            conversation.subscriptions().retain(|other| *other != id);
        });
    }

    fn subscriptions(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0
            .subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the client when the list of tools has changed.
    pub(super) async fn announce(self) {
        let mut changes = self.0.proxy.list_changes();
        while changes.changed().await.is_ok() {
            if self.0.initialized.load(Ordering::Relaxed) {
                let _ = self
                    .0
                    .outbox
                    .send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
                    .await;
            }
            let subscribers = self.subscriptions().clone();
            for id in subscribers {
                self.notify_subscriber("notifications/tools/list_changed", &id, json!({}))
                    .await;
            }
        }
    }

    async fn notify_subscriber(&self, method: &str, id: &str, mut params: Value) {
        let id: Value = serde_json::from_str(id).unwrap_or_default();
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let _ = self.0.outbox.send(message.to_string()).await;
    }

    async fn answer(&self, id: &str, answer: Answer) {
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

/// The parameters as a dependency may see them: without the Modern envelope, without a null continuation.
fn outgoing(params: &Bytes, object: &Object<'_>, arguments: Option<&Object<'_>>, era: Era) -> Bytes {
    let mut splice = Splice::new(params.clone());
    let mut changed = false;
    if era == Era::Modern
        && let Some((place, meta)) = object.place("_meta").zip(object.value("_meta"))
        && let Some(meta) = era::without_envelope(meta.get())
    {
        splice.replace(place, meta);
        changed = true;
    }
    if let Some((place, arguments)) = object.place("arguments").zip(arguments)
        && arguments.value(MEMBER).is_some_and(|raw| raw.get() == "null")
    {
        splice.replace(place, arguments.without(&[MEMBER]));
        changed = true;
    }
    if changed {
        Bytes::from(splice.into_text())
    } else {
        params.clone()
    }
}

fn discover() -> Answer {
    let mut result = DiscoverResult::new(era::versions(), capabilities());
    result.instructions = Some(INSTRUCTIONS.to_owned());
    let mut result = json!(result);
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": implementation() });
    present::own_result(result, Era::Modern)
}

fn capabilities() -> ServerCapabilities {
    let mut tools = ToolsCapability::default();
    tools.list_changed = Some(true);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(tools);
    capabilities.prompts = Some(PromptsCapability::default());
    capabilities
}

fn implementation() -> Implementation {
    Implementation::new("pml", env!("CARGO_PKG_VERSION")).with_title("pml")
}
