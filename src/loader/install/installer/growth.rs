//! Bounds what an installer may write: an archive can unpack to a thousand times its size, and a download need not end.
//!
//! What an installer writes lies in two places: its own directory, and the private caches that all installers share. So
//! what another installation fetches at the same time counts as well; the bound is wide enough for that.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::config::Environment;
use crate::disk;
use crate::loader::install::background::off_thread;
use crate::loader::install::size_limit::MAX_INSTALL;
use crate::loader::store;

const MIB: u64 = 1024 * 1024;

/// The largest servers bring a browser or a machine-learning library of 1 to 3 GiB, which uv keeps twice: unpacked in its
/// cache and copied into the environment. What grows beyond this is a bomb, or fills a laptop's disk as one would.
const LIMIT: u64 = 8 * 1024 * MIB;

/// What every file costs besides its content: a million empty files fill a disk, too.
const PER_ENTRY: u64 = 4096;

/// How often the size is looked at: what is written meanwhile is what the bound may be exceeded by.
const POLL: Duration = Duration::from_millis(200);

/// A look at large caches takes a while; it must not take more than this part of the time.
const SHARE: u32 = 10;

/// Where an installer writes, and how much it may add there.
#[derive(Debug, Clone)]
pub(super) struct Growth {
    places: Vec<PathBuf>,
    limit: u64,
}

/// Returns how many bytes an installation may take: the bound here, or what the user named.
pub(super) fn limit(environment: &Environment) -> u64 {
    let named = environment.variable(MAX_INSTALL).and_then(|value| value.to_str());
    let named = named.and_then(|value| value.parse::<u64>().ok());
    named.map_or(LIMIT, |mib| mib.saturating_mul(MIB))
}

impl Growth {
    pub(super) fn of(directory: &Path, cache: &Path, environment: &Environment) -> Self {
        Self {
            places: vec![directory.to_owned(), cache.to_owned()],
            limit: limit(environment),
        }
    }

    /// Returns the bound in MiB.
    pub(super) fn mib(&self) -> u64 {
        self.limit / MIB
    }

    /// Waits until more was added than is allowed.
    pub(super) async fn exceeded(&self) {
        let mut before = None;
        loop {
            let begun = Instant::now();
            let places = self.places.clone();
            let Some(now) = off_thread(move || places.iter().map(|place| size(place)).sum::<u64>()).await
            else {
                // The runtime ends, and the installer with it.
                return std::future::pending().await;
            };
            if now.saturating_sub(*before.get_or_insert(now)) > self.limit {
                return;
            }
            tokio::time::sleep(POLL.max(begun.elapsed() * SHARE)).await;
        }
    }
}

/// Adds up what lies below a directory; what vanishes meanwhile does not count.
fn size(root: &Path) -> u64 {
    let mut total: u64 = 0;
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
                total = total.saturating_add(PER_ENTRY);
            } else {
                total = total.saturating_add(PER_ENTRY + metadata.len());
            }
        }
    }
    total
}

/// Removes what a stopped installer left half written in the caches; blocks.
///
/// A download of another installation that is under way may be among it: that one fails and can be tried again, whereas
/// what stays here would never be removed.
pub(super) fn remove_unfinished(cache: &Path) {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let remove = |path: &Path| {
        if path.is_dir() {
            store::remove(path);
        } else if let Err(error) = disk::remove_file(path) {
            tracing::debug!(%error, path = %path.display(), "the cache keeps what was half written");
        }
    };
    for entry in entries(cache.join("npm/_cacache/tmp")) {
        remove(&entry.path());
    }
    let uv = cache.join("uv");
    let below = entries(uv.clone())
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    for folder in below.chain([uv.clone()]).collect::<Vec<_>>() {
        for entry in entries(folder) {
            if entry.file_name().to_string_lossy().starts_with(".tmp") {
                remove(&entry.path());
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
mod tests {
    use super::*;

    #[test]
    fn many_empty_files_count_as_much_as_a_large_one() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(size(root.path()), 0);
        std::fs::create_dir(root.path().join("folder")).unwrap();
        std::fs::write(root.path().join("folder/large"), vec![0; 10_000]).unwrap();
        for number in 0..10 {
            std::fs::write(root.path().join(number.to_string()), "").unwrap();
        }
        std::os::unix::fs::symlink("/", root.path().join("link")).unwrap();
        let link = PER_ENTRY + 1;
        assert_eq!(size(root.path()), 12 * PER_ENTRY + 10_000 + link);
        assert_eq!(size(&root.path().join("absent")), 0);
    }

    #[test]
    fn only_what_is_half_written_is_removed_from_the_caches() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("npm/_cacache/tmp/a/b", false),
            ("npm/_cacache/tmp/c", false),
            ("npm/_cacache/content-v2/a", true),
            ("uv/.tmpX/zeros", false),
            ("uv/archive-v0/.tmpY/zeros", false),
            ("uv/archive-v0/kept/x", true),
        ];
        for (file, _) in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        remove_unfinished(root.path());
        for (file, stays) in files {
            assert_eq!(root.path().join(file).exists(), stays, "{file}");
        }
    }
}
