//! The buttons below a message, and what pressing one means. Pure.
//!
//! The signs before a label are the state: `☐`/`☑` where several may be chosen, `○`/`◉` where one of several questions is
//! answered by one. A label always follows a sign or a number of pml, so that no label of a model is taken for a sign.
//! What lasts is pressed twice: the first press makes a row of the button that says so.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::card::{Card, CardQuestion, Choice, Decision};
use crate::channels::channel::{Picked, Utterance};
use crate::channels::notice::{Notice, Standing};
use crate::channels::press::{Button, Press};
use crate::channels::text::label;
use crate::protocol::question::Selection;

/// The most that a button carries, in bytes.
pub(super) const DATA: usize = 64;

/// The most buttons below a message.
pub(super) const BUTTONS: usize = 100;

/// What a phone shows on a button; the whole label stands in the message.
const LABEL: usize = 40;

/// Before what is carried by a button that confirms, and by one that takes back.
const SURE: &str = "y:";
const BACK: &str = "n:";

/// What a button that confirms says before its label.
const CONFIRMS: &str = "Sure: ";

/// The buttons below a message, row by row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Keyboard {
    #[serde(default)]
    inline_keyboard: Vec<Vec<Key>>,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    text: String,
    #[serde(default)]
    callback_data: String,
}

/// What a press is.
#[derive(Debug, PartialEq)]
pub(super) enum Pressed {
    /// Something is said by it.
    Said {
        /// The button.
        press: Press,
        /// What is said.
        utterance: Utterance,
    },
    /// The buttons stand differently now, and nothing is said yet.
    Redrawn {
        /// The buttons.
        keyboard: Keyboard,
        /// What is told beside them.
        toast: &'static str,
    },
    /// It cannot be told what is meant.
    Unclear(&'static str),
}

/// How the options of a card are pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One press answers.
    OnePress,
    /// Options are chosen, then sent.
    Sent,
    /// There is nothing to press: it is answered in words.
    Words,
}

impl Form {
    /// Tells how the questions of a card are answered.
    pub(super) fn of(questions: &[CardQuestion]) -> Self {
        match questions {
            [only] if only.shown.options.is_empty() => Self::Words,
            [only] if only.shown.selection == Selection::One => Self::OnePress,
            // What needs words beside buttons is answered in words altogether: half an answer would be lost.
            questions if questions.iter().any(|question| question.shown.options.is_empty()) => Self::Words,
            _ => Self::Sent,
        }
    }
}

impl Keyboard {
    /// Draws the buttons of a notice.
    pub(super) fn of(notice: &Notice) -> Self {
        let Standing::Open { choices } = &notice.standing else {
            return Self::default();
        };
        let card = &notice.card;
        if card.questions.is_empty() {
            let rows = choices.iter().map(|choice| vec![decision(notice, choice)]);
            return Self {
                inline_keyboard: rows.collect(),
            };
        }
        let form = Form::of(&card.questions);
        let mut keyboard = Self::default();
        if form != Form::Words {
            keyboard.inline_keyboard = options(notice, form);
        }
        if form == Form::Sent {
            keyboard.push("Send", notice, Button::Send);
        }
        keyboard.push("Do not answer", notice, Button::Decision(Decision::Abort));
        keyboard
    }

    /// Draws the only button of a notice that is not shown whole: what is not seen can be refused alone.
    pub(super) fn refusal_of(notice: &Notice) -> Self {
        let text = if notice.card.questions.is_empty() {
            "Abort"
        } else {
            "Do not answer"
        };
        let mut keyboard = Self::default();
        keyboard.push(text, notice, Button::Decision(Decision::Abort));
        keyboard
    }

    /// Counts the buttons of a card with all its choices.
    pub(super) fn count(card: &Card) -> usize {
        let options = card.questions.iter().map(|question| question.shown.options.len());
        match Form::of(&card.questions) {
            _ if card.questions.is_empty() => card.choices.len(),
            Form::Words => 1,
            Form::OnePress => options.sum::<usize>() + 1,
            Form::Sent => options.sum::<usize>() + 2,
        }
    }

    /// Tells whether there is no button.
    pub(super) fn is_empty(&self) -> bool {
        self.inline_keyboard.is_empty()
    }

    /// Writes the buttons as Telegram takes them.
    pub(super) fn to_json(&self) -> Value {
        json!(self)
    }

    fn push(&mut self, text: &str, notice: &Notice, button: Button) {
        self.inline_keyboard.push(vec![key(text, notice, button)]);
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.inline_keyboard.iter().flatten()
    }
}

fn key(text: &str, notice: &Notice, button: Button) -> Key {
    let press = Press {
        code: notice.card.code.to_string(),
        rev: notice.card.rev,
        button,
        nonce: notice.nonce.clone(),
    };
    let data = press.to_string();
    debug_assert!(SURE.len() + data.len() <= DATA, "{data}");
    Key {
        text: text.to_owned(),
        callback_data: data,
    }
}

fn decision(notice: &Notice, choice: &Choice) -> Key {
    key(choice.label, notice, Button::Decision(choice.decision))
}

/// Draws a row for each option of each question.
fn options(notice: &Notice, form: Form) -> Vec<Vec<Key>> {
    let questions = &notice.card.questions;
    let mut rows = Vec::new();
    for (question, asked) in questions.iter().enumerate() {
        for (option, offered) in asked.shown.options.iter().enumerate() {
            let sign = match (form, asked.shown.selection) {
                (Form::OnePress | Form::Words, _) => "",
                (Form::Sent, Selection::One) => "○ ",
                (Form::Sent, Selection::Several) => "☐ ",
            };
            let number = match questions.len() {
                1 => format!("{}", option + 1),
                _ => format!("{}.{}", question + 1, option + 1),
            };
            let text = format!("{sign}{number} · {}", label(&offered.label, LABEL));
            rows.push(vec![key(&text, notice, Button::Option { question, option })]);
        }
    }
    rows
}

/// Tells what a press means, where the buttons stand as they do.
pub(super) fn pressed(keyboard: Option<&Keyboard>, data: &str) -> Pressed {
    const STRANGE: Pressed = Pressed::Unclear("This is no button of pml.");
    const OLD: Pressed = Pressed::Unclear(
        "This message is too old for its buttons: open the inbox, or write /answer CODE words.",
    );
    if let Some(inside) = data.strip_prefix(BACK) {
        return match (keyboard, inside.parse::<Press>()) {
            (Some(keyboard), Ok(_)) => taken_back(keyboard, data, inside),
            (None, Ok(_)) => OLD,
            (_, Err(_)) => STRANGE,
        };
    }
    let (confirmed, inside) = match data.strip_prefix(SURE) {
        Some(inside) => (Confirmed::Yes, inside),
        None => (Confirmed::No, data),
    };
    let Ok(press) = inside.parse::<Press>() else {
        return STRANGE;
    };
    match (press.button, keyboard) {
        (Button::Decision(Decision::Session | Decision::Always), keyboard) if confirmed == Confirmed::No => {
            keyboard.map_or(OLD, |keyboard| doubted(keyboard, data))
        }
        (Button::Decision(decision), _) => said(press, Utterance::Decision(decision, None)),
        (Button::Send, Some(keyboard)) => {
            let chosen = Utterance::Answers(chosen(keyboard, &press));
            said(press, chosen)
        }
        (Button::Option { question, option }, Some(keyboard)) => {
            let sign = keyboard.keys().find(|key| key.callback_data == data);
            match sign.map(|key| Sign::of(&key.text)) {
                Some(Sign::None) => {
                    let mut answers = vec![Picked::default(); question.min(BUTTONS) + 1];
                    if let Some(answer) = answers.get_mut(question) {
                        answer.options.push(option);
                    }
                    said(press, Utterance::Answers(answers))
                }
                Some(sign) => toggled(keyboard, data, sign, question),
                None => STRANGE,
            }
        }
        (Button::Send | Button::Option { .. }, None) => OLD,
    }
}

/// Whether what lasts was confirmed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Confirmed {
    Yes,
    No,
}

/// The sign before a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    None,
    OneOff,
    OneOn,
    SeveralOff,
    SeveralOn,
}

impl Sign {
    fn of(text: &str) -> Self {
        match text.chars().next() {
            Some('○') => Self::OneOff,
            Some('◉') => Self::OneOn,
            Some('☐') => Self::SeveralOff,
            Some('☑') => Self::SeveralOn,
            _ => Self::None,
        }
    }

    fn written(self) -> Option<char> {
        match self {
            Self::None => None,
            Self::OneOff => Some('○'),
            Self::OneOn => Some('◉'),
            Self::SeveralOff => Some('☐'),
            Self::SeveralOn => Some('☑'),
        }
    }

    fn is_on(self) -> bool {
        matches!(self, Self::OneOn | Self::SeveralOn)
    }
}

fn said(press: Press, utterance: Utterance) -> Pressed {
    Pressed::Said { press, utterance }
}

/// Chooses an option or takes it back; of a question that takes one option, the others are taken back.
fn toggled(keyboard: &Keyboard, data: &str, sign: Sign, of: usize) -> Pressed {
    let mut redrawn = keyboard.clone();
    for key in redrawn.inline_keyboard.iter_mut().flatten() {
        let own = Sign::of(&key.text);
        let is_pressed = key.callback_data == data;
        let now = match (own, is_pressed) {
            (Sign::SeveralOff, true) => Sign::SeveralOn,
            (Sign::SeveralOn, true) => Sign::SeveralOff,
            (Sign::OneOff, true) => Sign::OneOn,
            (Sign::OneOn, true) => Sign::OneOff,
            (Sign::OneOn, false) if sign == Sign::OneOff && is_of(key, of) => Sign::OneOff,
            _ => continue,
        };
        if let Some(sign) = now.written() {
            let rest: String = key.text.chars().skip(1).collect();
            key.text = format!("{sign}{rest}");
        }
    }
    Pressed::Redrawn {
        keyboard: redrawn,
        toast: "",
    }
}

fn is_of(key: &Key, of: usize) -> bool {
    let press = key.callback_data.parse::<Press>();
    matches!(press, Ok(Press { button: Button::Option { question, .. }, .. }) if question == of)
}

/// Reads what is chosen from the signs of the buttons.
fn chosen(keyboard: &Keyboard, sent: &Press) -> Vec<Picked> {
    let mut answers: Vec<Picked> = Vec::new();
    for key in keyboard.keys() {
        let Ok(press) = key.callback_data.parse::<Press>() else {
            continue;
        };
        let Button::Option { question, option } = press.button else {
            continue;
        };
        if press.nonce != sent.nonce || question >= BUTTONS {
            continue;
        }
        if answers.len() <= question {
            answers.resize(question + 1, Picked::default());
        }
        if Sign::of(&key.text).is_on()
            && let Some(answer) = answers.get_mut(question)
        {
            answer.options.push(option);
        }
    }
    answers
}

/// Makes a row of a button that lasts: one to confirm, one to take it back.
fn doubted(keyboard: &Keyboard, data: &str) -> Pressed {
    let mut redrawn = keyboard.clone();
    for row in &mut redrawn.inline_keyboard {
        if let [key] = row.as_slice()
            && key.callback_data == data
        {
            let sure = Key {
                text: format!("{CONFIRMS}{}", key.text),
                callback_data: format!("{SURE}{data}"),
            };
            let back = Key {
                text: "No".to_owned(),
                callback_data: format!("{BACK}{data}"),
            };
            *row = vec![sure, back];
        }
    }
    Pressed::Redrawn {
        keyboard: redrawn,
        toast: "This lasts: press once more to confirm.",
    }
}

/// Makes the button again that was doubted.
fn taken_back(keyboard: &Keyboard, data: &str, inside: &str) -> Pressed {
    let mut redrawn = keyboard.clone();
    for row in &mut redrawn.inline_keyboard {
        if let [sure, back] = row.as_slice()
            && back.callback_data == data
        {
            let text = sure.text.strip_prefix(CONFIRMS).unwrap_or(&sure.text);
            *row = vec![Key {
                text: text.to_owned(),
                callback_data: inside.to_owned(),
            }];
        }
    }
    Pressed::Redrawn {
        keyboard: redrawn,
        toast: "Nothing is approved.",
    }
}
