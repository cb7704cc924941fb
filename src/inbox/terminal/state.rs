//! The state of the screen: the cards, what is in sight, what is prepared, and what was just said about it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ratatui::layout::Size;

use super::draft::{Draft, QuestionDraft};
use super::theme::Palette;
use crate::card::{Card, CardState, Decision};
use crate::workflow::{Moment, Timestamp, WorkflowId};

/// For so long after what is in sight changed no key decides: the person had not seen it when they pressed it.
pub(super) const GRACE: Duration = Duration::from_millis(300);

/// Where the keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// A part of the screen.
    Pane(Pane),
    /// A decision that one more key makes final.
    Armed {
        /// What would be decided.
        decision: Decision,
        /// Where a person comes back to who thinks better of it.
        back: Pane,
    },
    /// The answers, read once more before they are sent.
    Review,
    /// What was answered lately.
    History,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// What waits.
    Queue,
    /// The card in sight.
    Card,
}

/// What keys mean now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A list of cards, and a decision or questions in sight.
    Queue(CardKind),
    /// A card that asks for a decision.
    Decision {
        /// Whether a rule can say it.
        always: bool,
    },
    /// A card that does not wait any more; letters mean nothing, as a person may be in the middle of a word.
    Closed,
    /// The options of a question.
    Options,
    /// A text that answers a question.
    Text,
    /// A decision that Enter makes final.
    Armed,
    /// A refusal that Enter makes final, and the field for its reason.
    Reason,
    /// All answers, every question among them answered.
    Review,
    /// All answers, and some are missing.
    IncompleteReview,
    /// What was answered lately.
    History,
}

/// What the card in sight asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardKind {
    /// Nothing is in sight.
    None,
    /// A decision, `always` among those that are offered or not.
    Decision {
        /// Whether a rule can say it.
        always: bool,
    },
    /// Answers to questions.
    Questions,
    /// Nothing any more.
    Closed,
}

/// New asks that no bell has rung for yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Announcement {
    /// Their titles, the oldest first.
    pub(super) titles: Vec<String>,
    /// When the bell rings.
    pub(super) due: Option<Instant>,
}

/// The whole screen.
#[derive(Debug, Clone)]
pub struct Screen {
    /// What waits, the oldest first; and the card in sight, also where it does not wait any more.
    pub(super) cards: Vec<Card>,
    /// What does not wait any more, the newest first.
    pub(super) recent: Vec<Card>,
    /// The card in sight.
    pub(super) selected: Option<WorkflowId>,
    /// The card in sight in the history.
    pub(super) looked_up: Option<WorkflowId>,
    /// Where the keys go.
    pub(super) focus: Focus,
    /// What is prepared, by card.
    pub(super) drafts: HashMap<WorkflowId, Draft>,
    /// The first row of the card that is in sight.
    pub(super) scroll: usize,
    /// Whether the cards were read at all.
    pub(super) begun: bool,
    /// Whether the last row of the card has been in sight.
    pub(super) seen_to_its_end: bool,
    /// When that changed which a key could decide about.
    pub(super) changed_at: Instant,
    /// What a person is told about the last key or the last event.
    pub(super) note: Option<String>,
    /// The card whose answer is being recorded.
    pub(super) sending: Option<WorkflowId>,
    /// Whether a key asked to leave although something is typed.
    pub(super) leaving: bool,
    /// New asks that no bell has rung for yet.
    pub(super) announcement: Announcement,
    /// How large the terminal is.
    pub(super) size: Size,
    /// Which colours it has.
    pub(super) palette: Palette,
    /// The moment of the last update, by which ages are told.
    pub(super) now: Moment,
}

impl Screen {
    /// Begins with nothing in sight.
    #[must_use]
    pub fn new(size: Size, palette: Palette, now: Moment) -> Self {
        Self {
            cards: Vec::new(),
            recent: Vec::new(),
            selected: None,
            looked_up: None,
            focus: Focus::Pane(Pane::Queue),
            drafts: HashMap::new(),
            scroll: 0,
            begun: false,
            seen_to_its_end: false,
            changed_at: now.steady,
            note: None,
            sending: None,
            leaving: false,
            announcement: Announcement::default(),
            size,
            palette,
            now,
        }
    }

    /// Returns the card in sight.
    pub(super) fn shown(&self) -> Option<&Card> {
        let (cards, id) = match self.focus {
            Focus::History => (&self.recent, self.looked_up?),
            Focus::Pane(_) | Focus::Armed { .. } | Focus::Review => (&self.cards, self.selected?),
        };
        cards.iter().find(|card| card.id == id)
    }

    /// Returns the card that keys act on, with its draft.
    pub(super) fn open(&mut self) -> Option<(&Card, &mut Draft)> {
        let id = self.selected?;
        let card = self.cards.iter().find(|card| card.id == id)?;
        let draft = self.drafts.entry(id).or_insert_with(|| Draft::of(card));
        Some((card, draft))
    }

    /// Returns what is prepared for the card in sight.
    pub(super) fn draft(&self) -> Option<&Draft> {
        self.drafts.get(&self.shown()?.id)
    }

    /// Tells what keys mean now.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let kind = self.shown().map_or(CardKind::None, CardKind::of);
        match self.focus {
            Focus::History => Mode::History,
            Focus::Pane(Pane::Queue) => Mode::Queue(kind),
            Focus::Armed {
                decision: Decision::Abort,
                ..
            } => Mode::Reason,
            Focus::Armed { .. } => Mode::Armed,
            Focus::Review if self.draft().is_some_and(|draft| draft.unanswered() == 0) => Mode::Review,
            Focus::Review => Mode::IncompleteReview,
            Focus::Pane(Pane::Card) => match kind {
                CardKind::None => Mode::Queue(kind),
                CardKind::Closed => Mode::Closed,
                CardKind::Decision { always } => Mode::Decision { always },
                CardKind::Questions => {
                    let current = self.draft().and_then(Draft::current);
                    if current.is_some_and(QuestionDraft::is_in_text) {
                        Mode::Text
                    } else {
                        Mode::Options
                    }
                }
            },
        }
    }

    /// Tells whether what is in sight is too new for a key to decide about it.
    #[must_use]
    pub fn in_grace(&self) -> bool {
        self.now.steady.saturating_duration_since(self.changed_at) < GRACE
    }

    /// Starts the grace: what is in sight from now on is new to the person.
    pub(super) fn show_anew(&mut self) {
        self.changed_at = self.now.steady;
        self.scroll = 0;
        self.seen_to_its_end = false;
    }

    /// Returns when the screen must be looked at again without any event.
    #[must_use]
    pub fn wakes_at(&self) -> Instant {
        let second = self.now.steady + Duration::from_secs(1);
        let grace = self.in_grace().then(|| self.changed_at + GRACE);
        let ends = [grace, self.announcement.due];
        ends.into_iter().flatten().fold(second, Instant::min)
    }

    /// Returns the moment by which ages are told.
    pub(super) fn wall(&self) -> Timestamp {
        self.now.wall
    }

    /// Counts what waits.
    pub(super) fn waiting(&self) -> usize {
        let waits = |card: &&Card| card.state == CardState::Pending;
        self.cards.iter().filter(waits).count()
    }
}

impl CardKind {
    fn of(card: &Card) -> Self {
        if card.state != CardState::Pending {
            Self::Closed
        } else if card.questions.is_empty() {
            let always = |choice: &crate::card::Choice| choice.decision == Decision::Always;
            Self::Decision {
                always: card.choices.iter().any(always),
            }
        } else {
            Self::Questions
        }
    }
}
