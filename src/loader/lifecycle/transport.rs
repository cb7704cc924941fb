//! The transport of a server's lines: a process that is started, or an address that is connected to.
//!
//! Above this module the two are the same: there are lines to read, lines to write, and a reason why they ended.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::server_variables::ServerVariables;
use crate::config::Environment;
use crate::loader::install::Installed;
use crate::loader::plan::{Plan, PlanSource, variables};
use crate::loader::process::{
    self, Exit, LaunchLine, Process, SpawnError, Stderr, Urgency, find_in_project, find_program, supervisor,
};
use crate::loader::remote;
use crate::loader::session::{EndReason, RequestFailures};
use crate::protocol::{Secrets, Shown};

/// How the lines of a dependency are reached: those of a process, or those of a server elsewhere.
pub(super) struct ServerTransport {
    pub(super) source: Box<dyn AsyncRead + Unpin + Send>,
    pub(super) sink: Box<dyn AsyncWrite + Unpin + Send>,
    /// Why requests failed on the way.
    pub(super) failures: RequestFailures,
    pub(super) stderr: Stderr,
    /// What it was given in confidence.
    pub(super) secrets: Secrets,
    /// Ends it at once.
    pub(super) urgent: CancellationToken,
    /// Why it ended, once it has.
    pub(super) end: watch::Receiver<Option<EndReason>>,
}

/// Starts the process, or opens the way to a server elsewhere.
pub(super) fn open_transport(
    plan: &Plan,
    installed: Option<&Installed>,
    line_limit: usize,
    environment: &Environment,
    urgent: CancellationToken,
    tasks: &TaskTracker,
) -> Result<ServerTransport, SpawnError> {
    if let PlanSource::Remote(address) = plan.source() {
        let remote = remote::connect(
            plan.dependency(),
            (address, plan.secrets()),
            line_limit,
            environment,
            urgent.clone(),
            tasks,
        );
        return Ok(ServerTransport {
            source: Box::new(remote.source),
            sink: Box::new(remote.sink),
            failures: remote.failures,
            stderr: Stderr::default(),
            secrets: plan.secrets().clone(),
            urgent,
            end: remote.ended,
        });
    }
    let line = launch_line(plan, installed, environment)?;
    let supervisor = supervisor::program().map_err(|cause| SpawnError::Supervisor {
        name: plan.dependency().clone(),
        supervisor: PathBuf::from("pml"),
        cause,
    })?;
    let (process, pipes) = process::spawn(plan.dependency(), &line, &supervisor)?;
    let (stderr, secrets) = (process.stderr(), line.secrets);
    let (urgent, end) = follow(process, urgent, tasks);
    Ok(ServerTransport {
        source: Box::new(pipes.stdout),
        sink: Box::new(pipes.stdin),
        failures: RequestFailures::default(),
        stderr,
        secrets,
        urgent,
        end,
    })
}

/// Waits for the end and returns why it came.
pub(super) async fn end_of(mut end: watch::Receiver<Option<EndReason>>) -> EndReason {
    let reason = end
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|end| end.clone());
    reason.unwrap_or(EndReason::Exited(Exit::Unsupervised))
}

/// Waits for the end of a process in a task of its own, which also signals it when it must go at once.
fn follow(
    mut process: Process,
    urgent: CancellationToken,
    tasks: &TaskTracker,
) -> (CancellationToken, watch::Receiver<Option<EndReason>>) {
    let (tell, end) = watch::channel(None);
    let hurry = urgent.clone();
    tasks.spawn(async move {
        let exited = tokio::select! {
            exited = process.exited() => Some(exited),
            () = hurry.cancelled() => None,
        };
        let exited = match exited {
            Some(exited) => exited,
            None => process.stop(Urgency::AtOnce).await,
        };
        tell.send_replace(Some(EndReason::Exited(exited)));
    });
    (urgent, end)
}

fn launch_line(
    plan: &Plan,
    installed: Option<&Installed>,
    environment: &Environment,
) -> Result<LaunchLine, SpawnError> {
    let (program, leading) = match (plan.source(), installed) {
        (_, Some(installed)) => (installed.program.clone(), installed.leading.clone()),
        (PlanSource::Command { program }, None) => (found(plan, program, environment)?, Vec::new()),
        // A package is always installed before it is opened.
        (PlanSource::Package(package), None) => (PathBuf::from(package.name()), Vec::new()),
        // Nothing is launched for a server elsewhere.
        (PlanSource::Remote(_), None) => (PathBuf::new(), Vec::new()),
    };
    let given = ServerVariables::read(plan).map_err(|source| SpawnError::VariablesFile {
        name: plan.dependency().clone(),
        source,
    })?;
    Ok(LaunchLine {
        program,
        arguments: leading
            .into_iter()
            .chain(plan.arguments().iter().map(Into::into))
            .collect(),
        variables: variables::variables(environment, &given.variables),
        directory: plan.directory().to_owned(),
        secrets: given.secrets,
    })
}

/// Looks a bare name up on the user's `PATH`: a person who approved `node` means their own.
///
/// A `PATH` that the server declares is shown in the question, and counts as it is.
fn found(plan: &Plan, program: &Path, environment: &Environment) -> Result<PathBuf, SpawnError> {
    let name = program.to_str().filter(|name| !name.contains('/'));
    let Some(name) = name.filter(|_| !plan.variables().contains_key("PATH")) else {
        return Ok(program.to_owned());
    };
    match (
        find_program(name, environment),
        find_in_project(name, environment),
    ) {
        (Some(found), _) => Ok(found),
        (None, Some(found)) => Err(SpawnError::InProject {
            name: plan.dependency().clone(),
            program: Shown::line(name).to_string(),
            found,
        }),
        // It is nowhere: the supervisor says so.
        (None, None) => Ok(program.to_owned()),
    }
}
