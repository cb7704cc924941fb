//! What the desk keeps of deliveries, and what it knows of the channels: the channels' own way to the store.

use std::path::Path;
use std::time::{Duration, Instant};

use super::person_asks;
use super::presence::{own_process, presence_of};
use super::surface::channels_are_kept;
use super::{AskingProgram, Desk, Refusal, moment};
use crate::card::Presence;
use crate::config::{By, ChannelName};
use crate::protocol::question::Question;
use crate::workflow::{
    ChannelReport, ChannelState, Delivery, Origin, Workflow, WorkflowError, WorkflowId, Workflows, kept_error,
};

/// How long a `pml serve` that was just started may take until it says how its channels stand.
pub(super) const OPENING: Duration = Duration::from_secs(5);

/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(50);

/// How a channel stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelStanding {
    /// The process that connects it says so.
    Reported(ChannelReport),
    /// A process connects the channels, and said nothing of this one within five seconds.
    Unopened,
    /// No process connects the channels.
    NoServer,
}

/// Reads how a channel stands, after a moment where a process is just opening it.
pub(super) async fn standing_of(
    workflows: &Workflows,
    state: &Path,
    channel: ChannelName,
) -> Result<ChannelStanding, WorkflowError> {
    let began = Instant::now();
    loop {
        let mut reports = running(workflows.channel_reports().await?).into_iter();
        if let Some(report) = reports.find(|report| report.channel == channel) {
            return Ok(ChannelStanding::Reported(report));
        }
        let state = state.to_owned();
        let kept = tokio::task::spawn_blocking(move || channels_are_kept(&state)).await;
        // One that is being started says that it keeps them before it opens one.
        if !matches!(kept, Ok(Ok(true))) {
            return Ok(ChannelStanding::NoServer);
        }
        if began.elapsed() >= OPENING {
            return Ok(ChannelStanding::Unopened);
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl Desk {
    /// Puts a question of pml itself to the people of one channel.
    pub async fn ask_on(
        &self,
        channel: ChannelName,
        program: AskingProgram,
        question: Question,
        time_to_live: Duration,
    ) -> Result<Workflow, Refusal> {
        let origin = Origin {
            config: program.config,
            by: By::Human,
            asker: program.asker,
            client: program.client,
        };
        let mut new =
            person_asks::new_question("ask_user", vec![question], time_to_live, program.project, origin);
        new.channel = Some(channel);
        Ok(self.workflows.create(new).await?.workflow())
    }

    /// Lists the deliveries of an ask.
    pub async fn deliveries_of(&self, id: WorkflowId) -> Result<Vec<Delivery>, Refusal> {
        Ok(self.workflows.deliveries_of(id).await?)
    }

    /// Lists the deliveries to a person on a channel, of every ask that is still kept.
    pub async fn deliveries_to(&self, channel: ChannelName, person: &str) -> Result<Vec<Delivery>, Refusal> {
        let person = person.to_owned();
        Ok(self.workflows.deliveries_to(channel, person).await?)
    }

    /// Lists the deliveries that may still be sent or edited.
    pub async fn open_deliveries(&self) -> Result<Vec<Delivery>, Refusal> {
        Ok(self.workflows.open_deliveries().await?)
    }

    /// Finds the delivery whose message carries a nonce.
    pub async fn pressed_delivery(
        &self,
        channel: ChannelName,
        nonce: &str,
    ) -> Result<Option<Delivery>, Refusal> {
        Ok(self.workflows.pressed_delivery(channel, nonce.to_owned()).await?)
    }

    /// Records a delivery; tells whether its ask is still kept.
    pub async fn record_delivery(&self, delivery: Delivery) -> Result<bool, Refusal> {
        Ok(self.workflows.record_delivery(delivery).await?)
    }

    /// Reports how a channel of this process stands, to every process.
    pub async fn report_channel(
        &self,
        channel: ChannelName,
        state: ChannelState,
        error: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(process) = own_process() else {
            return Ok(());
        };
        let report = ChannelReport {
            channel,
            state,
            error: error.map(kept_error),
            process,
            reported_at: moment().wall,
        };
        Ok(self.workflows.report_channel(report).await?)
    }

    /// Forgets how a channel of this process stood.
    pub async fn forget_channel(&self, channel: ChannelName) -> Result<(), Refusal> {
        Ok(self.workflows.forget_channel(channel).await?)
    }

    /// Returns how a channel stands, after a moment where a process is just opening it.
    pub async fn channel_standing(&self, channel: ChannelName) -> Result<ChannelStanding, Refusal> {
        Ok(standing_of(&self.workflows, self.locations.state(), channel).await?)
    }

    /// Returns how the channels stand whose process still runs.
    pub async fn channel_reports(&self) -> Result<Vec<ChannelReport>, Refusal> {
        let reports = self.workflows.channel_reports().await?;
        Ok(running(reports))
    }
}

/// Leaves out what a process said that has ended since.
pub(super) fn running(mut reports: Vec<ChannelReport>) -> Vec<ChannelReport> {
    reports.retain(|report| presence_of(Some(report.process)) == Presence::Running);
    reports
}
