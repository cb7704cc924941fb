//! Why a channel cannot be opened: each thing that can be wrong with its settings, in words of its own.

use crate::config::{ChannelName, ExpandError};
use crate::report::Hint;

/// Says why a channel cannot be opened; never holds a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    /// The channel is not in the user's file any more.
    #[error("`{channel}` is not configured")]
    NotConfigured {
        /// The channel.
        channel: ChannelName,
    },
    /// A setting names a variable that is not there.
    #[error("`{key}` of `{channel}` cannot be used: {problem}")]
    Variable {
        /// The channel.
        channel: ChannelName,
        /// The setting.
        key: &'static str,
        /// What is wrong with it; told in the text, which is one line of a status.
        problem: ExpandError,
    },
    /// A setting is empty, or holds a line break.
    #[error("`{key}` of `{channel}` is empty or has several lines")]
    Empty {
        /// The channel.
        channel: ChannelName,
        /// The setting.
        key: &'static str,
    },
    /// A setting is no token: what it holds cannot stand in a request.
    #[error("`{key}` of `{channel}` is no token")]
    NoToken {
        /// The channel.
        channel: ChannelName,
        /// The setting.
        key: &'static str,
    },
    /// The address of the service is none that tokens may be sent to.
    #[error("the address of `{channel}` must begin with `https://`, or lead to this machine")]
    Address {
        /// The channel.
        channel: ChannelName,
    },
    /// A setting is missing without which no answer could come back.
    #[error("`{key}` of `{channel}` is missing: without it no answer could come back")]
    NoWayBack {
        /// The channel.
        channel: ChannelName,
        /// The setting.
        key: &'static str,
    },
    /// There is no client.
    #[error("{} cannot be spoken to: {reason}", .channel.title())]
    Client {
        /// The channel.
        channel: ChannelName,
        /// Why.
        reason: String,
    },
}

impl Hint for OpenError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Variable { problem, .. } => match problem {
                ExpandError::Unset { variable } => Some(format!(
                    "set `{variable}` in the environment in which `pml serve` is started, and start that again: \
                     {variable}=… pml serve"
                )),
                ExpandError::NotUtf8 { .. } | ExpandError::Name { .. } | ExpandError::Unclosed => problem.hint(),
            },
            Self::NoWayBack { key, channel } => Some(format!(
                "write `\"{key}\"` into `channels.{channel}` of your own file: docs/CHANNELS.md says where it comes from"
            )),
            Self::Empty { .. } | Self::NoToken { .. } => Some(
                "what a variable holds is read when `pml serve` is started: docs/CHANNELS.md says where it comes from"
                    .to_owned(),
            ),
            Self::NotConfigured { .. } | Self::Address { .. } | Self::Client { .. } => None,
        }
    }
}
