//! Random secrets, compared in a time that tells nothing of them.

use std::fmt;
use std::hint::black_box;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A random text of 244 bits; its `Debug` does not show it.
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    /// Draws a new one from the random numbers of the system.
    pub(super) fn random() -> Self {
        Self(format!(
            "{}{}",
            Uuid::new_v4().as_simple(),
            Uuid::new_v4().as_simple()
        ))
    }

    /// Returns the text, for the one who is given it.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Tells whether a text is this secret; how long that takes does not depend on how much of it is right.
    pub(super) fn is(&self, text: &str) -> bool {
        let (own, given) = (Sha256::digest(&self.0), Sha256::digest(text));
        let difference = own
            .iter()
            .zip(&given)
            .fold(0, |all, (own, given)| all | (own ^ given));
        black_box(difference) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_itself_alone_and_is_not_shown() {
        let (one, other) = (Secret::random(), Secret::random());
        assert!(one.is(one.text()));
        assert!(!one.is(other.text()) && !one.is("") && !one.is(&one.text()[1..]));
        assert_eq!(one.text().len(), 64);
        assert_eq!(format!("{one:?}"), "Secret");
    }
}
