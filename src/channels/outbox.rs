//! The outbox of one channel: sends and edits its messages one after another, so that a slow service delays no other.
//!
//! A delivery is recorded as being sent before the service is told, and as sent after it confirmed: a process that ends in
//! between leaves one that may have arrived, which the next process sees and does not send again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::backoff;
use super::channel::{Channel, ChannelError, MessageRef};
use super::connection::Connection;
use super::local_time::LocalTime;
use super::notice::{Notice, Standing};
use super::outcome;
use super::press::Nonce;
use super::view;
use crate::card::{Card, CardState};
use crate::config::{ChannelBasics, ChannelSettings};
use crate::proxy::{Delivery, DeliveryKey, DeliveryState, Desk, ShownStanding};
use crate::workflow::kept_error;

/// How often a message is tried: about a minute and a half in all, longer where the service wants to be waited for.
const ATTEMPTS: u32 = 7;

/// How long a request may take; channels bound their own, and this is for one that does not.
const LIMIT: Duration = Duration::from_mins(1);

/// What a channel is to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Send an ask; what was queued before comes with it.
    Send(DeliveryKey, Option<Delivery>),
    /// Show an ask as it stands now.
    Update(Delivery),
}

/// What came of an order.
#[derive(Debug)]
pub(super) struct Done {
    /// Which delivery.
    pub(super) key: DeliveryKey,
    /// How it stands; `None` where its ask is gone.
    pub(super) delivery: Option<Delivery>,
}

/// The outbox of a channel.
pub(super) struct Outbox {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) desk: Desk,
    pub(super) settings: watch::Receiver<Arc<ChannelSettings>>,
    pub(super) inbox: Option<String>,
    pub(super) time: LocalTime,
    pub(super) connection: Arc<Connection>,
    pub(super) done: mpsc::UnboundedSender<Done>,
    pub(super) ending: CancellationToken,
}

impl Outbox {
    /// Carries out orders until there can be no more.
    pub(super) async fn run(self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.recv().await {
            if self.ending.is_cancelled() {
                return;
            }
            let (key, delivery) = match order {
                Order::Send(key, queued) => (key.clone(), self.send(key, queued).await),
                Order::Update(delivery) => (delivery.key.clone(), self.update(delivery).await),
            };
            if self.done.send(Done { key, delivery }).is_err() {
                return;
            }
        }
    }

    fn basics(&self) -> Option<ChannelBasics> {
        let settings = self.settings.borrow();
        settings.basics(self.channel.name()).cloned()
    }

    /// Reads the card of an ask as it stands now.
    async fn card(&self, key: &DeliveryKey) -> Option<Card> {
        let workflow = self.desk.find(key.workflow).await.ok()?;
        Some(self.desk.card(&workflow))
    }

    async fn send(&self, key: DeliveryKey, queued: Option<Delivery>) -> Option<Delivery> {
        let mut delivery = queued.unwrap_or_else(|| Delivery {
            key: key.clone(),
            state: DeliveryState::Queued,
            attempts: 0,
            error: None,
            nonce: Nonce::fresh().as_str().to_owned(),
            message: None,
            revision: 0,
            standing: ShownStanding::Open,
        });
        loop {
            let card = self.card(&key).await?;
            let basics = self.basics()?;
            if card.state != CardState::Pending || !basics.people.contains(&key.person) {
                delivery.state = DeliveryState::Closed;
                return self.recorded(delivery).await;
            }
            let shown = view::outside(&card, basics.details);
            if let Err(unsupported) = self.channel.fits(&shown) {
                return self.failed(delivery, &unsupported.to_string()).await;
            }
            delivery.state = DeliveryState::Sending;
            delivery.attempts += 1;
            delivery.revision = card.rev;
            delivery = self.recorded(delivery).await?;
            let notice = Notice {
                standing: Standing::Open {
                    choices: view::choices(&card, &basics),
                },
                card: shown,
                nonce: Nonce::kept(delivery.nonce.clone()),
                inbox: self.inbox.clone(),
            };
            let error = match self.limited(self.channel.send(&notice, &key.person)).await {
                Ok(message) => {
                    self.connection.connected().await;
                    delivery.state = DeliveryState::Sent;
                    delivery.error = None;
                    delivery.message = Some(message.0);
                    return self.recorded(delivery).await;
                }
                Err(error) => error,
            };
            tracing::info!(channel = %key.channel, attempt = delivery.attempts, "an ask was not sent: {error}");
            match Self::pause(&error, delivery.attempts) {
                Some(pause) => {
                    delivery.state = DeliveryState::Queued;
                    delivery.error = Some(kept_error(&error.to_string()));
                    delivery = self.recorded(delivery).await?;
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.ending.cancelled() => return Some(delivery),
                    }
                }
                None => return self.failed(delivery, &error.to_string()).await,
            }
        }
    }

    async fn update(&self, mut delivery: Delivery) -> Option<Delivery> {
        for attempt in 1.. {
            let card = self.card(&delivery.key).await?;
            let basics = self.basics()?;
            let standing = outcome::standing(&card);
            let Some(line) = outcome::line(&card, &|at| self.time.time(at)) else {
                return Some(delivery);
            };
            let notice = Notice {
                card: view::outside(&card, basics.details),
                nonce: Nonce::kept(delivery.nonce.clone()),
                standing: Standing::Closed(line),
                inbox: self.inbox.clone(),
            };
            let at = MessageRef(delivery.message.clone().unwrap_or_default());
            let error = self.limited(self.channel.update(&at, &notice)).await.err();
            let pause = error.as_ref().and_then(|error| Self::pause(error, attempt));
            delivery.error = error.map(|error| kept_error(&error.to_string()));
            if let Some(pause) = pause {
                tokio::select! {
                    () = tokio::time::sleep(pause) => continue,
                    () = self.ending.cancelled() => return Some(delivery),
                }
            }
            // What could not be edited is not tried for ever: the person finds out by a press, and by the inbox.
            delivery.revision = card.rev;
            delivery.standing = standing;
            if standing == ShownStanding::Over {
                delivery.state = DeliveryState::Closed;
            }
            return self.recorded(delivery).await;
        }
        None
    }

    /// Bounds how long a channel may take.
    async fn limited<T>(
        &self,
        request: impl Future<Output = Result<T, ChannelError>>,
    ) -> Result<T, ChannelError> {
        let late = ChannelError::Unreachable {
            channel: self.channel.name().title(),
            reason: "it did not answer in time".to_owned(),
        };
        tokio::time::timeout(LIMIT, request).await.unwrap_or(Err(late))
    }

    /// Returns how long to wait before trying again; `None` where that does not help, or was done often enough.
    fn pause(error: &ChannelError, attempts: u32) -> Option<Duration> {
        if attempts >= ATTEMPTS {
            return None;
        }
        match error {
            ChannelError::Unreachable { .. } | ChannelError::Contested { .. } => {
                Some(backoff::wait(attempts, backoff::chance()))
            }
            ChannelError::TooFast { after, .. } => Some(backoff::wanted(*after)),
            // What was answered so may have been done.
            ChannelError::Refused { .. } | ChannelError::Unreadable { .. } => None,
        }
    }

    async fn failed(&self, mut delivery: Delivery, reason: &str) -> Option<Delivery> {
        delivery.state = DeliveryState::Failed;
        delivery.error = Some(kept_error(reason));
        self.recorded(delivery).await
    }

    /// Records a delivery; `None` where its ask is gone.
    async fn recorded(&self, delivery: Delivery) -> Option<Delivery> {
        match self.desk.record_delivery(delivery.clone()).await {
            Ok(true) => Some(delivery),
            Ok(false) => None,
            Err(refusal) => {
                // Without a record it would be sent again by the next process.
                tracing::warn!(
                    "a delivery cannot be recorded: {}",
                    crate::report::render_hinted(&refusal)
                );
                None
            }
        }
    }
}
