//! Reads beside the runtime's thread what servers are compared with, and compares their tools there.
//!
//! A repository may bring a lock of megabytes, and a server may list thousands of tools. What was read and compared is kept,
//! so that whatever decides afterwards, on the runtime's thread, finds it at once.

use std::sync::Arc;

use crate::config::Server;
use crate::loader::Plan;
use crate::proxy::{Proxy, View};

impl Proxy {
    /// Reads what was accepted of a server and what its lock says, unless both are known as they are now.
    ///
    /// What cannot be read is an error of the step that needs it.
    pub(in crate::proxy) async fn read_pins(&self, server: &Server, plan: &Plan) {
        let (file, name) = (&server.source.file, plan.dependency());
        let pins = &self.0.pins;
        if pins.accepted.is_known(file, name) && pins.locks.is_known(file) {
            return;
        }
        let (shared, file, name) = (Arc::clone(&self.0), file.clone(), name.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let _ = shared.pins.accepted.find(&file, &name);
            let _ = shared.pins.locks.read(&file);
        });
        let _ = reading.await;
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
        let Ok(view) = self.view() else { return };
        for (name, server) in view.config.servers.iter().filter(|(_, server)| !server.disabled) {
            if let Ok(plan) = view.plan(name, server, &self.0.environment) {
                self.compare_tools(&view, server, &plan).await;
            }
        }
    }
}
