//! Every order in which a terminal, a dialog, a continuation, the deadline and a second conversation can meet one
//! suspended call, in both eras of the client, against one small model.

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, expire_workflows, json_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A person approves in a terminal.
    TerminalApproves,
    /// A person refuses in a terminal.
    TerminalRefuses,
    /// A person says yes in the dialog.
    DialogContinues,
    /// A person says no in the dialog.
    DialogAborts,
    /// The model continues the call by its id.
    Continuation,
    /// The deadline passes.
    Deadline,
    /// Another conversation makes the identical call.
    SecondConversation,
}

const EVENTS: [Event; 7] = [
    Event::TerminalApproves,
    Event::TerminalRefuses,
    Event::DialogContinues,
    Event::DialogAborts,
    Event::Continuation,
    Event::Deadline,
    Event::SecondConversation,
];

/// How the client is asked: by a result that it brings back, or by a request while its call is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Modern,
    Legacy,
}

/// Where the ask stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Open,
    Approved,
    Refused,
    Expired,
    Used,
}

/// What must come of it: where the ask stands, whether its dialog is open, how often the call may have run.
#[derive(Debug)]
struct Model {
    era: Era,
    ask: Ask,
    dialog: bool,
    /// The ask that the open dialog is about is another than the first: the first was used by a continuation.
    again: bool,
    runs: usize,
}

impl Model {
    /// Takes note of an event; `served` is whether the second conversation's call ran.
    fn after(&mut self, event: Event, served: bool) {
        match event {
            Event::TerminalApproves | Event::TerminalRefuses if self.ask != Ask::Open => {}
            Event::TerminalApproves => {
                self.ask = Ask::Approved;
                // An open call takes its answer at once; a client that holds a form comes back when it likes.
                if self.era == Era::Legacy && self.dialog {
                    self.run();
                    self.dialog = false;
                }
            }
            Event::TerminalRefuses => {
                self.ask = Ask::Refused;
                if self.era == Era::Legacy {
                    self.dialog = false;
                }
            }
            Event::DialogContinues | Event::DialogAborts if !self.dialog => {}
            Event::DialogContinues | Event::DialogAborts => {
                self.dialog = false;
                match (event, self.ask) {
                    _ if self.again => self.runs += usize::from(event == Event::DialogContinues),
                    // The first answer counts, whatever the dialog says.
                    (_, Ask::Approved) | (Event::DialogContinues, Ask::Open) => self.run(),
                    (_, Ask::Open) => self.ask = Ask::Refused,
                    // A yes that comes late, or to a call whose ask was used, is put to the call again.
                    (Event::DialogContinues, Ask::Expired | Ask::Used) => self.runs += 1,
                    (_, Ask::Refused | Ask::Expired | Ask::Used) => {}
                }
            }
            Event::Continuation => {
                if matches!(self.ask, Ask::Open | Ask::Approved) {
                    self.run();
                    self.again = self.era == Era::Legacy && self.dialog;
                }
            }
            Event::Deadline => {
                if matches!(self.ask, Ask::Open | Ask::Approved) {
                    self.ask = Ask::Expired;
                }
                if self.era == Era::Legacy {
                    self.dialog = false;
                }
            }
            Event::SecondConversation => {
                if served {
                    assert_eq!(self.ask, Ask::Approved, "an answer that nobody gave was used");
                    self.run();
                }
            }
        }
    }

    fn run(&mut self) {
        self.ask = Ask::Used;
        self.runs += 1;
    }
}

fn call() -> Value {
    json!({ "name": "fake__echo", "arguments": { "once": true } })
}

/// The client whose call is suspended, and what it holds of the dialog.
struct Suspended {
    client: Client,
    world: World,
    era: Era,
    code: String,
    id: String,
    /// The result with the form, or the request that shows it.
    dialog: Value,
    /// The call that is open.
    open: Option<u64>,
}

impl Suspended {
    fn new(era: Era) -> Self {
        let world = World::with_fake(&json!({ "ask": ["fake:echo"] }), &["--record", "seen"]);
        let mut client = world.client();
        let (dialog, open) = match era {
            Era::Modern => (modern(&mut client, &call()), None),
            Era::Legacy => {
                client.initialize_with_forms();
                let id = client.send("tools/call", &call());
                (client.notified("elicitation/create"), Some(id))
            }
        };
        let pending = json_of(&world.run(&["pending", "--json"]));
        let text = |member: &str| pending["pending"][0][member].as_str().unwrap().to_owned();
        Self {
            client,
            era,
            code: text("code"),
            id: text("id"),
            dialog,
            open,
            world,
        }
    }

    /// Lets an event happen; returns whether the second conversation's call ran.
    fn play(&mut self, event: Event, model: &Model) -> bool {
        match event {
            Event::TerminalApproves => drop(self.world.run(&["approve", &self.code])),
            Event::TerminalRefuses => drop(self.world.run(&["refuse", &self.code])),
            Event::Deadline => drop(expire_workflows(&self.world)),
            Event::DialogContinues => self.answer("continue", model),
            Event::DialogAborts => self.answer("abort", model),
            Event::Continuation => {
                let continued = json!({ "workflow_id": self.id, "approved": true });
                let ran = matches!(model.ask, Ask::Open | Ask::Approved);
                match self.era {
                    Era::Modern => {
                        let params = json!({ "name": "pml_continue", "arguments": continued });
                        modern(&mut self.client, &params);
                    }
                    Era::Legacy => drop(self.client.call("pml_continue", &continued)),
                }
                // The call that waits stands on its own again.
                if ran && model.dialog && self.era == Era::Legacy {
                    self.dialog = self.client.notified("elicitation/create");
                }
            }
            Event::SecondConversation => {
                let mut other = self.world.legacy();
                return !asks(&other.call("fake__echo", &call()["arguments"]));
            }
        }
        false
    }

    fn answer(&mut self, decision: &str, model: &Model) {
        let filled = json!({ "action": "accept", "content": { "decision": decision } });
        match self.era {
            Era::Modern => {
                let mut retry = call();
                retry["requestState"] = self.dialog["requestState"].clone();
                retry["inputResponses"] = json!({ "answer": filled });
                modern(&mut self.client, &retry);
            }
            Era::Legacy => {
                let dialog = self.dialog.clone();
                self.client.reply(&dialog, &filled);
                assert!(!model.dialog || self.open.is_some());
            }
        }
    }

    /// Waits for the call that is open, once the model says that it ended.
    fn settle(&mut self, model: &Model) {
        if !model.dialog
            && let Some(id) = self.open.take()
        {
            self.client.answer(id);
        }
    }
}

fn modern(client: &mut Client, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    client.request("tools/call", &params)["result"].clone()
}

/// Every order of three different events.
fn orders() -> Vec<[Event; 3]> {
    let mut orders = Vec::new();
    for first in EVENTS {
        for second in EVENTS.into_iter().filter(|event| *event != first) {
            for third in EVENTS
                .into_iter()
                .filter(|event| ![first, second].contains(event))
            {
                orders.push([first, second, third]);
            }
        }
    }
    orders
}

fn play_all(era: Era) {
    let orders = orders();
    assert_eq!(orders.len(), 210);
    for order in orders {
        let mut suspended = Suspended::new(era);
        let mut model = Model {
            era,
            ask: Ask::Open,
            dialog: true,
            again: false,
            runs: 0,
        };
        for event in order {
            let served = suspended.play(event, &model);
            model.after(event, served);
            suspended.settle(&model);
        }
        let seen = std::fs::read_to_string(suspended.world.path("seen")).unwrap_or_default();
        let runs = seen
            .lines()
            .filter(|line| line.contains(r#""once":true"#))
            .count();
        assert_eq!(runs, model.runs, "{order:?}: {model:?}");
    }
}

#[test]
fn whatever_roads_meet_in_whatever_order_a_modern_call_runs_as_often_as_it_was_allowed() {
    play_all(Era::Modern);
}

#[test]
fn whatever_roads_meet_in_whatever_order_a_legacy_call_runs_as_often_as_it_was_allowed() {
    play_all(Era::Legacy);
}
