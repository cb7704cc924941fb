//! How a connection ends, as the error that a call gets: a type, with the words of before.

use reqwest::StatusCode;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;
use crate::loader::loopback::ClosedBy;
use crate::loader::session::{Caller, EndReason, Failure, OfferResult, UnreachableCause};
use crate::protocol::ResponseOutcome;

const CHALLENGED: &str = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"https://a.example/b\"\r\n\
     www-authenticate: Basic realm=\"c\"\r\nconnection: close\r\n\r\n";
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\nnot you";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\nno such thing";

fn unauthorized() -> EndReason {
    EndReason::Unauthorized {
        status: StatusCode::UNAUTHORIZED,
        challenges: vec![
            r#"Bearer resource_metadata="https://a.example/b""#.to_owned(),
            r#"Basic realm="c""#.to_owned(),
        ],
    }
}

/// A caller that notes why it got no answer of the server, and in which words.
struct RecordingCaller(Mutex<Option<oneshot::Sender<(EndReason, String)>>>);

impl RecordingCaller {
    fn note(&self, reason: &EndReason, words: &str) {
        let sender = self.0.lock().unwrap().take();
        sender.unwrap().send((reason.clone(), words.to_owned())).unwrap();
    }
}

impl Caller for RecordingCaller {
    fn progressed(&self, _line: &Bytes, _params: &Payload<'_>) {}

    fn replied(self: Arc<Self>, line: &Bytes, _outcome: &ResponseOutcome<'_>) {
        panic!("{}", String::from_utf8_lossy(line));
    }

    fn unreached(self: Arc<Self>, _line: &Bytes, outcome: &ResponseOutcome<'_>, reason: &EndReason) {
        let ResponseOutcome::Error(error) = outcome else {
            panic!("no error")
        };
        let error: Value = serde_json::from_str(error.get()).unwrap();
        assert_eq!(error["code"], -31_000);
        self.note(reason, error["message"].as_str().unwrap());
    }

    fn failed(&self, failure: Failure) {
        self.note(failure.end_reason().unwrap(), "failed");
    }

    fn asked(self: Arc<Self>, _inquiry: &Arc<Inquiry>) -> OfferResult {
        OfferResult::No
    }
}

impl World {
    /// Starts the server and returns why that failed, as a type and in words.
    async fn failed_start(&self) -> (EndReason, String) {
        let error = self.start(&self.loader).await.unwrap_err();
        (error.end_reason().unwrap().clone(), error.to_string())
    }
}

/// Calls a tool and returns why there is no answer, as a type and in words.
async fn failed_call(session: &Session) -> (EndReason, String) {
    let (sender, failed) = oneshot::channel();
    let id = session.register(Arc::new(RecordingCaller(Mutex::new(Some(sender)))));
    session.send(id, "tools/call", [Bytes::from_static(br#"{"name":"first"}"#)]);
    tokio::time::timeout(DEADLINE, failed).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_calls_ends_with_its_challenges() {
    let world = World::new().await;
    world.server.answer_with(CHALLENGED, ClosedBy::EndOfStream);
    let (reason, words) = world.failed_start().await;
    assert_eq!(reason, unauthorized());
    assert_eq!(
        words,
        "it answered HTTP 401 Unauthorized: it wants to know who calls; the token goes into the `headers` of this server \
         in .pml.json, such as \"Authorization\": \"Bearer ${TOKEN}\""
    );
}

#[tokio::test]
async fn a_call_in_a_session_gets_the_challenges_too() {
    let world = World::new().await;
    let started = world.start(&world.loader).await.unwrap();
    world.server.answer_with(CHALLENGED, ClosedBy::EndOfStream);
    let (reason, words) = failed_call(&started.session).await;
    assert_eq!(reason, unauthorized());
    assert_eq!(words, format!("`web` {reason}"));
    // The session lives on, and a caller that knows no reasons gets the words.
    let reply = started.session.request("ping", "{}").await;
    assert!(
        matches!(reply, Reply::Error(error) if error.starts_with(br#"{"code":-31000,"message":"`web` answered HTTP 401"#))
    );
    assert!(started.session.is_open());
}

#[tokio::test]
async fn a_list_that_needs_a_sign_in_says_so_when_the_server_is_opened() {
    let world = World::new().await;
    world.server.answer_instead_of("tools/list", CHALLENGED);
    let (reason, words) = world.failed_start().await;
    assert_eq!(reason, unauthorized());
    assert!(
        words.starts_with("it does not answer `tools/list` as MCP requires: "),
        "{words}"
    );
}

#[tokio::test]
async fn a_caller_that_is_known_and_may_not_is_unauthorized_without_a_challenge() {
    let world = World::new().await;
    world.server.answer_with(FORBIDDEN, ClosedBy::EndOfStream);
    let (reason, _) = world.failed_start().await;
    assert_eq!(
        reason,
        EndReason::Unauthorized {
            status: StatusCode::FORBIDDEN,
            challenges: Vec::new()
        }
    );
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_is_gone() {
    let gone = EndReason::Gone {
        status: StatusCode::NOT_FOUND,
        said: ": no such thing".to_owned(),
    };
    let world = World::new().await;
    world.server.answer_with(NOT_FOUND, ClosedBy::EndOfStream);
    let (reason, words) = world.failed_start().await;
    assert_eq!(reason, gone);
    assert_eq!(words, "it answered HTTP 404 Not Found: no such thing");
    let world = World::new().await;
    let started = world.start(&world.loader).await.unwrap();
    world.server.answer_with(NOT_FOUND, ClosedBy::EndOfStream);
    assert_eq!(failed_call(&started.session).await.0, gone);
}

#[tokio::test]
async fn a_server_that_is_not_reached_says_which_step_failed() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    // It speaks no TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    for (url, expected) in [
        (format!("http://{closed}/mcp"), UnreachableCause::Refused),
        (
            "http://no-such-host.invalid/mcp".to_owned(),
            UnreachableCause::Name,
        ),
        (format!("https://{plain}/mcp"), UnreachableCause::Tls),
    ] {
        let origin = url.trim_end_matches("/mcp").to_owned();
        let (reason, words) = World::at(LoopbackServer::open().await, url).failed_start().await;
        let EndReason::Unreachable {
            origin: found,
            cause,
            reason,
        } = reason
        else {
            panic!("{reason:?}");
        };
        assert_eq!((&found, cause), (&origin, expected), "{reason}");
        assert_eq!(words, format!("it cannot be reached at {origin}: {reason}"));
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_in_the_middle_of_an_answer_broke_off() {
    let world = World::new().await;
    let started = world.start(&world.loader).await.unwrap();
    let begun = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\ndata: {\"jsonrpc\"";
    world.server.answer_with(begun, ClosedBy::Reset);
    let (reason, words) = failed_call(&started.session).await;
    assert!(matches!(reason, EndReason::BrokenOff(_)), "{reason:?}");
    assert!(words.starts_with("`web` broke off its answer: "), "{words}");
    assert!(started.session.is_open());
}

#[tokio::test]
async fn what_pml_stops_ends_with_its_reason() {
    let world = World::new().await;
    let started = world.start(&world.loader).await.unwrap();
    world.server.answer_with("", ClosedBy::EndOfStream);
    let call = failed_call(&started.session);
    let stop = async {
        world
            .loader
            .dismiss(world.plan.dependency(), world.plan.digest(), "a rule denies it");
    };
    let ((reason, _), ()) = tokio::join!(call, stop);
    assert_eq!(reason, EndReason::Stopped("a rule denies it"));
    assert_eq!(
        started.session.ended().unwrap().to_string(),
        "was stopped: a rule denies it"
    );
}
