use pretty_assertions::assert_eq;

use super::*;
use crate::channels::samples::{ASKED, question, settings};
use ChannelName::{Slack, Telegram, Whatsapp};

struct Desk {
    cards: BTreeMap<WorkflowId, Card>,
    deliveries: HashMap<DeliveryKey, Delivery>,
    under_way: HashSet<DeliveryKey>,
    pauses: Pauses,
    settings: ChannelSettings,
}

impl Desk {
    fn new(card: Card, route: &str) -> Self {
        Self {
            cards: BTreeMap::from([(card.id, card)]),
            deliveries: HashMap::new(),
            under_way: HashSet::new(),
            pauses: Pauses::default(),
            settings: settings(route),
        }
    }

    fn plan(&self, age: Duration, minute: u16) -> Plan {
        plan(&Known {
            cards: &self.cards,
            deliveries: &self.deliveries,
            under_way: &self.under_way,
            pauses: &self.pauses,
            instant: Instant::now(),
            settings: &self.settings,
            home: None,
            moment: LocalMoment {
                now: ASKED.plus(age),
                minute,
            },
        })
    }

    /// Does what a plan says, as channels would that take everything.
    fn carry_out(&mut self, plan: Plan) {
        for step in plan.steps {
            let (Step::Send(key) | Step::Update(key) | Step::Fail(key, _) | Step::Close(key)) = step.clone();
            let card = &self.cards[&key.workflow];
            let state = match step {
                Step::Update(_) if standing(card) == ShownStanding::Over => DeliveryState::Closed,
                Step::Send(_) | Step::Update(_) => DeliveryState::Sent,
                Step::Fail(..) => DeliveryState::Failed,
                Step::Close(_) => DeliveryState::Closed,
            };
            let delivery = delivery(&key, state, standing(card));
            self.deliveries.insert(key, delivery);
        }
    }
}

fn delivery(key: &DeliveryKey, state: DeliveryState, standing: ShownStanding) -> Delivery {
    Delivery {
        key: key.clone(),
        state,
        attempts: 1,
        error: None,
        nonce: "n".to_owned(),
        message: None,
        revision: 0,
        standing,
    }
}

fn key(channel: ChannelName, person: &str) -> DeliveryKey {
    DeliveryKey {
        workflow: question().id,
        channel,
        person: person.to_owned(),
    }
}

const NOON_MINUTE: u16 = 12 * 60;
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_ask_goes_to_everybody_of_its_channels_once_and_not_in_its_first_moment() {
    let mut desk = Desk::new(question(), r#"{ "default": ["slack"] }"#);
    let early = desk.plan(Duration::from_millis(400), NOON_MINUTE);
    assert_eq!(
        (early.steps, early.again),
        (Vec::new(), Some(Duration::from_millis(600)))
    );
    let first = desk.plan(SECOND, NOON_MINUTE);
    assert_eq!(
        first.steps,
        [Step::Send(key(Slack, "U1")), Step::Send(key(Slack, "U2"))]
    );
    desk.carry_out(first);
    assert_eq!(desk.plan(SECOND, NOON_MINUTE), Plan::default());
}

#[test]
fn what_is_under_way_is_not_planned_again() {
    let mut desk = Desk::new(question(), r#"{ "default": ["telegram"] }"#);
    desk.under_way.insert(key(Telegram, "1"));
    assert_eq!(desk.plan(SECOND, NOON_MINUTE).steps, []);
}

#[test]
fn every_message_is_shown_anew_when_the_ask_is_answered_taken_expired_or_withdrawn() {
    for (state, closed) in [
        (CardState::Answered, false),
        (CardState::Used, true),
        (CardState::Refused, true),
        (CardState::Expired, true),
        (CardState::Withdrawn, true),
    ] {
        let mut desk = Desk::new(question(), "{}");
        let first = desk.plan(SECOND, NOON_MINUTE);
        assert_eq!(first.steps.len(), 4);
        desk.carry_out(first);
        desk.cards.values_mut().for_each(|card| card.state = state);
        let second = desk.plan(SECOND, NOON_MINUTE);
        assert_eq!(
            second.steps,
            [
                Step::Update(key(Slack, "U1")),
                Step::Update(key(Slack, "U2")),
                Step::Update(key(Telegram, "1")),
                Step::Update(key(Whatsapp, "41")),
            ]
        );
        desk.carry_out(second);
        assert_eq!(desk.plan(SECOND, NOON_MINUTE), Plan::default());
        let ended = desk
            .deliveries
            .values()
            .all(|delivery| delivery.state == DeliveryState::Closed);
        assert_eq!(ended, closed, "{state:?}");
    }
}

#[test]
fn what_was_being_sent_when_a_process_ended_is_not_sent_again_and_what_was_queued_is() {
    let mut desk = Desk::new(question(), r#"{ "default": ["slack"] }"#);
    for (person, state) in [("U1", DeliveryState::Sending), ("U2", DeliveryState::Queued)] {
        let key = key(Slack, person);
        let found = delivery(&key, state, ShownStanding::Open);
        desk.deliveries.insert(key, found);
    }
    let steps = desk.plan(SECOND, NOON_MINUTE).steps;
    assert_eq!(
        steps,
        [
            Step::Fail(key(Slack, "U1"), INTERRUPTED.to_owned()),
            Step::Send(key(Slack, "U2")),
        ]
    );
    desk.cards
        .values_mut()
        .for_each(|card| card.state = CardState::Expired);
    let steps = desk.plan(SECOND, NOON_MINUTE).steps;
    assert_eq!(steps[1], Step::Close(key(Slack, "U2")));
}

#[test]
fn nothing_is_sent_in_quiet_hours_but_edits_and_it_is_at_their_end() {
    let mut desk = Desk::new(
        question(),
        r#"{ "default": ["telegram"], "quiet": "22:00-07:00" }"#,
    );
    let night = desk.plan(SECOND, 6 * 60);
    assert_eq!(
        (night.steps, night.again),
        (Vec::new(), Some(Duration::from_hours(1)))
    );
    let morning = desk.plan(SECOND, 7 * 60);
    assert_eq!(morning.steps, [Step::Send(key(Telegram, "1"))]);
    desk.carry_out(morning);
    desk.cards
        .values_mut()
        .for_each(|card| card.state = CardState::Used);
    assert_eq!(
        desk.plan(SECOND, 23 * 60).steps,
        [Step::Update(key(Telegram, "1"))]
    );
}

#[test]
fn an_ask_that_names_its_channel_goes_there_at_once_or_is_told_that_it_does_not() {
    let mut card = question();
    card.channel = Some("slack");
    let desk = Desk::new(card, r#"{ "default": ["telegram"], "quiet": "22:00-07:00" }"#);
    let sent = desk.plan(Duration::ZERO, NOON_MINUTE);
    assert_eq!(
        sent.steps,
        [Step::Send(key(Slack, "U1")), Step::Send(key(Slack, "U2"))]
    );
    let [Step::Fail(_, reason), _] = &desk.plan(Duration::ZERO, 23 * 60).steps[..] else {
        panic!("it is not told")
    };
    assert_eq!(reason, "the quiet hours of `route` last 480 more minutes");
}

#[test]
fn what_waits_long_goes_elsewhere_as_well() {
    let mut desk = Desk::new(
        question(),
        r#"{ "default": ["telegram"], "escalate": { "after": "10m", "to": ["whatsapp"] } }"#,
    );
    let first = desk.plan(SECOND, NOON_MINUTE);
    assert_eq!(first.steps, [Step::Send(key(Telegram, "1"))]);
    assert_eq!(first.again, Some(Duration::from_secs(599)));
    desk.carry_out(first);
    let later = desk.plan(Duration::from_mins(10), NOON_MINUTE);
    assert_eq!(
        later,
        Plan {
            steps: vec![Step::Send(key(Whatsapp, "41"))],
            again: None
        }
    );
}
