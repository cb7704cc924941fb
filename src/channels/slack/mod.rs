//! Slack by Socket Mode: no public address, two tokens, messages to single people.
//!
//! `blocks` and `envelope` are pure: a notice as Block Kit, and what comes in as something that was said. `api` speaks to
//! the Web API, `connection` keeps a socket open in a task of its own, so that what comes in is acknowledged within the
//! three seconds that Slack gives, also while the reader of [`Channel::heard`] is busy.

mod api;
mod blocks;
mod connection;
mod envelope;
mod link;
mod manifest;
mod pace;
mod seen_events;
mod socket;
#[cfg(test)]
mod tests;
mod token;
mod words;

use std::sync::Arc;

use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinSet;

use self::api::Api;
use self::blocks::Message;
use self::link::Said;
pub(crate) use self::manifest::manifest;
use self::pace::Pace;
use self::socket::lost;
use super::channel::{Channel, ChannelError, Heard, MessageRef, Pending, ReplyTo, Unsupported};
use super::notice::Notice;
use super::open_error::OpenError;
use crate::card::Card;
use crate::config::{ChannelName, Environment, SlackSettings};

/// The channel as people write it.
const TITLE: &str = "Slack";

/// How much may be said before it is read; more is not acknowledged.
const WAITING: usize = 64;

/// The channel to one app of a workspace.
pub(crate) struct Slack {
    api: Arc<Api>,
    pace: Pace,
    listening: Mutex<Option<Listening>>,
    wanted: Arc<Notify>,
}

/// The connection, which ends when this is dropped.
struct Listening {
    heard: mpsc::Receiver<Said>,
    _keeper: JoinSet<()>,
}

impl Slack {
    /// Expands the tokens; no request is made before something is sent or listened for.
    pub(crate) fn open(settings: &SlackSettings, environment: &Environment) -> Result<Self, OpenError> {
        Self::paced(settings, environment, Pace::USUAL)
    }

    fn paced(settings: &SlackSettings, environment: &Environment, pace: Pace) -> Result<Self, OpenError> {
        let api = Api::new(settings, environment)?;
        Ok(Self {
            api: Arc::new(api),
            pace,
            listening: Mutex::default(),
            wanted: Arc::default(),
        })
    }

    async fn next(&self) -> Result<Heard, ChannelError> {
        let mut listening = self.listening.lock().await;
        let open = listening.get_or_insert_with(|| {
            let (sender, heard) = mpsc::channel(WAITING);
            let mut keeper = JoinSet::new();
            let api = Arc::clone(&self.api);
            keeper.spawn(connection::keep(api, self.pace, sender, Arc::clone(&self.wanted)));
            Listening {
                heard,
                _keeper: keeper,
            }
        });
        self.wanted.notify_one();
        if let Some(said) = open.heard.recv().await {
            return said;
        }
        *listening = None;
        Err(lost("its connection ended"))
    }
}

impl Channel for Slack {
    fn name(&self) -> ChannelName {
        ChannelName::Slack
    }

    fn fits(&self, card: &Card) -> Result<(), Unsupported> {
        blocks::fits(card)
    }

    fn send<'a>(&'a self, notice: &'a Notice, to: &'a str) -> Pending<'a, MessageRef> {
        Box::pin(async move {
            let conversation = self.api.conversation(to).await?;
            let (channel, ts) = self.api.post(&conversation, Message::of(notice)).await?;
            Ok(envelope::message_ref(&channel, &ts))
        })
    }

    fn update<'a>(&'a self, at: &'a MessageRef, notice: &'a Notice) -> Pending<'a, ()> {
        Box::pin(async move {
            let (Some(channel), Some(ts)) = (at.0["channel"].as_str(), at.0["ts"].as_str()) else {
                return Err(api::unreadable("pml kept no place of the message"));
            };
            self.api.update(channel, ts, Message::of(notice)).await
        })
    }

    fn heard(&self) -> Pending<'_, Heard> {
        Box::pin(self.next())
    }

    fn reply<'a>(&'a self, to: &'a ReplyTo, text: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let Some((channel, person)) = words::place(to) else {
                return Err(api::unreadable("pml kept no place for the reply"));
            };
            self.api.tell(channel, person, text).await
        })
    }
}
