//! Takes a call through its approval: what a continuation decides, what a person says to its ask, what they say later.

use super::ladder::{ClientRoad, Ladder, LadderReply, Requester, Resolution};
use super::subject::{PersonAsk, Subject};
use crate::card::Said;
use crate::protocol::continuation::{Continuation, ContinuationError, Decision};
use crate::proxy::{
    Answer, AskOwnership, Carrier, ClientRequest, DecisionSource, Outcome, PendingAsk, Proxy, Refusal,
    RequestedItem, Road, State, WorkflowId,
};

/// A call that may need an approval.
pub(crate) struct Call<'a> {
    pub(crate) requested: RequestedItem<'a>,
    pub(crate) client_request: ClientRequest,
    pub(crate) requester: &'a Requester,
}

/// Takes the calls of one client through their approval.
#[derive(Clone, Copy)]
pub(crate) struct Approver<'a> {
    pub(crate) proxy: &'a Proxy,
    pub(crate) ladder: &'a Ladder,
}

impl Approver<'_> {
    /// Finds out whether a call may run, asking a person where the rules say so.
    pub(crate) async fn resolve(self, call: &Call<'_>) -> Resolution {
        match &call.requester.retry {
            None => self.first(call).await,
            Some(retry) => match call.requester.returns_form_of() {
                Some(id) => self.returned(call, id).await,
                None => self.not_shown(call, &retry.state).await,
            },
        }
    }

    /// Carries out a continuation; `on` is the call that brings it.
    pub(crate) async fn resume(
        self,
        on: Carrier<'_>,
        continuation: Result<Continuation, ContinuationError>,
        call: &Call<'_>,
    ) -> Outcome {
        let continuation = match continuation {
            Ok(continuation) => continuation,
            Err(error) => return Outcome::Refused(Refusal::Continuation(error)),
        };
        let decided = match continuation.decision {
            Some(Decision::Approve(scope)) => {
                DecisionSource::Now(Said::decision(scope.into()), Road::Continuation)
            }
            Some(Decision::Refuse) => DecisionSource::Now(Said::refusal(None), Road::Continuation),
            None => DecisionSource::Elsewhere,
        };
        let id = &continuation.workflow_id;
        let outcome = self
            .proxy
            .resume(on, id, decided, call.client_request.clone())
            .await;
        match outcome {
            Outcome::Waiting(asked) if !continuation.wait.is_zero() => {
                let workflow = WorkflowId::new(asked.workflow_id);
                self.ladder
                    .wait(call.requester, workflow, continuation.wait)
                    .await;
                let decided = DecisionSource::Elsewhere;
                self.proxy
                    .resume(on, id, decided, call.client_request.clone())
                    .await
            }
            outcome => outcome,
        }
    }

    /// Asks for something for the first time, or as if it were.
    async fn first(self, call: &Call<'_>) -> Resolution {
        match self.proxy.call(call.requested, call.client_request.clone()).await {
            Outcome::Asked(asked) if asked.ownership == AskOwnership::OfThisCall => {
                self.ask(call, asked).await
            }
            Outcome::Joined(other) => self.join(call, other).await,
            outcome => Resolution::Outcome(outcome),
        }
    }

    /// Puts the ask of a call to a person.
    async fn ask(self, call: &Call<'_>, mut asked: PendingAsk) -> Resolution {
        let claim = asked.claim.take();
        let mut ask = PersonAsk {
            card: &asked.card,
            subject: Subject::Approval(&asked),
            patience: asked.expires_in,
            claim,
        };
        let was_shown = call.requester.returns_form_of().is_some() || call.requester.road != ClientRoad::None;
        let reply = self.ladder.ask(call.requester, &mut ask).await;
        let (id, claim) = (ask.card.id, ask.claim);
        match reply {
            LadderReply::Form(form) => Resolution::Form(form),
            LadderReply::Nothing if !was_shown && self.proxy.is_in_run() => {
                // The person is there, or comes back: the agent must not decide for them meanwhile.
                self.ladder.wait(call.requester, id, asked.expires_in).await;
                drop(claim);
                self.concluded(call, id, None).await
            }
            LadderReply::Nothing if !was_shown => {
                Resolution::Outcome(Outcome::Asked(PendingAsk { claim, ..asked }))
            }
            LadderReply::Nothing => self.concluded(call, id, None).await,
            LadderReply::Said(said, by) => self.concluded(call, id, Some((said, by))).await,
        }
    }

    /// Takes the form that a Modern client brings back.
    async fn returned(self, call: &Call<'_>, id: WorkflowId) -> Resolution {
        match self.proxy.describe(id).await {
            Ok(asked) => self.ask(call, asked).await,
            // It is gone, which its end says in the words for that.
            Err(_) => self.concluded(call, id, None).await,
        }
    }

    /// Goes on after a form; where that leads to another question, it is asked too.
    async fn concluded(self, call: &Call<'_>, id: WorkflowId, said: Option<(Said, Road)>) -> Resolution {
        let (said, by) = said.map_or((None, Road::Dialog), |(said, by)| (Some(said), by));
        let ended = self
            .proxy
            .dialog_ended(call.requested, id, said, by, &call.client_request);
        match ended.await {
            // A form that reached no person leaves its ask in the inbox; an ask of its own has a claim.
            Outcome::Asked(asked) if asked.claim.is_some() => Box::pin(self.ask(call, asked)).await,
            Outcome::Joined(other) => Box::pin(self.join(call, other)).await,
            outcome => Resolution::Outcome(outcome),
        }
    }

    /// Waits for the answer that an identical call is asked for; a yes lets this one run, a no ends it too.
    async fn join(self, call: &Call<'_>, other: WorkflowId) -> Resolution {
        let patience = self.proxy.approvals().time_to_live;
        let decided = tokio::select! {
            decided = self.ladder.wait(call.requester, other, patience) => decided,
            () = self.proxy.left_unattended(other) => None,
        };
        if let Some(workflow) = decided {
            self.proxy.settled(other).await;
            if let State::Answered {
                answer: Answer::Refuse { reason },
                ..
            }
            | State::Taken {
                answer: Answer::Refuse { reason },
                ..
            } = workflow.state
            {
                return Resolution::Outcome(Outcome::Aborted {
                    reason,
                    notes: Vec::new(),
                });
            }
        }
        Box::pin(self.first(call)).await
    }

    /// Answers a retry whose form was not shown in this conversation: what it says is no person's word.
    async fn not_shown(self, call: &Call<'_>, state: &str) -> Resolution {
        match self
            .proxy
            .asked_again(state, call.requested, &call.client_request)
            .await
        {
            // A pml that was started anew asks once more; what was answered elsewhere is found on the way.
            Ok(workflow) if matches!(workflow.state, State::Pending | State::Answered { .. }) => {
                self.first(call).await
            }
            Ok(workflow) => {
                let (on, id) = (Carrier::Request(call.requested), workflow.id.to_string());
                let client_request = call.client_request.clone();
                let resumed = self
                    .proxy
                    .resume(on, &id, DecisionSource::Elsewhere, client_request);
                Resolution::Outcome(resumed.await)
            }
            Err(refusal) => Resolution::Outcome(Outcome::Refused(refusal)),
        }
    }
}
