//! Hints are commands that people and models paste: whatever a configuration chose, they stay one command.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::faults::{Fault, inject};
use crate::support::have;
use crate::support::registry::Registry;
use crate::support::world::{World, stderr, texts};

/// Names that a careless quotation turns into a command of their own.
const TRAPS: [&str; 7] = [
    "x'; touch marker; '",
    "x; touch marker",
    "$(touch marker)",
    "`touch marker`",
    "x\ntouch marker\n",
    "\"; touch marker; \"",
    "x\u{1b}[2J\\'; touch marker; '",
];

/// Pastes a hint into shells: whole, line by line, and each part that follows a colon.
fn assert_inert(hint: &str) {
    let visible = |found: char| found == '\n' || !found.is_control();
    assert!(hint.chars().all(visible), "{hint:?}");
    let mut pieces = vec![hint];
    pieces.extend(hint.lines());
    pieces.extend(hint.match_indices(": ").map(|(at, _)| &hint[at + 2..]));
    // Nothing that a hint names besides these needs to run, and no network is needed.
    let programs = tempfile::tempdir().unwrap();
    for program in ["ls", "mkdir", "mv", "rm", "touch"] {
        std::os::unix::fs::symlink(which::which(program).unwrap(), programs.path().join(program)).unwrap();
    }
    for piece in pieces {
        for shell in ["sh", "bash"]
            .into_iter()
            .filter_map(|shell| which::which(shell).ok())
        {
            let folder = tempfile::tempdir().unwrap();
            let pasted = Command::new(&shell)
                .args(["-c", piece])
                .current_dir(folder.path())
                .env("HOME", folder.path())
                .env("PATH", programs.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let trapped = folder.path().join("marker").exists();
            assert!(
                !trapped,
                "{} ran more than one command: {piece:?}: {pasted:?}",
                shell.display()
            );
        }
    }
}

/// The hint of a failed command, or of a note.
fn hint_of(output: &Output) -> String {
    let said = stderr(output);
    let (_, hint) = said
        .split_once("hint: ")
        .unwrap_or_else(|| panic!("no hint: {said}"));
    hint.trim_end().to_owned()
}

fn hint_in(result: &Value) -> String {
    let texts = texts(result);
    let hint = texts.iter().find_map(|text| text.strip_prefix("hint: "));
    hint.unwrap_or_else(|| panic!("no hint: {result}")).to_owned()
}

#[test]
fn a_hint_that_creates_a_working_directory_is_one_command() {
    for trap in TRAPS {
        let world = World::new();
        let mut server = world.fake(&[]);
        server["cwd"] = json!(trap);
        world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } }));
        let mut client = world.legacy();
        let hint = hint_in(&client.call("fake__echo", &json!({})));
        assert_inert(&hint);
        let made = world.path(trap).is_dir();
        assert!(made, "a pasted hint does what it says: {hint}");
    }
}

#[test]
fn a_hint_about_a_configuration_file_is_one_command() {
    if !have(&["cc"]) {
        return;
    }
    for trap in TRAPS {
        let world = World::new();
        std::fs::create_dir(world.path(trap)).unwrap();
        assert_inert(&hint_of(&world.run(&["--config", trap, "rules"])));

        let file = world.path(trap).join(".pml.json");
        let written = file.to_str().unwrap();
        let mut command = world.command(&["--config", written, "allow", "a:b"]);
        let rename = Fault {
            call: "rename",
            nth: 1,
            errno: Some(rustix::io::Errno::ACCESS),
            path: &file,
        };
        // A line break in a path separates faults; the other traps are enough here.
        if trap.contains('\n') {
            continue;
        }
        inject(&mut command, &[rename]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_inert(&hint_of(&output));
    }
}

#[test]
fn a_hint_about_the_state_of_the_user_is_one_command() {
    for trap in TRAPS {
        let world = World::new();
        let state = world.home().join(trap);
        world.set("XDG_STATE_HOME", state.to_str().unwrap());
        let fake = crate::support::fake_server();
        let added = world.run(&["add", "--yes", "fake", "--", fake.to_str().unwrap()]);
        assert!(added.status.success(), "{}", stderr(&added));
        set_back(&state.join("pml"));
        assert_inert(&hint_of(&world.run(&["list"])));

        std::fs::write(state.join("pml/workflows.db"), "not a database, but long enough").unwrap();
        assert_inert(&hint_of(&world.run(&["pending"])));
        std::fs::remove_dir_all(&state).unwrap();
        std::fs::write(&state, "no directory").unwrap();
        assert_inert(&hint_of(&world.run(&["pending"])));
    }
}

/// Leaves what an older pml left, with an approval that cannot be read.
fn set_back(state: &Path) {
    std::fs::remove_dir_all(state).unwrap();
    std::fs::create_dir_all(state.join("approved")).unwrap();
    std::fs::write(state.join("approved/damaged.json"), "{").unwrap();
}

#[test]
fn a_hint_that_lifts_a_rule_is_one_command() {
    // Control characters are refused in patterns.
    for trap in TRAPS.into_iter().filter(|trap| !trap.contains(char::is_control)) {
        let pattern = format!("{{fake:*,{trap}}}");
        let world = World::with_fake(&json!({ "deny": [pattern] }), &[]);
        let mut client = world.legacy();
        assert_inert(&hint_in(&client.call("fake__echo", &json!({}))));
        drop(client);

        let user = world.home().join(".config/pml");
        std::fs::create_dir_all(&user).unwrap();
        std::fs::rename(world.path(".pml.json"), user.join("pml.json")).unwrap();
        let said = stderr(&world.run(&["forget", &pattern]));
        let (_, command) = said.split_once("to forget it there: ").unwrap();
        assert_inert(command.trim_end());
    }
}

#[test]
fn a_hint_with_the_names_of_a_package_is_one_command() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    for (number, trap) in TRAPS.into_iter().enumerate() {
        let name = format!("trap{number}");
        let bins = json!({ "bin": { trap: "x.js", "zz": "y.js" } });
        let files = [
            ("x.js", "#!/usr/bin/env node\n"),
            ("y.js", "#!/usr/bin/env node\n"),
        ];
        registry.publish(&name, "1.0.0", &bins, &files);
        let world = World::new();
        std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
        world.configure(&json!({
            "permissions": { "allow": ["trap"] },
            "mcpServers": { "trap": { "command": "npx", "args": ["-y", format!("{name}@1.0.0")] } },
        }));
        let output = world.run(&["install"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_inert(&hint_of(&output));
    }
}
