//! `pml remove NAME`: takes a server out of a configuration and leaves everything else in it.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::failure::{Hinted as _, Refused};
use super::{CommandContext, Haste, output};
use crate::config::{self, Config, Server};
use crate::loader::{Packages, plan};
use crate::permissions::ConfigChange;
use crate::permissions::writer::FileKind;
use crate::protocol::DependencyName;
use crate::workflow::Place;

/// Which server, and from whose file.
#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// The server
    #[arg(value_name = "NAME")]
    name: DependencyName,
    /// Write the user's file instead of the project's
    #[arg(long)]
    user: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Takes the server out and says what stays.
pub(crate) fn run(context: &CommandContext, arguments: &RemoveArguments) -> anyhow::Result<ExitCode> {
    let files = context.files();
    let name = &arguments.name;
    let (path, kind, other, flag) = if arguments.user {
        (&files.user, FileKind::User, &files.project, "")
    } else {
        (&files.project, FileKind::Pml(&files), &files.user, " --user")
    };
    let declared = declared(path)?;
    let Some(server) = declared.servers.get(name) else {
        let refused = Err(Refused(format!("no server `{name}` in {}", context.path(path))));
        if self::declared(other)?.servers.contains_key(name) {
            return refused.hint(format!(
                "it stands in {}; to remove it there: pml remove{flag} {name}",
                context.path(other)
            ));
        }
        let names = declared.servers.keys().map(DependencyName::as_str);
        return match config::nearest(name.as_str(), names) {
            Some(nearest) => refused.hint(format!("did you mean `{nearest}`?")),
            None => refused.hint("to see what is declared: pml list"),
        };
    };
    let stays = stays(context, name, server)?;
    let change = ConfigChange::RemoveServer {
        name: name.to_string(),
    };
    let edited = context.edit(path, kind, &[change])?;
    output::warn(&edited.durability);
    context.take_out_of_lock(path, name);
    let also = self::declared(other)?.servers.contains_key(name);

    if arguments.json {
        output::json(&json!({
            "file": edited.file.to_string_lossy(),
            "removed": name,
            "staysInstalled": stays.installed,
            "staysApproved": stays.approved,
            "alsoDeclaredIn": also.then(|| other.to_string_lossy()),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::say(&format!(
        "changed {}: removed `{name}`",
        context.path(&edited.file)
    ));
    if let Some(package) = &stays.installed {
        output::note(&format!("`{package}` stays installed"));
    }
    if stays.approved {
        output::note(&format!(
            "it stays approved as it was declared; to take that back: pml uninstall {name}"
        ));
    }
    if also {
        output::note(&format!("`{name}` is still declared in {}", context.path(other)));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a server leaves behind when it is taken out of a file.
struct Leftovers {
    installed: Option<String>,
    approved: bool,
}

/// Looks before the server is gone from the file; one that cannot be planned leaves nothing.
fn stays(context: &CommandContext, name: &DependencyName, server: &Server) -> anyhow::Result<Leftovers> {
    let Ok(plan) = plan(name, server, &context.planning_environment()) else {
        return Ok(Leftovers {
            installed: None,
            approved: false,
        });
    };
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    );
    let installed = plan.package().and_then(|package| {
        let installed = packages.installed(&plan).ok().flatten()?;
        Some(package.at(&installed.resolved.version))
    });
    let approvals = Place::of(&context.locations).approvals()?;
    let approved = approvals.covers(plan.digest(), None, None);
    Ok(Leftovers { installed, approved })
}

/// Reads one file alone; a missing one declares nothing.
fn declared(path: &std::path::Path) -> anyhow::Result<Config> {
    Ok(match config::load_text(path)? {
        Some(text) => config::check(path, &text)?,
        None => Config::default(),
    })
}
