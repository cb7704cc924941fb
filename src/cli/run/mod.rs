//! `pml run`: an agent with its person attached; `pml runs`: the runs there are.

mod attached;
mod input;
mod list;
mod parting;
mod question_host;
mod stream;

use std::io::{IsTerminal as _, Read as _};
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
    RunOutcome, RunRecord, RunState, WantedRun, drive,
};
use crate::protocol::Shown;
use crate::proxy::{Desk, Urgency};

pub(crate) use list::{RunsArguments, list};

use input::{Attended, TypedLines};
use parting::{rested, tell_in_vain, tell_parked, waits};
use question_host::QuestionHostFile;

/// The exit code of a run that waits for an answer: try again later.
const PARKED: u8 = 75;

/// How many lines of a run may wait for the terminal.
const WAITING: usize = 256;

/// The longest prompt that is read from a pipe.
const PROMPT_LIMIT: u64 = 1024 * 1024;

/// What the agent is to do, and how.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// What the agent is to do; read from standard input where it is left out or `-`
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// Put the agent aside when nobody has answered for this long, such as `30s`, `10m` or `2h`; `0` waits for ever
    #[arg(long, value_name = "TIME", value_parser = duration)]
    patience: Option<Duration>,
    /// Print the agent's lines as they are, and those of pml with `"type": "pml"`
    #[arg(long)]
    json: bool,
    /// End after the first turn, also in a terminal
    #[arg(long)]
    once: bool,
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
        runtime.block_on(attached::watch(&hosting, &desk, record, attended))?
    } else {
        let (mut run, beginning) = begin(context, &hosting, &desk, &runtime, arguments, attended)?;
        let questions = QuestionHostFile::write(context, &run.record)?;
        if let Some(questions) = &questions {
            run.environment = run.environment.with(question_host::VARIABLE, questions.path());
        }
        runtime.block_on(host(&hosting, &desk, run, beginning, attended))?
    };
    // A thread that still waits for a line or the disk must not keep pml alive.
    runtime.shutdown_background();
    Ok(code)
}

/// How a person follows a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attendance {
    /// They see it and can type.
    Terminal,
    /// It is written, and nobody types.
    Plain,
    /// A script reads it.
    Json,
}

impl Attendance {
    fn here() -> Self {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            Self::Terminal
        } else {
            Self::Plain
        }
    }
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
) -> anyhow::Result<(HostedRun, Beginning)> {
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
        if arguments.prompt.is_some() {
            let message = message(prompt(arguments)?);
            let told = runtime.block_on(hosting.told(desk, &run.record, message, input));
            return Ok((run, told));
        }
        let beginning = match runtime.block_on(hosting.resumption(desk, &run.record)) {
            Resumption::Goes(beginning) => Beginning { input, ..beginning },
            Resumption::Waits => return Err(waits(&run.record)),
            Resumption::Expired => {
                let over = format!(
                    "nobody answered what run `{}` asked, and no answer can come any more",
                    run.record.id
                );
                return Err(Refused(over)).hint("to go on without an answer: pml run --resume RUN \"…\"");
            }
            Resumption::Not | Resumption::InVain => {
                let message = message(prompt(arguments)?);
                runtime.block_on(hosting.told(desk, &run.record, message, input))
            }
        };
        return Ok((run, beginning));
    }
    let prompt = prompt(arguments)?;
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
    Ok((run, beginning))
}

/// Drives a run until it is over, or waits for an answer that nobody here will give.
async fn host(
    hosting: &Hosting,
    desk: &Desk,
    run: HostedRun,
    mut beginning: Beginning,
    attended: Attendance,
) -> anyhow::Result<ExitCode> {
    let mut run = run;
    let environment = run.environment.clone();
    // The person who is here stays here while the agent is put aside.
    let input = beginning.input;
    let mut typed = TypedLines::new(attended);
    output::note(&format!(
        "run {} · {}",
        run.record.id,
        Shown::path(&run.record.directory)
    ));
    loop {
        let proxy = run.proxy.clone();
        let (controls, received) = mpsc::channel(WAITING);
        let (surface, lines) = mpsc::channel(WAITING);
        let driving = drive(run, beginning, received, surface);
        let showing = input::attend(desk, &mut typed, controls, lines, attended);
        let (end, shown) = tokio::join!(driving, showing);
        proxy.close(Urgency::Gentle).await;
        let ending = shown? == Attended::HostEnds;
        let RunEnd {
            record,
            result,
            complaint,
            lock,
        } = spoken(end)?;
        let code = match &record.state {
            RunState::Ended {
                outcome: RunOutcome::Done,
            } => 0,
            RunState::Ended { outcome } => {
                if result.is_none() && !complaint.trim().is_empty() {
                    output::note(&Shown::block(complaint.trim()).to_string());
                }
                if *outcome == RunOutcome::Failed && result.is_none() {
                    output::note("the agent ended before it had done anything");
                }
                1
            }
            _ => {
                match hosting.resumption(desk, &record).await {
                    Resumption::Goes(again) if !ending && rested(&record).await? => {
                        beginning = Beginning { input, ..again };
                        run = again_hosted(hosting, record, lock).await?;
                        run.environment = environment.clone();
                        continue;
                    }
                    Resumption::InVain => {
                        tell_in_vain(hosting, record, lock).await;
                        desk.close().await;
                        return Ok(ExitCode::FAILURE);
                    }
                    Resumption::Waits if attended == Attendance::Terminal && !ending => {
                        if let Some(again) =
                            input::wait_for_answer(hosting, desk, &mut typed, &record).await?
                        {
                            beginning = Beginning { input, ..again };
                            run = again_hosted(hosting, record, lock).await?;
                            run.environment = environment.clone();
                            continue;
                        }
                    }
                    Resumption::Goes(_) | Resumption::Waits | Resumption::Not | Resumption::Expired => {}
                }
                tell_parked(&record);
                PARKED
            }
        };
        desk.close().await;
        return Ok(ExitCode::from(code));
    }
}

/// Prepares a run once more, off the runtime's thread.
async fn again_hosted(hosting: &Hosting, record: RunRecord, lock: RunLock) -> anyhow::Result<HostedRun> {
    let hosting = hosting.clone();
    spoken(tokio::task::spawn_blocking(move || hosting.hosted_again(record, lock)).await?)
}

fn message(text: String) -> Message {
    Message {
        uuid: uuid::Uuid::new_v4().to_string(),
        text,
        images: Vec::new(),
        priority: Priority::Next,
    }
}

/// Returns what the agent is to do: an argument, or what is piped in.
fn prompt(arguments: &RunArguments) -> anyhow::Result<String> {
    if let Some(prompt) = arguments.prompt.as_deref().filter(|prompt| *prompt != "-") {
        return Ok(prompt.to_owned());
    }
    let nothing = || {
        Err(Refused("there is nothing for the agent to do".to_owned()))
            .hint("say it: pml run \"fix the failing test\"\nor pipe it in: pml run - < task.md")
    };
    if std::io::stdin().is_terminal() {
        return nothing();
    }
    let mut text = String::new();
    std::io::stdin()
        .take(PROMPT_LIMIT)
        .read_to_string(&mut text)
        .context("cannot read the prompt")?;
    if text.trim().is_empty() {
        nothing()
    } else {
        Ok(text)
    }
}

/// Reads a time such as `30s`, `10m`, `2h`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits
        .parse()
        .map_err(|_| "a time is a number with `s`, `m` or `h`".to_owned())?;
    let seconds = match &text[digits.len()..] {
        "" | "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3_600),
        _ => None,
    };
    let day = 24 * 3_600;
    match seconds {
        Some(seconds) if seconds <= day => Ok(Duration::from_secs(seconds)),
        Some(_) => Err("a day is the most; `0` waits for ever".to_owned()),
        None => Err("a time is a number with `s`, `m` or `h`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_with_a_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("45"), Ok(Duration::from_secs(45)));
        assert_eq!(duration("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for wrong in ["", "s", "1d", "-1s", "1.5m", "25h", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
