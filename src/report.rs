//! How errors speak: what failed, its causes, a blank line, then a hint that can be pasted.
//!
//! Usable by every module, uses none. An error type says *what* happened; it offers a hint by implementing
//! [`Hint`], so that a terminal and a model are told the same thing.

use std::error::Error;
use std::fmt::Write as _;

/// An error that may know the next step.
pub trait Hint: Error {
    /// Returns one or more lines that tell what to do, best a command that can be pasted.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// Renders an error with its causes and its hint, without a final line break.
#[must_use]
pub fn render(error: &(dyn Error + 'static), hint: Option<&str>) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, "\n  caused by: {error}");
        cause = error.source();
    }
    if let Some(hint) = hint {
        let _ = write!(text, "\n\nhint: {hint}");
    }
    text
}

/// Renders an error that knows its own hint.
#[must_use]
pub fn render_hinted<E: Hint + 'static>(error: &E) -> String {
    render(error, error.hint().as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read `x`")]
    struct Outer(#[source] std::fmt::Error);

    impl Hint for Outer {
        fn hint(&self) -> Option<String> {
            Some("to see it: ls x".to_owned())
        }
    }

    #[test]
    fn causes_follow_and_the_hint_stands_apart() {
        assert_eq!(
            render_hinted(&Outer(std::fmt::Error)),
            "cannot read `x`\n  caused by: an error occurred when formatting an argument\n\nhint: to see it: ls x"
        );
    }
}
