//! The one place where a channel is made of its settings.

use std::sync::Arc;

use super::channel::Channel;
use super::ntfy::Ntfy;
use super::opening::OpenError;
use super::telegram::Telegram;
use super::webhook::Webhook;
use super::whatsapp::Whatsapp;
use crate::config::{ChannelName, ChannelSettings, Environment};
use crate::report::Hint as _;

/// Opens a channel that is configured; an error says what is wrong with its settings, without a token.
pub(super) async fn open(
    channel: ChannelName,
    settings: &ChannelSettings,
    environment: &Environment,
) -> Result<Arc<dyn Channel>, String> {
    match channel {
        ChannelName::Webhook => match &settings.webhook {
            Some(settings) => Ok(Arc::new(Webhook::open(settings, environment).await?)),
            None => Err(not_configured(channel)),
        },
        ChannelName::Telegram => match &settings.telegram {
            Some(settings) => opened(Telegram::open(settings, environment).await),
            None => Err(not_configured(channel)),
        },
        ChannelName::Whatsapp => match &settings.whatsapp {
            Some(settings) => opened(Whatsapp::open(settings, environment).await),
            None => Err(not_configured(channel)),
        },
        ChannelName::Ntfy => match &settings.ntfy {
            Some(settings) => opened(Ntfy::open(settings, environment).await),
            None => Err(not_configured(channel)),
        },
        ChannelName::Slack => Err(format!("this pml was built without `{channel}`")),
    }
}

/// Takes a channel, or the words of what is wrong with its settings.
fn opened(channel: Result<impl Channel + 'static, OpenError>) -> Result<Arc<dyn Channel>, String> {
    match channel {
        Ok(channel) => Ok(Arc::new(channel)),
        // The state of a channel is one line.
        Err(error) => Err(match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        }),
    }
}

fn not_configured(channel: ChannelName) -> String {
    format!("`{channel}` is not configured")
}
