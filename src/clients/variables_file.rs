//! The file with variables that an editor reads for a server: its names are declared, its values only used where the
//! server is started at once.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config;

/// Returns the names that a file sets; `None` if it cannot be read.
pub(super) fn names(path: &Path) -> Option<Vec<String>> {
    let text = config::load_text(path).ok().flatten()?;
    Some(config::variables_in(&text).map(|(name, _)| name).collect())
}

/// Returns what a file sets, as editors read it; one that cannot be read sets nothing.
#[must_use]
pub fn values_in_file(path: &Path) -> BTreeMap<String, String> {
    let text = config::load_text(path).ok().flatten().unwrap_or_default();
    config::variables_in(&text).collect()
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
