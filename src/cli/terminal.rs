//! The person at the terminal: a question with a yes or a no, steps that pass, a difference of two texts.
//!
//! A question is only put where a person can see it and type: stdin and stderr are both terminals. Everything
//! here goes to stderr; stdout stays data.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use owo_colors::OwoColorize as _;
use similar::TextDiff;
use tokio::signal::unix::{SignalKind, signal};

use super::output;
use crate::protocol::Shown;

/// What came back for a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalReply {
    /// The person agrees.
    Yes,
    /// The person does not.
    No,
    /// There is no terminal to ask at.
    Nobody,
}

/// Tells whether a person can see a question and type an answer.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question whose answer is no unless the person types yes.
pub(crate) async fn confirm(question: &str) -> std::io::Result<TerminalReply> {
    if !is_there() {
        return Ok(TerminalReply::Nobody);
    }
    let mut out = anstream::stderr();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    // Off the thread that hears signals: they must end the waiting.
    let typed = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = typed.await.map_err(std::io::Error::other)??;
    Ok(read(&line))
}

fn read(line: &str) -> TerminalReply {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => TerminalReply::Yes,
        _ => TerminalReply::No,
    }
}

/// Waits for a signal that asks to stop: installers and servers lead their own groups and do not hear the terminal's.
pub(crate) async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// The line that passes on this terminal now, if there is one: what is told meanwhile stands above it.
static PASSING: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Tells a person something while steps pass.
pub(crate) fn tell(text: &str) {
    let passing = PASSING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match passing.filter(|line| !line.is_finished()) {
        Some(line) => line.suspend(|| output::note(text)),
        None => output::note(text),
    }
}

/// Steps that pass: one line that changes on a terminal, a line each elsewhere.
#[derive(Debug, Clone)]
pub(crate) enum StepDisplay {
    /// One line that changes.
    Line(ProgressBar),
    /// A line each; a step that is told twice is said once.
    Lines { last: Arc<Mutex<String>> },
}

impl StepDisplay {
    /// Begins with nothing to see.
    pub(crate) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines { last: Arc::default() };
        }
        let line = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            line.set_style(style);
        }
        // Slow enough to cost nothing, fast enough to be seen alive.
        line.enable_steady_tick(Duration::from_millis(120));
        *PASSING.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.clone());
        Self::Line(line)
    }

    /// Shows a step in place of the one before.
    pub(crate) fn step(&self, text: &str) {
        match self {
            Self::Line(line) => line.set_message(text.to_owned()),
            Self::Lines { last } => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if *last != text {
                    output::say(text);
                    text.clone_into(&mut last);
                }
            }
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if let Self::Line(line) = self {
            line.finish_and_clear();
        }
    }
}

/// Returns what changes in a file, as a unified difference, coloured where the terminal can.
pub(crate) fn difference(path: &str, before: Option<&str>, after: &str) -> String {
    let old = if before.is_some() { path } else { "/dev/null" };
    let plain = TextDiff::from_lines(before.unwrap_or_default(), after)
        .unified_diff()
        .header(old, path)
        .to_string();
    let mut text = String::with_capacity(plain.len());
    for line in plain.lines() {
        let shown = Shown::line(line).to_string();
        let _ = match line.as_bytes().first() {
            Some(b'+') => writeln!(text, "{}", shown.green()),
            Some(b'-') => writeln!(text, "{}", shown.red()),
            _ => writeln!(text, "{shown}"),
        };
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_typed_yes_is_a_yes() {
        for yes in ["y\n", "Y\n", " yes \r\n", "YES"] {
            assert_eq!(read(yes), TerminalReply::Yes, "{yes:?}");
        }
        for no in ["", "\n", "n\n", "no\n", "yep\n", "y y\n"] {
            assert_eq!(read(no), TerminalReply::No, "{no:?}");
        }
    }

    #[test]
    fn a_difference_names_the_file_and_hides_nothing() {
        let text = difference("f.json", Some("{\n}\n"), "{\n  \"a\u{202e}\": 1\n}\n");
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(
            plain,
            "--- f.json\n+++ f.json\n@@ -1,2 +1,3 @@\n {\n+  \"a\\u{202e}\": 1\n }"
        );
        let new = difference("f.json", None, "{}\n");
        let plain = anstream::adapter::strip_str(&new).to_string();
        assert_eq!(plain, "--- /dev/null\n+++ f.json\n@@ -0,0 +1 @@\n+{}");
    }
}
