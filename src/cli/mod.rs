//! The commands: one file each, and the only place that prints.
//!
//! Data goes to stdout, everything said about it to stderr. Exit codes: 0 done, 1 refused or a negative answer,
//! 2 error or usage.

mod install;
mod supervise;
mod uninstall;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{self, Environment, Locations};

/// One MCP server in front of many: every install gated by a rule or a person.
#[derive(Debug, Parser)]
#[command(
    name = "pml",
    version,
    about,
    propagate_version = true,
    disable_help_subcommand = true
)]
struct Arguments {
    /// Use this file instead of looking for `.pml.json`
    #[arg(long, global = true, value_name = "FILE", env = "PML_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch the packages of servers before anybody calls them
    Install(install::Arguments),
    /// Remove the package of a server
    Uninstall(uninstall::Arguments),
    #[command(hide = true)]
    Supervise(supervise::Arguments),
}

/// What every command stands on.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The surroundings of the process.
    pub(crate) environment: Environment,
    /// The user's directories.
    pub(crate) locations: Locations,
    /// The file given by `--config` or `PML_CONFIG`.
    pub(crate) config: Option<PathBuf>,
}

/// Parses the command line, runs the command and returns its exit code.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let config = arguments.config;
    match dispatch(arguments.command, || ground(config)) {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn ground(config: Option<PathBuf>) -> anyhow::Result<Ground> {
    let environment = Environment::of_process()?;
    let locations = Locations::of(&environment)?;
    Ok(Ground {
        environment,
        locations,
        config,
    })
}

/// Runs a command; those that need no ground do not ask for it, because they must run without a home.
fn dispatch(command: Command, ground: impl FnOnce() -> anyhow::Result<Ground>) -> anyhow::Result<ExitCode> {
    let read = |ground: &Ground| {
        config::read(&config::find(
            ground.config.as_deref(),
            &ground.environment,
            &ground.locations,
        ))
    };
    match command {
        Command::Install(arguments) => {
            let ground = ground()?;
            install::run(&ground, &read(&ground)?, &arguments)
        }
        Command::Uninstall(arguments) => {
            let ground = ground()?;
            uninstall::run(&ground, &read(&ground)?, &arguments)
        }
        Command::Supervise(arguments) => Ok(supervise::run(&arguments)),
    }
}
