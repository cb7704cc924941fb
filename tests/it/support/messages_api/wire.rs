//! The API as HTTP: which path answers what, and a turn as one message or as events.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::super::web;
use super::turn::{Step, Turn};

/// What is said to a request that is no turn of a script; it reads as a title and as a topic.
const ASIDE: &str = r#"{"title": "A session", "isNewTopic": false}"#;

/// Answers what comes on a connection until it closes.
pub(super) fn answer(stream: &TcpStream, turn: impl Fn(Value) -> (usize, Turn)) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = web::read(&mut reader) {
        let path = request.path.split('?').next().unwrap_or_default();
        let sent = match (request.method.as_str(), path) {
            ("HEAD", _) => whole(stream, 200, None),
            ("POST", "/v1/messages") => message(stream, request.body, &turn),
            ("POST", "/v1/messages/count_tokens") => {
                whole(stream, 200, Some(&json!({ "input_tokens": 1000 })))
            }
            ("GET", "/v1/models") => {
                let none = json!({ "data": [], "has_more": false, "first_id": null, "last_id": null });
                whole(stream, 200, Some(&none))
            }
            _ => failure(stream, 404, path),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn message(stream: &TcpStream, body: Value, turn: impl Fn(Value) -> (usize, Turn)) -> io::Result<()> {
    let model = body["model"].as_str().unwrap_or("scripted").to_owned();
    let streams = body["stream"] == true;
    let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let (number, turn) = if offers_tools {
        turn(body)
    } else {
        (0, Turn::text(ASIDE))
    };
    let steps = match turn {
        Turn::Steps(steps) => steps,
        Turn::Fails(status, told) => return failure(stream, status, &told),
        Turn::Depends(_) => panic!("a turn is decided before it is sent"),
    };
    let mut said = Said {
        number,
        blocks: Vec::new(),
        open: false,
        events: streams.then_some(Events { stream }),
    };
    let calls = steps.iter().any(|step| matches!(step, Step::Call(..)));
    let stop = if calls { "tool_use" } else { "end_turn" };
    let mut envelope = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 5 },
    });
    if let Some(events) = &said.events {
        events.begin(&envelope)?;
    }
    for step in steps {
        said.step(step)?;
    }
    said.close()?;
    if let Some(events) = &said.events {
        return events.end(stop);
    }
    envelope["content"] = said.blocks.into();
    envelope["stop_reason"] = stop.into();
    whole(stream, 200, Some(&envelope))
}

/// What was said of a turn so far.
struct Said<'a> {
    number: usize,
    blocks: Vec<Value>,
    /// Whether the last block is a text that may go on.
    open: bool,
    events: Option<Events<'a>>,
}

impl Said<'_> {
    fn step(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Wait(gate) => gate.pass(),
            Step::Say(text) => {
                if !self.open {
                    self.begin(json!({ "type": "text", "text": "" }))?;
                }
                self.delta(&json!({ "type": "text_delta", "text": text }))?;
                if let Some(block) = self.blocks.last_mut() {
                    let before = block["text"].as_str().unwrap_or_default();
                    block["text"] = format!("{before}{text}").into();
                }
            }
            Step::Call(name, input) => {
                self.close()?;
                // Unique within the API: sessions that are resumed keep their ids.
                let id = format!("toolu_{}_{}", self.number, self.blocks.len());
                self.begin(json!({ "type": "tool_use", "id": id, "name": name, "input": {} }))?;
                self.delta(&json!({ "type": "input_json_delta", "partial_json": input.to_string() }))?;
                if let Some(block) = self.blocks.last_mut() {
                    block["input"] = input;
                }
                self.close()?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, block: Value) -> io::Result<()> {
        self.open = true;
        let index = self.blocks.len();
        self.send(
            "content_block_start",
            &json!({ "index": index, "content_block": block }),
        )?;
        self.blocks.push(block);
        Ok(())
    }

    fn delta(&self, delta: &Value) -> io::Result<()> {
        let index = self.blocks.len() - 1;
        self.send("content_block_delta", &json!({ "index": index, "delta": delta }))
    }

    fn close(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        self.send("content_block_stop", &json!({ "index": self.blocks.len() - 1 }))
    }

    fn send(&self, name: &str, fields: &Value) -> io::Result<()> {
        self.events
            .as_ref()
            .map_or(Ok(()), |events| events.send(name, fields))
    }
}

/// An answer that is a stream of events.
struct Events<'a> {
    stream: &'a TcpStream,
}

impl Events<'_> {
    fn begin(&self, envelope: &Value) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        self.send("message_start", &json!({ "message": envelope }))
    }

    fn send(&self, name: &str, fields: &Value) -> io::Result<()> {
        let mut fields = fields.clone();
        fields["type"] = name.into();
        let event = format!("event: {name}\ndata: {fields}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        let mut stream = self.stream;
        stream.write_all(chunk.as_bytes())
    }

    fn end(&self, stop: &str) -> io::Result<()> {
        let stopped = json!({ "stop_reason": stop, "stop_sequence": null });
        self.send(
            "message_delta",
            &json!({ "delta": stopped, "usage": { "output_tokens": 5 } }),
        )?;
        self.send("message_stop", &json!({}))?;
        let mut stream = self.stream;
        stream.write_all(b"0\r\n\r\n")
    }
}

fn failure(stream: &TcpStream, status: u16, told: &str) -> io::Result<()> {
    let kind = match status {
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    let error = json!({ "type": "error", "error": { "type": kind, "message": told } });
    whole(stream, status, Some(&error))
}

/// Sends an answer in one piece; without a body where only the head was asked for.
fn whole(mut stream: &TcpStream, status: u16, body: Option<&Value>) -> io::Result<()> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes())
}
