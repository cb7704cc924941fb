//! What persons say to a driven run, here and elsewhere.

use super::super::error::RunError;
use super::super::hosted_run::Control;
use super::super::machine::Event;
use super::super::message::Message;
use super::super::reply;
use super::super::run_input::RunInput;
use super::super::run_line::OwnLine;
use super::{Driver, Happened, OWN_REQUESTS, off_thread};
use crate::protocol::Shown;

impl Driver {
    pub(super) async fn obey(&mut self, control: Control) -> Result<(), RunError> {
        match control {
            Control::Message(message) => self.say(message).await,
            Control::Interrupt => {
                self.requests += 1;
                let id = format!("{OWN_REQUESTS}interrupt-{}", self.requests);
                self.agent.write(reply::interrupt(&id));
            }
            Control::Stop => self.step(Event::Stop).await?,
            Control::EndOfInput => self.step(Event::InputEnded).await?,
            Control::HostEnds => self.step(Event::HostEnds).await?,
        }
        Ok(())
    }

    pub(super) async fn say(&mut self, message: Message) {
        if let Err(error) = message.check() {
            let text = error.to_string();
            self.journal.own(OwnLine::Note { text }).await;
            return;
        }
        self.agent.write(reply::message(&message));
        self.unread.push(message.clone());
        let Message {
            uuid,
            text,
            images,
            priority,
        } = message;
        let images = images.len();
        self.journal
            .own(OwnLine::Message {
                uuid,
                text,
                images,
                priority,
            })
            .await;
    }

    /// Takes note that the agent has a message: the answers that it tells are delivered.
    pub(super) async fn taken_in(&mut self, uuid: &str) -> Result<(), RunError> {
        self.unread.retain(|message| message.uuid != *uuid);
        if let Some((_, told)) = self.told.take_if(|(first, _)| first == uuid) {
            self.record.deliver(|ask| told.contains(&ask.workflow));
            self.save().await?;
            for id in told {
                self.asks.told(id).await;
            }
        }
        Ok(())
    }

    pub(super) fn look(&mut self) {
        if std::mem::replace(&mut self.looking, true) {
            return;
        }
        let (runs, id, decided) = (self.runs.clone(), self.record.id.clone(), self.decided.clone());
        self.tasks.spawn_blocking(move || {
            // The run may be over.
            let _ = decided.send(Happened::Inputs(runs.take_inputs(&id)));
        });
    }

    /// Tells what the agent of a run that is over has not read any more.
    pub(super) async fn tell_unread(&mut self) {
        for message in std::mem::take(&mut self.unread) {
            let text = Shown::line(&message.text);
            let text = format!("the agent has not read this any more: {text}");
            self.journal.own(OwnLine::Note { text }).await;
        }
    }

    /// Keeps what was said and not taken in for the process that drives the run next.
    pub(super) async fn keep_unread(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        if unread.is_empty() {
            return;
        }
        let (runs, id) = (self.runs.clone(), self.record.id.clone());
        let kept = off_thread(move || {
            let mut inputs = unread.into_iter().map(RunInput::Message);
            inputs.try_for_each(|input| runs.keep_input(&id, &input))
        });
        if let Err(error) = kept.await {
            let text = format!("what was said last is not kept: {error}");
            self.journal.own(OwnLine::Note { text }).await;
        }
    }
}
