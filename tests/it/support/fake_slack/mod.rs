//! A Slack on the loopback interface: Web API and Socket Mode, which the official Bolt takes for Slack.
//!
//! It keeps the messages it was sent, refuses what breaks a documented limit, and presses buttons as Slack does: with the
//! value that stands in the message, and with everything that is chosen in it.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "the tests of the channel and those of the binary share it, and need different parts of it"
)]

mod envelopes;
mod limits;
mod server;

use std::collections::{BTreeMap, HashMap};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

pub(crate) use envelopes::Filled;
pub(crate) use limits::complaints;

/// The token of the app that it accepts.
pub(crate) const APP_TOKEN: &str = "xapp-1-canary-of-the-app";

/// The token of the bot that it accepts.
pub(crate) const BOT_TOKEN: &str = "xoxb-1-canary-of-the-bot";

/// A request of the Web API.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: String,
    pub body: Value,
}

/// What it does to the next requests of a method.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// An answer with `ok: false`, with more members.
    Word(&'static str, Value),
    /// A status, with a body.
    Status(u16, &'static str),
    /// Status 429 with `Retry-After`.
    TooFast(u64),
    /// A status of success, with this body.
    Body(&'static str),
    /// No answer at all, and the end of the connection.
    HangUp,
}

/// What a socket is told to do.
pub(super) enum Order {
    Send(String),
    /// Ends without a word.
    Break,
    /// Reads no more and says nothing.
    Freeze,
}

#[derive(Default)]
pub(super) struct State {
    pub requests: Vec<Request>,
    pub troubles: HashMap<String, Vec<Trouble>>,
    pub messages: BTreeMap<String, Value>,
    pub forms: Vec<Value>,
    pub broken_limits: Vec<String>,
    /// Everything that happened to sockets, in order: `open 1`, `hello 1`, `ack e1 on 1`, `ping on 1`, `close 1`.
    pub log: Vec<String>,
    pub sockets: BTreeMap<u64, Sender<Order>>,
    pub opened: u64,
    pub envelopes: u64,
    pub messages_sent: u64,
    pub greets: Option<u64>,
    pub silent: bool,
}

/// A Slack; it ends with the process.
#[derive(Clone)]
pub(crate) struct FakeSlack {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl FakeSlack {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&served);
                std::thread::spawn(move || server::serve(stream, address, &state));
            }
        });
        Self { address, state }
    }

    /// The address of its Web API.
    pub(crate) fn api_url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    /// The bodies of all requests of a method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let of_method = state.requests.iter().filter(|request| request.method == method);
        of_method.map(|request| request.body.clone()).collect()
    }

    /// What happened to its sockets.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }

    /// Whether something happened to its sockets.
    pub(crate) fn happened(&self, what: &str) -> bool {
        self.state.lock().unwrap().log.iter().any(|line| line == what)
    }

    /// The messages that stand, each as it is now.
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.state.lock().unwrap().messages.values().cloned().collect()
    }

    /// A message as it is now.
    pub(crate) fn message(&self, ts: &str) -> Value {
        self.state.lock().unwrap().messages[ts].clone()
    }

    /// The limits that were broken by what it was sent.
    pub(crate) fn broken_limits(&self) -> Vec<String> {
        self.state.lock().unwrap().broken_limits.clone()
    }

    /// The sockets that are open.
    pub(crate) fn sockets(&self) -> Vec<u64> {
        self.state.lock().unwrap().sockets.keys().copied().collect()
    }

    /// Answers the next request of a method with trouble.
    pub(crate) fn trouble(&self, method: &str, trouble: Trouble) {
        let mut state = self.state.lock().unwrap();
        state.troubles.entry(method.to_owned()).or_default().push(trouble);
    }

    /// Greets new sockets with a number of connections.
    pub(crate) fn greet_with(&self, connections: u64) {
        self.state.lock().unwrap().greets = Some(connections);
    }

    /// Does not greet new sockets.
    pub(crate) fn fall_silent(&self, silent: bool) {
        self.state.lock().unwrap().silent = silent;
    }

    /// Presses a button of a message as a person; what is filled in is in the message. Returns the name of the envelope.
    pub(crate) fn press(&self, person: &str, ts: &str, action: &str, filled: &Filled) -> String {
        let message = self.message(ts);
        self.envelope("interactive", &envelopes::press(&message, person, action, filled))
    }

    /// Presses a button of a message as it stood once, which is what a person sees who has not reloaded.
    pub(crate) fn press_old(&self, person: &str, message: &Value, action: &str, filled: &Filled) -> String {
        self.envelope("interactive", &envelopes::press(message, person, action, filled))
    }

    /// Toggles a choice without sending it.
    pub(crate) fn toggle(&self, person: &str, ts: &str) -> String {
        let message = self.message(ts);
        self.envelope("interactive", &envelopes::toggle(&message, person))
    }

    /// Sends the form that was opened last as a person.
    pub(crate) fn submit(&self, person: &str, text: &str) -> String {
        let form = self.state.lock().unwrap().forms.last().cloned().unwrap();
        self.envelope("interactive", &envelopes::submission(&form, person, text))
    }

    /// Writes to the app as a person.
    pub(crate) fn write(&self, person: &str, text: &str, thread: Option<&str>) -> String {
        let number = self.state.lock().unwrap().envelopes;
        self.envelope("events_api", &envelopes::message(person, text, thread, number))
    }

    /// Sends an envelope to one of its sockets, the oldest; returns its name.
    pub(crate) fn envelope(&self, kind: &str, payload: &Value) -> String {
        let mut state = self.state.lock().unwrap();
        state.envelopes += 1;
        let id = format!("e{}", state.envelopes);
        let envelope = json!({
            "envelope_id": id, "type": kind, "accepts_response_payload": kind == "interactive", "payload": payload,
        });
        let (_, socket) = state.sockets.first_key_value().expect("no socket is open");
        let _ = socket.send(Order::Send(envelope.to_string()));
        id
    }

    /// Sends any text to every socket.
    pub(crate) fn say(&self, text: &str) {
        self.order(|| Order::Send(text.to_owned()));
    }

    /// Announces the end of every connection.
    pub(crate) fn disconnect(&self, reason: &str) {
        self.say(&json!({ "type": "disconnect", "reason": reason, "debug_info": {} }).to_string());
    }

    /// Ends every connection without a word.
    pub(crate) fn break_sockets(&self) {
        self.order(|| Order::Break);
    }

    /// Says nothing more on every connection that is open, and does not answer pings.
    pub(crate) fn freeze(&self) {
        self.order(|| Order::Freeze);
    }

    fn order(&self, order: impl Fn() -> Order) {
        for socket in self.state.lock().unwrap().sockets.values() {
            let _ = socket.send(order());
        }
    }
}

/// The conversation with a person.
pub(super) fn conversation(person: &str) -> String {
    format!("D{person}")
}

/// The person of a conversation.
pub(super) fn person(conversation: &str) -> &str {
    conversation.strip_prefix('D').unwrap_or(conversation)
}
