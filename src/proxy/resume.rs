//! Continuing a suspended call: the decision is checked against the rules of *now*, the call is taken once.

use std::sync::Arc;

use super::authority::{Effect, NotEntitled, Relation, Runner, Terminal, Worth, stricter};
use super::call::{Permitted, Ran, arguments_of};
use super::door::{self, Source};
use super::route::{Given, PROMPTS, RESOURCES, Target};
use super::{Asked, Carried, Outcome, Proxy, Refusal, View, Wanted};
use crate::loader::Content;
use crate::protocol::continuation::Decision;
use crate::protocol::{Json, ToolName, canonical};
use crate::workflow::{
    Answer, Arguments, Ask, Expected, GivenAnswer, Provenance, Refusal as Unmoved, State, Workflow,
    WorkflowError, WorkflowId,
};

/// On what a continuation came in.
#[derive(Debug, Clone, Copy)]
pub enum Carrier<'a> {
    /// On the request itself.
    Request(Wanted<'a>),
    /// On the tool that continues every workflow.
    Continue,
}

/// What is known of a person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It comes with this, on this road.
    Now(Decision, Provenance),
    /// It came on another road, or has not come yet.
    Elsewhere,
}

impl Proxy {
    /// Continues a suspended call as it was decided, or says how it stands.
    pub async fn resume(&self, on: Carrier<'_>, id: &str, decided: Decided, carried: Carried) -> Outcome {
        match self.resumed(on, id, decided, &carried).await {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Refused(seed_words(refusal)),
        }
    }

    pub(super) async fn resumed(
        &self,
        on: Carrier<'_>,
        id: &str,
        decided: Decided,
        carried: &Carried,
    ) -> Result<Outcome, Refusal> {
        let id: WorkflowId = id.parse().map_err(|_malformed| Refusal::Expired)?;
        let view = self.view().map_err(Refusal::Config)?;
        let (expected, target) = match on {
            Carrier::Continue => (Expected::AnyTool, None),
            Carrier::Request(wanted) => match self.target(&view, wanted) {
                Ok(target) => (Expected::Tool(target.tool.clone()), Some(target)),
                Err(unknown) => return Ok(Outcome::Unknown(unknown)),
            },
        };
        // Looked at before it is taken: a decision that cannot be carried out must not use the workflow up.
        let suspended = self.0.workflows.find(id).await?;
        let tool = suspended.call.tool.clone();
        if let Expected::Tool(expected) = &expected
            && *expected != tool
        {
            return Err(WorkflowError::WrongTool {
                code: suspended.code,
                expected: tool,
            }
            .into());
        }
        let decided = self.counted(&view, &suspended, decided)?;
        let answer = match (decided, &suspended.state) {
            // Whatever is said now: the first answer was no.
            (
                _,
                State::Answered {
                    answer: Answer::Refuse { reason },
                    ..
                },
            ) => {
                return Ok(Outcome::Aborted {
                    reason: reason.clone(),
                    notes: Vec::new(),
                });
            }
            (Decided::Now(Decision::Approve(scope), by), _) => Some((Answer::Approve { scope }, by)),
            (Decided::Now(Decision::Refuse, by), _) => {
                let refused = GivenAnswer {
                    answer: Answer::Refuse { reason: None },
                    by,
                    approves: None,
                };
                self.0.workflows.answer_and_take(id, expected, refused).await?;
                return Ok(Outcome::Aborted {
                    reason: None,
                    notes: Vec::new(),
                });
            }
            (Decided::Elsewhere, State::Pending) if suspended.is_live_at(super::now()) => {
                return Ok(Outcome::Waiting(self.asked(&view, &suspended)?));
            }
            (Decided::Elsewhere, _) => None,
        };
        view.ruled(&tool)?;
        let (server, plan) = self.planned(&view, &tool)?;
        if *plan.digest() != suspended.call.launch {
            return Err(Refusal::Changed { tool });
        }
        let (taken, notes) = self.take(id, expected, answer, Arc::clone(&plan)).await?;
        let target = match target {
            Some(target) => target,
            // Only a tool's result can be returned here.
            None if is_tool(&tool) => Target::tool(tool),
            None => return Ok(Outcome::Granted { tool, notes }),
        };
        let permitted = Permitted {
            target,
            server,
            plan: &plan,
            expected: taken
                .ask
                .dependency()
                .map_or_else(Content::default, |dependency| Content {
                    integrity: dependency.integrity.clone(),
                    lock: dependency.installation.lock.clone(),
                }),
            given: match taken.ask {
                Ask::Install { .. } | Ask::Connect { .. } => Given::Standing,
                Ask::Permit { .. } | Ask::Use | Ask::Questions { .. } => Given::Once,
            },
            notes,
            suspended: Some(taken.call.arguments.clone()),
        };
        match self.run(&view, permitted, carried.progress.clone()).await? {
            Ran::To(outcome) => Ok(outcome),
            Ran::NoLonger(refusal) => Err(refusal),
        }
    }

    /// Returns what a decision counts for, on the road it came on and in the conversation that brings it.
    fn counted(&self, view: &View, workflow: &Workflow, decided: Decided) -> Result<Decided, Refusal> {
        let (effect, road) = match decided {
            Decided::Now(Decision::Approve(_), road) => (Effect::Grants, road),
            Decided::Now(Decision::Refuse, road) => (Effect::Refuses, road),
            // How something stands is told where it could be decided.
            Decided::Elsewhere if self.relation(workflow) != Relation::OtherProject => {
                return Ok(decided);
            }
            Decided::Elsewhere => (Effect::Grants, Provenance::Continuation),
        };
        match door::weigh(self.source(view, workflow), workflow, effect, road)? {
            Worth::Decides => Ok(decided),
            Worth::Looks => Ok(Decided::Elsewhere),
        }
    }

    /// Tells where an answer of this conversation to a workflow comes from.
    pub(super) fn source(&self, view: &View, workflow: &Workflow) -> Source {
        // A client in a terminal hands it to the servers it starts; what its agent starts gets none.
        let terminal = match std::fs::File::open("/dev/tty") {
            Ok(_) => Terminal::Present,
            Err(_) => Terminal::Missing,
        };
        Source {
            policy: stricter(view.config.approvals.by, workflow.origin.by),
            relation: self.relation(workflow),
            runner: Runner::of(&self.0.environment, terminal),
        }
    }

    /// Tells how a conversation relates to the one that asked.
    fn relation(&self, workflow: &Workflow) -> Relation {
        if workflow.origin.asker == self.0.scope.asker() {
            Relation::SameConversation
        } else if workflow.origin.config == self.0.files.project && workflow.project == self.project() {
            Relation::SameProject
        } else {
            Relation::OtherProject
        }
    }

    /// Waits until what a decision granted is written down, where this process is about to.
    pub async fn settled(&self, id: WorkflowId) {
        self.0.grants.settled(id).await;
    }

    /// Describes a suspended call as a person is shown it now.
    pub async fn describe(&self, id: WorkflowId) -> Result<Asked, Refusal> {
        let view = self.view().map_err(Refusal::Config)?;
        let workflow = self.0.workflows.find(id).await?;
        self.asked(&view, &workflow)
    }

    /// Finds a workflow that this conversation may go on with: one of its own project.
    pub async fn workflow_here(&self, id: WorkflowId) -> Result<Workflow, Refusal> {
        let workflow = self.0.workflows.find(id).await?;
        if self.relation(&workflow) == Relation::OtherProject {
            return Err(Refusal::NotEntitled {
                code: workflow.code,
                why: NotEntitled::OtherProject,
            });
        }
        Ok(workflow)
    }

    /// Finds the ask that a client brings back, if it is about this very call and was asked in this project.
    pub async fn asked_again(
        &self,
        id: &str,
        wanted: Wanted<'_>,
        carried: &Carried,
    ) -> Result<Workflow, Refusal> {
        let id: WorkflowId = id.parse().map_err(|_malformed| Refusal::Expired)?;
        let view = self.view().map_err(Refusal::Config)?;
        let workflow = self
            .0
            .workflows
            .find(id)
            .await
            .map_err(|error| seed_words(error.into()))?;
        let target = self
            .target(&view, wanted)
            .map_err(|_unknown| Refusal::OtherCall)?;
        if self.relation(&workflow) == Relation::OtherProject {
            return Err(Refusal::OtherCall);
        }
        let same = match (&workflow.call.arguments, arguments_of(&carried.params)) {
            (Arguments::Json(suspended), Arguments::Json(brought)) => same_json(suspended, &brought),
            // What was used up has no arguments left to compare; it says so itself when it is taken.
            (Arguments::Erased, _) | (Arguments::Absent, Arguments::Absent) => true,
            _ => false,
        };
        if workflow.call.tool != target.tool || !same {
            return Err(Refusal::OtherCall);
        }
        Ok(workflow)
    }
}

/// Compares what two texts mean: a client may write the same arguments anew. What runs is the suspended text.
fn same_json(one: &str, two: &str) -> bool {
    let read = |text| Json::parse(text).map(canonical);
    one == two || read(one).zip(read(two)).is_some_and(|(one, two)| one == two)
}

fn is_tool(tool: &ToolName) -> bool {
    !tool.tool().starts_with(PROMPTS) && !tool.tool().starts_with(RESOURCES)
}

/// The client's words for an id that continues nothing are the same, whatever the reason: it may be guessed.
pub(super) fn seed_words(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Workflow(
            WorkflowError::Unknown { .. }
            | WorkflowError::Refused {
                refusal: Unmoved::Expired { .. },
                ..
            },
        ) => Refusal::Expired,
        other => other,
    }
}
