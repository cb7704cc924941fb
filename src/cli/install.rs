//! `pml install [NAME…]`: fetches packages before the first call, under the rules and approvals of a call.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::authority::{self, Authority};
use super::failure::{self, Hinted as _, Refused};
use super::install_scripts::{self, ScriptsQuestion};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, Haste, output, server_display};
use crate::config::{Config, nearest};
use crate::loader::process::supervisor;
use crate::loader::{Content, InstallError, InstallStep, Installed, Package, Packages, Plan, plan};
use crate::pins::PublishedAt;
use crate::protocol::approval::ShownProvenance;
use crate::protocol::{DependencyName, Shown};
use crate::proxy::now;

/// Installs the packages of declared servers.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// The servers to install; without a name, all of them
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<DependencyName>,
    /// Do not ask before what no rule allows and nobody approved is fetched
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Fetch the named ones also if they were published too short a time ago ("minReleaseAgeDays")
    #[arg(long, requires = "names")]
    pub(crate) now: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl InstallArguments {
    /// Returns whether `--now` was given.
    pub(crate) fn haste(&self) -> Haste {
        Haste::of(self.now)
    }
}

/// What came of one server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallOutcome {
    name: DependencyName,
    #[serde(flatten)]
    state: InstallState,
}

#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum InstallState {
    /// It is in the store now, or was already.
    Installed {
        package: String,
        version: String,
        integrity: Option<String>,
        /// When the registry says that the version was published.
        published: Option<PublishedAt>,
        /// How long ago that is, in words.
        age: Option<String>,
        provenance: Option<Box<ShownProvenance>>,
        directory: std::path::PathBuf,
        at_start: Vec<String>,
        notes: Vec<String>,
    },
    /// It is a plain command or a remote server.
    Command,
    /// The rules or the person did not let it be installed.
    Refused { error: String },
    /// It could not be installed.
    Failed { error: String },
}

impl InstallState {
    /// Tells a no from a failure.
    fn of(error: &anyhow::Error) -> Self {
        let text = failure::text(error);
        match failure::code(error) {
            1 => Self::Refused { error: text },
            _ => Self::Failed { error: text },
        }
    }
}

/// Installs what is named, one after the other, and goes on after a failure.
pub(crate) fn run(
    context: &CommandContext,
    config: &Config,
    arguments: &InstallArguments,
) -> anyhow::Result<ExitCode> {
    let names = selected(config, &arguments.names)?;
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(arguments.haste()),
    )
    .supervised_by(supervisor::program()?);
    packages.tell_waiting(terminal::tell);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcomes = runtime.block_on(async {
        tokio::select! {
            outcomes = install_all(context, arguments, &packages, &names) => Some(outcomes),
            () = terminal::interrupted() => None,
        }
    });
    // A thread that still waits for the person must not keep pml alive.
    runtime.shutdown_background();
    let Some(outcomes) = outcomes else {
        output::say("interrupted; nothing half installed is left");
        return Ok(ExitCode::from(1));
    };
    let written = if arguments.json {
        output::json(&serde_json::to_value(&outcomes)?)
    } else {
        // What failed is told on stderr also where the rest has no reader.
        let printed: Vec<_> = outcomes.iter().map(InstallOutcome::print).collect();
        printed.into_iter().collect()
    };
    let code = outcomes.iter().map(|outcome| match outcome.state {
        InstallState::Installed { .. } | InstallState::Command => 0,
        InstallState::Refused { .. } => 1,
        InstallState::Failed { .. } => 2,
    });
    Ok(output::verdict(code.max().unwrap_or(0), written)?)
}

impl InstallOutcome {
    fn print(&self) -> Result<(), output::StdoutError> {
        let name = &self.name;
        match &self.state {
            InstallState::Installed {
                package,
                age,
                provenance,
                notes,
                ..
            } => {
                let published = age.as_deref().unwrap_or("at a time not known");
                let written =
                    output::data(&format!("{name}: {package} is installed (published {published})"));
                if let Some(provenance) = provenance {
                    let provenance = provenance.to_string();
                    output::say(&format!("{name}: provenance: {}", Shown::line(&provenance)));
                }
                for note in notes {
                    output::note(note);
                }
                written
            }
            InstallState::Command => output::data(&format!("{name}: nothing to install")),
            InstallState::Refused { error } | InstallState::Failed { error } => {
                output::say(&format!("error: {name}: {error}"));
                Ok(())
            }
        }
    }
}

/// Returns the named servers, or all that are not left out.
pub(super) fn selected(config: &Config, names: &[DependencyName]) -> anyhow::Result<Vec<DependencyName>> {
    if names.is_empty() {
        let enabled = config.servers.iter().filter(|(_, server)| !server.disabled);
        return Ok(enabled.map(|(name, _)| name.clone()).collect());
    }
    for name in names {
        declared(config, name)?;
    }
    Ok(names.to_vec())
}

/// Refuses a name that no file declares.
pub(super) fn declared(config: &Config, name: &DependencyName) -> anyhow::Result<()> {
    if config.servers.contains_key(name) {
        return Ok(());
    }
    match nearest(name.as_str(), config.servers.keys().map(DependencyName::as_str)) {
        Some(near) => anyhow::bail!("no server is called `{name}`\n\nhint: did you mean `{near}`?"),
        None => anyhow::bail!("no server is called `{name}`\n\nhint: to see them: pml list"),
    }
}

async fn install_all(
    context: &CommandContext,
    arguments: &InstallArguments,
    packages: &Packages,
    names: &[DependencyName],
) -> Vec<InstallOutcome> {
    let mut outcomes = Vec::with_capacity(names.len());
    for name in names {
        let state = install_one(context, arguments, packages, name).await;
        outcomes.push(InstallOutcome {
            name: name.clone(),
            state: state.unwrap_or_else(|error| InstallState::of(&error)),
        });
    }
    outcomes
}

async fn install_one(
    context: &CommandContext,
    arguments: &InstallArguments,
    packages: &Packages,
    name: &DependencyName,
) -> anyhow::Result<InstallState> {
    let declared = context.read()?.servers.remove(name);
    let to_install = declared.map(|server| context.to_install(&server));
    let context = to_install.as_ref().unwrap_or(context);
    let (config, plan) = planned(context, name)?;
    let Some(package) = plan.package() else {
        return Ok(InstallState::Command);
    };
    let loader = context.loader(arguments.haste());
    let expected = match authority::of(context, &config, &plan, &loader)? {
        Authority::Granted(expected) => expected,
        // What is there already needs no leave to be fetched.
        Authority::Asks if packages.installed(&plan)?.is_some() => Content::default(),
        Authority::Asks => {
            let shown = agreed(arguments, packages, &plan, package).await?;
            // Minutes may have passed at the question: the rules and the declaration of now count.
            let (config, now) = planned(context, name)?;
            authority::of(context, &config, &now, &loader)?;
            if now.digest() != plan.digest() {
                return Err(Refused(format!("`{name}` was declared anew meanwhile")).into());
            }
            shown
        }
    };
    let result = install_accepted(context, arguments, packages, &config, &plan, expected).await?;
    let Installed {
        resolved,
        root,
        at_start,
        notes,
        ..
    } = result;
    Ok(InstallState::Installed {
        provenance: resolved.shown_provenance().map(Box::new),
        package: package.at(&resolved.version),
        version: resolved.version,
        integrity: resolved.integrity,
        published: resolved.published,
        age: resolved.published.map(|published| published.ago(now().millis())),
        directory: root,
        at_start,
        notes,
    })
}

/// Installs a package; install scripts that are not accepted yet are shown and asked about before they run.
async fn install_accepted(
    context: &CommandContext,
    arguments: &InstallArguments,
    packages: &Packages,
    config: &Config,
    plan: &Plan,
    expected: Content,
) -> anyhow::Result<Installed> {
    let name = plan.dependency();
    let server = config.servers.get(name);
    let accepted = server.map(|server| context.accepted_scripts(name, server));
    let mut expected = Content {
        scripts: accepted.transpose()?.flatten(),
        ..expected
    };
    let install = async |expected: &Content| {
        let steps = InstallSteps::new(plan);
        let result = packages.install(plan, expected, &|step| steps.show(step)).await;
        steps.clear();
        result
    };
    match (install(&expected).await, server) {
        (Err(InstallError::Scripts { scripts, .. }), Some(server)) => {
            let question = ScriptsQuestion {
                name,
                server,
                beforehand: &format!("pml install --yes {name}"),
                yes: arguments.yes,
            };
            let agreed = install_scripts::agreed(context, question, &scripts).await?;
            let Some(agreed) = agreed else {
                return Err(Refused(format!("`{name}` was not installed")).into());
            };
            expected.scripts = Some(agreed.digest.clone());
            context.accept_scripts(name, server, agreed)?;
            Ok(install(&expected).await?)
        }
        (result, _) => Ok(result?),
    }
}

/// Reads the configuration as it is now; a disabled server is refused as a call of it would be.
pub(super) fn planned(context: &CommandContext, name: &DependencyName) -> anyhow::Result<(Config, Plan)> {
    let config = context.read()?;
    declared(&config, name)?;
    let server = config.servers.get(name).filter(|server| !server.disabled);
    let Some(server) = server else {
        return Err(Refused(format!("`{name}` is disabled in its configuration")).into());
    };
    let plan = plan(name, server, &context.environment)?;
    Ok((config, plan))
}

/// Shows what would be fetched and asks the person; returns the content they were shown.
async fn agreed(
    arguments: &InstallArguments,
    packages: &Packages,
    plan: &Plan,
    package: &Package,
) -> anyhow::Result<Content> {
    let name = plan.dependency();
    if !arguments.yes && !terminal::is_there() {
        return Err(Refused(format!(
            "`{name}` was not installed: no rule allows it, it is not approved, and there is no terminal to ask in"
        )))
        .hint(format!("to agree beforehand: pml install --yes {name}"));
    }
    let passing = StepDisplay::new();
    passing.step(&format!("asking the registry for `{}`", package.spec()));
    let resolved = packages.resolve(plan).await;
    passing.clear();
    let resolved = resolved?;
    server_display::show(&plan.shown(Some(&resolved), now().millis()));
    let reply = if arguments.yes {
        TerminalReply::Yes
    } else {
        terminal::confirm(&format!("Install {name}?")).await?
    };
    match reply {
        TerminalReply::Yes => Ok(Content {
            integrity: resolved.integrity,
            lock: resolved.lock,
            ..Content::default()
        }),
        TerminalReply::No | TerminalReply::Nobody => {
            Err(Refused(format!("`{name}` was not installed")).into())
        }
    }
}

/// Shows the steps of one installation on stderr: a bar on a terminal, lines elsewhere.
enum InstallSteps {
    Bar(ProgressBar),
    Lines { name: String },
}

impl InstallSteps {
    fn new(plan: &Plan) -> Self {
        let name = plan.dependency().to_string();
        if !std::io::stderr().is_terminal() {
            return Self::Lines { name };
        }
        let bar = ProgressBar::new(u64::from(InstallStep::TOTAL));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {bar:20} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_prefix(name);
        // Slow enough to cost nothing, fast enough to be seen alive.
        bar.enable_steady_tick(Duration::from_millis(120));
        Self::Bar(bar)
    }

    fn show(&self, step: InstallStep) {
        match self {
            Self::Bar(bar) => {
                bar.set_position(u64::from(step.index()));
                bar.set_message(step.to_string());
            }
            Self::Lines { name } => output::say(&format!("{name}: {step}")),
        }
    }

    fn clear(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
