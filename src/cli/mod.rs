//! The commands: one file each, and the only place that prints.
//!
//! Data goes to stdout, everything said about it to stderr. Exit codes: 0 done, 1 refused or a negative answer,
//! 2 error or usage.

mod check;
mod failure;
mod output;
mod rule;
mod rules;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::failure::Hinted as _;
use crate::config::{self, Environment, Files, Locations, RuleList};

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
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "PML_CONFIG",
        hide_env_values = true
    )]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// How rules weigh, told wherever rules are made.
const RULES_HELP: &str = "\
How rules weigh: deny always wins; otherwise the most specific pattern does
(an exact name, then the pattern with more literal characters); a tie asks;
no rule asks. Patterns: `*`, `?`, `{a,b}`, `[a-z]`; `server` is `server:*`.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Let tools run without a question
    #[command(after_help = format!("\
Examples:
  pml allow filesystem:read_file       one tool
  pml allow filesystem                 every tool of a server
  pml allow 'github:{{get,list}}_*'      several, by a pattern
  pml allow --user time                in every project of yours

{RULES_HELP}"))]
    Allow(rule::RuleArguments),
    /// Never let tools run
    #[command(after_help = format!("\
Examples:
  pml deny 'github:delete_*'           whatever deletes
  pml deny --user shell                a whole server, in every project of yours

{RULES_HELP}"))]
    Deny(rule::RuleArguments),
    /// Ask a person before every call of tools
    #[command(after_help = format!("\
Examples:
  pml ask 'filesystem:write_*'         before every write
  pml ask '*'                          before anything is first installed or started

{RULES_HELP}"))]
    Ask(rule::RuleArguments),
    /// Take patterns out of every list
    #[command(after_help = "\
Examples:
  pml forget filesystem:read_file
  pml forget --user 'github:delete_*'

To see what is written where: pml rules")]
    Forget(rule::ForgetArguments),
    /// Say what the rules decide about a tool, and which of them does
    #[command(after_help = "\
Examples:
  pml check filesystem:read_file
  pml check filesystem__read_file      as the client spells it
  pml check --json github:get_issue

Exit code: 0 it runs, 1 it asks or is denied, 2 error.")]
    Check(check::CheckArguments),
    /// List the rules of every file, the strongest first
    #[command(after_help = "\
Read it from the top: the first rule that covers a tool decides.

Examples:
  pml rules
  pml rules --json")]
    Rules(rules::RulesArguments),
    /// Print the JSON Schema of `.pml.json`
    #[command(after_help = "\
Examples:
  pml schema > pml.schema.json         then name it as \"$schema\" in .pml.json: editors complete and check")]
    Schema,
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

impl Ground {
    /// Finds the configuration.
    pub(crate) fn files(&self) -> Files {
        config::find(self.config.as_deref(), &self.environment, &self.locations)
    }
}

/// Parses the command line, runs the command and returns its exit code.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match ground(arguments.config).and_then(|ground| dispatch(&ground, arguments.command)) {
        Ok(code) => code,
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::print(&error);
            ExitCode::from(2)
        }
    }
}

fn ground(config: Option<PathBuf>) -> anyhow::Result<Ground> {
    let environment = Environment::of_process()?;
    let locations = Locations::of(&environment).hint("set `HOME` to your home directory")?;
    Ok(Ground {
        environment,
        locations,
        config,
    })
}

fn dispatch(ground: &Ground, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Allow(arguments) => rule::add(ground, RuleList::Allow, &arguments),
        Command::Deny(arguments) => rule::add(ground, RuleList::Deny, &arguments),
        Command::Ask(arguments) => rule::add(ground, RuleList::Ask, &arguments),
        Command::Forget(arguments) => rule::forget(ground, &arguments),
        Command::Check(arguments) => check::run(ground, &arguments),
        Command::Rules(arguments) => rules::run(ground, &arguments),
        Command::Schema => {
            output::data(config::schema().trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
