//! A home at each step between a question and a run, and the ways to change each part that its answer is bound to.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::packages::{SERVER_JS, files_below};
use crate::support::registry::{Body, Registry, archive, integrity};
use crate::support::world::{Client, World, asks, texts};
use crate::support::{DEADLINE, eventually};

/// Leaves the mark that none of the cases may leave.
pub(super) const MARK: &str = "require('fs').writeFileSync(process.env.HOME + '/mark', '');";

/// The moment of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// After the question and before its answer.
    Asked,
    /// After the answer and before the call is taken.
    Answered,
    /// After the installation and before the first start.
    Installed,
    /// Between two calls, while the server does not run.
    Stopped,
}

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The registry has other content under the same version.
    Tarball,
    /// The kept lock pins another dependency, under its old digest.
    KeptLockText,
    /// The kept lock is a whole one with another dependency.
    KeptLock,
    /// The record says that the package is another version.
    Record,
    /// The executable of the package, in the store.
    StoreFile,
    /// A file of a dependency, in the store, with its old size and time.
    StoreDependency,
    /// The description of the installation starts another file of it.
    Manifest,
    /// What the user accepted names another content.
    AcceptedPin,
    /// The lock beside the configuration names another content.
    LockFile,
    Arguments,
    Variables,
    Directory,
    CommandLine,
}

/// The versions that were approved, and those that an attacker would have in their place.
pub(super) struct Packages {
    registry: Registry,
    evil: Vec<u8>,
    /// A home with the approved version installed.
    installed: World,
    /// One with the lock of the other dependency.
    other: World,
}

pub(super) fn server(first: &str) -> String {
    let watches = format!(
        "if (process.argv.includes('--evil') || process.env.EVIL || process.cwd().endsWith('evil')) {MARK}\n\
         require('fs').writeFileSync(process.env.HOME + '/pid', String(process.pid));"
    );
    SERVER_JS.replacen('\n', &format!("\n{first}{watches}\n"), 1)
}

fn manifest() -> Value {
    json!({ "bin": "server.js", "dependencies": { "dep": "^1.0.0" } })
}

fn home(registry: &Registry) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({
        "permissions": { "ask": ["*"] },
        "mcpServers": { "hello": { "command": "npx", "args": ["hello@1.0.0"] } },
    }));
    world
}

fn declare_rule(world: &World, rule: &str) {
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    config["permissions"]["ask"] = json!([rule]);
    world.configure(&config);
}

fn data(world: &World) -> PathBuf {
    world.home().join(".local/share/pml")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    assert!(copied.unwrap().success());
}

impl Packages {
    pub(super) fn publish() -> Self {
        let registry = Registry::start();
        let dependency = |version: &str, text: &str| {
            registry.publish(
                "dep",
                version,
                &json!({ "main": "index.js" }),
                &[("index.js", text)],
            );
        };
        dependency("1.0.0", "module.exports = '1.0.0';");
        let other_file = format!("{MARK}\n");
        let files = |first: &str| [("server.js", server(first)), ("other.js", other_file.clone())];
        let publish = |version: &str, first: &str| {
            let files = files(first);
            let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
            let archive = archive("hello", version, &manifest(), &files);
            let body = Body::Whole(archive.clone());
            registry.publish_as("hello", version, &manifest(), body, &integrity(&archive));
            archive
        };
        publish("1.0.0", "");
        let installed = home(&registry);
        let locked = installed.run(&["lock"]);
        assert!(locked.status.success(), "{locked:?}");
        copy(&data(&installed), &installed.home().join("locked"));
        installed.run(&["install", "--yes"]);
        dependency("1.1.0", MARK);
        let other = home(&registry);
        assert!(other.run(&["lock"]).status.success());
        let evil = publish("6.6.6", MARK);
        Self {
            registry,
            evil,
            installed,
            other,
        }
    }

    /// A conversation that has come to a step, with what it was asked.
    pub(super) fn world_at(&self, step: Step) -> (World, Client, Value) {
        let world = home(&self.registry);
        world.write(".pml.lock", &self.installed.read(".pml.lock"));
        copy(&self.installed.home().join("locked"), &data(&world));
        let mut client = world.legacy();
        let asked = client.call("hello__look", &json!({}));
        assert!(asks(&asked), "{asked}");
        if step != Step::Asked {
            world.approve_oldest();
        }
        if matches!(step, Step::Installed | Step::Stopped) {
            copy(&data(&self.installed), &data(&world));
        }
        if step == Step::Stopped {
            let ran = client.call("hello__look", &json!({}));
            assert!(ran_as_approved(&ran), "{ran}");
            stop_server(&world);
        }
        (world, client, asked)
    }

    /// A conversation that asks under a rule for what no lock of a team names, with what it was asked.
    pub(super) fn unlocked(&self, rule: &str) -> (World, Client, Value) {
        let world = home(&self.registry);
        declare_rule(&world, rule);
        copy(&self.installed.home().join("locked"), &data(&world));
        let mut client = world.legacy();
        let asked = client.call("hello__look", &json!({}));
        assert!(asks(&asked), "{asked}");
        (world, client, asked)
    }

    /// A conversation in which a rule allows the server, at a step after its installation.
    pub(super) fn allowed_at(&self, step: Step) -> (World, Client) {
        let world = home(&self.registry);
        world.write(".pml.lock", &self.installed.read(".pml.lock"));
        copy(&data(&self.installed), &data(&world));
        assert!(world.run(&["allow", "hello"]).status.success());
        let mut client = world.legacy();
        if step == Step::Stopped {
            let ran = client.call("hello__look", &json!({}));
            assert!(ran_as_approved(&ran), "{ran}");
            stop_server(&world);
        }
        (world, client)
    }

    pub(super) fn tamper(&self, world: &World, part: Part) {
        let data = data(world);
        match part {
            Part::Tarball => {
                let promised = integrity(&self.evil);
                let body = Body::Whole(self.evil.clone());
                self.registry
                    .publish_as("hello", "1.0.0", &manifest(), body, &promised);
                let _ = std::fs::remove_dir_all(world.home().join(".cache/pml"));
            }
            Part::KeptLockText => {
                let other = read(&only(&self::data(&self.other).join("frozen")));
                edit(&only(&data.join("frozen")), |lock| {
                    lock["text"] = other["text"].clone();
                });
            }
            Part::KeptLock => {
                let other = only(&self::data(&self.other).join("frozen"));
                std::fs::copy(other, only(&data.join("frozen"))).unwrap();
            }
            Part::Record => edit(&only(&data.join("resolved")), |record| {
                record["version"] = json!("6.6.6");
                record["integrity"] = json!(integrity(&self.evil));
            }),
            Part::StoreFile => overwrite(&installation(world).join(SERVER), server(MARK).as_bytes()),
            Part::StoreDependency => {
                let path = installation(world).join("node_modules/dep/index.js");
                let before = std::fs::metadata(&path).unwrap();
                let mut text = format!("{MARK}\n");
                text.truncate(usize::try_from(before.len()).unwrap().max(MARK.len()));
                overwrite(&path, text.as_bytes());
                let file = std::fs::File::options().write(true).open(&path).unwrap();
                file.set_modified(before.modified().unwrap()).unwrap();
            }
            Part::Manifest => {
                let path = installation(world).join("pml-manifest.json");
                let text = std::fs::read_to_string(&path).unwrap();
                overwrite(&path, text.replace("server.js", "other.js").as_bytes());
            }
            Part::AcceptedPin => {
                let pins = world.home().join(".local/state/pml/pins");
                let files = files_below(&pins);
                let file = files
                    .iter()
                    .find(|file| Path::new(file).extension() == Some("json".as_ref()));
                edit(&pins.join(file.unwrap()), |accepted| {
                    accepted["launches"][0]["pin"]["package"]["integrity"] = json!(integrity(&self.evil));
                });
            }
            Part::LockFile => {
                let mut lock: Value = serde_json::from_str(&world.read(".pml.lock")).unwrap();
                lock["servers"]["hello"]["package"]["integrity"] = json!(integrity(&self.evil));
                world.write(".pml.lock", &serde_json::to_string_pretty(&lock).unwrap());
            }
            Part::Arguments => declare(world, &json!({ "args": ["hello@1.0.0", "--evil"] })),
            Part::Variables => declare(world, &json!({ "env": { "EVIL": "1" } })),
            Part::Directory => {
                std::fs::create_dir(world.path("evil")).unwrap();
                declare(world, &json!({ "cwd": "evil" }));
            }
            Part::CommandLine => {
                world.write("own.js", &server(MARK));
                declare(
                    world,
                    &json!({ "command": "node", "args": [world.path("own.js")] }),
                );
            }
        }
    }
}

/// The executable of the package, below its installation.
pub(super) const SERVER: &str = "node_modules/hello/server.js";

fn installation(world: &World) -> PathBuf {
    let store = data(world).join("store/npm");
    only(&store)
}

fn only(folder: &Path) -> PathBuf {
    let entries: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    assert_eq!(entries.len(), 1, "{}", folder.display());
    entries[0].path()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = read(path);
    change(&mut value);
    overwrite(path, value.to_string().as_bytes());
}

/// Overwrites a file that was protected against accidents.
fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn declare(world: &World, members: &Value) {
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    for (name, value) in members.as_object().unwrap() {
        config["mcpServers"]["hello"][name] = value.clone();
    }
    // In place of the old file, as every editor writes it.
    world.write("next.json", &config.to_string());
    std::fs::rename(world.path("next.json"), world.path(".pml.json")).unwrap();
}

/// Ends the server behind the back of pml.
fn stop_server(world: &World) {
    let id: i32 = std::fs::read_to_string(world.home().join("pid"))
        .unwrap()
        .parse()
        .unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    eventually("it is gone", DEADLINE, || {
        rustix::process::test_kill_process(id).is_err()
    });
}

/// Tells whether a call ran, with the dependency that was approved.
pub(super) fn ran_as_approved(result: &Value) -> bool {
    !asks(result) && texts(result).contains(&"dep 1.0.0")
}
