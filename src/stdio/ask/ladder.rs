//! The ladder: the one way in which a person is asked through the client, whatever the ask is about.
//!
//! | rung | for |
//! |---|---|
//! | a form in an `input_required` result, brought back by a retry | a Modern request that declares forms |
//! | `elicitation/create` while the call is open | a Legacy client that shows forms |
//! | none: the ask stands in the inbox | everything else, and a form that reached no person |
//!
//! What a retry says is the client's own word: it counts only where its form was shown, for the very same call, once.
//!
//! Questions of servers take the same rungs, with a third of their own (`forwarded.rs`).

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::dialog::{Dialog, DialogEnd, Dialogs, WaitingCall};
use super::form::{self, Filled};
use super::input_required::InputRequired;
use super::open_form::{self, OpenForm};
use super::parking::{ParkedMatch, Parking};
use super::retry::Retry;
use super::subject::PersonAsk;
use crate::card::Said;
use crate::config;
use crate::protocol::Object;
use crate::proxy::{Claim, Outcome, Progress, Proxy, Road, Workflow, WorkflowId};
use crate::stdio::client::answer;
use crate::stdio::client::link::{FormStyle, Link};
use crate::stdio::era::{self, Covered, Era};
use crate::stdio::translation::request::Request;
use crate::stdio::translation::request_state::RequestState;

/// The name of the one form that pml asks to be filled in at a time.
const FORM: &str = "answer";

/// How a person can be reached through the client itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientRoad {
    /// By an `input_required` result.
    Dialog,
    /// By a request while the call is open.
    Elicitation,
    /// Not at all.
    None,
}

impl ClientRoad {
    /// Finds the road to a client of this era, where it covers what is asked.
    pub(crate) fn of(era: Era, covered: Covered) -> Self {
        match (covered, era) {
            (Covered::No, _) => Self::None,
            (Covered::Yes | Covered::Unknown, Era::Modern) => Self::Dialog,
            (Covered::Yes | Covered::Unknown, Era::Legacy) => Self::Elicitation,
        }
    }
}

/// The request on whose behalf a person is asked.
pub(crate) struct Requester {
    pub(crate) road: ClientRoad,
    /// What a Modern client brings back after a form.
    pub(crate) retry: Option<ReturnedForm>,
    /// Where the client hears that its request waits, if it wants to.
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
}

impl Requester {
    /// Returns the ask whose form this request brings back, where that form was shown for the very same call.
    pub(crate) fn returns_form_of(&self) -> Option<WorkflowId> {
        let retry = self.retry.as_ref()?;
        let form = retry.form.lock().unwrap_or_else(PoisonError::into_inner);
        form.as_ref().and(retry.state.parse().ok())
    }

    fn take_returned(&self) -> Option<(Option<&Filled>, OpenForm)> {
        let retry = self.retry.as_ref()?;
        let form = retry.form.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some((retry.filled.as_ref(), form?))
    }
}

/// A form of pml's own that a Modern request brings back.
pub(crate) struct ReturnedForm {
    /// The state that the client was given with the form.
    pub(crate) state: String,
    /// What was filled in; `None` where the client left it out.
    filled: Option<Filled>,
    /// The form it brings back; empty where none was shown here for the very same call, or once it was read.
    form: Mutex<Option<OpenForm>>,
}

/// What came of putting an ask to a person through the client.
pub(crate) enum LadderReply {
    /// They said this in a form of this client, and it is an answer.
    Said(Said, Road),
    /// The client must show this form and call again.
    Form(ModernForm),
    /// No form brought an answer; one may have come on another road, or may still come.
    Nothing,
}

/// A form for the dialog of a Modern client.
pub(crate) struct ModernForm {
    /// The workflow it is about.
    id: WorkflowId,
    /// The elicitation parameters.
    params: Value,
    /// The right of the call to the answer.
    claim: Option<Claim>,
    /// What the form before this one was filled in with.
    earlier: Map<String, Value>,
    /// How often the ask was shown before, with an answer that was none.
    attempt: usize,
}

impl ModernForm {
    /// Writes the first form of an ask, which keeps the right of its call to the answer.
    fn first(ask: &mut PersonAsk<'_>, attempt: usize) -> Self {
        Self {
            id: ask.card.id,
            params: ask.first_form(attempt),
            claim: ask.claim.take(),
            earlier: Map::new(),
            attempt,
        }
    }
}

/// What becomes of a request that a person may have to be asked about.
pub(crate) enum Resolution {
    /// An outcome of the proxy.
    Outcome(Outcome),
    /// A result of pml's own tools.
    OwnResult(Value),
    /// A form for the client's own dialog.
    Form(ModernForm),
}

/// Asks a person through one client.
pub(crate) struct Ladder {
    pub(super) proxy: Proxy,
    pub(super) link: Link,
    dialogs: Dialogs,
    /// The forms that a Modern client was given and has not brought back, by workflow.
    forms: Parking<OpenForm>,
}

impl Ladder {
    /// Asks through this client.
    pub(crate) fn new(proxy: Proxy, link: Link) -> Self {
        Self {
            proxy,
            link,
            dialogs: Dialogs::default(),
            forms: Parking::default(),
        }
    }

    /// Tells how a person can be reached through the client while it waits for a request with these parameters.
    pub(crate) fn road(&self, params: &Object<'_>, era: Era) -> ClientRoad {
        if self.proxy.is_in_run() || self.proxy.approvals().dialog == config::DialogMode::Never {
            return ClientRoad::None;
        }
        let shows = match era {
            Era::Modern => era::request_shows_forms(params),
            Era::Legacy => self.link.forms().is_some(),
        };
        ClientRoad::of(era, if shows { Covered::Yes } else { Covered::No })
    }

    /// Reads the form of pml's own that a Modern client brings back.
    pub(crate) fn returned_form(&self, request: &Request, params: &Object<'_>) -> Option<ReturnedForm> {
        let retry = Retry::read(params)?;
        let responses = retry.responses();
        let RequestState::Own(state) = retry.state else {
            return None;
        };
        let filled = responses.and_then(|responses| responses.value(FORM)).map(|raw| {
            serde_json::from_str(raw.get()).map_or(Filled::Unreadable, |value: Value| Filled::read(&value))
        });
        let id = state.parse().ok().map(WorkflowId::uuid);
        let found = id.map(|id| self.forms.take(id, Instant::now(), request.gist().as_ref()));
        let form = match found {
            Some(ParkedMatch::Wanted(form)) => Some(form),
            Some(ParkedMatch::Another | ParkedMatch::Nothing) | None => None,
        };
        Some(ReturnedForm {
            state,
            filled,
            form: Mutex::new(form),
        })
    }

    /// Puts an ask to a person through the client, on the highest rung that this request reaches.
    pub(crate) async fn ask(&self, requester: &Requester, ask: &mut PersonAsk<'_>) -> LadderReply {
        if let Some((filled, form)) = requester.take_returned() {
            match filled {
                Some(filled) => return returned(filled, form, ask),
                // The client left the answer out: it is asked once more.
                None => ask.claim = form.claim,
            }
        }
        // It stands where a person can scroll, and the result of the call says where that is.
        if !ask.card.fits_dialog() {
            return LadderReply::Nothing;
        }
        match requester.road {
            ClientRoad::Dialog => LadderReply::Form(ModernForm::first(ask, 0)),
            ClientRoad::Elicitation => self.show(requester, ask).await,
            ClientRoad::None => LadderReply::Nothing,
        }
    }

    /// Waits for the answer to an ask on any road, and shows the client meanwhile that its request lives.
    ///
    /// Returns the ask once it is answered or over, `None` when time is up.
    pub(crate) async fn wait(
        &self,
        requester: &Requester,
        id: WorkflowId,
        patience: Duration,
    ) -> Option<Workflow> {
        match self.waiting(requester, id, patience).join().await {
            DialogEnd::Elsewhere(workflow) => Some(*workflow),
            DialogEnd::Filled(_) | DialogEnd::Unavailable => None,
        }
    }

    /// Shows the forms of an ask at a Legacy client, one after the other, until what is filled in is an answer.
    async fn show(&self, requester: &Requester, ask: &PersonAsk<'_>) -> LadderReply {
        let by = Road::Elicitation;
        for attempt in 0..ask.attempts() {
            let first = ask.first_form(attempt);
            let mut content = match self.fill(requester, ask, first).await {
                Ok(content) => content,
                Err(reply) => return reply,
            };
            if let Some(second) = ask.second_form(&content) {
                match self.fill(requester, ask, second).await {
                    Ok(own_words) => content.extend(own_words),
                    Err(reply) => return reply,
                }
            }
            match ask.said(&content) {
                Some(said) => return LadderReply::Said(said, by),
                // Nothing was filled in: there is no slip to mend.
                None if content.is_empty() => break,
                None => {}
            }
        }
        LadderReply::Nothing
    }

    /// Shows one form at a Legacy client; returns what was filled in, or the reply where it was not.
    async fn fill(
        &self,
        requester: &Requester,
        ask: &PersonAsk<'_>,
        form: Value,
    ) -> Result<Map<String, Value>, LadderReply> {
        let dialog = Dialog {
            dialogs: &self.dialogs,
            link: &self.link,
            form: form::styled(form, self.link.forms().unwrap_or(FormStyle::Titled)),
            waiting: self.waiting(requester, ask.card.id, ask.patience),
        };
        match dialog.show().await {
            DialogEnd::Filled(Filled::Accepted(content)) => Ok(content),
            DialogEnd::Filled(Filled::Refused) => {
                Err(LadderReply::Said(Said::refusal(None), Road::Elicitation))
            }
            DialogEnd::Filled(Filled::Unreadable) | DialogEnd::Unavailable | DialogEnd::Elsewhere(_) => {
                Err(LadderReply::Nothing)
            }
        }
    }

    fn waiting<'a>(
        &'a self,
        requester: &'a Requester,
        id: WorkflowId,
        patience: Duration,
    ) -> WaitingCall<'a> {
        WaitingCall {
            proxy: &self.proxy,
            id,
            patience,
            progress: requester.progress.as_ref(),
        }
    }

    /// Writes the result that asks a Modern client to show a form and to call again.
    pub(crate) fn input_required(&self, request: &Request, form: ModernForm) -> answer::ResponseBody {
        let ModernForm {
            id,
            mut params,
            claim,
            earlier,
            attempt,
        } = form;
        let open = OpenForm::new(claim, earlier, attempt);
        let until = Instant::now() + open_form::LIFE;
        drop(self.forms.keep_as(id.uuid(), open, request.gist(), until));
        params["mode"] = json!("form");
        let mut result = InputRequired::default();
        result.ask(FORM, "elicitation/create", Some(&params.to_string()));
        result.into_body(&RequestState::Own(id.to_string()))
    }
}

/// Reads a form that a Modern client brings back.
fn returned(filled: &Filled, form: OpenForm, ask: &mut PersonAsk<'_>) -> LadderReply {
    let was_read = form.was_read();
    ask.claim = form.claim;
    let content = match filled {
        Filled::Accepted(content) => content.clone(),
        Filled::Refused if was_read => {
            return LadderReply::Said(Said::refusal(None), Road::Dialog);
        }
        Filled::Refused | Filled::Unreadable => return LadderReply::Nothing,
    };
    let is_first = form.earlier.is_empty();
    let mut all = form.earlier;
    all.extend(content);
    // Own words are asked for once: a client that accepts forms without filling them in would do so for ever.
    if let Some(params) = ask.second_form(&all).filter(|_| is_first) {
        return LadderReply::Form(ModernForm {
            id: ask.card.id,
            params,
            claim: ask.claim.take(),
            earlier: all,
            attempt: form.attempt,
        });
    }
    match ask.said(&all) {
        Some(said) => LadderReply::Said(said, Road::Dialog),
        // Where nothing was filled in there is no slip to mend.
        None if !all.is_empty() && form.attempt + 1 < ask.attempts() => {
            LadderReply::Form(ModernForm::first(ask, form.attempt + 1))
        }
        None => LadderReply::Nothing,
    }
}
