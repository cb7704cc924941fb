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

/// Returns a path without `..`, so that a person finds it; as it is where that would mean another place.
fn plain(path: PathBuf) -> PathBuf {
    let mut short = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(short.pop()),
            part => short.push(part),
        }
    }
    let place = |path: &Path| path.parent().and_then(|parent| parent.canonicalize().ok());
    // Behind a link to a directory, `..` leads elsewhere than it reads.
    if path.is_absolute() && place(&short).is_some() && place(&short) == place(&path) {
        short
    } else {
        path
    }
}

/// Follows links from `path` to the file they mean, which need not exist.
pub(crate) fn follow(path: &Path) -> Result<PathBuf, DiskError> {
    let mut target = path.to_owned();
    for _ in 0..LINK_LIMIT {
        match std::fs::read_link(&target) {
            Ok(link) => target = target.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(plain(target)),
        }
    }
    Err(DiskError::step("follow the links of", path)(io::Error::other(
        "they lead in a circle",
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn a_link_is_followed_to_a_path_that_reads_as_the_place_it_is() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        for directory in ["client", "dot", "far/deep"] {
            std::fs::create_dir_all(home.join(directory)).unwrap();
        }
        std::fs::write(home.join("dot/x.json"), "").unwrap();
        symlink("../dot/./x.json", home.join("client/x.json")).unwrap();
        assert_eq!(
            follow(&home.join("client/x.json")).unwrap(),
            home.join("dot/x.json")
        );
        // Here `..` does not lead back.
        symlink(home.join("far/deep"), home.join("near")).unwrap();
        symlink("../y.json", home.join("far/deep/y.json")).unwrap();
        let followed = follow(&home.join("near/y.json")).unwrap();
        assert_eq!(followed, home.join("near/../y.json"));
        let plain = home.join("client/absent.json");
        assert_eq!(follow(&plain).unwrap(), plain);
    }
}
