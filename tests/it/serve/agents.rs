//! Agents that speak HTTP and no MCP ask by the token of their stream.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::http::Reply;
use super::{Served, colour};
use crate::support::have;
use crate::support::world::{World, hold_database, json_of, stderr, stdout};

/// A process whose only purpose is to live.
struct Living(Child);

impl Living {
    fn start() -> Self {
        let child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn();
        Self(child.unwrap())
    }

    fn token(&self, world: &World) -> String {
        let made = world.run(&["serve", "token", "--pid", &self.0.id().to_string()]);
        assert!(made.status.success(), "{}", stderr(&made));
        stdout(&made).trim().to_owned()
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn relay(served: &Served, token: &str, question: &Value) -> Reply {
    let mut body = question.clone();
    body["streamToken"] = json!(token);
    served
        .request("POST", "/claude/relay-question?p=5")
        .json(&body)
        .send()
}

fn poll(served: &Served, token: &str) -> Reply {
    let path = format!("/claude/poll-answer?p=5&streamToken={token}");
    served.request("GET", &path).send()
}

fn submit(served: &Served, body: &Value) -> Reply {
    let browser = served.script("POST", "/claude/submit-answer?p=5");
    browser.json(body).send()
}

#[test]
fn a_question_is_relayed_shown_answered_and_polled_once() {
    let world = World::new();
    let served = Served::start(&world);
    let agent = Living::start();
    let token = agent.token(&world);
    assert_eq!(poll(&served, &token).status, 202);
    let mut question = colour();
    question["multiSelect"] = json!(true);
    let relayed = relay(&served, &token, &question);
    assert_eq!(relayed.status, 200, "{relayed:?}");
    let id = relayed.json()["questionId"].as_str().unwrap().to_owned();
    let waiting = poll(&served, &token);
    assert_eq!(
        (waiting.status, waiting.json()),
        (202, json!({ "status": "waiting" }))
    );

    let card = served.only_ask();
    assert_eq!(
        [&card["id"], &card["kind"], &card["title"]],
        [&id, "questions", "Which colour?"]
    );
    assert_eq!(card["asker"]["project"], world.project().to_str().unwrap());
    assert_eq!(
        (&card["asker"]["alive"], &card["keeps"]),
        (&json!(true), &json!("call"))
    );
    let said = json!({ "answers": [{ "labels": ["Red", "Blue"], "text": "or green" }] });
    assert_eq!(served.answer(&card, &said).status, 200);

    let answered = poll(&served, &token);
    let expected = json!({
        "status": "answered", "answer": "Red, Blue, or green", "selectedOptions": [0, 1],
    });
    assert_eq!((answered.status, answered.json()), (200, expected.clone()));
    assert_eq!(poll(&served, &token).status, 202, "it is delivered once");
    // An agent that lost the reply names its question.
    let path = format!("/claude/poll-answer?p=5&streamToken={token}&questionId={id}");
    assert_eq!(served.request("GET", &path).send().json(), expected);
}

#[test]
fn the_page_of_a_host_submits_an_answer_by_number_or_in_words() {
    let world = World::new();
    let served = Served::start(&world);
    let browser = served.browser();
    let agent = Living::start();
    let token = agent.token(&world);
    for (answer, selected, expected) in [
        (
            "Blue",
            json!([1]),
            json!({ "answer": "Blue", "selectedOptions": [1] }),
        ),
        (
            "Red",
            json!([]),
            json!({ "answer": "Red", "selectedOptions": [0] }),
        ),
        (
            "none of these",
            json!(null),
            json!({ "answer": "none of these", "selectedOptions": [] }),
        ),
    ] {
        assert_eq!(relay(&served, &token, &colour()).status, 200);
        let body = json!({ "streamToken": token, "answer": answer, "selectedOptions": selected });
        let without = browser
            .request("POST", "/claude/submit-answer?p=5")
            .json(&body)
            .send();
        assert_eq!(without.status, 403, "a cookie needs its CSRF value: {without:?}");
        let request = browser.request("POST", "/claude/submit-answer?p=5");
        let submitted = request.header("X-CSRF-Token", &browser.csrf).json(&body).send();
        assert_eq!(submitted.status, 200, "{submitted:?}");
        assert_eq!(submitted.json()["answered"]["who"], "linux-firefox");
        assert_eq!(submit(&served, &body).status, 409, "somebody was first");
        let mut answered = poll(&served, &token).json();
        answered.as_object_mut().unwrap().remove("status");
        assert_eq!(answered, expected);
    }
    relay(&served, &token, &colour());
    let body = json!({ "streamToken": token, "answer": "", "selectedOptions": [2] });
    let wrong = submit(&served, &body);
    assert_eq!(
        (wrong.status, &wrong.json()["field"]),
        (422, &json!("selectedOptions"))
    );
}

#[test]
fn a_newer_question_of_a_stream_withdraws_the_older_one_visibly() {
    let world = World::new();
    let mut served = Served::start(&world);
    let (agent, other) = (Living::start(), Living::start());
    let (token, others) = (agent.token(&world), other.token(&world));
    let path = format!("/claude/stream?p=5&streamToken={token}");
    let mut events = served.request("GET", &path).events().opened();
    let id = |reply: Reply| reply.json()["questionId"].as_str().unwrap().to_owned();
    relay(&served, &others, &json!({ "question": "Mine?" }));
    let first = id(relay(&served, &token, &json!({ "question": "First?" })));
    let event = events.next().unwrap();
    assert_eq!(event.name, "ask_user_question");
    let expected = json!({
        "type": "ask_user_question",
        "data": {
            "question": "First?", "options": [], "multiSelect": false,
            "streamToken": token, "questionId": first,
        },
    });
    assert_eq!(event.data, expected);
    let second = id(relay(&served, &token, &json!({ "question": "Second?" })));
    let withdrawn = events.next().unwrap();
    assert_eq!(withdrawn.name, "ask_user_question_state");
    let expected = json!({
        "type": "ask_user_question_state",
        "data": { "questionId": first, "state": "withdrawn", "streamToken": token },
    });
    assert_eq!(withdrawn.data, expected);
    assert_eq!(events.next().unwrap().data["data"]["question"], "Second?");
    let state = |served: &Served, id: &str| {
        let card = served.script("GET", &format!("/api/asks/{id}")).send().json();
        card["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(&served, &first), "withdrawn");
    // A page that still shows the older one does not answer the newer one by it.
    let late = submit(
        &served,
        &json!({ "streamToken": token, "answer": "for the first", "questionId": first }),
    );
    assert_eq!((late.status, &late.json()["state"]), (410, &json!("withdrawn")));
    assert_eq!(state(&served, &second), "pending");
    // The very same question is the same one.
    assert_eq!(
        id(relay(&served, &token, &json!({ "question": "Second?" }))),
        second
    );
    // A server that is started anew still knows what the stream asked.
    served.end(rustix::process::Signal::TERM);
    let served = Served::start(&world);
    assert_eq!(poll(&served, &token).status, 202);
    let third = id(relay(&served, &token, &json!({ "question": "Third?" })));
    assert_eq!(
        [state(&served, &second), state(&served, &third)],
        ["withdrawn", "pending"]
    );
    let titles: Vec<Value> = served
        .pending()
        .iter()
        .map(|card| card["title"].clone())
        .collect();
    assert_eq!(titles, ["Mine?", "Third?"]);
    let path = format!("/claude/poll-answer?streamToken={token}&questionId={second}");
    let gone = served.request("GET", &path).send();
    assert_eq!((gone.status, &gone.json()["status"]), (410, &json!("withdrawn")));
}

/// Returns the answer to a question that is named.
fn fetched(served: &Served, token: &str, id: &str) -> Reply {
    let path = format!("/claude/poll-answer?streamToken={token}&questionId={id}");
    served.request("GET", &path).send()
}

#[test]
fn an_answer_that_came_before_a_newer_question_is_kept_and_told() {
    let world = World::new();
    let served = Served::start(&world);
    let agent = Living::start();
    let token = agent.token(&world);
    let path = format!("/claude/stream?p=5&streamToken={token}");
    let mut events = served.request("GET", &path).events().opened();
    let relayed = relay(&served, &token, &json!({ "question": "First?" })).json();
    let first = relayed["questionId"].as_str().unwrap();
    let said = json!({ "answers": [{ "text": "yes" }] });
    assert_eq!(served.answer(&served.only_ask(), &said).status, 200);
    let newer = relay(&served, &token, &json!({ "question": "Second?" }));
    assert_eq!(
        (newer.status, &newer.json()["answered"]),
        (200, &json!([first])),
        "{newer:?}"
    );
    let told: Vec<Value> = (0..3)
        .map(|_| events.next().unwrap().data["data"].clone())
        .collect();
    assert_eq!(told[0]["question"], "First?");
    assert_eq!(
        (&told[1]["questionId"], &told[1]["state"]),
        (&json!(first), &json!("answered"))
    );
    assert_eq!(told[2]["question"], "Second?");
    assert_eq!(
        poll(&served, &token).status,
        202,
        "it is no answer to the newer one"
    );
    let answered = fetched(&served, &token, first);
    assert_eq!(
        (answered.status, &answered.json()["answer"]),
        (200, &json!("yes"))
    );
    // Once it is fetched it is not told again.
    let third = relay(&served, &token, &json!({ "question": "Third?" }));
    assert_eq!(third.json().get("answered"), None, "{third:?}");
}

#[test]
fn of_an_answer_and_a_newer_question_the_first_counts_and_the_other_is_told() {
    let world = World::new();
    let served = Served::start(&world);
    let agent = Living::start();
    let token = agent.token(&world);
    for round in 0..30 {
        let relayed = relay(&served, &token, &json!({ "question": format!("Older {round}?") })).json();
        let older = relayed["questionId"].as_str().unwrap();
        let path = format!("/api/asks/{older}/answer");
        let said = json!({ "answers": [{ "text": "yes" }] });
        // Both wait for the store, so that they meet there.
        let held = hold_database(&world);
        let (said, newer) = std::thread::scope(|scope| {
            let newer =
                scope.spawn(|| relay(&served, &token, &json!({ "question": format!("Newer {round}?") })));
            let said = scope.spawn(|| served.script("POST", &path).json(&said).send());
            drop(held);
            (said.join().unwrap(), newer.join().unwrap())
        });
        assert_eq!(newer.status, 200, "{newer:?}");
        let card = served.script("GET", &format!("/api/asks/{older}")).send().json();
        let fetched = fetched(&served, &token, older);
        if said.status == 200 {
            assert_eq!(card["state"], "answered", "{round}: {card}");
            assert_eq!(newer.json()["answered"], json!([older]), "{newer:?}");
            assert_eq!((fetched.status, &fetched.json()["answer"]), (200, &json!("yes")));
        } else {
            assert_eq!((said.status, &said.json()["state"]), (410, &json!("withdrawn")));
            assert_eq!(card["state"], "withdrawn", "{round}: {card}");
            assert_eq!(newer.json().get("answered"), None, "{newer:?}");
            assert_eq!(
                (fetched.status, &fetched.json()["status"]),
                (410, &json!("withdrawn"))
            );
        }
    }
}

#[test]
fn a_token_that_is_unknown_or_whose_process_is_gone_is_refused() {
    let world = World::new();
    let served = Served::start(&world);
    let agent = Living::start();
    let token = agent.token(&world);
    relay(&served, &token, &colour());
    drop(agent);
    let stranger = uuid::Uuid::new_v4().to_string();
    for token in [token.as_str(), &stranger, "", "../../serve", "a1b2"] {
        assert_eq!(relay(&served, token, &colour()).status, 403, "{token}");
        assert_eq!(poll(&served, token).status, 403, "{token}");
        let path = format!("/claude/stream?streamToken={token}");
        assert_eq!(served.request("GET", &path).send().status, 403, "{token}");
        let body = json!({ "streamToken": token, "answer": "Red" });
        assert_eq!(submit(&served, &body).status, 403, "{token}");
    }
    // What it asked stands: its answer is kept.
    assert_eq!(served.only_ask()["asker"]["alive"], false);
    let nobody = world.run(&["serve", "token", "--pid", "4194304"]);
    assert_eq!(nobody.status.code(), Some(2), "{}", stderr(&nobody));
}

#[test]
fn a_question_that_is_none_is_told_with_its_field() {
    let world = World::new();
    let served = Served::start(&world);
    let agent = Living::start();
    let token = agent.token(&world);
    for (question, field) in [
        (json!({}), "question"),
        (json!({ "question": "" }), "question"),
        (json!({ "question": "?", "options": [{}] }), "options[0].label"),
        (json!({ "question": "?", "multiselect": true }), "multiselect"),
    ] {
        let reply = relay(&served, &token, &question);
        assert_eq!(
            (reply.status, &reply.json()["field"]),
            (422, &json!(field)),
            "{reply:?}"
        );
    }
    let nulls = json!({ "question": "?", "options": null, "multiSelect": null, "csrfToken": "x" });
    assert_eq!(relay(&served, &token, &nulls).status, 200);
    let refused = world.run(&[
        "refuse",
        served.only_ask()["code"].as_str().unwrap(),
        "--reason",
        "later",
    ]);
    assert!(refused.status.success(), "{}", stderr(&refused));
    let gone = poll(&served, &token);
    assert_eq!(
        (gone.status, gone.json()),
        (410, json!({ "status": "refused", "reason": "later" }))
    );
}

/// The agent of a stranger: written from the specification alone, it knows nothing of pml.
const AGENT: &str = r#"
import json, os, time, urllib.request, urllib.error

config = json.load(open(os.environ["ASK_USER_CONFIG"]))

def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(config["apiUrl"] + path, data=data, method=method)
    request.add_header("Content-Type", "application/json")
    if config.get("csrfToken"):
        request.add_header("X-CSRF-Token", config["csrfToken"])
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)

def ask_user(question, options=None, multi_select=False):
    project = config["projectId"]
    status, body = call("POST", f"/claude/relay-question?p={project}", {
        "streamToken": config["streamToken"],
        "question": question,
        "options": options,
        "multiSelect": multi_select,
    })
    if status != 200:
        return {"isError": True, "text": f"relay failed: {status} {body}"}
    deadline = time.time() + config["timeout"]
    while time.time() < deadline:
        status, body = call("GET", f"/claude/poll-answer?p={project}&streamToken={config['streamToken']}")
        if status == 200 and body["status"] == "answered":
            return {"isError": False, "text": "User selected: " + body["answer"], "options": body["selectedOptions"]}
        if status != 202:
            return {"isError": True, "text": f"poll failed: {status} {body}"}
        time.sleep(0.05)
    return {"isError": True, "text": "User did not respond within the timeout period."}

first = ask_user("Which approach should I use?", [
    {"label": "Option A", "description": "Simple but limited"},
    {"label": "Option B", "description": "Complex but flexible"},
])
second = ask_user("Anything else?")
print(json.dumps([first, second]))
"#;

#[test]
fn the_agent_of_a_stranger_asks_and_is_answered() {
    if !have(&["python3"]) {
        return;
    }
    let world = World::new();
    let served = Served::start(&world);
    world.write("agent.py", AGENT);
    // The process that is given the token is the one that asks: it waits for its configuration.
    let script =
        "until [ -e config.json ]; do sleep 0.01; done; ASK_USER_CONFIG=config.json exec python3 agent.py";
    let mut agent = world.program(Path::new("/bin/sh"));
    let agent = agent
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let made = world.run(&["serve", "token", "--json", "--pid", &agent.id().to_string()]);
    let config = json_of(&made);
    assert_eq!(config["apiUrl"], format!("http://127.0.0.1:{}", served.port));
    world.write("config.new", &config.to_string());
    std::fs::rename(world.path("config.new"), world.path("config.json")).unwrap();

    let card = served.only_ask();
    assert_eq!(card["title"], "Which approach should I use?");
    assert_eq!(
        served
            .answer(&card, &json!({ "answers": [{ "labels": ["Option B"] }] }))
            .status,
        200
    );
    let mut events = served.script("GET", "/api/events?since=0").events();
    let second = loop {
        let event = events.next().unwrap();
        if event.data["title"] == "Anything else?" {
            break event.data;
        }
    };
    let code = second["code"].as_str().unwrap();
    // From a terminal, as any other ask.
    assert!(
        world
            .run(&["answer", code, "--text", "no, thanks"])
            .status
            .success()
    );

    let output = agent.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!([
        { "isError": false, "text": "User selected: Option B", "options": [1] },
        { "isError": false, "text": "User selected: no, thanks", "options": [] },
    ]);
    assert_eq!(said, expected);
}
