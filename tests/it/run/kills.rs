//! The host or the agent is killed at random moments while something is asked, and several processes resume at once: an
//! answer reaches the model exactly once, an approved call runs once at most, and no session runs twice at a time.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{Running, Scene, agent_of, agents_in, seldom};
use super::{asked, bash};
use crate::support::messages_api::{MessagesApi, Request, Turn};

/// How often something is killed, unless `PML_KILL_ROUNDS` says otherwise: each round starts the agent twice or more.
const ROUNDS: u64 = 12;

/// The latest moment of a kill after something was asked or answered: the turn is over soon after.
const LATEST_MS: u64 = 250;

/// The latest moment of a kill after a run was resumed: it takes longer to start.
const LATEST_RESUMED_MS: u64 = 1_200;

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Host,
    Agent,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Question,
    Permission,
}

/// From when on the moment is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// The question is written down; it is answered after the kill.
    Asked,
    /// The command that answers is started.
    Answering,
    /// The run was parked and answered, and is resumed.
    Resumed,
}

#[derive(Debug)]
struct Round {
    what: What,
    victim: Victim,
    after: After,
    moment: Duration,
}

impl Round {
    fn new(seed: u64, number: u64) -> Self {
        let mut state = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = |below: u64| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (mixed ^ (mixed >> 31)) % below
        };
        let after = [After::Asked, After::Answering, After::Resumed][usize::try_from(next(3)).unwrap()];
        let latest = match after {
            After::Asked | After::Answering => LATEST_MS,
            After::Resumed => LATEST_RESUMED_MS,
        };
        let what = [What::Question, What::Permission][usize::try_from(next(2)).unwrap()];
        Self {
            what,
            victim: [Victim::Host, Victim::Agent][usize::try_from(next(2)).unwrap()],
            after,
            moment: Duration::from_millis(next(latest)),
        }
    }
}

/// What the model is told to do so that it asks a question, or for a permission.
const ASK: &str = "round ";
/// See [`ASK`].
const RUN: &str = "run ";

/// The model: asks what it is told to ask, unless it has asked that already; makes a call again when it is told to.
fn model(request: &Request) -> Turn {
    let said = request.user_texts();
    let wanted = said
        .iter()
        .rev()
        .find(|text| text.starts_with(ASK) || text.starts_with(RUN));
    let Some(wanted) = wanted else {
        return Turn::text("Ready.");
    };
    if let Some(round) = wanted.strip_prefix(RUN) {
        let mut messages = request.messages().iter().rev();
        let last = messages.find(|message| message["role"] == "user");
        let again = last.is_some_and(|last| last.to_string().contains("make the very same call again"));
        let command = command(round);
        return if again || !request.body()["messages"].to_string().contains(&command) {
            bash(&command)
        } else {
            Turn::text("Noted.")
        };
    }
    let round = wanted.strip_prefix(ASK).unwrap_or_default();
    let question = format!("Round {round}?");
    if request.body()["messages"].to_string().contains(&question) {
        return Turn::text("Noted.");
    }
    Turn::tool(
        "AskUserQuestion",
        json!({ "questions": [asked(&question, "Round", &["yes", "no"])] }),
    )
}

/// A command that leaves a line each time it runs.
fn command(round: &str) -> String {
    format!("echo the command of {round} >> made")
}

/// How often the command of a round ran.
fn ran(scene: &Scene, number: u64) -> usize {
    let made = std::fs::read_to_string(scene.world.path("made")).unwrap_or_default();
    let line = format!("the command of {number}");
    made.lines().filter(|made| *made == line).count()
}

/// How often the model was told an answer, in the conversation as it is now.
fn told(scene: &Scene, answer: &str) -> usize {
    let messages = scene.api.last_messages();
    let blocks = messages.iter().filter(|message| message["role"] != "assistant");
    let blocks = blocks.flat_map(|message| match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        text => vec![text.clone()],
    });
    blocks.filter(|block| block.to_string().contains(answer)).count()
}

/// Has the run ask, and kills the victim of the round; the answer is given in the end.
fn ask_and_kill(scene: &Scene, round: &Round, number: u64, answer: &str) -> Running {
    let id = scene.id();
    let prompt = match round.what {
        What::Question => format!("{ASK}{number}"),
        What::Permission => format!("{RUN}{number}"),
    };
    let mut run = scene.start(&["--resume", &id, "--patience", "0", &prompt]);
    seldom("the run asks, or ends", || scene.is("asking") || run.has_ended());
    if run.has_ended() {
        let ended = run.ended();
        panic!(
            "{number}: {round:?} asked nothing: {:?}, {}{}\n{:#?}",
            ended.code,
            ended.stdout,
            ended.stderr,
            scene.record()
        );
    }
    let code = scene.code();
    scene.wait_until_written();
    let reply = || {
        Running::start(match round.what {
            What::Question => scene.world.command(&["answer", &code, "--text", answer]),
            What::Permission => scene.world.command(&["approve", &code]),
        })
    };
    let replying = match round.after {
        After::Asked => None,
        After::Answering => Some(reply()),
        After::Resumed => {
            run.signal(Signal::TERM);
            run.ended().with(75);
            reply().ended().with(0);
            run = scene.start(&["--resume", &id]);
            None
        }
    };
    std::thread::sleep(round.moment);
    match round.victim {
        Victim::Host if run.has_ended() => {}
        Victim::Host => run.signal(Signal::KILL),
        Victim::Agent => {
            if let Some(agent) = agent_of(&scene.record().id) {
                // It may be gone by now.
                let _ = rustix::process::kill_process(agent, Signal::KILL);
            }
        }
    }
    match (round.after, replying) {
        (After::Asked, _) => drop(reply().ended().with(0)),
        (_, Some(replying)) => drop(replying.ended().with(0)),
        (_, None) => {}
    }
    run
}

#[test]
fn an_answer_reaches_the_model_exactly_once_when_its_host_or_its_agent_is_killed() {
    let seed = match std::env::var("PML_TESTS_SEED") {
        Ok(given) => given.parse().unwrap(),
        Err(_) => uuid::Uuid::new_v4().as_u64_pair().0,
    };
    let rounds = std::env::var("PML_KILL_ROUNDS").map_or(ROUNDS, |given| given.parse().unwrap());
    // Not `eprintln!`, which the test runner captures.
    let _ = writeln!(std::io::stderr(), "run kills: PML_TESTS_SEED={seed}");
    let script = std::iter::repeat_with(|| Turn::respond(model));
    let turns = usize::try_from(rounds).unwrap() * 20;
    let Some(scene) = Scene::with(Arc::new(MessagesApi::start(script.take(turns)))) else {
        return;
    };
    scene.run(&["hello"]).with(0);
    let session = scene.record().session.to_string();
    let (over, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(agents_in(&session).len(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 0..rounds {
                let summary = one_round(&scene, seed, number);
                assert_eq!(most.load(Ordering::Relaxed), 1, "agents at once in {summary}");
            }
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(panicked) = ended {
            std::panic::resume_unwind(panicked);
        }
    });
}

/// Waits until processes of the run have ended; returns their exit codes.
///
/// An approval that was used lets nothing more run: where it is not known whether the call ran, its person is asked again.
fn ended<const COUNT: usize>(scene: &Scene, round: &Round, mut runs: [Running; COUNT]) -> Vec<Option<i32>> {
    let mut have_ended = || runs.iter_mut().all(Running::has_ended);
    while !have_ended() {
        seldom("the run asks, or ends", || scene.is("asking") || have_ended());
        // Nothing waits where the agent is about to be told an answer that is there.
        if let [asked] = &scene.pending()[..] {
            let last = scene.api.last_messages();
            assert_eq!(round.what, What::Permission, "{round:?} asks again: {last:#?}");
            scene.say(&["refuse", asked["code"].as_str().unwrap()]);
        }
    }
    runs.map(|run| run.ended().code).into()
}

/// Kills, resumes by two processes at once until nothing is left to do, and checks what came of it.
fn one_round(scene: &Scene, seed: u64, number: u64) -> String {
    let round = Round::new(seed, number);
    let _ = writeln!(std::io::stderr(), "run kills: {number}: {round:?}");
    let answer = format!("the answer to {number} of {seed}");
    let run = ask_and_kill(scene, &round, number, &answer);
    let mut codes = vec![run.ended().code];
    let id = scene.record().id;
    // What a person would do, and a server beside them: resume what waits for that.
    loop {
        seldom("the agent of the run is gone", || agent_of(&id).is_none());
        // One that was lost with nothing asked has all answers, and waits for more to do.
        let left = scene.record();
        if !matches!(left.state.word(), "parked" | "lost") || left.asks.is_empty() {
            break;
        }
        assert!(codes.len() < 10, "{number}: {round:?}, exits {codes:?}");
        let resume = || scene.start(&["--resume", id.as_str()]);
        codes.extend(ended(scene, &round, [resume(), resume()]));
    }
    let state = scene.record().state;
    if state.word() != "done" {
        // The agent has the answer, and was killed before it could do anything with it.
        codes.extend(ended(
            scene,
            &round,
            [scene.start(&["--resume", id.as_str(), "go on"])],
        ));
    }
    let (times, runs) = (told(scene, &answer), ran(scene, number));
    let summary = format!(
        "PML_TESTS_SEED={seed}, round {number}: {round:?}, exits {codes:?}, {state:?}, told {times} times, ran {runs} times"
    );
    match round.what {
        What::Question => assert_eq!(times, 1, "{summary}: {:#?}", scene.api.last_messages()),
        What::Permission => assert!(runs <= 1, "{summary}: {:#?}", scene.api.last_messages()),
    }
    assert!(scene.pending().is_empty(), "{summary}");
    assert!(scene.record().asks.is_empty(), "{summary}");
    summary
}
