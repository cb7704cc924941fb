//! The commands: one file each, and the only place that prints.
//!
//! Data goes to stdout, everything said about it to stderr. Exit codes: 0 done, 1 refused or a negative answer,
//! 2 error or usage. Where the code is an answer (`output::verdict`), it is the same where stdout has no reader.

mod add;
mod answer;
mod approve;
mod authority;
mod check;
mod commands;
mod completions;
mod demo;
mod desk;
mod failure;
mod file_size_limit;
mod forecast;
mod inbox;
mod init;
mod install;
mod list;
mod log;
mod output;
mod pending;
mod person;
mod refuse;
mod remove;
mod rule;
mod rules;
mod sample_server;
mod server_display;
mod stdio;
mod supervise;
mod terminal;
mod uninstall;
mod uses;
#[cfg(debug_assertions)]
mod watchdog;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::commands::{Command, InternalCommand};
use self::failure::Hinted as _;
use crate::config::{self, Config, ConfigError, Environment, Files, Locations};

/// One MCP server in front of many: every install gated by a rule or a person.
#[derive(Debug, Parser)]
#[command(
    name = "pml",
    version,
    about,
    propagate_version = true,
    disable_help_subcommand = true
)]
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
        env = "PML_CONFIG",
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
    let arguments = match CommandLine::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help that could not be written was wanted; a reader that went away has seen enough.
            let unwritten = error.print().err();
            let failed = unwritten.is_some_and(|failed| failed.kind() != std::io::ErrorKind::BrokenPipe);
            return ExitCode::from(if error.use_stderr() || failed { 2 } else { 0 });
        }
    };
    let config = arguments.places.config;
    let outcome = match arguments.command {
        AnyCommand::Inner(inner) => inner.run(),
        AnyCommand::Command(command) => context(config).and_then(|context| {
            log_to_stderr(&context.environment, command.logs());
            file_size_limit::fail_writes();
            command.run(&context)
        }),
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

/// Returns the command line as a person sees it: without what pml starts of itself.
fn visible() -> clap::Command {
    let named = clap::Command::new("pml").version(env!("CARGO_PKG_VERSION"));
    let about = named.about("One MCP server in front of many: every install gated by a rule or a person");
    Command::augment_subcommands(GlobalOptions::augment_args(about.disable_help_subcommand(true)))
}

fn context(config: Option<PathBuf>) -> anyhow::Result<CommandContext> {
    let environment = Environment::of_process()?;
    let locations = Locations::of(&environment).hint("set `HOME` to your home directory")?;
    let files = config::find(config.as_deref(), &environment, &locations);
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

/// Logs to stderr: stdout is data, or the wire.
fn log_to_stderr(environment: &Environment, usually: &str) {
    let wanted = environment
        .variable("PML_LOG")
        .and_then(|filter| filter.to_str())
        .unwrap_or(usually);
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(wanted);
    // What libraries log was not looked through for secrets.
    let own = filter_fn(|event| event.target() == "pml" || event.target().starts_with("pml::"));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // It would write of a full stderr to stderr, and panic.
        .log_internal_errors(false)
        .with_ansi(rustix::termios::isatty(std::io::stderr()));
    // Only the first call of a process counts; there is only one.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(own)
        .with(lines)
        .try_init();
}
