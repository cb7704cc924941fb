//! Continues a suspended call: checks the decision against the current rules and takes the call at most once.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use super::authority::{AnswerWeight, Effect, NotEntitled, Relation, Runner, Terminal, stricter};
use super::call::arguments_of;
use super::decision::BroughtAnswer;
use super::door::{self, Source};
use super::permitted_call::{PermittedCall, RunResult};
use super::route::{GrantKind, Target, is_tool};
use super::{ClientRequest, Outcome, PendingAsk, Proxy, Refusal, RequestedItem, View, project_trust};
use crate::card::Said;
use crate::config::Server;
use crate::loader::{Content, Plan};
use crate::protocol::{Json, canonical, wire_name};
use crate::workflow::{
    Answer, Arguments, Ask, RecordedAnswer, Road, State, ToolExpectation, TransitionError, Workflow,
    WorkflowError, WorkflowId,
};

/// The request that carried a continuation.
#[derive(Debug, Clone, Copy)]
pub enum Carrier<'a> {
    /// On the request itself.
    Request(RequestedItem<'a>),
    /// On the tool that continues every workflow.
    Continue,
}

/// The place a decision comes from: this request, or another road.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionSource {
    /// It comes with this, on this road.
    Now(Said, Road),
    /// It came on another road, or has not come yet.
    Elsewhere,
}

impl Proxy {
    /// Continues a suspended call as it was decided, or says how it stands.
    pub async fn resume(
        &self,
        on: Carrier<'_>,
        id: &str,
        decided: DecisionSource,
        client_request: ClientRequest,
    ) -> Outcome {
        match self.resumed(on, id, decided, &client_request).await {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Refused(seed_words(refusal)),
        }
    }

    pub(super) async fn resumed(
        &self,
        on: Carrier<'_>,
        id: &str,
        decided: DecisionSource,
        client_request: &ClientRequest,
    ) -> Result<Outcome, Refusal> {
        let id: WorkflowId = id.parse().map_err(|_malformed| Refusal::Expired)?;
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let (expected, target) = match on {
            Carrier::Continue => (ToolExpectation::AnyTool, None),
            Carrier::Request(requested) => match self.target(&view, requested) {
                Ok(target) => (ToolExpectation::Tool(target.tool.clone()), Some(target)),
                Err(unknown) => return Ok(Outcome::Unknown(unknown)),
            },
        };
        // Looked at before it is taken: a decision that cannot be carried out must not use the workflow up.
        let suspended = self.0.workflows.find(id).await?;
        let tool = suspended.call.tool.clone();
        if let ToolExpectation::Tool(expected) = &expected
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
            // The first answer was no, and it counts against every later one.
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
            (DecisionSource::Now(said, road), _) => {
                let answer = door::decided(&suspended, said)?;
                let source = self.source(&view, &suspended);
                let check = source.last_check(Effect::of(&answer), road);
                if let Answer::Refuse { reason } = &answer {
                    let (reason, notes) = (reason.clone(), Vec::new());
                    let refused = RecordedAnswer {
                        answer,
                        by: road.into(),
                        approves: None,
                        check,
                    };
                    let refusing = self.0.workflows.answer_and_take(id, expected, refused);
                    refusing.await.map_err(door::not_recorded)?;
                    return Ok(Outcome::Aborted { reason, notes });
                }
                Some(BroughtAnswer { answer, road, check })
            }
            (DecisionSource::Elsewhere, State::Pending) if suspended.is_live_at(super::now()) => {
                return Ok(Outcome::Waiting(self.asked(&view, &suspended)?));
            }
            (DecisionSource::Elsewhere, _) => None,
        };
        self.ruled(&view, &tool)?;
        let (server, plan) = self.planned(&view, &tool)?;
        let asks_for_trust = matches!(suspended.ask, Ask::Trust { .. });
        if !asks_for_trust && *plan.digest() != suspended.call.launch {
            return Err(Refusal::Changed { tool });
        }
        let (taken, notes) = self.take(id, expected, answer, Arc::clone(&plan)).await?;
        if asks_for_trust {
            project_trust::accept_answered(&self.0.files.accepted, &taken, &self.0.history).await?;
            self.forget_shared(id).await;
            return self.decide_again(on, &taken, client_request).await;
        }
        if let Ask::Integrity { .. } = &taken.ask {
            let steps = client_request.steps();
            Box::pin(self.accept_answered(server, &plan, &taken, steps)).await?;
            return self.decide_again(on, &taken, client_request).await;
        }
        let target = match target {
            Some(target) => target,
            // Only a tool's result can be returned here.
            None if is_tool(&tool) => Target::tool(tool),
            None => return Ok(Outcome::Granted { tool, notes }),
        };
        let mut permitted = permitted(target, server, &plan, &taken, notes);
        self.read_pins(server, &plan).await;
        // A question that could name no content lets run what was accepted, and nothing else.
        if permitted.expected.integrity.is_none() && self.has_other_package(server, &plan)? {
            return self.decide_again(on, &taken, client_request).await;
        }
        permitted.expected = permitted.expected.or(self.pinned_content(server, &plan)?);
        let running = Box::pin(self.run(&view, permitted, client_request.progress.clone()));
        match running.await {
            Ok(RunResult::To(outcome)) => Ok(outcome),
            // It is not what was accepted: the call is decided anew, and asks about that.
            Ok(RunResult::Changed(_)) => self.decide_again(on, &taken, client_request).await,
            Err(Refusal::Load { source, .. })
                if source.is_changed_package()
                    && Box::pin(self.is_changed_at_registry(server, &plan)).await? =>
            {
                self.decide_again(on, &taken, client_request).await
            }
            Ok(RunResult::NoLonger(refusal)) | Err(refusal) => Err(refusal),
        }
    }

    /// Returns what a decision counts for, on the road it came on and in the conversation that brings it.
    fn counted(
        &self,
        view: &View,
        workflow: &Workflow,
        decided: DecisionSource,
    ) -> Result<DecisionSource, Refusal> {
        let (effect, road) = match &decided {
            DecisionSource::Now(said, road) => (Effect::of_said(said), *road),
            // How something stands is told where it could be decided.
            DecisionSource::Elsewhere if self.relation(workflow) != Relation::OtherProject => {
                return Ok(decided);
            }
            DecisionSource::Elsewhere => (Effect::Grants, Road::Continuation),
        };
        match door::weigh(&self.source(view, workflow), workflow, effect, road)? {
            AnswerWeight::Decides => Ok(decided),
            AnswerWeight::Looks => Ok(DecisionSource::Elsewhere),
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
            asking: self.0.files.clone(),
            here: None,
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
    pub async fn describe(&self, id: WorkflowId) -> Result<PendingAsk, Refusal> {
        let view = self.current_view().await.map_err(Refusal::Config)?;
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
        requested: RequestedItem<'_>,
        client_request: &ClientRequest,
    ) -> Result<Workflow, Refusal> {
        let id: WorkflowId = id.parse().map_err(|_malformed| Refusal::Expired)?;
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let workflow = self
            .0
            .workflows
            .find(id)
            .await
            .map_err(|error| seed_words(error.into()))?;
        let target = self
            .target(&view, requested)
            .map_err(|_unknown| Refusal::OtherCall)?;
        if self.relation(&workflow) == Relation::OtherProject {
            return Err(Refusal::OtherCall);
        }
        let same = match (&workflow.call.arguments, arguments_of(&client_request.params)) {
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

impl Proxy {
    /// Goes on with a call whose project's file was accepted: it is decided anew.
    pub(super) async fn decide_again(
        &self,
        on: Carrier<'_>,
        taken: &Workflow,
        client_request: &ClientRequest,
    ) -> Result<Outcome, Refusal> {
        let tool = &taken.call.tool;
        let wire = wire_name(tool);
        let requested = match on {
            Carrier::Request(requested) => requested,
            Carrier::Continue if is_tool(tool) => RequestedItem::Tool(&wire),
            Carrier::Continue => {
                return Ok(Outcome::Granted {
                    tool: tool.clone(),
                    notes: Vec::new(),
                });
            }
        };
        // The request that brings the answer may have other arguments than the one that was suspended.
        let params = match &taken.call.arguments {
            Arguments::Json(arguments) if is_tool(tool) => params_of(&wire, arguments),
            Arguments::Json(_) | Arguments::Absent | Arguments::Erased => None,
        };
        let again = ClientRequest {
            params: params.unwrap_or_else(|| client_request.params.clone()),
            ..client_request.clone()
        };
        let mut outcome = Box::pin(self.call(requested, again)).await;
        if let Outcome::Ready(ready) = &mut outcome {
            ready
                .suspended
                .get_or_insert_with(|| taken.call.arguments.clone());
        }
        Ok(outcome)
    }
}

fn params_of(name: &str, arguments: &str) -> Option<Bytes> {
    let arguments: &RawValue = serde_json::from_str(arguments).ok()?;
    let text = serde_json::to_vec(&json!({ "name": name, "arguments": arguments })).ok()?;
    Some(text.into())
}

/// Returns the call of a workflow that was approved and taken.
fn permitted<'a>(
    target: Target,
    server: &'a Server,
    plan: &'a Arc<Plan>,
    taken: &Workflow,
    notes: Vec<String>,
) -> PermittedCall<'a> {
    PermittedCall {
        target,
        server,
        plan,
        expected: taken
            .ask
            .dependency()
            .map_or_else(Content::default, |dependency| Content {
                integrity: dependency.integrity.clone(),
                lock: dependency.installation.lock.clone(),
                ..Content::default()
            }),
        given: match taken.ask {
            Ask::Install { .. } | Ask::Connect { .. } => GrantKind::Standing,
            Ask::Permit { .. }
            | Ask::Use { .. }
            | Ask::Trust { .. }
            | Ask::Integrity { .. }
            | Ask::Questions { .. } => GrantKind::Once,
        },
        notes,
        suspended: Some(taken.call.arguments.clone()),
        remembered_as: None,
    }
}

/// Compares what two texts mean: a client may write the same arguments anew. What runs is the suspended text.
fn same_json(one: &str, two: &str) -> bool {
    let read = |text| Json::parse(text).map(canonical);
    one == two || read(one).zip(read(two)).is_some_and(|(one, two)| one == two)
}

/// Replaces every reason why an id continues nothing by one message: the id may have been guessed.
pub(super) fn seed_words(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Workflow(
            WorkflowError::Unknown { .. }
            | WorkflowError::Refused {
                refusal: TransitionError::Expired { .. },
                ..
            },
        ) => Refusal::Expired,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_the_same_where_they_mean_the_same_or_are_the_same_text() {
        let one = r#"{"a":1,"b":[true,null]}"#;
        assert!(same_json(one, one));
        assert!(same_json(one, r#"{ "b": [true, null], "a": 1 }"#));
        assert!(!same_json(one, r#"{"a":2,"b":[true,null]}"#));
        assert!(same_json("{", "{"));
        assert!(!same_json("{", "["));
    }
}
