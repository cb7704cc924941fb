//! What becomes of the lines that a person types: an answer, guidance with pictures, or neither.

use std::time::Instant;

use tokio::sync::mpsc;

use super::super::ask_text::{self, Reading};
use super::super::asks::Addressee;
use super::super::editor::Keyed;
use super::super::typed_line::TypedLine;
use super::super::{message, picture};
use super::Console;
use crate::card::CardState;
use crate::cli::person;
use crate::host::{Control, Input, Message, Priority};
use crate::proxy::WorkflowId;
use crate::report;

impl Console {
    /// Takes what was typed; without an agent, what is for it is held back.
    pub(super) async fn typed(&mut self, keyed: Vec<Keyed>, controls: Option<&mpsc::Sender<Control>>) {
        for key in keyed {
            match key {
                Keyed::Began => self.addressee = self.asks.addressee_at(Instant::now()),
                Keyed::Line(line) => {
                    let addressee = std::mem::replace(&mut self.addressee, Addressee::Agent);
                    self.say(&line, addressee, controls).await;
                }
                Keyed::End => {
                    self.input = Input::Ended;
                    if let Some(controls) = controls {
                        let _ = controls.send(Control::EndOfInput).await;
                    }
                }
            }
        }
    }

    async fn say(&mut self, line: &str, addressee: Addressee, controls: Option<&mpsc::Sender<Control>>) {
        let (text, priority) = match (TypedLine::read(line), addressee) {
            (None, _) => return,
            (Some(TypedLine::Words(words)), Addressee::Ask { id, code }) => {
                self.answer(id, &code, &words).await;
                return;
            }
            (Some(TypedLine::Words(words)), Addressee::Agent) => (words, Priority::Next),
            (Some(TypedLine::Guidance { text, priority }), _) => (text, priority),
            (Some(TypedLine::Image { path, text }), _) => {
                let read = tokio::task::spawn_blocking(move || picture::read(&path)).await;
                match read {
                    Ok(Ok(image)) => self.pictures.push(image),
                    Ok(Err(error)) => {
                        self.note(&report::render(&error, None));
                        return;
                    }
                    Err(error) => {
                        self.note(&error.to_string());
                        return;
                    }
                }
                if text.is_empty() {
                    self.note("the picture goes with your next line; with words at once: /image PATH WORDS");
                    return;
                }
                (text, Priority::Next)
            }
        };
        let message = Message {
            priority,
            images: std::mem::take(&mut self.pictures),
            ..message(text)
        };
        if let Some(controls) = controls {
            let _ = controls.send(Control::Message(message)).await;
        } else {
            self.note("kept; the agent reads it when it goes on");
            self.held.push(message);
        }
    }

    /// Takes a line as the answer to the ask that was shown when it was begun.
    async fn answer(&mut self, id: WorkflowId, code: &str, line: &str) {
        let state = match self.desk.find(id).await {
            Ok(workflow) => self.desk.card(&workflow).state,
            Err(error) => {
                self.note(&report::render_hinted(&error));
                return;
            }
        };
        let shown = self.asks.shown().filter(|shown| shown.card.id == id);
        let (CardState::Pending, Some(shown)) = (state, shown) else {
            self.note(&format!(
                "not sent: `{code}`, which it was typed for, does not wait any more; to say it to the agent: > text"
            ));
            return;
        };
        match ask_text::read(shown, line) {
            Reading::Unfit(reason) => self.note(&reason),
            Reading::More(lines) => {
                for line in lines {
                    self.surface.line(&line);
                }
            }
            Reading::Said(said) => {
                shown.said.clear();
                if let Err(refusal) = self.desk.say(id, said, person::provenance()).await {
                    self.note(&report::render_hinted(&refusal));
                }
            }
        }
    }
}
