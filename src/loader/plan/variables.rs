//! The environment of a server: cleared, a short list of what programs need, then what the server declares.
//!
//! pml's own environment holds the client's secrets (its API key, its messaging token) and those of the shell it
//! was started from. So this is a list of what *passes*, never of what is held back: a variable that was not thought of
//! does not reach a server. What passes is where things are, in which language, and how to reach the network.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::config::Environment;

/// What passes by its exact name.
const PASSED: [&str; 21] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    // Where the user's files are when they are not below HOME. Not XDG_RUNTIME_DIR: it is the door to the sockets
    // of the session (keyring, message bus, display), and a server that needs it can declare it.
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    // Company networks terminate TLS: without their certificates nothing is reached.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
];

/// What passes in capitals and in small letters: programs disagree on which they read.
pub(in crate::loader) const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// What the names of the locale's parts start with.
const LOCALE: &str = "LC_";

/// Returns the complete environment of a server that declares `declared`, already expanded; what it declares wins.
#[must_use]
pub fn variables(
    environment: &Environment,
    declared: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let passed = environment
        .variables()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let declared = declared.iter().map(|(name, value)| (name.into(), value.into()));
    passed.chain(declared).collect()
}

/// Tells whether a variable of pml's own environment reaches a server that does not declare it.
#[must_use]
pub fn passes(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        PASSED.contains(&name)
            || name.starts_with(LOCALE)
            || PROXIES
                .iter()
                .any(|proxy| *proxy == name || proxy.to_ascii_lowercase() == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(&str, &str)], declared: &[(&str, &str)]) -> Vec<(String, String)> {
        let environment = Environment::new(all.iter().copied(), "/");
        let declared = declared
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        variables(&environment, &declared)
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_programs_need_passes_and_secrets_do_not() {
        assert_eq!(
            of(
                &[
                    ("ANTHROPIC_API_KEY", "secret"),
                    ("AWS_SECRET_ACCESS_KEY", "secret"),
                    ("CLAUDECODE", "1"),
                    ("CLAUDE_CODE_MESSAGING_TOKEN", "secret"),
                    ("GITHUB_TOKEN", "secret"),
                    ("HOME", "/home/user"),
                    ("HTTPS_PROXY", "http://proxy:3128"),
                    ("LC_ALL", "C.UTF-8"),
                    ("LD_PRELOAD", "/tmp/hook.so"),
                    ("NODE_OPTIONS", "--require /tmp/hook.js"),
                    ("PATH", "/bin"),
                    ("PML_CONFIG", "/x"),
                    ("PYTHONPATH", "/tmp"),
                    ("SSH_AUTH_SOCK", "/tmp/agent"),
                    ("XDG_RUNTIME_DIR", "/run/user/1000"),
                    ("no_proxy", "localhost"),
                ],
                &[]
            ),
            owned(&[
                ("HOME", "/home/user"),
                ("HTTPS_PROXY", "http://proxy:3128"),
                ("LC_ALL", "C.UTF-8"),
                ("PATH", "/bin"),
                ("no_proxy", "localhost"),
            ])
        );
    }

    #[test]
    fn what_is_declared_passes_and_wins() {
        assert_eq!(
            of(
                &[("PATH", "/bin"), ("TOKEN", "of the shell")],
                &[("PATH", "/opt/bin"), ("TOKEN", "declared")]
            ),
            owned(&[("PATH", "/opt/bin"), ("TOKEN", "declared")])
        );
    }

    #[test]
    fn only_the_exact_spelling_passes() {
        for name in ["home", "PATH_TOKEN", "MY_HTTP_PROXY", "Http_Proxy", "LC", ""] {
            assert!(!passes(OsStr::new(name)), "{name}");
        }
    }
}
