//! Every order in which things can happen to a suspended call, on the real binary, against a model of five lines.

use serde_json::{Value, json};

use crate::support::world::{World, expire_workflows, texts};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A person approves in a terminal.
    Approve,
    /// A person refuses in a terminal; after an approval this is the second answer.
    Refuse,
    /// The client continues the call.
    Continue,
    /// The deadline passes.
    Expire,
    /// A deny rule is written.
    Deny,
}

const EVENTS: [Event; 5] = [
    Event::Approve,
    Event::Refuse,
    Event::Continue,
    Event::Expire,
    Event::Deny,
];

/// Whether pml is started anew between the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restarts {
    None,
    AfterEach,
}

/// What must come of it: where the call stands, in the simplest words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Waits,
    Approved,
    Refused,
    Dead,
    Ran,
}

impl Model {
    fn after(self, event: Event) -> Self {
        match (self, event) {
            (Self::Waits, Event::Approve) => Self::Approved,
            (Self::Waits, Event::Refuse) => Self::Refused,
            (Self::Waits | Self::Approved, Event::Continue) => Self::Ran,
            (Self::Waits | Self::Approved, Event::Expire | Event::Deny) => Self::Dead,
            (stays, _) => stays,
        }
    }
}

fn orders(events: &[Event]) -> Vec<Vec<Event>> {
    if events.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, first) in events.iter().enumerate() {
        let mut rest = events.to_vec();
        rest.remove(index);
        for mut order in orders(&rest) {
            order.insert(0, *first);
            all.push(order);
        }
    }
    all
}

/// Plays one order and compares what ran with the model.
fn play(order: &[Event], restarts: Restarts) {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &["--record", "seen"]);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "once": true }));
    let told = world.run(&["pending", "--json"]);
    let pending: Value = serde_json::from_slice(&told.stdout).unwrap();
    let code = pending
        .to_string()
        .split("\"code\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let mut model = Model::Waits;
    for event in order {
        match event {
            Event::Approve => drop(world.run(&["approve", &code])),
            Event::Refuse => drop(world.run(&["refuse", &code])),
            Event::Expire => drop(expire_workflows(&world)),
            Event::Deny => assert!(world.run(&["deny", "fake:echo"]).status.success()),
            Event::Continue => drop(client.proceed("fake__echo", &asked, &json!({ "approved": true }))),
        }
        model = model.after(*event);
        if restarts == Restarts::AfterEach {
            client = world.legacy();
        }
    }
    let again = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    assert!(
        again.get("isError").is_some() || texts(&again)[0].contains("aborted"),
        "{order:?}: {again}"
    );
    let seen = std::fs::read_to_string(world.path("seen")).unwrap_or_default();
    let runs = seen.matches("\"once\":true").count();
    assert_eq!(
        runs,
        usize::from(model == Model::Ran),
        "{order:?}, restarts: {restarts:?}"
    );
}

#[test]
fn whatever_happens_in_whatever_order_the_call_runs_at_most_once_and_only_if_it_may() {
    let orders = orders(&EVENTS);
    assert_eq!(orders.len(), 120);
    for (index, order) in orders.iter().enumerate() {
        play(
            order,
            if index % 2 == 0 {
                Restarts::AfterEach
            } else {
                Restarts::None
            },
        );
    }
}
