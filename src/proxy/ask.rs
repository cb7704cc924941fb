//! Suspends a call that a person must decide about.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::ask_reason::AskReason;
use super::authority::{PersonalRoad, policy_for, stricter};
use super::call::{ClientRequest, WaitMode, arguments_of};
use super::continuation::{Carrier, DecisionSource};
use super::progress::step_sender;
use super::project_trust::shown_file;
use super::shared_asks::Sharing;
use super::{AskOwnership, Outcome, PendingAsk, Proxy, Refusal, RequestedItem, View};
use crate::config::By;
use crate::loader::{Plan, Steps};
use crate::protocol::ToolName;
use crate::protocol::approval::{ApprovalType, AskSubject, ShownDependency};
use crate::workflow::{
    Ask, AskAttendance, AskingClient, NewWorkflow, Origin, SuspendedCall, Suspension, TransitionError,
    Workflow, WorkflowError,
};

/// The variable by which Claude Code names its session to the servers it starts.
const CLIENT_SESSION: &str = "CLAUDE_CODE_SESSION_ID";

/// The variable by which Claude Code tells the servers it starts where its session was begun.
const CLIENT_DIRECTORY: &str = "CLAUDE_PROJECT_DIR";

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
        reason: AskReason,
        client_request: &ClientRequest,
    ) -> Result<Outcome, Refusal> {
        let may_join = !matches!(reason, AskReason::EveryCall);
        let ask = self.subject(view, tool, plan, reason, client_request).await?;
        let arguments = arguments_of(&client_request.params);
        let call = SuspendedCall {
            tool: tool.clone(),
            arguments,
            // What an answer grants is bound to this.
            launch: match &ask {
                Ask::Trust { file } => file.content.clone(),
                Ask::Install { .. }
                | Ask::Connect { .. }
                | Ask::Permit { .. }
                | Ask::Use { .. }
                | Ask::Integrity { .. }
                | Ask::Questions { .. } => plan.digest().clone(),
            },
        };
        let mut new = NewWorkflow {
            ask,
            call,
            time_to_live: self.patience(view),
            project: self.project().to_owned(),
            origin: self.origin(view),
            attended: match client_request.patience {
                WaitMode::InTheCall | WaitMode::ForARetry => AskAttendance::ByItsCall,
                WaitMode::None => AskAttendance::ByNone,
            },
            twin: 0,
            channel: None,
        };
        loop {
            let suspending = self.suspend_once(view, new.clone(), plan, client_request);
            let suspension = match suspending.await? {
                Sharing::Own(suspension) => *suspension,
                Sharing::Shared(outcome) => return Ok(*outcome),
                Sharing::Accepted => return Ok(self.call_again(requested, client_request).await),
            };
            match suspension {
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
                    if client_request.patience == WaitMode::InTheCall && may_join {
                        return Ok(Outcome::Joined(workflow.id));
                    }
                    new.twin += 1;
                }
            }
        }
    }

    /// Returns what a person is asked; what the registry has not said yet about a package is asked for first.
    async fn subject(
        &self,
        view: &View,
        tool: &ToolName,
        plan: &Arc<Plan>,
        reason: AskReason,
        client_request: &ClientRequest,
    ) -> Result<Ask, Refusal> {
        if let AskReason::ProjectTrust = reason {
            let file = view.config.project.unaccepted();
            let file = file.ok_or_else(|| Refusal::Changed { tool: tool.clone() })?;
            return Ok(Ask::Trust {
                file: shown_file(file),
            });
        }
        let mut dependency = self.0.loader.shown(plan);
        if self.0.loader.needs_install(plan) {
            let resolved = match reason {
                // What is installed with another version is part of what changes.
                AskReason::PackageChanged => {
                    let steps = client_request.steps();
                    self.0.loader.find_contents_soon(plan, steps).await
                }
                AskReason::FirstUse
                | AskReason::EveryCall
                | AskReason::ProjectTrust
                | AskReason::LaunchChanged
                | AskReason::ServerChanged(_) => self.0.loader.resolve_soon(plan).await,
            };
            // No answer could have it installed: a person need not be asked.
            resolved.map_err(|error| Refusal::Load {
                dependency: plan.dependency().clone(),
                source: Arc::new(error.into()),
            })?;
            self.read_known(view).await;
            dependency = self.0.loader.shown(plan);
        }
        self.learn_approvals().await;
        let before = self.approved_content(plan).lock;
        let now = &mut dependency.installation;
        now.dependencies_changed = before.is_some() && now.lock.is_some() && before != now.lock;
        let changed = || Refusal::Changed { tool: tool.clone() };
        Ok(match reason {
            AskReason::FirstUse if dependency.remote.is_some() => Ask::Connect { dependency },
            AskReason::FirstUse => Ask::Install { dependency },
            AskReason::EveryCall | AskReason::ProjectTrust => Ask::Permit { dependency },
            AskReason::PackageChanged | AskReason::LaunchChanged => {
                // Compared again: the registry may have said more meanwhile, and what is shown is what is accepted.
                let server = view.server(plan.dependency()).ok_or_else(changed)?;
                let change = match self.package_change(view, server, plan).await? {
                    Some(change) => Some(change),
                    None => self.launch_question(view, server, plan).await?,
                };
                dependency.installation.change = Some(change.ok_or_else(changed)?);
                Ask::Integrity { dependency }
            }
            AskReason::ServerChanged(change) => {
                dependency.installation.change = Some(change);
                Ask::Integrity { dependency }
            }
        })
    }

    /// Puts an ask into the store; one that is new is told to a person whom nothing shows it to.
    pub(super) async fn suspend(&self, view: &View, new: NewWorkflow) -> Result<Suspension, WorkflowError> {
        let suspension = self.created(new).await?;
        if let Suspension::New(workflow) = &suspension {
            self.0.notifier.announce(workflow.id, view.config.notify.as_ref());
        }
        Ok(suspension)
    }

    /// Creates an ask in a task of its own: a call that is cancelled while the store or the history writes leaves none behind.
    async fn created(&self, new: NewWorkflow) -> Result<Suspension, WorkflowError> {
        let (give, taken) = oneshot::channel();
        let proxy = self.clone();
        self.0.withdrawals.spawn(async move {
            let created = proxy.0.workflows.create(new).await;
            // Where the call is gone, this goes as well, and takes along what was asked.
            let _ = give.send(created.map(|suspension| UnclaimedAsk {
                proxy: proxy.clone(),
                suspension: Some(suspension),
            }));
        });
        let mut created = taken.await.map_err(|_| self.0.workflows.stopped())??;
        let suspension = created.suspension.take();
        suspension.ok_or_else(|| self.0.workflows.stopped())
    }

    /// Names the conversation that asks, and the configuration it asks under.
    pub(super) fn origin(&self, view: &View) -> Origin {
        // The person of a run is there for it: its agent, and what that starts, never speaks for them.
        let by = if self.is_in_run() {
            By::Human
        } else {
            view.config.approvals.by
        };
        Origin {
            config: self.0.files.project.clone(),
            by,
            asker: self.0.scope.asker(),
            client: AskingClient {
                name: self.0.loader.client_name(),
                session: self.variable(CLIENT_SESSION),
                directory: self.session_directory(),
                run: self.run_name(),
                process: self.0.scope.process(),
            },
        }
    }

    /// Returns how long an approval may take: in a run it waits as long as a question does, as its person may come back later.
    fn patience(&self, view: &View) -> Duration {
        if self.is_in_run() {
            view.config.ask_user.kept
        } else {
            view.config.approvals.time_to_live
        }
    }

    /// Tells whether the client is an agent that `pml run` hosts: its calls wait for their person, and it shows no dialog.
    #[must_use]
    pub fn is_in_run(&self) -> bool {
        self.0.environment.variable(RUN).is_some()
    }

    /// Returns the run that the client belongs to.
    pub(super) fn run_name(&self) -> Option<String> {
        self.variable(RUN)
    }

    /// Returns where the client's session was begun: it can be resumed there only.
    fn session_directory(&self) -> Option<String> {
        self.variable(CLIENT_SESSION)?;
        let environment = &self.0.environment;
        let named = environment.variable(CLIENT_DIRECTORY).map(Path::new);
        let directory = named.unwrap_or_else(|| environment.working_directory());
        directory.to_str().map(str::to_owned)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.0.environment.variable(name)?.to_str()?;
        (!value.is_empty()).then(|| value.chars().take(NAME_LIMIT).collect())
    }

    /// Describes a suspended call as a person is shown it.
    pub(super) fn asked(&self, view: &View, workflow: &Workflow) -> Result<PendingAsk, Refusal> {
        let about = |dependency: &ShownDependency| AskSubject::Dependency(dependency.clone());
        let (kind, subject) = match &workflow.ask {
            Ask::Install { dependency } => (ApprovalType::DependencyInstall, about(dependency)),
            Ask::Connect { dependency } => (ApprovalType::RemoteConnect, about(dependency)),
            Ask::Permit { dependency } => (ApprovalType::ToolPermission, about(dependency)),
            Ask::Trust { file } => (ApprovalType::ProjectTrust, AskSubject::ProjectFile(file.clone())),
            Ask::Integrity { dependency } => (ApprovalType::Integrity, about(dependency)),
            Ask::Use { .. } | Ask::Questions { .. } => {
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
            subject: Box::new(subject),
            arguments: workflow.call.arguments.clone(),
            card: Box::new(self.card(workflow)),
            installs,
            workflow_id: workflow.id.uuid(),
            code: workflow.code.clone(),
            by: policy_for(
                &workflow.ask,
                stricter(view.config.approvals.by, workflow.origin.by),
            ),
            road: PersonalRoad::of(&self.0.environment),
            expires_in: workflow.expires_at.since(super::now()),
            claim: None,
            ownership: AskOwnership::OfThisCall,
        })
    }
}

impl ClientRequest {
    /// Returns where steps of pml's own are told, if the client wants any.
    pub(super) fn steps(&self) -> Option<Steps> {
        self.progress.clone().map(step_sender)
    }
}

/// An ask on its way to the call that wants it; one that is new is withdrawn where this is dropped before.
struct UnclaimedAsk {
    proxy: Proxy,
    suspension: Option<Suspension>,
}

impl Drop for UnclaimedAsk {
    fn drop(&mut self) {
        if let Some(Suspension::New(workflow)) = &self.suspension {
            self.proxy.withdraw_later(workflow.id);
        }
    }
}
