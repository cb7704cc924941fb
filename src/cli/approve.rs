//! `pml approve CODE`: lets a suspended call run.
//!
//! The answer is recorded together with the approval of the server and the rule that `--always` asks for. The call itself
//! is run by the pml that suspended it, or by the next one that is called identically.

use std::process::ExitCode;

use clap::Args;

use super::approve_server::{self, ServerApprovalArguments};
use super::desk::{TerminalDesk, Verb};
use super::failure::{Hinted as _, Refused};
use super::{CommandContext, output};
use crate::card::{Decision, Said};
use crate::protocol::approval::ShownDependency;
use crate::protocol::{DependencyName, Shown, nearest};
use crate::proxy::approval::{self, LastingGrant};
use crate::proxy::{Recorded, now};
use crate::workflow::{Answer, Ask, Code, Scope, Workflow, WorkflowError};

/// What its help says besides.
pub(crate) const HELP: &str = "\
Examples:
  pml approve                          the only call that waits
  pml approve abcde                    the server as it is shown, or this one call
  pml approve time                     a declared server: shows what it runs, installs it, learns its tools
  pml approve time --now               and takes it also if its version was published too short a time ago
  pml approve abcde --session          and the same until the pml that asked ends
  pml approve abcde --always           and from now on: the tool goes into the allow list

To see what waits: pml pending
Exit code: 0 approved, 1 too late, unknown, or not for you to say, 2 error.";

/// Which call, and how far the approval reaches.
#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    /// The five letters of the ask, the beginning of its id, or the name of a declared server
    ///
    /// Without it, the only call that waits
    #[arg(value_name = "CODE | SERVER")]
    code: Option<String>,
    #[command(flatten)]
    of_server: ServerApprovalArguments,
    /// Also while the pml that asked runs
    #[arg(long, conflicts_with = "always")]
    session: bool,
    /// Also from now on: the tool goes into the allow list of the project
    #[arg(long)]
    always: bool,
}

/// Approves, and says what was granted.
pub(crate) fn run(context: &CommandContext, arguments: &ApproveArguments) -> anyhow::Result<ExitCode> {
    let inbox = TerminalDesk::open(context)?;
    if let Some(server) = server(context, &inbox, arguments) {
        drop(inbox);
        let declared = context.read()?.servers.remove(&server);
        let with_handed = declared.map(|declared| context.with_handed(&declared));
        let context = with_handed.as_ref().unwrap_or(context);
        return approve_server::run(context, &server, &arguments.of_server);
    }
    let workflow = inbox.meant(arguments.code.as_deref(), Verb::Approve);
    let workflow = workflow.or_else(|error| match (&arguments.code, error.downcast_ref()) {
        (Some(text), Some(WorkflowError::NoMatch { .. })) => neither(context, text),
        _ => Err(error),
    })?;
    let decision = match (arguments.session, arguments.always) {
        (_, true) => Decision::Always,
        (true, false) => Decision::Session,
        (false, false) => Decision::Once,
    };
    arguments.of_server.refused_for(&workflow)?;
    record(context, &inbox, &workflow, decision)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the declared server that a person means; what waits under this very code comes first.
fn server(
    context: &CommandContext,
    inbox: &TerminalDesk,
    arguments: &ApproveArguments,
) -> Option<DependencyName> {
    let text = arguments.code.as_ref()?;
    let waits = |code: &Code| {
        let pending = inbox.pending();
        pending.is_ok_and(|pending| pending.iter().any(|workflow| workflow.code == *code))
    };
    if text.parse().is_ok_and(|code| waits(&code)) {
        return None;
    }
    let name: DependencyName = text.parse().ok()?;
    let config = context.read().ok()?;
    config.servers.contains_key(&name).then_some(name)
}

/// Says that a text names neither a server nor what waits, with the server that was probably meant.
fn neither(context: &CommandContext, text: &str) -> anyhow::Result<Workflow> {
    let config = context.read().ok();
    let names = config
        .iter()
        .flat_map(|config| config.servers.keys().map(DependencyName::as_str));
    let near = nearest(text, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(Refused(format!(
        "no server is called `{}`, and nothing waits under such a code or id{near}",
        Shown::line(text)
    )))
    .hint("to see the servers: pml list\nto see what waits: pml pending")
}

/// Records an approval, and says what it grants.
pub(super) fn record(
    context: &CommandContext,
    inbox: &TerminalDesk,
    workflow: &Workflow,
    decision: Decision,
) -> anyhow::Result<()> {
    let command = format!("approve {}", workflow.code);
    let Recorded {
        workflow: answered,
        rule,
    } = inbox.record(workflow, Said::decision(decision), &command)?;
    output::say(&format!("approved:\n{}", answered.summary(now())));
    if let Some(edited) = rule {
        output::warn(&edited.durability);
        output::say(&format!(
            "`{}` is in the allow list of {}",
            Shown::line(&workflow.call.tool.to_string()),
            context.path(&edited.file)
        ));
    }
    if let Some(answer @ Answer::Approve { scope }) = answered.answer() {
        let kept = approval::lasting_grant(&answered.ask, answer);
        output::say(&granted(&answered, *scope, kept));
    }
    output::say(match &answered.ask {
        Ask::Use { .. } => "the client that waits for it goes on by itself",
        _ => {
            "a call that waits goes on by itself, or when its dialog is closed; otherwise the next identical call runs"
        }
    });
    Ok(())
}

/// Says what the answer grants, no more and no less.
fn granted(workflow: &Workflow, scope: Scope, kept: LastingGrant) -> String {
    let tool = workflow.call.tool.to_string();
    let tool = Shown::line(&tool);
    let server = workflow.ask.dependency().map(|dependency| {
        let version = dependency.version.as_deref();
        let version = version.map_or_else(String::new, |version| format!("@{version}"));
        Shown::line(&format!("{}{version}", dependency.name)).to_string()
    });
    let awaits_contents = workflow
        .ask
        .dependency()
        .is_some_and(ShownDependency::awaits_contents);
    match (kept, scope, server) {
        (_, _, Some(server)) if awaits_contents => {
            format!("you are asked about `{server}` again, with all that is installed with it")
        }
        (LastingGrant::Server, _, Some(server)) => {
            format!("`{server}` may run from now on, exactly as it was shown")
        }
        (LastingGrant::Nothing, _, Some(server)) if matches!(workflow.ask, Ask::Integrity { .. }) => {
            format!("what was shown of `{server}` is accepted, and nothing else of it")
        }
        (LastingGrant::Nothing, Scope::Session, Some(server))
            if !matches!(workflow.ask, Ask::Permit { .. }) =>
        {
            format!("`{server}` may run until the pml that runs the call ends")
        }
        (_, Scope::Session, _) if !workflow.ask.proposed_grants().is_empty() => {
            "what is proposed is not asked about again until the agent ends".to_owned()
        }
        (_, Scope::Session, _) => format!("`{tool}` may run until the pml that runs the call ends"),
        (_, Scope::Always, _) => format!("`{tool}` may run from now on"),
        (_, Scope::Once, _) => format!("one call of `{tool}` may run, with exactly these arguments"),
    }
}
