//! The one place where a channel is made of its settings.

use std::pin::Pin;
use std::sync::Arc;

use super::channel::Channel;
use super::ntfy::Ntfy;
use super::open_error::OpenError;
use super::slack::Slack;
use super::telegram::Telegram;
use super::webhook::Webhook;
use super::whatsapp::Whatsapp;
use crate::config::{ChannelName, ChannelSettings, Environment};
use crate::report::Hint as _;

/// A channel that is being opened.
pub(super) type PendingChannel = Pin<Box<dyn Future<Output = Result<Arc<dyn Channel>, String>> + Send>>;

/// What opens a channel; tests bring their own.
pub(super) type Opener =
    Arc<dyn Fn(ChannelName, ChannelSettings, Environment) -> PendingChannel + Send + Sync>;

/// Returns what opens the channels of services.
pub(super) fn opener() -> Opener {
    Arc::new(|channel, settings, environment| {
        Box::pin(async move {
            let opened = open(channel, &settings, &environment).await;
            // The state of a channel is one line.
            opened.map_err(|error| match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            })
        })
    })
}

/// Opens a channel that is configured; an error says what is wrong with its settings, without a token.
async fn open(
    channel: ChannelName,
    settings: &ChannelSettings,
    environment: &Environment,
) -> Result<Arc<dyn Channel>, OpenError> {
    let missing = || OpenError::NotConfigured { channel };
    Ok(match channel {
        ChannelName::Slack => {
            let settings = settings.slack.as_ref().ok_or_else(missing)?;
            Arc::new(Slack::open(settings, environment)?)
        }
        ChannelName::Telegram => {
            let settings = settings.telegram.as_ref().ok_or_else(missing)?;
            Arc::new(Telegram::open(settings, environment).await?)
        }
        ChannelName::Whatsapp => {
            let settings = settings.whatsapp.as_ref().ok_or_else(missing)?;
            Arc::new(Whatsapp::open(settings, environment).await?)
        }
        ChannelName::Ntfy => {
            let settings = settings.ntfy.as_ref().ok_or_else(missing)?;
            Arc::new(Ntfy::open(settings, environment).await?)
        }
        ChannelName::Webhook => {
            let settings = settings.webhook.as_ref().ok_or_else(missing)?;
            Arc::new(Webhook::open(settings, environment).await?)
        }
    })
}
