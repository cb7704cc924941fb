//! Cards and a screen for the tests of this folder, with a clock that they turn.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Size;
use unicode_width::UnicodeWidthStr as _;

use super::keys;
use super::messages::{Effect, Message};
use super::state::Screen;
use super::theme::Palette;
use super::update::update;
use super::view::draw;
use crate::card::{Card, CardAnswer, CardState, Presence};
use crate::protocol::approval::{ShownDependency, ShownInstallation};
use crate::protocol::question::{Choice, Question, Selection};
use crate::workflow::samples::{self, NOON};
use crate::workflow::{Ask, Code, Moment, WorkflowId};

/// A screen, and a clock that only tests turn.
pub(super) struct Bench {
    pub(super) screen: Screen,
    begin: Instant,
    passed: Duration,
    /// What was to be done, the newest last.
    pub(super) effects: Vec<Effect>,
}

impl Bench {
    pub(super) fn new(width: u16, height: u16, cards: Vec<Card>) -> Self {
        let begin = Instant::now();
        let now = Moment {
            wall: NOON,
            steady: begin,
        };
        let mut bench = Self {
            screen: Screen::new(Size::new(width, height), Palette::Monochrome, now),
            begin,
            passed: Duration::ZERO,
            effects: Vec::new(),
        };
        bench.send(Message::Snapshot {
            pending: cards,
            recent: Vec::new(),
        });
        bench.wait(1_000);
        bench
    }

    pub(super) fn send(&mut self, message: Message) {
        let now = Moment {
            wall: NOON.plus(self.passed),
            steady: self.begin + self.passed,
        };
        let effects = update(&mut self.screen, message, now);
        self.effects.extend(effects);
    }

    /// Lets time pass, and the screen see that it did.
    pub(super) fn wait(&mut self, milliseconds: u64) {
        self.passed += Duration::from_millis(milliseconds);
        self.send(Message::Tick);
    }

    /// Presses a key at once.
    pub(super) fn hit(&mut self, code: KeyCode) {
        self.strike(KeyEvent::new(code, KeyModifiers::NONE));
    }

    pub(super) fn control(&mut self, letter: char) {
        self.strike(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    }

    fn strike(&mut self, key: KeyEvent) {
        if let Some(command) = keys::command(self.screen.mode(), key) {
            self.send(Message::Command(command));
        }
    }

    /// Presses a key as a person does who has looked at the screen.
    pub(super) fn press(&mut self, code: KeyCode) {
        self.wait(400);
        self.hit(code);
    }

    pub(super) fn letter(&mut self, letter: char) {
        self.press(KeyCode::Char(letter));
    }

    /// Types letter by letter, without a pause.
    pub(super) fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            self.hit(KeyCode::Char(letter));
        }
    }

    /// Returns what stands on the screen, line by line and without the spaces at their ends.
    pub(super) fn picture(&self) -> String {
        let Size { width, height } = self.screen.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&self.screen, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = (0..height).map(|row| {
            let mut line = String::new();
            let mut column = 0;
            while column < width {
                let symbol = buffer[(column, row)].symbol();
                line.push_str(symbol);
                // A wide character hides the cell behind it.
                column += u16::try_from(symbol.width()).unwrap().max(1);
            }
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(super) fn note(&self) -> &str {
        self.screen.note.as_deref().unwrap_or_default()
    }
}

fn card(number: u8, ask: Ask) -> Card {
    let mut workflow = samples::workflow(ask);
    workflow.id = id(number);
    workflow.code = Code::of_bits(u64::from(number));
    workflow.project = "/home/me/service".into();
    workflow.origin.client.name = Some("claude-code 2.1".to_owned());
    workflow.created_at = NOON.minus(Duration::from_secs(100 - u64::from(number)));
    Card::of(&workflow, Presence::Running, NOON)
}

pub(super) fn id(number: u8) -> WorkflowId {
    WorkflowId::new(uuid::Uuid::from_u128(u128::from(number)))
}

/// An install whose command is `command`.
pub(super) fn install_of(number: u8, command: &str) -> Card {
    card(
        number,
        Ask::Install {
            dependency: ShownDependency {
                name: "serena".to_owned(),
                version: Some("0.5.0".to_owned()),
                install: command.to_owned(),
                integrity: Some(
                    "sha512-3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=".to_owned(),
                ),
                scripts: true,
                surroundings: Box::default(),
                installation: Box::new(ShownInstallation {
                    published: Some("2026-08-31T10:11:12Z".to_owned()),
                    age: Some("75 days ago".to_owned()),
                    ..ShownInstallation::default()
                }),
                remote: None,
            },
        },
    )
}

pub(super) fn install(number: u8) -> Card {
    install_of(number, "npm install serena@0.5.0")
}

pub(super) fn question(header: &str, text: &str, labels: &[(&str, &str)], selection: Selection) -> Question {
    let options = labels.iter().map(|(label, description)| Choice {
        label: (*label).to_owned(),
        description: Some((*description).to_owned()),
    });
    Question {
        question: text.to_owned(),
        header: Some(header.to_owned()),
        options: options.collect(),
        selection,
    }
}

pub(super) fn ask(number: u8, questions: Vec<Question>) -> Card {
    card(number, Ask::Questions { questions })
}

/// One question with two options, of which one may be chosen.
pub(super) fn database() -> Question {
    let labels = [("Postgres", "runs already"), ("SQLite", "one file")];
    question("Database", "Which database?", &labels, Selection::One)
}

/// One question with two options, of which any may be chosen.
pub(super) fn features() -> Question {
    let labels = [("Login", "by mail"), ("Export", "as CSV")];
    question("Features", "Which features first?", &labels, Selection::Several)
}

/// The same card, answered in a dialog of the client.
pub(super) fn answered(card: &Card, text: &str) -> Card {
    Card {
        state: CardState::Answered,
        rev: card.rev + 1,
        answered: Some(CardAnswer {
            road: "dialog".to_owned(),
            who: None,
            at: NOON,
            text: text.to_owned(),
        }),
        ..card.clone()
    }
}
