//! The commands: one file each, and the only place that prints.
//!
//! Data goes to stdout, everything said about it to stderr. Exit codes: 0 done, 1 refused or a negative answer,
//! 2 error or usage. Where the code is an answer (`output::verdict`), it is the same where stdout has no reader.

mod add;
mod answer;
mod approve;
mod approve_server;
mod audit;
mod authority;
mod browser;
mod call;
mod candidate;
mod channels;
mod check;
mod client_tools;
mod commands;
mod completions;
mod demo;
mod desk;
mod diff;
mod dispatch;
mod doctor;
mod entry_variables;
mod failure;
mod file_size_limit;
mod forecast;
mod gc;
mod history;
mod import;
mod inbox;
mod init;
mod install;
mod install_scripts;
mod interruption;
mod introduction;
mod list;
mod lock;
mod log_filter;
mod man;
mod outdated;
mod output;
mod own_program;
mod pending;
mod person;
mod pinned_servers;
mod refuse;
mod registration;
mod remove;
mod rule;
mod rule_words;
mod rules;
mod run;
mod sample_server;
mod sbom;
mod serve;
mod server_display;
mod server_pins;
mod stdio;
mod stdio_client;
mod supervise;
mod terminal;
mod trust;
mod uninstall;
mod upgrade;
mod uses;
mod verify;
#[cfg(debug_assertions)]
mod watchdog;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tokio_util::task::TaskTracker;

use self::commands::{Command, InternalCommand};
use self::failure::Hinted as _;
use crate::config::{self, Config, ConfigError, Environment, Files, Locations};
use crate::history::History;
use crate::loader::{Loader, ReleaseAge};
use crate::permissions::writer::{self, FileEdit, FileKind, WriteDurability, WriteError};
use crate::permissions::{ConfigChange, change_records};
use crate::proxy;

/// Names the configuration where no option does.
const CONFIG_VARIABLE: &str = "PML_CONFIG";

/// One MCP server in front of many: every install gated by a rule or a person.
#[derive(Debug, Parser)]
#[command(name = "pml", version, about, propagate_version = true)]
struct CommandLine {
    #[command(flatten)]
    places: GlobalOptions,
    #[command(subcommand)]
    command: AnyCommand,
}

/// What every command can be told.
#[derive(Debug, Args)]
struct GlobalOptions {
    /// Use this file instead of looking for `.pml.json`
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = CONFIG_VARIABLE,
        hide_env_values = true
    )]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum AnyCommand {
    #[command(flatten)]
    Command(Command),
    #[command(flatten)]
    Inner(InternalCommand),
}

impl CommandLine {
    /// Reads the command line of a client, which is `pml stdio`; anything else is left to clap.
    ///
    /// The command line of pml is large: built once, its text stays in memory for as long as a client is served.
    fn read(words: impl IntoIterator<Item = OsString>) -> Option<Self> {
        if !words.into_iter().eq(["stdio"]) {
            return None;
        }
        let environment = Environment::of_process().ok()?;
        let config = environment.variable(CONFIG_VARIABLE).map(PathBuf::from);
        // What an empty name means is for clap to say.
        let is_plain = config.as_ref().is_none_or(|file| !file.as_os_str().is_empty());
        is_plain.then_some(Self {
            places: GlobalOptions { config },
            command: AnyCommand::Command(Command::Stdio),
        })
    }
}

/// Whether a person wants a version today that is too young by their own setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Haste {
    /// They do not say so.
    None,
    /// `--now`.
    Now,
}

impl Haste {
    /// Reads the option `--now`.
    pub(crate) fn of(now: bool) -> Self {
        if now { Self::Now } else { Self::None }
    }
}

/// The context of a command: environment, directories and configuration file.
#[derive(Debug)]
pub(crate) struct CommandContext {
    /// The surroundings of the process.
    pub(crate) environment: Environment,
    /// The user's directories.
    pub(crate) locations: Locations,
    /// The file given by `--config` or `PML_CONFIG`.
    pub(crate) config: Option<PathBuf>,
}

impl CommandContext {
    /// Finds the configuration.
    pub(crate) fn files(&self) -> Files {
        config::find(self.config.as_deref(), &self.environment, &self.locations)
    }

    /// Names the history of the user.
    pub(crate) fn history(&self) -> History {
        proxy::history(&self.locations, self.files())
    }

    /// Names how old a version must be before it is fetched; with `--now`, versions of any age are.
    pub(crate) fn release_age(&self, haste: Haste) -> ReleaseAge {
        let configured = proxy::release_age(self.files());
        match haste {
            Haste::None => configured,
            Haste::Now => configured.waived(),
        }
    }

    /// Returns a loader to look at servers with; one that starts them belongs to `interruption::with_loader`, which ends them.
    pub(crate) fn loader(&self, haste: Haste) -> Loader {
        let tasks = TaskTracker::new();
        Loader::new(
            &self.environment,
            &self.locations,
            self.history(),
            self.release_age(haste),
            tasks,
        )
    }

    /// Changes a configuration file and records that.
    pub(crate) fn edit(
        &self,
        path: &Path,
        kind: FileKind<'_>,
        changes: &[ConfigChange],
    ) -> Result<FileEdit, WriteError> {
        let edited = writer::edit(path, kind, changes)?;
        let by = person::provenance().to_string();
        self.history().note_now(&change_records(&edited, changes, &by));
        Ok(edited)
    }

    /// Puts a configuration file back as it was before an edit, and records that.
    pub(crate) fn put_back(
        &self,
        kind: FileKind<'_>,
        edited: &FileEdit,
        undone: &[ConfigChange],
    ) -> Result<WriteDurability, WriteError> {
        let done = writer::put_back(&edited.file, kind, &edited.after, edited.before.as_deref())?;
        let by = person::provenance().to_string();
        self.history().note_now(&change_records(edited, undone, &by));
        Ok(done)
    }

    /// Reads the configuration.
    pub(crate) fn read(&self) -> Result<Config, ConfigError> {
        config::read(&self.files())
    }
}

/// Parses the command line, runs the command and returns its exit code.
#[must_use]
pub fn run() -> ExitCode {
    if let Some(command) = supervise::read(std::env::args_os().skip(1)) {
        return command.run();
    }
    let arguments =
        match CommandLine::read(std::env::args_os().skip(1)).map_or_else(CommandLine::try_parse, Ok) {
            Ok(arguments) => arguments,
            Err(error) => return explain(&error),
        };
    let outcome = match arguments.command {
        AnyCommand::Inner(inner) => inner.run(),
        AnyCommand::Command(command) => run_command(command, arguments.places.config),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if failure::has_no_reader(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::print(&error);
            ExitCode::from(failure::code(&error))
        }
    }
}

fn run_command(command: Command, config: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let context = context(config)?;
    log_filter::to_stderr(&context.environment, command.logs());
    file_size_limit::fail_writes();
    command.run(&context)
}

/// Prints what clap has to say: the help that was wanted, or what is wrong with the command line.
fn explain(error: &clap::Error) -> ExitCode {
    // What pml starts of itself is not suggested to a person.
    let visible = (error.kind() == clap::error::ErrorKind::InvalidSubcommand)
        .then(|| visible().try_get_matches_from(std::env::args_os()).err())
        .flatten();
    let error = visible.as_ref().unwrap_or(error);
    // Help that could not be written was wanted; a reader that went away has seen enough.
    let unwritten = error.print().err();
    let failed = unwritten.is_some_and(|failed| failed.kind() != std::io::ErrorKind::BrokenPipe);
    ExitCode::from(if error.use_stderr() || failed { 2 } else { 0 })
}

/// Returns the command line as a person sees it: without what pml starts of itself.
fn visible() -> clap::Command {
    let named = clap::Command::new("pml").version(env!("CARGO_PKG_VERSION"));
    let about = named.about("One MCP server in front of many: every install gated by a rule or a person");
    Command::augment_subcommands(GlobalOptions::augment_args(about.disable_help_subcommand(true)))
}

fn context(config: Option<PathBuf>) -> anyhow::Result<CommandContext> {
    let environment = Environment::of_process()?;
    let locations = Locations::of(&environment).hint("set `HOME` to your home directory")?;
    let files = config::find(config.as_deref(), &environment, &locations).at_root(&environment);
    let environment = match files.project.parent() {
        Some(directory) => environment.in_project(directory),
        None => environment,
    };
    Ok(CommandContext {
        environment,
        locations,
        config,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_a_client_starts_is_read_as_the_command_line_reads_it() {
        let read = CommandLine::read(words("stdio")).unwrap();
        let parsed = CommandLine::parse_from(words("pml stdio"));
        assert_eq!(format!("{read:?}"), format!("{parsed:?}"));
    }

    #[test]
    fn any_other_command_line_is_left_to_clap() {
        for line in [
            "",
            "stdio --help",
            "stdio x",
            "--config a stdio",
            "stdio --config a",
            "list",
            "--version",
        ] {
            assert!(CommandLine::read(words(line)).is_none(), "{line}");
        }
    }
}
