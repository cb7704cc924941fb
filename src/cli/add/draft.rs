//! The draft of an addition: the declaration and the launch, prepared before anything is written or run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::CommandContext;
use super::super::failure::{Hinted as _, Refused, hinted};
use super::error::AddError;
use super::{AddArguments, StartupWord};
use crate::clients::{ClearSecret, clear_address, clear_header, clear_variable, clear_word};
use crate::config::{self, Config, Files, Launch, Server};
use crate::loader::{Plan, VersionSpec, pin, plan};
use crate::permissions::ConfigChange;
use crate::permissions::writer::{self, FileEdit, FileKind};
use crate::protocol::{Shown, shell};

/// One declaration on its way into a file.
pub(super) struct Draft {
    /// The file.
    pub(super) path: PathBuf,
    /// The files of this place, of which it is one.
    files: Files,
    /// What it would say.
    pub(super) edited: FileEdit,
    /// The entry as written.
    pub(super) entry: Value,
    /// The entry as read.
    pub(super) server: Server,
    /// What it would run.
    pub(super) plan: Arc<Plan>,
    /// The longest line that is read from it.
    pub(super) line_limit: usize,
}

/// Refuses a secret on its way into the file of a project, which is shared.
fn no_secret(arguments: &AddArguments) -> anyhow::Result<()> {
    match clear_secret(arguments).filter(|_found| !arguments.user) {
        None => Ok(()),
        Some(ClearSecret { what, instead }) => {
            let instead: Vec<String> = instead
                .iter()
                .map(|word| match word.as_str() {
                    "…" => word.clone(),
                    word => shell::word(word),
                })
                .collect();
            let instead = Shown::line(&instead.join(" ")).to_string();
            let more = if instead.starts_with("-- ") { "" } else { " …" };
            let name = &arguments.name;
            Err(Refused(format!(
                "{what} would stand in the project's file, which others read"
            )))
            .hint(format!(
                "to take it from your environment whenever the server starts: pml add {name} {instead}{more}\n\
                 to write it into your own file instead: pml add --user {name} …"
            ))
        }
    }
}

/// Finds a secret in the clear in what was typed.
fn clear_secret(arguments: &AddArguments) -> Option<ClearSecret> {
    let name = arguments.name.as_str();
    let mut variables = arguments.variables.iter();
    let mut headers = arguments.headers.iter();
    let mut url = arguments.url.iter();
    variables
        .find_map(|(name, value)| clear_variable(name, value))
        .or_else(|| headers.find_map(|(header, value)| clear_header(name, header, value)))
        .or_else(|| url.find_map(|url| clear_address(name, url)))
        .or_else(|| clear_word(name, &arguments.line))
}

/// Returns how the server is started, as it was typed.
pub(super) fn launch(arguments: &AddArguments) -> Launch {
    let mut line = arguments.line.iter().cloned();
    match (&arguments.url, &arguments.package) {
        (Some(url), _) => Launch::Remote {
            url: url.clone(),
            headers: arguments.headers.iter().cloned().collect(),
        },
        (None, Some(package)) => Launch::Package {
            package: package.clone(),
            args: line.collect(),
        },
        (None, None) => Launch::Command {
            command: line.next().unwrap_or_default(),
            args: line.collect(),
        },
    }
}

impl Draft {
    /// Works out the declaration and its plan; writes nothing.
    pub(super) fn new(
        context: &CommandContext,
        arguments: &AddArguments,
        launch: &Launch,
    ) -> anyhow::Result<Self> {
        no_secret(arguments)?;
        let files = context.files();
        let kind = kind_of(arguments, &files);
        let path = if arguments.user {
            &files.user
        } else {
            &files.project
        };
        let line_limit = config::read(&files)?.line_limit.0;
        let name = &arguments.name;
        let entry = entry(arguments, launch);
        let edited = writer::preview(path, kind, &[put(arguments, &entry)])?;
        vacant(context, arguments, path, edited.before.as_deref())?;
        let server = config::check(path, &edited.after)?
            .servers
            .remove(name)
            .ok_or_else(|| anyhow::anyhow!("`{name}` is lost on its way into {}", context.path(path)))?;
        let plan = Arc::new(plan(name, &server, &context.environment)?);
        Ok(Self {
            path: path.clone(),
            files: files.clone(),
            edited,
            entry,
            server,
            plan,
            line_limit,
        })
    }

    /// Returns the declaration with its package at exactly `version`.
    pub(super) fn pinned(
        self,
        context: &CommandContext,
        arguments: &AddArguments,
        version: &str,
    ) -> anyhow::Result<Self> {
        let wanted = VersionSpec::Exact(version.to_owned());
        let is_exact = |draft: &Self| {
            draft
                .plan
                .package()
                .is_some_and(|package| *package.version() == wanted)
        };
        if is_exact(&self) {
            return Ok(self);
        }
        let unpinnable = || {
            hinted(AddError::Unpinnable {
                name: arguments.name.clone(),
                line: Shown::line(&arguments.line.join(" ")).to_string(),
            })
        };
        let launch = pin(&self.server.launch, version).ok_or_else(unpinnable)?;
        let draft = Self::new(context, arguments, &launch)?;
        if is_exact(&draft) {
            Ok(draft)
        } else {
            Err(unpinnable())
        }
    }

    /// Writes the declaration.
    pub(super) fn write(
        &self,
        context: &CommandContext,
        arguments: &AddArguments,
    ) -> anyhow::Result<FileEdit> {
        // Minutes may have passed at the question: what stands there now counts.
        let text = config::load_text(&self.path)?;
        if text != self.edited.before && !arguments.replace {
            let taken = declares(&self.path, text.as_deref(), arguments)?;
            if taken {
                return Err(Refused(format!(
                    "meanwhile `{}` was declared by somebody else",
                    arguments.name
                )))
                .hint("to see it: pml list");
            }
        }
        Ok(context.edit(
            &self.path,
            kind_of(arguments, &self.files),
            &[put(arguments, &self.entry)],
        )?)
    }
}

/// Tells whose file the declaration goes into.
fn kind_of<'a>(arguments: &AddArguments, files: &'a Files) -> FileKind<'a> {
    if arguments.user {
        FileKind::User
    } else {
        FileKind::Pml(files)
    }
}

fn put(arguments: &AddArguments, entry: &Value) -> ConfigChange {
    ConfigChange::PutServer {
        name: arguments.name.to_string(),
        entry: entry.clone(),
    }
}

/// Refuses a name that stands in the file already.
fn vacant(
    context: &CommandContext,
    arguments: &AddArguments,
    path: &Path,
    before: Option<&str>,
) -> anyhow::Result<()> {
    let name = &arguments.name;
    if arguments.replace || !declares(path, before, arguments)? {
        return Ok(());
    }
    Err(Refused(format!(
        "`{name}` is declared in {} already",
        context.path(path)
    )))
    .hint("to put this one in its place: pml add --replace …")
}

fn declares(path: &Path, text: Option<&str>, arguments: &AddArguments) -> anyhow::Result<bool> {
    let config = text.map_or_else(|| Ok(Config::default()), |text| config::check(path, text))?;
    Ok(config.servers.contains_key(&arguments.name))
}

/// Returns the entry of `mcpServers`; what is as by default is not written.
fn entry(arguments: &AddArguments, launch: &Launch) -> Value {
    let mut entry = Map::new();
    let nothing = Vec::new();
    let args = match launch {
        Launch::Command { command, args } => {
            entry.insert("command".to_owned(), json!(command));
            args
        }
        Launch::Package { package, args } => {
            entry.insert("package".to_owned(), json!(package));
            args
        }
        Launch::Remote { url, headers } => {
            // Other clients need the word to tell it from a program.
            entry.insert("type".to_owned(), json!("http"));
            entry.insert("url".to_owned(), json!(url));
            if !headers.is_empty() {
                entry.insert("headers".to_owned(), json!(headers));
            }
            &nothing
        }
    };
    if !args.is_empty() {
        entry.insert("args".to_owned(), json!(args));
    }
    if !arguments.variables.is_empty() {
        let variables: Map<String, Value> = arguments
            .variables
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        entry.insert("env".to_owned(), Value::Object(variables));
    }
    if arguments.allow_scripts {
        entry.insert("allowScripts".to_owned(), json!(true));
    }
    if arguments.startup == StartupWord::Eager {
        entry.insert("startup".to_owned(), json!("eager"));
    }
    Value::Object(entry)
}
