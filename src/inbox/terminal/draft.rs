//! What a person has chosen and typed for one card, kept until the card is gone.

use ratatui_textarea::{CursorMove, TextArea, WrapMode};

use crate::card::{Card, SaidAnswer};
use crate::protocol::question::{Question, Selection};

/// A field for text of several lines.
pub(super) fn field() -> TextArea<'static> {
    let mut field = TextArea::default();
    field.set_wrap_mode(WrapMode::WordOrGlyph);
    field
}

/// What is prepared for one card.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// What is prepared for each question.
    pub(super) answers: Vec<QuestionDraft>,
    /// The question that is in sight.
    pub(super) tab: usize,
    /// Why not.
    pub(super) reason: TextArea<'static>,
}

/// What is prepared for one question.
#[derive(Debug, Clone)]
pub(super) struct QuestionDraft {
    /// Which options are chosen, in their order.
    pub(super) chosen: Vec<bool>,
    /// Whether the text counts; it is kept where it does not.
    pub(super) other: bool,
    /// What the person wrote.
    pub(super) text: TextArea<'static>,
    /// The row that the keys act on: an option, or the text after all of them.
    pub(super) row: usize,
}

impl Draft {
    /// Begins with nothing chosen: silence is no answer.
    pub(super) fn of(card: &Card) -> Self {
        let answers = card.questions.iter().map(|question| QuestionDraft {
            chosen: vec![false; question.shown.options.len()],
            other: false,
            text: field(),
            row: 0,
        });
        Self {
            answers: answers.collect(),
            tab: 0,
            reason: field(),
        }
    }

    /// Tells whether leaving would lose anything.
    pub(super) fn is_empty(&self) -> bool {
        let untouched =
            |answer: &QuestionDraft| answer.text.is_empty() && answer.chosen.iter().all(|chosen| !chosen);
        self.reason.is_empty() && self.answers.iter().all(untouched)
    }

    /// Returns the draft of the question in sight.
    pub(super) fn current(&self) -> Option<&QuestionDraft> {
        self.answers.get(self.tab)
    }

    /// Returns the draft of the question in sight, to change it.
    pub(super) fn current_mut(&mut self) -> Option<&mut QuestionDraft> {
        self.answers.get_mut(self.tab)
    }

    /// Counts the questions without an answer.
    pub(super) fn unanswered(&self) -> usize {
        self.answers.iter().filter(|answer| !answer.is_answered()).count()
    }

    /// Returns what is said to each question; `None` where that is nothing.
    pub(super) fn said(&self, card: &Card) -> Vec<Option<SaidAnswer>> {
        let pairs = card.questions.iter().zip(&self.answers);
        pairs
            .map(|(question, answer)| answer.said(&question.shown))
            .collect()
    }

    /// Returns why not, if anything was written.
    pub(super) fn reason(&self) -> Option<String> {
        written(&self.reason)
    }
}

impl QuestionDraft {
    /// Tells whether the keys act on the text.
    pub(super) fn is_in_text(&self) -> bool {
        self.row == self.chosen.len()
    }

    /// Tells whether something is chosen or written.
    pub(super) fn is_answered(&self) -> bool {
        self.chosen.contains(&true) || (self.other && written(&self.text).is_some())
    }

    /// Chooses an option; where one is allowed, instead of any other, and in place of the text.
    pub(super) fn choose(&mut self, option: usize, selection: Selection) {
        let Some(chosen) = self.chosen.get(option).copied() else {
            return;
        };
        self.row = option;
        match selection {
            Selection::One => {
                self.chosen.fill(false);
                self.other = false;
                self.chosen[option] = true;
            }
            Selection::Several => self.chosen[option] = !chosen,
        }
    }

    /// Goes to the text, which counts from now on if there is any.
    pub(super) fn go_to_text(&mut self) {
        self.row = self.chosen.len();
    }

    /// Takes over that the text changed.
    pub(super) fn text_changed(&mut self, selection: Selection) {
        self.other = written(&self.text).is_some();
        if self.other && selection == Selection::One {
            self.chosen.fill(false);
        }
    }

    /// Moves up: in the text, from its first line to the last option.
    pub(super) fn up(&mut self) {
        if self.is_in_text() && self.text.cursor().0 > 0 {
            self.text.move_cursor(CursorMove::Up);
        } else {
            self.row = self.row.saturating_sub(1);
        }
    }

    /// Moves down: from the last option to the text.
    pub(super) fn down(&mut self) {
        if self.is_in_text() {
            self.text.move_cursor(CursorMove::Down);
        } else {
            self.row += 1;
        }
    }

    fn said(&self, question: &Question) -> Option<SaidAnswer> {
        let options = question.options.iter().zip(&self.chosen);
        let labels: Vec<String> = options
            .filter(|(_, chosen)| **chosen)
            .map(|(option, _)| option.label.clone())
            .collect();
        let text = if self.other { written(&self.text) } else { None };
        self.is_answered().then_some(SaidAnswer { labels, text })
    }
}

/// Returns what stands in a field, unless it is blank.
pub(super) fn written(field: &TextArea<'_>) -> Option<String> {
    let text = field.lines().join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
