//! The end of servers that may no longer run, or whose declaration changed.

use std::time::{Duration, Instant};

use super::loader::Loader;
use super::mutex::lock;
use super::running_server::Started;
use super::slot::{Lease, Slot, SlotState};
use crate::loader::process::Urgency;
use crate::protocol::{DependencyName, Digest};

/// How long calls may still take on a dependency whose declaration changed.
const RETIREMENT: Duration = Duration::from_mins(1);

/// A dependency that runs or is being started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    /// Its name.
    pub dependency: DependencyName,
    /// What it was launched as.
    pub digest: Digest,
    /// On what its running rests.
    pub lease: Lease,
}

impl Loader {
    /// Lists every dependency that runs or is being started.
    #[must_use]
    pub fn occupied(&self) -> Vec<Occupied> {
        let slots = self.own.slots.iter();
        slots
            .filter(|slot| !matches!(*lock(&slot.state), SlotState::Idle))
            .map(|slot| Occupied {
                dependency: slot.key().clone(),
                digest: slot.digest.clone(),
                lease: *lock(&slot.lease),
            })
            .collect()
    }

    /// Stops a dependency, or its start, because it may no longer run.
    pub fn dismiss(&self, dependency: &DependencyName, digest: &Digest, reason: &'static str) {
        if let Some((_, slot)) = self
            .own
            .slots
            .remove_if(dependency, |_, slot| slot.digest == *digest)
        {
            slot.dismiss(reason);
        }
    }

    /// Ends a dependency whose declaration changed: a start at once, what runs after the calls it works on.
    pub fn retire(&self, dependency: &DependencyName, digest: &Digest) {
        if let Some((_, slot)) = self
            .own
            .slots
            .remove_if(dependency, |_, slot| slot.digest == *digest)
        {
            self.leave(&slot);
        }
    }

    pub(super) fn leave(&self, slot: &Slot) {
        match slot.running() {
            Some(started) => drop(self.common.tasks.spawn(retire(started))),
            None => slot.dismiss("its declaration changed"),
        }
    }
}

/// Lets a dependency that was replaced finish what it was asked, then ends it.
async fn retire(started: Started) {
    let begun = Instant::now();
    while started.session.is_busy() && begun.elapsed() < RETIREMENT {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    started.stop(Urgency::Gentle);
}
