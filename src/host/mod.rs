//! An agent with its person attached: `pml run`.
//!
//! A run is one session of an agent (Claude Code). Its process is started with pml as its only server; what it asks becomes
//! an ask in the store like that of any client, so that it can be answered in every place where a person answers, also
//! after the process is gone.
//!
//! `line.rs` and `reply.rs` are the codec of the agent's lines, `machine.rs` decides what happens next; both are pure.
//! `driver.rs` carries it out, `runs.rs` and `event_log.rs` keep what other processes need, `resumption.rs` decides how a
//! run goes on after an answer that came late, `late_resumes.rs` does it in `pml serve`, `transcript.rs` tells which answers
//! a lost agent had.

mod asked_questions;
mod asks;
pub mod claude;
mod driver;
mod error;
mod event_log;
mod event_tail;
mod form;
mod hosted_run;
mod hosting;
mod journal;
mod late_resumes;
mod line;
mod machine;
mod message;
mod process;
mod project_settings;
mod proposal;
mod record;
mod reply;
mod resumption;
mod run_input;
mod run_line;
mod run_lines;
mod runs;
mod transcript;

pub use driver::drive;
pub use error::RunError;
pub use event_log::{LoggedEvent, events_after};
pub use event_tail::{EventTail, TailedEvents};
pub use hosted_run::{Beginning, Control, HostedRun, RunEnd};
pub use hosting::{Hosting, WantedRun};
pub use late_resumes::{Equipment, LateResumes};
pub use line::{
    AgentLine, AgentRequest, Block, PermissionReach, PermissionRequest, ReceiptState, RuleReach, ToolOutcome,
    ToolResult, TurnResult,
};
pub use machine::Input;
pub use message::{Image, Message, MessageError, Priority};
pub use project_settings::{AGENT_FOLDER, FoundSettings, ProjectSettings};
pub use proposal::Proposal;
pub use record::{KeptAsk, KeptAskKind, RunId, RunOutcome, RunRecord, RunState};
pub use resumption::Resumption;
pub use run_input::RunInput;
pub use run_line::{AskOutcome, OwnLine, RunLine};
pub use run_lines::{RunLineReceiver, RunLineSender, SurfaceGone, run_lines};
pub use runs::{RunLock, Runs};
