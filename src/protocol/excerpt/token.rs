//! The tokens of a JSON text, in order; what is no JSON is passed on as words.

use super::secret;
use crate::protocol::lexer::{Lexeme, Lexer};

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
    lexer: Lexer<'a>,
    named: NameMeaning,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(json: &'a str) -> Self {
        Self {
            json,
            lexer: Lexer::of(json),
            named: NameMeaning::Otherwise,
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let (lexeme, place) = self.lexer.next()?;
        let token = &self.json[place];
        if lexeme == Lexeme::Sign(b':') {
            return Some(Token::Sign(": "));
        }
        let named = std::mem::replace(&mut self.named, NameMeaning::Otherwise);
        Some(match lexeme {
            Lexeme::Sign(b'{') => Token::Sign("{"),
            Lexeme::Sign(b'}') => Token::Sign("}"),
            Lexeme::Sign(b'[') => Token::Sign("["),
            Lexeme::Sign(b']') => Token::Sign("]"),
            Lexeme::Sign(_) => Token::Sign(", "),
            Lexeme::Word => Token::Word(token, named),
            Lexeme::String => {
                let behind = &token[1..];
                let inner = behind.strip_suffix('"').unwrap_or(behind);
                if self.lexer.peek() != Some(b':') {
                    return Some(Token::Text(inner, named));
                }
                if secret::is_secret_name(inner) {
                    self.named = NameMeaning::Secret;
                }
                Token::Name(inner)
            }
        })
    }
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
