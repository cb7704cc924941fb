//! The switchboard: hands what services post to `pml serve` to their channels.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::channel::Channel;
use crate::config::ChannelName;
use crate::protocol::hook::{HookReply, HookRequest};

/// The channels that are connected now; clones share them.
#[derive(Clone, Default)]
pub struct Switchboard(Arc<RwLock<BTreeMap<ChannelName, Arc<dyn Channel>>>>);

impl Switchboard {
    pub(super) fn connect(&self, channel: &Arc<dyn Channel>) {
        let mut channels = self.0.write().unwrap_or_else(PoisonError::into_inner);
        channels.insert(channel.name(), Arc::clone(channel));
    }

    pub(super) fn disconnect(&self, channel: ChannelName) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&channel);
    }

    /// Hands a request to a channel, which answers at once.
    #[must_use]
    pub fn hand(&self, channel: ChannelName, request: HookRequest) -> HookReply {
        let found = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&channel)
            .cloned();
        found.map_or(HookReply::Missing, |channel| channel.hook(request))
    }
}
