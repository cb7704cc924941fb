//! The status of pml as plain data: the configuration, the servers and the waiting asks.

use std::path::PathBuf;

use serde::Serialize;

use super::{LateAnswer, Proxy, View, now};
use crate::config::{RuleList, Unreached};
use crate::protocol::{DependencyName, ToolName};

/// The status of pml.
#[derive(Debug)]
pub struct Status {
    /// The project's file; `None` where there is none yet.
    pub file: Option<PathBuf>,
    /// The directory of the project, or the one where pml was started.
    pub directory: PathBuf,
    /// The nearest file that does not count.
    pub unreached: Option<Unreached>,
    /// Why the configuration cannot be read.
    pub problem: Option<String>,
    /// The declared servers.
    pub servers: Vec<ServerStatus>,
    /// What waits for a person.
    pub pending: Vec<PendingStatus>,
    /// The answers that came after their call had returned; they count as taken.
    pub answered: Vec<LateAnswer>,
    /// The rules that forbid something, with their place.
    pub denied: Vec<String>,
}

/// The status of one server.
#[derive(Debug)]
pub struct ServerStatus {
    /// Its name.
    pub name: DependencyName,
    /// Whether it runs, could run, or must be installed first.
    pub state: ServerState,
    /// Whether a person approved it as it is declared.
    pub approved: bool,
    /// Its tools, where they are known.
    pub tools: Option<Vec<ToolName>>,
    /// Why it cannot be started.
    pub problem: Option<String>,
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// It answers calls.
    Running,
    /// It can be started at once.
    Ready,
    /// Its package would be installed first.
    NotInstalled,
    /// It is switched off.
    Disabled,
    /// It cannot be started as it is declared.
    Broken,
}

/// One ask that waits.
#[derive(Debug, Serialize)]
pub struct PendingStatus {
    /// The name by which people speak of it.
    pub code: String,
    /// The tool it is about.
    pub tool: ToolName,
    /// How long it still waits.
    pub expires_in_seconds: u64,
}

impl Proxy {
    /// Returns the status of pml; the late answers that it tells count as taken.
    pub async fn status(&self) -> Status {
        let answered = self.take_late_answers().await;
        let pending = self.0.workflows.pending().await.unwrap_or_default();
        self.learn_approvals().await;
        let pending = pending
            .into_iter()
            .filter(|workflow| workflow.project == self.project())
            .map(|workflow| PendingStatus {
                code: workflow.code.to_string(),
                tool: workflow.call.tool,
                expires_in_seconds: workflow.expires_at.since(now()).as_secs(),
            })
            .collect();
        let mut status = Status {
            file: Some(self.0.files.project.clone()).filter(|file| file.exists()),
            directory: self.project().to_owned(),
            unreached: self.0.files.unreached.clone(),
            problem: None,
            servers: Vec::new(),
            pending,
            answered,
            denied: Vec::new(),
        };
        match self.current_view().await {
            Err(error) => status.problem = Some(error.to_string()),
            Ok(view) => {
                self.read_known(&view).await;
                status.servers = view
                    .config
                    .servers
                    .keys()
                    .map(|name| self.server_status(&view, name))
                    .collect();
                let denies = view
                    .config
                    .rules
                    .iter()
                    .filter(|rule| rule.list == RuleList::Deny);
                status.denied = denies
                    .map(|rule| format!("{} in {}", rule.pattern, super::rule_place::place(rule)))
                    .collect();
            }
        }
        status
    }

    fn server_status(&self, view: &View, name: &DependencyName) -> ServerStatus {
        let broken = |problem: String| ServerStatus {
            name: name.clone(),
            state: ServerState::Broken,
            approved: false,
            tools: None,
            problem: Some(problem),
        };
        let Some(server) = view.server(name) else {
            return broken("not declared".to_owned());
        };
        let plan = match view.plan(name, server, &self.0.environment) {
            Ok(plan) => plan,
            Err(error) => return broken(error.to_string()),
        };
        let state = if server.disabled {
            ServerState::Disabled
        } else if self.0.loader.is_running(&plan) {
            ServerState::Running
        } else if self.0.loader.needs_install(&plan) {
            ServerState::NotInstalled
        } else {
            ServerState::Ready
        };
        let known = self.0.loader.known(&plan);
        let tools = known.map(|known| {
            known
                .tools
                .iter()
                .map(|tool| ToolName::new(name.clone(), tool.name()))
                .collect()
        });
        ServerStatus {
            name: name.clone(),
            state,
            approved: self.is_approved(&plan),
            tools,
            problem: None,
        }
    }
}
