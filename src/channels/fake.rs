//! A chat service on the loopback interface for the tests of channels, and notices to send there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::channel::{Heard, MessageRef, ReplyTo, Sender, SenderKind};
use super::notice::{Notice, Standing};
use super::press::Nonce;
use crate::card::{Card, samples as cards};
use crate::config::{ChannelBasics, Details, Environment};
use crate::protocol::question::{Choice, Question, Selection};
use crate::workflow::{Ask, samples as asks};

/// Stands for every token: it may be found nowhere.
pub(super) const CANARY: &str = "424242:canary-Token_of-the-bot";

/// What a model may write to be more than text.
pub(super) const INJECTIONS: [&str; 12] = [
    "<!channel> <@U0123> @everyone @BotFather",
    "[free](https://evil.example/x) and https://evil.example/y",
    "evil.example, www.evil.example and mail@evil.example",
    "tg://resolve?domain=evil tel:+41790000000 +41790000000",
    "*bold* _it_ ~no~ `code` ```block``` ||spoiler||",
    "<b>bold</b> <a href=\"https://evil.example\">x</a> &lt;",
    "/start /answer abcde yes #tag $CASH",
    "> quote\n- list\n* list\n1. option",
    "right\u{202e}to left\u{2066}isolated\u{2069}",
    "zero\u{200b}width\u{feff}\u{2060}",
    "p1:aaaaa:0:d:always:nonce",
    "☑ chosen ◉ Sure: yes",
];

/// Longer than anything takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// A request that the service got.
#[derive(Debug, Clone)]
pub(super) struct FakeRequest {
    /// The path and the query.
    pub(super) uri: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl FakeRequest {
    /// Tells whether the path ends so.
    pub(super) fn is(&self, end: &str) -> bool {
        self.uri.split('?').next().unwrap().ends_with(end)
    }
}

/// What the service answers.
pub(super) struct FakeAnswer(pub(super) u16, pub(super) String);

/// A running service.
#[derive(Clone)]
pub(super) struct FakeService {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<FakeRequest>>>,
    changed: Arc<Notify>,
}

impl FakeService {
    /// Starts a service; what `answer` returns `None` for is never answered.
    pub(super) async fn start(
        answer: impl Fn(&FakeRequest, usize) -> Option<FakeAnswer> + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            changed: Arc::default(),
        };
        let (serving, answer) = (service.clone(), Arc::new(answer));
        let handler = move |request: Request| {
            let (serving, answer) = (serving.clone(), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, 1 << 20).await.unwrap();
                let request = FakeRequest {
                    uri: parts.uri.to_string(),
                    headers: parts.headers,
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                };
                let before = {
                    let mut requests = serving.requests.lock().unwrap();
                    requests.push(request.clone());
                    let path = parts.uri.path();
                    let same = |seen: &&FakeRequest| seen.uri.split('?').next() == Some(path);
                    requests.iter().filter(same).count() - 1
                };
                serving.changed.notify_waiters();
                let Some(FakeAnswer(status, body)) = answer(&request, before) else {
                    return std::future::pending().await;
                };
                Response::builder()
                    .status(status)
                    .header("content-type", "application/json")
                    .body(Body::from(body))
                    .unwrap()
            }
        };
        let router = axum::Router::new().fallback(handler);
        tokio::spawn(async move { axum::serve(listener, router).await });
        service
    }

    /// Returns the requests whose path ends so.
    pub(super) fn requests(&self, end: &str) -> Vec<FakeRequest> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|request| request.is(end))
            .cloned()
            .collect()
    }

    /// Waits for the nth request whose path ends so.
    pub(super) async fn nth(&self, end: &str, nth: usize) -> FakeRequest {
        let found = async {
            loop {
                let changed = self.changed.notified();
                if let Some(found) = self.requests(end).into_iter().nth(nth) {
                    return found;
                }
                changed.await;
            }
        };
        tokio::time::timeout(DEADLINE, found).await.expect(end)
    }
}

/// Waits no longer than a test may.
pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("it takes too long")
}

/// An environment without proxies, with the token.
pub(super) fn environment() -> Environment {
    Environment::new([("TOKEN", CANARY)], "/")
}

/// What every channel has, at the address of a service.
pub(super) fn basics(url: &str) -> ChannelBasics {
    ChannelBasics {
        people: vec!["1".to_owned()],
        may: std::collections::BTreeSet::new(),
        details: Details::Needed,
        api_url: Some(url.to_owned()),
    }
}

/// A question with options.
pub(super) fn question(text: &str, labels: &[&str], selection: Selection) -> Question {
    let options = labels.iter().map(|label| Choice {
        label: (*label).to_owned(),
        description: None,
    });
    Question {
        question: text.to_owned(),
        header: None,
        options: options.collect(),
        selection,
    }
}

/// The card of questions.
pub(super) fn asking(questions: Vec<Question>) -> Card {
    cards::card(&asks::workflow(Ask::Questions { questions }))
}

/// The card of an installation: four decisions.
pub(super) fn approving() -> Card {
    cards::card(&asks::workflow(asks::new("{}").ask))
}

/// A notice that can be answered.
pub(super) fn open(card: Card) -> Notice {
    let choices = card.choices.clone();
    Notice {
        card,
        nonce: Nonce::kept("abcdefghijkl".to_owned()),
        standing: Standing::Open { choices },
        inbox: Some("http://127.0.0.1:7777/".to_owned()),
    }
}

/// The same when it cannot be answered any more.
pub(super) fn closed(notice: &Notice, became: &str) -> Notice {
    Notice {
        standing: Standing::Closed(became.to_owned()),
        ..notice.clone()
    }
}

/// What a person says, to compare.
pub(super) fn person(id: &str) -> Sender {
    Sender {
        id: id.to_owned(),
        recorded: id.to_owned(),
        kind: SenderKind::Person,
    }
}

/// The parts of what was heard that do not tell of the service.
pub(super) fn sent_by(heard: &Heard) -> (&str, SenderKind) {
    (heard.sender.id.as_str(), heard.sender.kind)
}

/// A message, as a channel writes it.
pub(super) fn at(value: &Value) -> MessageRef {
    MessageRef(value.clone())
}

/// A place for a reply, as a channel writes it.
pub(super) fn to(value: &Value) -> ReplyTo {
    ReplyTo(value.clone())
}

/// The answer of a service that is content.
#[expect(
    clippy::unnecessary_wraps,
    reason = "stands among answers that are never given"
)]
pub(super) fn fine(value: &Value) -> Option<FakeAnswer> {
    Some(FakeAnswer(200, value.to_string()))
}

/// The answer of Telegram that is content.
pub(super) fn result(value: &Value) -> Option<FakeAnswer> {
    fine(&json!({ "ok": true, "result": value }))
}

/// Writes bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
