use std::path::Path;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::chain::Link;
use super::chain::ReadLine;
use super::parts::{self, PART_AGE_MS};
use super::*;

const NOON: i64 = 1_763_463_600_000;

fn refusal(text: &str) -> Record {
    Record::Refusal {
        tool: Text::of(text),
        rule: Text::of("*"),
        unrecorded: 0,
    }
}

#[test]
fn what_a_record_says_of_a_change_is_not_taken_for_what_the_chain_says() {
    let directory = tempfile::tempdir().unwrap();
    let digest = || crate::protocol::Digest::of(["x"]);
    let change = Some(ChangedContent {
        of: crate::protocol::approval::ChangedPart::Tools,
        content: digest(),
    });
    let answered = Record::Answer {
        id: Text::of("1"),
        kind: "integrity",
        tool: Text::of("a:b"),
        launch: digest(),
        change,
        answer: AnswerShape::Once,
        by: Text::of("cli"),
    };
    let lapsed = Record::Lapse {
        id: Text::of("1"),
        why: LapseReason::Expired,
    };
    append(directory.path(), NOON, &[answered, lapsed]).unwrap();
    append(directory.path(), NOON, &[refusal("a:b")]).unwrap();
    let verdict = verify(directory.path()).unwrap();
    assert!(verdict.is_intact(), "{verdict:?}");
    assert_eq!(verdict.lines, 4);
}

fn filled(directory: &Path, lines: usize) {
    for at in 0..lines {
        append(directory, NOON, &[refusal(&at.to_string())]).unwrap();
    }
}

fn first_part(directory: &Path) -> std::path::PathBuf {
    parts::path_of(directory, 1)
}

fn text_of(directory: &Path) -> String {
    std::fs::read_to_string(first_part(directory)).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "what an intruder would do")]
fn put(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::write(path, text).unwrap();
}

/// How a line is tampered with.
#[derive(Debug, Clone)]
enum Change {
    Remove(usize),
    Edit(usize, usize),
    Swap(usize, usize),
    Repeat(usize),
    CutOff(usize, usize),
    End(usize),
}

impl Change {
    /// Changes lines; returns the numbers, from 1, of the first and the last line that it is about.
    fn make(&self, lines: &mut Vec<String>) -> Option<(usize, usize)> {
        let count = lines.len();
        match *self {
            Self::Remove(at) => {
                lines.remove(at % count);
                Some((at % count, at % count + 1))
            }
            Self::Edit(at, byte) => {
                let line = &mut lines[at % count];
                let byte = byte % line.len();
                let other = if &line[byte..=byte] == "7" { "8" } else { "7" };
                line.replace_range(byte..=byte, other);
                // Where its own hash of the line before was edited, that line is named.
                Some((at % count, at % count + 1))
            }
            Self::Swap(one, other) => {
                let (one, other) = (one % count, other % count);
                lines.swap(one, other);
                (one != other).then_some((one.min(other) + 1, one.max(other) + 1))
            }
            Self::Repeat(at) => {
                let line = lines[at % count].clone();
                lines.insert(at % count, line);
                Some((at % count + 1, at % count + 2))
            }
            Self::CutOff(at, keep) => {
                let line = &mut lines[at % count];
                line.truncate(keep % line.len());
                Some((at % count + 1, at % count + 1))
            }
            Self::End(keep) => {
                lines.truncate(keep % count);
                Some((keep % count, keep % count))
            }
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let at = || 0..1000_usize;
    prop_oneof![
        at().prop_map(Change::Remove),
        (at(), at()).prop_map(|(at, byte)| Change::Edit(at, byte)),
        (at(), at()).prop_map(|(one, other)| Change::Swap(one, other)),
        at().prop_map(Change::Repeat),
        (at(), at()).prop_map(|(at, keep)| Change::CutOff(at, keep)),
        at().prop_map(Change::End),
    ]
}

fn verdict(head: Head, text: &str) -> Verdict {
    let mut verifier = Verifier::new(head);
    if !text.is_empty() {
        verifier.part(1, "part", text.as_bytes());
    }
    verifier.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_is_done_to_a_line_is_found_at_that_line(count in 2..40_usize, change in change()) {
        let mut lines = chain::Lines::after(Link::start());
        lines.push(NOON, &chain::ChainEvent::Part { part: 1 }).unwrap();
        for at in 1..count {
            lines.push(NOON, &refusal(&at.to_string())).unwrap();
        }
        let head = Head::At(lines.end);
        let text = String::from_utf8(lines.bytes).unwrap();
        prop_assert!(verdict(head.clone(), &text).is_intact());

        let mut changed: Vec<String> = text.lines().map(str::to_owned).collect();
        let about = change.make(&mut changed);
        let changed: String = changed.into_iter().map(|line| line + "\n").collect();
        let found = verdict(head, &changed);
        match about {
            None => prop_assert!(found.is_intact()),
            Some((first, last)) => {
                let fault = found.faults.first();
                prop_assert!(fault.is_some(), "{change:?} of {count} is not found");
                let line = fault.unwrap().line;
                prop_assert!(
                    (first..=last).contains(&line),
                    "{change:?} of {count}: {:?}, not in {first}..={last}", found.faults
                );
            }
        }
    }
}

#[test]
fn a_first_line_that_claims_another_number_is_named_before_what_follows_from_it() {
    let mut lines = chain::Lines::after(Link::start());
    lines.push(NOON, &chain::ChainEvent::Part { part: 1 }).unwrap();
    for at in 1..14 {
        lines.push(NOON, &refusal(&at.to_string())).unwrap();
    }
    let head = Head::At(lines.end);
    let text = String::from_utf8(lines.bytes).unwrap();
    let found = verdict(head, &text.replacen(r#"{"n":1,"#, r#"{"n":7,"#, 1));
    assert_eq!(found.faults[0].line, 1, "{:?}", found.faults);
}

#[test]
fn a_line_names_the_hash_of_the_one_before() {
    let root = tempfile::tempdir().unwrap();
    filled(root.path(), 2);
    let text = text_of(root.path());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with(&format!(
        r#"{{"n":1,"at":{NOON},"prev":"{}","event":"part","part":1}}"#,
        "0".repeat(64)
    )));
    assert_eq!(
        ReadLine::of(lines[2].as_bytes()).unwrap().prev,
        hash(lines[1].as_bytes())
    );
    assert_eq!(
        hash(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    let expected = Verdict {
        parts: 1,
        lines: 3,
        ..Verdict::default()
    };
    assert_eq!(verify(root.path()).unwrap(), expected);
}

#[test]
fn every_file_is_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("history");
    filled(&directory, 1);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_line_that_a_crash_cut_off_is_closed_by_the_next_writer_and_kept() {
    for fragment in ["{\"n\":4,\"at", "x", "{}"] {
        let root = tempfile::tempdir().unwrap();
        filled(root.path(), 2);
        let text = text_of(root.path());
        put(&first_part(root.path()), format!("{text}{fragment}"));
        let torn = verify(root.path()).unwrap();
        assert!(torn.is_intact() && torn.notes[0].line == 4, "{torn:?}");
        filled(root.path(), 2);
        let closed = verify(root.path()).unwrap();
        assert!(closed.is_intact(), "{closed:?}");
        assert_eq!((closed.notes.len(), closed.notes[0].line), (1, 4), "{closed:?}");
        assert!(text_of(root.path()).contains(&format!("\n{fragment}\n")));
        // The fragment is part of the chain.
        put(
            &first_part(root.path()),
            text_of(root.path()).replace(&format!("\n{fragment}\n"), "\n"),
        );
        assert!(!verify(root.path()).unwrap().is_intact());
    }
}

#[test]
fn a_writer_that_finds_lines_gone_says_so_in_a_line_that_stays_a_fault() {
    let cut: fn(&Path) = |directory| {
        let text = text_of(directory);
        let lines: Vec<&str> = text.lines().collect();
        put(&first_part(directory), lines[..3].join("\n") + "\n");
    };
    let gone: fn(&Path) = |directory| std::fs::remove_file(first_part(directory)).unwrap();
    let headless: fn(&Path) = |directory| std::fs::remove_file(directory.join("head")).unwrap();
    let broken: fn(&Path) = |directory| put(&directory.join("head"), "x");
    let garbled: fn(&Path) = |directory| put(&first_part(directory), text_of(directory) + "garbage\n");
    for tamper in [cut, gone, headless, broken, garbled] {
        let root = tempfile::tempdir().unwrap();
        filled(root.path(), 4);
        tamper(root.path());
        let before = verify(root.path()).unwrap();
        assert!(!before.is_intact());
        filled(root.path(), 2);
        let after = verify(root.path()).unwrap();
        assert!(!after.is_intact(), "{before:?}");
        let text = text_of(root.path());
        assert!(text.contains(r#""event":"lost""#), "{text}");
        // What is recorded from then on is sound.
        assert!(
            after.faults.iter().all(|fault| fault.line < text.lines().count()),
            "{after:?}"
        );
    }
}

#[test]
fn writers_that_come_at_once_write_one_after_the_other() {
    let root = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| filled(root.path(), 25));
        }
    });
    let verdict = verify(root.path()).unwrap();
    assert!(verdict.is_intact() && verdict.lines == 201, "{verdict:?}");
}

#[test]
fn a_head_that_a_crash_left_behind_is_no_fault() {
    let root = tempfile::tempdir().unwrap();
    filled(root.path(), 2);
    let head = std::fs::read(root.path().join("head")).unwrap();
    filled(root.path(), 1);
    put(&root.path().join("head"), head);
    assert!(verify(root.path()).unwrap().is_intact());
    filled(root.path(), 1);
    let verdict = verify(root.path()).unwrap();
    assert!(verdict.is_intact() && verdict.notes.is_empty(), "{verdict:?}");
}

/// Fills parts quickly: each append is some hundred kilobytes.
fn flood(directory: &Path, bytes: u64) {
    let records = vec![refusal(&"x".repeat(500)); 4000];
    let one: u64 = 4000 * 650;
    for _ in 0..=bytes / one {
        append(directory, NOON, &records).unwrap();
    }
}

#[test]
fn the_history_stays_within_its_bound_and_says_what_it_gave_up() {
    let root = tempfile::tempdir().unwrap();
    flood(root.path(), TOTAL_BYTES + 2 * PART_BYTES);
    let kept = parts::list(root.path()).unwrap();
    let bytes: u64 = kept.iter().map(|part| part.bytes).sum();
    // A part ends after the append that filled it.
    assert!(bytes <= TOTAL_BYTES + 3_000_000, "{bytes}");
    assert!(kept[0].number > 1 && kept.len() > 4, "{kept:?}");
    let verdict = verify(root.path()).unwrap();
    assert!(verdict.is_intact(), "{verdict:?}");
    assert!(verdict.notes[0].what.contains("were pruned"), "{verdict:?}");
    // Another part that goes without a word is found.
    std::fs::remove_file(&kept[0].path).unwrap();
    let verdict = verify(root.path()).unwrap();
    assert!(verdict.faults[0].what.contains("no line says"), "{verdict:?}");
}

#[test]
fn pruning_removes_whole_old_parts_and_what_is_left_says_so() {
    let root = tempfile::tempdir().unwrap();
    let days = |days: i64| NOON + days * 24 * 60 * 60 * 1000;
    for day in [0, 1, 31, 62, 93] {
        append(root.path(), days(day), &[refusal(&day.to_string())]).unwrap();
    }
    assert_eq!(parts::list(root.path()).unwrap().len(), 4);
    assert_eq!(prune(root.path(), days(93), days(0)).unwrap(), Pruned::default());
    assert_eq!(
        prune(root.path(), days(93), days(40)).unwrap(),
        Pruned { parts: 2, lines: 5 }
    );
    let verdict = verify(root.path()).unwrap();
    assert!(verdict.is_intact(), "{verdict:?}");
    assert_eq!(verdict.notes[0].what, "the 5 lines before it were pruned");
    // All of it is old: what is left says what was removed.
    assert_eq!(prune(root.path(), days(300), days(200)).unwrap().parts, 2);
    let verdict = verify(root.path()).unwrap();
    assert!(verdict.is_intact() && verdict.parts == 1, "{verdict:?}");
    append(root.path(), days(300) + PART_AGE_MS, &[refusal("x")]).unwrap();
    assert!(verify(root.path()).unwrap().is_intact());
}

#[test]
fn a_crash_between_the_word_and_the_removal_leaves_an_intact_history() {
    let root = tempfile::tempdir().unwrap();
    for part in 0..4 {
        append(root.path(), NOON + part * PART_AGE_MS, &[refusal("x")]).unwrap();
    }
    let kept: Vec<_> = (2..=3)
        .map(|number| {
            let path = parts::path_of(root.path(), number);
            (path.clone(), std::fs::read(path).unwrap())
        })
        .collect();
    let now = NOON + 3 * PART_AGE_MS;
    assert_eq!(prune(root.path(), now, now).unwrap().parts, 3);
    // The last two removals did not happen.
    for (path, text) in &kept {
        put(path, text);
    }
    let verdict = verify(root.path()).unwrap();
    assert!(verdict.is_intact(), "{verdict:?}");
    assert_eq!(prune(root.path(), now, now).unwrap().parts, 2);
    assert!(verify(root.path()).unwrap().is_intact());
}

#[test]
fn a_text_is_escaped_and_bounded() {
    let shown = |text: &str| serde_json::to_value(Text::of(text)).unwrap();
    assert_eq!(shown("a\nb\u{202e}"), "a\\nb\\u{202e}");
    let long = shown(&"\u{202e}".repeat(100_000));
    assert_eq!(long.as_str().unwrap().chars().count(), 512);
    assert!(long.as_str().unwrap().ends_with('…'));
}

#[test]
fn every_kind_of_event_reads_back_as_intact() {
    let digest = crate::protocol::Digest::of(["x"]);
    let (server, by) = (Text::of("s"), Text::of("cli"));
    let mut lines = chain::Lines::after(Link::start());
    lines.push(NOON, &chain::ChainEvent::Part { part: 1 }).unwrap();
    for of in ["server", "scripts"] {
        let record = Record::Accept {
            server: server.clone(),
            of,
            content: digest.clone(),
            by: by.clone(),
        };
        lines.push(NOON, &record).unwrap();
    }
    let record = Record::Forget {
        server,
        approvals: 1,
        accepted: true,
        by,
    };
    lines.push(NOON, &record).unwrap();
    let text = String::from_utf8(lines.bytes).unwrap();
    assert!(verdict(Head::At(lines.end), &text).is_intact());
}
