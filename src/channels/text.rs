//! The text of a notice in plain lines: the same on every channel that has no blocks of its own.
//!
//! Pure. It says of every piece whose words they are, so that a channel can keep what is not pml's own from becoming a
//! link, a mention or markup in the ways of its service.

use super::notice::{Notice, Standing};
use crate::card::{Card, CardQuestion, Choice, Decision, LineStyle};
use crate::protocol::question::Selection;

/// The columns of a title where the card itself has no room: a glance.
const GLANCE: usize = 300;

/// Whose words a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// Words of pml.
    Own,
    /// Words of a model, a package, a file: never markup.
    Foreign,
    /// A command or arguments, of which every character counts.
    Verbatim,
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Whose words it is.
    pub voice: Voice,
    /// The words.
    pub text: String,
}

/// A text in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text(Vec<Piece>);

impl Text {
    /// Shows a notice as it stands; `hint` says how it is answered here.
    pub(super) fn of(notice: &Notice, hint: &str) -> Self {
        match &notice.standing {
            Standing::Open { choices } => {
                let mut text = Self::open(&notice.card, choices);
                if !hint.is_empty() {
                    text.own(hint);
                }
                text
            }
            Standing::Closed(became) => Self::closed(&notice.card, became),
        }
    }

    /// Shows a card that can be answered, without the hint.
    pub(super) fn open(card: &Card, choices: &[Choice]) -> Self {
        let mut text = Self::heading(card);
        if card.questions.is_empty() {
            text.foreign(&card.title).newline();
            text.facts(card);
            text.grants(card, choices);
        }
        for (at, question) in card.questions.iter().enumerate() {
            text.question(question, at, card.questions.len());
        }
        text
    }

    /// Shows a card that has no room, or no way to be answered here.
    pub(super) fn glance(notice: &Notice, why: &str) -> Self {
        let mut text = Self::heading(&notice.card);
        text.foreign(&shortened(&notice.card.title)).newline();
        text.own(why);
        text.own("; open the inbox on your computer");
        if let Some(inbox) = &notice.inbox {
            text.own(": ").own(inbox);
        }
        text
    }

    fn closed(card: &Card, became: &str) -> Self {
        let mut text = Self::heading(card);
        text.foreign(&shortened(&card.title)).newline();
        text.foreign(became);
        text
    }

    /// Says who asks, where, and under which code.
    fn heading(card: &Card) -> Self {
        let mut text = Self::default();
        text.own(card.code.as_str());
        // Where the project lies concerns this machine alone.
        let project = card.asker.project.rsplit('/').find(|part| !part.is_empty());
        for part in project.into_iter().chain(card.asker.client.as_deref()) {
            text.own(" · ").foreign(part);
        }
        text.newline();
        text
    }

    fn facts(&mut self, card: &Card) {
        for line in &card.lines {
            if !line.label.is_empty() {
                self.own(line.label).own(": ");
            }
            match line.style {
                LineStyle::Command | LineStyle::Arguments | LineStyle::Change | LineStyle::Hash => {
                    self.verbatim(&line.text);
                }
                LineStyle::Plain => {
                    self.foreign(&line.text);
                }
                LineStyle::Warning => {
                    self.own("⚠ ").foreign(&line.text);
                }
            }
            self.newline();
        }
    }

    /// Says what each decision grants.
    fn grants(&mut self, card: &Card, choices: &[Choice]) {
        for choice in choices {
            self.own(choice.label).own(": ").foreign(&choice.grants);
            if let (Decision::Always, Some(rule)) = (choice.decision, &card.always_writes) {
                self.own("; writes ").verbatim(&rule.rule);
                self.own(" to ").verbatim(&rule.file);
            }
            self.newline();
        }
    }

    fn question(&mut self, question: &CardQuestion, at: usize, count: usize) {
        let shown = &question.shown;
        if count > 1 {
            self.own(&format!("Question {} of {count}: ", at + 1));
        }
        self.foreign(&shown.question).newline();
        for (place, option) in shown.options.iter().enumerate() {
            self.own(&format!("{}. ", place + 1)).foreign(&option.label);
            if let Some(description) = &option.description {
                self.own(" — ").foreign(description);
            }
            self.newline();
        }
        if count > 1 {
            let how = match (shown.options.is_empty(), shown.selection) {
                (true, _) => "(in your own words)",
                (false, Selection::One) => "(one of these)",
                (false, Selection::Several) => "(any of these)",
            };
            self.own(how).newline();
        }
    }

    fn own(&mut self, words: &str) -> &mut Self {
        self.piece(Voice::Own, words)
    }

    fn foreign(&mut self, words: &str) -> &mut Self {
        self.piece(Voice::Foreign, words)
    }

    fn verbatim(&mut self, words: &str) -> &mut Self {
        self.piece(Voice::Verbatim, words)
    }

    fn newline(&mut self) -> &mut Self {
        self.own("\n")
    }

    fn piece(&mut self, voice: Voice, words: &str) -> &mut Self {
        match self.0.last_mut() {
            Some(last) if last.voice == voice => last.text.push_str(words),
            _ if words.is_empty() => {}
            _ => self.0.push(Piece {
                voice,
                text: words.to_owned(),
            }),
        }
        self
    }

    /// Returns the pieces, in order.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// Writes the pieces as one text, each as `write` does.
    pub(super) fn write(&self, write: impl Fn(&Piece) -> String) -> String {
        let text: String = self.0.iter().map(write).collect();
        text.trim_end().to_owned()
    }

    /// Returns the text as it is.
    pub(super) fn plain(&self) -> String {
        self.write(|piece| piece.text.clone())
    }
}

/// Shortens a line to a glance, and says so.
pub(super) fn shortened(line: &str) -> String {
    crate::protocol::Excerpt::of_text(line, GLANCE).text
}

/// Shortens a label to so many characters, with an ellipsis; it stands whole in the text above.
pub(super) fn label(text: &str, limit: usize) -> String {
    let mut letters = text.chars();
    let mut label: String = letters.by_ref().take(limit).collect();
    if letters.next().is_some() {
        label.pop();
        label.push('…');
    }
    label
}

#[cfg(test)]
mod tests;
