//! Compares what runs with what may run whenever the configuration or an approval changes, and stops the rest.
//!
//! A server may run while it is declared, enabled and not denied, while what let it start still stands, while nothing
//! that it contains is known to be malicious, and while its package has the provenance that the user demands. The files are watched from the first start on; where the system cannot watch
//! them, they are compared when a call looks at them.

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
    /// At once: no approval that is known covers it.
    NotApproved,
}

/// What a server is told that must go because no approval covers it any more.
const TAKEN_BACK: &str = "its approval was taken back";

impl Proxy {
    /// Begins to watch the files that decide what may run; does nothing the second time.
    pub(super) fn watch_for_changes(&self) {
        if self.0.watching.swap(true, Ordering::Relaxed) {
            return;
        }
        let proxy = Arc::downgrade(&self.0);
        self.0
            .loader
            .ask_before_a_start(Box::new(move |plan: Arc<Plan>, lease| {
                let shared = Weak::upgrade(&proxy);
                Box::pin(async move {
                    match shared {
                        Some(shared) => Proxy(shared).may_be_started(&plan, lease).await,
                        None => Ok(()),
                    }
                })
            }));
        let mut paths = self.0.files.places();
        paths.extend(self.0.workflows.approvals_mark().map(WatchedPath::File));
        let verdicts = self.0.loader.packages().verdicts();
        paths.push(WatchedPath::File(verdicts.path().to_owned()));
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
                Proxy(shared).reconcile().await;
            }
        });
    }

    /// Stops every server that may no longer run, and withdraws what it asked.
    pub(super) async fn reconcile(&self) {
        if self.0.loader.occupied().is_empty() {
            return;
        }
        // Whatever the rules say, and also where they cannot be read.
        self.0.loader.stop_malicious().await;
        self.0.loader.stop_unproven().await;
        self.learn_approvals().await;
        let occupied = self.0.loader.occupied();
        // A file that cannot be read refuses every call; what runs is not stopped for a typing error.
        let Ok(view) = self.current_view().await else {
            return;
        };
        for Occupied {
            dependency,
            digest,
            lease,
        } in occupied
        {
            match self.dismissal(&view, &dependency, &digest, lease) {
                None => {}
                Some(Dismissal::Replaced) => self.0.loader.retire(&dependency, &digest),
                Some(Dismissal::Forbidden(reason)) => self.dismiss(&dependency, &digest, reason),
                // As with rules that cannot be read: calls are refused, and what runs is not stopped for it.
                Some(Dismissal::NotApproved) if self.0.workflows.known_approvals().is_none() => {}
                Some(Dismissal::NotApproved) => self.dismiss(&dependency, &digest, TAKEN_BACK),
            }
        }
    }

    fn dismiss(&self, dependency: &DependencyName, digest: &Digest, reason: &'static str) {
        tracing::info!(%dependency, reason, "stopped");
        self.0.loader.dismiss(dependency, digest, reason);
    }

    /// Tells whether a server that is about to be started may still be.
    async fn may_be_started(&self, plan: &Plan, lease: Lease) -> Result<(), &'static str> {
        let dismissal = async || match self.current_view().await {
            Ok(view) => self.dismissal(&view, plan.dependency(), plan.digest(), lease),
            Err(_broken) => Some(Dismissal::Forbidden("the configuration cannot be read")),
        };
        let mut found = dismissal().await;
        if let Some(Dismissal::NotApproved) = found {
            // The approvals that are known may be old; a server that a rule allows does not wait for them.
            self.learn_approvals().await;
            found = dismissal().await;
        }
        match found {
            None => Ok(()),
            Some(Dismissal::Replaced) => Err("its declaration changed"),
            Some(Dismissal::Forbidden(reason)) => Err(reason),
            Some(Dismissal::NotApproved) => Err(TAKEN_BACK),
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
        (!stands).then_some(Dismissal::NotApproved)
    }
}
