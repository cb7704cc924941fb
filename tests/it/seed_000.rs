//! `ask_user` relayed to the host that started the conversation (`ASK_USER_CONFIG`), by the numbers of its specification.
//!
//! The host here is a stranger that speaks the contract and nothing else. What its provider does is tested elsewhere.
//!
//! | number | is | tested |
//! |---|---|---|
//! | 1, 12, AC-1 | a question is shown within 3 s | here up to the host; on the page: `browser.rs` |
//! | 2, AC-2, AC-3 | an option is chosen, work goes on | here; clicks: `browser.rs`; the provider: `serve.rs` |
//! | 3, AC-2 | free text | here |
//! | 4 | several options | here |
//! | 5, AC-9 | questions one after the other | here, also those of one call and of two calls at once |
//! | 6, AC-5 | the rest is unchanged | here for every other tool; the stream of an agent: `run/overhead.rs`, measured by hand (docs/BENCHMARKS.md) |
//! | 7, AC-4 | nobody answers in time | here |
//! | 8 | the browser leaves | here: the host goes away, and the wait still ends; the page of a run: `run_page/` |
//! | 9 | 403 | here; that the provider says it: `serve.rs` |
//! | 10 | the tool cannot work | here: a bad file fails `ask_user` and nothing else; a client goes on without pml by itself |
//! | 11, AC-6 | switched off | here for the tools; the agent of a run: `run/questions.rs` |
//! | 13 | an answer arrives within 2 s | here: at most one interval of polls, which is 2 s, and a round trip |
//! | 14 | throughput of the stream | `run/overhead.rs`: 0.82 of the direct time (docs/BENCHMARKS.md) |
//! | AC-7 | no setup for users | `run/question_host.rs`: a run writes the file, private, and takes it away |
//! | AC-8 | the card collapses after its answer | belongs to the page: `browser.rs` |
//! | AC-10 | per project | here |

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::web::{Answer, Request, Web};
use crate::support::world::{Client, World, json_of, texts};
use crate::support::{DEADLINE, eventually};

const TOKEN: &str = "a1b2c3d4-e5f6-7890-abcd-ef1234567890";
const NO_ANSWER: &str = "Nobody refused. Do not assume an answer.";

/// A host as the contract describes it: one question and one answer a token, each handed out once.
struct Host {
    web: Web,
    state: Arc<Mutex<HostState>>,
}

#[derive(Default)]
struct HostState {
    /// Every question that came, and when.
    questions: Vec<(Value, Instant)>,
    answer: Option<Value>,
    polls: Vec<Instant>,
}

impl Host {
    fn start() -> Self {
        Self::but(|_request| None)
    }

    /// A host that answers some requests in its own way.
    fn but(special: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let state = Arc::<Mutex<HostState>>::default();
        let kept = Arc::clone(&state);
        let web = Web::start(move |request| {
            special(request).unwrap_or_else(|| kept.lock().unwrap().answer(request))
        });
        Self { web, state }
    }

    /// Writes the file of a conversation and lets the world know of it.
    fn invite(&self, world: &World) -> PathBuf {
        self.invite_with(world, "timeout", &json!(300))
    }

    fn invite_with(&self, world: &World, field: &str, value: &Value) -> PathBuf {
        let mut file = json!({
            "apiUrl": self.web.url(""), "streamToken": TOKEN, "userId": 1, "projectId": 5,
            "csrfToken": "forgery-abc123", "timeout": 300,
        });
        file[field] = value.clone();
        invite(world, &file.to_string())
    }

    fn questions(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        state
            .questions
            .iter()
            .map(|(question, _)| question.clone())
            .collect()
    }

    fn polls(&self) -> Vec<Instant> {
        self.state.lock().unwrap().polls.clone()
    }

    /// Waits until the host has been given this many questions, and returns the last of them.
    fn question(&self, number: usize) -> Value {
        eventually("the host gets the question", DEADLINE, || {
            self.questions().len() >= number
        });
        self.questions()[number - 1].clone()
    }

    /// Waits for a poll from now on.
    fn polled(&self) {
        let before = self.polls().len();
        eventually("the host is polled", DEADLINE, || self.polls().len() > before);
    }

    /// A person submits an answer at the host.
    fn submit(&self, answer: &str, selected: &Value) {
        let answer = json!({ "status": "answered", "answer": answer, "selectedOptions": selected });
        self.state.lock().unwrap().answer = Some(answer);
    }
}

impl HostState {
    fn answer(&mut self, request: &Request) -> Answer {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let json = |status, body: Value| {
            Answer::Whole(
                status,
                vec![("content-type", "application/json".to_owned())],
                body.to_string(),
            )
        };
        match (request.method.as_str(), path) {
            ("POST", "/claude/relay-question") if query == "p=5" && request.body["streamToken"] == TOKEN => {
                self.questions.push((request.body.clone(), Instant::now()));
                json(200, json!({}))
            }
            ("GET", "/claude/poll-answer") if query == format!("p=5&streamToken={TOKEN}") => {
                self.polls.push(Instant::now());
                match self.answer.take() {
                    Some(answer) => json(200, answer),
                    None => json(202, json!({ "status": "waiting" })),
                }
            }
            _ => json(403, json!({ "error": TOKEN })),
        }
    }
}

/// Writes a file as a host does and names it in the environment.
fn invite(world: &World, text: &str) -> PathBuf {
    let path = world.home().join("ask-user.json");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    world.set("ASK_USER_CONFIG", path.to_str().unwrap());
    path
}

fn which() -> Value {
    json!({
        "question": "Which approach should I use?",
        "options": [{ "label": "Option A", "description": "Simple" }, { "label": "Option B" }],
    })
}

fn several() -> Value {
    let mut question = which();
    question["multiSelect"] = json!(true);
    question
}

fn ask(client: &mut Client, arguments: &Value) -> u64 {
    client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": arguments }),
    )
}

fn result(client: &mut Client, id: u64) -> Value {
    let answer = client.answer(id);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// Asks one question, lets a person submit an answer and returns the result.
fn answered(arguments: &Value, answer: &str, selected: &Value) -> Value {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    let id = ask(&mut client, arguments);
    host.question(1);
    host.submit(answer, selected);
    result(&mut client, id)
}

fn assert_failed(result: &Value, says: &str) {
    assert_eq!(result["isError"], true, "{result}");
    let texts = texts(result);
    assert!(texts[0].contains(says), "{result}");
    assert_eq!(texts[1], NO_ANSWER);
    assert!(!result.to_string().contains(TOKEN), "{result}");
}

#[test]
fn test_01_a_question_appears_at_the_host_within_three_seconds() {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    // What stays on this machine goes through no proxy.
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        world.set(name, "http://127.0.0.1:9");
    }
    let mut client = world.legacy();
    let begin = Instant::now();
    let id = ask(&mut client, &which());
    let question = host.question(1);
    let took = host.state.lock().unwrap().questions[0].1 - begin;
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(
        question,
        json!({
            "streamToken": TOKEN,
            "question": "Which approach should I use?",
            "options": [{ "label": "Option A", "description": "Simple" }, { "label": "Option B" }],
            "multiSelect": false,
        })
    );
    let request = host.web.asked()[0].clone();
    assert_eq!(request.header("x-csrf-token"), Some("forgery-abc123"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    // The host owns the question: it is not also asked here.
    assert_eq!(json_of(&world.run(&["pending", "--json"]))["pending"], json!([]));
    host.submit("Option A", &json!([0]));
    assert_eq!(texts(&result(&mut client, id)), ["User selected: Option A"]);
    assert_eq!(json_of(&world.run(&["log", "--json"]))["workflows"], json!([]));
}

#[test]
fn test_02_a_chosen_option_reaches_the_model_and_work_goes_on() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    let id = ask(&mut client, &which());
    host.question(1);
    host.submit("Option B", &json!([1]));
    let told = result(&mut client, id);
    let expected = json!({
        "content": [{ "type": "text", "text": "User selected: Option B" }],
        "structuredContent": {
            "status": "answered",
            "message": "User selected: Option B",
            "answers": { "Which approach should I use?": ["Option B"] },
            "by": "relay",
        },
    });
    assert_eq!(told, expected);
    assert_ne!(
        client.call("fake__echo", &json!({ "text": "on" }))["isError"],
        true
    );
}

#[test]
fn test_03_free_text_reaches_the_model() {
    let free = json!({ "question": "What should it be called?" });
    let told = answered(&free, "call it \"pml\"\nplease", &json!([]));
    assert_eq!(texts(&told), ["User answered: call it \"pml\"\nplease"]);
    let told = answered(&which(), "neither", &Value::Null);
    assert_eq!(texts(&told), ["User answered: neither"]);
}

#[test]
fn test_04_every_chosen_option_reaches_the_model() {
    let told = answered(&several(), "Option A, Option B", &json!([0, 1]));
    assert_eq!(texts(&told), ["User selected: Option A, Option B"]);
    assert_eq!(
        told["structuredContent"]["answers"],
        json!({ "Which approach should I use?": ["Option A", "Option B"] })
    );
}

#[test]
fn test_05_questions_one_after_the_other_have_their_own_answers() {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    for (number, option) in [(1, "Option A"), (2, "Option B")] {
        let id = ask(&mut client, &which());
        host.question(number);
        host.submit(option, &json!([number - 1]));
        assert_eq!(
            texts(&result(&mut client, id)),
            [format!("User selected: {option}")]
        );
    }
}

#[test]
fn test_05_the_questions_of_one_call_are_shown_one_after_the_other() {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    let options = json!([{ "label": "A", "description": "a" }, { "label": "B", "description": "b" }]);
    let question =
        |text: &str| json!({ "question": text, "header": "One", "multiSelect": false, "options": options });
    let arguments = json!({ "questions": [question("First?"), question("Second?")] });
    let call = json!({ "name": "ask_user_questions", "arguments": arguments });
    let id = client.send("tools/call", &call);
    assert_eq!(host.question(1)["question"], "First?");
    host.submit("A", &json!([0]));
    assert_eq!(host.question(2)["question"], "Second?");
    host.submit("neither", &json!([]));
    let told = result(&mut client, id);
    let text = "First?\nUser selected: A\n\nSecond?\nUser answered: neither";
    assert_eq!(texts(&told), [text]);
    assert_eq!(
        told["structuredContent"]["answers"],
        json!({ "First?": ["A"], "Second?": ["neither"] })
    );
    // One that fails after another was answered keeps that answer.
    let id = client.send("tools/call", &call);
    host.question(3);
    host.submit("B", &json!([1]));
    host.question(4);
    host.submit("A", &json!([7]));
    let told = result(&mut client, id);
    assert_failed(
        &told,
        "`selectedOptions` names an option that the question does not have",
    );
    assert_eq!(
        texts(&told)[2],
        "Answered before that:\n\nFirst?\nUser selected: B"
    );
}

#[test]
fn test_05_two_calls_at_once_take_turns_at_the_host() {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    let first = ask(&mut client, &json!({ "question": "First?" }));
    host.question(1);
    let second = ask(&mut client, &json!({ "question": "Second?" }));
    host.polled();
    assert_eq!(
        host.questions().len(),
        1,
        "the second would take the place of the first"
    );
    host.submit("one", &json!([]));
    assert_eq!(texts(&result(&mut client, first)), ["User answered: one"]);
    assert_eq!(host.question(2)["question"], "Second?");
    host.submit("two", &json!([]));
    assert_eq!(texts(&result(&mut client, second)), ["User answered: two"]);
}

#[test]
fn test_06_every_other_tool_behaves_as_without_a_host() {
    let behaviour = |world: &World| {
        let mut client = world.legacy();
        let tools = client.request("tools/list", &json!({}))["result"].clone();
        let echo = client.call("fake__echo", &json!({ "text": "x" }));
        let refused = client.call("fake__add", &json!({}));
        let status = client.call("pml_status", &json!({}))["structuredContent"].to_string();
        let status = status.replace(world.home().to_str().unwrap(), "HOME");
        let environment = client.call("fake__environment", &json!({})).to_string();
        assert!(
            environment.contains("PATH") && !environment.contains("ASK_USER_CONFIG"),
            "{environment}"
        );
        (tools, echo, refused["isError"].clone(), status)
    };
    let rules = json!({ "allow": ["fake:echo", "fake:environment"], "deny": ["fake:add"] });
    let without = behaviour(&World::with_fake(&rules, &[]));
    let world = World::with_fake(&rules, &[]);
    let host = Host::start();
    host.invite(&world);
    assert_eq!(behaviour(&world), without);
    assert_eq!(host.web.asked(), [], "a host is spoken to for questions only");
}

#[test]
fn test_07_a_question_that_nobody_answers_is_a_graceful_error() {
    let world = World::new();
    let host = Host::start();
    host.invite_with(&world, "timeout", &json!(900));
    // The shorter of the two times counts.
    let user = world.home().join(".config/pml");
    std::fs::create_dir_all(&user).unwrap();
    let file = json!({ "askUser": { "timeoutSeconds": 30 } });
    std::fs::write(user.join("pml.json"), file.to_string()).unwrap();
    let mut client = world.legacy();
    let begin = Instant::now();
    let id = ask(&mut client, &which());
    let told = result(&mut client, id);
    let took = begin.elapsed();
    assert!((29..40).contains(&took.as_secs()), "{took:?}");
    let said = "User did not respond within the timeout period.";
    let expected = json!({
        "content": [{ "type": "text", "text": said }, { "type": "text", "text": NO_ANSWER }],
        "structuredContent": { "status": "timed_out", "message": said, "instructions": NO_ANSWER },
        "isError": true,
    });
    assert_eq!(told, expected);
    let polls = host.polls();
    assert!((12..=16).contains(&polls.len()), "{} polls in 30 s", polls.len());
    assert!(
        polls
            .windows(2)
            .all(|pair| pair[1] - pair[0] > Duration::from_millis(1500))
    );
}

#[test]
fn test_08_a_host_that_goes_away_ends_in_the_timeout() {
    let gone = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&gone);
    let world = World::new();
    let host = Host::but(move |request| {
        if request.method == "POST" {
            return None;
        }
        let mut counted = counted.lock().unwrap();
        *counted += 1;
        // Closed connections and the trouble of a restart are both passing.
        Some(if *counted % 2 == 0 {
            Answer::Gone
        } else {
            Answer::status(503)
        })
    });
    host.invite_with(&world, "timeout", &json!(30));
    let mut client = world.legacy();
    let id = ask(&mut client, &which());
    let told = result(&mut client, id);
    assert_failed(&told, "User did not respond within the timeout period.");
    let tried = *gone.lock().unwrap();
    assert!(tried >= 10, "it was polled again after each failure: {tried}");
}

#[test]
fn test_08_a_poll_that_fails_in_between_costs_nothing() {
    let failures = Arc::new(Mutex::new(vec![Answer::Gone, Answer::status(502)]));
    let world = World::new();
    let host = Host::but(move |request| match request.method.as_str() {
        "GET" => failures.lock().unwrap().pop(),
        _ => None,
    });
    host.invite(&world);
    let mut client = world.legacy();
    let id = ask(&mut client, &which());
    host.question(1);
    host.submit("Option A", &json!([0]));
    assert_eq!(texts(&result(&mut client, id)), ["User selected: Option A"]);
}

#[test]
fn test_09_a_token_that_the_host_does_not_know_fails_at_once() {
    let world = World::new();
    let host = Host::start();
    host.invite_with(
        &world,
        "streamToken",
        &json!("00000000-0000-4000-8000-000000000000"),
    );
    let mut client = world.legacy();
    let begin = Instant::now();
    let told = client.call("ask_user", &which());
    assert_failed(&told, "refused (403)");
    assert_eq!(told["structuredContent"]["status"], "failed");
    assert!(begin.elapsed() < Duration::from_secs(2));
    // A conversation may also end while a question waits.
    let world = World::new();
    let host = Host::but(|request| (request.method == "GET").then(|| Answer::status(403)));
    host.invite(&world);
    assert_failed(&world.legacy().call("ask_user", &which()), "refused (403)");
}

#[test]
fn test_09_a_host_that_does_not_listen_fails_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let world = World::new();
    let host = Host::start();
    host.invite_with(&world, "apiUrl", &json!(format!("http://{address}")));
    let begin = Instant::now();
    let told = world.legacy().call("ask_user", &which());
    assert_failed(
        &told,
        &format!("cannot be reached at http://{address}: Connection refused"),
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn test_10_a_bad_file_fails_the_question_and_nothing_else() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    let host = Host::start();
    let path = host.invite(&world);
    let mut client = world.legacy();
    let named = path.display().to_string();
    for (text, says) in [
        ("not json".to_owned(), "not JSON"),
        ("{}".to_owned(), "`apiUrl` is missing"),
        (
            format!(r#"{{"apiUrl":"http://localhost","streamToken":"{TOKEN}x"}}"#),
            "`streamToken` must be a UUID",
        ),
        (
            format!(r#"{{"apiUrl":"http://192.0.2.1","streamToken":"{TOKEN}","userId":1,"projectId":5}}"#),
            "`apiUrl` leads to an address that is not of this machine",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let told = client.call("ask_user", &which());
        assert_failed(&told, says);
        assert_failed(&told, &named);
        assert_ne!(
            client.call("fake__echo", &json!({ "text": "x" }))["isError"],
            true
        );
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let told = client.call("ask_user", &which());
    assert_failed(&told, "every user may write it (mode 666");
    assert_eq!(texts(&told)[2], format!("hint: chmod 600 {named}"));
    std::fs::remove_file(&path).unwrap();
    assert_failed(&client.call("ask_user", &which()), "is missing");
    assert_eq!(host.web.asked(), [], "nothing was sent");
    // Nor is it asked here instead.
    assert_eq!(json_of(&world.run(&["pending", "--json"]))["pending"], json!([]));
    // A file that is mended counts from the next question on.
    host.invite(&world);
    let id = ask(&mut client, &which());
    host.question(1);
    host.submit("", &json!([0]));
    assert_eq!(texts(&result(&mut client, id)), ["User selected: Option A"]);
}

#[test]
fn test_11_switched_off_nothing_is_listed_nothing_is_sent() {
    let world = World::new();
    world.configure(&json!({ "askUser": { "enabled": false } }));
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    let tools = client.tools();
    assert!(
        !tools.iter().any(|tool| tool.starts_with("ask_user")),
        "{tools:?}"
    );
    assert_eq!(client.call("ask_user", &which())["isError"], true);
    assert_eq!(host.web.asked(), []);
    // Switched off while a question waits: polling ends.
    world.configure(&json!({}));
    let id = ask(&mut client, &which());
    host.question(1);
    world.configure(&json!({ "askUser": { "enabled": false } }));
    assert_failed(&result(&mut client, id), "`askUser.enabled` was set to false");
    assert!(host.polls().len() <= 1);
}

#[test]
fn test_12_every_question_of_ten_appears_within_three_seconds() {
    let world = World::new();
    let host = Host::but(|request| {
        let body = json!({ "status": "answered", "answer": "yes" }).to_string();
        (request.method == "GET").then(|| Answer::Whole(200, Vec::new(), body))
    });
    host.invite(&world);
    let mut clients: Vec<Client> = (0..10).map(|_| world.legacy()).collect();
    let begin = Instant::now();
    let ids: Vec<u64> = clients.iter_mut().map(|client| ask(client, &which())).collect();
    host.question(10);
    let last = host.state.lock().unwrap().questions[9].1 - begin;
    assert!(last < Duration::from_secs(3), "{last:?}");
    for (client, id) in clients.iter_mut().zip(ids) {
        assert_eq!(texts(&result(client, id)), ["User answered: yes"]);
    }
}

#[test]
fn test_13_an_answer_reaches_the_model_within_one_interval_of_polls() {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    let id = ask(&mut client, &which());
    host.question(1);
    // The worst moment: right after a poll, which just missed it.
    host.polled();
    host.submit("Option A", &json!([0]));
    let submitted = Instant::now();
    assert_eq!(texts(&result(&mut client, id)), ["User selected: Option A"]);
    let arrived = Instant::now();
    let polled = *host.polls().last().unwrap();
    // Two seconds by the contract, to which a busy machine adds; the way from that poll to the model is short.
    assert!(
        polled - submitted < Duration::from_millis(2500),
        "{:?}",
        polled - submitted
    );
    assert!(
        arrived - polled < Duration::from_millis(500),
        "{:?}",
        arrived - polled
    );
}

#[test]
fn ac_10_each_project_switches_the_relay_on_or_off_for_itself() {
    let world = World::new();
    let user = world.home().join(".config/pml");
    std::fs::create_dir_all(&user).unwrap();
    let off = json!({ "askUser": { "enabled": false } });
    std::fs::write(user.join("pml.json"), off.to_string()).unwrap();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    assert!(
        !client.tools().iter().any(|tool| tool == "ask_user"),
        "off by the user's file"
    );
    world.configure(&json!({ "askUser": { "enabled": true } }));
    assert!(
        client.tools().iter().any(|tool| tool == "ask_user"),
        "on by the project's"
    );
    let id = ask(&mut client, &which());
    host.question(1);
    host.submit("Option A", &json!([0]));
    assert_eq!(texts(&result(&mut client, id)), ["User selected: Option A"]);
}

#[test]
fn a_client_with_dialogs_shows_none_and_sees_that_the_call_lives() {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.client();
    client.initialize_with_forms();
    let call = json!({ "name": "ask_user", "arguments": which(), "_meta": { "progressToken": "p" } });
    let id = client.send("tools/call", &call);
    let progress = client.notified("notifications/progress");
    assert_eq!(
        progress["params"]["message"],
        "waiting for a person, where this conversation was started"
    );
    host.question(1);
    host.submit("Option A", &json!([0]));
    assert_eq!(texts(&result(&mut client, id)), ["User selected: Option A"]);
    let dialogs = client
        .aside
        .iter()
        .filter(|message| message["method"] == "elicitation/create");
    assert_eq!(dialogs.count(), 0);
}

#[test]
fn a_cancelled_question_polls_no_more_and_its_late_answer_is_nobody_elses() {
    let world = World::new();
    let host = Host::start();
    host.invite(&world);
    let mut client = world.legacy();
    let first = ask(&mut client, &json!({ "question": "First?" }));
    host.question(1);
    host.polled();
    client.notify("notifications/cancelled", &json!({ "requestId": first }));
    host.submit("to the first", &json!([]));
    let begin = Instant::now();
    let second = ask(&mut client, &json!({ "question": "Second?" }));
    assert_eq!(host.question(2)["question"], "Second?");
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "the first gave its turn up at once"
    );
    let relayed = host.state.lock().unwrap().questions[1].1;
    host.polled();
    host.polled();
    host.submit("to the second", &json!([]));
    assert_eq!(
        texts(&result(&mut client, second)),
        ["User answered: to the second"]
    );
    // Polls of the first would stand between those of the second.
    let mut since = vec![relayed];
    since.extend(host.polls().into_iter().filter(|poll| *poll > relayed));
    assert!(
        since
            .windows(2)
            .all(|pair| pair[1] - pair[0] > Duration::from_millis(1500)),
        "{since:?}"
    );
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = Host::start();
    let url = elsewhere.web.url("");
    for method in ["POST", "GET"] {
        let target = url.clone();
        let world = World::new();
        let host = Host::but(move |request| {
            let location = format!("{target}{}", request.path);
            (request.method == method).then(|| Answer::status(307).with("location", location))
        });
        host.invite(&world);
        let told = world.legacy().call("ask_user", &which());
        assert_failed(
            &told,
            "answered with a redirect (307 Temporary Redirect), which is not followed",
        );
    }
    assert_eq!(elsewhere.web.asked(), []);
}

#[test]
fn what_is_no_answer_of_the_contract_is_an_error_without_the_words_of_the_host() {
    let whole = |body: &str| Answer::Whole(200, Vec::new(), body.to_owned());
    let huge = format!(r#"{{"status":"answered","answer":"{}"}}"#, "x".repeat(300_000));
    for (method, answer, says) in [
        (
            "GET",
            whole("<html>words-of-the-host"),
            "it is not one JSON object",
        ),
        (
            "GET",
            whole(r#"{"status":"words-of-the-host"}"#),
            "its `status` is neither",
        ),
        ("GET", whole(r#"{"status":"answered"}"#), "`answer` is empty"),
        ("GET", whole(&huge), "more than 262144 bytes"),
        ("GET", Answer::Endless(200), "more than 262144 bytes"),
        ("POST", Answer::Endless(200), "more than 262144 bytes"),
        ("GET", Answer::status(404), "answered 404 Not Found"),
        ("POST", Answer::status(422), "answered 422 Unprocessable Entity"),
        ("POST", Answer::status(500), "answered 500 Internal Server Error"),
    ] {
        let world = World::new();
        let host = Host::but(move |request| (request.method == method).then(|| answer.clone()));
        host.invite(&world);
        let told = world.legacy().call("ask_user", &which());
        assert_failed(&told, says);
        assert!(!told.to_string().contains("words-of-the-host"), "{told}");
    }
}

#[test]
fn a_host_that_does_not_answer_the_relay_is_given_up() {
    let world = World::new();
    // The head comes, the body never ends.
    let host = Host::but(|request| (request.method == "POST").then(|| Answer::Open(String::new())));
    host.invite(&world);
    let mut client = world.legacy();
    let begin = Instant::now();
    let id = ask(&mut client, &which());
    assert!(!client.tools().is_empty(), "other requests do not wait for it");
    assert_failed(&result(&mut client, id), "operation timed out");
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_poll_that_hangs_is_given_up_and_the_next_brings_the_answer() {
    let hanging = Arc::new(Mutex::new(vec![Answer::Open(String::new())]));
    let world = World::new();
    let host = Host::but(move |request| match request.method.as_str() {
        "GET" => hanging.lock().unwrap().pop(),
        _ => None,
    });
    host.invite(&world);
    let mut client = world.legacy();
    let id = ask(&mut client, &which());
    host.question(1);
    host.submit("Option A", &json!([0]));
    assert_eq!(texts(&result(&mut client, id)), ["User selected: Option A"]);
}

#[test]
fn no_log_holds_the_token() {
    let world = World::new();
    let host = Host::but(|request| (request.method == "GET").then(|| Answer::status(500)));
    host.invite(&world);
    let log = world.home().join("log");
    let script = format!(
        "exec {} stdio 2>{}",
        crate::support::pml().display(),
        log.display()
    );
    let mut command = world.program(std::path::Path::new("/bin/sh"));
    command.args(["-c", &script]).env("PML_LOG", "trace");
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    ask(&mut client, &which());
    let read = || std::fs::read_to_string(&log).unwrap();
    eventually("a failed poll is logged", DEADLINE, || {
        read().contains("a poll for an answer failed")
    });
    client.close();
    for secret in [TOKEN, "forgery-abc123"] {
        assert!(!read().contains(secret), "{}", read());
    }
}
