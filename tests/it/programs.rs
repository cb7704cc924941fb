//! Programs come from the user's own `PATH`, never from inside the project.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::support::have;
use crate::support::registry::Registry;
use crate::support::world::{World, texts};

/// Every program that an installation or a start could take from a `PATH`.
const PROGRAMS: [&str; 9] = [
    "npm",
    "npx",
    "node",
    "uv",
    "uvx",
    "python",
    "python3",
    "python3.11",
    "sh",
];

/// Puts a program into `folder` that writes `marker` and fails.
fn plant(folder: &Path, program: &str, marker: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let script = format!("#!/bin/sh\n: > '{}'\nexit 1\n", marker.display());
    std::fs::write(folder.join(program), script).unwrap();
    std::fs::set_permissions(folder.join(program), PermissionsExt::from_mode(0o755)).unwrap();
}

/// A world whose project has shims for every program at the head of the `PATH`.
fn planted(folder: &str, rest: &str) -> World {
    let world = World::new();
    for program in PROGRAMS {
        plant(&world.path(folder), program, &world.home().join("marker"));
    }
    world.set("PATH", &format!("{}:{rest}", world.path(folder).display()));
    world
}

fn assert_untouched(world: &World) {
    assert!(
        !world.home().join("marker").exists(),
        "a program of the project ran"
    );
}

#[test]
fn a_program_inside_the_project_is_not_used_to_install() {
    if !have(&["node", "npm", "uv"]) {
        return;
    }
    let registry = Registry::start();
    let manifest = json!({ "bin": "hello.js" });
    registry.publish(
        "hello",
        "1.0.0",
        &manifest,
        &[("hello.js", "#!/usr/bin/env node\n")],
    );
    let path = std::env::var("PATH").unwrap();
    for folder in [".venv/bin", "venv/bin", "node_modules/.bin", "tools/bin", "."] {
        let world = planted(folder, &path);
        std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
        world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
        world.configure(&json!({ "mcpServers": {
            "js": { "command": "npx", "args": ["hello@1.0.0"] },
            "py": { "command": "uvx", "args": ["hello==1.0"] },
        }}));
        let output = world.run(&["install", "--yes", "js"]);
        assert!(output.status.success(), "{folder}: {output:?}");
        // The registry has no such Python package; asking it takes uv and a Python.
        let output = world.run(&["install", "--yes", "py"]);
        assert_eq!(output.status.code(), Some(2), "{folder}: {output:?}");
        assert_untouched(&world);
    }
}

#[test]
fn a_project_is_recognised_wherever_pml_is_started_in_it() {
    if !have(&["node", "npm"]) {
        return;
    }
    let config = json!({ "mcpServers": { "js": { "command": "npx", "args": ["hello@1.0.0"] } } });
    let install = |world: &World, at: &str, arguments: &[&str]| {
        let output = world
            .command(arguments)
            .current_dir(world.home().join(at))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("`hello@1.0.0` needs `npm`, which is not on the PATH outside the project"),
            "{said}"
        );
        assert_untouched(world);
    };
    // Below the file, with the shims beside it.
    let world = planted(".venv/bin", "/nowhere");
    world.configure(&config);
    std::fs::create_dir_all(world.path("deep/below")).unwrap();
    install(&world, "project/deep/below", &["install", "--yes"]);
    // Elsewhere, with the file given.
    std::fs::create_dir(world.home().join("elsewhere")).unwrap();
    install(
        &world,
        "elsewhere",
        &["install", "--yes", "--config", "../project/.pml.json"],
    );
    world.set("CLAUDE_PROJECT_DIR", world.project().to_str().unwrap());
    install(&world, "elsewhere", &["install", "--yes"]);
    // In a part of a repository whose root holds the shims.
    let world = planted(".venv/bin", "/nowhere");
    std::fs::create_dir_all(world.path("part")).unwrap();
    std::fs::create_dir(world.path(".git")).unwrap();
    world.write("part/.pml.json", &config.to_string());
    install(&world, "project/part", &["install", "--yes"]);
    // Through a link that hides it.
    let world = planted("tools", "/nowhere");
    world.configure(&config);
    std::os::unix::fs::symlink(world.path("tools"), world.home().join("bin")).unwrap();
    world.set("PATH", world.home().join("bin").to_str().unwrap());
    install(&world, "project", &["install", "--yes"]);
}

#[test]
fn a_bare_command_means_the_users_own_program() {
    let world = planted(".venv/bin", &std::env::var("PATH").unwrap());
    let users = world.home().join("bin");
    std::fs::create_dir(&users).unwrap();
    std::os::unix::fs::symlink(crate::support::fake_server(), users.join("python3")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", world.path(".venv/bin").display(), users.display());
    world.set("PATH", &path);
    let permissions = json!({ "allow": ["*"] });
    world.configure(&json!({ "permissions": permissions, "mcpServers": {
        "own": { "command": "python3", "env": { crate::support::MARK: world.mark() } },
        "theirs": { "command": "only-here" },
    }}));
    plant(
        &world.path(".venv/bin"),
        "only-here",
        &world.home().join("marker"),
    );
    let mut client = world.legacy();
    let answered = client.call("own__echo", &json!({ "text": "hi" }));
    assert_ne!(answered["isError"], true, "{answered}");
    let refused = client.call("theirs__connect", &json!({}));
    let said = texts(&refused).join("\n");
    assert!(
        said.contains("`only-here` is on the PATH only inside the project"),
        "{said}"
    );
    assert_untouched(&world);
}
