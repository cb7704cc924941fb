//! Drives one run in this process: starts its agent, reads its lines, puts its asks to a person and brings the answers.
//!
//! Every wait is an arm of one loop; what takes longer (the store, the disk) is a task whose end is an event. So the agent
//! is read while a person thinks.

mod asking;
mod ending;
mod server_asks;
mod talk;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::asks::{Asked, Asks, Told, WaitingAsk};
use super::claude;
use super::error::RunError;
use super::hosted_run::{Beginning, Control, HostedRun, RunEnd};
use super::journal::Journal;
use super::line::{AgentLine, Block, TurnResult};
use super::machine::{Effect, Event, Finish, Machine, Phase};
use super::message::Message;
use super::process::{Agent, LAST_WORDS};
use super::record::{RunRecord, RunState};
use super::reply;
use super::run_input::RunInput;
use super::run_line::{AskOutcome, OwnLine};
use super::run_lines::RunLineSender;
use super::runs::Runs;
use crate::proxy::{Workflow, WorkflowId, now};

/// How often what persons say elsewhere (the page, another terminal) is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// How the requests of the host are named.
const OWN_REQUESTS: &str = "pml-";

/// How long an agent may take to do what it was told: to put a call off, or to say a message to its end.
const GRACE: Duration = Duration::from_secs(15);

struct Driver {
    record: RunRecord,
    runs: Runs,
    asks: Asks,
    agent: Agent,
    machine: Machine,
    journal: Journal,
    /// The agent's requests that are being decided, or put to a person.
    deciding: HashSet<String>,
    /// What waits for a person, by the agent's request.
    waiting: HashMap<String, WaitingAsk>,
    /// What pml itself asks a person about a server behind it.
    server_asks: BTreeSet<WorkflowId>,
    decided: mpsc::UnboundedSender<Happened>,
    tasks: TaskTracker,
    patience: Duration,
    /// When the agent is to be put aside.
    patient_until: Option<Instant>,
    /// Until when the agent may take to do what it was told.
    grace_until: Option<Instant>,
    /// When an agent whose input is closed is ended.
    last_words_until: Option<Instant>,
    result: Option<TurnResult>,
    finish: Option<Finish>,
    /// Requests of the host are numbered.
    requests: u64,
    /// The first message, and the asks whose answers it tells.
    told: Option<(String, Vec<WorkflowId>)>,
    /// What was said to the agent and not taken in by it.
    unread: Vec<Message>,
    /// Whether what persons say elsewhere is being looked for.
    looking: bool,
    /// The calls whose answers the agent has told as their results; it writes them down a little later.
    resulted: Vec<String>,
}

/// What a task of this run has found out.
enum Happened {
    /// A request was decided by the rules, or put to a person.
    Put { request: String, asked: Asked },
    /// An ask is answered, or over.
    Decided { request: String },
    /// What answers a request is ready.
    Answer { request: String, told: Told },
    /// A person said something elsewhere.
    Inputs(Vec<RunInput>),
    /// What pml itself asks, all of it.
    ServerAsks(Vec<Workflow>),
}

/// Drives a run until its agent is gone.
pub async fn drive(
    run: HostedRun,
    beginning: Beginning,
    controls: mpsc::Receiver<Control>,
    surface: RunLineSender,
) -> Result<RunEnd, RunError> {
    let HostedRun {
        mut record,
        lock,
        runs,
        environment,
        proxy,
        program,
        pml,
        sources,
        notes,
        forgotten,
    } = run;
    let directory = runs.directory(&record.id);
    let servers = directory.join("servers.json");
    let text = claude::servers(&pml, &record);
    let written = servers.clone();
    off_thread(move || crate::disk::replace(&written, text.as_bytes()))
        .await
        .map_err(RunError::file("write", &servers))?;
    let arguments = claude::arguments(&record, beginning.opening, sources, &servers);
    let variables = claude::variables(&environment, &record);
    let agent = Agent::start(&program, arguments, variables, &record.directory)?;
    record.process = crate::proxy::process_name(std::process::id());
    record.trouble = None;
    if !record.asks.is_empty() {
        // Until the agent takes an answer.
        record.resumed_in_vain = record.resumed_in_vain.saturating_add(1);
    }
    let patience = match record.patience_seconds {
        0 => reply::LONGEST_WAIT,
        seconds => Duration::from_secs(seconds),
    };
    let (decided, mut happened) = mpsc::unbounded_channel();
    let tasks = TaskTracker::new();
    let journal = Journal::open(directory, surface).await?;
    let asks = Asks::new(proxy);
    for id in &beginning.told {
        // The call that asked is gone: an approval is free for the very same call, however soon that comes.
        asks.leave(*id).await;
    }
    let mut driver = Driver {
        asks,
        machine: Machine::new(beginning.input),
        patience,
        patient_until: None,
        grace_until: None,
        unread: Vec::new(),
        looking: false,
        server_asks: BTreeSet::new(),
        last_words_until: None,
        deciding: HashSet::new(),
        waiting: HashMap::new(),
        result: None,
        finish: None,
        requests: 0,
        told: beginning
            .messages
            .first()
            .map(|first| (first.uuid.clone(), beginning.told)),
        resulted: Vec::new(),
        record,
        runs,
        agent,
        journal,
        decided,
        tasks,
    };
    for id in forgotten {
        driver.asks.withdraw(id).await;
    }
    for text in notes {
        driver.journal.own(OwnLine::Note { text }).await;
    }
    let mut ended = driver.run(beginning.messages, controls, &mut happened).await;
    if ended.is_err() {
        // What waits for an answer waits for as long as the agent lives.
        driver.agent.terminate();
        driver.agent.exited().await;
    }
    driver.tasks.close();
    driver.tasks.wait().await;
    happened.close();
    while let Ok(what) = happened.try_recv() {
        driver.remember(what);
    }
    if ended.is_ok() {
        ended = driver.settle().await;
    }
    let complaint = driver.agent.complaint();
    driver.journal.close().await;
    ended?;
    Ok(RunEnd {
        record: driver.record,
        result: driver.result,
        complaint,
        lock,
    })
}

impl Driver {
    async fn run(
        &mut self,
        messages: Vec<Message>,
        mut controls: mpsc::Receiver<Control>,
        happened: &mut mpsc::UnboundedReceiver<Happened>,
    ) -> Result<(), RunError> {
        self.stand(RunState::Starting).await?;
        // First of all: a resumed agent asks at once, and would not find the hook.
        self.agent
            .write(reply::initialize(&format!("{OWN_REQUESTS}initialize")));
        self.watch_servers();
        for message in messages {
            self.say(message).await;
        }
        let mut looks = tokio::time::interval(LOOK);
        let mut listening = true;
        while self.finish.is_none() {
            let patience = deadline(self.patient_until);
            let grace = deadline(self.grace_until);
            let last_words = deadline(self.last_words_until);
            tokio::select! {
                line = self.agent.next_line() => if let Some(line) = line {
                    self.hear(line).await?;
                } else {
                    self.agent.exited().await;
                    self.step(Event::AgentGone).await?;
                },
                Some(what) = happened.recv() => self.learn(what).await?,
                control = controls.recv(), if listening => match control {
                    Some(control) => self.obey(control).await?,
                    None => listening = false,
                },
                () = patience => {
                    self.patient_until = None;
                    self.step(Event::PatienceOver).await?;
                }
                () = grace => {
                    self.grace_until = None;
                    self.step(Event::GraceOver).await?;
                }
                () = last_words => {
                    self.last_words_until = None;
                    self.agent.terminate();
                }
                _ = looks.tick() => self.look(),
            }
        }
        Ok(())
    }

    /// Reads one line of the agent.
    async fn hear(&mut self, raw: String) -> Result<(), RunError> {
        let Some(meaning) = AgentLine::read(&raw) else {
            let text = crate::protocol::Shown::line(&raw).to_string();
            self.journal.own(OwnLine::Note { text }).await;
            return Ok(());
        };
        self.journal.agent(raw, meaning.clone()).await;
        match meaning {
            AgentLine::Init { model } => {
                self.record.model = model.or(self.record.model.take());
                self.step(Event::TurnBegan).await?;
            }
            AgentLine::Assistant { blocks, parent: None } => {
                let calls = blocks.into_iter().filter_map(|block| match block {
                    Block::ToolUse { id, .. } => Some(id),
                    Block::Text(_) => None,
                });
                self.step(Event::ToolsCalled(calls.collect())).await?;
            }
            AgentLine::MessageBegan => self.step(Event::MessageBegan).await?,
            AgentLine::MessageEnded => self.step(Event::MessageEnded).await?,
            AgentLine::ToolResults(results) => {
                let calls: Vec<_> = results.into_iter().map(|result| result.tool_use).collect();
                let waiting = self.waiting_asks();
                // The agent has them: what was asked for them is delivered. One that is put off is not, whatever it says.
                if self
                    .record
                    .deliver(|ask| calls.contains(&ask.call) && !waiting.contains(&ask.workflow))
                {
                    self.resulted.extend(calls.iter().cloned());
                    self.save().await?;
                }
                self.step(Event::ToolsFinished(calls)).await?;
            }
            AgentLine::Replay { uuid: Some(uuid) } => self.taken_in(&uuid).await?,
            AgentLine::Request { id, request } => self.asked(id, request),
            AgentLine::RequestCancelled { id } => {
                self.deciding.remove(&id);
                if let Some(ask) = self.waiting.remove(&id) {
                    self.over(&ask, AskOutcome::Withdrawn).await?;
                    self.withdraw(&ask);
                }
                self.step(Event::AskOver { request: id }).await?;
            }
            AgentLine::Result(result) => self.turn_ended(result).await?,
            // What the host answered comes back too, under the agent's own ids.
            AgentLine::Response {
                id,
                error: Some(error),
            } if id.starts_with(OWN_REQUESTS) => {
                let text = crate::protocol::Shown::line(&error).to_string();
                let text = format!("the agent refused a request: {text}");
                self.journal.own(OwnLine::Note { text }).await;
            }
            AgentLine::Assistant { .. }
            | AgentLine::Replay { .. }
            | AgentLine::TextDelta(_)
            | AgentLine::Receipt { .. }
            | AgentLine::Response { .. }
            | AgentLine::Other => {}
        }
        Ok(())
    }

    /// Moves the machine on and carries out what it says.
    async fn step(&mut self, event: Event) -> Result<(), RunError> {
        let before = self.machine.phase();
        for effect in self.machine.step(event) {
            match effect {
                Effect::Defer { request } => self.agent.write(reply::hook_defer(&request)),
                Effect::StartPatience => self.patient_until = Some(Instant::now() + self.patience),
                Effect::StopPatience => self.patient_until = None,
                Effect::StartGrace => self.grace_until = Some(Instant::now() + GRACE),
                Effect::CloseInput => {
                    self.grace_until = None;
                    self.agent.close_input();
                    self.last_words_until = Some(Instant::now() + LAST_WORDS);
                }
                Effect::Terminate => self.agent.terminate(),
                Effect::Finish(finish) => self.finish = Some(finish),
            }
        }
        let state = match self.machine.phase() {
            phase if phase == before => return Ok(()),
            Phase::Starting => RunState::Starting,
            Phase::Running => RunState::Running,
            Phase::Asking => RunState::Asking,
            Phase::Idle => RunState::Idle,
            Phase::Parking | Phase::Ending | Phase::Over => return Ok(()),
        };
        self.stand(state).await
    }

    async fn stand(&mut self, state: RunState) -> Result<(), RunError> {
        self.record.state = state.clone();
        self.save().await?;
        self.journal.own(OwnLine::State { state }).await;
        Ok(())
    }

    async fn save(&mut self) -> Result<(), RunError> {
        self.record.changed_at = now().millis();
        let (runs, record) = (self.runs.clone(), self.record.clone());
        off_thread(move || runs.write(&record)).await
    }
}

/// Waits until a moment, or for ever where there is none.
async fn deadline(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Runs something that blocks off the runtime's thread.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
