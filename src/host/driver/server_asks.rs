//! What pml itself asks about the servers behind it, in the process that serves the agent: shown, counted and kept here like
//! every other ask of the run; that process takes the answer.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use super::super::error::RunError;
use super::super::machine::{AskRoad, Event, OpenAsk};
use super::super::record::{KeptAsk, KeptAskKind};
use super::super::run_line::{AskOutcome, OwnLine};
use super::{Driver, Happened};
use crate::proxy::{Workflow, WorkflowId};

impl Driver {
    /// Begins to look for what other processes ask in this run.
    pub(super) fn watch_servers(&self) {
        let (asks, decided, ended) = (self.asks.clone(), self.decided.clone(), self.agent.ended());
        let (told, mut open) = mpsc::unbounded_channel();
        self.tasks
            .spawn(async move { asks.watch_servers(told, ended).await });
        self.tasks.spawn(async move {
            while let Some(open) = open.recv().await {
                if decided.send(Happened::ServerAsks(open)).is_err() {
                    return;
                }
            }
        });
    }

    /// Takes note of what pml asks now, and of what it does not ask any more.
    pub(super) async fn see_server_asks(&mut self, open: Vec<Workflow>) -> Result<(), RunError> {
        let now: BTreeSet<WorkflowId> = open.iter().map(|workflow| workflow.id).collect();
        let over: Vec<WorkflowId> = self.server_asks.difference(&now).copied().collect();
        for id in over {
            self.server_asks.remove(&id);
            let outcome = AskOutcome::Delivered;
            self.journal.own(OwnLine::Answered { id, outcome }).await;
            self.step(Event::AskOver {
                request: request_of(id),
            })
            .await?;
        }
        for workflow in open {
            let id = workflow.id;
            // What an earlier process of this run put is asked again by the agent.
            let is_own = |kept: &KeptAsk| kept.workflow == id && kept.kind != KeptAskKind::Server;
            if self.record.asks.iter().any(is_own) || !self.server_asks.insert(id) {
                continue;
            }
            if !self.record.asks.iter().any(|kept| kept.workflow == id) {
                self.record.asks.push(KeptAsk {
                    workflow: id,
                    call: String::new(),
                    kind: KeptAskKind::Server,
                });
                self.save().await?;
            }
            let line = OwnLine::Ask {
                id,
                code: workflow.code.to_string(),
                call: String::new(),
            };
            self.journal.own(line).await;
            self.step(Event::Asked(OpenAsk {
                request: request_of(id),
                tool_use: String::new(),
                road: AskRoad::Open,
            }))
            .await?;
        }
        Ok(())
    }
}

/// Names an ask that is no request of the agent.
fn request_of(id: WorkflowId) -> String {
    format!("pml-ask-{id}")
}
