//! Looks up a resource that no server lists, such as one that a tool's result links to, by asking the servers.
//!
//! Only servers that run and need no approval are tried, side by side. The server that has it, or alone may have it,
//! is then sent the request itself, like any other: reading changes nothing, and a rare second reading is cheaper than
//! a second way.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::proxy::{Proxy, ReadyRequest, Reply, Route};
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

/// Finds the way to a resource whose owner is not known; `envelope` speaks for the client to Modern servers.
pub(crate) async fn find(proxy: &Proxy, uri: &str, envelope: &str) -> Option<ReadyRequest> {
    let routes = proxy.possible_routes(uri).await;
    let mut possible: Vec<Arc<Route>> = routes.into_iter().map(Arc::new).collect();
    let mut asking = JoinSet::new();
    for route in &possible {
        let (route, envelope) = (Arc::clone(route), envelope.to_owned());
        asking.spawn(async move {
            let has = has(&route, &envelope).await;
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
    possible.into_iter().next().map(|route| ReadyRequest {
        route,
        suspended: None,
        notes: Vec::new(),
    })
}

/// Asks a server whether it has a resource.
async fn has(route: &Route, envelope: &str) -> Has {
    let uri = json!(route.own);
    let params = match route.session.era() {
        Era::Legacy => format!(r#"{{"uri":{uri}}}"#),
        Era::Modern => format!(r#"{{"_meta":{{{envelope}}},"uri":{uri}}}"#),
    };
    match route.session.request(Method::Read.name(), &params).await {
        Reply::Result(_) => Has::Yes,
        Reply::Error(_) | Reply::Ended(_) => Has::No,
        Reply::Unusable(_) => Has::Maybe,
    }
}
