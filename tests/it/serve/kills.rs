//! An answer survives the death of any process between the question and its delivery.

use serde_json::{Value, json};

use super::Served;
use crate::support::world::{Client, World, texts};

/// How often something is killed.
const ROUNDS: u64 = 100;

/// Who dies.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Agent,
    Server,
    Both,
    Nobody,
}

/// A walk through the victims that looks random and is the same every time.
struct Victims(u64);

impl Victims {
    fn next(&mut self) -> Victim {
        // The generator of Knuth's MMIX; its high bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match self.0 >> 62 {
            0 => Victim::Agent,
            1 => Victim::Server,
            2 => Victim::Both,
            _ => Victim::Nobody,
        }
    }
}

/// An agent and the server of its person, each of which may be killed at any moment.
struct Scene {
    world: World,
    agent: Client,
    served: Option<Served>,
}

impl Scene {
    fn new() -> Self {
        let world = World::new();
        Self {
            agent: world.legacy(),
            served: Some(Served::start(&world)),
            world,
        }
    }

    fn kill(&mut self, victim: Victim) {
        if matches!(victim, Victim::Agent | Victim::Both) {
            self.agent.signal(rustix::process::Signal::KILL);
            self.agent = self.world.legacy();
        }
        if matches!(victim, Victim::Server | Victim::Both) {
            // Dropped first: the next one is the only one again.
            drop(self.served.take());
            self.served = Some(Served::start(&self.world));
        }
    }

    fn served(&self) -> &Served {
        self.served.as_ref().unwrap()
    }

    fn ask(&mut self, question: &str) -> Value {
        self.agent.call("ask_user", &json!({ "question": question }))
    }
}

#[test]
fn a_hundred_kills_lose_no_answer_and_deliver_none_twice() {
    let mut scene = Scene::new();
    let mut victims = Victims(7);
    for round in 0..ROUNDS {
        let question = format!("Round {round}?");
        let asked = scene.ask(&question);
        let id = asked["structuredContent"]["workflow_id"].clone();
        scene.kill(victims.next());
        let card = json!({ "id": id });
        let answer = format!("answer {round}");
        let recorded = scene
            .served()
            .answer(&card, &json!({ "answers": [{ "text": answer }] }));
        assert_eq!(recorded.status, 200, "round {round}: {recorded:?}");
        scene.kill(victims.next());
        // The agent comes back for it by the id, or asks the same again: both find the one answer.
        let found = if round % 2 == 0 {
            let continuation = json!({ "continue_workflow": { "workflow_id": id } });
            scene.agent.call("ask_user", &continuation)
        } else {
            scene.ask(&question)
        };
        assert_eq!(
            texts(&found),
            [format!("User answered: {answer}")],
            "round {round}"
        );
        scene.kill(victims.next());
        // It was delivered: who asks the same now asks anew.
        let again = scene.ask(&question);
        assert_eq!(
            again["structuredContent"]["status"], "pending",
            "round {round}: {again}"
        );
        let fresh = json!({ "id": again["structuredContent"]["workflow_id"] });
        let refused = scene.served().answer(&fresh, &json!({ "decision": "abort" }));
        assert_eq!(refused.status, 200, "round {round}: {refused:?}");
    }
}
