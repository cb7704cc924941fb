//! Collects what a server or an installer is given in confidence.
//!
//! Which value is a secret is written nowhere. So every value counts that a person kept out of the configuration by a
//! `${VAR}`, that is declared as a variable or a header, or that stands in the query of an address. Of what passes to
//! every server (`HOME`, `PATH`, proxies) only the credentials within an address count: the rest is in every text.
//! How each is hidden is the business of [`Secrets`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;

use super::variables::{PROXIES, passes};
use crate::config::Environment;
use crate::protocol::Secrets;

/// The values given in confidence, while they are collected.
#[derive(Debug, Default)]
pub(in crate::loader) struct SecretCollector(Vec<(String, String)>);

impl SecretCollector {
    /// Takes the value of a variable, and the credentials within it.
    pub(in crate::loader) fn variable(&mut self, name: &str, value: &str) {
        if !passes(name.as_ref()) {
            self.take(name, value);
        }
        self.addresses(name, value);
    }

    /// Takes the value of a header: whole, each of its words, and what `Basic` encodes.
    pub(in crate::loader) fn header(&mut self, name: &str, value: &str) {
        self.take(name, value);
        for word in value.split(' ') {
            self.take(name, word);
            let decoded = STANDARD
                .decode(word)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some((_, password)) = decoded.as_deref().and_then(|pair| pair.split_once(':')) {
                self.take(name, password);
            }
        }
    }

    /// Takes the credentials of the proxies that pass to every server.
    pub(in crate::loader) fn proxies(&mut self, environment: &Environment) {
        for proxy in PROXIES {
            for name in [proxy.to_owned(), proxy.to_ascii_lowercase()] {
                match environment.variable(&name).and_then(|value| value.to_str()) {
                    Some(value) if value.contains("://") => self.addresses(&name, value),
                    // The scheme of a proxy may be left out.
                    Some(value) => self.addresses(&name, &format!("http://{value}")),
                    None => {}
                }
            }
        }
    }

    /// Takes the credentials within every address of a text: who calls, the query, and what looks like a token in the
    /// path, where some registries want one.
    pub(in crate::loader) fn addresses(&mut self, name: &str, text: &str) {
        for word in text.split([' ', '\t', '\n', '\r', '"', '\'', ',']) {
            let Some(scheme) = word.find("://") else { continue };
            // `name=https://…` is how an index is given its name.
            let start = word[..scheme]
                .rfind(|found: char| !found.is_ascii_alphanumeric() && !"+-.".contains(found))
                .map_or(0, |before| before + 1);
            if let Ok(address) = Url::parse(&word[start..]) {
                self.address(name, &address);
            }
        }
    }

    /// Takes the values of an address's query.
    pub(in crate::loader) fn query(&mut self, name: &str, address: &Url) {
        self.take(name, address.query().unwrap_or_default());
        for (_, value) in address.query_pairs() {
            self.take(name, &value);
        }
    }

    /// Takes a value as it is.
    pub(in crate::loader) fn take(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// Leaves out what stands in `shown`, which a person is shown anyway.
    pub(in crate::loader) fn but_for(&mut self, shown: &str) {
        self.0.retain(|(_, value)| !shown.contains(value.as_str()));
    }

    /// Makes them ready to be hidden.
    pub(in crate::loader) fn secrets(self) -> Secrets {
        Secrets::new(self.0)
    }

    fn address(&mut self, name: &str, address: &Url) {
        self.query(name, address);
        match address.password() {
            Some(password) => self.decoded(name, password),
            // A name alone is the token of some registries.
            None => self.decoded(name, address.username()),
        }
        for part in address.path_segments().into_iter().flatten() {
            let is_long = part.len() >= 16;
            let is_mixed = part.len() >= 8
                && part.bytes().any(|byte| byte.is_ascii_digit())
                && part.bytes().any(|byte| byte.is_ascii_alphabetic());
            if is_long || is_mixed {
                self.decoded(name, part);
            }
        }
    }

    /// Takes a part of an address as it is meant; the search finds it as it is written as well.
    fn decoded(&mut self, name: &str, part: &str) {
        let pair = format!("x={}", part.replace('+', "%2B"));
        if let Some((_, meant)) = url::form_urlencoded::parse(pair.as_bytes()).next() {
            self.take(name, &meant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(collect: impl FnOnce(&mut SecretCollector), text: &str) -> String {
        let mut given = SecretCollector::default();
        collect(&mut given);
        given.secrets().hide(text).into_owned()
    }

    #[test]
    fn declared_variables_count_and_what_passes_everywhere_does_not() {
        let collect = |given: &mut SecretCollector| {
            given.variable("HOME", "/home/user");
            given.variable("TOKEN", "abcdefgh");
            given.variable("DATABASE", "postgres://user:pass%2Fword@host/db");
        };
        assert_eq!(
            hidden(
                collect,
                "/home/user abcdefgh pass/word postgres://user:pass%2Fword@host/db"
            ),
            "/home/user [TOKEN] [DATABASE] [DATABASE]"
        );
    }

    #[test]
    fn of_an_address_that_passes_only_the_credentials_count() {
        let environment = Environment::new(
            [
                ("HTTPS_PROXY", "http://user:hunter22@proxy.test:3128"),
                ("http_proxy", "other:l0ng-enough@proxy.test:3128"),
            ],
            "/",
        );
        assert_eq!(
            hidden(
                |given| given.proxies(&environment),
                "http://user:hunter22@proxy.test:3128 and l0ng-enough by dXNlcjpodW50ZXIyMg=="
            ),
            "http://user:[HTTPS_PROXY]@proxy.test:3128 and [http_proxy] by dXNlcjp[HTTPS_PROXY]g=="
        );
    }

    #[test]
    fn an_index_may_hold_its_token_anywhere() {
        let collect = |given: &mut SecretCollector| {
            given.addresses(
                "UV_INDEX",
                "one=https://t0ken-of-one@one.test/simple https://two.test/T0kenOfTwo/simple/?key=k3yOfTwo!",
            );
        };
        assert_eq!(
            hidden(
                collect,
                "one.test/simple: t0ken-of-one, T0kenOfTwo/simple, k3yOfTwo!"
            ),
            "one.test/simple: [UV_INDEX], [UV_INDEX]/simple, [UV_INDEX]"
        );
    }

    #[test]
    fn a_header_counts_whole_by_its_words_and_by_what_it_encodes() {
        let collect =
            |given: &mut SecretCollector| given.header("authorization", "Basic dXNlcjpodW50ZXIyMg==");
        assert_eq!(
            hidden(collect, "dXNlcjpodW50ZXIyMg== is hunter22, in Basic"),
            "[authorization] is [authorization], in Basic"
        );
    }
}
