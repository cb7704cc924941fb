//! Where the parts of the screen are, by its size and by what is in sight.
//!
//! The update scrolls by this and the view draws by it, so both agree about what has been seen.

use ratatui::layout::Rect;

use super::body::{Body, Row, body, grants};
use super::draft::Draft;
use super::keys::help;
use super::queue::listed;
use super::state::{Focus, Mode, Pane, Screen};
use super::text::{short, wrap};
use super::theme::Tone;
use crate::card::Decision;
use unicode_width::UnicodeWidthStr as _;

/// On fewer rows the list gives way to the card that is being answered.
const LOW: u16 = 18;

/// A text field is never higher: what is asked stays in sight.
const FIELD_ROWS: usize = 5;

/// The parts of the screen, from the top.
#[derive(Debug)]
pub(super) struct Layout {
    /// The heading of the list.
    pub(super) heading: Rect,
    /// The list.
    pub(super) queue: Rect,
    /// The line between the list and the card.
    pub(super) rule: Rect,
    /// The card.
    pub(super) card: Rect,
    /// The text that is being typed.
    pub(super) field: Rect,
    /// What the next key makes final, and notes.
    pub(super) prompt: Rect,
    /// The keys.
    pub(super) footer: Rect,
    /// What is drawn in `card`, whole.
    pub(super) body: Body,
    /// What is drawn in `prompt`.
    pub(super) prompt_rows: Vec<Row>,
    /// What is drawn in `footer`.
    pub(super) footer_rows: Vec<Row>,
}

impl Layout {
    /// Lays the screen out.
    pub(super) fn of(screen: &Screen) -> Self {
        let width = screen.size.width;
        let columns = usize::from(width);
        let footer_rows = footer(screen, columns);
        let prompt_rows = prompt(screen, columns);
        let mut left = screen.size.height;
        // The footer and the prompt come first: without them a person cannot know what a key does.
        let footer = take(&mut left, footer_rows.len());
        let prompt = take(&mut left, prompt_rows.len());
        let field = take(&mut left, field_rows(screen, columns));
        let reading = !matches!(screen.focus, Focus::Pane(Pane::Queue) | Focus::History);
        let low = screen.size.height < LOW;
        let (cards, _) = listed(screen);
        let most = if low && reading { 0 } else { usize::from(left) / 3 };
        let heading = take(&mut left, 1);
        let queue = take(&mut left, cards.len().min(most));
        let rule = take(&mut left, usize::from(!low || !reading));
        let body = body(screen, columns);
        // An answer is typed right below its question, a reason right below the decision at the bottom.
        let card = match screen.mode() {
            Mode::Text | Mode::Options if field > 0 => take(&mut left, body.rows.len()),
            _ => std::mem::take(&mut left),
        };
        let mut top = 0;
        let mut part = |height: u16| {
            let area = Rect::new(0, top, width, height);
            top += height;
            area
        };
        let (heading, queue, rule, card) = (part(heading), part(queue), part(rule), part(card));
        let (field, prompt) = if screen.mode() == Mode::Reason {
            let prompt = part(prompt);
            (part(field), prompt)
        } else {
            let field = part(field);
            part(left);
            (field, part(prompt))
        };
        Self {
            heading,
            queue,
            rule,
            card,
            field,
            prompt,
            footer: part(footer),
            body,
            prompt_rows,
            footer_rows,
        }
    }

    /// Returns the last row from which the card can be read.
    pub(super) fn last_scroll(&self) -> usize {
        self.body.rows.len().saturating_sub(usize::from(self.card.height))
    }
}

fn take(left: &mut u16, wanted: usize) -> u16 {
    let taken = u16::try_from(wanted).unwrap_or(u16::MAX).min(*left);
    *left -= taken;
    taken
}

/// Returns how many rows the text needs that is being typed.
fn field_rows(screen: &Screen, width: usize) -> usize {
    let needed = |draft: &Draft| {
        let field = match screen.mode() {
            Mode::Reason => &draft.reason,
            Mode::Text | Mode::Options => &draft.current()?.text,
            _ => return None,
        };
        let empty_and_unused = field.is_empty() && screen.mode() == Mode::Options;
        // One column more than the text: the cursor stands behind it.
        let rows = field
            .lines()
            .iter()
            .map(|line| wrap(&format!("{line} "), width.saturating_sub(3)).len());
        (!empty_and_unused).then(|| rows.sum::<usize>().clamp(1, FIELD_ROWS))
    };
    screen.draft().and_then(needed).unwrap_or(0)
}

/// Says what the next key makes final, and what was noted.
fn prompt(screen: &Screen, width: usize) -> Vec<Row> {
    let lines = final_key(screen).into_iter().chain(screen.note.clone());
    let lines = lines.flat_map(|text| wrap(&text, width));
    lines.map(|line| vec![(Tone::Warning, line)]).collect()
}

/// Says what the next key makes final; the key itself once it counts.
fn final_key(screen: &Screen) -> Option<String> {
    let key = |key: &'static str| if screen.in_grace() { "…" } else { key };
    let card = screen.shown()?;
    Some(match (screen.focus, screen.mode()) {
        (Focus::Armed { decision, .. }, _) => {
            let choice = card.choices.iter().find(|choice| choice.decision == decision);
            match (choice, decision) {
                (Some(choice), Decision::Abort) => format!("{}. Why? (optional)", grants(card, choice)),
                (Some(choice), _) => format!("{}? {}", grants(card, choice), key("Enter says yes.")),
                (None, _) => "Abort: the questions stay unanswered. Why? (optional)".to_owned(),
            }
        }
        (Focus::Review, Mode::Review) => key("Enter sends this.").to_owned(),
        (Focus::Review, _) => key("Enter goes back, s sends it so.").to_owned(),
        _ => return None,
    })
}

/// Lists every key, in as many rows as it takes.
fn footer(screen: &Screen, width: usize) -> Vec<Row> {
    let tabs = screen.shown().map_or(0, |card| card.questions.len());
    let mut rows: Vec<Row> = vec![Vec::new()];
    let mut columns = 0;
    for (key, does) in help(screen.mode(), tabs) {
        let gap = if columns == 0 { 0 } else { 2 };
        let wide = key.width() + 1 + does.width();
        if columns > 0 && columns + gap + wide > width {
            rows.push(Vec::new());
            columns = 0;
        }
        let gap = if columns == 0 { "" } else { "  " };
        columns += gap.len() + wide;
        if let Some(row) = rows.last_mut() {
            row.push((Tone::Command, format!("{gap}{key}")));
            row.push((Tone::Label, format!(" {does}")));
        }
    }
    rows
}

/// Names the card in sight where its list is not, and says how much of it is not in sight.
pub(super) fn position(screen: &Screen, layout: &Layout) -> String {
    let height = usize::from(layout.card.height);
    let (all, first) = (layout.body.rows.len(), screen.scroll);
    let last = (first + height).min(all);
    let lines = if all > height {
        let arrows = match (first > 0, last < all) {
            (true, true) => "↑↓",
            (true, false) => "↑",
            (false, _) => "↓",
        };
        format!(" {arrows} {}-{last} of {all} ", first + 1)
    } else {
        String::new()
    };
    let Some(card) = screen.shown() else {
        return lines;
    };
    let left = short(card.deadline.since(screen.wall()));
    let waits = if card.state == crate::card::CardState::Pending {
        format!(", {left} left")
    } else {
        String::new()
    };
    format!(" {} {}{waits} {lines}", card.code, card.kind)
}
