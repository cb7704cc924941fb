//! Learns the tools of imported servers, so that the first list of tools is complete.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use serde_json::{Value, json};

use super::ImportOrder;
use super::survey::{Survey, Taken};
use crate::cli::introduction::{Newcomer, NotIntroduced};
use crate::cli::{CommandContext, Haste, authority, failure, interruption, output};
use crate::clients::{Handover, NeededVariable};
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
    let mut learned = Learned::default();
    let done = interruption::with_loader(context, Haste::None, async |loader| {
        for taken in survey.taken().filter(|taken| !taken.server.disabled) {
            let outcome = learn(context, taken, order, loader).await;
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
    let environment = with_values(&context.environment, &taken.translation.variables);
    let plan = plan(&taken.name, &taken.server, &environment);
    let plan = Arc::new(plan.map_err(|error| crate::report::render_hinted(&error))?);
    let newcomer = Newcomer {
        name: &taken.name,
        server: &taken.server,
        plan: &plan,
        line_limit,
        file: &taken.file,
        beforehand: "pml import --yes",
        yes: order.yes,
    };
    let introduced = newcomer.start(context, loader, taken.resolved.as_ref()).await;
    let introduced = introduced.map_err(|error| match error {
        NotIntroduced::Start(source) => crate::report::render_hinted(&*source),
        NotIntroduced::Other(error) => failure::text(&error),
    })?;
    let tools = introduced.started.known().tools.len();
    newcomer.record(context, loader, introduced);
    Ok(tools)
}

/// Returns the environment as pml has it for a server in its client: with the values that the client's file holds.
fn with_values(environment: &Environment, variables: &[NeededVariable]) -> Environment {
    variables.iter().fold(environment.clone(), |with, variable| {
        let value = match &variable.handover {
            Handover::Value(value) => Some(OsString::from(value)),
            Handover::Reference { variable, .. } => environment.variable(variable).map(OsStr::to_owned),
            Handover::Client(_) | Handover::File(_) | Handover::Environment | Handover::Person => None,
        };
        match value {
            Some(value) => with.with(variable.name.clone(), value),
            None => with,
        }
    })
}
