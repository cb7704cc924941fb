//! A home and a project of their own for the real binary, with nothing of the machine's in its environment.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A hermetic home with a project in it.
pub(crate) struct Home {
    root: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        Self { root }
    }

    /// The root of the project: the working directory of every command.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// The project's configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.project().join(".pml.json")
    }

    /// The user's configuration.
    pub(crate) fn user_config(&self) -> PathBuf {
        self.root.path().join("config/pml/pml.json")
    }

    /// Writes the project's configuration.
    pub(crate) fn with_config(self, text: &str) -> Self {
        write(&self.config(), text);
        self
    }

    /// The binary with a cleared environment, ready to get its arguments.
    #[expect(clippy::disallowed_methods, reason = "the tests drive the real binary")]
    pub(crate) fn pml(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pml"));
        command
            .env_clear()
            .env("HOME", self.root.path())
            .env("XDG_CONFIG_HOME", self.root.path().join("config"))
            .env("XDG_DATA_HOME", self.root.path().join("data"))
            .env("XDG_STATE_HOME", self.root.path().join("state"))
            .env("XDG_CACHE_HOME", self.root.path().join("cache"))
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary and tells everything it did, with the home written as `[HOME]`.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.told(&self.pml().args(arguments).output().unwrap())
    }

    /// Tells what a finished run did.
    pub(crate) fn told(&self, output: &Output) -> String {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.replace(self.root.path().to_str().unwrap(), "[HOME]")
        };
        let exit = output.status.code().map_or_else(
            || format!("signal {:?}", output.status.signal()),
            |code| code.to_string(),
        );
        let mut told = format!("exit: {exit}\n");
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                told.extend(["--- ", name, "\n", &text(bytes)]);
            }
        }
        told
    }
}

/// Writes a file of the test's own.
#[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Reads a file as text.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Lists the names in a directory, in order.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
