//! The stream of events: whole, in order, and ended with the server.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::http::Events;
use super::{Served, blocking, colour};
use crate::support::world::World;

fn question(number: usize) -> Value {
    json!({ "question": format!("Number {number}?") })
}

fn follow(served: &Served, since: u64) -> Events {
    served
        .script("GET", &format!("/api/events?since={since}"))
        .events()
}

#[test]
fn a_stream_that_is_resumed_loses_nothing_and_doubles_nothing() {
    let world = World::new();
    let served = Served::start(&world);
    let mut client = world.legacy();
    for number in 0..5 {
        client.call("ask_user", &question(number));
    }
    // Two events, then the connection breaks, and more is asked meanwhile.
    let mut seen = Vec::new();
    let mut events = follow(&served, 0);
    for _ in 0..2 {
        seen.push(events.next().unwrap());
    }
    drop(events);
    for number in 5..8 {
        client.call("ask_user", &question(number));
    }
    let last = seen.last().unwrap().id;
    // What the browser saw last counts more than the address, which it repeats.
    let resumed = served
        .script("GET", "/api/events?since=0")
        .header("Last-Event-ID", &last.to_string());
    let mut events = resumed.events();
    while seen.len() < 8 {
        seen.push(events.next().unwrap());
    }
    let titles: Vec<&str> = seen
        .iter()
        .map(|event| event.data["title"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..8).map(|number| format!("Number {number}?")).collect();
    assert_eq!(titles, expected);
    assert!(seen.windows(2).all(|pair| pair[0].id < pair[1].id), "{seen:?}");
    assert!(
        seen.iter()
            .all(|event| event.name == "card" && event.id == event.data["rev"])
    );

    // What comes later comes as well.
    client.call("ask_user", &question(8));
    assert_eq!(events.next().unwrap().data["title"], "Number 8?");
}

#[test]
fn the_life_of_an_ask_is_told_as_it_passes() {
    let world = blocking();
    let served = Served::start(&world);
    let mut client = world.legacy();
    let mut events = served.script("GET", "/api/events").events().opened();
    let call = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": colour() }),
    );
    let card = events.next().unwrap().data;
    assert_eq!(card["state"], "pending");
    assert_eq!(
        served
            .answer(&card, &json!({ "answers": [{ "labels": ["Red"] }] }))
            .status,
        200
    );
    client.answer(call);
    let mut states = BTreeMap::new();
    loop {
        let event = events.next().unwrap();
        let state = event.data["state"].as_str().unwrap().to_owned();
        let over = state == "used";
        states.insert(event.id, state);
        if over {
            break;
        }
    }
    // Two changes between two looks are told as one.
    assert!(
        states
            .values()
            .all(|state| state == "answered" || state == "used"),
        "{states:?}"
    );
}

#[test]
fn a_revision_that_is_not_ours_begins_anew() {
    let world = World::new();
    let served = Served::start(&world);
    let mut client = world.legacy();
    client.call("ask_user", &question(1));
    for since in ["99999", "abc", "-1"] {
        let mut events = served
            .script("GET", &format!("/api/events?since={since}"))
            .events();
        let event = events.next().unwrap();
        assert_eq!((event.name.as_str(), event.data), ("reset", json!({})), "{since}");
    }
}

#[test]
fn signals_end_the_server_at_once_also_with_open_streams() {
    for signal in [Signal::INT, Signal::TERM] {
        let world = World::new();
        let mut served = Served::start(&world);
        let mut streams: Vec<Events> = (0..4).map(|_| follow(&served, 0).opened()).collect();
        let (status, took) = served.end(signal);
        assert!(status.success(), "{status}");
        assert!(took < Duration::from_secs(1), "{took:?}");
        for stream in &mut streams {
            assert!(stream.next().is_none());
        }
    }
}

#[test]
fn there_are_only_so_many_streams_and_one_that_ends_makes_room() {
    let world = World::new();
    let served = Served::start(&world);
    let mut streams: Vec<Events> = (0..32).map(|_| follow(&served, 0).opened()).collect();
    let refused = served.script("GET", "/api/events").send();
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    streams.pop();
    crate::support::eventually("a stream ends with its reader", crate::support::DEADLINE, || {
        // A reply that is a stream does not end, so only its head is looked at.
        let mut stream = super::http::connect(served.port);
        let head = format!(
            "GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\r\n",
            served.port, served.token
        );
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut begin = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut begin).unwrap();
        &begin == b"HTTP/1.1 200"
    });
}
