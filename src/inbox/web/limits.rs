//! How often requests may come: buckets that fill with time, one for each kind of request.
//!
//! Who is not let in has a bucket of its own, so that a flood of strangers does not keep the person out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The buckets of a server.
#[derive(Debug)]
pub(super) struct Limits {
    /// Requests without a right to be here: a person mistypes a token now and then, a guesser does not.
    pub(super) strangers: Bucket,
    /// Requests that only look.
    pub(super) reads: Bucket,
    /// Requests that change something: faster than any person clicks.
    pub(super) writes: Bucket,
    /// Requests of agents that ask: each looks for its answer every two seconds.
    pub(super) agents: Bucket,
    /// Requests of services that deliver what people wrote in a chat.
    pub(super) hooks: Bucket,
}

impl Limits {
    /// Fills every bucket.
    pub(super) fn new() -> Self {
        Self {
            strangers: Bucket::new(40, 2),
            reads: Bucket::new(300, 50),
            writes: Bucket::new(60, 10),
            agents: Bucket::new(200, 50),
            hooks: Bucket::new(100, 20),
        }
    }
}

/// A bucket of permits.
#[derive(Debug)]
pub(super) struct Bucket {
    size: u32,
    /// How long it takes until there is one more permit.
    each: Duration,
    /// The moment at which the bucket is full again.
    full_at: Mutex<Instant>,
}

impl Bucket {
    fn new(size: u32, per_second: u32) -> Self {
        Self {
            size,
            each: Duration::from_secs(1) / per_second,
            full_at: Mutex::new(Instant::now()),
        }
    }

    /// Takes a permit, or says after how long there is one.
    pub(super) fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let then = (*full_at).max(now) + self.each;
        let missing = then.duration_since(now);
        let most = self.each * self.size;
        match missing.checked_sub(most) {
            Some(after) if !after.is_zero() => Err(after),
            Some(_) | None => {
                *full_at = then;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let (bucket, now) = (Bucket::new(3, 2), Instant::now() + Duration::from_secs(1));
        for _ in 0..3 {
            assert_eq!(bucket.take(now), Ok(()));
        }
        assert_eq!(bucket.take(now), Err(Duration::from_millis(500)));
        let later = now + Duration::from_millis(500);
        assert_eq!(bucket.take(later), Ok(()));
        assert!(bucket.take(later).is_err());
    }
}
