//! Why a declared server cannot be planned.
//!
//! What a `${VAR}` expanded to may be a secret: errors repeat what was *declared*.

use super::address::AddressError;
use super::package::PackageError;
use super::runner::{PackageRunner, RunnerError};
use crate::config::ExpandError;
use crate::protocol::{DependencyName, Shown};
use crate::report::Hint;

/// Says why a declared server cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A `${VAR}` of the server cannot be expanded.
    #[error("cannot expand the declaration of `{dependency}`")]
    Expand {
        /// The server.
        dependency: DependencyName,
        /// What is missing.
        #[source]
        source: ExpandError,
    },
    /// The runner's line has an option that pml does not know.
    #[error("`{dependency}`: pml does not know the option `{option}` of `{runner}`")]
    Option {
        /// The server.
        dependency: DependencyName,
        /// The runner.
        runner: &'static str,
        /// The option, escaped.
        option: String,
    },
    /// The runner's line ends in an option that needs a value.
    #[error("`{dependency}`: the option `{option}` of `{runner}` has no value")]
    Value {
        /// The server.
        dependency: DependencyName,
        /// The runner.
        runner: &'static str,
        /// The option, escaped.
        option: String,
    },
    /// The runner's line names more than one package.
    #[error("`{dependency}`: `{runner}` is given a second package `{package}`; a server has one")]
    Packages {
        /// The server.
        dependency: DependencyName,
        /// The runner.
        runner: &'static str,
        /// The second package, escaped.
        package: String,
    },
    /// The runner's line names no package.
    #[error("`{dependency}`: `{runner}` is not told what to run")]
    Missing {
        /// The server.
        dependency: DependencyName,
        /// The runner.
        runner: &'static str,
    },
    /// A word is not a package of a registry.
    #[error("`{dependency}` names no package that pml can install")]
    Package {
        /// The server.
        dependency: DependencyName,
        /// What is wrong with it.
        #[source]
        source: PackageError,
    },
    /// A word with `${VAR}` does not become a package; what it became may be a secret and is not shown.
    #[error("`{dependency}`: `{text}` does not expand to a package that pml can install")]
    Expanded {
        /// The server.
        dependency: DependencyName,
        /// The word as declared, escaped.
        text: String,
    },
    /// The command holds the words of a whole line.
    #[error("`{dependency}`: the command `{command}` is a whole line; a command is a program alone")]
    Line {
        /// The server.
        dependency: DependencyName,
        /// The command as declared, escaped.
        command: String,
        /// The program and its arguments as they are to be written, as JSON.
        written: String,
    },
    /// The command is empty.
    #[error("`{dependency}` has an empty command")]
    Empty {
        /// The server.
        dependency: DependencyName,
    },
    /// A server elsewhere cannot be reached as it is declared.
    #[error("`{dependency}` cannot be connected to")]
    Address {
        /// The server.
        dependency: DependencyName,
        /// What is wrong with it.
        #[source]
        source: AddressError,
    },
}

impl Hint for PlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Expand { source, .. } => source.hint(),
            Self::Line { written, .. } => Some(format!("move the other words into \"args\": {written}")),
            Self::Address { source, .. } => source.hint(),
            Self::Option { runner, .. } => Some(format!(
                "declare the package itself instead of a `{runner}` line: \"package\": \"{}\", \"args\": […]",
                if runner.starts_with("np") { "npm:NAME@VERSION" } else { "pypi:NAME==VERSION" }
            )),
            Self::Package { source: PackageError::Source { .. }, .. } => Some(
                "pml installs from registries only; for local code declare the command that runs it, such as \
                 \"command\": \"node\", \"args\": [\"./server.js\"]"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Says in the words that were declared what is wrong with a runner's line.
pub(super) fn runner_error(
    name: &DependencyName,
    runner: PackageRunner,
    error: &RunnerError,
    declared: &[String],
    given: &[String],
) -> PlanError {
    let dependency = name.clone();
    let runner = runner.as_str();
    // What was declared, not what it expanded to; of `--option=value` the option alone.
    let option = |word: usize| {
        let text = declared[word]
            .split_once('=')
            .map_or(declared[word].as_str(), |(option, _)| option);
        Shown::line(text).to_string()
    };
    match error {
        RunnerError::Option { word } => PlanError::Option {
            dependency,
            runner,
            option: option(*word),
        },
        RunnerError::Value { word } => PlanError::Value {
            dependency,
            runner,
            option: option(*word),
        },
        RunnerError::Packages { word } => PlanError::Packages {
            dependency,
            runner,
            package: Shown::line(&declared[*word]).to_string(),
        },
        RunnerError::Missing => PlanError::Missing { dependency, runner },
        RunnerError::Package { word, error } if declared[*word] == given[*word] => PlanError::Package {
            dependency,
            source: error.clone(),
        },
        RunnerError::Package { word, .. } => PlanError::Expanded {
            dependency,
            text: Shown::line(&declared[*word]).to_string(),
        },
    }
}

/// Says what is wrong with the value of `"package"`.
pub(super) fn package_error(name: &DependencyName, source: PackageError, declared: &str) -> PlanError {
    let dependency = name.clone();
    if declared.contains("${") {
        PlanError::Expanded {
            dependency,
            text: Shown::line(declared).to_string(),
        }
    } else {
        PlanError::Package { dependency, source }
    }
}
