//! The way to a server over HTTP, raw: lines in, lines out, as if it were a process.
//!
//! The transport of the SDK is typed and would lose bytes, so this is one of our own: each line that the session
//! writes is a POST, each message that comes back is a line that it reads. Must not look into messages further than
//! the transport itself demands (`id`, `method`, the version). The non-obvious thing: until the server has answered
//! once, a failure is that of the connection and ends it; afterwards it is that of one request, which gets an error.

mod address;
mod events;
mod exchange;
mod http;
mod listening;
mod messages;
mod old;
mod parameters;
mod renewing;
mod resumption;
mod spoken;
mod standing;
#[cfg(test)]
mod tests;

pub use address::{Address, AddressError};

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::io::DuplexStream;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::exchange::Opened;
use self::http::{Carried, Failure, Http, flat};
use self::parameters::Parameters;
use self::spoken::Spoken;
use self::standing::Standing;
use crate::config::Environment;
use crate::protocol::{DependencyName, Era, Line, Secrets};
use crate::wire::{LineReader, Outbox, Patience};

/// What lies between the session and the bridge: as much as a pipe holds.
const BETWEEN: usize = 64 * 1024;

/// Lines of the session were bounded when the client wrote them; here nothing more is refused.
const OWN_LINES: usize = usize::MAX / 2;

/// How many lines that want no answer may be on their way: a server that asks and does not take what it is told in
/// return must not pile it up here. Each is given up in time, so this holds up nobody for ever.
const TELLINGS: usize = 64;

/// How long the end of a session may take to be told: nobody waits for the answer.
const FAREWELL: Duration = Duration::from_millis(250);

/// A code of pml's own, outside the range that JSON-RPC keeps for itself.
const FAILED: i32 = -31_000;

/// A remote server as the loader sees it: two streams of lines and an end.
pub(super) struct Connection {
    /// Where its messages come from.
    pub(super) source: DuplexStream,
    /// Where messages to it go; closing it ends the connection.
    pub(super) sink: DuplexStream,
    /// How it ended, once it has.
    pub(super) ended: watch::Receiver<Option<String>>,
}

/// Opens the way to a server; it is reached when the first line is written. `urgent` ends it at once.
pub(super) fn connect(
    dependency: &DependencyName,
    (address, secrets): (&Address, &Secrets),
    line_limit: usize,
    environment: &Environment,
    urgent: CancellationToken,
    tasks: &TaskTracker,
) -> Connection {
    let (sink, heard) = tokio::io::duplex(BETWEEN);
    let (speak, source) = tokio::io::duplex(BETWEEN);
    let (tell, ended) = watch::channel(None);
    let (dependency, address, environment) = (dependency.clone(), address.clone(), environment.clone());
    let (secrets, hidden) = (secrets.clone(), secrets.clone());
    let session = Outbox::open(speak, Patience::UntilItIsGone, tasks);
    tasks.spawn(async move {
        let bridged = async {
            let http = Http::new(address, secrets, &environment).await?;
            let bridge = Arc::new(Bridge {
                dependency,
                http,
                session,
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
            Some(Ok(())) | None => "was closed".to_owned(),
            Some(Err(End::Failed(failure))) => failure.to_string(),
            Some(Err(End::StreamOver)) => "closed its stream of events".to_owned(),
        };
        tell.send_replace(Some(hidden.hide(&reason).into_owned()));
    });
    Connection { source, sink, ended }
}

/// Why a connection ends that the session did not close.
enum End {
    /// The server could not be reached at all.
    Failed(Failure),
    /// An old server closed the stream on which it answers.
    StreamOver,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What the exchanges of one connection share.
struct Bridge {
    dependency: DependencyName,
    http: Http,
    /// The way back to the session.
    session: Outbox,
    line_limit: usize,
    /// What `initialize` agreed on; whoever listens is told when a new session takes the place of one that is over.
    opened: watch::Sender<Option<Opened>>,
    /// The `initialize` of the session, which also opens the next one when the server forgot this one.
    opening: Arc<Mutex<Option<Bytes>>>,
    /// Ends what outlives the exchange that began it.
    ended: CancellationToken,
    /// Where an old server wants messages; one that has none takes them at its address.
    endpoint: OnceLock<Url>,
    /// Whether the server has answered anything yet.
    answered: AtomicBool,
    /// Whether it has answered anything in its current session.
    answered_in_session: AtomicBool,
    /// What is told arrives in its order, and before whatever is asked after it.
    in_order: Mutex<()>,
    /// Which arguments a Modern server wants in headers too.
    parameters: std::sync::Mutex<Parameters>,
    /// What is asked for again in a new session.
    standing: std::sync::Mutex<Standing>,
}

/// What became of one line.
enum Done {
    /// It arrived.
    Line,
    /// The request of this id has its answer.
    Request(String),
    /// The first request was refused as servers of 2024-11-05 do, which have another transport.
    Old { first: Bytes, refused: Failure },
    /// The connection is over.
    Over(End),
}

impl Bridge {
    /// Carries lines to the server until the session is closed or the server is lost.
    async fn run(self: Arc<Self>, mut lines: LineReader<DuplexStream>) -> Result<(), End> {
        let alive = self.ended.clone().drop_guard();
        let mut exchanges = JoinSet::new();
        let mut requests: HashMap<String, (Era, AbortHandle)> = HashMap::new();
        loop {
            tokio::select! {
                line = lines.next_line(), if exchanges.len() < requests.len() + TELLINGS => {
                    let Ok(Some(line)) = line else { break };
                    let Line::Whole(line) = line else { continue };
                    let Some((spoken, mut headers)) = Spoken::read(&line) else { continue };
                    let mut own = None;
                    match &spoken {
                        Spoken::Request { id, era } => {
                            if *era == Era::Modern {
                                headers.extend(self.parameters().headers(&line));
                            }
                            own = Some((id.clone(), *era));
                        }
                        Spoken::Cancelled { id } => match requests.remove(id) {
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
                        Spoken::Opened => drop(exchanges.spawn(Arc::clone(&self).listen())),
                        Spoken::Opening { .. } | Spoken::Told => {}
                    }
                    let exchange = exchanges.spawn(Arc::clone(&self).carry(line, spoken, headers));
                    requests.extend(own.map(|(id, era)| (id, (era, exchange))));
                }
                Some(done) = exchanges.join_next() => match done {
                    Ok(Done::Line) | Err(_) => {}
                    Ok(Done::Request(id)) => drop(requests.remove(&id)),
                    Ok(Done::Over(end)) => return Err(end),
                    Ok(Done::Old { first, refused }) => {
                        let (named, is_named) = oneshot::channel();
                        exchanges.spawn(Arc::clone(&self).hear_old(refused, named));
                        if let (Ok(()), Some((spoken, headers))) = (is_named.await, Spoken::read(&first)) {
                            exchanges.spawn(Arc::clone(&self).carry(first, spoken, headers));
                        }
                    }
                },
            }
        }
        drop((exchanges, alive));
        self.farewell().await;
        Ok(())
    }

    fn parameters(&self) -> MutexGuard<'_, Parameters> {
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the server that the session is over.
    async fn farewell(&self) {
        let Some(opened) = self.opened.borrow().clone() else {
            return;
        };
        if opened.session.is_some() {
            let headers = opened.headers(Era::Legacy);
            let told = self.http.send(Carried::Farewell, &headers);
            let _ = tokio::time::timeout(FAREWELL, told).await;
        }
    }

    /// Hands a message to the session.
    async fn deliver(&self, message: Bytes) {
        // A session that is gone closes its other end too, which ends the bridge.
        let _ = self.session.send(flat(message)).await;
    }

    /// Answers a request of the session in place of the server.
    async fn deliver_error(&self, id: &str, error: &str) {
        self.deliver(Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#
        )))
        .await;
    }

    /// Answers a request of the session with what went wrong.
    async fn deliver_failure(&self, id: &str, failure: &Failure) {
        let message = serde_json::Value::from(format!("`{}` {}", self.dependency, self.http.told(failure)));
        self.deliver_error(id, &format!(r#"{{"code":{FAILED},"message":{message}}}"#))
            .await;
    }
}

/// Headers of a request of the session that belongs to what was opened.
fn headers_of(mirrored: HeaderMap, opened: Option<&Opened>, era: Era) -> HeaderMap {
    let mut headers = opened.map_or_else(HeaderMap::new, |opened| opened.headers(era));
    headers.extend(mirrored);
    headers
}
