//! A scripted Messages API on the loopback interface: what a real agent is told instead of by a model.
//!
//! A request is a turn of the script if it offers tools; what an agent asks beside that (titles, topics, quota) gets a
//! harmless fixed reply and is not recorded. A turn is used up when it is asked for, also by a process that then dies.

mod history;
mod turn;
mod wire;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use history::{Request, ToolResult};
pub(crate) use turn::{Gate, Turn};

/// What is said once a script is used up.
pub(crate) const SCRIPT_END: &str = "SCRIPT-END";

/// An agent on a busy machine asks within this; reaching it is a failure.
const PATIENCE: Duration = Duration::from_mins(1);

/// A scripted API; it ends with the process.
pub(crate) struct MessagesApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The turns that are left, by a text of the first message of the user; an empty text occurs in every message.
    scripts: Vec<(String, VecDeque<Turn>)>,
    requests: Vec<Request>,
}

impl MessagesApi {
    /// Starts with one script for whoever asks.
    pub(crate) fn start(script: impl IntoIterator<Item = Turn>) -> Self {
        Self::serve(vec![(String::new(), script.into_iter().collect())])
    }

    /// Starts with scripts for several sessions at once: each has the first whose text occurs in its first user message.
    pub(crate) fn scripted_by_prompt<'a>(scripts: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Self {
        let scripts = scripts.into_iter();
        Self::serve(
            scripts
                .map(|(text, turns)| (text.to_owned(), turns.into()))
                .collect(),
        )
    }

    fn serve(scripts: Vec<(String, VecDeque<Turn>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        shared.state.lock().unwrap().scripts = scripts;
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || wire::answer(&stream, |body| shared.turn(body)));
            }
        });
        Self { address, shared }
    }

    /// What `ANTHROPIC_BASE_URL` is set to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Appends turns to the only script, or to the first one.
    pub(crate) fn then(&self, turns: impl IntoIterator<Item = Turn>) {
        self.shared.state.lock().unwrap().scripts[0].1.extend(turns);
    }

    /// The turns that were asked for so far, each with the whole conversation.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// The turns of the sessions in whose first user message this text occurs.
    pub(crate) fn requests_of(&self, text: &str) -> Vec<Request> {
        let requests = self.requests().into_iter();
        requests.filter(|request| request.began_with(text)).collect()
    }

    /// The conversation as it was last sent; empty where nothing was.
    pub(crate) fn last_messages(&self) -> Vec<Value> {
        let requests = self.requests();
        let last = requests.last();
        last.map_or_else(Vec::new, |request| request.messages().to_vec())
    }

    /// What the tools returned so far, as a model reads it; each call once, as it was first told.
    pub(crate) fn tool_results(&self) -> Vec<ToolResult> {
        let told = self.requests();
        once(
            told.iter().flat_map(Request::tool_results),
            |one: &ToolResult, other| one.tool_use_id == other.tool_use_id,
        )
    }

    /// What a user said so far, as a model reads it, with what the agent says in the user's name; each text once.
    pub(crate) fn user_texts(&self) -> Vec<String> {
        let told = self.requests();
        once(
            told.iter().flat_map(Request::user_texts),
            |one: &String, other| one == other,
        )
    }

    /// Waits until this many turns were asked for, and returns all that were.
    pub(crate) fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.wait_until(&format!("{count} requests"), |api| api.requests().len() >= count);
        self.requests()
    }

    /// Waits until something is true of what was asked; it is looked at again with every request.
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        loop {
            let seen = self.requests().len();
            if condition(self) {
                return;
            }
            let left = PATIENCE.saturating_sub(begin.elapsed());
            assert!(
                !left.is_zero(),
                "not within {PATIENCE:?}: {what}; last: {:#?}",
                self.last_messages()
            );
            let state = self.shared.state.lock().unwrap();
            let unchanged = |state: &mut State| state.requests.len() == seen;
            drop(
                self.shared
                    .changed
                    .wait_timeout_while(state, left, unchanged)
                    .unwrap(),
            );
        }
    }
}

impl Shared {
    /// Records a request and takes its turn; the number of the turn makes the ids of its calls unique.
    fn turn(&self, body: Value) -> (usize, Turn) {
        let request = Request::new(body);
        let mut state = self.state.lock().unwrap();
        let script = state
            .scripts
            .iter_mut()
            .find(|(text, _)| request.began_with(text));
        // What fails is asked again, in other words and nobody knows how often.
        let turn = script.and_then(|(_, turns)| match turns.front() {
            Some(failing @ Turn::Fails(..)) => Some(failing.clone()),
            _ => turns.pop_front(),
        });
        state.requests.push(request.clone());
        let number = state.requests.len();
        drop(state);
        self.changed.notify_all();
        // Outside of the lock: a turn that depends on the request may look at the API itself.
        let turn = turn.unwrap_or_else(|| Turn::text(SCRIPT_END));
        (number, turn.decided(&request))
    }
}

/// Keeps the first of those that are the same.
fn once<T>(all: impl Iterator<Item = T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.iter().any(|other| same(other, &one)) {
            kept.push(one);
        }
    }
    kept
}
