//! A queue of processes in which each gets its turn in the order of asking.
//!
//! A lock of the kernel alone is not fair: whoever runs takes it before a waiter that was just woken, so that where many
//! write a few wait for a hundred turns of others. Here each takes the next number from a file and locks the byte of that
//! number; its turn comes when the byte before it is free. Each byte has one waiter, which nobody can overtake, and the
//! kernel frees the bytes of a process that dies.
//!
//! A turn is a courtesy, not a lock: a process that waits too long, because one before it is stopped, goes on without.
//! What must exclude others needs a lock of its own.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// A queue, named by the file that counts its numbers.
#[derive(Debug, Clone)]
pub(crate) struct TurnQueue {
    path: PathBuf,
}

/// A turn; the next one begins when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn(
    #[expect(dead_code, reason = "the open file holds the lock of the turn")] Option<File>,
);

impl TurnQueue {
    /// Names the queue; touches nothing.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Waits for a turn; goes on without one after `patience`, or where there can be no queue.
    pub(crate) fn wait(&self, patience: Duration) -> Turn {
        Turn(queue::wait(&self.path, patience).ok())
    }
}

#[cfg(target_os = "linux")]
mod queue {
    use std::fs::{File, OpenOptions};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    /// The byte whose holder draws a number; the bytes of the numbers follow it.
    const COUNTER: i64 = 0;

    /// Drawing a number takes a few microseconds.
    const DRAW_AGAIN_AFTER: Duration = Duration::from_micros(50);

    /// How many threads of a process may wait: one that was given up goes on waiting.
    const WAITING: usize = 64;

    /// Draws a number and waits until all before it are done.
    pub(super) fn wait(path: &Path, patience: Duration) -> io::Result<File> {
        let began = Instant::now();
        let file = open(path)?;
        while let Err(error) = lock(&file, libc::F_WRLCK, COUNTER, Blocking::No) {
            if error.kind() != ErrorKind::WouldBlock || began.elapsed() > patience {
                return Err(error);
            }
            std::thread::sleep(DRAW_AGAIN_AFTER);
        }
        let before = drawn(&file);
        let own = before.checked_add(1).unwrap_or(1);
        file.write_all_at(&own.to_ne_bytes(), 0)?;
        lock(&file, libc::F_WRLCK, own, Blocking::No)?;
        lock(&file, libc::F_UNLCK, COUNTER, Blocking::No)?;
        if before == 0 {
            return Ok(file);
        }
        match lock(&file, libc::F_RDLCK, before, Blocking::No) {
            // The byte before is free, and nobody locks it again.
            Ok(()) => Ok(file),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait_for(path, before, patience)?;
                Ok(file)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the file for both kinds of lock.
    fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
    }

    /// Returns the number that was drawn last; none where the file is new or damaged.
    fn drawn(file: &File) -> i64 {
        let mut bytes = [0; 8];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => i64::from_ne_bytes(bytes).max(0),
            Err(_) => 0,
        }
    }

    /// Waits until the holder of a number is done; on a thread of its own, because the kernel knows no deadline.
    fn wait_for(path: &Path, number: i64, patience: Duration) -> io::Result<()> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        if THREADS.load(Ordering::Relaxed) >= WAITING {
            return Err(ErrorKind::ResourceBusy.into());
        }
        // A file of its own: the number of a process that gives up is free at once.
        let file = open(path)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        THREADS.fetch_add(1, Ordering::Relaxed);
        let wait = move || {
            let _ = sender.send(lock(&file, libc::F_RDLCK, number, Blocking::Yes));
            THREADS.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = std::thread::Builder::new()
            .name("pml-turn".to_owned())
            .stack_size(64 << 10);
        if let Err(error) = thread.spawn(wait) {
            THREADS.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        receiver
            .recv_timeout(patience)
            .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
    }

    #[derive(Clone, Copy)]
    enum Blocking {
        Yes,
        No,
    }

    /// Locks or frees one byte for this open file, as opposed to this process.
    fn lock(file: &File, kind: i32, byte: i64, blocking: Blocking) -> io::Result<()> {
        let range = libc::flock {
            l_type: i16::try_from(kind).unwrap_or_default(),
            l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
            l_start: byte,
            l_len: 1,
            l_pid: 0,
        };
        let operation = match blocking {
            Blocking::Yes => FcntlArg::F_OFD_SETLKW(&range),
            Blocking::No => FcntlArg::F_OFD_SETLK(&range),
        };
        fcntl(file, operation)?;
        Ok(())
    }
}

/// Elsewhere the lock of what is written decides alone.
#[cfg(not(target_os = "linux"))]
mod queue {
    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::time::Duration;

    pub(super) fn wait(_path: &Path, _patience: Duration) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn turns_come_in_the_order_of_asking() {
        let root = tempfile::tempdir().unwrap();
        let queue = TurnQueue::new(root.path().join("turns"));
        let order = Mutex::new(Vec::new());
        let first = queue.wait(HOUR);
        assert!(!drawn(&queue).is_empty(), "a number was drawn");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let drawn = drawn(&queue);
                scope.spawn({
                    let (queue, order) = (&queue, &order);
                    move || {
                        let _turn = queue.wait(HOUR);
                        order.lock().unwrap().push(number);
                    }
                });
                while self::drawn(&queue) == drawn {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
    }

    fn drawn(queue: &TurnQueue) -> Vec<u8> {
        std::fs::read(&queue.path).unwrap()
    }

    #[test]
    fn a_turn_that_never_ends_is_waited_for_only_so_long_and_then_the_queue_goes_on() {
        let root = tempfile::tempdir().unwrap();
        let queue = TurnQueue::new(root.path().join("turns"));
        let stuck = queue.wait(HOUR);
        drop(queue.wait(Duration::from_millis(20)));
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(queue.wait(HOUR));
                sender.send(()).unwrap();
            });
            // Its place in the queue is behind the one that gave up.
            receiver.recv().unwrap();
        });
        drop(stuck);
    }
}
