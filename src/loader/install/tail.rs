//! The end of what an installer printed, fit for a person: cut, escaped, without secrets.

use std::error::Error;
use std::fmt;

use crate::protocol::{Secrets, Shown};

/// Enough for the reason of a failure, too little to drown it.
const LINES: usize = 20;

/// A line longer than this is noise.
const LINE_LENGTH: usize = 500;

/// Lines of npm and uv that say nothing about the failure.
const NOISE: [&str; 6] = [
    "npm http ",
    "npm warn Unknown",
    "npm error A complete log",
    "npm error Log files were not written",
    "npm notice",
    "WARN Range requests not supported",
];

/// Settings of package managers whose value is a secret.
const SECRET_SETTINGS: [&str; 5] = ["_authtoken", "_auth", "_password", "password", "token"];

/// The end of an installer's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail(String);

impl Tail {
    /// Keeps the end of `output`, without the secrets of the installer.
    #[must_use]
    pub fn of(output: &[u8], secrets: &Secrets) -> Self {
        let text = String::from_utf8_lossy(output);
        let text = secrets.hide(&text);
        let lines: Vec<String> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty() && !NOISE.iter().any(|noise| line.starts_with(noise)))
            .map(|line| redacted(line).chars().take(LINE_LENGTH).collect::<String>())
            .map(|line| Shown::line(&line).to_string())
            .collect();
        Self(lines[lines.len().saturating_sub(LINES)..].join("\n"))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() {
            "it printed nothing"
        } else {
            &self.0
        })
    }
}

impl Error for Tail {}

/// Takes credentials out of a line: `//user:password@host`, `_authToken=…`, `Bearer …`, tokens by their shape.
fn redacted(line: &str) -> String {
    let words = line.split(' ').collect::<Vec<_>>();
    let mut kept = Vec::with_capacity(words.len());
    let mut secret_follows = false;
    for word in words {
        let lower = word.to_ascii_lowercase();
        if secret_follows && !word.is_empty() {
            kept.push("[redacted]".to_owned());
            secret_follows = matches!(lower.as_str(), "=" | ":");
        } else {
            kept.push(redacted_word(word));
            let bare = lower
                .trim_end_matches(['=', ':', ' '])
                .trim_start_matches(['"', '\'']);
            let setting = bare.rsplit(':').next().unwrap_or(bare);
            secret_follows = matches!(setting, "bearer" | "basic")
                || (bare.contains("_auth") || bare.contains("_password"))
                    && SECRET_SETTINGS.contains(&setting);
        }
    }
    kept.join(" ")
}

fn redacted_word(word: &str) -> String {
    let mut word = without_credentials(word);
    if let Some(equals) = word.find('=') {
        let name = word[..equals].to_ascii_lowercase();
        if SECRET_SETTINGS.iter().any(|setting| name.ends_with(setting)) {
            word.replace_range(equals + 1.., "[redacted]");
        }
    }
    let token = word
        .split(|found: char| !found.is_ascii_alphanumeric() && found != '_' && found != '-')
        .find(|part| {
            // The prefixes of npm's, PyPI's and GitHub's tokens; shorter words are names.
            part.len() >= 24
                && ["npm_", "pypi-", "ghp_", "github_pat_", "gho_", "glpat-"]
                    .iter()
                    .any(|prefix| part.starts_with(prefix))
        });
    match token.map(str::to_owned) {
        Some(token) => word.replace(&token, "[redacted]"),
        None => word,
    }
}

/// Replaces what stands between `//` and `@` in every address of a word.
fn without_credentials(word: &str) -> String {
    let mut kept = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(start) = rest.find("//") {
        let (before, after) = rest.split_at(start + 2);
        kept.push_str(before);
        let authority = after.find(['/', '?', '#']).unwrap_or(after.len());
        rest = match after[..authority].rfind('@') {
            Some(at) => {
                kept.push_str("[redacted]");
                &after[at..]
            }
            None => after,
        };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_stays() {
        for (line, expected) in [
            (
                "GET https://user:hunter2@registry.test/a@1 failed",
                "GET https://[redacted]@registry.test/a@1 failed",
            ),
            (
                "//registry.test/:_authToken=hunter2",
                "//registry.test/:_authToken=[redacted]",
            ),
            (
                "//registry.test/:_authToken = hunter2",
                "//registry.test/:_authToken [redacted] [redacted]",
            ),
            ("_password=\"hunter2\" after", "_password=[redacted] after"),
            (
                "authorization: Bearer hunter2",
                "authorization: Bearer [redacted]",
            ),
            ("saw npm_0123456789012345678901234567890123456", "saw [redacted]"),
            (
                "404 Not Found - GET https://registry.test/@scope%2fname",
                "404 Not Found - GET https://registry.test/@scope%2fname",
            ),
            ("no version of name==1.1.1", "no version of name==1.1.1"),
        ] {
            let shown = Tail::of(line.as_bytes(), &Secrets::default());
            assert_eq!(shown.as_str(), expected);
        }
    }

    #[test]
    fn the_end_is_kept_and_escaped() {
        let mut output = (0..100)
            .map(|line| format!("line {line}"))
            .collect::<Vec<_>>()
            .join("\n");
        output.push('\n');
        output.push_str("npm error A complete log of this run can be found in: /x\n\u{1b}[31mred\n");
        let tail = Tail::of(output.as_bytes(), &Secrets::default());
        assert_eq!(tail.as_str().lines().count(), LINES);
        assert!(tail.as_str().ends_with("line 99\n\\u{1b}[31mred"), "{tail}");
    }
}
