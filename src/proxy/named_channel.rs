//! Questions that name the channel on which they are put: whether it can be reached is found out at once, and a question
//! that does not get there is withdrawn, so that no agent waits for words that cannot come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::deliveries::{ChannelStanding, OPENING, running, standing_of};
use super::person_asks::new_question;
use super::view::View;
use super::{Proxy, Refusal};
use crate::config::{ChannelName, NoSuchChannel};
use crate::protocol::question::Question;
use crate::report::Hint;
use crate::workflow::{
    ChannelReport, ChannelState, Delivery, DeliveryState, NewWorkflow, State, Suspension, Workflow,
    WorkflowId,
};

/// How long a message may take to get there: a service that answers does so within a second or two, and its agent is not
/// kept waiting for one that does not.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(50);

/// Says why a question does not get to the channel that was named.
#[derive(Debug, thiserror::Error)]
pub enum Unreached {
    /// The name is none.
    #[error(transparent)]
    NoChannel(#[from] NoSuchChannel),
    /// It is not in the user's file.
    #[error("`{channel}` is not configured{}", others(.configured))]
    NotConfigured {
        /// The channel.
        channel: ChannelName,
        /// Those that are.
        configured: Vec<ChannelName>,
    },
    /// Its list of people is empty.
    #[error("nobody is paired with `{channel}`: its list of people is empty")]
    Nobody {
        /// The channel.
        channel: ChannelName,
    },
    /// The people who are asked there may not answer.
    #[error("`{channel}` may not be used to answer: `may` does not say \"answer\"")]
    MayNot {
        /// The channel.
        channel: ChannelName,
    },
    /// No process holds the connection.
    #[error("`{channel}` is not connected: `pml serve` does not run, or does not know it yet")]
    NoServer {
        /// The channel.
        channel: ChannelName,
    },
    /// A process connects the channels, and has not said how this one stands.
    #[error("`{channel}` is not connected: `pml serve` runs, and has not opened it within {} seconds", OPENING.as_secs())]
    NotOpened {
        /// The channel.
        channel: ChannelName,
    },
    /// Its connection cannot be made.
    #[error("`{channel}` is not connected: {reason}")]
    Disconnected {
        /// The channel.
        channel: ChannelName,
        /// What went wrong last.
        reason: String,
    },
    /// It could not be sent to any person.
    #[error("the question was not sent by `{channel}`: {reason}")]
    NotSent {
        /// The channel.
        channel: ChannelName,
        /// Why.
        reason: String,
    },
    /// It was not sent in time.
    #[error("`{channel}` did not send the question within {} seconds{}", PATIENCE.as_secs(), because(.reason.as_deref()))]
    TooSlow {
        /// The channel.
        channel: ChannelName,
        /// What went wrong last.
        reason: Option<String>,
    },
    /// The store or the configuration failed.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

fn others(configured: &[ChannelName]) -> String {
    match configured {
        [] => ": no channel is".to_owned(),
        some => {
            let names: Vec<String> = some.iter().map(|name| format!("`{name}`")).collect();
            format!("; there is {}", names.join(", "))
        }
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

impl Hint for Unreached {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoChannel(_) | Self::NotConfigured { .. } => {
                Some("leave `channel` out to ask where the person is asked otherwise".to_owned())
            }
            Self::Nobody { channel } => Some(format!(
                "the person writes to the bot of {channel} and runs: pml channels pair CODE"
            )),
            Self::NoServer { .. } => Some("the person starts it: pml serve".to_owned()),
            Self::NotOpened { .. }
            | Self::Disconnected { .. }
            | Self::NotSent { .. }
            | Self::TooSlow { .. } => Some("the person sees how it stands by: pml channels".to_owned()),
            Self::MayNot { .. } => None,
            Self::Refused(refusal) => refusal.hint(),
        }
    }
}

impl Proxy {
    /// Puts questions on the channel that is named, and returns once they are there; questions that do not get there are
    /// withdrawn.
    pub async fn question_on(
        &self,
        name: &str,
        tool: &str,
        questions: Vec<Question>,
    ) -> Result<Workflow, Unreached> {
        let channel = self.ready_channel(name).await?;
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let (kept, project) = (view.config.ask_user.kept, self.project().to_owned());
        let mut new = new_question(tool, questions, kept, project, self.origin(&view));
        new.channel = Some(channel);
        let mut asked = self.asked_on_channel(view, new).await?;
        let arrived = match asked.workflow.state {
            State::Pending => self.delivered(asked.workflow.id, channel).await,
            State::Answered { .. } | State::Taken { .. } | State::Expired | State::Withdrawn => Ok(()),
        };
        // The caller is told once nothing is left that waits.
        if std::mem::replace(&mut asked.reach, Reach::Arrived) == Reach::Unknown && arrived.is_err() {
            self.withdraw(asked.workflow.id).await;
        }
        arrived.map(|()| asked.workflow.clone())
    }

    /// Puts questions into the store in a task of its own: a call that is cancelled while the store or the history writes
    /// leaves no question behind.
    async fn asked_on_channel(&self, view: Arc<View>, new: NewWorkflow) -> Result<AskedOnChannel, Refusal> {
        let (give, taken) = oneshot::channel();
        let proxy = self.clone();
        self.0.withdrawals.spawn(async move {
            let asked = proxy.suspend(&view, new).await.map(|suspension| AskedOnChannel {
                proxy: proxy.clone(),
                reach: match suspension {
                    Suspension::New(_) => Reach::Unknown,
                    // It was there before this call, and stays where this call does not get it there.
                    Suspension::Existing(_) | Suspension::Answered(_) => Reach::Arrived,
                },
                workflow: suspension.workflow(),
            });
            // Where the call is gone, what was asked goes with this.
            let _ = give.send(asked);
        });
        match taken.await {
            Ok(asked) => Ok(asked.map_err(Refusal::from)?),
            // The process ends: its store is closed, and so is what it asked.
            Err(_gone) => Err(Refusal::Expired),
        }
    }

    /// Finds a channel on which a person can be asked now.
    async fn ready_channel(&self, name: &str) -> Result<ChannelName, Unreached> {
        let channel: ChannelName = name.parse()?;
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let settings = &view.config.channels;
        let Some(basics) = settings.basics(channel) else {
            let configured = settings.configured().collect();
            return Err(Unreached::NotConfigured { channel, configured });
        };
        if basics.people.is_empty() {
            return Err(Unreached::Nobody { channel });
        }
        if !basics.may.contains(&crate::config::Permission::Answer) {
            return Err(Unreached::MayNot { channel });
        }
        let standing = standing_of(&self.0.workflows, self.0.notifier.state(), channel);
        match standing.await.map_err(Refusal::from)? {
            ChannelStanding::NoServer => Err(Unreached::NoServer { channel }),
            ChannelStanding::Unopened => Err(Unreached::NotOpened { channel }),
            ChannelStanding::Reported(report) => checked(report).map(|()| channel),
        }
    }

    /// Fails where no process holds the connection of a channel, or it cannot be made.
    async fn check_connection(&self, channel: ChannelName) -> Result<(), Unreached> {
        let reports = self.0.workflows.channel_reports().await.map_err(Refusal::from)?;
        let report = running(reports)
            .into_iter()
            .find(|report| report.channel == channel);
        report.map_or(Err(Unreached::NoServer { channel }), checked)
    }

    /// Waits until a question is on its channel.
    async fn delivered(&self, id: WorkflowId, channel: ChannelName) -> Result<(), Unreached> {
        let began = Instant::now();
        let mut last = None;
        loop {
            let store = &self.0.workflows;
            let sent = store.deliveries_of(id).await.map_err(Refusal::from)?;
            let sent: Vec<Delivery> = sent
                .into_iter()
                .filter(|sent| sent.key.channel == channel)
                .collect();
            if sent
                .iter()
                .any(|sent| matches!(sent.state, DeliveryState::Sent | DeliveryState::Closed))
            {
                return Ok(());
            }
            let reason = sent.iter().find_map(|sent| sent.error.clone());
            let gave_up = |sent: &Delivery| sent.state == DeliveryState::Failed;
            if !sent.is_empty() && sent.iter().all(gave_up) {
                let reason = reason.unwrap_or_else(|| "it says not why".to_owned());
                return Err(Unreached::NotSent { channel, reason });
            }
            last = reason.or(last);
            // Another road may have been faster.
            if store.find(id).await.map_err(Refusal::from)?.state != State::Pending {
                return Ok(());
            }
            self.check_connection(channel).await?;
            if began.elapsed() >= PATIENCE {
                return Err(Unreached::TooSlow {
                    channel,
                    reason: last,
                });
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Fails where the connection of a channel cannot be made.
fn checked(report: ChannelReport) -> Result<(), Unreached> {
    match report.state {
        ChannelState::Connecting | ChannelState::Connected => Ok(()),
        ChannelState::Failed => Err(Unreached::Disconnected {
            channel: report.channel,
            reason: report.error.unwrap_or_else(|| "it says not why".to_owned()),
        }),
    }
}

/// A question on its way to a channel; withdrawn where this is dropped before it arrived.
struct AskedOnChannel {
    proxy: Proxy,
    workflow: Workflow,
    reach: Reach,
}

/// How far a question got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It may not be there.
    Unknown,
    /// It is there, or was before.
    Arrived,
}

impl Drop for AskedOnChannel {
    fn drop(&mut self) {
        if self.reach == Reach::Unknown {
            self.proxy.withdraw_later(self.workflow.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ChannelName::{Slack, Telegram};

    #[test]
    fn each_way_in_which_a_channel_is_not_reached_is_told_in_its_own_words() {
        let unreached = |error: &Unreached| crate::report::render(error, None);
        let not_configured = |configured| Unreached::NotConfigured {
            channel: Slack,
            configured,
        };
        let reason = || "Slack refuses: invalid_auth".to_owned();
        let told: Vec<String> = [
            Unreached::NoChannel("irc".parse::<ChannelName>().unwrap_err()),
            not_configured(Vec::new()),
            not_configured(vec![Telegram]),
            Unreached::Nobody { channel: Slack },
            Unreached::MayNot { channel: Slack },
            Unreached::NoServer { channel: Slack },
            Unreached::NotOpened { channel: Slack },
            Unreached::Disconnected {
                channel: Slack,
                reason: reason(),
            },
            Unreached::NotSent {
                channel: Slack,
                reason: reason(),
            },
            Unreached::TooSlow {
                channel: Slack,
                reason: None,
            },
        ]
        .iter()
        .map(unreached)
        .collect();
        assert_eq!(
            told,
            [
                "`irc` is no channel; there are slack, telegram, whatsapp, ntfy and webhook",
                "`slack` is not configured: no channel is",
                "`slack` is not configured; there is `telegram`",
                "nobody is paired with `slack`: its list of people is empty",
                "`slack` may not be used to answer: `may` does not say \"answer\"",
                "`slack` is not connected: `pml serve` does not run, or does not know it yet",
                "`slack` is not connected: `pml serve` runs, and has not opened it within 5 seconds",
                "`slack` is not connected: Slack refuses: invalid_auth",
                "the question was not sent by `slack`: Slack refuses: invalid_auth",
                "`slack` did not send the question within 5 seconds",
            ]
        );
    }
}
