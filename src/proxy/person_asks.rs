//! Asks of a person outside a call of a server, and the answers that prompts and dialogs bring to them.

use std::path::PathBuf;
use std::time::Duration;

use super::decision::package_of;
use super::door::{self, Reach};
use super::{Claim, Proxy, Refusal, now, presence};
use crate::card::{Card, Said};
use crate::config::{ApprovalSettings, AskUserSettings, By};
use crate::protocol::question::{Question, QuestionAnswer};
use crate::protocol::{DependencyName, Digest, ToolName};
use crate::workflow::{
    Answer, Arguments, Ask, AskAttendance, Event, NewWorkflow, Origin, Provenance, Road, State,
    SuspendedCall, Suspension, UseReach, Workflow, WorkflowError, WorkflowId, Workflows,
};

/// Where the lives of workflows are logged; names and ends, never questions or answers.
const LIFECYCLE: &str = "pml::workflow";

/// The status of questions that were put to a person.
#[derive(Debug, Clone)]
pub enum QuestionStatus {
    /// The person has not answered yet.
    Pending(Box<Workflow>),
    /// The person has answered.
    Answered {
        /// What was asked.
        questions: Vec<Question>,
        /// What they said, in the same order.
        answers: Vec<QuestionAnswer>,
        /// Where they came from.
        by: Provenance,
    },
    /// The person refused to answer.
    Rejected {
        /// Why, in their words.
        reason: Option<String>,
    },
    /// No answer came before the deadline.
    TimedOut,
    /// The asking call withdrew them.
    Withdrawn,
}

impl Proxy {
    /// Returns how approvals are asked for; while the configuration cannot be read, only a person counts.
    #[must_use]
    pub fn approvals(&self) -> ApprovalSettings {
        self.view().map_or_else(
            |_broken| ApprovalSettings {
                by: By::Human,
                ..ApprovalSettings::default()
            },
            |view| view.config.approvals.clone(),
        )
    }

    /// Returns how the tools that ask a person behave.
    #[must_use]
    pub fn ask_user(&self) -> AskUserSettings {
        self.view().map_or_else(
            |_broken| AskUserSettings::default(),
            |view| view.config.ask_user.clone(),
        )
    }

    /// Puts questions to a person; the very same questions are put once, and a second call for them gets the same answer.
    pub async fn question(&self, tool: &str, questions: Vec<Question>) -> Result<Workflow, Refusal> {
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let (kept, project) = (view.config.ask_user.kept, self.project().to_owned());
        let new = new_question(tool, questions, kept, project, self.origin(&view));
        Ok(self.suspend(&view, new).await?.workflow())
    }

    /// Returns the status of questions after waiting up to `patience`; an answer that is returned counts as taken.
    pub async fn question_status(
        &self,
        id: WorkflowId,
        patience: Duration,
    ) -> Result<QuestionStatus, Refusal> {
        let stands = read_status(&self.0.workflows, id, patience).await;
        let failed = |error: &str| tracing::info!(target: LIFECYCLE, session = %id, error, "Session failed");
        match &stands {
            Ok(QuestionStatus::Answered { .. }) => {
                tracing::info!(target: LIFECYCLE, session = %id, "Session completed successfully");
            }
            Ok(QuestionStatus::Rejected { .. }) => failed("rejected"),
            Ok(QuestionStatus::TimedOut) => failed("timed out"),
            Ok(QuestionStatus::Withdrawn) => failed("withdrawn"),
            Ok(QuestionStatus::Pending(_)) | Err(_) => {}
        }
        stands
    }

    /// Draws the card of an ask as it stands now.
    #[must_use]
    pub fn card(&self, workflow: &Workflow) -> Card {
        presence::card(workflow)
    }

    /// Makes an answer of what was said to an ask, and records it if it counts on this road and in this conversation.
    ///
    /// What an approval grants is recorded with it, so that it counts also where the call never comes back.
    pub async fn say(&self, id: WorkflowId, said: Said, by: Road) -> Result<Workflow, Refusal> {
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let workflow = self.0.workflows.find(id).await?;
        let by = Provenance::from(by);
        let source = self.source(&view, &workflow);
        let answer = door::answer(&source, &workflow, said, &by)?;
        // What changed since the person was asked is not what they approved.
        let reach = match self.planned(&view, &workflow.call.tool) {
            Ok((_, plan)) if *plan.digest() == workflow.call.launch => Reach::AsShown {
                package: package_of(&plan),
            },
            Ok(_) | Err(_) => Reach::CallOnly,
        };
        let recorded = door::record(
            &self.0.workflows,
            &self.0.history,
            &source,
            &workflow,
            answer,
            by,
            reach,
        )
        .await?;
        Ok(recorded.workflow)
    }

    /// Takes note that the call which asked has returned without an answer, which is kept for whichever call comes next.
    pub async fn leave_unattended(&self, id: WorkflowId) -> Result<(), Refusal> {
        Ok(self.0.workflows.leave_unattended(id).await?)
    }

    /// Takes the answer to a workflow, so that it is used once; `None` where there is none to take.
    pub async fn take_answer(&self, id: WorkflowId) -> Result<Option<Answer>, Refusal> {
        let workflow = self.0.workflows.find(id).await?;
        match workflow.state {
            State::Answered {
                answer: answer @ Answer::Refuse { .. },
                ..
            } => Ok(Some(answer)),
            State::Answered { .. } => {
                let taken = self.0.workflows.apply(id, Event::Take).await?;
                Ok(match taken.state {
                    State::Taken { answer, .. } => Some(answer),
                    State::Pending | State::Answered { .. } | State::Expired | State::Withdrawn => None,
                })
            }
            State::Pending | State::Taken { .. } | State::Expired | State::Withdrawn => Ok(None),
        }
    }

    /// Withdraws an ask whose call no longer waits; an ask that was answered meanwhile stays.
    pub async fn withdraw(&self, id: WorkflowId) {
        let _ = self.0.workflows.apply(id, Event::Withdraw).await;
    }

    /// Withdraws an ask from where nothing can be awaited; [`Proxy::close`] waits for it.
    pub fn withdraw_later(&self, id: WorkflowId) {
        let proxy = self.clone();
        self.0.withdrawals.spawn(async move { proxy.withdraw(id).await });
    }

    /// Waits until the workflow is answered, in this process or another.
    pub async fn decided(&self, id: WorkflowId) -> Result<Workflow, Refusal> {
        Ok(self.0.workflows.wait(id).await?)
    }

    /// Finds a workflow by its id.
    pub async fn workflow(&self, id: WorkflowId) -> Result<Workflow, Refusal> {
        Ok(self.0.workflows.find(id).await?)
    }

    /// Finds the workflow a person means by a code or by the beginning of an id.
    pub async fn workflow_named(&self, text: &str) -> Result<Workflow, Refusal> {
        Ok(self.0.workflows.find_by_code_or_prefix(text).await?)
    }

    /// Lists what waits for an answer, the oldest first.
    pub async fn pending(&self) -> Result<Vec<Workflow>, Refusal> {
        Ok(self.0.workflows.pending().await?)
    }

    /// Suspends the use of one of the client's own tools until a person has decided.
    ///
    /// The claim is the right of this call to the answer: an identical one that waits at the same time has its own.
    pub async fn use_of(
        &self,
        tool: ToolName,
        input: String,
        reach: UseReach,
        time_to_live: Duration,
    ) -> Result<(Workflow, Option<Claim>), Refusal> {
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let call = SuspendedCall {
            // Nothing is launched by pml.
            launch: Digest::of(["use"]),
            tool,
            // Erased with the end of the ask, as the arguments of any other call.
            arguments: Arguments::Json(input),
        };
        let mut new = NewWorkflow {
            ask: Ask::Use { reach },
            call,
            time_to_live,
            project: self.project().to_owned(),
            origin: self.origin(&view),
            attended: AskAttendance::ByItsCall,
            twin: 0,
            channel: None,
        };
        loop {
            match self.suspend(&view, new.clone()).await? {
                Suspension::Answered(workflow) => return Ok((workflow, None)),
                Suspension::New(workflow) | Suspension::Existing(workflow) => {
                    if let Some(claim) = self.0.scope.claim(workflow.id) {
                        return Ok((workflow, Some(claim)));
                    }
                    new.twin += 1;
                }
            }
        }
    }
}

/// Describes questions that are to be put to a person, asked by one of pml's own tools.
pub(super) fn new_question(
    tool: &str,
    questions: Vec<Question>,
    kept: Duration,
    project: PathBuf,
    origin: Origin,
) -> NewWorkflow {
    NewWorkflow {
        ask: Ask::Questions { questions },
        call: SuspendedCall {
            tool: ToolName::new(DependencyName::own(), tool),
            arguments: Arguments::Absent,
            // Nothing is launched by an answer.
            launch: Digest::of(["questions"]),
        },
        // A question outlives the call that asked it: its answer is kept for the next one.
        time_to_live: kept,
        project,
        origin,
        attended: AskAttendance::ByItsCall,
        twin: 0,
        channel: None,
    }
}

/// Returns the status of questions after waiting up to `patience`; an answer that is returned counts as taken.
pub(super) async fn read_status(
    workflows: &Workflows,
    id: WorkflowId,
    patience: Duration,
) -> Result<QuestionStatus, Refusal> {
    let mut workflow = workflows.find(id).await?;
    if workflow.state == State::Pending && !patience.is_zero() {
        let waited = tokio::time::timeout(patience, workflows.wait(id)).await;
        if let Ok(moved) = waited {
            workflow = moved?;
        }
    }
    match &workflow.state {
        State::Pending if workflow.is_live_at(now()) => Ok(QuestionStatus::Pending(Box::new(workflow))),
        State::Answered {
            answer: Answer::Refuse { reason },
            ..
        } => Ok(QuestionStatus::Rejected {
            reason: reason.clone(),
        }),
        // An answer may be asked for again: it is the same answer.
        State::Taken {
            answer: Answer::Answers { answers },
            by,
            ..
        } => Ok(given(&workflow, answers.clone(), by.clone())),
        State::Answered { .. } => {
            let taken = workflows.apply(id, Event::Take).await?;
            match taken.state.clone() {
                State::Taken {
                    answer: Answer::Answers { answers },
                    by,
                    ..
                } => Ok(given(&taken, answers, by)),
                _ => Err(Refusal::Expired),
            }
        }
        State::Pending | State::Expired => Ok(QuestionStatus::TimedOut),
        State::Withdrawn => Ok(QuestionStatus::Withdrawn),
        State::Taken { .. } => Err(Refusal::Expired),
    }
}

/// Tells whether an answer came too late because another was first.
#[must_use]
pub fn came_second(refusal: &Refusal) -> bool {
    use crate::workflow::TransitionError;
    matches!(
        refusal,
        Refusal::Workflow(WorkflowError::Refused {
            refusal: TransitionError::AlreadyAnswered { .. }
                | TransitionError::AlreadyUsed { .. }
                | TransitionError::Refused { .. },
            ..
        })
    )
}

fn given(workflow: &Workflow, answers: Vec<QuestionAnswer>, by: Provenance) -> QuestionStatus {
    let questions = match &workflow.ask {
        Ask::Questions { questions } => questions.clone(),
        Ask::Install { .. }
        | Ask::Connect { .. }
        | Ask::Permit { .. }
        | Ask::Use { .. }
        | Ask::Trust { .. }
        | Ask::Integrity { .. } => Vec::new(),
    };
    QuestionStatus::Answered {
        questions,
        answers,
        by,
    }
}
