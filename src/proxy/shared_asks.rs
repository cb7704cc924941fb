//! Asks that several calls of a conversation share: about a changed server, and about the project's file.
//!
//! What such an answer accepts does not depend on the call that asked, so calls at the same time ask once and all go on
//! after the one answer. A call that waits in a dialog's time joins; any other is told to come again.

use std::collections::HashMap;
use std::sync::Arc;

use super::call::{ClientRequest, WaitMode};
use super::{AskOwnership, Outcome, PendingAsk, Proxy, Refusal, RequestedItem, View, project_trust};
use crate::loader::Plan;
use crate::protocol::approval::ChangedPart;
use crate::protocol::{Digest, ToolName};
use crate::workflow::{
    Answer, Ask, AskAttendance, NewWorkflow, State, Suspension, ToolExpectation, Workflow, WorkflowId,
};

/// More asks than a conversation has open; beyond this they are forgotten, and calls ask on their own.
const OPEN: usize = 200;

/// The open asks of a conversation by what their answers would accept.
#[derive(Debug, Default)]
pub(super) struct SharedAsks {
    open: tokio::sync::Mutex<HashMap<Digest, WorkflowId>>,
    /// Counts the asks whose call returned without an answer, for the calls that had joined it.
    left: tokio::sync::watch::Sender<u64>,
}

/// How a call stands to an ask that it could share.
pub(super) enum Sharing {
    /// It asks itself, and others may share that.
    Own(Box<Suspension>),
    /// It came to this with the ask of another call.
    Shared(Box<Outcome>),
    /// What it would ask about was accepted meanwhile: it is decided anew.
    Accepted,
}

/// Names what an answer would accept; `None` where it is about one call.
fn key(ask: &Ask, plan: &Plan) -> Option<Digest> {
    match ask {
        Ask::Trust { file } => Some(file.content.clone()),
        // It would accept nothing, whatever it says.
        Ask::Integrity { dependency } if dependency.awaits_contents() => Some(awaiting_key(plan)),
        Ask::Integrity { dependency } => {
            let change = dependency.installation.change.as_ref()?;
            let part = match change.part {
                ChangedPart::Launch => "launch",
                ChangedPart::Package => "package",
                ChangedPart::Tools => "tools",
                ChangedPart::Scripts => "scripts",
            };
            let server = plan.dependency().as_str();
            Some(Digest::of([
                "shared",
                server,
                plan.digest().as_str(),
                part,
                change.content.as_str(),
            ]))
        }
        Ask::Install { .. }
        | Ask::Connect { .. }
        | Ask::Permit { .. }
        | Ask::Use { .. }
        | Ask::Questions { .. } => None,
    }
}

/// Names the question about another package that does not know yet what is installed with it.
fn awaiting_key(plan: &Plan) -> Digest {
    Digest::of(["awaiting", plan.dependency().as_str(), plan.digest().as_str()])
}

impl Proxy {
    /// Suspends a call, or lets it share the ask of another call that is about the same.
    pub(super) async fn suspend_once(
        &self,
        view: &View,
        new: NewWorkflow,
        plan: &Arc<Plan>,
        client_request: &ClientRequest,
    ) -> Result<Sharing, Refusal> {
        let Some(key) = key(&new.ask, plan) else {
            return Ok(Sharing::Own(Box::new(self.suspend(view, new).await?)));
        };
        // Held while the ask is made: of calls at the same time one asks, and the others find it.
        let mut open = self.0.open_asks.open.lock().await;
        if let Some(id) = open.get(&key).copied() {
            match self.0.workflows.find(id).await {
                Ok(found) if found.call == new.call && !is_taken(&found) => {}
                Ok(found) if !found.is_live_at(super::now()) => {}
                Ok(found) if found.state == State::Pending => {
                    drop(open);
                    let is_shown =
                        found.attended == AskAttendance::ByItsCall && self.card(&found).fits_dialog();
                    if client_request.patience == WaitMode::InTheCall && is_shown {
                        return Ok(Sharing::Shared(Box::new(Outcome::Joined(id))));
                    }
                    let asked = self.asked(view, &found)?;
                    return Ok(Sharing::Shared(Box::new(Outcome::Asked(PendingAsk {
                        ownership: AskOwnership::OfAnotherCall,
                        ..asked
                    }))));
                }
                Ok(found) if is_approved(&found) => {
                    if !is_taken(&found) {
                        // Used up: it counts for this change, and not once more if the server changes back and forth.
                        // Where the call that asked is faster, the answer is used up as well.
                        let _ = self
                            .take(id, ToolExpectation::AnyTool, None, Arc::clone(plan))
                            .await;
                    }
                    // Written before the next call looks: it would find the change, and no ask about it.
                    self.accept_shared(view, plan, &found).await?;
                    open.remove(&key);
                    drop(open);
                    self.find_awaited(plan, &found, client_request.steps()).await?;
                    return Ok(Sharing::Accepted);
                }
                Ok(_) | Err(_) => {}
            }
        }
        // The call that took the answer may have accepted it since this one was compared.
        if let Some(server) = view.server(plan.dependency()) {
            self.compare_tools(view, server, plan).await;
        }
        if !self.still_asks(&new.ask, &new.call.tool, plan).await? {
            open.remove(&key);
            return Ok(Sharing::Accepted);
        }
        let suspension = self.suspend(view, new).await?;
        if open.len() >= OPEN {
            open.clear();
        }
        let (Suspension::New(asked) | Suspension::Existing(asked) | Suspension::Answered(asked)) =
            &suspension;
        let awaiting = awaiting_key(plan);
        let replaced = { open.remove(&awaiting) }.filter(|_| key != awaiting);
        open.insert(key, asked.id);
        drop(open);
        if let Some(id) = replaced {
            self.withdraw_replaced(id).await;
        }
        Ok(Sharing::Own(Box::new(suspension)))
    }

    /// Withdraws a question in whose place a person sees one that knows more, unless its own call shows it to them.
    async fn withdraw_replaced(&self, id: WorkflowId) {
        let found = self.0.workflows.find(id).await;
        if found.is_ok_and(|found| found.attended == AskAttendance::ByNone && found.state == State::Pending) {
            self.withdraw_later(id);
        }
    }

    /// Forgets an ask whose answer was taken: what comes after it is asked about anew.
    pub(super) async fn forget_shared(&self, id: WorkflowId) {
        let mut open = self.0.open_asks.open.lock().await;
        open.retain(|_, shared| *shared != id);
    }

    /// Leaves an ask to the inbox: its call returns, and the calls that had joined it do, too.
    pub(super) async fn leave_to_inbox(&self, id: WorkflowId) -> Result<(), Refusal> {
        self.0.workflows.leave_unattended(id).await?;
        self.0.open_asks.left.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Waits until the call whose ask others share has returned without an answer; for ever where it is not shared.
    pub async fn left_unattended(&self, id: WorkflowId) {
        let mut left = self.0.open_asks.left.subscribe();
        let is_shared = {
            let open = self.0.open_asks.open.lock().await;
            open.values().any(|shared| *shared == id)
        };
        let mut waits = is_shared;
        while waits {
            let found = self.0.workflows.find(id).await;
            if found.is_ok_and(|found| found.attended != AskAttendance::ByItsCall) {
                return;
            }
            waits = left.changed().await.is_ok();
        }
        std::future::pending::<()>().await;
    }

    /// Accepts what a person said yes to, for a call that is not the one they were asked about.
    async fn accept_shared(&self, view: &View, plan: &Arc<Plan>, found: &Workflow) -> Result<(), Refusal> {
        if let Ask::Trust { .. } = &found.ask {
            return project_trust::accept_answered(&self.0.files.accepted, found, &self.0.history).await;
        }
        match view.server(plan.dependency()) {
            Some(server) => Box::pin(self.accept_change(server, plan, found)).await,
            None => Ok(()),
        }
    }

    /// Tells whether what an ask is about still differs from what was accepted.
    async fn still_asks(&self, ask: &Ask, tool: &ToolName, plan: &Plan) -> Result<bool, Refusal> {
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let change = match ask {
            Ask::Trust { file } => {
                let unaccepted = view.config.project.unaccepted();
                return Ok(unaccepted.is_some_and(|now| now.content == file.content));
            }
            ask => ask
                .dependency()
                .and_then(|shown| shown.installation.change.as_ref()),
        };
        let (Some(server), Some(change)) = (view.server(plan.dependency()), change) else {
            return Ok(true);
        };
        match change.part {
            ChangedPart::Launch => Ok(self.launch_change(server, plan)?.is_some()),
            ChangedPart::Package => self.has_other_package(server, plan),
            ChangedPart::Scripts => self.asks_about_scripts(server, plan, &change.content),
            ChangedPart::Tools => Ok(self.0.loader.known(plan).is_none_or(|known| {
                let judged = self.judged_tools(&view.config, server, plan, &known);
                judged.asks_for(tool.tool())
            })),
        }
    }

    /// Decides a call anew after what it would have asked about was accepted.
    pub(super) async fn call_again(
        &self,
        requested: RequestedItem<'_>,
        client_request: &ClientRequest,
    ) -> Outcome {
        Box::pin(self.call(requested, client_request.clone())).await
    }
}

fn is_taken(workflow: &Workflow) -> bool {
    matches!(workflow.state, State::Taken { .. })
}

fn is_approved(workflow: &Workflow) -> bool {
    matches!(
        &workflow.state,
        // Taken by the call that asked, which has not written yet what it accepts: it is forgotten then.
        State::Answered {
            answer: Answer::Approve { .. },
            ..
        } | State::Taken {
            answer: Answer::Approve { .. },
            ..
        }
    )
}
