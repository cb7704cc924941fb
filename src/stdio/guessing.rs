//! A resource that nobody lists, such as one that a tool's result links to: who has it is found by asking.
//!
//! Only servers that run and need not be asked for are tried, one after the other. Whoever has it is then sent the
//! request itself, like any other: reading changes nothing, and a rare second reading is cheaper than a second way.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::conversation::Conversation;
use super::era::Era;
use super::request::Method;
use crate::proxy::{Ready, Reply, Route};

/// How long one server may take to say whether it has something: the others wait.
const PATIENCE: Duration = Duration::from_secs(5);

impl Conversation {
    /// Finds the way to a resource whose owner is not known.
    pub(super) async fn guess(&self, uri: &str) -> Option<Ready> {
        for route in self.0.proxy.possible_routes(uri) {
            if self.has(&route).await {
                return Some(Ready {
                    route: Arc::new(route),
                    suspended: None,
                    notes: Vec::new(),
                });
            }
        }
        None
    }

    async fn has(&self, route: &Route) -> bool {
        let uri = json!(route.own);
        let params = match route.session.era() {
            Era::Legacy => format!(r#"{{"uri":{uri}}}"#),
            Era::Modern => format!(r#"{{"_meta":{{{}}},"uri":{uri}}}"#, self.envelope()),
        };
        let reading = route.session.request(Method::Read.name(), &params);
        matches!(
            tokio::time::timeout(PATIENCE, reading).await,
            Ok(Reply::Result(_))
        )
    }
}
