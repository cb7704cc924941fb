//! What happens to a run, and what is to be done about it, as data.

/// How an ask of the agent can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) enum AskRoad {
    /// Before its call: it can be put off, and comes again when the session is resumed.
    Hook,
    /// In the middle of it: it waits for as long as the agent lives.
    Open,
}

/// An ask of the agent that a person has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::host) struct OpenAsk {
    /// The agent's request.
    pub(in crate::host) request: String,
    /// The call that it is about.
    pub(in crate::host) tool_use: String,
    /// How it can wait.
    pub(in crate::host) road: AskRoad,
}

/// What happens to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::host) enum Event {
    /// The agent began a turn.
    TurnBegan,
    /// The model calls tools.
    ToolsCalled(Vec<String>),
    /// Tools have finished.
    ToolsFinished(Vec<String>),
    /// The agent asks, and a person must answer.
    Asked(OpenAsk),
    /// The model begins to say something.
    MessageBegan,
    /// The model has said it to the end.
    MessageEnded,
    /// An ask was answered, or the agent took it back.
    AskOver {
        /// The agent's request.
        request: String,
    },
    /// No person has answered for as long as the run is patient.
    PatienceOver,
    /// The agent has not done what it was told for as long as that may take.
    GraceOver,
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
pub(in crate::host) enum Effect {
    /// Put the call of this request off.
    Defer {
        /// The agent's request.
        request: String,
    },
    /// Begin to wait for a person, anew.
    StartPatience,
    /// Nobody has to be waited for.
    StopPatience,
    /// Begin to wait for the agent, which was told something.
    StartGrace,
    /// Close the agent's input: it ends when it is done.
    CloseInput,
    /// End the agent now.
    Terminate,
    /// The run is over in this process.
    Finish(Finish),
}

/// How a run is over in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::host) enum Finish {
    /// The agent had nothing more to do.
    Done,
    /// A call was put off until a person answers.
    Parked {
        /// The call.
        tool_use: String,
    },
    /// The agent is gone although it worked or waited for answers.
    Lost,
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
