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
    loaded: Option<Loaded>,
    current: ConfigResult,
    generation: u64,
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
                (Some(loaded), current)
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
        }
    }

    /// Returns what the files say now; a file that does not parse is an error until it is fixed.
    pub fn current(&mut self) -> ConfigResult {
        let stamps = stamps(&self.files, self.index.as_deref());
        let unchanged = stamps == self.stamps && !stamps.contains(&Stamp::Unknown);
        if !(unchanged && self.settled) {
            if !unchanged {
                self.first_seen = Instant::now();
            }
            self.settled = self.first_seen.elapsed() >= SETTLING;
            self.stamps = stamps;
            self.read_again();
        }
        self.current.clone()
    }

    /// A text that is still the same is not parsed again: during the first moments of every start it is read often.
    fn read_again(&mut self) {
        match loaded::load(&self.files) {
            Ok(loaded) if self.loaded.as_ref() == Some(&loaded) => return,
            Ok(loaded) => {
                self.current = understood(&self.files, &loaded);
                self.loaded = Some(loaded);
            }
            Err(error) => {
                self.current = Err(Arc::new(error));
                self.loaded = None;
            }
        }
        self.generation += 1;
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
