//! The exact versions of imported packages: what floated is resolved now and written down.

use super::reason::why;
use super::survey::Survey;
use crate::cli::CommandContext;
use crate::cli::terminal::StepDisplay;
use crate::loader::{Loader, VersionSpec, pin};
use crate::report::Hint as _;

/// Resolves every package; one that cannot be resolved stays in its client.
pub(super) async fn pin_all(context: &CommandContext, survey: &mut Survey, loader: &Loader) {
    let files = survey.files.clone();
    let passing = StepDisplay::new();
    let mut unresolved = Vec::new();
    for taken in survey.taken_mut() {
        let Some(package) = taken.plan.package() else {
            continue;
        };
        let spec = package.spec();
        passing.step(&format!("asking the registry for `{spec}`"));
        let is_floating = matches!(package.version(), VersionSpec::Floating(_));
        let resolved = if is_floating {
            loader.packages().look_up(&taken.plan).await
        } else {
            loader.packages().resolve(&taken.plan).await
        };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(error) => {
                unresolved.push((taken.name.clone(), why(&taken.name, &error, error.hint())));
                continue;
            }
        };
        if is_floating {
            let launch = pin(&taken.server.launch, &resolved.version);
            let is_pinned = launch.is_some_and(|launch| taken.pinned(context, &files, &launch));
            if !is_pinned {
                taken.translation.notes.push(
                    "its exact version cannot be written into its line; its first use decides".to_owned(),
                );
                continue;
            }
            taken.floating = Some(spec);
        }
        taken.resolved = Some(resolved);
    }
    passing.clear();
    for (name, reason) in unresolved {
        survey.leave(&name, &reason);
    }
}
