//! The names under which the server is reached: the guard against DNS rebinding and requests of other sites.
//!
//! A page of another site can make a browser send anything to this port, but not with a `Host` that is ours under its
//! own name, nor without an `Origin` or `Sec-Fetch-Site` that tells where it comes from.

use axum::http::{HeaderMap, HeaderName, Uri, header};

/// What a browser says of the relation between the page that asks and this server.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The hosts and origins that are this server.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Whether a request comes from a page of another site, as far as the browser tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    /// It does not.
    Own,
    /// It does; pages of other ports of this machine count as well.
    Other,
}

impl Hosts {
    /// Names the loopback addresses of a port, and the name of the user's own proxy before it.
    pub(super) fn new(port: u16, allowed: Option<&str>) -> Self {
        let local = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let mut origins = local.each_ref().map(|host| format!("http://{host}")).to_vec();
        let mut hosts = local.to_vec();
        if port == 80 {
            // Browsers leave the usual port out.
            hosts.extend(["127.0.0.1".to_owned(), "localhost".to_owned()]);
            origins.extend(["http://127.0.0.1".to_owned(), "http://localhost".to_owned()]);
        }
        if let Some(name) = allowed {
            let name = name.to_ascii_lowercase();
            origins.push(format!("https://{name}"));
            hosts.push(name);
        }
        Self { hosts, origins }
    }

    /// Tells whether a request names this server, once, as the host that it is for.
    pub(super) fn are_named_by(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let known = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok());
        // A request line may name a host as well, which then counts instead.
        let whole = uri.authority().is_none_or(|authority| known(authority.as_str()));
        host.is_some_and(known) && named.next().is_none() && whole
    }

    /// Tells whether a request comes from a page of this server, or from no page at all.
    pub(super) fn site_of(&self, headers: &HeaderMap) -> Site {
        let own = headers.get_all(header::ORIGIN).iter().all(|origin| {
            let origin = origin.to_str().unwrap_or_default();
            self.origins.iter().any(|own| own.eq_ignore_ascii_case(origin))
        });
        if own { Site::Own } else { Site::Other }
    }
}

/// Tells what the browser says of the page that asks; other programs say nothing.
pub(super) fn fetch_site(headers: &HeaderMap) -> Site {
    let own = headers
        .get_all(FETCH_SITE)
        .iter()
        .all(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    if own { Site::Own } else { Site::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(named: &[(&str, &str)]) -> HeaderMap {
        let parsed = named.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        });
        let mut headers = HeaderMap::new();
        for (name, value) in parsed {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn only_our_own_names_count_once() {
        let hosts = Hosts::new(4100, Some("Inbox.example.org"));
        let named =
            |uri: &str, named: &[(&str, &str)]| hosts.are_named_by(&uri.parse().unwrap(), &headers(named));
        for host in ["127.0.0.1:4100", "LOCALHOST:4100", "inbox.example.org"] {
            assert!(named("/", &[("host", host)]), "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:4101",
            "evil.example",
            "127.0.0.1:4100.evil.example",
            "[::1]:4100",
            "0.0.0.0:4100",
            "127.1:4100",
            "localhost.:4100",
            "inbox.example.org:4100",
            "",
        ] {
            assert!(!named("/", &[("host", host)]), "{host}");
        }
        assert!(!named("/", &[]));
        let own = ("host", "127.0.0.1:4100");
        assert!(!named("/", &[own, own]));
        assert!(!named("http://evil.example/", &[own]));
        assert!(named("http://127.0.0.1:4100/", &[own]));
    }

    #[test]
    fn an_origin_is_ours_or_another_site() {
        let hosts = Hosts::new(4100, Some("inbox.example.org"));
        let site = |origin: &str| hosts.site_of(&headers(&[("origin", origin)]));
        for origin in [
            "http://127.0.0.1:4100",
            "http://localhost:4100",
            "https://inbox.example.org",
        ] {
            assert_eq!(site(origin), Site::Own, "{origin}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "http://127.0.0.1:4101",
            "http://127.0.0.1",
            "https://127.0.0.1:4100",
            "http://inbox.example.org",
        ] {
            assert_eq!(site(origin), Site::Other, "{origin}");
        }
        assert_eq!(hosts.site_of(&HeaderMap::new()), Site::Own);
        for (site, expected) in [
            ("same-origin", Site::Own),
            ("none", Site::Own),
            ("same-site", Site::Other),
            ("cross-site", Site::Other),
        ] {
            assert_eq!(
                fetch_site(&headers(&[("sec-fetch-site", site)])),
                expected,
                "{site}"
            );
        }
    }
}
