//! What comes in over the socket, read: pure. Everything in it is from outside; what cannot be read is nothing said.
//!
//! Presses carry what pml put into their buttons, choices stand in `state.values` under the names of pml's blocks. What
//! belongs to another message, another revision or another program is left out here; who may say it is decided elsewhere.

use serde_json::{Map, Value, json};

use super::blocks::{CALLBACK, OTHER};
use super::words;
use crate::card::Decision;
use crate::channels::channel::{About, Heard, MessageRef, Picked, ReplyTo, Sender, SenderKind, Utterance};
use crate::channels::press::{Button, Press};

/// More questions than any card has.
const QUESTIONS: usize = 32;

/// More options than any question has.
const OPTIONS: usize = 256;

/// Longer than any id of Slack.
const ID: usize = 64;

/// Longer than the triggers of Slack, which open forms.
const TRIGGER: usize = 256;

/// A frame of the socket, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// The connection is ready.
    Hello {
        /// How many connections the app has, this one included.
        connections: u64,
    },
    /// The connection will be closed.
    Disconnect {
        /// Slack's word for why, as far as it is one.
        reason: String,
    },
    /// Something that Slack wants acknowledged.
    Envelope {
        /// Its name.
        id: String,
        /// What it is once for all deliveries of it, where it has that.
        event: Option<String>,
        /// What it holds.
        incoming: Incoming,
    },
    /// Nothing that pml reads.
    Other,
}

/// What an envelope holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    /// Something was said.
    Said(Box<Heard>),
    /// A person wants to say why not: a form is to be opened.
    WantsForm(Box<FormWish>),
    /// A toggle of a choice that is not sent yet, a message of a program, an event of another kind.
    Nothing,
}

/// A press on the button that asks for a reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormWish {
    /// What allows pml to open a form, for three seconds.
    pub trigger: String,
    /// What was pressed.
    pub press: Press,
    /// What the form carries, so that what it brings back can be told as the press.
    pub origin: Value,
    /// Where to say that it cannot be opened.
    pub reply_to: ReplyTo,
}

/// Reads a frame.
pub(super) fn read(text: &str) -> Frame {
    let Ok(frame) = serde_json::from_str::<Value>(text) else {
        return Frame::Other;
    };
    let kind = text_of(&frame, "/type").unwrap_or_default();
    let id = text_of(&frame, "/envelope_id").filter(|id| id.len() <= 4 * ID);
    match (kind, id) {
        ("hello", _) => Frame::Hello {
            connections: frame["num_connections"].as_u64().unwrap_or(1),
        },
        ("disconnect", _) => Frame::Disconnect {
            reason: words::sanitized(text_of(&frame, "/reason").unwrap_or_default()),
        },
        (kind, Some(id)) => {
            let payload = &frame["payload"];
            let incoming = match kind {
                "interactive" => interactive(payload),
                "events_api" => event(payload),
                _ => None,
            };
            Frame::Envelope {
                id: id.to_owned(),
                event: text_of(payload, "/event_id")
                    .filter(|id| id.len() <= ID)
                    .map(str::to_owned),
                incoming: incoming.unwrap_or(Incoming::Nothing),
            }
        }
        (_, None) => Frame::Other,
    }
}

fn interactive(payload: &Value) -> Option<Incoming> {
    match text_of(payload, "/type")? {
        "block_actions" => pressed(payload),
        "view_submission" => submitted(payload),
        _ => None,
    }
}

/// Reads a press: of a button of pml, in a conversation with one person.
fn pressed(payload: &Value) -> Option<Incoming> {
    // A press brings one action; what is toggled in a group of choices brings one without a press.
    let actions = payload["actions"].as_array()?.iter().take(OPTIONS);
    let (press, action) = actions
        .filter(|action| action["type"].as_str().is_none_or(|kind| kind == "button"))
        .find_map(|action| Some((text_of(action, "/value")?.parse::<Press>().ok()?, action)))?;
    let channel = id_of(payload, &["/container/channel_id", "/channel/id"])?;
    let is_direct = channel.starts_with('D') || text_of(payload, "/channel/name") == Some("directmessage");
    let sender = sender(
        payload,
        if is_direct {
            SenderKind::Person
        } else {
            SenderKind::Other
        },
    )?;
    let ts = text_of(payload, "/container/message_ts").filter(|ts| ts.len() <= ID);
    let reply_to = reply_to(channel, &sender);
    let said = |utterance| Heard {
        sender: sender.clone(),
        about: About::Press(press.clone()),
        utterance,
        reply_to: reply_to.clone(),
    };
    let heard = match press.button {
        Button::Send => said(Utterance::Answers(picked(
            &payload["state"]["values"],
            &press,
            asked(action),
        ))),
        Button::Decision(Decision::Abort) if action["action_id"] == "reason" => {
            let trigger = text_of(payload, "/trigger_id").filter(|id| id.len() <= TRIGGER)?;
            return Some(Incoming::WantsForm(Box::new(FormWish {
                trigger: trigger.to_owned(),
                origin: json!({
                    "press": press.to_string(), "channel": channel, "ts": ts, "direct": is_direct,
                }),
                press,
                reply_to,
            })));
        }
        Button::Decision(decision) => said(Utterance::Decision(decision, None)),
        // pml makes no such button here.
        Button::Option { .. } => return None,
    };
    Some(Incoming::Said(Box::new(heard)))
}

/// Reads the form in which a person said why not.
fn submitted(payload: &Value) -> Option<Incoming> {
    let view = &payload["view"];
    if view["callback_id"] != CALLBACK {
        return None;
    }
    let origin: Value = serde_json::from_str(text_of(view, "/private_metadata")?).ok()?;
    let press: Press = text_of(&origin, "/press")?.parse().ok()?;
    if press.button != Button::Decision(Decision::Abort) {
        return None;
    }
    let channel = id_of(&origin, &["/channel"])?;
    let kind = match origin["direct"].as_bool() {
        Some(true) => SenderKind::Person,
        _ => SenderKind::Other,
    };
    let sender = sender(payload, kind)?;
    let block = format!("pml:{}:{}:reason", press.code, press.rev);
    let reason = written(&view["state"]["values"][block]);
    Some(Incoming::Said(Box::new(Heard {
        reply_to: reply_to(channel, &sender),
        sender,
        about: About::Press(press),
        utterance: Utterance::Decision(Decision::Abort, reason),
    })))
}

/// Reads a message to pml.
fn event(payload: &Value) -> Option<Incoming> {
    let event = &payload["event"];
    if text_of(event, "/type")? != "message" {
        return None;
    }
    let by_program = !event["bot_id"].is_null();
    match event["subtype"].as_str() {
        None | Some("file_share" | "thread_broadcast" | "bot_message") => {}
        // Edits and removals say nothing new.
        Some(_) => return None,
    }
    let kind = if by_program || event["subtype"] == "bot_message" || event["channel_type"] != "im" {
        SenderKind::Other
    } else {
        SenderKind::Person
    };
    let channel = id_of(event, &["/channel"])?;
    let user = id_of(event, &["/user", "/bot_id"])?;
    let team = id_of(payload, &["/team_id", "/event/team"])?;
    let sender = Sender {
        id: user.to_owned(),
        recorded: format!("{team}/{user}"),
        kind,
    };
    let about = text_of(event, "/thread_ts").filter(|ts| ts.len() <= ID);
    Some(Incoming::Said(Box::new(Heard {
        reply_to: reply_to(channel, &sender),
        sender,
        about: about.map_or(About::Nothing, |ts| About::Message(message_ref(channel, ts))),
        utterance: Utterance::Text(words::typed(text_of(event, "/text")?)),
    })))
}

/// Names a message.
pub(super) fn message_ref(channel: &str, ts: &str) -> MessageRef {
    MessageRef(json!({ "channel": channel, "ts": ts }))
}

fn reply_to(channel: &str, sender: &Sender) -> ReplyTo {
    ReplyTo(json!({ "channel": channel, "user": sender.id }))
}

/// Reads who pressed.
fn sender(payload: &Value, kind: SenderKind) -> Option<Sender> {
    let user = id_of(payload, &["/user/id"])?;
    let team = id_of(payload, &["/user/team_id", "/team/id"])?;
    Some(Sender {
        id: user.to_owned(),
        recorded: format!("{team}/{user}"),
        kind,
    })
}

/// Tells how many questions the message asked: it stands in the name of the row of buttons.
fn asked(action: &Value) -> usize {
    let count = action["block_id"].as_str().and_then(|id| id.rsplit_once(":of:"));
    let count = count.and_then(|(_, count)| count.parse::<usize>().ok());
    count.unwrap_or(0).min(QUESTIONS)
}

/// Reads what is chosen and written, for each question of the message that was pressed.
fn picked(values: &Value, press: &Press, asked: usize) -> Vec<Picked> {
    let mut picked = vec![Picked::default(); asked];
    let prefix = format!("pml:{}:{}:", press.code, press.rev);
    for (block, elements) in values.as_object().into_iter().flatten() {
        let Some(part) = block.strip_prefix(&prefix) else {
            continue;
        };
        let (place, is_other) = match part.strip_suffix(":other") {
            Some(place) => (place, true),
            None => (part, false),
        };
        let Some(place) = place.parse::<usize>().ok().filter(|place| *place < QUESTIONS) else {
            continue;
        };
        if picked.len() <= place {
            picked.resize(place + 1, Picked::default());
        }
        if is_other {
            picked[place].text = written(elements);
        } else {
            picked[place].options = options(elements);
        }
    }
    picked
}

/// Reads what is written in a field; blank is nothing.
fn written(elements: &Value) -> Option<String> {
    let text = text_of(elements, "/text/value")?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// Reads the places of the options that are chosen in a group of choices or in several, each once and in their order.
fn options(elements: &Value) -> Vec<usize> {
    let groups = elements.as_object().map(Map::values).into_iter().flatten();
    let chosen = groups.flat_map(|element| {
        let several = element["selected_options"].as_array().into_iter().flatten();
        several.chain(Some(&element["selected_option"])).take(OPTIONS)
    });
    let values = chosen.filter_map(|option| option["value"].as_str());
    let places = values
        .filter(|value| *value != OTHER)
        .filter_map(|value| value.parse::<usize>().ok())
        .filter(|place| *place < OPTIONS);
    let places: std::collections::BTreeSet<usize> = places.take(OPTIONS).collect();
    places.into_iter().collect()
}

fn text_of<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// Reads an id of Slack: letters and digits.
fn id_of<'a>(value: &'a Value, pointers: &[&str]) -> Option<&'a str> {
    let mut found = pointers.iter().filter_map(|pointer| text_of(value, pointer));
    found.find(|id| (1..=ID).contains(&id.len()) && id.bytes().all(|letter| letter.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests;
