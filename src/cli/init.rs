//! `pml init`: a commented `.pml.json`, the servers of clients behind pml, and pml registered in clients.
//!
//! An existing `.pml.json` is never touched, unless by an import that the person agreed to. What is written into the files
//! of clients stands in a journal, so that it can be taken back.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::failure::hinted;
use super::import::{self, ImportEnd, ImportOrder, client_named};
use super::own_program::own_program;
use super::registration::{self, Agreement, Registration};
use super::terminal;
use super::{CommandContext, output};
use crate::clients::{CLIENTS, Client, ClientPlace, Scope, client, place_of};
use crate::config::{Files, PROJECT_FILE};
use crate::permissions::writer::{self, FileCreation, FileKind};

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
    /// Register pml in this client, in the user's own file
    #[arg(long = "client", value_name = "CLIENT", value_parser = client_named, conflicts_with = "all")]
    clients: Vec<&'static Client>,
    /// Register pml in every client that is found
    #[arg(long)]
    all: bool,
    /// Import and register without asking
    #[arg(short, long)]
    yes: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Writes the file, offers the import and registers pml.
pub(crate) fn run(context: &CommandContext, arguments: &InitArguments) -> anyhow::Result<ExitCode> {
    let path = match &context.config {
        Some(_) => context.files().project,
        // Not the nearest one upwards: a person who runs `init` here means this directory.
        None => context.environment.working_directory().join(PROJECT_FILE),
    };
    let places = places(context, arguments, &path);
    // Where the program itself will not stay, nothing is written either.
    own_program().map_err(hinted)?;
    // A client's file that cannot be read, or is a link to somewhere else, is told before anything is written.
    for place in &places {
        registration::check(place)?;
    }
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
    let named = arguments.all || !arguments.clients.is_empty();
    let imported = if named {
        None
    } else {
        offer_import(context, arguments)?
    };
    let mut registrations = Vec::new();
    if imported.is_none() {
        for place in &places {
            let agreement = agreement(context, arguments, place);
            registrations.push((place, registration::register(context, place, &agreement)?));
        }
    }
    if arguments.all && places.is_empty() {
        output::say("no client is found; to name one: pml init --client CLIENT");
    }
    let declined = |end: &Registration| matches!(end, Registration::Declined | Registration::Left);
    let refused = registrations.iter().any(|(_, end)| declined(end))
        || matches!(imported, Some((ImportEnd::Declined | ImportEnd::Partly, _)));
    let code = u8::from(refused);
    if arguments.json {
        let clients: Vec<_> = registrations
            .iter()
            .map(|(place, end)| {
                json!({
                    "client": place.client.id,
                    "file": place.path.to_string_lossy(),
                    "registered": matches!(end, Registration::Already | Registration::Done),
                })
            })
            .collect();
        let written = output::json(&json!({
            "file": path.to_string_lossy(),
            "created": matches!(created, FileCreation::New(_)),
            "clients": clients,
            "import": imported.map(|(_, report)| report),
        }));
        return Ok(output::verdict(code, written)?);
    }
    Ok(ExitCode::from(code))
}

/// Tells whether the person agreed to the registration in a client; what they would type names no more than that.
fn agreement(context: &CommandContext, arguments: &InitArguments, place: &ClientPlace) -> Agreement {
    if arguments.yes {
        return Agreement::Given;
    }
    let beforehand = if arguments.all {
        "pml init --yes --all".to_owned()
    } else if place.scope == Scope::User {
        format!("pml init --yes --client {}", place.client.id)
    } else if import::finds_servers(context) {
        "pml init --yes, which brings the servers of your clients behind pml too".to_owned()
    } else {
        "pml init --yes".to_owned()
    };
    Agreement::Asked { beforehand }
}

/// Returns the files in which pml is registered.
fn places(context: &CommandContext, arguments: &InitArguments, config: &Path) -> Vec<ClientPlace> {
    let project = config.parent().unwrap_or(Path::new("/"));
    let of = |client: &'static Client, scope| place_of(client, scope, &context.environment, project);
    if arguments.all {
        let all = CLIENTS.iter().filter_map(|client| of(client, Scope::User));
        return all.filter(|place| is_found(context, place)).collect();
    }
    if !arguments.clients.is_empty() {
        let named = arguments.clients.iter();
        return named.filter_map(|client| of(client, Scope::User)).collect();
    }
    let claude = client("claude").and_then(|claude| of(claude, Scope::Project));
    claude.into_iter().collect()
}

/// Tells whether a client is on this machine: its file is there, or the directory that is its own.
fn is_found(context: &CommandContext, place: &ClientPlace) -> bool {
    let home = context.environment.variable("HOME").map(Path::new);
    let own = place.path.parent().filter(|parent| Some(*parent) != home);
    place.path.exists() || own.is_some_and(Path::exists)
}

/// Offers the import where clients have servers; `None` where there is nothing to import, or nobody to ask.
fn offer_import(
    context: &CommandContext,
    arguments: &InitArguments,
) -> anyhow::Result<Option<(ImportEnd, serde_json::Value)>> {
    if !import::finds_servers(context) {
        return Ok(None);
    }
    if !arguments.yes && !terminal::is_there() {
        output::note("your clients start servers without pml; to see them: pml import --dry-run");
        return Ok(None);
    }
    output::say("\nThese servers run without pml:\n");
    let (end, report) = import::import(context, &ImportOrder::everything(arguments.yes))?;
    Ok(match end {
        // What they declined is the import; pml may be registered all the same.
        ImportEnd::Nothing | ImportEnd::Declined if terminal::is_there() => None,
        end => Some((end, report)),
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

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
}
