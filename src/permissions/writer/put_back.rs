//! Puts a file back as it was before an edit, while it is still what that edit left.

use std::path::Path;

use super::{FileKind, WriteDurability, WriteError, keep_accepted, replace, resolve};
use crate::config;
use crate::disk::{Audience, LockedDirectory};

/// Puts `before` in place of `after`; without one the file is removed. A file that says anything else is left as it is.
pub fn put_back(
    path: &Path,
    kind: FileKind<'_>,
    after: &str,
    before: Option<&str>,
) -> Result<WriteDurability, WriteError> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    let target = resolve(path, kind)?;
    let directory = target.parent().unwrap_or(Path::new("/"));
    let locked = LockedDirectory::lock(directory, Audience::Usual).map_err(failed)?;
    let now = config::load_text(&target).map_err(|source| WriteError::Broken {
        path: target.clone(),
        source: Box::new(source),
    })?;
    if now.as_deref() != Some(after) {
        return Err(WriteError::Overtaken { path: target });
    }
    let name = Path::new(target.file_name().unwrap_or_default());
    if let Some(before) = before {
        keep_accepted(kind, before);
        return replace(&locked, name, before.as_bytes(), Audience::Usual).map_err(failed);
    }
    locked.remove(&[name.to_owned()]).map_err(failed)?;
    Ok(WriteDurability::Confirmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_edit_left_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("pml.json");
        #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        let read = || std::fs::read_to_string(&path).ok();
        write("{\"permissions\": {}}");
        let other = put_back(&path, FileKind::User, "{ }", Some("{}"));
        assert!(matches!(other, Err(WriteError::Overtaken { .. })));
        write("{ }");
        put_back(&path, FileKind::User, "{ }", Some("{}")).unwrap();
        assert_eq!(read().as_deref(), Some("{}"));
        put_back(&path, FileKind::User, "{}", None).unwrap();
        assert_eq!(read(), None);
    }
}
