//! The notices of the system that files may have changed, so that an idle pml need not poll them.
//!
//! Directories are watched, because a file that is replaced is another file; where a directory does not exist yet, its
//! nearest ancestor is. A link is watched at both its ends.

#[cfg(any(not(target_os = "linux"), test))]
use std::io;
use std::path::PathBuf;

/// A place whose changes are of interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedPath {
    /// A file, which need not exist.
    File(PathBuf),
    /// Everything directly in a folder, which need not exist.
    Folder(PathBuf),
}

#[cfg(target_os = "linux")]
pub use linux::Notices;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsString;
    use std::io;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use tokio::net::unix::pipe::Receiver;

    use super::WatchedPath;

    /// Room for a few dozen events with their names; what does not fit is read in the next round.
    const BUFFER: usize = 4096;

    /// Which names in a watched directory are of interest.
    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Interest {
        Every,
        These(Vec<OsString>),
    }

    /// Notices of changes in a set of places.
    #[derive(Debug)]
    pub struct Notices {
        events: Receiver,
        paths: Vec<WatchedPath>,
        watched: HashMap<i32, Interest>,
    }

    impl Notices {
        /// Begins to watch `paths`.
        pub fn of(paths: &[WatchedPath]) -> io::Result<Self> {
            let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let mut notices = Self {
                // Whatever can be polled can be read like a pipe.
                events: Receiver::from_owned_fd_unchecked(events)?,
                paths: paths.to_vec(),
                watched: HashMap::new(),
            };
            notices.watch();
            Ok(notices)
        }

        /// Waits until one of the places may have changed.
        pub async fn next(&mut self) -> io::Result<()> {
            let mut buffer = [0; BUFFER];
            loop {
                self.events.readable().await?;
                let read = match self.events.try_read(&mut buffer) {
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error),
                };
                let interesting =
                    events(&buffer[..read]).any(|(watch, name)| match self.watched.get(&watch) {
                        Some(Interest::These(names)) => {
                            name.is_empty() || names.iter().any(|known| known.as_bytes() == name)
                        }
                        // Also where events were lost.
                        Some(Interest::Every) | None => true,
                    });
                if interesting {
                    // A directory that was missing may be there now, and a link may lead elsewhere.
                    self.watch();
                    return Ok(());
                }
            }
        }

        fn watch(&mut self) {
            for path in self.paths.clone() {
                match &path {
                    WatchedPath::File(file) => {
                        self.watch_file(file);
                        if let Ok(target) = file.canonicalize()
                            && target != *file
                        {
                            self.watch_file(&target);
                        }
                    }
                    WatchedPath::Folder(folder) => self.watch_folder(folder, Interest::Every),
                }
            }
        }

        fn watch_file(&mut self, file: &Path) {
            if let (Some(folder), Some(name)) = (file.parent(), file.file_name()) {
                self.watch_folder(folder, Interest::These(vec![name.to_owned()]));
            }
        }

        /// Watches a folder, or its nearest ancestor that exists.
        fn watch_folder(&mut self, folder: &Path, interest: Interest) {
            let existing = folder.ancestors().find(|ancestor| ancestor.is_dir());
            let Some(existing) = existing.map(Path::to_owned) else {
                return;
            };
            let interest = if existing == folder {
                interest
            } else {
                // Only the next part of the path can bring the folder into being.
                let next = folder.strip_prefix(&existing).ok().and_then(first_part);
                next.map_or(Interest::Every, |next| Interest::These(vec![next]))
            };
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ATTRIB
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            if let Ok(watch) = inotify::add_watch(&self.events, &existing, flags) {
                let known = self.watched.entry(watch).or_insert(Interest::These(Vec::new()));
                match (known, interest) {
                    (known, Interest::Every) => *known = Interest::Every,
                    (Interest::Every, Interest::These(_)) => {}
                    (Interest::These(known), Interest::These(names)) => {
                        known.extend(names);
                        known.sort();
                        known.dedup();
                    }
                }
            }
        }
    }

    /// Reads the events of one read: the watch they belong to, and the name in its directory, if it is about one.
    fn events(mut bytes: &[u8]) -> impl Iterator<Item = (i32, &[u8])> {
        std::iter::from_fn(move || {
            // struct inotify_event: wd, mask, cookie and len, four bytes each; then `len` bytes of name and padding.
            let (head, rest) = bytes.split_first_chunk::<16>()?;
            let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
            let length = usize::try_from(u32::from_ne_bytes(word(12))).ok()?;
            let (name, rest) = rest.split_at_checked(length)?;
            bytes = rest;
            let end = memchr::memchr(0, name).unwrap_or(name.len());
            Some((i32::from_ne_bytes(word(0)), &name[..end]))
        })
    }

    fn first_part(path: &Path) -> Option<OsString> {
        let first: PathBuf = path.components().take(1).collect();
        Some(first.into_os_string()).filter(|first| !first.is_empty())
    }
}

/// Where the system has no such notices, files are compared when a call looks at them.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct Notices(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl Notices {
    /// Says that nothing can be watched here.
    pub fn of(_paths: &[WatchedPath]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never returns.
    pub async fn next(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    /// Longer than the kernel takes on a busy machine.
    const DEADLINE: Duration = Duration::from_secs(10);

    fn write(path: &Path, text: &str) {
        let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        file.persist(path).unwrap();
    }

    #[tokio::test]
    async fn a_file_is_noticed_when_it_comes_changes_and_goes_and_its_neighbours_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sub/deep/file");
        let mut notices = Notices::of(&[WatchedPath::File(file.clone())]).unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        tokio::time::timeout(DEADLINE, notices.next())
            .await
            .unwrap()
            .unwrap();
        std::fs::create_dir(folder.path().join("sub/deep")).unwrap();
        tokio::time::timeout(DEADLINE, notices.next())
            .await
            .unwrap()
            .unwrap();
        write(&file, "1");
        tokio::time::timeout(DEADLINE, notices.next())
            .await
            .unwrap()
            .unwrap();
        write(&folder.path().join("sub/deep/neighbour"), "1");
        write(&file, "2");
        tokio::time::timeout(DEADLINE, notices.next())
            .await
            .unwrap()
            .unwrap();
        std::fs::remove_file(&file).unwrap();
        tokio::time::timeout(DEADLINE, notices.next())
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn a_link_is_noticed_at_its_target() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
        let target = folder.path().join("elsewhere/real");
        write(&target, "1");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut notices = Notices::of(&[WatchedPath::File(link)]).unwrap();
        write(&target, "2");
        tokio::time::timeout(DEADLINE, notices.next())
            .await
            .unwrap()
            .unwrap();
    }
}
