//! What a server was given in confidence, and how it is kept out of what pml tells.
//!
//! Servers print their own configuration when they fail, tokens included. Which declared variable is a secret
//! nobody says, so every declared value counts as one, as long as it is long enough not to be an ordinary word.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::variables::passes;

/// Shorter values are flags and numbers: hiding them would garble the text and protect nothing.
const SHORTEST: usize = 8;

/// The values that must not be told, each with the name it is replaced by.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Longest first, so that a value that contains another one is replaced whole.
    values: Vec<(String, String)>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.values.iter().map(|(_, name)| name);
        formatter.debug_set().entries(names).finish()
    }
}

impl Secrets {
    /// Takes every value of an environment that did not pass from pml's own.
    #[must_use]
    pub fn of(variables: &BTreeMap<OsString, OsString>) -> Self {
        let mut values: Vec<(String, String)> = variables
            .iter()
            .filter(|(name, _)| !passes(name))
            .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
            // Output is told line by line, and so is a key of several lines.
            .flat_map(|(name, value)| value.lines().map(move |line| (line.trim(), name)))
            .filter(|(value, _)| value.len() >= SHORTEST)
            .map(|(value, name)| (value.to_owned(), format!("[{name}]")))
            .collect();
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// Returns `text` with the name of each secret in its place.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        self.values
            .iter()
            .fold(text.to_owned(), |text, (value, name)| text.replace(value, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(pairs: &[(&str, &str)]) -> Secrets {
        let variables = pairs.iter().map(|(name, value)| (name.into(), value.into()));
        Secrets::of(&variables.collect())
    }

    #[test]
    fn declared_values_are_replaced_by_their_names() {
        let secrets = secrets(&[
            ("HOME", "/home/user"),
            ("LEVEL", "debug"),
            ("TOKEN", "abcdefgh"),
            ("LONGER", "abcdefgh-and-more"),
            ("KEY", "-----BEGIN-----\nc2VjcmV0IQ==\n"),
        ]);
        assert_eq!(
            secrets.hide("debug /home/user abcdefgh-and-more, abcdefgh, c2VjcmV0IQ=="),
            "debug /home/user [LONGER], [TOKEN], [KEY]"
        );
    }

    #[test]
    fn secrets_do_not_show_themselves() {
        let shown = format!("{:?}", secrets(&[("TOKEN", "abcdefgh")]));
        assert_eq!(shown, r#"{"[TOKEN]"}"#);
    }
}
