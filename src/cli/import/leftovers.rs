//! The packages that an import installed to try its servers, and that nothing declares in the end: they leave the store again.
//!
//! What stood in the store before stays, whatever it is; so does what any configuration declares.

use super::survey::Survey;
use crate::cli::gc::megabytes;
use crate::cli::{CommandContext, Haste, failure, interruption, output, uses};
use crate::loader::{InstalledVersions, Package, Packages, Plan, Uninstalled};
use crate::protocol::DependencyName;

/// The packages of an import, as the store was before it.
pub(super) struct Leftovers {
    before: InstalledVersions,
}

impl Leftovers {
    /// Takes note of what is in the store.
    pub(super) fn before(context: &CommandContext) -> Self {
        Self {
            before: packages(context).installed_versions(),
        }
    }

    /// Removes what was put there for these servers and is declared nowhere; says and returns what.
    ///
    /// What cannot be removed stays until `pml gc`; the import is what it is.
    pub(super) fn remove(&self, context: &CommandContext, tried: &[TriedPackage]) -> Vec<String> {
        let removed = self.removed(context, tried);
        removed.unwrap_or_else(|error| {
            let text = failure::text(&error);
            output::note(&format!(
                "packages that were installed to try servers are still there: {text}\nto remove them: pml gc"
            ));
            Vec::new()
        })
    }

    fn removed(&self, context: &CommandContext, tried: &[TriedPackage]) -> anyhow::Result<Vec<String>> {
        let packages = packages(context);
        let now = packages.installed_versions();
        let is_new = |tried: &&TriedPackage| {
            let version = packages.resolved(&tried.package).map(|resolved| resolved.version);
            version.is_some_and(|version| {
                now.has(&tried.package, &version) && !self.before.has(&tried.package, &version)
            })
        };
        let tried: Vec<_> = tried.iter().filter(is_new).collect();
        if tried.is_empty() {
            return Ok(Vec::new());
        }
        // Read now: what the import declared is declared.
        let uses = uses::declared(context)?;
        let done = interruption::until_interrupted(async {
            let mut removed = Vec::new();
            for TriedPackage { name, package } in tried {
                let size = packages.size(package);
                let done = packages.uninstall(name, package, &uses).await?;
                if let (Uninstalled::Removed { version, kept, .. }, Some(size)) = (done, size) {
                    let package = package.at(&version);
                    output::say(&format!(
                        "removed {package} again ({}): it was installed to try `{name}`, and nothing declares it",
                        megabytes(size)
                    ));
                    for kept in kept {
                        output::note(&format!("what the server wrote is kept in {}", kept.describe()));
                    }
                    removed.push(package);
                }
            }
            Ok(removed)
        })?;
        done.unwrap_or_else(|| Ok(Vec::new()))
    }
}

/// A package of a server that an import tries.
#[derive(Debug, Clone)]
pub(super) struct TriedPackage {
    name: DependencyName,
    package: Package,
}

/// Returns the packages of the servers that will be tried.
pub(super) fn tried(survey: &Survey) -> Vec<TriedPackage> {
    let servers = survey.taken().map(|taken| (&taken.name, &*taken.plan));
    let tried = servers.filter_map(|(name, plan): (&DependencyName, &Plan)| {
        let package = plan.package()?.clone();
        let name = name.clone();
        Some(TriedPackage { name, package })
    });
    tried.collect()
}

fn packages(context: &CommandContext) -> Packages {
    Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    )
}
