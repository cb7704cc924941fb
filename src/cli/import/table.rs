//! What a person is shown of an import before they agree to it: names of secrets, never values.

use serde_json::{Value, json};

use super::ImportOrder;
use super::Originals;
use super::fate::{Fate, Taken};
use super::survey::{FileRole, FoundFile, FoundServer, Survey};
use crate::cli::{CommandContext, output};
use crate::clients::Editing;
use crate::protocol::{Shown, shell};
use crate::proxy::now;

/// Shows every server of every client, and what becomes of it.
pub(super) fn show(context: &CommandContext, survey: &Survey, order: &ImportOrder) {
    for error in &survey.unread {
        output::note(&crate::cli::failure::text(error));
    }
    if survey.found.is_empty() {
        output::say("no client starts a server without pml");
        return;
    }
    for found in &survey.found {
        for line in file(context, found, order) {
            output::say(&line);
        }
        output::say("");
    }
}

fn file(context: &CommandContext, found: &FoundFile, order: &ImportOrder) -> Vec<String> {
    let place = &found.file.place;
    let path = context.path(&found.file.path);
    let mut lines = vec![match found.role {
        FileRole::OfClient => format!("{}, {path}", place.client.describe(place.scope)),
        FileRole::Source => format!("{path} (read as {})", Shown::line(&found.file.key())),
    }];
    for server in &found.servers {
        lines.extend(one(context, server));
    }
    if found.behind_pml().next().is_some() {
        let what = match order.originals {
            _ if found.role == FileRole::Source => "this file is only read, and pml is put into no client",
            _ if place.client.editing == Editing::Person => {
                "pml does not write this file: what to change in it is printed"
            }
            Originals::Replaced if found.registered => "the servers behind pml leave this file",
            Originals::Replaced => "pml takes their place in this file",
            Originals::Kept => "pml is put beside them, and they go on running without it",
        };
        lines.push(format!("  {what}"));
    }
    lines
}

fn one(context: &CommandContext, server: &FoundServer) -> Vec<String> {
    let name = Shown::line(&server.name).to_string();
    match &server.fate {
        Fate::Stays(reason) => {
            let labels = std::iter::once("stays").chain(std::iter::repeat(""));
            let reason = labels.zip(reason.lines());
            let reason = reason.map(|(label, line)| labelled(label, &Shown::line(line).to_string()));
            std::iter::once(format!("  {name}")).chain(reason).collect()
        }
        Fate::Same { name: known, .. } => vec![
            format!("  {name}"),
            labelled("behind pml", &format!("the same as `{known}`")),
        ],
        Fate::Taken(taken) => {
            let mut lines = vec![if *taken.name.as_str() == server.name {
                format!("  {name}")
            } else {
                format!("  {name} as {}", taken.name)
            }];
            lines.extend(details(context, taken));
            lines
        }
    }
}

fn details(context: &CommandContext, taken: &Taken) -> Vec<String> {
    let shown = taken.plan.shown(taken.resolved.as_ref(), now().millis());
    let verb = if shown.remote.is_some() {
        "connect to"
    } else {
        "runs"
    };
    let mut lines = vec![
        labelled("into", &context.path(&taken.file)),
        labelled(verb, &shown.install),
    ];
    if let Some(floating) = &taken.floating {
        lines.push(labelled(
            "version",
            &format!("was floating: {}", Shown::line(floating)),
        ));
    }
    lines.extend(shown.publication().map(|when| labelled("published", &when)));
    for (label, text) in shown.surroundings.labelled() {
        lines.push(labelled(label, &text));
    }
    for note in shown.notes() {
        lines.push(labelled("note", &note));
    }
    for (name, variable) in &taken.secrets {
        lines.push(labelled(
            "secret",
            &format!("{name} stands in the clear; it becomes ${{{variable}}}"),
        ));
    }
    if let Some(tools) = taken.translation.entry.get("tools") {
        lines.push(labelled("tools", &Shown::line(&tools.to_string()).to_string()));
    }
    if taken.server.disabled {
        lines.push(labelled("disabled", "as it is in the client"));
    }
    for note in &taken.translation.notes {
        lines.push(labelled("note", &Shown::line(note).to_string()));
    }
    if let Some(tool) = &taken.translation.unasked {
        let rule = match tool.as_str() {
            "*" => taken.name.to_string(),
            tool => format!("{}:{tool}", taken.name),
        };
        lines.push(labelled(
            "",
            &format!("to let it run unasked: pml allow {}", shell::operand(&rule)),
        ));
    }
    lines
}

fn labelled(label: &str, text: &str) -> String {
    format!("    {label:10} {text}")
}

/// Returns the same as scripts see it.
pub(super) fn json(survey: &Survey) -> Value {
    let file = |found: &FoundFile| {
        json!({
            "client": found.file.place.client.id,
            "scope": found.file.place.scope.as_str(),
            "file": found.file.path.to_string_lossy(),
            "registered": found.registered,
            "servers": found.servers.iter().map(server_json).collect::<Vec<_>>(),
        })
    };
    survey.found.iter().map(file).collect()
}

/// Returns what could not be read or edited, as scripts see it.
pub(super) fn unread_json(survey: &Survey) -> Value {
    survey.unread.iter().map(crate::cli::failure::text).collect()
}

fn server_json(server: &FoundServer) -> Value {
    match &server.fate {
        Fate::Stays(reason) => json!({ "name": server.name, "fate": "stays", "reason": reason }),
        Fate::Same { name, .. } => json!({ "name": server.name, "fate": "same", "as": name }),
        Fate::Taken(taken) => json!({
            "name": server.name,
            "fate": "taken",
            "as": taken.name,
            "into": taken.file.to_string_lossy(),
            "entry": taken.translation.entry,
            "version": taken.resolved.as_ref().map(|resolved| &resolved.version),
            "integrity": taken.resolved.as_ref().and_then(|resolved| resolved.integrity.as_ref()),
            "wasFloating": taken.floating,
            "secrets": taken.secrets.iter().map(|(_, variable)| variable).collect::<Vec<_>>(),
            "notes": notes(taken),
        }),
    }
}

/// Returns what a person should know of what runs, and of what is not taken over.
fn notes(taken: &Taken) -> Vec<String> {
    let shown = taken.plan.shown(taken.resolved.as_ref(), now().millis());
    let translated = taken.translation.notes.iter().cloned();
    shown.notes().into_iter().chain(translated).collect()
}
