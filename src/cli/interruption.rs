//! Runs the work of a command until it is done, or until the person interrupts it.

use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::{CommandContext, Haste, terminal};
use crate::loader::{Loader, Urgency};

/// How long the end of what was started is waited for; a server that does not go is killed by its supervisor.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs work to its end on a runtime of its own; `None` if the person interrupted it.
pub(crate) fn until_interrupted<T>(work: impl Future<Output = T>) -> anyhow::Result<Option<T>> {
    run(async {
        tokio::select! {
            done = work => Some(done),
            () = terminal::interrupted() => None,
        }
    })
}

/// Runs work that starts servers, and ends those; `None` if the person interrupted it.
pub(crate) fn with_loader<T>(
    context: &CommandContext,
    haste: Haste,
    work: impl AsyncFnOnce(&Loader) -> T,
) -> anyhow::Result<Option<T>> {
    run(async {
        let tasks = TaskTracker::new();
        let loader = Loader::new(
            &context.environment,
            &context.locations,
            context.history(),
            context.release_age(haste),
            tasks.clone(),
        );
        loader.packages().tell_waiting(terminal::tell);
        let (done, urgency) = tokio::select! {
            done = work(&loader) => (Some(done), Urgency::Gentle),
            () = terminal::interrupted() => (None, Urgency::AtOnce),
        };
        loader.close(urgency).await;
        tasks.close();
        let _ = tokio::time::timeout(PATIENCE, tasks.wait()).await;
        done
    })
}

fn run<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(work);
    // A thread that still waits for the person must not keep pml alive.
    runtime.shutdown_background();
    Ok(done)
}
