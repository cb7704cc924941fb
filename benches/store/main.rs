//! What an ask costs where many processes share one store.
//!
//! Starts 50 processes (this program again) on a fresh store. Once all are ready, each suspends calls one after the
//! other, then answers and takes them, and reports how long each took. `--against PATH` runs another build of this
//! program in turn with this one, so that both meet the same machine.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures, and starts itself again"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml::config::By;
use pml::protocol::Digest;
use pml::protocol::approval::ShownDependency;
use pml::protocol::continuation::Scope;
use pml::proxy::moment;
use pml::workflow::{
    Answer, Arguments, Ask, AskAttendance, Asker, AskingClient, LastCheck, NewWorkflow, Origin, Place,
    RecordedAnswer, Road, SuspendedCall, ToolExpectation, Workflows,
};

/// How many processes ask at once: more clients than a person runs.
const PROCESSES: usize = 50;

/// As many asks of each process as the store lets wait in all, less some: 1,000 in 50 processes.
const ASKS: usize = 19;

/// Each round begins with an empty store.
const ROUNDS: usize = 5;

/// What 99 of 100 asks must stay under, in milliseconds.
const BAR: f64 = 50.0;

/// Says where a process works.
#[derive(Debug, Clone, Copy)]
struct Load {
    processes: usize,
    asks: usize,
}

/// How long every operation of a kind took, in microseconds, and how long all took together.
#[derive(Debug, Default, Clone)]
struct Latencies {
    micros: Vec<u64>,
    whole: Duration,
}

impl Latencies {
    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(place).map_or(0.0, |micros| milliseconds(*micros))
    }

    fn rate(&self) -> f64 {
        let count = u32::try_from(self.micros.len()).unwrap_or(u32::MAX);
        f64::from(count) / self.whole.as_secs_f64().max(f64::EPSILON)
    }

    fn add(&mut self, other: Self) {
        self.micros.extend(other.micros);
        self.whole += other.whole;
    }
}

fn milliseconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64() * 1000.0
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["ask", file, asks] = words.as_slice() {
        work(Path::new(file), asks.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let against = words.iter().position(|word| *word == "--against");
    let against = against.and_then(|place| words.get(place + 1));
    compare(against.map(PathBuf::from))
}

/// Runs every load in turns with this build and the other one, and prints what came of it.
fn compare(against: Option<PathBuf>) -> ExitCode {
    let own = std::env::current_exe().unwrap();
    let builds: Vec<(&str, PathBuf)> = against
        .map(|path| ("before", path))
        .into_iter()
        .chain([("now", own)])
        .collect();
    println!("| build | processes | operation | per second | p50 ms | p99 ms | max ms |");
    println!("|---|---|---|---|---|---|---|");
    let mut held = true;
    for load in [
        Load {
            processes: 1,
            asks: 90,
        },
        Load {
            processes: PROCESSES,
            asks: ASKS,
        },
    ] {
        let mut measured = vec![[Latencies::default(), Latencies::default()]; builds.len()];
        for _ in 0..ROUNDS {
            for ((_, build), sums) in builds.iter().zip(&mut measured) {
                for (sum, one) in sums.iter_mut().zip(round(build, load)) {
                    sum.add(one);
                }
            }
        }
        for ((name, _), sums) in builds.iter().zip(&measured) {
            for (operation, sum) in ["ask", "answer and take"].iter().zip(sums) {
                println!(
                    "| {name} | {} | {operation} | {:.0} | {:.2} | {:.2} | {:.2} |",
                    load.processes,
                    sum.rate(),
                    sum.percentile(50),
                    sum.percentile(99),
                    sum.percentile(100)
                );
            }
            if *name == "now" && load.processes == PROCESSES {
                held = sums[0].percentile(99) <= BAR;
            }
        }
    }
    println!(
        "\np99 of an ask in {PROCESSES} processes at most {BAR} ms: {}",
        if held { "pass" } else { "FAIL" }
    );
    ExitCode::SUCCESS
}

/// One round on a store of its own: how long the asks took, and the takes.
fn round(build: &Path, load: Load) -> [Latencies; 2] {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state/workflows.db");
    let mut workers: Vec<(Child, BufReader<ChildStdout>)> = (0..load.processes)
        .map(|_| {
            let mut child = Command::new(build)
                .args(["ask", file.to_str().unwrap(), &load.asks.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            (child, output)
        })
        .collect();
    let mut phases = [Latencies::default(), Latencies::default()];
    for (_, output) in &mut workers {
        assert_eq!(line(output), "ready");
    }
    for phase in &mut phases {
        let began = Instant::now();
        for (child, _) in &mut workers {
            child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        }
        for (_, output) in &mut workers {
            let numbers = line(output);
            phase
                .micros
                .extend(numbers.split(' ').map(|micros| micros.parse::<u64>().unwrap()));
        }
        phase.whole = began.elapsed();
    }
    for (mut child, _) in workers {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
    phases
}

fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut text = String::new();
    output.read_line(&mut text).unwrap();
    text.trim_end().to_owned()
}

/// One process: opens the store, waits for each starting shot, and prints how long each operation took.
fn work(file: &Path, asks: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let workflows = Workflows::new(Place::File(file.to_owned()), Arc::new(moment));
        workflows.pending().await.unwrap();
        println!("ready");
        let asker = Asker::random();
        starting_shot();
        let (mut took, mut ids) = (Vec::new(), Vec::new());
        for number in 0..asks {
            let began = Instant::now();
            let created = workflows.create(new(asker, number)).await.unwrap();
            took.push(began.elapsed());
            ids.push(created.workflow().id);
        }
        print(&took);
        starting_shot();
        took.clear();
        for id in ids {
            let answer = Answer::Approve {
                scope: Scope::Session,
            };
            let began = Instant::now();
            let given = RecordedAnswer {
                answer,
                by: Road::Continuation.into(),
                approves: None,
                check: LastCheck::none(),
            };
            let expected = ToolExpectation::AnyTool;
            workflows.answer_and_take(id, expected, given).await.unwrap();
            took.push(began.elapsed());
        }
        print(&took);
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        workflows.close().await;
    });
}

fn starting_shot() {
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

fn print(took: &[Duration]) {
    let micros: Vec<String> = took.iter().map(|took| took.as_micros().to_string()).collect();
    println!("{}", micros.join(" "));
}

/// A call that nobody else asks about: each process has a project of its own.
fn new(asker: Asker, number: usize) -> NewWorkflow {
    let project = PathBuf::from(format!("/project/{asker}"));
    NewWorkflow {
        ask: Ask::Install {
            dependency: ShownDependency {
                name: "serena".to_owned(),
                version: Some("0.5.0".to_owned()),
                install: "npm install serena@0.5.0".to_owned(),
                integrity: None,
                scripts: false,
                surroundings: Box::default(),
                installation: Box::default(),
                remote: None,
            },
        },
        call: SuspendedCall {
            tool: "serena:analyze".parse().unwrap(),
            arguments: Arguments::Json(format!(r#"{{"path":"src/lib.rs","number":{number}}}"#)),
            launch: Digest::of(["serena", "0.5.0"]),
        },
        time_to_live: Duration::from_mins(5),
        origin: Origin {
            config: project.join(".pml.json"),
            by: By::Client,
            asker,
            client: AskingClient::default(),
        },
        project,
        attended: AskAttendance::ByItsCall,
        twin: 0,
        channel: None,
    }
}
