//! The command lines of package runners: which package `npx`, `uvx` and their relatives would fetch and run.
//!
//! Pure. An option that is not in the tables here is an error and never skipped: skipping one that takes a value
//! would make that value the package.

use std::path::Path;

use super::package::{Ecosystem, Package, PackageError};
use crate::protocol::Shown;

/// A program that fetches a package and runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::loader) enum PackageRunner {
    /// `npx`
    Npx,
    /// `npm exec` and `npm x`
    NpmExec,
    /// `uvx`
    Uvx,
    /// `uv tool run`
    UvToolRun,
    /// `pipx run`
    Pipx,
}

/// What a runner's command line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::loader) struct RunnerLine {
    /// The runner that was spelled.
    pub(in crate::loader) runner: PackageRunner,
    /// The package it would fetch.
    pub(in crate::loader) package: Package,
    /// Which of the words names the package.
    pub(in crate::loader) spec: usize,
    /// Which of the words are the server's own arguments.
    pub(in crate::loader) arguments: Vec<usize>,
}

/// Says what is wrong with a runner's command line; words are given by their position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::loader) enum RunnerError {
    /// An option that pml does not know.
    Option { word: usize },
    /// An option without its value.
    Value { word: usize },
    /// More than one package.
    Packages { word: usize },
    /// The line ends before it names a package or an executable.
    Missing,
    /// A word is not what its place demands.
    Package { word: usize, error: PackageError },
}

enum OptionMeaning {
    Nothing,
    Package,
    Python,
    Beside,
}

impl PackageRunner {
    /// Recognises a runner by its file name and its first words; returns how many words belong to it.
    pub(in crate::loader) fn of(program: &str, words: &[String]) -> Option<(Self, usize)> {
        let word = |index: usize| words.get(index).map(String::as_str);
        match (program, word(0), word(1)) {
            ("npx", ..) => Some((Self::Npx, 0)),
            ("npm", Some("exec" | "x"), _) => Some((Self::NpmExec, 1)),
            ("uvx", ..) => Some((Self::Uvx, 0)),
            ("uv", Some("tool"), Some("run")) => Some((Self::UvToolRun, 2)),
            ("pipx", Some("run"), _) => Some((Self::Pipx, 1)),
            _ => None,
        }
    }

    /// Returns the runner in which an explicit `"package"` is shown.
    pub(in crate::loader) fn for_ecosystem(ecosystem: Ecosystem) -> Self {
        match ecosystem {
            Ecosystem::Npm => Self::Npx,
            Ecosystem::Pypi => Self::Uvx,
        }
    }

    /// Returns the words that spell the runner.
    pub(in crate::loader) fn as_str(self) -> &'static str {
        match self {
            Self::Npx => "npx",
            Self::NpmExec => "npm exec",
            Self::Uvx => "uvx",
            Self::UvToolRun => "uv tool run",
            Self::Pipx => "pipx run",
        }
    }

    /// Returns the words of a line that runs `spec`, before the server's arguments.
    pub(in crate::loader) fn line(self, package: &Package, spec: String) -> Vec<String> {
        let mut line: Vec<String> = self.as_str().split(' ').map(str::to_owned).collect();
        if let Some(version) = package.python() {
            line.extend(["--python".to_owned(), version.to_owned()]);
        }
        for requirement in package.beside() {
            line.extend(["--with".to_owned(), requirement.clone()]);
        }
        match (self, package.executable()) {
            (Self::Npx | Self::Uvx | Self::UvToolRun | Self::Pipx, None) => line.push(spec),
            (Self::NpmExec, None) => line.extend(["--".to_owned(), spec]),
            (Self::Npx, Some(executable)) => {
                line.extend([format!("--package={spec}"), executable.to_owned()]);
            }
            (Self::NpmExec, Some(executable)) => {
                line.extend([
                    format!("--package={spec}"),
                    "--".to_owned(),
                    executable.to_owned(),
                ]);
            }
            (Self::Uvx | Self::UvToolRun, Some(executable)) => {
                line.extend(["--from".to_owned(), spec, executable.to_owned()]);
            }
            (Self::Pipx, Some(executable)) => {
                line.extend(["--spec".to_owned(), spec, executable.to_owned()]);
            }
        }
        line
    }

    /// Reads the words after the runner's own.
    pub(in crate::loader) fn read(self, words: &[String], own: usize) -> Result<RunnerLine, RunnerError> {
        let mut index = own;
        let mut package: Option<(usize, &str)> = None;
        let mut python: Option<(usize, &str)> = None;
        let mut beside: Vec<(usize, &str)> = Vec::new();
        let mut ended = false;
        loop {
            let word = words.get(index).ok_or(RunnerError::Missing)?;
            if word == "--" {
                ended = true;
                index += 1;
                break;
            }
            if !word.starts_with('-') {
                break;
            }
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (word.as_str(), None),
            };
            let meaning = match (self.meaning(option), attached) {
                (None, _) | (Some(OptionMeaning::Nothing), Some(_)) => {
                    return Err(RunnerError::Option { word: index });
                }
                (Some(OptionMeaning::Nothing), None) => {
                    index += 1;
                    continue;
                }
                (Some(meaning), _) => meaning,
            };
            let value = if let Some(value) = attached {
                (index, value)
            } else {
                index += 1;
                let value = words.get(index).ok_or(RunnerError::Value { word: index - 1 })?;
                (index, value.as_str())
            };
            let before = match meaning {
                OptionMeaning::Package => package.replace(value),
                OptionMeaning::Python => python.replace(value),
                OptionMeaning::Beside | OptionMeaning::Nothing => {
                    beside.push(value);
                    None
                }
            };
            if before.is_some() {
                return Err(RunnerError::Packages { word: index });
            }
            index += 1;
        }
        let positional = words.get(index).ok_or(RunnerError::Missing)?;
        let spec = package.map_or(index, |(word, _)| word);
        let at = |word: usize| move |error: PackageError| RunnerError::Package { word, error };
        let mut found = match package {
            Some((word, spec)) => self
                .package(spec)
                .map_err(at(word))?
                .with_executable(positional)
                .map_err(at(index))?,
            None => self.package(positional).map_err(at(index))?,
        };
        if let Some((word, version)) = python {
            found = found.with_python(version).map_err(at(word))?;
        }
        for (word, requirement) in beside {
            found = found.with_beside(requirement).map_err(at(word))?;
        }
        Ok(RunnerLine {
            runner: self,
            package: found,
            spec,
            arguments: self.arguments(words, index + 1, ended)?,
        })
    }

    fn package(self, spec: &str) -> Result<Package, PackageError> {
        match self {
            Self::Npx | Self::NpmExec => Package::npm(spec),
            // pipx runs a script of the working directory by this name.
            Self::Pipx
                if Path::new(spec)
                    .extension()
                    .is_some_and(|extension| extension == "py") =>
            {
                Err(PackageError::Source {
                    text: Shown::line(spec).to_string(),
                })
            }
            Self::Uvx | Self::UvToolRun | Self::Pipx => Package::pypi(spec),
        }
    }

    fn meaning(self, option: &str) -> Option<OptionMeaning> {
        match (self, option) {
            (Self::Npx | Self::NpmExec, "-y" | "--yes" | "-q" | "--quiet" | "-s" | "--silent")
            | (Self::Uvx | Self::UvToolRun, "-q" | "--quiet" | "--isolated" | "--no-progress")
            | (Self::Pipx, "-q" | "--quiet") => Some(OptionMeaning::Nothing),
            (Self::Npx | Self::NpmExec, "-p" | "--package")
            | (Self::Uvx | Self::UvToolRun, "--from")
            | (Self::Pipx, "--spec") => Some(OptionMeaning::Package),
            (Self::Uvx | Self::UvToolRun, "-p" | "--python") | (Self::Pipx, "--python") => {
                Some(OptionMeaning::Python)
            }
            (Self::Uvx | Self::UvToolRun, "-w" | "--with") => Some(OptionMeaning::Beside),
            _ => None,
        }
    }

    /// Tells which words are the server's arguments.
    ///
    /// `npm exec` alone goes on reading options behind the package until `--`; the others stop at the package.
    fn arguments(self, words: &[String], first: usize, ended: bool) -> Result<Vec<usize>, RunnerError> {
        if self != Self::NpmExec || ended {
            return Ok((first..words.len()).collect());
        }
        let end = (first..words.len()).find(|index| words[*index] == "--");
        if let Some(word) = (first..end.unwrap_or(words.len())).find(|index| words[*index].starts_with('-')) {
            return Err(RunnerError::Option { word });
        }
        Ok((first..words.len()).filter(|index| Some(*index) != end).collect())
    }
}
