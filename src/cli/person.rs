//! The guard before every command that grants something: an agent must not answer for its person.
//!
//! An agent that runs `pml` by its own shell tool inherits the mark of its client and has no terminal. That is a
//! fence and no wall: a process of the same user that makes itself a terminal gets over it. Where `approvals.by` is
//! `"client"` the client speaks for the person anyway, so nothing is refused there.

use std::io::IsTerminal as _;

use super::CommandContext;
use crate::config::{self, By, Files};
use crate::proxy::{AGENT_MARK, AnswerWeight, Relation, Runner, Terminal, may_answer, stricter};
use crate::report::Hint;
use crate::workflow::{Provenance, Workflow};

/// Says that a command was run by an agent and not by a person.
#[derive(Debug, thiserror::Error)]
#[error(
    "`pml {command}` is for a person, and an agent runs it: `{AGENT_MARK}` is set, there is no terminal, \
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
pub(crate) fn required(context: &CommandContext, command: &str) -> Result<(), NotAPerson> {
    decides(policy(&context.files()), context, command)
}

/// Refuses an agent that would answer an ask, by the strictest of three policies: the one it was asked under, the one
/// that stands in that file now, and the one of this place. Where the agent stands is its own choice.
pub(crate) fn required_for(
    context: &CommandContext,
    workflow: &Workflow,
    command: &str,
) -> Result<(), NotAPerson> {
    let asking = Files::new(workflow.origin.config.clone(), context.locations.user_config());
    let by = [policy(&asking), policy(&context.files())]
        .into_iter()
        .fold(workflow.origin.by, stricter);
    decides(by, context, command)
}

fn decides(by: By, context: &CommandContext, command: &str) -> Result<(), NotAPerson> {
    // A terminal counts for every ask of the user, so how it relates to the project plays no part.
    match may_answer(by, Provenance::Cli, Relation::OtherProject, runner(context)) {
        Ok(AnswerWeight::Decides) => Ok(()),
        Ok(AnswerWeight::Looks) | Err(_) => Err(NotAPerson {
            command: command.to_owned(),
        }),
    }
}

fn runner(context: &CommandContext) -> Runner {
    let terminal = if std::io::stdin().is_terminal() || std::io::stderr().is_terminal() {
        Terminal::Present
    } else {
        Terminal::Missing
    };
    Runner::of(&context.environment, terminal)
}

/// Returns who may approve; a configuration that cannot be read takes a person's word only.
fn policy(files: &Files) -> By {
    config::read(files).map_or(By::Human, |config| config.approvals.by)
}
