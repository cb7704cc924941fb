//! What Telegram delivers: messages and presses, read member by member. Pure.
//!
//! An update that is not understood is passed over, never an error: one strange message must not hold up those behind it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::keyboard::Keyboard;
use crate::channels::channel::{Heard, MessageRef, ReplyTo, Sender, SenderKind};
use crate::channels::chat_command;

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    /// The chat.
    pub chat: i64,
    /// The message in it.
    pub message: i64,
}

impl Place {
    /// Reads what was kept of a message.
    pub(super) fn of(MessageRef(kept): &MessageRef) -> Option<Self> {
        Self::deserialize(kept).ok()
    }

    /// Writes what is kept of a message.
    pub(super) fn reference(self) -> MessageRef {
        MessageRef(json!({ "chat": self.chat, "message": self.message }))
    }
}

/// An update, with its number.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) id: i64,
    pub(super) incoming: Incoming,
}

/// What an update holds.
#[derive(Debug)]
pub(super) enum Incoming {
    /// Words.
    Said(Heard),
    /// A button.
    Pressed(Callback),
    /// Nothing that is for pml.
    Nothing,
}

/// A button that was pressed.
#[derive(Debug)]
pub(super) struct Callback {
    /// By which the press is acknowledged.
    pub(super) id: String,
    /// What the button carries.
    pub(super) data: String,
    /// The message of the button, where Telegram still has it.
    pub(super) place: Option<Place>,
    /// The buttons of the message.
    pub(super) keyboard: Option<Keyboard>,
    pub(super) sender: Sender,
    pub(super) reply_to: ReplyTo,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
    #[serde(default, rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct ReceivedMessage {
    message_id: i64,
    chat: Chat,
    from: Option<User>,
    text: Option<String>,
    caption: Option<String>,
    reply_to_message: Option<Replied>,
    reply_markup: Option<Keyboard>,
    /// What tells a message of a person from one of Telegram about the chat.
    photo: Option<serde::de::IgnoredAny>,
    voice: Option<serde::de::IgnoredAny>,
    audio: Option<serde::de::IgnoredAny>,
    video: Option<serde::de::IgnoredAny>,
    document: Option<serde::de::IgnoredAny>,
    sticker: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Replied {
    message_id: i64,
}

#[derive(Deserialize)]
struct ReceivedCallback {
    id: String,
    from: User,
    data: Option<String>,
    message: Option<Value>,
}

impl Received {
    /// Reads an update; `None` where it has no number.
    pub(super) fn read(mut update: Value) -> Option<Self> {
        let id = update["update_id"].as_i64()?;
        let incoming = if let Some(message) = update.get_mut("message") {
            said(message.take())
        } else if let Some(callback) = update.get_mut("callback_query") {
            pressed(callback.take())
        } else {
            None
        };
        Some(Self {
            id,
            incoming: incoming.unwrap_or(Incoming::Nothing),
        })
    }
}

fn said(message: Value) -> Option<Incoming> {
    let message: ReceivedMessage = serde_json::from_value(message).ok()?;
    let media = [
        &message.photo,
        &message.voice,
        &message.audio,
        &message.video,
        &message.document,
        &message.sticker,
    ];
    let is_media = media.into_iter().any(Option::is_some);
    // A picture without a word is told to be no answer, rather than passed over in silence.
    let text = message
        .text
        .or(message.caption)
        .or_else(|| is_media.then(String::new))?;
    let sender = sender(&message.from?, &message.chat);
    let replied = message.reply_to_message.map(|replied| Place {
        chat: message.chat.id,
        message: replied.message_id,
    });
    let (about, utterance) = chat_command::read(&text, replied.map(Place::reference));
    Some(Incoming::Said(Heard {
        sender,
        about,
        utterance,
        reply_to: ReplyTo(json!({ "chat": message.chat.id, "message": message.message_id })),
    }))
}

fn pressed(callback: Value) -> Option<Incoming> {
    let callback: ReceivedCallback = serde_json::from_value(callback).ok()?;
    // Of an old message only its place is left; of one that was sent by way of another bot, nothing.
    let message: Option<ReceivedMessage> = callback
        .message
        .and_then(|message| serde_json::from_value(message).ok());
    let sender = match &message {
        Some(message) => sender(&callback.from, &message.chat),
        None => Sender {
            kind: SenderKind::Other,
            ..named(&callback.from)
        },
    };
    let place = message.as_ref().map(|message| Place {
        chat: message.chat.id,
        message: message.message_id,
    });
    Some(Incoming::Pressed(Callback {
        reply_to: ReplyTo(json!({ "callback": callback.id, "chat": place.map(|place| place.chat) })),
        id: callback.id,
        data: callback.data?,
        place,
        keyboard: message.and_then(|message| message.reply_markup),
        sender,
    }))
}

/// Tells who said something: a person, where no program did and no other person reads it.
fn sender(user: &User, chat: &Chat) -> Sender {
    let is_alone = chat.kind == "private" && chat.id == user.id;
    Sender {
        kind: if is_alone && !user.is_bot {
            SenderKind::Person
        } else {
            SenderKind::Other
        },
        ..named(user)
    }
}

fn named(user: &User) -> Sender {
    let id = user.id.to_string();
    Sender {
        recorded: id.clone(),
        id,
        kind: SenderKind::Other,
    }
}
