//! The chat services on which the person is asked; from the user's own file.
//!
//! Tokens stay as they are written, `${VAR}` unexpanded: they are expanded where a channel is opened, in `pml serve`, so
//! that no other process of pml holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A chat service on which a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelName {
    /// Slack, by Socket Mode.
    Slack,
    /// Telegram, by long polling.
    Telegram,
    /// WhatsApp, by the Cloud API and a webhook.
    Whatsapp,
    /// A server of ntfy: notifications with buttons.
    Ntfy,
    /// An address that gets each card as signed JSON.
    Webhook,
}

impl ChannelName {
    /// Every channel.
    pub const ALL: [Self; 5] = [
        Self::Slack,
        Self::Telegram,
        Self::Whatsapp,
        Self::Ntfy,
        Self::Webhook,
    ];

    /// Returns the key of the channel in `channels`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Telegram => "telegram",
            Self::Whatsapp => "whatsapp",
            Self::Ntfy => "ntfy",
            Self::Webhook => "webhook",
        }
    }

    /// Returns the name as people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Slack => "Slack",
            Self::Telegram => "Telegram",
            Self::Whatsapp => "WhatsApp",
            Self::Ntfy => "ntfy",
            Self::Webhook => "the webhook",
        }
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.key())
    }
}

/// Says that a text names no channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no channel; there are slack, telegram, whatsapp, ntfy and webhook")]
pub struct NoSuchChannel(String);

impl FromStr for ChannelName {
    type Err = NoSuchChannel;

    fn from_str(text: &str) -> Result<Self, NoSuchChannel> {
        let found = Self::ALL.into_iter().find(|channel| channel.key() == text);
        found.ok_or_else(|| NoSuchChannel(crate::protocol::Shown::line(text).to_string()))
    }
}

/// What a person may do on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Answer questions.
    Answer,
    /// Approve what is shown, once.
    Approve,
    /// Say no.
    Refuse,
    /// Approve for the session.
    Session,
    /// Approve and write a rule.
    Always,
}

/// What every channel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelBasics {
    /// The people who are asked and heard, by the opaque ids of the service; an empty list asks no person.
    pub people: Vec<String>,
    /// What they may do.
    pub may: BTreeSet<Permission>,
    /// Whether arguments of calls leave this machine.
    pub details: Details,
    /// The address of the service, where it is another one than usual: https, or on this machine.
    pub api_url: Option<String>,
}

/// How much of a card is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Details {
    /// What a person must see to decide: the question, the tool, the command, the name of the project.
    #[default]
    Needed,
    /// The arguments of a call as well.
    All,
}

/// What Slack needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackSettings {
    /// What every channel has.
    pub basics: ChannelBasics,
    /// The token of the app, for Socket Mode; unexpanded.
    pub app_token: String,
    /// The token of the bot; unexpanded.
    pub bot_token: String,
}

/// What Telegram needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelegramSettings {
    /// What every channel has.
    pub basics: ChannelBasics,
    /// The token of the bot; unexpanded.
    pub token: String,
}

/// What WhatsApp needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatsappSettings {
    /// What every channel has.
    pub basics: ChannelBasics,
    /// The token of the app; unexpanded.
    pub token: String,
    /// The id of the number that messages come from.
    pub phone_number_id: String,
    /// The secret that signs what comes in; without it no answer could come back. Unexpanded.
    pub app_secret: Option<String>,
    /// The word by which the webhook is verified; without it no answer could come back. Unexpanded.
    pub verify_token: Option<String>,
    /// The approved template that is sent where the window of 24 hours is closed.
    pub template: Option<String>,
}

/// What ntfy needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NtfySettings {
    /// What every channel has; its people are those who know the topic.
    pub basics: ChannelBasics,
    /// The server.
    pub server: String,
    /// The topic that is published to; it is a password. Unexpanded.
    pub topic: String,
    /// The token of the server, if it wants one; unexpanded.
    pub token: Option<String>,
}

impl NtfySettings {
    /// The one whom a topic reaches: ntfy tells no people apart, so who knows the topic is this person.
    pub const PERSON: &'static str = "topic";
}

/// What a webhook needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// What every channel has.
    pub basics: ChannelBasics,
    /// The address that gets the cards.
    pub url: String,
    /// The secret that signs them; unexpanded.
    pub secret: String,
}

impl WebhookSettings {
    /// The one whom an address reaches.
    pub const PERSON: &'static str = "receiver";
}

/// The channels of the user, and which of them gets what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelSettings {
    /// Slack.
    pub slack: Option<SlackSettings>,
    /// Telegram.
    pub telegram: Option<TelegramSettings>,
    /// WhatsApp.
    pub whatsapp: Option<WhatsappSettings>,
    /// ntfy.
    pub ntfy: Option<NtfySettings>,
    /// The webhook.
    pub webhook: Option<WebhookSettings>,
    /// Which ask goes where.
    pub route: RouteSettings,
}

impl ChannelSettings {
    /// Returns what a channel has in common with others; `None` where it is not configured.
    #[must_use]
    pub fn basics(&self, channel: ChannelName) -> Option<&ChannelBasics> {
        match channel {
            ChannelName::Slack => self.slack.as_ref().map(|slack| &slack.basics),
            ChannelName::Telegram => self.telegram.as_ref().map(|telegram| &telegram.basics),
            ChannelName::Whatsapp => self.whatsapp.as_ref().map(|whatsapp| &whatsapp.basics),
            ChannelName::Ntfy => self.ntfy.as_ref().map(|ntfy| &ntfy.basics),
            ChannelName::Webhook => self.webhook.as_ref().map(|webhook| &webhook.basics),
        }
    }

    /// Returns the settings by which one channel is opened: those of the others, and what may change while it is open, are
    /// left out.
    #[must_use]
    pub fn without_people(&self, channel: ChannelName) -> Self {
        let own = |name: ChannelName| name == channel;
        let mut settings = Self {
            slack: self.slack.clone().filter(|_| own(ChannelName::Slack)),
            telegram: self.telegram.clone().filter(|_| own(ChannelName::Telegram)),
            whatsapp: self.whatsapp.clone().filter(|_| own(ChannelName::Whatsapp)),
            ntfy: self.ntfy.clone().filter(|_| own(ChannelName::Ntfy)),
            webhook: self.webhook.clone().filter(|_| own(ChannelName::Webhook)),
            route: RouteSettings::default(),
        };
        let basics = [
            settings.slack.as_mut().map(|slack| &mut slack.basics),
            settings.telegram.as_mut().map(|telegram| &mut telegram.basics),
            settings.whatsapp.as_mut().map(|whatsapp| &mut whatsapp.basics),
            settings.ntfy.as_mut().map(|ntfy| &mut ntfy.basics),
            settings.webhook.as_mut().map(|webhook| &mut webhook.basics),
        ];
        for basics in basics.into_iter().flatten() {
            basics.people.clear();
            basics.may.clear();
            basics.details = Details::default();
        }
        settings
    }

    /// Returns the channels that are configured, in the order of [`ChannelName::ALL`].
    pub fn configured(&self) -> impl Iterator<Item = ChannelName> + '_ {
        let known = ChannelName::ALL.into_iter();
        known.filter(|channel| self.basics(*channel).is_some())
    }
}

/// Which ask goes to which channels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteSettings {
    /// Where an ask goes that no other line names; `None` where the file says nothing: to every configured channel.
    pub default: Option<Vec<ChannelName>>,
    /// By kind of ask: `approval` or `question`.
    pub kinds: BTreeMap<AskKind, Vec<ChannelName>>,
    /// By directory of the project, `~` as it is written; the longest that fits counts, and before the kind.
    pub projects: BTreeMap<String, Vec<ChannelName>>,
    /// When nothing is sent; what comes meanwhile is sent at the end of it.
    pub quiet: Option<QuietHours>,
    /// Where an ask goes as well that has had no answer for a while.
    pub escalate: Option<Escalation>,
}

impl RouteSettings {
    /// Returns every channel that a line names.
    pub fn named(&self) -> impl Iterator<Item = ChannelName> + '_ {
        let lines = self.default.iter().chain(self.kinds.values());
        let lines = lines.chain(self.projects.values());
        let lines = lines.chain(self.escalate.iter().map(|escalation| &escalation.to));
        lines.flatten().copied()
    }
}

/// The kind of an ask, as routes name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskKind {
    /// A decision.
    Approval,
    /// Questions of a model.
    Question,
}

/// A part of each day in which nothing is sent, in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// Its first minute, counted from midnight.
    pub from: u16,
    /// The first minute after it; before `from` where it goes over midnight.
    pub to: u16,
}

/// Where an ask goes as well that has had no answer for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// How long it waits before.
    pub after: Duration,
    /// The channels.
    pub to: Vec<ChannelName>,
}
