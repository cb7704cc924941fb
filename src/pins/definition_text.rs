//! The definition of a tool as lines that a person can compare.
//!
//! A description is text for a model, so it is cut at its line breaks and sentences: a change of one word shows as one
//! short line. Everything else is JSON, one member per line. Every line is escaped.

use similar::{ChangeTag, TextDiff};

use super::ToolPin;
use crate::protocol::{JsonTree, Shown, quoted};

/// The longest line: a longer one is continued on the next.
const COLUMNS: usize = 100;

/// Returns a definition as lines.
#[must_use]
pub fn describe(tool: &ToolPin) -> Vec<String> {
    let Some(JsonTree::Object(members)) = tool.tree() else {
        return wrapped(tool.definition().get());
    };
    members
        .iter()
        .flat_map(|(name, value)| {
            let texts = match value {
                JsonTree::Text(text) if name == "description" => sentences(text),
                value => {
                    let mut lines = vec![String::new()];
                    write(value, 0, &mut lines);
                    lines.iter().flat_map(|line| wrapped(line)).collect()
                }
            };
            let name = Shown::line(name).to_string();
            texts.into_iter().map(move |text| format!("{name}: {text}"))
        })
        .collect()
}

/// Writes a value at the end of the last line, one member or element per line.
fn write(value: &JsonTree, depth: usize, lines: &mut Vec<String>) {
    fn put(lines: &mut [String], text: &str) {
        if let Some(line) = lines.last_mut() {
            line.push_str(text);
        }
    }
    let begin = |lines: &mut Vec<String>, depth: usize| lines.push("  ".repeat(depth));
    match value {
        JsonTree::Null => put(lines, "null"),
        JsonTree::Bool(value) => put(lines, if *value { "true" } else { "false" }),
        JsonTree::Number(number) => put(lines, number),
        JsonTree::Text(text) => put(lines, &quoted(text)),
        JsonTree::Array(elements) if elements.is_empty() => put(lines, "[]"),
        JsonTree::Object(members) if members.is_empty() => put(lines, "{}"),
        JsonTree::Array(elements) => {
            put(lines, "[");
            for (at, element) in elements.iter().enumerate() {
                begin(lines, depth + 1);
                write(element, depth + 1, lines);
                put(lines, if at + 1 < elements.len() { "," } else { "" });
            }
            begin(lines, depth);
            put(lines, "]");
        }
        JsonTree::Object(members) => {
            put(lines, "{");
            for (at, (name, value)) in members.iter().enumerate() {
                begin(lines, depth + 1);
                put(lines, &format!("{}: ", quoted(name)));
                write(value, depth + 1, lines);
                put(lines, if at + 1 < members.len() { "," } else { "" });
            }
            begin(lines, depth);
            put(lines, "}");
        }
    }
}

/// Returns what differs between two definitions, with what stands directly around it; at least one line where they do.
pub(super) fn text_difference(before: &ToolPin, now: &ToolPin) -> Vec<String> {
    if before == now {
        return Vec::new();
    }
    let mut lines = compared(&describe(before), &describe(now));
    let texts = |tool: &ToolPin| tool.tree().as_ref().map(without_blanks);
    let same_words = match (texts(before), texts(now)) {
        (Some(before), Some(now)) => before == now,
        _ => false,
    };
    if lines.is_empty() && !same_words {
        // A backslash in a text reads like an escape of it: as JSON the two are apart.
        let written = |tool: &ToolPin| wrapped(tool.definition().get());
        lines = compared(&written(before), &written(now));
    }
    if same_words || lines.is_empty() {
        lines.insert(0, "!   only blanks or line breaks differ".to_owned());
    }
    lines
}

/// Returns a value whose texts have no blanks and no line breaks.
fn without_blanks(value: &JsonTree) -> JsonTree {
    match value {
        JsonTree::Text(text) => JsonTree::Text(text.split_whitespace().collect()),
        JsonTree::Array(elements) => JsonTree::Array(elements.iter().map(without_blanks).collect()),
        JsonTree::Object(members) => {
            let members = members.iter();
            JsonTree::Object(
                members
                    .map(|(name, value)| (name.clone(), without_blanks(value)))
                    .collect(),
            )
        }
        JsonTree::Null | JsonTree::Bool(_) | JsonTree::Number(_) => value.clone(),
    }
}

/// Returns the lines that differ, each with its sign, and those directly around them.
fn compared(before: &[String], now: &[String]) -> Vec<String> {
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    let now: Vec<&str> = now.iter().map(String::as_str).collect();
    let difference = TextDiff::configure().diff_slices(&before, &now);
    let mut lines = Vec::new();
    for group in difference.grouped_ops(1) {
        for change in group.iter().flat_map(|op| difference.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!("{sign}   {}", change.value()));
        }
    }
    lines
}

/// Cuts a text at its line breaks and after its sentences.
fn sentences(text: &str) -> Vec<String> {
    let sentences = text.lines().flat_map(|line| line.split_inclusive(". "));
    sentences
        // Other blanks do not show, and are written out.
        .flat_map(|sentence| wrapped(sentence.trim_end_matches([' ', '\t'])))
        .collect()
}

/// Escapes a text and breaks it where a line is full, at a blank where there is one.
fn wrapped(text: &str) -> Vec<String> {
    let shown = Shown::line(text).to_string();
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut width = 0;
    for word in shown.split_inclusive(' ') {
        let mut word = word;
        loop {
            let length = word.chars().count();
            if width + length <= COLUMNS {
                line.push_str(word);
                width += length;
                break;
            }
            if width > 0 {
                lines.push(std::mem::take(&mut line));
                width = 0;
                continue;
            }
            // A word that fills more than a line.
            let end = word.char_indices().nth(COLUMNS).map_or(word.len(), |(at, _)| at);
            lines.push(word[..end].to_owned());
            word = &word[end..];
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn tool(text: &str) -> ToolPin {
        ToolPin::of(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn a_schema_has_a_member_per_line_and_long_words_are_broken() {
        let long = "x".repeat(250);
        let text = format!(
            r#"{{"inputSchema":{{"type":"object","required":["a"]}},"name":"n","description":"{long}"}}"#
        );
        let lines = describe(&tool(&text));
        assert_eq!(lines.len(), 3 + 6 + 1, "{lines:#?}");
        assert_eq!(lines[0], format!("description: {}", "x".repeat(100)));
        assert_eq!(lines[2], format!("description: {}", "x".repeat(50)));
        assert_eq!(lines[4], "inputSchema:   \"required\": [");
    }

    #[test]
    fn prose_is_broken_at_blanks_and_no_line_is_longer_than_a_screen() {
        let prose = "Reads one file after the other, ".repeat(12);
        let lines = wrapped(&prose);
        assert!(lines.len() >= 4, "{lines:#?}");
        for line in &lines {
            assert!(
                (60..=COLUMNS).contains(&line.len()) || line == lines.last().unwrap(),
                "{line}"
            );
        }
        assert_eq!(lines.join(" "), prose.trim_end());
    }

    #[test]
    fn nested_values_are_indented_and_separated_as_in_a_file() {
        let definition = tool(r#"{"a":{"b":[1,{"c":null,"d":[]}],"e":{},"f":[true,false]}}"#);
        assert_eq!(
            describe(&definition),
            [
                "a: {",
                "a:   \"b\": [",
                "a:     1,",
                "a:     {",
                "a:       \"c\": null,",
                "a:       \"d\": []",
                "a:     }",
                "a:   ],",
                "a:   \"e\": {},",
                "a:   \"f\": [",
                "a:     true,",
                "a:     false",
                "a:   ]",
                "a: }",
            ]
        );
    }

    #[test]
    fn equal_definitions_have_no_difference() {
        let (one, two) = (
            tool(r#"{"name":"a","description":"x"}"#),
            tool(r#"{"description":"x","name":"a"}"#),
        );
        assert_eq!(text_difference(&one, &two), Vec::<String>::new());
    }

    #[test]
    fn blanks_and_line_breaks_are_told_and_what_reads_like_an_escape_is_shown_as_json() {
        let described = |text: &str| tool(&format!(r#"{{"name":"a","description":"{text}"}}"#));
        let difference = |before: &str, now: &str| text_difference(&described(before), &described(now));
        let blanks = "!   only blanks or line breaks differ";
        for (before, now) in [
            ("Reads it.", "Reads it. "),
            ("Reads it. Stops.", r"Reads it.\nStops."),
            (r"Reads it.\n", "Reads it.  "),
            (r"Reads it.\r\n", r"Reads it.\n"),
        ] {
            assert_eq!(difference(before, now)[0], blanks, "{before:?} {now:?}");
        }
        assert_eq!(difference("Reads it.", "Reads it. "), [blanks]);
        // A blank that is none of ASCII shows as what it is.
        assert_eq!(
            difference("Reads it.", r"Reads it.\u2003"),
            [
                blanks,
                "-   description: Reads it.",
                "+   description: Reads it.\\u{2003}",
                "    name: \"a\"",
            ]
        );
        assert_eq!(
            difference(r"a\tb", r"a\\tb"),
            [
                r#"-   {"description":"a\tb","name":"a"}"#,
                r#"+   {"description":"a\\tb","name":"a"}"#,
            ]
        );
        let (text, number) = (tool(r#"{"description":"5"}"#), tool(r#"{"description":5}"#));
        assert_eq!(
            text_difference(&text, &number),
            [r#"-   {"description":"5"}"#, r#"+   {"description":5}"#]
        );
    }

    /// Pieces of definitions that read alike.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = proptest::sample::select(vec![
            " ", r"\n", r"\r", r"\t", ". ", "a", r"\\t", r"\u200b", r"\u2003", r"\ud800", r"\u2028", ": ",
            "5",
        ]);
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn definitions_that_differ_have_a_line_that_says_so(
            members in proptest::collection::vec((pieces(), pieces()), 2),
            described in proptest::collection::vec(pieces(), 2),
        ) {
            let definition = |at: usize| {
                let ((name, value), description) = (&members[at], &described[at]);
                tool(&format!(r#"{{"{name}":"{value}","description":"{description}"}}"#))
            };
            let (before, now) = (definition(0), definition(1));
            prop_assert_eq!(text_difference(&before, &now).is_empty(), before == now);
        }
    }

    #[test]
    fn a_description_of_twenty_thousand_sentences_is_compared_quickly() {
        let text = |end: &str| {
            let lines: Vec<String> = (0..20_000).map(|number| format!("Line {number}. ")).collect();
            let body = lines.concat();
            tool(&format!(r#"{{"name":"a","description":"{body}{end}"}}"#))
        };
        assert_eq!(
            text_difference(&text("Stop."), &text("Go.")),
            [
                "    description: Line 19999.",
                "-   description: Stop.",
                "+   description: Go.",
                "    name: \"a\"",
            ]
        );
    }
}
