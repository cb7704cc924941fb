//! The one place where a channel is made of its settings.

use std::sync::Arc;

use super::channel::Channel;
use super::slack::Slack;
use super::webhook::Webhook;
use crate::config::{ChannelName, ChannelSettings, Environment};

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
        ChannelName::Slack => match &settings.slack {
            Some(settings) => {
                let slack = Slack::open(settings, environment).map_err(|error| error.to_string())?;
                Ok(Arc::new(slack))
            }
            None => Err(not_configured(channel)),
        },
        ChannelName::Telegram | ChannelName::Whatsapp | ChannelName::Ntfy => {
            Err(format!("this pml was built without `{channel}`"))
        }
    }
}

fn not_configured(channel: ChannelName) -> String {
    format!("`{channel}` is not configured")
}
