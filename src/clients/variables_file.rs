//! The file with variables that an editor reads for a server: its names are declared, its values only used where the
//! server is started at once.

use std::collections::BTreeMap;
use std::path::Path;

use super::reference::is_name;
use crate::config;

/// Returns the names that a file sets; `None` if it cannot be read.
pub(super) fn names(path: &Path) -> Option<Vec<String>> {
    let text = config::load_text(path).ok().flatten()?;
    Some(pairs(&text).map(|(name, _)| name.to_owned()).collect())
}

/// Returns what a file sets, as editors read it; one that cannot be read sets nothing.
#[must_use]
pub fn values_in_file(path: &Path) -> BTreeMap<String, String> {
    let text = config::load_text(path).ok().flatten().unwrap_or_default();
    let value = |value: &str| {
        let within = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
        match (within('"'), within('\'')) {
            (Some(within), _) => within.replace("\\n", "\n"),
            (None, Some(within)) => within.to_owned(),
            (None, None) => value.to_owned(),
        }
    };
    pairs(&text)
        .map(|(name, text)| (name.to_owned(), value(text)))
        .collect()
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=')?;
        let name = name.trim();
        is_name(name).then_some((name, value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_names_and_values_are_read_as_editors_read_them() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".env");
        #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
        std::fs::write(&path, "# A=1\nexport B = 'x'\nC=\n1D=x\nE\n").unwrap();
        assert_eq!(names(&path).unwrap(), ["B", "C"]);
        assert!(names(&root.path().join("absent")).is_none());
        let values = values_in_file(&path).into_iter().collect::<Vec<_>>();
        assert_eq!(
            values,
            [("B".to_owned(), "x".to_owned()), ("C".to_owned(), String::new())]
        );
    }
}
