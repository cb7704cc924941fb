//! How a channel stands, as this process tells every other one; written only when it changes.

use std::sync::{Mutex, PoisonError};

use super::channel::ChannelError;
use crate::config::ChannelName;
use crate::proxy::{ChannelState, Desk};

/// How many failures in a row a channel may have before it counts as failed: a network that is away for a moment is none.
const PATIENCE: u32 = 3;

/// Reports how one channel stands.
pub(super) struct Connection {
    desk: Desk,
    channel: ChannelName,
    told: Mutex<Option<(ChannelState, Option<String>)>>,
}

impl Connection {
    /// Names the channel; reports nothing yet.
    pub(super) fn new(desk: Desk, channel: ChannelName) -> Self {
        Self {
            desk,
            channel,
            told: Mutex::default(),
        }
    }

    /// Reports that it is being made.
    pub(super) async fn connecting(&self) {
        self.report(ChannelState::Connecting, None).await;
    }

    /// Reports that something came over it.
    pub(super) async fn connected(&self) {
        self.report(ChannelState::Connected, None).await;
    }

    /// Reports that it cannot be made at all.
    pub(super) async fn unopened(&self, reason: &str) {
        tracing::warn!(channel = %self.channel, "a channel cannot be opened: {reason}");
        self.report(ChannelState::Failed, Some(reason.to_owned())).await;
    }

    /// Reports a failure, the `failures`-th in a row.
    pub(super) async fn failed(&self, error: &ChannelError, failures: u32) {
        let state = match error {
            ChannelError::Unreachable { .. } | ChannelError::Silent { .. } | ChannelError::TooFast { .. }
                if failures < PATIENCE =>
            {
                ChannelState::Connecting
            }
            ChannelError::Unreachable { .. }
            | ChannelError::Silent { .. }
            | ChannelError::TooFast { .. }
            | ChannelError::Refused { .. }
            | ChannelError::Contested { .. }
            | ChannelError::Unreadable { .. } => ChannelState::Failed,
        };
        self.report(state, Some(error.to_string())).await;
    }

    /// Forgets it: this process does not hold it any more.
    pub(super) async fn ended(&self) {
        let _ = self.desk.forget_channel(self.channel).await;
    }

    async fn report(&self, state: ChannelState, error: Option<String>) {
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let news = Some((state, error.clone()));
            if *told == news {
                return;
            }
            *told = news;
        }
        if let Some(error) = &error {
            tracing::info!(channel = %self.channel, "a channel has trouble: {error}");
        }
        if let Err(refusal) = self
            .desk
            .report_channel(self.channel, state, error.as_deref())
            .await
        {
            tracing::warn!(
                "how a channel stands cannot be told: {}",
                crate::report::render_hinted(&refusal)
            );
        }
    }
}
