//! What a tool changes in a file, folded to a few lines.

use std::time::Duration;

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::columns;
use crate::protocol::Shown;

/// How many lines are shown; the page of the run shows them all.
const LINES: usize = 6;

/// How much of a line is shown.
const COLUMNS: usize = 100;

/// A longer text is not compared, only counted.
const COMPARED: usize = 256 * 1024;

/// How long texts are compared; then the difference is coarser.
const TIME: Duration = Duration::from_millis(50);

/// Returns what a call changes, each line with its sign first; nothing for other tools.
pub(super) fn folded(tool: &str, input: &str) -> Vec<String> {
    if !["Edit", "MultiEdit", "Write"].contains(&tool) {
        return Vec::new();
    }
    let input: Map<String, Value> = serde_json::from_str(input).unwrap_or_default();
    let text = |members: &Map<String, Value>, name: &str| {
        members
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let changes: Vec<(String, String)> = match input.get("edits").and_then(Value::as_array) {
        Some(edits) => edits
            .iter()
            .filter_map(Value::as_object)
            .map(|edit| (text(edit, "old_string"), text(edit, "new_string")))
            .collect(),
        None if tool == "Write" => vec![(String::new(), text(&input, "content"))],
        None => vec![(text(&input, "old_string"), text(&input, "new_string"))],
    };
    let mut shown = Vec::new();
    let mut hidden = 0;
    for (before, after) in &changes {
        if before.len() + after.len() > COMPARED {
            hidden += before.lines().count() + after.lines().count();
            continue;
        }
        let compared = TextDiff::configure()
            .timeout(TIME)
            .diff_lines(before.as_str(), after.as_str());
        for change in compared.iter_all_changes() {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => continue,
            };
            if shown.len() == LINES {
                hidden += 1;
                continue;
            }
            let line = change
                .value()
                .trim_end_matches(['\n', '\r'])
                .replace('\t', "    ");
            let line = Shown::line(&line).to_string();
            shown.push(format!("{sign} {}", columns::head(&line, COLUMNS)));
        }
    }
    if hidden > 0 {
        shown.push(format!("… {hidden} more lines"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_shows_its_lines_and_counts_the_rest() {
        let edit = json!({ "file_path": "a.rs", "old_string": "one\ntwo\nthree", "new_string": "one\n2\u{1b}\nthree" });
        assert_eq!(folded("Edit", &edit.to_string()), ["- two", "+ 2\\u{1b}"]);
        let text = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let write = folded("Write", &json!({ "file_path": "a", "content": text }).to_string());
        assert_eq!(write.len(), 7);
        assert_eq!((write[0].as_str(), write[6].as_str()), ("+ 0", "… 4 more lines"));
        let several = json!({ "edits": [{ "old_string": "a", "new_string": "b" }, { "old_string": "c", "new_string": "" }] });
        assert_eq!(folded("MultiEdit", &several.to_string()), ["- a", "+ b", "- c"]);
        assert!(folded("Bash", &edit.to_string()).is_empty());
    }
}
