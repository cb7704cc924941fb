//! `pml approve SERVER`: approves a server as it is declared, before anything calls it.
//!
//! The person sees what would run, as by `pml add`; then it is installed and started, so that its tools are known to the
//! very first list. What they agreed to is recorded as the approval of exactly that declaration, version and content.

use std::process::ExitCode;
use std::sync::Arc;

use super::failure::{Hinted as _, Refused};
use super::install_scripts::{self, ScriptsQuestion};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, Haste, authority, install, interruption, output, person, server_display};
use crate::config::{Config, Server};
use crate::loader::{Content, KnownTool, Lease, LoadError, Loader, Plan, Started, Steps};
use crate::protocol::{DependencyName, LaunchApproval, Shown, ToolName};
use crate::proxy::now;
use crate::workflow::{ApprovedLaunch, Place};

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
            .hint(format!("to agree beforehand: pml approve --yes {name}"));
        }
    }
    // Minutes may have passed at the question: the rules and the declaration of now count.
    let (config, now_planned) = install::planned(context, name)?;
    authority::ruled(context, &config, name, &[])?;
    if now_planned.digest() != plan.digest() {
        return Err(Refused(format!("`{name}` was declared anew meanwhile")).into());
    }
    let server = self::server(&config, name)?;
    let expected = Content {
        integrity: resolved.as_ref().and_then(|resolved| resolved.integrity.clone()),
        lock: resolved.as_ref().and_then(|resolved| resolved.lock.clone()),
        scripts: context.accepted_scripts(name, server)?,
        ..Content::default()
    };
    let started = started(context, &config, &plan, agreement, expected, loader).await?;
    record(context, server, &plan, &started, loader)?;
    told(name, &started)?;
    Ok(ExitCode::SUCCESS)
}

fn server<'a>(config: &'a Config, name: &DependencyName) -> anyhow::Result<&'a Server> {
    let server = config.servers.get(name);
    server.ok_or_else(|| Refused(format!("no server is called `{name}`")).into())
}

/// Installs and starts the server; install scripts that are not accepted yet are shown and asked about.
async fn started(
    context: &CommandContext,
    config: &Config,
    plan: &Arc<Plan>,
    agreement: Agreement,
    expected: Content,
    loader: &Loader,
) -> anyhow::Result<Started> {
    let name = plan.dependency();
    let server = server(config, name)?;
    let start = async |expected: &Content| {
        let passing = StepDisplay::new();
        let shown = passing.clone();
        let steps: Steps = Box::new(move |text| shown.step(&text));
        let lease = Lease::Standing;
        let starting = loader.start(plan, server, config.line_limit.0, expected, lease, Some(steps));
        let started = starting.await;
        passing.clear();
        started
    };
    let started = start(&expected).await;
    let scripts = started
        .as_ref()
        .err()
        .and_then(|error| error.unaccepted_scripts().cloned());
    let Some(scripts) = scripts else {
        return started.map_err(|error: Arc<LoadError>| error.into());
    };
    let question = ScriptsQuestion {
        name,
        server,
        beforehand: &format!("pml approve --yes {name}"),
        yes: agreement == Agreement::Given,
    };
    let Some(agreed) = install_scripts::agreed(context, question, &scripts).await? else {
        return Err(Refused(format!("`{name}` was not approved")).into());
    };
    let expected = Content {
        scripts: Some(agreed.digest.clone()),
        ..expected
    };
    context.accept_scripts(name, server, agreed)?;
    Ok(start(&expected).await?)
}

/// Records the approval, and what the server is, for the user.
fn record(
    context: &CommandContext,
    server: &Server,
    plan: &Plan,
    started: &Started,
    loader: &Loader,
) -> anyhow::Result<()> {
    let resolved = started.resolved.as_deref();
    let approval = LaunchApproval {
        dependency: plan.dependency().clone(),
        version: resolved.map(|resolved| resolved.version.clone()),
        integrity: resolved.and_then(|resolved| resolved.integrity.clone()),
        package: plan.package().map(ToString::to_string),
        lock: resolved.and_then(|resolved| resolved.lock.clone()),
        at_unix_ms: u64::try_from(now().millis()).unwrap_or_default(),
    };
    let approved = ApprovedLaunch {
        launch: plan.digest().clone(),
        approval,
    };
    Place::of(&context.locations).open()?.approve_launch(&approved)?;
    context.accept(server, plan, loader.packages().pin(plan), &started.known())?;
    Ok(())
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
