//! One configuration file as a layer of a [`Config`]: read as bytes, parsed, then checked.

use std::fs::Metadata;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged as _;

use super::document::{self, DocumentFault};
use super::file::{
    ByEntry, DialogEntry, File, ModeEntry, PatternText, ProtocolEntry, Seconds, ServerEntry, StartupEntry,
};
use super::layer_kind::LayerKind;
use super::regular_file::{self, OpenFault};
use super::{
    AskUserMode, AskUserTools, By, Config, ConfigError, DialogMode, FilePosition, LineLimit, Problem, Rule,
    RuleList, Server, Startup, ToolFilter, VariablesFile, launch, ownership, user_settings, wants,
};
use crate::protocol::{CoveredTools, DependencyName, Era, Pattern, PatternError};

/// Far above any real configuration; a bound on what a file from outside can make us hold and compile.
const SIZE_LIMIT: u64 = 1024 * 1024;

/// More than any person writes; each is compiled to an automaton of some kilobytes and tried on every call.
const WILDCARD_LIMIT: usize = 1000;

/// More patterns than any person writes or reads: each is shown before a project's file is accepted.
const PATTERN_LIMIT: usize = 5000;

/// How long a server may take to start unless it says otherwise: a cold package on a slow disk takes most of it.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A lock holds the definitions of every tool: that of a server has some tens of kilobytes, that of two hundred fits.
const LOCK_SIZE_LIMIT: u64 = 8 * SIZE_LIMIT;

/// Reads a file as text without a look at its owner; `None` if there is no such file.
pub(crate) fn load(path: &Path) -> Result<Option<String>, ConfigError> {
    read(path, SIZE_LIMIT, |_opened| Ok(()))
}

/// Reads a lock as text; `None` if there is no such file. It grants nothing, so that its owner does not matter.
pub(crate) fn load_lock(path: &Path) -> Result<Option<String>, ConfigError> {
    read(path, LOCK_SIZE_LIMIT, |_opened| Ok(()))
}

/// Reads a file that is obeyed: it belongs to the user or root, and no other user may write it.
pub(crate) fn load_owned(path: &Path) -> Result<Option<String>, ConfigError> {
    read(path, SIZE_LIMIT, |opened| {
        ownership::check(path, opened).map_err(|unowned| ConfigError::NotObeyed {
            path: path.to_owned(),
            unowned,
        })
    })
}

/// Reads a project's file together with how it looked when it was opened.
pub(super) fn load_project(path: &Path) -> Result<Option<(String, Metadata)>, ConfigError> {
    let mut looked = None;
    let text = read(path, SIZE_LIMIT, |opened| {
        looked = Some(opened.clone());
        Ok(())
    })?;
    Ok(text.zip(looked))
}

fn read(
    path: &Path,
    limit: u64,
    accept: impl FnOnce(&Metadata) -> Result<(), ConfigError>,
) -> Result<Option<String>, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let (file, opened) = match regular_file::open(path) {
        Ok(opened) => opened,
        Err(OpenFault::NotAFile) => {
            return Err(ConfigError::NotAFile {
                path: path.to_owned(),
            });
        }
        Err(OpenFault::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            return dangling(path).map_or(Ok(None), |path| Err(ConfigError::Dangling { path }));
        }
        Err(OpenFault::Io(error)) => return Err(failed(error)),
    };
    accept(&opened)?;
    let size = opened.len().min(limit);
    // One byte more, so that the end is seen without growing.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        let (line, column) = document::position(&before, valid);
        ConfigError::Invalid {
            path: path.to_owned(),
            line,
            column,
            problem: Problem::NotUtf8,
        }
    })?;
    Ok(Some(text))
}

/// Returns the link by which a path leads nowhere: itself, or a folder above it.
fn dangling(path: &Path) -> Option<PathBuf> {
    let mut there = path.ancestors().filter(|path| path.symlink_metadata().is_ok());
    // What is there and leads nowhere is a link.
    there
        .next()
        .filter(|path| path.metadata().is_err())
        .map(Path::to_owned)
}

/// Adds what `text` declares on top of `config`; returns what it declares and wants, in words.
pub(super) fn add(
    config: &mut Config,
    path: &Path,
    text: &str,
    kind: LayerKind,
) -> Result<Vec<String>, ConfigError> {
    let mut wants = Vec::new();
    located(path, text, |text| {
        wants = try_add(config, path, text, kind)?;
        Ok(())
    })?;
    Ok(wants)
}

/// Runs a reader over `text` and turns its fault into a line and a column of `path`.
pub(super) fn located(
    path: &Path,
    text: &str,
    reader: impl FnOnce(&str) -> Result<(), DocumentFault>,
) -> Result<(), ConfigError> {
    // Columns are counted without the mark: no editor shows it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    reader(text).map_err(|fault| {
        let (line, column) = document::position(text, fault.at.unwrap_or(0));
        ConfigError::Invalid {
            path: path.to_owned(),
            line,
            column,
            problem: fault.problem,
        }
    })
}

/// Reads a pattern of a list; an error says what is wrong with it there.
fn pattern_of(text: &str, list: RuleList) -> Result<Pattern, String> {
    let pattern: Pattern = text.parse().map_err(|error: PatternError| error.to_string())?;
    if pattern.tools() == CoveredTools::ReadOnly && list != RuleList::Allow {
        return Err(format!(
            "`{pattern}` can only be allowed: what a server says of its tools may loosen nothing that forbids"
        ));
    }
    Ok(pattern)
}

fn try_add(
    config: &mut Config,
    path: &Path,
    text: &str,
    kind: LayerKind,
) -> Result<Vec<String>, DocumentFault> {
    let tree = document::parse(text)?;
    let file: File = document::read(&tree)?;
    let wants = match kind {
        LayerKind::User | LayerKind::Either => Vec::new(),
        LayerKind::Project | LayerKind::UnacceptedProject => wants::wants_of(&file),
    };
    match kind {
        LayerKind::User | LayerKind::Either | LayerKind::Project => settle(config, &file),
        LayerKind::UnacceptedProject => narrow(config, &file),
    }
    user_settings::settle(config, kind, &file, &tree)?;
    let source = |at: usize| {
        let (line, column) = document::position(text, at);
        FilePosition {
            file: path.to_owned(),
            line,
            column,
        }
    };

    let permissions = object(tree.as_object(), "permissions");
    let mut compiled = 0;
    let mut patterns_read = 0;
    for (list, name, patterns) in [
        (RuleList::Allow, "allow", file.permissions.allow),
        (RuleList::Ask, "ask", file.permissions.ask),
        (RuleList::Deny, "deny", file.permissions.deny),
    ] {
        let places = permissions
            .and_then(|object| object.get_array(name))
            .map_or(&[][..], |array| &array.elements);
        for (PatternText(text), place) in patterns.into_iter().zip(places) {
            let refused = |reason: String| DocumentFault::new(place.start(), Problem::Refused(reason));
            let pattern = pattern_of(&text, list).map_err(refused)?;
            patterns_read += 1;
            if patterns_read > PATTERN_LIMIT {
                return Err(refused(format!("more than {PATTERN_LIMIT} patterns")));
            }
            compiled += usize::from(pattern.only_name().is_none());
            if compiled > WILDCARD_LIMIT {
                let reason = format!("more than {WILDCARD_LIMIT} patterns with wildcards");
                return Err(refused(reason));
            }
            let rule = Rule {
                pattern,
                list,
                source: Some(source(place.start())),
            };
            match (kind, list) {
                (LayerKind::UnacceptedProject, RuleList::Allow) => config.withheld.push(rule),
                _ => config.rules.push(rule),
            }
        }
    }

    let servers = object(tree.as_object(), "mcpServers");
    let directory = path.parent().unwrap_or(Path::new("/"));
    for (name, entry) in file.mcp_servers {
        let place = servers.and_then(|object| object.get(name.as_str()));
        let at = place.map_or(0, |property| property.name.start());
        DependencyName::of_server(name.as_str())
            .map_err(|error| DocumentFault::new(at, Problem::Refused(error.to_string())))?;
        let refused = |at: usize, reason: String| {
            DocumentFault::new(at, Problem::Refused(format!("server `{name}`: {reason}")))
        };
        let tools = place.and_then(|property| match &property.value {
            Value::Object(object) => object.get("tools"),
            _ => None,
        });
        let filter = entry.tools.as_ref().map(|patterns| {
            let elements = tools.and_then(|property| property.value.as_array());
            let at = tools.map_or(at, |property| property.name.start());
            let place = |index: usize| {
                let element = elements.and_then(|array| array.elements.get(index));
                element.map_or(at, jsonc_parser::common::Ranged::start)
            };
            ToolFilter::read(&name, patterns, &source(at), |index| source(place(index)))
                .map_err(|(index, reason)| refused(place(index), reason))
        });
        let filter = filter.transpose()?;
        let declared = config.servers.get_mut(&name);
        match (filter, declared) {
            // A project narrows what the user declares; where they do not, there is nothing to narrow.
            (Some(filter), declared) if kind != LayerKind::User && entry.only_narrows() => {
                if let Some(declared) = declared {
                    declared.tools.push(filter);
                }
            }
            (filter, declared) => {
                let mut server =
                    server(entry, directory, source(at)).map_err(|reason| refused(at, reason))?;
                // What the user's list takes away stays away, however a project declares the server.
                server.tools = declared.map(|before| before.tools.clone()).unwrap_or_default();
                server.tools.extend(filter);
                config.servers.insert(name, server);
            }
        }
    }

    Ok(wants)
}

/// Takes over what a file says beside rules and servers.
fn settle(config: &mut Config, file: &File) {
    if let Some(seconds) = file.approvals.ttl_seconds {
        config.approvals.time_to_live = seconds.duration();
    }
    // The stricter word counts: a project cannot take away the person that the user asked for.
    if let Some(ByEntry::Human) = file.approvals.by {
        config.approvals.by = By::Human;
    }
    if let Some(dialog) = file.approvals.dialog {
        config.approvals.dialog = match dialog {
            DialogEntry::Auto => DialogMode::Auto,
            DialogEntry::Never => DialogMode::Never,
        };
    }
    if let Some(enabled) = file.ask_user.enabled {
        config.ask_user.tools = if enabled {
            AskUserTools::Listed
        } else {
            AskUserTools::Off
        };
    }
    if let Some(mode) = file.ask_user.mode {
        config.ask_user.mode = match mode {
            ModeEntry::Suspend => AskUserMode::Suspend,
            ModeEntry::Blocking => AskUserMode::Blocking,
        };
    }
    if let Some(seconds) = file.ask_user.timeout_seconds {
        config.ask_user.timeout = Some(seconds.duration());
    }
    if let Some(days) = file.ask_user.keep_days {
        config.ask_user.kept = days.duration();
    }
    if let Some(bytes) = file.limits.line_bytes {
        config.line_limit = LineLimit(usize::try_from(bytes.0).unwrap_or(usize::MAX));
    }
}

/// Takes over only what makes pml stricter.
fn narrow(config: &mut Config, file: &File) {
    if let Some(ByEntry::Human) = file.approvals.by {
        config.approvals.by = By::Human;
    }
    if file.ask_user.enabled == Some(false) {
        config.ask_user.tools = AskUserTools::Off;
    }
    if let Some(bytes) = file.limits.line_bytes {
        let bytes = usize::try_from(bytes.0).unwrap_or(usize::MAX);
        config.line_limit = LineLimit(bytes.min(config.line_limit.0));
    }
}

fn object<'a, 'b>(parent: Option<&'b Object<'a>>, name: &str) -> Option<&'b Object<'a>> {
    parent?.get(name).and_then(|property| match &property.value {
        Value::Object(object) => Some(object),
        _ => None,
    })
}

fn server(entry: ServerEntry, directory: &Path, source: FilePosition) -> Result<Server, String> {
    let launch = launch::of(&entry)?;
    let env = entry.env.unwrap_or_default();
    if env
        .keys()
        .any(|name| name.is_empty() || name.contains(['=', '\0']))
    {
        return Err("a variable's name in `env` is empty or contains `=`".to_owned());
    }
    let variables_file = entry.env_file.as_deref();
    let variables_file = variables_file.map(|declared| VariablesFile::new(directory, declared));
    Ok(Server {
        launch,
        env,
        variables_file: variables_file.transpose()?,
        cwd: entry
            .cwd
            .map_or_else(|| directory.to_owned(), |cwd| directory.join(cwd)),
        directory: directory.to_owned(),
        disabled: entry.disabled,
        allow_scripts: entry.allow_scripts,
        startup: match entry.startup {
            StartupEntry::Lazy => Startup::Lazy,
            StartupEntry::Eager => Startup::Eager,
        },
        opened_in: entry.protocol.map(|protocol| match protocol {
            ProtocolEntry::Initialize => Era::Legacy,
            ProtocolEntry::Modern => Era::Modern,
        }),
        start_timeout: entry
            .start_timeout_seconds
            .map_or(START_TIMEOUT, Seconds::duration),
        call_timeout: entry.call_timeout_seconds.map(Seconds::duration),
        idle: entry.idle_seconds.map(Seconds::duration),
        tools: Vec::new(),
        source,
    })
}
