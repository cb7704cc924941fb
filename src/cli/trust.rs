//! `pml trust` and `pml untrust`: whether the project's file, and what the project brings for an agent, count as the user's word.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::failure::{Hinted as _, Refused};
use super::terminal::{self, TerminalReply};
use super::{CommandContext, output, person};
use crate::config::{AcceptedFile, TrustMarks, UnacceptedFile};
use crate::host::{AGENT_FOLDER, FoundSettings, ProjectSettings};
use crate::permissions::trust;
use crate::protocol::{Shown, shell};
use crate::proxy::Runner;
use crate::workflow::Timestamp;

/// What is to be accepted.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Accept without a question
    #[arg(long, conflicts_with = "list")]
    yes: bool,
    /// List what you accepted in every project
    #[arg(long)]
    list: bool,
    /// Print it as JSON; accepts nothing without `--yes`
    #[arg(long)]
    json: bool,
}

/// What is no longer accepted.
#[derive(Debug, Args)]
pub(crate) struct UntrustArguments {
    /// The file; the one of this project where none is named
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Shows what the project's file wants, and accepts it.
pub(crate) fn run(context: &CommandContext, arguments: &TrustArguments) -> anyhow::Result<ExitCode> {
    let files = context.files();
    if arguments.list {
        return list(context, &files.accepted, arguments);
    }
    let config = context.read()?;
    let file = config.project.unaccepted();
    let settings = agent_settings(context);
    let wanted = match &settings {
        ProjectSettings::Found(found) if !settings.counts(&files.accepted) => Some(found),
        ProjectSettings::Absent | ProjectSettings::Found(_) | ProjectSettings::Unclear { .. } => None,
    };
    if let (ProjectSettings::Unclear { folder, reason }, false) = (&settings, arguments.json) {
        output::note(&format!(
            "{} {reason}, so it cannot be accepted: agents of `pml run` leave it out",
            context.path(folder)
        ));
    }
    if file.is_none() && wanted.is_none() {
        let path = context.path(&files.project);
        if arguments.json {
            output::json(&json!({ "file": Shown::path(&files.project), "state": "counts" }))?;
        } else if files.project.exists() {
            output::say(&format!("{path} counts as your word already"));
        } else {
            output::say(&format!("there is no {path}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.json {
        let described = file.map(|file| described(context, file));
        let settings = wanted.map(|found| described_settings(context, found));
        let described: Vec<String> = described.into_iter().chain(settings).collect();
        output::data(&described.join("\n"))?;
    }
    let told = |state| {
        let mut told = match file {
            Some(file) => shown(file, state),
            None => json!({ "file": Shown::path(&files.project), "state": "counts" }),
        };
        if let Some(found) = wanted {
            told["agentSettings"] = json!({
                "folder": Shown::path(&found.folder),
                "state": state,
                "content": found.content,
                "wants": found.wants,
            });
        }
        told
    };
    if !arguments.yes {
        if arguments.json {
            output::json(&told("unaccepted"))?;
            return Ok(ExitCode::from(1));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        match runtime.block_on(terminal::confirm("Does it count as your word, exactly as it is?"))? {
            TerminalReply::Yes => {}
            TerminalReply::No => {
                output::say("it may declare servers and forbid, and nothing else");
                return Ok(ExitCode::from(1));
            }
            TerminalReply::Nobody => {
                let error = Refused("nothing is accepted: there is no terminal to ask in".to_owned());
                return Err(error).hint("to accept it without a question: pml trust --yes");
            }
        }
    }
    let by = person::provenance();
    if Runner::of(&context.environment, person::terminal()) == Runner::Agent {
        // Whatever `approvals.by` says: a model never says whom its person trusts.
        return Err(person::NotAPerson::trusting("trust").into());
    }
    let by = by.to_string();
    let marks = file.map(|file| trust::mark_of(file, &by));
    let marks = marks.into_iter().chain(wanted.map(|found| found.mark(&by)));
    for mark in marks {
        trust::accept(&files.accepted, &mark)?;
        context.history().note_now(&[trust::record(&mark)]);
        if !arguments.json {
            output::say(&format!(
                "{} counts as your word, as it is now; a change asks again",
                context.path(&mark.file)
            ));
        }
    }
    if arguments.json {
        output::json(&told("accepted"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks at what the project brings for an agent of `pml run`.
fn agent_settings(context: &CommandContext) -> ProjectSettings {
    ProjectSettings::read(context.environment.working_directory(), &context.environment)
}

/// Takes back that a file is accepted.
pub(crate) fn revoke(context: &CommandContext, arguments: &UntrustArguments) -> anyhow::Result<ExitCode> {
    let files = context.files();
    let file = match &arguments.file {
        Some(file) => context.environment.working_directory().join(file),
        None => files.project.clone(),
    };
    let mut count = trust::revoke(&files.accepted, &file)?;
    if arguments.file.is_none() {
        // What the project brings for an agent was accepted by the same command.
        let folder = context.environment.working_directory().join(AGENT_FOLDER);
        count += trust::revoke(&files.accepted, &folder)?;
    }
    if count > 0 {
        let by = person::provenance().to_string();
        context.history().note_now(&[trust::record_revoked(&file, &by)]);
    }
    if arguments.json {
        output::json(&json!({ "file": Shown::path(&file), "takenBack": count }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = context.path(&file);
    output::say(&match count {
        0 => format!("{path} was not accepted"),
        _ => format!("{path} is no longer accepted"),
    });
    if file == files.project
        && context
            .read()
            .is_ok_and(|config| config.project.unaccepted().is_none())
    {
        output::note(
            "it still counts: you wrote it, and it did not come with a repository; to be asked about such files \
             too, put \"projectTrust\": \"strict\" into your own configuration",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn described(context: &CommandContext, file: &UnacceptedFile) -> String {
    let mut lines = vec![format!(
        "{} {}, so it may declare servers and forbid; nothing else of it counts yet.",
        context.path(&file.file),
        file.origin.in_words()
    )];
    if !file.accepted_before.is_empty() {
        lines.push("Since you accepted it:".to_owned());
        lines.extend(file.difference().iter().map(|change| format!("  {change}")));
    }
    lines.push("It wants all of this:".to_owned());
    lines.extend(file.wants.iter().map(|want| format!("  {want}")));
    lines.push(format!("To read it: less {}", shell::path(&file.file)));
    lines.join("\n")
}

fn described_settings(context: &CommandContext, found: &FoundSettings) -> String {
    let mut lines = vec![format!(
        "{} is for the agent that `pml run` hosts, which obeys nothing of it yet.",
        context.path(&found.folder)
    )];
    lines.push("It wants all of this:".to_owned());
    lines.extend(found.wants.iter().map(|want| format!("  {want}")));
    lines.push(format!("To read it: ls -R {}", shell::path(&found.folder)));
    lines.join("\n")
}

fn shown(file: &UnacceptedFile, state: &str) -> Value {
    json!({
        "file": Shown::path(&file.file),
        "state": state,
        "content": file.content,
        "because": file.origin.in_words(),
        "wants": file.wants,
        "changes": if file.accepted_before.is_empty() { Vec::new() } else { file.difference() },
    })
}

fn list(
    context: &CommandContext,
    marks: &TrustMarks,
    arguments: &TrustArguments,
) -> anyhow::Result<ExitCode> {
    let marks = marks.list();
    if arguments.json {
        output::json(&json!({ "accepted": marks }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if marks.is_empty() {
        output::say("you have accepted no project's file");
        return Ok(ExitCode::SUCCESS);
    }
    let line = |AcceptedFile { mark, at_unix_ms }: &AcceptedFile| {
        let at = Timestamp::from_millis(i64::try_from(*at_unix_ms).unwrap_or_default());
        format!("{at}  {}  by {}", context.path(&mark.file), Shown::line(&mark.by))
    };
    output::data(&marks.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
