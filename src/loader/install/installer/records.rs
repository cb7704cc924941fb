//! Compares what wheels say they brought (`RECORD`) with what lies in their environment.
//!
//! uv completes a record, but does not check its hashes. PyPI refuses wheels whose record is not true, so no honest one is
//! lost by this.

use std::io;
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::bounded::{self, RECORD};
use super::venv::{Misplaced, VenvProblem};
use crate::protocol::Shown;

/// Refuses records that name what lies outside, or is something else than they say.
pub(super) fn check(environment: &Path, packages: &Path) -> Result<(), VenvProblem> {
    let root = environment.join(packages);
    for entry in std::fs::read_dir(&root)? {
        let folder = entry?.file_name();
        if !folder.to_string_lossy().ends_with(".dist-info") {
            continue;
        }
        let text = bounded::read_text(&root.join(&folder).join("RECORD"), RECORD)?;
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (file, hash) = read(line);
            let refuse = |reason| {
                let file = Shown::line(&file).to_string();
                Err(VenvProblem::Misplaced(Misplaced { file, reason }))
            };
            let Some(path) = below(packages, Path::new(&file)) else {
                return refuse("would lie outside of the environment");
            };
            let real = environment.join(&path);
            // uv takes a line without its file out of the record.
            if let Some(expected) = hash
                && real.is_file()
                && expected != digest(&real)?
            {
                return refuse("is not what its record says");
            }
        }
    }
    Ok(())
}

/// Reads one line: `path,sha256=HASH,size`, where a path with a comma stands in quotes.
fn read(line: &str) -> (String, Option<String>) {
    let (file, rest) = match line.strip_prefix('"').and_then(|line| line.split_once("\",")) {
        Some((file, rest)) => (file.replace("\"\"", "\""), rest),
        None => line
            .split_once(',')
            .map_or((line.to_owned(), ""), |(file, rest)| (file.to_owned(), rest)),
    };
    let hash = rest
        .split(',')
        .next()
        .and_then(|hash| hash.strip_prefix("sha256="));
    (file, hash.map(|hash| hash.trim_end_matches('=').to_owned()))
}

/// Returns where a path of a record lies below the environment; nothing if it leads out of it.
fn below(packages: &Path, file: &Path) -> Option<PathBuf> {
    let mut path = packages.to_owned();
    for component in file.components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    bounded::pieces(path, |piece| hash.update(piece))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_record_is_read_with_its_commas() {
        let read = |line| {
            let (file, hash) = read(line);
            (file, hash.unwrap_or_default())
        };
        let pair = |file: &str, hash: &str| (file.to_owned(), hash.to_owned());
        assert_eq!(read("a.py,sha256=abc=,9"), pair("a.py", "abc"));
        assert_eq!(read("a.py,,"), pair("a.py", ""));
        assert_eq!(read("\"a,b\"\"c.py\",sha256=x,"), pair("a,b\"c.py", "x"));
    }

    #[test]
    fn a_path_that_leaves_the_environment_is_found() {
        let packages = Path::new("lib/python3.11/site-packages");
        assert_eq!(below(packages, Path::new("../../../bin/x")), Some("bin/x".into()));
        assert_eq!(below(packages, Path::new("../../../../x")), None);
        assert_eq!(below(packages, Path::new("/x")), None);
    }
}
