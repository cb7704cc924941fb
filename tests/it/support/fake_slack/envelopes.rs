//! What Slack sends when a person does something, made from the message as it stands.

use serde_json::{Map, Value, json};

use super::conversation;

/// What a person filled in, by question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filled {
    options: Vec<(usize, Vec<&'static str>)>,
    texts: Vec<(usize, String)>,
}

impl Filled {
    /// Nothing.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// Takes options of a question, by their values.
    pub(crate) fn options(mut self, question: usize, values: &[&'static str]) -> Self {
        self.options.push((question, values.to_vec()));
        self
    }

    /// Writes into the field of a question.
    pub(crate) fn text(mut self, question: usize, text: &str) -> Self {
        self.texts.push((question, text.to_owned()));
        self
    }
}

/// What every press has: who, where, on which message.
fn action(message: &Value, person: &str, action: &Value, values: &Value) -> Value {
    let channel = message["channel"].as_str().unwrap();
    json!({
        "type": "block_actions",
        "user": { "id": person, "username": "ann", "name": "ann", "team_id": "T1" },
        "api_app_id": "A1", "token": "x",
        "container": {
            "type": "message", "message_ts": message["ts"], "channel_id": channel, "is_ephemeral": false,
        },
        "trigger_id": "12.34.trigger",
        "team": { "id": "T1", "domain": "t" }, "enterprise": null, "is_enterprise_install": false,
        "channel": { "id": channel, "name": "directmessage" },
        "message": {
            "type": "message", "user": "UBOT", "bot_id": "B1", "ts": message["ts"], "text": message["text"],
            "blocks": message["blocks"],
        },
        "state": { "values": values },
        "response_url": "http://127.0.0.1:9/response",
        "actions": [action],
    })
}

/// A press on a button of a message.
pub(super) fn press(message: &Value, person: &str, id: &str, filled: &Filled) -> Value {
    let (block, button) = elements(message)
        .find(|(_, element)| element["type"] == "button" && element["action_id"] == id)
        .unwrap_or_else(|| panic!("no button `{id}` in {message:#}"));
    let pressed = json!({
        "action_id": id, "block_id": block["block_id"], "text": button["text"], "value": button["value"],
        "type": "button", "action_ts": "1700000001.0",
    });
    action(message, person, &pressed, &values(message, filled))
}

/// A choice that is toggled and not sent.
pub(super) fn toggle(message: &Value, person: &str) -> Value {
    let (block, element) = elements(message)
        .find(|(_, element)| element["options"].is_array())
        .unwrap();
    let option = element["options"][0].clone();
    let toggled = json!({
        "action_id": element["action_id"], "block_id": block["block_id"], "type": element["type"],
        "selected_option": option, "action_ts": "1700000001.0",
    });
    action(message, person, &toggled, &values(message, &Filled::nothing()))
}

/// A form that is sent.
pub(super) fn submission(form: &Value, person: &str, text: &str) -> Value {
    let mut view = form.clone();
    let block = form["blocks"][0]["block_id"].as_str().unwrap();
    view["state"] = json!({ "values": { block: { "text": { "type": "plain_text_input", "value": text } } } });
    view["team_id"] = "T1".into();
    view["type"] = "modal".into();
    json!({
        "type": "view_submission",
        "team": { "id": "T1", "domain": "t" },
        "user": { "id": person, "username": "ann", "name": "ann", "team_id": "T1" },
        "api_app_id": "A1", "token": "x", "trigger_id": "56.78.trigger", "view": view, "response_urls": [],
        "is_enterprise_install": false, "enterprise": null,
    })
}

/// A message of a person to the app.
pub(super) fn message(person: &str, text: &str, thread: Option<&str>, number: u64) -> Value {
    let mut event = json!({
        "type": "message", "channel": conversation(person), "user": person, "text": text,
        "ts": format!("1700000{number:03}.000200"), "channel_type": "im", "team": "T1",
    });
    if let Some(thread) = thread {
        event["thread_ts"] = thread.into();
    }
    json!({
        "token": "x", "team_id": "T1", "api_app_id": "A1", "event": event, "type": "event_callback",
        "event_id": format!("Ev{number}"), "event_time": 1_700_000_002,
        "authorizations": [{ "enterprise_id": null, "team_id": "T1", "user_id": "UBOT", "is_bot": true }],
    })
}

/// The elements of a message, each with its block.
fn elements(message: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let blocks = message["blocks"].as_array().into_iter().flatten();
    blocks.flat_map(|block| {
        let several = block["elements"].as_array().into_iter().flatten();
        let one = block.get("element").into_iter();
        several.chain(one).map(move |element| (block, element))
    })
}

/// Everything that is chosen and written in a message; what is not has `null`, as in Slack.
fn values(message: &Value, filled: &Filled) -> Value {
    let mut values = Map::new();
    for (block, element) in elements(message) {
        let id = block["block_id"].as_str().unwrap_or_default();
        let kind = element["type"].as_str().unwrap_or_default();
        let part = id.splitn(4, ':').nth(3).unwrap_or_default();
        let question: Option<usize> = part.split(':').next().unwrap().parse().ok();
        let chosen = || {
            let wanted = filled.options.iter().find(|(place, _)| Some(*place) == question);
            let wanted = wanted.map_or(&[][..], |(_, values)| values);
            let options = element["options"].as_array().unwrap().iter();
            let chosen = options.filter(|option| wanted.iter().any(|value| option["value"] == *value));
            chosen.cloned().collect::<Vec<Value>>()
        };
        let value = match kind {
            "radio_buttons" | "static_select" => {
                json!({ "type": kind, "selected_option": chosen().first() })
            }
            "checkboxes" => json!({ "type": kind, "selected_options": chosen() }),
            "plain_text_input" => {
                let text = filled.texts.iter().find(|(place, _)| Some(*place) == question);
                json!({ "type": kind, "value": text.map(|(_, text)| text) })
            }
            _ => continue,
        };
        let action = element["action_id"].as_str().unwrap().to_owned();
        let of_block = values.entry(id.to_owned()).or_insert_with(|| json!({}));
        of_block[action] = value;
    }
    Value::Object(values)
}
