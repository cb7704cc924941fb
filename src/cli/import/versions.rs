//! The exact versions of imported packages: what floated is resolved now and written down.

use super::survey::Survey;
use crate::cli::CommandContext;
use crate::cli::terminal::StepDisplay;
use crate::loader::{Loader, VersionSpec, pin};

/// Resolves every package that has no exact version; what cannot be resolved says so and stays as it is.
pub(super) async fn pin_all(context: &CommandContext, survey: &mut Survey, loader: &Loader) {
    let files = survey.files.clone();
    let passing = StepDisplay::new();
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
                taken.translation.notes.push(format!(
                    "its version is not known yet: {}",
                    crate::report::render(&error, None)
                ));
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
}
