//! A bound on recorded refusals: a model that repeats a denied call must not push everything else out of the history.
//!
//! Pure: the caller brings the time.

use std::collections::HashSet;

use super::record::{Record, Text};

/// In each of these spans a tool's refusal is recorded once.
const SPAN_MS: i64 = 60_000;

/// How many refusals are recorded in a span: as many as a person could read, and 12 MiB in a whole day at worst.
const IN_A_SPAN: usize = 20;

/// What was refused in the current span.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    began: Option<i64>,
    subjects: HashSet<String>,
    /// How many were left out since the last one that was recorded.
    left_out: u64,
}

impl Refusals {
    /// Returns the record of a refusal by a rule, unless it is left out.
    pub(super) fn record(&mut self, tool: &str, rule: &str, now: i64) -> Option<Record> {
        Some(Record::Refusal {
            unrecorded: self.admit(tool, now)?,
            tool: Text::of(tool),
            rule: Text::of(rule),
        })
    }

    /// Tells how many refusals were left out before this one, unless it is left out itself; `subject` is what is refused.
    pub(super) fn admit(&mut self, subject: &str, now: i64) -> Option<u64> {
        let over = self
            .began
            .is_none_or(|began| !(began..began + SPAN_MS).contains(&now));
        if over {
            self.began = Some(now);
            self.subjects.clear();
        }
        if self.subjects.len() >= IN_A_SPAN || !self.subjects.insert(subject.to_owned()) {
            self.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(record: Option<Record>) -> Option<u64> {
        match record? {
            Record::Refusal { unrecorded, .. } => Some(unrecorded),
            _ => None,
        }
    }

    #[test]
    fn a_flood_of_refusals_is_recorded_by_its_number() {
        let mut refusals = Refusals::default();
        assert_eq!(left_out(refusals.record("a:b", "*", 0)), Some(0));
        for at in 1..1000 {
            assert_eq!(refusals.record("a:b", "*", at), None);
        }
        assert_eq!(left_out(refusals.record("a:b", "*", SPAN_MS)), Some(999));
        let recorded = (0..1000).filter(|at| refusals.record(&format!("a:{at}"), "*", SPAN_MS).is_some());
        assert_eq!(recorded.count(), IN_A_SPAN - 1);
        // A clock that is set back begins anew.
        assert_eq!(
            left_out(refusals.record("a:b", "*", 0)),
            Some(1000 - (IN_A_SPAN as u64 - 1))
        );
    }
}
