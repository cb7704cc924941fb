//! Carries out a person's approval: writes the rule it grants, then records the rest and takes the call at once.
//!
//! The module `approval` explains this order.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::approval::approved_launch;
use super::outcome::place;
use super::rule_error::RuleError;
use super::{Proxy, Refusal, View, now};
use crate::loader::Plan;
use crate::permissions::ConfigChange;
use crate::permissions::writer::{FileEdit, FileKind, JointError, edit, edit_jointly};
use crate::protocol::continuation::Scope;
use crate::protocol::{Pattern, Shown, ToolName};
use crate::workflow::{
    Answer, Ask, Provenance, RecordedAnswer, State, ToolExpectation, TransitionError, Workflow,
    WorkflowError, WorkflowId,
};

/// How often the answer of an ask may move between a look and a take: from none to one, and to its end.
const LOOKS: usize = 3;

/// The result of writing a rule.
type RuleResult = Result<FileEdit, RuleError>;

/// The reason why an answer and its rule were not both recorded.
enum AnswerRuleError {
    /// The rule could not be written, and nothing was answered.
    Rule(RuleError),
    /// The answer does not count, and its rule is not there.
    Answer(WorkflowError),
    /// The call that brought the answer was cancelled before anything was written.
    Abandoned,
}

impl Proxy {
    /// Records what was granted and takes the call, both or neither.
    ///
    /// Fails without a trace if it cannot be recorded, or if the client cancels the call that brings the answer while
    /// that waits for a lock: the ask then waits as before. Once it is recorded it is done to its end.
    pub(super) async fn take(
        &self,
        id: WorkflowId,
        expected: ToolExpectation,
        answer: Option<(Answer, Provenance)>,
        plan: Arc<Plan>,
    ) -> Result<(Workflow, Vec<String>), Refusal> {
        let proxy = self.clone();
        let abandoned = CancellationToken::new();
        let _abandons = abandoned.clone().drop_guard();
        let granted = self.0.grants.granting(id);
        let taking = self.0.tasks.spawn(async move {
            // The identical calls that wait for this decision go on once it is carried out.
            let _granted = granted;
            for _ in 0..LOOKS {
                let taking = proxy.take_once(id, &expected, answer.as_ref(), &plan, &abandoned);
                match taking.await {
                    // Another approval came between the look and the take: it is the one to carry out.
                    Err(Refusal::Workflow(WorkflowError::Refused {
                        refusal:
                            TransitionError::AlreadyAnswered {
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
        expected: &ToolExpectation,
        brought: Option<&(Answer, Provenance)>,
        plan: &Plan,
        abandoned: &CancellationToken,
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
        let given = RecordedAnswer { answer, by, approves };
        if scope == Scope::Always {
            let (expects, brought) = (expected.clone(), given.clone());
            let taking = self.clone();
            let take = async move { taking.0.workflows.answer_and_take(id, expects, brought).await };
            match self.with_rule(&found, &given, abandoned, take).await {
                Ok((edited, taken)) => {
                    let note = self.describe_rule(&found.call.tool, &Ok(edited));
                    return Ok((taken, vec![note]));
                }
                Err(AnswerRuleError::Answer(error)) => return Err(not_recorded(error)),
                Err(AnswerRuleError::Abandoned) => return Err(Refusal::Expired),
                // The person wanted the call too: it runs once, and its result says that the rule is missing.
                Err(AnswerRuleError::Rule(error)) => {
                    let note = self.describe_rule(&found.call.tool, &Err(error));
                    let taken = workflows.answer_and_take(id, expected.clone(), given).await;
                    return Ok((taken.map_err(not_recorded)?, vec![note]));
                }
            }
        }
        if abandoned.is_cancelled() {
            return Err(Refusal::Expired);
        }
        let taken = workflows.answer_and_take(id, expected.clone(), given).await;
        let taken = taken.map_err(not_recorded)?;
        if scope == Scope::Session {
            self.grant_for_session(&taken, plan);
        }
        Ok((taken, Vec::new()))
    }

    /// Adds the exact tool to the allow list and does `then`, both or neither, off the thread of the conversation: the
    /// writer waits for its lock and for the disk.
    async fn with_rule(
        &self,
        asked: &Workflow,
        given: &RecordedAnswer,
        abandoned: &CancellationToken,
        then: impl Future<Output = Result<Workflow, WorkflowError>> + Send + 'static,
    ) -> Result<(FileEdit, Workflow), AnswerRuleError> {
        let path = self.0.files.project.clone();
        let tool = asked.call.tool.clone();
        let (workflows, id, given) = (self.0.workflows.clone(), asked.id, given.clone());
        let abandoned = abandoned.clone();
        let runtime = tokio::runtime::Handle::current();
        let writing = tokio::task::spawn_blocking(move || {
            let check = || {
                if abandoned.is_cancelled() {
                    return Err(Box::new(None));
                }
                let found = runtime.block_on(workflows.find(id)).map_err(boxed)?;
                found
                    .yields_to(Some(&(given.answer, given.by)), now())
                    .map_err(boxed)
            };
            let changes = [ConfigChange::AllowTool { tool }];
            let then = || runtime.block_on(then).map_err(boxed);
            edit_jointly(&path, FileKind::Pml, &changes, check, then)
        });
        match writing.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(JointError::Write(error))) => Err(AnswerRuleError::Rule(error.into())),
            Ok(Err(JointError::Other(error))) => {
                Err(error.map_or(AnswerRuleError::Abandoned, AnswerRuleError::Answer))
            }
            Ok(Err(JointError::Stands { error, source })) => {
                let source = crate::report::render_hinted(&source);
                tracing::warn!(%id, "the answer did not count, but its rule stands: {source}");
                Err(error.map_or(AnswerRuleError::Abandoned, AnswerRuleError::Answer))
            }
            Err(panicked) => Err(AnswerRuleError::Rule(panicked.into())),
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
        let always = matches!(answer, Answer::Approve { scope: Scope::Always });
        let approves = plan.and_then(|plan| approved_launch(workflow, &answer, package_of(plan), now()));
        let given = RecordedAnswer { answer, by, approves };
        let (answering, brought, id) = (self.clone(), given.clone(), workflow.id);
        let answered = async move { answering.0.workflows.answer(id, brought).await };
        if !always || plan.is_none() {
            return answered.await.map_err(not_recorded);
        }
        match self
            .with_rule(workflow, &given, &CancellationToken::new(), answered)
            .await
        {
            Ok((_, answered)) => Ok(answered),
            Err(AnswerRuleError::Answer(error)) => Err(not_recorded(error)),
            Err(AnswerRuleError::Abandoned) => Err(Refusal::Expired),
            Err(AnswerRuleError::Rule(error)) => Err(Refusal::NotRecorded(Box::new(error))),
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
    async fn write_rule(&self, tool: ToolName) -> RuleResult {
        let path = self.0.files.project.clone();
        let change = ConfigChange::AllowTool { tool };
        Ok(tokio::task::spawn_blocking(move || edit(&path, FileKind::Pml, &[change])).await??)
    }

    fn describe_rule(&self, tool: &ToolName, written: &RuleResult) -> String {
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

fn boxed(error: WorkflowError) -> Box<Option<WorkflowError>> {
    Box::new(Some(error))
}

/// Wraps the error of a store that could not record an answer; the ask still waits.
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
