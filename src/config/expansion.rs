//! The expansion of `${VAR}` and `${VAR:-default}` in the declaration of a server.
//!
//! Variables are expanded when a server is started, never while the file is read. `$${` stands for a literal `${`; any other `$` stays. A
//! default is plain text up to the next `}`. A variable that is set but empty counts as unset, as in a shell's
//! `:-`. Errors name the variable and never repeat the text around it, which may hold a secret.

use std::collections::BTreeSet;

use super::Environment;

/// Says why a text could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The variable is unset or empty and has no default.
    #[error("the environment variable `{variable}` is not set")]
    Unset {
        /// Its name.
        variable: String,
    },
    /// The variable's value cannot be passed on as text.
    #[error("the environment variable `{variable}` is not UTF-8")]
    NotUtf8 {
        /// Its name.
        variable: String,
    },
    /// What stands in the braces is not the name of a variable.
    #[error("`${{{found}}}` does not name an environment variable; write `$${{` for a literal `${{`")]
    Name {
        /// The text in place of a name, escaped.
        found: String,
    },
    /// A `${` has no `}`.
    #[error("a `${{` is never closed by `}}`; write `$${{` for a literal `${{`")]
    Unclosed,
}

impl crate::report::Hint for ExpandError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unset { variable } => Some(format!(
                "set `{variable}` where your client starts pml, or write a default: ${{{variable}:-default}}"
            )),
            Self::NotUtf8 { .. } | Self::Name { .. } | Self::Unclosed => None,
        }
    }
}

/// A text whose variables are expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedText {
    /// The text.
    pub text: String,
    /// The variables of the environment that it took, each with its value: what must not be shown.
    pub taken: Vec<(String, String)>,
}

/// Expands the variables of `text`.
pub fn expand(text: &str, environment: &Environment) -> Result<ExpandedText, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut taken = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            expanded.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let (inside, after) = after.split_once('}').ok_or(ExpandError::Unclosed)?;
            expanded.push_str(&value(inside, environment, &mut taken)?);
            rest = after;
        } else {
            expanded.push('$');
            rest = &rest[1..];
        }
    }
    expanded.push_str(rest);
    Ok(ExpandedText {
        text: expanded,
        taken,
    })
}

/// Returns the names of the variables that a text would take from the environment.
#[must_use]
pub fn variables(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let (inside, after) = after.split_once('}').unwrap_or((after, ""));
            let name = inside.split_once(":-").map_or(inside, |(name, _default)| name);
            names.insert(name.to_owned());
            rest = after;
        } else {
            rest = &rest[1..];
        }
    }
    names
}

fn value(
    inside: &str,
    environment: &Environment,
    taken: &mut Vec<(String, String)>,
) -> Result<String, ExpandError> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let is_name = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .chars()
            .all(|found| found.is_ascii_alphanumeric() || found == '_');
    if !is_name {
        return Err(ExpandError::Name {
            found: crate::protocol::Shown::line(name).to_string(),
        });
    }
    match (environment.variable(name), default) {
        (Some(value), _) => {
            let value = value.to_str().ok_or_else(|| ExpandError::NotUtf8 {
                variable: name.to_owned(),
            })?;
            taken.push((name.to_owned(), value.to_owned()));
            Ok(value.to_owned())
        }
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(ExpandError::Unset {
            variable: name.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment() -> Environment {
        Environment::new([("TOKEN", "s3cret"), ("EMPTY", ""), ("BRACES", "${TOKEN}")], "/")
    }

    #[test]
    fn variables_and_defaults_expand() {
        for (text, expected) in [
            ("plain", "plain"),
            ("${TOKEN}", "s3cret"),
            ("a ${TOKEN}/${TOKEN} z", "a s3cret/s3cret z"),
            ("${UNSET:-fallback}", "fallback"),
            ("${UNSET:-}", ""),
            ("${EMPTY:-fallback}", "fallback"),
            ("${TOKEN:-fallback}", "s3cret"),
            ("$TOKEN costs 5$", "$TOKEN costs 5$"),
            ("$${TOKEN}", "${TOKEN}"),
            ("$$${TOKEN}", "$${TOKEN}"),
            ("${BRACES}", "${TOKEN}"),
            ("}{", "}{"),
        ] {
            let expanded = expand(text, &environment()).unwrap();
            assert_eq!(expanded.text, expected, "{text}");
        }
    }

    #[test]
    fn what_was_taken_from_the_environment_is_told_and_a_default_is_not() {
        let expanded = expand("${TOKEN} ${UNSET:-fallback}", &environment()).unwrap();
        assert_eq!(expanded.taken, [("TOKEN".to_owned(), "s3cret".to_owned())]);
    }

    #[test]
    fn refusals_name_the_variable_and_nothing_else() {
        for (text, expected) in [
            ("s3cret ${UNSET}", "the environment variable `UNSET` is not set"),
            ("${EMPTY}", "the environment variable `EMPTY` is not set"),
            (
                "${1X}",
                "`${1X}` does not name an environment variable; write `$${` for a literal `${`",
            ),
            (
                "s3cret ${TOKEN",
                "a `${` is never closed by `}`; write `$${` for a literal `${`",
            ),
        ] {
            let error = expand(text, &environment()).unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_variable_that_is_taken_was_named_before(text in r"([a-z:-]|\$\{TOKEN\}|\$\$\{|\$|\$\{UNSET:-x\}|\}){0,12}") {
            if let Ok(expanded) = expand(&text, &environment()) {
                let named = variables(&text);
                for (name, _value) in expanded.taken {
                    prop_assert!(named.contains(&name), "{}", text);
                }
            }
        }

        #[test]
        fn text_without_braces_is_left_alone(text in "[^{]{0,60}") {
            prop_assert_eq!(expand(&text, &environment()).unwrap().text, text);
        }

        #[test]
        fn any_text_expands_or_is_refused(text in "[${}:A-Z-]{0,30}") {
            let _ = expand(&text, &environment());
        }
    }
}
