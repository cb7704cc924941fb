//! `pml channels`: how the chat channels stand, who is paired with them, and a question that tries one out.

mod trial;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::desk::TerminalDesk;
use super::failure::{Hinted as _, Refused};
use super::{CommandContext, output, person};
use crate::channels::{self, pairing_codes};
use crate::config::{self, ChannelName, ChannelSettings, Files};
use crate::permissions::ConfigChange;
use crate::permissions::writer::FileKind;
use crate::proxy::{ChannelReport, Delivery, DeliveryState, Runner, now};

/// What to do with the channels.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ChannelsArguments {
    /// Print how they stand as JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<ChannelsCommand>,
}

#[derive(Debug, Subcommand)]
enum ChannelsCommand {
    /// Put a test question to the people of a channel, and wait for the answer
    Test(trial::TestArguments),
    /// Let in the one who was told this code by a channel
    Pair(PairArguments),
    /// Take a person out of a channel
    Unpair(UnpairArguments),
    /// What Slack needs to be set up
    #[command(subcommand)]
    Slack(SlackCommand),
}

#[derive(Debug, Subcommand)]
enum SlackCommand {
    /// Print the manifest from which Slack makes the app
    Manifest,
}

/// Who is let in.
#[derive(Debug, Args)]
struct PairArguments {
    /// The five letters that the channel told them
    #[arg(value_name = "CODE")]
    code: String,
}

/// Who is taken out.
#[derive(Debug, Args)]
struct UnpairArguments {
    /// The channel
    #[arg(value_name = "NAME")]
    channel: ChannelName,
    /// The id of the person, as `pml channels` shows it
    #[arg(value_name = "ID")]
    id: String,
}

/// Runs the command.
pub(crate) fn run(context: &CommandContext, arguments: &ChannelsArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => list(context, arguments),
        Some(ChannelsCommand::Test(arguments)) => trial::run(context, arguments),
        Some(ChannelsCommand::Pair(arguments)) => pair(context, arguments),
        Some(ChannelsCommand::Unpair(arguments)) => unpair(context, arguments),
        Some(ChannelsCommand::Slack(SlackCommand::Manifest)) => {
            output::json(&channels::slack_manifest())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads the channels of the user's file; a project's has none.
fn settings(context: &CommandContext) -> anyhow::Result<ChannelSettings> {
    let files = Files::new(context.locations.user_config(), &context.locations);
    Ok(config::read(&files)?.channels)
}

/// Refuses an agent: whom a person hears in a chat no model decides.
fn required(context: &CommandContext, command: &str) -> Result<(), person::NotAPerson> {
    match Runner::of(&context.environment, person::terminal()) {
        Runner::Person => Ok(()),
        Runner::Agent => Err(person::NotAPerson::trusting(command)),
    }
}

fn pair(context: &CommandContext, arguments: &PairArguments) -> anyhow::Result<ExitCode> {
    required(context, "channels pair")?;
    let state = context.locations.state();
    let Some(stranger) = pairing_codes::find(state, &arguments.code, now()) else {
        let refused = Refused("nobody waits under this code".to_owned());
        return Err(refused).hint("a code counts for an hour: write to the bot again, it tells a new one");
    };
    let channel = stranger.channel;
    let change = ConfigChange::AddPerson {
        channel,
        id: stranger.id.clone(),
    };
    let edited = context.edit(&context.locations.user_config(), FileKind::User, &[change])?;
    output::warn(&edited.durability);
    pairing_codes::forget(state, &stranger.code, now())?;
    let shown = context.path(&edited.file);
    output::say(&format!("paired with {channel}: {} (in {shown})", stranger.id));
    Ok(ExitCode::SUCCESS)
}

fn unpair(context: &CommandContext, arguments: &UnpairArguments) -> anyhow::Result<ExitCode> {
    required(context, "channels unpair")?;
    let channel = arguments.channel;
    let known = settings(context)?;
    let paired = known
        .basics(channel)
        .is_some_and(|basics| basics.people.contains(&arguments.id));
    if !paired {
        let refused = Refused(format!("this id is not paired with `{channel}`"));
        return Err(refused).hint("to see who is: pml channels");
    }
    let change = ConfigChange::RemovePerson {
        channel,
        id: arguments.id.clone(),
    };
    let edited = context.edit(&context.locations.user_config(), FileKind::User, &[change])?;
    output::warn(&edited.durability);
    output::say(&format!("no longer paired with {channel}: {}", arguments.id));
    Ok(ExitCode::SUCCESS)
}

/// How one channel stands.
struct Standing<'a> {
    channel: ChannelName,
    people: &'a [String],
    report: Option<&'a ChannelReport>,
    deliveries: Vec<&'a Delivery>,
}

impl Standing<'_> {
    fn state(&self) -> &'static str {
        match self.report {
            Some(report) => report.state.word(),
            None => "not running",
        }
    }

    fn count(&self, states: &[DeliveryState]) -> usize {
        let counted = self
            .deliveries
            .iter()
            .filter(|delivery| states.contains(&delivery.state));
        counted.count()
    }

    /// Returns what went wrong last: with the connection, else with a message.
    fn error(&self) -> Option<&str> {
        let of_connection = self.report.and_then(|report| report.error.as_deref());
        let mut of_message = self
            .deliveries
            .iter()
            .filter_map(|delivery| delivery.error.as_deref());
        of_connection.or_else(|| of_message.next_back())
    }

    fn lines(&self) -> String {
        let people = if self.people.is_empty() {
            "nobody".to_owned()
        } else {
            self.people.join(", ")
        };
        let mut lines = format!("{:<9} {:<12} {people}", self.channel.key(), self.state());
        let waiting = self.count(&[DeliveryState::Queued, DeliveryState::Sending]);
        let (sent, failed) = (
            self.count(&[DeliveryState::Sent]),
            self.count(&[DeliveryState::Failed]),
        );
        if waiting + sent + failed > 0 {
            let _ = write!(
                lines,
                "\n          {sent} open, {waiting} to be sent, {failed} failed"
            );
        }
        if let Some(error) = self.error() {
            let _ = write!(lines, "\n          {error}");
        }
        lines
    }

    fn json(&self) -> Value {
        json!({
            "name": self.channel.key(),
            "state": self.report.map(|report| report.state.word()),
            "error": self.error(),
            "people": self.people,
            "open": self.count(&[DeliveryState::Sent]),
            "queued": self.count(&[DeliveryState::Queued, DeliveryState::Sending]),
            "failed": self.count(&[DeliveryState::Failed]),
        })
    }
}

fn list(context: &CommandContext, arguments: &ChannelsArguments) -> anyhow::Result<ExitCode> {
    let settings = settings(context)?;
    let inbox = TerminalDesk::open(context)?;
    let reports = inbox.wait_for(inbox.desk().channel_reports())?;
    let deliveries = inbox.wait_for(inbox.desk().open_deliveries())?;
    let standings: Vec<Standing<'_>> = settings
        .configured()
        .map(|channel| Standing {
            channel,
            people: settings.basics(channel).map_or(&[], |basics| &basics.people),
            report: reports.iter().find(|report| report.channel == channel),
            deliveries: deliveries
                .iter()
                .filter(|delivery| delivery.key.channel == channel)
                .collect(),
        })
        .collect();
    if arguments.json {
        let channels: Vec<Value> = standings.iter().map(Standing::json).collect();
        output::json(&json!({ "channels": channels }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if standings.is_empty() {
        output::say("no channel is configured; docs/CHANNELS.md says how one is set up");
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<String> = standings.iter().map(Standing::lines).collect();
    output::data(&lines.join("\n"))?;
    if standings.iter().all(|standing| standing.report.is_none()) {
        output::note("channels are connected while `pml serve` runs");
    }
    Ok(ExitCode::SUCCESS)
}
