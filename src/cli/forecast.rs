//! What calls of a server will do, for `pml check` and `pml list`, and the words for it.

use serde_json::{Value, json};

use super::CommandContext;
use crate::config::{self, Config, Environment, RuleList, Server};
use crate::loader::{Loader, Plan, ServerVariables};
use crate::permissions::{CONNECT, Forecast, ForecastOutcome, ForecastReason, Obstacle, Standing, Verdict};
use crate::protocol::approval::ChangedPart;
use crate::protocol::{DependencyName, LaunchApproval, Pattern, Shown, ToolName, shell};
use crate::proxy::{ServerDifference, ServerPins};
use crate::report::render_hinted;
use crate::workflow::{Approvals, Timestamp};

/// What is known of a server beside the rules, for the forecasts of its tools.
#[derive(Debug, Default)]
pub(super) struct ServerStanding {
    /// The approval that covers it as it is declared and installed.
    pub(super) approval: Option<LaunchApproval>,
    difference: ServerDifference,
    obstacle: Option<Obstacle>,
}

/// What the standings of servers are read from.
pub(super) struct Standings<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) config: &'a Config,
    pub(super) loader: &'a Loader,
    /// The environment that the servers were planned in.
    pub(super) environment: &'a Environment,
    pub(super) approvals: Option<&'a Approvals>,
}

impl Standings<'_> {
    /// Reads what is known of a server; starts and resolves nothing. What cannot be read is told in words.
    pub(super) fn read(&self, server: &Server, plan: &Plan) -> (ServerStanding, Vec<String>) {
        let mut problems = Vec::new();
        let approvals = self.approvals;
        let approval = approvals.and_then(|approvals| approval(approvals, plan, self.loader).cloned());
        let mut standing = ServerStanding {
            approval,
            ..ServerStanding::default()
        };
        let pins = ServerPins::new(&self.context.locations);
        match pins.difference(self.config, server, plan, self.loader, self.environment) {
            Ok(difference) => standing.difference = self.less_what_was_agreed_to(difference, server),
            Err(error) => {
                problems.push(render_hinted(&error));
                standing.obstacle = Some(Obstacle::UnreadableAcceptance);
            }
        }
        // It is told by the call that starts the server, too.
        let variables = ServerVariables::read(plan);
        problems.extend(variables.err().map(|error| render_hinted(&error)));
        match self.loader.packages().find_malicious(plan) {
            Ok(None) => {}
            Ok(Some(found)) => {
                standing.obstacle = Some(Obstacle::Malicious {
                    package: format!("{}@{}", found.package.name, found.package.version),
                    advisory: found.advisory,
                });
            }
            Err(error) => {
                problems.push(render_hinted(&error));
                standing.obstacle = Some(Obstacle::UnreadableVerdicts);
            }
        }
        if server.disabled {
            standing.obstacle = Some(Obstacle::Disabled);
        }
        (standing, problems)
    }

    /// Takes another launch out of what differs where the person who accepted its file was shown it there.
    fn less_what_was_agreed_to(&self, mut difference: ServerDifference, server: &Server) -> ServerDifference {
        let marks = &self.context.files().accepted;
        if difference.parts.contains(&ChangedPart::Launch)
            && config::is_accepted_by_a_person(marks, &server.source.file)
        {
            difference.parts.retain(|part| *part != ChangedPart::Launch);
        }
        difference
    }
}

impl ServerStanding {
    /// Tells what a call of a tool will do.
    pub(super) fn forecast(&self, verdict: Verdict, tool: &ToolName) -> Forecast {
        if let Some(obstacle) = &self.obstacle {
            return Forecast::hindered(verdict, obstacle.clone());
        }
        let mut changed = self.difference.parts.clone();
        if self.difference.tools.contains(tool.tool()) {
            changed.push(ChangedPart::Tools);
        }
        let standing = Standing {
            approval: self.approval.as_ref(),
            changed: &changed,
        };
        Forecast::new(verdict, standing)
    }
}

/// Returns the approval that covers a server as it is declared and installed now.
pub(super) fn approval<'a>(
    approvals: &'a Approvals,
    plan: &Plan,
    loader: &Loader,
) -> Option<&'a LaunchApproval> {
    let resolved = loader.resolved(plan);
    let (integrity, lock) = resolved.map_or((None, None), |resolved| (resolved.integrity, resolved.lock));
    let approval = approvals.find(plan.digest())?;
    approval
        .covers(integrity.as_deref(), lock.as_ref())
        .then_some(approval)
}

/// Names what happens as the lists of rules do.
pub(super) fn decision(happens: ForecastOutcome) -> &'static str {
    match happens {
        ForecastOutcome::Runs => "allow",
        ForecastOutcome::AsksFirst | ForecastOutcome::AsksEvery | ForecastOutcome::AsksAboutChange => "ask",
        ForecastOutcome::Never => "deny",
    }
}

/// Tells how often a call asks; `None` if it does not.
pub(super) fn asks(happens: ForecastOutcome) -> Option<&'static str> {
    match happens {
        ForecastOutcome::AsksFirst => Some("first"),
        ForecastOutcome::AsksEvery => Some("every"),
        ForecastOutcome::AsksAboutChange => Some("change"),
        ForecastOutcome::Runs | ForecastOutcome::Never => None,
    }
}

/// Says in a few words what decides.
pub(super) fn reason(context: &CommandContext, forecast: &Forecast) -> String {
    match (&forecast.because, &forecast.rule) {
        (ForecastReason::Approved(record), _) => approved(record),
        (ForecastReason::Changed(part), _) => match part {
            ChangedPart::Launch => "its server is declared otherwise than you accepted it",
            ChangedPart::Package => "the package of its server is not what you accepted",
            ChangedPart::Tools => "it is not defined as you accepted it",
            ChangedPart::Scripts => "its server has install scripts that you have not accepted",
        }
        .to_owned(),
        (ForecastReason::Obstacle(obstacle), _) => match obstacle {
            Obstacle::Disabled => "its server is disabled".to_owned(),
            Obstacle::UnreadableAcceptance => "what you accepted of its server cannot be read".to_owned(),
            Obstacle::UnreadableVerdicts => "which packages are malicious cannot be read".to_owned(),
            Obstacle::Malicious { package, advisory } => format!(
                "`{}` of its server is malicious ({})",
                Shown::line(package),
                Shown::line(advisory)
            ),
        },
        (ForecastReason::Rules, Some(rule)) if rule.list == RuleList::Tools => format!(
            "it is not offered: `tools` of its server ({})",
            context.place(rule.source.as_ref())
        ),
        (ForecastReason::Rules, Some(rule)) => format!(
            "rule `{}` in the {} list ({})",
            rule.pattern,
            rule.list.key(),
            context.place(rule.source.as_ref())
        ),
        (ForecastReason::Rules, None) => "no rule covers it".to_owned(),
    }
}

/// Says in one line what a call will do, and how to have it otherwise.
pub(super) fn outlook(forecast: &Forecast, tool: &ToolName) -> String {
    match (forecast.happens, &forecast.because) {
        (ForecastOutcome::Runs, ForecastReason::Approved(record)) => {
            let version = record.version.as_deref();
            let version = version.map_or_else(String::new, |version| format!(" at {}", Shown::line(version)));
            format!(
                "runs: approved{version}; to be asked each time: {}",
                ask_each_time(tool)
            )
        }
        (ForecastOutcome::Runs, _) => "runs: allowed by a rule".to_owned(),
        (ForecastOutcome::AsksFirst, _) => {
            format!(
                "asks before the first use; to approve it now: pml approve {}",
                tool.dependency()
            )
        }
        (ForecastOutcome::AsksEvery, _) => "asks before every call".to_owned(),
        (ForecastOutcome::AsksAboutChange, _) => {
            format!("asks about what changed; {}", ways_to_accept(tool.dependency()))
        }
        (ForecastOutcome::Never, _) => "never runs".to_owned(),
    }
}

/// Names the commands that show and accept what differs of a server.
pub(super) fn ways_to_accept(name: &DependencyName) -> String {
    format!("to see it: pml diff {name}; to accept it: pml approve {name}")
}

/// Returns the command after which a tool asks before every call; the stand-in for unknown tools means all.
pub(super) fn ask_each_time(tool: &ToolName) -> String {
    let pattern = if tool.tool() == CONNECT {
        format!("{}:*", tool.dependency())
    } else {
        Pattern::exact_text(tool)
    };
    format!("pml ask {}", shell::operand(&pattern))
}

fn approved(record: &LaunchApproval) -> String {
    let at = Timestamp::from_millis(i64::try_from(record.at_unix_ms).unwrap_or(i64::MAX));
    let version = record.version.as_deref();
    let version = version.map_or_else(String::new, |version| {
        format!(", at version {}", Shown::line(version))
    });
    format!("its server was approved on {at}{version}")
}

/// Returns an approval as scripts see it.
pub(super) fn approval_json(record: &LaunchApproval) -> Value {
    json!({
        "approvedAt": record.at_unix_ms,
        "version": record.version,
        "integrity": record.integrity,
    })
}
