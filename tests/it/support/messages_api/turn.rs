//! What the model of a script says in one turn.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use super::{PATIENCE, Request};

/// One turn of a script: what is said, called and waited for, in this order.
#[derive(Clone)]
pub(crate) enum Turn {
    Steps(Vec<Step>),
    /// It depends on what the agent sent.
    Depends(Arc<dyn Fn(&Request) -> Turn + Send + Sync>),
    /// The API fails with this status and message.
    Fails(u16, String),
}

/// A part of a turn; what is said without a call in between is one block of text.
#[derive(Clone)]
pub(crate) enum Step {
    /// One delta of a text.
    Say(String),
    Call(String, Value),
    Wait(Gate),
}

impl Turn {
    /// Says a text in one piece.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Steps(vec![Step::Say(text.into())])
    }

    /// Says a text in pieces of this many characters.
    pub(crate) fn streamed(text: &str, characters: usize) -> Self {
        let all: Vec<char> = text.chars().collect();
        let pieces = all.chunks(characters);
        Self::Steps(pieces.map(|piece| Step::Say(piece.iter().collect())).collect())
    }

    /// Calls a tool; a text before it is `Turn::text(…).and_tool(…)`.
    pub(crate) fn tool(name: &str, input: Value) -> Self {
        Self::Steps(Vec::new()).and_tool(name, input)
    }

    /// Waits first until the test releases it.
    pub(crate) fn held(gate: &Gate) -> Self {
        Self::Steps(vec![Step::Wait(gate.clone())])
    }

    /// Decides what to say by what the agent sent.
    pub(crate) fn respond(decide: impl Fn(&Request) -> Self + Send + Sync + 'static) -> Self {
        Self::Depends(Arc::new(decide))
    }

    /// Lets the API fail from here on.
    pub(crate) fn fails(status: u16, message: &str) -> Self {
        Self::Fails(status, message.to_owned())
    }

    /// Then says more of the text, or another text.
    pub(crate) fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Step::Say(text.into()))
    }

    /// Then calls a tool, beside those that it calls already.
    pub(crate) fn and_tool(self, name: &str, input: Value) -> Self {
        self.and(Step::Call(name.to_owned(), input))
    }

    /// Then waits until the test releases it; what was said so far is on its way.
    pub(crate) fn and_wait(self, gate: &Gate) -> Self {
        self.and(Step::Wait(gate.clone()))
    }

    fn and(self, step: Step) -> Self {
        match self {
            Self::Steps(mut steps) => {
                steps.push(step);
                Self::Steps(steps)
            }
            Self::Depends(_) | Self::Fails(..) => panic!("only what says or calls something can go on"),
        }
    }

    /// What is said now that the request is known.
    pub(super) fn decided(self, request: &Request) -> Self {
        match self {
            Self::Depends(decide) => decide(request).decided(request),
            said => said,
        }
    }
}

/// Holds a turn until the test lets it go on.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    shared: Arc<(Mutex<Held>, Condvar)>,
}

#[derive(Default)]
struct Held {
    reached: bool,
    released: bool,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Lets go on what waits here, now and later.
    pub(crate) fn release(&self) {
        self.change(|held| held.released = true);
    }

    /// Waits until a turn is held here: all before it was sent.
    pub(crate) fn wait_until_reached(&self) {
        let (held, changed) = &*self.shared;
        let held = held.lock().unwrap();
        let waited = changed.wait_timeout_while(held, PATIENCE, |held| !held.reached);
        assert!(
            !waited.unwrap().1.timed_out(),
            "no turn got to the gate within {PATIENCE:?}"
        );
    }

    /// Waits as the API: for ever, since the process that asked may be held up too.
    pub(super) fn pass(&self) {
        self.change(|held| held.reached = true);
        let (held, changed) = &*self.shared;
        drop(
            changed
                .wait_while(held.lock().unwrap(), |held| !held.released)
                .unwrap(),
        );
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        let (held, changed) = &*self.shared;
        change(&mut held.lock().unwrap());
        changed.notify_all();
    }
}
