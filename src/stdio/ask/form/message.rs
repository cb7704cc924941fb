//! The text of a dialog, in lines that the narrowest known client shows whole.
//!
//! Claude Code shows four lines of a message if there are exactly four, otherwise three and the number of those that
//! are left; each line is cut at the width of the terminal. So a message that fits has at most four lines, and of one
//! that does not fit the first three say so. The rest follows for clients that show everything.

use unicode_width::UnicodeWidthStr as _;

use crate::protocol::{Excerpt, Extent, shortened};

/// What an 80-column terminal shows of a line inside a dialog's frame.
pub(super) const COLUMNS: usize = 74;

/// What Claude Code shows of a choice, at any width of the terminal.
pub(super) const CHOICE: usize = 47;

/// The lines of a message that are shown if there are no more.
const LINES: usize = 4;

/// What is shown at most of a command or of arguments, in columns: a page. `pml pending` shows the rest.
const PAGE: usize = 2_000;

/// What stands between notes on one line.
const SEPARATOR: &str = " \u{b7} ";

/// What a person is asked to agree to.
pub(super) enum Subject<'a> {
    /// A command or an address, escaped.
    Command(&'a str),
    /// The arguments of a call, as JSON.
    Arguments(&'a str),
}

impl Subject<'_> {
    fn in_columns(&self, room: usize) -> Excerpt {
        match self {
            Self::Arguments(json) => Excerpt::of_json(json, room),
            Self::Command(text) => Excerpt::of_text(text, room),
        }
    }
}

/// A request for a decision: what, about what, what else to know, and where it belongs.
pub(super) struct Request<'a> {
    pub(super) what: &'a str,
    pub(super) subject: Subject<'a>,
    pub(super) notes: &'a [String],
    pub(super) code: &'a str,
    /// The project and the like; stands behind the code.
    pub(super) origin: &'a str,
}

/// What a dialog shows around its choices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// The lines above them.
    pub(super) message: String,
    /// One line beside the field, where the message has no room for it.
    pub(super) description: Option<String>,
}

impl Request<'_> {
    /// Writes what is shown: everything in the message, else the last notes beside the field, else a part that says so.
    pub(super) fn text(&self) -> Text {
        let origin = format!("code {}{}", self.code, self.origin);
        let page = self.subject.in_columns(PAGE);
        let lines = |notes: &[String]| {
            let mut lines = wrap(self.what);
            lines.extend(wrap(&page.text));
            if !notes.is_empty() {
                lines.extend(wrap(&notes.join(SEPARATOR)));
            }
            lines.push(origin.clone());
            lines
        };
        let fitting = (0..=self.notes.len()).rev().find_map(|count| {
            let (above, beside) = self.notes.split_at(count);
            let beside = Some(beside.join(SEPARATOR)).filter(|text| !text.is_empty());
            let lines = lines(above);
            let fits = lines.len() <= LINES && beside.as_ref().is_none_or(|text| text.width() <= COLUMNS);
            fits.then(|| Text {
                message: lines.join("\n"),
                description: beside,
            })
        });
        match fitting.filter(|_| page.extent == Extent::Whole) {
            Some(text) => text,
            None => Text {
                message: self.in_part(&lines(self.notes)[wrap(self.what).len()..]),
                description: None,
            },
        }
    }

    /// Writes a message of which the first lines say that they are not all; `rest` follows them.
    fn in_part(&self, rest: &[String]) -> String {
        let notice = format!(
            "code {} \u{b7} not all is shown here: run `pml pending` in a terminal",
            self.code
        );
        let first = [
            shortened(self.what, COLUMNS).into_owned(),
            self.subject.in_columns(COLUMNS).text,
            notice,
        ];
        [&first, rest].concat().join("\n")
    }
}

/// Writes a message of lines that are all alike, with a notice before them where they do not fit.
pub(super) fn text(lines: impl Iterator<Item = String>, code: &str) -> String {
    let mut lines: Vec<String> = lines.flat_map(|line| wrap(&line)).collect();
    if lines.len() > LINES {
        let notice = format!("not all is shown here: `pml pending` in a terminal shows {code} whole");
        lines.insert(0, notice);
    }
    lines.join("\n")
}

/// Breaks a text into lines of at most [`COLUMNS`], at spaces where there are any.
pub(super) fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split_inclusive(' ') {
        let needed = word.trim_end_matches(' ').width();
        if width + needed > COLUMNS && width > 0 {
            lines.push(String::new());
            width = 0;
        }
        for piece in pieces(word) {
            let wide = piece.width();
            if width + piece.trim_end_matches(' ').width() > COLUMNS && width > 0 {
                lines.push(String::new());
                width = 0;
            }
            width += wide;
            if let Some(line) = lines.last_mut() {
                line.push_str(piece);
            }
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end_matches(' ').len());
    }
    lines
}

/// Cuts a word that is longer than a line.
fn pieces(word: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut from, mut width) = (0, 0);
    for (at, found) in word.char_indices() {
        let wide = unicode_width::UnicodeWidthChar::width(found).unwrap_or(0);
        if width + wide > COLUMNS && found != ' ' {
            pieces.push(&word[from..at]);
            (from, width) = (at, 0);
        }
        width += wide;
    }
    pieces.push(&word[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(subject: Subject<'a>, notes: &'a [String]) -> String {
        let request = Request {
            what: "Call fs:write_file?",
            subject,
            notes,
            code: "kfmbe",
            origin: " \u{b7} /work",
        };
        let text = request.text();
        assert!(text.description.is_none(), "{text:?}");
        text.message
    }

    #[test]
    fn what_fits_is_shown_whole_in_at_most_four_lines() {
        assert_eq!(
            request(Subject::Arguments(r#"{"path":"/etc/passwd"}"#), &[]),
            "Call fs:write_file?\n{\"path\": \"/etc/passwd\"}\ncode kfmbe \u{b7} /work"
        );
        let two = format!("npx {}", "word ".repeat(20));
        let message = request(Subject::Command(two.trim_end()), &[]);
        assert_eq!(message.lines().count(), 4);
        assert!(message.lines().all(|line| line.width() <= COLUMNS), "{message}");
    }

    #[test]
    fn notes_stand_beside_the_field_where_the_message_is_full() {
        let command = format!("npx {}", "word ".repeat(20));
        let notes = ["runs in /elsewhere".to_owned(), "variables TOKEN".to_owned()];
        let request = Request {
            what: "Run fs?",
            subject: Subject::Command(command.trim_end()),
            notes: &notes,
            code: "kfmbe",
            origin: "",
        };
        let text = request.text();
        assert_eq!(text.message.lines().count(), 4, "{text:?}");
        assert_eq!(
            text.description.as_deref(),
            Some("runs in /elsewhere \u{b7} variables TOKEN")
        );
    }

    #[test]
    fn what_does_not_fit_says_so_in_the_third_line_and_shows_its_end_in_the_second() {
        let long = format!("npx {}--the-end", "word ".repeat(60));
        let message = request(Subject::Command(&long), &[]);
        let lines: Vec<&str> = message.lines().collect();
        assert!(lines.len() > 4, "{message}");
        assert!(lines.iter().all(|line| line.width() <= COLUMNS), "{message}");
        assert!(
            lines[1].starts_with("npx word") && lines[1].ends_with("--the-end"),
            "{message}"
        );
        assert_eq!(
            lines[2],
            "code kfmbe \u{b7} not all is shown here: run `pml pending` in a terminal"
        );
    }

    #[test]
    fn a_page_is_the_most_of_a_message() {
        let long = "x".repeat(1 << 20);
        let message = request(Subject::Command(&long), &[]);
        assert!(message.len() < 4_000, "{}", message.len());
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_anywhere() {
        let word = "a".repeat(100);
        let lines = wrap(&format!("short {word} end"));
        assert_eq!(lines.concat().replace(' ', ""), format!("short{word}end"));
        assert!(lines.iter().all(|line| line.width() <= COLUMNS), "{lines:?}");
        assert_eq!(wrap(""), [""]);
        let wide = "漢".repeat(50);
        assert!(wrap(&wide).iter().all(|line| line.width() <= COLUMNS));
    }
}
