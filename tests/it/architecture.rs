//! The direction of dependence and the size of files, read from the source itself.

mod cycles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The picture: what each folder under `src/` may use besides itself. `ARCHITECTURE.md` draws it.
const PICTURE: [(&str, &[&str]); 22] = [
    ("main", &["cli"]),
    (
        "cli",
        &[
            "stdio",
            "inbox",
            "host",
            "clients",
            "channels",
            "proxy",
            "card",
            "permissions",
            "workflow",
            "loader",
            "config",
            "pins",
            "protocol",
            "disk",
            "history",
            "report",
        ],
    ),
    (
        "stdio",
        &[
            "proxy",
            "card",
            "wire",
            "config",
            "protocol",
            "report",
            "footprint",
        ],
    ),
    (
        "inbox",
        &[
            "host", "proxy", "card", "workflow", "config", "protocol", "disk", "report",
        ],
    ),
    (
        "host",
        &[
            "proxy", "card", "workflow", "wire", "config", "protocol", "disk", "report",
        ],
    ),
    (
        "proxy",
        &[
            "card",
            "permissions",
            "workflow",
            "loader",
            "relay",
            "config",
            "pins",
            "protocol",
            "disk",
            "history",
            "report",
        ],
    ),
    ("card", &["workflow", "protocol"]),
    (
        "permissions",
        &["config", "pins", "protocol", "wire", "disk", "history", "report"],
    ),
    (
        "workflow",
        &["config", "protocol", "wire", "disk", "history", "report"],
    ),
    (
        "loader",
        &[
            "config",
            "pins",
            "protocol",
            "wire",
            "disk",
            "history",
            "report",
            "footprint",
            "http_client",
        ],
    ),
    // What others wrote: nothing of it is planned or judged here.
    ("clients", &["config", "protocol", "disk", "report"]),
    (
        "channels",
        &[
            "proxy",
            "card",
            "workflow",
            "config",
            "protocol",
            "disk",
            "report",
            "http_client",
        ],
    ),
    // Servers and chat services are reached in the same way.
    ("http_client", &["config", "protocol"]),
    // A host is no server: it is spoken to over HTTP, but nothing is planned, approved or started for it.
    ("relay", &["config", "protocol", "report"]),
    ("wire", &["protocol"]),
    ("config", &["protocol", "disk", "report"]),
    // Errors that name a path show it as protocol does.
    ("disk", &["protocol", "report"]),
    // Whether a record is required stands in the user's file.
    ("history", &["config", "protocol", "disk", "report"]),
    // A lock is written as a configuration is.
    ("pins", &["config", "protocol", "disk", "report"]),
    ("protocol", &[]),
    ("report", &[]),
    ("footprint", &[]),
];

/// Longer files hold more than one idea; tests apart.
const LINES: usize = 400;

/// Files that are too long and wait to be split; whoever splits one takes it from this list, and none is added.
const STILL_LONG: [&str; 0] = [];

#[test]
fn no_folder_uses_what_the_picture_does_not_show() {
    let picture: BTreeMap<&str, &[&str]> = PICTURE.into_iter().collect();
    let mut edges = BTreeSet::new();
    let mut forbidden = Vec::new();
    for file in sources() {
        if file.path == Path::new("lib.rs") {
            // The map of the crate: declares every module and uses none.
            continue;
        }
        let from = file.folder();
        let Some(allowed) = picture.get(from.as_str()) else {
            forbidden.push(format!("src/{}: not in the picture", file.path.display()));
            continue;
        };
        for (line, to) in uses(&file.text, file.depth()) {
            if to != from && !allowed.contains(&to.as_str()) {
                forbidden.push(format!("src/{}:{line}: {from} -> {to}", file.path.display()));
            }
            edges.insert((from.clone(), to));
        }
    }
    assert!(
        forbidden.is_empty(),
        "edges that are not in the picture:\n{}",
        forbidden.join("\n")
    );
    // A reader that finds nothing would forbid nothing.
    for (from, to) in [("main", "cli"), ("cli", "proxy"), ("proxy", "loader")] {
        assert!(
            edges.contains(&(from.to_owned(), to.to_owned())),
            "{from} -> {to} is not found: {edges:?}"
        );
    }
}

#[test]
fn every_way_to_name_a_module_is_seen() {
    let source = "\
use crate::loader::Reply;
// crate::comments::do_not_count
/// Nor does [`crate::documentation`].
use crate::{
    config::{self, Files}, report,
    workflow::Keeper,
};
fn run() -> pml::proxy::Outcome { crate::wire::open(\"crate::text\") }
mod tests { use super::super::stdio::serve; use super::near; }
";
    let found: Vec<(usize, String)> = uses(source, 2);
    let expected = [
        (1, "loader"),
        (4, "config"),
        (4, "report"),
        (4, "workflow"),
        (8, "proxy"),
        (8, "wire"),
        (9, "stdio"),
    ];
    assert_eq!(found, expected.map(|(line, to)| (line, to.to_owned())));
}

#[test]
fn every_record_of_the_history_is_in_the_table() {
    let read =
        |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let (records, table) = (read("src/history/record.rs"), read("ARCHITECTURE.md"));
    let (_, records) = records.split_once("pub enum Record {\n").unwrap();
    let (records, _) = records.split_once("\n}\n").unwrap();
    let names = records.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?.strip_suffix(" {")?;
        name.starts_with(char::is_uppercase).then(|| name.to_lowercase())
    });
    let names: Vec<String> = names.collect();
    assert!(names.len() > 10, "{names:?}");
    let (_, table) = table.split_once("| record | is written where |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for name in names {
        let first_column = |line: &&str| {
            line.split('|')
                .nth(1)
                .is_some_and(|cell| cell.contains(&format!("`{name}`")))
        };
        assert!(
            table.lines().any(|line| first_column(&line)),
            "`{name}` is not in the table"
        );
    }
}

#[test]
fn no_file_is_longer_than_four_hundred_lines_without_its_tests() {
    let sources = sources();
    let tests: BTreeSet<PathBuf> = sources.iter().flat_map(Source::test_modules).collect();
    let long: BTreeMap<String, usize> = sources
        .iter()
        .filter(|source| {
            let module = source.module();
            !module.ancestors().any(|module| tests.contains(module))
        })
        .map(|source| (source.path.display().to_string(), source.lines_without_tests()))
        .filter(|(_, lines)| *lines > LINES)
        .collect();
    let found: Vec<&str> = long.keys().map(String::as_str).collect();
    assert_eq!(
        found, STILL_LONG,
        "split by concept what is longer than {LINES} lines, and list no file that is not: {long:#?}"
    );
}

/// A source file, its path from `src/`.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// The first part of its module path: `src/loader/plan.rs` and `src/loader.rs` are both `loader`.
    fn folder(&self) -> String {
        let first = self.module();
        let first = first.components().next().unwrap();
        first.as_os_str().to_string_lossy().into_owned()
    }

    /// Its module path, as a path.
    fn module(&self) -> PathBuf {
        let module = self.path.with_extension("");
        if module.ends_with("mod") {
            module.parent().unwrap().to_owned()
        } else {
            module
        }
    }

    /// How many `super::` lead to the root of the crate.
    fn depth(&self) -> usize {
        self.module().components().count()
    }

    /// The modules that exist in tests only: `#[cfg(test)] mod name;`.
    fn test_modules(&self) -> Vec<PathBuf> {
        let lines: Vec<&str> = self.text.lines().map(str::trim).collect();
        lines
            .windows(2)
            .filter(|pair| pair[0] == "#[cfg(test)]")
            .filter_map(|pair| pair[1].strip_suffix(';'))
            .filter_map(|declared| declared.rsplit_once("mod "))
            .map(|(_, name)| self.module().join(name))
            .collect()
    }

    /// Counts its lines but those of `#[cfg(test)] mod … { … }`, which rustfmt ends with a brace in column one.
    fn lines_without_tests(&self) -> usize {
        let mut counted = 0;
        let mut lines = self.text.lines().peekable();
        while let Some(line) = lines.next() {
            let block = |next: &&str| next.contains("mod ") && next.ends_with('{');
            if line == "#[cfg(test)]" && lines.peek().is_some_and(block) {
                lines.by_ref().find(|line| *line == "}");
            } else {
                counted += 1;
            }
        }
        counted
    }
}

/// Every source file under `src/`.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(&root).unwrap().to_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    found
}

/// Returns the modules at the root of the crate that a text names, each with its line, in the order of the text.
fn uses(text: &str, depth: usize) -> Vec<(usize, String)> {
    let code = without_comments(text);
    let climb = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", "pml::", &climb] {
        for (place, _) in code.match_indices(root) {
            let before = code[..place].chars().next_back();
            // `supercrate::`, `$crate::` and a climb that starts further out are something else.
            if before.is_some_and(|before| before.is_alphanumeric() || "_:$".contains(before)) {
                continue;
            }
            let line = code[..place].matches('\n').count() + 1;
            for name in heads(&code[place + root.len()..]) {
                // A climb that goes on leaves no module of this crate; `mod tests` reaches its own file by it.
                let reached = root != climb || PICTURE.iter().any(|(folder, _)| *folder == name);
                if reached {
                    found.push((place, line, name));
                }
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, line, name)| (line, name)).collect()
}

/// The first names of a path or of a group of paths.
fn heads(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![head(rest)];
    };
    let mut depth = 0;
    let mut heads = Vec::new();
    let mut start = 0;
    for (place, found) in group.char_indices() {
        match found {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                heads.push(head(group[start..place].trim()));
                start = place + 1;
                if found == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    heads.retain(|head| !head.is_empty());
    heads
}

fn head(path: &str) -> String {
    path.chars()
        .take_while(|found| found.is_alphanumeric() || *found == '_')
        .collect()
}

/// Blanks comments and the insides of quoted text, keeping every line break.
fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| {
            let mut kept = String::new();
            let mut quoted = false;
            let mut rest = line.chars().peekable();
            while let Some(found) = rest.next() {
                match found {
                    '\\' if quoted => drop(rest.next()),
                    '"' => quoted = !quoted,
                    '/' if !quoted && rest.peek() == Some(&'/') => break,
                    found if !quoted => kept.push(found),
                    _ => {}
                }
            }
            kept + "\n"
        })
        .collect()
}
