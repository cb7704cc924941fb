//! Where known vulnerabilities are asked for, and about which packages.
//!
//! Only the user's own file says so: the names of packages go to that address.

use std::net::IpAddr;

use url::{Host, Url};

/// Where known vulnerabilities are asked for unless the user's file says otherwise: the public database of OSV.
const PUBLIC: &str = "https://api.osv.dev";

/// More patterns than a company has scopes.
const PATTERNS: usize = 256;

/// Where known vulnerabilities are asked for, and about which packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvisorySettings {
    /// The address that speaks as OSV does, without a slash at its end.
    pub url: String,
    /// Which packages are asked about.
    pub send: AskedPackages,
    /// The names that are never sent: whole ones, or their beginning before a `*`.
    pub private: Vec<String>,
}

/// Which packages are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedPackages {
    /// Those that come from the public registries.
    Public,
    /// Those of other registries as well, such as a mirror.
    All,
}

impl Default for AdvisorySettings {
    fn default() -> Self {
        Self {
            url: PUBLIC.to_owned(),
            send: AskedPackages::Public,
            private: Vec::new(),
        }
    }
}

impl AdvisorySettings {
    /// Tells whether the name of a package is never sent.
    #[must_use]
    pub fn is_private(&self, name: &str) -> bool {
        self.private
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == pattern,
            })
    }

    /// Takes an address: over TLS, or on this machine; an error says what is wrong, without the address itself.
    pub(super) fn set_url(&mut self, text: &str) -> Result<(), String> {
        let url: Url = text
            .parse()
            .map_err(|error| format!("the `url` of `advisories` is not an address: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the `url` of `advisories` holds a user name or a password".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the `url` of `advisories` has a query or a fragment".to_owned());
        }
        if url.scheme() != "https" && !(url.scheme() == "http" && is_here(&url)) {
            return Err(
                "the `url` of `advisories` begins with `https://`, or leads to this machine".to_owned(),
            );
        }
        url.as_str().trim_end_matches('/').clone_into(&mut self.url);
        Ok(())
    }

    /// Takes the names that are never sent.
    pub(super) fn set_private(&mut self, patterns: &[String]) -> Result<(), String> {
        if patterns.len() > PATTERNS {
            return Err(format!("`private` has more than {PATTERNS} names"));
        }
        let star_inside =
            |pattern: &String| pattern.trim_end_matches('*').contains('*') || pattern.ends_with("**");
        if patterns
            .iter()
            .any(|pattern| pattern.is_empty() || star_inside(pattern))
        {
            return Err("a name in `private` is whole, or ends in one `*`, such as `@acme/*`".to_owned());
        }
        patterns.clone_into(&mut self.private);
        Ok(())
    }
}

pub(super) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_encrypted_or_on_this_machine() {
        for (text, taken) in [
            (
                "https://osv.example.com/api/",
                Some("https://osv.example.com/api"),
            ),
            ("http://127.0.0.1:4000", Some("http://127.0.0.1:4000")),
            ("http://[::1]:4000/", Some("http://[::1]:4000")),
            ("http://localhost/x", Some("http://localhost/x")),
            ("http://osv.example.com", None),
            ("http://localhost.example.com", None),
            ("http://192.168.0.1", None),
            ("ftp://localhost", None),
            ("https://me:secret@osv.example.com", None),
            ("https://osv.example.com/?key=1", None),
            ("osv.example.com", None),
        ] {
            let mut settings = AdvisorySettings::default();
            let set = settings.set_url(text).ok().map(|()| settings.url.as_str());
            assert_eq!(set, taken, "{text}");
        }
    }

    #[test]
    fn a_private_name_is_whole_or_a_beginning() {
        let mut settings = AdvisorySettings::default();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        settings.set_private(&names(&["@acme/*", "secret"])).unwrap();
        assert!(settings.is_private("@acme/x") && settings.is_private("secret"));
        assert!(!settings.is_private("@acme2/x") && !settings.is_private("secrets"));
        for wrong in ["", "a*b", "a**", "*a*"] {
            assert!(settings.set_private(&names(&[wrong])).is_err(), "{wrong}");
        }
        settings.set_private(&names(&["*"])).unwrap();
        assert!(settings.is_private("anything"));
    }
}
