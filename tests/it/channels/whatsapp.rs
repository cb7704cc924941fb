//! WhatsApp: what Meta delivers to the one path that is open counts by its signature, and once.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{stands, write_user_file};
use crate::serve::Served;
use crate::serve::http::Reply;
use crate::support::web::{Answer, Web};
use crate::support::world::{Client, World, json_of, texts};
use crate::support::{DEADLINE, eventually};

/// The number of pml, and the one of the person.
const NUMBER: &str = "105500";
const ME: &str = "41790000000";

const SECRET: &str = "canary of the app";
const WORD: &str = "canary of the address";

/// The most that is read of a delivery.
const MOST: usize = 3 << 20;

/// A Cloud API that takes everything: the first message is `wamid.1`.
pub(super) fn meta() -> Web {
    let count = std::sync::atomic::AtomicU32::new(0);
    Web::start(move |_request| {
        let id = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        let sent = json!({ "messages": [{ "id": format!("wamid.{id}") }] });
        Answer::Whole(200, Vec::new(), sent.to_string())
    })
}

fn world(meta: &Web) -> World {
    let world = World::new();
    set_secrets(&world);
    let settings = json!({ "channels": { "whatsapp": settings(meta) } });
    write_user_file(&world, &settings.to_string());
    world
}

/// Sets what the settings name.
pub(super) fn set_secrets(world: &World) {
    for (name, value) in [("WA_TOKEN", "canary"), ("WA_SECRET", SECRET), ("WA_VERIFY", WORD)] {
        world.set(name, value);
    }
}

/// The settings of the number of pml.
pub(super) fn settings(meta: &Web) -> Value {
    json!({
        "token": "${WA_TOKEN}", "phoneNumberId": NUMBER, "appSecret": "${WA_SECRET}",
        "verifyToken": "${WA_VERIFY}", "people": [ME], "apiUrl": meta.url("/v23.0"),
    })
}

/// A signature of a body, as Meta writes it.
fn signed(secret: &str, body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let tag = ring::hmac::sign(&key, body);
    let hex: Vec<String> = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.concat();
    format!("sha256={hex}")
}

/// What Meta posts for a message of a person.
fn written(from: &str, id: &str, text: &str, replied: Option<&str>) -> Vec<u8> {
    let mut message =
        json!({ "from": from, "id": id, "timestamp": "1", "type": "text", "text": { "body": text } });
    if let Some(replied) = replied {
        message["context"] = json!({ "from": NUMBER, "id": replied });
    }
    delivery(&message)
}

/// What Meta posts for a button that was pressed.
fn pressed(id: &str, button: &Value, message: &str) -> Vec<u8> {
    delivery(&json!({
        "from": ME, "id": id, "timestamp": "1", "type": "interactive", "context": { "from": NUMBER, "id": message },
        "interactive": { "type": "button_reply", "button_reply": button },
    }))
}

fn delivery(message: &Value) -> Vec<u8> {
    let value = json!({
        "messaging_product": "whatsapp", "metadata": { "phone_number_id": NUMBER }, "messages": [message],
    });
    let change = json!({ "field": "messages", "value": value });
    json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": [change] }] })
        .to_string()
        .into_bytes()
}

/// Posts a delivery as it comes through a tunnel: with the host name of that.
fn deliver(served: &Served, signature: Option<&str>, body: Vec<u8>) -> Reply {
    let request = served
        .request("POST", "/hooks/whatsapp")
        .host(Some("tunnel.example"))
        .header("Content-Type", "application/json")
        .body(body);
    match signature {
        Some(signature) => request.header("X-Hub-Signature-256", signature).send(),
        None => request.send(),
    }
}

/// Posts a delivery that Meta signed.
fn received(served: &Served, body: Vec<u8>) {
    let reply = deliver(served, Some(&signed(SECRET, &body)), body);
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
}

fn verified(served: &Served, query: &str) -> Reply {
    let path = format!("/hooks/whatsapp?{query}");
    served.request("GET", &path).host(Some("tunnel.example")).send()
}

/// Waits until so many messages were sent, and returns them.
fn sent(meta: &Web, count: usize) -> Vec<Value> {
    eventually(&format!("{count} messages are sent"), DEADLINE, || {
        meta.asked().len() >= count
    });
    meta.asked().into_iter().map(|request| request.body).collect()
}

fn text(message: &Value) -> &str {
    message["text"]["body"]
        .as_str()
        .unwrap_or_else(|| panic!("{message}"))
}

fn asked(client: &mut Client, question: &str) -> Value {
    let options = json!([{ "label": "Red" }, { "label": "Blue" }]);
    let asked = client.call("ask_user", &json!({ "question": question, "options": options }));
    assert_eq!(asked["structuredContent"]["status"], "pending", "{asked}");
    asked
}

fn continued(client: &mut Client, asked: &Value) -> Value {
    let id = &asked["structuredContent"]["workflow_id"];
    client.call(
        "ask_user",
        &json!({ "continue_workflow": { "workflow_id": id, "wait_seconds": 20 } }),
    )
}

/// The codes of what waits, the oldest first.
fn codes(world: &World) -> Vec<String> {
    let pending = json_of(&world.run(&["pending", "--json"]));
    let pending = pending["pending"].as_array().unwrap();
    pending
        .iter()
        .map(|ask| ask["code"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_address_is_verified_by_its_word_alone() {
    let meta = meta();
    let world = world(&meta);
    let served = Served::start(&world);
    stands(&world, "whatsapp", "connected");
    let token = "canary%20of%20the%20address";
    let reply = verified(
        &served,
        &format!("hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={token}"),
    );
    assert_eq!((reply.status, reply.body.as_str()), (200, "1158201444"));
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    for query in [
        String::new(),
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=other".to_owned(),
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=".to_owned(),
        format!("hub.mode=unsubscribe&hub.challenge=1&hub.verify_token={token}"),
        format!("hub.mode=subscribe&hub.challenge=%3Cscript%3E&hub.verify_token={token}"),
    ] {
        let reply = verified(&served, &query);
        assert_eq!((reply.status, reply.body.as_str()), (403, ""), "{query}");
    }
    // The tunnel opens nothing else.
    for path in ["/", "/api/inbox", "/hooks/telegram"] {
        let reply = served.request("GET", path).host(Some("tunnel.example")).send();
        assert!((400..500).contains(&reply.status), "{path}: {reply:?}");
    }
}

#[test]
fn what_is_not_signed_or_too_large_changes_nothing() {
    let meta = meta();
    let world = world(&meta);
    let served = Served::start(&world);
    let mut client = world.legacy();
    let asking = asked(&mut client, "Which colour?");
    let question = sent(&meta, 1).remove(0);
    let buttons = question["interactive"]["action"]["buttons"].as_array().unwrap();
    let press = pressed("wamid.P", &buttons[1]["reply"], "wamid.1");
    let right = signed(SECRET, &press);

    let changed = format!("{}0", &right[..right.len() - 1]);
    let other = if changed == right {
        format!("{}1", &right[..right.len() - 1])
    } else {
        changed
    };
    for (signature, status) in [
        (None, 401),
        (Some(""), 403),
        (Some(other.as_str()), 403),
        (Some(&right["sha256=".len()..]), 403),
        (Some(signed("another secret", &press).as_str()), 403),
        (Some(signed(SECRET, b"another body").as_str()), 403),
    ] {
        let reply = deliver(&served, signature, press.clone());
        assert_eq!((reply.status, reply.body.as_str()), (status, ""), "{signature:?}");
    }
    let mut large = press.clone();
    large.resize(MOST + 1, b' ');
    let reply = deliver(&served, Some(&signed(SECRET, &large)), large.clone());
    assert_eq!(reply.status, 413, "{reply:?}");
    assert_eq!(codes(&world).len(), 1);

    // One byte less, and it counts: nothing of the above was remembered as said.
    large.pop();
    received(&served, large);
    assert_eq!(texts(&continued(&mut client, &asking)), ["User selected: Blue"]);
    assert_eq!(codes(&world), Vec::<String>::new());
}

#[test]
fn a_message_that_is_delivered_twice_is_heard_once() {
    let meta = meta();
    let world = world(&meta);
    let served = Served::start(&world);
    let mut client = world.legacy();
    let asking = asked(&mut client, "Which colour?");
    sent(&meta, 1);
    let answer = written(ME, "wamid.A", "2", Some("wamid.1"));
    received(&served, answer.clone());
    received(&served, answer.clone());
    assert_eq!(texts(&continued(&mut client, &asking)), ["User selected: Blue"]);
    received(&served, answer);
    // What is said afterwards is heard afterwards.
    received(&served, written(ME, "wamid.B", "hello?", None));
    let to = |id: &str| -> Vec<String> {
        let sent = meta.asked();
        let replies = sent
            .iter()
            .filter(|sent| sent.body["context"]["message_id"] == id);
        replies.map(|reply| text(&reply.body).to_owned()).collect()
    };
    eventually("the last message is answered", DEADLINE, || {
        to("wamid.B").len() == 1
    });
    assert_eq!(to("wamid.B"), ["nothing waits for you here"]);
    // What became of it stands below the question.
    eventually("the question is closed", DEADLINE, || !to("wamid.1").is_empty());
    // The next question comes after all that was to be told of this one: it was told once, and not again when its agent
    // took the answer, nor beside it to the one who answered.
    let before = meta.asked().len();
    asked(&mut client, "Which way?");
    sent(&meta, before + 1);
    let told = to("wamid.1");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("Answered in WhatsApp: Blue · "), "{told:?}");
    assert_eq!(to("wamid.A"), Vec::<String>::new());
    assert_eq!(meta.asked().len(), before + 1);
}

#[test]
fn an_answer_without_a_reference_is_asked_which_of_two_is_meant() {
    let meta = meta();
    let world = world(&meta);
    let served = Served::start(&world);
    let mut client = world.legacy();
    let wall = asked(&mut client, "Which colour has the wall?");
    let door = asked(&mut client, "Which colour has the door?");
    let questions = sent(&meta, 2);
    let waiting = codes(&world);
    assert_eq!(waiting.len(), 2);

    received(&served, written(ME, "wamid.A", "Blue", None));
    let told = sent(&meta, 3).remove(2);
    assert_eq!(told["context"]["message_id"], "wamid.A");
    let said = text(&told);
    assert!(
        said.starts_with("several asks wait: reply to the message of one"),
        "{said}"
    );
    assert!(waiting.iter().all(|code| said.contains(code.as_str())), "{said}");
    assert_eq!(codes(&world), waiting, "nothing was answered");

    // Somebody who is not known is not asked which.
    received(&served, written("41791111111", "wamid.S", "Blue", None));
    let stranger = sent(&meta, 4).remove(3);
    assert_eq!(stranger["to"], "41791111111");
    assert!(text(&stranger).contains("does not know you"), "{stranger}");
    assert_eq!(codes(&world), waiting);

    // The code names one, and the other is then the only one.
    let of_door = questions
        .iter()
        .map(|sent| sent["interactive"]["body"]["text"].as_str().unwrap())
        .find(|text| text.contains("the door?"));
    let code = of_door.unwrap().split(' ').next().unwrap();
    assert!(waiting.iter().any(|known| known == code), "{code}");
    received(&served, written(ME, "wamid.C", &format!("{code} Red"), None));
    assert_eq!(texts(&continued(&mut client, &door)), ["User selected: Red"]);
    received(&served, written(ME, "wamid.D", "blue", None));
    assert_eq!(texts(&continued(&mut client, &wall)), ["User selected: Blue"]);
}
