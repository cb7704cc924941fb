//! The books of the office: what it knows of asks and deliveries between two looks at the store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use super::outbox::{Done, OrderResult};
use super::outcome::standing;
use super::pauses::Pauses;
use crate::card::{Card, CardState};
use crate::config::ChannelName;
use crate::proxy::{
    ChangedCards, Delivery, DeliveryKey, DeliveryState, Desk, Refusal, ShownStanding, WorkflowId,
};

/// What the office knows between two looks.
pub(super) struct Books {
    /// Up to which revision the cards are known; `None` where they must be read anew.
    pub(super) revision: Option<u64>,
    pub(super) cards: BTreeMap<WorkflowId, Card>,
    pub(super) deliveries: HashMap<DeliveryKey, Delivery>,
    pub(super) under_way: HashSet<DeliveryKey>,
    pub(super) pauses: Pauses,
}

impl Books {
    pub(super) fn new(deliveries: Vec<Delivery>) -> Self {
        let deliveries = deliveries.into_iter();
        Self {
            revision: None,
            cards: BTreeMap::new(),
            deliveries: deliveries
                .map(|delivery| (delivery.key.clone(), delivery))
                .collect(),
            under_way: HashSet::new(),
            pauses: Pauses::default(),
        }
    }

    /// Reads what changed since the last look.
    pub(super) async fn look(&mut self, desk: &Desk) -> Result<(), Refusal> {
        let changed = match self.revision {
            Some(revision) => desk.changed_since(revision).await?,
            None => ChangedCards::ReadAnew,
        };
        match changed {
            ChangedCards::These { latest, cards } => {
                for card in cards {
                    self.cards.insert(card.id, card);
                }
                self.revision = Some(latest);
            }
            ChangedCards::ReadAnew => {
                let snapshot = desk.snapshot().await?;
                let cards = snapshot.pending.into_iter().chain(snapshot.recent);
                self.cards = cards.map(|card| (card.id, card)).collect();
                self.revision = Some(snapshot.revision);
                let told = self.deliveries.keys().chain(&self.under_way);
                let unknown: HashSet<WorkflowId> = told.map(|key| key.workflow).collect();
                for id in unknown {
                    if !self.cards.contains_key(&id)
                        && let Ok(workflow) = desk.find(id).await
                    {
                        self.cards.insert(id, desk.card(&workflow));
                    }
                }
            }
        }
        let (cards, under_way) = (&self.cards, &self.under_way);
        // What is over and says so everywhere, or is gone, is nothing to remember.
        self.deliveries.retain(|key, delivery| {
            let card = cards.get(&key.workflow);
            let waits = card.is_some_and(|card| card.state == CardState::Pending);
            let shown_old = card.is_some_and(|card| standing(card) != delivery.standing);
            let unfinished = match delivery.state {
                DeliveryState::Queued | DeliveryState::Sending => card.is_some(),
                DeliveryState::Sent => {
                    card.is_some_and(|card| standing(card) != ShownStanding::Over) || shown_old
                }
                DeliveryState::Failed | DeliveryState::Closed => waits,
            };
            unfinished || under_way.contains(key)
        });
        let deliveries = &self.deliveries;
        self.pauses.retain(|key| deliveries.contains_key(key));
        // One that ends while it is being sent is shown anew once it is sent.
        let told: HashSet<WorkflowId> = deliveries
            .keys()
            .chain(&self.under_way)
            .map(|key| key.workflow)
            .collect();
        self.cards
            .retain(|id, card| card.state == CardState::Pending || told.contains(id));
        Ok(())
    }

    /// Takes note of what an outbox did.
    pub(super) fn enter(&mut self, done: Done) {
        let Done { key, result } = done;
        self.under_way.remove(&key);
        match result {
            OrderResult::Recorded(delivery) => {
                self.pauses.end(&key);
                self.keep(delivery);
            }
            OrderResult::Later(delivery, pause) => {
                self.pauses.begin(&key, pause, Instant::now());
                self.keep(delivery);
            }
            // It is gone, or cannot be recorded: it comes back with its next change.
            OrderResult::Gone => {
                self.deliveries.remove(&key);
                self.cards.remove(&key.workflow);
            }
        }
    }

    /// Forgets what a channel was busy with that is opened anew; what it had begun is read from the store.
    pub(super) async fn reopen(&mut self, channel: ChannelName, desk: &Desk) -> Result<(), Refusal> {
        let kept = desk.open_deliveries().await?.into_iter();
        let kept = kept.filter(|delivery| delivery.key.channel == channel);
        self.under_way.retain(|key| key.channel != channel);
        self.pauses.end_channel(channel);
        for delivery in kept {
            self.keep(delivery);
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, delivery: Delivery) {
        self.deliveries.insert(delivery.key.clone(), delivery);
    }
}
