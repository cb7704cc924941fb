//! `ask_user` with a `channel` that cannot be reached: its agent is told so at once, in words of their own, and nothing
//! waits for an answer that cannot come.

mod services;
mod settings;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{standing, stands, write_user_file};
use crate::serve::Served;
use crate::support::fake_telegram::FakeTelegram;
use crate::support::world::{Client, World, json_of, state, stderr, texts};
use crate::support::{DEADLINE, eventually};

/// How many times as long as another refusal of the same conversation such an error may take. Both read files and the
/// store; neither waits for a service or a person, which is what would take thousands of times as long.
const RATIO: u32 = 25;

/// How often both are measured; the fastest counts, as other processes slow some down.
const ROUNDS: u32 = 5;

/// What runs beside the agent, and how it stands when the agent asks.
#[derive(Clone, Copy)]
enum Beside {
    /// No `pml serve`.
    Nothing,
    /// A `pml serve` that holds the channel, or tries to.
    Holds,
    /// A `pml serve` that says that the channel failed.
    Failed,
}

/// Whether there is anything to withdraw.
#[derive(Clone, Copy)]
enum Leaves {
    /// The ask was never made.
    Nothing,
    /// The ask was made, and is withdrawn.
    Withdrawn,
}

/// A way in which a channel is not reached.
struct Case {
    /// What `channel` is.
    channel: Value,
    /// `channels` of the user's file.
    channels: Value,
    /// What else stands in the environment.
    variables: Vec<(&'static str, String)>,
    question: String,
    beside: Beside,
    leaves: Leaves,
    /// What the agent is told.
    told: &'static str,
    /// What it is told to do about it.
    hint: &'static str,
    /// What the project's file has beside the usual.
    project: Value,
}

/// A case without a service.
fn case(channel: impl Into<Value>, channels: Value, told: &'static str, hint: &'static str) -> Case {
    Case {
        channel: channel.into(),
        channels,
        variables: Vec::new(),
        question: "Which colour?".to_owned(),
        beside: Beside::Nothing,
        leaves: Leaves::Nothing,
        told,
        hint,
        project: json!({}),
    }
}

impl Case {
    fn beside(mut self, beside: Beside, leaves: Leaves) -> Self {
        self.beside = beside;
        self.leaves = leaves;
        self
    }

    fn asking(mut self, question: String) -> Self {
        self.question = question;
        self
    }

    fn with(mut self, variables: &[(&'static str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        self.variables.extend(variables);
        self
    }

    fn project(mut self, members: Value) -> Self {
        self.project = members;
        self
    }
}

/// The settings of a Telegram.
fn telegram_at(address: &str, people: &Value) -> Value {
    json!({ "token": "${TELEGRAM_TOKEN}", "people": people, "apiUrl": address })
}

fn whatsapp_at(address: &str) -> Value {
    json!({
        "token": "${WA_TOKEN}", "phoneNumberId": "105500", "appSecret": "${WA_TOKEN}", "verifyToken": "${WA_TOKEN}",
        "people": ["41790000000"], "apiUrl": address,
    })
}

const SEE: &str = "hint: the person sees how it stands by: pml channels";
const LEAVE_OUT: &str = "hint: leave `channel` out to ask where the person is asked otherwise";

/// How every ask of a world stands, as its database keeps it.
fn asks(world: &World) -> Vec<String> {
    let file = state(world).join("workflows.db");
    if !file.exists() {
        return Vec::new();
    }
    let store = rusqlite::Connection::open(file).unwrap();
    let mut states = store.prepare("SELECT state FROM workflow").unwrap();
    let states = states.query_map([], |row| row.get::<_, String>(0)).unwrap();
    states.map(Result::unwrap).collect()
}

/// Asks, and returns what the agent was told.
fn told(case: &Case) -> String {
    let world = World::new();
    for (name, value) in &case.variables {
        world.set(name, value);
    }
    let mut settings = json!({ "askUser": { "mode": "blocking", "timeoutSeconds": 600 } });
    let members = case.project.as_object().unwrap().clone();
    settings.as_object_mut().unwrap().extend(members);
    write_user_file(&world, &json!({ "channels": case.channels }).to_string());
    world.configure(&settings);
    let _served = match case.beside {
        Beside::Nothing => None,
        Beside::Holds | Beside::Failed => Some(Served::start(&world)),
    };
    let channel = case.channel.as_str().unwrap_or_default();
    match case.beside {
        Beside::Nothing => {}
        Beside::Holds => eventually(&format!("{channel} is held"), DEADLINE, || {
            !standing(&world, channel)["state"].is_null()
        }),
        Beside::Failed => stands(&world, channel, "failed"),
    }
    let mut client = world.legacy();
    let asking = json!({ "question": case.question, "channel": case.channel });
    let result = client.call("ask_user", &asking);
    let place = format!("{}: {result}", case.told);
    if let Leaves::Nothing = case.leaves {
        assert_at_once(&mut client, &asking, &place);
    }
    assert_eq!(result["isError"], true, "{place}");
    let told = texts(&result);
    // What is wrong with a file begins with its path, and some reasons end with a number.
    let said = told[0].to_owned();
    assert!(said.contains(case.told), "{said}\nrather than\n{}", case.told);
    if !case.hint.is_empty() {
        assert_eq!(told.get(1), Some(&case.hint), "{place}");
    }
    assert!(!result.to_string().contains("canary"), "{place}");
    // No person was waited for: what was asked is withdrawn, and nothing is left to be answered.
    let left = asks(&world);
    match case.leaves {
        Leaves::Nothing => assert_eq!(left, Vec::<String>::new(), "{place}"),
        Leaves::Withdrawn => {
            assert_eq!(left.len(), 1, "{place}");
            assert!(left[0].contains("withdrawn"), "{place}: {left:?}");
        }
    }
    let pending = world.run(&["pending", "--json"]);
    if pending.status.success() {
        assert_eq!(json_of(&pending)["pending"], json!([]), "{place}");
    } else {
        // Nothing is read where the settings are wrong.
        assert!(
            stderr(&pending).contains("channels") || stderr(&pending).contains("route"),
            "{place}"
        );
    }
    said
}

/// Checks that an error comes as fast as one that has nothing to do with channels.
fn assert_at_once(client: &mut Client, asking: &Value, place: &str) {
    let other = json!({ "continue_workflow": { "workflow_id": uuid::Uuid::new_v4() } });
    let mut took = |arguments: &Value| {
        let begin = Instant::now();
        let result = client.call("ask_user", arguments);
        assert_eq!(result["isError"], true, "{place}: {result}");
        begin.elapsed()
    };
    let measured = (0..ROUNDS).map(|_| (took(&other), took(asking)));
    let (others, errors): (Vec<Duration>, Vec<Duration>) = measured.unzip();
    let (other, error) = (others.iter().min().unwrap(), errors.iter().min().unwrap());
    assert!(
        *error < *other * RATIO,
        "{error:?} is not in the class of {other:?}: {place}"
    );
}

/// Checks cases, a few at a time: each of them is three processes.
fn check(cases: &[Case]) {
    let mut messages = BTreeSet::new();
    for some in cases.chunks(3) {
        let told: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|case| scope.spawn(move || told(case))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        messages.extend(told);
    }
    // Each in words of its own.
    assert_eq!(messages.len(), cases.len(), "{messages:#?}");
}

#[test]
fn what_is_wrong_with_the_settings_is_told_at_once_and_nothing_waits() {
    let mut cases = settings::of_files();
    cases.extend(settings::of_opening());
    check(&cases);
}

#[test]
fn what_a_service_says_is_told_at_once_and_nothing_waits() {
    let mut cases = services::refusals();
    cases.extend(services::of_telegram());
    cases.extend(services::of_others());
    check(&cases);
}

#[test]
fn a_pml_serve_that_was_killed_holds_no_channel() {
    let telegram = FakeTelegram::start();
    let world = super::world_on(&telegram);
    let mut served = Served::start(&world);
    stands(&world, "telegram", "connected");
    served.end(Signal::KILL);
    let mut client = world.legacy();
    let result = client.call("ask_user", &json!({ "question": "Why?", "channel": "telegram" }));
    assert_eq!(result["isError"], true);
    assert!(texts(&result)[0].starts_with("`telegram` is not connected: `pml serve` does not run"));
    assert_eq!(asks(&world), Vec::<String>::new());
    assert_eq!(telegram.requests("sendMessage"), Vec::<Value>::new());
}

#[test]
fn a_channel_that_cannot_be_used_is_refused_before_any_service_is_spoken_to() {
    let telegram = FakeTelegram::start();
    let world = super::world_on(&telegram);
    let _served = Served::start(&world);
    stands(&world, "telegram", "connected");
    let mut client = world.legacy();
    for (channel, told) in [
        ("irc", "`irc` is no channel"),
        ("slack", "`slack` is not configured; there is `telegram`"),
    ] {
        let asking = json!({ "question": "Why?", "channel": channel });
        let result = client.call("ask_user", &asking);
        assert!(texts(&result)[0].starts_with(told), "{result}");
        assert_at_once(&mut client, &asking, told);
    }
    assert_eq!(asks(&world), Vec::<String>::new());
    let spoken: BTreeSet<String> = telegram.methods().into_iter().collect();
    // What a channel does that no agent asks on.
    assert_eq!(spoken, ["getMe", "getUpdates"].map(str::to_owned).into());
}
