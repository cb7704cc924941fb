//! Who uses which package: declared servers of both files, and approvals, those of other projects included.

use super::Ground;
use crate::config;
use crate::loader::{Package, Use, Used, plan};
use crate::protocol::DependencyName;
use crate::workflow::Place;

/// Finds who uses packages beside the server `name`.
pub(super) fn others(ground: &Ground, name: &DependencyName) -> anyhow::Result<Vec<Use>> {
    let files = ground.files();
    let mut uses = Vec::new();
    let mut paths = vec![&files.project, &files.user];
    paths.dedup();
    for path in paths {
        let Some(text) = config::load_text(path)? else {
            continue;
        };
        let config = config::check(path, &text)?;
        for (other, server) in config.servers.iter().filter(|(other, _)| *other != name) {
            let plan = plan(other, server, &ground.environment).ok();
            uses.extend(plan.as_ref().and_then(|plan| plan.package()).map(|package| Use {
                by: format!("`{other}` in {}", ground.path(path)),
                of: Used::Package(package.clone()),
            }));
        }
    }
    let approvals = Place::of(&ground.locations).approvals()?;
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
