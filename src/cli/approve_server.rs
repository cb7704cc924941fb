//! `pml approve SERVER`: approves a server as it is declared, before anything calls it.
//!
//! The person sees what would run, as by `pml add`, and what differs from what they accepted before; then it is installed
//! and started, so that its tools are known to the very first list. What they agreed to is recorded as the approval of
//! exactly that declaration, version and content.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::candidate::too_young_for;
use super::failure::{Hinted as _, Refused};
use super::introduction::{Newcomer, NotIntroduced};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, Haste, authority, install, interruption, output, person, server_display};
use crate::config::{Config, Server};
use crate::loader::{KnownTool, Loader, Plan, Started};
use crate::protocol::{DependencyName, Shown, ToolName};
use crate::proxy::now;
use crate::workflow::Workflow;

/// How a declared server is approved.
#[derive(Debug, Args)]
pub(super) struct ServerApprovalArguments {
    /// Of a server: do not ask
    #[arg(short, long)]
    yes: bool,
    /// Of a server: take it also if it was published too short a time ago ("minReleaseAgeDays")
    #[arg(long, conflicts_with_all = ["session", "always"])]
    now: bool,
    /// Of a server: print what was approved as JSON
    #[arg(long, conflicts_with_all = ["session", "always"])]
    json: bool,
}

impl ServerApprovalArguments {
    fn haste(&self) -> Haste {
        Haste::of(self.now)
    }

    fn agreement(&self) -> Agreement {
        if self.yes {
            Agreement::Given
        } else {
            Agreement::Asked
        }
    }

    fn report(&self) -> Report {
        if self.json { Report::Json } else { Report::Lines }
    }

    /// Refuses what only a server can be approved with, where a suspended call is meant.
    pub(super) fn refused_for(&self, workflow: &Workflow) -> anyhow::Result<()> {
        let given = [("--now", self.now), ("--json", self.json)];
        match given.iter().find(|(_, given)| *given) {
            Some((word, _)) => Err(Refused(format!(
                "`{word}` is about a declared server, and `{}` is a call that waits",
                workflow.code
            )))
            .hint(format!("to approve the call: pml approve {}", workflow.code)),
            None => Ok(()),
        }
    }
}

/// How it is told what was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    Lines,
    Json,
}

/// Shows what a server runs, and approves it if the person agrees.
pub(super) fn run(
    context: &CommandContext,
    name: &DependencyName,
    arguments: &ServerApprovalArguments,
) -> anyhow::Result<ExitCode> {
    person::required(context, &format!("approve {name}"))?;
    person::required_for_haste(context, "approve", arguments.haste())?;
    let approved = interruption::with_loader(context, arguments.haste(), async |loader| {
        approve(context, name, arguments, loader).await
    })?;
    approved.unwrap_or_else(|| {
        output::say("\ninterrupted; nothing was approved");
        Ok(ExitCode::from(1))
    })
}

/// Whether the person agreed beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    Given,
    Asked,
}

async fn approve(
    context: &CommandContext,
    name: &DependencyName,
    arguments: &ServerApprovalArguments,
    loader: &Loader,
) -> anyhow::Result<ExitCode> {
    let agreement = arguments.agreement();
    let (config, plan) = install::planned(context, name)?;
    let plan = Arc::new(plan);
    let server = server(&config, name)?;
    authority::ruled(context, &config, name, &[])?;
    if config.is_from_outside(server) && server.takes_from_the_user() {
        return Err(Refused(format!(
            "`{name}` is declared by a file that you have not accepted, and wants your variables or that scripts run"
        )))
        .hint("to see what the file wants, and accept it: pml trust");
    }
    let resolved = match plan.package() {
        Some(package) => {
            let passing = StepDisplay::new();
            passing.step(&format!("asking the registry for `{}`", package.spec()));
            let resolved = loader.packages().resolve(&plan).await;
            passing.clear();
            Some(resolved.map_err(|source| too_young_for(name, format!("approve --now {name}"), source))?)
        }
        None => None,
    };
    server_display::show(&plan.shown(resolved.as_ref(), now().millis()));
    let now_word = if arguments.now { " --now" } else { "" };
    let command = format!("pml approve --yes{now_word} {name}");
    let newcomer = Newcomer {
        name,
        server,
        plan: &plan,
        line_limit: config.line_limit.0,
        beforehand: &command,
        yes: agreement == Agreement::Given,
    };
    let before = context.compared(server, &plan)?;
    let found = newcomer.find(loader, before.as_ref(), resolved.as_ref()).await?;
    let shown = newcomer.show(context, before, found)?;
    let reply = match agreement {
        Agreement::Given => TerminalReply::Yes,
        Agreement::Asked => terminal::confirm(&format!("Approve `{name}`?")).await?,
    };
    match reply {
        TerminalReply::Yes => {}
        TerminalReply::No => {
            output::say("nothing was approved");
            return Ok(ExitCode::from(1));
        }
        TerminalReply::Nobody => {
            return Err(Refused(format!(
                "`{name}` was not approved: there is no terminal to ask in"
            )))
            .hint(format!("to agree beforehand: {command}"));
        }
    }
    declared_still(context, &plan)?;
    let introduced = newcomer.start(context, loader, shown).await;
    let introduced = introduced.map_err(|error| match error {
        NotIntroduced::Start(source) => source.into(),
        NotIntroduced::Declined => Refused(format!("`{name}` was not approved")).into(),
        NotIntroduced::Other(error) => error,
    })?;
    declared_still(context, &plan)?;
    let started = introduced.started.clone();
    newcomer.record(context, loader, introduced)?;
    match arguments.report() {
        Report::Lines => told(name, &started)?,
        Report::Json => output::json(&approved_json(name, &started))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what was declared anew, or denied, while the person was asked: minutes may have passed.
fn declared_still(context: &CommandContext, plan: &Plan) -> anyhow::Result<()> {
    let name = plan.dependency();
    let (config, now) = install::planned(context, name)?;
    authority::ruled(context, &config, name, &[])?;
    if now.digest() == plan.digest() {
        Ok(())
    } else {
        Err(Refused(format!("`{name}` was declared anew meanwhile")).into())
    }
}

fn server<'a>(config: &'a Config, name: &DependencyName) -> anyhow::Result<&'a Server> {
    let server = config.servers.get(name);
    server.ok_or_else(|| Refused(format!("no server is called `{name}`")).into())
}

/// Tells what was approved: the tools as data, the rest beside it.
fn told(name: &DependencyName, started: &Started) -> anyhow::Result<()> {
    let known = started.known();
    let version = started
        .resolved
        .as_deref()
        .map(|resolved| resolved.version.as_str());
    let version = version.map_or_else(String::new, |version| format!(" at {}", Shown::line(version)));
    output::say(&format!(
        "`{name}` is approved{version} and has {} tools:",
        known.tools.len()
    ));
    let tools = known.tools.iter().map(KnownTool::name);
    let lines: Vec<String> = tools
        .map(|tool| Shown::line(&ToolName::new(name.clone(), tool).to_string()).to_string())
        .collect();
    output::data(&lines.join("\n"))?;
    for note in started.take_notes() {
        output::note(&note);
    }
    Ok(())
}

/// Returns what was approved as scripts see it.
fn approved_json(name: &DependencyName, started: &Started) -> Value {
    let resolved = started.resolved.as_deref();
    let known = started.known();
    json!({
        "name": name,
        "version": resolved.map(|resolved| resolved.version.as_str()),
        "integrity": resolved.and_then(|resolved| resolved.integrity.as_deref()),
        "tools": known.tools.iter().map(|tool| ToolName::new(name.clone(), tool.name())).collect::<Vec<_>>(),
        "notes": started.take_notes(),
    })
}
