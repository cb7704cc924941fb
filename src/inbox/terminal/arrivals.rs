//! What comes from outside: new asks, asks that were answered elsewhere, answers that were recorded, time.
//!
//! Nothing here moves the focus or the selection, but for an empty screen and for a decision about a card that closed.

use std::time::Duration;

use super::messages::Effect;
use super::state::{Focus, Pane, Screen};
use crate::card::{Card, CardState};
use crate::workflow::WorkflowId;

/// Asks that come together are called out together.
const BATCH: Duration = Duration::from_millis(500);

/// As many closed cards are kept in the history.
const RECENT: usize = 200;

/// Begins with all cards, or begins anew.
pub(super) fn snapshot(screen: &mut Screen, pending: Vec<Card>, recent: Vec<Card>) {
    let first = !screen.begun;
    screen.begun = true;
    let gone: Vec<Card> = screen
        .cards
        .iter()
        .filter(|card| pending.iter().all(|other| other.id != card.id))
        .cloned()
        .collect();
    for mut card in gone {
        // What is not kept any more cannot be answered any more.
        match recent.iter().find(|other| other.id == card.id) {
            Some(now) => card = now.clone(),
            None if card.state == CardState::Pending => card.state = CardState::Withdrawn,
            None => {}
        }
        take_over(screen, card);
    }
    for card in pending {
        if !first {
            announce(screen, &card);
        }
        take_over(screen, card);
    }
    screen.recent = recent;
    finish(screen);
}

/// Takes over cards that changed.
pub(super) fn changed(screen: &mut Screen, cards: Vec<Card>) {
    for card in cards {
        announce(screen, &card);
        take_over(screen, card);
    }
    finish(screen);
}

/// Takes over that an answer was recorded, or why it was not; then nothing that was typed is lost.
pub(super) fn recorded(screen: &mut Screen, id: WorkflowId, outcome: Result<Box<Card>, String>) {
    match outcome {
        Ok(card) => {
            screen.drafts.remove(&id);
            let answer = card.answered.as_ref();
            let answer = answer.map_or("answered", |answer| answer.text.as_str());
            let first = answer.lines().next().unwrap_or_default();
            let note = format!("{} is sent: {first}", card.code);
            take_over(screen, *card);
            screen.note = Some(note);
        }
        Err(reason) => screen.note = Some(format!("Not recorded: {reason}")),
    }
    // Only now: while it is on its way, a card that closes was closed by this answer.
    if screen.sending == Some(id) {
        screen.sending = None;
    }
    finish(screen);
}

/// Rings the bell when it is due, and closes what came to its deadline.
pub(super) fn tick(screen: &mut Screen) -> Vec<Effect> {
    let now = screen.wall();
    let late = |card: &&Card| card.state == CardState::Pending && card.deadline <= now;
    let late: Vec<Card> = screen.cards.iter().filter(late).cloned().collect();
    for mut card in late {
        card.state = CardState::Expired;
        take_over(screen, card);
    }
    finish(screen);
    match screen.announcement.due {
        Some(due) if due <= screen.now.steady => {
            let titles = std::mem::take(&mut screen.announcement).titles;
            let more = titles.len().saturating_sub(1);
            let first = titles.into_iter().next();
            let ring = first.map(|title| Effect::Ring {
                title: if more == 0 {
                    title
                } else {
                    format!("{title} (+{more} more)")
                },
            });
            ring.into_iter().collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// Takes closed cards from the list, but for the one in sight; they are in the history.
pub(super) fn forget_closed(screen: &mut Screen) {
    let selected = screen.selected;
    screen
        .cards
        .retain(|card| card.state == CardState::Pending || Some(card.id) == selected);
}

/// Remembers to ring for an ask that was not known before.
fn announce(screen: &mut Screen, card: &Card) {
    let known = screen
        .cards
        .iter()
        .chain(&screen.recent)
        .any(|other| other.id == card.id);
    if known || card.state != CardState::Pending {
        return;
    }
    screen.announcement.titles.push(card.title.clone());
    let due = screen.now.steady + BATCH;
    screen.announcement.due.get_or_insert(due);
}

/// Puts a card in its place: in the list while it waits or is in sight, in the history once it is closed.
fn take_over(screen: &mut Screen, card: Card) {
    let before = screen.cards.iter().find(|other| other.id == card.id);
    // What is closed stays closed: a reading that began before may come after.
    if card.state == CardState::Pending && before.is_some_and(|before| before.rev > card.rev) {
        return;
    }
    let closes =
        card.state != CardState::Pending && before.is_some_and(|before| before.state == CardState::Pending);
    if card.state != CardState::Pending {
        screen.recent.retain(|other| other.id != card.id);
        screen.recent.insert(0, card.clone());
        screen.recent.truncate(RECENT);
    }
    if closes && screen.selected == Some(card.id) && screen.focus != Focus::History {
        close_in_sight(screen, &card);
    }
    match screen.cards.iter_mut().find(|other| other.id == card.id) {
        Some(place) => *place = card,
        None if card.state == CardState::Pending => screen.cards.push(card),
        None => {}
    }
}

/// Ends what the keys were doing with a card that closed under them; its draft stays.
fn close_in_sight(screen: &mut Screen, card: &Card) {
    if screen.focus != Focus::Pane(Pane::Queue) {
        screen.focus = Focus::Pane(Pane::Card);
    }
    screen.show_anew();
    if screen.sending == Some(card.id) {
        return;
    }
    screen.note = Some(match (&card.answered, card.state) {
        (Some(answer), _) => {
            let who = answer
                .who
                .as_ref()
                .map_or_else(String::new, |who| format!(" ({who})"));
            format!("{} was answered first by {}{who}.", card.code, answer.road)
        }
        (None, CardState::Expired) => format!("The time of {} is over.", card.code),
        (None, _) => format!("{} is withdrawn: the agent does not wait for it.", card.code),
    });
}

/// Orders the list, shows a card where none is in sight, and forgets what belongs to no card.
fn finish(screen: &mut Screen) {
    forget_closed(screen);
    screen.cards.sort_by_key(|card| (card.created_at, card.id));
    if screen.selected.is_none()
        && let Some(first) = screen.cards.first()
    {
        screen.selected = Some(first.id);
        if screen.focus != Focus::History {
            screen.show_anew();
        }
    }
    let kept = screen.cards.iter().chain(&screen.recent).map(|card| card.id);
    let kept: std::collections::HashSet<WorkflowId> = kept.collect();
    screen.drafts.retain(|id, _| kept.contains(id));
}
