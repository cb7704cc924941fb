//! Learns the tools of imported servers, so that the first list of tools is complete.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ImportOrder;
use super::survey::{Survey, Taken};
use crate::cli::introduction::{Newcomer, NotIntroduced};
use crate::cli::{CommandContext, Haste, authority, failure, interruption, output};
use crate::clients::Handover;
use crate::config::{self, Environment};
use crate::loader::{Loader, plan};
use crate::protocol::DependencyName;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Learned {
    servers: Vec<(DependencyName, Result<usize, String>)>,
}

impl Learned {
    /// Tells whether every server works.
    pub(super) fn is_complete(&self) -> bool {
        self.servers.iter().all(|(_, learned)| learned.is_ok())
    }

    /// Returns what came of each server.
    pub(super) fn json(&self) -> Value {
        let one = |(name, learned): &(DependencyName, Result<usize, String>)| match learned {
            Ok(tools) => json!({ "name": name, "tools": tools }),
            Err(error) => json!({ "name": name, "error": error }),
        };
        self.servers.iter().map(one).collect()
    }
}

/// Installs and starts every imported server once, and records that the person agreed to it.
pub(super) fn run(context: &CommandContext, survey: &Survey, order: &ImportOrder) -> anyhow::Result<Learned> {
    let context = CommandContext {
        environment: with_values(&context.environment, survey),
        locations: context.locations.clone(),
        config: context.config.clone(),
    };
    let mut learned = Learned::default();
    let done = interruption::with_loader(&context, Haste::None, async |loader| {
        for taken in survey.taken().filter(|taken| !taken.server.disabled) {
            let outcome = learn(&context, taken, order, loader).await;
            match &outcome {
                Ok(1) => output::say(&format!("{}: works, 1 tool", taken.name)),
                Ok(tools) => output::say(&format!("{}: works, {tools} tools", taken.name)),
                Err(error) => output::note(&format!(
                    "`{}` is declared and was not started; its first call asks: {error}",
                    taken.name
                )),
            }
            learned.servers.push((taken.name.clone(), outcome));
        }
    })?;
    if done.is_none() {
        output::say("\ninterrupted; the import stands, and what was not started asks at its first call");
    }
    Ok(learned)
}

async fn learn(
    context: &CommandContext,
    taken: &Taken,
    order: &ImportOrder,
    loader: &Loader,
) -> Result<usize, String> {
    let line_limit = config::read(&context.files()).map_or(0, |config| config.line_limit.0);
    let ruled = context
        .read()
        .map_err(anyhow::Error::from)
        .and_then(|config| authority::ruled(context, &config, &taken.name, &[]));
    ruled.map_err(|error| failure::text(&error))?;
    // With the values of here: a variable that only the client has is missing, and that is said.
    let plan = plan(&taken.name, &taken.server, &context.environment);
    let plan = Arc::new(plan.map_err(|error| crate::report::render_hinted(&error))?);
    let newcomer = Newcomer {
        name: &taken.name,
        server: &taken.server,
        plan: &plan,
        line_limit,
        beforehand: "pml import --yes",
        yes: order.yes,
    };
    let told = |error: anyhow::Error| failure::text(&error);
    let before = context.compared(&taken.server, &plan).map_err(told)?;
    let found = newcomer.find(loader, before.as_ref(), taken.resolved.as_ref());
    let found = found.await.map_err(|error| told(error.into()))?;
    let shown = newcomer.show(context, before, found).map_err(told)?;
    let introduced = newcomer.start(context, loader, shown).await;
    let introduced = introduced.map_err(|error| match error {
        NotIntroduced::Start(source) => crate::report::render_hinted(&*source),
        NotIntroduced::Declined => format!("`{}` was not added", taken.name),
        NotIntroduced::Other(error) => told(error),
    })?;
    let tools = introduced.started.known().tools.len();
    newcomer.record_declared(context, loader, introduced, &taken.file);
    Ok(tools)
}

/// Returns the environment with the values that the clients' files hold: a server gets them by pml's entry there.
fn with_values(environment: &Environment, survey: &Survey) -> Environment {
    let mut with = environment.clone();
    for variable in survey.found.iter().flat_map(super::survey::FoundFile::variables) {
        if let Handover::Value(value) = &variable.handover
            && environment.variable(&variable.name).is_none()
        {
            with = with.with(variable.name.clone(), value.clone());
        }
    }
    with
}
