//! `pml supervise` and `pml launch`: the processes between pml and one server; started by pml, not by people.
//!
//! They need no home, no configuration and no log, and must start fast: a server waits behind them. So the command
//! lines that pml itself writes are read here, without building the whole command line of pml first.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::output;
use crate::loader::process::supervisor::{self, Life, SuperviseError};

/// Runs one server and ends everything it started.
#[derive(Debug, Args)]
pub(crate) struct Supervise {
    /// The number of the pipe whose end is the end of the server; its stdin where there is none
    #[arg(long)]
    life: Option<i32>,
    #[command(flatten)]
    line: ProgramLine,
}

/// Becomes one server that dies with its supervisor.
#[derive(Debug, Args)]
pub(crate) struct LaunchCommand {
    /// The process to die with
    supervisor: i32,
    #[command(flatten)]
    line: ProgramLine,
}

#[derive(Debug, Args)]
struct ProgramLine {
    /// The server's program
    program: OsString,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// A process between pml and a server.
#[derive(Debug)]
#[cfg_attr(test, derive(clap::Parser))]
pub(crate) enum SupervisorCommand {
    Supervise(Supervise),
    Launch(LaunchCommand),
}

impl SupervisorCommand {
    /// Runs it to its end.
    pub(crate) fn run(&self) -> ExitCode {
        match self {
            Self::Supervise(arguments) => supervise(arguments),
            Self::Launch(arguments) => launch(arguments),
        }
    }
}

/// Reads a command line as pml writes it for itself; anything else is left to the command line of pml.
///
/// `words` are those after the name of the program.
pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Option<SupervisorCommand> {
    let mut words = words.into_iter();
    let number = |words: &mut dyn Iterator<Item = OsString>| words.next()?.to_str()?.parse().ok();
    let command = words.next()?;
    let inner = match command.to_str()? {
        "supervise" => match words.next()?.to_str()? {
            "--" => SupervisorCommand::Supervise(Supervise {
                life: None,
                line: ProgramLine::read(&mut words)?,
            }),
            "--life" => {
                let life = Some(number(&mut words)?);
                ProgramLine::separated(&mut words)
                    .map(|line| SupervisorCommand::Supervise(Supervise { life, line }))?
            }
            _ => return None,
        },
        "launch" => {
            let supervisor = number(&mut words)?;
            ProgramLine::separated(&mut words)
                .map(|line| SupervisorCommand::Launch(LaunchCommand { supervisor, line }))?
        }
        _ => return None,
    };
    Some(inner)
}

impl ProgramLine {
    /// Reads `-- PROGRAM ARGS`.
    fn separated(words: &mut dyn Iterator<Item = OsString>) -> Option<Self> {
        (words.next()? == "--").then(|| Self::read(words))?
    }

    /// Reads `PROGRAM ARGS`.
    fn read(words: &mut dyn Iterator<Item = OsString>) -> Option<Self> {
        Some(Self {
            program: words.next()?,
            arguments: words.collect(),
        })
    }
}

/// Supervises until the server is gone.
pub(crate) fn supervise(Supervise { life, line }: &Supervise) -> ExitCode {
    let life = life.map_or(Life::Stdin, Life::Inherited);
    match supervisor::run(life, &line.program, &line.arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => tell(&error),
    }
}

/// Becomes the server.
pub(crate) fn launch(LaunchCommand { supervisor, line }: &LaunchCommand) -> ExitCode {
    match supervisor::launch(*supervisor, &line.program, &line.arguments) {
        Ok(never) => match never {},
        Err(error) => tell(&error),
    }
}

/// Writes the one line that pml reads from stderr.
fn tell(error: &SuperviseError) -> ExitCode {
    output::say(&error.to_string());
    ExitCode::from(error.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_pml_writes_for_itself_is_read_as_its_command_line_reads_it() {
        for line in [
            "supervise -- node server.js --life 7 -- x",
            "supervise --life 7 -- node --help",
            "launch 4711 -- node -- --version",
            "launch 4711 -- node",
        ] {
            let read = read(words(line)).unwrap();
            let parsed = <SupervisorCommand as clap::Parser>::parse_from(words(&format!("pml {line}")));
            assert_eq!(format!("{read:?}"), format!("{parsed:?}"), "{line}");
        }
    }

    #[test]
    fn anything_else_is_left_to_the_command_line_of_pml() {
        for line in [
            "supervise",
            "supervise node",
            "supervise --life x -- node",
            "supervise --life 7 node",
            "supervise --help",
            "supervise --",
            "launch node",
            "launch 7 node",
            "stdio",
            "",
        ] {
            assert!(read(words(line)).is_none(), "{line}");
        }
    }
}
