//! The time that a server has for a call: it runs while the server works, not while it waits for the client.
//!
//! A Legacy server does not say for which of its calls it asks something, so all of them wait with it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::stdio::client::link::Link;

/// The time a server has, which is over when this is dropped.
pub(super) struct Deadline(AbortHandle);

/// Whether a call still runs, and what its server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progressing {
    /// The server works on it.
    Works,
    /// The server waits for the client.
    Waits,
    /// The call is over.
    Ended,
}

impl Deadline {
    /// Gives a server its whole time for a call, and calls `expired` once that is over.
    pub(super) fn start(
        link: &Link,
        after: Duration,
        state: impl Fn() -> Progressing + Send + 'static,
        expired: impl FnOnce() + Send + 'static,
    ) -> Self {
        let asked = link.outstanding().changes();
        Self(link.spawn(async move {
            if run_out(state, asked, after).await.is_some() {
                expired();
            }
        }))
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns once the server had its time, anew after each answer of the client; `None` if the call is over before.
async fn run_out(
    state: impl Fn() -> Progressing,
    mut asked: watch::Receiver<()>,
    after: Duration,
) -> Option<()> {
    let mut until = Instant::now() + after;
    loop {
        loop {
            match state() {
                Progressing::Works => break,
                Progressing::Ended => return None,
                Progressing::Waits => {
                    asked.changed().await.ok()?;
                    until = Instant::now() + after;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep_until(until) => return Some(()),
            changed = asked.changed() => changed.ok()?,
        }
    }
}
