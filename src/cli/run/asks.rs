//! The asks of a run in its terminal: one is shown at a time, and a line that is typed is for the one that was shown then.
//!
//! Pure. Without this a person would approve what they did not read: another call may be asked about between the first
//! letter of their line and its Enter, or in the moment before their first letter.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::card::{Card, SaidAnswer};
use crate::proxy::WorkflowId;

/// A line that is begun so soon after the screen has changed is for what stood there before.
const GRACE: Duration = Duration::from_millis(300);

/// What a line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addressee {
    /// The agent.
    Agent,
    /// An ask.
    Ask {
        /// Its name in the store.
        id: WorkflowId,
        /// Its name for people.
        code: String,
    },
}

/// The ask on the screen.
#[derive(Debug)]
pub(super) struct ShownAsk {
    /// As it was drawn.
    pub(super) card: Card,
    /// What was answered to its first questions.
    pub(super) said: Vec<SaidAnswer>,
}

/// The asks that wait, and the one that is shown.
#[derive(Debug)]
pub(super) struct OpenAsks {
    waiting: VecDeque<WorkflowId>,
    shown: Option<ShownAsk>,
    addressee: Addressee,
    /// What a line was for before, and until when it still is.
    before: Option<(Addressee, Instant)>,
}

impl OpenAsks {
    /// Begins without any.
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            shown: None,
            addressee: Addressee::Agent,
            before: None,
        }
    }

    /// Takes an ask in; it is shown once those before it are over.
    pub(super) fn push(&mut self, id: WorkflowId) {
        if !self.waiting.contains(&id) {
            self.waiting.push_back(id);
        }
    }

    /// Takes an ask out that is over; returns it if it was on the screen.
    pub(super) fn remove(&mut self, id: WorkflowId, now: Instant) -> Option<ShownAsk> {
        self.waiting.retain(|waiting| *waiting != id);
        let shown = self.shown.take_if(|shown| shown.card.id == id)?;
        self.turn_to(Addressee::Agent, now);
        Some(shown)
    }

    /// Takes all out: none of them is waited for any more.
    pub(super) fn clear(&mut self, now: Instant) {
        self.waiting.clear();
        if self.shown.take().is_some() {
            self.turn_to(Addressee::Agent, now);
        }
    }

    /// Returns the ask that is to be shown next; `None` where one is shown, or none waits.
    pub(super) fn next(&self) -> Option<WorkflowId> {
        match self.shown {
            Some(_) => None,
            None => self.waiting.front().copied(),
        }
    }

    /// Takes note that an ask stands on the screen now.
    pub(super) fn show(&mut self, card: Card, now: Instant) {
        let addressee = Addressee::Ask {
            id: card.id,
            code: card.code.to_string(),
        };
        self.turn_to(addressee, now);
        self.shown = Some(ShownAsk {
            card,
            said: Vec::new(),
        });
    }

    fn turn_to(&mut self, addressee: Addressee, now: Instant) {
        let before = self.addressee_at(now);
        self.addressee = addressee;
        self.before = Some((before, now + GRACE));
    }

    /// Returns what a line is for that is begun at this moment.
    pub(super) fn addressee_at(&self, now: Instant) -> Addressee {
        match &self.before {
            Some((before, until)) if now < *until => before.clone(),
            _ => self.addressee.clone(),
        }
    }

    /// Returns when a line that is begun is for something else than now, though nothing else happens.
    pub(super) fn settles_at(&self, now: Instant) -> Option<Instant> {
        self.before
            .as_ref()
            .map(|(_, until)| *until)
            .filter(|until| now < *until)
    }

    /// Returns the ask on the screen.
    pub(super) fn shown(&mut self) -> Option<&mut ShownAsk> {
        self.shown.as_mut()
    }

    /// Returns the code of the ask on the screen, and how many wait behind it.
    pub(super) fn told(&self) -> (Option<&str>, usize) {
        let code = self.shown.as_ref().map(|shown| shown.card.code.as_str());
        (code, self.waiting.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::samples;
    use crate::workflow::{Ask, UseReach};

    fn card(id: u128) -> Card {
        let mut workflow = samples::workflow(Ask::Use {
            reach: UseReach::Lasting,
        });
        workflow.id = WorkflowId::new(uuid::Uuid::from_u128(id));
        samples::card(&workflow)
    }

    fn addressed(asks: &OpenAsks, now: Instant) -> Option<WorkflowId> {
        match asks.addressee_at(now) {
            Addressee::Agent => None,
            Addressee::Ask { id, .. } => Some(id),
        }
    }

    #[test]
    fn one_ask_is_shown_at_a_time_in_the_order_they_came() {
        let now = Instant::now();
        let (one, two) = (card(1), card(2));
        let mut asks = OpenAsks::new();
        for card in [&one, &two, &one] {
            asks.push(card.id);
        }
        assert_eq!(asks.next(), Some(one.id));
        asks.show(one.clone(), now);
        assert_eq!((asks.next(), asks.told().1), (None, 1));
        // Another one is over elsewhere: the one on the screen stays.
        asks.remove(two.id, now);
        assert_eq!(addressed(&asks, now + GRACE), Some(one.id));
        asks.remove(one.id, now);
        assert_eq!((asks.next(), asks.told()), (None, (None, 0)));
    }

    #[test]
    fn a_line_is_for_what_was_shown_when_it_was_begun_or_just_before() {
        let now = Instant::now();
        let (one, two) = (card(1), card(2));
        let mut asks = OpenAsks::new();
        asks.push(one.id);
        asks.push(two.id);
        asks.show(one.clone(), now);
        assert_eq!(addressed(&asks, now), None, "nobody can have read it yet");
        let later = now + GRACE;
        assert_eq!(addressed(&asks, later), Some(one.id));
        // It is answered elsewhere, and the next one comes at once.
        asks.remove(one.id, later);
        asks.show(two.clone(), later);
        assert_eq!(addressed(&asks, later + GRACE / 2), Some(one.id));
        assert_eq!(addressed(&asks, later + GRACE), Some(two.id));
    }
}
