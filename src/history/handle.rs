//! The handle on the history: writes records off the thread of the runtime, those of one moment together.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::error::HistoryError;
use super::record::{MaliciousOutcome, Record, Text};
use super::refusals::Refusals;
use super::writer;
use crate::config::{self, Audit, Files, Locations};
use crate::disk::DiskError;
use crate::protocol::ToolName;

/// Tells the moment it is now, in milliseconds since 1970.
pub type Clock = fn() -> i64;

/// What came of writing a record.
type Outcome = Result<(), HistoryError>;

/// How many records may wait to be written: more than asks may wait. What comes beyond is not recorded, and whoever
/// needs its record does not get it.
const WAITING: usize = 4096;

/// The history of the user; clones write to the same.
#[derive(Clone)]
pub struct History(Arc<Shared>);

struct Shared {
    directory: PathBuf,
    /// The configuration, of which the user's file may say that the history is not required.
    files: Files,
    clock: Clock,
    queue: Mutex<Queue>,
    refusals: Mutex<Refusals>,
    /// Whether it was said in this process that the history cannot be written.
    warned: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(Record, oneshot::Sender<Outcome>)>,
    /// Whether a thread writes what waits.
    is_written: bool,
}

impl std::fmt::Debug for History {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("History").field(&self.0.directory).finish()
    }
}

impl History {
    /// Names the place; touches nothing yet.
    #[must_use]
    pub fn new(locations: &Locations, files: Files, clock: Clock) -> Self {
        Self(Arc::new(Shared {
            directory: locations.history(),
            files,
            clock,
            queue: Mutex::default(),
            refusals: Mutex::default(),
            warned: AtomicBool::new(false),
        }))
    }

    /// Returns the directory of its parts.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Records what is about to happen. After an error it must not, unless the user's file says `"audit": "best-effort"`:
    /// then a warning is all.
    pub fn require(&self, record: Record) -> impl Future<Output = Result<(), HistoryError>> + Send + use<'_> {
        let appended = self.append(record);
        async move {
            let Err(error) = appended.await else {
                return Ok(());
            };
            let shared = Arc::clone(&self.0);
            // The word of now counts, and reading it waits for the disk.
            let audit = tokio::task::spawn_blocking(move || shared.audit()).await;
            match audit.unwrap_or(Audit::Required) {
                Audit::Required => Err(error),
                Audit::BestEffort => {
                    self.0.warn(&error);
                    Ok(())
                }
            }
        }
    }

    /// Records what has happened; a failure is logged.
    pub fn note(&self, record: Record) -> impl Future<Output = ()> + Send + use<'_> {
        let appended = self.append(record);
        async move {
            if let Err(error) = appended.await {
                self.0.warn(&error);
            }
        }
    }

    /// Records what has happened, from a thread that may wait; a failure is logged.
    pub fn note_now(&self, records: &[Record]) {
        if records.is_empty() {
            return;
        }
        if let Err(error) = self.0.write(records) {
            self.0.warn(&error);
        }
    }

    /// Records that a rule refused a call, without waiting for it; too many at a time are only counted.
    pub fn note_refusal(&self, tool: &ToolName, rule: &str) {
        let refused = {
            let mut refusals = self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            refusals.record(&tool.to_string(), rule, (self.0.clock)())
        };
        if let Some(record) = refused {
            // A failure is logged by the next record that is waited for.
            drop(self.enqueue(record));
        }
    }

    /// Records that a server was refused or stopped because a package of it is malicious; too many at a time are only
    /// counted, and a failure is logged.
    pub async fn note_malicious(
        &self,
        server: &str,
        package: &str,
        advisory: &str,
        outcome: MaliciousOutcome,
    ) {
        let admitted = {
            let mut refusals = self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            // A name of a server has no blank: it is none of a tool.
            refusals.admit(&format!("{outcome:?} {server}"), (self.0.clock)())
        };
        if let Some(unrecorded) = admitted {
            let record = Record::Malicious {
                server: Text::of(server),
                package: Text::of(package),
                advisory: Text::of(advisory),
                outcome,
                unrecorded,
            };
            self.note(record).await;
        }
    }

    /// Queues a record at once, so that what waits for it does not hold it.
    fn append(&self, record: Record) -> impl Future<Output = Outcome> + Send + use<'_> {
        let written = self.enqueue(record);
        async move {
            // Dropped without an outcome: the queue was full, or the runtime is going away.
            let busy = || DiskError::Busy {
                path: self.0.directory.clone(),
            };
            written.await.unwrap_or_else(|_| Err(self.0.failed(busy())))
        }
    }

    /// Puts a record into the queue, and has the queue written where nothing does that yet.
    fn enqueue(&self, record: Record) -> oneshot::Receiver<Outcome> {
        let (tell, outcome) = oneshot::channel();
        let begins = {
            let mut queue = self.0.queue();
            if queue.waiting.len() >= WAITING {
                return outcome;
            }
            queue.waiting.push((record, tell));
            !std::mem::replace(&mut queue.is_written, true)
        };
        if begins {
            let shared = Arc::clone(&self.0);
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || shared.write_queue())),
                // No thread of a runtime waits.
                Err(_) => shared.write_queue(),
            }
        }
        outcome
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits until nothing does; what came together is confirmed by the disk at once.
    fn write_queue(&self) {
        loop {
            let taken = {
                let mut queue = self.queue();
                let taken = std::mem::take(&mut queue.waiting);
                queue.is_written = !taken.is_empty();
                taken
            };
            if taken.is_empty() {
                return;
            }
            let (records, waiting): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
            let outcome = self.write(&records);
            for tell in waiting {
                // A refusal is not waited for.
                let _ = tell.send(outcome.clone());
            }
        }
    }

    fn write(&self, records: &[Record]) -> Outcome {
        writer::append(&self.directory, (self.clock)(), records).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: DiskError) -> HistoryError {
        HistoryError {
            directory: self.directory.clone(),
            user_config: self.files.user.clone(),
            source: Arc::new(source),
        }
    }

    /// Reads whether the history is required; a configuration that cannot be read requires it.
    fn audit(&self) -> Audit {
        config::read(&self.files).map_or(Audit::Required, |config| config.audit)
    }

    /// Says once that the history cannot be written.
    fn warn(&self, error: &HistoryError) {
        let text = crate::report::render(error, None);
        if self.warned.swap(true, Ordering::Relaxed) {
            tracing::debug!("not recorded: {text}");
        } else {
            tracing::warn!("what happens is not recorded: {text}");
        }
    }
}
