//! The office over a real store and settings on disk, with channels that take everything or what a test says.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::card::Card;
use crate::channels::channel::{
    About, Channel, ChannelError, Heard, MessageRef, OutcomeNotice, Pending, Picked, ReplyTo, Sender,
    SenderKind, Unsupported, Utterance,
};
use crate::channels::notice::{Notice, Standing};
use crate::channels::press::{Button, Press};
use crate::channels::samples::pick;
use crate::config::Environment;
use crate::proxy::{AskingProgram, Provenance, Road, State, Terminal, Workflow};
use crate::workflow::{Asker, AskingClient};

/// A channel that keeps what it is told.
struct FakeChannel {
    name: ChannelName,
    sent: Mutex<Vec<(String, Notice)>>,
    updated: Mutex<Vec<(Value, String)>>,
    replied: Mutex<Vec<String>>,
    errors: Mutex<VecDeque<ChannelError>>,
    update_errors: Mutex<VecDeque<ChannelError>>,
    outcomes: OutcomeNotice,
    /// Held while nothing is to get through.
    gate: tokio::sync::Mutex<()>,
    say: mpsc::UnboundedSender<Heard>,
    said: tokio::sync::Mutex<mpsc::UnboundedReceiver<Heard>>,
}

impl FakeChannel {
    fn new(name: ChannelName, outcomes: OutcomeNotice) -> Arc<Self> {
        let (say, said) = mpsc::unbounded_channel();
        Arc::new(Self {
            name,
            sent: Mutex::default(),
            updated: Mutex::default(),
            replied: Mutex::default(),
            errors: Mutex::default(),
            update_errors: Mutex::default(),
            outcomes,
            gate: tokio::sync::Mutex::default(),
            say,
            said: tokio::sync::Mutex::new(said),
        })
    }

    fn sent(&self) -> Vec<(String, Notice)> {
        self.sent.lock().unwrap().clone()
    }

    fn updated(&self) -> Vec<(Value, String)> {
        self.updated.lock().unwrap().clone()
    }

    fn replied(&self) -> Vec<String> {
        self.replied.lock().unwrap().clone()
    }

    /// Presses the button of an option on the message that a person got.
    fn press(&self, notice: &Notice, person: &str, option: usize) {
        let picked = Picked {
            options: vec![option],
            text: None,
        };
        let press = Press {
            code: notice.card.code.as_str().to_owned(),
            rev: notice.card.rev,
            button: Button::Send,
            nonce: notice.nonce.clone(),
        };
        self.hear(person, About::Press(press), Utterance::Answers(vec![picked]));
    }

    fn hear(&self, person: &str, about: About, utterance: Utterance) {
        let heard = Heard {
            sender: Sender {
                id: person.to_owned(),
                recorded: format!("T1/{person}"),
                kind: SenderKind::Person,
            },
            about,
            utterance,
            reply_to: ReplyTo(json!({})),
        };
        self.say.send(heard).unwrap();
    }
}

impl Channel for FakeChannel {
    fn name(&self) -> ChannelName {
        self.name
    }

    fn fits(&self, card: &Card) -> Result<(), Unsupported> {
        match card.title.len() {
            found @ 1000.. => Err(Unsupported::TooMuch {
                channel: self.name.title(),
                what: "characters",
                limit: 999,
                found,
            }),
            _ => Ok(()),
        }
    }

    fn send<'a>(&'a self, notice: &'a Notice, to: &'a str) -> Pending<'a, MessageRef> {
        if let Some(error) = self.errors.lock().unwrap().pop_front() {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.sent.lock().unwrap().push((to.to_owned(), notice.clone()));
        let message = MessageRef(json!({ "to": to, "code": notice.card.code.as_str() }));
        Box::pin(async move {
            let _open = self.gate.lock().await;
            Ok(message)
        })
    }

    fn outcome_notice(&self) -> OutcomeNotice {
        self.outcomes
    }

    fn update<'a>(&'a self, at: &'a MessageRef, notice: &'a Notice) -> Pending<'a, ()> {
        let Standing::Closed(line) = &notice.standing else {
            panic!("an open message is not edited")
        };
        self.updated.lock().unwrap().push((at.0.clone(), line.clone()));
        if let Some(error) = self.update_errors.lock().unwrap().pop_front() {
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn heard(&self) -> Pending<'_, Heard> {
        Box::pin(async {
            let heard = self.said.lock().await.recv().await;
            Ok(heard.expect("a channel that ended is not heard"))
        })
    }

    fn reply<'a>(&'a self, _to: &'a ReplyTo, text: &'a str) -> Pending<'a, ()> {
        self.replied.lock().unwrap().push(text.to_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A home with a user's file, and the desk over its store.
struct Home {
    directory: tempfile::TempDir,
    environment: Environment,
    locations: Locations,
    desk: Desk,
}

/// An office at work.
struct Working {
    slack: Arc<FakeChannel>,
    telegram: Arc<FakeChannel>,
    ending: CancellationToken,
    office: tokio::task::JoinHandle<Result<(), Refusal>>,
}

impl Working {
    async fn end(self) {
        self.ending.cancel();
        self.office.await.unwrap().unwrap();
    }
}

impl Home {
    fn new(route: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let environment = Environment::new([("HOME", directory.path())], directory.path());
        let locations = Locations::of(&environment).unwrap();
        let text = format!(
            r#"{{"channels": {{
                "slack": {{ "appToken": "a", "botToken": "b", "people": ["U1", "U2"] }},
                "telegram": {{ "token": "t", "people": [1] }},
                "route": {route}
            }}}}"#
        );
        let file = locations.user_config();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        crate::disk::write_new(&file, text.as_bytes()).unwrap();
        let files = Files::new(directory.path().join(".pml.json"), &locations);
        let desk = Desk::new(&environment, &locations, files, Terminal::Present);
        Self {
            directory,
            environment,
            locations,
            desk,
        }
    }

    fn open(&self) -> Working {
        self.open_with(OutcomeNotice::EditedMessage)
    }

    /// Opens channels that tell outcomes in a way.
    fn open_with(&self, outcomes: OutcomeNotice) -> Working {
        let slack = FakeChannel::new(ChannelName::Slack, outcomes);
        let telegram = FakeChannel::new(ChannelName::Telegram, outcomes);
        let ending = CancellationToken::new();
        let mut office = Office::new(
            self.desk.clone(),
            &self.environment,
            &self.locations,
            None,
            ending.clone(),
        );
        let fakes = (Arc::clone(&slack), Arc::clone(&telegram));
        office.opener = Arc::new(move |name, _settings, _environment| {
            let channel: Arc<dyn Channel> = match name {
                ChannelName::Slack => Arc::clone(&fakes.0) as _,
                _ => Arc::clone(&fakes.1) as _,
            };
            Box::pin(std::future::ready(Ok(channel)))
        });
        Working {
            slack,
            telegram,
            ending,
            office: tokio::spawn(office.run()),
        }
    }

    async fn ask_on(&self, channel: ChannelName, question: &str, time_to_live: Duration) -> Workflow {
        let program = AskingProgram {
            asker: Asker::random(),
            project: self.directory.path().to_owned(),
            config: self.directory.path().join(".pml.json"),
            client: AskingClient::default(),
        };
        let question = pick(question, &["pg", "sqlite"]);
        let asked = self.desk.ask_on(channel, program, question, time_to_live);
        asked.await.unwrap()
    }

    async fn ask_for(&self, question: &str, time_to_live: Duration) -> Workflow {
        self.ask_on(ChannelName::Slack, question, time_to_live).await
    }

    /// Asks on Slack, where two people are.
    async fn ask(&self, question: &str) -> Workflow {
        self.ask_for(question, Duration::from_mins(5)).await
    }

    async fn states(&self, ask: &Workflow) -> Vec<DeliveryState> {
        let deliveries = self.desk.deliveries_of(ask.id).await.unwrap();
        deliveries.iter().map(|delivery| delivery.state).collect()
    }
}

/// Waits for a condition; what never comes fails the test.
async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < Duration::from_secs(20), "{what} did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The notice that a person got.
fn notice_to(channel: &FakeChannel, person: &str) -> Notice {
    let sent = channel.sent();
    sent.into_iter().find(|(to, _)| to == person).unwrap().1
}

fn without_time(line: &str) -> &str {
    line.rsplit_once(" · ").map_or(line, |(line, _)| line)
}

#[tokio::test]
async fn of_two_people_who_press_at_once_one_counts_and_both_see_which() {
    let home = Home::new("{}");
    let working = home.open();
    let ask = home.ask("Which db?").await;
    until("both messages", async || working.slack.sent().len() == 2).await;
    for (person, option) in [("U1", 0), ("U2", 1)] {
        working
            .slack
            .press(&notice_to(&working.slack, person), person, option);
    }
    until("both edits", async || working.slack.updated().len() == 2).await;
    until("both replies", async || working.slack.replied().len() == 2).await;
    let workflow = home.desk.find(ask.id).await.unwrap();
    let State::Answered { by, .. } = &workflow.state else {
        panic!("{:?}", workflow.state)
    };
    assert_eq!(by.to_string(), "chat:slack:T1/U1");
    for (_, line) in working.slack.updated() {
        assert_eq!(without_time(&line), "Answered in Slack: pg");
    }
    for reply in working.slack.replied() {
        assert_eq!(without_time(&reply), "Answered in Slack: pg");
    }
    working.end().await;
}

#[tokio::test]
async fn a_restart_sends_nothing_twice_and_a_press_on_the_old_message_counts() {
    let home = Home::new("{}");
    let first = home.open();
    let ask = home.ask("Which db?").await;
    until("the records", async || {
        home.states(&ask).await == [DeliveryState::Sent; 2]
    })
    .await;
    let old = notice_to(&first.slack, "U2");
    first.end().await;
    let second = home.open();
    second.slack.press(&old, "U2", 1);
    until("both edits", async || second.slack.updated().len() == 2).await;
    until("the reply", async || second.slack.replied().len() == 1).await;
    assert_eq!(second.slack.sent().len(), 0);
    let edited: Vec<Value> = second
        .slack
        .updated()
        .into_iter()
        .map(|(at, _)| at["to"].clone())
        .collect();
    assert_eq!(edited, ["U1", "U2"]);
    assert_eq!(
        without_time(&second.slack.replied()[0]),
        "Answered in Slack: sqlite"
    );
    second.end().await;
}

#[tokio::test]
async fn an_answer_elsewhere_edits_every_channel_and_a_late_press_is_told_who_was_first() {
    let home = Home::new(r#"{ "default": ["slack", "telegram"] }"#);
    let working = home.open();
    let program = AskingProgram {
        asker: Asker::random(),
        project: home.directory.path().to_owned(),
        config: home.directory.path().join(".pml.json"),
        client: AskingClient::default(),
    };
    let ask = home
        .desk
        .ask(program, pick("Which db?", &["pg", "sqlite"]))
        .await
        .unwrap();
    until("the messages", async || {
        working.slack.sent().len() == 2 && working.telegram.sent().len() == 1
    })
    .await;
    let said = crate::card::Said::answers([crate::card::SaidAnswer {
        labels: vec!["pg".to_owned()],
        text: None,
    }]);
    let by = Provenance::of(Road::Web, "Firefox");
    home.desk.say(ask.id, said, by).await.unwrap();
    until("the edits", async || {
        working.slack.updated().len() == 2 && working.telegram.updated().len() == 1
    })
    .await;
    let late = notice_to(&working.telegram, "1");
    working.telegram.press(&late, "1", 1);
    until("the reply", async || working.telegram.replied().len() == 1).await;
    assert_eq!(
        without_time(&working.telegram.replied()[0]),
        "Answered on the page: pg"
    );
    working.end().await;
}

#[tokio::test]
async fn strangers_and_presses_on_the_message_of_another_change_nothing() {
    let home = Home::new("{}");
    let working = home.open();
    let ask = home.ask("Which db?").await;
    until("both messages", async || working.slack.sent().len() == 2).await;
    let notice = notice_to(&working.slack, "U1");
    working.slack.press(&notice, "U9", 0);
    working.slack.press(&notice, "U9", 0);
    working.slack.press(&notice, "U2", 0);
    until("the replies", async || working.slack.replied().len() == 2).await;
    let replied = working.slack.replied();
    assert!(
        replied[0].starts_with("this pml does not know you, and nothing was changed"),
        "{replied:?}"
    );
    assert!(replied[0].contains("pml channels pair "), "{replied:?}");
    assert_eq!(
        replied[1],
        "this was sent to another person, and nothing was changed"
    );
    assert_eq!(home.desk.find(ask.id).await.unwrap().state, State::Pending);
    working.end().await;
}

#[tokio::test]
async fn a_service_that_wants_to_be_waited_for_gets_the_message_once() {
    let home = Home::new("{}");
    let working = home.open();
    working
        .slack
        .errors
        .lock()
        .unwrap()
        .push_back(ChannelError::TooFast {
            channel: "Slack",
            after: Duration::from_secs(1),
        });
    let ask = home.ask("Which db?").await;
    until("the records", async || {
        home.states(&ask).await == [DeliveryState::Sent; 2]
    })
    .await;
    let attempts: Vec<u32> = home
        .desk
        .deliveries_of(ask.id)
        .await
        .unwrap()
        .iter()
        .map(|sent| sent.attempts)
        .collect();
    assert_eq!((working.slack.sent().len(), attempts), (2, vec![2, 1]));
    working.end().await;
}

#[tokio::test]
async fn what_is_refused_or_does_not_fit_is_given_up_with_its_reason() {
    let home = Home::new("{}");
    let working = home.open();
    for _ in 0..2 {
        working
            .slack
            .errors
            .lock()
            .unwrap()
            .push_back(ChannelError::Refused {
                channel: "Slack",
                reason: "channel_not_found".to_owned(),
            });
    }
    for (question, reason) in [
        ("Which db?".to_owned(), "Slack refuses: channel_not_found"),
        (
            "x".repeat(2000),
            "Slack takes at most 999 characters, and this has 2000",
        ),
    ] {
        let ask = home.ask(&question).await;
        until("the records", async || {
            home.states(&ask).await == [DeliveryState::Failed; 2]
        })
        .await;
        for delivery in home.desk.deliveries_of(ask.id).await.unwrap() {
            assert_eq!(delivery.error.as_deref(), Some(reason));
        }
    }
    working.end().await;
}

#[tokio::test]
async fn what_expires_or_is_withdrawn_is_edited() {
    let home = Home::new("{}");
    let working = home.open();
    let short = home.ask_for("Which db?", Duration::from_secs(2)).await;
    let withdrawn = home.ask("Which way?").await;
    until("the messages", async || working.slack.sent().len() == 4).await;
    home.desk.withdraw(withdrawn.id).await.unwrap();
    for ask in [&withdrawn, &short] {
        until("the records", async || {
            home.states(ask).await == [DeliveryState::Closed; 2]
        })
        .await;
    }
    let lines: Vec<String> = working
        .slack
        .updated()
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    assert_eq!(lines[0], "The agent does not wait for this any more");
    assert_eq!(without_time(&lines[3]), "Nobody answered in time");
    working.end().await;
}

#[tokio::test]
async fn words_bind_to_the_only_ask_or_to_the_one_whose_code_they_begin_with() {
    let home = Home::new("{}");
    let working = home.open();
    let text = |text: &str| Utterance::Text(text.to_owned());
    let hear = |words: &str| working.slack.hear("U1", About::Nothing, text(words));
    hear("pg");
    until("the reply", async || working.slack.replied().len() == 1).await;
    let (one, other) = (home.ask("Which db?").await, home.ask("Which way?").await);
    until("the messages", async || working.slack.sent().len() == 4).await;
    hear("pg");
    until("the reply", async || working.slack.replied().len() == 2).await;
    hear(&format!("{} 2", other.code));
    until("the reply", async || working.slack.replied().len() == 3).await;
    let message = MessageRef(json!({ "to": "U1", "code": one.code.as_str() }));
    working
        .slack
        .hear("U1", About::Message(message), text("as you like"));
    until("the reply", async || working.slack.replied().len() == 4).await;
    let replied = working.slack.replied();
    assert_eq!(replied[0], "nothing waits for you here");
    assert!(
        replied[1].starts_with("several asks wait: reply to the message of one"),
        "{replied:?}"
    );
    assert_eq!(without_time(&replied[2]), "Answered in Slack: sqlite");
    assert_eq!(without_time(&replied[3]), "Answered in Slack: as you like");
    working.end().await;
}

#[tokio::test]
async fn a_person_who_is_let_in_while_it_works_is_heard() {
    let home = Home::new("{}");
    let working = home.open();
    working.telegram.hear("7", About::Nothing, Utterance::Greeting);
    until("the code", async || working.telegram.replied().len() == 1).await;
    let (code, now) = (working.telegram.replied()[0].clone(), now());
    let code = code.rsplit(' ').next().unwrap();
    let stranger = crate::channels::pairing_codes::find(home.locations.state(), code, now).unwrap();
    assert_eq!(
        (stranger.channel, stranger.id.as_str()),
        (ChannelName::Telegram, "7")
    );
    let file: &Path = &home.locations.user_config();
    let text = std::fs::read_to_string(file)
        .unwrap()
        .replace("[1]", "[1, \"7\"]");
    crate::disk::replace(file, text.as_bytes()).unwrap();
    until("the welcome", async || {
        working.telegram.hear("7", About::Nothing, Utterance::Greeting);
        tokio::time::sleep(Duration::from_millis(50)).await;
        working
            .telegram
            .replied()
            .iter()
            .any(|reply| reply == "you are paired: asks come here")
    })
    .await;
    working.end().await;
}

fn refused() -> ChannelError {
    ChannelError::Refused {
        channel: "Slack",
        reason: "message_not_found".to_owned(),
    }
}

fn unreachable() -> ChannelError {
    ChannelError::Unreachable {
        channel: "Slack",
        reason: "it answers with status 503".to_owned(),
    }
}

fn too_fast(seconds: u64) -> ChannelError {
    ChannelError::TooFast {
        channel: "Slack",
        after: Duration::from_secs(seconds),
    }
}

impl Home {
    /// Answers on the page, so that no person of a channel has said it; then its agent takes the answer.
    async fn answer(&self, ask: &Workflow) {
        let said = crate::card::Said::answers([crate::card::SaidAnswer {
            labels: vec!["pg".to_owned()],
            text: None,
        }]);
        let by = Provenance::of(Road::Web, "Firefox");
        self.desk.say(ask.id, said, by).await.unwrap();
    }

    async fn take(&self, ask: &Workflow) {
        self.desk.question_status(ask.id).await.unwrap();
    }
}

#[tokio::test]
async fn an_outcome_that_is_a_message_of_its_own_is_told_once() {
    let home = Home::new("{}");
    let working = home.open_with(OutcomeNotice::OwnMessage);
    let ask = home.ask("Which db?").await;
    until("the records", async || {
        home.states(&ask).await == [DeliveryState::Sent; 2]
    })
    .await;
    working.slack.press(&notice_to(&working.slack, "U1"), "U1", 0);
    until("both are told", async || {
        home.states(&ask).await == [DeliveryState::Closed; 2]
    })
    .await;
    home.take(&ask).await;
    // What comes after it is told after it: nothing more is said of the first one.
    let other = home.ask("Which way?").await;
    home.desk.withdraw(other.id).await.unwrap();
    until("the other is over", async || {
        home.states(&other)
            .await
            .iter()
            .all(|state| *state == DeliveryState::Closed)
    })
    .await;
    let of_first = |(at, _): &(Value, String)| at["code"] == ask.code.as_str();
    let told: Vec<_> = working.slack.updated().into_iter().filter(of_first).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        working.slack.replied(),
        Vec::<String>::new(),
        "nor twice to who answered"
    );
    working.end().await;
}

#[tokio::test]
async fn an_outcome_of_its_own_is_sent_again_only_where_it_cannot_have_arrived() {
    let home = Home::new("{}");
    let working = home.open_with(OutcomeNotice::OwnMessage);
    let silent = ChannelError::Silent { channel: "Slack" };
    working
        .slack
        .update_errors
        .lock()
        .unwrap()
        .extend([unreachable(), silent]);
    let ask = home.ask("Which db?").await;
    until("the records", async || {
        home.states(&ask).await == [DeliveryState::Sent; 2]
    })
    .await;
    home.answer(&ask).await;
    until("both are over", async || {
        home.states(&ask).await == [DeliveryState::Closed; 2]
    })
    .await;
    // To one it was not sent and is sent again; the other may have it.
    assert_eq!(working.slack.updated().len(), 3);
    working.end().await;
}

#[tokio::test]
async fn an_edit_is_tried_again_until_it_is_there_unless_it_never_can_be() {
    let home = Home::new("{}");
    let working = home.open();
    let ask = home.ask("Which db?").await;
    until("the records", async || {
        home.states(&ask).await == [DeliveryState::Sent; 2]
    })
    .await;
    working
        .slack
        .update_errors
        .lock()
        .unwrap()
        .extend([refused(), unreachable(), unreachable()]);
    home.answer(&ask).await;
    until("one is given up, the other is edited", async || {
        let deliveries = home.desk.deliveries_of(ask.id).await.unwrap();
        deliveries[0].state == DeliveryState::Closed && deliveries[1].standing == ShownStanding::Answered
    })
    .await;
    let given_up = &home.desk.deliveries_of(ask.id).await.unwrap()[0];
    assert_eq!(
        given_up.error.as_deref(),
        Some("Slack refuses: message_not_found")
    );
    let to = |person: &str| {
        let updated = working.slack.updated();
        updated.iter().filter(|(at, _)| at["to"] == person).count()
    };
    assert_eq!((to("U1"), to("U2")), (1, 3));
    // The next change is told where it can be, and nothing is tried where it cannot.
    home.take(&ask).await;
    until("it is over", async || {
        home.states(&ask).await == [DeliveryState::Closed; 2]
    })
    .await;
    assert_eq!((to("U1"), to("U2")), (1, 4));
    working.end().await;
}

#[tokio::test]
async fn an_agent_that_named_its_channel_does_not_wait_for_a_service_that_wants_to_be_waited_for() {
    let home = Home::new("{}");
    let working = home.open();
    working.slack.errors.lock().unwrap().push_back(too_fast(600));
    for question in ["Which db?", "Which way?"] {
        let ask = home.ask(question).await;
        until("it is told", async || {
            home.states(&ask).await == [DeliveryState::Failed; 2]
        })
        .await;
        for delivery in home.desk.deliveries_of(ask.id).await.unwrap() {
            let error = delivery.error.unwrap();
            assert!(error.starts_with("Slack wants pml to wait for "), "{error}");
        }
    }
    // The service was asked once, and left alone then.
    assert_eq!(working.slack.errors.lock().unwrap().len(), 0);
    assert_eq!(working.slack.sent().len(), 0);
    working.end().await;
}

#[tokio::test]
async fn what_waits_for_a_service_is_closed_at_once_where_its_ask_is_withdrawn() {
    let home = Home::new(r#"{ "default": ["slack"] }"#);
    let working = home.open();
    working.slack.errors.lock().unwrap().push_back(too_fast(600));
    let program = AskingProgram {
        asker: Asker::random(),
        project: home.directory.path().to_owned(),
        config: home.directory.path().join(".pml.json"),
        client: AskingClient::default(),
    };
    let question = pick("Which db?", &["pg", "sqlite"]);
    let ask = home.desk.ask(program, question).await.unwrap();
    until("one waits", async || {
        home.states(&ask).await.contains(&DeliveryState::Queued)
    })
    .await;
    home.desk.withdraw(ask.id).await.unwrap();
    until("nothing waits", async || {
        let states = home.states(&ask).await;
        states.iter().all(|state| *state == DeliveryState::Closed)
    })
    .await;
    assert_eq!(working.slack.sent().len(), 0);
    working.end().await;
}

#[tokio::test]
async fn an_ask_that_ends_while_its_message_is_on_its_way_is_edited_when_that_arrives() {
    let home = Home::new("{}");
    let working = home.open();
    let slow = working.slack.gate.lock().await;
    let ask = home.ask("Which db?").await;
    until("the first is on its way", async || {
        working.slack.sent().len() == 1
    })
    .await;
    home.desk.withdraw(ask.id).await.unwrap();
    // Another ask shows that the office has looked since.
    home.ask_on(ChannelName::Telegram, "Which way?", Duration::from_mins(5))
        .await;
    until("the other is sent", async || working.telegram.sent().len() == 1).await;
    drop(slow);
    until("all is told", async || {
        home.states(&ask).await == [DeliveryState::Closed; 2]
    })
    .await;
    let of_ask = |(at, _): &(Value, String)| at["code"] == ask.code.as_str();
    let told: Vec<_> = working.slack.updated().into_iter().filter(of_ask).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    working.end().await;
}
