//! `pml inbox`: the screen where a person answers every agent; `--once` asks in plain lines, `--json` only watches.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::{Value, json};

use super::desk::TerminalDesk;
use super::failure::hinted;
use super::{CommandContext, answer, approve, output, refuse, terminal};
use crate::card::{Card, Decision};
use crate::inbox::terminal::{self as screen, Palette};
use crate::protocol::Shown;
use crate::proxy::{ChangedCards, Desk, now};
use crate::report::Hint;
use crate::workflow::Workflow;

/// How often a watcher without anything to write looks whether anybody reads.
const LOOK: Duration = Duration::from_secs(1);

/// What its help says besides.
pub(crate) const HELP: &str = "\
Keys: arrows choose an ask, Enter opens it, Esc goes back, PgUp and PgDn scroll, h shows the history, q leaves.
A decision takes two keys: c continue, s session, a always or x abort, then Enter. On a question: arrows or 1-9
choose, Space marks, letters begin an answer in your own words, Ctrl-J begins a new line, Tab goes to the next
question, Enter goes on to the review, Ctrl-X aborts. The bottom of the screen lists the keys that count.
Nothing counts in the first 0.3 seconds after the screen changed, and silence is never an answer.

Examples:
  pml inbox
  pml inbox --once                     asks about the oldest in plain lines
  pml inbox --json                     for scripts: all asks, then each change, one JSON value per line

Exit code of --once: 0 answered, 1 nothing waits or you left it waiting, 2 error.";

/// How the asks are shown.
#[derive(Debug, Args)]
pub(crate) struct InboxArguments {
    /// Ask about the oldest ask in plain lines, then end
    #[arg(long, conflicts_with = "json")]
    once: bool,
    /// Print the asks and each change of them as JSON lines, until interrupted
    #[arg(long)]
    json: bool,
}

/// Says why there is no screen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoScreen {
    /// Nobody would see it, or could type.
    #[error("`pml inbox` is for a terminal, and there is none here")]
    NotATerminal,
    /// It can only write line after line.
    #[error("this terminal cannot show a screen: `TERM` is \"dumb\"")]
    Dumb,
}

impl Hint for NoScreen {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotATerminal => {
                "to see what waits: pml pending\nto be asked in plain lines, in a terminal: pml inbox --once\n\
                 to follow it in a script: pml inbox --json"
            }
            Self::Dumb => "to be asked in plain lines: pml inbox --once\nto see what waits: pml pending",
        };
        Some(hint.to_owned())
    }
}

/// Opens the inbox.
pub(crate) fn run(context: &CommandContext, arguments: &InboxArguments) -> anyhow::Result<ExitCode> {
    if arguments.json {
        let desk = TerminalDesk::open(context)?;
        desk.wait_for(follow(desk.desk()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.once {
        return once(context);
    }
    let variable = |name| {
        context
            .environment
            .variable(name)
            .and_then(|value| value.to_str())
    };
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(hinted(NoScreen::NotATerminal));
    }
    if variable("TERM") == Some("dumb") {
        return Err(hinted(NoScreen::Dumb));
    }
    let palette = Palette::of(variable("NO_COLOR"), variable("TERM"));
    let desk = TerminalDesk::open(context)?;
    desk.wait_for(screen::run(desk.desk(), desk.by(), palette))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints all asks, then each change, until a signal comes or nobody reads any more.
async fn follow(desk: &Desk) -> anyhow::Result<()> {
    let mut revisions = desk.revisions().await?;
    let _surface = desk.open_surface().await;
    let mut revision = print_snapshot(desk).await?;
    let mut ended = std::pin::pin!(async {
        tokio::select! {
            () = terminal::interrupted() => {}
            () = without_reader() => {}
        }
    });
    loop {
        tokio::select! {
            () = &mut ended => return Ok(()),
            changed = revisions.changed() => changed?,
        }
        revisions.borrow_and_update();
        match desk.changed_since(revision).await? {
            ChangedCards::These { latest, cards } => {
                for card in cards {
                    print_line(&json!({ "type": "card", "card": card }))?;
                }
                revision = latest;
            }
            ChangedCards::ReadAnew => {
                print_line(&json!({ "type": "reset" }))?;
                revision = print_snapshot(desk).await?;
            }
        }
    }
}

async fn print_snapshot(desk: &Desk) -> anyhow::Result<u64> {
    let snapshot = desk.snapshot().await?;
    print_line(&json!({
        "type": "snapshot",
        "rev": snapshot.revision,
        "pending": snapshot.pending,
        "recent": snapshot.recent,
    }))?;
    Ok(snapshot.revision)
}

fn print_line(value: &Value) -> Result<(), output::StdoutError> {
    output::data(&Shown::json(&value.to_string()))
}

/// Waits until the reader of stdout is gone; a pipe that breaks wakes nobody who does not write.
async fn without_reader() {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        let stdout = std::io::stdout();
        let mut pipe = [PollFd::new(&stdout, PollFlags::empty())];
        let looked = rustix::event::poll(&mut pipe, Some(&Timespec::default()));
        if looked.is_ok() && pipe[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return;
        }
    }
}

/// Puts the oldest ask to the person in plain lines.
fn once(context: &CommandContext) -> anyhow::Result<ExitCode> {
    let desk = TerminalDesk::open(context)?;
    let Some(workflow) = desk.pending()?.into_iter().next() else {
        output::say("nothing waits for an answer");
        return Ok(ExitCode::from(1));
    };
    if !terminal::is_there() {
        return Err(hinted(NoScreen::NotATerminal));
    }
    output::say(&workflow.full_summary(now()));
    desk.check(&workflow, "inbox --once")?;
    let card = desk.desk().card(&workflow);
    if card.questions.is_empty() {
        decide(context, &desk, &workflow, &card)?;
    } else {
        let answers = answer::ask_all(&card)?;
        answer::record(&desk, &workflow, answers)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn decide(
    context: &CommandContext,
    desk: &TerminalDesk,
    workflow: &Workflow,
    card: &Card,
) -> anyhow::Result<()> {
    for choice in &card.choices {
        let letter = letter(choice.decision);
        output::say(&format!("  {letter}  {}: {}", choice.label, choice.grants));
    }
    if let Some(always) = &card.always_writes {
        output::say(&format!(
            "     always writes \"{}\" into {}",
            always.rule, always.file
        ));
    }
    loop {
        let typed = answer::typed(&workflow.code, "Which letter? (Enter leaves it waiting) ")?;
        let typed = typed.trim();
        let choice = card
            .choices
            .iter()
            .find(|choice| letter(choice.decision) == typed);
        match choice.map(|choice| choice.decision) {
            None if typed.is_empty() => return Err(answer::left(&workflow.code)),
            None => output::note("that is none of these letters"),
            Some(Decision::Abort) => {
                let reason = answer::typed(&workflow.code, "Why? (optional) ")?;
                return refuse::record(desk, workflow, Some(reason));
            }
            Some(decision) => return approve::record(context, desk, workflow, decision),
        }
    }
}

fn letter(decision: Decision) -> &'static str {
    match decision {
        Decision::Once => "c",
        Decision::Session => "s",
        Decision::Always => "a",
        Decision::Abort => "x",
    }
}
