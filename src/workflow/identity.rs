//! The names of a workflow: its id, its code for people, and the timestamps of its life.
//!
//! Pure. The id is a capability: a client that holds it may continue the call. The code is drawn from random bits of
//! its own, so that showing it gives away nothing of the id.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The letters of a code: no `l`, `i` or `o`, which read like digits.
const LETTERS: &[u8; 23] = b"abcdefghjkmnpqrstuvwxyz";

/// The letters in a code: 23^5 = 6.4 million codes for at most a thousand live workflows.
const CODE_LENGTH: usize = 5;

/// The 128-bit name of a workflow; knowing it is the right to continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkflowId(Uuid);

impl WorkflowId {
    /// Wraps an id that came over the wire.
    #[must_use]
    pub fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Returns the id as the wire carries it.
    #[must_use]
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for WorkflowId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.as_hyphenated())
    }
}

impl FromStr for WorkflowId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

/// The conversation on whose behalf people are asked; drawn anew for each client that connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Asker(Uuid);

impl Asker {
    /// Names a new conversation.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl From<Uuid> for Asker {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.as_hyphenated())
    }
}

impl FromStr for Asker {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

/// Five letters by which a person names a workflow; unique among the live ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Code(String);

/// Says that a text is not a code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a code: five letters without `l`, `i` and `o`")]
pub struct NotACode {
    /// The refused text, escaped.
    pub text: String,
}

impl Code {
    /// Spells a code from random bits, of which about 23 count.
    #[must_use]
    pub fn of_bits(mut bits: u64) -> Self {
        let base = LETTERS.len() as u64;
        let mut text = String::with_capacity(CODE_LENGTH);
        for _ in 0..CODE_LENGTH {
            let index = usize::try_from(bits % base).unwrap_or_default();
            text.push(char::from(LETTERS[index]));
            bits /= base;
        }
        Self(text)
    }

    /// Returns the five letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Code {
    type Err = NotACode;

    /// Reads a code in either case: people read it aloud and type it on telephones.
    fn from_str(text: &str) -> Result<Self, NotACode> {
        let lower = text.to_ascii_lowercase();
        if lower.len() == CODE_LENGTH && lower.bytes().all(|letter| LETTERS.contains(&letter)) {
            return Ok(Self(lower));
        }
        Err(NotACode {
            text: crate::protocol::Shown::line(text).to_string(),
        })
    }
}

impl TryFrom<String> for Code {
    type Error = NotACode;

    fn try_from(text: String) -> Result<Self, NotACode> {
        text.parse()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.0
    }
}

/// A moment in milliseconds since 1970, on a clock that goes on while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps milliseconds since 1970.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Returns the moment `duration` later; the end of time stays the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_millis(duration)))
    }

    /// Returns the moment `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_millis(duration)))
    }

    /// Returns how long after `earlier` this is; nothing if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or_default())
    }
}

fn saturating_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(saturating_millis(after)),
            Err(before) => Self(-saturating_millis(before.duration())),
        }
    }
}

impl fmt::Display for Timestamp {
    /// Writes the moment in UTC to the second: `2026-11-16 04:08:25Z`; one outside of the calendar as its first or last.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
        let second = self.0.div_euclid(1000).clamp(first.as_second(), last.as_second());
        let moment = jiff::Timestamp::from_second(second).unwrap_or(last);
        let utc = jiff::tz::Offset::UTC.to_datetime(moment);
        // Not by a pattern of jiff, whose reader of patterns adds 230 kB to a binary.
        write!(
            formatter,
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}Z",
            utc.year(),
            utc.month(),
            utc.day(),
            utc.hour(),
            utc.minute(),
            utc.second()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_are_shown_in_utc() {
        let shown = |millis| Timestamp::from_millis(millis).to_string();
        assert_eq!(shown(0), "1970-01-01 00:00:00Z");
        assert_eq!(shown(951_782_400_000), "2000-02-29 00:00:00Z");
        assert_eq!(shown(1_794_802_105_999), "2026-11-16 04:08:25Z");
        assert_eq!(shown(-1), "1969-12-31 23:59:59Z");
        assert_eq!(shown(253_370_764_800_000), "9999-01-01 00:00:00Z");
        assert_eq!(shown(-99_999_999_999_999), "-1199-02-15 14:13:20Z");
        assert_eq!(shown(i64::MAX), "9999-12-30 22:00:00Z");
        assert_eq!(shown(i64::MIN), "-9999-01-02 01:59:59Z");
    }

    #[test]
    fn the_end_of_time_does_not_wrap() {
        let end = Timestamp::from_millis(i64::MAX);
        assert_eq!(end.plus(Duration::MAX), end);
        assert_eq!(Timestamp::from_millis(5).since(end), Duration::ZERO);
        assert_eq!(
            Timestamp::from_millis(i64::MIN).minus(Duration::MAX).millis(),
            i64::MIN
        );
    }

    proptest! {
        #[test]
        fn every_code_is_five_clear_letters_and_reads_back_in_either_case(bits: u64) {
            let code = Code::of_bits(bits);
            prop_assert!(code.as_str().bytes().all(|letter| letter.is_ascii_lowercase()));
            prop_assert!(!code.as_str().contains(['l', 'i', 'o']));
            prop_assert_eq!(code.as_str().len(), 5);
            prop_assert_eq!(code.as_str().to_uppercase().parse::<Code>(), Ok(code));
        }
    }

    #[test]
    fn other_texts_are_no_codes() {
        for text in ["", "abcd", "abcdef", "ablde", "ab1de", "äbcd"] {
            assert!(text.parse::<Code>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_names_of_a_workflow_come_back_from_the_wire() {
        let uuid = Uuid::from_u128(7);
        assert_eq!(WorkflowId::new(uuid).uuid(), uuid);
        let code = Code::of_bits(12_345);
        let text = serde_json::to_string(&code).unwrap();
        assert_eq!(text, format!("\"{code}\""));
        assert_eq!(serde_json::from_str::<Code>(&text).unwrap(), code);
    }
}
