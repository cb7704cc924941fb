//! Bounds what it may take to read an archive: a few kilobytes can unpack to terabytes, and a few megabytes to nothing at
//! all for hours.

use std::io::{self, Read};
use std::time::{Duration, Instant};

/// How long all archives of an installation may take to be read. One processor unpacks some 200 MiB a second, so that the
/// most an installation may write takes 40 seconds; a slow disk takes some times as long.
pub(super) const DEADLINE: Duration = Duration::from_mins(3);

/// What is left to be read, and until when.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadBudget {
    bytes: u64,
    until: Instant,
}

impl ReadBudget {
    /// Makes a budget of `bytes` unpacked bytes, to be read within `time` from now on.
    pub(super) fn new(bytes: u64, time: Duration) -> Self {
        Self {
            bytes,
            until: Instant::now() + time,
        }
    }

    /// Takes what was unpacked from the budget.
    fn spend(&mut self, bytes: usize) -> io::Result<()> {
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(())
    }

    fn check_time(&self) -> io::Result<()> {
        if Instant::now() < self.until {
            Ok(())
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }

    /// Says why reading was given up, in words that follow "which"; `None` where it was for another reason.
    pub(super) fn exceeded(error: &io::Error) -> Option<&'static str> {
        match error.kind() {
            io::ErrorKind::FileTooLarge => Some("unpacks to more than an installation may take"),
            io::ErrorKind::TimedOut => Some("takes more than three minutes to be read"),
            _ => None,
        }
    }
}

/// What is packed: it takes time also where nothing comes of it.
pub(super) struct Packed<R> {
    source: R,
    budget: ReadBudget,
}

impl<R> Packed<R> {
    pub(super) fn new(source: R, budget: &ReadBudget) -> Self {
        Self {
            source,
            budget: *budget,
        }
    }
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.budget.check_time()?;
        self.source.read(buffer)
    }
}

/// What is unpacked.
pub(super) struct Unpacked<'a, R> {
    source: R,
    budget: &'a mut ReadBudget,
}

impl<'a, R> Unpacked<'a, R> {
    pub(super) fn new(source: R, budget: &'a mut ReadBudget) -> Self {
        Self { source, budget }
    }
}

impl<R: Read> Read for Unpacked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.budget.check_time()?;
        let read = self.source.read(buffer)?;
        self.budget.spend(read)?;
        Ok(read)
    }
}
