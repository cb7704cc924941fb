//! Reads what an npm archive holds, entry by entry, without unpacking it.
//!
//! npm leaves out entries that would lie outside of their package, and says so to nobody. An archive that has one is not
//! what an honest `npm publish` makes, so it is refused by the name of the entry.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;

const BLOCK: usize = 512;

/// The longest name that is read: systems take 4 KiB, a header that is longer is there to fill memory.
const NAME_LIMIT: u64 = 64 * 1024;

/// One entry of an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TarEntry {
    pub(super) path: PathBuf,
    kind: EntryKind,
}

#[derive(Debug, PartialEq, Eq)]
enum EntryKind {
    /// A file or a directory.
    Plain,
    /// A link, and where it leads, from the folder of the entry.
    Symbolic(PathBuf),
    /// A second name of a file, by its path in the archive.
    Hard(PathBuf),
    Special,
}

impl TarEntry {
    /// Says what is wrong with an entry, in words that follow "which".
    pub(super) fn fault(&self) -> Option<&'static str> {
        if self.path.is_absolute() {
            return Some("is an absolute path");
        }
        if depth(&self.path).is_none() {
            return Some("leads out of the package");
        }
        let leads_out = match &self.kind {
            EntryKind::Plain => false,
            EntryKind::Special => return Some("is a device or a pipe"),
            // Below `package/`, which is left away.
            EntryKind::Symbolic(target) => {
                let from = self.path.parent().unwrap_or(Path::new(""));
                target.is_absolute() || depth(&from.join(target)).is_none_or(|depth| depth == 0)
            }
            EntryKind::Hard(target) => target.is_absolute() || depth(target).is_none_or(|depth| depth == 0),
        };
        if leads_out {
            return Some("is a link that leads out of the package");
        }
        let inner = self.inner()?.to_str()?;
        (inner != "package.json" && inner.eq_ignore_ascii_case("package.json"))
            .then_some("is `package.json` on some disks and not on others")
    }

    /// Returns the path below the folder that every entry of an archive lies in.
    fn inner(&self) -> Option<&Path> {
        let mut components = self.path.components();
        components.next()?;
        Some(components.as_path())
    }

    /// Returns the package that the entry is of, where it lies in a `node_modules` of the archive.
    pub(super) fn inner_package(&self) -> Option<String> {
        let mut parts = self.inner()?.strip_prefix("node_modules").ok()?.iter();
        let first = parts.next()?.to_str()?;
        let name = if first.starts_with('@') {
            format!("{first}/{}", parts.next()?.to_str()?)
        } else {
            first.to_owned()
        };
        (!name.starts_with('.')).then_some(name)
    }
}

/// Returns how far below its start a path ends; nothing if it leaves that on the way.
fn depth(path: &Path) -> Option<usize> {
    path.components()
        .try_fold(0_usize, |depth, component| match component {
            Component::Normal(_) => Some(depth + 1),
            Component::CurDir => Some(depth),
            Component::ParentDir => depth.checked_sub(1),
            Component::RootDir | Component::Prefix(_) => None,
        })
}

/// Visits the entries of a compressed archive until `visit` has found something.
pub(super) fn find<T>(
    archive: impl Read,
    mut visit: impl FnMut(&TarEntry) -> Option<T>,
) -> io::Result<Option<T>> {
    let mut source = MultiGzDecoder::new(archive);
    let (mut long_path, mut long_target) = (None, None);
    let mut header = [0; BLOCK];
    loop {
        match source.read_exact(&mut header) {
            Ok(()) if header.iter().any(|byte| *byte != 0) => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => return Ok(None),
        }
        let size = number(&header[124..136])?;
        let padded = size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64);
        let kind = header[156];
        if matches!(kind, b'x' | b'L' | b'K') {
            if size > NAME_LIMIT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut text = Vec::new();
            source.by_ref().take(padded).read_to_end(&mut text)?;
            text.truncate(usize::try_from(size).unwrap_or(usize::MAX));
            match kind {
                b'L' => long_path = Some(terminated(&text)),
                b'K' => long_target = Some(terminated(&text)),
                _ => {
                    long_path = pax(&text, b"path").or(long_path);
                    long_target = pax(&text, b"linkpath").or(long_target);
                }
            }
            continue;
        }
        let target = long_target
            .take()
            .unwrap_or_else(|| terminated(&header[157..257]));
        let path = long_path.take().unwrap_or_else(|| short_path(&header));
        let kind = match kind {
            b'g' => None,
            b'1' => Some(EntryKind::Hard(target)),
            b'2' => Some(EntryKind::Symbolic(target)),
            b'3' | b'4' | b'6' => Some(EntryKind::Special),
            _ => Some(EntryKind::Plain),
        };
        if let Some(kind) = kind
            && let Some(found) = visit(&TarEntry { path, kind })
        {
            return Ok(Some(found));
        }
        io::copy(&mut source.by_ref().take(padded), &mut io::sink())?;
    }
}

/// Reads a number: octal, or binary where the first bit is set.
fn number(field: &[u8]) -> io::Result<u64> {
    if field[0] & 0x80 != 0 {
        return Ok(field[4..]
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)));
    }
    let text = String::from_utf8_lossy(field);
    let digits = text.trim_matches([' ', '\0']);
    if digits.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(digits, 8).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Takes the bytes before the first zero for a path.
fn terminated(field: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::ffi::OsStr::from_bytes(&field[..end]).into()
}

fn short_path(header: &[u8; BLOCK]) -> PathBuf {
    let name = terminated(&header[..100]);
    // The prefix is part of the format that calls itself `ustar`.
    if header.get(257..263) == Some(b"ustar\0".as_slice()) && header[345] != 0 {
        return terminated(&header[345..500]).join(name);
    }
    name
}

/// Finds a record `LENGTH KEY=VALUE\n`.
fn pax(text: &[u8], key: &[u8]) -> Option<PathBuf> {
    let mut rest = text;
    while !rest.is_empty() {
        let blank = rest.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&rest[..blank]).ok()?.parse().ok()?;
        let record = rest.get(blank + 1..length.checked_sub(1)?)?;
        if let Some(value) = record
            .strip_prefix(key)
            .and_then(|value| value.strip_prefix(b"="))
        {
            return Some(terminated(value));
        }
        rest = rest.get(length..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: EntryKind) -> TarEntry {
        TarEntry {
            path: path.into(),
            kind,
        }
    }

    #[test]
    fn what_stays_in_its_package_has_no_fault() {
        for good in [
            entry("package/package.json", EntryKind::Plain),
            entry("./package/lib/../x", EntryKind::Plain),
            entry("package/fixtures/Package.json", EntryKind::Plain),
            entry("package/lib/link", EntryKind::Symbolic("../x".into())),
            entry("package/hard", EntryKind::Hard("package/x".into())),
        ] {
            assert_eq!(good.fault(), None, "{good:?}");
        }
        let outside = Some("is a link that leads out of the package");
        for (bad, fault) in [
            (
                entry("package/../../x", EntryKind::Plain),
                Some("leads out of the package"),
            ),
            (entry("/x", EntryKind::Plain), Some("is an absolute path")),
            (
                entry("package/f", EntryKind::Special),
                Some("is a device or a pipe"),
            ),
            (entry("package/l", EntryKind::Symbolic("..".into())), outside),
            (entry("package/l", EntryKind::Symbolic("/x".into())), outside),
            (entry("package/h", EntryKind::Hard("/etc/passwd".into())), outside),
            (entry("package/h", EntryKind::Hard("../x".into())), outside),
        ] {
            assert_eq!(bad.fault(), fault, "{bad:?}");
        }
        let other = entry("package/PACKAGE.json", EntryKind::Plain);
        assert!(other.fault().is_some());
    }

    #[test]
    fn a_package_in_the_archive_of_another_is_named() {
        let named = |path: &str| entry(path, EntryKind::Plain).inner_package();
        assert_eq!(named("package/node_modules/a/x.js").as_deref(), Some("a"));
        assert_eq!(named("package/node_modules/@a/b/x.js").as_deref(), Some("@a/b"));
        assert_eq!(named("package/node_modules/.bin/x"), None);
        assert_eq!(named("package/test/node_modules/a/x.js"), None);
    }

    #[test]
    fn broken_archives_are_errors_and_never_endless() {
        let packed = |bytes: &[u8]| {
            use std::io::Write as _;
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        };
        let none = |bytes: &[u8]| find(bytes, |_| None::<()>);
        assert!(none(b"no archive").is_err());
        assert_eq!(none(&packed(&[0; 2048])).unwrap(), None);
        assert_eq!(none(&packed(&[1; 100])).unwrap(), None);
        let mut long = [0; BLOCK];
        long[..3].copy_from_slice(b"abc");
        long[124..135].copy_from_slice(b"77777777777");
        long[156] = b'L';
        assert!(none(&packed(&long)).is_err());
    }
}
