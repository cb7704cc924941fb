//! One `tools/call`: what was called, how a person can be reached meanwhile, and the ladder up to them.
//!
//! The ladder: the client's own dialog where this very request can show one; else the seed's `approval_required`
//! result with the workflow still pending. All rungs end in the same result.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::conversation::Conversation;
use super::dialog::{Dialog, Ended, READING};
use super::era::{self, Era, Fault};
use super::form::{self, Filled, Style};
use super::listing::CONTINUE;
use super::present::{self, Answer};
use super::progress::Told;
use crate::protocol::continuation::{Continuation, Decision, MEMBER};
use crate::protocol::{Object, Splice};
use crate::proxy::{
    Asked, Carried, Carrier, Decided, Outcome, Progress, Provenance, Refusal, State, WorkflowId,
};
use crate::wire::Frame;

/// Progress that may wait for a slow client before its source waits too.
const PROGRESS_AHEAD: usize = 16;

/// The member of a Modern retry that says which question it answers.
const STATE: &str = "requestState";
/// The member of a Modern retry that carries the filled forms.
const RESPONSES: &str = "inputResponses";
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

/// A call that is being answered.
pub(super) struct Calling<'a> {
    pub(super) name: &'a str,
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
    /// Answers a `tools/call` with these raw parameters.
    pub(super) async fn called(&self, params: Option<Bytes>, era: Era) -> Answer {
        let invalid = |reason: &str| Answer::from(Fault::new(Fault::INVALID_PARAMS, reason));
        let Some(params) = params else {
            return invalid("`params` is missing");
        };
        let text = String::from_utf8_lossy(&params);
        let Some(object) = Object::parse(&text) else {
            return invalid("`params` is not an object");
        };
        let Some(name) = object.text("name") else {
            return invalid("`params.name` is not a string");
        };
        let arguments = object.value("arguments").filter(|raw| raw.get() != "null");
        let arguments = match arguments.map(|raw| Object::parse(raw.get())) {
            Some(None) => return invalid("`params.arguments` is not an object"),
            Some(Some(arguments)) => Some(arguments),
            None => None,
        };
        let meta = object.value("_meta").and_then(|meta| Object::parse(meta.get()));
        let token = meta.and_then(|meta| meta.value("progressToken").map(|token| token.get().to_owned()));
        let (progress, progressed) = mpsc::channel(PROGRESS_AHEAD);
        let calling = Calling {
            name: &name,
            carried: Carried {
                params: outgoing(&params, &object, arguments.as_ref(), era),
                progress: token.is_some().then_some(progress),
            },
            road: self.road(&object, era),
            retry: retry(&object),
        };
        let reached = async {
            if let Some(reached) = self.own_tool(&calling, object.value("arguments")).await {
                return reached;
            }
            let continuation = match arguments.as_ref().and_then(|arguments| arguments.value(MEMBER)) {
                _ if name == CONTINUE => object.value("arguments").map_or(Ok(None), Continuation::parse),
                Some(raw) => Continuation::parse(raw),
                None => Ok(None),
            };
            self.reach(&calling, continuation).await
        };
        let reached = self.with_progress(reached, token.as_deref(), progressed).await;
        let expected = self.0.promises.expected(&name);
        match reached {
            Reached::Outcome(outcome) => present::outcome(outcome, expected, era),
            Reached::Own(result) => present::own_result(result, era),
            Reached::InputRequired { id, form } => self.input_required(id, form),
        }
    }

    async fn reach(
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
                    Carrier::AnyTool
                } else {
                    Carrier::Tool(calling.name)
                };
                let decided = Decided::Now(continuation.decision, Provenance::Continuation);
                let id = &continuation.workflow_id;
                Reached::Outcome(self.0.proxy.resume(on, id, decided, carried).await)
            }
            (Ok(None), Some(retry)) => self.retried(calling, retry).await,
            (Ok(None), None) => match self.0.proxy.call(calling.name, carried).await {
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
                        Reached::Outcome(self.0.proxy.resume(Carrier::AnyTool, &id, decided, carried).await)
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
            .asked_again(&retry.state, calling.name, &calling.carried)
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
                        .resume(Carrier::Tool(calling.name), &id, decided, carried)
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
            .resume(Carrier::AnyTool, &id, Decided::Elsewhere, carried);
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
    fn input_required(&self, id: WorkflowId, mut form: Value) -> Answer {
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

    /// Passes progress on while a call runs, in order and before its answer.
    async fn with_progress<T>(
        &self,
        outcome: impl Future<Output = T>,
        token: Option<&str>,
        mut progressed: mpsc::Receiver<Progress>,
    ) -> T {
        let Some(token) = token else { return outcome.await };
        let mut told = Told::default();
        tokio::pin!(outcome);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(progress) = progressed.recv() => self.tell(&mut told, token, progress).await,
                outcome = &mut outcome => break outcome,
            }
        };
        while let Ok(progress) = progressed.try_recv() {
            self.tell(&mut told, token, progress).await;
        }
        outcome
    }

    async fn tell(&self, told: &mut Told, token: &str, progress: Progress) {
        if let Some(params) = told.params(token, progress) {
            let mut frame = Frame::from(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":"#);
            frame.extend(params);
            frame.push("}");
            let _ = self.0.outbox.send(frame).await;
        }
    }
}

/// Reads what a Modern client sends back after a form.
fn retry(params: &Object<'_>) -> Option<Retry> {
    let state = params.text(STATE)?.into_owned();
    let responses = params.value(RESPONSES).and_then(|raw| Object::parse(raw.get()));
    let filled = responses.and_then(|responses| responses.value(FORM)).map(|raw| {
        serde_json::from_str(raw.get()).map_or(Filled::Unreadable, |value: Value| Filled::read(&value))
    });
    Some(Retry { state, filled })
}

/// The parameters as a dependency may see them: without the Modern envelope, without a null continuation.
fn outgoing(params: &Bytes, object: &Object<'_>, arguments: Option<&Object<'_>>, era: Era) -> Bytes {
    // What answers a form of pml's own is not the dependency's business.
    if object.value(STATE).is_some() || object.value(RESPONSES).is_some() {
        let text = object.without(&[STATE, RESPONSES]);
        return match Object::parse(&text) {
            Some(object) => outgoing(&Bytes::from(text.clone()), &object, arguments, era),
            None => params.clone(),
        };
    }
    let mut splice = Splice::new(params.clone());
    let mut changed = false;
    if era == Era::Modern
        && let Some((place, meta)) = object.place("_meta").zip(object.value("_meta"))
        && let Some(meta) = era::without_envelope(meta.get())
    {
        splice.replace(place, meta);
        changed = true;
    }
    if let Some((place, arguments)) = object.place("arguments").zip(arguments)
        && arguments.value(MEMBER).is_some_and(|raw| raw.get() == "null")
    {
        splice.replace(place, arguments.without(&[MEMBER]));
        changed = true;
    }
    if changed {
        Bytes::from(splice.into_text())
    } else {
        params.clone()
    }
}
