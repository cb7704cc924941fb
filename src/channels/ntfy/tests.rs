//! ntfy against a server in the tests: what is published, and what comes back by the reply topic.

use serde_json::{Value, json};

use super::*;
use crate::card::Decision;
use crate::channels::fake::{
    CANARY, FakeAnswer, FakeService, INJECTIONS, approving, asking, at, closed, environment, fine, open,
    question, soon,
};
use crate::channels::ntfy::reply_topic::{Age, Line, Lines, TooLong};
use crate::protocol::question::Selection;

const TOPIC: &str = "canary-topic";

async fn ntfy(url: &str) -> Ntfy {
    let settings = NtfySettings {
        basics: crate::channels::fake::basics(url),
        server: url.to_owned(),
        topic: TOPIC.to_owned(),
        token: Some("${TOKEN}".to_owned()),
    };
    Ntfy::open(&settings, &environment()).await.unwrap()
}

/// The reply topic, as anyone who knows topic and token can make it.
fn reply_topic() -> String {
    reply_topic::name(TOPIC, Some(CANARY))
}

fn line(id: &str, time: i64, event: &str, message: &str) -> String {
    json!({ "id": id, "time": time, "expires": time + 43_200, "event": event, "topic": "t", "message": message })
        .to_string()
}

#[tokio::test]
async fn a_question_is_published_with_buttons_that_post_to_the_reply_topic() {
    let service = FakeService::start(|_, _| fine(&json!({ "id": "m1", "event": "message" }))).await;
    let channel = ntfy(&service.url).await;
    let notice = open(asking(vec![question(
        "Which db?",
        &["pg", "sqlite"],
        Selection::One,
    )]));
    channel.send(&notice, NtfySettings::PERSON).await.unwrap();
    let published = service.nth("/", 0).await;
    assert_eq!(published.headers["authorization"], format!("Bearer {CANARY}"));
    let url = format!("{}/{}", service.url, reply_topic());
    let button = |label: &str, body: &str| json!({ "action": "http", "label": label, "url": url, "method": "POST", "body": body, "clear": true });
    assert_eq!(
        published.body,
        json!({
            "topic": TOPIC, "title": "pml: a question waits", "priority": 4, "click": "http://127.0.0.1:7777/",
            "message": "aaaaa · pro\\u{1b}ject\nWhich db?\n1. pg\n2. sqlite",
            "actions": [
                button("pg", "p1:aaaaa:0:0:0:abcdefghijkl"),
                button("sqlite", "p1:aaaaa:0:0:1:abcdefghijkl"),
            ],
        })
    );
    // The token of the server is on no button: all who know the topic see those.
    assert!(!published.body.to_string().contains("Token_of"));
    // What ended disturbs no second time.
    let over = closed(&notice, "Answered in Slack: pg");
    channel.update(&at(&Value::Null), &over).await.unwrap();
    assert_eq!(service.requests("/").len(), 1);
}

#[tokio::test]
async fn what_no_button_can_answer_leads_to_the_inbox() {
    let four = question("Which?", &["a", "b", "c", "d"], Selection::One);
    let several = question("Which?", &["a"], Selection::Several);
    let free = question("A name?", &[], Selection::One);
    let long = question(
        &"x".repeat(4_000),
        &["a", "ü".repeat(100).as_str()],
        Selection::One,
    );
    let two = vec![
        question("1?", &["a"], Selection::One),
        question("2?", &["b"], Selection::One),
    ];
    for questions in [vec![four], vec![several], vec![free], vec![long], two] {
        let message = publication::of(&open(asking(questions)), TOPIC, "https://ntfy.example/r");
        let text = message["message"].as_str().unwrap();
        assert!(
            text.ends_with("; open the inbox on your computer: http://127.0.0.1:7777/"),
            "{text}"
        );
        assert!(text.len() < 1_000);
        assert_eq!(message["actions"], Value::Null);
        assert_eq!(message["click"], "http://127.0.0.1:7777/");
    }
    // What lasts is not decided by one press on a locked screen.
    let message = publication::of(&open(approving()), TOPIC, "https://ntfy.example/r");
    let labels: Vec<&str> = message["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["Continue", "Abort"]);
    assert!(message["message"].as_str().unwrap().len() <= 4096);
}

#[test]
fn texts_of_a_model_stay_texts() {
    let all = INJECTIONS.join("\n");
    let huge = "https://evil.example ".repeat(5_000);
    for text in INJECTIONS.iter().copied().chain([all.as_str(), huge.as_str()]) {
        let notice = open(asking(vec![question(text, &[text, "b"], Selection::One)]));
        let message = publication::of(&notice, TOPIC, "https://ntfy.example/r");
        let told = format!("{} {}", message["message"], message["actions"][0]["label"]);
        for sign in ["https:", "tg:", ".example", "@e"] {
            assert!(!told.contains(sign), "{sign} in {told}");
        }
        for hidden in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'] {
            assert!(!told.contains(hidden), "{told}");
        }
        // Nothing is read as markdown, and nothing is sent but these.
        let members: Vec<&String> = message.as_object().unwrap().keys().collect();
        assert!(
            members.iter().all(
                |name| ["topic", "title", "priority", "click", "message", "actions"].contains(&name.as_str())
            ),
            "{members:?}"
        );
        assert!(message["message"].as_str().unwrap().len() <= 4096);
    }
}

#[tokio::test]
async fn a_press_comes_back_and_the_stream_is_taken_up_where_it_ended() {
    let presses = |ids: &[(&str, i64, &str)]| {
        let mut stream = line("o", 100, "open", "") + "\n";
        for (id, time, press) in ids {
            stream.push_str(&line(id, *time, "message", press));
            stream.push('\n');
            stream.push_str(&line("k", *time, "keepalive", ""));
            stream.push('\n');
        }
        stream
    };
    let first = presses(&[
        ("old", 99, "p1:abcde:1:0:0:nonce"),
        ("odd", 100, "no press of pml"),
        ("new", 101, "p1:abcde:1:d:abort:nonce"),
    ]);
    let second = presses(&[("next", 102, "p1:abcde:1:0:2:nonce")]);
    let service = FakeService::start(move |request, before| {
        if !request.uri.contains("/json") {
            return fine(&json!({}));
        }
        match before {
            0 => Some(FakeAnswer(200, first.clone())),
            1 => Some(FakeAnswer(200, second.clone())),
            _ => None,
        }
    })
    .await;
    let channel = ntfy(&service.url).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(soon(channel.heard()).await.unwrap());
    }
    let picked = |option: usize| {
        Utterance::Answers(vec![Picked {
            options: vec![option],
            text: None,
        }])
    };
    let said: Vec<&Utterance> = heard.iter().map(|heard| &heard.utterance).collect();
    assert_eq!(
        said,
        [
            &picked(0),
            &Utterance::Decision(Decision::Abort, None),
            &picked(2)
        ]
    );
    assert_eq!(
        heard[0].sender,
        Sender {
            id: "topic".to_owned(),
            recorded: reply_topic::digest(TOPIC),
            kind: SenderKind::Person,
        }
    );
    assert!(!heard[0].sender.recorded.contains("canary"));
    let opened = service.requests("/json");
    let uris: Vec<&str> = opened.iter().map(|request| request.uri.as_str()).collect();
    let path = format!("/{}/json?since=", reply_topic());
    assert_eq!(uris, [format!("{path}all"), format!("{path}new")]);
    assert_eq!(opened[0].headers["authorization"], format!("Bearer {CANARY}"));
    // What was pressed before pml was started is told once, then.
    channel.reply(&heard[0].reply_to, "was answered").await.unwrap();
    channel
        .reply(&heard[1].reply_to, "see evil.example")
        .await
        .unwrap();
    let replies = service.requests("/");
    assert_eq!(replies.len(), 1);
    assert_eq!(
        replies[0].body,
        json!({ "topic": TOPIC, "title": "pml", "message": "see evil․example", "priority": 2 })
    );
}

#[test]
fn lines_are_cut_wherever_the_pieces_end_and_have_an_end() {
    let whole = format!("{}\n{}\n", line("o", 5, "open", ""), line("a", 6, "message", "ü"));
    let message = Line::Message {
        id: "a".to_owned(),
        text: "ü".to_owned(),
        age: Age::New,
    };
    for size in 1..whole.len() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in whole.as_bytes().chunks(size) {
            found.extend(lines.take(piece).unwrap());
        }
        assert_eq!(found, [Line::Other, message.clone()], "in pieces of {size}");
    }
    let mut lines = Lines::default();
    let strange = lines.take(b"\n\n[]\n{\"event\":\"message\"}\n\xff\n").unwrap();
    assert_eq!(strange, vec![Line::Other; 5]);
    assert_eq!(lines.take(&vec![b'x'; 1 << 20]), Err(TooLong));
}

#[tokio::test]
async fn each_trouble_of_a_topic_has_words_of_its_own_and_none_tells_it() {
    for (status, body, says) in [
        (
            403,
            r#"{"code":40301,"http":403,"error":"forbidden"}"#,
            "forbidden; `token` must be one that may write",
        ),
        (
            401,
            r#"{"error":"bad canary-topic"}"#,
            "bad [topic]; `token` must be one",
        ),
        (
            404,
            "<html>",
            "status 404; `server` is not the address of an ntfy server",
        ),
        (413, r#"{"error":"too large"}"#, "too large"),
        (429, "{}", "wants pml to wait for 5 seconds"),
        (500, "", "it answers with status 500"),
    ] {
        let service = FakeService::start(move |_, _| Some(FakeAnswer(status, body.to_owned()))).await;
        let channel = ntfy(&service.url).await;
        let error = channel.send(&open(approving()), "topic").await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(told.contains(says), "{told}");
        let heard = soon(channel.heard()).await.unwrap_err();
        let told = format!("{told} {heard} {heard:?}");
        assert!(!told.contains("canary") && !told.contains("127.0.0.1"), "{told}");
    }
    let endless = "x".repeat(1 << 20);
    let service = FakeService::start(move |_, _| Some(FakeAnswer(200, endless.clone()))).await;
    let error = soon(ntfy(&service.url).await.heard()).await.unwrap_err();
    assert!(
        error.to_string().contains("a line of its stream does not end"),
        "{error}"
    );
}

#[test]
fn the_reply_topic_follows_from_topic_and_token_and_tells_neither() {
    let name = reply_topic();
    assert_eq!(name, reply_topic());
    assert_eq!(name.len(), 35);
    assert!(name.starts_with("pml") && !name.contains("canary"));
    assert_ne!(name, reply_topic::name(TOPIC, None));
    assert_ne!(name, reply_topic::name("other", Some(CANARY)));
}
