//! A minimal proxy on the handlers of the official Rust SDK: what typed messages cost. Kept here only.
//!
//! It has no rules, no catalog, no rewriting: every call is parsed, passed on and written again. Its streams are the
//! SDK's own, non-blocking on pipes.

use std::fmt::Display;

use anyhow::Context as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::transport::{TokioChildProcess, stdio_pipes};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};

use crate::process::{self, Promise};

/// Serves the client on standard input and output until it leaves.
pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = tokio::process::Command::from(process::server(crate::TOOLS, Promise::Nothing)?);
        let behind = ().serve(TokioChildProcess::new(server)?).await?;
        let serving = Forward { behind }.serve(stdio_pipes()).await?;
        serving.waiting().await.context("the proxy ended badly")?;
        Ok(())
    })
}

struct Forward {
    behind: RunningService<RoleClient, ()>,
}

impl ServerHandler for Forward {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.behind.list_tools(request).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.behind.call_tool_once(request).await.map_err(failed)
    }
}

fn failed(error: impl Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
