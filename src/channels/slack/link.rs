//! One connection from its opening to its end: what comes in is acknowledged first, and handed on then.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::blocks;
use super::envelope::{self, FormWish, Frame, Incoming};
use super::pace::Pace;
use super::seen_events::SeenEvents;
use super::socket::{Read, Socket, lost};
use super::words;
use crate::channels::channel::{ChannelError, Heard};

/// What comes out of a connection.
pub(super) type Said = Result<Heard, ChannelError>;

/// Forms that are being opened at the same time: a person opens one.
const FORMS: usize = 16;

/// How a connection tells that it is not to be counted on any longer.
#[derive(Debug)]
pub(super) enum Leaving {
    /// Slack will close it.
    Announced(String),
    /// It is over.
    Over(ChannelError),
}

/// A connection, and the ways in which it is followed.
pub(super) struct Link {
    pub api: Arc<Api>,
    pub socket: Socket,
    pub pace: Pace,
    pub heard: mpsc::Sender<Said>,
    pub seen: Arc<SeenEvents>,
    /// Is told how many connections there are, once this one is ready.
    pub ready: oneshot::Sender<u64>,
    /// Is told that another connection is needed.
    pub leaving: oneshot::Sender<Leaving>,
    /// Says that another connection has taken over.
    pub retired: CancellationToken,
}

impl Link {
    /// Reads until the end.
    pub(super) async fn run(self) {
        let Self {
            api,
            mut socket,
            pace,
            heard,
            seen,
            ready,
            leaving,
            retired,
        } = self;
        let (mut ready, mut leaving) = (Some(ready), Some(leaving));
        let mut leave = |why| leaving.take().map(|leaving| leaving.send(why));
        let mut ping = interval_at(Instant::now() + pace.ping, pace.ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silence = Instant::now() + pace.silence;
        let mut until: Option<Instant> = None;
        let mut forms = JoinSet::new();
        loop {
            let last = until.unwrap_or(silence).min(silence);
            let read = tokio::select! {
                read = socket.read() => read,
                _ = ping.tick() => match socket.ping().await {
                    Ok(()) => continue,
                    Err(error) => Read::End(error),
                },
                () = retired.cancelled(), if until.is_none() => {
                    // What Slack sent here before it noticed is still acknowledged.
                    until = Some(Instant::now() + pace.linger);
                    continue;
                }
                () = sleep_until(last) => {
                    if until.is_some() {
                        break;
                    }
                    Read::End(lost("nothing came from it for too long"))
                }
            };
            silence = Instant::now() + pace.silence;
            let text = match read {
                Read::Text(text) => text,
                Read::Alive => continue,
                Read::End(error) => {
                    leave(Leaving::Over(error));
                    return;
                }
            };
            match envelope::read(&text) {
                Frame::Hello { connections } => {
                    let _ = ready.take().map(|ready| ready.send(connections));
                }
                Frame::Disconnect { reason } => {
                    leave(Leaving::Announced(reason));
                }
                Frame::Envelope { id, event, incoming } => {
                    // Without room it is not acknowledged, and Slack tells the person or sends it again.
                    let Ok(room) = heard.try_reserve() else {
                        tracing::warn!("Slack: more is said than is read; a message is not taken");
                        continue;
                    };
                    if let Err(error) = socket.acknowledge(&id).await {
                        leave(Leaving::Over(error));
                        return;
                    }
                    if event.is_some_and(|event| !seen.is_first(event)) {
                        continue;
                    }
                    match incoming {
                        Incoming::Said(said) => room.send(Ok(*said)),
                        Incoming::WantsForm(wish) => {
                            while forms.try_join_next().is_some() {}
                            if forms.len() < FORMS {
                                forms.spawn(open_form(Arc::clone(&api), *wish));
                            }
                        }
                        Incoming::Nothing => {}
                    }
                }
                Frame::Other => {}
            }
        }
        socket.close().await;
        // A form that was asked for here is opened still; its request has its own limit.
        forms.join_all().await;
    }
}

/// Opens the form for a reason; where that fails the person is told how to refuse without one.
async fn open_form(api: Arc<Api>, wish: FormWish) {
    let FormWish {
        trigger,
        press,
        origin,
        reply_to,
    } = wish;
    let view = blocks::reason(&press.code, press.rev, &origin);
    let Err(error) = api.open_form(&trigger, view).await else {
        return;
    };
    tracing::warn!("Slack: the form for a reason cannot be opened: {error}");
    let text = "The form cannot be opened now. Press Abort to refuse without a reason.";
    if let Some((channel, person)) = words::place(&reply_to)
        && let Err(error) = api.tell(channel, person, text).await
    {
        tracing::warn!("Slack: a person cannot be told: {error}");
    }
}
