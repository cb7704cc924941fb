//! One package at one version, as its registry knows it, and the ways in which others write it down.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::PackagePin;

/// The longest name of a package of npm; those of PyPI are shorter.
const NAME_LIMIT: usize = 214;

/// The registry that a package is of, whatever mirror it comes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Registry {
    /// That of JavaScript.
    Npm,
    /// That of Python.
    Pypi,
}

impl Registry {
    /// Returns the word that names it in a pin, in a declaration and in the address of a package.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }
}

/// One package at one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageVersion {
    /// Its registry.
    pub registry: Registry,
    /// Its name there, with its scope.
    pub name: String,
    /// Its exact version.
    pub version: String,
}

impl PackageVersion {
    /// Reads `npm:@scope/name@1.0.0`, as its `Display` writes it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (registry, title) = registry_of(text)?;
        Some(Self::of_title(registry, title))
    }

    /// Reads `name@version`; a scope begins with an `@` of its own.
    fn of_title(registry: Registry, title: &str) -> Self {
        let (name, version) = match title.rsplit_once('@') {
            Some((name, version)) if !name.is_empty() => (name, version),
            _ => (title, ""),
        };
        Self {
            registry,
            name: name.to_owned(),
            version: version.to_owned(),
        }
    }

    /// Tells whether its name and version are such as registries have: something else is named to nobody.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let plain = |text: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@/._-+~!'()*".contains(&byte);
            (1..=NAME_LIMIT).contains(&text.len()) && text.bytes().all(plain)
        };
        plain(&self.name) && plain(&self.version)
    }

    /// Returns its package URL, such as `pkg:npm/%40scope/name@1.0.0`.
    #[must_use]
    pub fn purl(&self) -> String {
        let mut purl = format!("pkg:{}/", self.registry.as_str());
        for (number, part) in self.name.split('/').enumerate() {
            if number > 0 {
                purl.push('/');
            }
            encode(&mut purl, part);
        }
        if !self.version.is_empty() {
            purl.push('@');
            encode(&mut purl, &self.version);
        }
        purl
    }
}

impl fmt::Display for PackageVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            registry,
            name,
            version,
        } = self;
        write!(formatter, "{}:{name}@{version}", registry.as_str())
    }
}

/// The hash of the one archive that a package came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveHash {
    /// As the standards of bills of materials spell it: `SHA-512` or `SHA-256`.
    pub algorithm: &'static str,
    /// In lower-case hexadecimal.
    pub hex: String,
}

impl ArchiveHash {
    /// Reads an integrity; `None` where it is not that of a single archive.
    #[must_use]
    pub fn of(integrity: &str) -> Option<Self> {
        if let Some(text) = integrity.strip_prefix("sha512-") {
            let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() == 64)?;
            let mut hex = String::with_capacity(128);
            for byte in bytes {
                let _ = write!(hex, "{byte:02x}");
            }
            return Some(Self {
                algorithm: "SHA-512",
                hex,
            });
        }
        let hex = integrity.strip_prefix("sha256-")?;
        let whole = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        whole.then(|| Self {
            algorithm: "SHA-256",
            hex: hex.to_ascii_lowercase(),
        })
    }
}

impl PackagePin {
    /// Returns the registry of the package and of everything that is installed with it; `None` for one that is not known.
    #[must_use]
    pub fn registry(&self) -> Option<Registry> {
        registry_of(&self.name).map(|(registry, _)| registry)
    }

    /// Returns everything that is installed, each package with its integrity.
    pub fn contents(&self) -> impl Iterator<Item = (PackageVersion, &str)> {
        let registry = self.registry();
        let packages = self.packages.iter();
        packages.filter_map(move |(title, integrity)| {
            Some((PackageVersion::of_title(registry?, title), integrity.as_str()))
        })
    }
}

fn registry_of(text: &str) -> Option<(Registry, &str)> {
    let (registry, rest) = text.split_once(':')?;
    let known = [Registry::Npm, Registry::Pypi];
    let registry = known.into_iter().find(|known| known.as_str() == registry)?;
    Some((registry, rest))
}

/// Writes what the grammar of package URLs does not let stand as `%XX`.
fn encode(purl: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b".-_~".contains(&byte) {
            purl.push(char::from(byte));
        } else {
            let _ = write!(purl, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_read_as_it_is_written_and_has_an_address_of_its_own() {
        for (text, purl) in [
            ("npm:@scope/name@1.0.0", "pkg:npm/%40scope/name@1.0.0"),
            ("npm:name@1.0.0-rc.1+b", "pkg:npm/name@1.0.0-rc.1%2Bb"),
            ("pypi:mcp-server@1!2.0", "pkg:pypi/mcp-server@1%212.0"),
            ("npm:JSONStream@", "pkg:npm/JSONStream"),
        ] {
            let package = PackageVersion::read(text).unwrap();
            assert_eq!(package.to_string(), text);
            assert_eq!(package.purl(), purl);
        }
        assert_eq!(PackageVersion::read("@scope/name@1"), None);
        let scope = PackageVersion::read("npm:@scope/name").unwrap();
        assert_eq!((scope.name.as_str(), scope.version.as_str()), ("@scope/name", ""));
    }

    #[test]
    fn a_name_or_version_that_no_registry_has_is_not_plain() {
        let long = "x".repeat(NAME_LIMIT);
        for (name, version, expected) in [
            ("@scope/name", "1.0.0-rc.1+b", true),
            (&long, "1!2.0", true),
            (&format!("{long}x"), "1.0.0", false),
            ("name", "", false),
            ("", "1.0.0", false),
            ("na me", "1.0.0", false),
            ("name", "1.0.0\n", false),
        ] {
            let package = PackageVersion {
                registry: Registry::Npm,
                name: name.to_owned(),
                version: version.to_owned(),
            };
            assert_eq!(package.is_plain(), expected, "{package}");
        }
    }

    #[test]
    fn only_the_hash_of_one_archive_is_one() {
        let (bytes, hex) = ([0xab_u8; 64], "ab".repeat(64));
        let read = |text: &str| ArchiveHash::of(text).map(|hash| (hash.algorithm, hash.hex));
        assert_eq!(
            read(&format!("sha512-{}", STANDARD.encode(bytes))),
            Some(("SHA-512", hex.clone()))
        );
        assert_eq!(
            read(&format!("sha256-{}", &hex[..64])),
            Some(("SHA-256", hex[..64].to_owned()))
        );
        for none in [
            "bundled",
            "sha512-",
            "sha512-YQ==",
            "sha256-xyz",
            "sha256-abab",
            &format!("sha256-{}", "xy".repeat(32)),
            &format!("archives-sha256-{}", &hex[..64]),
            &format!("sha1-{}", &hex[..40]),
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
