//! Suspends a call that a person must decide about.

use std::sync::Arc;

use super::authority::{PersonalRoad, stricter};
use super::call::{ClientRequest, WaitMode, arguments_of};
use super::continuation::{Carrier, DecisionSource};
use super::{Outcome, PendingAsk, Proxy, Refusal, RequestedItem, View};
use crate::loader::Plan;
use crate::protocol::ToolName;
use crate::protocol::approval::ApprovalType;
use crate::workflow::{
    Ask, AskAttendance, AskingClient, NewWorkflow, Origin, SuspendedCall, Suspension, TransitionError,
    Workflow, WorkflowError,
};

/// The variable by which Claude Code names its session to the servers it starts.
const CLIENT_SESSION: &str = "CLAUDE_CODE_SESSION_ID";

/// The variable by which `pml run` names the run that an agent belongs to.
const RUN: &str = "PML_RUN";

/// The longest name of a session or a run that is kept: several times a UUID.
const NAME_LIMIT: usize = 120;

impl Proxy {
    /// Suspends a call until a person has decided; what the registry has not said yet is asked for first.
    ///
    /// An answer to the identical call that no call has taken yet is taken instead.
    pub(super) async fn ask(
        &self,
        view: &View,
        requested: RequestedItem<'_>,
        tool: &ToolName,
        plan: &Arc<Plan>,
        kind: ApprovalType,
        client_request: &ClientRequest,
    ) -> Result<Outcome, Refusal> {
        let mut dependency = self.0.loader.shown(plan);
        if dependency.integrity.is_none() && self.0.loader.needs_install(plan) {
            self.0.loader.resolve_soon(plan).await;
            dependency = self.0.loader.shown(plan);
        }
        self.learn_approvals().await;
        let before = self.approved_content(plan).lock;
        let now = &mut dependency.installation;
        now.dependencies_changed = before.is_some() && now.lock.is_some() && before != now.lock;
        let ask = match kind {
            ApprovalType::DependencyInstall => Ask::Install {
                dependency: dependency.clone(),
            },
            ApprovalType::RemoteConnect => Ask::Connect {
                dependency: dependency.clone(),
            },
            ApprovalType::ToolPermission => Ask::Permit {
                dependency: dependency.clone(),
            },
        };
        let arguments = arguments_of(&client_request.params);
        let call = SuspendedCall {
            tool: tool.clone(),
            arguments,
            launch: plan.digest().clone(),
        };
        let mut new = NewWorkflow {
            ask,
            call,
            time_to_live: view.config.approvals.time_to_live,
            project: self.project().to_owned(),
            origin: self.origin(view),
            attended: match client_request.patience {
                WaitMode::InTheCall | WaitMode::ForARetry => AskAttendance::ByItsCall,
                WaitMode::None => AskAttendance::ByNone,
            },
            twin: 0,
        };
        loop {
            match self.0.workflows.create(new.clone()).await? {
                Suspension::Answered(answered) => {
                    let (on, id) = (Carrier::Request(requested), answered.id.to_string());
                    match self
                        .resumed(on, &id, DecisionSource::Elsewhere, client_request)
                        .await
                    {
                        // Another call was faster: this one looks again.
                        Err(Refusal::Workflow(WorkflowError::Refused {
                            refusal:
                                TransitionError::AlreadyUsed { .. }
                                | TransitionError::Expired { .. }
                                | TransitionError::Withdrawn,
                            ..
                        })) => {}
                        outcome => return outcome,
                    }
                }
                Suspension::New(workflow) | Suspension::Existing(workflow) => {
                    if let Some(claim) = self.0.scope.claim(workflow.id) {
                        let asked = self.asked(view, &workflow)?;
                        return Ok(Outcome::Asked(PendingAsk {
                            claim: Some(claim),
                            ..asked
                        }));
                    }
                    if client_request.patience == WaitMode::InTheCall && kind != ApprovalType::ToolPermission
                    {
                        return Ok(Outcome::Joined(workflow.id));
                    }
                    new.twin += 1;
                }
            }
        }
    }

    /// Names the conversation that asks, and the configuration it asks under.
    pub(super) fn origin(&self, view: &View) -> Origin {
        Origin {
            config: self.0.files.project.clone(),
            by: view.config.approvals.by,
            asker: self.0.scope.asker(),
            client: AskingClient {
                name: self.0.loader.client_name(),
                session: self.variable(CLIENT_SESSION),
                run: self.variable(RUN),
                process: self.0.scope.process(),
            },
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.0.environment.variable(name)?.to_str()?;
        (!value.is_empty()).then(|| value.chars().take(NAME_LIMIT).collect())
    }

    /// Describes a suspended call as a person is shown it.
    pub(super) fn asked(&self, view: &View, workflow: &Workflow) -> Result<PendingAsk, Refusal> {
        let (kind, dependency) = match &workflow.ask {
            Ask::Install { dependency } => (ApprovalType::DependencyInstall, dependency),
            Ask::Connect { dependency } => (ApprovalType::RemoteConnect, dependency),
            Ask::Permit { dependency } => (ApprovalType::ToolPermission, dependency),
            Ask::Use | Ask::Questions { .. } => {
                return Err(WorkflowError::Unfit {
                    code: workflow.code.clone(),
                    wanted: workflow.ask.wants(),
                }
                .into());
            }
        };
        let installs = self
            .planned(view, &workflow.call.tool)
            .is_ok_and(|(_, plan)| self.0.loader.needs_install(&plan));
        Ok(PendingAsk {
            kind,
            tool: workflow.call.tool.clone(),
            dependency: Box::new(dependency.clone()),
            arguments: workflow.call.arguments.clone(),
            installs,
            workflow_id: workflow.id.uuid(),
            code: workflow.code.clone(),
            by: stricter(view.config.approvals.by, workflow.origin.by),
            file: self.0.files.project.clone(),
            road: PersonalRoad::of(&self.0.environment),
            expires_in: workflow.expires_at.since(super::now()),
            claim: None,
        })
    }
}
