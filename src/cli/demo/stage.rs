//! The temporary folders the demo plays in, and the processes it starts there.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context as _;
use serde_json::json;
use tokio::process::Command;

use super::super::CommandContext;
use crate::config::PROJECT_FILE;
use crate::protocol::Shown;

/// Whose home a process gets: what a person approved is known in the first one only.
#[derive(Debug, Clone, Copy)]
pub(super) enum Machine {
    /// Where the person is asked.
    First,
    /// Where nothing was ever approved.
    Second,
}

/// A project with one server, and two empty homes; gone when dropped.
#[derive(Debug)]
pub(super) struct DemoStage {
    folder: tempfile::TempDir,
    program: PathBuf,
    path: Option<std::ffi::OsString>,
}

impl DemoStage {
    /// Lays out the folders and writes the project's file.
    #[expect(
        clippy::disallowed_methods,
        reason = "the demo writes the file of a project of its own"
    )]
    pub(super) fn build(context: &CommandContext) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot tell where pml itself is")?;
        let folder = tempfile::Builder::new()
            .prefix("pml-demo-")
            .tempdir()
            .context("cannot create a temporary folder")?;
        let stage = Self {
            folder,
            program,
            path: context.environment.variable("PATH").map(ToOwned::to_owned),
        };
        for folder in [
            stage.project(),
            stage.home(Machine::First),
            stage.home(Machine::Second),
        ] {
            std::fs::create_dir(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        let command = json!(stage.program.to_string_lossy());
        let config = format!(
            r#"{{
  "version": "0.1.0",
  "permissions": {{
    "allow": [],
    "deny": [],
    "ask": ["*"]
  }},
  "mcpServers": {{
    "sample": {{
      "command": {command},
      "args": ["sample-server"]
    }}
  }}
}}
"#
        );
        let file = stage.file();
        std::fs::write(&file, config).with_context(|| format!("cannot write `{}`", file.display()))?;
        Ok(stage)
    }

    /// Returns the project's file as it is now.
    pub(super) fn config(&self) -> anyhow::Result<String> {
        let file = self.file();
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
        Ok(Shown::block(&text).to_string())
    }

    /// Returns what `pml check` says about a tool.
    pub(super) async fn check(&self, tool: &str) -> anyhow::Result<String> {
        let output = self
            .pml(Machine::First)
            .args(["check", tool])
            .stdin(Stdio::null())
            .output()
            .await
            .context("cannot start `pml check`")?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(Shown::block(text.trim_end()).to_string())
    }

    /// Prepares a `pml` command in the project: of the person's variables it sees `PATH` only.
    #[expect(
        clippy::disallowed_methods,
        reason = "the demo is a client, and clients start `pml stdio`"
    )]
    pub(super) fn pml(&self, machine: Machine) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("HOME", self.home(machine))
            // The story is told here; a log line in the middle of it would only puzzle.
            .env("PML_LOG", "error")
            .current_dir(self.project())
            .kill_on_drop(true);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn file(&self) -> PathBuf {
        self.project().join(PROJECT_FILE)
    }

    fn home(&self, machine: Machine) -> PathBuf {
        self.folder.path().join(match machine {
            Machine::First => "home",
            Machine::Second => "another-home",
        })
    }
}
