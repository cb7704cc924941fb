//! One request: whose it is, how a person can be reached meanwhile, and the ladder up to them.
//!
//! The ladder: the client's own dialog where this very request can show one; else the seed's `approval_required`
//! result with the workflow still pending. All rungs end in the same result.

use bytes::Bytes;
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::dialog::{Dialog, Ended, READING};
use super::form::{self, Filled, Style};
use super::listing::CONTINUE;
use super::outgoing::{RESPONSES, STATE};
use super::parking::State as Returned;
use super::present::Answer;
use crate::protocol::Object;
use crate::protocol::continuation::{Continuation, Decision};
use crate::proxy::{
    Asked, Carried, Carrier, Decided, Outcome, Provenance, Refusal, State, Wanted, WorkflowId,
};

/// The one form pml asks to be filled in at a time.
const FORM: &str = "answer";

/// How a person can be reached through the client itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    /// By an `input_required` result.
    Dialog,
    /// By a request while the call is open.
    Elicitation,
    /// Not at all.
    None,
}

/// A request that is being answered.
pub(super) struct Calling<'a> {
    /// The name by which the client knows what it wants.
    pub(super) name: &'a str,
    pub(super) wanted: Wanted<'a>,
    pub(super) carried: Carried,
    pub(super) road: Road,
    /// What a Modern client sends back after a form.
    pub(super) retry: Option<Retry>,
}

/// A Modern retry.
pub(super) struct Retry {
    pub(super) state: String,
    /// What was filled in; `None` where the client left it out.
    pub(super) filled: Option<Filled>,
}

/// What a call came to.
pub(super) enum Reached {
    /// An end, in whatever words.
    Outcome(Outcome),
    /// A result of pml's own tools.
    Own(Value),
    /// A form for the client's own dialog.
    InputRequired {
        /// The workflow it is about.
        id: WorkflowId,
        /// The elicitation parameters.
        form: Value,
    },
}

impl Conversation {
    pub(super) async fn reach(
        &self,
        calling: &Calling<'_>,
        continuation: Result<Option<Continuation>, crate::protocol::continuation::ContinuationError>,
    ) -> Reached {
        let carried = calling.carried.clone();
        match (continuation, &calling.retry) {
            (Err(error), _) => Reached::Outcome(Outcome::Refused(Refusal::Continuation(error))),
            (Ok(None), _) if calling.name == CONTINUE => {
                let missing = crate::protocol::continuation::ContinuationError::Missing {
                    member: "workflow_id",
                };
                Reached::Outcome(Outcome::Refused(Refusal::Continuation(missing)))
            }
            (Ok(Some(continuation)), _) => {
                let on = if calling.name == CONTINUE {
                    Carrier::Continue
                } else {
                    Carrier::Request(calling.wanted)
                };
                let decided = Decided::Now(continuation.decision, Provenance::Continuation);
                let id = &continuation.workflow_id;
                Reached::Outcome(self.0.proxy.resume(on, id, decided, carried).await)
            }
            (Ok(None), Some(retry)) => self.retried(calling, retry).await,
            (Ok(None), None) => match self.0.proxy.call(calling.wanted, carried).await {
                Outcome::Asked(asked) => self.ask(calling, asked).await,
                outcome => Reached::Outcome(outcome),
            },
        }
    }

    /// Climbs the ladder for an approval.
    async fn ask(&self, calling: &Calling<'_>, asked: Asked) -> Reached {
        let id = WorkflowId::new(asked.workflow_id);
        match calling.road {
            Road::None => Reached::Outcome(Outcome::Asked(asked)),
            Road::Dialog => Reached::InputRequired {
                id,
                form: form::approval(&asked),
            },
            Road::Elicitation => {
                let ended = self
                    .show(calling, id, form::approval(&asked), asked.expires_in)
                    .await;
                let decided = match ended {
                    Ended::Filled(Filled::Accepted(content)) => form::decision(&content)
                        .map(|decision| Decided::Now(decision, Provenance::Elicitation)),
                    Ended::Filled(Filled::Refused) => {
                        Some(Decided::Now(Decision::Refuse, Provenance::Elicitation))
                    }
                    Ended::Filled(Filled::Unreadable) | Ended::Unavailable => None,
                    // Another call that asked the very same has run; this one stands on its own again.
                    Ended::Elsewhere(workflow) if matches!(workflow.state, State::Taken { .. }) => {
                        self.0.proxy.settled(id).await;
                        return Box::pin(self.reach(calling, Ok(None))).await;
                    }
                    Ended::Elsewhere(_) => Some(Decided::Elsewhere),
                };
                match decided {
                    None => self.unreached(calling, asked).await,
                    Some(decided) => {
                        let carried = calling.carried.clone();
                        let id = asked.workflow_id.to_string();
                        let on = Carrier::Request(calling.wanted);
                        Reached::Outcome(self.0.proxy.resume(on, &id, decided, carried).await)
                    }
                }
            }
        }
    }

    /// Shows a form at a Legacy client.
    pub(super) async fn show(
        &self,
        calling: &Calling<'_>,
        id: WorkflowId,
        form: Value,
        patience: std::time::Duration,
    ) -> Ended {
        let style = self.forms().unwrap_or(Style::Titled);
        let dialog = Dialog {
            dialogs: &self.0.dialogs,
            inquiries: &self.0.inquiries,
            outbox: &self.0.outbox,
            proxy: &self.0.proxy,
            id,
            form: form::styled(form, style),
            patience,
            progress: calling.carried.progress.as_ref(),
        };
        dialog.show().await
    }

    /// Takes the answer to a form of a Modern client. The state it sends back is its own word: the workflow it
    /// names must be about this very call, and can be used once.
    async fn retried(&self, calling: &Calling<'_>, retry: &Retry) -> Reached {
        let asked = match self
            .0
            .proxy
            .asked_again(&retry.state, calling.wanted, &calling.carried)
            .await
        {
            Ok(asked) => asked,
            Err(refusal) => return Reached::Outcome(Outcome::Refused(refusal)),
        };
        let id = WorkflowId::new(asked.workflow_id);
        let decision = match &retry.filled {
            None => {
                return Reached::InputRequired {
                    id,
                    form: form::approval(&asked),
                };
            }
            Some(Filled::Accepted(content)) => form::decision(content),
            Some(Filled::Refused) if self.was_read(id) => Some(Decision::Refuse),
            Some(Filled::Refused | Filled::Unreadable) => None,
        };
        match decision {
            None => self.unreached(calling, asked).await,
            Some(decision) => {
                let decided = Decided::Now(decision, Provenance::Dialog);
                let carried = calling.carried.clone();
                let id = asked.workflow_id.to_string();
                Reached::Outcome(
                    self.0
                        .proxy
                        .resume(Carrier::Request(calling.wanted), &id, decided, carried)
                        .await,
                )
            }
        }
    }

    /// Goes on where a dialog reached nobody: by what was answered elsewhere while it was open, else by asking in
    /// the result.
    async fn unreached(&self, calling: &Calling<'_>, asked: Asked) -> Reached {
        let found = self.0.proxy.workflow(WorkflowId::new(asked.workflow_id)).await;
        if !matches!(&found, Ok(workflow) if matches!(workflow.state, State::Answered { .. })) {
            return Reached::Outcome(Outcome::Asked(asked));
        }
        let id = asked.workflow_id.to_string();
        let carried = calling.carried.clone();
        let resumed = self
            .0
            .proxy
            .resume(Carrier::Request(calling.wanted), &id, Decided::Elsewhere, carried);
        Reached::Outcome(resumed.await)
    }

    /// Tells whether a form was shown long enough for a person to have read it.
    pub(super) fn was_read(&self, id: WorkflowId) -> bool {
        let shown = self
            .0
            .shown
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        shown
            .get(&id)
            .is_none_or(|shown_at| shown_at.elapsed() >= READING)
    }

    /// Asks a Modern client to show a form and to call again.
    pub(super) fn input_required(&self, id: WorkflowId, mut form: Value) -> Answer {
        let mut shown = self
            .0
            .shown
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        shown.retain(|_, shown_at| shown_at.elapsed() < READING);
        shown.insert(id, std::time::Instant::now());
        form["mode"] = json!("form");
        let result = json!({
            "resultType": "input_required",
            "inputRequests": { FORM: { "method": "elicitation/create", "params": form } },
            STATE: id.to_string(),
        });
        Answer::Result(vec![Bytes::from(result.to_string())])
    }
}

/// Reads what a Modern client sends back after a form.
pub(super) fn retry(params: &Object<'_>) -> Option<Retry> {
    let Returned::Own(state) = Returned::read(&params.text(STATE)?) else {
        return None;
    };
    let responses = params.value(RESPONSES).and_then(|raw| Object::parse(raw.get()));
    let filled = responses.and_then(|responses| responses.value(FORM)).map(|raw| {
        serde_json::from_str(raw.get()).map_or(Filled::Unreadable, |value: Value| Filled::read(&value))
    });
    Some(Retry { state, filled })
}
