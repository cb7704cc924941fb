//! The forms that a Modern client was given and has not brought back: an answer counts only where its form was shown.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::dialog::READING;
use crate::protocol::Digest;
use crate::proxy::{Claim, WorkflowId};

/// More forms than a person has open; the oldest goes first.
const LIMIT: usize = 1000;

/// A form that did not come back for this long is not on anybody's screen any more.
const LIFE: Duration = Duration::from_hours(24);

/// One form at the client.
#[derive(Debug)]
pub(crate) struct OpenForm {
    shown_at: Instant,
    /// The call it belongs to: only the very same call may bring it back.
    call: Option<Digest>,
    /// The right of that call to the answer.
    pub(crate) claim: Option<Claim>,
    /// What the form before this one was filled in with.
    pub(crate) earlier: Map<String, Value>,
    /// How often the ask was shown before, with an answer that was none.
    pub(crate) attempt: usize,
}

impl OpenForm {
    /// Describes a form that is shown now for `call`.
    pub(crate) fn new(
        call: Option<Digest>,
        claim: Option<Claim>,
        earlier: Map<String, Value>,
        attempt: usize,
    ) -> Self {
        Self {
            shown_at: Instant::now(),
            call,
            claim,
            earlier,
            attempt,
        }
    }

    /// Tells whether it was shown long enough for a person to have read it.
    pub(crate) fn was_read(&self) -> bool {
        self.shown_at.elapsed() >= READING
    }
}

/// The forms at one client, by workflow.
#[derive(Debug, Default)]
pub(crate) struct OpenForms(Mutex<HashMap<WorkflowId, OpenForm>>);

impl OpenForms {
    /// Takes note of a form that is being shown.
    pub(crate) fn show(&self, id: WorkflowId, form: OpenForm) {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forms.retain(|_, form| form.shown_at.elapsed() < LIFE);
        if forms.len() >= LIMIT
            && let Some(oldest) = forms
                .iter()
                .min_by_key(|(_, form)| form.shown_at)
                .map(|(id, _)| *id)
        {
            forms.remove(&oldest);
        }
        forms.insert(id, form);
    }

    /// Takes the form that a retry of `call` brings back; `None` where none was shown for it.
    pub(crate) fn take(&self, id: WorkflowId, call: Option<&Digest>) -> Option<OpenForm> {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = forms
            .get(&id)
            .is_some_and(|form| form.call.is_some() && form.call.as_ref() == call);
        same.then(|| forms.remove(&id)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(call: &Digest) -> OpenForm {
        OpenForm::new(Some(call.clone()), None, Map::new(), 0)
    }

    #[test]
    fn a_form_is_brought_back_once_and_by_its_own_call() {
        let forms = OpenForms::default();
        let id = WorkflowId::new(uuid::Uuid::new_v4());
        let (call, other) = (Digest::of(["call"]), Digest::of(["other"]));
        assert!(forms.take(id, Some(&call)).is_none(), "nothing was shown");
        forms.show(id, form(&call));
        assert!(forms.take(id, Some(&other)).is_none());
        assert!(forms.take(id, None).is_none());
        assert!(forms.take(id, Some(&call)).is_some());
        assert!(forms.take(id, Some(&call)).is_none(), "it came back already");
    }

    #[test]
    fn forms_that_never_come_back_have_a_limit() {
        let forms = OpenForms::default();
        let first = WorkflowId::new(uuid::Uuid::new_v4());
        let call = Digest::of(["call"]);
        forms.show(first, form(&call));
        for _ in 0..LIMIT {
            forms.show(WorkflowId::new(uuid::Uuid::new_v4()), form(&call));
        }
        assert!(forms.take(first, Some(&call)).is_none());
    }
}
