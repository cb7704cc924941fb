//! The run machine: what a run does on each thing that happens to it.
//!
//! Pure: no process, no clock, no disk. An event goes in, effects come out as data; `driver.rs` carries them out.
//!
//! ```text
//! starting -> running <-> asking -> idle -> ended
//!                         asking -> parking -> parked -> (answered, resumed)
//!             any        -> lost (its agent is gone with work or asks left)
//! ```
//!
//! The non-obvious thing: a call is put off only where nothing else of the same message is open. The agent loses all but
//! the last of several calls that are put off, and a call beside it that still runs would be cut off. Whether a call is
//! alone is known once its message has been said to the end. What is asked in the middle of a call cannot be put off:
//! where no person is there to see it, the agent is ended, and their answer is told when they come.

mod event;

use std::collections::BTreeSet;

pub use event::Input;
pub(super) use event::{AskRoad, Effect, Event, Finish, OpenAsk};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its agent was started and has not said anything.
    Starting,
    /// The agent works.
    Running,
    /// The agent waits for a person.
    Asking,
    /// The agent was told to put its call off, and has not confirmed it.
    Parking,
    /// The agent has nothing to do.
    Idle,
    /// The agent was told to end, and has not ended.
    Ending,
    /// The agent is gone.
    Over,
}

/// Why the agent was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It has nothing more to do.
    Done,
    /// A person wants it.
    Stopped,
    /// The host ends, and the run is to go on later.
    Left,
}

/// The state of one run in one process.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    phase: Phase,
    input: Input,
    asks: Vec<OpenAsk>,
    /// The calls of the newest messages that have no result.
    running_tools: BTreeSet<String>,
    /// Whether the model is in the middle of a message, which may bring more calls.
    speaking: bool,
    /// The call that the agent was told to put off; it is not among the asks any more.
    deferring: Option<OpenAsk>,
    ending: Option<Ending>,
    patience: Patience,
    /// The host ends once what is being put off is.
    leaving: bool,
    /// The call whose put-off the agent has confirmed.
    parked: Option<String>,
}

/// Whether a person is waited for any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// They are.
    Left,
    /// They have had their time, and something beside the asks was still at work.
    Over,
}

impl Machine {
    /// Begins with an agent that was just started.
    #[must_use]
    pub(super) fn new(input: Input) -> Self {
        Self {
            phase: Phase::Starting,
            input,
            asks: Vec::new(),
            running_tools: BTreeSet::new(),
            speaking: false,
            deferring: None,
            ending: None,
            patience: Patience::Left,
            leaving: false,
            parked: None,
        }
    }

    /// Returns where the run stands.
    #[must_use]
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the asks that no person has answered.
    #[must_use]
    #[cfg(test)]
    pub(super) fn asks(&self) -> &[OpenAsk] {
        &self.asks
    }

    /// Tells whether the agent was told to put the call of this request off: its answer is for the next process.
    #[must_use]
    pub(super) fn is_put_off(&self, request: &str) -> bool {
        self.deferring.as_ref().is_some_and(|ask| ask.request == *request)
    }

    /// Tells whether the agent ends in a way that its asks outlive it.
    #[must_use]
    pub(super) fn keeps_asks(&self) -> bool {
        self.parked.is_some() || self.ending == Some(Ending::Left)
    }

    /// Moves on by one event and returns what is to be done, in order.
    pub(super) fn step(&mut self, event: Event) -> Vec<Effect> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        match event {
            Event::TurnBegan => {
                if matches!(self.phase, Phase::Starting | Phase::Idle) {
                    self.phase = Phase::Running;
                }
                Vec::new()
            }
            Event::ToolsCalled(calls) => {
                self.patience = Patience::Left;
                self.running_tools.extend(calls);
                Vec::new()
            }
            Event::ToolsFinished(calls) => {
                for call in &calls {
                    self.running_tools.remove(call);
                }
                self.go_if_overdue()
            }
            Event::MessageBegan => {
                self.speaking = true;
                Vec::new()
            }
            Event::MessageEnded => {
                self.speaking = false;
                self.go_if_overdue()
            }
            Event::Asked(ask) => self.asked(ask),
            Event::AskOver { request } => self.ask_over(&request),
            Event::PatienceOver => self.patience_over(),
            Event::GraceOver => match self.phase {
                // What is put off and not confirmed is left as it is: its answer is told by a message.
                Phase::Asking | Phase::Parking => self.end(Ending::Left),
                _ => Vec::new(),
            },
            Event::TurnEnded { deferred, queued } => self.turn_ended(deferred, queued),
            Event::InputEnded => {
                self.input = Input::Ended;
                match self.phase {
                    Phase::Idle => self.end(Ending::Done),
                    _ => Vec::new(),
                }
            }
            Event::HostEnds => self.host_ends(),
            Event::Stop => self.end(Ending::Stopped),
            Event::AgentGone => self.gone(),
        }
    }

    fn asked(&mut self, ask: OpenAsk) -> Vec<Effect> {
        self.asks.push(ask);
        match self.phase {
            // It came after the other was put off, and the agent does not end before it is answered.
            Phase::Parking if self.leaving => self.end(Ending::Left),
            Phase::Starting | Phase::Running | Phase::Idle | Phase::Asking | Phase::Parking => {
                self.phase = Phase::Asking;
                self.patience = Patience::Left;
                vec![Effect::StartPatience]
            }
            Phase::Ending | Phase::Over => Vec::new(),
        }
    }

    fn ask_over(&mut self, request: &str) -> Vec<Effect> {
        self.asks.retain(|ask| ask.request != *request);
        if self.is_put_off(request) {
            self.deferring = None;
        }
        if !matches!(self.phase, Phase::Asking | Phase::Parking) {
            return Vec::new();
        }
        if !self.asks.is_empty() {
            return vec![Effect::StartPatience];
        }
        if self.deferring.is_some() {
            self.phase = Phase::Parking;
            return vec![Effect::StopPatience, Effect::StartGrace];
        }
        self.phase = Phase::Running;
        vec![Effect::StopPatience]
    }

    fn patience_over(&mut self) -> Vec<Effect> {
        if self.phase != Phase::Asking {
            return Vec::new();
        }
        if let Some(effects) = self.put_off() {
            return effects;
        }
        let again = self.patience == Patience::Over;
        self.patience = Patience::Over;
        // A person who may speak is there, and sees what waits. Where none is, what works beside the asks is given as
        // much time once more: it may be an agent of the agent's own, which waits for the very same answer.
        if self.input == Input::Ended && !self.speaking && (again || !self.works_beside()) {
            return self.end(Ending::Left);
        }
        // What cannot be put off goes on waiting, and is looked at again.
        vec![Effect::StartPatience]
    }

    /// Does what the person's silence or the host's end could not do before.
    fn go_if_overdue(&mut self) -> Vec<Effect> {
        if self.phase != Phase::Asking {
            return Vec::new();
        }
        if self.leaving {
            return self.host_ends();
        }
        match self.patience {
            Patience::Over => self.put_off().unwrap_or_default(),
            Patience::Left => Vec::new(),
        }
    }

    /// Tells whether the agent does something else while it asks.
    fn works_beside(&self) -> bool {
        // An ask that names no call is one of a call that runs.
        let nameless = self.asks.iter().filter(|ask| ask.tool_use.is_empty()).count();
        let asks = |call: &String| {
            let mut asks = self.asks.iter().chain(&self.deferring);
            asks.any(|ask| ask.tool_use == *call)
        };
        self.running_tools.iter().filter(|call| !asks(call)).count() > nameless
    }

    /// Puts the only open ask off, where the agent would neither lose it nor cut something else off.
    fn put_off(&mut self) -> Option<Vec<Effect>> {
        let [ask] = self.asks.as_slice() else { return None };
        let alone = !self.speaking && self.deferring.is_none() && !self.works_beside();
        if self.phase != Phase::Asking || ask.road != AskRoad::Hook || !alone {
            return None;
        }
        let request = ask.request.clone();
        self.deferring = self.asks.pop();
        self.phase = Phase::Parking;
        Some(vec![
            Effect::StopPatience,
            Effect::Defer { request },
            Effect::StartGrace,
        ])
    }

    fn turn_ended(&mut self, deferred: Option<String>, queued: u64) -> Vec<Effect> {
        self.running_tools.clear();
        self.speaking = false;
        let put_off = self.deferring.take();
        let was_put_off = put_off.is_some();
        if let (Some(ask), Some(call)) = (put_off, deferred)
            && ask.tool_use == call
        {
            self.asks.clear();
            self.parked = Some(call);
            self.phase = Phase::Ending;
            // What was said meanwhile would begin a turn that is cut off: it is kept for the next process.
            let end = if queued > 0 {
                Effect::Terminate
            } else {
                Effect::CloseInput
            };
            return vec![Effect::StopPatience, end];
        }
        // The turn is over, so its asks are: the agent does not wait for them any more.
        self.asks.clear();
        if self.phase == Phase::Ending {
            return Vec::new();
        }
        if was_put_off {
            // The agent has not confirmed it. The question goes on waiting without it, and its answer is told.
            return self.end(Ending::Left);
        }
        let mut effects = vec![Effect::StopPatience];
        self.phase = if queued > 0 { Phase::Running } else { Phase::Idle };
        if self.leaving {
            effects.extend(self.end(Ending::Left));
        } else if queued == 0 && self.input == Input::Ended {
            effects.extend(self.end(Ending::Done));
        }
        effects
    }

    fn host_ends(&mut self) -> Vec<Effect> {
        let again = self.leaving;
        self.leaving = true;
        match self.phase {
            // Told twice, the agent is not waited for any more.
            Phase::Parking if again => self.end(Ending::Left),
            Phase::Parking => Vec::new(),
            Phase::Ending | Phase::Over => Vec::new(),
            Phase::Idle => self.end(Ending::Done),
            Phase::Asking if self.speaking && !again => vec![Effect::StartGrace],
            Phase::Asking | Phase::Starting | Phase::Running => {
                self.put_off().unwrap_or_else(|| self.end(Ending::Left))
            }
        }
    }

    fn end(&mut self, ending: Ending) -> Vec<Effect> {
        self.ending = Some(ending);
        let quiet = self.phase == Phase::Idle && self.asks.is_empty();
        self.phase = Phase::Ending;
        match ending {
            // Closing the input while something is asked would let the model go on without the answer.
            Ending::Done if quiet => vec![Effect::CloseInput],
            Ending::Done | Ending::Stopped | Ending::Left => vec![Effect::StopPatience, Effect::Terminate],
        }
    }

    fn gone(&mut self) -> Vec<Effect> {
        let quiet = self.phase == Phase::Idle;
        self.phase = Phase::Over;
        let finish = match (self.parked.take(), self.ending) {
            (Some(tool_use), _) => Finish::Parked { tool_use },
            (None, Some(Ending::Done)) => Finish::Done,
            (None, Some(Ending::Stopped)) => Finish::Stopped,
            (None, None) if quiet => Finish::Done,
            (None, Some(Ending::Left) | None) => Finish::Lost,
        };
        vec![Effect::StopPatience, Effect::Finish(finish)]
    }
}

#[cfg(test)]
mod tests;
