//! Compares servers with what the user accepted of them: before a start its package and the install scripts that it would
//! run, after it the definitions of its tools.
//!
//! What a server is when it is first used is remembered; from then on whatever differs is put to a person, also where a
//! rule allows the call. Until they accept it, a model sees the definitions that were accepted and calls of the tools
//! that differ are suspended; the other tools of the server run. A lock beside the configuration (`.pml.lock`) grants
//! nothing: it stands in for what was accepted where nothing was yet, so that what a team reviewed is what is compared.

mod acceptance;
mod comparison;
mod first_use;
mod judged_tools;
mod launch;
mod locks;
mod package;
mod package_acceptance;
mod reading;
mod scripts;

pub(super) use acceptance::ToolCheck;
pub use comparison::ServerDifference;
pub(super) use judged_tools::JudgedTools;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

use self::locks::Locks;
use self::scripts::FoundScripts;
use crate::config::{Locations, Server};
use crate::pins::{AcceptedLaunch, AcceptedPins, AcceptedServer, Pin, PinError, ToolPin};
use crate::protocol::DependencyName;

/// What the user accepted of every server, and what was found by comparing.
pub struct ServerPins {
    accepted: Arc<AcceptedPins>,
    /// The locks that were read.
    locks: Locks,
    /// What was found of install scripts.
    found_scripts: FoundScripts,
    /// What was last found of each server.
    judged: Mutex<HashMap<DependencyName, Arc<JudgedTools>>>,
}

impl ServerPins {
    /// Names where it is kept; touches nothing.
    #[must_use]
    pub fn new(locations: &Locations) -> Self {
        Self {
            accepted: Arc::new(AcceptedPins::at(locations.pins())),
            locks: Locks::default(),
            found_scripts: FoundScripts::default(),
            judged: Mutex::default(),
        }
    }

    /// Returns the record of what was accepted.
    pub(super) fn accepted_pins(&self) -> Arc<AcceptedPins> {
        Arc::clone(&self.accepted)
    }

    /// Returns what was accepted of a server under the configuration that declares it; `None` where that is no launch yet.
    fn accepted(
        &self,
        server: &Server,
        name: &DependencyName,
    ) -> Result<Option<Arc<AcceptedServer>>, PinError> {
        let found = self.accepted.find(&server.source.file, name)?;
        // Its install scripts are accepted before it is first used.
        Ok(found.filter(|accepted| accepted.latest().is_some()))
    }

    /// Returns what the lock beside a configuration says of a server.
    fn locked(&self, config: &Path, name: &DependencyName) -> Result<Option<Pin>, PinError> {
        let lock = self.locks.read(config)?;
        Ok(lock.and_then(|lock| lock.servers.get(name).cloned()))
    }
}

/// Returns the tools that a launch is compared with: those that were accepted of it, else those of the newest launch.
fn accepted_tools<'a>(
    accepted: &'a AcceptedServer,
    own: Option<&'a AcceptedLaunch>,
) -> Option<&'a BTreeMap<String, ToolPin>> {
    let own = own.and_then(|own| own.pin.tools.as_ref());
    own.or_else(|| accepted.newest_tools())
}

/// Returns what a lock said of the tools that were something else, or were missing, when a server was first used.
///
/// They are compared with like those that were accepted; they were not accepted, so that no model is shown them.
fn reviewed_tools<'a>(
    accepted: &'a AcceptedServer,
    own: Option<&'a AcceptedLaunch>,
) -> Option<&'a BTreeMap<String, ToolPin>> {
    let own = own.filter(|own| own.pin.tools.is_some());
    own.map(|own| &own.reviewed)
        .or_else(|| accepted.newest_reviewed())
}
