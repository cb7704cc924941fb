//! How a run is left that is not over: what it waits for, and how it goes on.

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::failure::{Hinted as _, Refused};
use crate::cli::output;
use crate::host::{Hosting, Resumption, RunLock, RunRecord, RunState};

/// Says what a run waits for.
pub(super) fn waits(record: &RunRecord) -> anyhow::Error {
    let codes: Vec<_> = record.asks.iter().map(|ask| ask.workflow.to_string()).collect();
    let waits = format!("run `{}` waits for an answer to {}", record.id, codes.join(", "));
    let on = match record.state {
        RunState::Parked { .. } => "to say more first; it asks once more then: pml run --resume RUN \"…\"",
        _ => "to go on without an answer: pml run --resume RUN \"…\"",
    };
    let refused: anyhow::Result<()> =
        Err(Refused(waits)).hint(format!("to see what it asks: pml pending\n{on}"));
    refused.err().unwrap_or_else(|| anyhow::anyhow!(""))
}

/// Lets a run rest that was resumed in vain; tells whether it is to go on then.
pub(super) async fn rested(record: &RunRecord) -> anyhow::Result<bool> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        () = tokio::time::sleep(record.rest()) => Ok(true),
        _ = interrupt.recv() => Ok(false),
        _ = terminate.recv() => Ok(false),
    }
}

/// Tells that the agent does not take the answer, here and to whoever lists the runs.
pub(super) async fn tell_in_vain(hosting: &Hosting, record: RunRecord, lock: RunLock) {
    let text = Resumption::in_vain();
    output::note(&text);
    output::note(&format!(
        "the answer is kept; to try again: pml run --resume {}",
        record.id
    ));
    drop(lock);
    let hosting = hosting.clone();
    let noted = tokio::task::spawn_blocking(move || hosting.note_trouble(&record.id, &text));
    let _ = noted.await;
}

/// Tells how a run that was left goes on.
pub(super) fn tell_parked(record: &RunRecord) {
    output::say(&format!(
        "run {} waits for an answer; answer it and it resumes: pml inbox\n\
         it is resumed by `pml serve`, or by: pml run --resume {}",
        record.id, record.id
    ));
}
