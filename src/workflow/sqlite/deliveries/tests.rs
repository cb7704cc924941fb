use std::time::Duration;

use serde_json::json;

use super::*;
use crate::workflow::samples::{NOON, new};
use crate::workflow::store::KEPT_AFTER_DEADLINE;
use crate::workflow::{Event, Place};

fn delivery(workflow: WorkflowId, channel: ChannelName, person: &str) -> Delivery {
    Delivery {
        key: DeliveryKey {
            workflow,
            channel,
            person: person.to_owned(),
        },
        state: DeliveryState::Queued,
        attempts: 0,
        error: None,
        nonce: format!("{channel}-{person}"),
        message: None,
        revision: 0,
        standing: ShownStanding::Open,
    }
}

#[test]
fn a_delivery_is_written_over_and_found_by_its_ask_its_person_and_its_nonce() {
    let directory = tempfile::tempdir().unwrap();
    let place = Place::File(directory.path().join("workflows.db"));
    let mut store = place.open().unwrap();
    let ask = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    let mut slack = delivery(ask.id, ChannelName::Slack, "U1");
    let other = delivery(ask.id, ChannelName::Telegram, "1");
    assert!(store.record_delivery(&slack).unwrap() && store.record_delivery(&other).unwrap());
    slack.state = DeliveryState::Sent;
    slack.attempts = 2;
    slack.error = Some("Slack cannot be reached: timed out".to_owned());
    slack.message = Some(json!({ "ts": "1.2", "channel": "D1" }));
    slack.revision = 7;
    slack.standing = ShownStanding::Answered;
    assert!(store.record_delivery(&slack).unwrap());
    drop(store);
    let store = place.open().unwrap();
    assert_eq!(
        store.deliveries_of(ask.id).unwrap(),
        [slack.clone(), other.clone()]
    );
    assert_eq!(
        store.deliveries_to(ChannelName::Slack, "U1").unwrap(),
        [slack.clone()]
    );
    assert_eq!(store.deliveries_to(ChannelName::Slack, "U2").unwrap(), []);
    assert_eq!(
        store.pressed_delivery(ChannelName::Slack, "slack-U1").unwrap(),
        Some(slack)
    );
    assert_eq!(
        store.pressed_delivery(ChannelName::Telegram, "slack-U1").unwrap(),
        None
    );
}

#[test]
fn every_state_and_standing_reads_back_and_what_is_closed_is_not_open() {
    let mut store = Place::Memory.open().unwrap();
    let ask = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    for state in DeliveryState::ALL {
        for standing in ShownStanding::ALL {
            let written = Delivery {
                state,
                standing,
                ..delivery(ask.id, ChannelName::Ntfy, "topic")
            };
            store.record_delivery(&written).unwrap();
            assert_eq!(
                store.deliveries_of(ask.id).unwrap(),
                std::slice::from_ref(&written)
            );
            let open = store.open_deliveries().unwrap();
            assert_eq!(
                open.len(),
                usize::from(state != DeliveryState::Closed),
                "{state:?}"
            );
        }
    }
}

#[test]
fn deliveries_go_with_their_ask_and_none_is_written_for_one_that_is_gone() {
    let mut store = Place::Memory.open().unwrap();
    let ask = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    let sent = delivery(ask.id, ChannelName::Slack, "U1");
    store.record_delivery(&sent).unwrap();
    store.apply(ask.id, Event::Withdraw, NOON).unwrap();
    assert_eq!(store.deliveries_of(ask.id).unwrap().len(), 1);
    let later = NOON.plus(KEPT_AFTER_DEADLINE + Duration::from_hours(1));
    assert_eq!(store.sweep(later, &[]).unwrap().deleted, 1);
    assert_eq!(store.deliveries_of(ask.id).unwrap(), []);
    assert!(!store.record_delivery(&sent).unwrap());
    assert_eq!(store.deliveries_of(ask.id).unwrap(), []);
}

#[test]
fn how_a_channel_stands_is_seen_by_other_processes_until_it_is_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let place = Place::File(directory.path().join("workflows.db"));
    let (mut serving, asking) = (place.open().unwrap(), place.open().unwrap());
    let mut report = ChannelReport {
        channel: ChannelName::Telegram,
        state: ChannelState::Connecting,
        error: None,
        process: ProcessName { pid: 7, started: 9 },
        reported_at: NOON,
    };
    for state in ChannelState::ALL {
        report.state = state;
        serving.report_channel(&report).unwrap();
        assert_eq!(asking.channel_reports().unwrap(), [report.clone()]);
    }
    serving.forget_channel(ChannelName::Telegram).unwrap();
    assert_eq!(asking.channel_reports().unwrap(), []);
}

#[test]
fn an_ask_keeps_the_channel_that_was_named_and_the_same_ask_elsewhere_is_another_one() {
    let mut store = Place::Memory.open().unwrap();
    let mut named = new("{}");
    named.channel = Some(ChannelName::Slack);
    let on_slack = store.create(named.clone(), NOON).unwrap().suspension.workflow();
    assert_eq!(store.find(on_slack.id).unwrap().channel, Some(ChannelName::Slack));
    let again = store.create(named, NOON).unwrap().suspension.workflow();
    assert_eq!(again.id, on_slack.id);
    let anywhere = store.create(new("{}"), NOON).unwrap().suspension.workflow();
    assert_ne!(anywhere.id, on_slack.id);
    assert_eq!(anywhere.channel, None);
}

#[test]
fn an_ask_of_the_fourth_format_waits_on_in_the_fifth() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("workflows.db");
    #[expect(clippy::disallowed_methods, reason = "the file of an older pml")]
    let old = rusqlite::Connection::open(&path).unwrap();
    for format in [
        include_str!("../1.sql"),
        include_str!("../2.sql"),
        include_str!("../3.sql"),
        include_str!("../4.sql"),
    ] {
        old.execute_batch(format).unwrap();
    }
    old.pragma_update(None, "user_version", 4).unwrap();
    let ask = super::super::row::written(&new("{}").ask).unwrap();
    let state = super::super::row::written(&crate::workflow::State::Pending).unwrap();
    let id = uuid::Uuid::new_v4().to_string();
    old.execute(
        "INSERT INTO workflow (id, code, ask, tool, arguments, launch, project, state, phase, identity, created_at, expires_at)
         VALUES (?1, 'abcde', ?2, 'serena:analyze', x'7b7d', 'launch', CAST('/project' AS BLOB), ?3, 'pending', 'identity', ?4, ?5)",
        params![id, ask, state, NOON.millis(), NOON.plus(Duration::from_mins(5)).millis()],
    )
    .unwrap();
    drop(old);
    let mut store = Place::File(path).open().unwrap();
    let id: WorkflowId = id.parse().unwrap();
    let found = store.find(id).unwrap();
    assert_eq!((found.channel, found.revision), (None, 1));
    assert!(
        store
            .record_delivery(&delivery(id, ChannelName::Slack, "U1"))
            .unwrap()
    );
    assert_eq!(store.pending(NOON).unwrap(), [found]);
}
