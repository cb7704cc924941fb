//! The Web API: the few methods that pml needs, with bounded waiting, bounded answers, and no token in any error.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, sleep_until};

use super::blocks::Message;
use super::token::Token;
use super::{TITLE, words};
use crate::channels::channel::ChannelError;
use crate::channels::open_error::OpenError;
use crate::channels::service::Settings;
use crate::config::{ChannelName, Environment, SlackSettings};
use crate::http_client::{self, is_loopback, root};
use crate::protocol::Secrets;

/// Where Slack answers.
const USUAL: &str = "https://slack.com/api";

/// How long a request may take, its waiting for a turn included.
const LIMIT: Duration = Duration::from_secs(20);

/// The longest answer: a posted message comes back with its blocks.
const BODY: usize = 1024 * 1024;

/// One message for each second of a conversation is what Slack promises to take.
const BETWEEN_MESSAGES: Duration = Duration::from_secs(1);

/// How long a message waits for its turn before the caller is told to come back.
const TURN: Duration = Duration::from_secs(10);

/// How long to wait where Slack says that it is too fast and not for how long.
const WAIT: Duration = Duration::from_secs(30);

/// Slack never asks for longer waits; a wrong header must not silence a channel for days.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// How many conversations are remembered: more than people who can be asked.
const CONVERSATIONS: usize = 1_000;

/// A method of the Web API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Method {
    /// Tells whose token it is.
    AuthTest,
    /// Gives the address of a socket.
    ConnectionsOpen,
    /// Opens the conversation with a person.
    ConversationsOpen,
    /// Sends a message.
    PostMessage,
    /// Replaces the content of a message.
    Update,
    /// Shows a message to one person, until they reload.
    PostEphemeral,
    /// Opens a form.
    ViewsOpen,
}

impl Method {
    fn token(self) -> Token {
        match self {
            Self::ConnectionsOpen => Token::App,
            Self::AuthTest
            | Self::ConversationsOpen
            | Self::PostMessage
            | Self::Update
            | Self::PostEphemeral
            | Self::ViewsOpen => Token::Bot,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::AuthTest => "auth.test",
            Self::ConnectionsOpen => "apps.connections.open",
            Self::ConversationsOpen => "conversations.open",
            Self::PostMessage => "chat.postMessage",
            Self::Update => "chat.update",
            Self::PostEphemeral => "chat.postEphemeral",
            Self::ViewsOpen => "views.open",
        }
    }
}

/// The Web API with the tokens of one app. Has no `Debug`.
pub(super) struct Api {
    base: Url,
    app: HeaderValue,
    bot: HeaderValue,
    secrets: Secrets,
    environment: Environment,
    client: OnceCell<Client>,
    /// Whether the token of the bot was looked at.
    checked: OnceCell<()>,
    /// Until when Slack wants no request of a method.
    waits: Mutex<HashMap<Method, Instant>>,
    /// When the next message may go into a conversation.
    turns: Mutex<HashMap<String, Instant>>,
    /// The conversation with each person.
    conversations: Mutex<HashMap<String, String>>,
}

impl Api {
    /// Expands the tokens and takes the address; nothing is sent.
    pub(super) fn new(settings: &SlackSettings, environment: &Environment) -> Result<Self, OpenError> {
        let channel = ChannelName::Slack;
        let mut expanded = Settings::of(channel, environment);
        let mut header = |key: &'static str, written: &str| {
            let token = expanded.secret(key, written)?;
            let is_token = token.bytes().all(|letter| letter.is_ascii_graphic());
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value = value
                .ok()
                .filter(|_| is_token)
                .ok_or(OpenError::NoToken { channel, key })?;
            value.set_sensitive(true);
            Ok(value)
        };
        let app = header("appToken", &settings.app_token)?;
        let bot = header("botToken", &settings.bot_token)?;
        let address = settings.basics.api_url.as_deref().unwrap_or(USUAL);
        let base = expanded.address(address.trim_end_matches('/'))?;
        Ok(Self {
            app,
            bot,
            secrets: expanded.secrets(),
            base,
            environment: environment.clone(),
            client: OnceCell::new(),
            checked: OnceCell::new(),
            waits: Mutex::default(),
            turns: Mutex::default(),
            conversations: Mutex::default(),
        })
    }

    /// Returns an error of the connection, without tokens and addresses.
    pub(super) fn unreachable(&self, error: reqwest::Error) -> ChannelError {
        ChannelError::Unreachable {
            channel: TITLE,
            reason: root(error, &self.secrets),
        }
    }

    /// Looks at the token of the bot once, and gets the address of a socket, which can be used once.
    pub(super) async fn socket_address(&self) -> Result<Url, ChannelError> {
        let check = || async { self.call(Method::AuthTest, None).await.map(drop) };
        self.checked.get_or_try_init(check).await?;
        let answer = self.call(Method::ConnectionsOpen, None).await?;
        let address = answer["url"].as_str().unwrap_or_default();
        // The same server by its other name: the connection begins as a request of HTTP.
        let http = match address.split_once("://") {
            Some(("wss", rest)) => format!("https://{rest}"),
            Some(("ws", rest)) => format!("http://{rest}"),
            _ => String::new(),
        };
        Url::parse(&http)
            .ok()
            .filter(|url| url.scheme() == "https" || is_loopback(url))
            .ok_or_else(|| unreadable("the address of its socket is none"))
    }

    /// Finds the conversation with a person.
    pub(super) async fn conversation(&self, person: &str) -> Result<String, ChannelError> {
        if let Some(known) = self.conversations.lock().await.get(person) {
            return Ok(known.clone());
        }
        let answer = self
            .call(Method::ConversationsOpen, Some(json!({ "users": person })))
            .await?;
        let id = answer.pointer("/channel/id").and_then(Value::as_str);
        let id = id.ok_or_else(|| unreadable("it names no conversation"))?;
        let mut conversations = self.conversations.lock().await;
        if conversations.len() >= CONVERSATIONS {
            conversations.clear();
        }
        conversations.insert(person.to_owned(), id.to_owned());
        Ok(id.to_owned())
    }

    /// Sends a message; returns where it stands.
    pub(super) async fn post(
        &self,
        conversation: &str,
        message: Message,
    ) -> Result<(String, String), ChannelError> {
        self.turn(conversation).await?;
        let body = json!({
            "channel": conversation, "text": message.text, "blocks": message.blocks,
            "parse": "none", "link_names": false, "mrkdwn": false,
            "unfurl_links": false, "unfurl_media": false,
        });
        let answer = self.call(Method::PostMessage, Some(body)).await?;
        let channel = answer["channel"].as_str().unwrap_or(conversation);
        let ts = answer["ts"].as_str();
        let ts = ts.ok_or_else(|| unreadable("it does not say where the message stands"))?;
        Ok((channel.to_owned(), ts.to_owned()))
    }

    /// Replaces the content of a message.
    pub(super) async fn update(&self, channel: &str, ts: &str, message: Message) -> Result<(), ChannelError> {
        let body = json!({
            "channel": channel, "ts": ts, "text": message.text, "blocks": message.blocks,
            "parse": "none", "link_names": false,
        });
        self.call(Method::Update, Some(body)).await.map(drop)
    }

    /// Tells one person something.
    pub(super) async fn tell(&self, channel: &str, person: &str, text: &str) -> Result<(), ChannelError> {
        let message = Message::words(text);
        let body = json!({
            "channel": channel, "user": person, "text": message.text, "blocks": message.blocks,
            "parse": "none", "link_names": false,
        });
        self.call(Method::PostEphemeral, Some(body)).await.map(drop)
    }

    /// Opens a form.
    pub(super) async fn open_form(&self, trigger: &str, view: Value) -> Result<(), ChannelError> {
        let body = json!({ "trigger_id": trigger, "view": view });
        self.call(Method::ViewsOpen, Some(body)).await.map(drop)
    }

    /// Waits until a conversation takes another message.
    async fn turn(&self, conversation: &str) -> Result<(), ChannelError> {
        let now = Instant::now();
        let turn = {
            let mut turns = self.turns.lock().await;
            turns.retain(|_, turn| *turn > now);
            let turn = turns.get(conversation).copied().unwrap_or(now);
            if turn > now + TURN {
                return Err(too_fast(turn - now));
            }
            turns.insert(conversation.to_owned(), turn + BETWEEN_MESSAGES);
            turn
        };
        sleep_until(turn).await;
        Ok(())
    }

    /// Forgets when messages were sent.
    #[cfg(test)]
    pub(super) async fn forget_turns(&self) {
        self.turns.lock().await.clear();
    }

    async fn call(&self, method: Method, body: Option<Value>) -> Result<Value, ChannelError> {
        let now = Instant::now();
        if let Some(until) = self.waits.lock().await.get(&method)
            && *until > now
        {
            return Err(too_fast(*until - now));
        }
        let called = tokio::time::timeout(LIMIT, self.call_slowly(method, body)).await;
        let answer = called.unwrap_or(Err(ChannelError::Silent { channel: TITLE }));
        if let Err(ChannelError::TooFast { after, .. }) = answer {
            self.waits.lock().await.insert(method, Instant::now() + after);
        }
        answer
    }

    async fn call_slowly(&self, method: Method, body: Option<Value>) -> Result<Value, ChannelError> {
        let client = self
            .client
            .get_or_try_init(|| self.client_for(&self.base))
            .await?;
        let mut url = self.base.clone();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), method.name());
        url.set_path(&path);
        let token = match method.token() {
            Token::App => &self.app,
            Token::Bot => &self.bot,
        };
        let (kind, body) = match body {
            Some(body) => ("application/json; charset=utf-8", body.to_string()),
            None => ("application/x-www-form-urlencoded", String::new()),
        };
        let request = client
            .post(url)
            .header(AUTHORIZATION, token.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static(kind))
            .body(body);
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        self.answer(response, method.token()).await
    }

    async fn answer(&self, mut response: Response, token: Token) -> Result<Value, ChannelError> {
        let status = response.status();
        let after = response.headers().get(RETRY_AFTER).and_then(wait);
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(too_fast(after.unwrap_or(WAIT)));
        }
        if status.is_server_error() {
            return Err(ChannelError::Unreachable {
                channel: TITLE,
                reason: format!("it answers with status {}", status.as_u16()),
            });
        }
        if !status.is_success() {
            return Err(unreadable(&format!("status {}", status.as_u16())));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if body.len() + chunk.len() > BODY {
                return Err(unreadable("the answer is too long"));
            }
            body.extend_from_slice(&chunk);
        }
        let answer: Value =
            serde_json::from_slice(&body).map_err(|_malformed| unreadable("the answer is no JSON"))?;
        match (answer["ok"].as_bool(), answer["error"].as_str()) {
            (Some(true), _) => Ok(answer),
            (Some(false), Some("ratelimited" | "rate_limited")) => Err(too_fast(after.unwrap_or(WAIT))),
            (Some(false), Some(word)) => Err(words::refusal(word, answer["needed"].as_str(), token)),
            _ => Err(unreadable("the answer says neither yes nor no")),
        }
    }

    /// Makes ready to speak to an address.
    pub(super) async fn client_for(&self, url: &Url) -> Result<Client, ChannelError> {
        http_client::to(url, &self.environment)
            .await
            .map_err(|error| ChannelError::Unreachable {
                channel: TITLE,
                reason: error.reason(&self.secrets),
            })
    }
}

/// Reads how long Slack wants pml to wait.
fn wait(value: &HeaderValue) -> Option<Duration> {
    let seconds: u64 = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.max(1)).min(LONGEST_WAIT))
}

fn too_fast(after: Duration) -> ChannelError {
    // Counted in whole seconds, which is how it is told.
    let after = Duration::from_secs(after.as_secs() + u64::from(after.subsec_nanos() > 0));
    ChannelError::TooFast {
        channel: TITLE,
        after,
    }
}

pub(super) fn unreadable(reason: &str) -> ChannelError {
    ChannelError::Unreadable {
        channel: TITLE,
        reason: reason.to_owned(),
    }
}
