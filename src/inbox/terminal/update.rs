//! The next state and what is to be done, from the state, what happened, and the moment. Pure.

use super::arrivals;
use super::keys::{Command, Step};
use super::layout::Layout;
use super::messages::{Effect, Message};
use super::state::{Focus, Mode, Pane, Screen};
use crate::card::{Card, CardState, Decision, Said};
use crate::protocol::question::Selection;
use crate::workflow::{Moment, WorkflowId};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::TextArea;

/// Takes over what happened, and returns what is to be done.
pub fn update(screen: &mut Screen, message: Message, now: Moment) -> Vec<Effect> {
    screen.now = now;
    let mut follow = Follow::Scroll;
    let effects = match message {
        Message::Command(command) => {
            screen.note = None;
            if !matches!(command, Command::Scroll(_) | Command::ScrollPage(_)) {
                follow = Follow::Cursor;
            }
            apply(screen, command)
        }
        Message::Paste(text) => {
            screen.note = None;
            follow = Follow::Cursor;
            paste(screen, &text);
            Vec::new()
        }
        Message::Resized(size) => {
            screen.size = size;
            Vec::new()
        }
        Message::Tick => arrivals::tick(screen),
        Message::Snapshot { pending, recent } => {
            arrivals::snapshot(screen, pending, recent);
            Vec::new()
        }
        Message::Changed(cards) => {
            arrivals::changed(screen, cards);
            Vec::new()
        }
        Message::Recorded { id, outcome } => {
            arrivals::recorded(screen, id, outcome);
            Vec::new()
        }
        Message::Trouble(what) => {
            screen.note = Some(what);
            Vec::new()
        }
    };
    settle(screen, follow);
    effects
}

/// What must stay in sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// What the person scrolled to.
    Scroll,
    /// The row that the keys act on.
    Cursor,
}

/// Keeps the scrolling within the card, and remembers whether its end has been in sight.
fn settle(screen: &mut Screen, follow: Follow) {
    let layout = Layout::of(screen);
    let height = usize::from(layout.card.height);
    if let (Follow::Cursor, Some(rows)) = (follow, &layout.body.cursor) {
        screen.scroll = screen.scroll.max(rows.end.saturating_sub(height)).min(rows.start);
    }
    screen.scroll = screen.scroll.min(layout.last_scroll());
    screen.seen_to_its_end |= screen.scroll == layout.last_scroll();
}

fn apply(screen: &mut Screen, command: Command) -> Vec<Effect> {
    if !matches!(command, Command::Quit) {
        screen.leaving = false;
    }
    if decides(screen, &command) && screen.in_grace() {
        // A key that is held down decides nothing, however long.
        screen.changed_at = screen.now.steady;
        screen.note = Some("Too soon: this has just changed. Look, then press the key again.".to_owned());
        return Vec::new();
    }
    match command {
        Command::Quit => return quit(screen),
        Command::Move(step) => shift(screen, step),
        Command::Scroll(step) => scroll(screen, step, 1),
        Command::ScrollPage(step) => {
            let height = usize::from(Layout::of(screen).card.height);
            scroll(screen, step, height.saturating_sub(1).max(1));
        }
        Command::Open => open(screen),
        Command::Back => back(screen),
        Command::Arm(decision) => arm(screen, decision),
        Command::Confirm | Command::SendIncomplete => return confirm(screen),
        Command::Turn(step) => turn(screen, step),
        Command::Choose => choose(screen, None),
        Command::ChooseNumber(number) => choose(screen, Some(number)),
        Command::Answer => answer(screen),
        Command::Edit(key) => edit(screen, |field| type_key(field, key)),
        Command::NewLine => edit(screen, TextArea::insert_newline),
        Command::ShowHistory => {
            screen.focus = Focus::History;
            screen.looked_up = screen.recent.first().map(|card| card.id);
            screen.show_anew();
        }
    }
    Vec::new()
}

/// Tells whether a command is, or leads to, a decision about what is in sight.
fn decides(screen: &Screen, command: &Command) -> bool {
    match command {
        Command::Confirm | Command::SendIncomplete | Command::Answer => true,
        // Another letter only prepares another decision.
        Command::Arm(_) => screen.mode() != Mode::Armed,
        _ => false,
    }
}

fn quit(screen: &mut Screen) -> Vec<Effect> {
    let waiting = screen
        .cards
        .iter()
        .filter(|card| card.state == CardState::Pending);
    let unsent = waiting
        .filter_map(|card| screen.drafts.get(&card.id))
        .any(|draft| !draft.is_empty());
    if unsent && !screen.leaving {
        screen.leaving = true;
        screen.note =
            Some("What you prepared is not sent and would be lost. Press again to leave.".to_owned());
        return Vec::new();
    }
    vec![Effect::Quit]
}

/// Moves by one row: in the list, or among the options.
fn shift(screen: &mut Screen, step: Step) {
    match screen.mode() {
        Mode::Options | Mode::Text => {
            if let Some((_, draft)) = screen.open()
                && let Some(current) = draft.current_mut()
            {
                match step {
                    Step::Back => current.up(),
                    Step::Forward => current.down(),
                }
            }
        }
        Mode::History => {
            let next = neighbour(&screen.recent, screen.looked_up, step);
            if next != screen.looked_up {
                screen.looked_up = next;
                screen.show_anew();
            }
        }
        _ => {
            let next = neighbour(&screen.cards, screen.selected, step);
            select(screen, next);
        }
    }
}

fn neighbour(cards: &[Card], from: Option<WorkflowId>, step: Step) -> Option<WorkflowId> {
    let place = cards.iter().position(|card| Some(card.id) == from);
    let next = match (place, step) {
        (None, _) => 0,
        (Some(place), Step::Back) => place.saturating_sub(1),
        (Some(place), Step::Forward) => (place + 1).min(cards.len().saturating_sub(1)),
    };
    cards.get(next).map(|card| card.id)
}

/// Shows another card; a closed one leaves the list with it.
fn select(screen: &mut Screen, id: Option<WorkflowId>) {
    if id == screen.selected {
        return;
    }
    screen.selected = id;
    arrivals::forget_closed(screen);
    screen.show_anew();
}

fn scroll(screen: &mut Screen, step: Step, rows: usize) {
    screen.scroll = match step {
        Step::Back => screen.scroll.saturating_sub(rows),
        Step::Forward => screen.scroll + rows,
    };
}

fn open(screen: &mut Screen) {
    let Some(card) = screen.shown() else { return };
    if card.state == CardState::Pending {
        // Makes the draft that the keys change.
        let _ = screen.open();
        screen.focus = Focus::Pane(Pane::Card);
        // The same card in another form: a second Enter must not answer it unseen.
        screen.changed_at = screen.now.steady;
        screen.scroll = 0;
    } else {
        let id = card.id;
        let place = screen.cards.iter().position(|card| card.id == id).unwrap_or(0);
        let waits = |card: &&Card| card.state == CardState::Pending;
        let after = screen.cards.iter().skip(place).find(waits);
        let next = after
            .or_else(|| screen.cards.iter().find(waits))
            .map(|card| card.id);
        screen.focus = Focus::Pane(Pane::Queue);
        select(screen, next);
    }
}

fn back(screen: &mut Screen) {
    match screen.focus {
        Focus::Armed { back, .. } => screen.focus = Focus::Pane(back),
        Focus::Review => {
            screen.focus = Focus::Pane(Pane::Card);
            screen.changed_at = screen.now.steady;
            screen.scroll = 0;
            // To the first question that is missing, if any is.
            if let Some((_, draft)) = screen.open() {
                let missing = draft.answers.iter().position(|answer| !answer.is_answered());
                draft.tab = missing.unwrap_or(draft.tab);
            }
        }
        Focus::Pane(Pane::Card) | Focus::History => {
            screen.focus = Focus::Pane(Pane::Queue);
            screen.show_anew();
        }
        Focus::Pane(Pane::Queue) => {}
    }
}

fn arm(screen: &mut Screen, decision: Decision) {
    let Some(card) = screen.shown() else { return };
    let offered = card.choices.iter().any(|choice| choice.decision == decision);
    if card.state != CardState::Pending || !(offered || decision == Decision::Abort) {
        return;
    }
    if decision == Decision::Always && !screen.seen_to_its_end {
        screen.note = Some("Always reaches far: scroll to the end of this first (PgDn).".to_owned());
        return;
    }
    let back = match screen.focus {
        Focus::Armed { back, .. } => back,
        Focus::Pane(Pane::Queue) => Pane::Queue,
        Focus::Pane(Pane::Card) | Focus::Review | Focus::History => Pane::Card,
    };
    let _ = screen.open();
    screen.focus = Focus::Armed { decision, back };
    screen.changed_at = screen.now.steady;
}

fn confirm(screen: &mut Screen) -> Vec<Effect> {
    if screen.sending.is_some() {
        screen.note = Some("The answer before this one is still being recorded.".to_owned());
        return Vec::new();
    }
    let focus = screen.focus;
    let Some((card, draft)) = screen.open() else {
        return Vec::new();
    };
    let (id, back, said) = match focus {
        Focus::Armed {
            decision: Decision::Abort,
            back,
        } => (card.id, back, Said::refusal(draft.reason())),
        Focus::Armed { decision, back } => (card.id, back, Said::decision(decision)),
        Focus::Review => (card.id, Pane::Card, Said::answers(draft.said(card))),
        Focus::Pane(_) | Focus::History => return Vec::new(),
    };
    screen.sending = Some(id);
    screen.focus = Focus::Pane(back);
    screen.note = Some("Sending …".to_owned());
    vec![Effect::Say { id, said }]
}

/// Goes to another question, or behind the last one to the review.
fn turn(screen: &mut Screen, step: Step) {
    let Some((_, draft)) = screen.open() else { return };
    match step {
        Step::Back if draft.tab == 0 => return,
        Step::Back => draft.tab -= 1,
        Step::Forward if draft.tab + 1 < draft.answers.len() => draft.tab += 1,
        Step::Forward => screen.focus = Focus::Review,
    }
    screen.changed_at = screen.now.steady;
    screen.scroll = 0;
}

fn choose(screen: &mut Screen, number: Option<usize>) {
    let Some((card, draft)) = screen.open() else {
        return;
    };
    let Some(question) = card.questions.get(draft.tab) else {
        return;
    };
    let selection = question.shown.selection;
    let Some(current) = draft.current_mut() else {
        return;
    };
    match number {
        None => current.choose(current.row, selection),
        Some(number) if number < current.chosen.len() => current.choose(number, selection),
        // No option has this number: a text begins with it.
        Some(number) => {
            let digit = char::from_digit(u32::try_from(number + 1).unwrap_or(0), 10);
            if let Some(digit) = digit {
                edit(screen, |field| field.insert_char(digit));
            }
        }
    }
}

fn answer(screen: &mut Screen) {
    let mode = screen.mode();
    if let Some((card, draft)) = screen.open()
        && let Some(question) = card.questions.get(draft.tab)
        && question.shown.selection == Selection::One
        && mode == Mode::Options
        && let Some(current) = draft.current_mut()
    {
        current.choose(current.row, Selection::One);
    }
    turn(screen, Step::Forward);
}

/// Changes the text that is being typed; on a list of options a text begins.
fn edit(screen: &mut Screen, change: impl FnOnce(&mut TextArea<'static>)) {
    let mode = screen.mode();
    let Some((card, draft)) = screen.open() else {
        return;
    };
    if mode == Mode::Reason {
        change(&mut draft.reason);
        return;
    }
    let Some(question) = card.questions.get(draft.tab) else {
        return;
    };
    let selection = question.shown.selection;
    if let Some(current) = draft.current_mut() {
        current.go_to_text();
        change(&mut current.text);
        current.text_changed(selection);
    }
}

fn type_key(field: &mut TextArea<'static>, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        // As in a shell; the field would undo.
        KeyCode::Char('u') if control => field.delete_line_by_head(),
        _ => field.input(key),
    };
}

fn paste(screen: &mut Screen, text: &str) {
    if !matches!(screen.mode(), Mode::Options | Mode::Text | Mode::Reason) {
        screen.note = Some("Nothing was pasted: there is no text field here.".to_owned());
        return;
    }
    // Terminals paste a line break as a carriage return; other control characters are no text.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String = text
        .chars()
        .filter(|letter| matches!(letter, '\n' | '\t') || !letter.is_control())
        .collect();
    edit(screen, |field| {
        field.insert_str(text);
    });
}
