//! What a project's file declares and wants, in words for a person who decides whether to accept it.

use std::collections::BTreeSet;

use super::expansion::variables;
use super::file::{AskUserEntry, DialogEntry, File, ModeEntry, PatternText, ServerEntry, StartupEntry};
use super::steering::steers;
use crate::protocol::{Shown, shell};

/// Says what a file declares and wants, the widest want first.
pub(super) fn wants_of(file: &File) -> Vec<String> {
    let mut wants = Vec::new();
    wants.extend(rules("runs without a question", &file.permissions.allow));
    for (name, server) in &file.mcp_servers {
        wants.extend(of_server(name.as_str(), server));
    }
    if let Some(DialogEntry::Never) = file.approvals.dialog {
        wants.push("asks you without your client's own dialogs".to_owned());
    }
    if file.approvals.ttl_seconds.is_some() {
        wants.push("decides how long a suspended call waits for your answer".to_owned());
    }
    wants.extend(of_questions(&file.ask_user));
    if file.limits.line_bytes.is_some() {
        wants.push("decides how long a line from a server may be".to_owned());
    }
    wants.extend(rules("never runs", &file.permissions.deny));
    wants.extend(rules("asks before it runs", &file.permissions.ask));
    wants
}

fn rules(what: &str, patterns: &[PatternText]) -> Vec<String> {
    let said = |PatternText(pattern): &PatternText| format!("{what}: `{}`", Shown::line(pattern));
    // Each of them: what is accepted was shown. A file with very many is refused when it is read.
    patterns.iter().map(said).collect()
}

fn of_server(name: &str, server: &ServerEntry) -> Vec<String> {
    let narrows = server.tools.as_ref().map(|tools| {
        let tools: Vec<_> = tools
            .iter()
            .map(|tool| format!("`{}`", Shown::line(tool)))
            .collect();
        format!("offers of `{name}` only: {}", tools.join(", "))
    });
    if server.only_narrows() {
        return narrows.into_iter().collect();
    }
    // Quoted as for a shell: `a b` and `a`, `b` are not the same.
    let launch: Vec<&str> = [&server.command, &server.package, &server.url]
        .into_iter()
        .flatten()
        .chain(server.args.iter().flatten())
        .map(String::as_str)
        .collect();
    // The query of an address may hold a key.
    let shown = server.url.as_deref().and_then(|url| url.split_once('?'));
    let shown = shown.map_or_else(|| words(&launch), |(address, _query)| format!("{address}?…"));
    let mut told = vec![format!("declares `{name}`: {}", Shown::line(&shown))];
    let env = server.env.iter().flatten();
    told.extend(env.map(|(variable, value)| {
        let steers = steers(variable);
        let variable = Shown::line(variable);
        let read = variables(value);
        if steers {
            format!(
                "gives `{name}` the variable {variable}, which decides what code runs: {}",
                Shown::line(&shell::word(value))
            )
        } else if read.is_empty() {
            format!("gives `{name}` the variable {variable}")
        } else {
            format!(
                "gives `{name}` the variable {variable}, made of your {}",
                listed(&read)
            )
        }
    }));
    if let Some(file) = &server.env_file {
        told.push(format!(
            "gives `{name}` all variables of the file {}",
            Shown::line(file)
        ));
    }
    let headers = server.headers.iter().flatten();
    told.extend(headers.map(|(header, value)| {
        let header = Shown::line(header);
        let read = variables(value);
        if read.is_empty() {
            format!("sends the header {header} to `{name}`")
        } else {
            format!(
                "sends the header {header} to `{name}`, made of your {}",
                listed(&read)
            )
        }
    }));
    let read: BTreeSet<String> = launch.iter().flat_map(|word| variables(word)).collect();
    if !read.is_empty() {
        told.push(format!(
            "puts your {} into how `{name}` is reached",
            listed(&read)
        ));
    }
    if let Some(cwd) = &server.cwd {
        told.push(format!("runs `{name}` in {}", Shown::line(cwd)));
    }
    if server.allow_scripts {
        told.push(format!("lets install scripts run for `{name}`"));
    }
    if matches!(server.startup, StartupEntry::Eager) {
        told.push(format!("starts `{name}` before anything calls it"));
    }
    if server.disabled {
        told.push(format!("leaves `{name}` out"));
    }
    told.extend(narrows);
    told
}

/// Joins the words of a command so that each shows where it ends; plain ones stay as they are.
fn words(launch: &[&str]) -> String {
    let plain = |word: &&str| !word.is_empty() && !word.contains([' ', '\'', '"', '\\', '\t', '\n']);
    let words = launch.iter().map(|word| {
        if plain(word) {
            (*word).to_owned()
        } else {
            shell::word(word)
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn of_questions(entry: &AskUserEntry) -> Vec<String> {
    let mut told = Vec::new();
    match entry.enabled {
        Some(true) => told.push("offers the tools by which a model asks you".to_owned()),
        Some(false) => told.push("takes away the tools by which a model asks you".to_owned()),
        None => {}
    }
    if let Some(ModeEntry::Blocking) = entry.mode {
        told.push("lets a model's question hold its call".to_owned());
    }
    if entry.timeout_seconds.is_some() || entry.keep_days.is_some() {
        told.push("decides how long a model's question waits".to_owned());
    }
    told
}

fn listed(names: &BTreeSet<String>) -> String {
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("${{{}}}", Shown::line(name)))
        .collect();
    names.join(", ")
}
