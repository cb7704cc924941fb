//! One request: whose it is, how a person can be reached meanwhile, and the ladder up to them.
//!
//! The ladder: the client's own dialog where this very request can show one; else the seed's `approval_required`
//! result with the workflow still pending. All rungs end in the same result.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::protocol::Object;
use crate::protocol::continuation::{Continuation, Decision};
use crate::proxy::{
    Answer as Said, Asked, Carried, Carrier, Claim, Decided, Outcome, Provenance, Refusal, State, Wanted,
    WorkflowId,
};
use crate::stdio::ask::dialog::{Dialog, Ended, Waiting};
use crate::stdio::ask::form::{self, Filled, Style};
use crate::stdio::ask::open_forms::OpenForm;
use crate::stdio::call::parked::State as Returned;
use crate::stdio::conversation::Conversation;
use crate::stdio::lists::tools::CONTINUE;
use crate::stdio::present::Answer;
use crate::stdio::translation::request::Request;
use crate::stdio::translation::to_server::{RESPONSES, STATE};

/// The one form pml asks to be filled in at a time.
const FORM: &str = "answer";

/// How a person can be reached through the client itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Road {
    /// By an `input_required` result.
    Dialog,
    /// By a request while the call is open.
    Elicitation,
    /// Not at all.
    None,
}

/// A request that is being answered.
pub(crate) struct Calling<'a> {
    /// The name by which the client knows what it wants.
    pub(crate) name: &'a str,
    pub(crate) wanted: Wanted<'a>,
    pub(crate) carried: Carried,
    pub(crate) road: Road,
    /// What a Modern client sends back after a form.
    pub(crate) retry: Option<Retry>,
}

/// A Modern retry.
pub(crate) struct Retry {
    pub(crate) state: String,
    /// What was filled in; `None` where the client left it out.
    pub(crate) filled: Option<Filled>,
    /// The form it brings back; empty where none was shown here for the very same call.
    form: Mutex<Option<OpenForm>>,
}

impl Retry {
    /// Takes the form that was brought back: it counts once.
    pub(crate) fn take_form(&self) -> Option<OpenForm> {
        self.form.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a call came to.
pub(crate) enum Reached {
    /// An end, in whatever words.
    Outcome(Outcome),
    /// A result of pml's own tools.
    Own(Value),
    /// A form for the client's own dialog.
    InputRequired(ModernForm),
}

/// A form for the dialog of a Modern client.
pub(crate) struct ModernForm {
    /// The workflow it is about.
    pub(crate) id: WorkflowId,
    /// The elicitation parameters.
    pub(crate) params: Value,
    /// The right of the call to the answer.
    pub(crate) claim: Option<Claim>,
    /// What the form before this one was filled in with.
    pub(crate) earlier: Map<String, Value>,
}

impl ModernForm {
    /// Returns the first form about a workflow.
    pub(crate) fn new(id: WorkflowId, params: Value) -> Self {
        Self {
            id,
            params,
            claim: None,
            earlier: Map::new(),
        }
    }

    /// Returns the form with the right of its call to the answer.
    pub(crate) fn claimed(self, claim: Option<Claim>) -> Self {
        Self { claim, ..self }
    }
}

impl Conversation {
    pub(crate) async fn reach(
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
                let decided = match continuation.decision {
                    Some(decision) => Decided::Now(decision, Provenance::Continuation),
                    None => Decided::Elsewhere,
                };
                let id = &continuation.workflow_id;
                let outcome = self.0.proxy.resume(on, id, decided, carried.clone()).await;
                let Outcome::Waiting(asked) = &outcome else {
                    return Reached::Outcome(outcome);
                };
                if continuation.wait.is_zero() {
                    return Reached::Outcome(outcome);
                }
                let waiting = Waiting {
                    proxy: &self.0.proxy,
                    id: WorkflowId::new(asked.workflow_id),
                    patience: continuation.wait,
                    progress: calling.carried.progress.as_ref(),
                };
                waiting.join().await;
                let decided = Decided::Elsewhere;
                Reached::Outcome(self.0.proxy.resume(on, id, decided, carried).await)
            }
            (Ok(None), Some(retry)) => {
                let form = retry.take_form();
                self.retried(calling, retry, form).await
            }
            (Ok(None), None) => self.first_reach(calling).await,
        }
    }

    /// Asks for something for the first time, or as if it were.
    async fn first_reach(&self, calling: &Calling<'_>) -> Reached {
        match self.0.proxy.call(calling.wanted, calling.carried.clone()).await {
            Outcome::Asked(asked) => self.ask(calling, asked).await,
            Outcome::Joined(other) => self.join(calling, other).await,
            outcome => Reached::Outcome(outcome),
        }
    }

    /// Climbs the ladder for an approval.
    async fn ask(&self, calling: &Calling<'_>, asked: Asked) -> Reached {
        let id = WorkflowId::new(asked.workflow_id);
        match calling.road {
            Road::None => Reached::Outcome(Outcome::Asked(asked)),
            Road::Dialog => {
                let form = ModernForm::new(id, form::approval(&asked));
                Reached::InputRequired(form.claimed(asked.claim))
            }
            Road::Elicitation => {
                let ended = self
                    .show(calling, id, form::approval(&asked), asked.expires_in)
                    .await;
                let said = match ended {
                    Ended::Filled(Filled::Accepted(content)) => form::decision(&content),
                    Ended::Filled(Filled::Refused) => Some(Decision::Refuse),
                    Ended::Filled(Filled::Unreadable) | Ended::Unavailable | Ended::Elsewhere(_) => None,
                };
                self.concluded(calling, id, said, Provenance::Elicitation).await
            }
        }
    }

    /// Goes on after a dialog; where that leads to another question, it is asked too.
    async fn concluded(
        &self,
        calling: &Calling<'_>,
        id: WorkflowId,
        said: Option<Decision>,
        by: Provenance,
    ) -> Reached {
        let proxy = &self.0.proxy;
        match proxy
            .dialog_ended(calling.wanted, id, said, by, &calling.carried)
            .await
        {
            // A dialog that reached nobody leaves its ask in the inbox; an ask of its own has a claim.
            Outcome::Asked(asked) if asked.claim.is_some() => Box::pin(self.ask(calling, asked)).await,
            Outcome::Joined(other) => Box::pin(self.join(calling, other)).await,
            outcome => Reached::Outcome(outcome),
        }
    }

    /// Waits for the answer that an identical call is asked for; a yes lets this one run, a no ends it too.
    async fn join(&self, calling: &Calling<'_>, other: WorkflowId) -> Reached {
        let patience = self.0.proxy.approvals().time_to_live;
        let waiting = Waiting {
            proxy: &self.0.proxy,
            id: other,
            patience,
            progress: calling.carried.progress.as_ref(),
        };
        if let Ended::Elsewhere(workflow) = waiting.join().await {
            self.0.proxy.settled(other).await;
            if let State::Answered {
                answer: Said::Refuse { reason },
                ..
            } = workflow.state
            {
                return Reached::Outcome(Outcome::Aborted {
                    reason,
                    notes: Vec::new(),
                });
            }
        }
        Box::pin(self.first_reach(calling)).await
    }

    /// Shows a form at a Legacy client.
    pub(crate) async fn show(
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

    /// Takes the answer to a form of a Modern client. The state it sends back is its own word: it counts only where
    /// the form was shown, for the very same call, and once.
    async fn retried(&self, calling: &Calling<'_>, retry: &Retry, form: Option<OpenForm>) -> Reached {
        let Some(form) = form else {
            return self.not_shown(calling, retry).await;
        };
        let Ok(id) = retry.state.parse::<WorkflowId>() else {
            return Reached::Outcome(Outcome::Refused(Refusal::Expired));
        };
        let said = match &retry.filled {
            None => {
                return match self.0.proxy.describe(id).await {
                    Ok(asked) => {
                        let shown = ModernForm::new(id, form::approval(&asked));
                        Reached::InputRequired(shown.claimed(form.claim))
                    }
                    Err(refusal) => Reached::Outcome(Outcome::Refused(refusal)),
                };
            }
            Some(Filled::Accepted(content)) => form::decision(content),
            Some(Filled::Refused) if form.was_read() => Some(Decision::Refuse),
            Some(Filled::Refused | Filled::Unreadable) => None,
        };
        self.concluded(calling, id, said, Provenance::Dialog).await
    }

    /// Answers a retry whose form was not shown in this conversation: what it says is no person's word.
    async fn not_shown(&self, calling: &Calling<'_>, retry: &Retry) -> Reached {
        let found = self
            .0
            .proxy
            .asked_again(&retry.state, calling.wanted, &calling.carried)
            .await;
        match found {
            // A pml that was started anew asks once more; what was answered elsewhere is found on the way.
            Ok(workflow) if matches!(workflow.state, State::Pending | State::Answered { .. }) => {
                self.first_reach(calling).await
            }
            Ok(workflow) => {
                let (on, id) = (Carrier::Request(calling.wanted), workflow.id.to_string());
                let carried = calling.carried.clone();
                let resumed = self.0.proxy.resume(on, &id, Decided::Elsewhere, carried);
                Reached::Outcome(resumed.await)
            }
            Err(refusal) => Reached::Outcome(Outcome::Refused(refusal)),
        }
    }

    /// Asks a Modern client to show a form and to call again.
    pub(crate) fn input_required(&self, request: &Request, form: ModernForm) -> Answer {
        let ModernForm {
            id,
            mut params,
            claim,
            earlier,
        } = form;
        self.0.forms.show(id, request.gist(), claim, earlier);
        params["mode"] = json!("form");
        let result = json!({
            "resultType": "input_required",
            "inputRequests": { FORM: { "method": "elicitation/create", "params": params } },
            STATE: id.to_string(),
        });
        Answer::Result(vec![Bytes::from(result.to_string())])
    }
}

impl Conversation {
    /// Reads what a Modern client sends back after a form.
    pub(crate) fn retry(&self, request: &Request, params: &Object<'_>) -> Option<Retry> {
        let Returned::Own(state) = Returned::read(&params.text(STATE)?) else {
            return None;
        };
        let responses = params.value(RESPONSES).and_then(|raw| Object::parse(raw.get()));
        let filled = responses.and_then(|responses| responses.value(FORM)).map(|raw| {
            serde_json::from_str(raw.get()).map_or(Filled::Unreadable, |value: Value| Filled::read(&value))
        });
        let form = state
            .parse()
            .ok()
            .and_then(|id| self.0.forms.take(id, request.gist().as_ref()));
        Some(Retry {
            state,
            filled,
            form: Mutex::new(form),
        })
    }
}
