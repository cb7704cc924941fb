//! Telegram from the agent to the person and back.

use std::process::Stdio;

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ME, acknowledged, card, closed, standing, stands, world_on, write_user_file};
use crate::serve::Served;
use crate::support::fake_telegram::{FakeTelegram, TOKEN};
use crate::support::world::{Client, World, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually};

/// Somebody who is not known.
const STRANGER: i64 = 666_000_666;

/// What a service says that repeats the token in what it refuses.
const REPEATED: &str = "Forbidden: bot 7000000001:AA-canary-of-the-bot was blocked";

fn colours() -> Value {
    json!({ "question": "Which colour?", "options": [{ "label": "Red" }, { "label": "Blue" }] })
}

/// Asks by an id, and returns what was told at once.
fn asked(client: &mut Client) -> Value {
    let asked = client.call("ask_user", &colours());
    assert_eq!(asked["structuredContent"]["status"], "pending", "{asked}");
    asked
}

/// Continues a question until it is answered.
fn continued(client: &mut Client, asked: &Value) -> Value {
    let id = &asked["structuredContent"]["workflow_id"];
    client.call(
        "ask_user",
        &json!({ "continue_workflow": { "workflow_id": id, "wait_seconds": 20 } }),
    )
}

/// Everything that pml says of itself.
fn outputs(world: &World) -> String {
    let commands: [&[&str]; 5] = [
        &["channels"],
        &["channels", "--json"],
        &["pending"],
        &["pending", "--json"],
        &["history"],
    ];
    let told = commands.map(|arguments| {
        let output = world.run(arguments);
        stdout(&output) + &stderr(&output)
    });
    told.concat()
}

/// Fails where the token of the bot stands in a file of the home, the log of `pml serve` among them, or is told.
fn assert_no_token(world: &World) {
    let secret = TOKEN.split_once(':').unwrap().1;
    let files = world.files();
    assert!(
        files.iter().any(|file| file.ends_with("workflows.db")),
        "{files:?}"
    );
    for file in files {
        let bytes = std::fs::read(world.home().join(&file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(secret), "{}", file.display());
    }
    let told = outputs(world);
    assert!(told.contains("telegram"), "{told}");
    assert!(!told.contains(secret), "{told}");
}

#[test]
fn a_press_answers_and_the_agent_hears_of_it_by_its_continuation() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    let mut client = world.legacy();
    let asking = asked(&mut client);
    let id = card(&telegram, 1);
    let sent = telegram.message(id);
    assert_eq!(sent["chat"]["id"], ME);
    let text = sent["text"].as_str().unwrap();
    assert!(text.contains("Which colour?\n1. Red\n2. Blue\n"), "{text}");

    let press = telegram.press(ME, ME, id, "Blue");
    let told = continued(&mut client, &asking);
    assert_eq!(texts(&told), ["User selected: Blue"]);
    assert_eq!(told["structuredContent"]["by"], "chat");
    let toast = acknowledged(&telegram, &press);
    assert!(toast.starts_with("Answered in Telegram: Blue · "), "{toast}");
    let text = closed(&telegram, id);
    assert!(text.contains("\nAnswered in Telegram: Blue · "), "{text}");

    // What is written as a reply counts, and what is named as the channel is asked there.
    let mut named = colours();
    named["channel"] = "telegram".into();
    let asking = client.call("ask_user", &named);
    assert_eq!(asking["structuredContent"]["status"], "pending", "{asking}");
    assert_eq!(
        telegram.cards().len(),
        2,
        "it is there before the agent is told to wait"
    );
    let id = card(&telegram, 2);
    telegram.write(ME, "neither, green", Some(id));
    assert_eq!(
        texts(&continued(&mut client, &asking)),
        ["User answered: neither, green"]
    );
    closed(&telegram, id);
    assert_eq!(telegram.broken_limits(), Vec::<String>::new());
    assert_eq!(telegram.cards().len(), 2);
}

#[test]
fn a_stranger_changes_nothing_by_a_press_and_is_told() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    let mut client = world.legacy();
    let asking = asked(&mut client);
    let id = card(&telegram, 1);
    // In the person's own chat, and with a button that was carried into another one.
    let press = telegram.press(STRANGER, ME, id, "Blue");
    assert_eq!(
        acknowledged(&telegram, &press),
        "Only the person who was asked can answer."
    );
    let press = telegram.press(STRANGER, STRANGER, id, "Blue");
    let toast = acknowledged(&telegram, &press);
    assert!(
        toast.starts_with("this pml does not know you, and nothing was changed"),
        "{toast}"
    );
    let pending = json_of(&world.run(&["pending", "--json"]));
    assert_eq!(pending["pending"].as_array().unwrap().len(), 1, "{pending}");

    telegram.press(ME, ME, id, "Red");
    assert_eq!(texts(&continued(&mut client, &asking)), ["User selected: Red"]);
}

#[test]
fn a_stranger_is_told_a_code_and_is_let_in_by_it() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let file = world.home().join(".config/pml/pml.json");
    let settings = format!(
        "// My own settings.\n{{\n  \"channels\": {{\n    \"telegram\": {{\n      // Made with BotFather.\n      \
         \"token\": \"${{TELEGRAM_TOKEN}}\",\n      \"people\": [], // Nobody yet.\n      \"apiUrl\": \"{}\"\n    }}\n  }}\n}}\n",
        telegram.api_url()
    );
    write_user_file(&world, &settings);
    let _served = Served::start(&world);
    telegram.write(ME, "/start", None);
    eventually("the stranger is told", DEADLINE, || telegram.told(ME).len() == 1);
    let told = telegram.told(ME).remove(0);
    let code = told.rsplit_once("pml channels pair ").expect(&told).1.to_owned();

    // An agent lets nobody in, and a code that is none neither.
    let agent = world
        .command(&["channels", "pair", &code])
        .env("CLAUDECODE", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(!agent.status.success(), "{agent:?}");
    let wrong = world.run(&["channels", "pair", "zzzzz"]);
    assert!(
        stderr(&wrong).contains("nobody waits under this code"),
        "{wrong:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), settings);

    let paired = world.run(&["channels", "pair", &code]);
    assert!(paired.status.success(), "{}", stderr(&paired));
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        written,
        settings.replace("\"people\": []", &format!("\"people\": [\"{ME}\"]"))
    );
    let again = world.run(&["channels", "pair", &code]);
    assert!(!again.status.success(), "a code lets in once: {again:?}");

    // Without a restart they are asked and heard.
    let mut client = world.legacy();
    let asking = asked(&mut client);
    let id = card(&telegram, 1);
    telegram.press(ME, ME, id, "Red");
    assert_eq!(texts(&continued(&mut client, &asking)), ["User selected: Red"]);

    let unpaired = world.run(&["channels", "unpair", "telegram", &ME.to_string()]);
    assert!(unpaired.status.success(), "{}", stderr(&unpaired));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), settings);
}

#[test]
fn what_is_pressed_while_no_pml_serve_runs_counts_afterwards_and_nothing_is_sent_twice() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let mut served = Served::start(&world);
    let mut client = world.legacy();
    let (first, other) = (
        asked(&mut client),
        client.call("ask_user", &json!({ "question": "Why?" })),
    );
    card(&telegram, 2);
    let of = |shows: &str| {
        let mut cards = telegram.cards().into_iter();
        cards
            .find(|id| telegram.message(*id)["text"].as_str().unwrap().contains(shows))
            .unwrap()
    };
    let (choice, words) = (of("Which colour?"), of("Why?"));
    // What is killed earlier may have sent it, and does not know.
    eventually("both are recorded", DEADLINE, || {
        standing(&world, "telegram")["open"] == 2
    });
    served.end(Signal::KILL);
    let press = telegram.press(ME, ME, choice, "Red");
    let _served = Served::start(&world);
    assert_eq!(texts(&continued(&mut client, &first)), ["User selected: Red"]);
    acknowledged(&telegram, &press);
    let text = closed(&telegram, choice);
    assert!(text.contains("Answered in Telegram: Red"), "{text}");
    // What still waited is one message as before, and takes its answer.
    telegram.write(ME, "because", Some(words));
    assert_eq!(texts(&continued(&mut client, &other)), ["User answered: because"]);
    closed(&telegram, words);
    assert_eq!(telegram.cards().len(), 2);
}

#[test]
fn the_token_stands_nowhere_and_is_told_nowhere() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let log = std::fs::File::create(world.home().join("serve.log")).unwrap();
    let mut serving = world
        .command(&["serve", "--json"])
        .env("PML_LOG", "trace")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut client = world.legacy();
    let asking = asked(&mut client);
    let id = card(&telegram, 1);
    telegram.press(ME, ME, id, "Blue");
    assert_eq!(texts(&continued(&mut client, &asking)), ["User selected: Blue"]);
    closed(&telegram, id);
    assert_no_token(&world);

    assert!(REPEATED.contains(TOKEN));
    telegram.refuse("sendMessage", 403, REPEATED);
    let mut named = colours();
    named["channel"] = "telegram".into();
    let failed = client.call("ask_user", &named);
    assert!(texts(&failed)[0].contains("Forbidden: bot"), "{failed}");
    assert!(!failed.to_string().contains("canary"), "{failed}");
    telegram.refuse("getUpdates", 401, REPEATED);
    telegram.write(ME, "hello", None);
    stands(&world, "telegram", "failed");
    assert_no_token(&world);
    serving.kill().unwrap();
    serving.wait().unwrap();
}
