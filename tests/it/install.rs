//! Packages reach the store whole, unchanged and without running, or not at all.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use pml::config::{Environment, Locations};
use pml::loader::{Content, InstallError, InstallStep, Installed, Packages, Plan, plan};
use serde_json::{Value, json};

use crate::support::packages::sha256;
use crate::support::registry::{Body, Registry, archive, integrity};
use crate::support::world::World;
use crate::support::{DEADLINE, eventually, have};

/// Prints where it lies: what a test needs to know of an executed file.
const WHERE: &str = "#!/usr/bin/env node\nconsole.log(require('fs').realpathSync(__filename));\n";

fn executable() -> Value {
    json!({ "bin": "where.js" })
}

/// A world with one server `hello`, started by `npx`, whose user has `registry`.
fn world(registry: &Registry, line: &str, more: &Value) -> World {
    let world = World::new();
    declare(&world, line, more);
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world
}

fn declare(world: &World, line: &str, more: &Value) {
    let mut words = line.split(' ');
    let mut server = json!({ "command": words.next(), "args": words.collect::<Vec<_>>() });
    server
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    world.write(
        ".pml.json",
        &json!({ "permissions": { "allow": ["hello"] }, "mcpServers": { "hello": server } }).to_string(),
    );
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn assert_installs(world: &World) -> Value {
    let output = world.run(&["install", "--json"]);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()[0].clone()
}

fn assert_refuses(world: &World, reason: &str) {
    let output = world.run(&["install"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains(reason),
        "{reason:?} is not in {}",
        text(&output)
    );
    assert_nothing_installed(world);
    assert_eq!(below(world, "temporary"), Vec::<PathBuf>::new());
}

fn below(world: &World, folder: &str) -> Vec<PathBuf> {
    let path = world.home().join(".local/share/pml").join(folder);
    std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

fn assert_nothing_installed(world: &World) {
    for ecosystem in ["store/npm", "store/pypi"] {
        assert_eq!(below(world, ecosystem), Vec::<PathBuf>::new());
    }
    assert_eq!(installed(world), None);
}

/// What a proxy in this world stands on.
fn opened(world: &World) -> (Packages, Plan) {
    let path = std::env::var("PATH").unwrap();
    let environment = Environment::new(
        [("HOME", world.home().to_str().unwrap()), ("PATH", &path)],
        world.project(),
    );
    let locations = Locations::of(&environment).unwrap();
    let config = pml::config::check(&world.path(".pml.json"), &world.read(".pml.json")).unwrap();
    let name = "hello".parse().unwrap();
    let plan = plan(&name, &config.servers[&name], &environment).unwrap();
    let files = pml::config::Files::new(world.path(".pml.json"), &locations);
    let release_age = pml::proxy::release_age(files.clone());
    let history = pml::proxy::history(&locations, files);
    (
        Packages::new(&locations, &environment, history, release_age),
        plan,
    )
}

/// What a proxy in this world would start.
fn installed(world: &World) -> Option<Installed> {
    let (packages, plan) = opened(world);
    packages.installed(&plan).unwrap()
}

/// Runs the installed file as a server would be: in the project.
fn executed(world: &World) -> PathBuf {
    let installed = installed(world).unwrap();
    let output = Command::new(&installed.program)
        .args(&installed.leading)
        .env_clear()
        .current_dir(world.project())
        .output()
        .unwrap();
    let file = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    assert!(
        file.starts_with(installed.root.canonicalize().unwrap()),
        "{} was executed",
        file.display()
    );
    file
}

#[test]
fn what_runs_is_the_stores_file_whatever_the_project_holds() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    registry.publish("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let world = world(&registry, "npx -y hello@1.0.0", &json!({}));
    let evil = "#!/usr/bin/env node\nrequire('fs').writeFileSync('evil', '');\n";
    for folder in ["node_modules/hello", "node_modules/.bin"] {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    world.write(
        "node_modules/hello/package.json",
        r#"{"name":"hello","version":"1.0.0","bin":"where.js"}"#,
    );
    world.write("node_modules/hello/where.js", evil);
    for program in ["node", "npm"] {
        world.write(&format!("node_modules/.bin/{program}"), evil);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(world.path(&format!("node_modules/.bin/{program}")), mode).unwrap();
    }
    world.write(".npmrc", "registry=http://127.0.0.1:9/\n");
    world.write("package.json", r#"{"scripts":{"preinstall":"touch evil"}}"#);
    world.write("evil.js", evil);
    world.set("NODE_OPTIONS", "--require ./evil.js");
    world.set("npm_config_registry", "http://127.0.0.1:9/");
    let path = format!(
        "{}:.:{}",
        world.path("node_modules/.bin").display(),
        std::env::var("PATH").unwrap()
    );
    world.set("PATH", &path);

    let outcome = assert_installs(&world);
    assert_eq!(outcome["version"], "1.0.0");
    assert!(executed(&world).ends_with("node_modules/hello/where.js"));
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.0.0")), 1);
    assert!(!world.path("evil").exists());
}

#[test]
fn install_scripts_run_only_where_they_are_allowed() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let mut manifest = executable();
    manifest["scripts"] = json!({ "postinstall": "node -e \"require('fs').writeFileSync('ran', '')\"" });
    registry.publish("hello", "1.0.0", &manifest, &[("where.js", WHERE)]);
    for (allowed, ran) in [(json!({}), false), (json!({ "allowScripts": true }), true)] {
        let world = world(&registry, "npx hello@1.0.0", &allowed);
        // Allowed by its declaration, and accepted by the person.
        let output = world.run(&["install", "--yes"]);
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(executed(&world).with_file_name("ran").exists(), ran, "{allowed}");
    }
}

#[test]
fn what_is_not_pinned_to_a_registry_is_refused() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let dependency = |spec: &str| {
        let mut manifest = executable();
        manifest["dependencies"] = json!({ "other": spec });
        manifest
    };
    registry.publish("other", "1.0.0", &json!({}), &[]);
    let tarball = format!("{}other/-/other-1.0.0.tgz", registry.url());
    let specs = [
        "git+http://127.0.0.1:9/x.git",
        "github:a/b",
        "file:../x",
        &tarball,
    ];
    for (number, spec) in specs.iter().enumerate() {
        let version = format!("1.0.{number}");
        registry.publish("hello", &version, &dependency(spec), &[("where.js", WHERE)]);
        assert_refuses(
            &world(&registry, &format!("npx hello@{version}"), &json!({})),
            "hello",
        );
    }
}

#[test]
fn an_npm_that_fetches_from_anywhere_does_not_get_its_way() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    registry.publish("other", "1.0.0", &json!({}), &[]);
    let mut manifest = executable();
    manifest["dependencies"] = json!({ "other": format!("{}other/-/other-1.0.0.tgz", registry.url()) });
    registry.publish("hello", "1.0.0", &manifest, &[("where.js", WHERE)]);
    let world = world(&registry, "npx hello@1.0.0", &json!({}));
    // An older npm does not know these options; pml's own look at the lock must do.
    let npm = which::which("npm").unwrap();
    let script = format!(
        "#!/bin/sh\nfor word; do shift; case $word in --allow-*) ;; *) set -- \"$@\" \"$word\" ;; esac; done\nexec {} \"$@\"\n",
        npm.display()
    );
    let older = world.home().join("older");
    std::fs::create_dir(&older).unwrap();
    std::fs::write(older.join("npm"), script).unwrap();
    std::fs::set_permissions(
        older.join("npm"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    world.set(
        "PATH",
        &format!("{}:{}", older.display(), std::env::var("PATH").unwrap()),
    );
    assert_refuses(&world, "its dependency `other` does not come from a registry");
    assert_eq!(registry.hits(&Registry::tarball("other", "1.0.0")), 1);
}

#[test]
fn other_content_than_the_registry_promises_is_refused() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let whole = archive("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let promised = integrity(&whole);
    let other = archive("hello", "1.0.0", &executable(), &[("where.js", "evil")]);
    registry.publish_as("hello", "1.0.0", &executable(), Body::Whole(other), &promised);
    assert_refuses(&world(&registry, "npx hello@1.0.0", &json!({})), "EINTEGRITY");
    registry.publish_as("hello", "1.0.0", &executable(), Body::Cut(whole), &promised);
    assert_refuses(&world(&registry, "npx hello@1.0.0", &json!({})), "hello@1.0.0");
    assert_refuses(
        &world(&registry, "npx hello@1.0.1", &json!({})),
        "the registry has no `hello@1.0.1`",
    );
    assert_refuses(
        &world(&registry, "npx absent@1.0.0", &json!({})),
        "the registry has no `absent@1.0.0`",
    );
    let nowhere = world(&registry, "npx hello@1.0.0", &json!({}));
    std::fs::write(
        nowhere.home().join(".npmrc"),
        "registry=http://127.0.0.1:9/\nfetch-retries=0\n",
    )
    .unwrap();
    assert_refuses(&nowhere, "cannot reach the registry for `hello@1.0.0`");
}

#[test]
fn a_recorded_version_whose_content_changes_is_refused() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    registry.publish("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let world = world(&registry, "npx hello@1.0.0", &json!({}));
    assert_installs(&world);
    std::fs::remove_dir_all(world.home().join(".local/share/pml/store")).unwrap();
    std::fs::remove_dir_all(world.home().join(".cache/pml")).unwrap();
    registry.publish("hello", "1.0.0", &executable(), &[("where.js", "evil")]);
    assert_refuses(&world, "EINTEGRITY");
    // Without its lock it is resolved anew, and is still not what was recorded.
    std::fs::remove_dir_all(world.home().join(".local/share/pml/frozen")).unwrap();
    assert_refuses(&world, "`hello@1.0.0` has changed: expected sha512-");
}

#[test]
fn an_install_that_is_stopped_leaves_nothing_that_looks_installed() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let whole = archive("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let tarball = Registry::tarball("hello", "1.0.0");
    let world = world(&registry, "npx hello@1.0.0", &json!({}));
    for (count, signal) in [rustix::process::Signal::KILL, rustix::process::Signal::TERM]
        .into_iter()
        .enumerate()
    {
        registry.publish_as("hello", "1.0.0", &executable(), Body::Endless, &integrity(&whole));
        let mut child = world
            .command(&["install"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the download begins", DEADLINE, || {
            registry.hits(&tarball) > count
        });
        assert!(!below(&world, "temporary").is_empty());
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        assert!(!child.wait().unwrap().success());
        #[cfg(target_os = "linux")]
        eventually("the installer is gone too", DEADLINE, || {
            working_below(world.home()).is_empty()
        });
        assert_nothing_installed(&world);
    }
    let promised = integrity(&whole);
    registry.publish_as("hello", "1.0.0", &executable(), Body::Whole(whole), &promised);
    assert_installs(&world);
    executed(&world);
    assert_eq!(below(&world, "temporary"), Vec::<PathBuf>::new());
}

/// The processes whose working directory lies below `folder`.
#[cfg(target_os = "linux")]
fn working_below(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|process| process.path());
    processes
        .filter(|process| {
            std::fs::read_link(process.join("cwd")).is_ok_and(|directory| directory.starts_with(&folder))
        })
        .collect()
}

#[test]
fn processes_that_install_the_same_package_at_once_install_it_once() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    registry.publish("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let world = world(&registry, "npx hello@1.0.0", &json!({}));
    let children: Vec<_> = (0..4)
        .map(|_| {
            world
                .command(&["install"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.0.0")), 1);
    assert_eq!(below(&world, "store/npm").len(), 1);
}

#[test]
fn calls_that_install_the_same_package_at_once_share_one_outcome() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let whole = archive("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let promised = integrity(&whole);
    let world = world(&registry, "npx hello@1.0.0", &json!({}));
    let (packages, plan) = opened(&world);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let together = |integrity: Option<&str>| {
        let expected = &Content {
            integrity: integrity.map(str::to_owned),
            ..Content::default()
        };
        let steps = Mutex::new(Vec::new());
        let note = |step: InstallStep| steps.lock().unwrap().push(step);
        let (packages, plan) = (&packages, &plan);
        let install = || packages.install(plan, expected, &note);
        let outcomes = runtime.block_on(async { tokio::join!(install(), install(), install()) });
        (<[_; 3]>::from(outcomes), steps.into_inner().unwrap())
    };
    let tarball = Registry::tarball("hello", "1.0.0");

    registry.publish_as(
        "hello",
        "1.0.0",
        &executable(),
        Body::Cut(whole.clone()),
        &promised,
    );
    let (failed, _) = together(None);
    assert!(failed.iter().all(Result::is_err));
    assert_eq!(registry.hits(&tarball), 1);

    registry.publish_as("hello", "1.0.0", &executable(), Body::Whole(whole), &promised);
    let (refused, _) = together(Some("sha512-shown"));
    assert!(
        refused
            .iter()
            .all(|outcome| matches!(outcome, Err(InstallError::Changed { .. })))
    );
    assert_nothing_installed(&world);

    let (done, mut steps) = together(Some(&promised));
    let expected = installed(&world);
    assert!(expected.is_some());
    assert!(done.into_iter().all(|outcome| outcome.ok() == expected));
    steps.sort();
    assert_eq!(
        steps,
        [
            InstallStep::Waiting,
            InstallStep::Waiting,
            InstallStep::Downloading,
            InstallStep::Verifying,
            InstallStep::Activating,
        ]
    );
    assert_eq!(below(&world, "store/npm").len(), 1);
}

#[test]
fn a_floating_version_stays_what_it_was_until_it_is_uninstalled() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    registry.publish("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let world = world(&registry, "npx hello", &json!({}));
    assert_eq!(assert_installs(&world)["version"], "1.0.0");
    registry.publish("hello", "1.10.0", &executable(), &[("where.js", WHERE)]);
    registry.publish("hello", "1.9.0", &executable(), &[("where.js", WHERE)]);
    assert_eq!(assert_installs(&world)["version"], "1.0.0");
    let output = world.run(&["uninstall", "hello"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_nothing_installed(&world);
    declare(&world, "npx hello@^1.0.0", &json!({}));
    assert_eq!(assert_installs(&world)["version"], "1.10.0");
}

#[test]
fn which_executable_runs_is_never_guessed() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let several = json!({ "bin": { "one": "where.js", "two": "two.js" } });
    registry.publish(
        "hello",
        "1.0.0",
        &several,
        &[("where.js", WHERE), ("two.js", WHERE)],
    );
    let world = world(&registry, "npx hello@1.0.0", &json!({}));
    let output = world.run(&["install"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output).contains("`hello@1.0.0` has several executables: `one`, `two`"),
        "{}",
        text(&output)
    );
    declare(&world, "npx --package=hello@1.0.0 two", &json!({}));
    assert_installs(&world);
    assert!(executed(&world).ends_with("two.js"));
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.0.0")), 1);
}

#[test]
fn a_missing_runtime_is_named_with_what_to_install() {
    let registry = Registry::start();
    for (line, told) in [
        ("npx hello@1.0.0", "install Node.js"),
        ("uvx hello==1.0", "install uv"),
    ] {
        let world = world(&registry, line, &json!({}));
        world.set("PATH", "/nowhere");
        assert_refuses(&world, told);
    }
}

#[test]
fn the_real_filesystem_server_is_installed_and_answers() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = World::new();
    declare(
        &world,
        "npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .",
        &json!({}),
    );
    let outcome = assert_installs(&world);
    assert!(outcome["integrity"].as_str().unwrap().starts_with("sha512-"));
    assert_answers(&installed(&world).unwrap(), &["."], &world.project());
}

#[test]
fn the_real_time_server_is_installed_and_answers_whatever_the_project_holds() {
    if !have(&["uv"]) {
        return;
    }
    let world = World::new();
    declare(&world, "uvx mcp-server-time==2026.10.19", &json!({}));
    let evil = "open('evil', 'w').close()\n";
    for module in ["mcp_server_time.py", "mcp.py", "sitecustomize.py"] {
        world.write(module, evil);
    }
    world.write("uv.toml", "index-url = \"http://127.0.0.1:9/simple\"\n");
    world.write(
        "pyproject.toml",
        "[tool.uv]\nindex-url = \"http://127.0.0.1:9/simple\"\n",
    );
    world.set("PYTHONPATH", world.project().to_str().unwrap());
    let outcome = assert_installs(&world);
    assert!(outcome["integrity"].as_str().unwrap().starts_with("sha256-"));
    assert_answers(&installed(&world).unwrap(), &[], &world.project());
    assert!(!world.path("evil").exists());
}

/// A world with one server `hello`, started by `uvx`, whose user has an index at `registry`.
fn python_world(registry: &Registry) -> World {
    let world = World::new();
    declare(&world, "uvx hello==1.0", &json!({}));
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    world
}

/// Publishes an archive of the Python package `hello`.
fn publish_python(registry: &Registry, file: &str, archive: &[u8], sha256: &str) {
    let page = format!("<a href=\"/files/{file}#sha256={sha256}\">{file}</a>");
    registry.serve("/simple/hello/", page.as_bytes());
    registry.serve(&format!("/files/{file}"), archive);
}

/// Packs a wheel that would write `evil` as soon as any Python of its environment starts.
fn wheel(evil: &Path) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hello-1.0-py3-none-any.whl");
    let script = "
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('hello.py', 'def main():\\n    print(__file__)\\n')
    wheel.writestr('hello.pth', 'import pathlib; pathlib.Path(' + repr(sys.argv[2]) + ').touch()\\n')
    wheel.writestr('hello-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: hello\\nVersion: 1.0\\n')
    wheel.writestr('hello-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('hello-1.0.dist-info/entry_points.txt', '[console_scripts]\\nhello = hello:main\\n')
    wheel.writestr('hello-1.0.dist-info/RECORD', 'hello.py,,\\nhello.pth,,\\n')
";
    let status = Command::new("python3")
        .arg("-c")
        .arg(script)
        .arg(&path)
        .arg(evil)
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::read(path).unwrap()
}

#[test]
fn nothing_of_a_python_package_runs_while_it_is_installed() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let world = python_world(&registry);
    let evil = world.path("evil");
    let wheel = wheel(&evil);
    publish_python(&registry, "hello-1.0-py3-none-any.whl", &wheel, &sha256(&wheel));
    let outcome = assert_installs(&world);
    assert_eq!(outcome["integrity"], format!("sha256-{}", sha256(&wheel)));
    assert!(!evil.exists());
    // It would have: a start runs it.
    executed(&world);
    assert!(evil.exists());
}

#[test]
fn a_python_package_that_must_be_built_or_has_other_content_is_refused() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let world = python_world(&registry);
    let evil = world.path("evil");
    let wheel = wheel(&evil);
    publish_python(&registry, "hello-1.0-py3-none-any.whl", &wheel, &sha256(b"other"));
    assert_refuses(&world, "Hash mismatch");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("hello-1.0")).unwrap();
    let setup = format!("open({:?}, 'w').close()\n", evil.to_str().unwrap());
    std::fs::write(folder.path().join("hello-1.0/setup.py"), setup).unwrap();
    let tar = Command::new("tar")
        .arg("-czC")
        .arg(folder.path())
        .arg("hello-1.0")
        .output()
        .unwrap();
    publish_python(&registry, "hello-1.0.tar.gz", &tar.stdout, &sha256(&tar.stdout));
    assert_refuses(&world, "no usable wheels");
    assert!(!evil.exists());
}

/// Starts a server from the store and asks it to initialize.
fn assert_answers(installed: &Installed, arguments: &[&str], directory: &Path) {
    use std::io::{BufRead as _, Write as _};
    let mut child = Command::new(&installed.program)
        .args(&installed.leading)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } },
    });
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{request}").unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let _ = child.kill();
    let _ = child.wait();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert!(answer["result"]["serverInfo"]["name"].is_string(), "{line}");
}

#[test]
fn an_installer_keeps_no_log_that_could_hold_the_credentials_of_a_registry() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    registry.publish("hello", "1.0.0", &executable(), &[("where.js", WHERE)]);
    let installs = world(&registry, "npx hello@1.0.0", &json!({}));
    assert_installs(&installs);
    let fails = world(&registry, "npx missing@1.0.0", &json!({}));
    assert!(!fails.run(&["install"]).status.success());
    for world in [installs, fails] {
        let logs = world
            .files()
            .into_iter()
            .filter(|file| file.to_string_lossy().contains("_logs/"));
        assert_eq!(logs.collect::<Vec<_>>(), Vec::<PathBuf>::new());
    }
}
