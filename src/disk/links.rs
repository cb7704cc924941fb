//! Where the links of a path lead.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::DiskError;

/// Links are followed this far, as the kernel does.
const LINK_LIMIT: usize = 40;

/// Tells whether `target` lies outside `directory`, links resolved; neither need exist.
pub(crate) fn leads_out(directory: &Path, target: &Path) -> bool {
    let (Some(inside), Some(end)) = (resolved(directory), target.parent().and_then(resolved)) else {
        return true;
    };
    !end.starts_with(inside)
}

/// Resolves the links of a directory as far as it exists; `None` if what is missing leads upwards.
fn resolved(directory: &Path) -> Option<PathBuf> {
    let (there, canonical) = directory
        .ancestors()
        .find_map(|there| Some((there, there.canonicalize().ok()?)))?;
    let missing = directory.strip_prefix(there).ok()?;
    let is_plain = |part| matches!(part, Component::Normal(_));
    missing
        .components()
        .all(is_plain)
        .then(|| canonical.join(missing))
}

/// Follows links from `path` to the file they mean, which need not exist.
pub(crate) fn follow(path: &Path) -> Result<PathBuf, DiskError> {
    let mut target = path.to_owned();
    for _ in 0..LINK_LIMIT {
        match std::fs::read_link(&target) {
            Ok(link) => target = target.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(target),
        }
    }
    Err(DiskError::step("follow the links of", path)(io::Error::other(
        "they lead in a circle",
    )))
}
