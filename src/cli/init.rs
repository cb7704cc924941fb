//! `pml init`: a commented `.pml.json`, and pml registered in the client's `.mcp.json` if the person agrees.
//!
//! An existing `.pml.json` is never touched, unless by the import that was asked for. Of `.mcp.json` a copy is
//! kept before the one entry is added; every other byte of it stays.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::terminal::{self, TerminalReply};
use super::{CommandContext, output};
use crate::config::{self, ConfigError, Files, PROJECT_FILE};
use crate::loader::find_program;
use crate::permissions::writer::{self, FileCreation, FileEdit, FileKind, WriteError};
use crate::permissions::{ConfigChange, servers};
use crate::protocol::{DependencyName, Shown};

/// The file in which Claude Code looks for the servers of a project.
const CLIENT_FILE: &str = ".mcp.json";

/// Under which name pml stands there; tools are then `mcp__pml__…`.
const OWN_NAME: &str = "pml";

/// What a new `.pml.json` says: everything asks, and how that is changed.
const TEMPLATE: &str = r#"{
  "version": "0.1.0",

  // Which tools run. Deny always wins; otherwise the most specific pattern; a tie asks; no rule asks.
  // A pattern covers `server:tool`: `*`, `?`, `{a,b}`, `[a-z]`; `server` alone means all its tools.
  "permissions": {
    // Runs without a question, such as "filesystem:read_*".
    "allow": [],
    // Never runs, such as "github:delete_*".
    "deny": [],
    // `*` asks a person before a server is first installed or started; anything narrower, before every call.
    "ask": ["*"]
  },

  // The servers behind pml, in the shape of a client's own file: entries can be pasted here.
  // To add one at an exact version: pml add time -- uvx mcp-server-time
  "mcpServers": {}
}
"#;

/// How far to go.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Copy the servers of `.mcp.json` into `.pml.json`
    #[arg(long)]
    import: bool,
    /// Register pml in `.mcp.json` without asking
    #[arg(short, long)]
    yes: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// What came of the registration.
enum Registration {
    /// pml stands there already.
    Already,
    /// It was added; the copy of the old file, if there was one.
    Done { backup: Option<PathBuf> },
    /// The person does not want it.
    Declined,
    /// There was no terminal to ask at.
    Unasked,
}

/// What came of the import.
#[derive(Default)]
struct ImportReport {
    copied: Vec<String>,
    /// Each with the reason.
    left: Vec<(String, String)>,
}

/// Writes the file and registers pml.
pub(crate) fn run(context: &CommandContext, arguments: &InitArguments) -> anyhow::Result<ExitCode> {
    let path = match &context.config {
        Some(_) => context.files().project,
        // Not the nearest one upwards: a person who runs `init` here means this directory.
        None => context.environment.working_directory().join(PROJECT_FILE),
    };
    let client = path.with_file_name(CLIENT_FILE);
    // A client's file that cannot be read, or is a link to somewhere else, is told before anything is written.
    writer::resolve(&client, FileKind::Client)?;
    let before = config::load_text(&client)?;
    let present = before.as_deref().map(servers).transpose()?.unwrap_or_default();
    let counted = context.files().project;
    let files = Files {
        project: path.clone(),
        ..context.files()
    };
    let created = writer::create(&path, FileKind::Pml(&files), TEMPLATE)?;
    if let FileCreation::New(durability) = &created {
        output::warn(durability);
    }
    output::say(&match &created {
        FileCreation::New(_) => format!("created {}", context.path(&path)),
        FileCreation::Existed => format!("{} is there already and was left as it is", context.path(&path)),
    });
    note_others(context, &path, &counted);
    let imported = if arguments.import {
        import(context, &files, &present)?
    } else {
        ImportReport::default()
    };
    let registration = register(context, arguments, &client, &present)?;
    advise(context, arguments, &client, &present, &registration);
    let code = u8::from(matches!(registration, Registration::Declined));
    if arguments.json {
        let written = output::json(&json!({
            "file": path.to_string_lossy(),
            "created": matches!(created, FileCreation::New(_)),
            "clientFile": client.to_string_lossy(),
            "registered": matches!(registration, Registration::Already | Registration::Done { .. }),
            "backup": match &registration {
                Registration::Done { backup: Some(backup) } => Some(backup.to_string_lossy()),
                _ => None,
            },
            "imported": imported.copied,
            "notImported": imported.left.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }));
        return Ok(output::verdict(code, written)?);
    }
    Ok(ExitCode::from(code))
}

/// Says which other configuration counted here before, or still does.
fn note_others(context: &CommandContext, path: &Path, counted: &Path) {
    let counts = context.files().project;
    if counts != path {
        output::note(&format!("what counts here is {}", context.path(&counts)));
    } else if counted != path {
        output::note(&format!(
            "{} does not count here any more: the nearest file does",
            context.path(counted)
        ));
    }
}

/// Copies the servers of the client's file, each that can be one of pml's.
fn import(
    context: &CommandContext,
    files: &Files,
    present: &Map<String, Value>,
) -> anyhow::Result<ImportReport> {
    let path = &files.project;
    let mut imported = ImportReport::default();
    let mut changes = Vec::new();
    let text = config::load_text(path)?.unwrap_or_default();
    let declared = config::check(path, &text)?.servers;
    for (name, entry) in present.iter().filter(|(name, entry)| !is_pml(name, entry)) {
        let change = ConfigChange::PutServer {
            name: name.clone(),
            entry: entry.clone(),
        };
        let stands = name
            .parse::<DependencyName>()
            .is_ok_and(|name| declared.contains_key(&name));
        if stands {
            imported
                .left
                .push((name.clone(), "it is declared there already".to_owned()));
            continue;
        }
        match writer::preview(path, FileKind::Pml(files), std::slice::from_ref(&change)) {
            Ok(_) => {
                imported.copied.push(name.clone());
                changes.push(change);
            }
            Err(error) => {
                imported.left.push((name.clone(), reason(&error)));
            }
        }
    }
    if !changes.is_empty() {
        let edited = context.edit(path, FileKind::Pml(files), &changes)?;
        output::say(&terminal::difference(
            &context.path(&edited.file),
            edited.before.as_deref(),
            &edited.after,
        ));
        output::warn(&edited.durability);
    }
    for (name, reason) in &imported.left {
        output::note(&format!("`{}` was not copied: {reason}", Shown::line(name)));
    }
    Ok(imported)
}

/// Returns what is wrong, without a place in a text that was not written.
fn reason(error: &WriteError) -> String {
    match error {
        WriteError::Breaking { source, .. } => match &**source {
            ConfigError::Invalid { problem, .. } => problem.to_string(),
            source => source.to_string(),
        },
        error => error.to_string(),
    }
}

fn register(
    context: &CommandContext,
    arguments: &InitArguments,
    client: &Path,
    present: &Map<String, Value>,
) -> anyhow::Result<Registration> {
    if present.iter().any(|(name, entry)| is_pml(name, entry)) {
        output::say(&format!("pml is registered in {} already", context.path(client)));
        return Ok(Registration::Already);
    }
    let change = ConfigChange::PutServer {
        name: OWN_NAME.to_owned(),
        entry: json!({ "command": "pml", "args": ["stdio"] }),
    };
    let changes = [change];
    let FileEdit {
        file, before, after, ..
    } = writer::preview(client, FileKind::Client, &changes)?;
    output::say(&format!(
        "\n{}\n",
        terminal::difference(&context.path(&file), before.as_deref(), &after)
    ));
    if !arguments.yes {
        let question = format!("Register pml in {}?", context.path(&file));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let reply = runtime.block_on(terminal::confirm(&question))?;
        match reply {
            TerminalReply::Yes => {}
            TerminalReply::No => return Ok(Registration::Declined),
            TerminalReply::Nobody => return Ok(Registration::Unasked),
        }
    }
    let backup = writer::back_up(client, FileKind::Client)?;
    output::warn(&writer::edit(client, FileKind::Client, &changes)?.durability);
    Ok(Registration::Done { backup })
}

/// Says what came of it and what to do next.
fn advise(
    context: &CommandContext,
    arguments: &InitArguments,
    client: &Path,
    present: &Map<String, Value>,
    registration: &Registration,
) {
    let file = context.path(client);
    match registration {
        Registration::Already => {}
        Registration::Done { backup } => {
            let kept = backup.as_ref().map_or_else(String::new, |backup| {
                format!("; what stood there before is in {}", context.path(backup))
            });
            output::say(&format!("registered pml in {file}{kept}"));
        }
        Registration::Declined => output::say(&format!("{file} was left as it is")),
        Registration::Unasked => {
            output::say(&format!(
                "{file} was left as it is: there is no terminal to ask in"
            ));
            output::say("to register pml: pml init --yes, or: claude mcp add pml -- pml stdio");
        }
    }
    let others: Vec<_> = present
        .iter()
        .filter(|(name, entry)| !is_pml(name, entry))
        .map(|(name, _)| format!("`{}`", Shown::line(name)))
        .collect();
    if !others.is_empty() {
        let next = if arguments.import {
            "take them out there once they work behind pml"
        } else {
            "to move them behind pml, paste their entries into .pml.json (or: pml init --import) and take them out there"
        };
        output::note(&format!(
            "{file} starts {} without pml; {next}",
            others.join(", ")
        ));
    }
    if find_program("pml", &context.environment).is_none() {
        output::note("`pml` is not on the PATH, so a client cannot start it by that name");
    }
}

/// Tells whether an entry of a client's file is pml itself, under whatever name or path.
fn is_pml(name: &str, entry: &Value) -> bool {
    let starts_pml = entry["command"]
        .as_str()
        .and_then(|command| Path::new(command).file_name())
        .is_some_and(|program| program == "pml");
    name == OWN_NAME || (starts_pml && entry["args"][0] == "stdio")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_file_is_a_valid_configuration_that_says_no_more_than_the_defaults() {
        let path = Path::new("/project/.pml.json");
        let template = config::check(path, TEMPLATE).unwrap();
        let defaults = config::check(path, writer::DEFAULTS).unwrap();
        assert!(template.servers.is_empty());
        let rules = |config: &config::Config| -> Vec<_> {
            let rules = config.rules.iter();
            rules.map(|rule| (rule.list, rule.pattern.to_string())).collect()
        };
        assert_eq!(rules(&template), rules(&defaults));
    }

    #[test]
    fn pml_is_recognised_under_any_name_and_path() {
        let plain = json!({ "command": "pml", "args": ["stdio"] });
        let path = json!({ "command": "/opt/bin/pml", "args": ["stdio"] });
        assert!(is_pml("pml", &json!({ "url": "x" })));
        assert!(is_pml("tools", &plain));
        assert!(is_pml("tools", &path));
        assert!(!is_pml("tools", &json!({ "command": "npx", "args": ["pml"] })));
    }
}
