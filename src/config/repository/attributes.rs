//! Attributes by which git writes other bytes into a working tree than it keeps: `ident`, `filter` and
//! `working-tree-encoding`. A repository brings the file that asks for them. Line ends are compared elsewhere.
//!
//! Whether a line of such a file is about this one is not worked out: that a file may apply is enough to ask a person.

use std::path::Path;

use super::{REPOSITORY, git_directory, root_of, small_file};

/// The attributes by which what is written differs from what is kept.
const CONVERTING: [&str; 3] = ["ident", "filter", "working-tree-encoding"];

/// Tells whether git may have written a file otherwise than it keeps it.
pub(super) fn may_apply(file: &Path) -> bool {
    let Some(root) = root_of(file) else {
        return false;
    };
    let beside = file
        .ancestors()
        .skip(1)
        .take_while(|directory| directory.starts_with(&root));
    let tracked = beside.map(|directory| directory.join(".gitattributes"));
    let own = git_directory(&root).join("info/attributes");
    let own_of_worktree = root.join(REPOSITORY).join("info/attributes");
    tracked
        .chain([own, own_of_worktree])
        .any(|attributes| converts(&attributes))
}

fn converts(attributes: &Path) -> bool {
    match attributes.symlink_metadata() {
        Err(error) => {
            error.kind() != std::io::ErrorKind::NotFound && error.kind() != std::io::ErrorKind::NotADirectory
        }
        // One that cannot be read says nothing, and git may read it.
        Ok(_) => small_file(attributes).is_none_or(|text| text.lines().any(is_converting)),
    }
}

fn is_converting(line: &str) -> bool {
    let line = line.trim_start();
    // What a macro stands for is not worked out.
    let is_macro = line.starts_with("[attr]");
    is_macro
        || !line.starts_with('#')
            && line.split_whitespace().skip(1).any(|attribute| {
                let name = attribute.split('=').next().unwrap_or_default();
                CONVERTING.contains(&name)
            })
}

/// Returns a text with `$Id$` in place of what git writes for it.
pub(super) fn without_ident(text: &[u8]) -> Vec<u8> {
    const START: &[u8] = b"$Id:";
    let mut kept = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, START) {
        let value = &rest[at + START.len()..];
        let end = memchr::memchr2(b'$', b'\n', value).filter(|end| value[*end] == b'$');
        kept.extend_from_slice(&rest[..at]);
        if let Some(end) = end {
            kept.extend_from_slice(b"$Id$");
            rest = &value[end + 1..];
        } else {
            kept.extend_from_slice(START);
            rest = value;
        }
    }
    kept.extend_from_slice(rest);
    kept
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
mod tests {
    use super::*;

    #[test]
    fn what_git_writes_for_an_id_is_taken_out() {
        let text = |text: &str| String::from_utf8(without_ident(text.as_bytes())).unwrap();
        assert_eq!(text("// $Id: 0123abc $ $Id$ x"), "// $Id$ $Id$ x");
        assert_eq!(text("$Id: a\n$Id: b$"), "$Id: a\n$Id$");
        assert_eq!(text("{}"), "{}");
    }

    #[test]
    fn attributes_that_convert_are_found_up_to_the_root_and_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a/b/.pml.json");
        std::fs::create_dir_all(root.path().join(".git/info")).unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert!(!may_apply(&file));
        for (place, line, expected) in [
            (
                "a/.gitattributes",
                "*.png binary\n# * ident\n*.md linguist-documentation",
                false,
            ),
            ("a/.gitattributes", "x y\n.pml.json ident", true),
            (".gitattributes", "* filter=lfs", true),
            (".gitattributes", "[attr]mine -foo", true),
            (".git/info/attributes", "* working-tree-encoding=UTF-16", true),
            (".gitattributes", "* text=auto eol=crlf", false),
        ] {
            let path = root.path().join(place);
            std::fs::write(&path, line).unwrap();
            assert_eq!(may_apply(&file), expected, "{place}: {line}");
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::create_dir(root.path().join(".gitattributes")).unwrap();
        assert!(may_apply(&file), "what cannot be read may apply");
    }
}
