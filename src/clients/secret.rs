//! Values that look like secrets, by the name they are given to or by what they are.
//!
//! A guess, on the careful side: what is taken for a secret is written as a reference, and the person sees its name.

use std::ops::Range;

/// Parts of the names of variables, options and headers whose values are secrets.
const NAMES: [&str; 15] = [
    "apikey",
    "authorization",
    "auth",
    "connectionstring",
    "cookie",
    "credential",
    "credentials",
    "dsn",
    "key",
    "pass",
    "passwd",
    "password",
    "pat",
    "secret",
    "token",
];

/// How tokens of well-known services begin.
const BEGINNINGS: [&str; 22] = [
    "AIza",
    "AKIA",
    "ATATT",
    "eyJ",
    "figd_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "lin_api_",
    "ntn_",
    "npm_",
    "pplx-",
    "secret_",
    "sk-",
    "sk_",
    "tvly-",
    "xoxb-",
    "xoxp-",
];

/// Shorter texts are words, not tokens.
const TOKEN_LENGTH: usize = 12;

/// Directories at the root have shorter names: `/Applications` is the longest that is usual.
const LONGEST_ROOT: usize = 12;

/// Tells whether a value that is given under this name is a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim();
    let ordinary = value.is_empty()
        || is_switch(value)
        || value
            .chars()
            .all(|found| found.is_ascii_digit() && value.len() < 6)
        || value.starts_with('/')
        || value.starts_with("./")
        || value.starts_with('~');
    !ordinary && (names_secret(name) || is_token(value) || password_in(value).is_some())
}

/// Tells whether a name says that its value is a secret.
pub(super) fn names_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|found: char| !found.is_ascii_alphanumeric());
    let joined: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    words.any(|word| NAMES.contains(&word))
        || ["token", "apikey", "secret", "password"]
            .iter()
            .any(|end| joined.ends_with(end))
}

/// Tells whether the value of an option is a secret: by the name of the option, which must not name a file.
pub(super) fn is_secret_option(option: &str, value: &str) -> bool {
    let lower = option.to_ascii_lowercase();
    let names_place = ["file", "path", "dir", "url"]
        .iter()
        .any(|end| lower.ends_with(end));
    !names_place && names_secret(option) && is_secret(option, value) && !value.starts_with('-')
}

/// Tells whether a text is a token of a well-known service.
pub(super) fn is_token(text: &str) -> bool {
    let plain = |found: char| found.is_ascii_alphanumeric() || "-_.=+/".contains(found);
    text.len() >= TOKEN_LENGTH
        && text.chars().all(plain)
        && BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Returns where the password in an address stands, such as in that of a database.
pub(super) fn password_in(text: &str) -> Option<Range<usize>> {
    let (scheme, rest) = text.split_once("://")?;
    let (user, _) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let from = scheme.len() + "://".len() + name.len() + ":".len();
    (!password.is_empty() && !password.contains("${")).then(|| from..from + password.len())
}

/// Tells whether a value only turns something on or off.
pub(super) fn is_switch(value: &str) -> bool {
    ["true", "false", "none", "null"].contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Tells whether a value is certainly the path of a file: random characters may begin with a slash as well.
pub(super) fn is_path(value: &str) -> bool {
    let first = value
        .strip_prefix('/')
        .and_then(|rest| Some(rest.split_once('/')?.0));
    let is_directory = |name: &str| {
        (1..=LONGEST_ROOT).contains(&name.len()) && name.chars().all(|found| found.is_ascii_alphabetic())
    };
    value.starts_with("./") || value.starts_with("~/") || first.is_some_and(is_directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names_and_by_what_they_are() {
        for (name, value) in [
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "x1"),
            ("githubToken", "abc"),
            ("API-KEY", "abc"),
            ("DB_PASSWORD", "p"),
            ("ANYTHING", "ghp_0123456789abcdef"),
            ("URL", "postgres://me:pw@host/db"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (path, is) in [
            ("/home/me/key.json", true),
            ("~/key", true),
            ("./key", true),
            ("/9fX2+a/Q", false),
            ("/abc", false),
            ("key", false),
        ] {
            assert_eq!(is_path(path), is, "{path}");
        }
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("TOKEN_LIMIT_FILE", "/tmp/x"),
            ("USE_TOKEN", "true"),
            ("KEYBOARD", "us"),
            ("URL", "https://example.com/a"),
            ("MAX_TOKENS", "4096"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }
}
