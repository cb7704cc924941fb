//! `pml run --attach`: a run that another process drives, watched and talked to from here.

use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::mpsc;

use super::input::{self, TypedLines};
use super::{Attendance, PARKED, spoken};
use crate::host::{Control, Hosting, RunInput, RunLine, RunOutcome, RunRecord, RunState, events_after};
use crate::proxy::Desk;

/// How often what happened in the run is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Shows a run as it goes on, until no process drives it any more.
pub(super) async fn watch(
    hosting: &Hosting,
    desk: &Desk,
    record: RunRecord,
    attended: Attendance,
) -> anyhow::Result<ExitCode> {
    let mut typed = TypedLines::new(attended);
    let (controls, said) = mpsc::channel(16);
    let (surface, lines) = mpsc::channel(256);
    let (id, directory) = (record.id.clone(), hosting.runs().directory(&record.id));
    let runs = hosting.runs().clone();
    let following = async move {
        let mut reached = 0;
        loop {
            // Looked at first: what is written before the process lets go is read below.
            let driven = runs.is_driven(&id);
            let from = directory.clone();
            let events = tokio::task::spawn_blocking(move || events_after(&from, reached)).await??;
            for event in events {
                reached = event.number;
                if let Some(line) = RunLine::read(event.line)
                    && surface.send(line).await.is_err()
                {
                    return anyhow::Ok(());
                }
            }
            if !driven {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let passing = pass_on(hosting, &record, said);
    let showing = input::attend(desk, &mut typed, controls, lines, attended);
    let (followed, shown, ()) = tokio::join!(following, showing, passing);
    followed?;
    shown?;
    let record = spoken(hosting.runs().read(&record.id))?;
    Ok(ExitCode::from(match record.state {
        RunState::Ended {
            outcome: RunOutcome::Done,
        } => 0,
        RunState::Ended { .. } => 1,
        _ => PARKED,
    }))
}

/// Leaves what the person says here for the process that drives the run.
async fn pass_on(hosting: &Hosting, record: &RunRecord, mut said: mpsc::Receiver<Control>) {
    while let Some(control) = said.recv().await {
        let input = match control {
            Control::Message(message) => RunInput::Message(message),
            Control::Interrupt => RunInput::Interrupt,
            Control::Stop => RunInput::Stop,
            // Who watches may go without ending the run.
            Control::EndOfInput | Control::HostEnds => continue,
        };
        let (runs, id) = (hosting.runs().clone(), record.id.clone());
        let put = tokio::task::spawn_blocking(move || runs.put_input(&id, &input)).await;
        if let Ok(Err(error)) = put {
            crate::cli::output::note(&crate::report::render_hinted(&error));
        }
    }
}
