//! The variables that clients hand to pml, for the commands of a terminal, which no client starts.

use std::collections::BTreeSet;

use super::{CommandContext, output};
use crate::clients::HandedVariables;
use crate::config::{Environment, Server, variables};
use crate::protocol::Shown;

impl CommandContext {
    /// Reads which variables clients hand to pml.
    pub(super) fn handed(&self) -> HandedVariables {
        let files = self.files().at_root(&self.environment);
        let project = files
            .project
            .parent()
            .unwrap_or(self.environment.working_directory());
        HandedVariables::read(&self.environment, project)
    }

    /// Returns the environment to plan servers in: what only a client sets is set, so that it starts none.
    pub(super) fn planning_environment(&self) -> Environment {
        self.handed().planning(&self.environment)
    }

    /// Returns the same context with what a server gets from the user's own clients, and says so.
    pub(super) fn with_handed(&self, server: &Server) -> Self {
        self.with_named(unset(&self.environment, server))
    }

    /// Returns the same context to install the package of a server in, and not to start it: what only a client knows
    /// counts as set, unless the line of the server, and so the package, may be made of it.
    pub(super) fn to_install(&self, server: &Server) -> Self {
        let words = server.launch.words();
        let line: BTreeSet<String> = words.iter().flat_map(|word| variables(word)).collect();
        let (in_line, others): (Vec<_>, Vec<_>) =
            unset(&self.environment, server).partition(|name| line.contains(name));
        let mut context = self.with_named(in_line.into_iter());
        context.environment = self.handed().planning_with(&context.environment, &others);
        context
    }

    fn with_named(&self, names: impl Iterator<Item = String>) -> Self {
        let handed = self.handed();
        let mut environment = self.environment.clone();
        for name in names {
            if let Some((value, by)) = handed.value(&name) {
                output::note(&format!(
                    "`{}` is taken from {}'s entry of pml ({})",
                    Shown::line(&name),
                    by.client,
                    self.path(&by.file)
                ));
                environment = environment.with(name, value);
            } else if !handed.by(&name).is_empty() {
                output::note(&format!(
                    "{}, and only there: to use it here, set `{1}` in this terminal",
                    from_clients(self, &handed, &name),
                    Shown::line(&name)
                ));
            }
        }
        Self {
            environment,
            locations: self.locations.clone(),
            config: self.config.clone(),
        }
    }
}

/// Says which variables of a server come from clients, a line each.
pub(super) fn notes(context: &CommandContext, handed: &HandedVariables, server: &Server) -> Vec<String> {
    let unset = unset(&context.environment, server);
    let handed_over = unset.filter(|name| !handed.by(name).is_empty());
    handed_over
        .map(|name| from_clients(context, handed, &name))
        .collect()
}

fn unset(environment: &Environment, server: &Server) -> impl Iterator<Item = String> {
    let names = server.variables().into_iter();
    names.filter(|name| environment.variable(name).is_none())
}

fn from_clients(context: &CommandContext, handed: &HandedVariables, name: &str) -> String {
    let by: Vec<String> = handed
        .by(name)
        .iter()
        .map(|by| format!("{}'s entry of pml ({})", by.client, context.path(&by.file)))
        .collect();
    format!("gets `{}` from {}", Shown::line(name), by.join(" and from "))
}
