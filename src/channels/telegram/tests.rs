//! Telegram against a service in the tests: what is sent, what is heard, and what goes wrong.

mod interop;
mod messages;

use serde_json::{Value, json};

use super::*;
use crate::channels::channel::{Picked, Utterance};
use crate::channels::fake::{
    CANARY, FakeAnswer, FakeService, INJECTIONS, approving, asking, at, basics, closed, environment, open,
    person, question, result, sent_by, soon, to,
};
use crate::protocol::question::Selection;

const ME: i64 = 412_587_349;

async fn telegram(url: &str) -> Telegram {
    let settings = TelegramSettings {
        basics: basics(url),
        token: "${TOKEN}".to_owned(),
    };
    Telegram::open(&settings, &environment()).await.unwrap()
}

/// A service that has these updates, as Telegram has them: those from the offset on.
async fn service_with(updates: Vec<Value>) -> FakeService {
    FakeService::start(move |request, _before| {
        if request.is("/getUpdates") {
            let offset = request.body["offset"].as_i64().unwrap();
            let left = updates
                .iter()
                .filter(|update| update["update_id"].as_i64().unwrap() >= offset);
            let left: Vec<&Value> = left.collect();
            // The poll is held where there is nothing.
            return if left.is_empty() {
                None
            } else {
                result(&json!(left))
            };
        }
        result(&json!({ "message_id": 55, "id": 7, "is_bot": true }))
    })
    .await
}

fn chat() -> Value {
    json!({ "id": ME, "type": "private" })
}

fn message(id: i64, text: &str) -> Value {
    json!({
        "update_id": id,
        "message": { "message_id": id * 10, "from": { "id": ME, "is_bot": false }, "chat": chat(), "text": text },
    })
}

fn callback(id: i64, keyboard: &Value, data: &str) -> Value {
    json!({
        "update_id": id,
        "callback_query": {
            "id": format!("cb{id}"), "from": { "id": ME, "is_bot": false }, "data": data,
            "message": { "message_id": 55, "chat": chat(), "date": 1, "reply_markup": keyboard },
        },
    })
}

/// The data of the button that shows a text.
fn data_of(keyboard: &Value, shows: &str) -> String {
    let rows = keyboard["inline_keyboard"].as_array().unwrap();
    let mut keys = rows.iter().flat_map(|row| row.as_array().unwrap());
    let found = keys.find(|key| key["text"].as_str().unwrap().contains(shows));
    found.expect(shows)["callback_data"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_question_is_sent_as_plain_text_with_buttons_and_edited_in_its_place() {
    let service = service_with(Vec::new()).await;
    let telegram = telegram(&service.url).await;
    let notice = open(asking(vec![question(
        "Which db?",
        &["pg", "sqlite"],
        Selection::One,
    )]));
    let reference = telegram.send(&notice, "412587349").await.unwrap();
    assert_eq!(reference, at(&json!({ "chat": ME, "message": 55 })));
    let sent = service.nth("/sendMessage", 0).await;
    assert_eq!(sent.uri, format!("/bot{CANARY}/sendMessage"));
    assert_eq!(
        sent.body,
        json!({
            "chat_id": ME,
            "text": "aaaaa · pro\\u{1b}ject\nWhich db?\n1. pg\n2. sqlite\n\
                     Press one, or reply to this message in your own words.",
            "entities": [{ "type": "code", "offset": 8, "length": 13 }],
            "link_preview_options": { "is_disabled": true },
            "reply_markup": { "inline_keyboard": [
                [{ "text": "1 · pg", "callback_data": "p1:aaaaa:0:0:0:abcdefghijkl" }],
                [{ "text": "2 · sqlite", "callback_data": "p1:aaaaa:0:0:1:abcdefghijkl" }],
                [{ "text": "Do not answer", "callback_data": "p1:aaaaa:0:d:abort:abcdefghijkl" }],
            ] },
        })
    );
    let over = closed(&notice, "Answered in Slack: pg · 14:03");
    telegram.update(&reference, &over).await.unwrap();
    let edited = service.nth("/editMessageText", 0).await;
    assert_eq!(
        edited.body,
        json!({
            "chat_id": ME, "message_id": 55,
            "text": "aaaaa · pro\\u{1b}ject\nWhich db?\nAnswered in Slack: pg · 14:03",
            "entities": [{ "type": "code", "offset": 8, "length": 13 }],
            "link_preview_options": { "is_disabled": true },
            "reply_markup": { "inline_keyboard": [] },
        })
    );
}

#[tokio::test]
async fn one_press_answers_and_counts_as_received_only_when_the_next_is_wanted() {
    let notice = open(asking(vec![question(
        "Which db?",
        &["pg", "sqlite"],
        Selection::One,
    )]));
    let keyboard = Keyboard::of(&notice).to_json();
    let updates = vec![
        callback(7, &keyboard, &data_of(&keyboard, "sqlite")),
        message(8, "later"),
    ];
    let service = service_with(updates.clone()).await;
    let bot = telegram(&service.url).await;
    let heard = soon(bot.heard()).await.unwrap();
    let picked = Picked {
        options: vec![1],
        text: None,
    };
    assert_eq!(heard.utterance, Utterance::Answers(vec![picked]));
    assert_eq!(heard.sender, person("412587349"));
    assert!(matches!(&heard.about, About::Press(press) if press.code == "aaaaa"));
    // Started again before it was stored: it is heard again.
    let again = telegram(&service.url).await;
    assert_eq!(soon(again.heard()).await.unwrap().about, heard.about);
    let next = soon(bot.heard()).await.unwrap();
    assert_eq!(next.utterance, Utterance::Text("later".to_owned()));
    let offsets = |service: &FakeService| -> Vec<i64> {
        let polls = service.requests("/getUpdates");
        polls
            .iter()
            .map(|poll| poll.body["offset"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(offsets(&service), [0, 0]);
    let waits = tokio::spawn(async move { bot.heard().await });
    let third = service.nth("/getUpdates", 2).await;
    waits.abort();
    assert_eq!(
        third.body,
        json!({ "offset": 9, "timeout": 50, "allowed_updates": ["message", "callback_query"] })
    );
}

#[tokio::test]
async fn choices_of_several_questions_stand_in_the_message_and_survive_a_restart() {
    let notice = open(asking(vec![
        question("Which db?", &["pg", "sqlite"], Selection::One),
        question("Which tests?", &["unit", "slow"], Selection::Several),
    ]));
    let first = Keyboard::of(&notice).to_json();
    // Three presses come with the buttons as they stood at first: the person was quick.
    let updates = vec![
        callback(1, &first, &data_of(&first, "pg")),
        callback(2, &first, &data_of(&first, "sqlite")),
        callback(3, &first, &data_of(&first, "slow")),
        message(4, "end"),
    ];
    let service = service_with(updates).await;
    let bot = telegram(&service.url).await;
    assert_eq!(
        soon(bot.heard()).await.unwrap().utterance,
        Utterance::Text("end".to_owned())
    );
    let drawn = service.nth("/editMessageReplyMarkup", 2).await;
    let keyboard = drawn.body["reply_markup"].clone();
    let texts: Vec<&str> = keyboard["inline_keyboard"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "○ 1.1 · pg",
            "◉ 1.2 · sqlite",
            "☐ 2.1 · unit",
            "☑ 2.2 · slow",
            "Send",
            "Do not answer"
        ]
    );
    assert_eq!(service.requests("/answerCallbackQuery").len(), 3);
    // Another process reads what is chosen from the message that Telegram kept.
    let send = data_of(&keyboard, "Send");
    let service = service_with(vec![callback(9, &keyboard, &send)]).await;
    let heard = soon(telegram(&service.url).await.heard()).await.unwrap();
    let picked = |options: &[usize]| Picked {
        options: options.to_vec(),
        text: None,
    };
    assert_eq!(
        heard.utterance,
        Utterance::Answers(vec![picked(&[1]), picked(&[1])])
    );
}

#[tokio::test]
async fn what_lasts_is_pressed_twice_and_can_be_taken_back() {
    let notice = open(approving());
    let first = Keyboard::of(&notice).to_json();
    let always = data_of(&first, "Always");
    let (sure, back) = (format!("y:{always}"), format!("n:{always}"));
    let updates = vec![callback(1, &first, &always), message(2, "end")];
    let service = service_with(updates).await;
    soon(telegram(&service.url).await.heard()).await.unwrap();
    let doubted = service.nth("/editMessageReplyMarkup", 0).await.body["reply_markup"].clone();
    assert_eq!(
        doubted["inline_keyboard"][2],
        json!([
            { "text": "Sure: Always", "callback_data": sure },
            { "text": "No", "callback_data": back },
        ])
    );
    let service = service_with(vec![callback(3, &doubted, &back), callback(4, &doubted, &sure)]).await;
    let heard = soon(telegram(&service.url).await.heard()).await.unwrap();
    assert_eq!(
        service.nth("/editMessageReplyMarkup", 0).await.body["reply_markup"],
        first
    );
    assert_eq!(
        heard.utterance,
        Utterance::Decision(crate::card::Decision::Always, None)
    );
    // Once is one press.
    let service = service_with(vec![callback(5, &first, &data_of(&first, "Continue"))]).await;
    let heard = soon(telegram(&service.url).await.heard()).await.unwrap();
    assert_eq!(
        heard.utterance,
        Utterance::Decision(crate::card::Decision::Once, None)
    );
}

#[tokio::test]
async fn words_are_about_the_message_they_reply_to() {
    let mut reply = message(1, "neither");
    reply["message"]["reply_to_message"] = json!({ "message_id": 55, "chat": chat() });
    let mut picture = message(4, "");
    picture["message"]["text"] = Value::Null;
    picture["message"]["photo"] = json!([{ "file_id": "x" }]);
    let updates = vec![
        reply,
        message(2, "/refuse abcde too old"),
        message(3, "/start"),
        picture,
    ];
    let service = service_with(updates).await;
    let bot = telegram(&service.url).await;
    let mut heard = Vec::new();
    for _ in 0..4 {
        let said = soon(bot.heard()).await.unwrap();
        heard.push((said.about, said.utterance));
    }
    assert_eq!(
        heard,
        [
            (
                About::Message(at(&json!({ "chat": ME, "message": 55 }))),
                Utterance::Text("neither".to_owned())
            ),
            (
                About::Code("abcde".to_owned()),
                Utterance::Decision(crate::card::Decision::Abort, Some("too old".to_owned()))
            ),
            (About::Nothing, Utterance::Greeting),
            (About::Nothing, Utterance::Text(String::new())),
        ]
    );
}

#[tokio::test]
async fn groups_and_bots_are_no_person_and_press_nothing() {
    let notice = open(asking(vec![question("Which?", &["a"], Selection::Several)]));
    let keyboard = Keyboard::of(&notice).to_json();
    let mut group = message(1, "yes");
    group["message"]["chat"] = json!({ "id": -100, "type": "supergroup" });
    let mut bot = message(2, "yes");
    bot["message"]["from"]["is_bot"] = json!(true);
    // Written in the private chat of another person, which Telegram does not do.
    let mut other = message(3, "yes");
    other["message"]["from"]["id"] = json!(5);
    let mut press = callback(4, &keyboard, &data_of(&keyboard, "a"));
    press["callback_query"]["message"]["chat"] = json!({ "id": -100, "type": "group" });
    let service = service_with(vec![group, bot, other, press, message(5, "end")]).await;
    let telegram = telegram(&service.url).await;
    for id in ["412587349", "412587349", "5"] {
        assert_eq!(
            sent_by(&soon(telegram.heard()).await.unwrap()),
            (id, SenderKind::Other)
        );
    }
    assert_eq!(
        sent_by(&soon(telegram.heard()).await.unwrap()),
        ("412587349", SenderKind::Person)
    );
    assert!(service.requests("/editMessageReplyMarkup").is_empty());
}

#[tokio::test]
async fn strange_updates_are_passed_over_and_hold_up_nothing() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let updates = vec![
        json!({ "update_id": 1 }),
        json!({ "update_id": 2, "message": 7 }),
        json!({ "update_id": 3, "message": { "message_id": "x" } }),
        json!({ "update_id": 4, "callback_query": { "id": "cb", "from": { "id": ME }, "data": "p1:x" } }),
        json!({ "update_id": 5, "poll": serde_json::from_str::<Value>(&deep).unwrap() }),
        json!({ "update_id": 6, "callback_query": {
            "id": "cb6", "from": { "id": ME }, "data": "n:p1:aaaaa:0:d:always:abcdefghijkl",
            "message": { "message_id": 1, "date": 0, "chat": chat() },
        } }),
        message(7, &"x".repeat(2_000_000)),
    ];
    let service = service_with(updates).await;
    let heard = soon(telegram(&service.url).await.heard()).await.unwrap();
    assert!(matches!(heard.utterance, Utterance::Text(text) if text.len() == 2_000_000));
    // A press on a message that Telegram no longer shows is told so.
    let toasts = service.requests("/answerCallbackQuery");
    assert!(
        toasts
            .iter()
            .any(|toast| toast.body["text"].as_str().unwrap().contains("too old")),
        "{toasts:?}"
    );
}

#[tokio::test]
async fn answers_that_are_none_are_errors_and_never_too_long() {
    let long = format!(r#"{{"ok":true,"result":"{}"}}"#, "x".repeat(9 * 1024 * 1024));
    for (status, body, says) in [
        (200, "no json".to_owned(), "no JSON of the Bot API"),
        (
            200,
            r#"{"ok":true,"result":{}}"#.to_owned(),
            "its updates are no list",
        ),
        (
            200,
            r#"{"ok":true,"result":[{}]}"#.to_owned(),
            "its updates have no ids",
        ),
        (200, long, "has more than 8388608 bytes"),
        (302, String::new(), "redirect"),
        (502, "<html>".to_owned(), "it answers with status 502"),
    ] {
        let service = FakeService::start(move |request, _| {
            if request.is("/getUpdates") {
                return Some(FakeAnswer(status, body.clone()));
            }
            result(&json!({}))
        })
        .await;
        let error = soon(telegram(&service.url).await.heard()).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn each_trouble_of_a_bot_has_words_of_its_own_and_none_tells_the_token() {
    let cases = [
        (401, "Unauthorized", "the token is that of no bot"),
        (404, "Not Found", "the token is that of no bot"),
        (403, "Forbidden: bot was blocked by the user", "must write /start"),
        (400, "Bad Request: chat not found", "must write /start"),
        (
            400,
            "Bad Request: CANARY\u{202e} is odd",
            "[token]\\u{202e} is odd",
        ),
        (
            409,
            "Conflict: terminated by other getUpdates request",
            "another program reads this bot",
        ),
        (
            409,
            "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
            "receives for this bot by a webhook",
        ),
        (429, "Too Many Requests: retry after 17", "to wait for 17 seconds"),
    ];
    for (code, description, says) in cases {
        let description = description.replace("CANARY", CANARY);
        let service = FakeService::start(move |_, _| {
            let mut body = json!({ "ok": false, "error_code": code, "description": description });
            if code == 429 {
                body["parameters"] = json!({ "retry_after": 17 });
            }
            Some(FakeAnswer(code, body.to_string()))
        })
        .await;
        let bot = telegram(&service.url).await;
        let errors = [
            soon(bot.heard()).await.unwrap_err(),
            bot.send(&open(approving()), "1").await.unwrap_err(),
        ];
        for error in errors {
            let told = format!("{error} {error:?}");
            assert!(told.contains(says), "{told}");
            assert!(!told.contains("canary") && !told.contains("127.0.0.1"), "{told}");
        }
        // Nothing of another program is touched.
        assert!(service.requests("/deleteWebhook").is_empty());
    }
    let gone = telegram("http://127.0.0.1:9").await;
    let error = soon(gone.heard()).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(told.contains("Telegram cannot be reached"), "{told}");
    assert!(!told.contains("canary") && !told.contains("127.0.0.1"), "{told}");
}

#[tokio::test]
async fn a_reply_stands_beside_the_button_or_below_the_message() {
    let service = FakeService::start(|request, _| {
        if request.is("/answerCallbackQuery") && request.body["callback_query_id"] == "old" {
            let body =
                json!({ "ok": false, "error_code": 400, "description": "Bad Request: query is too old" });
            return Some(FakeAnswer(400, body.to_string()));
        }
        result(&json!({ "message_id": 56 }))
    })
    .await;
    let bot = telegram(&service.url).await;
    let new = to(&json!({ "callback": "new", "chat": ME }));
    let old = to(&json!({ "callback": "old", "chat": ME }));
    let words = to(&json!({ "chat": ME, "message": 9 }));
    bot.reply(&new, "Recorded: pg").await.unwrap();
    assert_eq!(
        service.nth("/answerCallbackQuery", 0).await.body,
        json!({ "callback_query_id": "new", "text": "Recorded: pg" })
    );
    bot.reply(&old, "Recorded: pg").await.unwrap();
    bot.reply(&new, &"long ".repeat(100)).await.unwrap();
    bot.reply(&words, "see evil.example").await.unwrap();
    let sent = service.requests("/sendMessage");
    let texts: Vec<usize> = sent
        .iter()
        .map(|sent| sent.body["text"].as_str().unwrap().len())
        .collect();
    assert_eq!(texts, [12, 500, 16]);
    assert_eq!(
        sent[2].body,
        json!({
            "chat_id": ME, "text": "see evil.example",
            "entities": [{ "type": "code", "offset": 4, "length": 12 }],
            "link_preview_options": { "is_disabled": true },
            "reply_parameters": { "message_id": 9, "allow_sending_without_reply": true },
        })
    );
}

#[tokio::test]
async fn settings_that_cannot_be_used_say_which_and_tell_no_value() {
    for (token, url, says) in [
        (
            "${UNSET}",
            "https://x.example",
            "`token` of `telegram` cannot be used: the environment variable `UNSET` is not set",
        ),
        (
            "a\nb",
            "https://x.example",
            "`token` of `telegram` is empty or has several lines",
        ),
        (
            " ",
            "https://x.example",
            "`token` of `telegram` is empty or has several lines",
        ),
        (
            "${TOKEN}",
            "http://x.example",
            "the address of `telegram` must begin with `https://`, or lead to this machine",
        ),
        (
            "${TOKEN}",
            "file:///etc",
            "the address of `telegram` must begin with `https://`, or lead to this machine",
        ),
    ] {
        let settings = TelegramSettings {
            basics: basics(url),
            token: token.to_owned(),
        };
        let error = Telegram::open(&settings, &environment()).await.err().unwrap();
        assert_eq!(error.to_string(), says);
    }
    // What a token is made of leads nowhere else.
    let service = service_with(Vec::new()).await;
    let settings = TelegramSettings {
        basics: basics(&service.url),
        token: "../x?y#z/w".to_owned(),
    };
    let bot = Telegram::open(&settings, &environment()).await.unwrap();
    bot.send(&open(approving()), "1").await.unwrap();
    assert_eq!(
        service.nth("/sendMessage", 0).await.uri,
        "/bot..%2Fx%3Fy%23z%2Fw/sendMessage"
    );
}

#[tokio::test]
async fn only_numbers_are_people_and_only_own_messages_are_edited() {
    let service = service_with(Vec::new()).await;
    let bot = telegram(&service.url).await;
    let notice = open(approving());
    for person in ["@somebody", "", "1 2"] {
        let error = bot.send(&notice, person).await.unwrap_err();
        assert!(error.to_string().contains("a person is a number here"), "{error}");
    }
    let error = bot.update(&at(&json!("x")), &notice).await.unwrap_err();
    assert!(error.to_string().contains("not known any more"), "{error}");
    assert!(service.requests("").is_empty());
}
