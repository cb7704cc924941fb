//! What a package is called: the grammar between text from outside and an argument of an installer.
//!
//! Owns the names and versions of npm and PyPI, nothing else; pure. A [`Package`] can only be made here, so a
//! value of this type never starts with `-`, is never a path, an address, a git reference or an alias, and is
//! plain ASCII: an installer cannot mistake it for an option or for another source.

mod grammar;
#[cfg(test)]
mod tests;

pub(in crate::loader) use grammar::{
    is_npm_name, is_pypi_name, is_python_version, is_semantic_version, normalize,
};

use std::fmt;

use serde::{Deserialize, Serialize};

use self::grammar::{NAME_LIMIT, is_number, looks_like_a_source, npm_version, pypi_version};
use crate::protocol::Shown;

/// Says why text is not a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// The name is outside the grammar of its ecosystem.
    #[error("`{text}` is not the name of {ecosystem:#} package")]
    Name {
        /// The refused text, escaped.
        text: String,
        /// The ecosystem whose grammar was applied.
        ecosystem: Ecosystem,
    },
    /// The version is neither a version nor a tag nor a range.
    #[error("`{version}` is not a version of the {ecosystem} package `{name}`")]
    Version {
        /// The package.
        name: String,
        /// The refused version, escaped.
        version: String,
        /// The ecosystem whose grammar was applied.
        ecosystem: Ecosystem,
    },
    /// A path, an address, a git reference or an alias stands where a registry package is expected.
    #[error("`{text}` is not a package of a registry")]
    Source {
        /// The refused text, escaped.
        text: String,
    },
    /// An executable has a name no package would give it.
    #[error("`{text}` is not the name of an executable")]
    Executable {
        /// The refused text, escaped.
        text: String,
    },
    /// `"package"` names no ecosystem that pml installs from.
    #[error("`{text}` does not start with `npm:` or `pypi:`")]
    Ecosystem {
        /// The refused text, escaped.
        text: String,
    },
    /// A Python version is outside `3`, `3.12`, `3.12.1`.
    #[error("`{text}` is not a Python version such as `3.12`")]
    Python {
        /// The refused text, escaped.
        text: String,
    },
}

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecosystem {
    /// JavaScript, installed by `npm`.
    Npm,
    /// Python, installed by `uv`.
    Pypi,
}

impl Ecosystem {
    /// Returns the word that names it in `"package"` and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }
}

impl fmt::Display for Ecosystem {
    /// Writes the ecosystem's own spelling; `{:#}` puts the article before it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self, formatter.alternate()) {
            (Self::Npm, false) => "npm",
            (Self::Npm, true) => "an npm",
            (Self::Pypi, false) => "PyPI",
            (Self::Pypi, true) => "a PyPI",
        })
    }
}

/// Which version was declared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionSpec {
    /// One exact version.
    Exact(String),
    /// Nothing, a tag or a range: `latest`, `^1`, `>=2,<3`.
    Floating(String),
}

impl VersionSpec {
    /// Returns the version or the range as declared.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Floating(text) => text,
        }
    }
}

/// A package of a registry, as declared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Package {
    ecosystem: Ecosystem,
    name: String,
    extras: Vec<String>,
    version: VersionSpec,
    executable: Option<String>,
    python: Option<String>,
    /// What is installed into the same environment, as requirements; sorted.
    beside: Vec<String>,
}

impl Package {
    /// Reads an npm spec: `name`, `@scope/name`, `name@1.2.3`, `name@latest`, `name@^1`.
    pub fn npm(text: &str) -> Result<Self, PackageError> {
        let source = || PackageError::Source {
            text: Shown::line(text).to_string(),
        };
        let after_scope = usize::from(text.starts_with('@'));
        let (name, version) = match text[after_scope..].find('@') {
            Some(at) => (&text[..after_scope + at], &text[after_scope + at + 1..]),
            None => (text, ""),
        };
        if !is_npm_name(name) {
            return Err(if looks_like_a_source(text) {
                source()
            } else {
                name_error(name, Ecosystem::Npm)
            });
        }
        let version = npm_version(version).ok_or_else(|| {
            if version.contains([':', '/']) {
                source()
            } else {
                version_error(name, version, Ecosystem::Npm)
            }
        })?;
        Ok(Self::plain(Ecosystem::Npm, name, version))
    }

    /// Reads a PyPI spec: `name`, `name==1.2.3`, `name@1.2.3`, `name>=1,<2`, `name[extra]==1`.
    pub fn pypi(text: &str) -> Result<Self, PackageError> {
        let end = text
            .find(|found: char| !found.is_ascii_alphanumeric() && !matches!(found, '.' | '_' | '-'))
            .unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if !is_pypi_name(name) || looks_like_a_source(text) {
            return Err(if looks_like_a_source(text) {
                PackageError::Source {
                    text: Shown::line(text).to_string(),
                }
            } else {
                name_error(text, Ecosystem::Pypi)
            });
        }
        let (extras, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest
                .split_once(']')
                .ok_or_else(|| name_error(text, Ecosystem::Pypi))?,
            None => ("", rest),
        };
        let mut extras: Vec<String> = extras
            .split(',')
            .map(|extra| normalize(extra.trim()))
            .filter(|extra| !extra.is_empty())
            .collect();
        extras.sort();
        extras.dedup();
        if extras.iter().any(|extra| !is_pypi_name(extra)) {
            return Err(name_error(text, Ecosystem::Pypi));
        }
        let version = pypi_version(rest.trim()).ok_or_else(|| version_error(name, rest, Ecosystem::Pypi))?;
        Ok(Self {
            extras,
            ..Self::plain(Ecosystem::Pypi, name, version)
        })
    }

    /// Reads the value of `"package"`: `npm:@scope/name@1.2.3` or `pypi:name==1.2.3`.
    pub fn explicit(text: &str) -> Result<Self, PackageError> {
        match text.split_once(':') {
            Some(("npm", spec)) => Self::npm(spec),
            Some(("pypi", spec)) => Self::pypi(spec),
            _ => Err(PackageError::Ecosystem {
                text: Shown::line(text).to_string(),
            }),
        }
    }

    fn plain(ecosystem: Ecosystem, name: &str, version: VersionSpec) -> Self {
        Self {
            ecosystem,
            name: name.to_owned(),
            extras: Vec::new(),
            version,
            executable: None,
            python: None,
            beside: Vec::new(),
        }
    }

    /// Names the executable to run instead of the package's default.
    pub fn with_executable(self, name: &str) -> Result<Self, PackageError> {
        let inside = |found: char| found.is_ascii_alphanumeric() || matches!(found, '.' | '_' | '-');
        let valid = name.len() <= NAME_LIMIT
            && name.starts_with(|found: char| found.is_ascii_alphanumeric())
            && name.chars().all(inside);
        if !valid {
            return Err(PackageError::Executable {
                text: Shown::line(name).to_string(),
            });
        }
        Ok(Self {
            executable: Some(name.to_owned()),
            ..self
        })
    }

    /// Names the Python version of its environment.
    pub fn with_python(self, version: &str) -> Result<Self, PackageError> {
        let parts: Vec<&str> = version.split('.').collect();
        if parts.len() > 3 || !parts.iter().all(|part| is_number(part) && part.len() <= 3) {
            return Err(PackageError::Python {
                text: Shown::line(version).to_string(),
            });
        }
        Ok(Self {
            python: Some(version.to_owned()),
            ..self
        })
    }

    /// Names one more PyPI package that is installed into the same environment.
    pub fn with_beside(mut self, text: &str) -> Result<Self, PackageError> {
        let other = Self::pypi(text)?;
        let requirement = match &other.version {
            VersionSpec::Floating(range) if range == "latest" => other.name_with_extras(),
            VersionSpec::Exact(_) | VersionSpec::Floating(_) => other.spec(),
        };
        if let Err(place) = self.beside.binary_search(&requirement) {
            self.beside.insert(place, requirement);
        }
        Ok(self)
    }

    /// Returns it at an exact version, with the same Python and the same packages beside it.
    pub fn exact(&self, version: &str) -> Result<Self, PackageError> {
        Ok(Self {
            python: self.python.clone(),
            beside: self.beside.clone(),
            ..Self::explicit(&self.exactly(version))?
        })
    }

    /// Returns where it comes from.
    #[must_use]
    pub fn ecosystem(&self) -> Ecosystem {
        self.ecosystem
    }

    /// Returns its name as declared.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its name as the registry compares it; extras belong to it.
    #[must_use]
    pub fn registry_name(&self) -> String {
        match self.ecosystem {
            Ecosystem::Npm => self.name.clone(),
            Ecosystem::Pypi => normalize(&self.name),
        }
    }

    /// Returns the registry and its name there, such as `npm:@scope/name`.
    #[must_use]
    pub fn registry_title(&self) -> String {
        format!("{}:{}", self.ecosystem.as_str(), self.registry_name())
    }

    /// Returns the extras of a PyPI package, normalized.
    #[must_use]
    pub fn extras(&self) -> &[String] {
        &self.extras
    }

    /// Returns the declared version.
    #[must_use]
    pub fn version(&self) -> &VersionSpec {
        &self.version
    }

    /// Returns the executable that was asked for by name.
    #[must_use]
    pub fn executable(&self) -> Option<&str> {
        self.executable.as_deref()
    }

    /// Returns the Python version that was asked for.
    #[must_use]
    pub fn python(&self) -> Option<&str> {
        self.python.as_deref()
    }

    /// Returns the requirements of what is installed into the same environment.
    #[must_use]
    pub fn beside(&self) -> &[String] {
        &self.beside
    }

    /// Returns the name with its extras: `name[extra]`.
    #[must_use]
    pub fn name_with_extras(&self) -> String {
        if self.extras.is_empty() {
            self.name.clone()
        } else {
            format!("{}[{}]", self.name, self.extras.join(","))
        }
    }

    /// Returns the spec at an exact version, in the spelling of its ecosystem.
    #[must_use]
    pub fn at(&self, version: &str) -> String {
        match self.ecosystem {
            Ecosystem::Npm => format!("{}@{version}", self.name),
            Ecosystem::Pypi => format!("{}=={version}", self.name_with_extras()),
        }
    }

    /// Returns the package at an exact version as `"package"` would spell it.
    #[must_use]
    pub fn exactly(&self, version: &str) -> String {
        format!("{}:{}", self.ecosystem.as_str(), self.at(version))
    }

    /// Returns the spec as declared, in the spelling of its ecosystem.
    #[must_use]
    pub fn spec(&self) -> String {
        match (&self.version, self.ecosystem) {
            (VersionSpec::Exact(version), _) => self.at(version),
            (VersionSpec::Floating(range), _) if range.is_empty() => self.name_with_extras(),
            (VersionSpec::Floating(range), Ecosystem::Npm) => format!("{}@{range}", self.name),
            (VersionSpec::Floating(range), Ecosystem::Pypi) if range == "latest" => {
                format!("{}@latest", self.name_with_extras())
            }
            (VersionSpec::Floating(range), Ecosystem::Pypi) => format!("{}{range}", self.name_with_extras()),
        }
    }
}

impl fmt::Display for Package {
    /// Writes the package as `"package"` would spell it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.ecosystem.as_str(), self.spec())
    }
}

fn name_error(text: &str, ecosystem: Ecosystem) -> PackageError {
    PackageError::Name {
        text: Shown::line(text).to_string(),
        ecosystem,
    }
}

fn version_error(name: &str, version: &str, ecosystem: Ecosystem) -> PackageError {
    PackageError::Version {
        name: name.to_owned(),
        version: Shown::line(version).to_string(),
        ecosystem,
    }
}
