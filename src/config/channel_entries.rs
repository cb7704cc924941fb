//! The entries of `channels`, as they are written in the user's file.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

use super::{ChannelName, Permission};

/// The chat services on which you are asked.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the keys of `channels`"
)]
pub(super) struct ChannelsEntry {
    /// Slack, by Socket Mode: no public address is needed.
    pub(super) slack: Option<SlackEntry>,
    /// Telegram, by long polling: no public address is needed.
    pub(super) telegram: Option<TelegramEntry>,
    /// WhatsApp, by the Cloud API; answers come to `/hooks/whatsapp` of `pml serve` behind your own tunnel.
    pub(super) whatsapp: Option<WhatsappEntry>,
    /// A server of ntfy: notifications with buttons.
    pub(super) ntfy: Option<NtfyEntry>,
    /// An address that gets each ask as signed JSON.
    pub(super) webhook: Option<WebhookEntry>,
    /// Which ask goes where.
    pub(super) route: RouteEntry,
}

/// What the entries of channels with people of their own have in common.
pub(super) struct BasicsEntry<'a> {
    pub(super) people: &'a [PersonEntry],
    pub(super) may: Option<&'a [Permission]>,
    pub(super) details: bool,
    pub(super) api_url: Option<&'a str>,
}

/// Declares the entry of a channel with people of its own: its members, and those that every such channel has.
///
/// A struct that is flattened into the others would do, but that and refusing unknown members exclude one another.
macro_rules! entry_with_people {
    (
        $(#[$about:meta])*
        $name:ident, $expecting:literal, $people:literal {
            $($(#[$about_member:meta])* $member:ident: $kind:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, expecting = $expecting)]
        pub(super) struct $name {
            $($(#[$about_member])* pub(super) $member: $kind,)*
            #[doc = $people]
            #[serde(default)]
            #[schemars(length(max = 64))]
            people: Vec<PersonEntry>,
            /// What they may do; `["answer", "approve", "refuse"]` by default.
            may: Option<Vec<Permission>>,
            /// Whether the arguments of calls are sent as well; `false` by default.
            #[serde(default)]
            details: bool,
            /// Another address of the service: `https://`, or on this machine.
            api_url: Option<String>,
        }

        impl $name {
            /// Returns what every such entry has.
            pub(super) fn basics(&self) -> BasicsEntry<'_> {
                BasicsEntry {
                    people: &self.people,
                    may: self.may.as_deref(),
                    details: self.details,
                    api_url: self.api_url.as_deref(),
                }
            }
        }
    };
}

entry_with_people! {
    /// A bot of Slack.
    SlackEntry,
    "an object with the keys of `slack`",
    "The ids of the people who are asked and heard, such as `U0123`; none by default." {
        /// The token of the app, `xapp-…`. `${VAR}` expands.
        app_token: String,
        /// The token of the bot, `xoxb-…`. `${VAR}` expands.
        bot_token: String,
    }
}

entry_with_people! {
    /// A bot of Telegram.
    TelegramEntry,
    "an object with the keys of `telegram`",
    "The ids of the people who are asked and heard, such as `412587349`; none by default." {
        /// The token of the bot. `${VAR}` expands.
        token: String,
    }
}

entry_with_people! {
    /// A number of WhatsApp.
    WhatsappEntry,
    "an object with the keys of `whatsapp`",
    "The numbers of the people who are asked and heard, such as `41790000000`; none by default." {
        /// The token of the app. `${VAR}` expands.
        token: String,
        /// The id of the number that messages come from.
        phone_number_id: PersonEntry,
        /// The secret of the app, which signs what comes in; without it no answer can come back. `${VAR}` expands.
        app_secret: Option<String>,
        /// A word of your choice by which the webhook is verified; without it no answer can come back. `${VAR}` expands.
        verify_token: Option<String>,
        /// The approved template that is sent where the window of 24 hours is closed.
        template: Option<String>,
    }
}

/// A topic of ntfy; who knows it is asked and heard.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with the keys of `ntfy`"
)]
pub(super) struct NtfyEntry {
    /// The address of the server: `https://`, or on this machine.
    pub(super) server: String,
    /// The topic that is published to; it is a password. `${VAR}` expands.
    pub(super) topic: String,
    /// The token of the server, if it wants one. `${VAR}` expands.
    pub(super) token: Option<String>,
    /// What may be done there; `["answer", "approve", "refuse"]` by default.
    pub(super) may: Option<Vec<Permission>>,
    /// Whether the arguments of calls are sent as well; `false` by default.
    #[serde(default)]
    pub(super) details: bool,
}

/// An address that gets each ask as signed JSON; answers come by the API of `pml serve`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with the keys of `webhook`"
)]
pub(super) struct WebhookEntry {
    /// The address: `https://`, or on this machine.
    pub(super) url: String,
    /// The secret that signs what is sent. `${VAR}` expands.
    pub(super) secret: String,
    /// Whether the arguments of calls are sent as well; `false` by default.
    #[serde(default)]
    pub(super) details: bool,
}

/// The opaque id of a person: a text, or a number as services write them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "an id: a text or a whole number")]
pub(super) enum PersonEntry {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
}

impl PersonEntry {
    /// Returns the id as a text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

impl JsonSchema for PersonEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PersonEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The opaque id by which a service names a person or a number, never a name that is shown.",
            "anyOf": [
                { "type": "string", "pattern": "^[A-Za-z0-9_+.@=-]{1,80}$" },
                { "type": "integer", "minimum": 0 },
            ],
        })
    }
}

/// Which ask goes where, by `default`, `kind:…` and `project:…`; read line by line, so that each has its own complaint.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RouteEntry(pub(super) BTreeMap<String, Value>);

impl JsonSchema for RouteEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RouteEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = ChannelName::ALL.map(ChannelName::key);
        let channels = |description: &str| {
            serde_json::json!({
                "type": "array",
                "maxItems": names.len(),
                "items": { "type": "string", "enum": names },
                "description": description,
            })
        };
        json_schema!({
            "type": "object",
            "description": "Which ask goes where. A line for the project counts before one for the kind, and that before `default`; without any, an ask goes to every channel.",
            "properties": {
                "default": channels("Where an ask goes that no other line names."),
                "kind:approval": channels("Where decisions go."),
                "kind:question": channels("Where questions of a model go."),
                "quiet": {
                    "type": "string",
                    "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$",
                    "description": "When nothing is sent, in local time; what comes meanwhile is sent at its end.",
                    "examples": ["22:00-07:00"],
                },
                "escalate": {
                    "type": "object",
                    "description": "Where an ask goes as well that has no answer after a while.",
                    "required": ["after", "to"],
                    "additionalProperties": false,
                    "properties": {
                        "after": {
                            "type": "string",
                            "pattern": "^[1-9][0-9]{0,5}[smh]$",
                            "description": "How long it waits before.",
                            "examples": ["10m"],
                        },
                        "to": channels("The channels."),
                    },
                },
            },
            "patternProperties": { "^project:(~|/)": channels("Where asks of this project go.") },
            "additionalProperties": false,
        })
    }
}
