use crate::workflow::{Provenance, Road};
use std::fmt::Write as _;

use super::*;

const BEFORE: Timestamp = Timestamp::from_millis(59_999);
const DEADLINE: Timestamp = Timestamp::from_millis(60_000);
const LIFETIME: Lifetime = Lifetime {
    created_at: Timestamp::from_millis(500),
    expires_at: DEADLINE,
};

const APPROVE: Answer = Answer::Approve { scope: Scope::Once };

fn refuse() -> Answer {
    Answer::Refuse {
        reason: Some("no\u{1b}".to_owned()),
    }
}

fn states() -> [(&'static str, State); 6] {
    let at = Timestamp::from_millis(1_000);
    [
        ("pending", State::Pending),
        (
            "approved",
            State::Answered {
                answer: APPROVE,
                by: Road::Cli.into(),
                at,
            },
        ),
        (
            "refused",
            State::Answered {
                answer: refuse(),
                by: Road::Web.into(),
                at,
            },
        ),
        (
            "taken",
            State::Taken {
                answer: APPROVE,
                by: Road::Cli.into(),
                at,
                taken_at: Timestamp::from_millis(2_000),
            },
        ),
        ("expired", State::Expired),
        ("withdrawn", State::Withdrawn),
    ]
}

fn describe(outcome: &Result<State, TransitionError>) -> String {
    match outcome {
        Ok(State::Pending) => "=> pending".to_owned(),
        Ok(State::Answered { answer, by, at }) => format!("=> {} by {by} at {at}", word(answer)),
        Ok(State::Taken {
            answer,
            by,
            at,
            taken_at,
        }) => {
            format!("=> taken at {taken_at}, {} by {by} at {at}", word(answer))
        }
        Ok(State::Expired) => "=> expired".to_owned(),
        Ok(State::Withdrawn) => "=> withdrawn".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

/// Every state under everything in `columns`, one millisecond before the deadline and at it.
fn table<E: Clone>(
    columns: &[(&str, E)],
    step: impl Fn(&State, E, Timestamp) -> Result<State, TransitionError>,
) -> String {
    let mut table = String::new();
    for (state_name, state) in states() {
        for (name, event) in columns {
            for (when, now) in [("before", BEFORE), ("at", DEADLINE)] {
                let outcome = describe(&step(&state, event.clone(), now));
                let _ = writeln!(table, "{state_name:9} {name:8} {when:6} | {outcome}");
            }
        }
    }
    table
}

#[test]
fn every_state_has_one_outcome_for_every_event_before_and_at_the_deadline() {
    let by = || Provenance::from(Road::Dialog);
    let events = [
        (
            "approve",
            Event::Answer {
                answer: APPROVE,
                by: by(),
            },
        ),
        (
            "refuse",
            Event::Answer {
                answer: refuse(),
                by: by(),
            },
        ),
        ("take", Event::Take),
        ("expire", Event::Expire),
        ("withdraw", Event::Withdraw),
    ];
    insta::assert_snapshot!(table(&events, |state, event, now| transition(state, LIFETIME, event, now)), @r"
    pending   approve  before | => approved by dialog at 1970-01-01 00:00:59Z
    pending   approve  at     | expired at 1970-01-01 00:01:00Z
    pending   refuse   before | => refused by dialog at 1970-01-01 00:00:59Z
    pending   refuse   at     | expired at 1970-01-01 00:01:00Z
    pending   take     before | is not answered yet
    pending   take     at     | expired at 1970-01-01 00:01:00Z
    pending   expire   before | does not expire before 1970-01-01 00:01:00Z
    pending   expire   at     | => expired
    pending   withdraw before | => withdrawn
    pending   withdraw at     | expired at 1970-01-01 00:01:00Z
    approved  approve  before | was already approved by cli at 1970-01-01 00:00:01Z; the first answer counts
    approved  approve  at     | expired at 1970-01-01 00:01:00Z
    approved  refuse   before | was already approved by cli at 1970-01-01 00:00:01Z; the first answer counts
    approved  refuse   at     | expired at 1970-01-01 00:01:00Z
    approved  take     before | => taken at 1970-01-01 00:00:59Z, approved by cli at 1970-01-01 00:00:01Z
    approved  take     at     | expired at 1970-01-01 00:01:00Z
    approved  expire   before | does not expire before 1970-01-01 00:01:00Z
    approved  expire   at     | => expired
    approved  withdraw before | was already approved by cli at 1970-01-01 00:00:01Z; the first answer counts
    approved  withdraw at     | expired at 1970-01-01 00:01:00Z
    refused   approve  before | was already refused by web at 1970-01-01 00:00:01Z; the first answer counts
    refused   approve  at     | was already refused by web at 1970-01-01 00:00:01Z; the first answer counts
    refused   refuse   before | was already refused by web at 1970-01-01 00:00:01Z; the first answer counts
    refused   refuse   at     | was already refused by web at 1970-01-01 00:00:01Z; the first answer counts
    refused   take     before | was refused by web: no\u{1b}
    refused   take     at     | was refused by web: no\u{1b}
    refused   expire   before | was refused by web: no\u{1b}
    refused   expire   at     | was refused by web: no\u{1b}
    refused   withdraw before | was refused by web: no\u{1b}
    refused   withdraw at     | was refused by web: no\u{1b}
    taken     approve  before | was already used at 1970-01-01 00:00:02Z
    taken     approve  at     | was already used at 1970-01-01 00:00:02Z
    taken     refuse   before | was already used at 1970-01-01 00:00:02Z
    taken     refuse   at     | was already used at 1970-01-01 00:00:02Z
    taken     take     before | was already used at 1970-01-01 00:00:02Z
    taken     take     at     | was already used at 1970-01-01 00:00:02Z
    taken     expire   before | was already used at 1970-01-01 00:00:02Z
    taken     expire   at     | was already used at 1970-01-01 00:00:02Z
    taken     withdraw before | was already used at 1970-01-01 00:00:02Z
    taken     withdraw at     | was already used at 1970-01-01 00:00:02Z
    expired   approve  before | expired at 1970-01-01 00:01:00Z
    expired   approve  at     | expired at 1970-01-01 00:01:00Z
    expired   refuse   before | expired at 1970-01-01 00:01:00Z
    expired   refuse   at     | expired at 1970-01-01 00:01:00Z
    expired   take     before | expired at 1970-01-01 00:01:00Z
    expired   take     at     | expired at 1970-01-01 00:01:00Z
    expired   expire   before | expired at 1970-01-01 00:01:00Z
    expired   expire   at     | expired at 1970-01-01 00:01:00Z
    expired   withdraw before | expired at 1970-01-01 00:01:00Z
    expired   withdraw at     | expired at 1970-01-01 00:01:00Z
    withdrawn approve  before | was withdrawn
    withdrawn approve  at     | was withdrawn
    withdrawn refuse   before | was withdrawn
    withdrawn refuse   at     | was withdrawn
    withdrawn take     before | was withdrawn
    withdrawn take     at     | was withdrawn
    withdrawn expire   before | was withdrawn
    withdrawn expire   at     | was withdrawn
    withdrawn withdraw before | was withdrawn
    withdrawn withdraw at     | was withdrawn
    ");
}

#[test]
fn a_continuation_answers_and_takes_at_once_or_says_why_not() {
    let answers = [("approve", APPROVE), ("refuse", refuse())];
    let step =
        |state: &State, answer, now| answer_and_take(state, LIFETIME, answer, Road::Continuation.into(), now);
    insta::assert_snapshot!(table(&answers, step), @r"
    pending   approve  before | => taken at 1970-01-01 00:00:59Z, approved by continuation at 1970-01-01 00:00:59Z
    pending   approve  at     | expired at 1970-01-01 00:01:00Z
    pending   refuse   before | => refused by continuation at 1970-01-01 00:00:59Z
    pending   refuse   at     | expired at 1970-01-01 00:01:00Z
    approved  approve  before | => taken at 1970-01-01 00:00:59Z, approved by cli at 1970-01-01 00:00:01Z
    approved  approve  at     | expired at 1970-01-01 00:01:00Z
    approved  refuse   before | was already approved by cli at 1970-01-01 00:00:01Z; the first answer counts
    approved  refuse   at     | expired at 1970-01-01 00:01:00Z
    refused   approve  before | was refused by web: no\u{1b}
    refused   approve  at     | was refused by web: no\u{1b}
    refused   refuse   before | was refused by web: no\u{1b}
    refused   refuse   at     | was refused by web: no\u{1b}
    taken     approve  before | was already used at 1970-01-01 00:00:02Z
    taken     approve  at     | was already used at 1970-01-01 00:00:02Z
    taken     refuse   before | was already used at 1970-01-01 00:00:02Z
    taken     refuse   at     | was already used at 1970-01-01 00:00:02Z
    expired   approve  before | expired at 1970-01-01 00:01:00Z
    expired   approve  at     | expired at 1970-01-01 00:01:00Z
    expired   refuse   before | expired at 1970-01-01 00:01:00Z
    expired   refuse   at     | expired at 1970-01-01 00:01:00Z
    withdrawn approve  before | was withdrawn
    withdrawn approve  at     | was withdrawn
    withdrawn refuse   before | was withdrawn
    withdrawn refuse   at     | was withdrawn
    ");
}

#[test]
fn an_ask_from_before_the_clock_was_set_back_moves_as_at_its_deadline() {
    let early = Timestamp::from_millis(499);
    for (name, state) in states() {
        for event in [
            Event::Answer {
                answer: APPROVE,
                by: Road::Cli.into(),
            },
            Event::Take,
            Event::Expire,
            Event::Withdraw,
        ] {
            let at = |now| transition(&state, LIFETIME, event.clone(), now);
            assert_eq!(at(early), at(DEADLINE), "{name} {event:?}");
        }
        let resumed = |now| answer_and_take(&state, LIFETIME, APPROVE, Road::Continuation.into(), now);
        assert_eq!(resumed(early), resumed(DEADLINE), "{name}");
    }
}

#[test]
fn final_states_never_move() {
    for (name, state) in states() {
        let moves = [
            Event::Answer {
                answer: APPROVE,
                by: Road::Cli.into(),
            },
            Event::Answer {
                answer: refuse(),
                by: Road::Cli.into(),
            },
            Event::Take,
            Event::Expire,
            Event::Withdraw,
        ]
        .into_iter()
        .flat_map(|event| [(event.clone(), BEFORE), (event, DEADLINE)])
        .filter(|(event, now)| transition(&state, LIFETIME, event.clone(), *now).is_ok())
        .count();
        assert_eq!(moves == 0, state.phase() == Phase::Final, "{name}");
    }
}

#[test]
fn states_are_written_as_they_were_read() {
    for (name, state) in states() {
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(
            serde_json::from_str::<State>(&text).unwrap(),
            state,
            "{name}: {text}"
        );
    }
}
