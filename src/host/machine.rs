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
//! the last of several calls that are put off, and a call beside it that still runs would be cut off.

use std::collections::BTreeSet;

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

/// How an ask of the agent can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskRoad {
    /// Before its call: it can be put off, and comes again when the session is resumed.
    Hook,
    /// In the middle of it: it waits for as long as the agent lives.
    Open,
}

/// An ask of the agent that a person has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenAsk {
    /// The agent's request.
    pub(super) request: String,
    /// The call that it is about.
    pub(super) tool_use: String,
    /// How it can wait.
    pub(super) road: AskRoad,
}

/// What happens to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The agent began a turn.
    TurnBegan,
    /// The model calls tools.
    ToolsCalled(Vec<String>),
    /// Tools have finished.
    ToolsFinished(Vec<String>),
    /// The agent asks, and a person must answer.
    Asked(OpenAsk),
    /// An ask was answered, or the agent took it back.
    AskOver {
        /// The agent's request.
        request: String,
    },
    /// No person has answered for as long as the run is patient.
    PatienceOver,
    /// A turn ended.
    TurnEnded {
        /// The call that was put off.
        deferred: Option<String>,
        /// How many messages of the person wait for a turn.
        queued: u64,
    },
    /// The person has nothing more to say.
    InputEnded,
    /// The host must end: what can be put off is, the rest is left for a later resume.
    HostEnds,
    /// The person ends the run.
    Stop,
    /// The agent's process is gone.
    AgentGone,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Put the call of this request off.
    Defer {
        /// The agent's request.
        request: String,
    },
    /// Begin to wait for a person, anew.
    StartPatience,
    /// Nobody has to be waited for.
    StopPatience,
    /// Close the agent's input: it ends when it is done.
    CloseInput,
    /// End the agent now.
    Terminate,
    /// The run is over in this process.
    Finish(Finish),
}

/// How a run is over in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finish {
    /// The agent had nothing more to do.
    Done,
    /// A call was put off until a person answers.
    Parked {
        /// The call.
        tool_use: String,
    },
    /// The agent is gone although it worked or waited for answers.
    Lost,
    /// The host ended it, and the run is to go on later.
    Left,
    /// A person ended it.
    Stopped,
}

/// Whether more is to be expected of the person once a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// They may say something.
    Open,
    /// The run ends with its turn.
    Ended,
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
    /// The call that the agent was told to put off.
    deferring: Option<OpenAsk>,
    ending: Option<Ending>,
    /// The host ends once what is being put off is.
    leaving: bool,
    /// The call whose put-off the agent has confirmed.
    parked: Option<String>,
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
            deferring: None,
            ending: None,
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
    pub(super) fn asks(&self) -> &[OpenAsk] {
        &self.asks
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
                self.running_tools.extend(calls);
                Vec::new()
            }
            Event::ToolsFinished(calls) => {
                for call in &calls {
                    self.running_tools.remove(call);
                }
                Vec::new()
            }
            Event::Asked(ask) => self.asked(ask),
            Event::AskOver { request } => self.ask_over(&request),
            Event::PatienceOver => self.put_off().unwrap_or_else(|| match self.phase {
                // What cannot be put off goes on waiting, and is looked at again.
                Phase::Asking => vec![Effect::StartPatience],
                _ => Vec::new(),
            }),
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
        if matches!(
            self.phase,
            Phase::Starting | Phase::Running | Phase::Idle | Phase::Asking
        ) {
            self.phase = Phase::Asking;
            return vec![Effect::StartPatience];
        }
        Vec::new()
    }

    fn ask_over(&mut self, request: &str) -> Vec<Effect> {
        self.asks.retain(|ask| ask.request != *request);
        if self.deferring.as_ref().is_some_and(|ask| ask.request == *request) {
            self.deferring = None;
        }
        match (self.phase, self.asks.is_empty()) {
            (Phase::Asking | Phase::Parking, true) => {
                self.phase = Phase::Running;
                vec![Effect::StopPatience]
            }
            (Phase::Asking, false) => vec![Effect::StartPatience],
            _ => Vec::new(),
        }
    }

    /// Puts the only open ask off, where the agent would neither lose it nor cut something else off.
    fn put_off(&mut self) -> Option<Vec<Effect>> {
        let [ask] = self.asks.as_slice() else { return None };
        let alone = self.running_tools.iter().all(|call| *call == ask.tool_use);
        if self.phase != Phase::Asking || ask.road != AskRoad::Hook || !alone {
            return None;
        }
        let request = ask.request.clone();
        self.deferring = Some(ask.clone());
        self.phase = Phase::Parking;
        Some(vec![Effect::StopPatience, Effect::Defer { request }])
    }

    fn turn_ended(&mut self, deferred: Option<String>, queued: u64) -> Vec<Effect> {
        self.running_tools.clear();
        let put_off = self.deferring.take();
        if let (Some(ask), Some(call)) = (put_off, deferred)
            && ask.tool_use == call
        {
            self.parked = Some(call);
            self.phase = Phase::Ending;
            return vec![Effect::CloseInput];
        }
        // The turn is over, so its asks are: the agent does not wait for them any more.
        self.asks.clear();
        let mut effects = vec![Effect::StopPatience];
        if self.phase == Phase::Ending {
            return Vec::new();
        }
        self.phase = if queued > 0 { Phase::Running } else { Phase::Idle };
        if self.leaving {
            effects.extend(self.end(Ending::Left));
        } else if queued == 0 && self.input == Input::Ended {
            effects.extend(self.end(Ending::Done));
        }
        effects
    }

    fn host_ends(&mut self) -> Vec<Effect> {
        self.leaving = true;
        match self.phase {
            Phase::Parking | Phase::Ending => Vec::new(),
            Phase::Idle => self.end(Ending::Done),
            _ => self.put_off().unwrap_or_else(|| self.end(Ending::Left)),
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
            (None, Some(Ending::Left)) => Finish::Left,
            (None, None) => Finish::Lost,
        };
        vec![Effect::StopPatience, Effect::Finish(finish)]
    }
}

#[cfg(test)]
mod tests;
