//! The one place where a channel is made of its settings.

use std::sync::Arc;

use super::channel::Channel;
use super::ntfy::Ntfy;
use super::opening::OpenError;
use super::slack::Slack;
use super::telegram::Telegram;
use super::webhook::Webhook;
use super::whatsapp::Whatsapp;
use crate::config::{ChannelName, ChannelSettings, Environment};

/// Opens a channel that is configured; an error says what is wrong with its settings, without a token.
pub(super) async fn open(
    channel: ChannelName,
    settings: &ChannelSettings,
    environment: &Environment,
) -> Result<Arc<dyn Channel>, String> {
    let missing = || format!("`{channel}` is not configured");
    let said = |error: OpenError| error.to_string();
    Ok(match channel {
        ChannelName::Slack => {
            let settings = settings.slack.as_ref().ok_or_else(missing)?;
            let slack = Slack::open(settings, environment).map_err(|error| error.to_string())?;
            Arc::new(slack)
        }
        ChannelName::Telegram => {
            let settings = settings.telegram.as_ref().ok_or_else(missing)?;
            Arc::new(Telegram::open(settings, environment).await.map_err(said)?)
        }
        ChannelName::Whatsapp => {
            let settings = settings.whatsapp.as_ref().ok_or_else(missing)?;
            Arc::new(Whatsapp::open(settings, environment).await.map_err(said)?)
        }
        ChannelName::Ntfy => {
            let settings = settings.ntfy.as_ref().ok_or_else(missing)?;
            Arc::new(Ntfy::open(settings, environment).await.map_err(said)?)
        }
        ChannelName::Webhook => {
            let settings = settings.webhook.as_ref().ok_or_else(missing)?;
            Arc::new(Webhook::open(settings, environment).await?)
        }
    })
}
