//! The introduction of a server that a person agreed to: installed, started once, approved, and its tools remembered.

use std::path::Path;
use std::sync::Arc;

use super::failure::Refused;
use super::install_scripts::{self, ScriptsQuestion};
use super::terminal::StepDisplay;
use super::{CommandContext, output};
use crate::config::Server;
use crate::disk;
use crate::loader::{Content, Lease, LoadError, Loader, Plan, Resolved, Started, Steps};
use crate::pins::AcceptedScripts;
use crate::protocol::{DependencyName, LaunchApproval};
use crate::proxy::now;
use crate::workflow::{ApprovedLaunch, Place};

/// What is introduced.
pub(super) struct Newcomer<'a> {
    pub(super) name: &'a DependencyName,
    pub(super) server: &'a Server,
    pub(super) plan: &'a Arc<Plan>,
    /// The longest line that is read from it.
    pub(super) line_limit: usize,
    /// The file that declares it.
    pub(super) file: &'a Path,
    /// How the person agrees to install scripts beforehand.
    pub(super) beforehand: &'a str,
    /// Whether they did.
    pub(super) yes: bool,
}

/// A server that runs, and the install scripts that the person agreed to for it.
#[derive(Clone)]
pub(super) struct Introduced {
    pub(super) started: Started,
    scripts: Option<AcceptedScripts>,
}

/// Says why a server does not run.
pub(super) enum NotIntroduced {
    /// It could not be installed or started.
    Start(Arc<LoadError>),
    /// The person did not agree, or could not be asked.
    Other(anyhow::Error),
}

impl Newcomer<'_> {
    /// Installs and starts it as `resolved`; asks about install scripts.
    pub(super) async fn start(
        &self,
        context: &CommandContext,
        loader: &Loader,
        resolved: Option<&Resolved>,
    ) -> Result<Introduced, NotIntroduced> {
        let other = |error: anyhow::Error| NotIntroduced::Other(error);
        let accepted = context.accepted_scripts(self.name, self.server);
        let expected = Content {
            integrity: resolved.and_then(|resolved| resolved.integrity.clone()),
            lock: resolved.and_then(|resolved| resolved.lock.clone()),
            scripts: accepted.map_err(|error| other(error.into()))?,
        };
        let started = self.started(loader, &expected).await;
        let found = started
            .as_ref()
            .err()
            .and_then(|error| error.unaccepted_scripts().cloned());
        let Some(found) = found else {
            return Ok(Introduced {
                started: started.map_err(NotIntroduced::Start)?,
                scripts: None,
            });
        };
        let question = ScriptsQuestion {
            name: self.name,
            server: self.server,
            beforehand: self.beforehand,
            yes: self.yes,
        };
        let agreed = install_scripts::agreed(context, question, &found)
            .await
            .map_err(other)?;
        let Some(agreed) = agreed else {
            return Err(other(Refused(format!("`{}` was not added", self.name)).into()));
        };
        let expected = Content {
            scripts: Some(agreed.digest.clone()),
            ..expected
        };
        Ok(Introduced {
            started: self
                .started(loader, &expected)
                .await
                .map_err(NotIntroduced::Start)?,
            scripts: Some(agreed),
        })
    }

    async fn started(&self, loader: &Loader, expected: &Content) -> Result<Started, Arc<LoadError>> {
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

    /// Records that the person agreed to it as it runs, and keeps what it is.
    ///
    /// What cannot be recorded costs nothing but another question: it stands in the file and works.
    pub(super) fn record(&self, context: &CommandContext, loader: &Loader, introduced: Introduced) {
        let Introduced { started, scripts } = introduced;
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
        let recorded = Place::of(&context.locations)
            .open()
            .and_then(|mut store| store.approve_launch(&approved));
        if let Err(error) = recorded {
            output::note(&crate::report::render_hinted(&error));
        }
        if let Some(scripts) = scripts
            && let Err(error) = context.accept_scripts(self.name, self.server, scripts)
        {
            output::note(&crate::report::render_hinted(&error));
        }
        let package = loader.packages().pin(self.plan);
        match context.accept(self.server, self.plan, package, &started.known()) {
            Ok(pin) => context.put_into_lock(self.file, self.name, &pin),
            Err(error) => output::note(&crate::report::render_hinted(&error)),
        }
    }
}
