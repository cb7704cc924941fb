//! The tokens of a JSON text, in order; what is no JSON is passed on as words.

use super::secret;

/// A part of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A bracket, a comma or a colon, as it is shown.
    Sign(&'static str),
    /// The name of a member, without its quotes.
    Name(&'a str),
    /// A string, without its quotes.
    Text(&'a str, NameMeaning),
    /// A number or a literal.
    Word(&'a str, NameMeaning),
}

/// What the name of a value says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameMeaning {
    /// That it is a secret.
    Secret,
    /// Nothing, or it has none.
    Otherwise,
}

/// Reads a JSON text token by token.
pub(super) struct Tokens<'a> {
    json: &'a str,
    at: usize,
    named: NameMeaning,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(json: &'a str) -> Self {
        Self {
            json,
            at: 0,
            named: NameMeaning::Otherwise,
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.json.as_bytes();
        self.at = skip_space(bytes, self.at);
        let from = self.at;
        let first = *bytes.get(from)?;
        if first == b':' {
            self.at += 1;
            return Some(Token::Sign(": "));
        }
        let named = std::mem::replace(&mut self.named, NameMeaning::Otherwise);
        let sign = match first {
            b'{' => Some("{"),
            b'}' => Some("}"),
            b'[' => Some("["),
            b']' => Some("]"),
            b',' => Some(", "),
            _ => None,
        };
        if let Some(sign) = sign {
            self.at += 1;
            return Some(Token::Sign(sign));
        }
        if first != b'"' {
            self.at = end_of_word(bytes, from);
            return Some(Token::Word(&self.json[from..self.at], named));
        }
        self.at = end_of_string(bytes, from);
        let closed = bytes[..self.at].ends_with(b"\"") && self.at > from + 1;
        let inner = &self.json[from + 1..self.at - usize::from(closed)];
        if bytes.get(skip_space(bytes, self.at)) != Some(&b':') {
            return Some(Token::Text(inner, named));
        }
        if secret::is_secret_name(inner) {
            self.named = NameMeaning::Secret;
        }
        Some(Token::Name(inner))
    }
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
    at + rest.take_while(|byte| !b"\",:{}[] \t\r\n".contains(byte)).count()
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default().iter();
    at + rest.take_while(|byte| b" \t\r\n".contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_with_what_its_names_say() {
        let read: Vec<Token<'_>> =
            Tokens::of(r#" {"a" : [1,"x\""], "token":"t", "secret":{"b":null}}"#).collect();
        assert_eq!(
            read,
            [
                Token::Sign("{"),
                Token::Name("a"),
                Token::Sign(": "),
                Token::Sign("["),
                Token::Word("1", NameMeaning::Otherwise),
                Token::Sign(", "),
                Token::Text("x\\\"", NameMeaning::Otherwise),
                Token::Sign("]"),
                Token::Sign(", "),
                Token::Name("token"),
                Token::Sign(": "),
                Token::Text("t", NameMeaning::Secret),
                Token::Sign(", "),
                Token::Name("secret"),
                Token::Sign(": "),
                Token::Sign("{"),
                Token::Name("b"),
                Token::Sign(": "),
                Token::Word("null", NameMeaning::Otherwise),
                Token::Sign("}"),
                Token::Sign("}"),
            ]
        );
    }

    #[test]
    fn no_text_is_too_broken_to_be_read() {
        for (text, count) in [
            ("", 0),
            ("\"", 1),
            ("\"a\\", 1),
            ("{\"a\":", 3),
            ("é", 1),
            (":::", 3),
            ("\"\\\"", 1),
        ] {
            assert_eq!(Tokens::of(text).count(), count, "{text:?}");
        }
    }
}
