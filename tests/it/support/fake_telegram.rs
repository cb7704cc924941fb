//! A Telegram on the loopback interface: the methods of the Bot API that pml calls, with the limits that Telegram keeps.
//!
//! It keeps the messages it was sent, holds polls until there is something new, and forgets an update only once a poll asks
//! for those behind it. Buttons are pressed as they stand in the message.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::web::{Answer, Request, Web};

/// The token of the bot that it accepts.
pub(crate) const TOKEN: &str = "7000000001:AA-canary-of-the-bot";

#[derive(Default)]
struct State {
    requests: Vec<(String, Value)>,
    messages: BTreeMap<i64, Value>,
    updates: Vec<Value>,
    updates_made: i64,
    /// The presses that were not acknowledged yet.
    presses: HashSet<String>,
    /// What methods are refused with: the code, and the word for it.
    refusals: HashMap<&'static str, (u16, &'static str)>,
    /// The methods that are too much at the moment, with the seconds that are to be waited.
    delays: HashMap<&'static str, u64>,
    /// The methods that are not answered for now.
    held: HashSet<&'static str>,
    broken_limits: Vec<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A Telegram; it ends with the process.
pub(crate) struct FakeTelegram {
    web: Web,
    shared: Arc<Shared>,
}

impl FakeTelegram {
    pub(crate) fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        let web = Web::start(move |request| served.answer(request));
        Self { web, shared }
    }

    /// What `apiUrl` is set to.
    pub(crate) fn api_url(&self) -> String {
        self.web.url("")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// The bodies of all requests of a method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let state = self.state();
        let of_method = state.requests.iter().filter(|(found, _)| found == method);
        of_method.map(|(_, body)| body.clone()).collect()
    }

    /// The methods of all requests, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        let state = self.state();
        state.requests.iter().map(|(method, _)| method.clone()).collect()
    }

    /// The bodies of all requests.
    pub(crate) fn everything(&self) -> Vec<Value> {
        let state = self.state();
        state.requests.iter().map(|(_, body)| body.clone()).collect()
    }

    /// The numbers of the messages with buttons that were sent, the oldest first.
    pub(crate) fn cards(&self) -> Vec<i64> {
        let state = self.state();
        let cards = state
            .messages
            .iter()
            .filter(|(_, message)| message["was_card"] == true);
        cards.map(|(id, _)| *id).collect()
    }

    /// A message as it stands now.
    pub(crate) fn message(&self, id: i64) -> Value {
        self.state().messages[&id].clone()
    }

    /// The texts that were sent to a chat and are no cards.
    pub(crate) fn told(&self, chat: i64) -> Vec<String> {
        let state = self.state();
        let told = state
            .messages
            .values()
            .filter(|message| message["chat"]["id"] == chat && message["was_card"] == false);
        told.map(|message| message["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What was told beside a press; `None` before it was acknowledged.
    pub(crate) fn acknowledged(&self, press: &str) -> Option<String> {
        let answered = self.requests("answerCallbackQuery");
        let answer = answered
            .iter()
            .find(|answer| answer["callback_query_id"] == press)?;
        Some(answer["text"].as_str().unwrap_or_default().to_owned())
    }

    /// The limits that were broken by what it was sent.
    pub(crate) fn broken_limits(&self) -> Vec<String> {
        self.state().broken_limits.clone()
    }

    /// Refuses a method from now on.
    pub(crate) fn refuse(&self, method: &'static str, code: u16, word: &'static str) {
        self.state().refusals.insert(method, (code, word));
    }

    /// Answers a method from now on that it was called too often.
    pub(crate) fn delay(&self, method: &'static str, seconds: u64) {
        self.state().delays.insert(method, seconds);
    }

    /// Answers a method no more, until it is released.
    pub(crate) fn hold(&self, method: &'static str) {
        self.state().held.insert(method);
    }

    /// Answers a method again, and what was asked meanwhile.
    pub(crate) fn release(&self, method: &'static str) {
        self.state().held.remove(method);
        self.shared.changed.notify_all();
    }

    /// Presses the button of a message that shows a text, as a person in a chat; returns the id of the press.
    pub(crate) fn press(&self, person: i64, chat: i64, message: i64, shows: &str) -> String {
        let mut pressed = self.message(message);
        let rows = pressed["reply_markup"]["inline_keyboard"].as_array().unwrap();
        let mut keys = rows.iter().flat_map(|row| row.as_array().unwrap());
        let key = keys.find(|key| key["text"].as_str().unwrap().contains(shows));
        let data = key.expect(shows)["callback_data"].clone();
        pressed["chat"]["id"] = chat.into();
        let id = format!("press-{}", self.state().updates_made + 1);
        self.state().presses.insert(id.clone());
        self.update(
            "callback_query",
            &json!({
                "id": id, "from": user(person), "data": data, "chat_instance": "1", "message": pressed,
            }),
        );
        id
    }

    /// Writes to the bot as a person, perhaps as a reply to a message.
    pub(crate) fn write(&self, person: i64, text: &str, replied: Option<i64>) {
        let id = 100_000 + self.state().updates_made;
        let mut message = json!({
            "message_id": id, "date": 1, "from": user(person), "chat": chat(person), "text": text,
        });
        if let Some(replied) = replied {
            message["reply_to_message"] = self.message(replied);
        }
        self.update("message", &message);
    }

    fn update(&self, kind: &str, what: &Value) {
        let mut state = self.state();
        state.updates_made += 1;
        let update = json!({ "update_id": state.updates_made, kind: what });
        state.updates.push(update);
        drop(state);
        self.shared.changed.notify_all();
    }
}

fn user(id: i64) -> Value {
    json!({ "id": id, "is_bot": false, "first_name": "A" })
}

fn chat(id: i64) -> Value {
    json!({ "id": id, "type": "private" })
}

fn refused(code: u16, word: &str) -> Answer {
    let body = json!({ "ok": false, "error_code": code, "description": word });
    Answer::Whole(code, Vec::new(), body.to_string())
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        let method = request.path.strip_prefix(&format!("/bot{TOKEN}/"));
        let Some(method) = method else {
            return refused(401, "Unauthorized");
        };
        let body = &request.body;
        let mut state = self.state.lock().unwrap();
        state.requests.push((method.to_owned(), body.clone()));
        while state.held.contains(method) {
            state = self.changed.wait(state).unwrap();
        }
        if let Some(seconds) = state.delays.get(method) {
            let body = json!({
                "ok": false, "error_code": 429, "description": format!("Too Many Requests: retry after {seconds}"),
                "parameters": { "retry_after": seconds },
            });
            return Answer::Whole(429, Vec::new(), body.to_string());
        }
        if let Some((code, word)) = state.refusals.get(method) {
            return refused(*code, word);
        }
        let result = if method == "getUpdates" {
            Ok(self.updates(state, body))
        } else {
            state.answer(method, body)
        };
        match result {
            Ok(result) => Answer::Whole(
                200,
                Vec::new(),
                json!({ "ok": true, "result": result }).to_string(),
            ),
            Err(word) => refused(400, &format!("Bad Request: {word}")),
        }
    }

    /// Holds a poll until there is something new.
    fn updates(&self, mut state: MutexGuard<'_, State>, body: &Value) -> Value {
        let offset = body["offset"].as_i64().unwrap_or_default();
        let held = Duration::from_secs(body["timeout"].as_u64().unwrap_or_default());
        let begin = Instant::now();
        let is_new = |update: &Value| update["update_id"].as_i64() >= Some(offset);
        loop {
            state.updates.retain(is_new);
            let left = held.saturating_sub(begin.elapsed());
            if !state.updates.is_empty() || left.is_zero() {
                return json!(state.updates);
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}

impl State {
    fn answer(&mut self, method: &str, body: &Value) -> Result<Value, &'static str> {
        let broken = broken(body);
        if !broken.is_empty() {
            self.broken_limits.extend(broken);
            return Err("a limit is broken");
        }
        let id = body["message_id"].as_i64().unwrap_or_default();
        match method {
            "getMe" => Ok(json!({ "id": 7_000_000_001_i64, "is_bot": true, "username": "pml_bot" })),
            "sendMessage" => {
                let chat_id = body["chat_id"].as_i64().ok_or("chat not found")?;
                let id = 50 + i64::try_from(self.messages.len()).unwrap();
                let message = json!({
                    "message_id": id, "date": 1, "chat": chat(chat_id), "text": body["text"],
                    "reply_markup": body["reply_markup"], "was_card": body["reply_markup"].is_object(),
                });
                self.messages.insert(id, message.clone());
                Ok(message)
            }
            "editMessageText" | "editMessageReplyMarkup" => {
                let message = self.messages.get_mut(&id);
                let message = message.filter(|message| message["chat"]["id"] == body["chat_id"]);
                let message = message.ok_or("message to edit not found")?;
                let before = message.clone();
                message["reply_markup"] = body["reply_markup"].clone();
                if method == "editMessageText" {
                    message["text"] = body["text"].clone();
                }
                if *message == before {
                    return Err("message is not modified");
                }
                Ok(message.clone())
            }
            "answerCallbackQuery" => {
                let press = body["callback_query_id"].as_str().unwrap_or_default();
                let is_open = self.presses.remove(press);
                let late = "query is too old and response timeout expired or query ID is invalid";
                is_open.then_some(json!(true)).ok_or(late)
            }
            _ => Err("there is no such method"),
        }
    }
}

/// Lists what Telegram would refuse in a request.
fn broken(body: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let units = |text: &Value| text.as_str().map_or(0, |text| text.encode_utf16().count());
    let length = units(&body["text"]);
    let most = if body["callback_query_id"].is_string() {
        200
    } else {
        4096
    };
    if length > most {
        broken.push(format!("a text of {length}"));
    }
    let entities = body["entities"].as_array().map_or(&[][..], Vec::as_slice);
    if entities.len() > 100 {
        broken.push(format!("{} entities", entities.len()));
    }
    for entity in entities {
        let end = entity["offset"].as_u64().zip(entity["length"].as_u64());
        let end = end
            .filter(|(_, length)| *length > 0)
            .map(|(offset, length)| offset + length);
        if end.is_none_or(|end| end > length as u64) {
            broken.push(format!("an entity beyond {length}: {entity}"));
        }
    }
    let rows = body["reply_markup"]["inline_keyboard"].as_array();
    let keys: Vec<&Value> = rows
        .into_iter()
        .flatten()
        .flat_map(|row| row.as_array().unwrap())
        .collect();
    if keys.len() > 100 {
        broken.push(format!("{} buttons", keys.len()));
    }
    for key in keys {
        let data = key["callback_data"].as_str().unwrap_or_default().len();
        if !(1..=64).contains(&data) || units(&key["text"]) == 0 {
            broken.push(format!("a button: {key}"));
        }
    }
    broken
}
