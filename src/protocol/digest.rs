//! A digest over named parts: what an approval, a catalog or a wire name is bound to.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a sequence of parts, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Digests `parts` in order; each is preceded by its length, so that no two sequences share a digest.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut text = String::with_capacity(64);
        for byte in hasher.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Returns the 64 hexadecimal characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_borders_of_parts_count() {
        assert_ne!(Digest::of(["ab", "c"]), Digest::of(["a", "bc"]));
        assert_eq!(Digest::of(["ab", "c"]), Digest::of(["ab", "c"]));
        assert_eq!(Digest::of(["x"]).as_str().len(), 64);
    }
}
