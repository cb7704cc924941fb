//! The channel against a Slack on the loopback interface, through the trait.

#[path = "../../../tests/it/support/fake_slack/mod.rs"]
pub(super) mod fake_slack;

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use self::fake_slack::{APP_TOKEN, BOT_TOKEN, FakeSlack, Filled, Trouble};
use super::blocks::samples;
use super::*;
use crate::card::Decision;
use crate::channels::channel::{About, Picked, SenderKind, Utterance};
use crate::channels::press::Button;
use crate::config::{ChannelBasics, Details};
use crate::protocol::question::Selection;

/// Longer than anything here may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Everything a hundred times as fast, but for what waits for a busy machine.
const FAST: Pace = Pace {
    ping: Duration::from_millis(50),
    silence: Duration::from_secs(2),
    greeting: Duration::from_secs(2),
    linger: Duration::from_millis(100),
    pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(50),
    steady: Duration::from_secs(1),
};

fn settings(api_url: Option<String>) -> SlackSettings {
    SlackSettings {
        basics: ChannelBasics {
            people: vec!["U1".to_owned()],
            may: std::collections::BTreeSet::new(),
            details: Details::Needed,
            api_url,
        },
        app_token: APP_TOKEN.to_owned(),
        bot_token: BOT_TOKEN.to_owned(),
    }
}

fn environment() -> Environment {
    Environment::new([("HOME", "/nowhere")], "/")
}

fn channel(fake: &FakeSlack) -> Slack {
    Slack::paced(&settings(Some(fake.api_url())), &environment(), FAST).unwrap()
}

/// Waits for what is said next.
async fn heard(slack: &Slack) -> Result<Heard, ChannelError> {
    let heard = tokio::time::timeout(DEADLINE, slack.heard()).await;
    heard.expect("nothing is heard")
}

/// Waits until something is true of the fake; what the channel hears meanwhile is kept by it.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(DEADLINE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    });
    assert!(waited.await.is_ok(), "not in time: {what}");
}

/// Opens the connection, as the first call of `heard` does.
async fn connect(slack: &Slack, fake: &FakeSlack) {
    assert!(
        tokio::time::timeout(Duration::from_millis(1), slack.heard())
            .await
            .is_err()
    );
    until("it is connected", || fake.happened("hello 1")).await;
}

/// Sends a card, and returns its place.
async fn send(slack: &Slack, card: Card) -> String {
    let at = slack.send(&samples::waiting(card), "U1").await.unwrap();
    at.0["ts"].as_str().unwrap().to_owned()
}

fn answers(heard: &Heard) -> &[Picked] {
    match &heard.utterance {
        Utterance::Answers(answers) => answers,
        other => panic!("{other:?}"),
    }
}

fn picked(options: &[usize], text: Option<&str>) -> Picked {
    Picked {
        options: options.to_vec(),
        text: text.map(str::to_owned),
    }
}

#[tokio::test]
async fn questions_are_answered_by_one_press() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let single = samples::questions(vec![samples::question(
        "Which db?",
        Selection::One,
        &[("pg", None), ("sqlite", None)],
    )]);
    let several = samples::questions(vec![samples::question(
        "Which?",
        Selection::Several,
        &[("a", None), ("b", None), ("c", None)],
    )]);
    for (card, filled, expected) in [
        (
            single.clone(),
            Filled::nothing().options(0, &["1"]),
            vec![picked(&[1], None)],
        ),
        (
            single,
            Filled::nothing()
                .options(0, &["other"])
                .text(0, "duckdb <3 & more"),
            vec![picked(&[], Some("duckdb <3 & more"))],
        ),
        (
            several,
            Filled::nothing().options(0, &["2", "0"]).text(0, "and mine"),
            vec![picked(&[0, 2], Some("and mine"))],
        ),
        (
            samples::three(),
            Filled::nothing().options(0, &["0"]).text(2, "a day"),
            vec![picked(&[0], None), Picked::default(), picked(&[], Some("a day"))],
        ),
    ] {
        let ts = send(&slack, card).await;
        // What is toggled is not said yet.
        if expected[0].text.is_none() {
            fake.toggle("U1", &ts);
        }
        fake.press("U1", &ts, "send", &filled);
        let said = heard(&slack).await.unwrap();
        assert_eq!(answers(&said), expected);
        let About::Press(press) = &said.about else {
            panic!("{:?}", said.about)
        };
        assert_eq!((press.code.as_str(), press.button), ("aaaaa", Button::Send));
        assert_eq!(press.nonce.as_str(), "AAAAAAAAAAAA");
    }
    assert_eq!(fake.broken_limits(), Vec::<String>::new());
    let posted = fake.requests("chat.postMessage");
    for body in posted {
        assert_eq!(body["unfurl_links"], false);
        assert_eq!(body["unfurl_media"], false);
        assert_eq!(body["link_names"], false);
        assert_eq!(body["parse"], "none");
    }
}

#[tokio::test]
async fn an_approval_is_decided_and_its_message_edited() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    for decision in [
        Decision::Once,
        Decision::Session,
        Decision::Always,
        Decision::Abort,
    ] {
        let at = slack.send(&samples::waiting(samples::install()), "U1").await;
        let at = at.unwrap();
        let ts = at.0["ts"].as_str().unwrap();
        fake.press("U1", ts, &decision.to_string(), &Filled::nothing());
        let said = heard(&slack).await.unwrap();
        assert_eq!(said.utterance, Utterance::Decision(decision, None));
        assert_eq!(
            (
                said.sender.id.as_str(),
                said.sender.recorded.as_str(),
                said.sender.kind
            ),
            ("U1", "T1/U1", SenderKind::Person)
        );
        let closed = samples::ended(samples::install(), "Answered in Slack · 14:03");
        slack.update(&at, &closed).await.unwrap();
        let message = fake.message(ts);
        assert!(message.to_string().contains("Answered in Slack · 14:03"));
        assert!(!message.to_string().contains("button"), "{message:#}");
    }
}

#[tokio::test]
async fn a_refusal_has_its_reason_from_a_form() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let ts = send(&slack, samples::install()).await;
    let pressed = fake.press("U1", &ts, "reason", &Filled::nothing());
    until("the form is opened", || fake.requests("views.open").len() == 1).await;
    until("it is acknowledged", || {
        fake.happened(&format!("ack {pressed} on 1"))
    })
    .await;
    fake.submit("U1", "not on a Friday");
    let said = heard(&slack).await.unwrap();
    let reason = Some("not on a Friday".to_owned());
    assert_eq!(said.utterance, Utterance::Decision(Decision::Abort, reason));
    assert_eq!(said.sender.recorded, "T1/U1");
    assert_eq!(fake.broken_limits(), Vec::<String>::new());
    // Where the form cannot be opened the person is told so.
    fake.trouble("views.open", Trouble::Word("expired_trigger_id", json!({})));
    fake.press("U1", &ts, "reason", &Filled::nothing());
    until("the person is told", || {
        fake.requests("chat.postEphemeral").len() == 1
    })
    .await;
    let told = fake.requests("chat.postEphemeral")[0].clone();
    assert_eq!((&told["channel"], &told["user"]), (&json!("DU1"), &json!("U1")));
    assert!(
        told.to_string()
            .contains("Press Abort to refuse without a reason"),
        "{told}"
    );
}

#[tokio::test]
async fn a_stranger_is_named_as_the_sender_and_two_people_are_told_apart() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let card = samples::install();
    let one = send(&slack, card.clone()).await;
    let other = slack.send(&samples::waiting(card), "U2").await.unwrap();
    let other = other.0["ts"].as_str().unwrap().to_owned();
    fake.press("U2", &other, "once", &Filled::nothing());
    fake.press("U1", &one, "abort", &Filled::nothing());
    fake.press("USTRANGER", &one, "once", &Filled::nothing());
    let mut said = Vec::new();
    for _ in 0..3 {
        let heard = heard(&slack).await.unwrap();
        said.push((heard.sender.recorded, heard.utterance));
    }
    let decided = |decision| Utterance::Decision(decision, None);
    assert_eq!(
        said,
        [
            ("T1/U2".to_owned(), decided(Decision::Once)),
            ("T1/U1".to_owned(), decided(Decision::Abort)),
            ("T1/USTRANGER".to_owned(), decided(Decision::Once)),
        ]
    );
}

#[tokio::test]
async fn a_press_on_a_message_that_was_closed_still_says_which_one() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let at = slack.send(&samples::waiting(samples::install()), "U1").await;
    let at = at.unwrap();
    let ts = at.0["ts"].as_str().unwrap();
    // Pressed while the message is being edited: what arrives is of the message as it was.
    fake.press("U1", ts, "once", &Filled::nothing());
    let closed = samples::ended(samples::install(), "Answered in a terminal · 14:03");
    slack.update(&at, &closed).await.unwrap();
    let said = heard(&slack).await.unwrap();
    let About::Press(press) = &said.about else {
        panic!("{:?}", said.about)
    };
    assert_eq!(press.rev, 0);
    slack
        .reply(&said.reply_to, "Already answered: <!channel> in a terminal")
        .await
        .unwrap();
    let told = &fake.requests("chat.postEphemeral")[0];
    assert_eq!(told["user"], "U1");
    assert_eq!(told["text"], "pml");
    assert_eq!(told["blocks"][0]["text"]["type"], "plain_text");
}

#[tokio::test]
async fn a_message_and_a_reply_to_one_are_heard() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let at = slack
        .send(&samples::waiting(samples::three()), "U1")
        .await
        .unwrap();
    fake.write("U1", "hello", None);
    let said = heard(&slack).await.unwrap();
    assert_eq!(
        (said.about, said.utterance),
        (About::Nothing, Utterance::Text("hello".to_owned()))
    );
    fake.write("U1", "pg", at.0["ts"].as_str());
    assert_eq!(heard(&slack).await.unwrap().about, About::Message(at));
}

#[tokio::test]
async fn an_announced_end_opens_the_next_connection_before_the_old_one_closes() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let ts = send(&slack, samples::install()).await;
    fake.disconnect("warning");
    until("another connection is there", || fake.happened("hello 2")).await;
    until("the old one is closed", || fake.happened("close 1")).await;
    let log = fake.log();
    let place = |what: &str| log.iter().position(|line| line == what).unwrap();
    assert!(place("hello 2") < place("close 1"), "{log:?}");
    fake.press("U1", &ts, "once", &Filled::nothing());
    assert!(heard(&slack).await.is_ok());
    // A connection that is renewed is no trouble.
    assert_eq!(fake.requests("auth.test").len(), 1);
}

#[tokio::test]
async fn a_broken_connection_is_opened_again_and_a_press_after_it_is_heard() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let ts = send(&slack, samples::install()).await;
    for round in 2..5 {
        fake.break_sockets();
        until("it is connected again", || {
            fake.happened(&format!("hello {round}"))
        })
        .await;
        until("only one is open", || fake.sockets().len() == 1).await;
        fake.press("U1", &ts, "once", &Filled::nothing());
        assert!(heard(&slack).await.is_ok());
    }
}

#[tokio::test]
async fn a_connection_without_a_sign_of_life_is_given_up() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    until("it is pinged", || fake.happened("ping on 1")).await;
    fake.freeze();
    until("it is connected again", || fake.happened("hello 2")).await;
}

#[tokio::test]
async fn a_connection_that_is_idle_lives_on_by_its_pings() {
    let fake = FakeSlack::start();
    let pace = Pace {
        silence: Duration::from_millis(400),
        ..FAST
    };
    let slack = Slack::paced(&settings(Some(fake.api_url())), &environment(), pace).unwrap();
    connect(&slack, &fake).await;
    let pings = || fake.log().iter().filter(|line| *line == "ping on 1").count();
    // Thirty pings take almost four times as long as the silence that ends a connection.
    until("it is pinged", || pings() >= 30).await;
    assert!(!fake.happened("open 2"), "{:?}", fake.log());
}

#[tokio::test]
async fn what_comes_in_is_acknowledged_while_nobody_listens() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let ts = send(&slack, samples::install()).await;
    let id = fake.press("U1", &ts, "once", &Filled::nothing());
    until("it is acknowledged", || fake.happened(&format!("ack {id} on 1"))).await;
    assert!(heard(&slack).await.is_ok());
    // More than is kept is not acknowledged, and none of what was acknowledged is lost.
    let press = |action| fake.press("U1", &ts, action, &Filled::nothing());
    let kept: Vec<String> = (0..WAITING).map(|_| press("once")).collect();
    let more = press("session");
    fake.disconnect("warning");
    until("everything before the announcement is read", || {
        fake.happened("hello 2")
    })
    .await;
    assert!(kept.iter().all(|id| fake.happened(&format!("ack {id} on 1"))));
    assert!(!fake.happened(&format!("ack {more} on 1")));
    for _ in kept {
        let said = heard(&slack).await.unwrap();
        assert_eq!(said.utterance, Utterance::Decision(Decision::Once, None));
    }
    press("abort");
    let said = heard(&slack).await.unwrap();
    assert_eq!(said.utterance, Utterance::Decision(Decision::Abort, None));
}

#[tokio::test]
async fn an_event_that_is_delivered_again_is_acknowledged_and_heard_once() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    let event = |text: &str, id: &str| {
        json!({
            "team_id": "T1", "event_id": id,
            "event": { "type": "message", "channel": "DU1", "user": "U1", "text": text, "channel_type": "im" },
        })
    };
    fake.envelope("events_api", &event("one", "Ev1"));
    let again = fake.envelope("events_api", &event("one", "Ev1"));
    fake.envelope("events_api", &event("two", "Ev2"));
    assert_eq!(
        heard(&slack).await.unwrap().utterance,
        Utterance::Text("one".to_owned())
    );
    assert_eq!(
        heard(&slack).await.unwrap().utterance,
        Utterance::Text("two".to_owned())
    );
    until("it is acknowledged", || {
        fake.happened(&format!("ack {again} on 1"))
    })
    .await;
}

#[tokio::test]
async fn what_no_one_can_read_changes_nothing() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    for text in [
        "",
        "{",
        "null",
        "[1]",
        "{\"type\":\"tomorrow\"}",
        "{\"envelope_id\":\"x\"}",
    ] {
        fake.say(text);
    }
    fake.write("U1", "still here", None);
    assert!(heard(&slack).await.is_ok());
    // A frame that is longer than any of Slack ends the connection, and another one is opened.
    fake.say(&"x".repeat(2 * 1024 * 1024));
    until("it is connected again", || fake.happened("hello 2")).await;
}

#[tokio::test]
async fn too_many_requests_are_told_with_the_time_to_wait_and_none_is_sent_meanwhile() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    fake.trouble("chat.postMessage", Trouble::TooFast(7));
    let notice = samples::waiting(samples::install());
    for _ in 0..2 {
        let error = slack.send(&notice, "U1").await.unwrap_err();
        let ChannelError::TooFast { after, .. } = error else {
            panic!("{error}")
        };
        assert!(
            after > Duration::from_secs(3) && after <= Duration::from_secs(7),
            "{after:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("Slack wants pml to wait for {} seconds", after.as_secs())
        );
    }
    assert_eq!(fake.requests("chat.postMessage").len(), 1);
    // Other methods are not held up.
    fake.trouble("chat.update", Trouble::Word("ratelimited", json!({})));
    let at = envelope::message_ref("DU1", "1.2");
    assert!(matches!(
        slack.update(&at, &notice).await,
        Err(ChannelError::TooFast { .. })
    ));
    slack.api.tell("DU1", "U1", "words").await.unwrap();
}

#[tokio::test]
async fn each_trouble_has_its_own_words_and_none_tells_a_token() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    let notice = samples::waiting(samples::questions(vec![samples::question(
        "canary of the card",
        Selection::One,
        &[],
    )]));
    let none = json!({});
    let scope = json!({ "needed": "chat:write", "provided": BOT_TOKEN });
    let mut told = std::collections::BTreeSet::new();
    for (trouble, expected) in [
        (
            Trouble::Word("invalid_auth", none.clone()),
            "copy it from `OAuth & Permissions` of the app",
        ),
        (
            Trouble::Word("account_inactive", none.clone()),
            "install it again",
        ),
        (
            Trouble::Word("missing_scope", scope),
            "`missing_scope` (chat:write): the app lacks a permission",
        ),
        (
            Trouble::Word("not_in_channel", none.clone()),
            "let them write to the app once",
        ),
        (
            Trouble::Word("user_disabled", none.clone()),
            "only people with an account",
        ),
        (
            Trouble::Word("not_allowed_token_type", none.clone()),
            "`botToken` must be the one that begins with xoxb-",
        ),
        (Trouble::Word("messages_tab_disabled", none.clone()), "App Home"),
        (
            Trouble::Word("msg_blocks_too_long", none.clone()),
            "answer it in the inbox",
        ),
        (
            Trouble::Word("invalid_blocks", none.clone()),
            "Slack refuses: `invalid_blocks`",
        ),
        (Trouble::Word("<!channel>", none.clone()), "`no word of Slack`"),
        (Trouble::Word("fatal_error", none), "trouble of its own"),
        (
            Trouble::Status(503, "busy"),
            "cannot be reached: it answers with status 503",
        ),
        (Trouble::Status(404, "<html>"), "cannot read: status 404"),
        (Trouble::Status(302, ""), "status 302"),
        (Trouble::Body("<html>"), "the answer is no JSON"),
        (Trouble::Body("{}"), "neither yes nor no"),
        (Trouble::Body("{\"ok\":true}"), "where the message stands"),
        (Trouble::HangUp, "Slack cannot be reached: "),
    ] {
        fake.trouble("chat.postMessage", trouble.clone());
        // Turns are not what is looked at.
        slack.api.forget_turns().await;
        let error = slack.send(&notice, "U1").await.unwrap_err().to_string();
        assert!(error.contains(expected), "{trouble:?}: {error}");
        for secret in [APP_TOKEN, BOT_TOKEN, "canary", "127.0.0.1", "ticket"] {
            assert!(!error.contains(secret), "{error}");
        }
        told.insert(error);
    }
    assert_eq!(told.len(), 18, "{told:#?}");
    // A body without an end is not read to it.
    let long: &'static str = Box::leak("x".repeat(2 * 1024 * 1024).into_boxed_str());
    fake.trouble("chat.postMessage", Trouble::Body(long));
    slack.api.forget_turns().await;
    let error = slack.send(&notice, "U1").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "Slack answered with what pml cannot read: the answer is too long"
    );
}

#[tokio::test]
async fn a_person_who_is_none_cannot_be_sent_to() {
    let fake = FakeSlack::start();
    let error = channel(&fake)
        .send(&samples::waiting(samples::install()), "ann")
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`people` names member ids"), "{error}");
}

#[tokio::test]
async fn a_connection_that_fails_is_told_once_each_time_and_tried_again() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    fake.trouble("auth.test", Trouble::Word("invalid_auth", json!({})));
    fake.trouble(
        "apps.connections.open",
        Trouble::Word("not_allowed_token_type", json!({})),
    );
    fake.trouble(
        "apps.connections.open",
        Trouble::Body("{\"ok\":true,\"url\":\"ws://example.org/link\"}"),
    );
    fake.trouble(
        "apps.connections.open",
        Trouble::Body("{\"ok\":true,\"url\":\"file:///etc/passwd\"}"),
    );
    fake.trouble("apps.connections.open", Trouble::Body("{\"ok\":true}"));
    fake.trouble("apps.connections.open", Trouble::TooFast(1));
    for expected in [
        "`invalid_auth`",
        "`not_allowed_token_type`",
        "the address of its socket is none",
        "the address of its socket is none",
        "the address of its socket is none",
        "wants pml to wait for 1 seconds",
    ] {
        let error = heard(&slack).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    until_heard(&slack, &fake).await;
}

/// Listens until the connection is there.
async fn until_heard(slack: &Slack, fake: &FakeSlack) {
    let opened = async {
        until("it is connected", || !fake.sockets().is_empty()).await;
        fake.write("U1", "hello", None);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        said = heard(slack) => assert!(said.is_ok(), "{said:?}"),
        () = opened => {}
    }
}

#[tokio::test]
async fn nothing_is_tried_again_while_nobody_listens() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    for _ in 0..50 {
        fake.trouble("auth.test", Trouble::Word("invalid_auth", json!({})));
    }
    assert!(heard(&slack).await.is_err());
    until("one more is tried", || fake.requests("auth.test").len() >= 2).await;
    // Ten times the longest pause.
    tokio::time::sleep(10 * FAST.longest_pause).await;
    assert_eq!(fake.requests("auth.test").len(), 2);
}

#[tokio::test]
async fn a_socket_without_a_greeting_is_no_connection() {
    let fake = FakeSlack::start();
    fake.fall_silent(true);
    let pace = Pace {
        greeting: Duration::from_millis(100),
        ..FAST
    };
    let slack = Slack::paced(&settings(Some(fake.api_url())), &environment(), pace).unwrap();
    let error = heard(&slack).await.unwrap_err().to_string();
    assert_eq!(error, "Slack cannot be reached: its socket does not greet");
    fake.fall_silent(false);
    until_heard(&slack, &fake).await;
}

#[tokio::test]
async fn a_connection_ends_with_its_channel() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    drop(slack);
    until("nothing is open", || fake.sockets().is_empty()).await;
}

#[tokio::test]
async fn messages_of_one_conversation_keep_the_pace_of_slack() {
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    let notice = samples::waiting(samples::install());
    let begin = tokio::time::Instant::now();
    for _ in 0..3 {
        slack.send(&notice, "U1").await.unwrap();
    }
    assert!(begin.elapsed() >= Duration::from_secs(2));
    // The conversation is asked for once.
    assert_eq!(fake.requests("conversations.open").len(), 1);
}

#[test]
fn tokens_leave_this_machine_by_https_only() {
    let open = |settings: &SlackSettings| match Slack::open(settings, &environment()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    for (url, fine) in [
        (None, true),
        (Some("https://slack.example/api/"), true),
        (Some("http://127.0.0.1:1/api"), true),
        (Some("http://[::1]:1/api"), true),
        (Some("http://localhost:1/api"), true),
        (Some("http://slack.example/api"), false),
        (Some("ftp://127.0.0.1/"), false),
        (Some("slack"), false),
    ] {
        let opened = open(&settings(url.map(str::to_owned)));
        assert_eq!(opened.is_ok(), fine, "{url:?}: {opened:?}");
    }
    for (token, wrong) in [
        ("", "is empty or has several lines"),
        ("xoxb-1\nx", "is empty or has several lines"),
        ("xoxb 1", "is no token"),
        ("xoxb-\u{e4}", "is no token"),
    ] {
        let mut settings = settings(None);
        token.clone_into(&mut settings.bot_token);
        assert_eq!(open(&settings), Err(format!("`botToken` of `slack` {wrong}")));
    }
}

#[test]
fn tokens_are_expanded_where_the_channel_is_opened() {
    let mut settings = settings(None);
    settings.app_token = "${SLACK_APP_TOKEN}".to_owned();
    let Err(error) = Slack::open(&settings, &environment()) else {
        panic!("the variable is not set")
    };
    assert_eq!(
        error.to_string(),
        "`appToken` of `slack` cannot be used: the environment variable `SLACK_APP_TOKEN` is not set"
    );
    assert_eq!(
        crate::report::Hint::hint(&error).as_deref(),
        Some(
            "set `SLACK_APP_TOKEN` in the environment in which `pml serve` is started, and start that again: \
             SLACK_APP_TOKEN=… pml serve"
        )
    );
    let environment = environment().with("SLACK_APP_TOKEN", APP_TOKEN);
    assert!(Slack::open(&settings, &environment).is_ok());
}

/// What is written to the log.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn another_program_on_the_same_app_is_warned_about_and_no_log_has_a_token() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let fake = FakeSlack::start();
    let slack = channel(&fake);
    connect(&slack, &fake).await;
    fake.disconnect("refresh_requested");
    until("it is connected again", || fake.happened("close 1")).await;
    let warning = "other connections are open for this app";
    // Its own two are not others.
    assert!(!log.text().contains(warning), "{}", log.text());
    fake.greet_with(3);
    fake.break_sockets();
    until("it warns", || log.text().contains(warning)).await;
    let ts = send(&slack, samples::three()).await;
    fake.press(
        "U1",
        &ts,
        "send",
        &Filled::nothing().text(0, "canary of the answer"),
    );
    heard(&slack).await.unwrap();
    fake.trouble("chat.update", Trouble::HangUp);
    let at = envelope::message_ref("DU1", &ts);
    let closed = samples::ended(samples::three(), "canary of the answer");
    assert!(slack.update(&at, &closed).await.is_err());
    for secret in [APP_TOKEN, BOT_TOKEN, "canary", "ticket=", "Which db?"] {
        assert!(!log.text().contains(secret), "{secret}: {}", log.text());
    }
}

#[test]
fn the_manifest_asks_for_what_is_used_and_nothing_more() {
    let manifest = manifest();
    assert_eq!(
        manifest["oauth_config"]["scopes"]["bot"],
        json!(["chat:write", "im:write", "im:history"])
    );
    assert_eq!(manifest["settings"]["socket_mode_enabled"], true);
    assert_eq!(manifest["settings"]["interactivity"]["is_enabled"], true);
    assert_eq!(
        manifest["settings"]["event_subscriptions"]["bot_events"],
        json!(["message.im"])
    );
    assert_eq!(
        manifest["features"]["app_home"]["messages_tab_read_only_enabled"],
        false
    );
}
