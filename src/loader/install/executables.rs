//! Which executable of an installed package is the server.
//!
//! The ecosystem's own runner decides the same way; where it would guess, the choices are named instead.

use std::path::Path;

use super::error::InstallError;
use crate::loader::plan::{Ecosystem, Package, normalize};
use crate::loader::store::{Executable, Manifest, PYTHON, StartMethod};

/// Tells whether what a manifest lists is there, the runtime of a PyPI package included.
pub(in crate::loader) fn is_whole(root: &Path, manifest: &Manifest) -> bool {
    manifest.executables.values().all(|executable| {
        let runtime = executable.start != StartMethod::Python || root.join(PYTHON).is_file();
        runtime && root.join(&executable.path).is_file()
    })
}

/// Chooses the executable as the ecosystem's own runner does.
pub(in crate::loader) fn choose<'a>(
    package: &Package,
    manifest: &'a Manifest,
) -> Result<(&'a String, &'a Executable), InstallError> {
    let executables = &manifest.executables;
    let unscoped = package
        .name()
        .rsplit_once('/')
        .map_or(package.name(), |(_, name)| name);
    let same_file = || {
        let (first, executable) = executables.first_key_value()?;
        executables
            .values()
            .all(|other| other.path == executable.path)
            .then_some((first, executable))
    };
    let by_name = |wanted: &str| executables.get_key_value(wanted);
    let chosen = match (package.executable(), package.ecosystem()) {
        (Some(wanted), _) => by_name(wanted),
        (None, Ecosystem::Npm) => same_file().or_else(|| by_name(unscoped)),
        (None, Ecosystem::Pypi) => executables
            .iter()
            .find(|(name, _)| normalize(name) == package.registry_name())
            .or_else(same_file),
    };
    chosen.ok_or_else(|| InstallError::Executable {
        package: package.spec(),
        wanted: package.executable().map(str::to_owned),
        choices: executables.keys().cloned().collect(),
    })
}
