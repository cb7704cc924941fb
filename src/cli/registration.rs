//! Registers pml in one client: shown, asked, written down in a journal, then written.

use std::collections::BTreeMap;

use super::failure::{Refused, hinted};
use super::import::{ClaudeOrder, carry_out, say_left};
use super::own_program::own_program;
use super::terminal::{self, TerminalReply};
use super::{CommandContext, output};
use crate::clients::{
    ClaudeChange, ClientError, ClientFile, ClientPlace, Editing, Journal, OWN_NAME, own_entry, program_of,
    renewed_entry,
};
use crate::protocol::Shown;
use crate::proxy::now;

/// What came of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registration {
    /// pml stands there already, by this very program.
    Already,
    /// It does now.
    Done,
    /// The person does not want it.
    Declined,
    /// There was no terminal to ask at.
    Unasked,
    /// The person has to do it, as was said.
    Left,
}

/// Whether the person agreed beforehand.
#[derive(Debug)]
pub(super) enum Agreement {
    /// They did.
    Given,
    /// They are asked; `beforehand` is the command that would have said so.
    Asked { beforehand: String },
}

/// Reads the file of a client, to tell what is wrong with it.
pub(super) fn check(place: &ClientPlace) -> Result<(), ClientError> {
    ClientFile::read(place.clone()).map(drop)
}

/// Registers pml in a client, if the person agrees.
pub(super) fn register(
    context: &CommandContext,
    place: &ClientPlace,
    agreement: &Agreement,
) -> anyhow::Result<Registration> {
    let file = ClientFile::read(place.clone())?;
    let program = own_program().map_err(hinted)?;
    let title = place.client.title;
    let shown = context.path(&file.path);
    let standing = file.registration();
    if standing.and_then(|standing| program_of(&standing.entry)) == Some(program.clone()) {
        output::say(&format!("pml is registered in {shown} already"));
        return Ok(Registration::Already);
    }
    let own = own_entry(place.client, &program, &[], None);
    let (name, own) = match standing {
        Some(standing) => (
            standing.name.clone(),
            renewed_entry(&standing.entry, &own).map_err(Refused)?,
        ),
        None => (OWN_NAME.to_owned(), own),
    };
    output::say(&format!(
        "\n{title}, {shown}: starts {} stdio",
        Shown::path(&program)
    ));
    let others: Vec<_> = file
        .others()
        .map(|server| format!("`{}`", Shown::line(&server.name)))
        .collect();
    if !others.is_empty() {
        output::note(&format!(
            "{shown} starts {} without pml; to bring them behind it: pml import {}",
            others.join(", "),
            place.client.id
        ));
    }
    if let Agreement::Asked { beforehand } = agreement {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        match runtime.block_on(terminal::confirm(&format!("Register pml in {title}?")))? {
            TerminalReply::Yes => {}
            TerminalReply::No => return Ok(Registration::Declined),
            TerminalReply::Nobody => {
                output::say(&format!(
                    "{shown} was left as it is: there is no terminal to ask in"
                ));
                output::say(&format!("to agree beforehand: {beforehand}"));
                return Ok(Registration::Unasked);
            }
        }
    }
    let mut journal = Journal {
        at: now().millis(),
        clients: Vec::new(),
        claude: Vec::new(),
        configurations: Vec::new(),
        handed: BTreeMap::new(),
    };
    if place.client.is_edited_by_pml(place.scope) {
        let edit = file.edited(&[], Some((&name, &own)))?;
        edit.check()?;
        journal.clients.push(file.change(&edit, &[], Some(&name)));
        journal.write(context.locations.state())?;
        edit.write()?;
    } else if place.client.editing == Editing::OwnProgram {
        let put = ClaudeOrder::Put {
            name,
            entry: own.to_string(),
        };
        journal.claude.push(ClaudeChange {
            scope: place.scope.as_str().to_owned(),
            directory: place.project.clone(),
            removed: serde_json::Map::new(),
            put: Some(own),
        });
        let path = journal.write(context.locations.state())?;
        let left = carry_out(context, &[put], place.scope, &place.project)?;
        if !left.is_empty() {
            Journal::remove(&path)?;
            say_left(context, &file.path, &place.project, &left);
            return Ok(Registration::Left);
        }
    } else {
        super::import::print_for_person(context, &file.path, &own);
        return Ok(Registration::Left);
    }
    output::say(&format!(
        "registered pml in {shown}; to take it back: pml import --undo"
    ));
    Ok(Registration::Done)
}
