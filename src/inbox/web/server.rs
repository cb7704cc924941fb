//! The server itself: opens the port, tells where, answers until it is asked to go.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::app::{App, CookieName, SharedApp, Transport, WhatsappHook};
use super::connections::{BoundedListener, ConnectionHandle};
use super::error::ServeError;
use super::hosts::Hosts;
use super::limits::Limits;
use super::only_server::{OnlyServer, RunningServer, ServerCommand};
use super::routes::routes;
use super::stream_questions::StreamQuestions;
use super::streams::StreamTokens;
use crate::host::Runs;
use crate::proxy::Desk;

/// How long replies under way may take when the server is asked to go; it ends within a second.
const GRACE: Duration = Duration::from_millis(300);

/// How long the store may take to close.
const CLOSING: Duration = Duration::from_millis(300);

/// How the server is reached.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The port; 0 for any that is free.
    pub port: u16,
    /// The name of the user's own TLS proxy before it.
    pub allowed_host: Option<String>,
    /// The command that serves.
    pub command: ServerCommand,
}

/// A server that listens and answers nothing yet.
pub struct Server {
    app: SharedApp,
    listener: TcpListener,
    running: RunningServer,
    _only: OnlyServer,
}

impl Server {
    /// Opens the port on the loopback interface and tells where it is.
    pub async fn open(
        desk: Desk,
        only: OnlyServer,
        tokens: StreamTokens,
        runs: Runs,
        options: &ServeOptions,
    ) -> Result<Self, ServeError> {
        let port = options.port;
        let failed = |source| ServeError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let transport = match options.allowed_host {
            Some(_) => Transport::Tls,
            None => Transport::Loopback,
        };
        let app = App {
            desk,
            access: Access::new(),
            hosts: Hosts::new(port, options.allowed_host.as_deref()),
            limits: Limits::new(),
            tokens,
            questions: StreamQuestions::default(),
            runs,
            messages: App::message_places(),
            streams: App::stream_places(),
            whatsapp: OnceLock::new(),
            stopping: CancellationToken::new(),
            cookie: CookieName::new(port, transport),
        };
        let running = RunningServer {
            url: format!("http://127.0.0.1:{port}/"),
            port,
            pid: std::process::id(),
            command: options.command,
        };
        let (token, told) = (app.access.token().clone(), running.clone());
        let announced = tokio::task::spawn_blocking(move || only.announce(&told, &token).map(|()| only));
        let only = match announced.await {
            Ok(announced) => announced?,
            Err(panicked) => return Err(ServeError::Stopped(panicked.into())),
        };
        Ok(Self {
            app: Arc::new(app),
            listener,
            running,
            _only: only,
        })
    }

    /// Tells where the server listens.
    #[must_use]
    pub fn running(&self) -> &RunningServer {
        &self.running
    }

    /// Names what takes the requests of WhatsApp; the first one counts.
    pub fn connect_whatsapp(&self, hook: WhatsappHook) {
        let _ = self.app.whatsapp.set(hook);
    }

    /// Returns an address that opens the page once.
    #[must_use]
    pub fn url_with_key(&self) -> String {
        let key = self.app.access.hand_out_key(Instant::now());
        format!("{}?key={}", self.running.url, key.text())
    }

    /// Answers requests until `asked_to_go`, and within a second after that ends what is under way.
    pub async fn run(self, asked_to_go: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        let app = self.app;
        let stopping = app.stopping.clone();
        let service = routes(&app).into_make_service_with_connect_info::<ConnectionHandle>();
        let serving = axum::serve(BoundedListener::new(self.listener), service)
            .with_graceful_shutdown(stopping.clone().cancelled_owned());
        let serving = std::future::IntoFuture::into_future(serving);
        tokio::pin!(serving);
        let served = tokio::select! {
            served = &mut serving => served,
            () = asked_to_go => {
                stopping.cancel();
                // Connections that stay open end with the process.
                tokio::time::timeout(GRACE, serving).await.unwrap_or(Ok(()))
            }
        };
        let _ = tokio::time::timeout(CLOSING, app.desk.close()).await;
        served.map_err(ServeError::Stopped)
    }
}
