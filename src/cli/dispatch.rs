//! Runs each command of the command line by its module.

use std::process::ExitCode;

use super::commands::{Command, InternalCommand};
use super::{
    CommandContext, add, answer, approve, audit, call, channels, check, completions, demo, diff, doctor, gc,
    history, import, inbox, init, install, list, lock, man, outdated, output, pending, person, refuse,
    remove, rule, rules, run, sample_server, sbom, serve, stdio, supervise, trust, uninstall, upgrade,
    verify,
};
use crate::config::{self, RuleList};

impl Command {
    /// Tells what is logged unless `PML_LOG` says otherwise: a client keeps the log, a person sees what is printed.
    pub(super) fn logs(&self) -> &'static str {
        match self {
            Self::Stdio => "warn,pml::workflow=info",
            _ => "warn",
        }
    }

    /// Tells whether the command reads the configuration of this project; `stdio` logs what it finds.
    fn reads_configuration(&self) -> bool {
        !matches!(
            self,
            Self::Stdio
                | Self::Inbox(_)
                | Self::Pending(_)
                | Self::Channels(_)
                | Self::Approve(_)
                | Self::Refuse(_)
                | Self::Answer(_)
                | Self::History(_)
                | Self::Serve(_)
                | Self::Run(_)
                | Self::Runs(_)
                | Self::Untrust(_)
                | Self::Schema
                | Self::Demo(_)
                | Self::Completions(_)
        )
    }

    /// Tells whether the command may ask a registry.
    fn fetches(&self) -> bool {
        matches!(
            self,
            Self::Add(_)
                | Self::Install(_)
                | Self::Lock(_)
                | Self::Outdated(_)
                | Self::Diff(_)
                | Self::Upgrade(_)
        )
    }

    /// Runs the command.
    pub(super) fn run(self, context: &CommandContext) -> anyhow::Result<ExitCode> {
        if self.reads_configuration()
            && let Some(unreached) = context.files().unreached
        {
            output::note(&unreached.to_string());
        }
        if self.reads_configuration() && !matches!(self, Self::Trust(_)) {
            note_unaccepted(context);
        }
        if self.fetches() {
            note_ignored_registry(context);
        }
        match self {
            Self::Init(arguments) => init::run(context, &arguments),
            Self::Import(arguments) => {
                if arguments.grants() {
                    person::required_to_accept(context, "import")?;
                }
                import::run(context, &arguments)
            }
            Self::Doctor(arguments) => doctor::run(context, &arguments),
            Self::Add(arguments) => {
                person::required(context, "add")?;
                person::required_for_haste(context, "add", arguments.haste())?;
                add::run(context, &arguments)
            }
            Self::Remove(arguments) => remove::run(context, &arguments),
            Self::List(arguments) => list::run(context, &arguments),
            Self::Stdio => stdio::run(context),
            Self::Install(arguments) => {
                person::required(context, "install")?;
                person::required_for_haste(context, "install", arguments.haste())?;
                install::run(context, &context.read()?, &arguments)
            }
            Self::Uninstall(arguments) => uninstall::run(context, &context.read()?, &arguments),
            Self::Gc(arguments) => gc::run(context, &arguments),
            Self::Lock(arguments) => {
                person::required(context, "lock")?;
                lock::run(context, &context.read()?, &arguments)
            }
            Self::Outdated(arguments) => outdated::run(context, &context.read()?, &arguments),
            Self::Diff(arguments) => diff::run(context, &context.read()?, &arguments),
            Self::Upgrade(arguments) => {
                person::required(context, "upgrade")?;
                // It accepts a package and its tools.
                person::required_to_accept(context, "upgrade")?;
                upgrade::run(context, &arguments)
            }
            Self::Audit(arguments) => audit::run(context, &arguments),
            Self::Sbom(arguments) => sbom::run(context, &arguments),
            Self::Verify(arguments) => verify::run(context, &arguments),
            // Also what moves or takes a rule may lift a deny.
            Self::Allow(arguments) => {
                person::required(context, "allow")?;
                rule::add(context, RuleList::Allow, &arguments)
            }
            Self::Deny(arguments) => rule::add(context, RuleList::Deny, &arguments),
            Self::Ask(arguments) => {
                person::required(context, "ask")?;
                rule::add(context, RuleList::Ask, &arguments)
            }
            Self::Forget(arguments) => {
                person::required(context, "forget")?;
                rule::forget(context, &arguments)
            }
            Self::Inbox(arguments) => inbox::run(context, &arguments),
            Self::Pending(arguments) => pending::run(context, &arguments),
            Self::Channels(arguments) => channels::run(context, &arguments),
            Self::Approve(arguments) => approve::run(context, &arguments),
            Self::Refuse(arguments) => refuse::run(context, &arguments),
            Self::Answer(arguments) => answer::run(context, &arguments),
            Self::History(arguments) => history::run(context, &arguments),
            Self::Serve(arguments) => serve::run(context, &arguments),
            Self::Run(arguments) => run::run(context, &arguments),
            Self::Runs(arguments) => run::list(context, &arguments),
            Self::Trust(arguments) => trust::run(context, &arguments),
            Self::Untrust(arguments) => trust::revoke(context, &arguments),
            Self::Call(arguments) => call::run(context, &arguments),
            Self::Check(arguments) => check::run(context, &arguments),
            Self::Rules(arguments) => rules::run(context, &arguments),
            Self::Demo(arguments) => demo::run(context, &arguments),
            Self::Schema => {
                output::data(config::schema().trim_end())?;
                Ok(ExitCode::SUCCESS)
            }
            Self::Completions(arguments) => completions::run(context, &arguments),
        }
    }
}

/// Tells that a registry is set where pml does not look: npm sets this variable from files of projects.
fn note_ignored_registry(context: &CommandContext) {
    let is_set = |name: &str| context.environment.variable(name).is_some();
    if is_set("npm_config_registry") && !is_set("NPM_CONFIG_REGISTRY") {
        output::note(
            "`npm_config_registry` is ignored: npm sets it from the file of a project; \
             to choose a registry: NPM_CONFIG_REGISTRY, or `registry=` in your own ~/.npmrc",
        );
    }
}

/// Tells that much of the project's file has no effect; an error in it is told by the command itself.
fn note_unaccepted(context: &CommandContext) {
    let Ok(config) = context.read() else { return };
    if let Some(file) = config.project.unaccepted() {
        output::note(&format!(
            "{} {}: what it allows has no effect until you accept it; to see it: pml trust",
            context.path(&file.file),
            file.origin.in_words()
        ));
    }
}

impl InternalCommand {
    /// Runs what pml started of itself.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Supervise(arguments) => Ok(supervise::supervise(&arguments)),
            Self::Launch(arguments) => Ok(supervise::launch(&arguments)),
            Self::SampleServer => sample_server::run(),
            Self::Man(arguments) => man::run(&arguments),
        }
    }
}
