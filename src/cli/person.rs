//! The guard before every command that grants something: an agent must not answer for its person.
//!
//! An agent that runs `pml` by its own shell tool inherits the mark of its client and has no terminal. That is a
//! fence and no wall: a process of the same user that makes itself a terminal gets over it. Where `approvals.by` is
//! `"client"` the client speaks for the person anyway, so nothing is refused there.

use std::io::IsTerminal as _;

use super::Ground;
use crate::config::{self, By, Files, PROJECT_FILE};
use crate::report::Hint;
use crate::workflow::Workflow;

/// The variable by which Claude Code marks whatever its tools start.
const MARK: &str = "CLAUDECODE";

/// Says that a command was run by an agent and not by a person.
#[derive(Debug, thiserror::Error)]
#[error(
    "`pml {command}` is for a person, and an agent runs it: `{MARK}` is set, there is no terminal, \
     and \"approvals.by\" is not \"client\""
)]
pub(crate) struct NotAPerson {
    /// The command, as it is typed.
    command: String,
}

impl Hint for NotAPerson {
    fn hint(&self) -> Option<String> {
        Some(format!(
            "a person runs it in a terminal of their own: pml {}",
            self.command
        ))
    }
}

/// Refuses an agent that would change what may run in this project.
pub(crate) fn required(ground: &Ground, command: &str) -> Result<(), NotAPerson> {
    refuse_unless(
        !is_agent(ground) || speaks_for_the_person(&ground.files()),
        command,
    )
}

/// Refuses an agent that would answer an ask, by the rules of the project that asks: where the agent stands is its
/// own choice.
pub(crate) fn required_for(ground: &Ground, workflow: &Workflow, command: &str) -> Result<(), NotAPerson> {
    let asking = Files {
        project: workflow.project.join(PROJECT_FILE),
        user: ground.locations.user_config(),
    };
    let trusted = || speaks_for_the_person(&asking) && speaks_for_the_person(&ground.files());
    refuse_unless(!is_agent(ground) || trusted(), command)
}

fn refuse_unless(may: bool, command: &str) -> Result<(), NotAPerson> {
    let command = command.to_owned();
    if may { Ok(()) } else { Err(NotAPerson { command }) }
}

fn is_agent(ground: &Ground) -> bool {
    let terminal = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
    ground.environment.variable(MARK).is_some() && !terminal
}

/// A configuration that cannot be read trusts nobody.
fn speaks_for_the_person(files: &Files) -> bool {
    config::read(files).is_ok_and(|config| config.approvals.by == By::Client)
}
