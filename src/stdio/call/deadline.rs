//! The time that a dependency has for a call: it runs while the dependency works, not while it waits for the client.
//!
//! A Legacy dependency does not say for which of its calls it asks something, so all of them wait with it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::stdio::call::open_call::OpenCall;

/// The time a dependency has, which is over when this is dropped.
pub(crate) struct Deadline(Option<AbortHandle>);

impl Deadline {
    /// Gives the dependency its whole time for a call.
    pub(crate) fn of(call: &Arc<OpenCall>) -> Self {
        Self(call.route.timeout.map(|after| {
            let asked = call.conversation.inquiries().changes();
            let late = Arc::downgrade(call);
            call.conversation.spawn(async move {
                if let Some(call) = run_out(late, asked, after).await {
                    call.time_out(after);
                }
            })
        }))
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some(timer) = &self.0 {
            timer.abort();
        }
    }
}

/// Returns the call once its dependency had its time, anew after each answer of the client; `None` if nobody waits.
async fn run_out(
    call: Weak<OpenCall>,
    mut asked: watch::Receiver<()>,
    after: Duration,
) -> Option<Arc<OpenCall>> {
    let waits = || {
        let call = call.upgrade()?;
        Some(call.conversation.inquiries().waits(&call.route.session))
    };
    let mut until = Instant::now() + after;
    loop {
        while waits()? {
            asked.changed().await.ok()?;
            until = Instant::now() + after;
        }
        tokio::select! {
            () = tokio::time::sleep_until(until) => return call.upgrade(),
            changed = asked.changed() => changed.ok()?,
        }
    }
}
