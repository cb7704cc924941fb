//! The trait of a channel: shows notices, brings back what was said.
//!
//! A channel knows its service and nothing of workflows: it never looks into the store, never decides who may answer and
//! never makes an answer. Its methods may be called at the same time; each bounds its own waiting (20 s for a request).

use std::pin::Pin;

use serde::{Deserialize, Serialize};

use super::notice::Notice;
use super::press::Press;
use crate::card::{Card, Decision};
use crate::config::ChannelName;
use crate::protocol::hook::{HookReply, HookRequest};

/// What a method of a channel returns.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ChannelError>> + Send + 'a>>;

/// One chat service, connected with the user's tokens.
pub(crate) trait Channel: Send + Sync {
    /// Names the service.
    fn name(&self) -> ChannelName;

    /// Checks that a card can be shown here whole and answered; pure.
    fn fits(&self, card: &Card) -> Result<(), Unsupported>;

    /// Shows a notice to a person. What comes back finds the message again.
    fn send<'a>(&'a self, notice: &'a Notice, to: &'a str) -> Pending<'a, MessageRef>;

    /// Says how people learn what became of an ask.
    fn outcome_notice(&self) -> OutcomeNotice {
        OutcomeNotice::EditedMessage
    }

    /// Shows a notice as it is now in the place of the one that was sent, or as [`Channel::outcome_notice`] says.
    fn update<'a>(&'a self, at: &'a MessageRef, notice: &'a Notice) -> Pending<'a, ()>;

    /// Waits for the next thing that is said; connects by itself, and returns an error once for each time that fails.
    ///
    /// What was returned counts as received: the service is told so (an offset, an acknowledgement) when this is called
    /// again, or where the service wants it within seconds, before.
    fn heard(&self) -> Pending<'_, Heard>;

    /// Tells the person who said something what came of it, beside the message where the service can.
    fn reply<'a>(&'a self, to: &'a ReplyTo, text: &'a str) -> Pending<'a, ()>;

    /// Takes what a service sent to the public path of `pml serve`; what it holds comes out of [`Channel::heard`] later.
    ///
    /// Answers at once and never waits: it checks the signature and puts what it read where `heard` finds it.
    fn hook(&self, _request: HookRequest) -> HookReply {
        HookReply::Missing
    }
}

/// How people learn what became of an ask that was sent to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutcomeNotice {
    /// The message itself is edited, as often as the ask changes. Editing twice does no harm.
    EditedMessage,
    /// Another message says it, which cannot be taken back: one for each person, as soon as there is an answer.
    OwnMessage,
}

/// Where a message stands: written by a channel, kept in the store, read by that channel only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageRef(pub serde_json::Value);

/// Where a reply goes: written and read by a channel only, never kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyTo(pub serde_json::Value);

/// Something that was said on a channel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heard {
    /// Who said it.
    pub sender: Sender,
    /// Which message it is about.
    pub about: About,
    /// What was said.
    pub utterance: Utterance,
    /// Where a reply to it goes.
    pub reply_to: ReplyTo,
}

/// Who said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sender {
    /// The opaque id by which the service names them, as it stands in `people`: `U0123`, `412587349`.
    pub id: String,
    /// The same with what else makes it unique, as it is recorded: `T1/U0123`.
    pub recorded: String,
    /// What they are.
    pub kind: SenderKind,
}

/// Whether a sender can be a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SenderKind {
    /// A person, writing to pml alone.
    Person,
    /// A program, or a person in a conversation with others: never heard.
    Other,
}

/// Which message something that was said is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum About {
    /// A button or a form of a message, which carries this.
    Press(Press),
    /// The message that was replied to.
    Message(MessageRef),
    /// The code of an ask, which was typed.
    Code(String),
    /// Nothing is named.
    Nothing,
}

/// What was said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Utterance {
    /// A decision, with the reason of a refusal.
    Decision(Decision, Option<String>),
    /// What was chosen and written, for each question of the card.
    Answers(Vec<Picked>),
    /// Words, as they were typed.
    Text(String),
    /// A word to pml itself that begins a conversation, such as `/start`.
    Greeting,
}

/// What was chosen and written for one question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Picked {
    /// The places of the chosen options.
    pub options: Vec<usize>,
    /// What was written.
    pub text: Option<String>,
}

/// Says why a card cannot be shown on a channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsupported {
    /// It is longer than a message may be.
    #[error("{channel} takes at most {limit} {what}, and this has {found}")]
    TooMuch {
        /// The channel.
        channel: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// The most that it takes.
        limit: usize,
        /// How many there are.
        found: usize,
    },
}

/// Says why a channel failed; never holds a token, nor a text of a card.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// The service cannot be reached.
    #[error("{channel} cannot be reached: {reason}")]
    Unreachable {
        /// The channel.
        channel: &'static str,
        /// Why, without the address.
        reason: String,
    },
    /// The service took a request and did not answer in time: what was wanted may have been done.
    #[error("{channel} did not answer in time")]
    Silent {
        /// The channel.
        channel: &'static str,
    },
    /// The service wants pml to wait.
    #[error("{channel} wants pml to wait for {} seconds", .after.as_secs() + u64::from(.after.subsec_nanos() > 0))]
    TooFast {
        /// The channel.
        channel: &'static str,
        /// How long.
        after: std::time::Duration,
    },
    /// The service refuses, in its own word; trying again does not help.
    #[error("{channel} refuses: {reason}")]
    Refused {
        /// The channel.
        channel: &'static str,
        /// Its word for it, escaped, and what to do about it.
        reason: String,
    },
    /// Another program holds the same token.
    #[error("another program reads this bot of {channel}; only one may")]
    Contested {
        /// The channel.
        channel: &'static str,
    },
    /// The service answered something that is no answer of its.
    #[error("{channel} answered with what pml cannot read: {reason}")]
    Unreadable {
        /// The channel.
        channel: &'static str,
        /// What was wrong.
        reason: String,
    },
}
