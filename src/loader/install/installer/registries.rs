//! Which of the user's packages come from the public registries, whose names are no secret.
//!
//! The names of a company's own packages are. Where the user's settings name a registry or an index, what comes from it
//! may be either: it does not count as public.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::credentials::read;
use super::indexes;
use super::tools::Tools;
use crate::pins::{PackageVersion, Registry};

/// The variables that name an index of Python packages.
const INDEX_VARIABLES: [&str; 6] = [
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
];

/// Where the user's packages come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registries {
    npm: Origin,
    /// The scopes of npm that have a registry of their own.
    scopes: BTreeSet<String>,
    pypi: Origin,
}

/// Where packages come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Origin {
    /// From where everybody gets them: the user's settings name no other place.
    #[default]
    Public,
    /// From a place that the user's settings name.
    Other,
}

impl Registries {
    /// Reads the user's settings; blocks.
    pub(in crate::loader::install) fn of(tools: &Tools) -> Self {
        let variables = tools.variables();
        let set = |name: &str| variables.get(OsStr::new(name)).and_then(|value| value.to_str());
        let home = tools.environment().variable("HOME").map(Path::new);
        let personal = set("NPM_CONFIG_USERCONFIG").map(PathBuf::from);
        let personal = personal.or_else(|| Some(home?.join(".npmrc")));
        // The machine's file lies beside the program.
        let beside = tools.path_of("npm").and_then(|npm| {
            let prefix = npm.parent()?.parent()?;
            Some(prefix.join("etc/npmrc"))
        });
        let files = [Some(PathBuf::from("/etc/npmrc")), beside, personal];
        let mut settings = NpmSettings::default();
        for text in files.iter().flatten().filter_map(|file| read(file)) {
            settings.add(&text);
        }
        if set("NPM_CONFIG_REGISTRY").is_some() {
            settings.registry = Origin::Other;
        }
        let environment = tools.environment();
        let is_set = |name: &&str| environment.variable(name).is_some_and(|value| !value.is_empty());
        let files = indexes::configurations(environment);
        let mut files = files.iter().filter_map(|file| read(file));
        let has_index = INDEX_VARIABLES.iter().any(is_set) || files.any(|text| names_an_index(&text));
        Self {
            npm: settings.registry,
            scopes: settings.scopes,
            pypi: if has_index { Origin::Other } else { Origin::Public },
        }
    }

    /// Tells whether a package comes from the public registry.
    #[must_use]
    pub fn is_public(&self, package: &PackageVersion) -> bool {
        let origin = match package.registry {
            Registry::Npm => self.npm,
            Registry::Pypi => self.pypi,
        };
        origin == Origin::Public && !self.is_of_own_scope(package)
    }

    /// Tells whether the scope of a package has a registry of its own: its names are a company's.
    #[must_use]
    pub fn is_of_own_scope(&self, package: &PackageVersion) -> bool {
        let scope = package.name.split_once('/').map(|(scope, _)| scope);
        package.registry == Registry::Npm && scope.is_some_and(|scope| self.scopes.contains(scope))
    }
}

#[derive(Debug, Default)]
struct NpmSettings {
    registry: Origin,
    scopes: BTreeSet<String>,
}

impl NpmSettings {
    /// Takes over the lines of an `.npmrc` that name a registry.
    fn add(&mut self, text: &str) {
        let settings = text.lines().filter_map(|line| line.split_once('='));
        for name in settings.map(|(name, _)| name.trim()) {
            if name == "registry" {
                self.registry = Origin::Other;
            } else if let Some(scope) = name.strip_suffix(":registry")
                && scope.starts_with('@')
            {
                self.scopes.insert(scope.to_owned());
            }
        }
    }
}

/// Tells whether a text of settings names a place to look for Python packages.
///
/// Not parsed: every address in it counts, whatever it is for.
fn names_an_index(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let mut settings = lines.filter(|line| !line.starts_with(['#', ';']));
    settings.any(|line| line.contains("://") || line.contains("find-links"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Locations};

    fn registries(npmrc: &str, variables: &[(&str, &str)]) -> Registries {
        let home = tempfile::tempdir().unwrap();
        crate::disk::write_new(&home.path().join(".npmrc"), npmrc.as_bytes()).unwrap();
        let given = [("HOME", home.path().to_str().unwrap()), ("PATH", "/nowhere")];
        let environment = Environment::new(given.into_iter().chain(variables.iter().copied()), "/");
        Registries::of(&Tools::new(&Locations::of(&environment).unwrap(), &environment))
    }

    fn package(text: &str) -> PackageVersion {
        PackageVersion::read(text).unwrap()
    }

    #[test]
    fn a_scope_with_a_registry_of_its_own_is_private_and_the_rest_is_not() {
        let mut settings = NpmSettings::default();
        settings.add(
            "fetch-retries=0\n @acme:registry = \"https://npm.acme.test/\"\n//npm.acme.test/:_authToken=x\n",
        );
        let registries = Registries {
            npm: settings.registry,
            scopes: settings.scopes,
            pypi: Origin::Public,
        };
        assert!(registries.is_public(&package("npm:left-pad@1.0.0")));
        assert!(registries.is_public(&package("npm:@acme2/x@1.0.0")));
        assert!(!registries.is_public(&package("npm:@acme/x@1.0.0")));
        assert!(registries.is_of_own_scope(&package("npm:@acme/x@1.0.0")));
        assert!(registries.is_public(&package("pypi:mcp@1")));
    }

    #[test]
    fn a_registry_of_the_users_choice_makes_every_npm_package_private() {
        for registry in [
            "https://npm.acme.test/",
            "http://127.0.0.1:4873/",
            "${COMPANY_REGISTRY}",
        ] {
            let own = registries(&format!("registry={registry}\n"), &[]);
            assert!(!own.is_public(&package("npm:left-pad@1.0.0")), "{registry}");
            assert!(!own.is_of_own_scope(&package("npm:left-pad@1.0.0")), "{registry}");
        }
        let own = registries("", &[("NPM_CONFIG_REGISTRY", "https://npm.acme.test/")]);
        assert!(!own.is_public(&package("npm:left-pad@1.0.0")));
    }

    #[test]
    fn an_index_of_the_users_choice_makes_every_python_package_private() {
        assert!(!names_an_index("[global]\ncert = /x.pem\n# https://acme.test\n"));
        assert!(names_an_index(
            "extra-index-url = https://pypi.acme.test/simple\n"
        ));
        assert!(names_an_index(
            "[[index]]\nurl = \"https://pypi.acme.test/simple\"\n"
        ));
        assert!(names_an_index("find-links = /srv/wheels\n"));
        let own = registries("", &[("UV_EXTRA_INDEX_URL", "https://pypi.acme.test/simple")]);
        assert!(!own.is_public(&package("pypi:mcp@1")));
    }
}
