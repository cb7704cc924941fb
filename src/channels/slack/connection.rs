//! The connection that is always there: opened again before Slack closes it, and with growing pauses where it fails.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::link::{Leaving, Link, Said};
use super::pace::Pace;
use super::seen_events::SeenEvents;
use super::socket::{Socket, lost};
use crate::channels::channel::ChannelError;

/// Keeps a connection until it is dropped; goes on after a failure only when `wanted` says that something is waited for.
pub(super) async fn keep(api: Arc<Api>, pace: Pace, heard: mpsc::Sender<Said>, wanted: Arc<Notify>) {
    let seen = Arc::new(SeenEvents::default());
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
            | ChannelError::Silent { .. }
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
    seen: &Arc<SeenEvents>,
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
