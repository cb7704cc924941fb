//! Pairing codes: a sender whom pml does not know gets one, and a person at a terminal lets them in by it.
//!
//! The codes that wait are a small file of the state directory: `pml serve` adds to it, `pml channels pair` takes from it.
//! A code alone lets no person in; it only names who would be. All of it blocks.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{ChannelName, is_person_id};
use crate::disk::{Audience, DiskError, LockedDirectory};
use crate::workflow::{Code, Timestamp};

/// How long a code waits.
pub const WAITS: Duration = Duration::from_hours(1);

/// How many codes wait at once: a flood of strangers neither fills the disk nor pushes out who came first.
const MOST: usize = 20;

/// The file of the codes that wait, in a directory of its own, which is its lock.
const FILE: &str = "waiting.json";

/// The most of that file that is read.
const SIZE: u64 = 64 * 1024;

/// A sender who wrote to a channel and is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stranger {
    /// What they were told.
    pub code: String,
    /// Where they wrote.
    pub channel: ChannelName,
    /// The opaque id by which the service names them.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// Gives a stranger a code, the same one for an hour; `None` where no more may wait.
pub fn offer(
    state: &Path,
    channel: ChannelName,
    id: &str,
    now: Timestamp,
) -> Result<Option<String>, DiskError> {
    if !is_person_id(id) {
        return Ok(None);
    }
    let directory = state.join("pairing");
    let locked = LockedDirectory::lock(&directory, Audience::Owner)?;
    let mut waiting = read(&directory, now);
    if let Some(known) = waiting
        .iter()
        .find(|known| known.channel == channel && known.id == id)
    {
        return Ok(Some(known.code.clone()));
    }
    if waiting.len() >= MOST {
        return Ok(None);
    }
    let code = loop {
        let code = Code::of_bits(uuid::Uuid::new_v4().as_u64_pair().1 & (u64::MAX >> 2));
        if waiting.iter().all(|known| known.code != code.as_str()) {
            break code.as_str().to_owned();
        }
    };
    waiting.push(Stranger {
        code: code.clone(),
        channel,
        id: id.to_owned(),
        at: now.millis(),
    });
    write(&locked, &waiting)?;
    Ok(Some(code))
}

/// Returns who waits under a code.
#[must_use]
pub fn find(state: &Path, code: &str, now: Timestamp) -> Option<Stranger> {
    let code = code.trim().to_ascii_lowercase();
    let waiting = read(&state.join("pairing"), now);
    waiting.into_iter().find(|stranger| stranger.code == code)
}

/// Forgets who waits under a code, once they are let in.
pub fn forget(state: &Path, code: &str, now: Timestamp) -> Result<(), DiskError> {
    let directory = state.join("pairing");
    let locked = LockedDirectory::lock(&directory, Audience::Owner)?;
    let mut waiting = read(&directory, now);
    waiting.retain(|stranger| stranger.code != code);
    write(&locked, &waiting)
}

/// Reads who still waits; a file that cannot be read holds none.
fn read(directory: &Path, now: Timestamp) -> Vec<Stranger> {
    let path = directory.join(FILE);
    if path.metadata().map_or(true, |found| found.len() > SIZE) {
        return Vec::new();
    }
    let text = std::fs::read(&path).unwrap_or_default();
    let mut waiting: Vec<Stranger> = serde_json::from_slice(&text).unwrap_or_default();
    waiting.retain(|stranger| {
        let at = Timestamp::from_millis(stranger.at);
        // One from the future was written before the clock was set back.
        at.plus(WAITS) > now && at <= now.plus(WAITS)
    });
    waiting.truncate(MOST);
    waiting
}

fn write(locked: &LockedDirectory, waiting: &[Stranger]) -> Result<(), DiskError> {
    let text = serde_json::to_vec_pretty(waiting).unwrap_or_default();
    locked.replace(Path::new(FILE), &text, Audience::Owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::samples::NOON;

    #[test]
    fn a_stranger_has_one_code_for_an_hour() {
        let state = tempfile::tempdir().unwrap();
        let offered = |id: &str, now| offer(state.path(), ChannelName::Telegram, id, now).unwrap();
        let code = offered("7", NOON).unwrap();
        assert_eq!(
            offered("7", NOON.plus(Duration::from_mins(59))),
            Some(code.clone())
        );
        assert_ne!(offered("8", NOON), Some(code.clone()));
        let found = find(state.path(), &format!(" {} ", code.to_uppercase()), NOON).unwrap();
        assert_eq!((found.channel, found.id.as_str()), (ChannelName::Telegram, "7"));
        assert_eq!(find(state.path(), &code, NOON.plus(WAITS)), None);
        forget(state.path(), &code, NOON).unwrap();
        assert_eq!(find(state.path(), &code, NOON), None);
    }

    #[test]
    fn no_more_than_twenty_wait_and_what_is_no_id_never_does() {
        let state = tempfile::tempdir().unwrap();
        let offered = |id: &str, now| offer(state.path(), ChannelName::Slack, id, now).unwrap();
        for number in 0..MOST {
            assert!(offered(&format!("U{number}"), NOON).is_some());
        }
        assert_eq!(offered("U99", NOON), None);
        assert!(offered("U99", NOON.plus(WAITS)).is_some());
        assert_eq!(offered("Ada \u{1b}[31m", NOON), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_lets_nobody_in() {
        let state = tempfile::tempdir().unwrap();
        offer(state.path(), ChannelName::Slack, "U1", NOON).unwrap();
        for broken in ["", "{", "[{\"code\": 1}]"] {
            crate::disk::replace(&state.path().join("pairing").join(FILE), broken.as_bytes()).unwrap();
            assert_eq!(read(&state.path().join("pairing"), NOON), []);
        }
    }
}
