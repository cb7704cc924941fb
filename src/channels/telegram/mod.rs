//! Telegram, by long polling: no public address is needed.
//!
//! What was chosen but not sent yet stands in the buttons of the message itself and nowhere else, so that a restart loses
//! nothing. Only a person in a private chat is a person here. The token is part of every address: no error tells one.

mod api;
mod keyboard;
mod message;
mod update;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::api::Api;
use self::keyboard::{Keyboard, Pressed};
use self::message::Message;
use self::update::{Callback, Incoming, Place, Received};
use super::channel::{
    About, Channel, ChannelError, Heard, MessageRef, Pending, ReplyTo, SenderKind, Unsupported,
};
use super::notice::{Notice, Standing};
use super::open_error::OpenError;
use crate::card::Card;
use crate::config::{ChannelName, Environment, TelegramSettings};

/// Messages whose buttons are remembered: those that a person is pressing right now.
const DRAWN: usize = 64;

/// A service that does not hold the poll is not asked in bursts.
const POLL_SPACING: Duration = Duration::from_millis(500);

/// The longest text beside a button that was pressed; longer ones are sent as messages.
const TOAST: usize = 200;

/// A bot of Telegram.
pub(crate) struct Telegram {
    api: Api,
    polling: tokio::sync::Mutex<Polling>,
    drawn: Mutex<VecDeque<(Place, Keyboard)>>,
}

/// What was read from Telegram and not handed on yet.
#[derive(Default)]
struct Polling {
    /// Whether the token was tried.
    known: bool,
    /// The first update that is not stored yet.
    next: i64,
    /// The update that was handed on; stored once the next one is asked for.
    handed: Option<i64>,
    waiting: VecDeque<Received>,
}

impl Telegram {
    /// Opens a bot; nothing is sent yet.
    pub(crate) async fn open(
        settings: &TelegramSettings,
        environment: &Environment,
    ) -> Result<Self, OpenError> {
        Ok(Self {
            api: Api::open(settings, environment).await?,
            polling: tokio::sync::Mutex::default(),
            drawn: Mutex::default(),
        })
    }

    async fn send_notice(&self, notice: &Notice, to: &str) -> Result<MessageRef, ChannelError> {
        let chat: i64 = to.parse().map_err(|_no_number| self.api.no_person())?;
        let (message, keyboard) = drawn(notice);
        let place = self.api.send_message(chat, &message, &keyboard, None).await?;
        Ok(place.reference())
    }

    async fn edit_notice(&self, at: &MessageRef, notice: &Notice) -> Result<(), ChannelError> {
        let place = Place::of(at).ok_or_else(|| self.api.unknown_message())?;
        let (message, keyboard) = drawn(notice);
        self.forget(place);
        self.api.edit_message(place, &message, &keyboard).await
    }

    async fn next(&self) -> Result<Heard, ChannelError> {
        let mut polling = self.polling.lock().await;
        loop {
            if let Some(stored) = polling.handed.take() {
                polling.next = stored.saturating_add(1);
            }
            let Some(Received { id, incoming }) = polling.waiting.pop_front() else {
                self.poll(&mut polling).await?;
                continue;
            };
            polling.handed = Some(id);
            match incoming {
                Incoming::Said(heard) => return Ok(heard),
                Incoming::Pressed(callback) => {
                    if let Some(heard) = self.pressed(callback).await {
                        return Ok(heard);
                    }
                }
                Incoming::Nothing => {}
            }
        }
    }

    /// Fills what waits, or waits itself.
    async fn poll(&self, polling: &mut Polling) -> Result<(), ChannelError> {
        if !polling.known {
            self.api.check_token().await?;
            polling.known = true;
        }
        let began = Instant::now();
        let updates = self.api.updates(polling.next).await?;
        let first = polling.next;
        polling
            .waiting
            .extend(updates.into_iter().filter(|update| update.id >= first));
        if polling.waiting.is_empty() {
            tokio::time::sleep_until(began + POLL_SPACING).await;
        }
        Ok(())
    }

    /// Redraws the buttons for a press that is no answer yet; returns what is one.
    async fn pressed(&self, callback: Callback) -> Option<Heard> {
        let Callback {
            id,
            data,
            place,
            keyboard,
            sender,
            reply_to,
        } = callback;
        if sender.kind == SenderKind::Other {
            log(self
                .api
                .answer_callback(&id, "Only the person who was asked can answer.")
                .await);
            return None;
        }
        // Telegram sends the buttons as they stood when they were pressed; of two quick presses the second would undo the first.
        let keyboard = place.and_then(|place| self.remembered(place)).or(keyboard);
        match keyboard::pressed(keyboard.as_ref(), &data) {
            Pressed::Said { press, utterance } => Some(Heard {
                sender,
                about: About::Press(press),
                utterance,
                reply_to,
            }),
            Pressed::Redrawn { keyboard, toast } => {
                if let Some(place) = place {
                    self.remember(place, keyboard.clone());
                    log(self.api.edit_keyboard(place, &keyboard).await);
                }
                log(self.api.answer_callback(&id, toast).await);
                None
            }
            Pressed::Unclear(toast) => {
                log(self.api.answer_callback(&id, toast).await);
                None
            }
        }
    }

    async fn say(&self, to: &ReplyTo, text: &str) -> Result<(), ChannelError> {
        let ReplyTo(to) = to;
        let text = crate::protocol::Shown::block(text).to_string();
        if let Some(callback) = to["callback"].as_str()
            && text.encode_utf16().count() <= TOAST
        {
            match self.api.answer_callback(callback, &text).await {
                // A press is answered within minutes or not at all; what came of it is told anyway.
                Err(ChannelError::Refused { .. }) => {}
                done => return done,
            }
        } else if let Some(callback) = to["callback"].as_str() {
            log(self.api.answer_callback(callback, "").await);
        }
        let chat = to["chat"].as_i64().ok_or_else(|| self.api.no_person())?;
        let message = Message::of_reply(&text);
        let none = Keyboard::default();
        let sent = self
            .api
            .send_message(chat, &message, &none, to["message"].as_i64());
        sent.await.map(drop)
    }

    fn remembered(&self, place: Place) -> Option<Keyboard> {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let found = drawn.iter().find(|(known, _)| *known == place);
        found.map(|(_, keyboard)| keyboard.clone())
    }

    fn remember(&self, place: Place, keyboard: Keyboard) {
        self.forget(place);
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.push_back((place, keyboard));
        if drawn.len() > DRAWN {
            drawn.pop_front();
        }
    }

    fn forget(&self, place: Place) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.retain(|(known, _)| *known != place);
    }
}

/// Logs what failed beside the point: the person sees the old buttons and presses again.
fn log(result: Result<(), ChannelError>) {
    if let Err(error) = result {
        tracing::debug!("a press on Telegram could not be acknowledged: {error}");
    }
}

/// Draws a notice: its message, and its buttons.
fn drawn(notice: &Notice) -> (Message, Keyboard) {
    match message::fits(&notice.card) {
        Ok(()) => (Message::of(notice), Keyboard::of(notice)),
        Err(_too_much) => match notice.standing {
            Standing::Open { .. } => (Message::glance(notice), Keyboard::refusal_of(notice)),
            Standing::Closed(_) => (Message::of(notice), Keyboard::default()),
        },
    }
}

impl Channel for Telegram {
    fn name(&self) -> ChannelName {
        ChannelName::Telegram
    }

    fn fits(&self, card: &Card) -> Result<(), Unsupported> {
        message::fits(card)
    }

    fn send<'a>(&'a self, notice: &'a Notice, to: &'a str) -> Pending<'a, MessageRef> {
        Box::pin(self.send_notice(notice, to))
    }

    fn update<'a>(&'a self, at: &'a MessageRef, notice: &'a Notice) -> Pending<'a, ()> {
        Box::pin(self.edit_notice(at, notice))
    }

    fn heard(&self) -> Pending<'_, Heard> {
        Box::pin(self.next())
    }

    fn reply<'a>(&'a self, to: &'a ReplyTo, text: &'a str) -> Pending<'a, ()> {
        Box::pin(self.say(to, text))
    }
}

/// The members that no message of pml has otherwise: no preview of what looks like a link.
fn without_previews(mut body: Value) -> Value {
    body["link_preview_options"] = json!({ "is_disabled": true });
    body
}

#[cfg(test)]
mod tests;
