//! The install scripts of a package and of everything that is installed with it, as a person accepts them.
//!
//! Pure. They are code of a package that runs on this machine before its server does, so they are accepted by their
//! texts: a digest of all of them counts, and any other script is asked about anew. This is no part of a pin: a lock
//! that a team shares accepts no script.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::protocol::{Digest, Shown};

/// The moment at which npm runs a script of a package that it installs, in the order of running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallHook {
    /// Before the package counts as installed.
    Preinstall,
    /// In place of npm's own build.
    Install,
    /// After it.
    Postinstall,
}

impl InstallHook {
    /// All of them, in the order of running.
    pub const ALL: [Self; 3] = [Self::Preinstall, Self::Install, Self::Postinstall];

    /// Returns its name in a `package.json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Preinstall => "preinstall",
            Self::Install => "install",
            Self::Postinstall => "postinstall",
        }
    }
}

/// One script that would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallScript {
    /// The package as `name@version`, and its place where that is not the usual one.
    pub package: String,
    /// When it runs.
    pub hook: InstallHook,
    /// What runs, as the package has it.
    pub command: String,
}

impl fmt::Display for InstallScript {
    /// Writes it on one line, escaped and never cut.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (package, command) = (Shown::line(&self.package), Shown::line(&self.command));
        write!(formatter, "{package}  {}: {command}", self.hook.name())
    }
}

/// Every script that would run with one installation, in the order of their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallScripts(Vec<InstallScript>);

impl InstallScripts {
    /// Holds scripts in the order that they were found in.
    #[must_use]
    pub fn new(scripts: Vec<InstallScript>) -> Self {
        Self(scripts)
    }

    /// Tells whether nothing would run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many would run.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Names exactly these scripts.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let scripts = self.0.iter();
        let parts = scripts.flat_map(|script| [&*script.package, script.hook.name(), &*script.command]);
        Digest::of(std::iter::once("install scripts 1").chain(parts))
    }

    /// Lists all of them, each with its sign: `!` where none was accepted before, otherwise `+` for what is new, two
    /// blanks for what stayed, and `-` for what is gone.
    #[must_use]
    pub fn lines(&self, before: Option<&AcceptedScripts>) -> Vec<String> {
        let scripts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        let Some(before) = before else {
            return scripts.iter().map(|script| format!("! {script}")).collect();
        };
        let known: BTreeSet<&String> = before.scripts.iter().collect();
        let now: BTreeSet<&String> = scripts.iter().collect();
        let gone = before.scripts.iter().filter(|script| !now.contains(script));
        let gone = gone.map(|script| format!("- {script}"));
        let present = scripts.iter().map(|script| {
            let sign = if known.contains(script) { ' ' } else { '+' };
            format!("{sign} {script}")
        });
        gone.chain(present).collect()
    }

    /// Returns them as accepted.
    #[must_use]
    pub fn accepted(&self) -> AcceptedScripts {
        AcceptedScripts {
            digest: self.digest(),
            scripts: self.0.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The install scripts that a person accepted of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcceptedScripts {
    /// Names exactly these scripts: no other runs.
    pub digest: Digest,
    /// Their lines as the person was shown them, without signs.
    scripts: Vec<String>,
}

impl AcceptedScripts {
    /// Reads them from the lines that a person was shown, each with its sign.
    #[must_use]
    pub fn shown(digest: Digest, lines: &[String]) -> Self {
        let scripts = lines.iter().filter(|line| !line.starts_with('-'));
        let scripts = scripts.filter_map(|line| line.get(2..)).map(str::to_owned);
        Self {
            digest,
            scripts: scripts.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(package: &str, hook: InstallHook, command: &str) -> InstallScript {
        InstallScript {
            package: package.to_owned(),
            hook,
            command: command.to_owned(),
        }
    }

    #[test]
    fn every_script_is_shown_whole_and_escaped() {
        let long = format!("echo \u{1b}[2J\u{202e}\n{}", "x".repeat(3_000));
        let scripts = InstallScripts::new(vec![script("a@1.0.0", InstallHook::Postinstall, &long)]);
        let lines = scripts.lines(None);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].starts_with("! a@1.0.0  postinstall: echo \\u{1b}[2J\\u{202e}\\n"),
            "{}",
            lines[0]
        );
        assert!(lines[0].ends_with(&"x".repeat(3_000)), "{}", lines[0]);
    }

    #[test]
    fn what_was_shown_and_accepted_is_what_the_next_ones_are_compared_with() {
        let before = InstallScripts::new(vec![
            script("a@1.0.0", InstallHook::Install, "one"),
            script("b@1.0.0", InstallHook::Postinstall, "two"),
        ]);
        assert_eq!(before.len(), 2);
        let accepted = AcceptedScripts::shown(before.digest(), &before.lines(None));
        assert_eq!(accepted, before.accepted());
        let now = InstallScripts::new(vec![
            script("a@1.0.0", InstallHook::Install, "other"),
            script("b@1.0.0", InstallHook::Postinstall, "two"),
        ]);
        let lines = now.lines(Some(&accepted));
        assert_eq!(
            lines,
            [
                "- a@1.0.0  install: one",
                "+ a@1.0.0  install: other",
                "  b@1.0.0  postinstall: two",
            ]
        );
        assert_eq!(AcceptedScripts::shown(now.digest(), &lines), now.accepted());
        assert_ne!(now.digest(), before.digest());
    }

    #[test]
    fn a_script_of_another_hook_or_package_is_another_one() {
        let digests: BTreeSet<Digest> = [
            ("a@1.0.0", InstallHook::Preinstall, "x"),
            ("a@1.0.0", InstallHook::Install, "x"),
            ("a@1.0.1", InstallHook::Install, "x"),
            ("a@1.0.0", InstallHook::Install, "x "),
        ]
        .into_iter()
        .map(|(package, hook, command)| InstallScripts::new(vec![script(package, hook, command)]).digest())
        .collect();
        assert_eq!(digests.len(), 4);
    }
}
