//! The program that calls a person when something is asked: a fixed program, and arguments with places for words.
//!
//! Only the user's own file declares it: what stands there is run without a question.

use std::path::Path;

use crate::protocol::Shown;

/// The most that is read: notifiers take a handful of arguments.
const ARGUMENTS: usize = 64;

/// A program and its arguments, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyCommand {
    program: String,
    arguments: Vec<Vec<Piece>>,
}

/// A piece of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// As it stands in the file.
    Text(String),
    /// `{title}`.
    Title,
    /// `{body}`.
    Body,
}

impl NotifyCommand {
    /// Reads the words of `notify`, the program first; an error says what is wrong, without the words themselves.
    pub(super) fn read(words: &[String]) -> Result<Self, String> {
        let Some((program, arguments)) = words.split_first() else {
            return Err("`notify` is empty; the program comes first, then its arguments".to_owned());
        };
        if words.len() > ARGUMENTS {
            return Err(format!("`notify` has more than {ARGUMENTS} words"));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err("`notify` contains a null character".to_owned());
        }
        if !matches!(pieces(program)?.as_slice(), [Piece::Text(_)]) {
            return Err(
                "the first word of `notify` is the program; words of an ask belong into its arguments"
                    .to_owned(),
            );
        }
        // A relative path would mean another program in every project.
        if program.contains('/') && !Path::new(program).is_absolute() {
            return Err("the program of `notify` is a name on the PATH or an absolute path".to_owned());
        }
        let arguments = arguments.iter().map(|argument| pieces(argument));
        Ok(Self {
            program: program.clone(),
            arguments: arguments.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the program: a name to be found on the `PATH`, or an absolute path.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the arguments with `title` and `body` in their places; what these hold is not looked through again.
    #[must_use]
    pub fn arguments(&self, title: &str, body: &str) -> Vec<String> {
        let filled = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Title => title.to_owned(),
            Piece::Body => body.to_owned(),
        };
        let arguments = self.arguments.iter();
        arguments
            .map(|pieces| pieces.iter().map(filled).collect())
            .collect()
    }
}

/// Cuts an argument at its places. A place is a word in braces; any other brace is text, as in JSON.
fn pieces(argument: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = argument;
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        let place = behind.split_once('}').filter(|(name, _)| is_word(name));
        let Some((name, after)) = place else {
            text.push('{');
            rest = behind;
            continue;
        };
        let piece = match name {
            "title" => Piece::Title,
            "body" => Piece::Body,
            other => {
                let other = Shown::line(other);
                return Err(format!(
                    "`{{{other}}}` is not known in `notify`; possible are `{{title}}`, `{{body}}`"
                ));
            }
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(piece);
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn is_word(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<NotifyCommand, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        NotifyCommand::read(&words)
    }

    #[test]
    fn the_words_of_an_ask_stand_in_their_places_and_are_not_looked_through_again() {
        let command = read(&[
            "notify-send",
            "--app-name=pml",
            "{title}",
            "<{body}> {title}",
            "{\"a\": {}}",
            "",
        ])
        .unwrap();
        assert_eq!(command.program(), "notify-send");
        assert_eq!(
            command.arguments("{body}", "three {title} asks"),
            [
                "--app-name=pml",
                "{body}",
                "<three {title} asks> {body}",
                "{\"a\": {}}",
                ""
            ]
        );
    }

    #[test]
    fn what_cannot_be_run_or_filled_is_refused_when_it_is_read() {
        for (words, reason) in [
            (&[][..], "`notify` is empty"),
            (&[""], "the first word of `notify` is the program"),
            (&["{title}"], "the first word of `notify` is the program"),
            (&["notify-{body}"], "the first word of `notify` is the program"),
            (&["./notify"], "is a name on the PATH or an absolute path"),
            (&["bin/notify"], "is a name on the PATH or an absolute path"),
            (&["x", "{titel}"], "`{titel}` is not known in `notify`"),
            (&["x", "a {Body}"], "`{Body}` is not known in `notify`"),
            (&["x", "a\0b"], "a null character"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(reason), "{words:?}: {error}");
        }
        let many = vec!["x"; ARGUMENTS + 1];
        assert!(read(&many).is_err());
        assert!(read(&many[1..]).is_ok());
    }
}
