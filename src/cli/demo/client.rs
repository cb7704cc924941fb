//! A small MCP client on the pipes of `pml stdio`.
//!
//! Of the Legacy era and without dialogs, so that what a person is asked travels where it can be seen: in the
//! result of the call.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::super::output;
use super::stage::{DemoStage, Machine};
use crate::protocol::Shown;

/// Far longer than the sample server takes to start on a busy machine; reaching it is a fault to be told.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whether the lines themselves are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// As they travel.
    Shown,
    /// Only what they mean.
    Hidden,
}

/// A client of one `pml stdio`.
pub(super) struct DemoClient {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    wire: Wire,
    last_id: u64,
}

impl DemoClient {
    /// Starts `pml stdio` in the project.
    pub(super) fn start(stage: &DemoStage, machine: Machine, wire: Wire) -> anyhow::Result<Self> {
        let mut process = stage
            .pml(machine)
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start `pml stdio`")?;
        let input = process.stdin.take().context("`pml stdio` has no input")?;
        let output = process.stdout.take().context("`pml stdio` has no output")?;
        Ok(Self {
            process,
            input,
            output: BufReader::new(output).lines(),
            wire,
            last_id: 0,
        })
    }

    /// Opens the conversation.
    pub(super) async fn open(&mut self) -> anyhow::Result<()> {
        let client = json!({ "name": "pml-demo", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &params).await?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await
    }

    /// Calls a tool and returns its result.
    pub(super) async fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", &params).await
    }

    /// Sends a request and returns its result.
    pub(super) async fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        let answered = tokio::time::timeout(PATIENCE, self.answer(id)).await;
        let mut answer = answered
            .with_context(|| {
                format!(
                    "`pml stdio` did not answer `{method}` within {} seconds",
                    PATIENCE.as_secs()
                )
            })?
            .with_context(|| format!("`pml stdio` did not answer `{method}`"))?;
        match answer.get("error") {
            Some(error) => anyhow::bail!("`pml stdio` refused `{method}`: {error}"),
            None => Ok(answer["result"].take()),
        }
    }

    /// Says goodbye as clients do, by closing the input, and waits until pml is gone.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        let Self {
            mut process, input, ..
        } = self;
        drop(input);
        tokio::time::timeout(PATIENCE, process.wait())
            .await
            .context("`pml stdio` does not end")??;
        Ok(())
    }

    async fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let line = message.to_string();
        self.show("->", &line)?;
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .context("`pml stdio` does not listen")
    }

    async fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let line = self.output.next_line().await?.context("it closed its output")?;
            self.show("<-", &line)?;
            let message: Value = serde_json::from_str(&line).context("it wrote a line that is not JSON")?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    fn show(&self, arrow: &str, line: &str) -> Result<(), output::StdoutError> {
        match self.wire {
            Wire::Shown => output::data(&format!("  {} {}", arrow.cyan(), Shown::line(line).dimmed())),
            Wire::Hidden => Ok(()),
        }
    }
}
