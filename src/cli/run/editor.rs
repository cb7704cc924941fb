//! The line that a person types in the terminal of a run.
//!
//! Pure: bytes of the terminal go in, what they mean comes out. A line is told of when its first letter comes: what it is
//! for is decided then, not when Enter is pressed.

/// The longest line, in bytes: that of a message.
const LIMIT: usize = 100_000;

/// Keys that edit a line or end it, as a terminal sends them.
const END: u8 = 0x04;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];
const CLEAR: u8 = 0x15;
const RUB_OUT_WORD: u8 = 0x17;
const ESCAPE: u8 = 0x1b;

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Keyed {
    /// They began a line.
    Began,
    /// They finished it.
    Line(String),
    /// They have nothing more to say.
    End,
}

/// A line that is being typed.
#[derive(Debug, Default)]
pub(super) struct Editor {
    line: String,
    /// The bytes of a letter that is not whole yet.
    letter: Vec<u8>,
    escape: Escape,
    /// Whether text is pasted: a line break in it ends no line.
    pasting: bool,
}

/// How far a sequence of a key such as an arrow is.
#[derive(Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    Sequence(Vec<u8>),
}

impl Editor {
    /// Returns the line so far.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// Takes bytes of the terminal, and returns what they mean, in order.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Keyed> {
        let mut keyed = Vec::new();
        for byte in bytes {
            self.key(*byte, &mut keyed);
        }
        keyed
    }

    fn key(&mut self, byte: u8, keyed: &mut Vec<Keyed>) {
        match &mut self.escape {
            Escape::Begun => {
                self.escape = match byte {
                    b'[' | b'O' => Escape::Sequence(Vec::new()),
                    _ => Escape::None,
                };
                return;
            }
            Escape::Sequence(sequence) => {
                if !(0x40..=0x7e).contains(&byte) {
                    // None is longer; what else comes is dropped with it.
                    if sequence.len() < 16 {
                        sequence.push(byte);
                    }
                    return;
                }
                match (sequence.as_slice(), byte) {
                    (b"200", b'~') => self.pasting = true,
                    (b"201", b'~') => self.pasting = false,
                    _ => {}
                }
                self.escape = Escape::None;
                return;
            }
            Escape::None => {}
        }
        match byte {
            ESCAPE => self.escape = Escape::Begun,
            b'\r' | b'\n' if self.pasting => self.push('\n', keyed),
            b'\r' | b'\n' => keyed.push(Keyed::Line(std::mem::take(&mut self.line))),
            END if self.line.is_empty() => keyed.push(Keyed::End),
            CLEAR => self.line.clear(),
            RUB_OUT_WORD => {
                let kept = self.line.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.line.truncate(kept);
            }
            byte if BACKSPACE.contains(&byte) => {
                self.line.pop();
            }
            b'\t' => self.push('\t', keyed),
            0..0x20 => {}
            byte => {
                self.letter.push(byte);
                match std::str::from_utf8(&self.letter) {
                    Ok(letter) => {
                        let letters: Vec<char> = letter.chars().collect();
                        self.letter.clear();
                        for letter in letters {
                            self.push(letter, keyed);
                        }
                    }
                    // What can be no letter is left out.
                    Err(error) if error.error_len().is_some() => self.letter.clear(),
                    Err(_) => {}
                }
            }
        }
    }

    fn push(&mut self, letter: char, keyed: &mut Vec<Keyed>) {
        if self.line.len() + letter.len_utf8() > LIMIT {
            return;
        }
        if self.line.is_empty() {
            keyed.push(Keyed::Began);
        }
        self.line.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Keyed {
        Keyed::Line(text.to_owned())
    }

    #[test]
    fn a_line_is_told_of_when_it_begins_and_when_it_ends() {
        let mut editor = Editor::default();
        assert_eq!(editor.feed(b"c"), [Keyed::Began]);
        assert_eq!(editor.feed(b"d"), []);
        assert_eq!(editor.line(), "cd");
        assert_eq!(
            editor.feed(b"\nx\n\n"),
            [line("cd"), Keyed::Began, line("x"), line("")]
        );
        // A line that was taken back begins anew.
        assert_eq!(editor.feed(b"a\x7fb"), [Keyed::Began, Keyed::Began]);
    }

    #[test]
    fn keys_edit_and_other_keys_leave_no_trace() {
        let mut editor = Editor::default();
        editor.feed(b"one two\x17three\x1b[A\x1b[1;5C\x1bOP");
        assert_eq!(editor.line(), "one three");
        editor.feed(b"\x15");
        assert_eq!(editor.line(), "");
        assert_eq!(editor.feed(b"\x04"), [Keyed::End]);
        assert_eq!(editor.feed(b"a\x04"), [Keyed::Began], "in a line it ends nothing");
    }

    #[test]
    fn letters_come_in_parts_and_bytes_that_are_none_are_left_out() {
        let mut editor = Editor::default();
        let text = "é日".as_bytes();
        for byte in text {
            editor.feed(&[*byte]);
        }
        editor.feed(b"\xff!");
        assert_eq!(editor.line(), "é日!");
    }

    #[test]
    fn what_is_pasted_is_one_line_with_its_breaks() {
        let mut editor = Editor::default();
        let keyed = editor.feed(b"\x1b[200~one\ntwo\x1b[201~\n");
        assert_eq!(keyed, [Keyed::Began, line("one\ntwo")]);
    }
}
