//! Whether a registry has withdrawn a version: yanked from PyPI, deprecated at npm.
//!
//! Both are still installed when a person names the exact version, as `uv` and `npm` do themselves; but they must be told
//! before they agree. What the authors give as their reason is text from outside: it is cut and escaped.

use serde_json::Value;

use crate::loader::plan::normalize;
use crate::protocol::Shown;

/// A sentence or two; authors put whole documents there.
const REASON_LENGTH: usize = 200;

/// Finds in what `uv` said whether the package itself is yanked; returns it in words that follow "this version".
pub(super) fn yanked(stderr: &[u8], name: &str, version: &str) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let rest = text.lines().find_map(|line| {
        let said = line.trim().strip_prefix("warning: `")?;
        let (spec, rest) = said.split_once("` is yanked")?;
        let (found, at) = spec.split_once("==")?;
        // Extras stand between the name and the version.
        let found = found.split('[').next().unwrap_or(found);
        (normalize(found) == normalize(name) && at == version).then(|| rest.trim().to_owned())
    })?;
    let reason = rest
        .strip_prefix("(reason: \"")
        .and_then(|reason| reason.strip_suffix("\")"));
    Some(worded(
        "is yanked: its authors took it back",
        reason.unwrap_or_default(),
    ))
}

/// Reads from a lock of npm whether the package itself is deprecated.
pub(super) fn deprecated_in(lock: &str, name: &str) -> Option<String> {
    let lock: Value = serde_json::from_str(lock).ok()?;
    deprecated(&lock["packages"][format!("node_modules/{name}")]["deprecated"])
}

/// Reads what npm says of a version: a reason, or nothing.
pub(super) fn deprecated(said: &Value) -> Option<String> {
    match said {
        Value::String(reason) if !reason.is_empty() => Some(worded("is deprecated by its authors", reason)),
        _ => None,
    }
}

fn worded(what: &str, reason: &str) -> String {
    let reason = reason.trim();
    if reason.is_empty() {
        return what.to_owned();
    }
    let mut cut: String = reason.chars().take(REASON_LENGTH).collect();
    if cut.len() < reason.len() {
        cut.push('…');
    }
    format!("{what} ({})", Shown::line(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_package_itself_counts_and_its_reason_is_escaped() {
        let said = b"Resolved 2 packages in 7ms\nwarning: `dep==1.0.0` is yanked\nwarning: `He_llo[x]==1.0.0` is yanked (reason: \"breaks \x1b[2J\")\n";
        assert_eq!(
            yanked(said, "he-llo", "1.0.0").as_deref(),
            Some("is yanked: its authors took it back (breaks \\u{1b}[2J)")
        );
        assert_eq!(
            yanked(said, "dep", "1.0.0").as_deref(),
            Some("is yanked: its authors took it back")
        );
        assert_eq!(yanked(said, "dep", "1.0"), None);
        assert_eq!(yanked(said, "other", "1.0.0"), None);
    }

    #[test]
    fn a_lock_tells_what_is_deprecated() {
        let lock = r#"{"packages":{"":{},"node_modules/a":{"deprecated":"use b"},"node_modules/b":{}}}"#;
        assert_eq!(
            deprecated_in(lock, "a").as_deref(),
            Some("is deprecated by its authors (use b)")
        );
        assert_eq!(deprecated_in(lock, "b"), None);
        let long = deprecated(&Value::from("x".repeat(1000))).unwrap();
        assert!(long.chars().count() < 250, "{long}");
    }
}
