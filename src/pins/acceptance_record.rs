//! What the user accepted of each server, kept in their state directory: one file for each server of each configuration.
//!
//! A server that was started for the first time, or whose changes a person accepted, is remembered here; from then on
//! only what is remembered runs without a question. A file that cannot be read refuses: it may not be taken for a server
//! that was never seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{AcceptedScripts, LaunchSurroundings, Pin, ToolNames, ToolPin};
use crate::config::Server;
use crate::disk::{self, Stamp};
use crate::protocol::{DependencyName, Digest, Shown, ToolName, shell};
use crate::report::Hint;

/// How many launches of a server are remembered: the present one and those that a person may go back to.
const LAUNCHES: usize = 4;

/// How many kinds of clients are remembered of one launch: more than a person uses.
const CLIENTS: usize = 8;

/// Larger than the definitions that are learned of one server; a larger file was not written by pml.
const LONGEST_FILE: u64 = 64 << 20;

/// Everything that was accepted of one server of one configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcceptedServer {
    /// The configuration that declares it.
    file: PathBuf,
    /// Its name there.
    server: DependencyName,
    /// The launches that were accepted, the newest first.
    launches: Vec<AcceptedLaunch>,
    /// The install scripts that were accepted last; of whichever launch, and before it was first used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scripts: Option<AcceptedScripts>,
}

/// One launch of a server as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcceptedLaunch {
    /// The digest of what is launched.
    pub launch: Digest,
    /// What it was.
    pub pin: Pin,
    /// The kinds of clients that its tools were learned for: a server may list more to a client that can do more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Digest>,
    /// What the lock said of tools that were something else, or missing, at the first use: compared with, never shown to a
    /// model, since no person accepted it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reviewed: BTreeMap<String, ToolPin>,
    /// How it was declared beside its words; an older pml did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<LaunchSurroundings>,
}

impl AcceptedLaunch {
    /// Names a launch of which nothing is known yet but its declaration.
    #[must_use]
    pub fn new(launch: Digest, server: &Server) -> Self {
        Self {
            launch,
            pin: Pin {
                launch: server.launch.words(),
                ..Pin::default()
            },
            clients: Vec::new(),
            reviewed: BTreeMap::new(),
            surroundings: Some(LaunchSurroundings::of(server)),
        }
    }
}

impl AcceptedServer {
    /// Names a server of which nothing was accepted yet.
    #[must_use]
    pub fn new(file: &Path, server: &DependencyName) -> Self {
        Self {
            file: file.to_owned(),
            server: server.clone(),
            launches: Vec::new(),
            scripts: None,
        }
    }

    /// Returns what was accepted of exactly this launch.
    #[must_use]
    pub fn of(&self, launch: &Digest) -> Option<&AcceptedLaunch> {
        self.launches.iter().find(|accepted| accepted.launch == *launch)
    }

    /// Returns the tools that were accepted last, of whichever launch.
    #[must_use]
    pub fn newest_tools(&self) -> Option<&BTreeMap<String, ToolPin>> {
        let mut tools = self
            .launches
            .iter()
            .filter_map(|launch| launch.pin.tools.as_ref());
        tools.next()
    }

    /// Returns what a launch is compared with: what was accepted of it, else of the newest; tools that were never seen of
    /// that one are those that were accepted last.
    #[must_use]
    pub fn compared_with(&self, launch: &Digest) -> Option<Pin> {
        let own = self.of(launch).or_else(|| self.latest())?;
        let tools = own.pin.tools.as_ref().or_else(|| self.newest_tools());
        Some(Pin {
            tools: tools.cloned(),
            ..own.pin.clone()
        })
    }

    /// Tells whether a tool of a launch was accepted as one that only reads.
    #[must_use]
    pub fn is_read_only(&self, launch: &Digest, tool: &str) -> bool {
        let tools = self.of(launch).and_then(|own| own.pin.tools.as_ref());
        tools
            .and_then(|tools| tools.get(tool))
            .is_some_and(ToolPin::is_read_only)
    }

    /// Returns what a lock said of the other tools of that launch.
    #[must_use]
    pub fn newest_reviewed(&self) -> Option<&BTreeMap<String, ToolPin>> {
        let mut launches = self.launches.iter().filter(|launch| launch.pin.tools.is_some());
        launches.next().map(|launch| &launch.reviewed)
    }

    /// Returns what was accepted last.
    #[must_use]
    pub fn latest(&self) -> Option<&AcceptedLaunch> {
        self.launches.first()
    }

    /// Returns the install scripts that were accepted last.
    #[must_use]
    pub fn scripts(&self) -> Option<&AcceptedScripts> {
        self.scripts.as_ref()
    }

    /// Returns this with install scripts accepted, in place of those that were accepted before.
    #[must_use]
    pub fn with_scripts(mut self, scripts: AcceptedScripts) -> Self {
        self.scripts = Some(scripts);
        self
    }

    /// Returns this with a launch accepted, in place of what was accepted of it before.
    #[must_use]
    pub fn with(mut self, mut accepted: AcceptedLaunch) -> Self {
        self.launches.retain(|known| known.launch != accepted.launch);
        let surplus = accepted.clients.len().saturating_sub(CLIENTS);
        accepted.clients.drain(..surplus);
        self.launches.insert(0, accepted);
        self.launches.truncate(LAUNCHES);
        self
    }
}

/// Says why what was accepted of a server is not known or not kept.
#[derive(Debug, thiserror::Error)]
pub enum AcceptedError {
    /// The file cannot be read as what pml writes there.
    #[error(
        "cannot read what you accepted of `{server}`, in `{}`: {reason}",
        Shown::path(path)
    )]
    Unreadable {
        /// The server.
        server: DependencyName,
        /// The file.
        path: PathBuf,
        /// Why not, escaped.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot keep what you accepted of `{server}`, in `{}`", Shown::path(path))]
    Write {
        /// The server.
        server: DependencyName,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

impl Hint for AcceptedError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { path, .. } => format!(
                "to have its next start remembered anew, as if it were new: rm {}",
                shell::path(path)
            ),
            Self::Write { path, .. } => {
                let directory = path.parent().unwrap_or(path);
                format!("to see who may write there: ls -ld {}", shell::path(directory))
            }
        })
    }
}

/// The directory of what the user accepted.
#[derive(Debug)]
pub struct AcceptedPins {
    directory: PathBuf,
    read: Mutex<HashMap<PathBuf, (Stamp, Arc<AcceptedServer>)>>,
}

impl AcceptedPins {
    /// Names the directory; touches nothing.
    #[must_use]
    pub fn at(directory: PathBuf) -> Self {
        Self {
            directory,
            read: Mutex::default(),
        }
    }

    /// Returns what was accepted of a server; a file that was read before is read again only when it changed.
    pub fn find(
        &self,
        file: &Path,
        server: &DependencyName,
    ) -> Result<Option<Arc<AcceptedServer>>, AcceptedError> {
        let path = self.path(file, server);
        let stamp = Stamp::of(&path);
        let size = match stamp {
            Stamp::Missing => return Ok(None),
            Stamp::Unknown => 0,
            Stamp::Present { size, .. } => size,
        };
        if let Some(accepted) = self.known(&path, stamp) {
            return Ok(Some(accepted));
        }
        // Not under the lock: the thread that looks whether a file is known does not wait for this.
        let accepted = Arc::new(load(&path, size, file, server)?);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, read_meanwhile)) = read.get(&path)
            && *seen == stamp
        {
            return Ok(Some(Arc::clone(read_meanwhile)));
        }
        read.insert(path, (stamp, Arc::clone(&accepted)));
        Ok(Some(accepted))
    }

    /// Returns the configurations of which servers were accepted; reads files.
    #[must_use]
    pub fn configurations(&self) -> BTreeSet<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let texts = entries.filter_map(|entry| std::fs::read(entry.path()).ok());
        texts
            .filter_map(|text| serde_json::from_slice::<AcceptedServer>(&text).ok())
            .map(|accepted| accepted.file)
            .collect()
    }

    /// Tells whether what was accepted of a server is in memory as it is now, or is nothing.
    #[must_use]
    pub fn is_known(&self, file: &Path, server: &DependencyName) -> bool {
        let path = self.path(file, server);
        let stamp = Stamp::of(&path);
        stamp == Stamp::Missing || self.known(&path, stamp).is_some()
    }

    fn known(&self, path: &Path, stamp: Stamp) -> Option<Arc<AcceptedServer>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, accepted) = read.get(path)?;
        (*seen == stamp).then(|| Arc::clone(accepted))
    }

    /// Returns the accepted tools of servers by their names; reads files.
    ///
    /// What cannot be read is left out: the calls of that server say so.
    #[must_use]
    pub fn tool_names(&self, servers: &BTreeMap<DependencyName, Server>) -> ToolNames {
        let enabled = servers.iter().filter(|(_, server)| !server.disabled);
        let tools = enabled.flat_map(|(name, server)| {
            let accepted = self.look(&server.source.file, name);
            let tools = accepted.as_deref().and_then(AcceptedServer::newest_tools);
            let tools = tools.map(|tools| tools.keys().cloned().collect::<Vec<_>>());
            tools
                .unwrap_or_default()
                .into_iter()
                .map(move |tool| ToolName::new(name.clone(), tool))
        });
        tools.collect()
    }

    /// Returns what was accepted of a server without keeping it in memory: a look at all of them is rare.
    fn look(&self, file: &Path, server: &DependencyName) -> Option<Arc<AcceptedServer>> {
        let path = self.path(file, server);
        let stamp = Stamp::of(&path);
        let Stamp::Present { size, .. } = stamp else {
            return None;
        };
        match self.known(&path, stamp) {
            Some(accepted) => Some(accepted),
            None => load(&path, size, file, server).ok().map(Arc::new),
        }
    }

    /// Changes what is kept of a server, under the lock of the directory; waits for the disk.
    ///
    /// Another process may have accepted something meanwhile: `change` gets what stands there now.
    pub fn update(
        &self,
        file: &Path,
        server: &DependencyName,
        change: impl FnOnce(AcceptedServer) -> AcceptedServer,
    ) -> Result<Arc<AcceptedServer>, AcceptedError> {
        let path = self.path(file, server);
        let failed = |source| AcceptedError::Write {
            server: server.clone(),
            path: path.clone(),
            source,
        };
        disk::create_private_directory(&self.directory).map_err(failed)?;
        let lock = disk::open_lock(&self.directory.join(".lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let before = self.find(file, server)?;
        let known = before
            .as_deref()
            .cloned()
            .unwrap_or_else(|| AcceptedServer::new(file, server));
        let accepted = change(known);
        if before.as_deref() == Some(&accepted) {
            return Ok(before.unwrap_or_else(|| Arc::new(accepted)));
        }
        let text = serde_json::to_vec(&accepted).map_err(|error| failed(error.into()))?;
        disk::replace(&path, &text).map_err(failed)?;
        disk::sync_directory(&self.directory).map_err(failed)?;
        Ok(Arc::new(accepted))
    }

    /// Forgets what was accepted of a server, under the lock of the directory; waits for the disk. Tells whether there was any.
    ///
    /// A writer in another process that had read it before would bring it back without that lock.
    pub fn forget(&self, file: &Path, server: &DependencyName) -> Result<bool, AcceptedError> {
        let path = self.path(file, server);
        if Stamp::of(&self.directory) == Stamp::Missing {
            return Ok(false);
        }
        let removing = || {
            let lock = disk::open_lock(&self.directory.join(".lock"))?;
            lock.lock()?;
            let was_there = Stamp::of(&path) != Stamp::Missing;
            disk::remove_file(&path)?;
            disk::sync_directory(&self.directory)?;
            Ok(was_there)
        };
        removing().map_err(|source| AcceptedError::Write {
            server: server.clone(),
            path: path.clone(),
            source,
        })
    }

    fn path(&self, file: &Path, server: &DependencyName) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let key = Digest::of([b"pin", file.as_os_str().as_bytes(), server.as_str().as_bytes()]);
        let readable: String = server.as_str().chars().take(60).collect();
        self.directory
            .join(format!("{readable}-{}.json", &key.as_str()[..32]))
    }
}

/// Reads a file as what pml writes there about this server.
fn load(
    path: &Path,
    size: u64,
    file: &Path,
    server: &DependencyName,
) -> Result<AcceptedServer, AcceptedError> {
    let unreadable = |reason: &dyn std::fmt::Display| AcceptedError::Unreadable {
        server: server.clone(),
        path: path.to_owned(),
        reason: Shown::line(&reason.to_string()).to_string(),
    };
    if size > LONGEST_FILE {
        return Err(unreadable(&"it is too large"));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(&error))?;
    let accepted: AcceptedServer = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
    if accepted.file != file || accepted.server != *server {
        return Err(unreadable(&"it is about another server"));
    }
    Ok(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(name: &str, version: &str) -> AcceptedLaunch {
        AcceptedLaunch {
            launch: Digest::of([name]),
            pin: Pin {
                launch: vec![version.to_owned()],
                ..Pin::default()
            },
            clients: Vec::new(),
            reviewed: BTreeMap::new(),
            surroundings: None,
        }
    }

    #[test]
    fn what_is_forgotten_is_not_brought_back_by_a_writer_that_read_it_before() {
        let home = tempfile::tempdir().unwrap();
        let pins = || AcceptedPins::at(home.path().join("pins"));
        let (file, server) = (Path::new("/p/.pml.json"), "a".parse().unwrap());
        assert!(!pins().forget(file, &server).unwrap());
        pins()
            .update(file, &server, |known| known.with(launch("x", "1")))
            .unwrap();
        let forgetting = std::thread::scope(|scope| {
            let mut forgetting = None;
            pins()
                .update(file, &server, |known| {
                    let (started, begun) = std::sync::mpsc::channel();
                    let other = pins();
                    let (file, server) = (file, &server);
                    forgetting = Some(scope.spawn(move || {
                        started.send(()).unwrap();
                        other.forget(file, server)
                    }));
                    begun.recv().unwrap();
                    known.with(launch("y", "2"))
                })
                .unwrap();
            forgetting.unwrap().join().unwrap().unwrap()
        });
        assert!(forgetting);
        assert_eq!(pins().find(file, &server).unwrap(), None);
    }

    #[test]
    fn what_was_accepted_is_found_by_its_launch_and_by_other_processes() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (
            AcceptedPins::at(home.path().join("pins")),
            AcceptedPins::at(home.path().join("pins")),
        );
        let (file, server) = (Path::new("/p/.pml.json"), "a".parse().unwrap());
        assert_eq!(one.find(file, &server).unwrap(), None);
        one.update(file, &server, |known| known.with(launch("x", "1")))
            .unwrap();
        two.update(file, &server, |known| known.with(launch("y", "2")))
            .unwrap();
        let found = one.find(file, &server).unwrap().unwrap();
        assert_eq!(found.latest(), Some(&launch("y", "2")));
        assert_eq!(found.of(&Digest::of(["x"])), Some(&launch("x", "1")));
        assert_eq!(one.find(Path::new("/q/.pml.json"), &server).unwrap(), None);
        one.forget(file, &server).unwrap();
        assert_eq!(two.find(file, &server).unwrap(), None);
    }

    #[test]
    fn the_launches_that_are_remembered_have_a_limit() {
        let mut accepted = AcceptedServer::new(Path::new("/p"), &"a".parse().unwrap());
        for number in 0..3 * LAUNCHES {
            accepted = accepted.with(launch(&number.to_string(), "1"));
        }
        assert_eq!(accepted.launches.len(), LAUNCHES);
        assert_eq!(accepted.latest().unwrap().launch, Digest::of(["11"]));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_a_server_that_is_new() {
        let home = tempfile::tempdir().unwrap();
        let pins = AcceptedPins::at(home.path().join("pins"));
        let (file, server) = (Path::new("/p/.pml.json"), "a".parse().unwrap());
        pins.update(file, &server, |known| known.with(launch("x", "1")))
            .unwrap();
        let path = pins.path(file, &server);
        let handle = std::fs::File::options().write(true).open(&path).unwrap();
        handle.set_len(5).unwrap();
        let error = pins.find(file, &server).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot read what you accepted of `a`"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("rm "), "{error}");
        assert!(pins.update(file, &server, |known| known).is_err());
    }

    #[test]
    fn a_file_that_was_copied_to_the_name_of_another_server_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let pins = AcceptedPins::at(home.path().join("pins"));
        let place = |file: &str, server: &str| (PathBuf::from(file), server.parse().unwrap());
        let (file, server) = place("/p/.pml.json", "a");
        pins.update(&file, &server, |known| known.with(launch("x", "1")))
            .unwrap();
        let bytes = std::fs::read(pins.path(&file, &server)).unwrap();
        for (file, server) in [place("/p/.pml.json", "b"), place("/q/.pml.json", "a")] {
            disk::replace(&pins.path(&file, &server), &bytes).unwrap();
            let error = pins.find(&file, &server).unwrap_err().to_string();
            assert!(error.ends_with("it is about another server"), "{error}");
        }
    }

    #[test]
    fn a_file_is_read_again_when_it_changed_and_written_only_when_it_would_change() {
        let home = tempfile::tempdir().unwrap();
        let pins = AcceptedPins::at(home.path().join("pins"));
        let (file, server) = (Path::new("/p/.pml.json"), "a".parse().unwrap());
        let accept = || pins.update(file, &server, |known| known.with(launch("x", "1")));
        let accepted = accept().unwrap();
        let stamp = || Stamp::of(&pins.path(file, &server));
        let written = stamp();
        assert_eq!(accept().unwrap(), accepted);
        assert_eq!(stamp(), written);
        let found = || pins.find(file, &server).unwrap().unwrap();
        assert!(Arc::ptr_eq(&found(), &found()));
        let path = pins.path(file, &server);
        let handle = std::fs::File::options().write(true).open(&path).unwrap();
        handle.set_len(LONGEST_FILE).unwrap();
        let error = pins.find(file, &server).unwrap_err().to_string();
        assert!(!error.ends_with("it is too large"), "{error}");
        handle.set_len(LONGEST_FILE + 1).unwrap();
        let error = pins.find(file, &server).unwrap_err().to_string();
        assert!(error.ends_with("it is too large"), "{error}");
    }

    #[test]
    fn the_tools_accepted_last_are_those_of_the_newest_launch_that_knows_any() {
        let tools = |name: &str| {
            let definition = format!(r#"{{"name":"{name}"}}"#);
            let definition = serde_json::value::RawValue::from_string(definition).unwrap();
            BTreeMap::from([(name.to_owned(), ToolPin::of(&definition))])
        };
        let with_tools = |name: &str| {
            let mut accepted = launch(name, "1");
            accepted.pin.tools = Some(tools(name));
            accepted
        };
        let accepted = AcceptedServer::new(Path::new("/p"), &"a".parse().unwrap());
        assert_eq!(accepted.newest_tools(), None);
        let accepted = accepted
            .with(with_tools("old"))
            .with(with_tools("new"))
            .with(launch("unused", "1"));
        assert_eq!(accepted.newest_tools(), Some(&tools("new")));
        for (wanted, words, compared) in [
            ("old", "1", "old"),
            ("unused", "1", "new"),
            ("unknown", "1", "new"),
        ] {
            let pin = accepted.compared_with(&Digest::of([wanted])).unwrap();
            assert_eq!(
                (pin.launch, pin.tools),
                (vec![words.to_owned()], Some(tools(compared))),
                "{wanted}"
            );
        }
    }

    #[test]
    fn the_newest_kinds_of_clients_are_remembered_and_a_launch_once() {
        let client = |number: usize| Digest::of([number.to_string()]);
        let accepted = AcceptedLaunch {
            clients: (0..CLIENTS + 2).map(client).collect(),
            ..launch("x", "1")
        };
        let server = AcceptedServer::new(Path::new("/p"), &"a".parse().unwrap())
            .with(launch("x", "0"))
            .with(launch("y", "0"))
            .with(accepted.clone());
        let kept = AcceptedLaunch {
            clients: (2..CLIENTS + 2).map(client).collect(),
            ..accepted
        };
        assert_eq!(server.launches, [kept, launch("y", "0")]);
    }

    #[test]
    fn what_was_read_is_known_until_it_is_something_else() {
        let home = tempfile::tempdir().unwrap();
        let pins = || AcceptedPins::at(home.path().join("pins"));
        let (file, server) = (Path::new("/p/.pml.json"), "a".parse().unwrap());
        let (reader, writer) = (pins(), pins());
        assert!(reader.is_known(file, &server), "nothing was accepted");
        for version in ["1", "2"] {
            writer
                .update(file, &server, |known| known.with(launch("x", version)))
                .unwrap();
            assert!(!reader.is_known(file, &server), "{version}");
            reader.find(file, &server).unwrap();
            assert!(reader.is_known(file, &server), "{version}");
        }
        writer.forget(file, &server).unwrap();
        assert!(reader.is_known(file, &server));
    }

    #[test]
    fn the_tools_that_were_accepted_of_enabled_servers_are_named_and_their_configurations_found() {
        let home = tempfile::tempdir().unwrap();
        let pins = || AcceptedPins::at(home.path().join("pins"));
        let entry = |disabled: bool| serde_json::json!({ "command": "run", "disabled": disabled });
        let servers = serde_json::json!({ "one": entry(false), "off": entry(true), "new": entry(false) });
        let text = serde_json::json!({ "version": "0.1.0", "mcpServers": servers }).to_string();
        let file = Path::new("/p/.pml.json");
        let servers = crate::config::check(file, &text).unwrap().servers;
        let writer = pins();
        for (name, tool) in [("one", "read_file"), ("off", "write_file")] {
            let definition = serde_json::json!({ "name": tool });
            let definition = serde_json::value::to_raw_value(&definition).unwrap();
            let mut accepted = launch(name, "1");
            accepted.pin.tools = Some(BTreeMap::from([(tool.to_owned(), ToolPin::of(&definition))]));
            writer
                .update(file, &name.parse().unwrap(), |known| known.with(accepted))
                .unwrap();
        }
        let reader = pins();
        let named = |pins: &AcceptedPins| {
            let namesakes = pins.tool_names(&servers).beside(&"other".parse().unwrap());
            ["readFile", "writeFile"].map(|tool| namesakes.of(tool))
        };
        let expected = [Some("`one:read_file`".to_owned()), None];
        assert_eq!(named(&reader), expected);
        reader.find(file, &"one".parse().unwrap()).unwrap();
        assert_eq!(named(&reader), expected, "of what is in memory");
        assert_eq!(reader.configurations(), BTreeSet::from([file.to_owned()]));
    }
}
