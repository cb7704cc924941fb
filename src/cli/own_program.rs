//! The program that clients start from now on: this very file, if it will stay where it is.
//!
//! A runner such as `npx` or `uvx` runs a package from its cache, which is emptied at any time: a client that was told that
//! path would one day start nothing, and say little about it.

use std::path::{Path, PathBuf};

use crate::protocol::Shown;
use crate::report::Hint;

/// A program that runs packages from its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `npx` and `npm exec`
    Npx,
    /// `pnpm dlx`, `yarn dlx` and `bunx`
    Dlx,
    /// `uvx` and `uv run`
    Uvx,
    /// `pipx run`
    Pipx,
}

impl Runner {
    /// Tells in whose cache a program lies, if it lies in one.
    fn of(program: &Path) -> Option<Self> {
        let parts: Vec<_> = program.iter().map(|part| part.to_string_lossy()).collect();
        // `archive-v0` holds the wheels, `environments-v2` what is made of them for one run.
        let is_of_uv = |part: &str| {
            let version = ["archive-v", "environments-v", "builds-v"]
                .iter()
                .find_map(|kind| part.strip_prefix(kind));
            version.is_some_and(|version| {
                !version.is_empty() && version.chars().all(|found| found.is_ascii_digit())
            })
        };
        parts.iter().enumerate().find_map(|(at, part)| match &**part {
            "_npx" => Some(Self::Npx),
            "dlx" => Some(Self::Dlx),
            part if part.starts_with("dlx-") || part.starts_with("bunx-") => Some(Self::Dlx),
            part if is_of_uv(part) => Some(Self::Uvx),
            ".cache" if parts.get(at + 1).is_some_and(|next| next == "pipx") => Some(Self::Pipx),
            "pipx" if parts.get(at + 1).is_some_and(|next| next == ".cache") => Some(Self::Pipx),
            _ => None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Npx => "npx",
            Self::Dlx => "a package runner",
            Self::Uvx => "uvx",
            Self::Pipx => "pipx run",
        }
    }

    /// Returns the command that installs pml where it stays.
    fn installing(self) -> &'static str {
        match self {
            Self::Npx | Self::Dlx => "npm install --global pml-mcp",
            Self::Uvx => "uv tool install pml-mcp",
            Self::Pipx => "pipx install pml-mcp",
        }
    }
}

/// Says why no client can be told where pml is; nothing was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnProgramError {
    /// The system does not say.
    #[error("cannot tell where pml itself is")]
    Unknown(#[from] std::io::Error),
    /// It lies where it will not stay.
    #[error(
        "clients cannot be told to start `{}`: it lies in the cache of {}, which is emptied at any time",
        Shown::path(.program),
        .runner.name()
    )]
    Fleeting {
        /// The program.
        program: PathBuf,
        /// Whose cache it is.
        runner: Runner,
    },
}

impl Hint for OwnProgramError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => None,
            Self::Fleeting { runner, .. } => Some(format!(
                "nothing was changed; install it first, then run this again by `pml`: {}",
                runner.installing()
            )),
        }
    }
}

/// Returns the program that clients start from now on.
pub(crate) fn own_program() -> Result<PathBuf, OwnProgramError> {
    // A wrapper of a package starts this very file; the client starts it without the wrapper.
    let program = std::env::current_exe()?.canonicalize()?;
    match Runner::of(&program) {
        Some(runner) => Err(OwnProgramError::Fleeting { program, runner }),
        None => Ok(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caches_of_package_runners_are_known_and_no_other_place_is_one() {
        for (program, runner) in [
            (
                "/home/a/.npm/_npx/0f1e/node_modules/pml-mcp-linux-x64/bin/pml",
                Some(Runner::Npx),
            ),
            (
                "/home/a/.cache/pnpm/dlx/ab/node_modules/pml-mcp-linux-x64/pml",
                Some(Runner::Dlx),
            ),
            (
                "/tmp/bunx-0-pml-mcp@latest/node_modules/pml-mcp-linux-x64/pml",
                Some(Runner::Dlx),
            ),
            ("/home/a/.cache/uv/archive-v0/x/bin/pml", Some(Runner::Uvx)),
            ("/cache/environments-v2/x/bin/pml", Some(Runner::Uvx)),
            ("/home/a/.cache/pipx/ab/bin/pml", Some(Runner::Pipx)),
            ("/home/a/.local/pipx/.cache/ab/bin/pml", Some(Runner::Pipx)),
            (
                "/usr/lib/node_modules/pml-mcp/node_modules/pml-mcp-linux-x64/pml",
                None,
            ),
            ("/home/a/.local/share/uv/tools/pml-mcp/bin/pml", None),
            ("/home/a/.local/share/pipx/venvs/pml-mcp/bin/pml", None),
            ("/home/a/.cargo/bin/pml", None),
            ("/home/a/archive-vault/pml", None),
            ("/home/a/archive-v/pml", None),
        ] {
            assert_eq!(Runner::of(Path::new(program)), runner, "{program}");
        }
    }
}
