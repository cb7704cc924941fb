//! The file with variables that an editor reads for a server: only the names in it matter here.

use std::path::Path;

use super::reference::is_name;
use crate::config;

/// Returns the names that a file sets; `None` if it cannot be read. No value of it is kept.
pub(super) fn names(path: &Path) -> Option<Vec<String>> {
    let text = config::load_text(path).ok().flatten()?;
    let name = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, _) = line.split_once('=')?;
        let name = name.trim();
        is_name(name).then(|| name.to_owned())
    };
    Some(text.lines().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_are_read() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".env");
        #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
        std::fs::write(&path, "# A=1\nexport B = 'x'\nC=\n1D=x\nE\n").unwrap();
        assert_eq!(names(&path).unwrap(), ["B", "C"]);
        assert!(names(&root.path().join("absent")).is_none());
    }
}
