//! The outbox of one channel: sends and edits its messages one after another, so that a slow service delays no other.
//!
//! A delivery is recorded as being sent before the service is told, and as sent after it confirmed: a process that ends in
//! between leaves one that may have arrived, which the next process sees and does not send again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::backoff;
use super::channel::{Channel, ChannelError, MessageRef, OutcomeNotice};
use super::connection::Connection;
use super::local_time::LocalTime;
use super::notice::{Notice, Standing};
use super::pauses::Pause;
use super::press::Nonce;
use super::routes::named;
use super::{outcome, view};
use crate::card::{Card, CardState};
use crate::config::{ChannelBasics, ChannelSettings};
use crate::proxy::{Delivery, DeliveryKey, DeliveryState, Desk, ShownStanding};
use crate::workflow::kept_error;

/// How often a message is tried: about a minute and a half in all, longer where the service wants to be waited for.
const ATTEMPTS: u32 = 7;

/// The longest pause before a message whose agent waits to hear that it was sent; it gives up a little later itself.
const AGENT_WAITS: Duration = Duration::from_secs(3);

/// How long a request may take; channels bound their own, and this is for one that does not.
const LIMIT: Duration = Duration::from_mins(1);

/// What a channel is to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Send an ask; what was queued before comes with it.
    Send(DeliveryKey, Option<Delivery>),
    /// Show an ask as it stands now; how often that failed comes with it.
    Update(Delivery, u32),
}

impl Order {
    /// Returns which delivery it is about.
    pub(super) fn key(&self) -> &DeliveryKey {
        match self {
            Self::Send(key, _) => key,
            Self::Update(delivery, _) => &delivery.key,
        }
    }
}

/// What came of an order.
#[derive(Debug)]
pub(super) struct Done {
    /// Which delivery.
    pub(super) key: DeliveryKey,
    /// How it ended.
    pub(super) result: OrderResult,
}

/// How an order ended.
#[derive(Debug)]
pub(super) enum OrderResult {
    /// The delivery stands so.
    Recorded(Delivery),
    /// The service could not do it now; the delivery stands as before, and is tried again after the pause.
    Later(Delivery, Pause),
    /// The ask is gone, or cannot be recorded.
    Gone,
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
    /// Until when the service wants no request.
    pub(super) held_until: Option<Instant>,
}

impl Outbox {
    /// Carries out orders until there can be no more.
    ///
    /// It never pauses itself: what is to be tried again goes back to the office, so that an ask that is over by then is
    /// not tried, and that other asks do not wait behind it.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.recv().await {
            if self.ending.is_cancelled() {
                return;
            }
            let key = order.key().clone();
            let result = match order {
                Order::Send(key, queued) => self.send(key, queued).await,
                Order::Update(delivery, failures) => self.update(delivery, failures).await,
            };
            let result = result.unwrap_or(OrderResult::Gone);
            if self.done.send(Done { key, result }).is_err() {
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

    /// Sends an ask; `None` where it is gone.
    async fn send(&mut self, key: DeliveryKey, queued: Option<Delivery>) -> Option<OrderResult> {
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
        let card = self.card(&key).await?;
        let basics = self.basics()?;
        if card.state != CardState::Pending || !basics.people.contains(&key.person) {
            delivery.state = DeliveryState::Closed;
            return self.recorded(delivery).await.map(OrderResult::Recorded);
        }
        let shown = view::outside(&card, basics.details);
        // What has no room leads to the inbox; an agent that named this channel is told rather.
        if let Err(unsupported) = self.channel.fits(&shown)
            && named(&card).is_some()
        {
            return self.failed(delivery, &unsupported.to_string()).await;
        }
        if let Some(error) = self.held() {
            return self.not_sent(delivery, &card, &error).await;
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
        let channel = Arc::clone(&self.channel);
        match self.limited(channel.send(&notice, &key.person)).await {
            Ok(message) => {
                self.connection.connected().await;
                delivery.state = DeliveryState::Sent;
                delivery.error = None;
                delivery.message = Some(message.0);
                self.recorded(delivery).await.map(OrderResult::Recorded)
            }
            Err(error) => self.not_sent(delivery, &card, &error).await,
        }
    }

    /// Decides what follows where an ask was not sent.
    async fn not_sent(
        &self,
        mut delivery: Delivery,
        card: &Card,
        error: &ChannelError,
    ) -> Option<OrderResult> {
        let attempts = delivery.attempts;
        tracing::info!(channel = %delivery.key.channel, attempts, "an ask was not sent: {error}");
        let pause = (attempts < ATTEMPTS).then(|| pause_of_send(error, attempts));
        match pause.flatten() {
            // Its agent waits to hear that a person was reached: it is told rather than kept waiting.
            Some(pause) if pause.length() > AGENT_WAITS && self.agent_waits(card).await => {
                self.failed(delivery, &error.to_string()).await
            }
            Some(pause) => {
                delivery.state = DeliveryState::Queued;
                delivery.error = Some(kept_error(&error.to_string()));
                let delivery = self.recorded(delivery).await?;
                Some(OrderResult::Later(delivery, pause))
            }
            None => self.failed(delivery, &error.to_string()).await,
        }
    }

    /// Tells whether the agent of an ask waits to hear that it was sent: it named this channel, and no person has it yet.
    async fn agent_waits(&self, card: &Card) -> bool {
        let sent = |delivery: &Delivery| delivery.state == DeliveryState::Sent;
        let deliveries = self.desk.deliveries_of(card.id).await;
        named(card).is_some() && !deliveries.is_ok_and(|deliveries| deliveries.iter().any(sent))
    }

    /// Tells what became of an ask; `None` where it is gone.
    async fn update(&mut self, before: Delivery, failures: u32) -> Option<OrderResult> {
        let card = self.card(&before.key).await?;
        let basics = self.basics()?;
        let standing = outcome::standing(&card);
        let Some(line) = outcome::line(&card, &|at| self.time.time(at)) else {
            return Some(OrderResult::Recorded(before));
        };
        let notice = Notice {
            card: view::outside(&card, basics.details),
            nonce: Nonce::kept(before.nonce.clone()),
            standing: Standing::Closed(line),
            inbox: self.inbox.clone(),
        };
        let how = self.channel.outcome_notice();
        let mut delivery = Delivery {
            revision: card.rev,
            standing,
            error: None,
            ..before.clone()
        };
        if standing == ShownStanding::Over || how == OutcomeNotice::OwnMessage {
            delivery.state = DeliveryState::Closed;
        }
        if let Some(error) = self.held() {
            let pause = pause_of_update(&error, how, failures + 1)?;
            return Some(OrderResult::Later(before, pause));
        }
        if how == OutcomeNotice::OwnMessage {
            // Recorded first: a process that ends in between leaves one message too few, never one too many.
            delivery = self.recorded(delivery).await?;
        }
        let at = MessageRef(before.message.clone().unwrap_or_default());
        let channel = Arc::clone(&self.channel);
        let Err(error) = self.limited(channel.update(&at, &notice)).await else {
            return match how {
                OutcomeNotice::EditedMessage => self.recorded(delivery).await.map(OrderResult::Recorded),
                OutcomeNotice::OwnMessage => Some(OrderResult::Recorded(delivery)),
            };
        };
        let told = Some(kept_error(&error.to_string()));
        if let Some(pause) = pause_of_update(&error, how, failures + 1) {
            tracing::debug!(channel = %before.key.channel, "an outcome is not told yet: {error}");
            let before = self
                .recorded(Delivery {
                    error: told,
                    ..before
                })
                .await?;
            return Some(OrderResult::Later(before, pause));
        }
        // Noted once, and not tried at the next change: the person finds out by a press, and by the inbox.
        tracing::warn!(channel = %delivery.key.channel, "what became of an ask cannot be told there: {error}");
        delivery.state = DeliveryState::Closed;
        delivery.error = told;
        self.recorded(delivery).await.map(OrderResult::Recorded)
    }

    /// Returns what the service said where it still wants no request.
    fn held(&self) -> Option<ChannelError> {
        let left = self.held_until?.checked_duration_since(Instant::now());
        let left = left.filter(|left| !left.is_zero())?;
        Some(ChannelError::TooFast {
            channel: self.channel.name().title(),
            after: left,
        })
    }

    /// Makes a request, bounds how long it may take, and takes note where the service wants no other for a while.
    async fn limited<T>(
        &mut self,
        request: impl Future<Output = Result<T, ChannelError>>,
    ) -> Result<T, ChannelError> {
        let late = ChannelError::Silent {
            channel: self.channel.name().title(),
        };
        let result = tokio::time::timeout(LIMIT, request).await.unwrap_or(Err(late));
        if let Err(ChannelError::TooFast { after, .. }) = &result {
            self.held_until = Some(Instant::now() + backoff::wanted(*after));
        }
        result
    }

    async fn failed(&self, mut delivery: Delivery, reason: &str) -> Option<OrderResult> {
        delivery.state = DeliveryState::Failed;
        delivery.error = Some(kept_error(reason));
        self.recorded(delivery).await.map(OrderResult::Recorded)
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

/// Returns how long a message waits that was not sent; `None` where trying again does not help.
fn pause_of_send(error: &ChannelError, attempts: u32) -> Option<Pause> {
    match error {
        ChannelError::Unreachable { .. } | ChannelError::Silent { .. } | ChannelError::Contested { .. } => {
            Some(usual(attempts))
        }
        ChannelError::TooFast { after, .. } => Some(Pause::OfChannel(backoff::wanted(*after))),
        // What was answered so may have been done.
        ChannelError::Refused { .. } | ChannelError::Unreadable { .. } => None,
    }
}

/// Returns how long an outcome waits that was not told; `None` where trying again does not help, or could tell it twice.
///
/// An edit is tried for as long as the ask is kept, once a minute at the end: buttons that do nothing must not stay.
fn pause_of_update(error: &ChannelError, how: OutcomeNotice, failures: u32) -> Option<Pause> {
    match (error, how) {
        (ChannelError::TooFast { after, .. }, _) => Some(Pause::OfChannel(backoff::wanted(*after))),
        (ChannelError::Unreachable { .. } | ChannelError::Contested { .. }, _)
        | (ChannelError::Silent { .. } | ChannelError::Unreadable { .. }, OutcomeNotice::EditedMessage) => {
            Some(usual(failures))
        }
        (ChannelError::Silent { .. } | ChannelError::Unreadable { .. }, OutcomeNotice::OwnMessage)
        | (ChannelError::Refused { .. }, _) => None,
    }
}

fn usual(failures: u32) -> Pause {
    Pause::OfMessage(backoff::wait(failures, backoff::chance()))
}
