//! What the user demands of where packages were built, and the trust root that it is verified with.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::layer_kind::LayerKind;
use super::{Config, ConfigError, layer};
use crate::protocol::Shown;

/// More than any person writes; each is compiled.
const PATTERNS: usize = 256;

/// More than any name of a package has characters.
const PATTERN: usize = 256;

/// What the user's own file says about provenance.
#[derive(Debug, Clone, Default)]
pub struct ProvenanceSettings {
    /// The trust root that is used instead of the one in pml.
    pub trust_root: Option<PathBuf>,
    required: Vec<PackagePattern>,
}

/// A pattern over the names of packages.
#[derive(Debug, Clone)]
struct PackagePattern {
    text: String,
    /// As it is written, and as Python spells the separators of a name.
    matchers: [GlobMatcher; 2],
}

impl ProvenanceSettings {
    /// Reads the settings from the user's own file as it is now; blocks.
    pub fn read(user_file: &Path) -> Result<Self, ConfigError> {
        let mut config = Config::default();
        if let Some(text) = layer::load_owned(user_file)? {
            layer::add(&mut config, user_file, &text, LayerKind::User)?;
        }
        Ok(config.provenance)
    }

    /// Returns the pattern that demands a provenance of a package, by its registry (`npm`, `pypi`) and its name.
    #[must_use]
    pub fn requirement(&self, registry: &str, name: &str) -> Option<&str> {
        let whole = format!("{registry}:{name}");
        let covers = |pattern: &&PackagePattern| {
            let matchers = pattern.matchers.iter();
            { matchers }.any(|matcher| matcher.is_match(name) || matcher.is_match(&whole))
        };
        let found = self.required.iter().find(covers);
        found.map(|pattern| pattern.text.as_str())
    }

    pub(super) fn require(&mut self, patterns: &[String]) -> Result<(), String> {
        if patterns.len() > PATTERNS {
            return Err(format!("`requireProvenance` has more than {PATTERNS} patterns"));
        }
        for text in patterns {
            self.required.push(PackagePattern::read(text)?);
        }
        Ok(())
    }

    pub(super) fn trust(&mut self, path: &str) -> Result<(), String> {
        let path = Path::new(path);
        // A relative path would mean another file in every project.
        if !path.is_absolute() {
            return Err("`sigstoreRoot` is an absolute path".to_owned());
        }
        self.trust_root = Some(path.to_owned());
        Ok(())
    }
}

impl PackagePattern {
    fn read(text: &str) -> Result<Self, String> {
        let refused = |reason: &str| {
            let text = Shown::line(text);
            format!("`{text}` in `requireProvenance` is no pattern over the names of packages: {reason}")
        };
        if text.is_empty() || text.len() > PATTERN {
            return Err(refused("it is empty, or longer than any name"));
        }
        let matcher = |text: &str| {
            // A demand is better met by too many packages than by too few: `*` is all of them, scopes included.
            let glob = GlobBuilder::new(text)
                .case_insensitive(true)
                .backslash_escape(true)
                .build();
            glob.map(|glob| glob.compile_matcher())
                .map_err(|error| refused(&error.kind().to_string()))
        };
        Ok(Self {
            matchers: [matcher(text)?, matcher(&text.replace(['_', '.'], "-"))?],
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(patterns: &[&str]) -> ProvenanceSettings {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let mut settings = ProvenanceSettings::default();
        settings.require(&patterns).unwrap();
        settings
    }

    #[test]
    fn a_demand_covers_what_its_pattern_names_in_any_spelling() {
        for (pattern, registry, name, covered) in [
            (
                "@modelcontextprotocol/*",
                "npm",
                "@modelcontextprotocol/server-x",
                true,
            ),
            (
                "@modelcontextprotocol/*",
                "npm",
                "@modelcontextprotocol-x/server",
                false,
            ),
            ("@modelcontextprotocol/*", "npm", "server", false),
            ("*", "npm", "@scope/name", true),
            ("npm:*", "npm", "name", true),
            ("npm:*", "pypi", "name", false),
            ("Mcp_Server_*", "pypi", "mcp-server-time", true),
            ("mcp.server", "pypi", "mcp-server", true),
            ("{a,b}-server", "npm", "b-server", true),
        ] {
            let found = settings(&[pattern]).requirement(registry, name).is_some();
            assert_eq!(found, covered, "{pattern} {registry}:{name}");
        }
        assert_eq!(settings(&["x", "y*"]).requirement("npm", "yes"), Some("y*"));
    }

    #[test]
    fn what_is_no_pattern_and_no_absolute_path_is_refused() {
        let mut settings = ProvenanceSettings::default();
        for pattern in ["", "[", &"x".repeat(PATTERN + 1)] {
            let error = settings.require(&[pattern.to_owned()]).unwrap_err();
            assert!(
                error.contains("is no pattern over the names of packages"),
                "{error}"
            );
        }
        assert!(settings.require(&vec!["x".to_owned(); PATTERNS + 1]).is_err());
        assert!(settings.trust("root.json").is_err());
        assert!(settings.trust("/root.json").is_ok());
    }
}
