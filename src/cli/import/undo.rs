//! `pml import --undo`: every file as it was before the last import.
//!
//! The clients come first: a server that is in its client and behind pml is one too many for a moment, never one too few.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::claude_program::{ClaudeOrder, carry_out};
use super::fate::kind;
use crate::cli::failure::{Hinted as _, Refused};
use crate::cli::server_pins::lock_beside;
use crate::cli::terminal::{self, TerminalReply};
use crate::cli::{CommandContext, output};
use crate::clients::{
    ClaudeChange, ClientFile, ConfigurationChange, Journal, OWN_NAME, Restored, client, place_of,
};
use crate::permissions::ConfigChange;
use crate::permissions::writer::{FileEdit, WriteDurability};
use crate::pins::lock_path;
use crate::protocol::{Shown, shell};
use crate::report::render_hinted;

/// Takes the last import back.
pub(super) fn run(context: &CommandContext, yes: bool, as_json: bool) -> anyhow::Result<ExitCode> {
    let state = context.locations.state();
    let Some((path, journal)) = Journal::latest(state)? else {
        return Err(Refused("there is no import that could be taken back".to_owned()).into());
    };
    for change in &journal.clients {
        output::say(&format!(
            "{} gets back: {}",
            context.path(&change.path),
            named(&change.removed)
        ));
    }
    for change in &journal.claude {
        let names: Vec<String> = change.removed.keys().cloned().collect();
        output::say(&format!(
            "Claude Code ({}) gets back: {}",
            change.scope,
            named(&names)
        ));
    }
    for change in &journal.configurations {
        output::say(&format!(
            "{} loses: {}",
            context.path(&change.path),
            named(&change.added)
        ));
    }
    if !yes && !agreed()? {
        output::say("nothing was changed");
        return Ok(ExitCode::from(1));
    }
    let (mut files, mut failed) = (Vec::new(), 0_u8);
    for change in &journal.clients {
        match change.restore() {
            Ok(restored) => {
                say_restored(context, &change.path, restored);
                files.push(json!({ "file": change.path.to_string_lossy(), "restored": word(restored) }));
            }
            Err(error) => {
                output::note(&render_hinted(&error));
                failed = 1;
            }
        }
    }
    for change in &journal.claude {
        failed |= u8::from(!give_back(context, change, &path)?);
    }
    for change in &journal.configurations {
        match configuration(context, change) {
            Ok(restored) => {
                say_restored(context, &change.path, restored);
                files.push(json!({ "file": change.path.to_string_lossy(), "restored": word(restored) }));
            }
            Err(error) => {
                output::note(&crate::cli::failure::text(&error));
                failed = 1;
            }
        }
    }
    if failed == 0 {
        Journal::remove(&path)?;
        if Journal::is_there(state) {
            output::say("an import before that can be taken back, too: pml import --undo");
        }
    } else {
        output::note("what could not be taken back can be tried again: pml import --undo");
    }
    let written = if as_json {
        output::json(&json!({ "files": files, "complete": failed == 0 }))
    } else {
        Ok(())
    };
    Ok(output::verdict(failed, written)?)
}

fn agreed() -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    match runtime.block_on(terminal::confirm("Take the import back?"))? {
        TerminalReply::Yes => Ok(true),
        TerminalReply::No => Ok(false),
        TerminalReply::Nobody => Err(Refused(
            "nothing was taken back: there is no terminal to ask in".to_owned(),
        ))
        .hint("to agree beforehand: pml import --undo --yes"),
    }
}

fn named(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("`{}`", Shown::line(name)))
        .collect();
    names.join(", ")
}

fn word(restored: Restored) -> &'static str {
    match restored {
        Restored::Already => "already",
        Restored::Whole => "whole",
        Restored::Entries => "entries",
        Restored::Gone => "gone",
    }
}

fn say_restored(context: &CommandContext, path: &Path, restored: Restored) {
    let path = context.path(path);
    match restored {
        Restored::Already => output::say(&format!("{path} is as it was already")),
        Restored::Whole => output::say(&format!("{path} is as it was, byte for byte")),
        Restored::Entries => output::note(&format!(
            "{path} was changed since: only its servers are as they were; comments in their entries are lost"
        )),
        Restored::Gone => output::note(&format!("{path} is gone, and stays so")),
    }
}

/// Has Claude Code put its servers back; tells whether all of it is done.
fn give_back(context: &CommandContext, change: &ClaudeChange, journal: &Path) -> anyhow::Result<bool> {
    let scope = change.scope();
    let place =
        client("claude").and_then(|claude| place_of(claude, scope, &context.environment, &change.directory));
    let now = place.map(ClientFile::read).transpose()?;
    let stands = |name: &str| {
        let servers = now.iter().flat_map(|file| &file.servers);
        servers
            .filter(|server| server.name == name)
            .map(|server| Value::Object(server.entry.clone()))
            .next()
    };
    let missing = change.removed.iter().filter(|(name, _)| stands(name).is_none());
    let put = missing.map(|(name, entry)| ClaudeOrder::Put {
        name: name.clone(),
        entry: entry.to_string(),
    });
    // One that a person wrote there since is theirs.
    let own = change
        .put
        .as_ref()
        .filter(|own| stands(OWN_NAME).as_ref() == Some(own));
    let removed = own.map(|_| ClaudeOrder::Remove {
        name: OWN_NAME.to_owned(),
    });
    let orders: Vec<_> = put.chain(removed).collect();
    let left = carry_out(context, &orders, scope, &change.directory)?;
    if left.is_empty() {
        output::say(&format!("Claude Code ({}) is as it was", change.scope));
        return Ok(true);
    }
    output::say(&format!(
        "Claude Code writes its file alone; in {}, type:",
        shell::path(&change.directory)
    ));
    for (order, line) in orders[orders.len() - left.len()..].iter().zip(&left) {
        match order {
            // Its entry may hold a secret: that is not printed.
            ClaudeOrder::Put { name, .. } => {
                let without = ClaudeOrder::Put {
                    name: name.clone(),
                    entry: "…".to_owned(),
                };
                output::say(&format!(
                    "  {}   (its entry stands as \"removed\" in {})",
                    without.line(scope),
                    context.path(journal)
                ));
            }
            ClaudeOrder::Remove { .. } => output::say(&format!("  {line}")),
        }
    }
    Ok(false)
}

/// Takes the servers out of a file of pml again.
fn configuration(context: &CommandContext, change: &ConfigurationChange) -> anyhow::Result<Restored> {
    let now = change.now()?;
    if now == change.before {
        return Ok(Restored::Already);
    }
    let files = context.files();
    let file_kind = kind(change.is_users, &files);
    if now.is_none() {
        return Ok(Restored::Gone);
    }
    let removals: Vec<_> = change
        .added
        .iter()
        .map(|name| ConfigChange::RemoveServer { name: name.clone() })
        .collect();
    if now.as_ref() == Some(&change.after) {
        let edited = FileEdit {
            file: change.path.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            durability: WriteDurability::Confirmed,
        };
        output::warn(&context.put_back(file_kind, &edited, &removals)?);
        unlock(context, change)?;
        return Ok(Restored::Whole);
    }
    let edited = context.edit(&change.path, file_kind, &removals)?;
    output::warn(&edited.durability);
    unlock(context, change)?;
    Ok(if edited.changed() {
        Restored::Entries
    } else {
        Restored::Already
    })
}

/// Takes the servers out of the lock beside a configuration; a lock that came with them goes with them.
fn unlock(context: &CommandContext, change: &ConfigurationChange) -> anyhow::Result<()> {
    for name in change.added.iter().filter_map(|name| name.parse().ok()) {
        context.take_out_of_lock(&change.path, &name);
    }
    let lock = lock_path(&change.path);
    if !change.had_lock && lock_beside(&change.path)?.servers.is_empty() {
        change.remove_lock(&lock)?;
    }
    Ok(())
}
