//! `pml run --attach`: a run that another process drives, watched and talked to from here.

use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::console::{Console, Role};
use super::surface::Attendance;
use super::{PARKED, WAITING, spoken};
use crate::cli::{CommandContext, output};
use crate::host::{
    Control, EventTail, Hosting, RunInput, RunLine, RunLineSender, RunOutcome, RunRecord, RunState, run_lines,
};
use crate::proxy::Desk;

/// How often what happened in the run is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Shows a run as it goes on, until no process drives it any more or its watcher leaves.
pub(super) async fn watch(
    context: &CommandContext,
    hosting: &Hosting,
    desk: &Desk,
    record: RunRecord,
    attended: Attendance,
) -> anyhow::Result<ExitCode> {
    let mut console = Console::begin(desk, attended, Role::Watcher, &context.environment)?;
    let (controls, said) = mpsc::channel(WAITING);
    let (surface, lines) = run_lines();
    let left = CancellationToken::new();
    let following = async {
        let followed = follow(hosting, &record, surface);
        tokio::select! {
            followed = followed => followed,
            () = left.cancelled() => Ok(()),
        }
    };
    let passing = pass_on(hosting, &record, said, &left);
    let showing = console.attend(controls, lines);
    let (followed, (), ()) = tokio::join!(following, showing, passing);
    if left.is_cancelled() {
        console.note(&format!(
            "the run goes on; to watch it again: pml run --attach {}",
            record.id
        ));
    }
    console.end().await;
    desk.close().await;
    followed?;
    if left.is_cancelled() {
        return Ok(ExitCode::SUCCESS);
    }
    let record = spoken(hosting.runs().read(&record.id))?;
    Ok(ExitCode::from(match record.state {
        RunState::Ended {
            outcome: RunOutcome::Done,
        } => 0,
        RunState::Ended { .. } => 1,
        _ => {
            output::say(&super::waits(&record));
            PARKED
        }
    }))
}

/// Passes on what happens in a run, from its beginning, until no process drives it.
async fn follow(hosting: &Hosting, record: &RunRecord, surface: RunLineSender) -> anyhow::Result<()> {
    let mut tail = EventTail::after(&hosting.runs().directory(&record.id), 0);
    loop {
        let (runs, id) = (hosting.runs().clone(), record.id.clone());
        let looked = tokio::task::spawn_blocking(move || {
            // Looked at first: what is written before the process lets go is read below.
            let driven = runs.is_driven(&id);
            let found = tail.look();
            (driven, found, tail)
        });
        let (driven, found, again) = looked.await?;
        tail = again;
        let found = found?;
        for event in found.events {
            if let Some(line) = RunLine::read(event.line)
                && surface.send(line).await.is_err()
            {
                return Ok(());
            }
        }
        match (found.more, driven) {
            (true, _) => {}
            (false, true) => tokio::time::sleep(LOOK).await,
            (false, false) => return Ok(()),
        }
    }
}

/// Leaves what the person says here for the process that drives the run.
async fn pass_on(
    hosting: &Hosting,
    record: &RunRecord,
    mut said: mpsc::Receiver<Control>,
    left: &CancellationToken,
) {
    while let Some(control) = said.recv().await {
        let input = match control {
            Control::Message(message) => RunInput::Message(message),
            Control::Interrupt => RunInput::Interrupt,
            Control::Stop => RunInput::Stop,
            // Who watches may go without ending the run.
            Control::EndOfInput | Control::HostEnds => {
                left.cancel();
                continue;
            }
        };
        let (runs, id) = (hosting.runs().clone(), record.id.clone());
        let put = tokio::task::spawn_blocking(move || runs.put_input(&id, &input)).await;
        if let Ok(Err(error)) = put {
            output::note(&crate::report::render_hinted(&error));
        }
    }
}
