//! Carries out a person's approval: writes the rule it grants, then records the rest and takes the call at once.
//!
//! The module `approval` explains this order.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::approval::approved_launch;
use super::door::{self, AnswerRuleError, not_recorded};
use super::rule_error::RuleError;
use super::rule_place::place;
use super::{Proxy, Refusal, View, now};
use crate::loader::Plan;
use crate::permissions::writer::{FileEdit, FileKind, WriteError, edit};
use crate::permissions::{ConfigChange, change_records};
use crate::protocol::continuation::Scope;
use crate::protocol::{Pattern, Shown, ToolName};
use crate::workflow::{
    Answer, Ask, LastCheck, RecordedAnswer, Road, State, ToolExpectation, TransitionError, Workflow,
    WorkflowError, WorkflowId,
};

/// How often the answer of an ask may move between a look and a take: from none to one, and to its end.
const LOOKS: usize = 3;

/// The result of writing a rule.
type RuleResult = Result<FileEdit, RuleError>;

/// An answer that a request brings with it.
pub(super) struct BroughtAnswer {
    pub(super) answer: Answer,
    pub(super) road: Road,
    /// Whether it still counts when it is recorded.
    pub(super) check: LastCheck,
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
        answer: Option<BroughtAnswer>,
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
        brought: Option<&BroughtAnswer>,
        plan: &Plan,
        abandoned: &CancellationToken,
    ) -> Result<(Workflow, Vec<String>), Refusal> {
        let workflows = &self.0.workflows;
        let found = workflows.find(id).await?;
        // The first answer counts, so its scope is the workflow's, not ours.
        let first = match &found.state {
            State::Answered { answer, by, .. } => Some((answer.clone(), by.clone())),
            State::Pending | State::Taken { .. } | State::Expired | State::Withdrawn => {
                brought.map(|brought| (brought.answer.clone(), brought.road.into()))
            }
        };
        found.yields_to(first.as_ref(), now())?;
        let Some((answer, by)) = first else {
            return Err(Refusal::Expired);
        };
        let Answer::Approve { scope } = answer else {
            return Err(Refusal::Expired);
        };
        let approves = approved_launch(&found, &answer, package_of(plan), now());
        let given = RecordedAnswer {
            answer,
            by,
            approves,
            check: brought.map_or_else(LastCheck::none, |brought| brought.check.clone()),
        };
        if scope == Scope::Always {
            let (expects, brought) = (expected.clone(), given.clone());
            let taking = self.clone();
            let take = async move { taking.0.workflows.answer_and_take(id, expects, brought).await };
            match door::with_rule(
                workflows,
                &self.0.history,
                &self.0.files,
                &found,
                &given,
                abandoned,
                take,
            )
            .await
            {
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

    fn grant_for_session(&self, taken: &Workflow, plan: &Plan) {
        let launch = plan.digest().clone();
        match &taken.ask {
            Ask::Install { .. } | Ask::Connect { .. } => self.0.grants.allow_launch(launch),
            Ask::Permit { .. } => self.0.grants.allow_tool(taken.call.tool.clone(), launch),
            Ask::Use { .. } | Ask::Trust { .. } | Ask::Integrity { .. } | Ask::Questions { .. } => {}
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
        let (files, history) = (self.0.files.clone(), self.0.history.clone());
        let changes = [ConfigChange::AllowTool { tool }];
        let writing = tokio::task::spawn_blocking(move || {
            let edited = edit(&files.project, FileKind::Pml(&files), &changes)?;
            // The answer itself, with its road, is recorded with its ask.
            history.note_now(&change_records(&edited, &changes, "approval_prompt"));
            Ok::<_, WriteError>(edited)
        });
        Ok(writing.await??)
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

pub(super) fn package_of(plan: &Plan) -> Option<String> {
    plan.package().map(ToString::to_string)
}

fn obstacle(view: &View, tool: &ToolName) -> Option<String> {
    let rule = view.policy.obstacle(tool)?;
    Some(format!("rule `{}` in {}", rule.pattern, place(&rule)))
}
