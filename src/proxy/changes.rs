//! Compares what runs with what may run whenever the configuration or an approval changes, and stops the rest.
//!
//! A server may run while it is declared, enabled and not denied, and while what let it start still stands. The files are
//! watched from the first start on; where the system cannot watch them, they are compared when a call looks at them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::{Proxy, View};
use crate::config::{Notices, WatchedPath};
use crate::loader::{KnownTool, Lease, Occupied, Plan};
use crate::permissions::ServerVerdict;
use crate::protocol::{DependencyName, Digest};

/// Why a server must go.
enum Dismissal {
    /// It may finish what it was asked: only its declaration changed.
    Replaced,
    /// At once, for this reason.
    Forbidden(&'static str),
}

impl Proxy {
    /// Begins to watch the files that decide what may run; does nothing the second time.
    pub(super) fn watch_for_changes(&self) {
        if self.0.watching.swap(true, Ordering::Relaxed) {
            return;
        }
        let proxy = Arc::downgrade(&self.0);
        self.0
            .loader
            .ask_before_a_start(Box::new(move |plan: &Plan, lease| {
                let Some(shared) = Weak::upgrade(&proxy) else {
                    return Ok(());
                };
                Proxy(shared).may_be_started(plan, lease)
            }));
        let paths = [
            WatchedPath::File(self.0.files.project.clone()),
            WatchedPath::File(self.0.files.user.clone()),
            WatchedPath::Folder(self.0.approved.directory().to_owned()),
        ];
        let mut notices = match Notices::of(&paths) {
            Ok(notices) => notices,
            Err(error) => {
                tracing::info!(%error, "changed files are noticed at the next call only");
                return;
            }
        };
        let proxy = Arc::downgrade(&self.0);
        self.0.tasks.spawn(async move {
            while notices.next().await.is_ok() {
                let Some(shared) = Weak::upgrade(&proxy) else {
                    return;
                };
                Proxy(shared).reconcile();
            }
        });
    }

    /// Stops every server that may no longer run, and withdraws what it asked.
    pub(super) fn reconcile(&self) {
        let occupied = self.0.loader.occupied();
        if occupied.is_empty() {
            return;
        }
        // A file that cannot be read refuses every call; what runs is not stopped for a typing error.
        let Ok(view) = self.view() else { return };
        for Occupied {
            dependency,
            digest,
            lease,
        } in occupied
        {
            match self.dismissal(&view, &dependency, &digest, lease) {
                None => {}
                Some(Dismissal::Replaced) => self.0.loader.retire(&dependency, &digest),
                Some(Dismissal::Forbidden(reason)) => {
                    tracing::info!(%dependency, reason, "stopped");
                    self.0.loader.dismiss(&dependency, &digest, reason);
                }
            }
        }
    }

    /// Tells whether a server that is about to be started may still be.
    fn may_be_started(&self, plan: &Plan, lease: Lease) -> Result<(), &'static str> {
        let Ok(view) = self.view() else {
            return Err("the configuration cannot be read");
        };
        match self.dismissal(&view, plan.dependency(), plan.digest(), lease) {
            None => Ok(()),
            Some(Dismissal::Replaced) => Err("its declaration changed"),
            Some(Dismissal::Forbidden(reason)) => Err(reason),
        }
    }

    fn dismissal(
        &self,
        view: &View,
        dependency: &DependencyName,
        digest: &Digest,
        lease: Lease,
    ) -> Option<Dismissal> {
        let Some(server) = view.server(dependency) else {
            return Some(Dismissal::Forbidden("it is no longer declared"));
        };
        if server.disabled {
            return Some(Dismissal::Forbidden("it is disabled"));
        }
        let plan = match view.plan(dependency, server, &self.0.environment) {
            Ok(plan) if plan.digest() == digest => plan,
            Ok(_) | Err(_) => return Some(Dismissal::Replaced),
        };
        let known = self.0.loader.known(&plan);
        let tools = known.iter().flat_map(|known| known.tools.iter());
        let tools: Vec<&str> = tools.map(KnownTool::name).collect();
        let verdict = view.policy.server(dependency, &tools);
        if let ServerVerdict::Denied(_) = verdict {
            return Some(Dismissal::Forbidden("the rules deny all its tools"));
        }
        let stands = lease == Lease::OneCall
            || verdict == ServerVerdict::Allowed
            || self.0.grants.allows_any_tool(digest)
            || self.is_approved(&plan);
        (!stands).then_some(Dismissal::Forbidden("its approval was taken back"))
    }
}
