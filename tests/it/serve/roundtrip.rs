//! What is answered by the API reaches the call that waits, once.

use serde_json::{Value, json};

use super::{Served, blocking, colour};
use crate::support::world::{World, expire_workflows, json_of, texts};

#[test]
fn a_question_that_a_call_waits_for_is_answered_on_the_page() {
    let world = blocking();
    let served = Served::start(&world);
    let browser = served.browser();
    let mut client = world.legacy();
    let call = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": colour() }),
    );
    let card = served.only_ask();
    assert_eq!(
        [&card["kind"], &card["state"], &card["keeps"], &card["title"]],
        ["questions", "pending", "call", "Which colour?"]
    );
    let answered = browser.answer(
        &card,
        &json!({ "answers": [{ "labels": ["Blue"], "text": null }] }),
    );
    assert_eq!(answered.status, 200, "{answered:?}");
    let by = &answered.json()["answered"];
    assert_eq!(
        [&by["road"], &by["who"], &by["text"]],
        ["web", "linux-firefox", "Blue"]
    );
    let result = client.answer(call)["result"].clone();
    assert_eq!(texts(&result)[0], "User selected: Blue", "{result}");

    // Somebody was first: the card says who.
    let second = served.answer(&card, &json!({ "answers": [{ "labels": ["Red"] }] }));
    assert_eq!(second.status, 409, "{second:?}");
    let second = second.json();
    assert_eq!(
        [
            &second["state"],
            &second["answered"]["who"],
            &second["answered"]["text"]
        ],
        ["used", "linux-firefox", "Blue"]
    );
    let path = format!("/api/asks/{}", card["id"].as_str().unwrap());
    assert_eq!(served.script("GET", &path).send().json(), second);
    let inbox = served.script("GET", "/api/inbox").send().json();
    assert_eq!(
        (&inbox["pending"], &inbox["recent"]),
        (&json!([]), &json!([second]))
    );
}

#[test]
fn a_call_that_is_approved_by_a_script_runs() {
    let world = blocking();
    let served = Served::start(&world);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "for": "serve" }));
    let card = served.only_ask();
    assert_eq!(
        [&card["kind"], &card["asker"]["alive"]],
        [&json!("install"), &json!(true)]
    );
    let answered = served.answer(&card, &json!({ "decision": "once" }));
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(answered.json()["answered"]["who"], "api");
    let id = &asked["approval_context"]["workflow_id"];
    let result = client.call("pml_continue", &json!({ "workflow_id": id }));
    let echoed: Value = serde_json::from_str(texts(&result)[0]).unwrap_or_else(|_| panic!("{result}"));
    assert_eq!(echoed["arguments"], json!({ "for": "serve" }));
    let log = json_of(&world.run(&["log", "--json"]));
    assert_eq!(log["workflows"][0]["by"], "web:api");
}

#[test]
fn what_is_refused_on_the_page_does_not_run_and_says_why() {
    let world = blocking();
    let served = Served::start(&world);
    let browser = served.browser();
    let mut client = world.legacy();
    let call = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": colour() }),
    );
    let card = served.only_ask();
    let refused = browser.answer(&card, &json!({ "decision": "abort", "reason": "neither" }));
    assert_eq!(
        (refused.status, &refused.json()["state"]),
        (200, &json!("refused"))
    );
    let result = client.answer(call)["result"].clone();
    assert!(texts(&result)[0].contains("neither"), "{result}");
}

#[test]
fn always_writes_the_rule_that_the_card_shows() {
    let world = blocking();
    let served = Served::start(&world);
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let card = served.only_ask();
    assert_eq!(card["alwaysWrites"]["rule"], "fake:echo");
    assert_eq!(served.answer(&card, &json!({ "decision": "always" })).status, 200);
    assert!(
        world.read(".pml.json").contains("\"fake:echo\""),
        "{}",
        world.read(".pml.json")
    );
    client.call("fake__echo", &json!({}));
}

#[test]
fn a_slip_is_told_with_its_field_and_the_ask_still_waits() {
    let world = blocking();
    let served = Served::start(&world);
    let mut client = world.legacy();
    let call = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": colour() }),
    );
    let card = served.only_ask();
    for (said, field) in [
        (json!({ "answers": [{ "labels": ["Green"] }] }), "answers[0]"),
        (json!({ "answers": [] }), "answers"),
        (json!({ "decision": "once" }), "decision"),
        (json!({ "decision": "yes" }), "body"),
        (
            json!({ "answers": [{ "labels": ["Red"] }], "scope": "always" }),
            "body",
        ),
        (json!(7), "body"),
    ] {
        let reply = served.answer(&card, &said);
        assert_eq!(
            (reply.status, &reply.json()["field"]),
            (422, &json!(field)),
            "{said}: {reply:?}"
        );
        assert!(reply.json()["reason"].is_string());
    }
    let path = format!("/api/asks/{}/answer", card["id"].as_str().unwrap());
    let broken = served
        .script("POST", &path)
        .header("Content-Type", "application/json");
    assert_eq!(broken.body(b"{\"answers\":".to_vec()).send().status, 422);
    assert_eq!(served.only_ask()["rev"], card["rev"]);
    assert_eq!(
        served
            .answer(&card, &json!({ "answers": [{ "labels": ["Red"] }] }))
            .status,
        200
    );
    client.answer(call);
}

#[test]
fn what_is_over_is_gone_and_what_never_was_is_not_found() {
    let world = World::new();
    let served = Served::start(&world);
    let mut client = world.legacy();
    client.call("ask_user", &colour());
    let card = served.only_ask();
    expire_workflows(&world);
    let late = served.answer(&card, &json!({ "answers": [{ "labels": ["Red"] }] }));
    assert_eq!(
        (late.status, &late.json()["state"]),
        (410, &json!("expired")),
        "{late:?}"
    );
    let stranger = json!({ "id": uuid::Uuid::new_v4().to_string() });
    assert_eq!(
        served.answer(&stranger, &json!({ "decision": "once" })).status,
        404
    );
    assert_eq!(served.script("GET", "/api/asks/kqzwh").send().status, 404);
}

#[test]
fn the_files_of_the_page_are_there_and_are_kept_by_their_tag() {
    let world = World::new();
    let served = Served::start(&world);
    for (path, media_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/cards.js", "text/javascript; charset=utf-8"),
        ("/parts.js", "text/javascript; charset=utf-8"),
        ("/stream.js", "text/javascript; charset=utf-8"),
        ("/app.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/manifest.webmanifest", "application/manifest+json"),
    ] {
        let file = served.request("GET", path).send();
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, Some(media_type)),
            "{path}"
        );
        assert!(file.body.len() > 100, "{path}");
        let tag = file.header("etag").unwrap();
        let again = served.request("GET", path).header("If-None-Match", tag).send();
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
        let policy = file.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; "),
            "{policy}"
        );
        assert!(
            policy.ends_with("form-action 'none'; frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(file.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(file.header("access-control-allow-origin"), None);
    }
}
