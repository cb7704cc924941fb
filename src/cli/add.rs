//! `pml add NAME -- COMMAND…`: declares a server at an exact version, installs it and learns its tools.
//!
//! A person sees what will be written and run before anything is. The configuration is written last, after the
//! server has started once: whatever fails before leaves it as it was. What the person agreed to is recorded as
//! the approval of exactly that declaration, version and content.

mod draft;
mod error;
mod messages;

use std::collections::HashSet;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use self::draft::Draft;
use self::error::AddError;
use super::failure::{Hinted as _, Refused, hinted};
use super::introduction::{Newcomer, NotIntroduced, ShownServer};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, Haste, authority, interruption, output, person, uses};
use crate::clients::{clear_variable, clear_word};
use crate::loader::{
    EndReason, Exit, InstallError, KnownTool, Loader, NewerVersion, PlanSource, Resolved, VersionSpec,
};
use crate::permissions::writer::FileEdit;
use crate::protocol::{DependencyName, Shown, ToolName, shell};
use crate::proxy::now;

/// What to declare, and how far to go.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word that can be typed")]
pub(crate) struct AddArguments {
    /// What the server is called in rules and in the names of its tools
    #[arg(value_name = "NAME")]
    name: DependencyName,
    /// A package instead of a command, such as `npm:@scope/name`; what follows `--` are its arguments
    #[arg(long, value_name = "PACKAGE")]
    package: Option<String>,
    /// The address of a server elsewhere instead of a command
    #[arg(long, value_name = "URL", conflicts_with_all = ["package", "variables", "allow_scripts", "line"])]
    url: Option<String>,
    /// A header of every request to it; `${VAR}` stays as written and expands when it is connected to
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url", value_parser = header)]
    headers: Vec<(String, String)>,
    /// A variable the server gets; `${VAR}` stays as written and expands when the server starts
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// When the server is started
    #[arg(long, value_enum, default_value_t = StartupWord::Lazy)]
    startup: StartupWord,
    /// Let install scripts of the package and its dependencies run
    #[arg(long)]
    allow_scripts: bool,
    /// Declare it in place of a server of this name
    #[arg(long)]
    replace: bool,
    /// Write the user's file instead of the project's
    #[arg(long)]
    user: bool,
    /// Only write the declaration: install, start and approve nothing
    #[arg(long)]
    no_install: bool,
    /// Take it also if it was published too short a time ago ("minReleaseAgeDays")
    #[arg(long, conflicts_with = "url")]
    now: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    /// The command that starts the server, as in a client's configuration
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["package", "url"])]
    line: Vec<String>,
}

impl AddArguments {
    /// Returns whether `--now` was given.
    pub(crate) fn haste(&self) -> Haste {
        Haste::of(self.now)
    }
}

/// When the server is started, as the file spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StartupWord {
    /// On its first call
    Lazy,
    /// In the background when pml starts, if a rule or an approval lets it
    Eager,
}

/// Reads `NAME=VALUE`; which names are possible is the configuration's to say.
fn variable(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads `NAME: VALUE`; which names are possible is the address's to say.
fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("write it as \"NAME: VALUE\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// What came of it.
enum AddOutcome {
    Added(Box<Addition>),
    Declined,
}

/// What was added.
struct Addition {
    draft: Draft,
    resolved: Option<Resolved>,
    edited: FileEdit,
    /// Its tools; `None` if it was not started.
    tools: Option<Vec<ToolName>>,
    /// What the person should know of its installation.
    notes: Vec<String>,
}

/// Declares, installs and starts a server, if the person agrees.
pub(crate) fn run(context: &CommandContext, arguments: &AddArguments) -> anyhow::Result<ExitCode> {
    // A bad line or name is told before anything happens.
    let draft = Draft::new(context, arguments, &draft::launch(arguments))?;
    let outcome = interruption::with_loader(context, arguments.haste(), async |loader| {
        add(context, arguments, draft, loader).await
    })?;
    match outcome {
        Some(Ok(AddOutcome::Added(added))) => {
            messages::after(context, arguments, &added)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Ok(AddOutcome::Declined)) => {
            output::say("nothing was changed");
            Ok(ExitCode::from(1))
        }
        Some(Err(error)) => Err(error),
        None => {
            output::say("\ninterrupted; nothing was changed");
            Ok(ExitCode::from(1))
        }
    }
}

async fn add(
    context: &CommandContext,
    arguments: &AddArguments,
    draft: Draft,
    loader: &Loader,
) -> anyhow::Result<AddOutcome> {
    if !arguments.no_install {
        // Before anything is fetched; what is only declared runs nothing.
        authority::ruled(context, &context.read()?, &arguments.name, &[])?;
    }
    if !arguments.no_install && is_known(context, &draft)? {
        // What was accepted under this name is replaced by what is started now.
        person::required_to_accept(context, "add")?;
    }
    let (draft, resolved) = pinned(context, arguments, draft, loader).await?;
    if arguments.no_install {
        let edited = draft.write(context, arguments)?;
        let left_out = resolved.as_ref().and_then(|resolved| resolved.left_out.clone());
        return Ok(AddOutcome::Added(Box::new(Addition {
            draft,
            resolved,
            edited,
            tools: None,
            notes: left_out_note(left_out).collect(),
        })));
    }
    messages::before(context, &draft, resolved.as_ref());
    let newcomer = Newcomer {
        name: &arguments.name,
        server: &draft.server,
        plan: &draft.plan,
        line_limit: draft.line_limit,
        beforehand: "pml add --yes …",
        yes: arguments.yes,
    };
    let before = context.compared(&draft.server, &draft.plan)?;
    let found = newcomer.find(loader, before.as_ref(), resolved.as_ref()).await?;
    let shown = newcomer.show(context, before, found)?;
    if !arguments.yes {
        let question = match draft.plan.source() {
            PlanSource::Package(_) => "Install and add it?",
            PlanSource::Command { .. } => "Start and add it?",
            PlanSource::Remote(_) => "Connect to it and add it?",
        };
        match terminal::confirm(question).await? {
            TerminalReply::Yes => {}
            TerminalReply::No => return Ok(AddOutcome::Declined),
            TerminalReply::Nobody => {
                return Err(Refused(format!(
                    "`{}` was not added: there is no terminal to ask in",
                    arguments.name
                )))
                .hint("to agree beforehand: pml add --yes …");
            }
        }
    }
    // Minutes may have passed at the question: the rules of now count.
    authority::ruled(context, &context.read()?, &arguments.name, &[])?;
    let left_out = resolved.as_ref().and_then(|resolved| resolved.left_out.clone());
    let was_installed = !loader.needs_install(&draft.plan);
    let added = start_and_write(context, arguments, &draft, &newcomer, shown, loader).await;
    match added {
        Ok((resolved, edited, tools, notes)) => Ok(AddOutcome::Added(Box::new(Addition {
            draft,
            resolved,
            edited,
            tools: Some(tools),
            notes: left_out_note(left_out).chain(notes).collect(),
        }))),
        Err(error) => {
            if let (Some(package), false) = (draft.plan.package(), was_installed)
                && let Ok(others) = uses::others(context, &arguments.name)
                && let Err(left) = loader
                    .packages()
                    .uninstall(&arguments.name, package, &others)
                    .await
            {
                tracing::warn!(error = %left, "what was installed could not be removed again");
            }
            Err(error)
        }
    }
}

/// Tells whether something was accepted of a server of this name and file.
fn is_known(context: &CommandContext, draft: &Draft) -> anyhow::Result<bool> {
    let accepted = context.accepted(draft.plan.dependency(), &draft.server)?;
    Ok(accepted.is_some_and(|accepted| accepted.latest().is_some() || accepted.scripts().is_some()))
}

/// Returns the command as it was typed, with the install scripts; what may be a secret is left out.
fn with_scripts(arguments: &AddArguments) -> String {
    let mut words = vec!["pml add --allow-scripts".to_owned()];
    words.extend(arguments.user.then(|| "--user".to_owned()));
    words.push(arguments.name.to_string());
    for (name, value) in &arguments.variables {
        let value = match clear_variable(name, value) {
            Some(_) => "…",
            None => value,
        };
        words.push(format!("--env {}", shell::word(&format!("{name}={value}"))));
    }
    words.extend(
        arguments
            .package
            .as_deref()
            .map(|package| format!("--package {}", shell::word(package))),
    );
    if clear_word(arguments.name.as_str(), &arguments.line).is_some() {
        words.push("-- …".to_owned());
    } else if !arguments.line.is_empty() {
        words.push("--".to_owned());
        words.extend(arguments.line.iter().map(|word| shell::word(word)));
    }
    Shown::line(&words.join(" ")).to_string()
}

/// Finds out the exact version and writes it into the declaration.
async fn pinned(
    context: &CommandContext,
    arguments: &AddArguments,
    draft: Draft,
    loader: &Loader,
) -> anyhow::Result<(Draft, Option<Resolved>)> {
    let Some(package) = draft.plan.package() else {
        return Ok((draft, None));
    };
    let packages = loader.packages();
    let passing = StepDisplay::new();
    let spec = package.spec();
    let resolving = || passing.step(&format!("asking the registry for `{spec}`"));
    let resolved = match package.version() {
        VersionSpec::Exact(_) if arguments.no_install => return Ok((draft, None)),
        VersionSpec::Exact(_) => {
            resolving();
            packages.resolve(&draft.plan).await
        }
        // Not what this spec once was resolved to: a person who adds a server today means today's version.
        VersionSpec::Floating(_) => {
            resolving();
            packages.look_up(&draft.plan).await
        }
    };
    passing.clear();
    let resolved = resolved.map_err(|source| {
        let name = arguments.name.clone();
        match source {
            source if source.is_about_age() => hinted(AddError::TooYoung { name, source }),
            source @ InstallError::NotFound { .. } => hinted(AddError::NotFound { name, source }),
            source => source.into(),
        }
    })?;
    let draft = draft.pinned(context, arguments, &resolved.version)?;
    Ok((draft, Some(resolved)))
}

/// Says which newer version was left out because it is too young.
fn left_out_note(left_out: Option<NewerVersion>) -> impl Iterator<Item = String> {
    left_out.map(|newer| newer.notice(now().millis())).into_iter()
}

async fn start_and_write(
    context: &CommandContext,
    arguments: &AddArguments,
    draft: &Draft,
    newcomer: &Newcomer<'_>,
    shown: ShownServer,
    loader: &Loader,
) -> anyhow::Result<(Option<Resolved>, FileEdit, Vec<ToolName>, Vec<String>)> {
    let introduced = newcomer.start(context, loader, shown).await;
    let introduced = introduced.map_err(|error| match error {
        NotIntroduced::Start(source) => {
            let name = arguments.name.clone();
            let never_ran = matches!(source.end_reason(), Some(EndReason::Exited(Exit::NotStarted(_))));
            let what = match draft.plan.source() {
                _ if never_ran => None,
                PlanSource::Remote(_) => Some("reached"),
                PlanSource::Package(_) | PlanSource::Command { .. } => Some("started"),
            };
            hinted(AddError::Start {
                name,
                what,
                with_scripts: with_scripts(arguments),
                source,
            })
        }
        NotIntroduced::Declined => Refused(format!("`{}` was not added", arguments.name)).into(),
        NotIntroduced::Other(error) => error,
    })?;
    let started = introduced.started.clone();
    let edited = draft.write(context, arguments)?;
    let resolved = started.resolved.as_deref().cloned();
    newcomer.record_declared(context, loader, introduced, &draft.path);
    let known = started.known();
    let mut seen = HashSet::new();
    let tools = known
        .tools
        .iter()
        .map(KnownTool::name)
        // One listed twice can be called once.
        .filter(|tool| seen.insert(*tool))
        .map(|tool| ToolName::new(arguments.name.clone(), tool))
        .collect();
    Ok((resolved, edited, tools, started.take_notes()))
}
