//! Reads what an npm archive holds, entry by entry, without unpacking it.
//!
//! npm leaves out entries that would lie outside of their package, and says so to nobody. An archive that has one is not
//! what an honest `npm publish` makes, so it is refused by the name of the entry.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::read_budget::{Packed, ReadBudget, Unpacked};

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

/// Visits the entries of a compressed archive until `visit` has found something, within a budget.
///
/// What npm and this reader could take for different entries is an error: a header with a wrong sum, of which npm skips
/// nothing but the header itself, two sizes of one entry, or entries behind the end.
pub(super) fn find<T>(
    archive: impl Read,
    budget: &mut ReadBudget,
    mut visit: impl FnMut(&TarEntry) -> Option<T>,
) -> io::Result<Option<T>> {
    let packed = MultiGzDecoder::new(Packed::new(archive, budget));
    let mut source = Unpacked::new(packed, budget);
    let mut long = LongFields::default();
    let mut header = [0; BLOCK];
    let mut empty_blocks = 0;
    loop {
        match source.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            Err(_end) => return Ok(None),
        }
        if header.iter().all(|byte| *byte == 0) {
            empty_blocks += 1;
            if empty_blocks == 2 {
                return Ok(None);
            }
            continue;
        }
        if empty_blocks > 0 || number(&header[148..156])? != sum(&header) {
            return Err(malformed());
        }
        let size = number(&header[124..136])?;
        let code = header[156];
        if matches!(code, b'x' | b'g' | b'L' | b'K') {
            if size > NAME_LIMIT {
                return Err(malformed());
            }
            let mut text = Vec::new();
            source.by_ref().take(padded(size)).read_to_end(&mut text)?;
            text.truncate(usize::try_from(size).unwrap_or(usize::MAX));
            long.add(code, &text)?;
            continue;
        }
        let fields = std::mem::take(&mut long);
        let target = terminated(&header[157..257]);
        let kind = match code {
            // Words of very old programs, which npm takes for `x` and `L`.
            b'X' | b'N' => return Err(malformed()),
            b'1' => EntryKind::Hard(fields.target.unwrap_or(target)),
            b'2' => EntryKind::Symbolic(fields.target.unwrap_or(target)),
            // npm skips the header alone.
            _ if !target.as_os_str().is_empty() => return Err(malformed()),
            b'3' | b'4' | b'6' => EntryKind::Special,
            _ => EntryKind::Plain,
        };
        let path = fields.path.unwrap_or_else(|| short_path(&header));
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if path.as_os_str().is_empty()
            || fields.size.is_some_and(|named| named != size)
            || (is_folder && code != b'5' && size > 0)
        {
            return Err(malformed());
        }
        if let Some(found) = visit(&TarEntry { path, kind }) {
            return Ok(Some(found));
        }
        // Some programs write the size that a folder has on the disk, and no content.
        if code != b'5' {
            io::copy(&mut source.by_ref().take(padded(size)), &mut io::sink())?;
        }
    }
}

/// What stands before a header because it has no room there.
#[derive(Default)]
struct LongFields {
    path: Option<PathBuf>,
    target: Option<PathBuf>,
    size: Option<u64>,
}

impl LongFields {
    fn add(&mut self, code: u8, text: &[u8]) -> io::Result<()> {
        match code {
            b'L' => self.path = Some(terminated(text)),
            b'K' => self.target = Some(terminated(text)),
            _ => {
                let mut records = pax(text)?;
                let size = records.remove(b"size".as_slice());
                if code == b'g' {
                    // For every entry that follows; its path and target count for none.
                    return if size.is_some() { Err(malformed()) } else { Ok(()) };
                }
                let path = |value: &[u8]| terminated(value);
                self.path = records.remove(b"path".as_slice()).map(path).or(self.path.take());
                self.target = { records.remove(b"linkpath".as_slice()) }
                    .map(path)
                    .or(self.target.take());
                let size = size.map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
                match size {
                    Some(None) => return Err(malformed()),
                    Some(Some(size)) => self.size = Some(size),
                    None => {}
                }
            }
        }
        Ok(())
    }
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// Returns how many bytes a content takes: it ends with its block.
fn padded(size: u64) -> u64 {
    size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64)
}

/// Adds up a header as its own sum does, which counts as blanks.
fn sum(header: &[u8; BLOCK]) -> u64 {
    let bytes = header.iter().enumerate();
    bytes
        .map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte }))
        .sum()
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

/// Reads records `LENGTH KEY=VALUE\n`; npm reads them line by line, so that a value of several lines is none.
fn pax(text: &[u8]) -> io::Result<BTreeMap<&[u8], &[u8]>> {
    let mut records = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (record, after) = first_record(rest).ok_or_else(malformed)?;
        rest = after;
        let equals = record
            .iter()
            .position(|byte| *byte == b'=')
            .ok_or_else(malformed)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        if value.iter().any(|byte| matches!(byte, b'\n' | 0)) || records.insert(key, value).is_some() {
            return Err(malformed());
        }
    }
    Ok(records)
}

/// Cuts off the first record, without its length and its end.
fn first_record(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = text.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&text[..blank]).ok()?.parse().ok()?;
    let record = text.get(blank + 1..length)?;
    Some((record.strip_suffix(b"\n")?, &text[length..]))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    fn packed(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn ample() -> ReadBudget {
        ReadBudget::new(1 << 30, Duration::from_mins(10))
    }

    /// Makes a header with its sum; `change` sees it before.
    fn header(path: &str, code: u8, size: u64, change: impl FnOnce(&mut [u8; BLOCK])) -> [u8; BLOCK] {
        let mut header = [0; BLOCK];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[156] = code;
        change(&mut header);
        let total = format!("{:06o}\0 ", sum(&header));
        header[148..156].copy_from_slice(total.as_bytes());
        header
    }

    fn plain(path: &str, code: u8, size: u64) -> Vec<u8> {
        header(path, code, size, |_| {}).to_vec()
    }

    /// A record of its own length, and what it describes.
    fn records(code: u8, lines: &[&str]) -> Vec<u8> {
        let records = lines.iter().map(|line| {
            // The digits of the length count as well: two of them in all tests.
            format!("{} {line}\n", line.len() + 4)
        });
        let mut text = records.collect::<String>().into_bytes();
        let mut whole = plain("records", code, text.len() as u64);
        text.resize(text.len().next_multiple_of(BLOCK), 0);
        whole.append(&mut text);
        whole
    }

    /// Lists the paths of an archive.
    fn paths(blocks: &[Vec<u8>]) -> io::Result<Vec<String>> {
        let mut paths = Vec::new();
        let found = find(&packed(&blocks.concat())[..], &mut ample(), |entry| {
            paths.push(entry.path.display().to_string());
            None::<()>
        });
        found.map(|_| paths)
    }

    #[test]
    fn broken_archives_are_errors_and_never_endless() {
        let none = |bytes: &[u8]| find(bytes, &mut ample(), |_| None::<()>);
        assert!(none(b"no archive").is_err());
        assert_eq!(none(&packed(&[0; 2048])).unwrap(), None);
        assert_eq!(none(&packed(&[1; 100])).unwrap(), None);
        let long = header("abc", b'L', 0o777_7777_7777, |_| {});
        assert!(none(&packed(&long)).is_err());
    }

    #[test]
    fn every_entry_that_npm_reads_is_visited() {
        let content = vec![b'x'; BLOCK];
        let read = paths(&[
            records(b'g', &["comment=abcdef"]),
            plain("package/a", b'0', 512),
            content.clone(),
            // Some programs write the size of the folder.
            plain("package/b/", b'5', 4096),
            records(b'x', &["path=package/c", "size=512", "uname=some user"]),
            plain("cut", b'0', 512),
            content,
            plain("package/d", 0, 0),
            vec![0; 2 * BLOCK],
            b"npm reads nothing here".to_vec(),
        ]);
        assert_eq!(
            read.unwrap(),
            ["package/a", "package/b/", "package/c", "package/d"]
        );
    }

    #[test]
    fn what_npm_could_read_otherwise_is_an_error() {
        let hidden = plain("package/node_modules/dep/index.js", b'0', 0);
        let mut wrong_sum = plain("package/a", b'0', 512);
        wrong_sum[150] ^= 1;
        for (what, before) in [
            ("npm goes on after one empty block", vec![0; BLOCK]),
            ("npm skips the header alone", wrong_sum),
            ("npm skips the header alone", plain("", b'0', 512)),
            (
                "npm skips the header alone",
                header("package/a", b'0', 512, |header| header[157] = b'x').to_vec(),
            ),
            ("npm takes it for a folder", plain("package/a/", b'0', 512)),
            (
                "npm takes the other size",
                [records(b'x', &["size=0000"]), plain("package/a", b'0', 512)].concat(),
            ),
            ("npm takes it for all that follow", records(b'g', &["size=0000"])),
            (
                "npm takes the last one",
                [
                    records(b'x', &["path=package/x", "path=package/y"]),
                    plain("package/a", b'0', 0),
                ]
                .concat(),
            ),
            (
                "npm reads line by line",
                [
                    records(b'x', &["comment=1\n18 path=package/y"]),
                    plain("package/a", b'0', 0),
                ]
                .concat(),
            ),
            ("npm takes it for a path", plain("package/a", b'N', 512)),
            ("npm takes it for records", plain("package/a", b'X', 512)),
        ] {
            let read = paths(&[before, hidden.clone(), vec![0; 2 * BLOCK]]);
            let kind = read.as_ref().map_err(io::Error::kind);
            assert_eq!(kind, Err(io::ErrorKind::InvalidData), "{what}: {read:?}");
        }
    }

    #[test]
    fn reading_ends_with_its_budget_of_bytes() {
        let bomb = packed(&[plain("package/zeros", b'0', 1 << 20), vec![0; 1 << 20]].concat());
        assert!(bomb.len() < 20_000);
        let read = |bytes| {
            let mut budget = ReadBudget::new(bytes, Duration::from_mins(10));
            find(&bomb[..], &mut budget, |_| None::<()>).map_err(|error| error.kind())
        };
        assert_eq!(read((1 << 20) - 1), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(read(2 << 20), Ok(None));
    }

    #[test]
    fn reading_ends_with_its_time_also_where_nothing_is_unpacked() {
        /// Compressed pieces without content, for ever.
        struct Nothing(io::Cursor<Vec<u8>>);

        impl Read for Nothing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if self.0.position() == self.0.get_ref().len() as u64 {
                    self.0.set_position(0);
                }
                self.0.read(buffer)
            }
        }

        let mut budget = ReadBudget::new(1, Duration::from_millis(50));
        let nothing = Nothing(io::Cursor::new(packed(b"")));
        let read = find(nothing, &mut budget, |_| None::<()>);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // What many archives take together counts, too.
        let read = find(&packed(&[0; BLOCK])[..], &mut budget, |_| None::<()>);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
