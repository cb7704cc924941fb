//! What each key means, by what is in sight; and the same in words, for the footer.
//!
//! Letters are commands only where nothing can be typed: in a text they are text, and on a list of options they begin one.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::{CardKind, Mode};
use crate::card::Decision;

/// What a person does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Leaves the screen.
    Quit,
    /// Moves by one row.
    Move(Step),
    /// Moves by one row of the text of the card.
    Scroll(Step),
    /// Moves by as much of the card as is in sight.
    ScrollPage(Step),
    /// Goes into the card, or on to the next one where this one is closed.
    Open,
    /// Goes back where the person came from.
    Back,
    /// Prepares a decision.
    Arm(Decision),
    /// Makes final what is prepared.
    Confirm,
    /// Sends answers although some are missing.
    SendIncomplete,
    /// Goes to another question.
    Turn(Step),
    /// Chooses the option of the row.
    Choose,
    /// Chooses an option by its number, from 0.
    ChooseNumber(usize),
    /// Ends a question: chooses the option of the row, and goes on.
    Answer,
    /// Types into the text of a question or into a reason.
    Edit(KeyEvent),
    /// Begins a new line of text.
    NewLine,
    /// Shows what was answered lately.
    ShowHistory,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Towards the beginning.
    Back,
    /// Towards the end.
    Forward,
}

/// Returns what a key means; `None` means nothing.
#[must_use]
pub fn command(mode: Mode, key: KeyEvent) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = is_control(key);
    match (key.code, control) {
        (KeyCode::Char('c'), true) => return Some(Command::Quit),
        (KeyCode::PageUp, _) => return Some(Command::ScrollPage(Step::Back)),
        (KeyCode::PageDown, _) => return Some(Command::ScrollPage(Step::Forward)),
        (KeyCode::Esc, _) => return Some(Command::Back),
        _ => {}
    }
    match mode {
        Mode::Queue(kind) => in_queue(kind, key),
        Mode::Decision { always } => in_decision(CardKind::Decision { always }, key),
        Mode::Closed => match key.code {
            KeyCode::Up => Some(Command::Scroll(Step::Back)),
            KeyCode::Down => Some(Command::Scroll(Step::Forward)),
            KeyCode::Enter => Some(Command::Open),
            _ => None,
        },
        Mode::Options => in_options(key),
        Mode::Text => Some(in_text(key)),
        Mode::Armed => match key.code {
            KeyCode::Enter => Some(Command::Confirm),
            // Another letter prepares another decision; everything else takes this one back.
            KeyCode::Char(letter) if !control => Some(decision(letter).map_or(Command::Back, Command::Arm)),
            KeyCode::Up => Some(Command::Scroll(Step::Back)),
            KeyCode::Down => Some(Command::Scroll(Step::Forward)),
            _ => Some(Command::Back),
        },
        Mode::Reason => match key.code {
            KeyCode::Enter if !is_new_line(key) => Some(Command::Confirm),
            _ if is_new_line(key) => Some(Command::NewLine),
            _ => Some(Command::Edit(key)),
        },
        Mode::Review | Mode::IncompleteReview => match key.code {
            KeyCode::Enter if mode == Mode::Review => Some(Command::Confirm),
            KeyCode::Enter | KeyCode::BackTab | KeyCode::Left => Some(Command::Back),
            KeyCode::Char('s') if !control && mode == Mode::IncompleteReview => Some(Command::SendIncomplete),
            KeyCode::Up => Some(Command::Scroll(Step::Back)),
            KeyCode::Down => Some(Command::Scroll(Step::Forward)),
            KeyCode::Char('x') if control => Some(Command::Arm(Decision::Abort)),
            _ => None,
        },
        Mode::History => match key.code {
            KeyCode::Up | KeyCode::Char('k') => Some(Command::Move(Step::Back)),
            KeyCode::Down | KeyCode::Char('j') => Some(Command::Move(Step::Forward)),
            KeyCode::Char('h') | KeyCode::Left => Some(Command::Back),
            KeyCode::Char('q') => Some(Command::Quit),
            _ => None,
        },
    }
}

fn in_queue(kind: CardKind, key: KeyEvent) -> Option<Command> {
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => Some(Command::Move(Step::Back)),
        KeyCode::Down | KeyCode::Char('j') => Some(Command::Move(Step::Forward)),
        KeyCode::Enter | KeyCode::Right | KeyCode::Tab => Some(Command::Open),
        KeyCode::Char('x') => refusal(kind),
        KeyCode::Char(letter) if !is_control(key) => plain_letter(kind, letter),
        _ => None,
    }
}

fn in_decision(kind: CardKind, key: KeyEvent) -> Option<Command> {
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => Some(Command::Scroll(Step::Back)),
        KeyCode::Down | KeyCode::Char('j') => Some(Command::Scroll(Step::Forward)),
        KeyCode::Left | KeyCode::BackTab => Some(Command::Back),
        KeyCode::Char('x') => refusal(kind),
        KeyCode::Char(letter) if !is_control(key) => plain_letter(kind, letter),
        _ => None,
    }
}

/// Everything that waits can be refused.
fn refusal(kind: CardKind) -> Option<Command> {
    let waits = matches!(kind, CardKind::Decision { .. } | CardKind::Questions);
    waits.then_some(Command::Arm(Decision::Abort))
}

fn plain_letter(kind: CardKind, letter: char) -> Option<Command> {
    match letter {
        'h' => Some(Command::ShowHistory),
        'q' => Some(Command::Quit),
        'a' if kind == (CardKind::Decision { always: false }) => None,
        letter if matches!(kind, CardKind::Decision { .. }) => decision(letter).map(Command::Arm),
        _ => None,
    }
}

fn decision(letter: char) -> Option<Decision> {
    match letter {
        'c' => Some(Decision::Once),
        's' => Some(Decision::Session),
        'a' => Some(Decision::Always),
        'x' => Some(Decision::Abort),
        _ => None,
    }
}

fn in_options(key: KeyEvent) -> Option<Command> {
    match key.code {
        KeyCode::Up => Some(Command::Move(Step::Back)),
        KeyCode::Down => Some(Command::Move(Step::Forward)),
        KeyCode::Tab | KeyCode::Right => Some(Command::Turn(Step::Forward)),
        KeyCode::BackTab | KeyCode::Left => Some(Command::Turn(Step::Back)),
        KeyCode::Enter => Some(Command::Answer),
        KeyCode::Char('x') if is_control(key) => Some(Command::Arm(Decision::Abort)),
        KeyCode::Char(_) if is_control(key) => None,
        KeyCode::Char(' ') => Some(Command::Choose),
        KeyCode::Char(digit @ '1'..='9') => Some(Command::ChooseNumber(usize::from(digit as u8 - b'1'))),
        KeyCode::Char(_) => Some(Command::Edit(key)),
        _ => None,
    }
}

fn in_text(key: KeyEvent) -> Command {
    match key.code {
        _ if is_new_line(key) => Command::NewLine,
        KeyCode::Enter => Command::Answer,
        KeyCode::Tab => Command::Turn(Step::Forward),
        KeyCode::BackTab => Command::Turn(Step::Back),
        KeyCode::Up => Command::Move(Step::Back),
        KeyCode::Down => Command::Move(Step::Forward),
        KeyCode::Char('x') if is_control(key) => Command::Arm(Decision::Abort),
        _ => Command::Edit(key),
    }
}

fn is_control(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Few terminals tell Shift-Enter from Enter; all of them have Ctrl-J, and most Alt-Enter.
fn is_new_line(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('j') => is_control(key),
        KeyCode::Enter => key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT),
        _ => false,
    }
}

/// Returns every key that means something, with what it does.
#[must_use]
pub fn help(mode: Mode, tabs: usize) -> Vec<(&'static str, &'static str)> {
    const SCROLL: (&str, &str) = ("PgUp/PgDn", "scroll");
    const TURN: (&str, &str) = ("Tab", "next question");
    let decides = |kind| match kind {
        CardKind::Decision { always: true } => {
            vec![
                ("c", "continue"),
                ("s", "session"),
                ("a", "always"),
                ("x", "abort"),
            ]
        }
        CardKind::Decision { always: false } => vec![("c", "continue"), ("s", "session"), ("x", "abort")],
        CardKind::Questions => vec![("x", "abort")],
        CardKind::None | CardKind::Closed => Vec::new(),
    };
    let mut help = Vec::new();
    match mode {
        Mode::Queue(kind) => {
            if kind != CardKind::None {
                help.push(("↑↓", "choose"));
                help.push(match kind {
                    CardKind::Questions => ("Enter", "answer"),
                    CardKind::Closed => ("Enter", "next"),
                    _ => ("Enter", "read"),
                });
                help.extend(decides(kind));
                help.push(SCROLL);
            }
            help.extend([("h", "history"), ("q", "quit")]);
        }
        Mode::Closed => help.extend([
            ("Enter", "next ask"),
            ("↑↓", "scroll"),
            ("Esc", "list"),
            ("^C", "quit"),
        ]),
        Mode::Decision { always } => {
            help.extend(decides(CardKind::Decision { always }));
            help.extend([("↑↓", "scroll"), ("Esc", "list"), ("h", "history"), ("q", "quit")]);
        }
        Mode::Options => {
            help.extend([
                ("↑↓ 1-9", "choose"),
                ("Space", "mark"),
                ("Enter", "next"),
                ("letters", "own words"),
            ]);
            help.extend((tabs > 1).then_some(TURN));
            help.extend([("^X", "abort"), SCROLL, ("Esc", "list"), ("^C", "quit")]);
        }
        Mode::Text => {
            help.extend([("Enter", "next"), ("^J", "new line"), ("↑", "options")]);
            help.extend((tabs > 1).then_some(TURN));
            help.extend([("^X", "abort"), SCROLL, ("Esc", "list"), ("^C", "quit")]);
        }
        Mode::Armed => help.extend([("Enter", "yes, do it"), ("any other key", "no"), ("↑↓", "scroll")]),
        Mode::Reason => help.extend([("Enter", "abort it"), ("^J", "new line"), ("Esc", "do not")]),
        Mode::Review => help.extend([("Enter", "send"), ("Esc", "go back"), ("^X", "abort"), SCROLL]),
        Mode::IncompleteReview => {
            help.extend([("Enter", "go back"), ("s", "send so"), ("^X", "abort"), SCROLL]);
        }
        Mode::History => help.extend([("↑↓", "choose"), SCROLL, ("Esc", "back"), ("q", "quit")]),
    }
    help
}
