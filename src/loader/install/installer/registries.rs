//! Which of the user's packages come from the public registries, whose names are no secret.
//!
//! The names of a company's own packages are. Where the user's settings name another registry or index, what comes from
//! it may be either: it does not count as public.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use url::Url;

use super::credentials::read;
use super::indexes;
use super::tools::Tools;
use crate::pins::{PackageVersion, Registry};

/// The hosts of the public registries.
const NPM: [&str; 1] = ["registry.npmjs.org"];
const PYPI: [&str; 2] = ["pypi.org", "files.pythonhosted.org"];

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
    /// The scopes of npm that have a registry of their own, which is not the public one.
    scopes: BTreeSet<String>,
    pypi: Origin,
}

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Public,
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
        // The later ones count more, and a variable most of all.
        let files = [Some(PathBuf::from("/etc/npmrc")), beside, personal];
        let mut settings = NpmSettings::default();
        for text in files.iter().flatten().filter_map(|file| read(file)) {
            settings.add(&text);
        }
        if let Some(registry) = set("NPM_CONFIG_REGISTRY") {
            settings.registry = Some(registry.to_owned());
        }
        let environment = tools.environment();
        let indexes = INDEX_VARIABLES
            .iter()
            .filter_map(|name| environment.variable(name)?.to_str().map(str::to_owned));
        let files = indexes::configurations(environment);
        let texts: Vec<String> = indexes
            .chain(files.iter().filter_map(|file| read(file)))
            .collect();
        Self {
            npm: origin(settings.registry.as_deref()),
            scopes: settings.scopes,
            pypi: if texts.iter().all(|text| is_public_index(text)) {
                Origin::Public
            } else {
                Origin::Other
            },
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
    registry: Option<String>,
    scopes: BTreeSet<String>,
}

impl NpmSettings {
    /// Takes over the lines of an `.npmrc` that name a registry.
    fn add(&mut self, text: &str) {
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let (name, value) = (name.trim(), value.trim().trim_matches(['"', '\'']));
            if name == "registry" {
                self.registry = Some(value.to_owned());
            } else if let Some(scope) = name.strip_suffix(":registry")
                && scope.starts_with('@')
            {
                match origin(Some(value)) {
                    Origin::Public => self.scopes.remove(scope),
                    Origin::Other => self.scopes.insert(scope.to_owned()),
                };
            }
        }
    }
}

fn origin(registry: Option<&str>) -> Origin {
    match registry {
        None => Origin::Public,
        Some(address) if is_at(address, &NPM) => Origin::Public,
        Some(_) => Origin::Other,
    }
}

/// Tells whether a setting or a file names no place for Python packages but the public ones.
///
/// Not parsed: every address in it counts, and so does a path to look in.
fn is_public_index(text: &str) -> bool {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['#', ';']));
    let words = lines.flat_map(|line| line.split([' ', '\t', '"', '\'', '=', ',', '[', ']']));
    let mut places = words.filter(|word| word.contains("://") || word.contains("find-links"));
    places.all(|place| is_at(place, &PYPI))
}

fn is_at(address: &str, hosts: &[&str]) -> bool {
    let url: Option<Url> = address.parse().ok();
    url.is_some_and(|url| url.host_str().is_some_and(|host| hosts.contains(&host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Locations};

    fn registries(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Registries {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            crate::disk::write_new(&path, text.as_bytes()).unwrap();
        }
        let own = home.path().join("npmrc").to_str().unwrap().to_owned();
        let given = [
            ("HOME", home.path().to_str().unwrap()),
            ("PATH", "/nowhere"),
            // What the machine that runs the tests is set to does not count here.
            ("NPM_CONFIG_USERCONFIG", own.as_str()),
        ];
        let environment = Environment::new(given.into_iter().chain(variables.iter().copied()), "/");
        Registries::of(&Tools::new(&Locations::of(&environment).unwrap(), &environment))
    }

    fn is_public(registries: &Registries, package: &str) -> bool {
        registries.is_public(&PackageVersion::read(package).unwrap())
    }

    #[test]
    fn a_scope_with_a_registry_of_its_own_is_private_and_the_rest_is_not() {
        let public = "registry=https://registry.npmjs.org/\n@acme:registry=https://npm.acme.test/\n\
                      @open:registry = \"https://registry.npmjs.org\"\n";
        let registries = registries(&[("npmrc", public)], &[]);
        assert!(is_public(&registries, "npm:left-pad@1.0.0"));
        assert!(is_public(&registries, "npm:@open/x@1.0.0"));
        assert!(!is_public(&registries, "npm:@acme/x@1.0.0"));
        let acme = PackageVersion::read("npm:@acme/x@1.0.0").unwrap();
        assert!(registries.is_of_own_scope(&acme));
    }

    #[test]
    fn what_comes_from_another_registry_is_not_public() {
        for registry in [
            "https://npm.acme.test/",
            "http://127.0.0.1:4873/",
            "https://registry.npmjs.org.acme.test/",
            "https://user@npm.acme.test/registry.npmjs.org/",
            "${COMPANY_REGISTRY}",
        ] {
            let registries = registries(&[("npmrc", &format!("registry={registry}\n"))], &[]);
            assert!(!is_public(&registries, "npm:left-pad@1.0.0"), "{registry}");
        }
        let own = [("NPM_CONFIG_REGISTRY", "https://npm.acme.test/")];
        let registries = registries(&[("npmrc", "registry=https://registry.npmjs.org/\n")], &own);
        assert!(!is_public(&registries, "npm:left-pad@1.0.0"));
    }

    #[test]
    fn an_index_besides_the_public_one_makes_every_python_package_private() {
        let of_file = |text: &str| is_public_index(text);
        assert!(of_file("[global]\ncert = /x.pem\n"));
        assert!(of_file(
            "index-url = \"https://pypi.org/simple\"\n# https://acme.test\n"
        ));
        assert!(!of_file("extra-index-url = https://pypi.acme.test/simple\n"));
        assert!(!of_file(
            "[[index]]\nurl = \"https://pypi.org.acme.test/simple\"\n"
        ));
        assert!(!of_file("find-links = /srv/wheels\n"));
        let own = registries(&[], &[("UV_EXTRA_INDEX_URL", "https://pypi.acme.test/simple")]);
        assert!(!is_public(&own, "pypi:mcp@1"));
    }
}
