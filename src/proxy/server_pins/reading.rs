//! Reads beside the runtime's thread what servers are compared with, and compares their tools there.
//!
//! A repository may bring a lock of megabytes, and a server may list thousands of tools. What was read and compared is kept,
//! so that whatever decides afterwards, on the runtime's thread, finds it at once.

use std::sync::Arc;

use crate::config::Server;
use crate::loader::Plan;
use crate::pins::PackagePin;
use crate::proxy::{Proxy, View};

impl Proxy {
    /// Reads what was accepted of a server, what its lock says and what is known of it, unless that is in memory as it is now.
    ///
    /// What cannot be read is an error of the step that needs it.
    pub(in crate::proxy) async fn read_pins(&self, server: &Server, plan: &Arc<Plan>) {
        let (file, name) = (&server.source.file, plan.dependency());
        let pins = &self.0.pins;
        let loader = &self.0.loader;
        if pins.accepted.is_known(file, name) && pins.locks.is_known(file) && loader.is_read(plan) {
            return;
        }
        let (shared, file, name) = (Arc::clone(&self.0), file.clone(), name.clone());
        let plan = Arc::clone(plan);
        let reading = tokio::task::spawn_blocking(move || {
            let _ = shared.pins.accepted.find(&file, &name);
            let _ = shared.pins.locks.read(&file);
            shared.loader.read(&plan);
        });
        let _ = reading.await;
    }

    /// Reads what is known of every server, unless it is in memory as it is on the disk now.
    pub(in crate::proxy) async fn read_known(&self, view: &View) {
        let plans = view.enabled(&self.0.environment).map(|(_, plan)| plan);
        let unread: Vec<Arc<Plan>> = plans.filter(|plan| !self.0.loader.is_read(plan)).collect();
        if unread.is_empty() {
            return;
        }
        let loader = self.0.loader.clone();
        let reading = tokio::task::spawn_blocking(move || {
            for plan in &unread {
                loader.read(plan);
            }
        });
        let _ = reading.await;
    }

    /// Reads what is known of every server before a conversation begins.
    pub async fn read_ahead(&self) {
        if let Ok(view) = self.current_view().await {
            self.read_known(&view).await;
        }
    }

    /// Tells whether the tools of a server were compared as they are now; reads nothing that has a length.
    pub(in crate::proxy) fn is_compared(&self, view: &View, server: &Server, plan: &Plan) -> bool {
        let is_known = self
            .0
            .pins
            .accepted
            .is_known(&server.source.file, plan.dependency());
        is_known
            && self
                .0
                .loader
                .known(plan)
                .is_none_or(|known| self.found_tools(&view.config, server, plan, &known).is_some())
    }

    /// Returns all that is known of the package that would run, beside the runtime's thread: its lock may have megabytes.
    pub(super) async fn package_now(&self, plan: &Arc<Plan>) -> Option<PackagePin> {
        let (proxy, plan) = (self.clone(), Arc::clone(plan));
        let reading = tokio::task::spawn_blocking(move || {
            let known = proxy.0.loader.packages().pin(&plan);
            known.or_else(|| proxy.0.loader.package_in_short(&plan))
        });
        reading.await.ok().flatten()
    }

    /// Compares the tools of a server with those that were accepted, unless that was done before.
    pub(in crate::proxy) async fn compare_tools(&self, view: &View, server: &Server, plan: &Arc<Plan>) {
        self.read_pins(server, plan).await;
        let Some(known) = self.0.loader.known(plan) else {
            return;
        };
        if self.found_tools(&view.config, server, plan, &known).is_some() {
            return;
        }
        let (proxy, config, server, plan) = (
            self.clone(),
            Arc::clone(&view.config),
            server.clone(),
            Arc::clone(plan),
        );
        let comparing = tokio::task::spawn_blocking(move || {
            proxy.judged_tools(&config, &server, &plan, &known);
        });
        let _ = comparing.await;
    }

    /// Compares the tools of every server, before they are listed.
    pub async fn compare_all_tools(&self) {
        let Ok(view) = self.current_view().await else {
            return;
        };
        for (name, server) in view.config.servers.iter().filter(|(_, server)| !server.disabled) {
            if let Ok(plan) = view.plan(name, server, &self.0.environment) {
                self.compare_tools(&view, server, &plan).await;
            }
        }
    }
}
