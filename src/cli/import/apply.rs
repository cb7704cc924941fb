//! Carries an import out: the journal first, then the configuration, then the clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::claude_program::{ClaudeOrder, carry_out, say_left};
use super::fate::kind;
use super::survey::{FileRole, FoundFile, Survey};
use super::{ImportOrder, Originals};
use crate::cli::failure::hinted;
use crate::cli::own_program::own_program;
use crate::cli::{CommandContext, output};
use crate::clients::{
    ClaudeChange, ClientError, ClientFile, ConfigurationChange, Edit, Editing, FileChange, Handover, Journal,
    NeededVariable, OWN_NAME, Scope, is_for_the_person, own_entry, renewed_entry,
};
use crate::permissions::ConfigChange;
use crate::permissions::writer;
use crate::pins::lock_path;
use crate::protocol::Shown;
use crate::proxy::now;
use crate::report::render_hinted;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Where it is written down.
    pub(super) journal: Option<String>,
    clients: Vec<Value>,
    /// What could not be done.
    pub(super) failures: Vec<String>,
}

impl Applied {
    /// Returns what became of each client.
    pub(super) fn json(&self) -> Value {
        json!({ "changed": self.clients, "failed": self.failures })
    }
}

/// The edit of one client, worked out.
struct Prepared<'a> {
    found: &'a FoundFile,
    removed: Vec<String>,
    own: Value,
    own_name: String,
    /// `None` where the client's own program writes it, or a person.
    edit: Option<Edit>,
    /// The variables that a person must set there.
    to_set: Vec<String>,
    /// Those of them whose values leave the file, and stand in the journal alone.
    only_in_journal: Vec<String>,
}

/// Works every edit out, and refuses if a file was saved since it was shown.
pub(super) fn check(survey: &Survey, order: &ImportOrder) -> anyhow::Result<()> {
    prepared(survey, order).map(drop)
}

fn prepared<'a>(survey: &'a Survey, order: &ImportOrder) -> anyhow::Result<Vec<Prepared<'a>>> {
    let program = own_program().map_err(hinted)?;
    let mut prepared = Vec::new();
    for found in &survey.found {
        if found.behind_pml().next().is_some() {
            prepared.push(prepare(found, order.originals, &program)?);
        }
    }
    for edit in prepared.iter().filter_map(|prepared| prepared.edit.as_ref()) {
        edit.check()?;
    }
    Ok(prepared)
}

/// Does all of it; an error means that nothing was done.
pub(super) fn run(context: &CommandContext, survey: &Survey, order: &ImportOrder) -> anyhow::Result<Applied> {
    // Whatever was saved since it was shown is seen before anything is written.
    let prepared = prepared(survey, order)?;
    let changes = configuration_changes(survey);
    let journal = journal(survey, &prepared, &changes)?;
    let state = context.locations.state();
    let path = journal.write(state)?;
    let mut applied = Applied {
        journal: Some(path.to_string_lossy().into_owned()),
        ..Applied::default()
    };
    for ((file, is_users), changes) in &changes {
        let edited = context.edit(file, kind(*is_users, &survey.files), changes);
        let edited = match edited {
            Ok(edited) => edited,
            Err(error) => {
                // The servers are in their clients as before; what was written so far can be taken back.
                return Err(error.into());
            }
        };
        output::warn(&edited.durability);
        let what = if edited.before.is_none() {
            "created"
        } else {
            "changed"
        };
        output::say(&format!("{what} {}", context.path(&edited.file)));
    }
    for prepared in &prepared {
        match &prepared.edit {
            Some(edit) => match edit.write() {
                Ok(()) => applied.client(context, prepared),
                Err(error) => applied.failed(render_hinted(&error)),
            },
            None if prepared.found.role == FileRole::Source => {}
            None if prepared.found.file.place.client.id == "claude" => {
                ask_claude(context, prepared, &mut applied)?;
            }
            None => {
                print_for_person(context, &prepared.found.file.path, &prepared.own);
                applied.failed(format!(
                    "{} is not written by pml: the servers in it run without pml until you take them out",
                    context.path(&prepared.found.file.path)
                ));
            }
        }
        tell_to_set(context, prepared, &path);
    }
    Ok(applied)
}

impl Applied {
    fn client(&mut self, context: &CommandContext, prepared: &Prepared<'_>) {
        let place = &prepared.found.file.place;
        let removed: Vec<_> = prepared
            .removed
            .iter()
            .map(|name| format!("`{}`", Shown::line(name)))
            .collect();
        let out = if removed.is_empty() {
            String::new()
        } else {
            format!(" instead of {}", removed.join(", "))
        };
        output::say(&format!(
            "{}: {} starts pml{out}",
            context.path(&prepared.found.file.path),
            place.client.title
        ));
        self.clients.push(json!({
            "client": place.client.id,
            "scope": place.scope.as_str(),
            "file": prepared.found.file.path.to_string_lossy(),
            "removed": prepared.removed,
            "toSet": prepared.to_set,
        }));
    }

    fn failed(&mut self, reason: String) {
        output::note(&reason);
        self.failures.push(reason);
    }
}

fn prepare<'a>(found: &'a FoundFile, originals: Originals, program: &Path) -> anyhow::Result<Prepared<'a>> {
    let file = &found.file;
    let (client, scope) = (file.place.client, file.place.scope);
    let is_edited = found.role == FileRole::OfClient && client.is_edited_by_pml(scope);
    let from_file = found.variables_file();
    // A value that moves within the user's own file is where it was; in a project's it would stay for everyone, and
    // among the words of a command every process could read it.
    let may_move = is_edited && scope == Scope::User;
    // What another program or a person writes gets an entry of pml once, and none that is changed.
    let may_write = is_edited || (client.editing == Editing::OwnProgram && !found.registered);
    let removed = found.removed(originals);
    // Of a file that was only read, nothing is handed over by any client.
    let is_source = found.role == FileRole::Source;
    let needed = found.variables();
    let leaves = |variable: &&NeededVariable| matches!(variable.handover, Handover::Value(_));
    let leaves_files = !may_move && !removed.is_empty() && client.editing != Editing::Person;
    let only_in_journal = needed
        .iter()
        .filter(|_| leaves_files)
        .filter(leaves)
        .map(|variable| variable.name.clone())
        .collect();
    let variables: Vec<NeededVariable> = needed
        .into_iter()
        .map(|variable| {
            let stays_nowhere = match &variable.handover {
                Handover::Value(_) => !may_move,
                Handover::Reference { variable: own, .. } => {
                    is_source || (!may_write && *own != variable.name)
                }
                Handover::Client(_) => !may_write,
                Handover::File(_) => is_source,
                Handover::Environment | Handover::Person => false,
            };
            if stays_nowhere {
                NeededVariable {
                    handover: Handover::Person,
                    ..variable
                }
            } else {
                variable
            }
        })
        .collect();
    let to_set = variables
        .iter()
        .filter(|variable| is_for_the_person(client, variable))
        .map(|variable| variable.name.clone())
        .collect();
    let own = own_entry(client, program, &variables, from_file);
    let (own_name, own) = match file.registration() {
        Some(standing) => (standing.name.clone(), renewed(file, &standing.entry, &own)?),
        None => (OWN_NAME.to_owned(), own),
    };
    let edit = is_edited
        .then(|| file.edited(&removed, Some((&own_name, &own))))
        .transpose()?;
    Ok(Prepared {
        found,
        removed,
        own,
        own_name,
        edit,
        to_set,
        only_in_journal,
    })
}

fn renewed(file: &ClientFile, standing: &Map<String, Value>, own: &Value) -> Result<Value, ClientError> {
    renewed_entry(standing, own).map_err(|reason| ClientError::Edit {
        path: file.path.clone(),
        reason,
    })
}

/// Returns what is written into the files of pml, each with whether it is the user's.
fn configuration_changes(survey: &Survey) -> BTreeMap<(PathBuf, bool), Vec<ConfigChange>> {
    let mut changes: BTreeMap<(PathBuf, bool), Vec<ConfigChange>> = BTreeMap::new();
    for taken in survey.taken() {
        let put = ConfigChange::PutServer {
            name: taken.name.to_string(),
            entry: Value::Object(taken.translation.entry.clone()),
        };
        changes
            .entry((taken.file.clone(), taken.is_users))
            .or_default()
            .push(put);
    }
    changes
}

fn journal(
    survey: &Survey,
    prepared: &[Prepared<'_>],
    changes: &BTreeMap<(PathBuf, bool), Vec<ConfigChange>>,
) -> anyhow::Result<Journal> {
    let clients: Vec<FileChange> = prepared
        .iter()
        .filter_map(|prepared| {
            let edit = prepared.edit.as_ref()?;
            let file = &prepared.found.file;
            Some(file.change(edit, &prepared.removed, Some(&prepared.own_name)))
        })
        .collect();
    let claude = prepared.iter().filter(|prepared| {
        let found = prepared.found;
        prepared.edit.is_none() && found.role == FileRole::OfClient && found.file.place.client.id == "claude"
    });
    let claude = claude.map(|prepared| {
        let file = &prepared.found.file;
        let removed: Map<String, Value> = file
            .servers
            .iter()
            .filter(|server| prepared.removed.contains(&server.name))
            .map(|server| (server.name.clone(), Value::Object(server.entry.clone())))
            .collect();
        ClaudeChange {
            scope: file.place.scope.as_str().to_owned(),
            directory: file.place.project.clone(),
            removed,
            put: (!prepared.found.registered).then(|| prepared.own.clone()),
        }
    });
    let mut configurations = Vec::new();
    for ((path, is_users), changes) in changes {
        let edited = writer::preview(path, kind(*is_users, &survey.files), changes)?;
        configurations.push(ConfigurationChange {
            had_lock: lock_path(&edited.file).exists(),
            path: edited.file,
            is_users: *is_users,
            before: edited.before,
            after: edited.after,
            added: changes
                .iter()
                .filter_map(|change| match change {
                    ConfigChange::PutServer { name, .. } => Some(name.clone()),
                    _ => None,
                })
                .collect(),
        });
    }
    Ok(Journal {
        at: now().millis(),
        clients,
        claude: claude.collect(),
        configurations,
        handed: survey.handed.clone(),
    })
}

/// Has the program of Claude Code change its own file, or tells the person what to type.
fn ask_claude(
    context: &CommandContext,
    prepared: &Prepared<'_>,
    applied: &mut Applied,
) -> anyhow::Result<()> {
    let place = &prepared.found.file.place;
    let put = ClaudeOrder::Put {
        name: prepared.own_name.clone(),
        entry: prepared.own.to_string(),
    };
    let removals = prepared
        .removed
        .iter()
        .map(|name| ClaudeOrder::Remove { name: name.clone() });
    let orders: Vec<_> = (!prepared.found.registered)
        .then_some(put)
        .into_iter()
        .chain(removals)
        .collect();
    let left = carry_out(context, &orders, place.scope, &place.project)?;
    if left.is_empty() {
        applied.client(context, prepared);
        return Ok(());
    }
    say_left(context, &prepared.found.file.path, &place.project, &left);
    applied.failed("until then Claude Code starts these servers without pml".to_owned());
    Ok(())
}

/// Shows how pml is written into a file that pml does not write.
pub(crate) fn print_for_person(context: &CommandContext, file: &Path, entry: &Value) {
    let command = entry["command"].as_str().unwrap_or_default();
    let text = format!(
        "{OWN_NAME}:\n  type: stdio\n  name: {OWN_NAME}\n  enabled: true\n  cmd: {}\n  args: [stdio]\n  timeout: 300",
        Value::from(command)
    );
    output::say(&format!(
        "pml reads {} and does not write YAML; to register pml, put this below `extensions` and take out what pml has \
         (or: goose configure):",
        context.path(file)
    ));
    for line in text.lines() {
        output::say(&format!("    {line}"));
    }
}

/// Says which variables the person sets, and where.
fn tell_to_set(context: &CommandContext, prepared: &Prepared<'_>, journal: &Path) {
    if prepared.to_set.is_empty() {
        return;
    }
    let place = &prepared.found.file.place;
    let names = prepared.to_set.join(", ");
    let title = place.client.title;
    let own_file = place.client.is_edited_by_pml(place.scope) && place.scope == Scope::User;
    let instruction = if prepared.found.role == FileRole::Source {
        format!(
            "set {names} in the environment that your clients are started in; the values stand in {}",
            context.path(&prepared.found.file.path)
        )
    } else if own_file {
        format!(
            "set {names} in the variables of `{}` in {}",
            prepared.own_name,
            context.path(&prepared.found.file.path)
        )
    } else {
        format!("set {names} in the environment that {title} is started in, such as your shell's profile")
    };
    output::note(&instruction);
    if !prepared.only_in_journal.is_empty() {
        output::say(&format!(
            "  what stood there for {} is kept for you alone in {}",
            prepared.only_in_journal.join(", "),
            context.path(journal)
        ));
    }
}
