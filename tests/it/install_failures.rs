//! Why a package is not there, in words that say what to do: each failure is one of a real npm or uv.

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::json;

use crate::support::have;
use crate::support::packages::sha256;
use crate::support::registry::{Body, Registry};
use crate::support::world::{World, stderr};

/// A world whose user has `registry`.
fn world(registry: &Registry) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    world
}

/// What `pml add` says of a failure, without what the installers said themselves.
fn refused(world: &World, words: &[&str]) -> String {
    let output = world.run(&[&["add", "--yes", "hello", "--"], words].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let told = said.split_once("\nerror: ").unwrap_or_else(|| panic!("{said}")).1;
    let own = told
        .lines()
        .enumerate()
        .filter(|(at, line)| *at < 2 || line.starts_with("hint: "));
    own.map(|(_, line)| line.trim()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_missing_dependency_is_named_and_not_the_package_that_needs_it() {
    let registry = Registry::start();
    let needs = json!({ "bin": "server.js", "dependencies": { "gone-dep": "^1.0.0" } });
    registry.publish(
        "hello",
        "1.0.0",
        &needs,
        &[("server.js", "#!/usr/bin/env node\n")],
    );
    assert_snapshot!(refused(&world(&registry), &["npx", "-y", "hello@1.0.0"]), @r"
    `hello` was not added: it could not be started
    caused by: `hello@1.0.0` cannot be installed: the registry has no `gone-dep@^1.0.0`, which it needs
    hint: take another version of it, or a registry that has all of it: the one of your .npmrc, uv.toml or pip.conf
    ");
    // The package itself is told as it was.
    assert_snapshot!(refused(&world(&registry), &["npx", "-y", "hello@9.0.0"]), @r"
    `hello` was not added
    caused by: the registry has no `hello@9.0.0`
    hint: check the name and the version that you typed, and add it again: pml add hello …
    ");
}

#[test]
fn a_native_module_that_is_missing_names_the_install_scripts() {
    let registry = Registry::start();
    let manifest = json!({ "bin": "server.js", "scripts": { "install": "node-gyp rebuild" } });
    let server = "#!/usr/bin/env node\nthrow new Error('Could not locate the bindings file. Tried:\\n → build/hello.node');\n";
    registry.publish("hello", "1.0.0", &manifest, &[("server.js", server)]);
    let said = refused(&world(&registry), &["npx", "-y", "hello@1.0.0"]);
    assert_snapshot!(said, @r#"
    `hello` was not added: it could not be started
    caused by: a part of it is missing that an install script builds, and install scripts did not run: it exited with code 1
    hint: to see each of these scripts and decide: pml add --allow-scripts hello -- npx -y hello@1.0.0
    "#);
}

#[test]
fn a_python_that_is_nowhere_is_what_is_missing() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let file = "hello-1.0-py3-none-any.whl";
    let page = format!(
        "<a href=\"/files/{file}#sha256={}\">{file}</a>",
        sha256(b"never fetched")
    );
    registry.serve("/simple/hello/", page.as_bytes());
    let said = refused(&world(&registry), &["uvx", "--python", "3.99", "hello==1.0"]);
    assert_snapshot!(said, @r"
    `hello` was not added: it could not be started
    caused by: `hello==1.0` needs Python 3.99, which is not on this machine and could not be fetched
    hint: uv embeds available Python downloads and may require an update to install new versions. Consider retrying on a newer version of uv.
    hint: to install it: uv python install 3.99, which fetches it from github.com; or leave out `--python 3.99`
    ");
}

#[test]
fn the_attempts_at_a_registry_that_does_not_answer_are_told() {
    let world = World::new();
    let npmrc = "registry=http://127.0.0.1:9/\nfetch-retries=2\nfetch-retry-mintimeout=10\nfetch-retry-maxtimeout=20\n";
    std::fs::write(world.home().join(".npmrc"), npmrc).unwrap();
    let mut command = world.command(&["add", "--yes", "hello", "--", "npx", "-y", "hello@1.0.0"]);
    // As a person has it: what is told is no matter of the log.
    let output = command.env_remove("PML_LOG").output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for attempt in [1, 2] {
        let told = format!(
            "note: the registry does not answer: GET http://127.0.0.1:9/hello attempt {attempt} failed with "
        );
        assert!(said.contains(&told), "{told}: {said}");
    }
    assert!(
        said.contains("cannot reach the registry for `hello@1.0.0`"),
        "{said}"
    );
    assert!(
        !said.contains("npm http fetch") && !said.contains("WARN"),
        "{said}"
    );
}

#[test]
fn a_registry_that_hangs_is_told_of_and_not_waited_for_without_end() {
    let registry = Registry::start();
    let host = registry.url().replace("http://", "").replace('/', "");
    for path in ["/hello", "/simple/hello/"] {
        registry.serve_as(path, Body::Silent);
    }
    let bound = Duration::from_mins(1);
    std::thread::scope(|scope| {
        let kinds = [
            ("npm", &["npx", "-y", "hello@1.0.0"][..]),
            ("uv", &["uvx", "hello==1.0.0"]),
        ];
        for (installer, words) in kinds.into_iter().filter(|(installer, _)| have(&[installer])) {
            let (registry, host) = (&registry, &host);
            scope.spawn(move || {
                let world = world(registry);
                // One attempt: how often it is asked is the user's to say, how long it may hang need not be.
                world.set("UV_HTTP_RETRIES", "0");
                let mut command = world.command(&[&["add", "--yes", "hello", "--"], words].concat());
                let begun = Instant::now();
                let output = command.env_remove("PML_LOG").output().unwrap();
                let said = stderr(&output);
                assert_eq!(output.status.code(), Some(2), "{said}");
                assert!(
                    begun.elapsed() < bound,
                    "{installer}: {:?}: {said}",
                    begun.elapsed()
                );
                let told = format!(
                    "note: still waiting for {host}: nothing new from `{installer}` for 10 seconds\n"
                );
                assert!(said.contains(&told), "{said}");
                assert!(said.contains("cannot reach the registry for `hello"), "{said}");
            });
        }
    });
}
