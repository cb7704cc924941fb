//! The spellings of a URI: what rules must judge, because some server reads it in place of what was written.
//!
//! Scheme and host in another case, dots, percent-encoding, slashes and aliases of the local host name the same thing
//! to one reader and another thing to the next. Nothing is rewritten on its way to a server; rules look at the text
//! as it is and at every reading of it. Each reading costs time linear in the text, and their number is bounded.

mod percent;

use std::fmt::Write as _;

use self::percent::{decoded, encoded};
use super::Shown;

/// How often an encoding may be taken off: more layers than any server takes off.
const LAYERS: usize = 4;

/// Schemes whose URIs browsers and `Node` read in a way of their own, with the port that may be left out.
const SPECIAL: [(&str, &str); 6] = [
    ("file", ""),
    ("http", "80"),
    ("https", "443"),
    ("ws", "80"),
    ("wss", "443"),
    ("ftp", "21"),
];

/// As long as what readers of HTTP's URIs are asked to take; judging one costs far more than reading it.
const LONGEST: usize = 8192;

/// Says why a URI is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// Some readers trim or drop such characters.
    #[error(
        "the URI `{uri}` begins or ends with a blank, or holds a control or invisible character; write it percent-encoded"
    )]
    Character {
        /// The refused URI, escaped.
        uri: String,
    },
    /// It could not be judged in reasonable time.
    #[error("a URI of {length} bytes is too long; at most {LONGEST} are allowed")]
    Length {
        /// How many bytes it has.
        length: usize,
    },
    /// Some readers end a text there.
    #[error("the URI `{uri}` holds an encoded zero byte")]
    Zero {
        /// The refused URI, escaped.
        uri: String,
    },
}

/// Refuses a URI with characters that some readers trim, drop or end at.
pub fn check_uri(uri: &str) -> Result<(), UriError> {
    if uri.len() > LONGEST {
        return Err(UriError::Length { length: uri.len() });
    }
    let shown = Shown::line(uri).to_string();
    let is_odd_blank = |found: char| found.is_whitespace() && found != ' ';
    if shown != uri || uri.trim() != uri || uri.contains(is_odd_blank) {
        return Err(UriError::Character { uri: shown });
    }
    let mut layer = uri.to_owned();
    for _ in 0..LAYERS {
        if layer.contains("%00") {
            return Err(UriError::Zero { uri: shown });
        }
        layer = layer.replace("%25", "%");
    }
    Ok(())
}

/// The readings of one URI beside the text itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spellings {
    /// What URL readers make of it: must be allowed as well.
    pub normal: Vec<String>,
    /// What servers may make of it by reading on: must not be denied, nor asked for by a rule of its own.
    pub further: Vec<String>,
}

impl Spellings {
    /// Returns the readings of a URI.
    #[must_use]
    pub fn of(uri: &str) -> Self {
        let mut found = Self::default();
        let mut layer = uri.to_owned();
        for _ in 0..LAYERS {
            let parts = Parts::read(&layer);
            found.add_normal(uri, parts.normal().text());
            for reading in parts.readings_of_a_file() {
                found.add_normal(uri, reading.normal().text());
                // An empty segment counts for the readers of URLs, and not for a file system.
                found.add_normal(uri, reading.with_single_slashes().normal().text());
            }
            let next = decoded(&layer, is_structural);
            if next == layer {
                break;
            }
            layer = next;
        }
        let readings: Vec<String> = std::iter::once(uri.to_owned())
            .chain(found.normal.clone())
            .collect();
        for reading in &readings {
            for alias in Parts::read(reading).aliases() {
                if alias != uri && !found.normal.contains(&alias) && !found.further.contains(&alias) {
                    found.further.push(alias);
                }
            }
        }
        found
    }

    fn add_normal(&mut self, uri: &str, text: String) {
        if text != uri && !self.normal.contains(&text) {
            self.normal.push(text);
        }
    }
}

/// A URI in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    /// In lower case; empty where there is none.
    scheme: String,
    authority: Option<String>,
    path: String,
    /// With its question mark.
    query: String,
    /// With its hash.
    fragment: String,
}

impl Parts {
    fn read(uri: &str) -> Self {
        let (scheme, rest) = match uri.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
            _ => (String::new(), uri),
        };
        let (rest, fragment) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
        let (rest, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let special = is_special(&scheme);
        let rest = if special {
            rest.replace('\\', "/")
        } else {
            rest.to_owned()
        };
        let slashes = rest.len() - rest.trim_start_matches('/').len();
        // Browsers take any number of slashes before the host of what is no file.
        let host_at = match (special, scheme.as_str()) {
            (true, "file") | (false, _) => (slashes >= 2).then_some(2),
            (true, _) => Some(slashes),
        };
        let (authority, path) = match host_at {
            None => (None, rest),
            Some(at) => {
                let end = rest[at..].find('/').map_or(rest.len(), |end| at + end);
                (Some(rest[at..end].to_owned()), rest[end..].to_owned())
            }
        };
        Self {
            scheme,
            authority,
            path,
            query: query.to_owned(),
            fragment: fragment.to_owned(),
        }
    }

    fn is_file(&self) -> bool {
        self.scheme == "file"
    }

    /// Returns what a URL reader makes of it.
    fn normal(&self) -> Self {
        let special = is_special(&self.scheme);
        let authority = match &self.authority {
            Some(authority) if special => Some(self.host(authority)),
            None if self.is_file() => Some(String::new()),
            other => other.clone(),
        };
        let path = decoded(&self.path, is_unreserved);
        let path = if special && !path.starts_with('/') {
            format!("/{path}")
        } else {
            path
        };
        let path = if path.starts_with('/') {
            resolved(&path)
        } else {
            path
        };
        let path = if self.is_file() {
            single_slashes(&path)
        } else {
            path
        };
        Self {
            scheme: self.scheme.clone(),
            authority,
            path,
            query: decoded(&self.query, is_unreserved),
            fragment: decoded(&self.fragment, is_unreserved),
        }
    }

    /// Returns the host and the port, if it is not the usual one, of an authority.
    fn host(&self, authority: &str) -> String {
        let host = authority.rsplit('@').next().unwrap_or_default();
        // Numbers, other scripts and encodings of a host are for the reader of URLs to know.
        let known = url::Url::parse(&format!("{}://{host}/", self.scheme)).ok();
        let mut text = known
            .as_ref()
            .and_then(url::Url::host_str)
            .map_or_else(|| host.to_ascii_lowercase(), str::to_owned);
        if let Some(port) = known.as_ref().and_then(url::Url::port) {
            let _ = write!(text, ":{port}");
        } else if known.is_none() {
            let usual = SPECIAL.iter().find(|(scheme, _)| *scheme == self.scheme);
            let suffix = usual.map(|(_, port)| format!(":{port}")).unwrap_or_default();
            text = text.strip_suffix(&suffix).unwrap_or(&text).to_owned();
        }
        let text = text.trim_end_matches('.').to_owned();
        if self.is_file() && matches!(text.as_str(), "localhost" | "127.0.0.1" | "[::1]") {
            return String::new();
        }
        text
    }

    /// Returns what those may read who take the path of a file out of it; nothing where it is no file.
    fn readings_of_a_file(&self) -> Vec<Self> {
        if !self.is_file() {
            return Vec::new();
        }
        // A query or a fragment is a part of the name to some, and nothing to others.
        let mut readings = vec![self.clone(), self.as_path(), self.without_query()];
        let host = self.authority.clone().unwrap_or_default();
        if !host.is_empty() {
            // So is a host.
            let without = |reading: &Self| Self {
                authority: Some(String::new()),
                ..reading.clone()
            };
            let within = |reading: &Self| Self {
                authority: Some(String::new()),
                path: format!("/{host}{}", reading.path),
                ..reading.clone()
            };
            let more: Vec<Self> = readings
                .iter()
                .flat_map(|reading| [without(reading), within(reading)])
                .collect();
            readings.extend(more);
        }
        readings
    }

    /// Returns it with the query and the fragment as parts of the path.
    fn as_path(&self) -> Self {
        Self {
            path: format!("{}{}{}", self.path, self.query, self.fragment)
                .replace('\\', "/")
                .replace('?', "%3F")
                .replace('#', "%23"),
            query: String::new(),
            fragment: String::new(),
            ..self.clone()
        }
    }

    fn with_single_slashes(&self) -> Self {
        Self {
            path: single_slashes(&decoded(&self.path, is_unreserved)),
            ..self.clone()
        }
    }

    fn without_query(&self) -> Self {
        Self {
            query: String::new(),
            fragment: String::new(),
            ..self.clone()
        }
    }

    /// Returns what servers may make of it that read it by hand.
    fn aliases(&self) -> Vec<String> {
        let bare = self.without_query();
        let mut aliases = vec![bare.text()];
        for parts in [self, &bare] {
            let authority = parts.authority.clone().unwrap_or_default();
            let path = single_slashes(&parts.path.replace('\\', "/"));
            let lower = parts.authority.as_ref().map(|host| host.to_lowercase());
            let resolved_path = if path.starts_with('/') {
                resolved(&path)
            } else {
                path.clone()
            };
            aliases.push(
                Self {
                    path: resolved_path,
                    authority: lower,
                    ..parts.clone()
                }
                .text(),
            );
            // The host is the first part of a path to some.
            let whole = resolved(&single_slashes(&format!("/{authority}/{path}")));
            let whole = whole.trim_start_matches('/');
            aliases.push(format!("{}://{whole}", parts.scheme));
            aliases.push(format!("{}:///{whole}", parts.scheme));
            aliases.push(format!("{}:{whole}", parts.scheme));
            if parts.is_file() && authority.is_empty() {
                aliases.push(format!("file:/{whole}"));
                aliases.push(format!("file://localhost/{whole}"));
            }
        }
        let written: Vec<String> = aliases
            .iter()
            .flat_map(|alias| [decoded(alias, |_| true), encoded(alias)])
            .collect();
        aliases.extend(written);
        aliases
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            let _ = write!(text, "{}:", self.scheme);
        }
        if let Some(authority) = &self.authority {
            let _ = write!(text, "//{authority}");
        }
        let _ = write!(text, "{}{}{}", self.path, self.query, self.fragment);
        text
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn is_special(scheme: &str) -> bool {
    SPECIAL.iter().any(|(special, _)| *special == scheme)
}

/// Characters that mean the same encoded or not.
fn is_unreserved(found: char) -> bool {
    found.is_ascii_alphanumeric() || matches!(found, '-' | '.' | '_' | '~')
}

/// Characters by which a reader that decodes first comes to another path.
fn is_structural(found: char) -> bool {
    is_unreserved(found) || matches!(found, '/' | '\\' | '%')
}

/// Takes the dots out of a path that begins with a slash.
fn resolved(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

fn single_slashes(path: &str) -> String {
    let mut single = String::with_capacity(path.len());
    for found in path.chars() {
        if found != '/' || !single.ends_with('/') {
            single.push(found);
        }
    }
    single
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_spellings_of_a_file_are_read_as_the_file() {
        for spelling in [
            "FILE:///etc/secret",
            "file:/etc/secret",
            "file://localhost/etc/secret",
            "file://LOCALHOST./etc/secret",
            "file:///etc/./secret",
            "file:///pub/../etc/secret",
            "file:///../etc/secret",
            "file:///etc/%73ecret",
            "file:///%65tc/secret",
            "file:///pub/%2e%2E/etc/secret",
            "file:///pub%2f..%2Fetc/secret",
            "file:///pub/%252e%252e/etc/secret",
            "file:////etc//secret",
            "file:\\\\\\etc\\secret",
            "file:///pub\\..\\etc/secret",
            "file:///etc/secret?x",
            "file:///etc/secret#x",
            "file://user@localhost/etc/secret",
            "file:etc/secret",
            "file:///pub/a?/../../etc/secret",
            "file:///pub//../etc/secret",
            "file:///pub//%2e%2e/etc/secret",
        ] {
            let found = Spellings::of(spelling);
            assert!(
                found.normal.contains(&"file:///etc/secret".to_owned()),
                "{spelling}: {found:?}"
            );
        }
    }

    #[test]
    fn hosts_and_ports_have_one_spelling() {
        for (spelling, normal) in [
            ("HTTP://Example.COM:80/A", "http://example.com/A"),
            ("https://example.com.:443/", "https://example.com/"),
            ("https:example.com/a", "https://example.com/a"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://a@evil.com/", "http://evil.com/"),
            ("http://evil.com\\@good.com/", "http://evil.com/@good.com/"),
        ] {
            let found = Spellings::of(spelling);
            assert!(found.normal.contains(&normal.to_owned()), "{spelling}: {found:?}");
        }
    }

    #[test]
    fn other_schemes_are_read_by_hand_too() {
        let found = Spellings::of("memo://A/../b");
        assert!(found.normal.contains(&"memo://A/b".to_owned()), "{found:?}");
        assert!(found.further.contains(&"memo://b".to_owned()), "{found:?}");
        assert!(found.further.contains(&"memo://a/b".to_owned()), "{found:?}");
        let found = Spellings::of("memo://%C3%A4");
        assert!(found.further.contains(&"memo://\u{e4}".to_owned()), "{found:?}");
    }

    #[test]
    fn an_ordinary_uri_has_no_other_normal_spelling() {
        for uri in [
            "file:///home/a/my%20notes/x.txt",
            "https://example.com/a?b=c#d",
            "memo://Inbox/1",
            "db:table/rows",
            "note:///\u{e4}",
            "file:///{path}",
        ] {
            assert_eq!(Spellings::of(uri).normal, Vec::<String>::new(), "{uri}");
        }
    }

    #[test]
    fn blanks_around_it_and_what_cannot_be_seen_are_refused() {
        for uri in [
            " file:///a",
            "file:///a ",
            "file:///a\tb",
            "fi\nle:///a",
            "file:///a\u{200b}",
            "file:///a\u{a0}b",
            "file:///\u{202e}a",
            "file:///a%00b",
            "file:///a%2500b",
        ] {
            assert!(check_uri(uri).is_err(), "{uri:?}");
        }
        assert_eq!(check_uri("file:///a%20b c/\u{e4}?x=1#y"), Ok(()));
        let longest = format!("x:{}", "a".repeat(LONGEST - 2));
        assert_eq!(check_uri(&longest), Ok(()));
        let length = LONGEST + 1;
        assert_eq!(
            check_uri(&format!("{longest}a")),
            Err(UriError::Length { length })
        );
    }

    proptest! {
        #[test]
        fn spellings_are_few_and_made_without_a_panic(uri in "(file|HTTP|memo|x)?:?[/\\\\a .%2eEfF?#@:\u{e4}\u{1f980}]{0,40}") {
            let found = Spellings::of(&uri);
            prop_assert!(found.normal.len() <= 19 * LAYERS, "{:?}", found);
            prop_assert!(found.further.len() <= 40 * (1 + found.normal.len()), "{:?}", found);
            // What is normal stays what it is.
            for normal in found.normal.iter().filter(|normal| normal.starts_with("file:")) {
                let again = Parts::read(normal).normal().text();
                prop_assert_eq!(&again, normal, "{}", uri);
            }
        }
    }
}
