//! One call, step by step: rules, approval, start, forward.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::list::CONNECT;
use super::{Asked, Outcome, Proxy, Refusal, View};
use crate::config::Server;
use crate::loader::{KnownTool, Plan, Reply, Session, Started, Step};
use crate::permissions::approved::Record;
use crate::permissions::{AskKind, Decision};
use crate::protocol::approval::ApprovalType;
use crate::protocol::{Object, Splice, ToolName};
use crate::workflow::{Arguments, Ask, Call, New, Workflow, WorkflowError};

/// A `tools/call` as the client sent it.
#[derive(Debug, Clone)]
pub struct Carried {
    /// The raw `params` object.
    pub params: Bytes,
    /// Where progress goes, if the client wants any.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// What happens before a call has its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A step of pml's own, in words.
    Start(String),
    /// The raw parameters of the dependency's progress notification.
    Forwarded(Bytes),
}

/// A call that may run.
pub(super) struct Permitted<'a> {
    pub(super) tool: &'a ToolName,
    pub(super) server: &'a Server,
    pub(super) plan: &'a Arc<Plan>,
    /// The integrity a person was shown: nothing else may run under their approval.
    pub(super) shown_integrity: Option<&'a str>,
    pub(super) notes: Vec<String>,
}

/// What a dependency is sent as arguments.
pub(super) enum Sent<'a> {
    /// What the client's call carries.
    AsCarried,
    /// What was suspended.
    Suspended(&'a Arguments),
}

impl Proxy {
    /// Calls a tool: runs it, suspends it, or says why not.
    pub async fn call(&self, name: &str, carried: Carried) -> Outcome {
        let view = match self.view() {
            Ok(view) => view,
            Err(error) => return Outcome::Refused(Refusal::Config(error)),
        };
        let tool = match self.tool_named(&view, name) {
            Ok(tool) => tool,
            Err(nearest) => {
                return Outcome::UnknownTool {
                    name: name.to_owned(),
                    nearest,
                };
            }
        };
        match self.decide(&view, &tool, &carried).await {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    async fn decide(&self, view: &View, tool: &ToolName, carried: &Carried) -> Result<Outcome, Refusal> {
        let decision = view.ruled(tool)?;
        let (server, plan) = self.planned(view, tool)?;
        let kind = match decision {
            Decision::Allow | Decision::Deny => None,
            Decision::Ask(_) if self.0.grants.allows_tool(tool) => None,
            Decision::Ask(AskKind::First) if self.is_approved(&plan) => None,
            Decision::Ask(AskKind::First) => Some(plan.first_use()),
            Decision::Ask(AskKind::Every) => Some(ApprovalType::ToolPermission),
        };
        if let Some(kind) = kind {
            return self
                .ask(view, tool, &plan, kind, carried)
                .await
                .map(Outcome::Asked);
        }
        // An allow rule covers whatever version is declared; an approval covers what was approved.
        let approved = match decision {
            Decision::Allow | Decision::Deny => None,
            Decision::Ask(_) => self.approved_integrity(&plan),
        };
        let permitted = Permitted {
            tool,
            server,
            plan: &plan,
            shown_integrity: approved.as_deref(),
            notes: Vec::new(),
        };
        self.run(view, permitted, carried, Sent::AsCarried).await
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

    /// Starts the dependency if it does not run, and forwards the call.
    pub(super) async fn run(
        &self,
        view: &View,
        permitted: Permitted<'_>,
        carried: &Carried,
        sent: Sent<'_>,
    ) -> Result<Outcome, Refusal> {
        let Permitted {
            tool,
            server,
            plan,
            shown_integrity,
            mut notes,
        } = permitted;
        let dependency = tool.dependency();
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
        if tool.tool() == CONNECT && !known.has_tool(CONNECT) {
            let name = |tool: &KnownTool| ToolName::new(dependency.clone(), tool.name());
            let tools = known.tools.iter().map(name).collect();
            return Ok(Outcome::Connected {
                dependency: dependency.clone(),
                tools,
                notes,
            });
        }
        let forwarding = forward(&started.session, tool, carried, sent);
        let reply = match server.call_timeout {
            None => forwarding.await,
            Some(after) => tokio::time::timeout(after, forwarding)
                .await
                .map_err(|_elapsed| Refusal::TimedOut {
                    tool: tool.clone(),
                    after,
                })?,
        };
        match reply {
            Reply::Result(raw) => Ok(Outcome::Result { raw, notes }),
            Reply::Error(raw) => Ok(Outcome::Error(raw)),
            Reply::Ended(ended) => Err(Refusal::Died {
                dependency: dependency.clone(),
                ended,
            }),
            Reply::Unusable(reason) => Err(Refusal::Unusable {
                dependency: dependency.clone(),
                reason,
            }),
        }
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

    fn approved_integrity(&self, plan: &Plan) -> Option<String> {
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
    Box::new(move |text| drop(progress.try_send(Progress::Start(text))))
}

/// Returns the arguments of a call, byte for byte.
pub(super) fn arguments_of(params: &Bytes) -> Arguments {
    let text = String::from_utf8_lossy(params);
    let arguments = Object::parse(&text).and_then(|object| object.value("arguments"));
    arguments.map_or(Arguments::Absent, |raw| Arguments::Json(raw.get().to_owned()))
}

async fn forward(session: &Session, tool: &ToolName, carried: &Carried, sent: Sent<'_>) -> Reply {
    let mut ticket = session.ticket();
    ticket
        .send("tools/call", addressed(&carried.params, tool, ticket.id(), sent))
        .await;
    loop {
        match ticket.next().await {
            Step::Reply(reply) => return reply,
            Step::Progress(params) => {
                if let Some(progress) = &carried.progress {
                    let _ = progress.send(Progress::Forwarded(params)).await;
                }
            }
        }
    }
}

/// Addresses a call to its dependency: its own name for the tool, our progress token, the arguments that were
/// permitted. Every other byte of the client's parameters stays.
fn addressed(params: &Bytes, tool: &ToolName, id: u64, sent: Sent<'_>) -> Vec<Bytes> {
    // The conversation checked that the parameters are a JSON object, so they are UTF-8.
    let source = match (std::str::from_utf8(params), sent) {
        (Ok(text), Sent::Suspended(Arguments::Absent | Arguments::Erased)) => Object::parse(text)
            .map_or_else(
                || params.clone(),
                |object| Bytes::from(object.without(&["arguments"])),
            ),
        (_, Sent::Suspended(Arguments::Json(arguments))) => replaced_arguments(params, arguments),
        _ => params.clone(),
    };
    let text = String::from_utf8_lossy(&source);
    let mut splice = Splice::new(source.clone());
    if let Some(object) = Object::parse(&text) {
        if let Some(place) = object.place("name") {
            splice.replace(place, serde_json::Value::from(tool.tool()).to_string());
        }
        if let Some(meta) = object.place("_meta")
            && let Some(token) =
                Object::parse(&text[meta.clone()]).and_then(|meta| meta.place("progressToken"))
        {
            splice.replace(meta.start + token.start..meta.start + token.end, id.to_string());
        }
    }
    splice.into_parts()
}

fn replaced_arguments(params: &Bytes, arguments: &str) -> Bytes {
    let text = String::from_utf8_lossy(params);
    let Some(object) = Object::parse(&text) else {
        return params.clone();
    };
    let mut splice = Splice::new(params.clone());
    match object.place("arguments") {
        Some(place) => splice.replace(place, arguments.to_owned()),
        None => splice.replace(
            object.front()..object.front(),
            format!("\"arguments\":{arguments},"),
        ),
    }
    Bytes::from(splice.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(params: &str, sent: Sent<'_>) -> String {
        let parts = addressed(
            &Bytes::from(params.to_owned()),
            &"fs:read".parse().unwrap(),
            7,
            sent,
        );
        String::from_utf8(parts.concat()).unwrap()
    }

    #[test]
    fn only_the_name_and_the_token_change() {
        let params = r#"{ "_meta":{"x":1, "progressToken":"t" }, "name":"fs__read", "arguments":{ "n":1.0 },"future":[1]}"#;
        assert_eq!(
            sent(params, Sent::AsCarried),
            r#"{ "_meta":{"x":1, "progressToken":7 }, "name":"read", "arguments":{ "n":1.0 },"future":[1]}"#
        );
    }

    #[test]
    fn a_resumed_call_carries_the_suspended_arguments_and_no_others() {
        let carrier = r#"{"name":"pml_continue","arguments":{"workflow_id":"x","approved":true},"_meta":{"progressToken":1}}"#;
        let suspended = Arguments::Json(r#"{ "path":"a", "n":12345678901234567890123 }"#.to_owned());
        assert_eq!(
            sent(carrier, Sent::Suspended(&suspended)),
            r#"{"name":"read","arguments":{ "path":"a", "n":12345678901234567890123 },"_meta":{"progressToken":7}}"#
        );
        assert_eq!(
            sent(carrier, Sent::Suspended(&Arguments::Absent)),
            r#"{"name":"read","_meta":{"progressToken":7}}"#
        );
    }
}
