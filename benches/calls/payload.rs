//! What is called and what comes back, by size.
//!
//! Text looks like a source file: an escape about every forty bytes and some letters outside ASCII, so that a proxy
//! which parses, copies or escapes pays what it would pay in life.

use std::fmt::Write as _;

use serde_json::json;

/// One line of the text: 40 bytes as JSON, two of them an escape.
const LINE: &str = "    let größe = lies(pfad)?; // weiter\n";

/// A megabyte, as people say it.
const LARGE: usize = 1_000_000;

/// One kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Case {
    Small,
    Medium,
    LargeText,
    LargeNested,
    LargeArguments,
}

impl Case {
    pub(crate) const ALL: [Self; 5] = [
        Self::Small,
        Self::Medium,
        Self::LargeText,
        Self::LargeNested,
        Self::LargeArguments,
    ];

    /// The tool that stands for this case.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::LargeText => "large_text",
            Self::LargeNested => "large_nested",
            Self::LargeArguments => "large_arguments",
        }
    }

    pub(crate) fn of_tool(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.tool().as_bytes() == name)
    }

    /// How the tables call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Small => "100 B result",
            Self::Medium => "10 KB result",
            Self::LargeText => "1 MB result, text",
            Self::LargeNested => "1 MB result, nested",
            Self::LargeArguments => "1 MB arguments",
        }
    }

    /// The arguments, as JSON.
    pub(crate) fn arguments(self) -> String {
        match self {
            Self::LargeArguments => {
                format!(r#"{{"path":"src/main.rs","content":{}}}"#, text(LARGE - 40))
            }
            _ => r#"{"path":"src/main.rs"}"#.to_owned(),
        }
    }

    /// The result, as JSON; its size is that of the case.
    pub(crate) fn result(self) -> String {
        match self {
            Self::Small | Self::LargeArguments => text_result(100),
            Self::Medium => text_result(10_000),
            Self::LargeText => text_result(LARGE),
            Self::LargeNested => nested_result(LARGE),
        }
    }
}

fn text_result(bytes: usize) -> String {
    let around = r#"{"content":[{"type":"text","text":}]}"#.len();
    format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        text(bytes - around)
    )
}

/// A JSON string of exactly `bytes` bytes.
fn text(bytes: usize) -> String {
    let line = json!(LINE).to_string();
    let line = line.trim_matches('"');
    let mut text = String::with_capacity(bytes);
    text.push('"');
    while text.len() + line.len() < bytes {
        text.push_str(line);
    }
    while text.len() + 1 < bytes {
        text.push('.');
    }
    text.push('"');
    text
}

/// Many small members, some levels deep: what a search or a database returns.
fn nested_result(bytes: usize) -> String {
    let mut result = r#"{"content":[{"type":"text","text":"rows"}],"structuredContent":{"rows":["#.to_owned();
    let mut number = 0;
    while result.len() + 160 < bytes {
        if number > 0 {
            result.push(',');
        }
        let _ = write!(
            result,
            r#"{{"id":{number},"name":"row {number}","at":{{"line":{number},"column":7}},"tags":["a","ö",null],"score":0.5,"parent":{{"id":{},"open":true}}}}"#,
            number / 7,
        );
        number += 1;
    }
    result.push_str("]}}");
    result
}
