//! What is started behind the back of a client that means to stay: eager servers, and allowed ones to learn their tools.
//!
//! Errors are for the first call to meet.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::{Proxy, View};
use crate::config::{Server, Startup};
use crate::loader::{Lease, Plan, Started};
use crate::protocol::DependencyName;

/// How many servers are installed and started at once only to learn their tools: a person works on the same machine.
const LEARNED_AT_ONCE: usize = 2;

/// How long a server that was only learned stays for a call to use it.
const LEARNED_REST: Duration = Duration::from_secs(1);

impl Proxy {
    /// Starts what is declared `eager` and installed already, and starts once what was never seen, if it simply may run.
    pub fn start_in_background(&self) {
        let Ok(view) = self.view() else { return };
        let learning = Arc::new(Semaphore::new(LEARNED_AT_ONCE));
        for (name, server) in view.config.servers.iter().filter(|(_, server)| !server.disabled) {
            let Ok(plan) = view.plan(name, server, &self.0.environment) else {
                continue;
            };
            // A run that is resumed finds the tools that its agent called before.
            let is_unseen = !self.is_in_run() && self.0.loader.known(&plan).is_none();
            let is_eager = server.startup == Startup::Eager && !self.0.loader.needs_install(&plan);
            if !is_unseen && !is_eager {
                continue;
            }
            self.watch_for_changes();
            let (proxy, server, learning) = (self.clone(), server.clone(), Arc::clone(&learning));
            let (view, name) = (Arc::clone(&view), name.clone());
            self.0.tasks.spawn(async move {
                if is_eager {
                    drop(proxy.started_if_it_may(&view, &name, &server, &plan).await);
                } else {
                    proxy.learn(&view, &name, &server, &plan, &learning).await;
                }
            });
        }
    }

    /// Starts a server that was never seen, and ends it again unless a call came to use it.
    async fn learn(
        &self,
        view: &View,
        name: &DependencyName,
        server: &Server,
        plan: &Arc<Plan>,
        learning: &Semaphore,
    ) {
        let turn = self
            .0
            .loader
            .closing()
            .run_until_cancelled(learning.acquire())
            .await;
        let Some(Ok(_turn)) = turn else { return };
        if self.0.loader.known(plan).is_some() {
            // A call, or another pml, was faster.
            return;
        }
        let Some(started) = self.started_if_it_may(view, name, server, plan).await else {
            return;
        };
        if server.startup == Startup::Eager {
            return;
        }
        // A call that waited for this very start has it by then, and keeps it.
        let resting = tokio::time::sleep(LEARNED_REST);
        if self
            .0
            .loader
            .closing()
            .run_until_cancelled(resting)
            .await
            .is_some()
        {
            self.0.loader.stop_unused(name, &started, LEARNED_REST);
        }
    }

    /// Starts a server if a rule or an approval lets it.
    async fn started_if_it_may(
        &self,
        view: &View,
        name: &DependencyName,
        server: &Server,
        plan: &Arc<Plan>,
    ) -> Option<Started> {
        self.learn_approvals().await;
        // What is not what was accepted waits for a call, which asks.
        let learned = self.learn_package(server, plan).await.is_ok();
        let is_unchanged = learned
            && matches!(self.has_other_package(server, plan), Ok(false))
            && matches!(self.has_other_launch(server, plan).await, Ok(false));
        if !is_unchanged || !self.may_start(view, name, plan) {
            return None;
        }
        let content = self.pinned_content(server, plan).ok()?;
        let limit = view.config.line_limit.0;
        let starting = self
            .0
            .loader
            .start(plan, server, limit, &content, Lease::Standing, None);
        match starting.await {
            Ok(started) => {
                // No call is under way that could carry its questions.
                started.session.settle();
                Some(started)
            }
            Err(error) => {
                tracing::info!(dependency = %plan.dependency(), %error, "a start in the background failed");
                None
            }
        }
    }
}
