//! `pml audit` finds that something is malicious, with each write failing once: its verdict is kept, or it says that it
//! is not, and the next audit keeps it.

use rustix::io::Errno;
use serde_json::{Value, json};

use super::{CALLS, FAULTS, age, assert_intact_history, leftovers};
use crate::support::faults::inject_nth;
use crate::support::have;
use crate::support::osv::OsvServer;
use crate::support::packages::publish_server;
use crate::support::registry::Registry;
use crate::support::world::{World, json_of, stderr, stdout, texts};

/// A user who has installed `hello`, and asks `osv` about it.
fn world(registry: &Registry, osv: &OsvServer) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    let folder = world.home().join(".config/pml");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = json!({ "advisories": { "url": osv.url(), "send": "all" } });
    std::fs::write(folder.join("pml.json"), settings.to_string()).unwrap();
    world.configure(&json!({
        "permissions": { "allow": ["hello"] },
        "mcpServers": { "hello": { "command": "npx", "args": ["hello@1.0.0"] } },
    }));
    json_of(&world.run(&["install", "--json"]));
    world
}

/// Whether the verdict is kept; a file that is there is whole.
fn is_kept(world: &World, told: &str) -> bool {
    let file = world.home().join(".local/state/pml/malicious/packages.json");
    let Ok(text) = std::fs::read_to_string(file) else {
        return false;
    };
    let written: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}: {told}"));
    assert_eq!(
        written["packages"],
        json!({ "npm:hello@1.0.0": "MAL-2026-1" }),
        "{told}"
    );
    true
}

/// Takes back what an audit before this one left.
fn forget(world: &World) {
    let _ = std::fs::remove_dir_all(world.home().join(".local/state/pml/malicious"));
    let _ = std::fs::remove_file(world.home().join(".cache/pml/advisories.json"));
}

fn meet(world: &World, nth: u32, errno: Option<Errno>) -> bool {
    forget(world);
    let mut command = world.command(&["audit"]);
    let met = inject_nth(&mut command, world.home(), nth, errno);
    let output = command.output().unwrap();
    let call = met.call();
    let told = format!(
        "{errno:?} at call {nth} ({}), {}: {}{}",
        call.as_deref().unwrap_or("none").trim_end(),
        output.status,
        stdout(&output),
        stderr(&output)
    );
    let kept = is_kept(world, &told);
    match output.status.code() {
        // Something is known, and what is malicious does not start any more.
        Some(1) => assert!(kept, "{told}"),
        Some(code) => assert!(code == 2 && (!kept || told.contains("did not confirm")), "{told}"),
        None => assert_eq!(errno, None, "{told}"),
    }
    assert_intact_history(world, &told);
    if errno.is_some() {
        assert_eq!(leftovers(world), Vec::<String>::new(), "{told}");
    }
    for file in leftovers(world) {
        age(&world.home().join(file));
    }
    let again = world.run(&["audit"]);
    assert_eq!(again.status.code(), Some(1), "{}: {told}", stderr(&again));
    assert!(is_kept(world, &told), "{told}");
    call.is_some()
}

#[test]
fn a_verdict_on_a_malicious_package_is_kept_or_missed_aloud_whichever_write_fails() {
    if !have(&["cc", "node", "npm"]) {
        return;
    }
    let (registry, osv) = (Registry::start(), OsvServer::start());
    publish_server(&registry, "1.0.0", &json!({}));
    let world = world(&registry, &osv);
    let advisory = json!({ "modified": "2026-01-01T00:00:00Z", "summary": "Malicious code in hello" });
    osv.advise("npm/hello@1.0.0", "MAL-2026-1", &advisory);
    for errno in FAULTS {
        let last = (1..CALLS).find(|nth| !meet(&world, *nth, errno));
        assert!(
            last.is_some_and(|last| last > 1),
            "{errno:?} met no call, or does not end"
        );
    }
    let refused = world.legacy().call("hello__look", &json!({}));
    assert!(texts(&refused).concat().contains("MAL-2026-1"), "{refused}");
}
