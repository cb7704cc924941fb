//! When each server ran last, by the newest parts of the history.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::parts::list;
use crate::protocol::Digest;

/// How many parts are read: one holds 20,000 events or 30 days, so what is older was not used for weeks.
const PARTS_READ: usize = 2;

/// A line that tells of a server.
#[derive(Deserialize)]
struct Run {
    at: i64,
    event: String,
    launch: Option<Digest>,
}

/// Returns when each launch was started or ended last, in milliseconds since 1970.
///
/// Nothing is verified and nothing is locked: a line that is cut off tells nothing, and a look may be a moment old.
#[must_use]
pub fn last_runs(directory: &Path) -> BTreeMap<Digest, i64> {
    let mut runs = BTreeMap::new();
    let parts = list(directory).unwrap_or_default();
    for part in &parts[parts.len().saturating_sub(PARTS_READ)..] {
        let bytes = std::fs::read(&part.path).unwrap_or_default();
        for line in bytes.split(|byte| *byte == b'\n') {
            // Most lines tell of something else and need not be parsed.
            if memchr::memmem::find(line, br#""launch""#).is_none() {
                continue;
            }
            if let Ok(Run {
                at,
                event,
                launch: Some(launch),
            }) = serde_json::from_slice(line)
                && matches!(event.as_str(), "start" | "exit")
            {
                let last = runs.entry(launch).or_insert(at);
                *last = at.max(*last);
            }
        }
    }
    runs
}
