//! A server elsewhere that would make pml send requests without end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::web::{Answer, Web, event};
use crate::support::world::{Client, World};
use crate::support::{DEADLINE, eventually};

/// A world in which `web` may be connected to.
fn allowed(web: &Web) -> World {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "allow": ["web"] },
        "mcpServers": { "web": { "type": "http", "url": web.url("/mcp") } },
    }));
    world
}

fn count(web: &Web, method: &str) -> usize {
    web.methods().iter().filter(|found| *found == method).count()
}

#[test]
fn ever_new_event_ids_do_not_flood_the_server() {
    /// The answer comes when the stream is taken up for this time.
    const ANSWERED: usize = 3;
    let taken_up = AtomicUsize::new(0);
    let web = Web::mcp(move |request| match (request.method.as_str(), request.rpc()) {
        (_, "tools/call") => Some(Answer::Events(format!(
            "id: 0-{}\nretry: 0\ndata:\n\n",
            request.body["id"]
        ))),
        ("GET", _) => {
            let (_, id) = request.header("last-event-id")?.split_once('-')?;
            let number = taken_up.fetch_add(1, Ordering::SeqCst) + 1;
            let id: Value = id.parse().unwrap();
            Some(Answer::Events(if number == ANSWERED {
                event(&json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }))
            } else {
                format!("id: {number}-{id}\nretry: 0\ndata:\n\n")
            }))
        }
        _ => None,
    });
    let world = allowed(&web);
    let mut client = world.legacy();
    client.call("web__connect", &json!({}));
    let begun = Instant::now();
    assert_eq!(client.call("web__echo", &json!({})), json!({ "content": [] }));
    // A quarter of a second, a half and a whole one; `retry: 0` asked for nothing.
    let least = Duration::from_millis(1750);
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
}

#[test]
fn a_standing_stream_that_ends_at_once_does_not_flood_the_server() {
    let number = AtomicUsize::new(0);
    let web = Web::mcp(move |request| {
        (request.method == "GET").then(|| {
            let number = number.fetch_add(1, Ordering::SeqCst);
            let noise =
                json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "" } });
            Answer::Events(format!("id: {number}\nretry: 0\n{}", event(&noise)))
        })
    });
    let world = allowed(&web);
    let mut client = world.legacy();
    let begun = Instant::now();
    client.call("web__connect", &json!({}));
    eventually("it listens again", DEADLINE, || count(&web, "GET") >= 3);
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
    client.call("web__echo", &json!({}));
}

#[test]
fn a_server_that_forgets_every_session_is_not_asked_without_end() {
    let listed = AtomicUsize::new(0);
    let web = Web::mcp(move |request| {
        let again = request.rpc() == "tools/list" && listed.fetch_add(1, Ordering::SeqCst) > 0;
        (again || request.rpc() == "tools/call").then(|| Answer::status(404))
    });
    let world = allowed(&web);
    let mut client = world.legacy();
    client.call("web__connect", &json!({}));
    let call = |client: &mut Client| {
        let params = json!({ "name": "web__echo", "arguments": {} });
        let answer = client.request("tools/call", &params);
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(told.contains("404"), "{answer}");
    };
    call(&mut client);
    // The call, sent twice, and then the list, twice: nothing more follows from one call.
    eventually("the list is asked for again", DEADLINE, || {
        count(&web, "tools/list") == 3
    });
    call(&mut client);
    assert_eq!(count(&web, "tools/list"), 3, "{:?}", web.methods());
    let mut before = 0;
    let mut unchanged_since = Instant::now();
    eventually("nothing is asked any more", DEADLINE, || {
        let now = web.asked().len();
        if now != before {
            (before, unchanged_since) = (now, Instant::now());
        }
        // Many times the pause after which a changed list is asked for again.
        unchanged_since.elapsed() > Duration::from_secs(2)
    });
}
