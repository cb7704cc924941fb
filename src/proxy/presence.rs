//! Whether the process that asked still runs: read from the process table, where a number may have been given anew.

use super::now;
use crate::card::{Card, Presence};
use crate::workflow::{ProcessName, Workflow};

/// Draws the card of an ask as it stands now.
pub(super) fn card(workflow: &Workflow) -> Card {
    Card::of(workflow, presence_of(workflow.origin.client.process), now())
}

/// Names this process.
pub(super) fn own_process() -> Option<ProcessName> {
    process_name(std::process::id())
}

/// Names a process that runs.
#[must_use]
pub fn process_name(pid: u32) -> Option<ProcessName> {
    Some(ProcessName {
        pid,
        started: started_at(pid)?,
    })
}

/// Tells whether a process still runs; one that was never named counts as gone.
#[must_use]
pub fn presence_of(process: Option<ProcessName>) -> Presence {
    match process {
        Some(ProcessName { pid, started }) if started_at(pid) == Some(started) => Presence::Running,
        Some(_) | None => Presence::Gone,
    }
}

/// Returns when a process was started, in ticks since the machine was; `None` where there is no such process.
fn started_at(pid: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    read_started(&line)
}

/// Reads the 22nd field. The second one is the name of the program in brackets, which may hold blanks and brackets.
fn read_started(line: &str) -> Option<u64> {
    let (_, behind_name) = line.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace();
    // A process that has ended and was not collected yet does not run.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_one_with_its_number_from_another_time_does_not() {
        let own = own_process().unwrap();
        assert_eq!(presence_of(Some(own)), Presence::Running);
        let other = ProcessName {
            started: own.started + 1,
            ..own
        };
        assert_eq!(presence_of(Some(other)), Presence::Gone);
        assert_eq!(presence_of(None), Presence::Gone);
    }

    #[test]
    fn a_name_with_blanks_and_brackets_is_passed_over() {
        let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let line = format!("77 (a) b (c) S {}", fields.join(" "));
        assert_eq!(read_started(&line), Some(22));
        assert_eq!(read_started(&line.replace(" S ", " Z ")), None);
        assert_eq!(read_started("77 (a"), None);
    }
}
