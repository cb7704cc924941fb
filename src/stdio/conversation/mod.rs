//! Reading, dispatching, answering: the loop between a client and the proxy.

pub(crate) mod ambiguity;
mod dispatch;
mod handshake;
mod malformed;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use rmcp::model::ProtocolVersion;
use serde_json::json;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use crate::config::Dialog;
use crate::protocol::{EnvelopeError, Json, Line, Message, Object, Payload, Remains, Shown, elements};
use crate::proxy::{Client, Declared, Proxy};
use crate::stdio::ask::dialog::Dialogs;
use crate::stdio::ask::form::Style;
use crate::stdio::ask::ladder::Road;
use crate::stdio::ask::open_forms::OpenForms;
use crate::stdio::call::open_call::OpenCall;
use crate::stdio::call::parked::{Granted, Parking};
use crate::stdio::client::in_flight::{NotTaken, Requests, UnderWay};
use crate::stdio::client::outstanding::Inquiries;
use crate::stdio::era::{self, Era, Fault, Opened};
use crate::stdio::lists::items;
use crate::stdio::lists::items::List;
use crate::stdio::lists::output_schemas::Promises;
use crate::stdio::lists::tools;
use crate::stdio::own_tools::prompts::{self, Prompt};
use crate::stdio::own_tools::question_text;
use crate::stdio::present::{self, Answer};
use crate::stdio::subscriptions::Subscriptions;
use crate::stdio::subscriptions::watched_resources::Watching;
use crate::stdio::translation::request::{Continuing, Method, Request};
use crate::wire::{Outbox, Part};

/// One client's conversation; clones share it.
#[derive(Clone)]
pub(crate) struct Conversation(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    /// Itself: dependencies know the client by a reference that does not keep it.
    me: Weak<Shared>,
    pub(crate) proxy: Proxy,
    pub(crate) outbox: Outbox,
    /// The requests that the client has to answer.
    pub(crate) inquiries: Inquiries,
    /// The dialogs that are open at the client.
    pub(crate) dialogs: Dialogs,
    /// The forms that a Modern client was given and has not brought back.
    pub(crate) forms: OpenForms,
    /// The calls that go on when a Modern client comes back.
    pub(crate) parked: Parking<Arc<OpenCall>>,
    /// What is known of the calls whose dependency waits for a Modern client to come back.
    pub(crate) continued: Parking<Granted>,
    /// What the client wants to hear of.
    pub(crate) watching: Watching,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) promises: Promises,
    /// What a Legacy client said when it opened the conversation.
    opening: Mutex<Option<Opening>>,
    tasks: TaskTracker,
    requests: Requests,
    /// Whether the eager servers were started.
    eager: AtomicBool,
}

/// What a Legacy client said when it opened the conversation.
#[derive(Debug, Clone)]
struct Opening {
    /// What it says of itself.
    declared: Declared,
    /// The version that was agreed on.
    version: ProtocolVersion,
    /// How forms are written for it, if it can show any.
    forms: Option<Style>,
}

impl Shared {
    pub(crate) fn conversation(&self) -> Option<Conversation> {
        self.me.upgrade().map(Conversation)
    }
}

impl Conversation {
    /// Opens a conversation whose answers go to `outbox`.
    pub(crate) fn new(proxy: Proxy, outbox: Outbox, tasks: TaskTracker) -> Self {
        let shared = Arc::new_cyclic(|me: &Weak<Shared>| Shared {
            me: me.clone(),
            proxy,
            outbox,
            inquiries: Inquiries::default(),
            dialogs: Dialogs::default(),
            forms: OpenForms::default(),
            parked: Parking::default(),
            continued: Parking::default(),
            watching: Watching::default(),
            subscriptions: Subscriptions::default(),
            promises: Promises::default(),
            opening: Mutex::default(),
            tasks,
            requests: Requests::default(),
            eager: AtomicBool::new(false),
        });
        let client: Weak<dyn Client> = shared.me.clone();
        shared.proxy.serve(client);
        Self(shared)
    }

    /// Returns the requests under way.
    pub(crate) fn requests(&self) -> &Requests {
        &self.0.requests
    }

    /// Returns the requests that the client has to answer.
    pub(crate) fn inquiries(&self) -> &Inquiries {
        &self.0.inquiries
    }

    /// Takes one line of the client, which came with the read `batch`.
    pub(crate) fn receive(&self, line: Line, batch: u64) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(remains) => {
                let fault = Fault::new(Fault::INVALID_REQUEST, "the line is longer than pml reads");
                return self.unread(remains, fault);
            }
        };
        match Message::parse(&line) {
            Ok(Message::Request { id, method, params }) => {
                self.request(&line, id, &method, params.as_ref(), batch);
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, params.as_ref()),
            Ok(Message::Response { id, outcome }) => self.answered(&line, id.get(), &outcome),
            Err(EnvelopeError::Syntax(error)) => {
                let fault = Fault::new(Fault::PARSE, format!("Parse error: {error}"));
                self.unread(Remains::of(&line), fault);
            }
            Err(EnvelopeError::Shape { reason }) => {
                if let Some(elements) = self.batch(&line) {
                    for element in elements {
                        self.receive(Line::Whole(element), batch);
                    }
                } else {
                    let fault = Fault::new(Fault::INVALID_REQUEST, format!("Invalid request: {reason}"));
                    self.unread(Remains::of(&line), fault);
                }
            }
        }
    }

    /// Returns the messages of a line that holds several, where the version of the conversation allows that.
    fn batch(&self, line: &Bytes) -> Option<Vec<Bytes>> {
        let version = self.opening().as_ref().map(|opening| opening.version.clone())?;
        // Versions are dates, so they compare as text.
        if version.as_str() >= ProtocolVersion::V_2025_06_18.as_str() {
            return None;
        }
        // A batch within a batch, or an empty one, is none.
        elements(line).filter(|elements| {
            !elements.is_empty() && elements.iter().all(|element| !element.starts_with(b"["))
        })
    }

    fn request(&self, line: &Bytes, id: Json<'_>, method: &str, params: Option<&Payload<'_>>, batch: u64) {
        let under_way = match self.0.requests.begin(id.get()) {
            Ok(under_way) => under_way,
            Err(NotTaken::Duplicate) => {
                let fault = Fault::new(Fault::INVALID_REQUEST, "a request with this id is under way");
                return self.respond(id.get(), fault.into());
            }
            Err(NotTaken::TooMany) => {
                let fault = Fault::new(Fault::INVALID_REQUEST, "too many requests are under way");
                return self.respond(id.get(), fault.into());
            }
        };
        let continuing = Continuing::of(params.and_then(Payload::object));
        if let Err(twin) = ambiguity::check(method, params.and_then(Payload::object), continuing) {
            return self.respond(&under_way.id, Fault::from(twin).into());
        }
        let answer = match (method, self.era(params)) {
            // Its own envelope counts, however the conversation was opened: it binds neither side.
            ("server/discover", _) => match era::of_request(params, Opened::Not) {
                Ok(_modern) => handshake::discover(&self.0.proxy.introduction()),
                Err(fault) => fault.into(),
            },
            // Before a conversation is opened these two carry no envelope; with one, they are no methods.
            ("initialize", Ok(Era::Legacy)) => self.initialize(params),
            ("initialize", Err(_)) if era::is_bare(params) => self.initialize(params),
            ("ping", Ok(Era::Legacy)) => present::own_result(json!({}), Era::Legacy),
            ("ping", Err(_)) if era::is_bare(params) => present::own_result(json!({}), Era::Legacy),
            (method, Ok(Era::Modern)) if Method::is_legacy_only(method) => Fault::unknown_method().into(),
            (method, Err(_)) if !Method::is_known(method) => Fault::unknown_method().into(),
            (_, Err(fault)) => fault.into(),
            ("tools/list" | "prompts/list" | "resources/list" | "resources/templates/list", Ok(era)) => {
                match List::read(method, params) {
                    Ok(list) => {
                        self.declare(params.and_then(Payload::object), era);
                        return self.list(under_way, list, era);
                    }
                    Err(fault) => fault.into(),
                }
            }
            ("prompts/get", Ok(era)) if prompts::is_own(params) => match Prompt::read(params) {
                Ok(prompt) => return self.prompt(under_way, prompt, era),
                Err(fault) => fault.into(),
            },
            ("logging/setLevel", Ok(Era::Legacy)) => self.set_level(params),
            ("subscriptions/listen", Ok(Era::Modern)) => return self.listen(under_way, params),
            (method, Ok(era)) => {
                let request = Request {
                    method: Method::of(method),
                    params: params.map_or_else(
                        || Bytes::from_static(b"{}"),
                        |params| line.slice_ref(params.get().as_bytes()),
                    ),
                    era,
                    continuing,
                    batch,
                };
                return self.carry(request, params.and_then(Payload::object), under_way);
            }
        };
        self.respond(&under_way.id, answer);
    }

    fn notified(&self, method: &str, params: Option<&Payload<'_>>) {
        if let Err(twin) = ambiguity::check(method, params.and_then(Payload::object), Continuing::No) {
            return tracing::warn!(method = %Shown::line(method), %twin, "a notification of the client is passed over");
        }
        match (method, params) {
            ("notifications/initialized", _) => {}
            ("notifications/cancelled", Some(params)) => {
                if let Some(id) = params.object().and_then(|object| object.value("requestId")) {
                    self.0.requests.cancel(id.get(), params.get());
                }
            }
            ("notifications/progress", Some(params)) => self.progressed(params),
            (method, params) => {
                let sessions = self.0.proxy.sessions();
                // What names no owner can be for everybody, or for the only one there is.
                let for_all = method == "notifications/roots/list_changed";
                if for_all || sessions.len() == 1 {
                    for session in sessions.iter().filter(|session| session.era() == Era::Legacy) {
                        session.notify(method, params.map(Payload::get));
                    }
                }
            }
        }
    }

    fn era(&self, params: Option<&Payload<'_>>) -> Result<Era, Fault> {
        let opened = if self.is_legacy() {
            Opened::ByInitialize
        } else {
            Opened::Not
        };
        era::of_request(params, opened)
    }

    fn initialize(&self, params: Option<&Payload<'_>>) -> Answer {
        let params = params.and_then(Payload::object);
        let raw = |name: &str| params.and_then(|params| params.value(name)).map(Json::get);
        let requested = params.and_then(|params| params.text("protocolVersion"));
        let capabilities = raw("capabilities").filter(|raw| Object::parse(raw).is_some());
        let capabilities = capabilities.unwrap_or("{}").to_owned();
        let version = era::negotiate(requested.as_deref());
        // Versions are dates, so they compare as text.
        let style = match version.as_str() {
            version if version >= ProtocolVersion::V_2025_11_25.as_str() => Some(Style::Titled),
            version if version >= ProtocolVersion::V_2025_06_18.as_str() => Some(Style::Plain),
            _ => None,
        };
        let opening = Opening {
            forms: style.filter(|_style| era::shows_forms(&capabilities)),
            declared: Declared::new(Some(&capabilities), raw("clientInfo")).speaking(version.as_str()),
            version,
        };
        self.0.proxy.declare(opening.declared.clone());
        *self.opening() = Some(opening);
        handshake::initialize(requested.as_deref(), &self.0.proxy.introduction())
    }

    /// Tells whether `initialize` has made this a Legacy conversation.
    pub(crate) fn is_legacy(&self) -> bool {
        self.opening().is_some()
    }

    /// Returns what a Legacy client declared.
    pub(crate) fn declared(&self) -> Declared {
        self.opening()
            .as_ref()
            .map_or_else(Declared::default, |opening| opening.declared.clone())
    }

    /// Returns how forms are written for this client.
    pub(crate) fn forms(&self) -> Option<Style> {
        self.opening().as_ref().and_then(|opening| opening.forms)
    }

    fn opening(&self) -> std::sync::MutexGuard<'_, Option<Opening>> {
        self.0.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a list, in a task of its own where a running server has to be asked for it.
    fn list(&self, under_way: UnderWay, list: List, era: Era) {
        if self.0.proxy.is_fresh(list.kind()) {
            return self.show_list(&under_way, list, era);
        }
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.spawn(async move {
            let refreshing = conversation.0.proxy.refresh(list.kind());
            if cancelled.run_until_cancelled(refreshing).await.is_some() {
                conversation.show_list(&under_way, list, era);
            }
        });
    }

    fn show_list(&self, under_way: &UnderWay, list: List, era: Era) {
        let answer = match list {
            List::Tools => self.tools(era),
            List::Prompts | List::Resources | List::Templates => list.answer(&self.0.proxy, era),
        };
        self.respond(&under_way.id, answer);
        if list == List::Tools {
            self.start_eager();
        }
    }

    fn tools(&self, era: Era) -> Answer {
        let listed = self.0.proxy.list();
        self.0.promises.renew(&listed);
        let own = question_text::definitions(self.0.proxy.ask_user().tools);
        let tools = tools::tools(&listed, &own, self.0.proxy.approvals().by);
        items::page("tools", tools, era)
    }

    /// The first list shows that this client means to stay: what it is likely to call is started behind its back.
    fn start_eager(&self) {
        if !self.0.eager.swap(true, Ordering::Relaxed) {
            self.0.proxy.start_eager();
        }
    }

    /// Answers a prompt in a task of its own, to its end: what a person said is recorded even if they look away.
    fn prompt(&self, under_way: UnderWay, prompt: Prompt, era: Era) {
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.spawn(async move {
            let answer = prompt.run(&conversation.0.proxy, era).await;
            if !cancelled.is_cancelled() {
                conversation.respond(&under_way.id, answer);
            }
        });
    }

    /// Runs something beside the conversation.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.0.tasks.spawn(work).abort_handle()
    }

    /// Tells how a person can be reached through the client itself.
    pub(crate) fn road(&self, params: &Object<'_>, era: Era) -> Road {
        if self.0.proxy.approvals().dialog == Dialog::Never {
            return Road::None;
        }
        match era {
            Era::Modern if era::request_shows_forms(params) => Road::Dialog,
            Era::Legacy if self.forms().is_some() => Road::Elicitation,
            Era::Modern | Era::Legacy => Road::None,
        }
    }

    /// Answers a request. Queued at once: whoever reads next waits for room first.
    pub(crate) fn respond(&self, id: &str, answer: Answer) {
        let (member, body): (&[u8], _) = match answer {
            Answer::Result(body) => (br#","result":"#, body),
            Answer::Error(body) => (br#","error":"#, body),
        };
        let head = [
            Part::Copy(br#"{"jsonrpc":"2.0","id":"#),
            Part::Copy(id.as_bytes()),
            Part::Copy(member),
        ];
        let body = body.into_iter().map(Part::Share);
        // A client that is gone is noticed by the reader.
        let _ = self
            .0
            .outbox
            .push(head.into_iter().chain(body).chain([Part::Copy(b"}")]));
    }
}
