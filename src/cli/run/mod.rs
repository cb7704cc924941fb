//! `pml run`: an agent with its person attached; `pml runs`: the runs there are.

mod ask_text;
mod asks;
mod attached;
mod columns;
mod console;
mod editor;
mod file_change;
mod list;
mod live_area;
mod page;
mod picture;
mod prompt;
mod question_host;
mod signals;
mod status;
mod stream;
mod surface;
mod typed_line;
mod typing;
mod writer;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::sync::mpsc;

use super::failure::{Hinted as _, Refused};
use super::{CommandContext, output, person};
use crate::host::claude::Opening;
use crate::host::{
    Beginning, HostedRun, Hosting, Input, Message, Priority, Resumption, RunEnd, RunError, RunLock,
    RunOutcome, RunRecord, RunState, WantedRun, drive, run_lines,
};
use crate::protocol::Shown;
use crate::proxy::{Desk, Urgency};

pub(crate) use list::{RunsArguments, list};

use console::{Console, Role};
use page::RunPage;
pub(super) use question_host::QuestionHostFile;
use surface::Attendance;

/// The exit code of a run that waits for an answer: try again later.
const PARKED: u8 = 75;

/// How much of what a person says may wait for the run, which reads it at once.
const WAITING: usize = 64;

/// What a run is told that was left while its agent worked.
const GO_ON: &str = "This run was interrupted while you worked. Continue where you left off.";

/// What its help says besides.
pub(crate) const HELP: &str = "\
Examples:
  pml run \"fix the failing test\"        in a terminal: lines you type guide it, or answer what it asks
  pml run --patience 30s \"…\"            puts the agent aside when nobody answers for that long
  pml run --web \"…\"                    also on a page of its own, in your browser
  pml run --json \"…\" | jq .type         the agent's lines as they are, and those of pml
  pml run --resume RUN                 goes on with a run that was answered, or with more to do
  pml run --attach RUN                 watches a run of another terminal
  pml run \"…\" -- --model opus          arguments for Claude Code itself

What it asks stands in the inbox as well: `pml inbox`, `pml serve`, `pml answer`, `pml approve`.
Ctrl-C interrupts the agent, twice ends the run, Ctrl-D ends it after the turn. `/image FILE`, `/now` and `/later`
begin lines for the agent. See docs/RUN.md.
Exit code: 0 done, 1 the agent failed or was stopped, 2 error, 75 it waits: answer it, or go on with --resume.";

/// What the agent is to do, and how.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// What the agent is to do; read from standard input where it is left out or `-`
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// Put the agent aside when nobody has answered for this long, such as `30s`, `10m` or `2h`; `0` waits for ever
    #[arg(long, value_name = "TIME", value_parser = prompt::duration)]
    patience: Option<Duration>,
    /// Print the agent's lines as they are, and those of pml with `"type": "pml"`
    #[arg(long)]
    json: bool,
    /// End after the first turn, also in a terminal
    #[arg(long)]
    once: bool,
    /// Open the page of the run in the browser; it is served here unless `pml serve` runs
    #[arg(long, conflicts_with = "attach")]
    web: bool,
    /// Go on with this run: say something more, or give it the answer that it waited for
    #[arg(long, value_name = "RUN", conflicts_with = "attach")]
    resume: Option<String>,
    /// Watch a run that another process drives, and talk to it
    #[arg(long, value_name = "RUN", conflicts_with_all = ["prompt", "patience", "once"])]
    attach: Option<String>,
    /// Arguments for the agent itself
    #[arg(last = true, value_name = "AGENT ARGUMENT", conflicts_with_all = ["resume", "attach"])]
    agent_arguments: Vec<String>,
}

/// Runs an agent until it has nothing more to do, or waits for an answer.
pub(crate) fn run(context: &CommandContext, arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let hosting = hosting(context)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let desk = Desk::new(
        &context.environment,
        &context.locations,
        context.files(),
        person::terminal(),
    );
    let attended = if arguments.json {
        Attendance::Json
    } else {
        Attendance::here()
    };
    let code = if let Some(name) = &arguments.attach {
        let record = named(&hosting, name)?;
        runtime.block_on(attached::watch(context, &hosting, &desk, record, attended))?
    } else {
        if arguments.web {
            // What is said on the page counts as a person's word.
            person::required(context, "run --web")?;
        }
        match begin(context, &hosting, &desk, &runtime, arguments, attended)? {
            Begun::Waits(record) => {
                output::note(&waits(&record));
                ExitCode::from(PARKED)
            }
            Begun::Goes(mut run, beginning) => {
                let page = if arguments.web {
                    Some(runtime.block_on(RunPage::open(context, &desk, &run.record.id))?)
                } else {
                    None
                };
                let _questions = QuestionHostFile::put(&context.locations, &mut run)?;
                let _inside = runtime.enter();
                let console = Console::begin(&desk, attended, Role::Driver, &context.environment)?;
                let hosted = host(&hosting, &desk, *run, beginning, console, page);
                runtime.block_on(hosted)?
            }
        }
    };
    // A thread that still waits for a line or the disk must not keep pml alive.
    runtime.shutdown_background();
    Ok(code)
}

/// A run that can be driven, or must wait.
enum Begun {
    /// It goes on.
    Goes(Box<HostedRun>, Beginning),
    /// It waits for an answer.
    Waits(Box<RunRecord>),
}

/// Names the runs of the user, with this pml as the server of their agents.
pub(super) fn hosting(context: &CommandContext) -> anyhow::Result<Hosting> {
    let pml = std::env::current_exe().context("cannot tell where pml itself is")?;
    Ok(Hosting::new(
        context.environment.clone(),
        context.locations.clone(),
        pml,
    ))
}

fn named(hosting: &Hosting, name: &str) -> anyhow::Result<RunRecord> {
    spoken(hosting.runs().named(name))
}

fn spoken<T>(done: Result<T, RunError>) -> anyhow::Result<T> {
    use crate::report::Hint as _;
    done.map_err(|error| match error.hint() {
        Some(hint) => Err::<T, _>(anyhow::Error::new(error))
            .hint(hint)
            .err()
            .unwrap_or_else(|| anyhow::anyhow!("")),
        None => error.into(),
    })
}

/// Begins a run, or takes one over.
fn begin(
    context: &CommandContext,
    hosting: &Hosting,
    desk: &Desk,
    runtime: &tokio::runtime::Runtime,
    arguments: &RunArguments,
    attended: Attendance,
) -> anyhow::Result<Begun> {
    let input = match attended {
        Attendance::Terminal if !arguments.once => Input::Open,
        Attendance::Terminal | Attendance::Plain | Attendance::Json => Input::Ended,
    };
    if let Some(name) = &arguments.resume {
        let record = named(hosting, name)?;
        let mut run = spoken(hosting.take_over(&record.id))?;
        if let Some(patience) = arguments.patience {
            run.record.patience_seconds = patience.as_secs();
        }
        // A person wants it, and has a look.
        run.record.resumed_in_vain = 0;
        if run.record.asks.is_empty() {
            runtime.block_on(hosting.adopt_asks(desk, &mut run.record));
        }
        if arguments.prompt.is_some() {
            let message = message(prompt::read(arguments.prompt.as_deref())?);
            let told = runtime.block_on(hosting.told(desk, &run.record, message, input));
            return Ok(Begun::Goes(Box::new(run), told));
        }
        let beginning = match runtime.block_on(hosting.resumption(desk, &run.record)) {
            Resumption::Goes(beginning) => Beginning { input, ..beginning },
            Resumption::Waits => return Ok(Begun::Waits(Box::new(run.record))),
            Resumption::Expired => {
                let over = format!(
                    "nobody answered what run `{}` asked, and no answer can come any more",
                    run.record.id
                );
                return Err(Refused(over)).hint("to go on without an answer: pml run --resume RUN \"…\"");
            }
            Resumption::Not if run.record.state == RunState::Lost => left(&run.record, input),
            Resumption::Not | Resumption::InVain => {
                let message = message(prompt::read(arguments.prompt.as_deref())?);
                runtime.block_on(hosting.told(desk, &run.record, message, input))
            }
        };
        return Ok(Begun::Goes(Box::new(run), beginning));
    }
    let prompt = prompt::read(arguments.prompt.as_deref())?;
    let wanted = WantedRun {
        prompt: prompt.clone(),
        directory: context.environment.working_directory().to_owned(),
        config: context.config.clone(),
        patience: arguments.patience,
        agent_arguments: arguments.agent_arguments.clone(),
    };
    let run = spoken(hosting.begin(&wanted))?;
    let beginning = Beginning {
        opening: Opening::Begin,
        messages: vec![message(prompt)],
        input,
        told: Vec::new(),
    };
    Ok(Begun::Goes(Box::new(run), beginning))
}

/// Goes on with a run that was left while its agent worked and asked nothing.
fn left(record: &RunRecord, input: Input) -> Beginning {
    // An agent that never said what it runs with has written no session down.
    let (opening, text) = match record.model {
        Some(_) => (Opening::Resume, GO_ON.to_owned()),
        None => (Opening::Begin, record.prompt.clone()),
    };
    Beginning {
        opening,
        messages: vec![message(text)],
        input,
        told: Vec::new(),
    }
}

/// Drives a run until it is over, or waits for an answer that nobody here will give.
async fn host(
    hosting: &Hosting,
    desk: &Desk,
    run: HostedRun,
    mut beginning: Beginning,
    mut console: Console,
    page: Option<RunPage>,
) -> anyhow::Result<ExitCode> {
    let mut run = run;
    let environment = run.environment.clone();
    // The person who is here stays here while the agent is put aside, unless they said that they have nothing more to say.
    let begun = beginning.input;
    console.note(&format!(
        "run {} · {}",
        run.record.id,
        Shown::path(&run.record.directory)
    ));
    if let Some(page) = &page {
        page.tell(&mut console);
    }
    let code = loop {
        let proxy = run.proxy.clone();
        let (controls, received) = mpsc::channel(WAITING);
        let (surface, lines) = run_lines();
        let driving = drive(run, beginning, received, surface);
        let (end, ()) = tokio::join!(driving, console.attend(controls, lines));
        proxy.close(Urgency::Gentle).await;
        let end = match spoken(end) {
            Ok(end) => end,
            Err(error) => {
                console.end().await;
                return Err(error);
            }
        };
        let RunEnd {
            record,
            result,
            complaint,
            lock,
        } = end;
        match &record.state {
            RunState::Ended {
                outcome: RunOutcome::Done,
            } => break 0,
            RunState::Ended { outcome } => {
                if result.is_none() && !complaint.trim().is_empty() {
                    console.note(&Shown::block(complaint.trim()).to_string());
                }
                if *outcome == RunOutcome::Failed && result.is_none() {
                    console.note("the agent ended before it had done anything");
                }
                break 1;
            }
            _ => {}
        }
        let input = console.input(begun);
        let again = match hosting.resumption(desk, &record).await {
            Resumption::Goes(again) if !console.is_leaving() && console.rest(record.rest()).await => {
                Some(again)
            }
            // On its page a person can answer as well as in a terminal.
            Resumption::Waits if !console.is_leaving() && (input == Input::Open || page.is_some()) => {
                console.wait_for_answer(hosting, &record).await?
            }
            Resumption::InVain => {
                tell_in_vain(hosting, &mut console, record, lock).await;
                break 1;
            }
            Resumption::Goes(_) | Resumption::Waits | Resumption::Not | Resumption::Expired => None,
        };
        let Some(again) = again else {
            for line in waits(&record).lines() {
                console.line(line);
            }
            break PARKED;
        };
        beginning = Beginning {
            input: console.input(begun),
            ..again
        };
        run = again_hosted(hosting, record, lock).await?;
        run.environment = environment.clone();
    };
    console.end().await;
    if let Some(page) = page {
        page.close().await;
    }
    desk.close().await;
    Ok(ExitCode::from(code))
}

/// Tells that the agent does not take the answer, here and to whoever lists the runs.
async fn tell_in_vain(hosting: &Hosting, console: &mut Console, record: RunRecord, lock: RunLock) {
    let text = Resumption::in_vain();
    console.note(&text);
    console.note(&format!(
        "the answer is kept; to try again: pml run --resume {}",
        record.id
    ));
    drop(lock);
    let hosting = hosting.clone();
    let noted = tokio::task::spawn_blocking(move || hosting.note_trouble(&record.id, &text));
    let _ = noted.await;
}

/// Prepares a run once more, off the runtime's thread.
async fn again_hosted(hosting: &Hosting, record: RunRecord, lock: RunLock) -> anyhow::Result<HostedRun> {
    let hosting = hosting.clone();
    spoken(tokio::task::spawn_blocking(move || hosting.hosted_again(record, lock)).await?)
}

/// Tells how a run that was left goes on.
fn waits(record: &RunRecord) -> String {
    let id = &record.id;
    if record.asks.is_empty() {
        return format!("run {id} was left while its agent worked; to go on: pml run --resume {id}");
    }
    format!(
        "run {id} waits for an answer; answer it and it resumes: pml inbox\n\
         it is resumed by `pml serve`, or by: pml run --resume {id}"
    )
}

fn message(text: String) -> Message {
    Message {
        uuid: uuid::Uuid::new_v4().to_string(),
        text,
        images: Vec::new(),
        priority: Priority::Next,
    }
}
