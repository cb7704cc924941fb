//! What a line means that a person types.

use std::path::PathBuf;

use crate::host::Priority;

/// A line for the agent, or the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedLine {
    /// Words that answer what is asked, or else are for the agent.
    Words(String),
    /// Words for the agent in any case.
    Guidance {
        /// What is said.
        text: String,
        /// When the agent is to read it.
        priority: Priority,
    },
    /// A picture for the agent.
    Image {
        /// Its file.
        path: PathBuf,
        /// What is said with it; without it, it goes with the next line.
        text: String,
    },
}

impl TypedLine {
    /// Reads a line; `None` where nothing was typed.
    pub(super) fn read(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() {
            return None;
        }
        if let Some(text) = line.strip_prefix('>') {
            return Some(Self::Guidance {
                text: text.trim().to_owned(),
                priority: Priority::Next,
            });
        }
        let (first, rest) = line
            .split_once(char::is_whitespace)
            .map_or((line, ""), |(first, rest)| (first, rest.trim()));
        let guidance = |priority| Self::Guidance {
            text: rest.to_owned(),
            priority,
        };
        Some(match first {
            "/now" => guidance(Priority::Now),
            "/later" => guidance(Priority::Later),
            "/image" => {
                let (path, text) = first_word(rest);
                Self::Image {
                    path: path.into(),
                    text: text.to_owned(),
                }
            }
            // The agent has commands of its own.
            _ => Self::Words(line.to_owned()),
        })
    }
}

/// Splits the first word off as a shell does: a file that is dragged into a terminal comes quoted.
fn first_word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote = None;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None | Some('"'), '\\') => word.extend(letters.next().map(|(_, escaped)| escaped)),
            (None, letter) if letter.is_whitespace() => return (word, text[at..].trim_start()),
            (_, letter) => word.push(letter),
        }
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guidance(text: &str, priority: Priority) -> TypedLine {
        let text = text.to_owned();
        TypedLine::Guidance { text, priority }
    }

    #[test]
    fn a_line_says_when_it_is_to_be_read() {
        assert_eq!(TypedLine::read("  \n"), None);
        assert_eq!(TypedLine::read("pg\n"), Some(TypedLine::Words("pg".to_owned())));
        assert_eq!(
            TypedLine::read("> use tabs"),
            Some(guidance("use tabs", Priority::Next))
        );
        assert_eq!(
            TypedLine::read("/now stop that"),
            Some(guidance("stop that", Priority::Now))
        );
        assert_eq!(
            TypedLine::read("/later test it"),
            Some(guidance("test it", Priority::Later))
        );
        assert_eq!(
            TypedLine::read("/compact"),
            Some(TypedLine::Words("/compact".to_owned()))
        );
    }

    #[test]
    fn a_picture_is_named_as_a_shell_does() {
        let image = |path: &str, text: &str| {
            let (path, text) = (path.into(), text.to_owned());
            Some(TypedLine::Image { path, text })
        };
        assert_eq!(TypedLine::read("/image a.png"), image("a.png", ""));
        assert_eq!(
            TypedLine::read("/image 'my shot.png' like this"),
            image("my shot.png", "like this")
        );
        assert_eq!(
            TypedLine::read(r"/image my\ shot.png x"),
            image("my shot.png", "x")
        );
        assert_eq!(TypedLine::read(r#"/image "it's" "#), image("it's", ""));
    }
}
