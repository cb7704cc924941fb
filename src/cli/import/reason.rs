//! Why a server stays in its client or does not work, in a few lines for a person.

use std::error::Error;

use crate::protocol::{DependencyName, Shown};

/// Says what failed, its first cause, and what helps: one line for each. What an installer wrote below that is left out.
pub(super) fn why(name: &DependencyName, error: &(dyn Error + 'static), hint: Option<String>) -> String {
    let first = |text: &str| Shown::line(text.trim().lines().next().unwrap_or_default()).to_string();
    let what = error.to_string();
    // Whose it is stands before it.
    let what = what.strip_prefix(&format!("`{name}`: ")).unwrap_or(&what);
    let cause = error
        .source()
        .map(|cause| format!("caused by: {}", first(&cause.to_string())));
    let hint = hint.into_iter().flat_map(|hint| {
        hint.lines()
            .map(|line| Shown::line(line).to_string())
            .collect::<Vec<_>>()
    });
    std::iter::once(first(what))
        .chain(cause)
        .chain(hint)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the registry has no `a`")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("npm error code E404\nnpm error 404 and much more")]
    struct Inner;

    #[test]
    fn each_part_is_a_line_and_the_rest_of_what_an_installer_wrote_is_left_out() {
        let name: DependencyName = "a".parse().unwrap();
        let said = why(&name, &Outer(Inner), Some("to see it: pml list".to_owned()));
        assert_eq!(
            said,
            "the registry has no `a`\ncaused by: npm error code E404\nto see it: pml list"
        );
    }
}
