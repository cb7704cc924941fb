//! When each server was called last: an empty file for each launch, whose time of modification tells it.
//!
//! A call only rings a bell; who hears it writes in a task of its own, at most once a minute for each server. So what is
//! told is right to the minute, and no call waits for a disk.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::running_server::Started;
use crate::config::Locations;
use crate::disk;
use crate::loader::plan::Plan;
use crate::protocol::Digest;

/// People ask for the day; a minute is far below that and costs no disk anything.
const PAUSE: Duration = Duration::from_mins(1);

/// More launches than anyone declares; the one that was called least recently makes room for a new one.
const LIMIT: usize = 1000;

/// The directory of the files.
#[derive(Debug)]
pub(super) struct LastUses(PathBuf);

impl LastUses {
    pub(super) fn new(locations: &Locations) -> Self {
        Self(locations.uses())
    }

    /// Returns when exactly what is planned was called last, in milliseconds since 1970.
    pub(super) fn read(&self, plan: &Plan) -> Option<i64> {
        let used = modified(&self.0.join(file_name(plan.digest())))?;
        let since = used.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    }

    /// Writes down when a server is called, until it is gone.
    pub(super) async fn keep(&self, plan: &Plan, started: &Started) {
        loop {
            tokio::select! {
                // First: a call that was made right before the end is written down as well.
                biased;
                () = started.session.called() => {}
                _gone = started.gone() => return,
            }
            let (directory, name) = (self.0.clone(), file_name(plan.digest()));
            let written = tokio::task::spawn_blocking(move || write(&directory, &name)).await;
            if let Ok(Err(error)) = written {
                tracing::warn!(%error, "when a server was called could not be kept");
            }
            tokio::select! {
                _gone = started.gone() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }
}

/// A digest names its algorithm before a colon, which not every file system takes.
fn file_name(launch: &Digest) -> String {
    launch.as_str().replace(':', "-")
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}

/// Marks `name` as used now.
fn write(directory: &Path, name: &str) -> std::io::Result<()> {
    disk::create_private_directory(directory)?;
    let path = directory.join(name);
    if !path.try_exists()? {
        make_room(directory)?;
    }
    disk::replace(&path, b"")
}

/// Removes what was used least recently until one more has room.
fn make_room(directory: &Path) -> std::io::Result<()> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        kept.extend(modified(&path).map(|used| (used, path)));
    }
    kept.sort();
    let excess = (kept.len() + 1).saturating_sub(LIMIT);
    for (_, path) in kept.into_iter().take(excess) {
        disk::remove_file(&path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::{LIMIT, modified, write};
    use crate::disk;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn only_the_stalest_makes_room_and_what_is_known_takes_none() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..LIMIT {
            let path = directory.path().join(number.to_string());
            disk::replace(&path, b"").unwrap();
            // The seventh is the oldest.
            let seconds = if number == 7 { 1 } else { 1_000_000 };
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::open(&path).unwrap().set_modified(used).unwrap();
        }
        let stalest = directory.path().join("7");
        write(directory.path(), "7").unwrap();
        assert_eq!(names(directory.path()).len(), LIMIT);
        let used = modified(&stalest).unwrap();
        assert!(
            used > SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365),
            "it is marked as used now"
        );

        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(2);
        File::open(&stalest).unwrap().set_modified(long_ago).unwrap();
        write(directory.path(), "new").unwrap();
        let names = names(directory.path());
        assert_eq!(names.len(), LIMIT);
        assert!(names.contains(&"new".to_owned()) && !names.contains(&"7".to_owned()));
    }
}
