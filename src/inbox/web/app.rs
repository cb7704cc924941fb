//! What every request of the server shares.

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, header};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::hosts::Hosts;
use super::limits::Limits;
use super::stream_questions::StreamQuestions;
use super::streams::StreamTokens;
use crate::host::Runs;
use crate::protocol::hook::{HookReply, HookRequest};
use crate::proxy::Desk;

/// How many event streams may be open: each looks at the store whenever an ask changes.
const STREAMS: usize = 32;

/// How many messages to runs are read at once: each may hold 22 MB of images.
const MESSAGES: usize = 4;

/// Hands a request of a service to its channel, which answers at once.
pub type WhatsappHook = Arc<dyn Fn(HookRequest) -> HookReply + Send + Sync>;

/// The state of the server.
pub(super) struct App {
    /// Where answers are recorded.
    pub(super) desk: Desk,
    /// Who is let in.
    pub(super) access: Access,
    /// The names of this server.
    pub(super) hosts: Hosts,
    /// How often requests may come.
    pub(super) limits: Limits,
    /// The streams of agents that may ask.
    pub(super) tokens: StreamTokens,
    /// What those streams asked last.
    pub(super) questions: StreamQuestions,
    /// The runs of the user.
    pub(super) runs: Runs,
    /// One permit for each message to a run that is being read.
    pub(super) messages: Semaphore,
    /// One permit for each event stream.
    pub(super) streams: Arc<Semaphore>,
    /// What takes the requests of WhatsApp, once there is a channel.
    pub(super) whatsapp: OnceLock<WhatsappHook>,
    /// Ends the event streams with the server.
    pub(super) stopping: CancellationToken,
    /// The cookie of this server.
    pub(super) cookie: CookieName,
}

/// The state, as handlers are given it.
pub(super) type SharedApp = Arc<App>;

/// The name of the cookie and how it is set. Browsers share cookies among the ports of a machine, so it names the port.
#[derive(Debug)]
pub(super) struct CookieName {
    name: String,
    transport: Transport,
}

/// What carries the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// HTTP, which does not leave this machine.
    Loopback,
    /// HTTPS, by the user's own proxy.
    Tls,
}

impl CookieName {
    /// Names the cookie of a port.
    pub(super) fn new(port: u16, transport: Transport) -> Self {
        Self {
            name: format!("pml-{port}"),
            transport,
        }
    }

    /// Writes the header that sets the cookie.
    pub(super) fn set(&self, value: &str) -> String {
        let secure = match self.transport {
            Transport::Loopback => "",
            Transport::Tls => "; Secure",
        };
        format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", self.name)
    }

    /// Returns the value of the cookie in a request.
    pub(super) fn value<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(header::COOKIE).iter();
        let cookies = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'));
        let mut pairs = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.name).map(|(_, value)| value)
    }
}

impl App {
    /// Counts the streams that may be open.
    pub(super) fn stream_places() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(STREAMS))
    }

    /// Counts the messages that may be read at once.
    pub(super) fn message_places() -> Semaphore {
        Semaphore::new(MESSAGES)
    }
}
