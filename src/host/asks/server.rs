//! What pml itself asks in a run, about the servers behind it: the process that serves the agent puts it into the store,
//! and takes the answer. The host sees it there, so that it shows, counts and keeps it like every other ask of the run.

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::{AGAIN, Asks};
use crate::proxy::Workflow;
use crate::report;

impl Asks {
    /// Tells what waits for a person in this run and was put by another process, again with every change, until `ended`.
    pub(in crate::host) async fn watch_servers(
        &self,
        told: UnboundedSender<Vec<Workflow>>,
        ended: CancellationToken,
    ) {
        let watching = async {
            loop {
                let mut revisions = match self.proxy.revisions().await {
                    Ok(revisions) => revisions,
                    Err(refusal) => {
                        tracing::warn!("{}", report::render_hinted(&refusal));
                        tokio::time::sleep(AGAIN).await;
                        continue;
                    }
                };
                loop {
                    revisions.borrow_and_update();
                    // What cannot be read now is with the next change.
                    if let Ok(open) = self.proxy.asks_of_this_run().await
                        && told.send(open).is_err()
                    {
                        return;
                    }
                    if revisions.changed().await.is_err() {
                        return;
                    }
                }
            }
        };
        tokio::select! {
            () = watching => {}
            () = ended.cancelled() => {}
        }
    }
}
