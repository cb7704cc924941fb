//! The view of the configuration as it is now: the one that was made before while no file changed, else one that is read
//! and made beside the runtime's thread.
//!
//! A configuration of the largest size takes tens of milliseconds to read, to parse and to compare with the lists of
//! before. A step that can wait asks [`Proxy::current_view`]; one that cannot finds there what was read a moment ago.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::{Proxy, View, read_only};
use crate::config::{Config, ConfigError, WatchedConfig};
use crate::protocol::ListKind;

/// A view, or why nothing may run.
type ViewResult = Result<Arc<View>, Arc<ConfigError>>;

/// The files of the configuration, and the view that was made of them last.
pub(super) struct CachedView {
    watched: WatchedConfig,
    /// With the generation of the configuration that it was made of.
    latest: Option<(u64, Arc<View>)>,
    /// The batch of the client's lines for which the files were last looked at.
    batch: Option<u64>,
}

impl CachedView {
    pub(super) fn new(watched: WatchedConfig) -> Self {
        Self {
            watched,
            latest: None,
            batch: None,
        }
    }

    /// Returns the view if the files are as they were read and it was made of them.
    fn known(&self) -> Option<ViewResult> {
        match self.watched.known()? {
            Ok(_) => self.made().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns the view of what was read last, if it was made.
    fn made(&self) -> Option<Arc<View>> {
        let (generation, view) = self.latest.as_ref()?;
        (*generation == self.watched.generation()).then(|| Arc::clone(view))
    }
}

impl Proxy {
    fn cached_view(&self) -> MutexGuard<'_, CachedView> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the configuration as it was when these lines of the client were read; `None` if nothing may run, or if it
    /// must be read first.
    pub(super) fn view_for(&self, batch: u64) -> Option<Arc<View>> {
        let mut cached = self.cached_view();
        if cached.batch == Some(batch) {
            return cached.made();
        }
        let view = cached.known()?.ok()?;
        cached.batch = Some(batch);
        Some(view)
    }

    /// Returns the configuration if it is known as it is now; looks at the files and reads none.
    pub(super) fn known_view(&self) -> Option<ViewResult> {
        self.cached_view().known()
    }

    /// Returns the configuration as it is now; what has to be read is read beside the runtime's thread.
    pub(super) async fn current_view(&self) -> ViewResult {
        if let Some(known) = self.known_view() {
            return known;
        }
        // One thread at a time, however many calls came at once.
        let _turn = self.0.reading.lock().await;
        if let Some(known) = self.known_view() {
            return known;
        }
        let proxy = self.clone();
        let reading = tokio::task::spawn_blocking(move || proxy.view());
        // It fails only where pml ends.
        reading.await.unwrap_or_else(|_ends| self.view())
    }

    /// Reads the configuration beside the runtime's thread if a file changed, so that what looks at it next need not.
    pub async fn read_configuration(&self) {
        // What is wrong with it is told by what needs it.
        let _ = self.current_view().await;
    }

    /// Returns the configuration as it is now, or why nothing may run; reads it here where a file changed.
    pub(super) fn view(&self) -> ViewResult {
        loop {
            let pending = {
                let mut cached = self.cached_view();
                cached.batch = None;
                match cached.watched.known() {
                    Some(known) => {
                        let generation = cached.watched.generation();
                        drop(cached);
                        return Ok(self.made_of(known?, generation));
                    }
                    None => cached.watched.pending_reading(),
                }
            };
            // Not under the lock: the runtime's thread looks at what is known meanwhile.
            let reading = pending.read();
            let (taken, generation) = {
                let mut cached = self.cached_view();
                (cached.watched.take(reading), cached.watched.generation())
            };
            if let Some(current) = taken {
                return Ok(self.made_of(current?, generation));
            }
        }
    }

    /// Returns the view of a configuration, and tells what differs from the one before if it is new.
    fn made_of(&self, config: Arc<Config>, generation: u64) -> Arc<View> {
        let known = |cached: &CachedView| {
            let (made, view) = cached.latest.as_ref()?;
            (*made >= generation).then(|| Arc::clone(view))
        };
        if let Some(view) = known(&self.cached_view()) {
            return view;
        }
        let accepted = self.0.pins.accepted_pins();
        let read_only = read_only::tools(&config, accepted, &self.0.environment);
        let view = Arc::new(View::new(config, read_only));
        let before = {
            let mut cached = self.cached_view();
            if let Some(made_meanwhile) = known(&cached) {
                return made_meanwhile;
            }
            cached.latest.replace((generation, Arc::clone(&view)))
        };
        let changed = match &before {
            Some((seen, before)) if seen + 1 == generation => self.changed_lists(before, &view),
            // What came between could not be read, and nothing was listed by it.
            Some(_) => ListKind::ALL.to_vec(),
            None if generation > 0 => ListKind::ALL.to_vec(),
            None => Vec::new(),
        };
        self.0.loader.lists_changed(&changed);
        if before.is_some() {
            let proxy = self.clone();
            self.0.tasks.spawn(async move { proxy.reconcile().await });
        }
        view
    }
}
