//! Where a remote server is: its address and the headers of every request, expanded and checked. Pure.
//!
//! Both may hold secrets. What is shown of them is the origin, the path as it was declared and the *names* of the
//! headers; errors repeat no value either.

use std::collections::BTreeMap;
use std::fmt;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::secrets::SecretCollector;
use crate::http_client::is_loopback;
use crate::protocol::Shown;
use crate::protocol::approval::ShownRemote;
use crate::report::Hint;

/// Headers that belong to the transport: another value would break it, or tell the server something untrue.
const RESERVED: [&str; 11] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// Says why a remote server cannot be reached as it is declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The `url` is no address.
    #[error("its `url` is not an address: {0}")]
    Malformed(String),
    /// The `url` is not one of HTTP.
    #[error("its `url` begins neither with `https://` nor with `http://`")]
    Scheme,
    /// A name and a password stand in the `url`.
    #[error("its `url` holds a user name or a password, which would be shown wherever the address is")]
    Credentials,
    /// A header has no possible name.
    #[error("`{0}` is not the name of a header")]
    Name(String),
    /// A header's value holds what no header can.
    #[error("the value of its header `{0}` has line breaks or control characters")]
    Value(String),
    /// A header belongs to the transport.
    #[error("its header `{0}` is set by pml itself")]
    Reserved(String),
}

impl Hint for AddressError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Malformed(_) | Self::Scheme => {
                Some("write it out, such as \"url\": \"https://example.com/mcp\"".to_owned())
            }
            Self::Credentials => Some(
                "send them as a header: \"headers\": {\"Authorization\": \"Basic ${CREDENTIALS}\"}"
                    .to_owned(),
            ),
            Self::Name(_) | Self::Value(_) | Self::Reserved(_) => None,
        }
    }
}

/// Where a remote server is.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    headers: HeaderMap,
}

impl fmt::Debug for Address {
    /// Shows the origin alone: the rest may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Address").field(&self.origin()).finish()
    }
}

impl Address {
    /// Checks an address and its headers, both expanded.
    pub fn new(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, AddressError> {
        let url: Url = url
            .trim()
            .parse()
            .map_err(|error: <Url as std::str::FromStr>::Err| AddressError::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Credentials);
        }
        let headers = headers
            .iter()
            .map(|(name, value)| header(name, value))
            .collect::<Result<_, _>>()?;
        Ok(Self { url, headers })
    }

    /// Returns the whole address; it may hold secrets.
    pub(in crate::loader) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the headers of every request; they hold secrets.
    pub(in crate::loader) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Adds its headers and its query to what must not be shown. Its origin is always shown, also where it was made of variables.
    pub(in crate::loader) fn collect_secrets(&self, secrets_found: &mut SecretCollector) {
        for (name, value) in &self.headers {
            secrets_found.header(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
        }
        secrets_found.query("query", &self.url);
        secrets_found.but_for(&self.origin());
    }

    /// Returns what a person is shown before it is connected to, given the `url` as declared.
    #[must_use]
    pub fn shown(&self, declared: &str) -> ShownRemote {
        // What a variable stands for may be a secret; where it leads is what a person must see.
        let path = if declared.contains("${") {
            declared.split(['?', '#']).next().unwrap_or_default()
        } else {
            self.url.path()
        };
        let encrypted = self.url.scheme() == "https";
        let warning = (!encrypted && !self.is_loopback())
            .then(|| "NOT ENCRYPTED: anybody on the way can read and change it".to_owned());
        let mut headers: Vec<String> = self.headers.keys().map(ToString::to_string).collect();
        headers.sort();
        ShownRemote {
            origin: Shown::line(&self.origin()).to_string(),
            path: Shown::line(path).to_string(),
            headers,
            warning,
        }
    }

    /// Tells whether what is sent there stays on this machine.
    pub(in crate::loader) fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), AddressError> {
    let shown = || Shown::line(name).to_string();
    let name: HeaderName = name.parse().map_err(|_malformed| AddressError::Name(shown()))?;
    if RESERVED.contains(&name.as_str()) {
        return Err(AddressError::Reserved(shown()));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_malformed| AddressError::Value(shown()))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str, headers: &[(&str, &str)]) -> Result<Address, AddressError> {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Address::new(url, &headers)
    }

    fn shown(url: &str, declared: &str) -> (String, String, Option<String>) {
        let shown = address(url, &[]).unwrap().shown(declared);
        (shown.origin, shown.path, shown.warning)
    }

    #[test]
    fn the_origin_and_the_path_are_shown_and_the_query_is_not() {
        let url = "https://example.com:8443/mcp?key=s3cret#part";
        assert_eq!(
            shown(url, url),
            ("https://example.com:8443".to_owned(), "/mcp".to_owned(), None)
        );
        assert_eq!(
            shown("https://example.com/s3cret/mcp", "https://${HOST}/${KEY}/mcp?x=1"),
            (
                "https://example.com".to_owned(),
                "https://${HOST}/${KEY}/mcp".to_owned(),
                None
            )
        );
    }

    #[test]
    fn plain_http_is_warned_of_unless_it_stays_on_this_machine() {
        for url in [
            "http://localhost:1/x",
            "http://127.0.0.9/x",
            "http://[::1]:3/x",
            "http://LOCALHOST.:1/x",
            "http://0.0.0.0:1/x",
            "http://[::]/x",
            "http://[::ffff:127.0.0.1]/x",
            "http://2130706433/x",
            "https://example.com/x",
        ] {
            assert_eq!(shown(url, url).2, None, "{url}");
        }
        for url in [
            "http://example.com/x",
            "http://10.0.0.1/x",
            "http://localhost.example.com/x",
            "http://x.localhost/x",
            "http://[::ffff:10.0.0.1]/x",
        ] {
            assert!(
                shown(url, url)
                    .2
                    .is_some_and(|warning| warning.starts_with("NOT ENCRYPTED")),
                "{url}"
            );
        }
    }

    #[test]
    fn a_bad_declaration_is_refused_without_its_values() {
        let s3cret = "s3cret\nvalue";
        for (url, headers, expected) in [
            (
                "nowhere",
                ("A", "b"),
                "its `url` is not an address: relative URL without a base",
            ),
            (
                "ftp://example.com",
                ("A", "b"),
                "its `url` begins neither with `https://` nor with `http://`",
            ),
            (
                "https://me:s3cret@example.com",
                ("A", "b"),
                "its `url` holds a user name or a password, which would be shown wherever the address is",
            ),
            (
                "https://example.com",
                ("A b", "c"),
                "`A b` is not the name of a header",
            ),
            (
                "https://example.com",
                ("Token", s3cret),
                "the value of its header `Token` has line breaks or control characters",
            ),
            (
                "https://example.com",
                ("Host", "c"),
                "its header `Host` is set by pml itself",
            ),
        ] {
            assert_eq!(address(url, &[headers]).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn an_address_shows_its_origin_and_hides_what_it_was_given() {
        let address = address(
            "https://example.com/mcp?key=querysecret",
            &[("Authorization", "Bearer abcdefgh12345678")],
        )
        .unwrap();
        assert_eq!(format!("{address:?}"), r#"Address("https://example.com")"#);
        let mut secrets_found = SecretCollector::default();
        address.collect_secrets(&mut secrets_found);
        assert_eq!(
            secrets_found
                .secrets()
                .hide("token abcdefgh12345678 of `Bearer abcdefgh12345678`, querysecret"),
            "token [authorization] of `[authorization]`, [query]"
        );
    }
}
