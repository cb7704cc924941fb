//! The uses of packages: by declared servers of both files, and by approvals, those of other projects included.

use super::CommandContext;
use crate::config;
use crate::loader::{Package, Use, Used, plan};
use crate::protocol::DependencyName;
use crate::workflow::Place;

/// Finds who declares packages: both files of this place, and every configuration of which a server was accepted.
///
/// A configuration that cannot be read ends it: what it declares is not known.
pub(super) fn declared(context: &CommandContext) -> anyhow::Result<Vec<Use>> {
    let files = context.files();
    let mut paths = context.accepted_pins().configurations();
    paths.extend([files.project, files.user]);
    let environment = context.planning_environment();
    let mut uses = Vec::new();
    for path in &paths {
        let Some(text) = config::load_text(path)? else {
            continue;
        };
        for (name, server) in &config::check(path, &text)?.servers {
            let plan = plan(name, server, &environment).ok();
            uses.extend(plan.as_ref().and_then(|plan| plan.package()).map(|package| Use {
                by: format!("`{name}` in {}", context.path(path)),
                of: Used::Package(package.clone()),
            }));
        }
    }
    Ok(uses)
}

/// Finds who uses packages beside the server `name`.
pub(super) fn others(context: &CommandContext, name: &DependencyName) -> anyhow::Result<Vec<Use>> {
    let files = context.files();
    let environment = context.planning_environment();
    let mut uses = Vec::new();
    let mut paths = vec![&files.project, &files.user];
    paths.dedup();
    for path in paths {
        let Some(text) = config::load_text(path)? else {
            continue;
        };
        let config = config::check(path, &text)?;
        for (other, server) in config.servers.iter().filter(|(other, _)| *other != name) {
            let plan = plan(other, server, &environment).ok();
            uses.extend(plan.as_ref().and_then(|plan| plan.package()).map(|package| Use {
                by: format!("`{other}` in {}", context.path(path)),
                of: Used::Package(package.clone()),
            }));
        }
    }
    let approvals = Place::of(&context.locations).approvals()?;
    for record in approvals.all().cloned() {
        if record.dependency == *name {
            continue;
        }
        let package = record.package.and_then(|text| Package::explicit(&text).ok());
        let of = package
            .map(Used::Package)
            .or(record.integrity.map(Used::Integrity));
        uses.extend(of.map(|of| Use {
            by: format!("the approval of `{}`", record.dependency),
            of,
        }));
    }
    Ok(uses)
}
