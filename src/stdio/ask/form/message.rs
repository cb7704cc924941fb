//! The text of a dialog, in lines that the narrowest known client shows whole.
//!
//! Claude Code shows four lines of a message if there are exactly four, otherwise three and the number of those that
//! are left; each line is cut at the width of the terminal. It shows one line of a field's description in any case. So
//! a message that fits has at most four lines. One that does not fit begins with three that show as much as they can,
//! its field says where all of it is shown, and the rest follows for clients that show everything.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

use crate::card::DIALOG_COLUMNS;
use crate::protocol::{Excerpt, Extent, fold, shortened, wrap};

/// What an 80-column terminal shows of a line inside a dialog's frame.
pub(super) const COLUMNS: usize = 74;

/// What it shows of the one line beside a field, which is indented.
const BESIDE: usize = 68;

/// What Claude Code shows of a choice, at any width of the terminal.
pub(super) const CHOICE: usize = 47;

/// The lines of a message that are shown if there are no more.
const LINES: usize = 4;

/// The lines that are shown if there are more.
const FIRST_LINES: usize = 3;

/// What is shown at most of a command or of arguments, in columns: a page. `pml pending CODE` shows all.
const PAGE: usize = DIALOG_COLUMNS;

/// What stands between notes on one line.
const SEPARATOR: &str = " \u{b7} ";

/// What a person is asked to agree to.
pub(super) enum ConsentSubject<'a> {
    /// A command or an address, escaped.
    Command(&'a str),
    /// The arguments of a call, as JSON.
    Arguments(&'a str),
}

impl ConsentSubject<'_> {
    fn in_columns(&self, room: usize) -> Excerpt {
        match self {
            Self::Arguments(json) => Excerpt::of_json(json, room),
            Self::Command(text) => Excerpt::of_text(text, room),
        }
    }

    /// Writes as much as fits into so many lines.
    fn in_lines(&self, count: usize) -> Vec<String> {
        // A character of two columns may leave the last one of a line empty.
        let text = self.in_columns(count * COLUMNS - (count - 1)).text;
        let lines = wrap(&text, COLUMNS);
        if lines.len() <= count {
            lines
        } else {
            fold(&text, COLUMNS)
        }
    }
}

/// A request for a decision: what, about what, what else to know, and where it belongs.
pub(super) struct DecisionRequest<'a> {
    pub(super) what: &'a str,
    pub(super) subject: ConsentSubject<'a>,
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

impl DecisionRequest<'_> {
    /// Writes what is shown: everything in the message, else the last notes beside the field, else a part that says so.
    pub(super) fn text(&self) -> Text {
        let page = self.subject.in_columns(PAGE);
        let mut notes = self.notes.to_vec();
        notes.extend(page.unusually_hidden().map(|count| {
            format!("{count} characters are hidden in one place: more than a usual secret has")
        }));
        let origin = format!("code {}{}", self.code, self.origin);
        let lines = |notes: &[String]| {
            let mut lines = wrap(self.what, COLUMNS);
            lines.extend(wrap(&page.text, COLUMNS));
            if !notes.is_empty() {
                lines.extend(wrap(&notes.join(SEPARATOR), COLUMNS));
            }
            lines.push(origin.clone());
            lines
        };
        let fitting = (0..=notes.len()).rev().find_map(|count| {
            let (above, beside) = notes.split_at(count);
            let beside = Some(beside.join(SEPARATOR)).filter(|text| !text.is_empty());
            let lines = lines(above);
            let fits = lines.len() <= LINES && beside.as_ref().is_none_or(|text| text.width() <= BESIDE);
            fits.then(|| Text {
                message: lines.join("\n"),
                description: beside,
            })
        });
        fitting
            .filter(|_| page.extent == Extent::Whole)
            .unwrap_or_else(|| {
                let rest = lines(&notes).split_off(wrap(self.what, COLUMNS).len());
                self.in_part(&notes, &rest)
            })
    }

    /// Writes a message of which the first lines show a part; `rest` follows them.
    fn in_part(&self, notes: &[String], rest: &[String]) -> Text {
        let notes = notes.join(SEPARATOR);
        let notes = Some(shortened(&notes, COLUMNS)).filter(|notes| !notes.is_empty());
        let subject = self
            .subject
            .in_lines(FIRST_LINES - 1 - usize::from(notes.is_some()));
        // What is shown whole is not repeated.
        let rest = rest.strip_prefix(subject.as_slice()).unwrap_or(rest);
        let mut lines = vec![shortened(self.what, COLUMNS).into_owned()];
        lines.extend(subject);
        lines.extend(notes.map(Cow::into_owned));
        lines.extend_from_slice(rest);
        Text {
            message: lines.join("\n"),
            description: Some(notice(self.code)),
        }
    }
}

/// Writes a message of lines that are all alike; where they may not all be shown, the line beside the field says so.
pub(super) fn text(lines: impl Iterator<Item = String>, code: &str) -> Text {
    let lines: Vec<String> = lines.flat_map(|line| wrap(&line, COLUMNS)).collect();
    Text {
        description: (lines.len() > LINES).then(|| notice(code)),
        message: lines.join("\n"),
    }
}

/// Says where everything is shown; it is true also of clients that do show everything.
pub(super) fn notice(code: &str) -> String {
    format!("may be cut here; whole in a terminal: `pml pending {code}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(subject: ConsentSubject<'a>, notes: &'a [String]) -> Text {
        let request = DecisionRequest {
            what: "Call fs:write_file?",
            subject,
            notes,
            code: "kfmbe",
            origin: " \u{b7} /work",
        };
        let text = request.text();
        let beside = text.description.as_deref().unwrap_or_default();
        assert!(beside.width() <= BESIDE, "{beside}");
        let lines = text.message.lines();
        assert!(
            lines.clone().all(|line| line.width() <= COLUMNS),
            "{}",
            text.message
        );
        text
    }

    fn whole(subject: ConsentSubject<'_>) -> String {
        let text = request(subject, &[]);
        assert!(text.description.is_none(), "{text:?}");
        text.message
    }

    #[test]
    fn what_fits_is_shown_whole_in_at_most_four_lines() {
        assert_eq!(
            whole(ConsentSubject::Arguments(r#"{"path":"/etc/passwd"}"#)),
            "Call fs:write_file?\n{\"path\": \"/etc/passwd\"}\ncode kfmbe \u{b7} /work"
        );
        let two = format!("npx {}", "word ".repeat(20));
        let message = whole(ConsentSubject::Command(two.trim_end()));
        assert_eq!(message.lines().count(), 4);
    }

    #[test]
    fn notes_stand_beside_the_field_where_the_message_is_full() {
        let command = format!("npx {}", "word ".repeat(20));
        let notes = ["runs in /elsewhere".to_owned(), "variables TOKEN".to_owned()];
        let text = request(ConsentSubject::Command(command.trim_end()), &notes);
        assert_eq!(text.message.lines().count(), 4, "{text:?}");
        assert_eq!(
            text.description.as_deref(),
            Some("runs in /elsewhere \u{b7} variables TOKEN")
        );
    }

    #[test]
    fn what_does_not_fit_shows_both_its_ends_in_two_lines_and_says_where_it_is_whole() {
        let long = format!("npx {}--the-end", "word ".repeat(60));
        let text = request(ConsentSubject::Command(&long), &[]);
        let lines: Vec<&str> = text.message.lines().collect();
        assert!(lines.len() > 4, "{text:?}");
        assert!(
            lines[1].starts_with("npx word") && lines[2].ends_with("--the-end"),
            "{text:?}"
        );
        assert_eq!(
            text.description.as_deref(),
            Some("may be cut here; whole in a terminal: `pml pending kfmbe`")
        );
        assert_eq!(lines[3..lines.len() - 1].join(" "), long);
    }

    #[test]
    fn the_path_and_both_ends_of_the_content_stand_in_the_first_lines() {
        let json = format!(
            r#"{{"path":"/etc/ssh/sshd_config","content":"Port 22\n{}PermitRootLogin yes\n"}}"#,
            "# a comment\\n".repeat(200)
        );
        let text = request(ConsentSubject::Arguments(&json), &[]);
        let lines: Vec<&str> = text.message.lines().collect();
        assert_eq!(
            lines[1..3],
            [
                r#"{"path": "/etc/ssh/sshd_config", "content": "Port 22\n# a comment\n# a com"#,
                r#"ment\n# a comment…(+2343)…a comment\n# a comment\nPermitRootLogin yes\n"}"#,
            ]
        );
    }

    #[test]
    fn notes_stand_in_the_first_lines_of_what_does_not_fit() {
        let long = format!("npx {}--the-end", "word ".repeat(60));
        let notes = ["install scripts WILL run".to_owned()];
        let text = request(ConsentSubject::Command(&long), &notes);
        let lines: Vec<&str> = text.message.lines().collect();
        assert!(lines[1].ends_with("--the-end"), "{text:?}");
        assert_eq!(lines[2], "install scripts WILL run");
    }

    #[test]
    fn a_secret_longer_than_usual_is_a_note() {
        let json = format!(r#"{{"token":"{}"}}"#, "a".repeat(300));
        let message = whole(ConsentSubject::Arguments(&json));
        assert!(
            message.contains("\n300 characters are hidden in one place: more than a usual secret has\n"),
            "{message}"
        );
    }

    #[test]
    fn a_page_is_the_most_of_a_message() {
        let long = "x".repeat(1 << 20);
        let text = request(ConsentSubject::Command(&long), &[]);
        assert!(text.message.len() < 4_000, "{}", text.message.len());
    }
}
