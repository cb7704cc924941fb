//! `pml refuse CODE`: a suspended call does not run, a question is not answered.

use std::process::ExitCode;

use clap::Args;

use super::desk::TerminalDesk;
use super::{CommandContext, output};
use crate::proxy::now;
use crate::workflow::{Answer, Workflow};

/// Which call, and why not.
#[derive(Debug, Args)]
pub(crate) struct RefuseArguments {
    /// The five letters of the ask, or the beginning of its id
    #[arg(value_name = "CODE")]
    code: String,
    /// Tell the model why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Refuses, and shows what was refused. An agent may refuse too: a refusal grants nothing.
pub(crate) fn run(context: &CommandContext, arguments: &RefuseArguments) -> anyhow::Result<ExitCode> {
    let inbox = TerminalDesk::open(context)?;
    let workflow = inbox.named(&arguments.code)?;
    record(&inbox, &workflow, arguments.reason.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Records a refusal, and shows what was refused.
pub(super) fn record(inbox: &TerminalDesk, workflow: &Workflow, reason: Option<&str>) -> anyhow::Result<()> {
    let reason = reason.map(str::trim);
    let reason = reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
    let command = format!("refuse {}", workflow.code);
    let refused = inbox.answer(workflow, Answer::Refuse { reason }, &command)?;
    output::say(&format!("refused:\n{}", refused.workflow.summary(now())));
    Ok(())
}
