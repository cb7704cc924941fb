//! Values that look like secrets, by the name they are given to or by what they are.
//!
//! A guess, on the careful side: what is taken for a secret is written as a reference, and the person sees its name.

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

/// Tells whether a value that is given under this name is a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim();
    let ordinary = value.is_empty()
        || ["true", "false", "none", "null"].contains(&value.to_ascii_lowercase().as_str())
        || value
            .chars()
            .all(|found| found.is_ascii_digit() && value.len() < 6)
        || value.starts_with('/')
        || value.starts_with("./")
        || value.starts_with('~');
    !ordinary && (names_secret(name) || is_token(value) || password_of(value).is_some())
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

/// Returns the password in an address, such as that of a database.
pub(super) fn password_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let (user, _) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty() && !password.contains("${")).then_some(password)
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
