//! What a process of pml keeps mapped while it has nothing to do.
//!
//! A start runs through much more code than waiting does, and the kernel maps sixteen pages around each one that is
//! touched: of an idle pml, four fifths were program text that would not run again. The text is clean and stands in the
//! file, so its pages are handed back when the process becomes idle; those that do run again come back one fault each,
//! without a read from the disk.

use std::ops::Range;

/// Hands back the pages of the program's own text. Where that is not possible nothing happens.
pub(crate) fn release_program_text() {
    let Ok(mappings) = std::fs::read_to_string("/proc/self/smaps") else {
        return;
    };
    let own_code = release_program_text as *const () as usize;
    if let Some(range) = clean_text(&mappings, own_code) {
        hand_back(&range);
    }
}

/// Finds the executable mapping that holds an address, if none of its pages differs from the file.
///
/// A debugger writes its breakpoints into the text: such a page is the process's own and must stay.
fn clean_text(mappings: &str, address: usize) -> Option<Range<usize>> {
    let mut lines = mappings.lines();
    let range = lines.find_map(|line| {
        let range = executable_range(line)?;
        range.contains(&address).then_some(range)
    })?;
    let own_pages = lines.find_map(|line| line.strip_prefix("Anonymous:"))?;
    (own_pages.split_ascii_whitespace().next()? == "0").then_some(range)
}

/// Reads the first line of a mapping that can be run and not written: `5581a000-5582b000 r-xp …`.
fn executable_range(line: &str) -> Option<Range<usize>> {
    let (range, rest) = line.split_once(' ')?;
    if !rest.starts_with("r-xp ") {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface gives pages of the program back")]
fn hand_back(range: &Range<usize>) {
    use rustix::mm::{Advice, madvise};
    let start = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the range is a private mapping of this program's file that cannot be written, and the kernel says that
    // all of its pages are those of the file. Dropped pages read the same bytes from that file when they are touched
    // again; the kernel lets nobody write to or shorten the file of a program that runs.
    let _ = unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) };
}

#[cfg(not(target_os = "linux"))]
fn hand_back(_range: &Range<usize>) {}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPINGS: &str = "\
1000-2000 r--p 00000000 08:01 7 /usr/bin/pml
Anonymous:             0 kB
2000-8000 r-xp 00001000 08:01 7 /usr/bin/pml
Size:                 24 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
9000-a000 rw-p 00007000 08:01 7 /usr/bin/pml
Anonymous:             4 kB
";

    #[test]
    fn the_mapping_of_the_code_is_found_by_an_address_in_it() {
        assert_eq!(clean_text(MAPPINGS, 0x2fff), Some(0x2000..0x8000));
        for elsewhere in [0x1fff, 0x8000, 0x9800] {
            assert_eq!(clean_text(MAPPINGS, elsewhere), None);
        }
    }

    #[test]
    fn a_text_with_a_page_of_its_own_stays() {
        let with_breakpoint = MAPPINGS.replace("0 kB\nVmFlags", "4 kB\nVmFlags");
        assert_eq!(clean_text(&with_breakpoint, 0x2fff), None);
        assert_eq!(clean_text("2000-8000 r-xp 0 08:01 7 pml\n", 0x2fff), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn code_runs_on_after_its_pages_were_handed_back() {
        let resident = || {
            let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let own_code = release_program_text as *const () as usize;
            let range = clean_text(&mappings, own_code).unwrap();
            let start = format!("{:x}-", range.start);
            let text = mappings.split_once(&start).unwrap().1;
            let size = text.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
            size.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let before = resident();
        release_program_text();
        let after = resident();
        assert!(after < before, "{after} kB of {before} kB are still mapped");
    }
}
