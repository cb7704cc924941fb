//! Compares servers with what the user accepted of them: before a start its package and the install scripts that it would
//! run, after it the definitions of its tools.
//!
//! What a server is when it is first used is remembered; from then on whatever differs is put to a person, also where a
//! rule allows the call. Until they accept it, a model sees the definitions that were accepted and calls of the tools
//! that differ are suspended; the other tools of the server run. A lock beside the configuration (`.pml.lock`) grants
//! nothing: it stands in for what was accepted where nothing was yet, so that what a team reviewed is what is compared.

mod acceptance;
mod judged_tools;
mod package;
mod scripts;

pub(super) use acceptance::ToolCheck;
pub(super) use judged_tools::JudgedTools;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use self::scripts::FoundScripts;
use crate::config::{Locations, Server};
use crate::disk::Stamp;
use crate::pins::{
    AcceptedLaunch, AcceptedPins, AcceptedServer, LockFile, Pin, PinError, ToolPin, lock_path, read_lock,
};
use crate::protocol::DependencyName;

/// What the user accepted of every server, and what was found by comparing.
pub(super) struct ServerPins {
    accepted: Arc<AcceptedPins>,
    /// The locks that were read, as long as their files stay the same.
    locks: Mutex<HashMap<PathBuf, (Stamp, Arc<LockFile>)>>,
    /// What was found of install scripts.
    found_scripts: FoundScripts,
    /// What was last found of each server.
    judged: Mutex<HashMap<DependencyName, Arc<JudgedTools>>>,
}

impl ServerPins {
    pub(super) fn new(locations: &Locations) -> Self {
        Self {
            accepted: Arc::new(AcceptedPins::at(locations.pins())),
            locks: Mutex::default(),
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
        let path = lock_path(config);
        let stamp = Stamp::of(&path);
        if stamp == Stamp::Missing {
            return Ok(None);
        }
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, lock)) = locks.get(&path)
            && *seen == stamp
        {
            return Ok(lock.servers.get(name).cloned());
        }
        let lock = Arc::new(read_lock(&path)?.unwrap_or_default());
        locks.insert(path, (stamp, Arc::clone(&lock)));
        Ok(lock.servers.get(name).cloned())
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
