//! The scripted API itself, as any client reads it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::messages_api::{MessagesApi, SCRIPT_END, Turn};

/// Sends one request and returns what comes until the end.
fn sent(api: &MessagesApi, line: &str, body: &Value) -> String {
    let url = api.url();
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn asked(api: &MessagesApi, tools: &Value) -> Value {
    let messages = json!([{ "role": "user", "content": "Hello" }]);
    let answer = sent(
        api,
        "POST /v1/messages?beta=true",
        &json!({ "tools": tools, "messages": messages }),
    );
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let message: Value = serde_json::from_str(body).unwrap();
    json!([message["content"], message["stop_reason"]])
}

#[test]
fn without_a_stream_a_turn_is_one_message() {
    let both = Turn::streamed("Two at once.", 3)
        .and_tool("Read", json!({ "path": "a" }))
        .and_tool("Read", json!({ "path": "b" }));
    let api = MessagesApi::start([both]);
    let tools = json!([{ "name": "Read" }]);
    assert_eq!(
        asked(&api, &tools),
        json!([[
            { "type": "text", "text": "Two at once." },
            { "type": "tool_use", "id": "toolu_1_1", "name": "Read", "input": { "path": "a" } },
            { "type": "tool_use", "id": "toolu_1_2", "name": "Read", "input": { "path": "b" } },
        ], "tool_use"])
    );
    assert_eq!(
        asked(&api, &tools),
        json!([[{ "type": "text", "text": SCRIPT_END }], "end_turn"])
    );
}

#[test]
fn what_offers_no_tools_is_no_turn() {
    let api = MessagesApi::start([Turn::text("the turn")]);
    let aside = asked(&api, &json!([]));
    assert!(aside[0][0]["text"].as_str().unwrap().contains("title"), "{aside}");
    for line in ["HEAD /", "GET /v1/models", "POST /v1/messages/count_tokens"] {
        let answer = sent(&api, line, &json!({}));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{line}: {answer}");
    }
    assert!(sent(&api, "GET /elsewhere", &json!({})).starts_with("HTTP/1.1 404 "));
    assert_eq!(api.requests(), []);
    assert_eq!(
        asked(&api, &json!([{ "name": "Read" }]))[0][0]["text"],
        "the turn"
    );
}
