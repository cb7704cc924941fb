//! Deliveries and channels, as the async front of the store.

use super::{ChannelReport, Delivery, WorkflowError, WorkflowId, Workflows};
use crate::config::ChannelName;

impl Workflows {
    /// Lists the deliveries of an ask.
    pub async fn deliveries_of(&self, id: WorkflowId) -> Result<Vec<Delivery>, WorkflowError> {
        self.run(move |store, _| store.deliveries_of(id)).await
    }

    /// Lists the deliveries to a person on a channel, of every ask that is still kept.
    pub async fn deliveries_to(
        &self,
        channel: ChannelName,
        person: String,
    ) -> Result<Vec<Delivery>, WorkflowError> {
        self.run(move |store, _| store.deliveries_to(channel, &person))
            .await
    }

    /// Lists the deliveries that may still be sent or edited.
    pub async fn open_deliveries(&self) -> Result<Vec<Delivery>, WorkflowError> {
        self.run(|store, _| store.open_deliveries()).await
    }

    /// Finds the delivery whose message carries a nonce.
    pub async fn pressed_delivery(
        &self,
        channel: ChannelName,
        nonce: String,
    ) -> Result<Option<Delivery>, WorkflowError> {
        self.run(move |store, _| store.pressed_delivery(channel, &nonce))
            .await
    }

    /// Records a delivery; tells whether its ask is still kept.
    pub async fn record_delivery(&self, delivery: Delivery) -> Result<bool, WorkflowError> {
        self.run(move |store, _| store.record_delivery(&delivery)).await
    }

    /// Reports how a channel stands, to every process.
    pub async fn report_channel(&self, report: ChannelReport) -> Result<(), WorkflowError> {
        self.run(move |store, _| store.report_channel(&report)).await
    }

    /// Forgets how a channel stands.
    pub async fn forget_channel(&self, channel: ChannelName) -> Result<(), WorkflowError> {
        self.run(move |store, _| store.forget_channel(channel)).await
    }

    /// Returns how every channel stands.
    pub async fn channel_reports(&self) -> Result<Vec<ChannelReport>, WorkflowError> {
        self.run(|store, _| store.channel_reports()).await
    }
}
