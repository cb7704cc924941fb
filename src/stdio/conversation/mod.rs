//! The conversation with one client: reads its lines, and answers or dispatches each request.

mod ambiguity;
pub(super) mod client_project;
mod dispatch;
mod handshake;
mod malformed;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use rmcp::model::ProtocolVersion;
use serde_json::json;

use crate::protocol::{EnvelopeError, Json, Line, Message, Payload, Remains, Shown, elements};
use crate::proxy::{Client, Proxy};
use crate::stdio::ask::ladder::Ladder;
use crate::stdio::call::Calls;
use crate::stdio::call::server_requests::ServerRequests;
use crate::stdio::client::answer::{ResponseBody, own_result};
use crate::stdio::client::in_flight::{NotTaken, Requests, UnderWay};
use crate::stdio::client::link::Link;
use crate::stdio::era::{self, Era, Opened, RpcError};
use crate::stdio::lists::items::{self, List};
use crate::stdio::lists::output_schemas::OutputSchemas;
use crate::stdio::lists::tool_list::ToolList;
use crate::stdio::own_tools;
use crate::stdio::own_tools::prompts::{self, Prompt};
use crate::stdio::subscriptions::Subscriptions;
use crate::stdio::translation::request::{Continuing, Method, Request};

/// One client's conversation; clones share it.
#[derive(Clone)]
pub(super) struct Conversation(Arc<Shared>);

struct Shared {
    proxy: Proxy,
    link: Link,
    requests: Requests,
    ladder: Arc<Ladder>,
    subscriptions: Subscriptions,
    calls: Calls,
    output_schemas: Arc<OutputSchemas>,
    tool_list: ToolList,
    /// What servers say to the client goes here; they know it by a reference that does not keep it.
    _server_requests: Arc<ServerRequests>,
    /// Whether what is started behind the client's back was.
    started: AtomicBool,
}

impl Conversation {
    /// Begins the conversation with the client at the other end of `link`.
    pub(super) fn new(proxy: Proxy, link: Link) -> Self {
        let subscriptions = Subscriptions::new(proxy.clone(), link.clone());
        let output_schemas = Arc::<OutputSchemas>::default();
        let ladder = Arc::new(Ladder::new(proxy.clone(), link.clone()));
        let server_requests = Arc::new(ServerRequests {
            ladder: Arc::clone(&ladder),
            link: link.clone(),
            subscriptions: subscriptions.clone(),
        });
        let client: Arc<dyn Client> = Arc::clone(&server_requests) as Arc<dyn Client>;
        proxy.serve(Arc::downgrade(&client));
        Self(Arc::new(Shared {
            requests: Requests::default(),
            calls: Calls::new(
                proxy.clone(),
                Arc::clone(&ladder),
                link.clone(),
                subscriptions.clone(),
                Arc::clone(&output_schemas),
            ),
            ladder,
            subscriptions,
            output_schemas,
            tool_list: ToolList::default(),
            _server_requests: server_requests,
            proxy,
            link,
            started: AtomicBool::new(false),
        }))
    }

    /// Returns the requests under way.
    pub(super) fn requests(&self) -> &Requests {
        &self.0.requests
    }

    /// Returns what the client wants to hear of.
    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.0.subscriptions
    }

    /// Takes one line of the client, which came with the read `batch`.
    pub(super) fn receive(&self, line: Line, batch: u64) {
        let client = &self.0.link;
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(remains) => {
                let fault = RpcError::new(RpcError::INVALID_REQUEST, "the line is longer than pml reads");
                return malformed::take(client, remains, fault);
            }
        };
        match Message::parse(&line) {
            Ok(Message::Request { id, method, params }) => {
                self.request(&line, id, &method, params.as_ref(), batch);
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, params.as_ref()),
            Ok(Message::Response { id, outcome }) => client.answered(&line, id.get(), &outcome),
            Err(EnvelopeError::Syntax(error)) => {
                let fault = RpcError::new(RpcError::PARSE, format!("Parse error: {error}"));
                malformed::take(client, Remains::of(&line), fault);
            }
            Err(EnvelopeError::Shape { reason }) => {
                if let Some(elements) = self.batch(&line) {
                    for element in elements {
                        self.receive(Line::Whole(element), batch);
                    }
                } else {
                    let fault =
                        RpcError::new(RpcError::INVALID_REQUEST, format!("Invalid request: {reason}"));
                    malformed::take(client, Remains::of(&line), fault);
                }
            }
        }
    }

    /// Returns the messages of a line that holds several, where the version of the conversation allows that.
    fn batch(&self, line: &Bytes) -> Option<Vec<Bytes>> {
        // Versions are dates, so they compare as text.
        if self.0.link.version()?.as_str() >= ProtocolVersion::V_2025_06_18.as_str() {
            return None;
        }
        // A batch within a batch, or an empty one, is none.
        elements(line).filter(|elements| {
            !elements.is_empty() && elements.iter().all(|element| !element.starts_with(b"["))
        })
    }

    fn request(&self, line: &Bytes, id: Json<'_>, method: &str, params: Option<&Payload<'_>>, batch: u64) {
        let Shared {
            proxy,
            link,
            requests,
            subscriptions,
            ..
        } = &*self.0;
        let under_way = match requests.begin(id.get()) {
            Ok(under_way) => under_way,
            Err(NotTaken::Duplicate) => {
                let fault = RpcError::new(RpcError::INVALID_REQUEST, "a request with this id is under way");
                return link.respond(id.get(), fault.into());
            }
            Err(NotTaken::TooMany) => {
                let fault = RpcError::new(RpcError::INVALID_REQUEST, "too many requests are under way");
                return link.respond(id.get(), fault.into());
            }
        };
        let continuing = Continuing::of(params.and_then(Payload::object));
        if let Err(twin) = ambiguity::check(method, params.and_then(Payload::object), continuing) {
            return link.respond(&under_way.id, RpcError::from(twin).into());
        }
        let answer = match (method, self.era(params)) {
            // Its own envelope counts, however the conversation was opened: it binds neither side.
            ("server/discover", _) => match era::of_request(params, Opened::Not) {
                Ok(_modern) => handshake::discover(&proxy.introduction()),
                Err(fault) => fault.into(),
            },
            // Before a conversation is opened these two carry no envelope; with one, they are no methods.
            ("initialize", Ok(Era::Legacy)) => handshake::open(proxy, link, params, &proxy.introduction()),
            ("initialize", Err(_)) if era::is_bare(params) => {
                handshake::open(proxy, link, params, &proxy.introduction())
            }
            ("ping", Ok(Era::Legacy)) => own_result(json!({}), Era::Legacy),
            ("ping", Err(_)) if era::is_bare(params) => own_result(json!({}), Era::Legacy),
            (method, Ok(Era::Modern)) if Method::is_legacy_only(method) => RpcError::unknown_method().into(),
            (method, Err(_)) if !Method::is_known(method) => RpcError::unknown_method().into(),
            (_, Err(fault)) => fault.into(),
            ("tools/list" | "prompts/list" | "resources/list" | "resources/templates/list", Ok(era)) => {
                match List::read(method, params) {
                    Ok(list) => {
                        dispatch::declare(proxy, params.and_then(Payload::object), era);
                        return self.list(under_way, list, era);
                    }
                    Err(fault) => fault.into(),
                }
            }
            ("prompts/get", Ok(era)) if prompts::is_own(params) => match Prompt::read(params) {
                Ok(prompt) => return self.prompt(under_way, prompt, era),
                Err(fault) => fault.into(),
            },
            ("logging/setLevel", Ok(Era::Legacy)) => subscriptions.set_level(params),
            ("subscriptions/listen", Ok(Era::Modern)) => return subscriptions.listen(under_way, params),
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
                return self.dispatch(request, params.and_then(Payload::object), under_way);
            }
        };
        link.respond(&under_way.id, answer);
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
            ("notifications/progress", Some(params)) => self.0.link.progressed(params),
            (method, params) => {
                let sessions = self.0.proxy.sessions();
                // What names no owner can be for all servers, or for the only one there is.
                let for_all = method == "notifications/roots/list_changed";
                if for_all || sessions.len() == 1 {
                    for session in sessions.iter().filter(|session| session.era() == Era::Legacy) {
                        session.notify(method, params.map(Payload::get));
                    }
                }
            }
        }
    }

    fn era(&self, params: Option<&Payload<'_>>) -> Result<Era, RpcError> {
        let opened = if self.0.link.is_legacy() {
            Opened::ByInitialize
        } else {
            Opened::Not
        };
        era::of_request(params, opened)
    }

    /// Answers a list, in a task of its own where a running server has to be asked for it.
    fn list(&self, under_way: UnderWay, list: List, era: Era) {
        if self.0.proxy.is_fresh(list.kind()) {
            return self.show_list(&under_way, list, era);
        }
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.0.link.spawn(async move {
            let refreshing = conversation.0.proxy.refresh(list.kind());
            if cancelled.run_until_cancelled(refreshing).await.is_some() {
                conversation.show_list(&under_way, list, era);
            }
        });
    }

    fn show_list(&self, under_way: &UnderWay, list: List, era: Era) {
        let answer = match list {
            List::Tools => self.tools(era),
            List::Prompts => list.answer(&self.0.proxy, &prompts::definitions(), era),
            List::Resources | List::Templates => list.answer(&self.0.proxy, &[], era),
        };
        self.0.link.respond(&under_way.id, answer);
        if list == List::Tools {
            self.start_in_background();
        }
    }

    fn tools(&self, era: Era) -> ResponseBody {
        let Shared {
            proxy,
            output_schemas,
            tool_list,
            ..
        } = &*self.0;
        let own = || own_tools::definitions(proxy.ask_user().tools, proxy.approvals().by);
        items::page("tools", tool_list.text(proxy, output_schemas, era, own), era)
    }

    /// The first list shows that this client means to stay: what it is likely to call is started or learned behind its back.
    fn start_in_background(&self) {
        if !self.0.started.swap(true, Ordering::Relaxed) {
            self.0.proxy.start_in_background();
        }
    }

    /// Answers a prompt in a task of its own, to its end: what a person said is recorded even if they look away.
    fn prompt(&self, under_way: UnderWay, prompt: Prompt, era: Era) {
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.0.link.spawn(async move {
            let answer = prompt.run(&conversation.0.proxy, era).await;
            if !cancelled.is_cancelled() {
                conversation.0.link.respond(&under_way.id, answer);
            }
        });
    }
}
