//! The current configuration: both files are compared by `stat` on each call and read again only after a change.
//!
//! File times tick in milliseconds, so a second write right after a read can leave the same stamp. A stamp is
//! therefore believed only once the file has been read a while after the stamp was first seen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Config, ConfigError, Files};
use crate::disk::Stamp;

/// Several ticks of the coarsest clock that file systems stamp with (10 ms on a 100 Hz kernel).
const SETTLING: Duration = Duration::from_millis(50);

/// What the configuration says, or why it says nothing.
pub type ConfigResult = Result<Arc<Config>, Arc<ConfigError>>;

/// The configuration of two files, kept current.
#[derive(Debug)]
pub struct WatchedConfig {
    files: Files,
    stamps: [Stamp; 2],
    first_seen: Instant,
    settled: bool,
    /// What was read; `None` where a file could not be.
    texts: Option<[Option<String>; 2]>,
    current: ConfigResult,
    generation: u64,
}

impl WatchedConfig {
    /// Reads `files` for the first time.
    #[must_use]
    pub fn new(files: Files) -> Self {
        let stamps = [Stamp::of(&files.user), Stamp::of(&files.project)];
        let (texts, current) = match super::load(&files) {
            Ok(texts) => {
                let current = understood(&files, &texts);
                (Some(texts), current)
            }
            Err(error) => (None, Err(Arc::new(error))),
        };
        Self {
            files,
            stamps,
            first_seen: Instant::now(),
            settled: false,
            texts,
            current,
            generation: 0,
        }
    }

    /// Returns what the files say now; a file that does not parse is an error until it is fixed.
    pub fn current(&mut self) -> ConfigResult {
        let stamps = [Stamp::of(&self.files.user), Stamp::of(&self.files.project)];
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
        match super::load(&self.files) {
            Ok(texts) if self.texts.as_ref() == Some(&texts) => return,
            Ok(texts) => {
                self.current = understood(&self.files, &texts);
                self.texts = Some(texts);
            }
            Err(error) => {
                self.current = Err(Arc::new(error));
                self.texts = None;
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

fn understood(files: &Files, texts: &[Option<String>; 2]) -> ConfigResult {
    super::assemble(files, texts).map(Arc::new).map_err(Arc::new)
}
