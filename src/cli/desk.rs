//! The desk of a person at a terminal, as the commands of the inbox share it.
//!
//! It needs no running pml: the store is shared by every process of the user, and a call that waits looks there.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::failure::{Hinted as _, Refused, hinted};
use super::{CommandContext, person};
use crate::card::{Complaint, Said};
use crate::protocol::Shown;
use crate::protocol::question::QuestionError;
use crate::proxy::{Desk, Effect, NotEntitled, Recorded, Refusal};
use crate::report::Hint;
use crate::workflow::{Ask, Code, Provenance, Workflow, WorkflowError};

/// Where a person looks whose answer does not count any more.
const TOO_LATE: &str = "to see what became of it: pml history";

/// The desk, and the runtime that it needs.
pub(super) struct TerminalDesk {
    desk: Desk,
    runtime: Runtime,
    /// This terminal.
    by: Provenance,
}

impl TerminalDesk {
    /// Sits down at the desk of the user.
    pub(super) fn open(context: &CommandContext) -> anyhow::Result<Self> {
        let terminal = person::terminal();
        let desk = Desk::new(
            &context.environment,
            &context.locations,
            context.files(),
            terminal,
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let by = person::provenance();
        Ok(Self { desk, runtime, by })
    }

    /// Returns the desk itself.
    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Names this terminal.
    pub(super) fn by(&self) -> &Provenance {
        &self.by
    }

    /// Waits for something that the desk does.
    pub(super) fn wait_for<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Finds the ask that a person means by a code or by the beginning of an id.
    pub(super) fn named(&self, text: &str) -> anyhow::Result<Workflow> {
        spoken(self.runtime.block_on(self.desk.named(text)))
    }

    /// Finds the ask that a person means; where they name none, the only one of its kind that waits.
    pub(super) fn meant(&self, text: Option<&str>, verb: Verb) -> anyhow::Result<Workflow> {
        if let Some(text) = text {
            return self.named(text);
        }
        let mut waiting = self.pending()?;
        waiting.retain(|workflow| verb.fits(workflow));
        if waiting.len() > 1 {
            let lines: Vec<String> = waiting.iter().map(one_line).collect();
            return Err(Refused(format!("{} wait:\n{}", waiting.len(), lines.join("\n"))))
                .hint(format!("to choose one: pml {} CODE", verb.word()));
        }
        waiting.pop().map_or_else(
            || {
                Err(Refused(format!("nothing waits that you could {}", verb.word())))
                    .hint("to see all: pml pending")
            },
            Ok,
        )
    }

    /// Lists what waits for an answer, the oldest first.
    pub(super) fn pending(&self) -> anyhow::Result<Vec<Workflow>> {
        spoken(self.runtime.block_on(self.desk.pending()))
    }

    /// Lists every ask that is still kept, the newest first.
    pub(super) fn recent(&self, limit: usize) -> anyhow::Result<Vec<Workflow>> {
        spoken(self.runtime.block_on(self.desk.recent(limit)))
    }

    /// Tells before a person thinks about it that an answer would not count; `command` is what they typed.
    pub(super) fn check(&self, workflow: &Workflow, command: &str) -> anyhow::Result<()> {
        let checked = self.desk.check(workflow, Effect::Grants, &self.by);
        let checked = self.runtime.block_on(checked);
        checked.map_err(|refusal| not_recorded(workflow, refusal, command))
    }

    /// Records what the person at this terminal says, or says why it does not count.
    pub(super) fn record(&self, workflow: &Workflow, said: Said, command: &str) -> anyhow::Result<Recorded> {
        let recording = self.desk.record(workflow, said, self.by.clone());
        let recorded = self.runtime.block_on(recording);
        recorded.map_err(|refusal| not_recorded(workflow, refusal, command))
    }
}

/// What a person does with an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// They let it run.
    Approve,
    /// They do not.
    Refuse,
    /// They answer its questions.
    Answer,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Refuse => "refuse",
            Self::Answer => "answer",
        }
    }

    fn fits(self, workflow: &Workflow) -> bool {
        let is_question = matches!(workflow.ask, Ask::Questions { .. });
        match self {
            Self::Approve => !is_question,
            Self::Answer => is_question,
            Self::Refuse => true,
        }
    }
}

/// Says in a line which ask it is.
fn one_line(workflow: &Workflow) -> String {
    let tool = workflow.call.tool.to_string();
    let project = workflow.project.to_string_lossy();
    format!(
        "  {}  {}  {}",
        workflow.code,
        Shown::line(&tool),
        Shown::line(&project)
    )
}

/// Says why what a person said is no answer; the ask still waits.
#[derive(Debug, thiserror::Error)]
#[error("`{code}` cannot be answered so")]
struct NotAnAnswer {
    code: Code,
    source: Complaint,
}

impl Hint for NotAnAnswer {
    fn hint(&self) -> Option<String> {
        let code = &self.code;
        Some(match &self.source {
            Complaint::Nothing => format!("to refuse them all: pml refuse {code}"),
            Complaint::Count { .. } => {
                format!("to be asked one after the other, in a terminal: pml answer {code}")
            }
            Complaint::Unfit {
                error: QuestionError::NotAnOption { .. },
                ..
            } => format!("to answer in your own words: pml answer {code} --text '…'"),
            Complaint::Unfit { .. } => {
                format!("to choose an option: pml answer {code} LABEL\nto see them: pml pending")
            }
            Complaint::NotOffered { .. } | Complaint::Kind { .. } => {
                format!("to see what is offered: pml pending {code}")
            }
        })
    }
}

impl Drop for TerminalDesk {
    fn drop(&mut self) {
        // The last process that closes the store leaves no log of it behind.
        self.runtime.block_on(self.desk.close());
    }
}

/// Returns what the store said as an error of a command: its words, without those for a model.
fn spoken<T>(looked: Result<T, Refusal>) -> anyhow::Result<T> {
    looked.map_err(|refusal| match refusal {
        Refusal::Workflow(error) => error.into(),
        refusal => refusal.into(),
    })
}

/// Tells before a person thinks about it that an answer would come too late.
pub(super) fn still_open(workflow: &Workflow) -> anyhow::Result<()> {
    let open = workflow.takes_answers_at(crate::proxy::now());
    open.map_err(|error| not_recorded(workflow, error.into(), "pending"))
}

/// Says what to do instead where an answer does not count.
fn not_recorded(workflow: &Workflow, refusal: Refusal, command: &str) -> anyhow::Error {
    let code = &workflow.code;
    let with_hint = |error: WorkflowError, hint: String| match Err::<(), _>(error).hint(hint) {
        Err(error) => error,
        Ok(()) => anyhow::anyhow!("`{code}` was not answered"),
    };
    match refusal {
        Refusal::Workflow(error @ WorkflowError::Unfit { .. }) => {
            let hint = match &workflow.ask {
                Ask::Questions { .. } => format!("to answer it: pml answer {code}"),
                Ask::Install { .. }
                | Ask::Connect { .. }
                | Ask::Permit { .. }
                | Ask::Use { .. }
                | Ask::Trust { .. }
                | Ask::Integrity { .. } => {
                    format!("to decide it: pml approve {code}, or pml refuse {code}")
                }
            };
            with_hint(error, hint)
        }
        Refusal::Workflow(error @ WorkflowError::Refused { .. }) => with_hint(error, TOO_LATE.to_owned()),
        Refusal::Workflow(error) => error.into(),
        Refusal::Unfit { code, complaint } => hinted(NotAnAnswer {
            code,
            source: complaint,
        }),
        Refusal::NotEntitled {
            why: NotEntitled::Agent,
            ..
        } => match workflow.ask {
            Ask::Trust { .. } | Ask::Integrity { .. } => person::NotAPerson::trusting(command).into(),
            _ => person::NotAPerson::running(command).into(),
        },
        // Its cause says it: here no call was to run.
        Refusal::NotRecorded(cause) => anyhow::Error::from_boxed(cause),
        refusal => refusal.into(),
    }
}

/// Returns what scripts need to know a workflow again, without what is asked.
pub(super) fn json(workflow: &Workflow) -> Value {
    json!({
        "code": workflow.code,
        "id": workflow.id,
        "tool": workflow.call.tool,
        "kind": workflow.ask.kind(),
        "project": workflow.project.to_string_lossy(),
        "createdAt": workflow.created_at,
        "expiresAt": workflow.expires_at,
    })
}
