//! The install scripts of a server's package beside those that a person accepted, which alone may run.
//!
//! They are known once the package lies in the installer's directory, and nothing of it has run then. The question names
//! each of them; its answer counts for exactly those, whatever a rule or an earlier approval allows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Server;
use crate::loader::{Plan, Scripts};
use crate::pins::{AcceptedScripts, InstallScripts, PinError};
use crate::protocol::Digest;
use crate::protocol::approval::{ChangedPart, ShownChange, ShownContents};
use crate::proxy::{Proxy, Refusal};

/// More packages with unaccepted scripts than a conversation meets; beyond this they are found out again.
const FOUND: usize = 100;

/// The scripts that packages were found to have, by the digest of everything that is installed with each.
#[derive(Debug, Default)]
pub(in crate::proxy) struct FoundScripts(Mutex<HashMap<Digest, Arc<InstallScripts>>>);

impl Proxy {
    /// Lists the scripts for which a package was not installed; calls ask about them from then on without fetching it again.
    pub(in crate::proxy) fn found_scripts(
        &self,
        server: &Server,
        plan: &Plan,
        scripts: &Arc<InstallScripts>,
    ) -> Result<ShownChange, Refusal> {
        if let Some(lock) = self.0.loader.resolved(plan).and_then(|resolved| resolved.lock) {
            let mut found = self.0.pins.found_scripts.lock();
            if found.len() >= FOUND {
                found.clear();
            }
            found.insert(lock, Arc::clone(scripts));
        }
        self.scripts_change(server, plan, scripts)
    }

    /// Returns the scripts that a start would have to run and that were not accepted, as far as they are known.
    pub(in crate::proxy) fn known_scripts(
        &self,
        server: &Server,
        plan: &Plan,
    ) -> Result<Option<ShownChange>, Refusal> {
        if plan.scripts() != Scripts::Allowed || !self.0.loader.needs_install(plan) {
            return Ok(None);
        }
        let lock = self.0.loader.resolved(plan).and_then(|resolved| resolved.lock);
        let found = lock.and_then(|lock| self.0.pins.found_scripts.lock().get(&lock).cloned());
        match found {
            Some(found) if self.asks_about_scripts(server, plan, &found.digest())? => {
                self.scripts_change(server, plan, &found).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Tells whether scripts are not those that were accepted.
    pub(in crate::proxy) fn asks_about_scripts(
        &self,
        server: &Server,
        plan: &Plan,
        scripts: &Digest,
    ) -> Result<bool, Refusal> {
        let accepted = self.accepted_scripts(server, plan)?;
        Ok(accepted.is_none_or(|accepted| accepted.digest != *scripts))
    }

    /// Lists scripts as a person is asked about them.
    fn scripts_change(
        &self,
        server: &Server,
        plan: &Plan,
        found: &InstallScripts,
    ) -> Result<ShownChange, Refusal> {
        let before = self.accepted_scripts(server, plan)?;
        let count = found.len();
        let plural = if count == 1 { "" } else { "s" };
        Ok(ShownChange {
            part: ChangedPart::Scripts,
            content: found.digest(),
            lines: found.lines(before.as_ref()),
            // What a package calls its scripts, and itself, is its own text.
            summary: vec![format!(
                "! {count} install script{plural} that a person has not accepted"
            )],
            missing: 0,
            contents: ShownContents::Whole,
        })
    }

    /// Returns the scripts that were accepted last of a server.
    pub(super) fn accepted_scripts(
        &self,
        server: &Server,
        plan: &Plan,
    ) -> Result<Option<AcceptedScripts>, PinError> {
        let found = self
            .0
            .pins
            .accepted
            .find(&server.source.file, plan.dependency())?;
        Ok(found.and_then(|accepted| accepted.scripts().cloned()))
    }
}

impl FoundScripts {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, Arc<InstallScripts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
