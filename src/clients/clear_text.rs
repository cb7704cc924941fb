//! Secrets that stand in the clear in what a person types for a server, as [`super::translate`] finds them in a client.

use super::reference::{is_reference, variable_name};
use super::secret::{is_secret, is_secret_option, is_token, password_of};
use crate::protocol::{Shown, is_secret_name};

/// A secret that would be written down as it was typed; its value is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearSecret {
    /// What it is the value of, in words.
    pub what: String,
    /// The same with a reference in its place, as words of `pml add`.
    pub instead: Vec<String>,
}

/// Finds the secret of a variable.
#[must_use]
pub fn clear_variable(name: &str, value: &str) -> Option<ClearSecret> {
    is_clear(name, value).then(|| ClearSecret {
        what: format!("the value of `{}`", Shown::line(name)),
        instead: vec!["--env".to_owned(), format!("{name}=${{{name}}}")],
    })
}

/// Finds the secret of a header of the server that is called `server`.
#[must_use]
pub fn clear_header(server: &str, name: &str, value: &str) -> Option<ClearSecret> {
    let (scheme, value) = match value.split_once(' ') {
        Some((word, value)) if word.chars().all(|found| found.is_ascii_alphabetic()) => (word, value.trim()),
        _ => ("", value),
    };
    let suffix = if name.eq_ignore_ascii_case("authorization") {
        "TOKEN".to_owned()
    } else {
        variable_name(name)
    };
    let variable = format!("{}_{suffix}", variable_name(server));
    let space = if scheme.is_empty() { "" } else { " " };
    is_clear(name, value).then(|| ClearSecret {
        what: format!("the value of the header `{}`", Shown::line(name)),
        instead: vec![
            "--header".to_owned(),
            format!("{name}: {scheme}{space}${{{variable}}}"),
        ],
    })
}

/// Finds the secret in the address of a server: its password, or a parameter of its query.
#[must_use]
pub fn clear_address(server: &str, address: &str) -> Option<ClearSecret> {
    // Neither hint repeats the rest of the address: it may hold another secret.
    let found = |what: String, address: String| ClearSecret {
        what,
        instead: vec!["--url".to_owned(), address],
    };
    if password_of(address).is_some() {
        let hidden = without_password(server, address);
        return Some(found("the password in the address".to_owned(), hidden));
    }
    let (_, query) = address.split_once('?')?;
    let query = query.split('#').next()?;
    let (name, _) = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, value)| is_clear(name, value))?;
    let variable = format!("{}_{}", variable_name(server), variable_name(name));
    Some(found(
        format!("the value of `{}` in the address", Shown::line(name)),
        format!("…{name}=${{{variable}}}…"),
    ))
}

/// Returns an address with a reference for its password, and nothing else of it.
fn without_password(server: &str, address: &str) -> String {
    let scheme = address.split("://").next().unwrap_or_default();
    format!("{scheme}://…:${{{}_PASSWORD}}@…", variable_name(server))
}

/// Finds the first secret among the words of the command of the server that is called `server`.
#[must_use]
pub fn clear_word(server: &str, words: &[String]) -> Option<ClearSecret> {
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    before
        .zip(words)
        .find_map(|(before, word)| in_word(server, before, word))
}

fn in_word(server: &str, before: &str, word: &str) -> Option<ClearSecret> {
    let of_server = |what: &str| format!("{}_{what}", variable_name(server));
    let is_header = ["--header", "-H"].contains(&before);
    if let (true, Some((name, value))) = (is_header, word.split_once(':')) {
        let found = clear_header(server, name.trim(), value.trim())?;
        let instead = found.instead.last()?.clone();
        return Some(ClearSecret {
            what: found.what,
            instead: vec!["--".to_owned(), "…".to_owned(), before.to_owned(), instead],
        });
    }
    let (option, value, attached) = match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') || is_variable(option) => (option, value, true),
        _ if before.starts_with("--") && !before.contains('=') => (before, word, false),
        _ => ("", word, false),
    };
    let long = option.trim_start_matches('-');
    let hidden = |variable: &str, value: &str| {
        let line = if attached {
            vec![format!("{option}={value}")]
        } else {
            [option, value]
                .into_iter()
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let what = match option {
            "" if variable.is_empty() => "a password among the words of the command".to_owned(),
            "" => "a token among the words of the command".to_owned(),
            option => format!("the value of `{}`", Shown::line(option)),
        };
        let begin = ["--", "…"].map(str::to_owned);
        ClearSecret {
            what,
            instead: begin.into_iter().chain(line).collect(),
        }
    };
    if password_of(value).is_some() {
        return Some(hidden("", &without_password(server, value)));
    }
    if is_reference(value) {
        return None;
    }
    let is_named = if is_variable(option) {
        is_clear(option, value)
    } else {
        !value.is_empty()
            && (is_secret_option(long, value) || is_secret_name(long) && !value.starts_with('-'))
    };
    let variable = if is_named {
        variable_name(long)
    } else if is_token(value) {
        of_server("TOKEN")
    } else {
        return None;
    };
    Some(hidden(&variable, &format!("${{{variable}}}")))
}

/// Tells whether a word is the name of a variable, as in `docker run -e NAME=value`.
fn is_variable(word: &str) -> bool {
    super::reference::is_name(word)
}

/// Tells whether a value is a secret that stands in the clear, also as the default of a reference.
fn is_clear(name: &str, value: &str) -> bool {
    if value.is_empty() || password_of(value).is_some() {
        return !value.is_empty();
    }
    if is_reference(value) {
        let defaults = value.split(":-").skip(1);
        let mut defaults = defaults.filter_map(|rest| rest.split('}').next());
        return defaults.any(is_token);
    }
    is_secret(name, value) || is_secret_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn told(found: Option<ClearSecret>) -> String {
        found.map_or_else(String::new, |found| {
            format!("{} -> {}", found.what, found.instead.join(" "))
        })
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands_and_written_as_a_reference() {
        for (found, expected) in [
            (
                clear_variable("KEY", "abc"),
                "the value of `KEY` -> --env KEY=${KEY}",
            ),
            (
                clear_variable("DATABASE_URL", "postgres://me:pw@h/db"),
                "the value of `DATABASE_URL` -> --env DATABASE_URL=${DATABASE_URL}",
            ),
            (
                clear_variable("X", "${X:-sk-0123456789abc}"),
                "the value of `X` -> --env X=${X}",
            ),
            (
                clear_header("my-s", "Authorization", "Bearer abc"),
                "the value of the header `Authorization` -> --header Authorization: Bearer ${MY_S_TOKEN}",
            ),
            (
                clear_header("s", "X-Api-Key", "abc"),
                "the value of the header `X-Api-Key` -> --header X-Api-Key: ${S_X_API_KEY}",
            ),
            (
                clear_address("s", "https://me:pw@h/mcp"),
                "the password in the address -> --url https://…:${S_PASSWORD}@…",
            ),
            (
                clear_address("s", "https://h/mcp?a=b&api_key=abc"),
                "the value of `api_key` in the address -> --url …api_key=${S_API_KEY}…",
            ),
            (
                clear_word("s", &words("./s --api-key sk-0123456789ab")),
                "the value of `--api-key` -> -- … --api-key ${API_KEY}",
            ),
            (
                clear_word("s", &words("./s --token=abc")),
                "the value of `--token` -> -- … --token=${TOKEN}",
            ),
            (
                clear_word("s", &words("docker run -e GITHUB_PAT=abc image")),
                "the value of `GITHUB_PAT` -> -- … GITHUB_PAT=${GITHUB_PAT}",
            ),
            (
                clear_word("s", &words("./s ghp_0123456789ab")),
                "a token among the words of the command -> -- … ${S_TOKEN}",
            ),
            (
                clear_word("s", &words("./s postgres://me:pw@h/db")),
                "a password among the words of the command -> -- … postgres://…:${S_PASSWORD}@…",
            ),
            (
                clear_word(
                    "s",
                    &["./s", "--header", "Authorization: Bearer abc"].map(str::to_owned),
                ),
                "the value of the header `Authorization` -> -- … --header Authorization: Bearer ${S_TOKEN}",
            ),
        ] {
            assert_eq!(told(found), expected);
        }
    }

    #[test]
    fn what_is_no_secret_may_be_typed() {
        for found in [
            clear_variable("LOG_LEVEL", "debug"),
            clear_variable("API_TOKEN", "${MY_TOKEN}"),
            clear_variable("AUTH_MODE", "${AUTH_MODE:-basic}"),
            clear_variable("API_TOKEN", ""),
            clear_header("s", "Accept", "text/plain"),
            clear_header("s", "Authorization", "Bearer ${TOKEN}"),
            clear_address("s", "https://h/mcp?mode=all"),
            clear_address("s", "https://me:${PW}@h/mcp"),
            clear_word("s", &words("npx -y @scope/name /tmp --port 8080")),
            clear_word(
                "s",
                &words("./s --key-file ./k.pem --token ${TOKEN} --token --other"),
            ),
            clear_word("s", &words("docker run -e MODE=all -e GITHUB_PAT image")),
        ] {
            assert_eq!(found, None);
        }
    }
}
