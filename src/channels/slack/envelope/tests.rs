use pretty_assertions::assert_eq;

use super::*;

const SEND: &str = "p1:abcde:3:s::AAAAAAAAAAAA";

fn press() -> Value {
    json!({
        "type": "block_actions",
        "user": { "id": "U1", "username": "ann", "team_id": "T1" },
        "team": { "id": "T1", "domain": "t" },
        "container": { "type": "message", "message_ts": "1.2", "channel_id": "D1" },
        "channel": { "id": "D1", "name": "directmessage" },
        "trigger_id": "12.34.abc",
        "state": { "values": {
            "pml:abcde:3:0": { "choice": { "type": "radio_buttons", "selected_option": { "value": "1" } } },
            "pml:abcde:3:0:other": { "text": { "type": "plain_text_input", "value": null } },
            "pml:abcde:3:1": {
                "choice": { "type": "checkboxes", "selected_options": [{ "value": "2" }, { "value": "0" }] },
                "choice1": { "type": "checkboxes", "selected_options": [{ "value": "12" }] },
            },
            "pml:abcde:3:1:other": { "text": { "type": "plain_text_input", "value": "and mine" } },
        } },
        "actions": [{ "type": "button", "action_id": "send", "block_id": "pml:abcde:3:of:3", "value": SEND }],
    })
}

fn said() -> Value {
    json!({
        "team_id": "T1", "event_id": "Ev1",
        "event": {
            "type": "message", "channel": "D1", "user": "U1", "text": "a &lt;b&gt;", "ts": "1.3", "channel_type": "im",
        },
    })
}

fn envelope(kind: &str, payload: &Value) -> Frame {
    read(&json!({ "envelope_id": "e1", "type": kind, "payload": payload }).to_string())
}

fn heard(kind: &str, payload: &Value) -> Option<Heard> {
    let Frame::Envelope { id, incoming, .. } = envelope(kind, payload) else {
        panic!("no envelope: {payload}")
    };
    assert_eq!(id, "e1");
    match incoming {
        Incoming::Said(said) => Some(*said),
        Incoming::WantsForm(_) | Incoming::Nothing => None,
    }
}

fn ann(kind: SenderKind) -> Sender {
    Sender {
        id: "U1".to_owned(),
        recorded: "T1/U1".to_owned(),
        kind,
    }
}

fn picked_of(options: &[usize], text: Option<&str>) -> Picked {
    Picked {
        options: options.to_vec(),
        text: text.map(str::to_owned),
    }
}

#[test]
fn a_press_brings_everything_that_is_chosen_and_written() {
    assert_eq!(
        heard("interactive", &press()),
        Some(Heard {
            sender: ann(SenderKind::Person),
            about: About::Press(SEND.parse().unwrap()),
            utterance: Utterance::Answers(vec![
                picked_of(&[1], None),
                picked_of(&[0, 2, 12], Some("and mine")),
                // The third has nothing; it is counted all the same.
                Picked::default(),
            ]),
            reply_to: ReplyTo(json!({ "channel": "D1", "user": "U1" })),
        })
    );
}

#[test]
fn the_choice_that_stands_for_own_words_is_no_option() {
    let mut press = press();
    press["state"]["values"]["pml:abcde:3:0"]["choice"]["selected_option"]["value"] = OTHER.into();
    press["state"]["values"]["pml:abcde:3:0:other"]["text"]["value"] = "mine".into();
    let Some(Heard {
        utterance: Utterance::Answers(answers),
        ..
    }) = heard("interactive", &press)
    else {
        panic!("it is an answer")
    };
    assert_eq!(answers[0], picked_of(&[], Some("mine")));
}

#[test]
fn what_is_chosen_in_another_revision_is_left_out() {
    let mut press = press();
    press["actions"][0]["value"] = "p1:abcde:4:s::AAAAAAAAAAAA".into();
    press["actions"][0]["block_id"] = "pml:abcde:4:of:1".into();
    let utterance = heard("interactive", &press).map(|heard| heard.utterance);
    assert_eq!(utterance, Some(Utterance::Answers(vec![Picked::default()])));
}

#[test]
fn decisions_are_read_from_the_value_of_their_button() {
    for decision in [
        Decision::Once,
        Decision::Session,
        Decision::Always,
        Decision::Abort,
    ] {
        let mut press = press();
        let id = decision.to_string();
        press["actions"][0]["action_id"] = id.as_str().into();
        press["actions"][0]["value"] = format!("p1:abcde:3:d:{decision}:AAAAAAAAAAAA").into();
        let utterance = heard("interactive", &press).map(|heard| heard.utterance);
        assert_eq!(utterance, Some(Utterance::Decision(decision, None)));
    }
}

#[test]
fn the_button_for_a_reason_asks_for_a_form_and_the_form_brings_the_reason() {
    let abort = "p1:abcde:3:d:abort:AAAAAAAAAAAA";
    let mut press = press();
    press["actions"][0]["action_id"] = "reason".into();
    press["actions"][0]["value"] = abort.into();
    let Frame::Envelope {
        incoming: Incoming::WantsForm(wish),
        ..
    } = envelope("interactive", &press)
    else {
        panic!("it wants a form")
    };
    assert_eq!(wish.trigger, "12.34.abc");
    let submission = json!({
        "type": "view_submission",
        "user": { "id": "U1", "team_id": "T1" }, "team": { "id": "T1" },
        "view": {
            "callback_id": CALLBACK, "private_metadata": wish.origin.to_string(),
            "state": { "values": { "pml:abcde:3:reason": { "text": { "value": " not now\n" } } } },
        },
    });
    assert_eq!(
        heard("interactive", &submission),
        Some(Heard {
            sender: ann(SenderKind::Person),
            about: About::Press(abort.parse().unwrap()),
            utterance: Utterance::Decision(Decision::Abort, Some(" not now\n".to_owned())),
            reply_to: ReplyTo(json!({ "channel": "D1", "user": "U1" })),
        })
    );
    // Nothing but a refusal has a reason.
    for (member, value) in [
        ("callback_id", json!("another")),
        (
            "private_metadata",
            json!(json!({ "press": SEND, "channel": "D1", "direct": true }).to_string()),
        ),
        ("private_metadata", json!("{")),
        ("private_metadata", json!(null)),
    ] {
        let mut wrong = submission.clone();
        wrong["view"][member] = value;
        assert_eq!(heard("interactive", &wrong), None, "{wrong}");
    }
}

#[test]
fn a_toggle_and_a_button_of_another_program_say_nothing() {
    let toggle = json!({
        "type": "radio_buttons", "action_id": "choice", "block_id": "pml:abcde:3:0",
        "selected_option": { "value": "0" },
    });
    // Not even where its value is what a button of pml carries.
    let disguised = json!({ "type": "static_select", "action_id": "send", "value": SEND });
    let foreign = json!({ "type": "button", "action_id": "send", "value": "approve" });
    for action in [toggle, disguised, foreign] {
        let mut press = press();
        press["actions"] = json!([action]);
        assert_eq!(heard("interactive", &press), None);
    }
}

#[test]
fn a_press_in_a_conversation_with_others_is_not_of_a_person_alone() {
    let mut press = press();
    press["container"]["channel_id"] = "C1".into();
    press["channel"] = json!({ "id": "C1", "name": "general" });
    let heard = heard("interactive", &press).unwrap();
    assert_eq!(heard.sender, ann(SenderKind::Other));
}

#[test]
fn a_message_is_heard_as_it_was_typed() {
    let typed = Heard {
        sender: ann(SenderKind::Person),
        about: About::Nothing,
        utterance: Utterance::Text("a <b>".to_owned()),
        reply_to: ReplyTo(json!({ "channel": "D1", "user": "U1" })),
    };
    assert_eq!(heard("events_api", &said()), Some(typed.clone()));
    let mut reply = said();
    reply["event"]["thread_ts"] = "1.2".into();
    let about = About::Message(message_ref("D1", "1.2"));
    assert_eq!(heard("events_api", &reply), Some(Heard { about, ..typed }));
}

#[test]
fn programs_and_conversations_with_others_are_told_apart() {
    let changed = |member: &str, value: Value| {
        let mut said = said();
        said["event"][member] = value;
        heard("events_api", &said).map(|heard| heard.sender.kind)
    };
    assert_eq!(changed("bot_id", json!("B1")), Some(SenderKind::Other));
    assert_eq!(changed("subtype", json!("bot_message")), Some(SenderKind::Other));
    for kind in ["channel", "group", "mpim", ""] {
        assert_eq!(changed("channel_type", json!(kind)), Some(SenderKind::Other));
    }
    assert_eq!(changed("channel_type", Value::Null), Some(SenderKind::Other));
    assert_eq!(changed("subtype", json!("file_share")), Some(SenderKind::Person));
    for subtype in ["message_changed", "message_deleted", "channel_join"] {
        assert_eq!(changed("subtype", json!(subtype)), None);
    }
    assert_eq!(changed("type", json!("reaction_added")), None);
}

#[test]
fn greetings_and_announcements_are_read() {
    assert_eq!(
        read(r#"{"type":"hello","num_connections":2}"#),
        Frame::Hello { connections: 2 }
    );
    assert_eq!(read(r#"{"type":"hello"}"#), Frame::Hello { connections: 1 });
    let reason = |reason: &str| Frame::Disconnect {
        reason: reason.to_owned(),
    };
    assert_eq!(
        read(r#"{"type":"disconnect","reason":"refresh_requested"}"#),
        reason("refresh_requested")
    );
    assert_eq!(
        read(r#"{"type":"disconnect","reason":"\u001b[31m"}"#),
        reason("no word of Slack")
    );
}

#[test]
fn an_envelope_that_cannot_be_read_is_acknowledged_all_the_same() {
    for kind in ["interactive", "events_api", "slash_commands", "tomorrow", ""] {
        for payload in [Value::Null, json!([]), json!("x"), json!({ "type": 1 })] {
            assert_eq!(
                envelope(kind, &payload),
                Frame::Envelope {
                    id: "e1".to_owned(),
                    event: None,
                    incoming: Incoming::Nothing,
                }
            );
        }
    }
}

#[test]
fn no_frame_at_all_stops_the_reader() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_payload = format!(r#"{{"type":"interactive","envelope_id":"e1","payload":{deep}}}"#);
    for text in [
        "",
        "null",
        "[]",
        "1e999",
        "{\"type\":",
        "{\"type\":{}}",
        r#"{"type":"interactive"}"#,
        r#"{"type":"interactive","envelope_id":7,"payload":{}}"#,
        "not JSON at all",
        &deep,
        &deep_payload,
    ] {
        assert_eq!(read(text), Frame::Other, "{:.80}", text);
    }
}

/// Every way to leave out a member, and to have another type in its place.
fn broken(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let others = [
        Value::Null,
        json!(-1),
        json!(""),
        json!([[]]),
        json!({ "a": {} }),
        json!("\u{202e}<!channel>"),
    ];
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let mut without = value.clone();
                without.as_object_mut().unwrap().remove(name);
                all.push(without);
                for inner in others.iter().cloned().chain(broken(member)) {
                    let mut changed = value.clone();
                    changed[name] = inner;
                    all.push(changed);
                }
            }
        }
        Value::Array(members) => {
            for (place, member) in members.iter().enumerate() {
                for inner in others.iter().cloned().chain(broken(member)) {
                    let mut changed = value.clone();
                    changed[place] = inner;
                    all.push(changed);
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn whatever_is_missing_or_wrong_nobody_else_is_heard_and_nothing_is_approved() {
    let mut abort = press();
    abort["actions"][0]["value"] = "p1:abcde:3:d:abort:AAAAAAAAAAAA".into();
    let mut count = 0;
    for (kind, honest) in [
        ("interactive", press()),
        ("interactive", abort),
        ("events_api", said()),
    ] {
        for payload in broken(&honest) {
            count += 1;
            let Some(heard) = heard(kind, &payload) else {
                continue;
            };
            assert_eq!(heard.sender.id, "U1", "{payload}");
            assert_eq!(heard.sender.recorded, "T1/U1", "{payload}");
            assert!(
                !matches!(
                    heard.utterance,
                    Utterance::Decision(Decision::Once | Decision::Session | Decision::Always, _)
                ),
                "{payload}"
            );
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn megabytes_are_read_in_time_that_grows_with_them_and_answers_stay_bounded() {
    let mut press = press();
    let values = press["state"]["values"].as_object_mut().unwrap();
    for number in 0..20_000 {
        let block = json!({ "choice": { "selected_option": { "value": number.to_string() } } });
        values.insert(format!("pml:abcde:3:{number}"), block);
    }
    let options: Vec<Value> = (0..50_000)
        .map(|number| json!({ "value": number.to_string() }))
        .collect();
    values.insert(
        "pml:abcde:3:1".to_owned(),
        json!({ "choice": { "selected_options": options } }),
    );
    press["actions"][0]["block_id"] = "pml:abcde:3:of:99999999999".into();
    let Some(Heard {
        utterance: Utterance::Answers(answers),
        ..
    }) = heard("interactive", &press)
    else {
        panic!("it is an answer")
    };
    assert_eq!(answers.len(), QUESTIONS);
    assert!(answers.iter().all(|picked| picked.options.len() <= OPTIONS));
    let mut said = said();
    said["event"]["text"] = "<&".repeat(500_000).into();
    assert!(heard("events_api", &said).is_some());
    // An id that is none is not passed on.
    for id in ["U1/../U2", "U1 ", "\u{202e}U1", &"U".repeat(65)] {
        said["event"]["user"] = id.into();
        assert_eq!(heard("events_api", &said), None);
    }
}
