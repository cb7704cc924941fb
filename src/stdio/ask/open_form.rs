//! A form that a Modern client was given and has not brought back: an answer counts only where its form was shown.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::dialog::READING;
use super::parking::ParkedItem;
use crate::proxy::Claim;

/// A form that did not come back for this long is not on anybody's screen any more.
pub(crate) const LIFE: Duration = Duration::from_hours(24);

/// One form at the client.
#[derive(Debug)]
pub(crate) struct OpenForm {
    shown_at: Instant,
    /// The right of that call to the answer.
    pub(crate) claim: Option<Claim>,
    /// What the form before this one was filled in with.
    pub(crate) earlier: Map<String, Value>,
    /// How often the ask was shown before, with an answer that was none.
    pub(crate) attempt: usize,
}

impl OpenForm {
    /// Describes a form that is shown now.
    pub(crate) fn new(claim: Option<Claim>, earlier: Map<String, Value>, attempt: usize) -> Self {
        Self {
            shown_at: Instant::now(),
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

impl ParkedItem for OpenForm {
    fn bytes(&self) -> usize {
        let text = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
        self.earlier.iter().map(text).sum()
    }
}
