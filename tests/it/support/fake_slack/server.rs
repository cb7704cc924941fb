//! Its connections: requests of the Web API, and sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

use super::{APP_TOKEN, BOT_TOKEN, Order, Request, State, Trouble, conversation, limits, person};

/// Serves one connection to its end.
pub(super) fn serve(stream: TcpStream, address: SocketAddr, state: &Arc<Mutex<State>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let header = |name: &str| {
            head.iter().skip(1).find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let path = head[0].split(' ').nth(1).unwrap_or_default().to_owned();
        if let Some(key) = header("sec-websocket-key") {
            return socket(stream, &path, &key, state);
        }
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let method = path.trim_start_matches("/api/").to_owned();
        let token = header("authorization").unwrap_or_default();
        let body = parsed(&header("content-type").unwrap_or_default(), &body);
        let Some((status, more, answer)) = answered(&method, &token, &body, address, state) else {
            return;
        };
        let answer = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{more}\r\n{answer}",
            answer.len()
        );
        let mut stream = &stream;
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a body as Slack does: JSON, or a form whose members may be JSON.
fn parsed(kind: &str, body: &[u8]) -> Value {
    if kind.starts_with("application/json") {
        return serde_json::from_slice(body).unwrap_or(Value::Null);
    }
    let members = url::form_urlencoded::parse(body).map(|(name, value)| {
        let is_structured = value.starts_with(['[', '{']);
        let value = match serde_json::from_str(&value) {
            Ok(structured) if is_structured => structured,
            _ => Value::String(value.into_owned()),
        };
        (name.into_owned(), value)
    });
    Value::Object(members.collect())
}

fn answered(
    method: &str,
    token: &str,
    body: &Value,
    address: SocketAddr,
    state: &Mutex<State>,
) -> Option<(u16, String, String)> {
    let mut state = state.lock().unwrap();
    state.requests.push(Request {
        method: method.to_owned(),
        body: body.clone(),
    });
    let troubles = state
        .troubles
        .get_mut(method)
        .filter(|troubles| !troubles.is_empty());
    let trouble = troubles.map(|troubles| troubles.remove(0));
    let no_more = String::new();
    match trouble {
        Some(Trouble::HangUp) => return None,
        Some(Trouble::Status(status, body)) => return Some((status, no_more, body.to_owned())),
        Some(Trouble::Body(body)) => return Some((200, no_more, body.to_owned())),
        Some(Trouble::TooFast(after)) => {
            let answer = json!({ "ok": false, "error": "ratelimited" }).to_string();
            return Some((429, format!("retry-after: {after}\r\n"), answer));
        }
        Some(Trouble::Word(word, mut more)) => {
            more["ok"] = false.into();
            more["error"] = word.into();
            return Some((200, no_more, more.to_string()));
        }
        None => {}
    }
    let wanted = if method == "apps.connections.open" {
        APP_TOKEN
    } else {
        BOT_TOKEN
    };
    let answer = if token == format!("Bearer {wanted}") {
        state.answer(method, body, address)
    } else {
        refused("invalid_auth")
    };
    Some((200, no_more, answer.to_string()))
}

fn refused(word: &str) -> Value {
    json!({ "ok": false, "error": word })
}

impl State {
    fn answer(&mut self, method: &str, body: &Value, address: SocketAddr) -> Value {
        let broken = match method {
            "chat.postMessage" | "chat.update" | "chat.postEphemeral" => limits::message(body),
            "views.open" => limits::form(&body["view"]),
            _ => Vec::new(),
        };
        if !broken.is_empty() {
            self.broken_limits.extend(broken.clone());
            return json!({
                "ok": false, "error": "invalid_blocks", "response_metadata": { "messages": broken },
            });
        }
        let channel = body["channel"].as_str().unwrap_or_default();
        match method {
            "auth.test" => json!({
                "ok": true, "url": format!("http://{address}/"), "team": "T", "user": "pml",
                "team_id": "T1", "user_id": "UBOT", "bot_id": "B1",
            }),
            "apps.connections.open" => {
                let ticket = uuid::Uuid::new_v4();
                json!({ "ok": true, "url": format!("ws://{address}/link/?ticket={ticket}&app_id=A1") })
            }
            "conversations.open" => match body["users"].as_str() {
                Some(user) if user.starts_with('U') => {
                    json!({ "ok": true, "channel": { "id": conversation(user) } })
                }
                _ => refused("user_not_found"),
            },
            "chat.postMessage" => {
                // As in Slack: whoever posts to a person posts into their conversation.
                let channel = if channel.starts_with('U') {
                    conversation(channel)
                } else {
                    channel.to_owned()
                };
                if !channel.starts_with('D') {
                    return refused("channel_not_found");
                }
                self.messages_sent += 1;
                let ts = format!("17000000{:02}.000100", self.messages_sent);
                let message = json!({
                    "ts": ts, "channel": channel, "text": body["text"], "blocks": body["blocks"],
                });
                self.messages.insert(ts.clone(), message.clone());
                json!({ "ok": true, "channel": channel, "ts": ts, "message": message })
            }
            "chat.update" => {
                let ts = body["ts"].as_str().unwrap_or_default();
                let known = self
                    .messages
                    .get_mut(ts)
                    .filter(|message| message["channel"] == channel);
                let Some(message) = known else {
                    return refused("message_not_found");
                };
                message["text"] = body["text"].clone();
                message["blocks"] = body["blocks"].clone();
                json!({ "ok": true, "channel": channel, "ts": ts, "message": message })
            }
            "chat.postEphemeral" => {
                if person(channel) != body["user"] {
                    return refused("user_not_in_channel");
                }
                json!({ "ok": true, "message_ts": "1700009999.000100" })
            }
            "views.open" => {
                if body["trigger_id"] != "12.34.trigger" {
                    return refused("invalid_trigger_id");
                }
                let mut form = body["view"].clone();
                form["id"] = "V1".into();
                self.forms.push(form.clone());
                json!({ "ok": true, "view": form })
            }
            _ => refused("unknown_method"),
        }
    }
}

/// Serves one socket to its end.
fn socket(mut stream: TcpStream, path: &str, key: &str, state: &Mutex<State>) {
    assert!(path.starts_with("/link/?ticket="), "{path}");
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: \
         {accept}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let tick = Duration::from_millis(5);
    stream.set_read_timeout(Some(tick)).unwrap();
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    let (orders, ordered) = channel();
    let (number, greeting) = {
        let mut state = state.lock().unwrap();
        state.opened += 1;
        let number = state.opened;
        state.log.push(format!("open {number}"));
        let connections = state.greets.unwrap_or(state.sockets.len() as u64 + 1);
        let greeting = json!({
            "type": "hello", "num_connections": connections,
            "debug_info": { "host": "applink-1", "build_number": 1, "approximate_connection_time": 18060 },
            "connection_info": { "app_id": "A1" },
        });
        (number, (!state.silent).then(|| greeting.to_string()))
    };
    if let Some(greeting) = greeting {
        let _ = socket.send(Message::text(greeting));
        let mut state = state.lock().unwrap();
        state.sockets.insert(number, orders);
        state.log.push(format!("hello {number}"));
    }
    let mut frozen = false;
    let how = loop {
        match ordered.try_recv() {
            Ok(Order::Send(text)) => {
                if socket.send(Message::text(text)).is_err() {
                    break "lost";
                }
            }
            Ok(Order::Break) => break "broken",
            Ok(Order::Freeze) => frozen = true,
            Err(_) => {}
        }
        if frozen {
            std::thread::sleep(tick);
            // Whether the other side is gone is all that is looked at.
            match socket.get_ref().peek(&mut [0; 1]) {
                Ok(0) => break "close",
                Ok(_) => std::thread::sleep(tick),
                Err(_) => {}
            }
            if state.lock().unwrap().sockets.keys().any(|other| *other > number) {
                break "close";
            }
            continue;
        }
        match socket.read() {
            Ok(Message::Text(text)) => {
                let text = text.as_str();
                let id = serde_json::from_str::<Value>(text).map(|ack| ack["envelope_id"].clone());
                let id = id.ok().and_then(|id| id.as_str().map(str::to_owned));
                let id = id.unwrap_or_else(|| text.to_owned());
                state.lock().unwrap().log.push(format!("ack {id} on {number}"));
            }
            Ok(Message::Ping(_)) => {
                // The answer is written with the next frame that is sent or read.
                let _ = socket.flush();
                state.lock().unwrap().log.push(format!("ping on {number}"));
            }
            Ok(Message::Close(_)) => break "close",
            Ok(_) => {}
            Err(Error::Io(error))
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => break "lost",
        }
    };
    let _ = socket.flush();
    let mut state = state.lock().unwrap();
    state.sockets.remove(&number);
    state.log.push(format!("{how} {number}"));
}
