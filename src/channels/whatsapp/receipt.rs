//! What Meta sends to the webhook: verified, read once, handed on.
//!
//! Answers at once and waits for nothing. Nothing is read before its signature is checked, over the bytes as they came.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use ring::hmac;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender as Handing;

use crate::channels::channel::{About, Heard, MessageRef, ReplyTo, Sender, SenderKind, Utterance};
use crate::channels::press::{Button, Press};
use crate::channels::{channel::Picked, chat_command};
use crate::protocol::hook::HookReply;

/// Meta delivers at most 3 MB; a message of a person has some kilobytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The longest challenge; Meta sends ten digits.
const CHALLENGE: usize = 256;

/// Messages that are remembered, so that one that Meta delivers again is not heard twice.
const REMEMBERED: usize = 1024;

/// More questions than a card has.
const QUESTIONS: usize = 16;

/// Something that Meta delivered.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A person said something.
    Said(Heard),
    /// A message did not reach a person.
    Failed {
        /// The message.
        id: String,
        /// The person.
        to: String,
        /// Why, as a number.
        code: i64,
        /// Why, in words of Meta.
        title: String,
    },
}

/// Reads what is delivered to one number.
pub(super) struct Receipts {
    phone_number_id: String,
    signing: hmac::Key,
    /// The verify token, signed: comparing signatures takes the same time for all of them.
    verify_token: hmac::Tag,
    seen: Mutex<Seen>,
}

/// The ids of messages that were heard, the oldest first.
#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

#[derive(Deserialize)]
struct Delivery {
    #[serde(default)]
    entry: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct ReceivedMessage {
    from: String,
    id: String,
    context: Option<Context>,
    /// The group it was written in.
    group_id: Option<Value>,
    #[serde(default, rename = "type")]
    kind: String,
    text: Option<Body>,
    interactive: Option<Interactive>,
    button: Option<TemplateButton>,
}

#[derive(Deserialize)]
struct Context {
    id: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    body: String,
}

#[derive(Deserialize)]
struct Interactive {
    button_reply: Option<Reply>,
    list_reply: Option<Reply>,
}

#[derive(Deserialize)]
struct Reply {
    id: String,
}

#[derive(Deserialize)]
struct TemplateButton {
    text: String,
}

#[derive(Deserialize)]
struct Status {
    id: String,
    #[serde(rename = "status")]
    state: String,
    recipient_id: String,
    #[serde(default)]
    errors: Vec<StatusError>,
}

#[derive(Deserialize)]
struct StatusError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    title: String,
}

impl Receipts {
    /// Takes the secret that signs what comes, and the word by which the address is verified.
    pub(super) fn new(phone_number_id: String, app_secret: &str, verify_token: &str) -> Self {
        let signing = hmac::Key::new(hmac::HMAC_SHA256, app_secret.as_bytes());
        Self {
            phone_number_id,
            verify_token: hmac::sign(&signing, verify_token.as_bytes()),
            signing,
            seen: Mutex::default(),
        }
    }

    /// Answers Meta when it asks whether the address is the user's.
    pub(super) fn verified(&self, query: &[(String, String)]) -> HookReply {
        let named = |name: &str| {
            let found = query.iter().find(|(known, _)| known == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let token = named("hub.verify_token").as_bytes();
        let is_known = hmac::verify(&self.signing, token, self.verify_token.as_ref()).is_ok();
        let challenge = named("hub.challenge");
        let is_plain = (1..=CHALLENGE).contains(&challenge.len())
            && challenge.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_known && is_plain && named("hub.mode") == "subscribe" {
            HookReply::Challenge(challenge.to_owned())
        } else {
            HookReply::Refused
        }
    }

    /// Takes a delivery, and hands on what it holds.
    pub(super) fn delivered(
        &self,
        signature: Option<&str>,
        body: &[u8],
        handing: &Handing<Incoming>,
    ) -> HookReply {
        if body.len() > BODY_LIMIT || !self.is_signed(signature, body) {
            return HookReply::Refused;
        }
        // Meta sends other things as well; what is not understood would be delivered again for days.
        let Ok(delivery) = serde_json::from_slice::<Delivery>(body) else {
            return HookReply::Received;
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = delivery.entry.into_iter().flat_map(|entry| entry.changes);
        let mut fresh = Vec::new();
        for change in changes {
            if change.value["metadata"]["phone_number_id"].as_str() == Some(&self.phone_number_id) {
                read(change.value, &mut fresh);
            }
        }
        let mut within = HashSet::new();
        fresh.retain(|(id, _)| !seen.ids.contains(id) && within.insert(id.clone()));
        // All of it or nothing: Meta delivers the whole again.
        let Ok(room) = handing.try_reserve_many(fresh.len()) else {
            return HookReply::Busy;
        };
        for (place, (id, incoming)) in room.zip(fresh) {
            place.send(incoming);
            seen.note(id);
        }
        HookReply::Received
    }

    /// Counts the messages that are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.ids.len(), seen.order.len());
        seen.order.len()
    }

    fn is_signed(&self, signature: Option<&str>, body: &[u8]) -> bool {
        let signature = signature.and_then(|signature| signature.strip_prefix("sha256="));
        let signature = signature.and_then(bytes_of);
        signature.is_some_and(|signature| hmac::verify(&self.signing, body, &signature).is_ok())
    }
}

impl Seen {
    fn note(&mut self, id: String) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

/// Reads the 32 bytes of a signature.
fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let digits: Vec<u8> = hex.bytes().take(65).map(digit).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0] * 16 + pair[1])
        .collect();
    (digits.len() == 64).then_some(())?;
    bytes.try_into().ok()
}

/// Reads the messages and the failures of a change.
fn read(mut value: Value, fresh: &mut Vec<(String, Incoming)>) {
    for message in list(&mut value, "messages") {
        // One strange message must not hold up those beside it.
        if let Ok(message) = serde_json::from_value::<ReceivedMessage>(message) {
            let id = message.id.clone();
            fresh.extend(said(message).map(|heard| (id, Incoming::Said(heard))));
        }
    }
    for status in list(&mut value, "statuses") {
        let Ok(status) = serde_json::from_value::<Status>(status) else {
            continue;
        };
        if status.state != "failed" {
            continue;
        }
        let (code, title) = match status.errors.into_iter().next() {
            Some(error) => (error.code, error.title),
            None => (0, String::new()),
        };
        fresh.push((
            format!("failed {}", status.id),
            Incoming::Failed {
                id: status.id,
                to: status.recipient_id,
                code,
                title,
            },
        ));
    }
}

fn list(value: &mut Value, name: &str) -> Vec<Value> {
    match value.get_mut(name).map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn said(message: ReceivedMessage) -> Option<Heard> {
    let ReceivedMessage {
        from,
        id,
        context,
        group_id,
        kind,
        text,
        interactive,
        button,
    } = message;
    let replied = context.and_then(|context| context.id);
    let replied = replied.map(|id| super::reference(&id, &from));
    let reply = interactive.and_then(|interactive| interactive.button_reply.or(interactive.list_reply));
    let (about, utterance) = match (reply, text, button, kind.as_str()) {
        (Some(reply), ..) => pressed(&reply.id, replied),
        (None, Some(text), ..) => chat_command::read(&text.body, replied),
        (None, None, Some(button), _) => chat_command::read(&button.text, replied),
        // A picture or a voice is told to be no answer, rather than passed over in silence.
        (
            None,
            None,
            None,
            "image" | "audio" | "video" | "document" | "sticker" | "location" | "contacts",
        ) => chat_command::read("", replied),
        (None, None, None, _) => return None,
    };
    Some(Heard {
        sender: Sender {
            id: from.clone(),
            recorded: from.clone(),
            kind: match group_id {
                None => SenderKind::Person,
                Some(_) => SenderKind::Other,
            },
        },
        about,
        utterance,
        reply_to: ReplyTo(json!({ "to": from, "id": id })),
    })
}

/// Reads what a button or a row carries.
fn pressed(data: &str, replied: Option<MessageRef>) -> (About, Utterance) {
    let utterance = |press: &Press| match press.button {
        Button::Decision(decision) => Some(Utterance::Decision(decision, None)),
        Button::Option { question, option } if question < QUESTIONS => {
            let mut answers = vec![Picked::default(); question + 1];
            answers[question].options.push(option);
            Some(Utterance::Answers(answers))
        }
        Button::Option { .. } | Button::Send => None,
    };
    let press = data.parse::<Press>().ok();
    match press.and_then(|press| utterance(&press).map(|said| (press, said))) {
        Some((press, said)) => (About::Press(press), said),
        // A button of another program on the same number.
        None => (
            replied.map_or(About::Nothing, About::Message),
            Utterance::Text(String::new()),
        ),
    }
}
