//! Starts each server once before anything is written: what does not work here stays where it works.
//!
//! What the first list of tools needs is learned by that. That the person agreed to a server is recorded once it is declared.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use serde_json::{Value, json};

use super::ImportOrder;
use super::fate::Taken;
use super::reason::why;
use super::survey::Survey;
use crate::cli::failure::Refused;
use crate::cli::introduction::{Introduced, Newcomer, NotIntroduced};
use crate::cli::{CommandContext, Haste, authority, failure, interruption, output};
use crate::clients::{Handover, NeededVariable, values_in_file};
use crate::config::{self, Environment, ExpandError, Launch};
use crate::loader::{EndReason, LoadError, Loader, Plan, PlanError, plan};
use crate::protocol::DependencyName;
use crate::report::{Hint as _, render_hinted};

/// What came of it.
pub(super) struct Learned {
    servers: Vec<(DependencyName, Trial)>,
}

/// How a server went.
enum Trial {
    /// It works and has so many tools.
    Works(Box<Working>, usize),
    /// It was not started: only its client has what it needs.
    Untried(String),
    /// It does not work, in short and at length.
    Fails(Trouble),
}

/// A server that was started.
struct Working {
    plan: Arc<Plan>,
    introduced: Introduced,
}

/// Why a server does not work.
struct Trouble {
    short: String,
    whole: String,
    mended: Mended,
}

/// What could make it work behind pml.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mended {
    /// Nothing yet: its client signs in to it, and pml cannot.
    ByNothing,
    /// The person, later.
    ByPerson,
}

/// A server that does not work.
pub(super) struct Failed {
    pub(super) name: DependencyName,
    pub(super) reason: String,
    /// Whether it can be taken all the same.
    pub(super) may_be_taken: bool,
}

impl Learned {
    /// Tells whether every server works.
    pub(super) fn is_complete(&self) -> bool {
        self.servers
            .iter()
            .all(|(_, trial)| matches!(trial, Trial::Works(..)))
    }

    /// Returns the servers that do not work.
    pub(super) fn failed(&self) -> Vec<Failed> {
        let failed = self.servers.iter().filter_map(|(name, trial)| match trial {
            Trial::Fails(trouble) => Some(Failed {
                name: name.clone(),
                reason: trouble.short.clone(),
                may_be_taken: trouble.mended == Mended::ByPerson,
            }),
            Trial::Works(..) | Trial::Untried(_) => None,
        });
        failed.collect()
    }

    /// Returns what came of each server.
    pub(super) fn json(&self) -> Value {
        let one = |(name, trial): &(DependencyName, Trial)| match trial {
            Trial::Works(_, tools) => json!({ "name": name, "tools": tools }),
            Trial::Untried(reason) => json!({ "name": name, "error": reason }),
            Trial::Fails(trouble) => json!({ "name": name, "error": trouble.whole }),
        };
        self.servers.iter().map(one).collect()
    }
}

/// Installs and starts every server that would be imported once; `None` if the person interrupted it.
pub(super) fn run(
    context: &CommandContext,
    survey: &Survey,
    order: &ImportOrder,
) -> anyhow::Result<Option<Learned>> {
    interruption::with_loader(context, Haste::None, async |loader| {
        let mut servers = Vec::new();
        for taken in survey.taken().filter(|taken| !taken.server.disabled) {
            let trial = match learn(context, taken, order, loader).await {
                Ok(trial) => trial,
                Err(trouble) => Trial::Fails(trouble),
            };
            let name = &taken.name;
            match &trial {
                Trial::Works(_, 1) => output::say(&format!("{name}: works, 1 tool")),
                Trial::Works(_, tools) => output::say(&format!("{name}: works, {tools} tools")),
                Trial::Untried(reason) => output::note(&format!(
                    "`{name}` was not started, its first call asks: {reason}"
                )),
                Trial::Fails(trouble) => {
                    output::note(&format!("`{name}` does not work here: {}", trouble.whole));
                }
            }
            servers.push((name.clone(), trial));
        }
        Learned { servers }
    })
}

/// Records that the person agreed to each server that works, as it was started.
pub(super) fn record(
    context: &CommandContext,
    survey: &Survey,
    order: &ImportOrder,
    learned: &mut Learned,
) -> anyhow::Result<()> {
    interruption::with_loader(context, Haste::None, async |loader| {
        for (name, trial) in &mut learned.servers {
            let Trial::Works(working, _) = trial else { continue };
            if let Some(taken) = survey.taken().find(|taken| taken.name == *name) {
                let introduced = working.introduced.clone();
                let newcomer = newcomer(context, taken, &working.plan, order);
                newcomer.record_declared(context, loader, introduced, &taken.file);
            }
        }
    })?;
    Ok(())
}

async fn learn(
    context: &CommandContext,
    taken: &Taken,
    order: &ImportOrder,
    loader: &Loader,
) -> Result<Trial, Trouble> {
    let other = |error: anyhow::Error| Trouble {
        short: why(&taken.name, error.as_ref(), failure::hint(&error)),
        whole: failure::text(&error),
        mended: Mended::ByPerson,
    };
    let config = context.read().map_err(|error| other(error.into()))?;
    authority::ruled(context, &config, &taken.name, &[]).map_err(other)?;
    let environment = with_values(&context.environment, &taken.translation.variables);
    let plan = match plan(&taken.name, &taken.server, &environment) {
        Ok(plan) => Arc::new(plan),
        // In its client it may well have it.
        Err(PlanError::Expand {
            source: ExpandError::Unset { variable },
            ..
        }) => return Ok(Trial::Untried(format!("`{variable}` is not set here"))),
        Err(error) => {
            return Err(Trouble {
                short: why(&taken.name, &error, error.hint()),
                whole: render_hinted(&error),
                mended: Mended::ByPerson,
            });
        }
    };
    let newcomer = newcomer(context, taken, &plan, order);
    let before = context.compared(&taken.server, &plan).map_err(other)?;
    let found = newcomer.find(loader, before.as_ref(), taken.resolved.as_ref());
    let found = found.await.map_err(|error| other(error.into()))?;
    let shown = newcomer.show(context, before, found).map_err(other)?;
    let introduced = newcomer.start(context, loader, shown).await;
    let introduced = introduced.map_err(|error| match error {
        NotIntroduced::Start(source) => not_started(taken, &source),
        NotIntroduced::Declined => other(Refused(format!("`{}` was not agreed to", taken.name)).into()),
        NotIntroduced::Other(error) => other(error),
    })?;
    let tools = introduced.started.known().tools.len();
    Ok(Trial::Works(Box::new(Working { plan, introduced }), tools))
}

fn newcomer<'a>(
    context: &CommandContext,
    taken: &'a Taken,
    plan: &'a Arc<Plan>,
    order: &ImportOrder,
) -> Newcomer<'a> {
    Newcomer {
        name: &taken.name,
        server: &taken.server,
        plan,
        line_limit: config::read(&context.files()).map_or(0, |config| config.line_limit.0),
        beforehand: "pml import --yes",
        yes: order.yes,
    }
}

fn not_started(taken: &Taken, error: &LoadError) -> Trouble {
    let sends_headers = match &taken.server.launch {
        Launch::Remote { headers, .. } => !headers.is_empty(),
        Launch::Command { .. } | Launch::Package { .. } => true,
    };
    if !sends_headers && matches!(error.end_reason(), Some(EndReason::Unauthorized { .. })) {
        let reason = "it wants a sign-in, which its client does and pml cannot do for it".to_owned();
        return Trouble {
            short: reason.clone(),
            whole: reason,
            mended: Mended::ByNothing,
        };
    }
    Trouble {
        short: why(&taken.name, error, error.hint()),
        whole: render_hinted(error),
        mended: Mended::ByPerson,
    }
}

/// Returns the environment as pml has it for a server in its client. What its file of variables says is used for this
/// start and kept nowhere.
fn with_values(environment: &Environment, variables: &[NeededVariable]) -> Environment {
    variables.iter().fold(environment.clone(), |with, variable| {
        let value = match &variable.handover {
            Handover::Value(value) => Some(OsString::from(value)),
            Handover::Reference { variable, .. } => environment.variable(variable).map(OsStr::to_owned),
            Handover::File(path) => values_in_file(path).remove(&variable.name).map(OsString::from),
            Handover::Client(_) | Handover::Environment | Handover::Person => None,
        };
        match value {
            Some(value) => with.with(variable.name.clone(), value),
            None => with,
        }
    })
}
