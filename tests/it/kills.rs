//! SIGKILL at a random moment with calls in flight, of pml, of its server or of its client: nothing is left behind.
//!
//! A round is made of its number and the seed alone; `PML_TESTS_SEED` repeats a run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::world::World;
use crate::support::{DEADLINE, MARK, eventually, mark, marked, pml};

/// Rounds in all.
const ROUNDS: u64 = 200;

/// Rounds at a time: starting processes is most of a round, and waits for the disk as much as for a processor.
const THREADS: u64 = 4;

/// How long a descendant may live on: what the issue of these tests grants.
const GRACE: Duration = Duration::from_secs(2);

/// The latest moment of a kill: by then every call is in flight, also on a busy machine.
const LATEST_MS: u64 = 250;

/// What a client says once its pml answered.
const ALIVE: &str = "alive";

/// Who is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Pml,
    Server,
    Client,
}

/// What a round does; its seed decides.
#[derive(Debug)]
struct Round {
    victim: Victim,
    moment: Duration,
    /// The server ignores polite ends and has a descendant that left its session.
    stubborn: bool,
    calls: u64,
}

impl Round {
    fn new(seed: u64, number: u64) -> Self {
        let mut state = seed.wrapping_add(number);
        let mut next = |below: u64| {
            // SplitMix64: a few lines, and good enough to choose moments.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (mixed ^ (mixed >> 31)) % below
        };
        let victim = [Victim::Pml, Victim::Server, Victim::Client][usize::try_from(next(3)).unwrap()];
        Self {
            victim,
            moment: Duration::from_millis(next(LATEST_MS)),
            stubborn: next(2) == 0,
            calls: 1 + next(16),
        }
    }
}

#[test]
fn nothing_is_left_of_what_was_killed_or_lost_its_owner_in_200_random_rounds() {
    let seed = match std::env::var("PML_TESTS_SEED") {
        Ok(given) => given.parse().unwrap(),
        Err(_) => uuid::Uuid::new_v4().as_u64_pair().0,
    };
    // Not `eprintln!`, which the test runner captures.
    let _ = writeln!(std::io::stderr(), "kills: PML_TESTS_SEED={seed}");
    let next = AtomicU64::new(0);
    let slowest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= ROUNDS {
                        break;
                    }
                    let took = run(seed, number);
                    slowest.fetch_max(u64::try_from(took.as_millis()).unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    let slowest = slowest.into_inner();
    let _ = writeln!(
        std::io::stderr(),
        "kills: the last of a round was gone after {slowest} ms at most"
    );
}

/// Runs a round; returns how long the dying took.
fn run(seed: u64, number: u64) -> Duration {
    let round = Round::new(seed, number);
    let world = World::new();
    let family = mark();
    let started = world.path("started");
    let mut arguments = vec!["--started".to_owned(), started.to_str().unwrap().to_owned()];
    if round.stubborn {
        let orphan = world.path("orphan").to_str().unwrap().to_owned();
        arguments.extend(["--stubborn".to_owned(), "--orphan".to_owned(), orphan]);
    }
    let fake =
        json!({ "command": crate::support::fake_server(), "args": arguments, "env": { MARK: family } });
    world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": fake } }));
    let mut client = start_client(&world, round.calls);
    let told = format!("PML_TESTS_SEED={seed}, round {number}: {round:?}");

    // The moment is counted from when pml lives; a server can only be killed once it does.
    let pid = |name: &str| {
        std::fs::read_to_string(world.path(name))
            .ok()?
            .lines()
            .next()?
            .parse()
            .ok()
    };
    let found = |name: &'static str| {
        let mut found = None;
        eventually(&format!("{told}: {name}"), DEADLINE, || {
            found = pid(name).and_then(Pid::from_raw);
            found.is_some()
        });
        found.unwrap()
    };
    let pml = found("pml");
    let victim = match round.victim {
        Victim::Pml => pml,
        Victim::Server => found("started"),
        Victim::Client => Pid::from_child(&client),
    };
    std::thread::sleep(round.moment);
    kill_process(victim, Signal::KILL).unwrap();
    let begin = Instant::now();
    let begin = match round.victim {
        Victim::Pml | Victim::Client => begin,
        Victim::Server => {
            // Whoever belonged to the killed server goes while pml lives on, unless a waiting call started it again.
            assert_gone(&[&family], begin, &told, || servers_started(&world) > 1);
            assert_alive(&mut client, &told);
            Instant::now()
        }
    };
    assert_gone(&[&family, world.mark()], begin, &told, || false);
    client.wait().unwrap();
    begin.elapsed()
}

fn servers_started(world: &World) -> usize {
    world.read("started").lines().count()
}

/// Asks pml for a sign of life through the client, and then lets the client go.
fn assert_alive(client: &mut Child, told: &str) {
    let mut stdin = client.stdin.take().unwrap();
    let stdout = client.stdout.take().unwrap();
    stdin.write_all(b"probe\n").unwrap();
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    assert!(
        lines.any(|line| line.ends_with(ALIVE)),
        "{told}: pml does not answer any more"
    );
}

/// Waits until nothing carries one of the marks, or the wait has no object any more.
fn assert_gone(marks: &[&str], begin: Instant, told: &str, idle: impl Fn() -> bool) {
    while !idle() {
        let left: Vec<String> = marks.iter().flat_map(|mark| marked(mark)).collect();
        if left.is_empty() {
            return;
        }
        assert!(
            begin.elapsed() < GRACE,
            "{told}: survivors after {GRACE:?}: {left:#?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts this test binary again, as the client that owns a pml.
fn start_client(world: &World, calls: u64) -> Child {
    world
        .program(&std::env::current_exe().unwrap())
        .args(["--exact", "kills::client", "--ignored", "--nocapture"])
        .env("CLIENT_CALLS", calls.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Owns a pml, has calls in flight, and asks for a sign of life when told to. It ends with its stdin or with its pml.
#[test]
#[ignore = "the process that the test above starts and kills"]
#[expect(
    clippy::exit,
    clippy::zombie_processes,
    reason = "a client that ends is no parent any more"
)]
fn client() {
    let Ok(calls) = std::env::var("CLIENT_CALLS") else {
        return;
    };
    let mut child = Command::new(pml())
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::fs::write("pml", child.id().to_string()).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut send = move |message: serde_json::Value| writeln!(stdin, "{message}").is_ok();
    let about = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
    send(json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params }));
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    for call in 0..calls.parse().unwrap() {
        // Some end at once, some tell of their progress first, most never end.
        let (tool, arguments) = match call % 4 {
            0 => ("fake__echo", json!({})),
            1 => ("fake__progress", json!({ "steps": 50, "until": "never" })),
            _ => ("fake__hang", json!({})),
        };
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": call } });
        send(json!({ "jsonrpc": "2.0", "id": call, "method": "tools/call", "params": params }));
    }
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if line.contains(r#""id":"probe""#) {
                let _ = writeln!(std::io::stdout(), "{ALIVE}");
            }
        }
        // A client whose server is gone has nothing left to do.
        std::process::exit(0);
    });
    for _ in std::io::stdin().lines().map_while(Result::ok) {
        send(json!({ "jsonrpc": "2.0", "id": "probe", "method": "ping" }));
    }
}
