//! How old a version must be before it is fetched: most stolen releases are found and taken back within a day.
//!
//! The one place that judges an age. The setting is read when something is about to be fetched, so that the word of then
//! counts on every road. A version whose registry does not say when it was published is not refused.

use crate::config::{self, Files, MinReleaseAge};
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::loader::plan::{Plan, Resolved};
use crate::pins::PublishedAt;

/// The user's word on how old a version must be, and the clock it is measured by.
#[derive(Debug, Clone)]
pub struct ReleaseAge {
    files: Files,
    clock: fn() -> i64,
    demand: AgeDemand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgeDemand {
    /// The user's file decides.
    Configured,
    /// `--now`: a person wants this very version today.
    Waived,
}

/// The least age that counts for one installation.
#[derive(Debug, Clone, Copy)]
pub(in crate::loader) struct AgeLimit {
    minimum: MinReleaseAge,
    now_unix_ms: i64,
}

impl ReleaseAge {
    /// Names the files, of which the user's has the setting, and the clock; reads nothing yet.
    #[must_use]
    pub fn new(files: Files, clock: fn() -> i64) -> Self {
        Self {
            files,
            clock,
            demand: AgeDemand::Configured,
        }
    }

    /// Takes versions of any age.
    #[must_use]
    pub fn waived(self) -> Self {
        Self {
            demand: AgeDemand::Waived,
            ..self
        }
    }

    /// Tells whether a resolution still counts: one that left a newer version out does not where any age is taken.
    pub(in crate::loader) fn accepts(&self, recorded: &Resolved) -> bool {
        self.demand == AgeDemand::Configured || recorded.left_out.is_none()
    }

    /// Returns the moment it is now, in milliseconds since 1970.
    pub(in crate::loader) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Reads the least age that counts now; `None` where versions of every age are taken.
    pub(in crate::loader) async fn limit(&self) -> Option<AgeLimit> {
        if self.demand == AgeDemand::Waived {
            return None;
        }
        let files = self.files.clone();
        // A configuration that cannot be read refuses every call by itself; the default counts meanwhile.
        let minimum = off_thread(move || config::read(&files).map(|config| config.min_release_age));
        let minimum = minimum.await.and_then(Result::ok).unwrap_or_default();
        (!minimum.duration().is_zero()).then(|| AgeLimit {
            minimum,
            now_unix_ms: self.now(),
        })
    }
}

impl AgeLimit {
    /// Returns the moment before which a version must have been published; the beginning of 1970 at the earliest.
    pub(in crate::loader) fn cutoff(&self) -> Option<PublishedAt> {
        let age = i64::try_from(self.minimum.duration().as_millis()).unwrap_or(i64::MAX);
        PublishedAt::from_unix_ms(self.now_unix_ms.saturating_sub(age).max(0))
    }

    /// Tells whether a version that was published then is old enough.
    pub(in crate::loader) fn admits(&self, published: PublishedAt) -> bool {
        let least = i64::try_from(self.minimum.duration().as_secs()).unwrap_or(i64::MAX);
        published.seconds_ago(self.now_unix_ms) >= least
    }

    /// Returns how long ago a moment was, in words.
    pub(in crate::loader) fn ago(&self, published: PublishedAt) -> String {
        published.ago(self.now_unix_ms)
    }

    /// Refuses a version that is too young; one whose age is not known is not.
    pub(in crate::loader) fn check(&self, plan: &Plan, resolved: &Resolved) -> Result<(), InstallError> {
        match (plan.package(), resolved.published) {
            (Some(package), Some(published)) if !self.admits(published) => Err(InstallError::TooYoung {
                dependency: plan.dependency().clone(),
                package: package.at(&resolved.version),
                ago: self.ago(published),
                minimum: self.minimum,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the least age.
    pub(in crate::loader) fn minimum(&self) -> MinReleaseAge {
        self.minimum
    }
}
