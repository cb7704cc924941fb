//! A run in this process: what is needed to drive it, how it is begun, what it is told, and how it was left.

use std::path::PathBuf;

use super::claude::{Opening, SettingSources};
use super::line::TurnResult;
use super::machine::Input;
use super::message::Message;
use super::record::RunRecord;
use super::runs::{RunLock, Runs};
use crate::config::Environment;
use crate::proxy::{Proxy, WorkflowId};

/// What a surface in this process tells a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// A person says something to the agent.
    Message(Message),
    /// The agent is to break off what it does.
    Interrupt,
    /// A person ends the run.
    Stop,
    /// The person has nothing more to say.
    EndOfInput,
    /// This process must end.
    HostEnds,
}

/// A run that this process may drive.
pub struct HostedRun {
    /// The run.
    pub record: RunRecord,
    /// The right to drive it.
    pub lock: RunLock,
    /// Where runs are kept.
    pub runs: Runs,
    /// The environment that the agent gets.
    pub environment: Environment,
    /// Rules and asks of the run's project.
    pub proxy: Proxy,
    /// The agent's program.
    pub program: PathBuf,
    /// The program of pml, which is the agent's server.
    pub pml: PathBuf,
    /// Whose settings the agent obeys.
    pub sources: SettingSources,
    /// What its person is told first, such as that settings of the project were left out; escaped.
    pub notes: Vec<String>,
    /// What was asked by runs that made room for this one.
    pub forgotten: Vec<WorkflowId>,
}

/// How a run was left by the process that drove it.
#[derive(Debug)]
pub struct RunEnd {
    /// The run as it is now.
    pub record: RunRecord,
    /// How its last turn ended.
    pub result: Option<TurnResult>,
    /// What the agent complained about last.
    pub complaint: String,
    /// The right to drive it, for one who goes on.
    pub lock: RunLock,
}

/// How a run is begun in this process.
#[derive(Debug)]
pub struct Beginning {
    /// Whether the agent's session is new.
    pub opening: Opening,
    /// What the person says first.
    pub messages: Vec<Message>,
    /// Whether they may say more.
    pub input: Input,
    /// The asks whose answers a message tells the agent, where the agent does not ask for them again.
    pub told: Vec<WorkflowId>,
}
