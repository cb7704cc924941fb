use std::fmt::Write as _;

use super::*;

const BEFORE: Timestamp = Timestamp::from_millis(59_999);
const DEADLINE: Timestamp = Timestamp::from_millis(60_000);

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
                by: Provenance::Cli,
                at,
            },
        ),
        (
            "refused",
            State::Answered {
                answer: refuse(),
                by: Provenance::Web,
                at,
            },
        ),
        (
            "taken",
            State::Taken {
                answer: APPROVE,
                by: Provenance::Cli,
                at,
                taken_at: Timestamp::from_millis(2_000),
            },
        ),
        ("expired", State::Expired),
        ("withdrawn", State::Withdrawn),
    ]
}

fn told(outcome: &Result<State, Refusal>) -> String {
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
    step: impl Fn(&State, E, Timestamp) -> Result<State, Refusal>,
) -> String {
    let mut table = String::new();
    for (state_name, state) in states() {
        for (name, event) in columns {
            for (when, now) in [("before", BEFORE), ("at", DEADLINE)] {
                let outcome = told(&step(&state, event.clone(), now));
                let _ = writeln!(table, "{state_name:9} {name:8} {when:6} | {outcome}");
            }
        }
    }
    table
}

#[test]
fn every_state_has_one_outcome_for_every_event_before_and_at_the_deadline() {
    let by = Provenance::Dialog;
    let events = [
        ("approve", Event::Answer { answer: APPROVE, by }),
        ("refuse", Event::Answer { answer: refuse(), by }),
        ("take", Event::Take),
        ("expire", Event::Expire),
        ("withdraw", Event::Withdraw),
    ];
    insta::assert_snapshot!(table(&events, |state, event, now| transition(state, DEADLINE, event, now)), @"TABLE1");
}

#[test]
fn a_continuation_answers_and_takes_at_once_or_says_why_not() {
    let answers = [("approve", APPROVE), ("refuse", refuse())];
    let step =
        |state: &State, answer, now| answer_and_take(state, DEADLINE, answer, Provenance::Continuation, now);
    insta::assert_snapshot!(table(&answers, step), @"TABLE2");
}

#[test]
fn final_states_never_move() {
    for (name, state) in states() {
        let moves = [
            Event::Answer {
                answer: APPROVE,
                by: Provenance::Cli,
            },
            Event::Answer {
                answer: refuse(),
                by: Provenance::Cli,
            },
            Event::Take,
            Event::Expire,
            Event::Withdraw,
        ]
        .into_iter()
        .flat_map(|event| [(event.clone(), BEFORE), (event, DEADLINE)])
        .filter(|(event, now)| transition(&state, DEADLINE, event.clone(), *now).is_ok())
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
