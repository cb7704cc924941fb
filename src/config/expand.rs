//! Replaces `${VAR}` and `${VAR:-default}` by the values of the environment.

use super::Environment;

/// Says why text could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The variable is not set and has no default.
    #[error("`${{{name}}}` is not set")]
    Unset {
        /// The variable.
        name: String,
    },
}

/// Expands every `${VAR}` and `${VAR:-default}` of `text`; everything else stays as it is.
pub fn expand(text: &str, environment: &Environment) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, after)) = after.split_once('}') else {
            break;
        };
        expanded.push_str(before);
        let (name, default) = inside
            .split_once(":-")
            .map_or((inside, None), |(name, default)| (name, Some(default)));
        match (
            environment.variable(name).and_then(|value| value.to_str()),
            default,
        ) {
            (Some(value), _) => expanded.push_str(value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => {
                return Err(ExpandError::Unset {
                    name: name.to_owned(),
                });
            }
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}
