//! The methods of the Bot API that pml calls, and what their errors mean.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::keyboard::Keyboard;
use super::message::Message;
use super::update::{Place, Received};
use super::without_previews;
use crate::channels::channel::ChannelError;
use crate::channels::open_error::OpenError;
use crate::channels::service::{ANSWER_LIMIT, REQUEST_LIMIT, Service, ServiceAnswer, Settings};
use crate::config::{ChannelName, Environment, TelegramSettings};

/// The service itself.
const ADDRESS: &str = "https://api.telegram.org";

/// How long Telegram holds a poll; longer ones are cut by boxes on the way.
const HELD: Duration = Duration::from_secs(50);

/// The longest poll: what is held, and the way.
const POLL_LIMIT: Duration = Duration::from_secs(70);

/// A poll brings at most a hundred updates, each with a message and the one it replies to.
const UPDATES_LIMIT: usize = 8 * 1024 * 1024;

/// The Bot API for one token.
pub(super) struct Api {
    service: Service,
    base: Url,
}

/// What Telegram wraps each result in.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error_code: u16,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
}

impl Api {
    /// Expands the settings; nothing is sent yet.
    pub(super) async fn open(
        settings: &TelegramSettings,
        environment: &Environment,
    ) -> Result<Self, OpenError> {
        let mut expanded = Settings::of(ChannelName::Telegram, environment);
        let token = expanded.secret("token", &settings.token)?;
        let address = settings.basics.api_url.as_deref().unwrap_or(ADDRESS);
        let (service, mut base) = expanded.connect(address).await?;
        // Written as a part of the path, so that no token leads elsewhere.
        if let Ok(mut path) = base.path_segments_mut() {
            path.pop_if_empty().push(&format!("bot{token}"));
        }
        Ok(Self { service, base })
    }

    /// Asks who the bot is, which fails where the token is not one.
    pub(super) async fn check_token(&self) -> Result<(), ChannelError> {
        self.call("getMe", &json!({})).await.map(drop)
    }

    /// Waits for updates from `next` on.
    pub(super) async fn updates(&self, next: i64) -> Result<Vec<Received>, ChannelError> {
        let body = json!({
            "offset": next,
            "timeout": HELD.as_secs(),
            "allowed_updates": ["message", "callback_query"],
        });
        let result = self
            .call_within("getUpdates", &body, POLL_LIMIT, UPDATES_LIMIT)
            .await?;
        let Value::Array(updates) = result else {
            return Err(self.service.unreadable("its updates are no list"));
        };
        let count = updates.len();
        let received: Vec<Received> = updates.into_iter().filter_map(Received::read).collect();
        if received.is_empty() && count > 0 {
            return Err(self.service.unreadable("its updates have no ids"));
        }
        Ok(received)
    }

    /// Sends a message with buttons, perhaps as a reply to another one.
    pub(super) async fn send_message(
        &self,
        chat: i64,
        message: &Message,
        keyboard: &Keyboard,
        replied: Option<i64>,
    ) -> Result<Place, ChannelError> {
        let mut body = without_previews(json!({
            "chat_id": chat,
            "text": message.text,
            "entities": message.entities,
        }));
        if !keyboard.is_empty() {
            body["reply_markup"] = keyboard.to_json();
        }
        if let Some(replied) = replied {
            body["reply_parameters"] = json!({ "message_id": replied, "allow_sending_without_reply": true });
        }
        let result = self.call("sendMessage", &body).await?;
        let id = result["message_id"].as_i64();
        let id = id.ok_or_else(|| self.service.unreadable("it names no message that was sent"))?;
        Ok(Place { chat, message: id })
    }

    /// Replaces a message and its buttons.
    pub(super) async fn edit_message(
        &self,
        place: Place,
        message: &Message,
        keyboard: &Keyboard,
    ) -> Result<(), ChannelError> {
        let body = without_previews(json!({
            "chat_id": place.chat,
            "message_id": place.message,
            "text": message.text,
            "entities": message.entities,
            "reply_markup": keyboard.to_json(),
        }));
        self.edit("editMessageText", &body).await
    }

    /// Replaces the buttons of a message.
    pub(super) async fn edit_keyboard(&self, place: Place, keyboard: &Keyboard) -> Result<(), ChannelError> {
        let body = json!({
            "chat_id": place.chat,
            "message_id": place.message,
            "reply_markup": keyboard.to_json(),
        });
        self.edit("editMessageReplyMarkup", &body).await
    }

    /// Ends the waiting of a button, with a text beside it.
    pub(super) async fn answer_callback(&self, id: &str, text: &str) -> Result<(), ChannelError> {
        let body = json!({ "callback_query_id": id, "text": text });
        self.call("answerCallbackQuery", &body).await.map(drop)
    }

    async fn edit(&self, method: &'static str, body: &Value) -> Result<(), ChannelError> {
        match self.call(method, body).await {
            // It stands there already, which is what was wanted.
            Err(ChannelError::Refused { reason, .. }) if reason.contains("message is not modified") => Ok(()),
            result => result.map(drop),
        }
    }

    async fn call(&self, method: &'static str, body: &Value) -> Result<Value, ChannelError> {
        self.call_within(method, body, REQUEST_LIMIT, ANSWER_LIMIT).await
    }

    async fn call_within(
        &self,
        method: &'static str,
        body: &Value,
        limit: Duration,
        most: usize,
    ) -> Result<Value, ChannelError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(method);
        }
        let request = self.service.post(url, body);
        let answer = self.service.send(request, limit, most).await?;
        match serde_json::from_slice::<Envelope>(&answer.body) {
            Ok(envelope) if envelope.ok => Ok(envelope.result),
            Ok(envelope) => Err(self.error(&answer, &envelope)),
            Err(_malformed) if !answer.status.is_success() => Err(self.service.failed(&answer, "", "")),
            Err(_malformed) => Err(self.service.unreadable("its answer is no JSON of the Bot API")),
        }
    }

    /// Tells what an error of Telegram means.
    fn error(&self, answer: &ServiceAnswer, envelope: &Envelope) -> ChannelError {
        let said = envelope.description.as_str();
        let advise = |advice: &str| self.service.refused(said, advice);
        match envelope.error_code {
            409 if said.contains("webhook") => advise(
                "another program receives for this bot by a webhook, which pml leaves alone: make a bot of its own with \
                 @BotFather",
            ),
            409 => self.service.contested(),
            429 => {
                let after = envelope.parameters.retry_after.map(Duration::from_secs);
                self.service.too_fast(after.or(answer.retry_after))
            }
            401 | 404 => advise("the token is that of no bot: @BotFather tells the right one"),
            403 => advise("the person must write /start to the bot first, and not block it"),
            400 if said.contains("chat not found") => advise("the person must write /start to the bot first"),
            _ => self.service.failed(answer, said, ""),
        }
    }

    /// Makes an error of a person whose id is none of Telegram.
    pub(super) fn no_person(&self) -> ChannelError {
        self.service.refused(
            "",
            "a person is a number here; the bot tells it to whom it does not know",
        )
    }

    /// Makes an error of a message that was not kept by this channel.
    pub(super) fn unknown_message(&self) -> ChannelError {
        self.service.refused("", "the message is not known any more")
    }
}
