//! `pml import [CLIENT…]`: the servers of clients come behind pml, and pml takes their place there.
//!
//! Everything is looked at first and shown; then a person agrees, once. Then each server is started once: its tools are
//! known by that, and one that does not work stays in its client. What will be written is put down in a journal, then
//! written, the configuration before the clients: killed at any moment, a server stands in its client, behind pml, or in
//! both, and `--undo` or a second import goes on from there.

mod apply;
mod claude_program;
mod declarations;
mod fate;
mod learning;
mod leftovers;
mod naming;
mod reason;
mod survey;
mod table;
mod undo;
mod value_names;
mod versions;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

pub(super) use self::apply::print_for_person;
pub(super) use self::claude_program::{ClaudeOrder, carry_out, say_left};
use self::learning::Learned;
use self::leftovers::Leftovers;
use self::survey::Survey;
use super::failure::{Hinted as _, Refused, hinted};
use super::own_program::own_program;
use super::terminal::{self, TerminalReply};
use super::{CommandContext, Haste, interruption, output, person};
use crate::clients::{CLIENTS, Client, client};
use crate::protocol::DependencyName;

/// Which clients, and how far to go.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word that can be typed")]
pub(crate) struct ImportArguments {
    /// The clients whose servers are taken; without a name, all that have some
    #[arg(value_name = "CLIENT", value_parser = client_named)]
    clients: Vec<&'static Client>,
    /// Take the servers of this file only, which is in the format of one of the clients
    #[arg(long, value_name = "FILE", conflicts_with_all = ["clients", "undo"])]
    from: Option<PathBuf>,
    /// Declare all of them in the project's file
    #[arg(long, conflicts_with_all = ["user", "undo"])]
    project: bool,
    /// Declare all of them in the user's file
    #[arg(long, conflicts_with = "undo")]
    user: bool,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Leave the servers in their clients as well, where they run without pml
    #[arg(long, conflicts_with = "undo")]
    keep: bool,
    /// Take the last import back
    #[arg(long)]
    undo: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Where the servers are declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// Those of the user's files in the user's file, those of a project's in the project's.
    ByScope,
    /// All in the project's file.
    Project,
    /// All in the user's file.
    User,
}

/// What stays in the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Originals {
    /// pml takes the place of what it has.
    Replaced,
    /// Everything.
    Kept,
}

/// What is imported, and how far.
#[derive(Debug)]
pub(super) struct ImportOrder {
    /// The clients; none means all.
    pub(super) clients: Vec<&'static Client>,
    pub(super) from: Option<PathBuf>,
    pub(super) destination: Destination,
    pub(super) originals: Originals,
    /// Whether a person agreed beforehand.
    pub(super) yes: bool,
}

impl ImportOrder {
    /// Everything that is found, each into the file of its scope.
    pub(super) fn everything(yes: bool) -> Self {
        Self {
            clients: Vec::new(),
            from: None,
            destination: Destination::ByScope,
            originals: Originals::Replaced,
            yes,
        }
    }
}

/// What came of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportEnd {
    /// It is done.
    Done,
    /// Something of it could not be done, as was said.
    Partly,
    /// There was nothing to do.
    Nothing,
    /// The person does not want it.
    Declined,
}

impl ImportArguments {
    /// Tells whether it changes anything, which is for a person to say.
    pub(crate) fn grants(&self) -> bool {
        !self.dry_run
    }

    fn order(&self) -> ImportOrder {
        ImportOrder {
            clients: self.clients.clone(),
            from: self.from.clone(),
            destination: match (self.project, self.user) {
                (true, _) => Destination::Project,
                (false, true) => Destination::User,
                (false, false) => Destination::ByScope,
            },
            originals: if self.keep {
                Originals::Kept
            } else {
                Originals::Replaced
            },
            yes: self.yes,
        }
    }
}

/// Reads the name of a client.
pub(super) fn client_named(name: &str) -> Result<&'static Client, String> {
    client(name).ok_or_else(|| {
        let names: Vec<_> = CLIENTS.iter().map(|client| client.id).collect();
        format!("pml knows {}", names.join(", "))
    })
}

/// Imports, or takes the last import back.
pub(crate) fn run(context: &CommandContext, arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    if arguments.undo {
        return undo::run(context, arguments.yes, arguments.json);
    }
    let order = arguments.order();
    if arguments.dry_run {
        let survey = surveyed(context, &order)?;
        let Some(survey) = survey else {
            return Ok(ExitCode::from(1));
        };
        table::show(context, &survey, &order);
        if arguments.json {
            output::json(
                &json!({ "dryRun": true, "import": table::json(&survey), "unread": table::unread_json(&survey) }),
            )?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (end, report) = import(context, &order)?;
    let code = match end {
        ImportEnd::Done | ImportEnd::Nothing => 0,
        ImportEnd::Partly | ImportEnd::Declined => 1,
    };
    let written = if arguments.json {
        output::json(&report)
    } else {
        Ok(())
    };
    Ok(output::verdict(code, written)?)
}

/// Imports as a person agrees; returns what came of it, also as scripts see it.
pub(super) fn import(
    context: &CommandContext,
    order: &ImportOrder,
) -> anyhow::Result<(ImportEnd, serde_json::Value)> {
    // Before a person reads and agrees: what clients start must stay where it is.
    own_program().map_err(hinted)?;
    let leftovers = Leftovers::before(context);
    let Some(mut survey) = surveyed(context, order)? else {
        output::say("\ninterrupted; nothing was changed");
        return Ok((ImportEnd::Declined, json!(null)));
    };
    table::show(context, &survey, order);
    if survey.is_empty() {
        let end = if survey.unread.is_empty() {
            ImportEnd::Nothing
        } else {
            ImportEnd::Partly
        };
        return Ok((
            end,
            json!({ "import": table::json(&survey), "unread": table::unread_json(&survey) }),
        ));
    }
    if !order.yes && !agreed()? {
        output::say("nothing was changed");
        return Ok((
            ImportEnd::Declined,
            json!({ "import": table::json(&survey), "unread": table::unread_json(&survey) }),
        ));
    }
    // Minutes may have passed at the question: an agent must not have become the one who asks.
    person::required_to_accept(context, "import")?;
    apply::check(&survey, order)?;
    let tried = leftovers::tried(&survey);
    let done = carry_out_agreed(context, order, &mut survey);
    // Whatever came of it, also where it could not be written.
    let removed = leftovers.remove(context, &tried);
    done.map(|(end, mut report)| {
        report["removedPackages"] = json!(removed);
        (end, report)
    })
}

/// Tries each server, and writes what works as the person agreed.
fn carry_out_agreed(
    context: &CommandContext,
    order: &ImportOrder,
    survey: &mut Survey,
) -> anyhow::Result<(ImportEnd, serde_json::Value)> {
    let Some(mut learned) = learning::run(context, survey, order)? else {
        output::say("\ninterrupted; nothing was changed");
        return Ok((
            ImportEnd::Declined,
            json!({ "import": table::json(survey), "unread": table::unread_json(survey) }),
        ));
    };
    leave_what_fails(survey, &learned, order)?;
    if survey.is_empty() {
        output::say("nothing was changed");
        let report = json!({
            "import": table::json(survey),
            "unread": table::unread_json(survey),
            "learned": learned.json(),
        });
        return Ok((ImportEnd::Partly, report));
    }
    let applied = apply::run(context, survey, order)?;
    learning::record(context, survey, order, &mut learned)?;
    let is_all = applied.failures.is_empty() && survey.unread.is_empty() && learned.is_complete();
    let end = if is_all {
        ImportEnd::Done
    } else {
        ImportEnd::Partly
    };
    output::say(&format!(
        "\nto take it back: pml import --undo{}",
        if applied.failures.is_empty() {
            ""
        } else {
            "; what was not done stands above"
        }
    ));
    let report = json!({
        "import": table::json(survey),
        "unread": table::unread_json(survey),
        "clients": applied.json(),
        "journal": applied.journal,
        "learned": learned.json(),
    });
    Ok((end, report))
}

/// Leaves what does not work in its clients, where it may: a person can want it behind pml all the same.
fn leave_what_fails(survey: &mut Survey, learned: &Learned, order: &ImportOrder) -> anyhow::Result<()> {
    for failed in learned.failed() {
        if failed.may_be_taken && !order.yes && taken_all_the_same(&failed.name)? {
            continue;
        }
        let mut clients = survey.leave(&failed.name, &failed.reason);
        clients.dedup();
        if clients.is_empty() {
            output::say(&format!("`{}` was not taken", failed.name));
            continue;
        }
        let titles: Vec<_> = clients.iter().map(|client| client.title).collect();
        let ids: Vec<_> = clients.iter().map(|client| client.id).collect();
        output::say(&format!(
            "`{}` stays in {}; to try again: pml import {}",
            failed.name,
            titles.join(", "),
            ids.join(" ")
        ));
    }
    Ok(())
}

fn taken_all_the_same(name: &DependencyName) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let question = format!("Take `{name}` behind pml all the same? Else it stays where it is.");
    let reply = runtime.block_on(terminal::confirm(&question))?;
    Ok(matches!(reply, TerminalReply::Yes))
}

fn agreed() -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let reply = runtime.block_on(terminal::confirm(
        "Import them: install each at its exact version, start it once, and write this?",
    ))?;
    match reply {
        TerminalReply::Yes => Ok(true),
        TerminalReply::No => Ok(false),
        TerminalReply::Nobody => Err(Refused(
            "nothing was imported: there is no terminal to ask in".to_owned(),
        ))
        .hint("to see what it would do: pml import --dry-run\nto agree beforehand: pml import --yes"),
    }
}

/// Looks at the clients and at the registries; `None` if the person interrupted it.
fn surveyed(context: &CommandContext, order: &ImportOrder) -> anyhow::Result<Option<Survey>> {
    let mut survey = Survey::new(context, order)?;
    let done = interruption::with_loader(context, Haste::None, async |loader| {
        versions::pin_all(context, &mut survey, loader).await;
    })?;
    Ok(done.map(|()| survey))
}

/// Tells whether any client starts a server that an import would take.
pub(super) fn finds_servers(context: &CommandContext) -> bool {
    Survey::new(context, &ImportOrder::everything(false)).is_ok_and(|survey| !survey.is_empty())
}
