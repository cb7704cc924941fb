//! The guard before every command that grants something: an agent must not answer for its person.
//!
//! An agent that runs `pml` by its own shell tool inherits the mark of its client and has no terminal. That is a
//! fence and no wall: a process of the same user that makes itself a terminal gets over it. Where `approvals.by` is
//! `"client"` the client speaks for the person anyway, so nothing is refused there.

use std::io::IsTerminal as _;

use super::{CommandContext, Haste};
use crate::config::By;
use crate::proxy::{AGENT_MARK, AnswerWeight, Effect, Relation, Runner, Terminal, may_answer};
use crate::report::Hint;
use crate::workflow::{Provenance, Road};

/// Says that a command was run by an agent and not by a person.
#[derive(Debug, thiserror::Error)]
#[error(
    "`pml {command}` is for a person, and an agent runs it: `{AGENT_MARK}` is set{}",
    excuse.in_words()
)]
pub(crate) struct NotAPerson {
    /// The command, as it is typed.
    command: String,
    excuse: Excuse,
}

/// What would let an agent run a command all the same.
#[derive(Debug, Clone, Copy)]
enum Excuse {
    /// A terminal, or a configuration that takes the client's word.
    TerminalOrClient,
    /// A terminal only: whom a person trusts no model decides.
    Terminal,
}

impl Excuse {
    fn in_words(self) -> &'static str {
        match self {
            Self::TerminalOrClient => ", there is no terminal, and \"approvals.by\" is not \"client\"",
            Self::Terminal => ", and there is no terminal",
        }
    }
}

impl NotAPerson {
    /// Names the command that an agent ran.
    pub(crate) fn running(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            excuse: Excuse::TerminalOrClient,
        }
    }

    /// Names a command by which a person says whom they trust.
    pub(crate) fn trusting(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            excuse: Excuse::Terminal,
        }
    }
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
    // A configuration that cannot be read takes a person's word only.
    let by = context.read().map_or(By::Human, |config| config.approvals.by);
    let runner = Runner::of(&context.environment, terminal());
    // A terminal counts in every project, so how it relates to this one plays no part.
    match may_answer(by, Road::Cli, Relation::OtherProject, runner, Effect::Grants) {
        Ok(AnswerWeight::Decides) => Ok(()),
        Ok(AnswerWeight::Looks) | Err(_) => Err(NotAPerson::running(command)),
    }
}

/// Refuses an agent that would have what its person's own settings hold back, whatever `approvals.by` says.
pub(crate) fn required_for_haste(
    context: &CommandContext,
    command: &str,
    haste: Haste,
) -> Result<(), NotAPerson> {
    let runner = Runner::of(&context.environment, terminal());
    match (haste, runner) {
        (Haste::Now, Runner::Agent) => Err(NotAPerson::trusting(&format!("{command} --now"))),
        _ => Ok(()),
    }
}

/// Refuses an agent that would accept what a server has become, or change what is the person's alone, such as their
/// clients, whatever `approvals.by` says.
pub(crate) fn required_to_accept(context: &CommandContext, command: &str) -> Result<(), NotAPerson> {
    match Runner::of(&context.environment, terminal()) {
        Runner::Agent => Err(NotAPerson::trusting(command)),
        Runner::Person => Ok(()),
    }
}

/// Tells whether this process can be typed at.
pub(crate) fn terminal() -> Terminal {
    if std::io::stdin().is_terminal() || std::io::stderr().is_terminal() {
        Terminal::Present
    } else {
        Terminal::Missing
    }
}

/// Names this terminal as the place an answer comes from: `cli:pts/3`.
pub(crate) fn provenance() -> Provenance {
    let name = rustix::termios::ttyname(std::io::stdin(), Vec::new())
        .or_else(|_| rustix::termios::ttyname(std::io::stderr(), Vec::new()));
    match name {
        Ok(name) => {
            let name = name.to_string_lossy();
            Provenance::of(Road::Cli, name.strip_prefix("/dev/").unwrap_or(&name))
        }
        Err(_) => Road::Cli.into(),
    }
}
