//! One tool in the survey of servers: its names, what a call of it would do, and what its definition costs.

use serde_json::{Value, json};

use super::super::forecast::ServerStanding;
use super::super::{CommandContext, forecast};
use crate::permissions::{Forecast, ForecastOutcome, Policy, Ruling, Verdict};
use crate::protocol::{ToolName, wire_name};

/// One tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: ToolName,
    pub(super) wire_name: String,
    /// What a call of it would do.
    pub(super) forecast: Forecast,
    /// Whether the list `tools` of its server takes it away.
    pub(super) hidden: bool,
    /// How long its definition is.
    pub(super) bytes: usize,
}

impl Tool {
    pub(super) fn new(name: ToolName, definition: &str, outlook: &Outlook<'_>) -> Self {
        let wire_name = wire_name(&name);
        let not_offered = outlook.policy.not_offered(&name);
        let hidden = not_offered.is_some();
        Self {
            bytes: definition.len() - name.tool().len().min(definition.len()) + wire_name.len(),
            // Also where it is called as the stand-in for unknown tools is, or as a prompt.
            forecast: not_offered.map_or_else(
                || outlook.of(&name),
                |rule| {
                    let verdict = Verdict {
                        ruling: Ruling::Deny,
                        rule: Some(rule),
                    };
                    outlook.standing.forecast(verdict, &name)
                },
            ),
            hidden,
            wire_name,
            name,
        }
    }

    /// Tells whether clients are told of it.
    pub(super) fn is_listed(&self) -> bool {
        self.forecast.happens != ForecastOutcome::Never
    }

    /// Tells whether the client sees another name than `dependency__tool`.
    pub(super) fn changed(&self) -> bool {
        self.wire_name != format!("{}__{}", self.name.dependency(), self.name.tool())
    }

    pub(super) fn json(&self, context: &CommandContext) -> Value {
        json!({
            "tool": self.name,
            "wireName": self.wire_name,
            "decision": forecast::decision(self.forecast.happens),
            "asks": forecast::asks(self.forecast.happens),
            "reason": forecast::reason(context, &self.forecast),
            "outlook": forecast::outlook(&self.forecast, &self.name),
            "hidden": self.hidden,
            "bytes": self.bytes,
        })
    }
}

/// What decides about the calls of one server.
pub(super) struct Outlook<'a> {
    pub(super) policy: &'a Policy,
    pub(super) standing: &'a ServerStanding,
}

impl Outlook<'_> {
    pub(super) fn of(&self, tool: &ToolName) -> Forecast {
        self.standing.forecast(self.policy.check(tool), tool)
    }
}
