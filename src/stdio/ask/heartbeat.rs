//! The heartbeat: a call whose client or person is being asked shows again and again that it lives.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::protocol::DependencyName;
use crate::proxy::Progress;
use crate::stdio::client::link::Link;

/// How often a waiting call shows that it lives; clients give up after a minute of silence.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a call waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Awaited<'a> {
    /// A person, who may also answer in a terminal.
    Person,
    /// The client's answer to a question of this server, which no other road brings.
    AnswerFor(&'a DependencyName),
    /// A person, whom the host of this conversation asks.
    Host,
}

impl Awaited<'_> {
    /// Returns what clients show under a call that waits.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Person => "waiting for a person; in a terminal: pml pending".to_owned(),
            Self::Host => "waiting for a person, where this conversation was started".to_owned(),
            Self::AnswerFor(server) => format!("waiting for the answer to a question of `{server}`"),
        }
    }
}

/// Calls `show` at once and then regularly, until time is up.
pub(crate) async fn beat(patience: Duration, mut show: impl FnMut()) {
    let end = Instant::now() + patience;
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return;
        }
        show();
        tokio::time::sleep(rest.min(HEARTBEAT)).await;
    }
}

/// Waits for work that a person is part of, and shows meanwhile that its call lives.
pub(crate) async fn kept_alive<T>(
    progress: Option<&mpsc::Sender<Progress>>,
    awaited: Awaited<'_>,
    work: impl Future<Output = T>,
) -> T {
    let show = || {
        if let Some(progress) = progress {
            let _ = progress.try_send(Progress(awaited.text()));
        }
    };
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            // The work knows its own end.
            () = beat(HEARTBEAT, show) => {}
        }
    }
}

/// The heartbeat of a call that no task looks after; it stops when this is dropped.
pub(crate) struct Heartbeat(AbortHandle);

impl Heartbeat {
    /// Starts it beside the conversation.
    pub(crate) fn start(link: &Link, patience: Duration, show: impl FnMut() + Send + 'static) -> Self {
        Self(link.spawn(beat(patience, show)))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}
