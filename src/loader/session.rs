//! The conversation with one running dependency: our ids, its answers, and what it says unasked.
//!
//! Knows nothing of the client: a call is a [`Ticket`] that yields progress and one reply. When the dependency
//! dies every waiting ticket is told why. A ticket that is dropped before its reply cancels the call downstream,
//! and whatever still comes for it is thrown away.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::protocol::{
    DependencyName, EnvelopeError, Json, Kind, Line, Message, Outcome, Payload, Shown, id_in_head,
};
use crate::wire::{Frame, LineReader, Outbox};

/// Progress notifications that may wait for a slow client before the dependency's reader waits too.
const PROGRESS_AHEAD: usize = 64;

/// How a dependency's process ended, in words for whoever called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What happened, such as `exited with code 1`.
    pub reason: String,
    /// The last lines it wrote to stderr; empty where it wrote none.
    pub stderr: String,
}

/// What came back for a ticket.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The dependency's result, byte for byte.
    Result(Bytes),
    /// The dependency's error object, byte for byte.
    Error(Bytes),
    /// The answer could not be used; the dependency lives on.
    Unusable(String),
    /// The dependency died.
    Ended(Arc<Ended>),
}

/// What a ticket yields.
#[derive(Debug)]
pub enum Step {
    /// The raw parameters of a progress notification for this call; its token is the ticket's id.
    Progress(Bytes),
    /// The end of the call.
    Reply(Reply),
}

/// What a dependency says unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// One of its lists has changed.
    Changed(Kind),
}

struct Waiter {
    reply: oneshot::Sender<Reply>,
    progress: mpsc::Sender<Bytes>,
}

struct Shared {
    dependency: DependencyName,
    /// Gone once the session is closed: the writer ends, and with it the dependency's stdin.
    outbox: Mutex<Option<Outbox>>,
    waiters: Mutex<HashMap<u64, Waiter>>,
    next_id: AtomicU64,
    ended: OnceLock<Arc<Ended>>,
    used_at: Mutex<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere cannot leave these maps half-changed: every critical section is a single operation.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running dependency; clones share the conversation.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

impl Session {
    /// Starts reading and writing. `ending` is awaited when the dependency closes its stdout and tells how it ended.
    pub fn open(
        dependency: DependencyName,
        (source, sink): (
            impl AsyncRead + Unpin + Send + 'static,
            impl AsyncWrite + Unpin + Send + 'static,
        ),
        line_limit: usize,
        tasks: &TaskTracker,
        unasked: impl Fn(Unasked) + Send + Sync + 'static,
        ending: impl Future<Output = Ended> + Send + 'static,
    ) -> Self {
        let session = Self(Arc::new(Shared {
            dependency,
            outbox: Mutex::new(Some(Outbox::open(sink, tasks))),
            waiters: Mutex::default(),
            next_id: AtomicU64::new(1),
            ended: OnceLock::new(),
            used_at: Mutex::new(Instant::now()),
        }));
        let reading = session.clone();
        let mut reader = LineReader::new(source, line_limit);
        tasks.spawn(async move {
            while let Ok(Some(line)) = reader.next_line().await {
                reading.receive(line, &unasked).await;
            }
            drop(reader);
            // A dependency that closed its stdout answers nothing any more: it is asked to go.
            reading.close();
            let ended = ending.await;
            reading.end(ended);
        });
        session
    }

    /// Returns whose conversation it is.
    #[must_use]
    pub fn dependency(&self) -> &DependencyName {
        &self.0.dependency
    }

    /// Returns how the dependency ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Arc<Ended>> {
        self.0.ended.get().cloned()
    }

    /// Tells whether calls are waiting for an answer.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !lock(&self.0.waiters).is_empty()
    }

    /// Returns for how long no call was under way; `None` while one is.
    #[must_use]
    pub fn unused_for(&self) -> Option<Duration> {
        if self.is_busy() {
            None
        } else {
            Some(lock(&self.0.used_at).elapsed())
        }
    }

    /// Takes note that somebody is about to use it.
    pub fn touch(&self) {
        *lock(&self.0.used_at) = Instant::now();
    }

    /// Tells whether `other` is the same conversation.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Closes the way to the dependency: it sees the end of its stdin once everything queued is written.
    pub fn close(&self) {
        lock(&self.0.outbox).take();
    }

    /// Registers a call; its id is the ticket's, and its progress token should be too.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, replied) = oneshot::channel();
        let (progress, progressed) = mpsc::channel(PROGRESS_AHEAD);
        match self.ended() {
            Some(ended) => drop(reply.send(Reply::Ended(ended))),
            None => drop(lock(&self.0.waiters).insert(id, Waiter { reply, progress })),
        }
        // The dependency may have died between the two lines above: nobody would ever answer then.
        if let Some(ended) = self.ended() {
            self.finish(id, Reply::Ended(ended));
        }
        Ticket {
            session: self.clone(),
            id,
            replied,
            progressed,
            open: true,
        }
    }

    /// Sends a request and waits for its reply; for what pml itself wants to know.
    pub async fn request(&self, method: &str, params: &str) -> Reply {
        let mut ticket = self.ticket();
        ticket
            .send(method, [Bytes::copy_from_slice(params.as_bytes())])
            .await;
        loop {
            if let Step::Reply(reply) = ticket.next().await {
                return reply;
            }
        }
    }

    /// Sends a request that stays open as long as the conversation does; its answer is nobody's, and it keeps the
    /// dependency from nothing.
    pub fn subscribe(&self, method: &str, params: &str) {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        self.send_now(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
    }

    /// Sends a notification; a dependency that is gone does not hear it.
    pub fn notify(&self, method: &str) {
        self.send_now(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
    }

    fn send_now(&self, frame: impl Into<Frame>) {
        if let Some(outbox) = lock(&self.0.outbox).as_ref() {
            let _ = outbox.send_now(frame);
        }
    }

    async fn receive(&self, line: Line, unasked: &(impl Fn(Unasked) + Send + Sync)) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { head } => {
                if let Some(id) = id_in_head(&head).as_deref().and_then(own_id) {
                    self.finish(
                        id,
                        Reply::Unusable("its answer is longer than the line limit".to_owned()),
                    );
                }
                tracing::warn!(dependency = %self.0.dependency, "a line over the limit was thrown away");
                return;
            }
        };
        match Message::parse(&line) {
            Ok(Message::Response { id, outcome }) => {
                let Some(id) = own_id(id.get()) else { return };
                let reply = match outcome {
                    Outcome::Result(raw) => Reply::Result(line.slice_ref(raw.get().as_bytes())),
                    Outcome::Error(raw) => Reply::Error(line.slice_ref(raw.get().as_bytes())),
                };
                self.finish(id, reply);
            }
            Ok(Message::Notification { method, params }) => match method.as_ref() {
                "notifications/progress" => self.progress(&line, params.as_ref()).await,
                method => match Kind::changed_by(method) {
                    Some(kind) => unasked(Unasked::Changed(kind)),
                    None => {
                        tracing::debug!(dependency = %self.0.dependency, method, "a notification is not passed on");
                    }
                },
            },
            Ok(Message::Request { id, method, .. }) => self.answer(id, &method),
            Err(EnvelopeError::Shape { id: Some(id), reason }) => {
                if let Some(id) = own_id(&id) {
                    self.finish(
                        id,
                        Reply::Unusable(format!("its answer is not a JSON-RPC message: {reason}")),
                    );
                }
            }
            Err(error) => {
                let text = String::from_utf8_lossy(&line[..line.len().min(200)]);
                tracing::debug!(dependency = %self.0.dependency, %error, text = %Shown::line(&text), "a line of stdout is no message");
            }
        }
    }

    /// A dependency is told what pml can do when it starts: nothing. What it asks all the same gets its answer.
    fn answer(&self, id: Json<'_>, method: &str) {
        let frame = if method == "ping" {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        } else {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#)
        };
        self.send_now(frame);
    }

    async fn progress(&self, line: &Bytes, params: Option<&Payload<'_>>) {
        let Some(params) = params else { return };
        let token = params
            .object()
            .and_then(|object| own_id(object.value("progressToken")?.get()));
        let sender = token.and_then(|id| {
            lock(&self.0.waiters)
                .get(&id)
                .map(|waiter| waiter.progress.clone())
        });
        if let Some(sender) = sender {
            let _ = sender.send(line.slice_ref(params.get().as_bytes())).await;
        }
    }

    fn finish(&self, id: u64, reply: Reply) {
        let waiter = lock(&self.0.waiters).remove(&id);
        if let Some(waiter) = waiter {
            let _ = waiter.reply.send(reply);
        }
    }

    fn end(&self, ended: Ended) {
        self.close();
        let ended = self.0.ended.get_or_init(|| Arc::new(ended)).clone();
        let waiters: Vec<Waiter> = lock(&self.0.waiters).drain().map(|(_, waiter)| waiter).collect();
        for waiter in waiters {
            let _ = waiter.reply.send(Reply::Ended(Arc::clone(&ended)));
        }
    }
}

/// Reads an id that we gave: a number, for sloppy servers also `1.0` or `"1"`.
fn own_id(raw: &str) -> Option<u64> {
    let raw = raw.trim_matches('"');
    raw.strip_suffix(".0").unwrap_or(raw).parse().ok()
}

/// A call under way.
pub struct Ticket {
    session: Session,
    id: u64,
    replied: oneshot::Receiver<Reply>,
    progressed: mpsc::Receiver<Bytes>,
    open: bool,
}

impl Ticket {
    /// Returns the id of the call on the dependency's side.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sends the request, waiting for room where the dependency reads slowly.
    pub async fn send(&self, method: &str, params: impl IntoIterator<Item = Bytes>) {
        let mut frame = Frame::from(format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":"#,
            self.id
        ));
        frame.extend(params);
        frame.push("}");
        let outbox = lock(&self.session.0.outbox).clone();
        if let Some(outbox) = outbox {
            // A dependency that is gone is noticed by the reader, which tells every ticket how it ended.
            let _ = outbox.send(frame).await;
        }
    }

    /// Returns progress as it comes, then the reply. Cancel safe.
    pub async fn next(&mut self) -> Step {
        tokio::select! {
            biased;
            Some(progress) = self.progressed.recv() => Step::Progress(progress),
            reply = &mut self.replied => {
                self.open = false;
                Step::Reply(reply.unwrap_or_else(|_dropped| Reply::Unusable("its answer was lost".to_owned())))
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.session.touch();
        if self.open && lock(&self.session.0.waiters).remove(&self.id).is_some() {
            self.session.send_now(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
                self.id
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

    struct Peer {
        session: Session,
        heard: tokio::io::Lines<BufReader<DuplexStream>>,
        speak: DuplexStream,
        unasked: mpsc::UnboundedReceiver<Unasked>,
    }

    fn peer() -> Peer {
        let (stdin, heard) = tokio::io::duplex(1 << 16);
        let (speak, stdout) = tokio::io::duplex(1 << 16);
        let (tell, unasked) = mpsc::unbounded_channel();
        let session = Session::open(
            "fake".parse().unwrap(),
            (stdout, stdin),
            1000,
            &TaskTracker::new(),
            move |event| {
                let _ = tell.send(event);
            },
            async {
                Ended {
                    reason: "exited with code 3".to_owned(),
                    stderr: "boom".to_owned(),
                }
            },
        );
        Peer {
            session,
            heard: BufReader::new(heard).lines(),
            speak,
            unasked,
        }
    }

    impl Peer {
        async fn hears(&mut self) -> String {
            self.heard.next_line().await.unwrap().unwrap()
        }

        async fn says(&mut self, line: &str) {
            self.speak
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
        }
    }

    async fn reply(ticket: &mut Ticket) -> String {
        match ticket.next().await {
            Step::Progress(params) => format!("progress {}", String::from_utf8_lossy(&params)),
            Step::Reply(Reply::Result(raw)) => format!("result {}", String::from_utf8_lossy(&raw)),
            Step::Reply(Reply::Error(raw)) => format!("error {}", String::from_utf8_lossy(&raw)),
            Step::Reply(Reply::Unusable(why)) => format!("unusable {why}"),
            Step::Reply(Reply::Ended(ended)) => format!("ended {} {}", ended.reason, ended.stderr),
        }
    }

    #[tokio::test]
    async fn a_call_gets_its_progress_in_order_and_its_raw_result() {
        let mut peer = peer();
        let mut ticket = peer.session.ticket();
        ticket
            .send("tools/call", [Bytes::from_static(br#"{"x": 1.0}"#)])
            .await;
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x": 1.0}}"#
        );
        for step in 1..=3 {
            peer.says(&format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":1,"progress":{step}}}}}"#
            ))
            .await;
        }
        peer.says(r#"{"id":1,"result":{ "a":1.0 }}"#).await;
        for step in 1..=3 {
            assert_eq!(
                reply(&mut ticket).await,
                format!(r#"progress {{"progressToken":1,"progress":{step}}}"#)
            );
        }
        assert_eq!(reply(&mut ticket).await, r#"result { "a":1.0 }"#);
    }

    #[tokio::test]
    async fn a_dropped_ticket_cancels_downstream_and_a_finished_one_does_not() {
        let mut peer = peer();
        let mut done = peer.session.ticket();
        done.send("a", [Bytes::from_static(b"{}")]).await;
        peer.hears().await;
        peer.says(r#"{"id":"1","result":1}"#).await;
        assert_eq!(reply(&mut done).await, "result 1");
        drop(done);
        let dropped = peer.session.ticket();
        dropped.send("b", [Bytes::from_static(b"{}")]).await;
        drop(dropped);
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":2,"method":"b","params":{}}"#
        );
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#
        );
        assert!(!peer.session.is_busy());
    }

    #[tokio::test]
    async fn a_dying_dependency_tells_every_waiting_call_and_every_later_one() {
        let mut peer = peer();
        let mut waiting = peer.session.ticket();
        waiting.send("a", [Bytes::from_static(b"{}")]).await;
        peer.hears().await;
        drop(peer.speak);
        assert_eq!(reply(&mut waiting).await, "ended exited with code 3 boom");
        assert_eq!(
            reply(&mut peer.session.ticket()).await,
            "ended exited with code 3 boom"
        );
        assert!(peer.session.ended().is_some());
    }

    #[tokio::test]
    async fn sloppy_lines_cost_only_the_call_they_belong_to() {
        let mut peer = peer();
        let mut first = peer.session.ticket();
        let mut second = peer.session.ticket();
        let mut third = peer.session.ticket();
        peer.says("Welcome to the server!").await;
        peer.says(r#"{"id":99,"result":{}}"#).await;
        peer.says(&format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(2000)))
            .await;
        peer.says(r#"{"id":2,"result":1,"error":{"code":1}}"#).await;
        peer.says(r#"{"id":3.0,"error":{"code":5},"jsonrpc":"2.0"}"#)
            .await;
        assert_eq!(
            reply(&mut first).await,
            "unusable its answer is longer than the line limit"
        );
        assert_eq!(
            reply(&mut second).await,
            "unusable its answer is not a JSON-RPC message: it has both `result` and `error`"
        );
        assert_eq!(reply(&mut third).await, r#"error {"code":5}"#);
    }

    #[tokio::test]
    async fn what_it_asks_is_answered_and_what_it_tells_is_passed_on() {
        let mut peer = peer();
        peer.says(r#"{"id":"p","method":"ping"}"#).await;
        assert_eq!(peer.hears().await, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
        peer.says(r#"{"id":7,"method":"roots/list"}"#).await;
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#
        );
        peer.says(r#"{"method":"notifications/tools/list_changed"}"#)
            .await;
        assert_eq!(peer.unasked.recv().await, Some(Unasked::Changed(Kind::Tools)));
    }
}
