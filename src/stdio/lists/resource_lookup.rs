//! A resource that nobody lists, such as one that a tool's result links to: who has it is found by asking.
//!
//! Only servers that run and need not be asked for are tried, side by side. Whoever has it, or alone may have it, is
//! then sent the request itself, like any other: reading changes nothing, and a rare second reading is cheaper than a
//! second way.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::proxy::{Ready, Reply, Route};
use crate::stdio::conversation::Conversation;
use crate::stdio::era::Era;
use crate::stdio::translation::request::Method;

/// How long servers may take to say whether they have something; who has not said no by then may have it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a server has a resource.
enum Has {
    Yes,
    No,
    /// It does not say.
    Maybe,
}

impl Conversation {
    /// Finds the way to a resource whose owner is not known.
    pub(crate) async fn guess(&self, uri: &str) -> Option<Ready> {
        let routes = self.0.proxy.possible_routes(uri);
        let mut possible: Vec<Arc<Route>> = routes.into_iter().map(Arc::new).collect();
        let mut asking = JoinSet::new();
        for route in &possible {
            let (conversation, route) = (self.clone(), Arc::clone(route));
            asking.spawn(async move {
                let has = conversation.has(&route).await;
                (route, has)
            });
        }
        let until = Instant::now() + PATIENCE;
        // The last one is not waited for: it is sent the request itself.
        while possible.len() > 1 {
            match tokio::time::timeout_at(until, asking.join_next()).await {
                Ok(Some(Ok((route, Has::Yes)))) => possible = vec![route],
                Ok(Some(Ok((route, Has::No)))) => possible.retain(|other| !Arc::ptr_eq(other, &route)),
                Ok(Some(Ok((_, Has::Maybe)) | Err(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
        possible.into_iter().next().map(|route| Ready {
            route,
            suspended: None,
            notes: Vec::new(),
        })
    }

    async fn has(&self, route: &Route) -> Has {
        let uri = json!(route.own);
        let params = match route.session.era() {
            Era::Legacy => format!(r#"{{"uri":{uri}}}"#),
            Era::Modern => format!(r#"{{"_meta":{{{}}},"uri":{uri}}}"#, self.envelope()),
        };
        match route.session.request(Method::Read.name(), &params).await {
            Reply::Result(_) => Has::Yes,
            Reply::Error(_) | Reply::Ended(_) => Has::No,
            Reply::Unusable(_) => Has::Maybe,
        }
    }
}
