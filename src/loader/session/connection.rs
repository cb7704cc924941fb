//! The session with one running server: the ids of pml's requests, and the callers that wait for their replies.
//!
//! Each request is registered with its [`Caller`], who gets progress and exactly one end. What belongs to no request
//! goes to the [`Client`]. When the server dies every waiting caller gets the reason. A request that is cancelled is
//! forgotten here and cancelled there; an answer that still comes for it is thrown away.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

use super::caller::{Caller, Callers, Failure, Inquiry};
use super::end_reason::EndReason;
use super::ending::Ended;
use super::repeated_reply::RepeatedReply;
use super::reply::{OwnReply, Reply, ReplyWaiter};
use super::request_failures::RequestFailures;
use crate::protocol::{DependencyName, Era, ListKind, Payload, Secrets, escaped, quoted};
use crate::wire::{Frame, FramePart, Outbox};

/// What a dependency says unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// One of its lists has changed.
    Changed(ListKind),
}

/// The client, as the running dependencies see it.
pub trait Client: Send + Sync {
    /// Returns the way to the client: the reader of a server waits for room there.
    fn outbox(&self) -> &Outbox;

    /// Takes note of a dependency that has just been opened.
    fn opened(&self, session: &Session);

    /// Takes a request of a dependency; it must be answered, if only with an error.
    fn asked(&self, session: &Session, inquiry: Arc<Inquiry>);

    /// Takes note that a dependency no longer wants an answer to its request with this raw id.
    fn withdrawn(&self, session: &Session, id: &str);

    /// Tells whether the client waits for changes of what a dependency has.
    fn watches(&self, session: &Session) -> bool;

    /// Takes a notification of a dependency.
    fn notified(&self, session: &Session, method: &str, line: &Bytes, params: Option<&Payload<'_>>);
}

/// Where a request of a dependency stands that no call has taken up.
pub(in crate::loader) enum UnclaimedRequests {
    /// The dependency is being opened: the call it is opened for may take them.
    Kept(Vec<Arc<Inquiry>>),
    /// A request that no call takes is declined.
    Declined,
}

/// What the clones of a session share.
pub(in crate::loader) struct SessionState {
    pub(in crate::loader) dependency: DependencyName,
    /// What its errors and unreadable lines must not show.
    pub(in crate::loader) secrets: Secrets,
    /// Why the transport answered requests in place of the server.
    pub(in crate::loader) failures: RequestFailures,
    /// Gone once the session is closed: the writer ends, and with it the dependency's stdin.
    pub(in crate::loader) outbox: Mutex<Option<Outbox>>,
    pub(in crate::loader) callers: Mutex<Callers>,
    pub(in crate::loader) next_id: AtomicU64,
    pub(in crate::loader) ended: OnceLock<Arc<Ended>>,
    pub(in crate::loader) used_at: Mutex<Instant>,
    /// Rings when a client's call is sent.
    pub(in crate::loader) called: Notify,
    /// How often one of its lists was learned anew and was another.
    pub(in crate::loader) list_changes: AtomicU64,
    pub(in crate::loader) era: OnceLock<Era>,
    pub(in crate::loader) client: Option<Weak<dyn Client>>,
    /// The raw ids of the dependency's requests that were not answered yet.
    pub(in crate::loader) inquiries: Mutex<Vec<String>>,
    /// The reply that the server gives again and again.
    pub(in crate::loader) repeated: Mutex<RepeatedReply>,
    /// How many bytes of answers were queued since there was last room for them.
    pub(in crate::loader) unread_answers: AtomicUsize,
    pub(in crate::loader) unclaimed: Mutex<UnclaimedRequests>,
    /// Something was kept in `unclaimed`.
    pub(in crate::loader) kept: Notify,
}

pub(in crate::loader) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere cannot leave these maps half-changed: every critical section is a single operation.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running dependency; clones share the conversation.
#[derive(Clone)]
pub struct Session(pub(in crate::loader) Arc<SessionState>);

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Session")
            .field(&self.0.dependency)
            .finish()
    }
}

impl Session {
    /// Builds a session that writes to `outbox`; nothing is read yet.
    pub(super) fn new(
        dependency: DependencyName,
        secrets: Secrets,
        failures: RequestFailures,
        outbox: Outbox,
        client: Option<Weak<dyn Client>>,
    ) -> Self {
        Self(Arc::new(SessionState {
            dependency,
            secrets,
            failures,
            outbox: Mutex::new(Some(outbox)),
            callers: Mutex::default(),
            next_id: AtomicU64::new(1),
            ended: OnceLock::new(),
            used_at: Mutex::new(Instant::now()),
            called: Notify::new(),
            list_changes: AtomicU64::new(0),
            era: OnceLock::new(),
            client,
            inquiries: Mutex::default(),
            repeated: Mutex::default(),
            unread_answers: AtomicUsize::new(0),
            unclaimed: Mutex::new(UnclaimedRequests::Kept(Vec::new())),
            kept: Notify::new(),
        }))
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

    /// Notes which MCP the server speaks.
    pub(in crate::loader) fn set_era(&self, era: Era) {
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

    /// Returns how often one of its lists was learned anew and was another.
    #[must_use]
    pub fn list_changes(&self) -> u64 {
        self.0.list_changes.load(Ordering::Acquire)
    }

    /// Says that one of its lists is another: what was decided by the old one is decided anew.
    pub(in crate::loader) fn lists_changed(&self) {
        self.0.list_changes.fetch_add(1, Ordering::Release);
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

    /// Notes that a call is about to use it.
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

    /// Waits for a client's call; one that was made before counts once.
    pub(in crate::loader) async fn called(&self) {
        self.0.called.notified().await;
    }

    /// Sends a client's call that was registered under `id`.
    pub fn send_call(&self, id: u64, method: &str, params: impl IntoIterator<Item = Bytes>) {
        self.0.called.notify_one();
        self.send(id, method, params);
    }

    /// Sends the request that was registered under `id`.
    pub(in crate::loader) fn send(&self, id: u64, method: &str, params: impl IntoIterator<Item = Bytes>) {
        let mut digits = itoa::Buffer::new();
        let id = digits.format(id);
        let method = escaped(method);
        let head = [
            FramePart::Copy(br#"{"jsonrpc":"2.0","id":"#),
            FramePart::Copy(id.as_bytes()),
            FramePart::Copy(br#","method":""#),
            FramePart::Copy(method.as_bytes()),
            FramePart::Copy(br#"","params":"#),
        ];
        let params = params.into_iter().map(FramePart::Share);
        // A dependency that is gone is noticed by the reader, which tells every caller how it ended.
        if let Some(outbox) = lock(&self.0.outbox).as_ref() {
            let _ = outbox.push(head.into_iter().chain(params).chain([FramePart::Copy(b"}")]));
        }
    }

    /// Forgets a request and cancels it at the dependency with these raw parameters, if it is under way.
    pub fn cancel(&self, id: u64, params: &str) {
        self.touch();
        if lock(&self.0.callers).remove(&id).is_some() {
            self.notify("notifications/cancelled", Some(params));
        }
    }

    /// Sends a request whose answer no caller waits for, such as one that stays open as long as the conversation does; it
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
        self.ask(method, params).await.reply
    }

    /// Likewise; returns also why the transport replied in place of the server, if it did.
    pub(super) async fn ask(&self, method: &str, params: &str) -> OwnReply {
        self.ask_and_note(method, params, |_id| {}).await
    }

    /// Asks something that is asked again and again, and is mostly answered by the same bytes.
    pub(super) async fn ask_again(&self, method: &str, params: &str) -> OwnReply {
        let note = |id| lock(&self.0.repeated).await_reply(id);
        self.ask_and_note(method, params, note).await
    }

    /// Takes note that what is asked again and again is answered by other bytes now.
    pub(super) fn forget_repeated(&self) {
        lock(&self.0.repeated).forget();
    }

    async fn ask_and_note(&self, method: &str, params: &str, note: impl FnOnce(u64)) -> OwnReply {
        let (waiting, replied) = ReplyWaiter::new();
        let mut own = OwnRequest {
            session: self,
            id: self.register(waiting),
            open: true,
        };
        note(own.id);
        self.send(own.id, method, [Bytes::copy_from_slice(params.as_bytes())]);
        let reply = replied.await;
        own.open = false;
        reply.unwrap_or_else(|_dropped| OwnReply {
            reply: Reply::Unusable("its answer was lost".to_owned()),
            reason: None,
        })
    }

    /// Sends a notification with raw parameters; a dependency that is gone does not hear it.
    pub fn notify(&self, method: &str, params: Option<&str>) {
        let method = quoted(method);
        self.push(match params {
            Some(params) => format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#),
            None => format!(r#"{{"jsonrpc":"2.0","method":{method}}}"#),
        });
    }

    pub(in crate::loader) fn client(&self) -> Option<Arc<dyn Client>> {
        self.0.client.as_ref()?.upgrade()
    }

    pub(in crate::loader) fn push(&self, frame: impl Into<Frame>) {
        if let Some(outbox) = lock(&self.0.outbox).as_ref() {
            let _ = outbox.send_now(frame);
        }
    }

    /// Ends the conversation because the dependency may no longer run; its further messages are dropped.
    pub(in crate::loader) fn dismiss(&self, reason: &'static str) {
        self.end(Ended {
            reason: EndReason::Stopped(reason),
            stderr: String::new(),
        });
    }

    pub(super) fn end(&self, ended: Ended) {
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

/// A request of pml's own under way.
struct OwnRequest<'a> {
    session: &'a Session,
    id: u64,
    open: bool,
}

impl Drop for OwnRequest<'_> {
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
