//! Excerpts of a call's arguments for the person who decides about it.
//!
//! A dialog has room for a line or two and a terminal for a page, but arguments may hold megabytes. An excerpt keeps
//! the names of all members as long as it can and shortens the longest texts first, with a mark that says how much is
//! left out. What names itself a secret is hidden. The work is linear in the arguments.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Shown;

mod secret;

/// How many columns of each text are kept, tried in this order until the whole fits.
const KEPT: [usize; 4] = [120, 60, 30, 12];

/// As much of each end of a long text is searched for secrets: far more than is kept of it.
const WINDOW: usize = 1 << 10;

/// The longest JSON that is shown whole, in bytes: no room is larger.
const WHOLE: usize = 32 << 10;

/// A member's name longer than this is shortened: names are read, not compared.
const NAME: usize = 40;

/// The columns that an error repeats of a name: those of tools have 64 characters at most, and of a URI this is enough
/// to find it again.
const REPEATED: usize = 200;

/// A piece of JSON on one line, escaped, in the room that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The text to show.
    pub text: String,
    /// Whether anything is left out.
    pub extent: Extent,
}

/// How much of its source an excerpt shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything, secrets apart.
    Whole,
    /// Less than everything; the text says how much is left out.
    Shortened,
}

impl Excerpt {
    /// Shows a JSON text in at most `room` columns.
    #[must_use]
    pub fn of_json(json: &str, room: usize) -> Self {
        // A column takes at least one byte once white space is gone; six is the longest spelling of a character.
        if json.len() <= room.saturating_mul(6).min(WHOLE) {
            let text = written(json, usize::MAX, usize::MAX);
            if text.width() <= room {
                return Self {
                    text,
                    extent: Extent::Whole,
                };
            }
        }
        let fitting = KEPT
            .into_iter()
            .map(|kept| written(json, kept, room))
            .find(|text| text.width() <= room);
        // Too many members: the last try is cut as a whole, and needs no more of the text than both its ends.
        let text = fitting.unwrap_or_else(|| {
            let text = written(json, KEPT[KEPT.len() - 1], usize::MAX);
            shortened(&text, room).into_owned()
        });
        Self {
            text,
            extent: Extent::Shortened,
        }
    }
}

/// Returns `text` in at most `room` columns: its beginning, how many characters are left out, and its end.
#[must_use]
pub fn shortened(text: &str, room: usize) -> Cow<'_, str> {
    // Anything shorter in bytes is no wider.
    if text.len() <= room || (text.len() <= room.saturating_mul(4) && text.width() <= room) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(cut(text, text, text.chars().count(), room))
}

/// Returns a name or URI that a client sent as an error repeats it: escaped, and shortened where it is long.
#[must_use]
pub fn repeated(name: &str) -> String {
    Shown::line(&shortened(name, REPEATED)).to_string()
}

/// Joins the beginning of `head` and the end of `tail`, of a text of `all` characters, in at most `room` columns.
fn cut(head: &str, tail: &str, all: usize, room: usize) -> String {
    let mark = |left_out: usize| format!(" … (+{left_out} characters) … ");
    let room = room.saturating_sub(mark(all).width());
    let (start, begin) = columns(head.chars(), room - room / 3);
    let (end, rest) = columns(tail.chars().rev(), room / 3);
    let left_out = all.saturating_sub(start + end);
    format!(
        "{}{}{}",
        &head[..begin],
        mark(left_out),
        &tail[tail.len() - rest..]
    )
}

/// Counts the characters that fit into so many columns, and their bytes.
fn columns(characters: impl Iterator<Item = char>, room: usize) -> (usize, usize) {
    let mut width = 0;
    characters
        .take_while(|found| {
            width += found.width().unwrap_or(0);
            width <= room
        })
        .fold((0, 0), |(count, bytes), found| {
            (count + 1, bytes + found.len_utf8())
        })
}

/// Writes JSON on one line with texts of at most `kept` columns; may stop once it is wider than `room`.
fn written(json: &str, kept: usize, room: usize) -> String {
    let bytes = json.as_bytes();
    let mut out = String::new();
    let mut at = 0;
    while at < bytes.len() && out.len() <= room.saturating_mul(6) {
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'"' => {
                let end = end_of_string(bytes, at);
                let inner = &json[at + 1..end.saturating_sub(1).max(at + 1)];
                let colon = skip_space(bytes, end);
                if bytes.get(colon) == Some(&b':') {
                    push_text(&mut out, &shortened(inner, kept.max(NAME)));
                    out.push_str(": ");
                    at = skip_space(bytes, colon + 1);
                    if secret::is_secret_name(inner) && !matches!(bytes.get(at), Some(b't' | b'f' | b'n')) {
                        at = end_of_value(bytes, at);
                        out.push_str("[hidden]");
                    }
                } else {
                    push_text(&mut out, &without_secrets(inner, kept));
                    at = end;
                }
            }
            b',' => {
                out.push_str(", ");
                at += 1;
            }
            b'{' | b'}' | b'[' | b']' => {
                out.push(char::from(bytes[at]));
                at += 1;
            }
            _ => {
                let end = end_of_word(bytes, at);
                out.push_str(&shortened(&json[at..end], kept));
                at = end;
            }
        }
    }
    Shown::json(&out)
}

fn push_text(out: &mut String, inner: &str) {
    out.push('"');
    out.push_str(inner);
    out.push('"');
}

/// Returns a text in at most `kept` columns, its secrets hidden; the middle of a long one is not looked at.
fn without_secrets(text: &str, kept: usize) -> String {
    if text.len() <= 2 * WINDOW || kept == usize::MAX {
        return shortened(&secret::without_tokens(text), kept).into_owned();
    }
    let head = secret::without_tokens(&text[..text.floor_char_boundary(WINDOW)]);
    let tail = secret::without_tokens(&text[text.ceil_char_boundary(text.len() - WINDOW)..]);
    cut(&head, &tail, text.chars().count(), kept)
}

/// Returns the place behind the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Returns the place behind a number or a literal.
fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let rest = bytes[at..].iter();
    let length = rest.take_while(|byte| !b"\",:{}[] \t\r\n".contains(byte)).count();
    // What is no JSON at all is passed byte by byte, at the next character's beginning.
    at + length.max(1)
}

/// Returns the place behind the value that begins at `at`, with all it holds.
fn end_of_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < bytes.len() {
        at = match bytes[at] {
            b'"' => end_of_string(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at + 1
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at + 1
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => at + 1,
            _ => end_of_word(bytes, at),
        };
        if depth == 0 {
            return at;
        }
    }
    at
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default().iter();
    at + rest.take_while(|byte| b" \t\r\n".contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::{assert_linear, assert_linear_on_hostile};
    use crate::protocol::quoted;

    fn whole(json: &str) -> String {
        let excerpt = Excerpt::of_json(json, 10_000);
        assert_eq!(excerpt.extent, Extent::Whole, "{excerpt:?}");
        excerpt.text
    }

    #[test]
    fn what_fits_is_shown_whole() {
        assert_eq!(
            whole("{ \"path\":\"/etc/passwd\",\n\"mode\" : 0.10, \"deep\":[1,{\"a\":null}] }"),
            r#"{"path": "/etc/passwd", "mode": 0.10, "deep": [1, {"a": null}]}"#
        );
        assert_eq!(whole("{}"), "{}");
    }

    #[test]
    fn an_excerpt_costs_no_more_than_the_bytes_of_its_source() {
        assert_linear_on_hostile("excerpt", |text| {
            for room in [74, 4_000] {
                drop(Excerpt::of_json(text, room));
            }
            drop(Excerpt::of_json(
                &format!(r#"{{"password":{text},"a":{}}}"#, quoted(text)),
                74,
            ));
        });
        assert_linear(
            "addresses",
            |size| "://a:b@".repeat(size / 7),
            |text| {
                drop(Excerpt::of_json(&quoted(text), 74));
            },
        );
    }

    #[test]
    fn what_could_deceive_is_written_out() {
        assert_eq!(
            whole("{\"a\u{202e}b\":\"x\\u001b[2J\u{200b}\"}"),
            r#"{"a\u202eb": "x\u001b[2J\u200b"}"#
        );
    }

    #[test]
    fn the_longest_texts_are_shortened_first_and_say_by_how_much() {
        let json = format!(r#"{{"path":"/etc/passwd","content":"{}end"}}"#, "x".repeat(5_000));
        let excerpt = Excerpt::of_json(&json, 148);
        assert_eq!(excerpt.extent, Extent::Shortened);
        assert!(excerpt.text.width() <= 148, "{}", excerpt.text);
        assert!(
            excerpt
                .text
                .starts_with(r#"{"path": "/etc/passwd", "content": "xxx"#),
            "{}",
            excerpt.text
        );
        assert!(excerpt.text.ends_with(r#"xend"}"#), "{}", excerpt.text);
        assert!(excerpt.text.contains(" characters) … "), "{}", excerpt.text);
    }

    #[test]
    fn many_members_are_cut_in_the_middle() {
        let members: Vec<String> = (0..1_000).map(|index| format!(r#""m{index}":{index}"#)).collect();
        let excerpt = Excerpt::of_json(&format!("{{{}}}", members.join(",")), 74);
        assert!(excerpt.text.width() <= 74);
        assert!(excerpt.text.starts_with(r#"{"m0": 0"#), "{}", excerpt.text);
        assert!(excerpt.text.ends_with("999}"), "{}", excerpt.text);
    }

    #[test]
    fn wide_characters_take_their_columns() {
        let excerpt = Excerpt::of_json(&format!(r#"{{"a":"{}"}}"#, "漢".repeat(100)), 74);
        assert!(excerpt.text.width() <= 74, "{}", excerpt.text);
        assert_eq!(shortened("漢字", 4), "漢字");
    }

    #[test]
    fn what_names_itself_a_secret_is_hidden() {
        assert_eq!(
            whole(
                r#"{"user":"ann","password":"hunter2","api_key":{"a":["b"]},"PIN":1,"authToken":77,"max_tokens":5,"secret":null}"#
            ),
            r#"{"user": "ann", "password": [hidden], "api_key": [hidden], "PIN": 1, "authToken": [hidden], "max_tokens": 5, "secret": null}"#
        );
    }

    #[test]
    fn a_long_name_is_repeated_by_its_ends() {
        assert_eq!(repeated("fs__read\u{1b}"), r"fs__read\u{1b}");
        let long = repeated(&"\u{202e}n".repeat(500_000));
        assert!(long.len() < 10 * REPEATED, "{}", long.len());
        assert!(long.contains("characters) …"), "{long}");
    }

    #[test]
    fn no_text_is_too_broken_to_be_shown() {
        for text in [
            "",
            "\"",
            "\"a\\",
            "{\"a\":",
            "{\"password\":",
            "é",
            "[[[",
            "\u{1b}",
            "{\"password\":\"",
            "]]",
        ] {
            let excerpt = Excerpt::of_json(text, 20);
            assert!(excerpt.text.width() <= 60, "{text:?} {excerpt:?}");
        }
    }
}
