//! Secrets that stand in the clear in what a person types for a server, and what to type instead.

use super::clear_text::{ClearPart, in_address, in_header, in_variable, in_word};
use super::reference::variable_name;
use super::secret::password_in;

/// A secret that would be written down as it was typed; its value is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearSecret {
    /// What it is the value of, in words.
    pub what: String,
    /// The same with a reference in its place, as words of `pml add`.
    pub instead: Vec<String>,
}

impl ClearSecret {
    /// Takes the first of the secrets that were found in what follows these words.
    fn first(found: Vec<ClearPart>, words: &[&str]) -> Option<Self> {
        let ClearPart { what, instead, .. } = found.into_iter().next()?;
        let words = words.iter().map(|word| (*word).to_owned());
        Some(Self {
            what,
            instead: words.chain(instead).collect(),
        })
    }
}

/// Finds the secret of a variable.
#[must_use]
pub fn clear_variable(name: &str, value: &str) -> Option<ClearSecret> {
    ClearSecret::first(in_variable(name, value), &["--env"])
}

/// Finds the secret of a header of the server that is called `server`.
#[must_use]
pub fn clear_header(server: &str, name: &str, value: &str) -> Option<ClearSecret> {
    ClearSecret::first(in_header(server, name, value), &["--header"])
}

/// Finds the secret in the address of a server: its password, or a parameter of its query.
///
/// An address that is declared has no password, not even a reference to one: a header carries it.
#[must_use]
pub fn clear_address(server: &str, address: &str) -> Option<ClearSecret> {
    if password_in(address).is_some() {
        let header = format!("Authorization: Basic ${{{}_TOKEN}}", variable_name(server));
        return Some(ClearSecret {
            what: "the password in the address".to_owned(),
            instead: ["--url", "…", "--header", &header].map(str::to_owned).to_vec(),
        });
    }
    ClearSecret::first(in_address(server, address), &["--url"])
}

/// Finds the first secret among the words of the command of the server that is called `server`.
#[must_use]
pub fn clear_word(server: &str, words: &[String]) -> Option<ClearSecret> {
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    let mut words = before.zip(words);
    words.find_map(|(before, word)| ClearSecret::first(in_word(server, before, word), &["--", "…"]))
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
                "the password in the address -> --url … --header Authorization: Basic ${S_TOKEN}",
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
                "the password in the address -> -- … postgres://…:${S_PASSWORD}@…",
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
