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
            Self::Command(text) => {
                let shown = shortened(text, room);
                let extent = if shown.len() == text.len() {
                    Extent::Whole
                } else {
                    Extent::Shortened
                };
                Excerpt {
                    text: shown.into_owned(),
                    extent,
                }
            }
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

impl Request<'_> {
    /// Writes the message.
    pub(super) fn message(&self) -> String {
        let what = wrap(self.what);
        let origin = format!("code {}{}", self.code, self.origin);
        let page = self.subject.in_columns(PAGE);
        let mut details = wrap(&page.text);
        if !self.notes.is_empty() {
            details.extend(wrap(&self.notes.join(" \u{b7} ")));
        }
        if page.extent == Extent::Whole && what.len() + details.len() < LINES {
            return [what, details, vec![origin]].concat().join("\n");
        }
        let notice = format!(
            "code {} \u{b7} not all is shown here: run `pml pending` in a terminal",
            self.code
        );
        let first = [
            shortened(self.what, COLUMNS).into_owned(),
            self.subject.in_columns(COLUMNS).text,
            notice,
        ];
        let rest = [details, vec![origin]].concat();
        [first.to_vec(), rest].concat().join("\n")
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
        request.message()
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
