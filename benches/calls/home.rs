//! A home and a project that are nobody's, so that what this machine has installed or allowed does not count.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::process::{self, Promise};

/// What of the machine is let in: where programs are and how to reach the network.
const VARIABLES: [&str; 7] = [
    "PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
];

/// A temporary home with a project in it.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    /// Creates one whose `.pml.json` is `config`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the files of this home belong to the benchmark"
    )]
    pub(crate) fn new(config: &Value) -> anyhow::Result<Self> {
        let home = Self(tempfile::tempdir()?);
        std::fs::create_dir(home.project())?;
        std::fs::write(home.project().join(".pml.json"), config.to_string())?;
        std::fs::write(home.project().join("a.txt"), "hello\n")?;
        Ok(home)
    }

    /// Creates one that allows and declares `servers`.
    pub(crate) fn with_servers(servers: &[(String, Value)]) -> anyhow::Result<Self> {
        let allow: Vec<String> = servers.iter().map(|(name, _)| format!("{name}:*")).collect();
        let servers: serde_json::Map<String, Value> = servers.iter().cloned().collect();
        Self::new(&json!({ "permissions": { "allow": allow }, "mcpServers": servers }))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn project(&self) -> PathBuf {
        self.0.path().join("project")
    }

    /// `pml stdio` in the project.
    pub(crate) fn pml(&self) -> Command {
        self.pml_of(Path::new(env!("CARGO_BIN_EXE_pml")))
    }

    /// The same of another build.
    pub(crate) fn pml_of(&self, program: &Path) -> Command {
        let mut pml = self.at_home(process::command(program));
        pml.arg("stdio");
        pml
    }

    /// Any program in the project.
    pub(crate) fn program(&self, program: &str) -> Command {
        self.at_home(process::command(program))
    }

    /// Moves a command here.
    #[expect(
        clippy::disallowed_methods,
        reason = "the benchmark passes on the few variables it names"
    )]
    pub(crate) fn at_home(&self, mut command: Command) -> Command {
        command.env_clear();
        for name in VARIABLES {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", self.path())
            .env("PML_LOG", "error")
            .current_dir(self.project());
        command
    }
}

/// The entry of a server of the benchmark in `.pml.json`.
pub(crate) fn entry(name: &str, tools: usize, promise: Promise) -> anyhow::Result<(String, Value)> {
    let server = process::server(tools, promise)?;
    let arguments: Vec<_> = server
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned())
        // Servers that are started alike would share what is known of them.
        .chain([name.to_owned()])
        .collect();
    let program = server.get_program().to_string_lossy();
    Ok((name.to_owned(), json!({ "command": program, "args": arguments })))
}
