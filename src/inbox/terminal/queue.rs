//! The list of cards: one row each, with what tells them apart.

use super::body::Row;
use super::state::{Focus, Screen};
use super::text::{fit, short};
use super::theme::Tone;
use crate::card::{Card, CardState};
use crate::workflow::WorkflowId;

/// Returns the list that is in sight, and which of its cards is.
pub(super) fn listed(screen: &Screen) -> (&[Card], Option<WorkflowId>) {
    match screen.focus {
        Focus::History => (&screen.recent, screen.looked_up),
        Focus::Pane(_) | Focus::Armed { .. } | Focus::Review => (&screen.cards, screen.selected),
    }
}

/// Draws as many rows as fit, around the card in sight.
pub(super) fn rows(screen: &Screen, width: usize, height: usize) -> Vec<Row> {
    let (cards, selected) = listed(screen);
    let place = cards
        .iter()
        .position(|card| Some(card.id) == selected)
        .unwrap_or(0);
    let first = place.saturating_sub(height.saturating_sub(1));
    let seen = cards.iter().skip(first).take(height);
    seen.map(|card| row(screen, card, selected, width)).collect()
}

fn row(screen: &Screen, card: &Card, selected: Option<WorkflowId>, width: usize) -> Row {
    let selected = Some(card.id) == selected;
    let mark = if selected { ">" } else { " " };
    let typed = screen.drafts.get(&card.id).is_some_and(|draft| !draft.is_empty());
    let typed = if typed { "*" } else { " " };
    let age = short(screen.wall().since(card.created_at));
    let left = match card.state {
        CardState::Pending => short(card.deadline.since(screen.wall())),
        CardState::Answered | CardState::Used => "done".to_owned(),
        CardState::Refused => "no".to_owned(),
        CardState::Expired => "late".to_owned(),
        CardState::Withdrawn => "gone".to_owned(),
    };
    let project = card.asker.project.rsplit('/').next().unwrap_or_default();
    let client = card.asker.client.as_deref().unwrap_or("-");
    // code, kind, age and what is left take 5 + 9 + 4 + 4 columns, marks and gaps 7.
    let free = width.saturating_sub(29);
    let text = if free < 20 {
        let project = fit(project, free);
        format!(
            "{} {} {project} {} {}",
            card.code,
            fit(card.kind, 9),
            fit(&age, 4),
            fit(&left, 4)
        )
    } else {
        let each = free.min(64) / 2;
        let (project, client) = (fit(project, each), fit(client, free.min(64) - each - 1));
        let title = match width.checked_sub(29 + 64 + 2) {
            Some(room @ 20..) => format!("  {}", fit(&card.title, room - 2)),
            _ => String::new(),
        };
        let (age, left) = (fit(&age, 4), fit(&left, 4));
        format!(
            "{} {} {project} {client} {age} {left}{title}",
            card.code,
            fit(card.kind, 9)
        )
    };
    let focused = matches!(
        screen.focus,
        Focus::Pane(super::state::Pane::Queue) | Focus::History
    );
    let tone = if selected && focused {
        Tone::Cursor
    } else {
        Tone::Plain
    };
    vec![(Tone::Command, format!("{mark}{typed}")), (tone, text)]
}

/// Names the columns of the list.
pub(super) fn heading(screen: &Screen, width: usize) -> String {
    let waits = match (screen.focus, screen.waiting()) {
        (Focus::History, _) => "answered lately".to_owned(),
        (_, 0) => "nothing waits".to_owned(),
        (_, 1) => "1 waits".to_owned(),
        (_, count) => format!("{count} wait"),
    };
    let free = width.saturating_sub(29);
    let left = if screen.focus == Focus::History {
        "is"
    } else {
        "left"
    };
    if free < 20 {
        let columns = format!("{} {left:4}", fit("age", 4));
        format!(
            "  {}{columns}",
            fit(&format!("pml inbox: {waits}"), width.saturating_sub(12))
        )
    } else {
        let each = free.min(64) / 2;
        let columns = [
            fit("project", each),
            fit("agent", free.min(64) - each - 1),
            fit("age", 4),
        ];
        format!("  {}{} {left:4}", fit(&waits, 16), columns.join(" "))
    }
}
