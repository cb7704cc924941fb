//! The conversation with one running dependency: our ids, its answers, and what it says unasked.
//!
//! Each request is registered with its [`Caller`], who gets progress and exactly one end. What belongs to no request
//! goes to the [`Client`]. When the dependency dies everybody who waits is told why. A request that is cancelled is
//! forgotten here and cancelled there; whatever still comes for it is thrown away.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::asking::Unclaimed;
use super::client::{Caller, Client, Failure, Waiting};
use crate::protocol::{DependencyName, Era, Kind, Secrets, escaped, quoted};
use crate::wire::{Frame, LineReader, Outbox, Part, Patience};

/// How a dependency's process ended, in words for whoever called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What happened, such as `exited with code 1`.
    pub reason: String,
    /// The last lines it wrote to stderr; empty where it wrote none.
    pub stderr: String,
}

/// What came back for a request of pml's own.
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

/// What a dependency says unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// One of its lists has changed.
    Changed(Kind),
}

/// Who waits, by the id of the request. Ids are counted up by pml, so they need no hash that withstands an attacker.
pub(super) type Callers = HashMap<u64, Arc<dyn Caller>, BuildHasherDefault<Counted>>;

/// Spreads numbers that count up.
#[derive(Default)]
pub(super) struct Counted(u64);

impl Hasher for Counted {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The odd number nearest to 2^64 divided by the golden ratio: neighbours end up far apart.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What the clones of a session share.
pub(super) struct Shared {
    pub(super) dependency: DependencyName,
    /// What its errors and unreadable lines must not show.
    pub(super) secrets: Secrets,
    /// Gone once the session is closed: the writer ends, and with it the dependency's stdin.
    pub(super) outbox: Mutex<Option<Outbox>>,
    pub(super) callers: Mutex<Callers>,
    pub(super) next_id: AtomicU64,
    pub(super) ended: OnceLock<Arc<Ended>>,
    pub(super) used_at: Mutex<Instant>,
    pub(super) era: OnceLock<Era>,
    pub(super) client: Option<Weak<dyn Client>>,
    /// The raw ids of the dependency's requests that were not answered yet.
    pub(super) inquiries: Mutex<Vec<String>>,
    /// How many bytes of answers were queued since there was last room for them.
    pub(super) unread_answers: AtomicUsize,
    pub(super) unclaimed: Mutex<Unclaimed>,
    /// Something was kept in `unclaimed`.
    pub(super) kept: Notify,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere cannot leave these maps half-changed: every critical section is a single operation.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running dependency; clones share the conversation.
#[derive(Clone)]
pub struct Session(pub(super) Arc<Shared>);

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Session")
            .field(&self.0.dependency)
            .finish()
    }
}

impl Session {
    /// Starts reading and writing. `ending` is awaited when the dependency closes its stdout and tells how it ended.
    pub fn open(
        (dependency, secrets): (DependencyName, Secrets),
        (source, sink): (
            impl AsyncRead + Unpin + Send + 'static,
            impl AsyncWrite + Unpin + Send + 'static,
        ),
        line_limit: usize,
        tasks: &TaskTracker,
        client: Option<Weak<dyn Client>>,
        unasked: impl Fn(Unasked) + Send + Sync + 'static,
        ending: impl Future<Output = Ended> + Send + 'static,
    ) -> Self {
        let session = Self(Arc::new(Shared {
            dependency,
            secrets,
            outbox: Mutex::new(Some(Outbox::open(sink, Patience::UntilItStalls, tasks))),
            callers: Mutex::default(),
            next_id: AtomicU64::new(1),
            ended: OnceLock::new(),
            used_at: Mutex::new(Instant::now()),
            era: OnceLock::new(),
            client,
            inquiries: Mutex::default(),
            unread_answers: AtomicUsize::new(0),
            unclaimed: Mutex::new(Unclaimed::Kept(Vec::new())),
            kept: Notify::new(),
        }));
        let reading = session.clone();
        let mut reader = LineReader::new(source, line_limit);
        tasks.spawn(async move {
            while let Ok(Some(line)) = reader.next_line().await {
                // What was dismissed is read to its end, so that it can go, and not heard.
                if reading.ended().is_some() {
                    continue;
                }
                reading.receive(line, &unasked);
                if let Some(client) = reading.client() {
                    client.outbox().room().await;
                }
                reading.until_answers_are_read().await;
            }
            drop(reader);
            // A dependency that closed its stdout answers nothing any more: it is asked to go.
            reading.close();
            let ended = ending.await;
            reading.end(ended);
        });
        session
    }

    /// Returns the dependency's name.
    #[must_use]
    pub fn dependency(&self) -> &DependencyName {
        &self.0.dependency
    }

    /// Returns which MCP the dependency speaks.
    #[must_use]
    pub fn era(&self) -> Era {
        self.0.era.get().copied().unwrap_or_default()
    }

    /// Takes note of which MCP the dependency speaks.
    pub fn speaks(&self, era: Era) {
        let _ = self.0.era.set(era);
    }

    /// Returns how the dependency ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Arc<Ended>> {
        self.0.ended.get().cloned()
    }

    /// Tells whether requests still reach the dependency.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.ended.get().is_none() && lock(&self.0.outbox).is_some()
    }

    /// Tells whether calls are waiting for an answer.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !lock(&self.0.callers).is_empty()
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

    /// Tells how many bytes wait until the dependency reads them.
    #[must_use]
    pub fn queued(&self) -> usize {
        lock(&self.0.outbox).as_ref().map_or(0, Outbox::queued)
    }

    /// Registers who waits for the reply to a request; returns the request's id, which is also its progress token.
    ///
    /// Where the dependency is gone, the caller is told so before this returns.
    pub fn register(&self, caller: Arc<dyn Caller>) -> u64 {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        match self.ended() {
            Some(ended) => caller.failed(Failure::Ended(ended)),
            None => drop(lock(&self.0.callers).insert(id, caller)),
        }
        id
    }

    /// Sends the request that was registered under `id`.
    pub fn send(&self, id: u64, method: &str, params: impl IntoIterator<Item = Bytes>) {
        let mut digits = [0; 20];
        let id = written(&mut digits, id);
        let method = escaped(method);
        let head = [
            Part::Copy(br#"{"jsonrpc":"2.0","id":"#),
            Part::Copy(id),
            Part::Copy(br#","method":""#),
            Part::Copy(method.as_bytes()),
            Part::Copy(br#"","params":"#),
        ];
        let params = params.into_iter().map(Part::Share);
        // A dependency that is gone is noticed by the reader, which tells every caller how it ended.
        if let Some(outbox) = lock(&self.0.outbox).as_ref() {
            let _ = outbox.push(head.into_iter().chain(params).chain([Part::Copy(b"}")]));
        }
    }

    /// Forgets a request and cancels it at the dependency with these raw parameters, if it is under way.
    pub fn cancel(&self, id: u64, params: &str) {
        self.touch();
        if lock(&self.0.callers).remove(&id).is_some() {
            self.notify("notifications/cancelled", Some(params));
        }
    }

    /// Sends a request whose answer nobody waits for, such as one that stays open as long as the conversation does; it
    /// does not keep the dependency from being idle. Returns its id.
    #[expect(
        clippy::must_use_candidate,
        reason = "who never takes the request back needs no id"
    )]
    pub fn send_and_forget(&self, method: &str, params: &str) -> u64 {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        self.send(id, method, [Bytes::copy_from_slice(params.as_bytes())]);
        id
    }

    /// Sends a request of pml's own and waits for its reply; cancelled when it is dropped before.
    pub async fn request(&self, method: &str, params: &str) -> Reply {
        let (waiting, replied) = Waiting::new();
        let mut own = Own {
            session: self,
            id: self.register(waiting),
            open: true,
        };
        self.send(own.id, method, [Bytes::copy_from_slice(params.as_bytes())]);
        let reply = replied.await;
        own.open = false;
        reply.unwrap_or_else(|_dropped| Reply::Unusable("its answer was lost".to_owned()))
    }

    /// Sends a notification with raw parameters; a dependency that is gone does not hear it.
    pub fn notify(&self, method: &str, params: Option<&str>) {
        let method = quoted(method);
        self.push(match params {
            Some(params) => format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#),
            None => format!(r#"{{"jsonrpc":"2.0","method":{method}}}"#),
        });
    }

    pub(super) fn client(&self) -> Option<Arc<dyn Client>> {
        self.0.client.as_ref()?.upgrade()
    }

    pub(super) fn push(&self, frame: impl Into<Frame>) {
        if let Some(outbox) = lock(&self.0.outbox).as_ref() {
            let _ = outbox.send_now(frame);
        }
    }

    /// Ends the conversation because the dependency may no longer run; its further messages are dropped.
    pub(super) fn dismiss(&self, reason: &str) {
        self.end(Ended {
            reason: format!("was stopped: {reason}"),
            stderr: String::new(),
        });
    }

    fn end(&self, ended: Ended) {
        self.close();
        let ended = self.0.ended.get_or_init(|| Arc::new(ended)).clone();
        let inquiries = std::mem::take(&mut *lock(&self.0.inquiries));
        if let Some(client) = self.client() {
            for id in &inquiries {
                client.withdrawn(self, id);
            }
        }
        let callers: Vec<Arc<dyn Caller>> = lock(&self.0.callers).drain().map(|(_, caller)| caller).collect();
        for caller in callers {
            caller.failed(Failure::Ended(Arc::clone(&ended)));
        }
    }
}

/// Writes a number into room that is enough for any.
fn written(room: &mut [u8; 20], number: u64) -> &[u8] {
    let mut at = room.len();
    let mut rest = number;
    loop {
        at -= 1;
        room[at] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            return &room[at..];
        }
    }
}

/// A request of pml's own under way.
struct Own<'a> {
    session: &'a Session,
    id: u64,
    open: bool,
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        if self.open {
            let params = format!(
                r#"{{"requestId":{},"reason":"pml no longer waits for it"}}"#,
                self.id
            );
            self.session.cancel(self.id, &params);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::{Inquiry, Taken};
    use crate::protocol::{Outcome, Payload};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
    use tokio::sync::mpsc;

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
            ("fake".parse().unwrap(), Secrets::new([("TOKEN", "abcdefgh")])),
            (stdout, stdin),
            1000,
            &TaskTracker::new(),
            None,
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

        fn call(&self) -> (u64, mpsc::UnboundedReceiver<String>) {
            self.caller(Taken::No)
        }

        fn caller(&self, takes: Taken) -> (u64, mpsc::UnboundedReceiver<String>) {
            let (told, heard) = mpsc::unbounded_channel();
            (self.session.register(Arc::new(Recording { told, takes })), heard)
        }
    }

    struct Recording {
        told: mpsc::UnboundedSender<String>,
        takes: Taken,
    }

    impl Recording {
        fn note(&self, text: String) {
            let _ = self.told.send(text);
        }
    }

    impl Caller for Recording {
        fn progressed(&self, _line: &Bytes, params: &Payload<'_>) {
            self.note(format!("progress {}", params.get()));
        }

        fn replied(self: Arc<Self>, _line: &Bytes, outcome: &Outcome<'_>) {
            self.note(match outcome {
                Outcome::Result(payload) => format!("result {}", payload.get()),
                Outcome::Error(raw) => format!("error {raw}"),
            });
        }

        fn failed(&self, failure: Failure) {
            self.note(match failure {
                Failure::Unusable(why) => format!("unusable {why}"),
                Failure::Ended(ended) => format!("ended {} {}", ended.reason, ended.stderr),
            });
        }

        fn asked(self: Arc<Self>, inquiry: &Arc<Inquiry>) -> Taken {
            self.note(format!("asked {}", inquiry.method));
            self.takes
        }
    }

    #[test]
    fn any_number_is_written() {
        for number in [0, 7, 10, 12_345, u64::MAX] {
            assert_eq!(written(&mut [0; 20], number), number.to_string().as_bytes());
        }
    }

    #[tokio::test]
    async fn a_call_gets_its_progress_in_order_and_its_raw_result() {
        let mut peer = peer();
        let (id, mut told) = peer.call();
        peer.session
            .send(id, "tools/call", [Bytes::from_static(br#"{"x": 1.0}"#)]);
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
                told.recv().await.unwrap(),
                format!(r#"progress {{"progressToken":1,"progress":{step}}}"#)
            );
        }
        assert_eq!(told.recv().await.unwrap(), r#"result { "a":1.0 }"#);
        assert!(!peer.session.is_busy());
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_cancelled_downstream_and_a_finished_one_is_not() {
        let mut peer = peer();
        let (done, mut told) = peer.call();
        peer.session.send(done, "a", [Bytes::from_static(b"{}")]);
        peer.hears().await;
        peer.says(r#"{"id":"1","result":1}"#).await;
        assert_eq!(told.recv().await.unwrap(), "result 1");
        peer.session.cancel(done, "{}");
        let mut dropped = Box::pin(peer.session.request("b", "{}"));
        let polled =
            std::future::poll_fn(|waker| std::task::Poll::Ready(dropped.as_mut().poll(waker).is_pending()));
        assert!(polled.await);
        drop(dropped);
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":2,"method":"b","params":{}}"#
        );
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"pml no longer waits for it"}}"#
        );
        assert!(!peer.session.is_busy());
    }

    #[tokio::test]
    async fn an_error_that_repeats_a_secret_is_passed_on_without_it_and_a_result_as_it_is() {
        let mut peer = peer();
        let (_, mut first) = peer.call();
        let (_, mut second) = peer.call();
        let (_, mut third) = peer.call();
        peer.says(r#"{"id":1,"error":{ "code":5,"message":"bad \u0061bcdefgh"}}"#)
            .await;
        peer.says(r#"{"id":2,"error":{ "code":5 }}"#).await;
        peer.says(r#"{"id":3,"result":"abcdefgh"}"#).await;
        assert_eq!(
            first.recv().await.unwrap(),
            r#"error { "code":5,"message":"bad [TOKEN]"}"#
        );
        assert_eq!(second.recv().await.unwrap(), r#"error { "code":5 }"#);
        assert_eq!(third.recv().await.unwrap(), r#"result "abcdefgh""#);
    }

    #[tokio::test]
    async fn a_dying_dependency_tells_every_waiting_call_and_every_later_one() {
        let mut peer = peer();
        let (id, mut told) = peer.call();
        peer.session.send(id, "a", [Bytes::from_static(b"{}")]);
        peer.hears().await;
        let Peer { session, speak, .. } = peer;
        drop(speak);
        assert_eq!(told.recv().await.unwrap(), "ended exited with code 3 boom");
        let (told, mut later) = mpsc::unbounded_channel();
        session.register(Arc::new(Recording {
            told,
            takes: Taken::No,
        }));
        assert_eq!(later.recv().await.unwrap(), "ended exited with code 3 boom");
        assert!(session.ended().is_some());
    }

    #[tokio::test]
    async fn sloppy_lines_cost_only_the_call_they_belong_to() {
        let mut peer = peer();
        let (_, mut first) = peer.call();
        let (_, mut second) = peer.call();
        let (_, mut third) = peer.call();
        let (_, mut fourth) = peer.call();
        peer.says("Welcome to the server!").await;
        peer.says(r#"{"id":99,"result":{}}"#).await;
        peer.says(&format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(2000)))
            .await;
        peer.says(r#"{"id":2,"result":1,"error":{"code":1}}"#).await;
        peer.says(r#"[{"id":3.0,"error":{"code":5},"jsonrpc":"2.0"},{"id":4,"error":null,"result":{}}]"#)
            .await;
        assert_eq!(
            first.recv().await.unwrap(),
            "unusable its answer is longer than the line limit"
        );
        assert_eq!(
            second.recv().await.unwrap(),
            "unusable its answer is not a JSON-RPC message: it has both `result` and `error`"
        );
        assert_eq!(third.recv().await.unwrap(), r#"error {"code":5}"#);
        assert_eq!(fourth.recv().await.unwrap(), "result {}");
    }

    #[tokio::test]
    async fn what_nobody_can_answer_is_declined_and_what_it_tells_is_passed_on() {
        let mut peer = peer();
        peer.says(r#"{"id":"p","method":"ping"}"#).await;
        assert_eq!(peer.hears().await, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
        peer.says(r#"{"id":7,"method":"roots/list"}"#).await;
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"the client does not take `roots/list`"}}"#
        );
        peer.says(r#"{"method":"notifications/tools/list_changed"}"#)
            .await;
        assert_eq!(peer.unasked.recv().await, Some(Unasked::Changed(Kind::Tools)));
    }

    /// Lets everything that can go on do so.
    async fn rest(session: &Session) {
        loop {
            let before = session.queued();
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            if session.queued() == before {
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_dependency_that_asks_and_does_not_read_is_not_read_from() {
        const COUNT: usize = 40_000;
        let Peer {
            session,
            mut heard,
            mut speak,
            ..
        } = peer();
        let id = "x".repeat(900);
        let asking = tokio::spawn(async move {
            for _ in 0..COUNT {
                let ping = format!("{{\"id\":\"{id}\",\"method\":\"ping\"}}\n");
                speak.write_all(ping.as_bytes()).await.unwrap();
            }
            speak
        });
        rest(&session).await;
        assert!(!asking.is_finished());
        // The budget of the queue, what may stand in it beyond that, and the last line.
        let queued = session.queued();
        assert!(queued < 10 * 1024 * 1024, "{queued} bytes wait");
        // Once it reads, it gets everything.
        for _ in 0..COUNT {
            heard.next_line().await.unwrap().unwrap();
        }
        drop(asking.await.unwrap());
    }

    #[tokio::test]
    async fn a_dependency_that_does_not_read_can_be_closed() {
        let Peer {
            session, mut speak, ..
        } = peer();
        let (id, mut told) = {
            let (told, heard) = mpsc::unbounded_channel();
            let takes = Taken::No;
            (session.register(Arc::new(Recording { told, takes })), heard)
        };
        session.send(id, "a", [Bytes::from_static(b"{}")]);
        let asking = tokio::spawn(async move {
            let ping = format!("{{\"id\":\"{}\",\"method\":\"ping\"}}\n", "x".repeat(900));
            while speak.write_all(ping.as_bytes()).await.is_ok() {
                tokio::task::yield_now().await;
            }
        });
        rest(&session).await;
        session.close();
        // It is read from again, so that its end is seen.
        asking.abort();
        assert_eq!(told.recv().await.unwrap(), "ended exited with code 3 boom");
    }

    #[tokio::test]
    async fn what_a_dependency_asks_while_it_is_opened_is_not_kept_for_ever() {
        let mut peer = peer();
        let session = peer.session.clone();
        let patience = tokio::spawn(async move { session.lose_patience(Duration::from_millis(1)).await });
        for id in ["1", "2"] {
            peer.session.offer(inquiry(&peer.session, id));
            assert_eq!(
                peer.hears().await,
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"the client does not take `roots/list`"}}}}"#
                )
            );
        }
        patience.abort();
    }

    fn inquiry(session: &Session, id: &str) -> Arc<Inquiry> {
        lock(&session.0.inquiries).push(id.to_owned());
        Arc::new(Inquiry {
            id: id.to_owned(),
            method: "roots/list".to_owned(),
            params: None,
        })
    }

    #[tokio::test]
    async fn a_request_is_offered_to_the_newest_call_first_and_kept_for_the_first_one() {
        let mut peer = peer();
        peer.session.offer(inquiry(&peer.session, "1"));
        let (_, mut taking) = peer.caller(Taken::Yes);
        let (_, mut refusing) = peer.caller(Taken::No);
        peer.session.settle();
        assert_eq!(refusing.recv().await.unwrap(), "asked roots/list");
        assert_eq!(taking.recv().await.unwrap(), "asked roots/list");
        peer.session.answer("1", Bytes::from_static(br#"{"roots":[]}"#));
        // Answered once only.
        peer.session.answer("1", Bytes::from_static(b"{}"));
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#
        );
        peer.session.cancel(1, "{}");
        peer.session.cancel(2, "{}");
        peer.hears().await;
        peer.hears().await;
        peer.session.offer(inquiry(&peer.session, "2"));
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"the client does not take `roots/list`"}}"#
        );
    }
}
