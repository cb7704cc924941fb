//! ntfy: notifications with up to three buttons; a press comes back by a second topic, which pml reads.
//!
//! ntfy knows no people: who knows the topic is the person. The reply topic is made from the topic and the token of the
//! server by a keyed hash, so that it is as hard to guess as those are, nothing of it is kept, and a button that was sent
//! before pml was started again still works: what was pressed meanwhile is read from the server's own memory.
//! Nothing that was sent can be edited. What a button cannot answer is a notification that leads to the inbox.

mod publication;
mod reply_topic;

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::header::AUTHORIZATION;
use reqwest::{RequestBuilder, Response, Url};
use serde_json::{Value, json};

use self::reply_topic::{Line, Lines};
use super::channel::{
    About, Channel, ChannelError, Heard, MessageRef, Pending, Picked, ReplyTo, Sender, SenderKind,
    Unsupported, Utterance,
};
use super::notice::Notice;
use super::open_error::OpenError;
use super::press::{Button, Press};
use super::service::{ANSWER_LIMIT, REQUEST_LIMIT, Service, ServiceAnswer, Settings};
use crate::card::Card;
use crate::config::{ChannelName, Environment, NtfySettings};

/// A server that says nothing for so long is gone: it says that it is there every 45 seconds.
const SILENCE: Duration = Duration::from_secs(100);

/// A server that ends the stream at once is not asked in bursts.
const RECONNECT: Duration = Duration::from_secs(1);

/// A topic of ntfy.
pub(crate) struct Ntfy {
    service: Service,
    server: Url,
    /// The reply topic as a stream.
    replies: Url,
    topic: String,
    token: Option<String>,
    reply_url: String,
    recorded: String,
    listening: tokio::sync::Mutex<Listening>,
}

/// What was read of the reply topic.
#[derive(Default)]
struct Listening {
    stream: Option<Stream>,
    /// The last message that was read; before the first one, everything that the server remembers is wanted.
    since: Option<String>,
    waiting: VecDeque<Heard>,
}

struct Stream {
    response: Response,
    lines: Lines,
}

impl Ntfy {
    /// Opens a topic; nothing is sent yet.
    pub(crate) async fn open(settings: &NtfySettings, environment: &Environment) -> Result<Self, OpenError> {
        let mut expanded = Settings::of(ChannelName::Ntfy, environment);
        let topic = expanded.secret("topic", &settings.topic)?;
        let token = settings.token.as_deref();
        let token = token.map(|token| expanded.secret("token", token)).transpose()?;
        let (service, server) = expanded.connect(&settings.server).await?;
        let reply_topic = reply_topic::name(&topic, token.as_deref());
        let (mut reply_url, mut replies) = (server.clone(), server.clone());
        if let Ok(mut path) = reply_url.path_segments_mut() {
            path.pop_if_empty().push(&reply_topic);
        }
        if let Ok(mut path) = replies.path_segments_mut() {
            path.pop_if_empty().push(&reply_topic).push("json");
        }
        Ok(Self {
            service,
            server,
            replies,
            recorded: reply_topic::digest(&topic),
            topic,
            token,
            reply_url: reply_url.into(),
            listening: tokio::sync::Mutex::default(),
        })
    }

    async fn publish(&self, message: &Value) -> Result<(), ChannelError> {
        let request = self.authorized(self.service.post(self.server.clone(), message));
        let answer = self.service.send(request, REQUEST_LIMIT, ANSWER_LIMIT).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(self.error(&answer))
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    fn error(&self, answer: &ServiceAnswer) -> ChannelError {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let said = body["error"].as_str().unwrap_or_default();
        let advice = match answer.status.as_u16() {
            401 | 403 => {
                "`token` must be one that may write to the topic and read topics that begin with `pml`"
            }
            404 | 405 => "`server` is not the address of an ntfy server",
            _ => "",
        };
        self.service.failed(answer, said, advice)
    }

    async fn next(&self) -> Result<Heard, ChannelError> {
        let mut listening = self.listening.lock().await;
        loop {
            if let Some(heard) = listening.waiting.pop_front() {
                return Ok(heard);
            }
            let result = self.listen(&mut listening).await;
            if result.is_err() {
                listening.stream = None;
            }
            result?;
        }
    }

    /// Reads what comes next; connects where no stream is open.
    async fn listen(&self, listening: &mut Listening) -> Result<(), ChannelError> {
        let Some(stream) = &mut listening.stream else {
            listening.stream = Some(self.connect(listening.since.as_deref()).await?);
            return Ok(());
        };
        let chunk = tokio::time::timeout(SILENCE, stream.response.chunk()).await;
        let chunk = match chunk {
            Ok(chunk) => chunk.map_err(|error| self.service.unreachable(error))?,
            Err(_elapsed) => None,
        };
        let Some(chunk) = chunk else {
            listening.stream = None;
            tokio::time::sleep(RECONNECT).await;
            return Ok(());
        };
        let lines = stream
            .lines
            .take(&chunk)
            .map_err(|_too_long| self.service.unreadable("a line of its stream does not end"))?;
        for line in lines {
            let (id, said) = match line {
                Line::Message { id, text, age } => (id, heard(&text, &self.recorded, age)),
                Line::Other => continue,
            };
            listening.since = Some(id);
            listening.waiting.extend(said);
        }
        Ok(())
    }

    async fn connect(&self, since: Option<&str>) -> Result<Stream, ChannelError> {
        let mut url = self.replies.clone();
        url.query_pairs_mut().append_pair("since", since.unwrap_or("all"));
        let opening = self.service.open(self.authorized(self.service.get(url)));
        let response = match tokio::time::timeout(REQUEST_LIMIT, opening).await {
            Ok(response) => response?,
            Err(_elapsed) => return Err(self.service.unreadable("its stream does not begin")),
        };
        if response.status().is_success() {
            return Ok(Stream {
                response,
                lines: Lines::default(),
            });
        }
        Err(self.error(&ServiceAnswer::of_head(&response)))
    }
}

/// Reads what a button posted; `None` for what is no press.
fn heard(text: &str, recorded: &str, age: reply_topic::Age) -> Option<Heard> {
    let press: Press = text.trim().parse().ok()?;
    let utterance = match press.button {
        Button::Decision(decision) => Utterance::Decision(decision, None),
        Button::Option { question: 0, option } => Utterance::Answers(vec![Picked {
            options: vec![option],
            text: None,
        }]),
        Button::Option { .. } | Button::Send => return None,
    };
    Some(Heard {
        sender: Sender {
            id: NtfySettings::PERSON.to_owned(),
            recorded: recorded.to_owned(),
            kind: SenderKind::Person,
        },
        about: About::Press(press),
        utterance,
        reply_to: age.reply_to(),
    })
}

impl Channel for Ntfy {
    fn name(&self) -> ChannelName {
        ChannelName::Ntfy
    }

    /// Everything fits: what no button can answer leads to the inbox.
    fn fits(&self, _card: &Card) -> Result<(), Unsupported> {
        Ok(())
    }

    fn send<'a>(&'a self, notice: &'a Notice, _to: &'a str) -> Pending<'a, MessageRef> {
        Box::pin(async move {
            let message = publication::of(notice, &self.topic, &self.reply_url);
            self.publish(&message).await?;
            // Nothing of it is needed again.
            Ok(MessageRef(json!({})))
        })
    }

    /// Does nothing: a notification cannot be edited, and a second one would only disturb. A button that is pressed too late
    /// is told so.
    fn update<'a>(&'a self, _at: &'a MessageRef, _notice: &'a Notice) -> Pending<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn heard(&self) -> Pending<'_, Heard> {
        Box::pin(self.next())
    }

    fn reply<'a>(&'a self, to: &'a ReplyTo, text: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            if reply_topic::Age::of(to) == reply_topic::Age::Remembered {
                // Every start reads again what the server remembers; what came of it was told then.
                return Ok(());
            }
            self.publish(&publication::of_reply(text, &self.topic)).await
        })
    }
}

#[cfg(test)]
mod tests;
