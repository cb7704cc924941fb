//! The page of a run that this process shows: on the server that runs, or on one of its own.

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use crate::cli::CommandContext;
use crate::cli::browser;
use crate::config::{self, ChannelName, Files};
use crate::host::{RunId, Runs};
use crate::inbox::web::{
    Claim, OnlyServer, ServeError, ServeOptions, Server, ServerCommand, StreamTokens, fresh_key,
};
use crate::proxy::Desk;

/// The page of a run.
pub(super) struct RunPage {
    /// The address for the person; it holds a key where no browser has used that up.
    url: String,
    opened: bool,
    /// The channels of the user, which this process does not connect.
    unconnected: Vec<ChannelName>,
    server: Option<OwnServer>,
}

/// A server of this process; it goes with the run.
struct OwnServer {
    ending: CancellationToken,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl RunPage {
    /// Opens the page of a run in the browser, and serves it if no other process does.
    pub(super) async fn open(context: &CommandContext, desk: &Desk, run: &RunId) -> anyhow::Result<Self> {
        let state = context.locations.state().to_owned();
        let claimed = tokio::task::spawn_blocking(move || {
            let claim = OnlyServer::claim(&state)?;
            let key = match &claim {
                Claim::Other(running) => Some(fresh_key(&state, running)?),
                Claim::Own(_) => None,
            };
            Ok::<_, ServeError>((claim, key))
        });
        let (claim, key) = claimed.await??;
        let (base, with_key, server) = match claim {
            Claim::Other(running) => (running.url, key.unwrap_or_default(), None),
            Claim::Own(only) => {
                let state = context.locations.state();
                let (tokens, runs) = (StreamTokens::new(state), Runs::new(state));
                let options = ServeOptions {
                    port: 0,
                    allowed_host: None,
                    command: ServerCommand::Run,
                };
                let server = Server::open(desk.clone(), only, tokens, runs, &options).await?;
                let base = server.running().url.clone();
                let with_key = server.url_with_key();
                let ending = CancellationToken::new();
                let serving = tokio::spawn(server.run(ending.clone().cancelled_owned()));
                (base, with_key, Some(OwnServer { ending, serving }))
            }
        };
        let unconnected = match &server {
            Some(_) => configured_channels(context).await,
            None => Vec::new(),
        };
        let page = format!("{base}runs/{run}");
        let key = with_key.split_once('?').map_or("", |(_, key)| key);
        let with_key = format!("{page}?{key}");
        let opened = browser::open(&context.environment, &with_key);
        Ok(Self {
            // A key that the browser uses is used up.
            url: if opened { page } else { with_key },
            opened,
            unconnected,
            server,
        })
    }

    /// Tells where it is.
    pub(super) fn tell(&self, console: &mut Console) {
        if !self.opened {
            console.note("no browser could be started; open the address by hand");
        }
        console.line(&self.url);
        if !self.unconnected.is_empty() {
            let names: Vec<&str> = self.unconnected.iter().map(|name| name.title()).collect();
            console.note(&format!(
                "{} not connected: channels are while `pml serve` runs, and this page is served by the run itself; start \
                 `pml serve` before a run that shall ask there",
                match names.as_slice() {
                    [only] => format!("{only} is"),
                    several => format!("{} are", several.join(", ")),
                }
            ));
        }
    }

    /// Ends a server of this process.
    pub(super) async fn close(self) {
        if let Some(OwnServer { ending, serving }) = self.server {
            ending.cancel();
            let _ = serving.await;
        }
    }
}

/// Lists the channels of the user's file; a file that cannot be read is complained about elsewhere.
async fn configured_channels(context: &CommandContext) -> Vec<ChannelName> {
    let files = Files::new(context.locations.user_config(), &context.locations);
    let read = tokio::task::spawn_blocking(move || config::read(&files));
    match read.await {
        Ok(Ok(config)) => config.channels.configured().collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}
