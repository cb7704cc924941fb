//! The line of one channel while it is configured: the channel itself, its outbox and its hearing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::listener::Listener;
use super::local_time::LocalTime;
use super::opener::{Opener, PendingChannel};
use super::outbox::{Done, Order, Outbox};
use super::switchboard::Switchboard;
use crate::config::{ChannelName, ChannelSettings, Environment};
use crate::proxy::Desk;

/// How many orders wait for a channel; more are planned again later.
const ORDERS: usize = 256;

/// How long a message under way may take when the line ends; the rest is found out by the next process.
const GRACE: Duration = Duration::from_millis(200);

/// What every line is given.
pub(super) struct Surroundings {
    pub(super) desk: Desk,
    pub(super) environment: Environment,
    pub(super) state: PathBuf,
    pub(super) inbox: Option<String>,
    pub(super) time: LocalTime,
    pub(super) settings: watch::Receiver<Arc<ChannelSettings>>,
    pub(super) done: mpsc::UnboundedSender<Done>,
    pub(super) switchboard: Switchboard,
    pub(super) opener: Opener,
}

/// A line that runs.
pub(super) struct Line {
    /// The settings that it was opened with, the people apart.
    settings: ChannelSettings,
    orders: mpsc::Sender<Order>,
    ending: CancellationToken,
    task: JoinHandle<()>,
}

impl Line {
    /// Opens a channel in a task of its own.
    pub(super) fn start(channel: ChannelName, settings: ChannelSettings, around: &Surroundings) -> Self {
        let pending = (around.opener)(channel, settings.clone(), around.environment.clone());
        let ending = CancellationToken::new();
        let (orders, taken) = mpsc::channel(ORDERS);
        let run = run(channel, pending, taken, around, ending.clone());
        Self {
            settings,
            orders,
            ending,
            task: tokio::spawn(run),
        }
    }

    /// Tells whether the channel would be opened in the same way with these settings.
    pub(super) fn is_of(&self, settings: &ChannelSettings) -> bool {
        self.settings == *settings
    }

    /// Gives an order; tells whether there was room for it.
    pub(super) fn order(&self, order: Order) -> bool {
        self.orders.try_send(order).is_ok()
    }

    /// Ends the line.
    pub(super) async fn end(self) {
        self.ending.cancel();
        drop(self.orders);
        let mut task = self.task;
        if tokio::time::timeout(GRACE, &mut task).await.is_err() {
            task.abort();
        }
    }
}

fn run(
    name: ChannelName,
    pending: PendingChannel,
    orders: mpsc::Receiver<Order>,
    around: &Surroundings,
    ending: CancellationToken,
) -> impl Future<Output = ()> + Send + 'static {
    let (desk, settings, time) = (around.desk.clone(), around.settings.clone(), around.time.clone());
    let (inbox, state, done) = (around.inbox.clone(), around.state.clone(), around.done.clone());
    let switchboard = around.switchboard.clone();
    let connection = Arc::new(Connection::new(desk.clone(), name));
    async move {
        connection.connecting().await;
        let opened = tokio::select! {
            opened = pending => opened,
            () = ending.cancelled() => return connection.ended().await,
        };
        let channel = match opened {
            Ok(channel) => channel,
            Err(reason) => {
                connection.unopened(&reason).await;
                // What is ordered meanwhile waits in the store until the settings are right.
                ending.cancelled().await;
                return connection.ended().await;
            }
        };
        switchboard.connect(&channel);
        let outbox = Outbox {
            channel: Arc::clone(&channel),
            desk: desk.clone(),
            settings: settings.clone(),
            inbox,
            time: time.clone(),
            connection: Arc::clone(&connection),
            done,
            ending: ending.clone(),
            held_until: None,
        };
        let listener = Listener {
            channel,
            desk,
            settings,
            time,
            connection: Arc::clone(&connection),
            state,
            ending: ending.clone(),
        };
        tokio::join!(outbox.run(orders), listener.run());
        switchboard.disconnect(name);
        connection.ended().await;
    }
}
