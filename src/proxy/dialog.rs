//! Carries out the answer of a dialog: the first answer on any road counts, and a late one is put to the call again.

use super::authority::Effect;
use super::continuation::{Carrier, DecisionSource, seed_words};
use super::{ClientRequest, Outcome, Proxy, Refusal, RequestedItem};
use crate::card::Said;
use crate::protocol::{Digest, Shown};
use crate::workflow::{Answer, Road, State, TransitionError, Workflow, WorkflowError, WorkflowId};

/// How often the state of an ask may move between a look and an answer: each state moves at most twice.
const LOOKS: usize = 4;

impl Proxy {
    /// Carries out what a person said in a dialog that this conversation showed; `said` is `None` where it brought no answer.
    ///
    /// Where another road was faster, its answer counts, and the result says so if the two differ. Where the ask has
    /// reached its deadline or was used by an identical call, what the person said is put to the same call again.
    pub async fn dialog_ended(
        &self,
        requested: RequestedItem<'_>,
        id: WorkflowId,
        said: Option<Said>,
        by: Road,
        client_request: &ClientRequest,
    ) -> Outcome {
        match self.ended(requested, id, said, by, client_request).await {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Refused(seed_words(refusal)),
        }
    }

    async fn ended(
        &self,
        requested: RequestedItem<'_>,
        id: WorkflowId,
        said: Option<Said>,
        by: Road,
        client_request: &ClientRequest,
    ) -> Result<Outcome, Refusal> {
        let name = id.to_string();
        for _ in 0..LOOKS {
            let workflow = self.0.workflows.find(id).await?;
            let live = workflow.is_live_at(super::now());
            let decided = match (&workflow.state, said.clone()) {
                (State::Pending, Some(said)) if live => DecisionSource::Now(said, by),
                (State::Pending, None) if live => {
                    let view = self.current_view().await.map_err(Refusal::Config)?;
                    self.leave_to_inbox(id).await?;
                    return Ok(Outcome::Asked(self.asked(&view, &workflow)?));
                }
                (State::Answered { .. }, _) => DecisionSource::Elsewhere,
                (State::Pending | State::Taken { .. } | State::Expired | State::Withdrawn, said) => {
                    return self
                        .put_again(requested, &workflow, said, by, client_request)
                        .await;
                }
            };
            match self
                .resumed(Carrier::Request(requested), &name, decided, client_request)
                .await
            {
                // Another answer came between the look and this one.
                Err(Refusal::Workflow(WorkflowError::Refused {
                    refusal:
                        TransitionError::AlreadyAnswered { .. }
                        | TransitionError::AlreadyUsed { .. }
                        | TransitionError::Refused { .. }
                        | TransitionError::Expired { .. }
                        | TransitionError::Withdrawn,
                    ..
                })) => {}
                Ok(outcome) => return Ok(with_note(outcome, overruled(&workflow, said.as_ref()))),
                Err(refusal) => return Err(refusal),
            }
        }
        Err(Refusal::Expired)
    }

    /// Puts what a person said to the same call again, after its ask was used up or had reached its deadline.
    async fn put_again(
        &self,
        requested: RequestedItem<'_>,
        asked: &Workflow,
        said: Option<Said>,
        by: Road,
        client_request: &ClientRequest,
    ) -> Result<Outcome, Refusal> {
        match (said, &asked.state) {
            (Some(said), _) if Effect::of_said(&said) == Effect::Refuses => Ok(Outcome::Aborted {
                reason: None,
                notes: Vec::new(),
            }),
            // An identical call took the answer; this one stands on its own again.
            (None, State::Taken { .. }) => Ok(self.call(requested, client_request.clone()).await),
            (None, _) => Err(Refusal::Unanswered {
                tool: asked.call.tool.clone(),
            }),
            (Some(said), _) => {
                let outcome = self.call(requested, client_request.clone()).await;
                let Outcome::Asked(again) = outcome else {
                    return Ok(outcome);
                };
                let fresh = self.0.workflows.find(WorkflowId::new(again.workflow_id)).await?;
                // What the person saw must be what would run; otherwise they see the difference first.
                if fresh.ask.kind() != asked.ask.kind()
                    || fresh.call.launch != asked.call.launch
                    || changed_to(&fresh) != changed_to(asked)
                {
                    return Ok(Outcome::Asked(again));
                }
                let id = fresh.id.to_string();
                let decided = DecisionSource::Now(said, by);
                self.resumed(Carrier::Request(requested), &id, decided, client_request)
                    .await
            }
        }
    }
}

/// Returns what an answer would accept of a changed server.
fn changed_to(workflow: &Workflow) -> Option<&Digest> {
    let change = workflow.ask.dependency()?.installation.change.as_ref();
    change.map(|change| &change.content)
}

/// Says that an answer came second, where it would have decided otherwise.
fn overruled(workflow: &Workflow, said: Option<&Said>) -> Option<String> {
    let State::Answered { answer, by, at } = &workflow.state else {
        return None;
    };
    match (answer, Effect::of_said(said?)) {
        (Answer::Approve { .. }, Effect::Refuses) => Some(format!(
            "pml: the dialog was declined, but the call had been approved by {by} at {at}; the first answer counts"
        )),
        (Answer::Refuse { reason }, Effect::Grants) => {
            let reason = reason
                .as_deref()
                .map_or_else(String::new, |reason| format!(" ({})", Shown::line(reason)));
            Some(format!(
                "pml: the dialog said yes, but the call had been refused by {by} at {at}{reason}; the first answer counts"
            ))
        }
        _ => None,
    }
}

fn with_note(outcome: Outcome, note: Option<String>) -> Outcome {
    let Some(note) = note else { return outcome };
    match outcome {
        Outcome::Ready(mut ready) => {
            ready.notes.push(note);
            Outcome::Ready(ready)
        }
        Outcome::Aborted { reason, mut notes } => {
            notes.push(note);
            Outcome::Aborted { reason, notes }
        }
        Outcome::Connected {
            dependency,
            tools,
            mut notes,
        } => {
            notes.push(note);
            Outcome::Connected {
                dependency,
                tools,
                notes,
            }
        }
        Outcome::Granted { tool, mut notes } => {
            notes.push(note);
            Outcome::Granted { tool, notes }
        }
        other @ (Outcome::Asked(_)
        | Outcome::Joined(_)
        | Outcome::Waiting(_)
        | Outcome::Unknown(_)
        | Outcome::Refused(_)) => other,
    }
}
