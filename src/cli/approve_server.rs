//! `pml approve SERVER`: approves a server as it is declared, before anything calls it.
//!
//! The person sees what would run, as by `pml add`, and what differs from what they accepted before; then it is installed
//! and started, so that its tools are known to the very first list. What they agreed to is recorded as the approval of
//! exactly that declaration, version and content.

use std::process::ExitCode;
use std::sync::Arc;

use super::failure::{Hinted as _, Refused};
use super::introduction::{Newcomer, NotIntroduced};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, Haste, authority, install, interruption, output, person, server_display};
use crate::config::{Config, Server};
use crate::loader::{KnownTool, Loader, Plan, Started};
use crate::protocol::{DependencyName, Shown, ToolName};
use crate::proxy::now;

/// Shows what a server runs, and approves it if the person agrees.
pub(super) fn run(context: &CommandContext, name: &DependencyName, yes: bool) -> anyhow::Result<ExitCode> {
    person::required(context, &format!("approve {name}"))?;
    let agreement = if yes { Agreement::Given } else { Agreement::Asked };
    let approved = interruption::with_loader(context, Haste::None, async |loader| {
        approve(context, name, agreement, loader).await
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
    agreement: Agreement,
    loader: &Loader,
) -> anyhow::Result<ExitCode> {
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
            Some(resolved?)
        }
        None => None,
    };
    server_display::show(&plan.shown(resolved.as_ref(), now().millis()));
    let command = format!("pml approve --yes {name}");
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
    told(name, &started)?;
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
