//! Carries out a person's approval: writes the rule it grants, then records the rest and takes the call at once.
//!
//! `approval` says why in this order.

use std::sync::Arc;

use super::approval::{WrittenRule, approved_launch};
use super::outcome::place;
use super::{Proxy, Refusal, View, now};
use crate::loader::Plan;
use crate::permissions::Change;
use crate::permissions::writer::{Edited, Kind, WriteError, edit};
use crate::protocol::continuation::Scope;
use crate::protocol::{Pattern, Shown, ToolName};
use crate::report::Hint;
use crate::workflow::{
    Answer, Ask, Expected, GivenAnswer, Provenance, Refusal as Unmoved, State, Workflow, WorkflowError,
    WorkflowId,
};

/// How often the answer of an ask may move between a look and a take: from none to one, and to its end.
const LOOKS: usize = 3;

/// How writing a rule ended.
type Written = Result<Edited, RuleError>;

/// Says why a rule was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RuleError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the task that writes the rule failed")]
    Task(#[from] tokio::task::JoinError),
}

impl Hint for RuleError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Write(error) => error.hint(),
            Self::Task(_) => None,
        }
    }
}

impl Proxy {
    /// Records what was granted and takes the call; done to its end even if the client cancels meanwhile.
    ///
    /// Fails without a trace if it cannot be recorded: the ask then waits as before.
    pub(super) async fn take(
        &self,
        id: WorkflowId,
        expected: Expected,
        answer: Option<(Answer, Provenance)>,
        plan: Arc<Plan>,
    ) -> Result<(Workflow, Vec<String>), Refusal> {
        let proxy = self.clone();
        let granted = self.0.grants.granting(id);
        let taking = self.0.tasks.spawn(async move {
            // The identical calls that wait for this decision go on once it is carried out.
            let _granted = granted;
            for _ in 0..LOOKS {
                match proxy.take_once(id, &expected, answer.as_ref(), &plan).await {
                    // Another approval came between the look and the take: it is the one to carry out.
                    Err(Refusal::Workflow(WorkflowError::Refused {
                        refusal:
                            Unmoved::AlreadyAnswered {
                                answer: Answer::Approve { .. },
                                ..
                            },
                        ..
                    })) => {}
                    outcome => return outcome,
                }
            }
            Err(Refusal::Expired)
        });
        taking.await.unwrap_or(Err(Refusal::Expired))
    }

    async fn take_once(
        &self,
        id: WorkflowId,
        expected: &Expected,
        brought: Option<&(Answer, Provenance)>,
        plan: &Plan,
    ) -> Result<(Workflow, Vec<String>), Refusal> {
        let workflows = &self.0.workflows;
        let found = workflows.find(id).await?;
        // The first answer counts, so its scope is the workflow's, not ours.
        let first = match &found.state {
            State::Answered { answer, by, .. } => Some((answer.clone(), *by)),
            State::Pending | State::Taken { .. } | State::Expired | State::Withdrawn => brought.cloned(),
        };
        found.yields_to(first.as_ref(), now())?;
        let Some((answer, by)) = first else {
            return Err(Refusal::Expired);
        };
        let Answer::Approve { scope } = answer else {
            return Err(Refusal::Expired);
        };
        let approves = approved_launch(&found, &answer, package_of(plan), now());
        let (rule, notes) = match scope {
            Scope::Always => {
                let written = self.write_rule(found.call.tool.clone()).await;
                let note = self.describe_rule(&found.call.tool, &written);
                (written.map(WrittenRule::new).unwrap_or_default(), vec![note])
            }
            Scope::Once | Scope::Session => (WrittenRule::default(), Vec::new()),
        };
        let given = GivenAnswer { answer, by, approves };
        match workflows.answer_and_take(id, expected.clone(), given).await {
            Ok(taken) => {
                if scope == Scope::Session {
                    self.grant_for_session(&taken, plan);
                }
                Ok((taken, notes))
            }
            Err(error) => {
                self.take_back(id, rule).await;
                Err(not_recorded(error))
            }
        }
    }

    /// Takes back the rule of an answer that does not count, unless the one that counts grants it as well.
    pub(super) async fn take_back(&self, id: WorkflowId, rule: WrittenRule) {
        let counts = self.0.workflows.find(id).await;
        let counts = counts.ok().and_then(|found| found.answer().cloned());
        let taken_back = tokio::task::spawn_blocking(move || rule.take_back(counts.as_ref()));
        if let Ok(Err(error)) = taken_back.await {
            let error = crate::report::render(&error, None);
            tracing::warn!(%id, %error, "the answer did not count");
        }
    }

    fn grant_for_session(&self, taken: &Workflow, plan: &Plan) {
        let launch = plan.digest().clone();
        match &taken.ask {
            Ask::Install { .. } | Ask::Connect { .. } => self.0.grants.allow_launch(launch),
            Ask::Permit { .. } => self.0.grants.allow_tool(taken.call.tool.clone(), launch),
            Ask::Use | Ask::Questions { .. } => {}
        }
    }

    /// Records an answer and everything that it grants beyond its call, or nothing of it.
    ///
    /// Without a plan nothing beyond the call is granted: what changed since the person was asked is not what they
    /// approved.
    pub(super) async fn record(
        &self,
        workflow: &Workflow,
        answer: Answer,
        by: Provenance,
        plan: Option<&Plan>,
    ) -> Result<Workflow, Refusal> {
        let rule = match (&answer, plan) {
            (Answer::Approve { scope: Scope::Always }, Some(_)) => self
                .write_rule(workflow.call.tool.clone())
                .await
                .map(WrittenRule::new)
                .map_err(|error| Refusal::NotRecorded(Box::new(error)))?,
            _ => WrittenRule::default(),
        };
        let approves = plan.and_then(|plan| approved_launch(workflow, &answer, package_of(plan), now()));
        let given = GivenAnswer { answer, by, approves };
        match self.0.workflows.answer(workflow.id, given).await {
            Ok(answered) => Ok(answered),
            Err(error) => {
                self.take_back(workflow.id, rule).await;
                Err(not_recorded(error))
            }
        }
    }

    /// Adds the exact tool to the allow list and says what came of it, as an error where no rule was written.
    pub async fn allow_always(&self, tool: ToolName) -> Result<String, String> {
        let written = self.write_rule(tool.clone()).await;
        let note = self.describe_rule(&tool, &written);
        match written {
            Ok(_) => Ok(note),
            Err(_) => Err(note),
        }
    }

    /// Adds the exact tool to the allow list, off the thread: the writer waits for its lock and for the disk.
    async fn write_rule(&self, tool: ToolName) -> Written {
        let path = self.0.files.project.clone();
        let change = Change::AllowTool { tool };
        Ok(tokio::task::spawn_blocking(move || edit(&path, Kind::Pml, &[change])).await??)
    }

    fn describe_rule(&self, tool: &ToolName, written: &Written) -> String {
        let text = Pattern::exact_text(tool);
        let pattern = match text.parse::<Pattern>() {
            Ok(pattern) => pattern,
            Err(error) => return format!("pml: the call ran, but no rule can be written for it: {error}"),
        };
        let file = Shown::path(&self.0.files.project);
        match written {
            Ok(edited) => {
                let unconfirmed = edited.durability.warning().map(|warning| format!("; {warning}"));
                let winner = self.view().ok().and_then(|view| obstacle(&view, tool));
                let winner = winner.map(|winner| format!(", but {winner} still wins"));
                format!(
                    "pml: `{pattern}` is in the allow list of {file}{}{}",
                    winner.unwrap_or_default(),
                    unconfirmed.unwrap_or_default()
                )
            }
            Err(RuleError::Write(error)) => format!(
                "pml: the call ran, but `{pattern}` could not be added to the allow list: {}",
                crate::report::render_hinted(error)
            ),
            Err(RuleError::Task(_)) => {
                format!("pml: the call ran, but `{pattern}` could not be added to the allow list")
            }
        }
    }
}

/// An answer that the store could not keep is told as such: it still waits.
fn not_recorded(error: WorkflowError) -> Refusal {
    if error.is_of_the_store() {
        Refusal::NotRecorded(Box::new(error))
    } else {
        error.into()
    }
}

fn package_of(plan: &Plan) -> Option<String> {
    plan.package().map(ToString::to_string)
}

fn obstacle(view: &View, tool: &ToolName) -> Option<String> {
    let rule = view.policy.obstacle(tool)?;
    Some(format!("rule `{}` in {}", rule.pattern, place(&rule)))
}
