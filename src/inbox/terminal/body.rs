//! The card in sight as rows of text: everything of it, broken to the width and never cut.

use std::ops::Range;

use unicode_width::UnicodeWidthStr as _;

use super::draft::{Draft, QuestionDraft, written};
use super::state::{Focus, Mode, Screen};
use super::text::{short, wrap};
use super::theme::Tone;
use crate::card::{Card, CardState, Choice, Decision, LineStyle};
use crate::protocol::Shown;
use crate::protocol::question::{LEFT_UNANSWERED, Question, Selection};
use crate::workflow::Timestamp;

/// Below this width a value stands under its name instead of beside it.
const NARROW: usize = 56;

/// A row: pieces of text with their meaning.
pub(super) type Row = Vec<(Tone, String)>;

/// The card in sight.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Every row of it.
    pub(super) rows: Vec<Row>,
    /// The rows that the keys act on.
    pub(super) cursor: Option<Range<usize>>,
}

/// Whether one question is being answered, a row of it marked, or all of them are only shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionRows {
    Cursor,
    NoCursor,
}

impl Body {
    fn text(&mut self, tone: Tone, text: &str, width: usize) {
        self.rows
            .extend(wrap(text, width).into_iter().map(|line| vec![(tone, line)]));
    }

    fn blank(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Writes a value beside its name, or under it where it is narrow.
    fn named(&mut self, name: &str, column: usize, tone: Tone, text: &str, width: usize) {
        if width < NARROW {
            if name.width() + 2 + text.width() <= width && !text.contains('\n') {
                self.rows
                    .push(vec![(Tone::Label, format!("{name}: ")), (tone, text.to_owned())]);
                return;
            }
            self.rows.push(vec![(Tone::Label, format!("{name}:"))]);
            let lines = wrap(text, width.saturating_sub(2)).into_iter();
            self.rows
                .extend(lines.map(|line| vec![(tone, format!("  {line}"))]));
            return;
        }
        for (index, line) in wrap(text, width.saturating_sub(column)).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            self.rows
                .push(vec![(Tone::Label, format!("{name:column$}")), (tone, line)]);
        }
    }
}

/// Draws the card in sight.
pub(super) fn body(screen: &Screen, width: usize) -> Body {
    let mut body = Body::default();
    let Some(card) = screen.shown() else {
        let empty = match screen.focus {
            Focus::History => "Nothing was answered lately.",
            _ => "Nothing waits for you. New asks appear here by themselves.",
        };
        body.text(Tone::Plain, empty, width);
        return body;
    };
    match screen.mode() {
        Mode::Review | Mode::IncompleteReview => review(&mut body, card, screen.draft(), width),
        _ => {
            let draft = screen.draft();
            // What is on its way was sent.
            let unsent = draft.filter(|_| screen.sending != Some(card.id));
            closed(&mut body, card, unsent, screen.wall(), width);
            if card.questions.is_empty() {
                decision(&mut body, card, screen.wall(), width);
            } else {
                let rows = match screen.mode() {
                    Mode::Options | Mode::Text => OptionRows::Cursor,
                    _ => OptionRows::NoCursor,
                };
                questions(&mut body, card, draft, rows, width);
                if rows == OptionRows::NoCursor {
                    body.blank();
                    about(&mut body, card, screen.wall(), 12, width);
                }
            }
        }
    }
    body
}

/// Says what became of a card that does not wait any more.
fn closed(body: &mut Body, card: &Card, draft: Option<&Draft>, now: Timestamp, width: usize) {
    let what = match card.state {
        CardState::Pending => return,
        CardState::Expired => "TOO LATE: its time is over, and nothing was answered.".to_owned(),
        CardState::Withdrawn => "WITHDRAWN: the agent does not wait for it any more.".to_owned(),
        CardState::Answered | CardState::Used | CardState::Refused => match &card.answered {
            Some(answer) => {
                let who = answer
                    .who
                    .as_ref()
                    .map_or_else(String::new, |who| format!(" ({who})"));
                let ago = short(now.since(answer.at));
                format!("ANSWERED by {}{who}, {ago} ago: {}", answer.road, answer.text)
            }
            None => "ANSWERED".to_owned(),
        },
    };
    body.text(Tone::Warning, &what, width);
    if let Some(draft) = draft.filter(|draft| !draft.is_empty()) {
        body.text(Tone::Label, "What you prepared was not sent:", width);
        let texts = draft.answers.iter().filter_map(|answer| written(&answer.text));
        for text in texts.chain(draft.reason()) {
            body.text(Tone::Plain, &Shown::block(&text).to_string(), width);
        }
    }
    body.blank();
}

fn decision(body: &mut Body, card: &Card, now: Timestamp, width: usize) {
    body.text(Tone::Title, &card.title, width);
    let longest = card.lines.iter().map(|line| line.label.width()).max();
    let column = longest.unwrap_or(0).clamp(10, 20) + 2;
    for line in &card.lines {
        let (tone, text) = match line.style {
            LineStyle::Change if line.text.starts_with('!') => (Tone::Warning, line.text.clone()),
            LineStyle::Command | LineStyle::Change => (Tone::Command, line.text.clone()),
            LineStyle::Warning => (Tone::Warning, format!("! {}", line.text)),
            LineStyle::Plain | LineStyle::Arguments | LineStyle::Hash => (Tone::Plain, line.text.clone()),
        };
        body.named(line.label, column, tone, &text, width);
    }
    about(body, card, now, column, width);
    if card.state != CardState::Pending {
        return;
    }
    body.blank();
    for choice in &card.choices {
        let key = match choice.decision {
            Decision::Once => 'c',
            Decision::Session => 's',
            Decision::Always => 'a',
            Decision::Abort => 'x',
        };
        let lines = wrap(&grants(card, choice), width.saturating_sub(3));
        for (index, line) in lines.into_iter().enumerate() {
            let key = if index == 0 { key } else { ' ' };
            body.rows
                .push(vec![(Tone::Command, format!("{key}  ")), (Tone::Plain, line)]);
        }
    }
}

/// Says what a choice grants; of a rule that it writes, the whole file.
pub(super) fn grants(card: &Card, choice: &Choice) -> String {
    match &card.always_writes {
        Some(always) if choice.decision == Decision::Always => {
            format!("{}: writes {} into {}", choice.label, always.rule, always.file)
        }
        _ => format!("{}: {}", choice.label, choice.grants),
    }
}

/// Says who asks, and what an answer reaches.
fn about(body: &mut Body, card: &Card, now: Timestamp, column: usize, width: usize) {
    let client = card.asker.client.as_deref().unwrap_or("an agent");
    let asker = format!("{client} in {}", card.asker.project);
    body.named("asked by", column, Tone::Plain, &asker, width);
    if card.state == CardState::Pending {
        let left = short(card.deadline.since(now));
        body.named(
            "answer",
            column,
            Tone::Plain,
            &format!("{}; {left} left", card.keeps_text),
            width,
        );
    }
}

fn questions(body: &mut Body, card: &Card, draft: Option<&Draft>, rows: OptionRows, width: usize) {
    let draft = draft.cloned().unwrap_or_else(|| Draft::of(card));
    if rows == OptionRows::Cursor {
        let Some((question, answer)) = card.questions.get(draft.tab).zip(draft.current()) else {
            return;
        };
        if card.questions.len() > 1 {
            tabs(body, card, &draft, width);
        }
        one_question(body, &question.shown, answer, width, OptionRows::Cursor);
    } else {
        for (question, answer) in card.questions.iter().zip(&draft.answers) {
            one_question(body, &question.shown, answer, width, OptionRows::NoCursor);
        }
    }
}

/// The questions by name, the one in sight in brackets, those that have an answer with a sign.
fn tabs(body: &mut Body, card: &Card, draft: &Draft, width: usize) {
    let named = card.questions.iter().zip(&draft.answers).enumerate();
    let tabs = named.map(|(index, (question, answer))| {
        let number = (index + 1).to_string();
        let name = question.shown.header.as_deref().unwrap_or(&number);
        let done = if answer.is_answered() { "+" } else { "" };
        if index == draft.tab {
            format!("[{name}{done}]")
        } else {
            format!(" {name}{done} ")
        }
    });
    let tabs: Vec<String> = tabs.collect();
    body.text(Tone::Title, &format!("{}  Review", tabs.join(" ")), width);
}

fn one_question(
    body: &mut Body,
    question: &Question,
    answer: &QuestionDraft,
    width: usize,
    rows: OptionRows,
) {
    body.text(Tone::Title, &question.question, width);
    let sign = |chosen: bool| match (question.selection, chosen) {
        (Selection::One, true) => "(x)",
        (Selection::One, false) => "( )",
        (Selection::Several, true) => "[x]",
        (Selection::Several, false) => "[ ]",
    };
    let options = question.options.iter().zip(&answer.chosen).enumerate();
    for (index, (option, chosen)) in options {
        let here = rows == OptionRows::Cursor && answer.row == index;
        let text = match &option.description {
            Some(description) => format!("{}: {description}", option.label),
            None => option.label.clone(),
        };
        let number = if index < 9 {
            (index + 1).to_string()
        } else {
            " ".to_owned()
        };
        let lead = format!("{}{number} {} ", if here { ">" } else { " " }, sign(*chosen));
        let begin = body.rows.len();
        for (line, text) in wrap(&text, width.saturating_sub(lead.width()))
            .into_iter()
            .enumerate()
        {
            let lead = if line == 0 {
                lead.clone()
            } else {
                " ".repeat(lead.width())
            };
            let tone = if here { Tone::Cursor } else { Tone::Plain };
            body.rows.push(vec![(Tone::Command, lead), (tone, text)]);
        }
        if here {
            body.cursor = Some(begin..body.rows.len());
        }
    }
    if !question.options.is_empty() {
        let here = rows == OptionRows::Cursor && answer.is_in_text();
        let lead = if here { ">" } else { " " };
        let text = match rows {
            OptionRows::Cursor => "Other, in your own words:".to_owned(),
            OptionRows::NoCursor => "Other, in your own words".to_owned(),
        };
        let row = vec![
            (Tone::Command, format!("{lead}  {} ", sign(answer.other))),
            (Tone::Plain, text),
        ];
        if here {
            body.cursor = Some(body.rows.len()..body.rows.len() + 1);
        }
        body.rows.push(row);
    }
}

/// The answers once more, as they will be sent.
fn review(body: &mut Body, card: &Card, draft: Option<&Draft>, width: usize) {
    let Some(draft) = draft else { return };
    let missing = draft.unanswered();
    let title = match missing {
        0 => "This will be sent:".to_owned(),
        missing => format!("{missing} unanswered: go back, or send it so"),
    };
    body.text(
        if missing == 0 { Tone::Title } else { Tone::Warning },
        &title,
        width,
    );
    let said = draft.said(card);
    for (question, said) in card.questions.iter().zip(said) {
        let title = question.shown.question.lines().next().unwrap_or_default();
        body.text(
            Tone::Label,
            question.shown.header.as_deref().unwrap_or(title),
            width,
        );
        if let Some(said) = said {
            for value in said.values() {
                let lines = wrap(&Shown::block(value).to_string(), width.saturating_sub(2));
                body.rows.extend(
                    lines
                        .into_iter()
                        .map(|line| vec![(Tone::Plain, format!("  {line}"))]),
                );
            }
        } else {
            body.rows
                .push(vec![(Tone::Warning, format!("  ! {LEFT_UNANSWERED}"))]);
        }
    }
}
