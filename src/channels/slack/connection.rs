//! The connection that is always there: opened again before Slack closes it, and with growing pauses where it fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::link::{Leaving, Link};
use super::socket::{Socket, lost};
use crate::channels::channel::{ChannelError, Heard};

/// What comes out of the connection.
pub(super) type Said = Result<Heard, ChannelError>;

/// How many events are remembered: Slack repeats those of the last minutes.
const EVENTS: usize = 256;

/// The times of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How often a sign of life is asked for.
    pub ping: Duration,
    /// After how long without one the connection is dead.
    pub silence: Duration,
    /// How long Slack has to greet a new connection.
    pub greeting: Duration,
    /// How long a connection is still read after another one took over.
    pub linger: Duration,
    /// The first pause after a failure; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// A connection that lived as long was none that failed.
    pub steady: Duration,
}

impl Pace {
    /// The pace for Slack itself.
    pub(super) const USUAL: Self = Self {
        ping: Duration::from_secs(30),
        silence: Duration::from_mins(1),
        greeting: Duration::from_secs(30),
        linger: Duration::from_secs(1),
        pause: Duration::from_secs(1),
        longest_pause: Duration::from_mins(1),
        steady: Duration::from_secs(30),
    };

    /// Returns how long to wait after a number of failures: half of it is left to chance, so that many clients do not come
    /// back at once.
    fn pause_after(&self, failures: u32) -> Duration {
        let doubled = self.pause.saturating_mul(1 << failures.saturating_sub(1).min(10));
        let most = doubled.min(self.longest_pause);
        let [chance, ..] = *uuid::Uuid::new_v4().as_bytes();
        most / 2 + (most / 2).mul_f64(f64::from(chance) / 255.0)
    }
}

/// The events that were handed on already.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<VecDeque<String>>);

impl Seen {
    /// Takes note of an event; tells whether it is new.
    pub(super) fn is_first(&self, event: String) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(&event) {
            return false;
        }
        if seen.len() == EVENTS {
            seen.pop_front();
        }
        seen.push_back(event);
        true
    }
}

/// Keeps a connection until it is dropped; goes on after a failure only when `wanted` says that something is waited for.
pub(super) async fn keep(api: Arc<Api>, pace: Pace, heard: mpsc::Sender<Said>, wanted: Arc<Notify>) {
    let seen = Arc::new(Seen::default());
    let mut links = JoinSet::new();
    let mut current: Option<CancellationToken> = None;
    let mut failures = 0;
    loop {
        while links.try_join_next().is_some() {}
        let failed = match greeted(&api, pace, &heard, &seen, &mut links).await {
            Ok(Greeted {
                connections,
                leaving,
                retire,
            }) => {
                while links.try_join_next().is_some() {}
                let own = u64::try_from(links.len()).unwrap_or(u64::MAX);
                let others = connections.saturating_sub(own);
                if others > 0 {
                    tracing::warn!(
                        "Slack: {others} other connections are open for this app. Slack splits what is said among them, \
                         so answers get lost: only one program may use an app token"
                    );
                }
                if let Some(old) = current.replace(retire) {
                    old.cancel();
                }
                let since = Instant::now();
                let why = leaving.await;
                if since.elapsed() >= pace.steady {
                    failures = 0;
                }
                match why {
                    Ok(Leaving::Announced(reason)) => {
                        tracing::debug!("Slack: the connection is renewed ({reason})");
                        // The first one is renewed at once; a service that announces nothing else is left alone.
                        failures += 1;
                        if failures > 1 {
                            sleep(pace.pause_after(failures)).await;
                        }
                        continue;
                    }
                    Ok(Leaving::Over(error)) => {
                        tracing::warn!("Slack: the connection is lost: {error}");
                        current = None;
                        failures += 1;
                        sleep(pace.pause_after(failures)).await;
                        continue;
                    }
                    Err(_gone) => lost("its connection ended"),
                }
            }
            Err(error) => error,
        };
        failures += 1;
        let pause = match failed {
            ChannelError::TooFast { after, .. } => after.max(pace.pause_after(failures)),
            ChannelError::Unreachable { .. }
            | ChannelError::Refused { .. }
            | ChannelError::Contested { .. }
            | ChannelError::Unreadable { .. } => pace.pause_after(failures),
        };
        // Counted from the failure: the reader may pause as well, and one pause is enough.
        let again = Instant::now() + pause;
        if heard.send(Err(failed)).await.is_err() {
            return;
        }
        wanted.notified().await;
        sleep_until(again).await;
    }
}

/// A connection that Slack greeted.
struct Greeted {
    connections: u64,
    leaving: oneshot::Receiver<Leaving>,
    retire: CancellationToken,
}

/// Opens a connection and waits for the greeting.
async fn greeted(
    api: &Arc<Api>,
    pace: Pace,
    heard: &mpsc::Sender<Said>,
    seen: &Arc<Seen>,
    links: &mut JoinSet<()>,
) -> Result<Greeted, ChannelError> {
    let address = api.socket_address().await?;
    let socket = Socket::open(api, address).await?;
    let (ready, greeting) = oneshot::channel();
    let (leave, mut leaving) = oneshot::channel();
    let retire = CancellationToken::new();
    let link = Link {
        api: Arc::clone(api),
        socket,
        pace,
        heard: heard.clone(),
        seen: Arc::clone(seen),
        ready,
        leaving: leave,
        retired: retire.clone(),
    };
    links.spawn(link.run());
    match tokio::time::timeout(pace.greeting, greeting).await {
        Ok(Ok(connections)) => Ok(Greeted {
            connections,
            leaving,
            retire,
        }),
        Ok(Err(_ended)) => Err(match leaving.try_recv() {
            Ok(Leaving::Over(error)) => error,
            Ok(Leaving::Announced(_)) | Err(_) => lost("its socket ended without a greeting"),
        }),
        Err(_elapsed) => {
            retire.cancel();
            Err(lost("its socket does not greet"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_are_never_less_than_half() {
        for (failures, most) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (u32::MAX, 60)] {
            let pause = Pace::USUAL.pause_after(failures);
            let most = Duration::from_secs(most);
            assert!(pause >= most / 2 && pause <= most, "{failures}: {pause:?}");
        }
    }

    #[test]
    fn an_event_is_new_once_and_few_are_remembered() {
        let seen = Seen::default();
        assert!(seen.is_first("Ev1".to_owned()));
        assert!(!seen.is_first("Ev1".to_owned()));
        for number in 0..2 * EVENTS {
            assert!(seen.is_first(format!("E{number}")));
        }
        assert_eq!(seen.0.lock().unwrap().len(), EVENTS);
    }
}
