//! `pml stdio`: the MCP server that clients start.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::TaskTracker;

use super::Ground;
use crate::config;
use crate::proxy::Proxy;
use crate::stdio::{Shutdown, serve, streams};

/// Serves the client on standard input and output until it leaves.
pub(crate) fn run(ground: &Ground) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve_client(ground))?;
    // A thread that still waits for a lock or the disk must not keep pml alive.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve_client(ground: &Ground) -> anyhow::Result<()> {
    let files = config::find(ground.config.as_deref(), &ground.environment, &ground.locations);
    if let Some(unreached) = &files.unreached {
        tracing::warn!("{unreached}");
    }
    let tasks = TaskTracker::new();
    let proxy = Proxy::new(
        ground.environment.clone(),
        &ground.locations,
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
