//! The webhook: signatures made by openssl, deliveries, duplicates and strange bodies.

use super::*;
use crate::card::Decision;
use crate::channels::channel::Picked;
use crate::channels::press::Press;

/// A delivery of one message, byte for byte as it was signed.
const SIGNED: &str = r#"{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550000000","phone_number_id":"105500"},"messages":[{"from":"41790000000","id":"wamid.A","timestamp":"1","type":"text","text":{"body":"2"}}]}}]}]}"#;

/// `printf %s "$SIGNED" | openssl dgst -sha256 -hmac canary-app-secret`
const SIGNATURE: &str = "82c4fd771f11502c76557b28d43773fa92d846d152a2b6090970d312f6d0c8bc";

/// The same of nothing at all.
const SIGNATURE_OF_NOTHING: &str = "c2bdf55f7d186824d3c2d3183171f0d88e2db0f2e951eb9aa3f3ab801a6c7a75";

fn delivered(channel: &Whatsapp, body: &str) -> HookReply {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&key, body.as_bytes());
    let hex = crate::channels::fake::hex(tag.as_ref());
    deliver(channel, Some(&format!("sha256={hex}")), body)
}

fn deliver(channel: &Whatsapp, signature: Option<&str>, body: &str) -> HookReply {
    channel.hook(HookRequest::Delivery {
        signature: signature.map(str::to_owned),
        body: body.as_bytes().to_vec(),
    })
}

fn value(value: &Value) -> String {
    json!({ "object": "whatsapp_business_account", "entry": [{ "changes": [{ "field": "messages", "value": value }] }] })
        .to_string()
}

fn messages(messages: &Value) -> String {
    value(&json!({ "metadata": { "phone_number_id": "105500" }, "messages": messages }))
}

async fn channel() -> Whatsapp {
    whatsapp("http://127.0.0.1:9").await
}

/// Returns what waits to be heard.
async fn waiting(channel: &Whatsapp) -> Vec<Heard> {
    let mut heard = Vec::new();
    while let Ok(next) = tokio::time::timeout(std::time::Duration::from_millis(50), channel.heard()).await {
        heard.push(next.unwrap());
    }
    heard
}

#[tokio::test]
async fn only_what_is_signed_is_read_and_only_once() {
    let channel = channel().await;
    let signature = format!("sha256={SIGNATURE}");
    let flipped = signature.replace(&SIGNATURE[63..], if SIGNATURE.ends_with('0') { "1" } else { "0" });
    for wrong in [
        None,
        Some(""),
        Some("sha256="),
        Some(SIGNATURE),
        Some(&signature[..signature.len() - 1]),
        Some(&format!("{signature}0")),
        Some(&format!("sha1={SIGNATURE}")),
        Some(&format!("sha256={SIGNATURE_OF_NOTHING}")),
        Some(&flipped),
        Some("sha256=é"),
    ] {
        assert_eq!(deliver(&channel, wrong, SIGNED), HookReply::Refused, "{wrong:?}");
    }
    // Another body under the same signature, by a blank.
    assert_eq!(
        deliver(&channel, Some(&signature), &format!("{SIGNED} ")),
        HookReply::Refused
    );
    assert!(waiting(&channel).await.is_empty());
    for _ in 0..3 {
        assert_eq!(deliver(&channel, Some(&signature), SIGNED), HookReply::Received);
    }
    // Upper case is the same number.
    let upper = format!("sha256={}", SIGNATURE.to_uppercase());
    assert_eq!(deliver(&channel, Some(&upper), SIGNED), HookReply::Received);
    let heard = waiting(&channel).await;
    assert_eq!(
        heard,
        [Heard {
            sender: person(ME),
            about: About::Nothing,
            utterance: Utterance::Text("2".to_owned()),
            reply_to: to(&json!({ "to": ME, "id": "wamid.A" })),
        }]
    );
    let nothing = format!("sha256={SIGNATURE_OF_NOTHING}");
    assert_eq!(deliver(&channel, Some(&nothing), ""), HookReply::Received);
}

#[tokio::test]
async fn the_address_is_verified_by_its_word() {
    let channel = channel().await;
    let ask = |mode: &str, token: &str, challenge: &str| {
        let named = [
            ("hub.mode", mode),
            ("hub.verify_token", token),
            ("hub.challenge", challenge),
        ];
        let query = named.map(|(name, value)| (name.to_owned(), value.to_owned()));
        channel.hook(HookRequest::Verification(query.to_vec()))
    };
    assert_eq!(
        ask("subscribe", WORD, "1158201444"),
        HookReply::Challenge("1158201444".to_owned())
    );
    for (mode, token, challenge) in [
        ("subscribe", "", "1"),
        ("subscribe", &WORD[1..], "1"),
        ("unsubscribe", WORD, "1"),
        ("subscribe", WORD, ""),
        ("subscribe", WORD, "<script>"),
        ("subscribe", WORD, &"1".repeat(257)),
    ] {
        assert_eq!(ask(mode, token, challenge), HookReply::Refused);
    }
    assert_eq!(
        channel.hook(HookRequest::Verification(Vec::new())),
        HookReply::Refused
    );
}

#[tokio::test]
async fn presses_and_replies_say_what_they_are_about() {
    let channel = channel().await;
    let press = |id: &str, data: &str, kind: &str| {
        json!({ "from": ME, "id": id, "type": "interactive", "context": { "id": "wamid.0" },
                "interactive": { "type": kind, kind: { "id": data, "title": "x" } } })
    };
    let body = messages(&json!([
        press("1", "p1:abcde:3:0:1:nonce", "button_reply"),
        press("2", "p1:abcde:3:d:always:nonce", "list_reply"),
        press("3", "of another program", "list_reply"),
        { "from": ME, "id": "4", "type": "text", "context": { "id": "wamid.0" }, "text": { "body": "mine" } },
        { "from": ME, "id": "5", "type": "text", "text": { "body": "/refuse abcde no" } },
        { "from": ME, "id": "6", "type": "button", "button": { "text": "Yes", "payload": "p" } },
        { "from": ME, "id": "7", "type": "audio", "audio": { "id": "x" } },
        { "from": ME, "id": "8", "type": "reaction", "reaction": { "emoji": "👍" } },
        { "from": ME, "id": "9", "type": "text", "group_id": "g", "text": { "body": "in a group" } },
    ]));
    assert_eq!(delivered(&channel, &body), HookReply::Received);
    let heard = waiting(&channel).await;
    let said: Vec<(About, Utterance)> = heard
        .iter()
        .map(|heard| (heard.about.clone(), heard.utterance.clone()))
        .collect();
    let read = |data: &str| About::Press(data.parse::<Press>().unwrap());
    let message = || About::Message(at(&json!({ "id": "wamid.0", "to": ME })));
    let text = |words: &str| Utterance::Text(words.to_owned());
    let picked = Picked {
        options: vec![1],
        text: None,
    };
    assert_eq!(
        said,
        [
            (read("p1:abcde:3:0:1:nonce"), Utterance::Answers(vec![picked])),
            (
                read("p1:abcde:3:d:always:nonce"),
                Utterance::Decision(Decision::Always, None)
            ),
            (message(), text("")),
            (message(), text("mine")),
            (
                About::Code("abcde".to_owned()),
                Utterance::Decision(Decision::Abort, Some("no".to_owned()))
            ),
            (About::Nothing, text("Yes")),
            (About::Nothing, text("")),
            (About::Nothing, text("in a group")),
        ]
    );
    assert_eq!(sent_by(&heard[0]), (ME, SenderKind::Person));
    assert_eq!(sent_by(&heard[7]), (ME, SenderKind::Other));
}

#[tokio::test]
async fn strange_deliveries_are_received_and_say_nothing() {
    let channel = channel().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let other = value(&json!({
        "metadata": { "phone_number_id": "999" },
        "messages": [{ "from": ME, "id": "other", "type": "text", "text": { "body": "to another number" } }],
    }));
    let strange =
        messages(&json!([7, null, { "id": 1 }, { "from": ME, "id": "x", "type": "text", "text": 3 }]));
    for body in [
        "",
        "7",
        "{}",
        r#"{"entry":[{}]}"#,
        r#"{"entry":[{"changes":[{}]}]}"#,
        &deep,
        &other,
        &strange,
    ] {
        assert_eq!(delivered(&channel, body), HookReply::Received, "{body:.60}");
    }
    assert!(waiting(&channel).await.is_empty());
    assert_eq!(
        delivered(&channel, &" ".repeat(3 * 1024 * 1024 + 1)),
        HookReply::Refused
    );
}

#[tokio::test]
async fn more_than_is_kept_is_delivered_again_as_a_whole() {
    let channel = channel().await;
    let batch = |from: usize, count: usize| {
        let all: Vec<Value> = (from..from + count)
            .map(|id| json!({ "from": ME, "id": format!("m{id}"), "type": "text", "text": { "body": "x" } }))
            .collect();
        messages(&json!(all))
    };
    assert_eq!(delivered(&channel, &batch(0, 200)), HookReply::Received);
    assert_eq!(delivered(&channel, &batch(200, 100)), HookReply::Busy);
    assert_eq!(waiting(&channel).await.len(), 200);
    assert_eq!(delivered(&channel, &batch(200, 100)), HookReply::Received);
    assert_eq!(waiting(&channel).await.len(), 100);
    // What is remembered of old messages has an end.
    for from in (1_000..3_000).step_by(250) {
        assert_eq!(delivered(&channel, &batch(from, 250)), HookReply::Received);
        assert_eq!(waiting(&channel).await.len(), 250);
    }
    assert_eq!(delivered(&channel, &batch(2_900, 50)), HookReply::Received);
    assert!(waiting(&channel).await.is_empty());
    assert_eq!(channel.receipts.remembered(), 1024);
}

fn failed(id: &str, code: i64) -> String {
    value(&json!({
        "metadata": { "phone_number_id": "105500" },
        "statuses": [
            { "id": "wamid.fine", "status": "delivered", "recipient_id": ME },
            { "id": id, "status": "failed", "recipient_id": ME, "errors": [{ "code": code, "title": "Re-engagement message" }] },
        ],
    }))
}

#[tokio::test]
async fn a_window_that_is_told_late_sends_the_template_and_a_reply_to_it_counts() {
    let service = service().await;
    let mut settings = settings(&service.url);
    settings.template = Some("pml_ask".to_owned());
    let channel = Whatsapp::open(&settings, &environment()).await.unwrap();
    let reference = channel.send(&short(), ME).await.unwrap();
    assert_eq!(
        delivered(&channel, &failed("wamid.0", WINDOW_CLOSED)),
        HookReply::Received
    );
    let reply = messages(&json!([
        { "from": ME, "id": "r", "type": "text", "context": { "id": "wamid.1" }, "text": { "body": "1" } },
    ]));
    assert_eq!(delivered(&channel, &reply), HookReply::Received);
    let heard = soon(channel.heard()).await.unwrap();
    assert_eq!(heard.about, About::Message(reference));
    let template = service.nth("/messages", 1).await.body;
    assert_eq!(template["type"], "template");
    let words = &template["template"]["components"][0]["parameters"][0]["text"];
    assert!(
        words.as_str().unwrap().contains("Which db? 1. pg 2. sqlite"),
        "{words}"
    );
    // Without one, and for other reasons, it is an error of the channel.
    for (code, says) in [
        (WINDOW_CLOSED, "more than 24 hours"),
        (131_026, "is not on WhatsApp"),
    ] {
        let channel = whatsapp(&service.url).await;
        assert_eq!(delivered(&channel, &failed("wamid.9", code)), HookReply::Received);
        let error = soon(channel.heard()).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}
