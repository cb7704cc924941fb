//! `pml install [NAME…]`: fetches packages before anybody calls them.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{Ground, output, terminal};
use crate::config::{Config, nearest};
use crate::loader::process::supervisor;
use crate::loader::{InstallStep, Installed, Packages, Plan, plan};
use crate::protocol::DependencyName;
use crate::report::{Hint, render_hinted};

/// Installs the packages of declared servers.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The servers to install; without a name, all of them
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<DependencyName>,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What came of one server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    name: DependencyName,
    #[serde(flatten)]
    state: State,
}

#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "camelCase")]
enum State {
    /// It is in the store now, or was already.
    Installed {
        package: String,
        version: String,
        integrity: Option<String>,
        directory: std::path::PathBuf,
    },
    /// It is a plain command or a remote server.
    Command,
    /// It could not be installed.
    Failed { error: String },
}

/// Installs what is named, one after the other, and goes on after a failure.
pub(crate) fn run(ground: &Ground, config: &Config, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let names = selected(config, &arguments.names)?;
    let packages = Packages::new(&ground.locations, &ground.environment).supervised_by(supervisor()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcomes = runtime.block_on(async {
        tokio::select! {
            outcomes = install_all(ground, config, &packages, &names) => Some(outcomes),
            () = terminal::interrupted() => None,
        }
    });
    let Some(outcomes) = outcomes else {
        output::say("interrupted; nothing half installed is left");
        return Ok(ExitCode::from(1));
    };
    if arguments.json {
        output::data(&serde_json::to_string_pretty(&outcomes)?)?;
    } else {
        for outcome in &outcomes {
            outcome.print()?;
        }
    }
    let failed = outcomes
        .iter()
        .any(|outcome| matches!(outcome.state, State::Failed { .. }));
    Ok(ExitCode::from(if failed { 2 } else { 0 }))
}

impl Outcome {
    fn print(&self) -> std::io::Result<()> {
        let name = &self.name;
        match &self.state {
            State::Installed { package, .. } => output::data(&format!("{name}: {package} is installed"))?,
            State::Command => output::data(&format!("{name}: nothing to install"))?,
            State::Failed { error } => output::say(&format!("error: {name}: {error}")),
        }
        Ok(())
    }
}

/// Returns the named servers, or all that are not left out.
fn selected(config: &Config, names: &[DependencyName]) -> anyhow::Result<Vec<DependencyName>> {
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
    ground: &Ground,
    config: &Config,
    packages: &Packages,
    names: &[DependencyName],
) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(names.len());
    for name in names {
        let Some(server) = config.servers.get(name) else {
            continue;
        };
        let state = match plan(name, server, &ground.environment) {
            Ok(plan) => install_one(packages, &plan).await,
            Err(error) => failed(&error),
        };
        outcomes.push(Outcome {
            name: name.clone(),
            state,
        });
    }
    outcomes
}

async fn install_one(packages: &Packages, plan: &Plan) -> State {
    let Some(package) = plan.package() else {
        return State::Command;
    };
    let shown = Steps::new(plan);
    let result = packages.install(plan, None, &|step| shown.show(step)).await;
    shown.clear();
    match result {
        Ok(Installed { resolved, root, .. }) => State::Installed {
            package: package.at(&resolved.version),
            version: resolved.version,
            integrity: resolved.integrity,
            directory: root,
        },
        Err(error) => failed(&error),
    }
}

fn failed(error: &(impl Hint + 'static)) -> State {
    State::Failed {
        error: render_hinted(error),
    }
}

/// Shows the steps of one installation on stderr: a bar on a terminal, lines elsewhere.
enum Steps {
    Bar(ProgressBar),
    Lines { name: String },
}

impl Steps {
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
