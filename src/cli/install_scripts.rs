//! The install scripts of a package at the terminal: each is shown before any runs, and the answer counts for those.

use super::failure::{Hinted as _, Refused};
use super::terminal::{self, TerminalReply};
use super::{CommandContext, output, person};
use crate::config::Server;
use crate::pins::{AcceptedError, AcceptedPins, AcceptedScripts, InstallScripts};
use crate::protocol::{DependencyName, Digest};

/// The command that would have install scripts run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptsQuestion<'a> {
    /// The server.
    pub(super) name: &'a DependencyName,
    /// Its declaration.
    pub(super) server: &'a Server,
    /// The command by which a person agrees who is not there to be asked.
    pub(super) beforehand: &'a str,
    /// Whether the person agreed beforehand.
    pub(super) yes: bool,
}

impl CommandContext {
    /// Returns the digest of the install scripts that the user accepted of a server.
    pub(super) fn accepted_scripts(
        &self,
        name: &DependencyName,
        server: &Server,
    ) -> Result<Option<Digest>, AcceptedError> {
        let accepted = self.accepted(name, server)?;
        let scripts = accepted.as_ref().and_then(|accepted| accepted.scripts());
        Ok(scripts.map(|scripts| scripts.digest.clone()))
    }

    /// Records that the user accepts install scripts of a server.
    pub(super) fn accept_scripts(
        &self,
        name: &DependencyName,
        server: &Server,
        scripts: AcceptedScripts,
    ) -> Result<(), AcceptedError> {
        let pins = AcceptedPins::at(self.locations.pins());
        let content = scripts.digest.clone();
        pins.update(&server.source.file, name, |known| known.with_scripts(scripts))?;
        self.note_accepted(name, "scripts", content);
        Ok(())
    }
}

/// Shows every script and asks; returns what the person accepts, `None` where they do not.
pub(super) async fn agreed(
    context: &CommandContext,
    question: ScriptsQuestion<'_>,
    found: &InstallScripts,
) -> anyhow::Result<Option<AcceptedScripts>> {
    let name = question.name;
    let before = context.accepted(name, question.server)?;
    let before = before.as_ref().and_then(|accepted| accepted.scripts());
    output::say(&format!("{name}: these install scripts would run:"));
    output::say_lines(found.lines(before).into_iter());
    output::say("");
    let command = question.beforehand.trim_start_matches("pml ");
    person::required_to_accept(context, command)?;
    if question.yes {
        return Ok(Some(found.accepted()));
    }
    match terminal::confirm("Run them?").await? {
        TerminalReply::Yes => Ok(Some(found.accepted())),
        TerminalReply::No => Ok(None),
        TerminalReply::Nobody => Err(Refused(format!(
            "the install scripts of `{name}` did not run: they are not accepted, and there is no terminal to ask in"
        )))
        .hint(format!("to agree beforehand: {}", question.beforehand)),
    }
}
