//! The API: guarded like answers, followed by numbers, and what is said lands where the driver looks.

use pml::host::{Image, Message, Priority, RunInput, RunOutcome, RunState};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Run;
use crate::serve::Served;
use crate::support::world::World;

fn text(uuid: Uuid, text: &str) -> Value {
    json!({ "uuid": uuid, "text": text })
}

#[test]
fn runs_are_told_newest_first_and_without_arguments_prompt_or_transcript() {
    let world = World::new();
    let served = Served::start(&world);
    let mut older = Run::begin(&world, "fix the test");
    older.record.created_at -= 1_000;
    older.stand(RunState::Ended {
        outcome: RunOutcome::Done,
    });
    let newer = Run::begin(&world, "write the\u{202e}docs");
    let reply = served.script("GET", "/api/runs").send();
    assert_eq!(reply.status, 200, "{reply:?}");
    let told = reply.json();
    let ids: Vec<&str> = told["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [newer.id(), older.id()]);
    assert_eq!(
        (&told["runs"][1]["state"], &told["runs"][1]["driven"]),
        (&json!("done"), &json!(false))
    );
    let one = served.script("GET", &newer.path("")).send().json();
    let expected = json!({
        "id": newer.id(), "title": "write the\\u{202e}docs", "project": "/home/me/shop", "state": "running",
        "driven": true, "model": "claude-opus-5", "cost": 0.0421, "trouble": null, "asks": [],
        "createdAt": newer.record.created_at, "changedAt": newer.record.changed_at,
    });
    assert_eq!(one, expected);
    assert!(
        !reply.body.contains("secret") && !reply.body.contains("prompt"),
        "{reply:?}"
    );
    for path in ["/api/runs/zzzzz", "/api/runs/..%2f..", "/api/runs/zzzzz/events"] {
        assert_eq!(served.script("GET", path).send().status, 404, "{path}");
    }
}

#[test]
fn what_a_run_is_told_needs_a_cookie_its_own_page_and_the_csrf_value() {
    let world = World::new();
    let served = Served::start(&world);
    let run = Run::begin(&world, "fix the test");
    let browser = served.browser();
    let said = text(Uuid::new_v4(), "go on");
    for path in ["/messages", "/interrupt", "/stop"].map(|path| run.path(path)) {
        let stranger = served.request("POST", &path).json(&said).send();
        assert_eq!(stranger.status, 401, "{path}: {stranger:?}");
        let wrong = served.request("POST", &path).header("Authorization", "Bearer 1");
        assert_eq!(wrong.json(&said).send().status, 401, "{path}");
        let forged = browser.request("POST", &path).json(&said).send();
        assert_eq!(forged.status, 403, "no CSRF value: {path}: {forged:?}");
        let forged = browser
            .request("POST", &path)
            .header("X-CSRF-Token", &served.token);
        assert_eq!(
            forged.json(&said).send().status,
            403,
            "a wrong CSRF value: {path}"
        );
        let foreign = browser
            .request("POST", &path)
            .header("X-CSRF-Token", &browser.csrf)
            .header("Origin", "https://attacker.example");
        assert_eq!(foreign.json(&said).send().status, 403, "a foreign page: {path}");
        let rebound = served.script("POST", &path).host(Some("attacker.example"));
        assert_eq!(rebound.json(&said).send().status, 403, "a foreign host: {path}");
    }
    for path in ["", "/events"].map(|path| run.path(path)) {
        assert_eq!(served.request("GET", &path).send().status, 401, "{path}");
        let foreign = browser
            .request("GET", &path)
            .header("Origin", "https://attacker.example");
        assert_eq!(foreign.send().status, 403, "{path}");
    }
    assert_eq!(served.request("GET", "/api/runs").send().status, 401);
    let form = browser
        .request("POST", &run.path("/messages"))
        .header("X-CSRF-Token", &browser.csrf)
        .header("Content-Type", "text/plain");
    assert_eq!(form.body(said.to_string().into_bytes()).send().status, 415);
    assert_eq!(run.inputs(), []);
}

#[test]
fn messages_interrupts_and_stops_land_as_inputs_in_their_order() {
    let world = World::new();
    let served = Served::start(&world);
    let run = Run::begin(&world, "fix the test");
    let browser = served.browser();
    let say = |path: &str, said: &Value| {
        let request = browser.request("POST", &run.path(path));
        request.header("X-CSRF-Token", &browser.csrf).json(said).send()
    };
    let uuid = Uuid::new_v4();
    // A picture of a screen, and one that is larger than any answer may be.
    let data = "iVBORw0K".repeat(400_000);
    let said = json!({
        "uuid": uuid, "text": "like this", "priority": "now",
        "images": [{ "media_type": "image/png", "data": data }],
    });
    for (path, said) in [
        ("/messages", said),
        ("/interrupt", json!({})),
        ("/stop", json!({})),
    ] {
        let reply = say(path, &said);
        assert_eq!(reply.status, 202, "{path}: {reply:?}");
    }
    let message = Message {
        uuid: uuid.to_string(),
        text: "like this".to_owned(),
        images: vec![Image {
            media_type: "image/png".to_owned(),
            data,
        }],
        priority: Priority::Now,
    };
    assert_eq!(
        run.inputs(),
        [RunInput::Message(message), RunInput::Interrupt, RunInput::Stop]
    );
    let uuid = uuid.to_string();
    for (said, field) in [
        (json!({ "uuid": uuid, "text": " " }), "message"),
        (json!({ "uuid": uuid, "text": "x".repeat(100_001) }), "message"),
        (
            json!({ "uuid": uuid, "text": "", "images": [{ "media_type": "text/html", "data": "" }] }),
            "message",
        ),
        (json!({ "uuid": "../../x", "text": "x" }), "uuid"),
        (json!({ "uuid": uuid, "text": "x", "priority": "soon" }), "body"),
        (json!({ "uuid": uuid, "text": "x", "extra": 1 }), "body"),
        (json!([]), "body"),
    ] {
        let reply = say("/messages", &said);
        assert_eq!(
            (reply.status, &reply.json()["field"]),
            (422, &json!(field)),
            "{reply:?}"
        );
    }
    let huge = json!({ "uuid": uuid, "text": "x".repeat(23 << 20) });
    assert_eq!(say("/messages", &huge).status, 413);
    assert_eq!(run.inputs(), []);
}

#[test]
fn nothing_is_said_to_a_run_that_no_process_drives() {
    let world = World::new();
    let served = Served::start(&world);
    let mut lost = Run::begin(&world, "it was killed");
    drop(lost.lock.take());
    let mut parked = Run::begin(&world, "it waits");
    parked.stand(RunState::Parked {
        call: "t1".to_owned(),
    });
    for (run, state) in [(&lost, "lost"), (&parked, "parked")] {
        assert_eq!(served.script("GET", &run.path("")).send().json()["state"], state);
        for path in ["/messages", "/interrupt", "/stop"] {
            let said = text(Uuid::new_v4(), "go on");
            let reply = served.script("POST", &run.path(path)).json(&said).send();
            assert_eq!(reply.status, 409, "{path}: {reply:?}");
            assert!(
                reply.body.contains(&format!("pml run --resume {}", run.id())),
                "{reply:?}"
            );
        }
        assert_eq!(run.inputs(), []);
    }
    let nowhere = served.script("POST", "/api/runs/zzzzz/stop").send();
    assert_eq!(nowhere.status, 404, "{nowhere:?}");
}

#[test]
fn events_come_from_a_number_on_as_they_are_logged_and_the_run_as_it_changes() {
    let world = World::new();
    let served = Served::start(&world);
    let mut run = Run::begin(&world, "fix the test");
    for number in 1..=3 {
        run.log_at(
            number,
            &json!({ "type": "pml", "event": "note", "text": format!("note {number}") }),
        );
    }
    let mut events = served.script("GET", &run.path("/events?since=1")).events();
    for number in 2..=3 {
        let event = events.next().unwrap();
        let line = json!({ "type": "pml", "event": "note", "text": format!("note {number}") });
        assert_eq!((event.id, event.name.as_str()), (number, "line"));
        assert_eq!(event.data, json!({ "at": number, "line": line }));
    }
    // Once everything is told, the run itself.
    let told = events.next().unwrap();
    assert_eq!(
        (told.id, told.name.as_str(), &told.data["state"]),
        (0, "run", &json!("running"))
    );
    run.stand(RunState::Asking);
    let event = events.next().unwrap();
    assert_eq!((event.id, &event.data["line"]["event"]), (4, &json!("state")));
    assert_eq!(events.next().unwrap().data["state"], "asking");
    drop(events);
    // What the browser saw last counts more than the address, which it repeats.
    run.log(&json!({ "type": "result" }));
    let again = served
        .script("GET", &run.path("/events?since=0"))
        .header("Last-Event-ID", "4");
    assert_eq!(again.events().next().unwrap().id, 5);
    // The process is killed: no event says so.
    let mut events = served.script("GET", &run.path("/events?since=5")).events();
    assert_eq!(events.next().unwrap().data["driven"], true);
    drop(run.lock.take());
    let lost = events.next().unwrap();
    assert_eq!((lost.name.as_str(), &lost.data["state"]), ("run", &json!("lost")));
}

#[test]
fn a_reader_of_events_that_are_gone_is_told_to_begin_anew() {
    let world = World::new();
    let served = Served::start(&world);
    let mut run = Run::begin(&world, "fix the test");
    run.written = 40;
    run.log(&json!({ "type": "pml", "event": "note", "text": "the oldest that is kept" }));
    for since in ["0", "39", "1000", "none"] {
        let mut events = served
            .script("GET", &run.path(&format!("/events?since={since}")))
            .events();
        let mut reset = events.next().unwrap();
        assert_eq!(reset.name, "reset", "{since}");
        if since.len() >= 4 {
            // A number that was never there: from the beginning, which is gone.
            assert_eq!(reset.id, 0);
            reset = events.next().unwrap();
        }
        assert_eq!((reset.name.as_str(), reset.id), ("reset", 40), "{since}");
        assert_eq!(events.next().unwrap().id, 41, "{since}");
    }
    let mut events = served.script("GET", &run.path("/events?since=40")).events();
    assert_eq!(events.next().unwrap().name, "line");
}
