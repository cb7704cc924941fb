//! What is put to a person: the forms that show it, and the answer that a filled form holds.

use std::time::Duration;

use serde_json::{Map, Value};

use super::form;
use crate::card::{Card, Said, decide};
use crate::proxy::{Claim, PendingAsk};

/// What stands before questions that are asked once more.
const AGAIN: &str = "What you sent is not one of the answers. Please answer again.";

/// What a person is asked.
pub(crate) enum Subject<'a> {
    /// May a server be installed, run or connected to, or one of its tools be called?
    Approval(&'a PendingAsk),
    /// May the client use one of its own tools?
    Permission {
        /// The raw input of that use.
        input: &'a str,
    },
    /// Questions of a model.
    Questions,
}

/// An ask on its way to a person.
pub(crate) struct PersonAsk<'a> {
    /// What the person is shown and may say, on this surface as on any other.
    pub(crate) card: &'a Card,
    pub(crate) subject: Subject<'a>,
    /// How long a dialog may stay open.
    pub(crate) patience: Duration,
    /// The right of the call to the answer; a form that the client brings back later keeps it meanwhile.
    pub(crate) claim: Option<Claim>,
}

impl PersonAsk<'_> {
    /// How often questions are shown where what was filled in is no answer to them: a slip of the finger is mended,
    /// and a client that fills in forms by itself is not asked for ever.
    const ATTEMPTS: usize = 3;

    /// Returns how often the ask is shown where what was filled in is no answer. A decision is asked for once: what
    /// is none of the choices did not come from a person.
    pub(crate) fn attempts(&self) -> usize {
        match &self.subject {
            Subject::Approval(_) | Subject::Permission { .. } => 1,
            Subject::Questions => Self::ATTEMPTS,
        }
    }

    /// Writes the form that shows the ask, for the first time or once more.
    pub(crate) fn first_form(&self, attempt: usize) -> Value {
        let mut form = match &self.subject {
            Subject::Approval(asked) => form::approval(asked),
            Subject::Permission { input } => form::permission(self.card, input),
            Subject::Questions => form::questions(self.card),
        };
        if attempt > 0
            && let Some(message) = form.get("message").and_then(Value::as_str)
        {
            form["message"] = format!("{AGAIN}\n{message}").into();
        }
        form
    }

    /// Writes the form that follows a filled one: it asks for the person's own words where they chose those.
    pub(crate) fn second_form(&self, content: &Map<String, Value>) -> Option<Value> {
        match &self.subject {
            Subject::Approval(_) | Subject::Permission { .. } => None,
            Subject::Questions => form::own_words(self.card, content),
        }
    }

    /// Reads what was filled in; `None` where it is no answer.
    pub(crate) fn said(&self, content: &Map<String, Value>) -> Option<Said> {
        let said = match &self.subject {
            Subject::Approval(_) | Subject::Permission { .. } => Said::decision(form::decision(content)?),
            Subject::Questions => Said::answers(form::answers(&self.card.questions, content)?),
        };
        decide(self.card, said.clone()).is_ok().then_some(said)
    }
}
