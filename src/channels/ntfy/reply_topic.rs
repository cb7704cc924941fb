//! The topic that buttons post to: its name, and the lines of its stream. Pure.

use std::fmt::Write as _;

use ring::{digest, hmac};
use serde::Deserialize;
use serde_json::json;

use crate::channels::channel::ReplyTo;

/// Topics have letters, digits, `-` and `_`, 64 at most.
const PREFIX: &str = "pml";

/// The longest line: a press has 64 bytes, and what stands beside it some hundred.
const LINE: usize = 16 * 1024;

/// Returns the name of the reply topic: 128 bits that follow from the topic and the token.
pub(super) fn name(topic: &str, token: Option<&str>) -> String {
    let key = format!("{topic}\n{}", token.unwrap_or_default());
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let tag = hmac::sign(&key, b"the reply topic of pml");
    format!("{PREFIX}{}", hex(&tag.as_ref()[..16]))
}

/// Returns how the people of a topic are recorded, without the topic: it is a password.
pub(super) fn digest(topic: &str) -> String {
    let digest = digest::digest(&digest::SHA256, format!("topic of ntfy\n{topic}").as_bytes());
    format!("topic/{}", hex(&digest.as_ref()[..6]))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a message was sent while pml listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// It came just now.
    New,
    /// The server remembered it from before.
    Remembered,
}

impl Age {
    /// Writes where a reply goes.
    pub(super) fn reply_to(self) -> ReplyTo {
        ReplyTo(json!({ "remembered": self == Self::Remembered }))
    }

    /// Reads where a reply goes.
    pub(super) fn of(ReplyTo(to): &ReplyTo) -> Self {
        if to["remembered"].as_bool() == Some(false) {
            Self::New
        } else {
            Self::Remembered
        }
    }
}

/// A line of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// A message.
    Message {
        /// By which the stream is taken up again.
        id: String,
        /// Its text.
        text: String,
        /// Whether it is new.
        age: Age,
    },
    /// A sign of life, or what is not understood.
    Other,
}

/// Says that a line does not end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Cuts a stream into lines.
#[derive(Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
    /// When the stream was opened, by the clock of the server.
    opened_at: Option<i64>,
}

#[derive(Deserialize)]
struct WrittenLine {
    #[serde(default)]
    id: String,
    #[serde(default)]
    time: i64,
    #[serde(default)]
    event: String,
    #[serde(default)]
    message: String,
}

impl Lines {
    /// Takes a piece of the stream; returns the lines that it ends.
    pub(super) fn take(&mut self, chunk: &[u8]) -> Result<Vec<Line>, TooLong> {
        let mut lines = Vec::new();
        let mut parts = chunk.split(|byte| *byte == b'\n');
        let Some(first) = parts.next() else {
            return Ok(lines);
        };
        self.grow(first)?;
        for part in parts {
            let line = std::mem::take(&mut self.rest);
            lines.push(self.read(&line));
            self.grow(part)?;
        }
        Ok(lines)
    }

    fn grow(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.rest.len() + part.len() > LINE {
            return Err(TooLong);
        }
        self.rest.extend_from_slice(part);
        Ok(())
    }

    fn read(&mut self, line: &[u8]) -> Line {
        let Ok(line) = serde_json::from_slice::<WrittenLine>(line) else {
            return Line::Other;
        };
        match line.event.as_str() {
            "open" => {
                self.opened_at = Some(line.time);
                Line::Other
            }
            "message" if !line.id.is_empty() => Line::Message {
                id: line.id,
                text: line.message,
                age: match self.opened_at {
                    Some(opened_at) if line.time < opened_at => Age::Remembered,
                    _ => Age::New,
                },
            },
            _ => Line::Other,
        }
    }
}
