//! `pml channels test NAME`: a question through the running `pml serve`, and what came back.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;

use super::super::desk::TerminalDesk;
use super::super::failure::{Hinted as _, Refused};
use super::super::{CommandContext, output};
use super::settings;
use crate::config::ChannelName;
use crate::protocol::question::{Choice, Question, Selection};
use crate::proxy::{
    AskingProgram, ChannelStanding, ChannelState, Delivery, DeliveryState, State, Workflow, process_name,
};
use crate::workflow::{Asker, AskingClient};

/// How often it is looked what came.
const LOOK: Duration = Duration::from_millis(100);

/// How long a message may take to get there.
const SENDING: Duration = Duration::from_secs(30);

/// Which channel, and how long to wait.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The channel
    #[arg(value_name = "NAME")]
    channel: ChannelName,
    /// How many seconds to wait for the answer
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
}

/// Puts the question and waits.
pub(super) fn run(context: &CommandContext, arguments: &TestArguments) -> anyhow::Result<ExitCode> {
    let channel = arguments.channel;
    let settings = settings(context)?;
    let Some(basics) = settings.basics(channel) else {
        return Err(Refused(format!("`{channel}` is not configured"))).hint("docs/CHANNELS.md says how");
    };
    if basics.people.is_empty() {
        let refused = Refused(format!("nobody is paired with `{channel}`"));
        return Err(refused).hint("write to the bot, then run: pml channels pair CODE");
    }
    let inbox = TerminalDesk::open(context)?;
    match inbox.wait_for(inbox.desk().channel_standing(channel))? {
        ChannelStanding::NoServer => {
            let refused = Refused(format!("`{channel}` is not connected: `pml serve` does not run"));
            return Err(refused).hint("in another terminal: pml serve");
        }
        ChannelStanding::Unopened => {
            let refused = Refused(format!(
                "`{channel}` is not connected: `pml serve` has not opened it yet"
            ));
            return Err(refused).hint("to see how it stands: pml channels");
        }
        ChannelStanding::Reported(report) if report.state == ChannelState::Failed => {
            let reason = report.error.as_deref().unwrap_or("it says not why");
            return Err(Refused(format!("`{channel}` is not connected: {reason}")).into());
        }
        ChannelStanding::Reported(_) => {}
    }
    let patience = Duration::from_secs(arguments.wait);
    let file = context.files().project;
    let program = AskingProgram {
        asker: Asker::random(),
        project: context.environment.working_directory().to_owned(),
        config: file,
        client: AskingClient {
            name: Some("pml channels test".to_owned()),
            process: process_name(std::process::id()),
            ..AskingClient::default()
        },
    };
    let asked = inbox
        .desk()
        .ask_on(channel, program, question(), patience + SENDING);
    let asked = inbox.wait_for(asked)?;
    let came = inbox.wait_for(wait(&inbox, &asked, patience));
    if came.as_ref().is_ok_and(|code| *code == ExitCode::SUCCESS) {
        let _ = inbox.wait_for(inbox.desk().question_status(asked.id));
    } else {
        let _ = inbox.wait_for(inbox.desk().withdraw(asked.id));
    }
    came
}

fn question() -> Question {
    let option = |label: &str| Choice {
        label: label.to_owned(),
        description: None,
    };
    Question {
        question: "This is a test of pml. Does it reach you?".to_owned(),
        header: Some("Test".to_owned()),
        options: vec![option("Yes"), option("No")],
        selection: Selection::One,
    }
}

async fn wait(inbox: &TerminalDesk, asked: &Workflow, patience: Duration) -> anyhow::Result<ExitCode> {
    let (began, mut told) = (Instant::now(), false);
    loop {
        let workflow = inbox.desk().find(asked.id).await?;
        if workflow.state != State::Pending {
            let card = inbox.desk().card(&workflow);
            let Some(answered) = card.answered else {
                return Err(Refused("the question was withdrawn".to_owned()).into());
            };
            let who = answered.who.unwrap_or_default();
            output::data(&format!(
                "answered: {} (by {}:{who})",
                answered.text, answered.road
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        let sent = inbox.desk().deliveries_of(asked.id).await?;
        let reason = sent.iter().find_map(|sent| sent.error.clone());
        if !sent.is_empty() && sent.iter().all(|sent| sent.state == DeliveryState::Failed) {
            let reason = reason.unwrap_or_default();
            return Err(Refused(format!("it was not sent: {reason}")).into());
        }
        let arrived = |sent: &&Delivery| sent.state == DeliveryState::Sent;
        if !told && let Some(sent) = sent.iter().find(arrived) {
            told = true;
            output::say(&format!("sent to {}; answer it there", sent.key.person));
        }
        if !told && began.elapsed() >= SENDING {
            let reason = reason.unwrap_or_else(|| "nothing came of it".to_owned());
            return Err(Refused(format!("it was not sent in time: {reason}")).into());
        }
        if began.elapsed() >= patience {
            return Err(Refused("no answer came in time".to_owned()).into());
        }
        tokio::time::sleep(LOOK).await;
    }
}
