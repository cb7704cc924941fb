//! One call, step by step: rules, approval, start, forward.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::list::CONNECT;
use super::route::{Approval, Given, Target};
use super::{Asked, Outcome, Proxy, Ready, Refusal, Route, View, Wanted};
use crate::config::Server;
use crate::loader::{KnownTool, Plan, Started};
use crate::permissions::approved::Record;
use crate::permissions::{AskKind, Decision};
use crate::protocol::approval::ApprovalType;
use crate::protocol::{Object, ToolName};
use crate::workflow::{Arguments, Ask, Call, New, Workflow, WorkflowError};

/// A request as the client sent it.
#[derive(Debug, Clone)]
pub struct Carried {
    /// The raw `params` object.
    pub params: Bytes,
    /// Where progress goes, if the client wants any.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// A step of pml's own on the way to an answer, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress(pub String);

/// A call that may run.
pub(super) struct Permitted<'a> {
    pub(super) target: Target,
    pub(super) server: &'a Server,
    pub(super) plan: &'a Arc<Plan>,
    /// The integrity a person was shown: nothing else may run under their approval.
    pub(super) shown_integrity: Option<&'a str>,
    /// For what their approval was given, where one was needed.
    pub(super) given: Given,
    pub(super) notes: Vec<String>,
    /// The arguments that were suspended, in place of those the request came with.
    pub(super) suspended: Option<Arguments>,
}

impl Proxy {
    /// Asks for something: it may run, is suspended, or is refused.
    pub async fn call(&self, wanted: Wanted<'_>, carried: Carried) -> Outcome {
        let view = match self.view() {
            Ok(view) => view,
            Err(error) => return Outcome::Refused(Refusal::Config(error)),
        };
        let target = match self.target(&view, wanted) {
            Ok(target) => target,
            Err(unknown) => return Outcome::Unknown(unknown),
        };
        match self.decide(&view, wanted, target, &carried).await {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    async fn decide(
        &self,
        view: &View,
        wanted: Wanted<'_>,
        target: Target,
        carried: &Carried,
    ) -> Result<Outcome, Refusal> {
        let tool = target.tool.clone();
        let decision = view.ruled(&tool)?;
        let (server, plan) = self.planned(view, &tool)?;
        let kind = match decision {
            Decision::Allow | Decision::Deny => None,
            Decision::Ask(_) if self.0.grants.allows_tool(&tool) => None,
            Decision::Ask(AskKind::First) if self.is_approved(&plan) => None,
            Decision::Ask(AskKind::First) => Some(plan.first_use()),
            Decision::Ask(AskKind::Every) => Some(ApprovalType::ToolPermission),
        };
        if let Some(kind) = kind {
            return self
                .ask(view, &tool, &plan, kind, carried)
                .await
                .map(Outcome::Asked);
        }
        // An allow rule covers whatever version is declared; an approval covers what was approved.
        let approved = match decision {
            Decision::Allow | Decision::Deny => None,
            Decision::Ask(_) => self.approved_integrity(&plan),
        };
        let permitted = Permitted {
            target,
            server,
            plan: &plan,
            shown_integrity: approved.as_deref(),
            given: Given::Standing,
            notes: Vec::new(),
            suspended: None,
        };
        let outcome = self.run(view, permitted, carried).await?;
        // What a person granted for one tool until the end of the session is not looked up by its launch.
        let memorable = matches!(decision, Decision::Allow | Decision::Ask(AskKind::First));
        if let (Outcome::Ready(ready), Wanted::Tool(name), true) = (&outcome, wanted, memorable)
            && ready.notes.is_empty()
        {
            view.remember_route(name, &ready.route);
        }
        Ok(outcome)
    }

    /// Returns what would run for a tool.
    pub(super) fn planned<'v>(
        &self,
        view: &'v View,
        tool: &ToolName,
    ) -> Result<(&'v Server, Arc<Plan>), Refusal> {
        let dependency = tool.dependency();
        let server = view
            .server(dependency)
            .filter(|server| !server.disabled)
            .ok_or_else(|| Refusal::Disabled {
                dependency: dependency.clone(),
            })?;
        let plan = view
            .plan(dependency, server, &self.0.environment)
            .map_err(|source| Refusal::Plan {
                dependency: dependency.clone(),
                source,
            })?;
        Ok((server, plan))
    }

    /// Suspends a call until a person has decided, and finds out in the background what is not known yet.
    async fn ask(
        &self,
        view: &View,
        tool: &ToolName,
        plan: &Arc<Plan>,
        kind: ApprovalType,
        carried: &Carried,
    ) -> Result<Asked, Refusal> {
        let resolved = self.0.loader.resolved(plan);
        let dependency = plan.shown(resolved.as_ref());
        let installs = self.0.loader.needs_install(plan);
        if installs && dependency.integrity.is_none() {
            self.0.loader.resolve_in_background(plan);
        }
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
        let arguments = arguments_of(&carried.params);
        let call = Call {
            tool: tool.clone(),
            arguments,
            launch: plan.digest().clone(),
        };
        let time_to_live = view.config.approvals.time_to_live;
        let new = New {
            ask,
            call,
            time_to_live,
            project: self.project().to_owned(),
        };
        let workflow = self.0.workflows.create(new).await?.workflow();
        self.asked(view, &workflow)
    }

    /// Describes a suspended call as a person is shown it.
    pub(super) fn asked(&self, view: &View, workflow: &Workflow) -> Result<Asked, Refusal> {
        let (kind, dependency) = match &workflow.ask {
            Ask::Install { dependency } => (ApprovalType::DependencyInstall, dependency),
            Ask::Connect { dependency } => (ApprovalType::RemoteConnect, dependency),
            Ask::Permit { dependency } => (ApprovalType::ToolPermission, dependency),
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
        Ok(Asked {
            kind,
            tool: workflow.call.tool.clone(),
            dependency: dependency.clone(),
            installs,
            workflow_id: workflow.id.uuid(),
            code: workflow.code.clone(),
            by: view.config.approvals.by,
            file: self.0.files.project.clone(),
            expires_in: workflow.expires_at.since(super::now()),
        })
    }

    /// Starts the dependency if it does not run; the request may go to it then.
    pub(super) async fn run(
        &self,
        view: &View,
        permitted: Permitted<'_>,
        carried: &Carried,
    ) -> Result<Outcome, Refusal> {
        let Permitted {
            target,
            server,
            plan,
            shown_integrity,
            given,
            mut notes,
            suspended,
        } = permitted;
        let dependency = target.tool.dependency();
        let progress = carried.progress.clone();
        let started = self
            .0
            .loader
            .start(
                plan,
                server,
                view.config.line_limit.0,
                shown_integrity,
                progress.map(step_sender),
            )
            .await
            .map_err(|source| Refusal::Load {
                dependency: dependency.clone(),
                source,
            })?;
        notes.extend(self.record_first_use(plan, &started));
        let known = started.known();
        if target.tool.tool() == CONNECT && !known.has_tool(CONNECT) {
            started.session.settle();
            let name = |tool: &KnownTool| ToolName::new(dependency.clone(), tool.name());
            let tools = known.tools.iter().map(name).collect();
            return Ok(Outcome::Connected {
                dependency: dependency.clone(),
                tools,
                notes,
            });
        }
        let approval = match view.ruled(&target.tool)? {
            Decision::Ask(_) => Some(Approval {
                launch: plan.digest().clone(),
                integrity: started.resolved.and_then(|resolved| resolved.integrity),
                given,
            }),
            Decision::Allow | Decision::Deny => None,
        };
        let route = Route::new(started.session, target, server.call_timeout, approval);
        Ok(Outcome::Ready(Ready {
            route: Arc::new(route),
            suspended,
            notes,
        }))
    }

    /// Where a person approved before the integrity was known, the first use decides what they approved.
    fn record_first_use(&self, plan: &Plan, started: &Started) -> Option<String> {
        let resolved = started.resolved.as_ref()?;
        let integrity = resolved.integrity.as_ref()?;
        let record = self.0.approved.find(plan.digest()).ok().flatten()?;
        if record.integrity.is_some() {
            return None;
        }
        let record = Record {
            version: Some(resolved.version.clone()),
            integrity: Some(integrity.clone()),
            ..record
        };
        let name = plan.dependency();
        Some(match self.0.approved.record(plan.digest(), &record) {
            Ok(()) => format!(
                "pml: the integrity of {name}@{} was not known when it was approved; {integrity} was recorded at \
                 this first use, and only that runs from now on",
                resolved.version
            ),
            Err(error) => format!("pml: the integrity of {name} could not be recorded: {error}"),
        })
    }

    /// Tells whether a person approved this dependency as it is declared and installed.
    pub(super) fn is_approved(&self, plan: &Plan) -> bool {
        if self.0.grants.allows_launch(plan.digest()) {
            return true;
        }
        let resolved = self
            .0
            .loader
            .resolved(plan)
            .and_then(|resolved| resolved.integrity);
        match self.0.approved.covers(plan.digest(), resolved.as_deref()) {
            Ok(covers) => covers,
            Err(error) => {
                tracing::warn!(dependency = %plan.dependency(), %error, "an approval cannot be read and does not count");
                false
            }
        }
    }

    pub(super) fn approved_integrity(&self, plan: &Plan) -> Option<String> {
        self.0
            .approved
            .find(plan.digest())
            .ok()
            .flatten()
            .and_then(|record| record.integrity)
    }
}

fn step_sender(progress: mpsc::Sender<Progress>) -> Box<dyn Fn(String) + Send + Sync> {
    // A client that reads slowly misses a step, never the answer.
    Box::new(move |text| drop(progress.try_send(Progress(text))))
}

/// Returns the arguments of a call, byte for byte.
pub(super) fn arguments_of(params: &Bytes) -> Arguments {
    let text = String::from_utf8_lossy(params);
    let arguments = Object::parse(&text).and_then(|object| object.value("arguments"));
    arguments.map_or(Arguments::Absent, |raw| Arguments::Json(raw.get().to_owned()))
}
