//! The introduction of a server to the user: what differs from what they accepted is shown before anything of it is
//! installed, and once more when its tools are known; what runs then is recorded as accepted.
//!
//! Every command that accepts a server goes this way. [`ShownServer`] and [`Introduced`] are made here alone, so that
//! nothing is started or recorded whose difference was not shown.

use std::path::Path;
use std::sync::Arc;

use super::failure::{Hinted as _, Refused};
use super::install_scripts::{self, ScriptsQuestion};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, output, person};
use crate::config::Server;
use crate::disk;
use crate::loader::{
    Content, InstallError, InstallStep, Lease, LoadError, Loader, Plan, Resolved, Started, Steps,
};
use crate::pins::{
    AcceptedError, AcceptedLaunch, AcceptedScripts, AcceptedServer, Change, LaunchSurroundings, PackagePin,
    Pin, ToolNames, difference, tool_changes,
};
use crate::protocol::{DependencyName, LaunchApproval};
use crate::proxy::now;
use crate::workflow::{ApprovedLaunch, Place};

/// A server that a command would have accepted.
pub(super) struct Newcomer<'a> {
    pub(super) name: &'a DependencyName,
    pub(super) server: &'a Server,
    pub(super) plan: &'a Arc<Plan>,
    /// The longest line that is read from it.
    pub(super) line_limit: usize,
    /// The command by which the person agrees beforehand.
    pub(super) beforehand: &'a str,
    /// Whether they did.
    pub(super) yes: bool,
}

/// What a command has found out of a server before anything of it is installed.
pub(super) enum FoundServer {
    /// Its package, with everything that is installed with it.
    Package(Box<PackagePin>),
    /// What the registry says of its package.
    Resolved(Content),
    /// It has no package.
    Plain,
}

/// A server of which the person was shown what differs, as far as that is known before it is installed.
pub(super) struct ShownServer {
    before: Option<Pin>,
    package: Option<PackagePin>,
    expected: Content,
}

/// A server that runs, of which the person was shown everything that differs and agreed to it.
#[derive(Clone)]
pub(super) struct Introduced {
    pub(super) started: Started,
    package: Option<PackagePin>,
    /// The install scripts that they agreed to for it.
    scripts: Option<AcceptedScripts>,
}

/// Says why a server was not introduced.
pub(super) enum NotIntroduced {
    /// It could not be installed or started.
    Start(Arc<LoadError>),
    /// The person did not agree.
    Declined,
    /// The person could not be asked, or may not be answered for.
    Other(anyhow::Error),
}

impl NotIntroduced {
    fn other(error: impl Into<anyhow::Error>) -> Self {
        Self::Other(error.into())
    }
}

impl Newcomer<'_> {
    /// Finds out what would be installed; everything of it where there is something to compare it with.
    pub(super) async fn find(
        &self,
        loader: &Loader,
        before: Option<&Pin>,
        resolved: Option<&Resolved>,
    ) -> Result<FoundServer, InstallError> {
        if self.plan.package().is_none() {
            return Ok(FoundServer::Plain);
        }
        if before.is_none() {
            return Ok(FoundServer::Resolved(Content {
                integrity: resolved.and_then(|resolved| resolved.integrity.clone()),
                lock: resolved.and_then(|resolved| resolved.lock.clone()),
                ..Content::default()
            }));
        }
        let steps = StepDisplay::new();
        let step = |at: InstallStep| steps.step(&format!("{}: {at}", self.name));
        let package = loader.packages().lock(self.plan, &step).await;
        steps.clear();
        Ok(FoundServer::Package(Box::new(package?)))
    }

    /// Shows what differs from what the user accepted; refuses an agent where anything does.
    pub(super) fn show(
        &self,
        context: &CommandContext,
        before: Option<Pin>,
        found: FoundServer,
    ) -> anyhow::Result<ShownServer> {
        let (package, expected) = match found {
            FoundServer::Package(package) => {
                let expected = Content::of((*package).clone());
                (Some(*package), expected)
            }
            FoundServer::Resolved(expected) => (None, expected),
            FoundServer::Plain => (None, Content::default()),
        };
        if let Some(before) = &before {
            let now = Pin {
                package: package.clone(),
                ..Pin::default()
            };
            let launch = context.launch_change(self.server, self.plan)?.into_iter();
            let changes: Vec<Change> = launch.chain(difference(before, &now)).collect();
            if !changes.is_empty() {
                output::say(&format!("{}, beside what it was:", self.name));
                // No tools yet: they are known once it runs.
                let namesakes = ToolNames::default().beside(self.name);
                output::say_lines(changes.iter().flat_map(|change| change.lines(&namesakes)));
                output::say("");
                person::required_to_accept(context, self.command())?;
            }
        }
        Ok(ShownServer {
            before,
            package,
            expected,
        })
    }

    /// Installs and starts it exactly as it was shown; asks about install scripts, and about tools that differ.
    pub(super) async fn start(
        &self,
        context: &CommandContext,
        loader: &Loader,
        shown: ShownServer,
    ) -> Result<Introduced, NotIntroduced> {
        let accepted = context.accepted_scripts(self.name, self.server);
        let expected = Content {
            scripts: accepted.map_err(NotIntroduced::other)?,
            ..shown.expected
        };
        let (started, scripts) = self.start_with_scripts(context, loader, expected).await?;
        if let Some(before) = shown.before.as_ref().and_then(|before| before.tools.as_ref()) {
            let changes = tool_changes(before, &started.known().tool_pins());
            if !changes.is_empty() {
                output::say("its tools, which are known now:");
                let config = context.read().map_err(NotIntroduced::other)?;
                let namesakes = context.tool_names(&config).beside(self.name);
                output::say_lines(changes.iter().flat_map(|change| change.lines(&namesakes)));
                output::say("");
                person::required_to_accept(context, self.command()).map_err(NotIntroduced::other)?;
                self.agree_to_tools().await?;
            }
        }
        Ok(Introduced {
            started,
            package: shown.package,
            scripts,
        })
    }

    async fn agree_to_tools(&self) -> Result<(), NotIntroduced> {
        if self.yes {
            return Ok(());
        }
        let reply = terminal::confirm("Accept its tools as they are now?").await;
        match reply.map_err(NotIntroduced::other)? {
            TerminalReply::Yes => Ok(()),
            TerminalReply::No => Err(NotIntroduced::Declined),
            TerminalReply::Nobody => {
                let refused = Err::<(), _>(Refused(format!(
                    "the tools of `{}` are not those that were accepted, and there is no terminal to ask in",
                    self.name
                )));
                let hinted = refused.hint(format!("to agree beforehand: {}", self.beforehand));
                hinted.map_err(NotIntroduced::Other)
            }
        }
    }

    async fn start_with_scripts(
        &self,
        context: &CommandContext,
        loader: &Loader,
        expected: Content,
    ) -> Result<(Started, Option<AcceptedScripts>), NotIntroduced> {
        let started = self.start_once(loader, &expected).await;
        let found = started
            .as_ref()
            .err()
            .and_then(|error| error.unaccepted_scripts().cloned());
        let Some(found) = found else {
            return Ok((started.map_err(NotIntroduced::Start)?, None));
        };
        let question = ScriptsQuestion {
            name: self.name,
            server: self.server,
            beforehand: self.beforehand,
            yes: self.yes,
        };
        let agreed = install_scripts::agreed(context, question, &found).await;
        let agreed = agreed
            .map_err(NotIntroduced::Other)?
            .ok_or(NotIntroduced::Declined)?;
        let expected = Content {
            scripts: Some(agreed.digest.clone()),
            ..expected
        };
        let started = self.start_once(loader, &expected).await;
        Ok((started.map_err(NotIntroduced::Start)?, Some(agreed)))
    }

    async fn start_once(&self, loader: &Loader, expected: &Content) -> Result<Started, Arc<LoadError>> {
        let passing = StepDisplay::new();
        let shown = passing.clone();
        let steps: Steps = Box::new(move |text| shown.step(&text));
        let lease = Lease::Standing;
        // The first server of the user starts in a folder that is there once its file is; where it cannot be made, the
        // start says so.
        if self.server.cwd == self.server.directory {
            let _ = disk::create_private_directory(&self.server.directory);
        }
        let starting = loader.start(
            self.plan,
            self.server,
            self.line_limit,
            expected,
            lease,
            Some(steps),
        );
        let started = starting.await;
        passing.clear();
        started
    }

    /// Records that the person agreed to it as it runs, and returns what it is.
    pub(super) fn record(
        &self,
        context: &CommandContext,
        loader: &Loader,
        introduced: Introduced,
    ) -> anyhow::Result<Pin> {
        let Introduced {
            started,
            package,
            scripts,
        } = introduced;
        let resolved = started.resolved.as_deref();
        let approval = LaunchApproval {
            dependency: self.name.clone(),
            version: resolved.map(|resolved| resolved.version.clone()),
            integrity: resolved.and_then(|resolved| resolved.integrity.clone()),
            package: self.plan.package().map(ToString::to_string),
            lock: resolved.and_then(|resolved| resolved.lock.clone()),
            at_unix_ms: u64::try_from(now().millis()).unwrap_or_default(),
        };
        let approved = ApprovedLaunch {
            launch: self.plan.digest().clone(),
            approval,
        };
        Place::of(&context.locations).open()?.approve_launch(&approved)?;
        if let Some(scripts) = scripts {
            context.accept_scripts(self.name, self.server, scripts)?;
        }
        let pin = Pin {
            launch: self.server.launch.words(),
            surroundings: None,
            package: package.or_else(|| loader.packages().pin(self.plan)),
            tools: Some(started.known().tool_pins()),
        };
        let accepted = AcceptedLaunch {
            pin: pin.clone(),
            clients: vec![started.known().client_kind()],
            ..AcceptedLaunch::new(self.plan.digest().clone(), self.server)
        };
        self.accept(context, accepted)?;
        Ok(Pin {
            surroundings: Some(LaunchSurroundings::shared_of(self.server)),
            ..pin
        })
    }

    /// Does the same, and puts it into the lock beside `file`, for a server that stands there already.
    ///
    /// What cannot be recorded costs nothing but another question: it is declared and works.
    pub(super) fn record_declared(
        &self,
        context: &CommandContext,
        loader: &Loader,
        introduced: Introduced,
        file: &Path,
    ) {
        match self.record(context, loader, introduced) {
            Ok(pin) => context.put_into_lock(file, self.name, &pin),
            Err(error) => output::note(&super::failure::text(&error)),
        }
    }

    fn accept(&self, context: &CommandContext, accepted: AcceptedLaunch) -> Result<(), AcceptedError> {
        let accepts = accepted.pin.content();
        let pins = context.accepted_pins();
        pins.update(&self.server.source.file, self.name, |known| {
            let accepted = beside_others(&known, accepted);
            known.with(accepted)
        })?;
        context.note_accepted(self.name, "server", accepts);
        Ok(())
    }

    /// The command as it is typed, without the program.
    fn command(&self) -> &str {
        self.beforehand.trim_start_matches("pml ")
    }
}

/// Adds what was accepted of this very launch before: other kinds of clients are listed other tools.
fn beside_others(known: &AcceptedServer, mut accepted: AcceptedLaunch) -> AcceptedLaunch {
    let Some(own) = known.of(&accepted.launch) else {
        return accepted;
    };
    if let (Some(tools), Some(others)) = (&mut accepted.pin.tools, &own.pin.tools) {
        for (name, tool) in others {
            tools.entry(name.clone()).or_insert_with(|| tool.clone());
        }
    }
    let others = own.clients.iter().filter(|kind| !accepted.clients.contains(kind));
    accepted.clients = others.chain(&accepted.clients).cloned().collect();
    accepted
}
