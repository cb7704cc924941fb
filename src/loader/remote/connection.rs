//! One connection to a server: the lines of its session carried to it until one of the two closes.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use tokio::io::DuplexStream;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bridge::Bridge;
use super::http::Http;
use super::outcome::LineOutcome;
use super::outgoing_line::OutgoingLine;
use crate::config::Environment;
use crate::loader::plan::Address;
use crate::loader::session::{EndReason, RequestFailures};
use crate::protocol::{DependencyName, Era, Line, Secrets};
use crate::wire::{DrainPolicy, LineReader, Outbox};

/// What lies between the session and the bridge: as much as a pipe holds.
const PIPE_SIZE: usize = 64 * 1024;

/// Lines of the session were bounded when the client wrote them; here nothing more is refused.
const OWN_LINES: usize = usize::MAX / 2;

/// How many lines that want no answer may be on their way: a server that asks and does not take what it is told in
/// return must not pile it up here. Each is given up in time, so this holds up no line for ever.
const NOTICES: usize = 64;

/// A remote server as the loader sees it: two streams of lines and an end.
pub(in crate::loader) struct Connection {
    /// Where its messages come from.
    pub(in crate::loader) source: DuplexStream,
    /// Where messages to it go; closing it ends the connection.
    pub(in crate::loader) sink: DuplexStream,
    /// Why requests failed that were answered in place of the server.
    pub(in crate::loader) failures: RequestFailures,
    /// Why it ended, once it has.
    pub(in crate::loader) ended: watch::Receiver<Option<EndReason>>,
}

/// Opens the way to a server; it is reached when the first line is written. `urgent` ends it at once.
pub(in crate::loader) fn connect(
    dependency: &DependencyName,
    (address, secrets): (&Address, &Secrets),
    line_limit: usize,
    environment: &Environment,
    urgent: CancellationToken,
    tasks: &TaskTracker,
) -> Connection {
    let (sink, heard) = tokio::io::duplex(PIPE_SIZE);
    let (speak, source) = tokio::io::duplex(PIPE_SIZE);
    let (tell, ended) = watch::channel(None);
    let (dependency, address, environment) = (dependency.clone(), address.clone(), environment.clone());
    let (secrets, failures) = (secrets.clone(), RequestFailures::default());
    let noted = failures.clone();
    let session = Outbox::open(speak, DrainPolicy::UntilItIsGone, tasks);
    tasks.spawn(async move {
        let bridged = async {
            let http = Http::new(address, secrets, &environment).await?;
            let bridge = Arc::new(Bridge {
                dependency,
                http,
                session,
                failures: noted,
                line_limit,
                opened: watch::Sender::new(None),
                opening: Arc::default(),
                ended: CancellationToken::new(),
                endpoint: OnceLock::new(),
                answered: AtomicBool::new(false),
                answered_in_session: AtomicBool::new(false),
                in_order: Mutex::default(),
                parameters: std::sync::Mutex::default(),
                standing: std::sync::Mutex::default(),
            });
            Arc::clone(&bridge).run(LineReader::new(heard, OWN_LINES)).await
        };
        let reason = match urgent.run_until_cancelled(bridged).await {
            Some(Ok(())) | None => EndReason::Closed,
            Some(Err(reason)) => reason,
        };
        tell.send_replace(Some(reason));
    });
    Connection {
        source,
        sink,
        failures,
        ended,
    }
}

impl Bridge {
    /// Carries lines to the server until the session is closed or the server is lost.
    async fn run(self: Arc<Self>, mut lines: LineReader<DuplexStream>) -> Result<(), EndReason> {
        let alive = self.ended.clone().drop_guard();
        let mut exchanges = JoinSet::new();
        let mut requests: HashMap<String, (Era, AbortHandle)> = HashMap::new();
        loop {
            tokio::select! {
                line = lines.next_line(), if exchanges.len() < requests.len() + NOTICES => {
                    let Ok(Some(line)) = line else { break };
                    let Line::Whole(line) = line else { continue };
                    let Some((spoken, mut headers)) = OutgoingLine::read(&line) else { continue };
                    let mut own = None;
                    match &spoken {
                        OutgoingLine::Request { id, era } => {
                            if *era == Era::Modern {
                                headers.extend(self.parameters().headers(&line));
                            }
                            own = Some((id.clone(), *era));
                        }
                        OutgoingLine::Cancelled { id } => match requests.remove(id) {
                            // A Modern server takes the end of an exchange for its cancellation.
                            Some((Era::Modern, exchange)) => {
                                exchange.abort();
                                continue;
                            }
                            // A Legacy one is told, but need not answer: it may keep the exchange open for ever.
                            Some((Era::Legacy, exchange)) => {
                                let told = Arc::clone(&self).carry(line, spoken, headers);
                                exchanges.spawn(async move {
                                    let done = told.await;
                                    exchange.abort();
                                    done
                                });
                                continue;
                            }
                            None => {}
                        },
                        OutgoingLine::Initialized => drop(exchanges.spawn(Arc::clone(&self).listen())),
                        OutgoingLine::Initialize { .. } | OutgoingLine::Notice => {}
                    }
                    let exchange = exchanges.spawn(Arc::clone(&self).carry(line, spoken, headers));
                    requests.extend(own.map(|(id, era)| (id, (era, exchange))));
                }
                Some(done) = exchanges.join_next() => match done {
                    Ok(LineOutcome::Delivered) | Err(_) => {}
                    Ok(LineOutcome::Answered(id)) => drop(requests.remove(&id)),
                    Ok(LineOutcome::ConnectionEnded(end)) => return Err(end),
                    Ok(LineOutcome::NeedsSse { first, refused }) => {
                        let (named, is_named) = oneshot::channel();
                        exchanges.spawn(Arc::clone(&self).run_sse_transport(refused, named));
                        if let (Ok(()), Some((spoken, headers))) = (is_named.await, OutgoingLine::read(&first)) {
                            exchanges.spawn(Arc::clone(&self).carry(first, spoken, headers));
                        }
                    }
                },
            }
        }
        drop((exchanges, alive));
        self.end_session().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
