//! The lists of servers as a client sees them: of the running server, else from the catalog; and their changes.

use std::sync::Arc;

use tokio::sync::watch;

use super::loader::{Declaration, Loader};
use super::mutex::lock;
use crate::loader::catalog::{Catalog, Known};
use crate::loader::install::off_thread;
use crate::loader::plan::Plan;
use crate::loader::session::{Declared, LIST_PATIENCE};
use crate::protocol::{Digest, Imitation, ListChanges, ListKind, Shown};

/// How many tools that imitate pml are named in the log: a list of nothing else must not fill a disk.
const IMITATIONS_LOGGED: usize = 20;

impl Loader {
    /// Returns the catalog of what dependencies offer.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.common.catalog
    }

    /// Notes what the client says of itself; servers that are started from now on are told so.
    pub fn declare(&self, declared: Declared) {
        let mut current = lock(&self.own.declared);
        if current
            .as_ref()
            .is_none_or(|current| current.declared != declared)
        {
            let offer = declared.offer();
            *current = Some(Declaration { declared, offer });
        }
    }

    /// Returns the name of the client for a person, if it declared one.
    #[must_use]
    pub fn client_name(&self) -> Option<String> {
        lock(&self.own.declared).as_ref()?.declared.client_name()
    }

    /// Tells how often the list of each kind may have changed.
    #[must_use]
    pub fn list_changes(&self) -> watch::Receiver<ListChanges> {
        self.own.changes.subscribe()
    }

    /// Says that lists may have changed.
    pub fn lists_changed(&self, kinds: &[ListKind]) {
        if kinds.is_empty() {
            return;
        }
        self.own.changes.send_modify(|changes| {
            for kind in kinds {
                changes.count(*kind);
            }
        });
    }

    /// Returns what a dependency offers as it was last seen at the version that is installed or would be.
    #[must_use]
    pub fn known(&self, plan: &Plan) -> Option<Arc<Known>> {
        if let Some(started) = self.running(plan) {
            return Some(started.known());
        }
        let known = self
            .common
            .catalog
            .find(plan.catalog_key(), self.offer().as_ref())?;
        let Some(resolved) = self.resolved(plan) else {
            // Nothing is resolved yet: an exact version is still the version that would run.
            let exact = plan
                .package()
                .is_none_or(|package| Some(package.version().as_str()) == known.version.as_deref());
            return exact.then_some(known);
        };
        let same = known.version.as_deref() == Some(&resolved.version)
            && (resolved.integrity.is_none() || known.integrity == resolved.integrity);
        same.then_some(known)
    }

    fn offer(&self) -> Option<Digest> {
        lock(&self.own.declared)
            .as_ref()
            .map(|current| current.offer.clone())
    }

    /// Tells whether what is known of a dependency is in memory as it is on the disk now; costs a look at some files.
    #[must_use]
    pub fn is_read(&self, plan: &Plan) -> bool {
        let is_recorded = |package| self.common.packages.is_read(package);
        let offer = self.offer();
        self.is_running(plan)
            || (plan.package().is_none_or(is_recorded)
                && self.common.catalog.is_read(plan.catalog_key(), offer.as_ref()))
    }

    /// Reads what is known of a dependency into memory; blocks.
    pub fn read(&self, plan: &Plan) {
        let _ = self
            .common
            .catalog
            .find(plan.catalog_key(), self.offer().as_ref());
        let _ = self.resolved(plan);
    }

    /// Tells whether a list is as good as asked for now: nothing runs, or what runs says when it changes and has not.
    #[must_use]
    pub fn is_fresh(&self, plan: &Plan, kind: ListKind) -> bool {
        self.running(plan)
            .is_none_or(|started| started.known().tells_changes(kind) && started.is_current(kind))
    }

    /// Asks a running dependency for a list that it called changed, or whose changes it would not tell; starts nothing.
    ///
    /// A change that the server would not have told is not told to the client either: the request that asked reads the
    /// list next, and a list that differs every time would be told forever.
    pub async fn refresh(&self, plan: &Plan, kind: ListKind) {
        if self.is_fresh(plan, kind) {
            return;
        }
        let Some(started) = self.running(plan) else { return };
        match tokio::time::timeout(LIST_PATIENCE, started.relearn(kind)).await {
            Ok(Ok((known, before))) if known.tells_changes(kind) => {
                self.relearned(plan, kind, &known, &before).await;
            }
            Ok(Ok((known, before))) if Arc::ptr_eq(&known, &before) => {}
            Ok(Ok((known, _before))) => drop(self.remember(plan, &known).await),
            Ok(Err(error)) => {
                tracing::info!(dependency = %plan.dependency(), %error, "a list could not be asked for again");
            }
            Err(_elapsed) => {
                tracing::info!(dependency = %plan.dependency(), list = kind.capability(), "a list did not come in time; the known one is shown");
            }
        }
    }

    /// Takes note of what a dependency has shown when it started.
    pub(super) async fn learn(&self, plan: &Plan, known: &Arc<Known>) {
        self.lists_changed(&self.remember(plan, known).await);
    }

    /// Takes note of a list that was learned again because its dependency said that it changed.
    pub(super) async fn relearned(&self, plan: &Plan, kind: ListKind, known: &Arc<Known>, before: &Known) {
        let mut changed = self.remember(plan, known).await;
        // Another pml may have remembered it first; this client has not heard of it all the same.
        if !changed.contains(&kind) && known.changed_since(Some(before)).contains(&kind) {
            changed.push(kind);
        }
        self.lists_changed(&changed);
    }

    /// Keeps what a dependency offers, beside the runtime's thread; returns the kinds whose lists are others now.
    async fn remember(&self, plan: &Plan, known: &Arc<Known>) -> Vec<ListKind> {
        let imitating = known.tools.iter().flat_map(|tool| {
            let found = Imitation::of(tool.name(), tool.definition().get());
            found.into_iter().map(move |imitation| (tool, imitation))
        });
        for (tool, imitation) in imitating.take(IMITATIONS_LOGGED) {
            let told = imitation.describe();
            tracing::warn!(dependency = %plan.dependency(), tool = %Shown::line(tool.name()), told, "a tool imitates pml");
        }
        for (list, count) in known.mended() {
            tracing::warn!(dependency = %plan.dependency(), list, count, "clients cannot read some definitions; they are listed mended");
        }
        let (common, key, kept) = (
            Arc::clone(&self.common),
            plan.catalog_key().clone(),
            Arc::clone(known),
        );
        let remembering = off_thread(move || {
            // Made here, because whoever compares them next does so on the runtime's thread.
            drop(kept.tool_digests());
            common.catalog.remember(&key, &kept)
        });
        match remembering.await {
            Some(Ok(changed)) => changed,
            Some(Err(error)) => {
                tracing::warn!(dependency = %plan.dependency(), %error, "what it offers could not be remembered");
                known.changed_since(None)
            }
            // The runtime is going away, and with it everybody who would ask.
            None => Vec::new(),
        }
    }
}
