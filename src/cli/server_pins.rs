//! What commands do with pins: what the user accepted of a server, and the lock beside its configuration.

use std::path::Path;
use std::sync::Arc;

use super::CommandContext;
use crate::config::{Files, Server};
use crate::loader::{Known, Plan};
use crate::permissions::writer::{self, FileEdit, FileKind, WriteError};
use crate::pins::{
    AcceptedError, AcceptedLaunch, AcceptedPins, AcceptedServer, LockFile, PackagePin, Pin, PinError,
    lock_path, read_lock,
};
use crate::protocol::DependencyName;

impl CommandContext {
    fn accepted_pins(&self) -> AcceptedPins {
        AcceptedPins::at(self.locations.pins())
    }

    /// Returns what the user accepted of a server.
    pub(super) fn accepted(
        &self,
        name: &DependencyName,
        server: &Server,
    ) -> Result<Option<Arc<AcceptedServer>>, AcceptedError> {
        self.accepted_pins().find(&server.source.file, name)
    }

    /// Records that the user accepts a server as it started just now.
    pub(super) fn accept(
        &self,
        server: &Server,
        plan: &Plan,
        package: Option<PackagePin>,
        known: &Known,
    ) -> Result<Pin, AcceptedError> {
        let pin = Pin {
            launch: server.launch.words(),
            package,
            tools: Some(known.tool_pins()),
        };
        let accepted = AcceptedLaunch {
            launch: plan.digest().clone(),
            pin: pin.clone(),
            clients: vec![known.client_kind()],
        };
        let pins = self.accepted_pins();
        pins.update(&server.source.file, plan.dependency(), |known| {
            known.with(accepted)
        })?;
        Ok(pin)
    }

    /// Forgets what the user accepted of a server.
    pub(super) fn forget_accepted(
        &self,
        name: &DependencyName,
        server: &Server,
    ) -> Result<(), AcceptedError> {
        self.accepted_pins().forget(&server.source.file, name)
    }

    /// Changes the lock beside a configuration.
    pub(super) fn edit_lock(
        &self,
        config: &Path,
        change: impl Fn(LockFile) -> LockFile,
    ) -> Result<FileEdit, WriteError> {
        let files = self.files();
        writer::edit_lock(&lock_path(config), kind_of(&files, config), change)
    }
}

/// Returns what stands in the lock beside a configuration; an empty one where there is none.
pub(super) fn lock_beside(config: &Path) -> Result<LockFile, PinError> {
    Ok(read_lock(&lock_path(config))?.unwrap_or_default())
}

/// Tells whose file a configuration is.
pub(super) fn kind_of<'a>(files: &'a Files, config: &Path) -> FileKind<'a> {
    if config == files.user {
        FileKind::User
    } else {
        FileKind::Pml(files)
    }
}
