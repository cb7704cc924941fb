//! Secrets in the arguments of a call, known by the name of their member or by the shape of the text itself.

use std::ops::Range;

/// Parts of member names that announce a secret; compared without case, `_` and `-`.
const NAMES: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
    "cookie",
];

/// How the tokens of well-known services begin; what follows is the secret.
const TOKENS: [&str; 17] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "pypi-",
    "hf_",
];

/// Words that stand before a secret in a header.
const SCHEMES: [&str; 2] = ["Bearer ", "Basic "];

/// With which characters those, and the password of an address, begin.
const BEGINNINGS: [char; 9] = ['g', 's', 'x', 'A', 'n', 'p', 'h', 'B', ':'];

/// Fewer characters than this are a word, not a token.
const SHORTEST: usize = 12;

/// A name longer than this is no name of a secret that anybody uses.
const LONGEST_NAME: usize = 100;

/// Tells whether a member's name announces a secret; a count of tokens does not.
pub(super) fn is_secret_name(name: &str) -> bool {
    if name.len() > LONGEST_NAME {
        return false;
    }
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|found| found.to_ascii_lowercase())
        .collect();
    !plain.ends_with("tokens") && NAMES.iter().any(|part| plain.contains(part))
}

/// Finds what is hidden in the value of a member whose name announces a secret: all of it.
pub(super) fn in_named_value(value: &str) -> Vec<Range<usize>> {
    named_token(value).into_iter().collect()
}

/// Returns the part of such a value that is hidden.
pub(super) fn named_token(value: &str) -> Option<Range<usize>> {
    (!value.is_empty()).then_some(0..value.len())
}

/// Finds the tokens of well-known services, credentials of headers, and passwords of addresses.
pub(super) fn in_text(text: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find(BEGINNINGS) {
        at += next;
        let rest = &text[at..];
        let begins_word = !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
        let found = TOKENS
            .iter()
            .chain(&SCHEMES)
            .filter(|prefix| begins_word && rest.starts_with(**prefix))
            .map(|prefix| (at + prefix.len(), run(&rest[prefix.len()..])))
            .find(|(_, length)| *length >= SHORTEST);
        if let Some((from, length)) = found {
            hidden.push(from..from + length);
            at = from + length;
        } else if rest.starts_with("://") {
            let (from, length) = password(text, at + 3);
            if length > 0 {
                hidden.push(from..from + length);
            }
            at = from + length;
        } else {
            at += 1;
        }
    }
    hidden
}

/// Counts the bytes that a token may consist of.
fn run(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.~+/=".contains(byte))
        .count()
}

/// Finds the password in the authority that begins at `at`: its place and length, 0 where there is none.
fn password(text: &str, at: usize) -> (usize, usize) {
    let authority = text[at..]
        .bytes()
        .take_while(|byte| !byte.is_ascii_whitespace() && !b"/?#\"'\\".contains(byte))
        .count();
    let authority = &text[at..at + authority];
    match (authority.find(':'), authority.rfind('@')) {
        (Some(colon), Some(sign)) if colon < sign => (at + colon + 1, sign - colon - 1),
        _ => (at + authority.len(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_tokens(text: &str) -> String {
        let mut out = text.to_owned();
        for range in in_text(text).into_iter().rev() {
            out.replace_range(range, "[hidden]");
        }
        out
    }

    #[test]
    fn tokens_are_known_by_their_shape() {
        for (text, hidden) in [
            (
                "curl -H 'Authorization: Bearer abcdefghijkl.mnop' x",
                "curl -H 'Authorization: Bearer [hidden]' x",
            ),
            (
                "git clone https://ann:hunter2@host/x",
                "git clone https://ann:[hidden]@host/x",
            ),
            ("export T=ghp_0123456789abcdef; ls", "export T=ghp_[hidden]; ls"),
            ("sk-short", "sk-short"),
            ("task-0123456789abcdef", "task-0123456789abcdef"),
            ("http://host:80/a@b", "http://host:80/a@b"),
            ("nothing here", "nothing here"),
            ("é://ü:ö@ä", "é://ü:[hidden]@ä"),
        ] {
            assert_eq!(without_tokens(text), hidden);
        }
    }

    #[test]
    fn every_beginning_is_looked_for() {
        for prefix in TOKENS.iter().chain(&SCHEMES) {
            assert!(prefix.starts_with(BEGINNINGS), "{prefix}");
        }
    }

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "password",
            "DB_PASSWORD",
            "apiKey",
            "api-key",
            "client_secret",
            "Authorization",
            "set-cookie",
            "token",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["path", "max_tokens", "author", "key", "passage"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
