//! A world whose `pml run` hosts the real Claude Code, and a script that is its model.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pml::host::{RunId, RunRecord, Runs, events_after};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::claude::{claude_environment, claude_program};
use crate::support::eventually;
use crate::support::messages_api::{MessagesApi, Turn};
use crate::support::world::{World, json_of, state, stderr};

/// Claude Code on a busy machine does anything within this; reaching it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A world and its model.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) api: Arc<MessagesApi>,
}

impl Scene {
    /// A world with one script for every run; `None` where there is no Claude Code.
    pub(crate) fn scripted(script: impl IntoIterator<Item = Turn>) -> Option<Self> {
        Self::with(Arc::new(MessagesApi::start(script)))
    }

    /// A world with a model that other worlds may share.
    pub(crate) fn with(api: Arc<MessagesApi>) -> Option<Self> {
        let program = claude_program()?;
        let world = World::new();
        for (name, value) in claude_environment(world.home(), &api.url()) {
            world.set(name, &value);
        }
        world.set("PML_CLAUDE", program.to_str().unwrap());
        world.configure(&json!({}));
        Some(Self { world, api })
    }

    /// Writes the rules of the project.
    pub(crate) fn permissions(self, permissions: &Value) -> Self {
        self.world.configure(&json!({ "permissions": permissions }));
        self
    }

    /// Writes the user's own file.
    pub(crate) fn configure_user(&self, config: &Value) {
        let folder = self.world.home().join(".config/pml");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("pml.json"), config.to_string()).unwrap();
    }

    /// Starts `pml run`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.world.command(&["run"]);
        command.args(arguments);
        Running::start(command)
    }

    /// Runs `pml run` to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).ended()
    }

    /// Says something by another command, which must go well.
    pub(crate) fn say(&self, arguments: &[&str]) {
        let said = self.world.run(arguments);
        assert!(said.status.success(), "{arguments:?}: {}", stderr(&said));
    }

    /// What waits for a person.
    pub(crate) fn pending(&self) -> Vec<Value> {
        let pending = json_of(&self.world.run(&["pending", "--json"]));
        pending["pending"].as_array().unwrap().clone()
    }

    /// Waits until one thing is asked, and returns its code.
    pub(crate) fn code(&self) -> String {
        let mut pending = Vec::new();
        // Its record is only read: starting a pml for each look would slow down what is waited for.
        eventually("the run has an ask", PATIENCE, || {
            self.records().iter().any(|run| !run.asks.is_empty())
        });
        seldom("something is asked", || {
            pending = self.pending();
            !pending.is_empty()
        });
        assert_eq!(pending.len(), 1, "{pending:#?}");
        pending[0]["code"].as_str().unwrap().to_owned()
    }

    /// Waits until one thing is asked in a run that stands at that, and returns its code.
    pub(crate) fn asking(&self) -> String {
        eventually("the run asks", PATIENCE, || self.is("asking"));
        self.code()
    }

    /// Where the runs are kept.
    pub(crate) fn runs(&self) -> Runs {
        Runs::new(&state(&self.world))
    }

    /// The runs, the newest first.
    pub(crate) fn records(&self) -> Vec<RunRecord> {
        self.runs().list()
    }

    /// The only run.
    pub(crate) fn record(&self) -> RunRecord {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "{records:#?}");
        records.remove(0)
    }

    pub(crate) fn id(&self) -> String {
        self.record().id.to_string()
    }

    /// Whether the only run stands at this.
    pub(crate) fn is(&self, word: &str) -> bool {
        let records = self.records();
        records.len() == 1 && records[0].state.word() == word
    }

    /// What happened in the only run so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let directory = self.runs().directory(&self.record().id);
        let events = events_after(&directory, 0).unwrap_or_default();
        let lines = events
            .iter()
            .map(|event| serde_json::from_str(&event.line).unwrap());
        lines.collect()
    }

    /// Where the only run stands, as `pml runs --json` tells it.
    pub(crate) fn told_state(&self) -> Value {
        let runs = json_of(&self.world.run(&["runs", "--json"]));
        assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
        runs[0]["state"].clone()
    }

    /// Where Claude Code keeps the conversation of the only run.
    fn transcript(&self) -> Option<PathBuf> {
        let file = format!("{}.jsonl", self.record().session);
        let projects = std::fs::read_dir(self.world.home().join(".claude/projects")).ok()?;
        let mut files = projects.flatten().map(|project| project.path().join(&file));
        files.find(|file| file.exists())
    }

    /// Waits until Claude Code has written the open ask of the only run down, so that its session can be resumed.
    pub(crate) fn wait_until_written(&self) {
        eventually("the call is written", PATIENCE, || {
            let record = self.record();
            let (Some(ask), Some(path)) = (record.asks.last(), self.transcript()) else {
                return false;
            };
            std::fs::read_to_string(path).is_ok_and(|lines| lines.contains(&ask.call))
        });
    }

    /// Sends a signal to Claude Code.
    pub(crate) fn signal_agent(&self, signal: Signal) {
        let agent = agent_of(&self.record().id).unwrap();
        kill_process(agent, signal).unwrap();
    }
}

/// The process of Claude Code of a run.
pub(crate) fn agent_of(id: &RunId) -> Option<Pid> {
    let is_claude = |pid: &u32| {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.file_name().is_some_and(|name| name == "claude"))
    };
    let pid = processes_of(id).into_iter().find(is_claude)?;
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Checks that nothing of a run is left, neither the agent nor what it started.
pub(crate) fn nothing_is_left_of(id: &RunId) {
    seldom("the processes of the run are gone", || {
        processes_of(id).is_empty()
    });
}

/// Waits for something that it costs to look at: a process is started, or every process is read.
pub(super) fn seldom(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The processes of Claude Code that have a session, without the copies that it makes of itself to start a program.
pub(super) fn agents_in(session: &str) -> Vec<u32> {
    let read = |pid: u32, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_agent = |pid: &u32| {
        let line = String::from_utf8_lossy(&read(*pid, "cmdline")).into_owned();
        let words: Vec<&str> = line.split('\0').collect();
        words.first().is_some_and(|program| program.ends_with("/claude")) && words.contains(&session)
    };
    let agents: Vec<u32> = numbers.filter(is_agent).collect();
    let parent = |pid: u32| -> Option<u32> {
        let status = String::from_utf8_lossy(&read(pid, "status")).into_owned();
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok()
    };
    let all = agents.clone();
    let copies = |pid: &u32| !parent(*pid).is_some_and(|parent| all.contains(&parent));
    agents.into_iter().filter(copies).collect()
}

/// The processes that have a run in their environment.
fn processes_of(id: &RunId) -> Vec<u32> {
    let variable = format!("PML_RUN={id}");
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let marked = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|one| one == variable.as_bytes())
    };
    numbers.filter(marked).collect()
}

/// A `pml run` without a terminal.
pub(crate) struct Running {
    child: Child,
    output: Vec<JoinHandle<String>>,
}

/// How a `pml run` ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = vec![
            reading(child.stdout.take().unwrap()),
            reading(child.stderr.take().unwrap()),
        ];
        Self { child, output }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> Ended {
        eventually("pml run ends", PATIENCE, || self.has_ended());
        let code = self.child.wait().unwrap().code();
        let mut output = self.output.drain(..).map(|reading| reading.join().unwrap());
        let (stdout, stderr) = (output.next().unwrap(), output.next().unwrap());
        Ended { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reading(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    })
}

impl Ended {
    /// Checks its exit code; returns it for more.
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The lines of `--json`.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
            .collect()
    }
}

/// A path that no program has.
pub(crate) fn no_program(world: &World) -> PathBuf {
    world.path("missing")
}
