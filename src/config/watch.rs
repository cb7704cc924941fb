//! The current configuration: both files are compared by `stat` on each call and read again only after a change.
//!
//! File times tick in milliseconds, so a second write right after a read can leave the same stamp. A stamp is
//! therefore believed only once the file has been read a while after the stamp was first seen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::loaded::{self, Loaded};
use super::{Config, ConfigError, FileChoice, Files, repository};
use crate::disk::Stamp;

/// Several ticks of the coarsest clock that file systems stamp with (10 ms on a 100 Hz kernel).
const SETTLING: Duration = Duration::from_millis(50);

/// What the configuration says, or why it says nothing.
pub type ConfigResult = Result<Arc<Config>, Arc<ConfigError>>;

/// The configuration of two files, kept current.
#[derive(Debug)]
pub struct WatchedConfig {
    files: Files,
    /// The index of the repository around the project's file: it tells what came with the repository.
    index: Option<PathBuf>,
    stamps: [Stamp; 4],
    first_seen: Instant,
    settled: bool,
    /// What was read; `None` where a file could not be.
    loaded: Option<Arc<Loaded>>,
    current: ConfigResult,
    generation: u64,
    /// How many readings were taken over.
    readings: u64,
}

/// What a reading of the files needs, so that it can be done without holding what is watched.
#[derive(Debug)]
pub struct PendingReading {
    files: Files,
    index: Option<PathBuf>,
    before: Option<Arc<Loaded>>,
    /// The reading that this one follows.
    after: u64,
}

/// What the files said.
#[derive(Debug)]
pub struct Reading {
    after: u64,
    stamps: [Stamp; 4],
    at: Instant,
    text: ReadText,
}

#[derive(Debug)]
enum ReadText {
    /// It is what was read before.
    Same,
    /// It is another one, which means this.
    Other(Arc<Loaded>, ConfigResult),
    /// It could not be read.
    Unreadable(Arc<ConfigError>),
}

impl PendingReading {
    /// Reads the files, and what they mean if they say something new; blocks.
    #[must_use]
    pub fn read(self) -> Reading {
        let Self {
            files,
            index,
            before,
            after,
        } = self;
        // Before the files themselves: what changes meanwhile is seen by the next look.
        let (stamps, at) = (stamps(&files, index.as_deref()), Instant::now());
        let text = match loaded::load(&files) {
            Ok(loaded) if before.as_deref() == Some(&loaded) => ReadText::Same,
            Ok(loaded) => {
                let meaning = understood(&files, &loaded);
                ReadText::Other(Arc::new(loaded), meaning)
            }
            Err(error) => ReadText::Unreadable(Arc::new(error)),
        };
        Reading {
            after,
            stamps,
            at,
            text,
        }
    }
}

impl WatchedConfig {
    /// Reads `files` for the first time.
    #[must_use]
    pub fn new(files: Files) -> Self {
        // A file that was named counts whatever stands around it.
        let index = match files.chosen {
            FileChoice::Found => repository::index_of(&files.project),
            FileChoice::Named => None,
        };
        let stamps = stamps(&files, index.as_deref());
        let (loaded, current) = match loaded::load(&files) {
            Ok(loaded) => {
                let current = understood(&files, &loaded);
                (Some(Arc::new(loaded)), current)
            }
            Err(error) => (None, Err(Arc::new(error))),
        };
        Self {
            files,
            index,
            stamps,
            first_seen: Instant::now(),
            settled: false,
            loaded,
            current,
            generation: 0,
            readings: 0,
        }
    }

    /// Returns what the files say now; a file that does not parse is an error until it is fixed. Reads them where they may
    /// have changed, which blocks.
    pub fn current(&mut self) -> ConfigResult {
        if let Some(known) = self.known() {
            return known;
        }
        let reading = self.pending_reading().read();
        self.take(reading);
        self.current.clone()
    }

    /// Returns what the files say if they are as they were read; `None` where they have to be read again.
    #[must_use]
    pub fn known(&self) -> Option<ConfigResult> {
        let stamps = stamps(&self.files, self.index.as_deref());
        let unchanged = stamps == self.stamps && !stamps.contains(&Stamp::Unknown);
        (unchanged && self.settled).then(|| self.current.clone())
    }

    /// Returns what has to be read to know what the files say now.
    #[must_use]
    pub fn pending_reading(&self) -> PendingReading {
        PendingReading {
            files: self.files.clone(),
            index: self.index.clone(),
            before: self.loaded.clone(),
            after: self.readings,
        }
    }

    /// Takes a reading over and returns what it says; `None` where another one was taken since this one was begun, so that
    /// the files have to be looked at again.
    ///
    /// A text that is still the same is not parsed again: during the first moments of every start it is read often.
    pub fn take(&mut self, reading: Reading) -> Option<ConfigResult> {
        if reading.after != self.readings {
            return None;
        }
        self.readings += 1;
        if reading.stamps != self.stamps || reading.stamps.contains(&Stamp::Unknown) {
            self.first_seen = reading.at;
        }
        self.settled = reading.at.saturating_duration_since(self.first_seen) >= SETTLING;
        self.stamps = reading.stamps;
        match reading.text {
            ReadText::Same => return Some(self.current.clone()),
            ReadText::Other(loaded, current) => {
                self.current = current;
                self.loaded = Some(loaded);
            }
            ReadText::Unreadable(error) => {
                self.current = Err(error);
                self.loaded = None;
            }
        }
        self.generation += 1;
        Some(self.current.clone())
    }

    /// Returns a number that changes whenever [`WatchedConfig::current`] returns something new.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the files that are watched.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }
}

fn stamps(files: &Files, index: Option<&Path>) -> [Stamp; 4] {
    let (accepted, index) = match files.chosen {
        FileChoice::Found => (
            Stamp::of(files.accepted.directory()),
            index.map_or(Stamp::Missing, Stamp::of),
        ),
        FileChoice::Named => (Stamp::Missing, Stamp::Missing),
    };
    [Stamp::of(&files.user), Stamp::of(&files.project), accepted, index]
}

fn understood(files: &Files, loaded: &Loaded) -> ConfigResult {
    loaded::assemble(files, loaded).map(Arc::new).map_err(Arc::new)
}
