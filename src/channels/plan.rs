//! The plan: what is to be sent, shown anew or given up, from what waits, what was sent, the routes and the clock. Pure.
//!
//! It names each delivery at most once, and none that is under way. Carried out or not, it may be made again at any time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::outcome::standing;
use super::pauses::Pauses;
use super::routes::{channels_for, named, quiet_left, until_escalation};
use crate::card::{Card, CardState};
use crate::config::{ChannelName, ChannelSettings};
use crate::workflow::{Delivery, DeliveryKey, DeliveryState, ShownStanding, Timestamp, WorkflowId};

/// How long a new ask waits before it is sent: what a rule, a client or a quick person answers disturbs no phone. An ask whose
/// asker named the channel does not wait.
const GRACE: Duration = Duration::from_secs(1);

/// Everything that a plan is made of.
pub(super) struct Known<'a> {
    /// The asks that wait, and those with a delivery that is not closed.
    pub(super) cards: &'a BTreeMap<WorkflowId, Card>,
    /// The deliveries that are not closed.
    pub(super) deliveries: &'a HashMap<DeliveryKey, Delivery>,
    /// Those that a channel is busy with.
    pub(super) under_way: &'a HashSet<DeliveryKey>,
    /// What is left alone for a while.
    pub(super) pauses: &'a Pauses,
    /// The moment by which pauses are counted.
    pub(super) instant: Instant,
    /// Who is asked, and where.
    pub(super) settings: &'a ChannelSettings,
    /// The home directory, for the routes of projects.
    pub(super) home: Option<&'a str>,
    /// What time it is.
    pub(super) moment: LocalMoment,
}

impl Known<'_> {
    fn pause_left(&self, key: &DeliveryKey) -> Option<Duration> {
        self.pauses.left(key, self.instant)
    }
}

/// A moment, and the minute of the day that it is where the person is.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalMoment {
    /// The moment.
    pub(super) now: Timestamp,
    /// The minute of the day.
    pub(super) minute: u16,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Send the ask; the delivery is new, or was queued before.
    Send(DeliveryKey),
    /// Show the ask as it stands now.
    Update(DeliveryKey),
    /// Say that it is not sent, and why.
    Fail(DeliveryKey, String),
    /// Nothing is to be sent any more: the ask is over.
    Close(DeliveryKey),
}

/// What is to be done now, and when to look again although nothing changed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// The steps, the oldest asks first.
    pub(super) steps: Vec<Step>,
    /// After how long time alone makes another plan.
    pub(super) again: Option<Duration>,
}

impl Plan {
    fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |known| known.min(after)));
    }
}

/// Makes the plan.
pub(super) fn plan(known: &Known<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut cards: Vec<&Card> = known.cards.values().collect();
    cards.sort_by_key(|card| (card.created_at, card.id));
    for card in cards {
        if card.state == CardState::Pending {
            plan_sending(known, card, &mut plan);
        }
    }
    let mut deliveries: Vec<&Delivery> = known.deliveries.values().collect();
    deliveries.sort_by(|one, other| one.key.cmp(&other.key));
    for delivery in deliveries {
        if !known.under_way.contains(&delivery.key)
            && let Some(card) = known.cards.get(&delivery.key.workflow)
        {
            match (step_of(delivery, card), known.pause_left(&delivery.key)) {
                (Some(Step::Send(_) | Step::Update(_)), Some(left)) => plan.look_again(left),
                (step, _) => plan.steps.extend(step),
            }
        }
    }
    plan
}

/// Plans what a delivery needs that is there already.
fn step_of(delivery: &Delivery, card: &Card) -> Option<Step> {
    let key = delivery.key.clone();
    let now = standing(card);
    match (delivery.state, now) {
        (DeliveryState::Queued, ShownStanding::Open) => Some(Step::Send(key)),
        (DeliveryState::Queued, _) => Some(Step::Close(key)),
        (DeliveryState::Sent, _) if now != delivery.standing => Some(Step::Update(key)),
        // No process is busy with it any more: it may have arrived, and is not sent twice.
        (DeliveryState::Sending, _) => Some(Step::Fail(key, INTERRUPTED.to_owned())),
        (DeliveryState::Sent | DeliveryState::Failed | DeliveryState::Closed, _) => None,
    }
}

/// What is said of a delivery whose process ended in the middle.
pub(super) const INTERRUPTED: &str =
    "`pml serve` ended while it was being sent; it may have arrived, and is not sent again";

fn plan_sending(known: &Known<'_>, card: &Card, plan: &mut Plan) {
    let age = known.moment.now.since(card.created_at);
    let quiet = quiet_left(known.settings.route.quiet, known.moment.minute);
    let named = named(card);
    if named.is_none() {
        if let Some(left) = GRACE.checked_sub(age).filter(|left| !left.is_zero()) {
            return plan.look_again(left);
        }
        if let Some(left) = until_escalation(known.settings, age) {
            plan.look_again(left);
        }
    }
    for channel in channels_for(card, known.settings, known.home, age) {
        for person in people(known.settings, channel) {
            let key = DeliveryKey {
                workflow: card.id,
                channel,
                person: person.clone(),
            };
            if known.deliveries.contains_key(&key) || known.under_way.contains(&key) {
                continue;
            }
            match (quiet, named) {
                (None, named) => match known.pause_left(&key) {
                    // Its outbox tells an agent that waits; any other ask is sent afterwards.
                    Some(left) if named.is_none() => plan.look_again(left),
                    Some(_) | None => plan.steps.push(Step::Send(key)),
                },
                // Its agent waits for a person now: it is told rather than kept waiting until morning.
                (Some(left), Some(_)) => {
                    let reason = format!("the quiet hours of `route` last {left} more minutes");
                    plan.steps.push(Step::Fail(key, reason));
                }
                (Some(left), None) => plan.look_again(Duration::from_mins(left.into())),
            }
        }
    }
}

fn people(settings: &ChannelSettings, channel: ChannelName) -> &[String] {
    settings.basics(channel).map_or(&[], |basics| &basics.people)
}

#[cfg(test)]
mod tests;
