//! What pml itself tells a client while its call is prepared.

use tokio::sync::mpsc;

use crate::loader::Steps;

/// A message about a step of pml's own, sent to the client as progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress(pub String);

/// Returns what hands the steps of a start to a client.
pub(super) fn step_sender(progress: mpsc::Sender<Progress>) -> Steps {
    // A client that reads slowly misses a step, never the answer.
    Box::new(move |text| drop(progress.try_send(Progress(text))))
}
