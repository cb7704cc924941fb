//! What is started: a program with its arguments, its whole environment and its working directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::protocol::Secrets;

/// Everything that is needed to start a program.
#[derive(Clone, PartialEq, Eq)]
pub struct LaunchLine {
    /// The program: a path, or a name to be found on the `PATH` of `variables`.
    pub program: PathBuf,
    /// Its arguments, expanded.
    pub arguments: Vec<OsString>,
    /// The complete environment; nothing else reaches the program.
    pub variables: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub directory: PathBuf,
    /// What of all this must not be shown.
    pub secrets: Secrets,
}

impl fmt::Debug for LaunchLine {
    /// Names the variables and leaves their values out: some are secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LaunchLine")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_line_does_not_show_values() {
        let line = LaunchLine {
            program: "server".into(),
            arguments: vec!["--key=secret".into()],
            variables: BTreeMap::from([("TOKEN".into(), "secret".into())]),
            directory: "/".into(),
            secrets: Secrets::default(),
        };
        assert_eq!(
            format!("{line:?}"),
            r#"LaunchLine { program: "server", arguments: 1, variables: ["TOKEN"], directory: "/", .. }"#
        );
    }
}
