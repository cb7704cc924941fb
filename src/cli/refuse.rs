//! `pml refuse CODE`: a suspended call does not run, a question is not answered.

use std::process::ExitCode;

use clap::Args;

use super::desk::{TerminalDesk, Verb};
use super::{CommandContext, output};
use crate::card::Said;
use crate::proxy::now;
use crate::workflow::Workflow;

/// Which call, and why not.
#[derive(Debug, Args)]
pub(crate) struct RefuseArguments {
    /// The five letters of the ask, or the beginning of its id
    ///
    /// Without it, the only one that waits
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// Tell the model why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Refuses, and shows what was refused. An agent may refuse too: a refusal grants nothing.
pub(crate) fn run(context: &CommandContext, arguments: &RefuseArguments) -> anyhow::Result<ExitCode> {
    let inbox = TerminalDesk::open(context)?;
    let workflow = inbox.meant(arguments.code.as_deref(), Verb::Refuse)?;
    record(&inbox, &workflow, arguments.reason.clone())?;
    Ok(ExitCode::SUCCESS)
}

/// Records a refusal, and shows what was refused.
pub(super) fn record(
    inbox: &TerminalDesk,
    workflow: &Workflow,
    reason: Option<String>,
) -> anyhow::Result<()> {
    let command = format!("refuse {}", workflow.code);
    let refused = inbox.record(workflow, Said::refusal(reason), &command)?;
    output::say(&format!("refused:\n{}", refused.workflow.summary(now())));
    Ok(())
}
