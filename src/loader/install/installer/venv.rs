//! A Python environment before and after packages are unpacked into it.
//!
//! A wheel may place files anywhere in the environment (`*.data/data`): a `pyvenv.cfg` or a standard library of its own
//! decides what the next start of the environment's Python runs. So everything that was there before must be
//! unchanged, new files must lie where packages belong, and nothing here ever runs the environment's Python: the
//! interpreter it was made from is read while the environment is still empty.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::bounded::{self, PATHS};
use crate::protocol::{Digest, Shown};

/// Where packages may put data beside their code, below the environment.
const DATA: [&str; 7] = ["share", "etc", "include", "man", "doc", "docs", "opt"];

/// Longer than any file of a fresh environment, in bytes: one that was put in its place is not read whole.
const OWN_FILE: u64 = 32 << 20;

/// More files that run at every start than a person reads; what is not shown is not accepted, so more are refused.
const AT_START_LIMIT: usize = 100;

/// A fresh environment, as it was before anything was unpacked into it.
pub(super) struct FreshVenv {
    root: PathBuf,
    /// The interpreter that the environment was made from.
    pub(super) python: PathBuf,
    /// Where packages go, below the environment.
    packages: PathBuf,
    entries: BTreeMap<PathBuf, VenvEntry>,
}

#[derive(Debug, PartialEq, Eq)]
enum VenvEntry {
    Directory,
    File(Digest),
    Link(PathBuf),
}

/// A file of a package that does not belong where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misplaced {
    /// The file below the environment, escaped.
    pub(super) file: String,
    pub(super) reason: &'static str,
}

/// Says why an environment was not accepted.
#[derive(Debug)]
pub(super) enum VenvProblem {
    Misplaced(Misplaced),
    Unreadable(io::Error),
}

impl From<io::Error> for VenvProblem {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl FreshVenv {
    /// Reads an environment into which nothing was unpacked yet.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        walk(root, Path::new(""), &mut |path, found| -> io::Result<()> {
            entries.insert(path.to_owned(), VenvEntry::read(&root.join(path), found)?);
            Ok(())
        })?;
        let packages = entries
            .keys()
            .find(|path| path.ends_with("site-packages"))
            .cloned();
        Ok(Self {
            python: root.join("bin/python").canonicalize()?,
            packages: packages.ok_or(io::ErrorKind::NotFound)?,
            root: root.to_owned(),
            entries,
        })
    }

    /// Returns where packages go, below the environment.
    pub(super) fn packages(&self) -> &Path {
        &self.packages
    }

    /// Refuses the environment if packages changed it, or put files where packages do not belong.
    pub(super) fn check(&self) -> Result<(), VenvProblem> {
        let mut seen = 0;
        walk(
            &self.root,
            Path::new(""),
            &mut |path, found| -> Result<(), VenvProblem> {
                let misplaced = |reason| {
                    VenvProblem::Misplaced(Misplaced {
                        file: Shown::path(path),
                        reason,
                    })
                };
                if let Some(before) = self.entries.get(path) {
                    seen += 1;
                    return if VenvEntry::read(&self.root.join(path), found)? == *before {
                        Ok(())
                    } else {
                        Err(misplaced("is a file of the environment itself"))
                    };
                }
                if found.is_symlink() && !self.leads_inside(path) {
                    return Err(misplaced("is a link that leads out of the environment"));
                }
                if self.may_hold(path, found) {
                    Ok(())
                } else {
                    Err(misplaced("lies outside the folders of packages"))
                }
            },
        )?;
        // What was there before and is not seen any more was removed.
        if seen == self.entries.len() {
            return Ok(());
        }
        let gone = self
            .entries
            .keys()
            .find(|path| self.root.join(path).symlink_metadata().is_err());
        Err(VenvProblem::Misplaced(Misplaced {
            file: gone.map_or_else(String::new, |path| Shown::path(path)),
            reason: "is a file of the environment itself",
        }))
    }

    fn leads_inside(&self, link: &Path) -> bool {
        let (root, target) = (self.root.canonicalize(), self.root.join(link).canonicalize());
        matches!((root, target), (Ok(root), Ok(target)) if target.starts_with(&root))
    }

    fn may_hold(&self, path: &Path, found: std::fs::FileType) -> bool {
        if path.starts_with(&self.packages) {
            return true;
        }
        let parts: Vec<String> = path
            .iter()
            .map(|part| part.to_string_lossy().to_ascii_lowercase())
            .collect();
        match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            // uv's own lock, which says nothing.
            [".lock"] => found.is_file() && self.root.join(path).metadata().is_ok_and(|file| file.len() == 0),
            ["bin", name, ..] => !is_of_the_environment(name),
            // Libraries of packages are found by their paths; the standard library is not theirs to bring.
            ["lib", name, ..] => !name.starts_with("python"),
            [top, ..] => DATA.contains(&top) && (found.is_dir() || parts.len() > 1),
            [] => true,
        }
    }
}

/// Tells whether a program of this name would be taken for the interpreter or a part of the environment.
fn is_of_the_environment(name: &str) -> bool {
    let version = |rest: &str| {
        rest.chars()
            .all(|found| found.is_ascii_digit() || "._wdt".contains(found))
    };
    name.strip_prefix("python")
        .is_some_and(|rest| version(rest.trim_end_matches(".exe")))
        || ["activate", "deactivate"]
            .iter()
            .filter_map(|script| name.strip_prefix(script))
            .any(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with("_this"))
        || matches!(name, "pyvenv.cfg" | "pybuilddir.txt")
        || name.ends_with("._pth")
}

impl VenvEntry {
    fn read(path: &Path, found: std::fs::FileType) -> io::Result<Self> {
        Ok(if found.is_symlink() {
            Self::Link(std::fs::read_link(path)?)
        } else if found.is_dir() {
            Self::Directory
        } else {
            Self::File(Digest::of([bounded::read(path, OWN_FILE)?]))
        })
    }
}

/// Visits everything below a directory; links are not followed.
fn walk<E: From<io::Error>>(
    root: &Path,
    below: &Path,
    visit: &mut impl FnMut(&Path, std::fs::FileType) -> Result<(), E>,
) -> Result<(), E> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let (path, found) = (below.join(entry.file_name()), entry.file_type()?);
        visit(&path, found)?;
        if found.is_dir() {
            walk(root, &path, visit)?;
        }
    }
    Ok(())
}

/// Finds the files that Python runs at every start, before the server: their names below `packages`.
pub(super) fn at_start(packages: &Path) -> Result<Vec<String>, VenvProblem> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(packages)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let stem = text.split('.').next().unwrap_or_default();
        let runs = match Path::new(&name)
            .extension()
            .and_then(|extension| extension.to_str())
        {
            // Entry points of newer versions of Python.
            Some("start") => true,
            Some("pth") => runs_code(&packages.join(&name)),
            _ => matches!(stem, "sitecustomize" | "usercustomize"),
        };
        if runs {
            found.push(text.into_owned());
        }
    }
    found.sort();
    match found.get(AT_START_LIMIT) {
        None => Ok(found),
        Some(surplus) => Err(VenvProblem::Misplaced(Misplaced {
            file: Shown::line(surplus).to_string(),
            reason: "is one more file that runs at every start than a person can be shown",
        })),
    }
}

/// Tells whether a `.pth` file has a line of code, or names a directory outside; one that cannot be read counts.
fn runs_code(path: &Path) -> bool {
    let Ok(bytes) = bounded::read(path, PATHS) else {
        return true;
    };
    // A carriage return ends a line, too.
    String::from_utf8_lossy(&bytes).split(['\n', '\r']).any(|line| {
        let code = line.trim_start_matches('\u{feff}').starts_with("import");
        code || Path::new(line.trim()).is_absolute()
            || line.split(['/', '\\']).any(|part| part.trim() == "..")
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn environment() -> (tempfile::TempDir, FreshVenv) {
        let root = tempfile::tempdir().unwrap();
        for folder in ["bin", "lib/python3.11/site-packages"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("/bin/sh", root.path().join("bin/python")).unwrap();
        std::os::unix::fs::symlink("lib", root.path().join("lib64")).unwrap();
        std::fs::write(root.path().join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        let fresh = FreshVenv::read(root.path()).unwrap();
        (root, fresh)
    }

    /// Puts a file into a fresh environment and tells what is wrong with it.
    fn with(file: &str, text: &str) -> Option<&'static str> {
        let (root, fresh) = environment();
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        match text.strip_prefix("->") {
            Some(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
            None => std::fs::write(&path, text).unwrap(),
        }
        match fresh.check() {
            Ok(()) => None,
            Err(VenvProblem::Misplaced(misplaced)) => Some(misplaced.reason),
            Err(VenvProblem::Unreadable(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn packages_fill_their_own_folders() {
        for file in [
            ".lock",
            "bin/hello",
            "bin/python-argcomplete-check",
            "bin/activate-global-python-argcomplete",
            "opt/compiler/lib/libiomp5.so",
            "bin/pip3",
            "lib/libmkl.so.2",
            "lib/python3.11/site-packages/hello/__init__.py",
            "share/man/man1/hello.1",
            "etc/hello/hello.conf",
            "include/site/python3.11/hello/hello.h",
        ] {
            assert_eq!(with(file, ""), None, "{file}");
        }
        assert_eq!(
            with("lib/python3.11/site-packages/hello/a", "->../../../../bin"),
            None
        );
    }

    #[test]
    fn packages_leave_the_environment_as_it_was() {
        let changed = Some("is a file of the environment itself");
        let outside = Some("lies outside the folders of packages");
        let link = Some("is a link that leads out of the environment");
        for (file, text, reason) in [
            ("pyvenv.cfg", "home = /tmp\n", changed),
            ("bin/python", "#!/bin/sh\n", changed),
            ("bin/python", "->/bin/true", changed),
            ("lib64", "->/tmp", changed),
            ("bin/python3", "", outside),
            ("bin/PYTHON3.12", "", outside),
            ("bin/pybuilddir.txt", "", outside),
            ("bin/activate.csh", "", outside),
            ("bin/activate", "", outside),
            ("bin/activate_this.py", "", outside),
            ("lib/python3.11/os.py", "", outside),
            ("lib/python3.12/site-packages/hello.py", "", outside),
            ("lib/Python311.zip", "", outside),
            ("PYVENV.CFG", "", outside),
            ("share", "", outside),
            (".lock", "x", outside),
            ("sitecustomize.py", "", outside),
            ("lib/python3.11/site-packages/out", "->/etc/passwd", link),
            ("bin/hello", "->/bin/sh", link),
            ("share/nowhere", "->nowhere", link),
        ] {
            assert_eq!(with(file, text), reason, "{file} {text}");
        }
        let (root, fresh) = environment();
        std::fs::remove_file(root.path().join("pyvenv.cfg")).unwrap();
        assert!(matches!(fresh.check(), Err(VenvProblem::Misplaced(gone)) if gone.file == "pyvenv.cfg"));
    }

    #[test]
    fn every_file_that_runs_at_every_start_is_listed_and_one_more_than_can_be_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..AT_START_LIMIT - 1 {
            std::fs::write(folder.path().join(format!("{number:03}.pth")), "import os").unwrap();
        }
        std::fs::write(folder.path().join("zzz.pth"), "import evil").unwrap();
        let listed = at_start(folder.path()).unwrap();
        assert_eq!(listed.last().map(String::as_str), Some("zzz.pth"));
        std::fs::write(
            folder.path().join("zz.pth"),
            " ".repeat(usize::try_from(PATHS + 1).unwrap()),
        )
        .unwrap();
        let Err(VenvProblem::Misplaced(surplus)) = at_start(folder.path()) else {
            panic!("a list that is too long is cut");
        };
        assert_eq!(surplus.file, "zzz.pth");
    }

    #[test]
    fn code_that_runs_at_every_start_is_found() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.pth", "import os\n"),
            ("b.pth", "# import\nhello\n"),
            ("c.pth", "hello\rimport\tos"),
            ("d.pth", "/tmp/elsewhere\n"),
            ("e.pth", "../../elsewhere\n"),
            ("f.start", ""),
            ("sitecustomize.py", ""),
            ("usercustomize.cpython-311-x86_64-linux-gnu.so", ""),
            ("sitecustomized.py", ""),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(
            at_start(folder.path()).unwrap(),
            [
                "a.pth",
                "c.pth",
                "d.pth",
                "e.pth",
                "f.start",
                "sitecustomize.py",
                "usercustomize.cpython-311-x86_64-linux-gnu.so",
            ]
        );
    }
}
