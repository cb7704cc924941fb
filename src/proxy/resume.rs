//! Continuing a suspended call: the decision is checked against the rules of *now*, the call is taken once.

use std::sync::Arc;

use super::call::{Permitted, Sent};
use super::outcome::place;
use super::{Carried, Outcome, Proxy, Refusal, View};
use crate::loader::Plan;
use crate::permissions::Change;
use crate::permissions::approved::Record;
use crate::permissions::writer::{Kind, edit};
use crate::protocol::approval::ShownDependency;
use crate::protocol::continuation::{Continuation, Decision, Scope};
use crate::protocol::{Pattern, ToolName};
use crate::workflow::{
    Answer, Ask, Expected, Provenance, Refusal as Unmoved, State, Workflow, WorkflowError, WorkflowId,
};

/// On what a continuation came in.
#[derive(Debug, Clone, Copy)]
pub enum Carrier<'a> {
    /// On a tool, by the name the client called.
    Tool(&'a str),
    /// On the tool that continues every workflow.
    AnyTool,
}

impl Proxy {
    /// Continues a suspended call as the client decided.
    pub async fn resume(
        &self,
        carrier: Carrier<'_>,
        continuation: &Continuation,
        carried: Carried,
    ) -> Outcome {
        match self.resumed(carrier, continuation, &carried).await {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Refused(seed_words(refusal)),
        }
    }

    async fn resumed(
        &self,
        carrier: Carrier<'_>,
        continuation: &Continuation,
        carried: &Carried,
    ) -> Result<Outcome, Refusal> {
        let id: WorkflowId = continuation
            .workflow_id
            .parse()
            .map_err(|_malformed| Refusal::Expired)?;
        let view = self.view().map_err(Refusal::Config)?;
        let expected = match carrier {
            Carrier::AnyTool => Expected::AnyTool,
            Carrier::Tool(name) => match self.tool_named(&view, name) {
                Ok(tool) => Expected::Tool(tool),
                Err(nearest) => {
                    return Ok(Outcome::UnknownTool {
                        name: name.to_owned(),
                        nearest,
                    });
                }
            },
        };
        let scope = match continuation.decision {
            Decision::Refuse => {
                let refuse = Answer::Refuse { reason: None };
                self.0
                    .workflows
                    .answer_and_take(id, expected, refuse, Provenance::Continuation)
                    .await?;
                return Ok(Outcome::Aborted);
            }
            Decision::Approve(scope) => scope,
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
        self.ruled(&view, &tool)?;
        let (server, plan) = self.planned(&view, &tool)?;
        if *plan.digest() != suspended.call.launch {
            return Err(Refusal::Changed { tool });
        }
        let (taken, notes) = self.take(id, expected, scope, Arc::clone(&plan)).await?;
        let (Ask::Install { dependency } | Ask::Permit { dependency }) = &taken.ask;
        let permitted = Permitted {
            tool: &tool,
            server,
            plan: &plan,
            shown_integrity: dependency.integrity.as_deref(),
            notes,
        };
        self.run(&view, permitted, carried, Sent::Suspended(&taken.call.arguments))
            .await
    }

    /// Takes the call and writes down what was granted; done to its end even if the client cancels meanwhile.
    async fn take(
        &self,
        id: WorkflowId,
        expected: Expected,
        scope: Scope,
        plan: Arc<Plan>,
    ) -> Result<(Workflow, Vec<String>), Refusal> {
        let proxy = self.clone();
        let taking = self.0.tasks.spawn(async move {
            let approve = Answer::Approve { scope };
            let taken = proxy
                .0
                .workflows
                .answer_and_take(id, expected, approve, Provenance::Continuation)
                .await?;
            let notes = proxy.grant(&taken, &plan).await?;
            Ok((taken, notes))
        });
        taking.await.unwrap_or(Err(Refusal::Expired))
    }

    /// Writes down what a person granted. The first answer counts, so its scope is the workflow's, not ours.
    async fn grant(&self, taken: &Workflow, plan: &Plan) -> Result<Vec<String>, Refusal> {
        let State::Taken {
            answer: Answer::Approve { scope },
            ..
        } = &taken.state
        else {
            return Err(Refusal::Expired);
        };
        match (&taken.ask, scope) {
            (Ask::Install { dependency }, Scope::Once | Scope::Always) => self.record(dependency, plan)?,
            (Ask::Install { .. }, Scope::Session) => self.0.grants.allow_launch(plan.digest().clone()),
            (Ask::Permit { .. }, Scope::Session) => self.0.grants.allow_tool(taken.call.tool.clone()),
            (Ask::Permit { .. }, Scope::Once | Scope::Always) => {}
        }
        match scope {
            Scope::Always => Ok(vec![self.allow_always(taken.call.tool.clone()).await]),
            Scope::Once | Scope::Session => Ok(Vec::new()),
        }
    }

    fn record(&self, dependency: &ShownDependency, plan: &Plan) -> Result<(), Refusal> {
        let record = Record {
            dependency: plan.dependency().clone(),
            version: dependency.version.clone(),
            integrity: dependency.integrity.clone(),
            at_unix_ms: u64::try_from(super::now().millis()).unwrap_or_default(),
        };
        self.0
            .approved
            .record(plan.digest(), &record)
            .map_err(|error| Refusal::NotRecorded(Box::new(error)))
    }

    /// Adds the exact tool to the allow list; whatever comes of it, the call runs and its result says so.
    async fn allow_always(&self, tool: ToolName) -> String {
        let path = self.0.files.project.clone();
        let text = Pattern::exact_text(&tool);
        let pattern = match text.parse::<Pattern>() {
            Ok(pattern) => pattern,
            Err(error) => return format!("pml: the call ran, but no rule can be written for it: {error}"),
        };
        let change = Change::AllowTool { tool: tool.clone() };
        // The writer waits for its lock and for the disk.
        let written = tokio::task::spawn_blocking(move || edit(&path, Kind::Pml, &[change])).await;
        let file = self.0.files.project.display();
        match written {
            Ok(Ok(_)) => match self.view().ok().and_then(|view| obstacle(&view, &tool)) {
                None => format!("pml: `{pattern}` is in the allow list of {file}"),
                Some(winner) => {
                    format!("pml: `{pattern}` is in the allow list of {file}, but {winner} still wins")
                }
            },
            Ok(Err(error)) => format!(
                "pml: the call ran, but `{pattern}` could not be added to the allow list: {}",
                crate::report::render_hinted(&error)
            ),
            Err(_panicked) => {
                format!("pml: the call ran, but `{pattern}` could not be added to the allow list")
            }
        }
    }
}

fn obstacle(view: &View, tool: &ToolName) -> Option<String> {
    let rule = view.policy.obstacle(tool)?;
    Some(format!("rule `{}` in {}", rule.pattern, place(&rule)))
}

/// The client's words for an id that continues nothing are the same, whatever the reason: it may be guessed.
fn seed_words(refusal: Refusal) -> Refusal {
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
