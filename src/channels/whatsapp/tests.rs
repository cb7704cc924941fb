//! WhatsApp against a service in the tests: what is sent, what comes to the webhook, and what goes wrong.

mod hook;
mod messages;

use serde_json::{Value, json};

use super::*;
use crate::channels::channel::SenderKind;
use crate::channels::channel::Utterance;
use crate::channels::fake::{
    CANARY, FakeAnswer, FakeService, INJECTIONS, approving, asking, at, basics, closed, environment, fine,
    open, person, question, sent_by, soon, to,
};
use crate::channels::notice::Notice;
use crate::protocol::question::Selection;

const ME: &str = "41790000000";
const SECRET: &str = "canary-app-secret";
const WORD: &str = "canary-verify-token";

fn settings(url: &str) -> WhatsappSettings {
    WhatsappSettings {
        basics: basics(url),
        token: "${TOKEN}".to_owned(),
        phone_number_id: "105500".to_owned(),
        app_secret: Some(SECRET.to_owned()),
        verify_token: Some(WORD.to_owned()),
        template: None,
    }
}

async fn whatsapp(url: &str) -> Whatsapp {
    Whatsapp::open(&settings(url), &environment()).await.unwrap()
}

/// A service that is content; the messages are named in order.
async fn service() -> FakeService {
    FakeService::start(|_, before| fine(&sent(before))).await
}

fn sent(before: usize) -> Value {
    json!({ "messaging_product": "whatsapp", "messages": [{ "id": format!("wamid.{before}") }] })
}

fn trouble(status: u16, code: i64, message: &str) -> FakeAnswer {
    let body = json!({ "error": { "code": code, "message": message, "type": "OAuthException" } });
    FakeAnswer(status, body.to_string())
}

fn short() -> Notice {
    open(asking(vec![question(
        "Which db?",
        &["pg", "sqlite"],
        Selection::One,
    )]))
}

#[tokio::test]
async fn a_question_is_sent_with_buttons_and_its_end_quotes_it() {
    let service = service().await;
    let channel = whatsapp(&service.url).await;
    let reference = channel.send(&short(), ME).await.unwrap();
    assert_eq!(reference, at(&json!({ "id": "wamid.0", "to": ME })));
    let request = service.nth("/105500/messages", 0).await;
    assert_eq!(request.headers["authorization"], format!("Bearer {CANARY}"));
    assert_eq!(
        request.body,
        json!({
            "messaging_product": "whatsapp", "recipient_type": "individual", "to": ME, "type": "interactive",
            "interactive": {
                "type": "button",
                "body": { "text": "aaaaa · pro\\u{1b}ject\nWhich db?\n1. pg\n2. sqlite\n\
                                   Choose below, or reply in your own words." },
                "action": { "buttons": [
                    { "type": "reply", "reply": { "id": "p1:aaaaa:0:0:0:abcdefghijkl", "title": "pg" } },
                    { "type": "reply", "reply": { "id": "p1:aaaaa:0:0:1:abcdefghijkl", "title": "sqlite" } },
                ] },
            },
        })
    );
    // What waits stands as it was sent; what ended is told.
    channel.update(&reference, &short()).await.unwrap();
    channel
        .update(&reference, &closed(&short(), "Answered in Slack: pg · 14:03"))
        .await
        .unwrap();
    channel
        .reply(
            &to(&json!({ "to": ME, "id": "wamid.in" })),
            "Which one: abcde or fghij?",
        )
        .await
        .unwrap();
    let requests = service.requests("/messages");
    let rest: Vec<Value> = requests[1..].iter().map(|request| request.body.clone()).collect();
    assert_eq!(
        rest,
        [
            json!({
                "messaging_product": "whatsapp", "recipient_type": "individual", "to": ME, "type": "text",
                "context": { "message_id": "wamid.0" },
                "text": { "preview_url": false,
                          "body": "aaaaa · pro\\u{1b}ject\nWhich db?\nAnswered in Slack: pg · 14:03" },
            }),
            json!({
                "messaging_product": "whatsapp", "recipient_type": "individual", "to": ME, "type": "text",
                "context": { "message_id": "wamid.in" },
                "text": { "preview_url": false, "body": "Which one: abcde or fghij?" },
            }),
        ]
    );
}

#[tokio::test]
async fn without_a_way_back_nothing_is_opened() {
    for key in ["appSecret", "verifyToken"] {
        let mut settings = settings("https://graph.example");
        match key {
            "appSecret" => settings.app_secret = None,
            _ => settings.verify_token = None,
        }
        let error = Whatsapp::open(&settings, &environment()).await.err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("`{key}` of `whatsapp` is missing: without it no answer could come back")
        );
        assert!(crate::report::Hint::hint(&error).is_some());
    }
}

#[tokio::test]
async fn a_closed_window_is_a_template_or_an_error() {
    let answer = |request: &crate::channels::fake::FakeRequest, before: usize| {
        if request.body["type"] == "template" {
            return fine(&sent(before));
        }
        Some(trouble(400, WINDOW_CLOSED, "Re-engagement message"))
    };
    let service = FakeService::start(answer).await;
    let error = whatsapp(&service.url).await.send(&short(), ME).await.unwrap_err();
    assert!(error.to_string().contains("more than 24 hours passed"), "{error}");
    let mut settings = settings(&service.url);
    settings.template = Some("pml_ask".to_owned());
    let channel = Whatsapp::open(&settings, &environment()).await.unwrap();
    let reference = channel.send(&short(), ME).await.unwrap();
    assert_eq!(reference, at(&json!({ "id": "wamid.2", "to": ME })));
    let template = service.requests("/messages").pop().unwrap().body["template"].clone();
    assert_eq!(
        template,
        json!({
            "name": "pml_ask", "language": { "code": "en" },
            "components": [{ "type": "body", "parameters": [{
                "type": "text",
                "text": "aaaaa · pro\\u{1b}ject Which db? 1. pg 2. sqlite Reply with numbers, or in your own words",
            }] }],
        })
    );
}

#[tokio::test]
async fn each_trouble_of_a_number_has_words_of_its_own_and_none_tells_a_secret() {
    for (status, code, said, says) in [
        (
            401,
            190,
            "Invalid token CANARY",
            "Invalid token [token]; the token is not accepted or has expired",
        ),
        (
            403,
            200,
            "Permissions error",
            "lacks the permission `whatsapp_business_messaging`",
        ),
        (400, 100, "Invalid parameter", "`phoneNumberId` may be wrong"),
        (
            400,
            131_030,
            "Recipient phone number not in allowed list",
            "not among the recipients of a test number",
        ),
        (
            400,
            131_009,
            "Parameter\u{202e} value",
            "Parameter\\u{202e} value",
        ),
        (400, 131_056, "Pair rate limit", "wants pml to wait for 5 seconds"),
        (429, 0, "slow", "wants pml to wait for 5 seconds"),
        (503, 2, "down", "it answers with status 503"),
    ] {
        let said = said.replace("CANARY", CANARY);
        let service = FakeService::start(move |_, _| Some(trouble(status, code, &said))).await;
        let error = whatsapp(&service.url).await.send(&short(), ME).await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(told.contains(says), "{told}");
        assert!(!told.contains("canary") && !told.contains("127.0.0.1"), "{told}");
    }
    for body in ["", "{}", "[1]", r#"{"messages":[]}"#] {
        let service = FakeService::start(move |_, _| Some(FakeAnswer(200, body.to_owned()))).await;
        let error = whatsapp(&service.url).await.send(&short(), ME).await.unwrap_err();
        assert!(error.to_string().contains("names no message"), "{error}");
    }
}

#[tokio::test]
async fn a_message_of_another_channel_is_not_quoted() {
    let channel = whatsapp("http://127.0.0.1:9").await;
    let over = closed(&short(), "Expired");
    let error = channel
        .update(&at(&json!({ "chat": 1 })), &over)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not known any more"), "{error}");
}
