//! WhatsApp, by the Cloud API: messages go out by HTTPS, answers come to `/hooks/whatsapp` behind the user's own tunnel.
//!
//! Nothing that was sent can be edited: what becomes of an ask is told by a message that quotes it. Outside the 24 hours
//! after a person wrote, only an approved template reaches them; Meta says so at once or minutes later.

mod message;
mod receipt;
mod template;

use std::sync::Mutex;

use reqwest::Url;
use reqwest::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use self::receipt::{Incoming, Receipts};
use self::template::Templates;
use super::channel::{
    About, Channel, ChannelError, Heard, MessageRef, OutcomeNotice, Pending, ReplyTo, Unsupported,
};
use super::notice::{Notice, Standing};
use super::open_error::OpenError;
use super::service::{ANSWER_LIMIT, REQUEST_LIMIT, Service, Settings};
use crate::card::Card;
use crate::config::{ChannelName, Environment, WhatsappSettings};
use crate::protocol::hook::{HookReply, HookRequest};

/// The service itself, with the version whose messages these are.
const ADDRESS: &str = "https://graph.facebook.com/v23.0";

/// What waits to be heard: a person writes no more within a second.
const WAITING: usize = 256;

/// Says that more than 24 hours passed since the person wrote.
const WINDOW_CLOSED: i64 = 131_047;

/// A number of WhatsApp.
pub(crate) struct Whatsapp {
    service: Service,
    messages: Url,
    token: String,
    template: Option<String>,
    receipts: Receipts,
    sender: Sender<Incoming>,
    receiver: tokio::sync::Mutex<Receiver<Incoming>>,
    templates: Mutex<Templates>,
}

/// What the Cloud API answers where something is wrong.
#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    messages: Vec<Sent>,
    error: Option<Trouble>,
}

#[derive(Deserialize)]
struct Sent {
    id: String,
}

#[derive(Deserialize)]
struct Trouble {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// Why a message was not sent.
enum Unsent {
    /// The window is closed.
    Window,
    /// Something else.
    Failed(ChannelError),
}

impl Whatsapp {
    /// Opens a number; nothing is sent yet. Without a way back it is not opened: an answer could never come.
    pub(crate) async fn open(
        settings: &WhatsappSettings,
        environment: &Environment,
    ) -> Result<Self, OpenError> {
        let mut expanded = Settings::of(ChannelName::Whatsapp, environment);
        let needed = |key| OpenError::NoWayBack {
            channel: ChannelName::Whatsapp,
            key,
        };
        let app_secret = settings
            .app_secret
            .as_deref()
            .ok_or_else(|| needed("appSecret"))?;
        let verify_token = settings
            .verify_token
            .as_deref()
            .ok_or_else(|| needed("verifyToken"))?;
        let token = expanded.secret("token", &settings.token)?;
        let app_secret = expanded.secret("appSecret", app_secret)?;
        let verify_token = expanded.secret("verifyToken", verify_token)?;
        let address = settings.basics.api_url.as_deref().unwrap_or(ADDRESS);
        let (service, mut messages) = expanded.connect(address).await?;
        if let Ok(mut path) = messages.path_segments_mut() {
            path.pop_if_empty()
                .push(&settings.phone_number_id)
                .push("messages");
        }
        let (sender, receiver) = channel(WAITING);
        Ok(Self {
            service,
            messages,
            token,
            template: settings.template.clone(),
            receipts: Receipts::new(settings.phone_number_id.clone(), &app_secret, &verify_token),
            sender,
            receiver: tokio::sync::Mutex::new(receiver),
            templates: Mutex::default(),
        })
    }

    async fn send_notice(&self, notice: &Notice, to: &str) -> Result<MessageRef, ChannelError> {
        let words = template::words(notice);
        match self.post(to, None, message::of(notice)).await {
            Ok(id) => {
                self.templates(|templates| templates.sent(&id, words));
                Ok(reference(&id, to))
            }
            Err(Unsent::Window) => {
                let id = self.send_template(to, &words).await?;
                Ok(reference(&id, to))
            }
            Err(Unsent::Failed(error)) => Err(error),
        }
    }

    /// Tells what became of an ask; a message that waits still stands as it was sent.
    async fn close_notice(&self, at: &MessageRef, notice: &Notice) -> Result<(), ChannelError> {
        if !matches!(notice.standing, Standing::Closed(_)) {
            return Ok(());
        }
        let (Some(id), Some(to)) = (at.0["id"].as_str(), at.0["to"].as_str()) else {
            return Err(self.service.refused("", "the message is not known any more"));
        };
        self.text(to, Some(id), message::of(notice)).await
    }

    async fn text(&self, to: &str, quoted: Option<&str>, message: Value) -> Result<(), ChannelError> {
        match self.post(to, quoted, message).await {
            Ok(_id) => Ok(()),
            Err(Unsent::Window) => Err(self.window_closed()),
            Err(Unsent::Failed(error)) => Err(error),
        }
    }

    /// Sends the template in the place of a message that the window kept back.
    async fn send_template(&self, to: &str, words: &str) -> Result<String, ChannelError> {
        let Some(name) = &self.template else {
            return Err(self.window_closed());
        };
        match self.post(to, None, template::message(name, words)).await {
            Ok(id) => Ok(id),
            Err(Unsent::Window) => Err(self.window_closed()),
            Err(Unsent::Failed(error)) => Err(error),
        }
    }

    async fn post(&self, to: &str, quoted: Option<&str>, mut body: Value) -> Result<String, Unsent> {
        body["messaging_product"] = json!("whatsapp");
        body["recipient_type"] = json!("individual");
        body["to"] = json!(to);
        if let Some(quoted) = quoted {
            body["context"] = json!({ "message_id": quoted });
        }
        let request = self.service.post(self.messages.clone(), &body);
        let request = request.header(AUTHORIZATION, format!("Bearer {}", self.token));
        let answer = self.service.send(request, REQUEST_LIMIT, ANSWER_LIMIT).await;
        let answer = answer.map_err(Unsent::Failed)?;
        let envelope = serde_json::from_slice::<Envelope>(&answer.body);
        if !answer.status.is_success() {
            let trouble = envelope.unwrap_or_default().error;
            return Err(match trouble {
                Some(Trouble {
                    code: WINDOW_CLOSED, ..
                }) => Unsent::Window,
                Some(Trouble { code, message }) => Unsent::Failed(match code {
                    // Too many messages: from the app, from the number, to this person.
                    4 | 80_007 | 130_429 | 131_048 | 131_056 => self.service.too_fast(answer.retry_after),
                    _ => self.service.failed(&answer, &message, advice(code)),
                }),
                None => Unsent::Failed(self.service.failed(&answer, "", "")),
            });
        }
        let sent = envelope
            .ok()
            .and_then(|envelope| envelope.messages.into_iter().next());
        let sent =
            sent.ok_or_else(|| Unsent::Failed(self.service.unreadable("it names no message that was sent")))?;
        Ok(sent.id)
    }

    fn window_closed(&self) -> ChannelError {
        self.service.refused(
            "",
            "more than 24 hours passed since this person wrote: they write anything to the number, or `template` names \
             an approved template",
        )
    }

    async fn next(&self) -> Result<Heard, ChannelError> {
        let mut receiver = self.receiver.lock().await;
        loop {
            // The channel is open as long as this is: it holds the other end.
            let Some(incoming) = receiver.recv().await else {
                return Err(self.service.unreadable("nothing more is received"));
            };
            match incoming {
                Incoming::Said(mut heard) => {
                    self.original(&mut heard);
                    return Ok(heard);
                }
                Incoming::Failed { id, to, code, title } if code == WINDOW_CLOSED => {
                    tracing::debug!("a message was kept back by the window: {title}");
                    let words = self.templates(|templates| templates.words(&id));
                    let template = self.send_template(&to, &words).await?;
                    self.templates(|templates| templates.replaced(&id, template));
                }
                Incoming::Failed { code, title, .. } => {
                    return Err(self.service.refused(&title, advice(code)));
                }
            }
        }
    }

    /// Makes a reply to a template one to the message that it stands for.
    fn original(&self, heard: &mut Heard) {
        if let About::Message(MessageRef(at)) = &mut heard.about
            && let Some(id) = at["id"].as_str()
            && let Some(original) = self.templates(|templates| templates.original(id))
        {
            at["id"] = json!(original);
        }
    }

    fn templates<T>(&self, with: impl FnOnce(&mut Templates) -> T) -> T {
        let mut templates = self
            .templates
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        with(&mut templates)
    }

    fn take(&self, request: HookRequest) -> HookReply {
        match request {
            HookRequest::Verification(query) => self.receipts.verified(&query),
            HookRequest::Delivery { signature, body } => {
                self.receipts.delivered(signature.as_deref(), &body, &self.sender)
            }
        }
    }
}

/// Writes what is kept of a message.
fn reference(id: &str, to: &str) -> MessageRef {
    MessageRef(json!({ "id": id, "to": to }))
}

/// Says what to do about an error of the Cloud API.
fn advice(code: i64) -> &'static str {
    match code {
        0 | 190 => "the token is not accepted or has expired: make a permanent one for a system user",
        10 | 200 => "the token lacks the permission `whatsapp_business_messaging`",
        100 => "`phoneNumberId` may be wrong",
        131_026 | 131_030 => "the number is not on WhatsApp, or is not among the recipients of a test number",
        132_000..=132_015 => "the template must be approved, in English, with one variable in its body",
        _ => "",
    }
}

impl Channel for Whatsapp {
    fn name(&self) -> ChannelName {
        ChannelName::Whatsapp
    }

    fn fits(&self, card: &Card) -> Result<(), Unsupported> {
        message::fits(card)
    }

    fn send<'a>(&'a self, notice: &'a Notice, to: &'a str) -> Pending<'a, MessageRef> {
        Box::pin(self.send_notice(notice, to))
    }

    fn outcome_notice(&self) -> OutcomeNotice {
        OutcomeNotice::OwnMessage
    }

    fn update<'a>(&'a self, at: &'a MessageRef, notice: &'a Notice) -> Pending<'a, ()> {
        Box::pin(self.close_notice(at, notice))
    }

    fn heard(&self) -> Pending<'_, Heard> {
        Box::pin(self.next())
    }

    fn reply<'a>(&'a self, to: &'a ReplyTo, text: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let person = to.0["to"].as_str().unwrap_or_default();
            self.text(person, to.0["id"].as_str(), message::of_reply(text))
                .await
        })
    }

    fn hook(&self, request: HookRequest) -> HookReply {
        self.take(request)
    }
}

#[cfg(test)]
mod tests;
