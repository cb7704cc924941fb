//! The bridge alone, between lines and a server on the loopback interface.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// The two ends of a bridge: the session's lines and the server's socket.
struct Between {
    lines: Lines<BufReader<DuplexStream>>,
    sink: DuplexStream,
    ended: watch::Receiver<Option<EndReason>>,
    listener: TcpListener,
}

async fn between() -> Between {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let connection = connect(
        &"web".parse().unwrap(),
        (
            &Address::new(&url, &BTreeMap::new()).unwrap(),
            &Secrets::default(),
        ),
        1000,
        &Environment::default(),
        CancellationToken::new(),
        &TaskTracker::new(),
    );
    Between {
        lines: BufReader::new(connection.source).lines(),
        sink: connection.sink,
        ended: connection.ended,
        listener,
    }
}

/// Likewise with a server of 2024-11-05, which has taken `initialize`; returns also the stream on which it answers.
async fn between_old() -> (Between, HeardRequest) {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#)
        .await;
    let mut refused = between.request().await;
    refused.refuse("405 Method Not Allowed").await;
    drop(refused);
    let mut stream = between.request().await;
    stream
        .answer("text/event-stream", "event: endpoint\ndata: /messages\n\n")
        .await;
    between.request().await.answer("application/json", "").await;
    (between, stream)
}

impl Between {
    async fn write(&mut self, line: &str) {
        self.sink.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(DEADLINE, self.lines.next_line()).await;
        line.unwrap().unwrap().unwrap()
    }

    async fn request(&mut self) -> HeardRequest {
        let request = async { HeardRequest::read(self.listener.accept().await.unwrap().0).await };
        tokio::time::timeout(DEADLINE, request).await.unwrap()
    }

    /// Lets the server take what is only told, which must be this.
    async fn takes(&mut self, line: &str) {
        let mut told = self.request().await;
        assert_eq!(told.body, line);
        told.answer("application/json", "").await;
    }
}

/// A request on a connection of its own.
struct HeardRequest {
    head: String,
    body: String,
    stream: BufReader<TcpStream>,
}

impl HeardRequest {
    async fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            if line.trim().is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("content-length: ") {
                length = number.trim().parse().unwrap();
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        Self { head, body, stream }
    }

    async fn answer(&mut self, kind: &str, body: &str) {
        let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\n\r\n{body}");
        self.stream.write_all(answer.as_bytes()).await.unwrap();
    }

    /// Answers with the result of the request, in a session.
    async fn answer_in(&mut self, session: &str, result: &str) {
        let asked: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\n\r\n\
             {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}",
            asked["id"]
        );
        self.stream.write_all(answer.as_bytes()).await.unwrap();
    }

    async fn refuse(&mut self, status: &str) {
        let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n");
        self.stream.write_all(answer.as_bytes()).await.unwrap();
    }

    /// Waits until the other side has closed, without having sent anything more.
    async fn left(mut self) {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(DEADLINE, self.stream.read_to_end(&mut rest)).await;
        closed.unwrap().unwrap();
        assert_eq!(rest, b"");
    }

    /// The headers of MCP, in their order.
    fn own(&self) -> Vec<&str> {
        let lines = self.head.lines();
        lines.filter(|line| line.starts_with("mcp-")).collect()
    }
}

const MODERN: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

const CANCELLED: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;

#[tokio::test]
async fn a_modern_request_needs_no_session_and_its_cancellation_is_the_end_of_its_exchange() {
    let mut between = between().await;
    between.write(MODERN).await;
    let request = between.request().await;
    assert_eq!(request.body, MODERN);
    assert_eq!(
        request.own(),
        [
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: tools/call",
            "mcp-name: read"
        ]
    );
    between.write(CANCELLED).await;
    request.left().await;
    // And nothing was posted: what comes next is the next request.
    between.write(r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#).await;
    assert!(between.request().await.body.contains("ping"));
}

#[tokio::test]
async fn a_legacy_server_is_told_of_a_cancellation_and_then_left() {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#)
        .await;
    let mut request = between.request().await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: alive\n\n";
    request.stream.write_all(head.as_bytes()).await.unwrap();
    between.write(CANCELLED).await;
    between.takes(CANCELLED).await;
    request.left().await;
    between.write(r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#).await;
    assert!(between.request().await.body.contains("ping"));
}

/// Tells much to a server that takes nothing, until it does.
async fn tell_much(between: Between) {
    const COUNT: usize = 200;
    let Between {
        lines,
        mut sink,
        ended,
        listener,
    } = between;
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":"{}"}}"#,
        "x".repeat(2000)
    );
    let telling = tokio::spawn(async move {
        for _ in 0..COUNT {
            sink.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        sink
    });
    let (first, _) = listener.accept().await.unwrap();
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert!(!telling.is_finished());
    // Once it takes them, it gets all of them.
    let mut request = HeardRequest::read(first).await;
    for _ in 1..COUNT {
        request.answer("application/json", "").await;
        drop(request);
        request = HeardRequest::read(listener.accept().await.unwrap().0).await;
    }
    drop((telling.await.unwrap(), lines, ended));
}

#[tokio::test]
async fn what_a_server_does_not_take_does_not_pile_up() {
    tell_much(between().await).await;
}

#[tokio::test]
async fn what_an_old_server_does_not_take_does_not_pile_up() {
    let (between, _stream) = between_old().await;
    tell_much(between).await;
}

#[tokio::test]
async fn a_request_that_an_old_server_does_not_take_holds_up_no_other() {
    let (mut between, mut stream) = between_old().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#)
        .await;
    let stuck = between.request().await;
    let ping = r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#;
    between.write(ping).await;
    let mut other = between.request().await;
    assert_eq!(other.body, ping);
    other.answer("application/json", "").await;
    let answer = r#"{"jsonrpc":"2.0","id":6,"result":{}}"#;
    let event = format!("data: {answer}\n\n");
    stream.stream.write_all(event.as_bytes()).await.unwrap();
    assert_eq!(between.line().await, answer);
    // What is cancelled is left.
    between.write(CANCELLED).await;
    between.takes(CANCELLED).await;
    stuck.left().await;
}

#[tokio::test]
async fn a_body_of_several_lines_is_one_line_and_a_list_is_several() {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)
        .await;
    let mut request = between.request().await;
    request
        .answer(
            "application/json",
            "[{\"jsonrpc\":\"2.0\",\r\n\"method\":\"x\"},\n{\"jsonrpc\":\"2.0\",\"id\":1,\n\"result\":{}}]\n",
        )
        .await;
    drop(request);
    assert_eq!(between.line().await, r#"{"jsonrpc":"2.0",  "method":"x"}"#);
    assert_eq!(between.line().await, r#"{"jsonrpc":"2.0","id":1, "result":{}}"#);
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_and_the_call_it_came_with_goes_on() {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#)
        .await;
    let mut request = between.request().await;
    let long = "x".repeat(2000);
    let asked = format!(r#"{{"params":"{long}","method":"roots/list","jsonrpc":"2.0","id":1}}"#);
    let stream = format!("data: {asked}\n\ndata: {{\"result\":{{}},\"id\":1}}\n\n");
    request.answer("text/event-stream", &stream).await;
    let mut refusal = between.request().await;
    assert_eq!(
        refusal.body,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the request is longer than the line limit"}}"#
    );
    refusal.answer("application/json", "").await;
    drop((request, refusal));
    assert_eq!(between.line().await, r#"{"result":{},"id":1}"#);
}

#[tokio::test]
async fn a_notification_over_the_limit_costs_only_itself() {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#)
        .await;
    let mut request = between.request().await;
    let told = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{}"}}}}"#,
        "x".repeat(2000)
    );
    let stream = format!("data: {told}\n\ndata: {{\"result\":{{}},\"id\":1}}\n\n");
    request.answer("text/event-stream", &stream).await;
    drop(request);
    assert_eq!(between.line().await, r#"{"result":{},"id":1}"#);
}

#[tokio::test]
async fn before_the_first_answer_a_failure_ends_the_connection() {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#)
        .await;
    let mut request = between.request().await;
    let answer = "HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\nupstream\u{1b} is gone";
    request.stream.write_all(answer.as_bytes()).await.unwrap();
    drop(request);
    let ended = between.ended.wait_for(Option::is_some).await.unwrap().clone();
    assert_eq!(
        ended.map(|ended| ended.to_string()).as_deref(),
        Some(r"answered HTTP 502 Bad Gateway: upstream\u{1b} is gone")
    );
    assert_eq!(between.lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn a_closed_session_ends_the_connection_and_what_is_under_way() {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#)
        .await;
    let request = between.request().await;
    let Between { sink, mut ended, .. } = between;
    drop(sink);
    let ended = ended.wait_for(Option::is_some).await.unwrap().clone();
    assert_eq!(ended, Some(EndReason::Closed));
    request.left().await;
}

/// Waits for as long as a process that does not read is waited for at its end.
async fn until_a_stalled_process_is_given_up() {
    let tasks = TaskTracker::new();
    let (near, _far) = tokio::io::duplex(1);
    let stalled = Outbox::open(near, DrainPolicy::UntilItStalls, &tasks);
    stalled.send_now("never read").unwrap();
    drop(stalled);
    tasks.close();
    tasks.wait().await;
}

#[tokio::test]
async fn a_session_that_is_held_up_gets_every_answer_of_a_server_that_is_gone() {
    const COUNT: usize = 200;
    let (mut between, mut stream) = between_old().await;
    let answer = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{}"}}"#, "x".repeat(900));
    for id in 1..=COUNT {
        let event = format!("data: {}\n\n", answer(id));
        stream.stream.write_all(event.as_bytes()).await.unwrap();
    }
    drop(stream);
    between.ended.wait_for(Option::is_some).await.unwrap();
    until_a_stalled_process_is_given_up().await;
    for id in 1..=COUNT {
        assert_eq!(between.line().await, answer(id));
    }
    assert_eq!(between.lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn a_session_that_is_being_renewed_is_opened_to_its_end_when_the_call_that_met_it_is_cancelled() {
    let mut between = between().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#)
        .await;
    between.request().await.answer_in("a", "{}").await;
    between.line().await;
    let subscribe = r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"x://1"}}"#;
    between.write(subscribe).await;
    between.request().await.answer_in("a", "{}").await;
    between.line().await;
    between
        .write(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call"}"#)
        .await;
    between.request().await.refuse("404 Not Found").await;
    between.request().await.answer_in("b", "{}").await;
    let mut initialized = between.request().await;
    assert!(initialized.body.contains("notifications/initialized"));
    between
        .write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#)
        .await;
    between.request().await.answer("application/json", "").await;
    // With this answer the cancelled call is gone too.
    between.write(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#).await;
    between.request().await.answer_in("b", "{}").await;
    between.line().await;
    initialized.answer("application/json", "").await;
    drop(initialized);
    let mut again = between.request().await;
    assert_eq!(again.body, subscribe);
    assert_eq!(again.own(), ["mcp-session-id: b"]);
    again.answer_in("b", "{}").await;
    drop(again);
    assert_eq!(
        between.line().await,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
    );
}
