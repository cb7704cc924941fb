//! Channels through the whole binary: `pml serve` holds them, agents ask by `pml stdio`.

mod corpus;
pub(crate) mod injections;
mod named;
mod notifications;
mod proxies;
mod slow;
mod telegram;
mod whatsapp;

use serde_json::{Value, json};

use crate::support::fake_telegram::{FakeTelegram, TOKEN};
use crate::support::world::{World, json_of};
use crate::support::{DEADLINE, eventually};

/// The person who is asked on Telegram.
const ME: i64 = 412_587_349;

/// Writes the user's own file.
fn write_user_file(world: &World, text: &str) {
    let folder = world.home().join(".config/pml");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("pml.json"), text).unwrap();
}

/// A world whose person is asked on Telegram; what is asked returns an id at once.
fn world_on(telegram: &FakeTelegram) -> World {
    let world = World::new();
    world.set("TELEGRAM_TOKEN", TOKEN);
    world.configure(&json!({
        "approvals": { "by": "human" },
        "permissions": { "ask": ["*"] },
        "mcpServers": { "fake": world.fake(&[]) },
    }));
    let settings = json!({ "channels": { "telegram": {
        "token": "${TELEGRAM_TOKEN}", "people": [ME], "details": true, "apiUrl": telegram.api_url(),
    } } });
    write_user_file(&world, &settings.to_string());
    world
}

/// How a channel stands, as `pml channels` tells it.
pub(crate) fn standing(world: &World, channel: &str) -> Value {
    let told = json_of(&world.run(&["channels", "--json"]));
    let channels = told["channels"].as_array().unwrap();
    let found = channels.iter().find(|found| found["name"] == channel);
    found.cloned().unwrap_or_default()
}

/// Waits until a channel stands so.
fn stands(world: &World, channel: &str, state: &str) {
    eventually(&format!("{channel} is {state}"), DEADLINE, || {
        standing(world, channel)["state"] == state
    });
}

/// Waits until so many cards were sent, and returns the last one.
fn card(telegram: &FakeTelegram, count: usize) -> i64 {
    eventually("the card is sent", DEADLINE, || telegram.cards().len() == count);
    telegram.cards()[count - 1]
}

/// Waits until a message has no button, and returns its text.
fn closed(telegram: &FakeTelegram, id: i64) -> String {
    eventually("the message is closed", DEADLINE, || {
        telegram.message(id)["reply_markup"]["inline_keyboard"] == json!([])
    });
    telegram.message(id)["text"].as_str().unwrap().to_owned()
}

/// Waits until a press is acknowledged, and returns what was told beside it.
fn acknowledged(telegram: &FakeTelegram, press: &str) -> String {
    eventually("the press is acknowledged", DEADLINE, || {
        telegram.acknowledged(press).is_some()
    });
    telegram.acknowledged(press).unwrap()
}
