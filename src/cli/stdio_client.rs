//! A client of `pml stdio` for commands that call through the gate: of the Legacy era and without dialogs.

use std::process::Stdio;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::CommandContext;

/// A notification that is told while a request is under way.
#[derive(Debug)]
pub(super) enum Notified {
    /// What is being done.
    Progress(String),
}

/// One conversation with a `pml stdio` of this project.
pub(super) struct StdioClient {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl StdioClient {
    /// Starts `pml stdio` where this command stands, under the same configuration and with its variables.
    #[expect(
        clippy::disallowed_methods,
        reason = "the command is a client, and clients start `pml stdio`"
    )]
    pub(super) fn start(context: &CommandContext) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot tell where pml itself is")?;
        let mut command = Command::new(program);
        if let Some(file) = &context.config {
            command.arg("--config").arg(file);
        }
        let mut process = command
            .arg("stdio")
            .envs(context.environment.variables())
            .env(
                "PML_LOG",
                context
                    .environment
                    .variable("PML_LOG")
                    .unwrap_or("error".as_ref()),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start `pml stdio`")?;
        let input = process.stdin.take().context("`pml stdio` has no input")?;
        let output = process.stdout.take().context("`pml stdio` has no output")?;
        Ok(Self {
            process,
            input,
            output: BufReader::new(output).lines(),
            last_id: 0,
        })
    }

    /// Opens the conversation.
    pub(super) async fn open(&mut self, name: &str) -> anyhow::Result<()> {
        let client = json!({ "name": name, "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &params, |_notified| {}).await?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await
    }

    /// Sends a request and returns its result; progress is told meanwhile.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: &Value,
        told: impl Fn(Notified),
    ) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        loop {
            let line = self
                .output
                .next_line()
                .await?
                .context("`pml stdio` closed its output")?;
            let mut message: Value =
                serde_json::from_str(&line).context("`pml stdio` wrote a line that is not JSON")?;
            if message["id"] == id && message.get("method").is_none() {
                let error = message.get("error").and_then(|error| error["message"].as_str());
                return match error {
                    Some(error) => Err(super::failure::Refused(error.to_owned()).into()),
                    None => Ok(message["result"].take()),
                };
            }
            if message["method"] == "notifications/progress"
                && let Some(text) = message["params"]["message"].as_str()
            {
                told(Notified::Progress(text.to_owned()));
            }
        }
    }

    /// Says goodbye as clients do, by closing the input, and waits until pml and what it started are gone.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        let Self {
            mut process, input, ..
        } = self;
        drop(input);
        process.wait().await.context("`pml stdio` does not end")?;
        Ok(())
    }

    async fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .context("`pml stdio` does not listen")
    }
}
