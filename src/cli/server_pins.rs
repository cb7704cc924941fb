//! What commands do with pins: what the user accepted of a server, and the lock beside its configuration.

use std::path::Path;
use std::sync::Arc;

use super::{CommandContext, output, person};
use crate::config::{Config, Files, Server};
use crate::history::{Record, Text};
use crate::loader::{Content, Loader, Plan};
use crate::permissions::Policy;
use crate::permissions::writer::{self, FileEdit, FileKind, WriteError};
use crate::pins::{
    AcceptedError, AcceptedPins, AcceptedServer, Change, LockFile, PackagePin, Pin, PinError, ToolNames,
    lock_path, read_lock,
};
use crate::protocol::{DependencyName, Digest};
use crate::proxy::{self, ServerPins};

/// What a server is held to by what the user accepted of it.
pub(super) enum Pinned {
    /// Nothing was accepted that would be compared.
    Free,
    /// To this content.
    To(Content),
    /// It is another version than was accepted.
    Changed,
}

impl CommandContext {
    /// Tells what the package of a server is held to.
    pub(super) fn pinned(
        &self,
        server: &Server,
        plan: &Plan,
        loader: &Loader,
    ) -> Result<Pinned, AcceptedError> {
        let accepted = self.accepted(plan.dependency(), server)?;
        let Some(accepted) = accepted else {
            return Ok(Pinned::Free);
        };
        let content = |package: &PackagePin| Content::of(package.clone());
        if let Some(own) = accepted.of(plan.digest()) {
            return Ok(own
                .pin
                .package
                .as_ref()
                .map_or(Pinned::Free, |package| Pinned::To(content(package))));
        }
        let before = accepted.latest().and_then(|latest| latest.pin.package.as_ref());
        let (Some(before), Some(package)) = (before, plan.package()) else {
            return Ok(Pinned::Free);
        };
        let resolved = loader.resolved(plan).map(|resolved| resolved.version);
        let version = resolved.unwrap_or_else(|| package.version().as_str().to_owned());
        Ok(
            if before.name == package.registry_title() && before.version == version {
                Pinned::To(content(before))
            } else {
                Pinned::Changed
            },
        )
    }

    pub(super) fn accepted_pins(&self) -> AcceptedPins {
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

    /// Returns what a launch is compared with: what was accepted of it, else of the newest, else its lock.
    pub(super) fn compared(&self, server: &Server, plan: &Plan) -> anyhow::Result<Option<Pin>> {
        let accepted = self.accepted(plan.dependency(), server)?;
        if let Some(pin) = accepted.and_then(|accepted| accepted.compared_with(plan.digest())) {
            return Ok(Some(pin));
        }
        Ok(lock_beside(&server.source.file)?
            .servers
            .remove(plan.dependency()))
    }

    /// Returns how a launch that is new differs from the one that was accepted last; from the lock where none was.
    pub(super) fn launch_change(&self, server: &Server, plan: &Plan) -> anyhow::Result<Option<Change>> {
        let pins = ServerPins::new(&self.locations);
        let change = pins.launch_change(server, plan, &self.environment)?;
        Ok(change.map(Change::Launch))
    }

    /// Returns the accepted tools of every server by their names.
    pub(super) fn tool_names(&self, config: &Config) -> ToolNames {
        self.accepted_pins().tool_names(&config.servers)
    }

    /// Prepares the rules of a configuration, with what is known of tools that only read.
    pub(super) fn policy(&self, config: &Config) -> Policy {
        let accepted = Arc::new(self.accepted_pins());
        let read_only = proxy::read_only_tools(&Arc::new(config.clone()), accepted, &self.environment);
        Policy::knowing(config, read_only)
    }

    /// Records that the person at this terminal accepted what they were shown.
    pub(super) fn note_accepted(&self, name: &DependencyName, of: &'static str, content: Digest) {
        self.history().note_now(&[Record::Accept {
            server: Text::of(name.as_str()),
            of,
            content,
            by: Text::of(&person::provenance().to_string()),
        }]);
    }

    /// Forgets what the user accepted of a server; tells whether there was any.
    pub(super) fn forget_accepted(
        &self,
        name: &DependencyName,
        server: &Server,
    ) -> Result<bool, AcceptedError> {
        self.accepted_pins().forget(&server.source.file, name)
    }

    /// Puts a server into the lock beside a configuration; a lock that cannot be written is told and costs nothing else.
    pub(super) fn put_into_lock(&self, config: &Path, name: &DependencyName, pin: &Pin) {
        let edited = self.edit_lock(config, |mut lock| {
            lock.servers.insert(name.clone(), pin.clone().shared());
            lock
        });
        say(edited);
    }

    /// Takes a server out of the lock beside a configuration, if it stands there.
    pub(super) fn take_out_of_lock(&self, config: &Path, name: &DependencyName) {
        if lock_path(config).exists() {
            say(self.edit_lock(config, |mut lock| {
                lock.servers.remove(name);
                lock
            }));
        }
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

fn say(edited: Result<FileEdit, WriteError>) {
    match edited {
        Ok(edited) => output::warn(&edited.durability),
        Err(error) => output::note(&crate::report::render_hinted(&error)),
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
