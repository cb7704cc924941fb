//! `pml stdio`: the MCP server that clients start.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::TaskTracker;

use super::CommandContext;
#[cfg(debug_assertions)]
use super::watchdog::Watchdog;
use crate::config;
use crate::proxy::Proxy;
use crate::stdio::{Shutdown, serve, streams};

/// Serves the client on standard input and output until it leaves.
pub(crate) fn run(context: &CommandContext) -> anyhow::Result<ExitCode> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all();
    #[cfg(debug_assertions)]
    if let Some(watchdog) = Watchdog::wanted_by(&context.environment) {
        watchdog.prepare(&mut builder);
        let runtime = builder.build()?;
        runtime.block_on(watchdog.watch(serve_client(context)))?;
        runtime.shutdown_background();
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = builder.build()?;
    runtime.block_on(serve_client(context))?;
    // A thread that still waits for a lock or the disk must not keep pml alive.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve_client(context: &CommandContext) -> anyhow::Result<()> {
    let files = config::find(
        context.config.as_deref(),
        &context.environment,
        &context.locations,
    );
    if let Some(unreached) = &files.unreached {
        tracing::warn!("{unreached}");
    }
    let tasks = TaskTracker::new();
    let proxy = Proxy::new(
        context.environment.clone(),
        &context.locations,
        files,
        tasks.clone(),
    );
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let asked_to_go = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    match serve(proxy, streams::open()?, tasks, asked_to_go).await {
        Shutdown::EndOfInput => {}
        Shutdown::ClientGone => tracing::debug!("ended because the client reads nothing more"),
        Shutdown::Signal => tracing::debug!("ended by a signal"),
    }
    Ok(())
}
