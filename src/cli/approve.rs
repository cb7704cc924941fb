//! `pml approve CODE`: lets a suspended call run.
//!
//! Only the answer is recorded here. The pml that suspended the call, or the next one that continues it, runs it and
//! writes the rule that `--always` asks for.

use std::process::ExitCode;

use clap::Args;

use super::{Ground, inbox, output, person};
use crate::proxy::now;
use crate::workflow::{Answer, Scope};

/// Which call, and how far the approval reaches.
#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    /// The five letters of the ask, or the beginning of its id
    #[arg(value_name = "CODE")]
    code: String,
    /// Also while the pml that asked runs
    #[arg(long, conflicts_with = "always")]
    session: bool,
    /// Also from now on: the tool goes into the allow list of the project
    #[arg(long)]
    always: bool,
}

/// Approves, and shows what was approved.
pub(crate) fn run(ground: &Ground, arguments: &ApproveArguments) -> anyhow::Result<ExitCode> {
    let mut store = inbox::open(ground)?;
    let workflow = store.find_by_code_or_prefix(&arguments.code)?;
    person::required_for(ground, &workflow, &format!("approve {}", workflow.code))?;
    let (scope, reach) = match (arguments.session, arguments.always) {
        (_, true) => (Scope::Always, "from now on"),
        (true, false) => (Scope::Session, "for the session"),
        (false, false) => (Scope::Once, "once"),
    };
    let approved = inbox::answer(&mut store, &workflow, Answer::Approve { scope })?;
    output::say(&format!("approved {reach}:\n{}", approved.told(now())));
    Ok(ExitCode::SUCCESS)
}
