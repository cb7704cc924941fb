//! No installer runs what an archive brought, whatever that is and wherever it would lie.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::have;
use crate::support::packages::{SERVER_JS, SERVER_PY, publish_wheels, tarball, wheel};
use crate::support::registry::Registry;
use crate::support::world::{World, asks, json_of, stderr, stdout, texts};

/// The code of a module that writes `marker`, also where there is no standard library.
fn evil(marker: &Path) -> String {
    format!(
        "import posix\nposix.close(posix.open({:?}, posix.O_CREAT | posix.O_WRONLY))\n",
        marker.to_str().unwrap()
    )
}

/// A world with the Python server `hello`, from a wheel with `files` beside the server.
fn world(registry: &Registry, files: impl Fn(&Path) -> Vec<(String, String)>) -> World {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "ask": ["*"] },
        "mcpServers": { "hello": { "command": "uvx", "args": ["hello==1.0"] } },
    }));
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    let files = files(&marker(&world));
    let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let all: Vec<_> = files.chain([("hello.py", SERVER_PY)]).collect();
    publish_wheels(registry, "hello", &[("1.0", &wheel("hello", "1.0", &[], &all))]);
    world
}

fn marker(world: &World) -> PathBuf {
    world.home().join("marker")
}

/// The files below `*.data/data` that put a standard library of the wheel in place of the environment's.
fn library_of_its_own(marker: &Path) -> Vec<(String, String)> {
    let data = "hello-1.0.data/data";
    let mut files = vec![(format!("{data}/pyvenv.cfg"), "home = env/bin\n".to_owned())];
    for minor in 9..16 {
        for module in [
            "os.py",
            "encodings/__init__.py",
            "codecs.py",
            "io.py",
            "abc.py",
            "lib-dynload/x",
        ] {
            files.push((format!("{data}/lib/python3.{minor}/{module}"), evil(marker)));
        }
    }
    files
}

#[test]
fn a_wheel_with_a_standard_library_of_its_own_does_not_run_while_it_is_installed() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let world = world(&registry, library_of_its_own);
    let output = world.run(&["install", "--yes"]);
    assert!(!marker(&world).exists(), "code of the wheel ran");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("`hello==1.0` is refused: one of its archives brings `"),
        "{said}"
    );
    let store = world.home().join(".local/share/pml/store/pypi");
    assert_eq!(std::fs::read_dir(store).into_iter().flatten().count(), 0);
}

#[test]
fn a_wheel_that_writes_where_packages_do_not_belong_is_refused_by_the_name_of_the_file() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    for (file, named) in [
        ("pyvenv.cfg", "`pyvenv.cfg`"),
        ("lib/python3.11/os.py", "`lib/python3.11"),
        ("lib64/python3.11/encodings/__init__.py", "`lib/python3.11"),
        ("lib/python311.zip", "`lib/python311.zip`"),
        ("bin/pybuilddir.txt", "`bin/pybuilddir.txt`"),
        ("bin/activate.csh", "`bin/activate.csh`"),
        ("sitecustomize.py", "`sitecustomize.py`"),
    ] {
        let world = world(&registry, |marker| {
            vec![(format!("hello-1.0.data/data/{file}"), evil(marker))]
        });
        let output = world.run(&["install", "--yes"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{file}: {said}");
        assert!(
            said.contains(&format!("one of its archives brings {named}")),
            "{file}: {said}"
        );
        assert!(!marker(&world).exists(), "{file}");
    }
    // uv itself refuses a script of the interpreter's name; whoever does, the interpreter stays what it was.
    for file in ["data/bin/python", "scripts/python3", "data/bin/python3.11"] {
        let world = world(&registry, |marker| {
            let script = format!("#!/bin/sh\n: > '{}'\n", marker.display());
            vec![(format!("hello-1.0.data/{file}"), script)]
        });
        assert_eq!(world.run(&["install", "--yes"]).status.code(), Some(2), "{file}");
        assert!(!marker(&world).exists(), "{file}");
    }
    // What many packages bring is no harm.
    let world = world(&registry, |_| {
        let named = |file: &str| (format!("hello-1.0.data/{file}"), "#!python\n".to_owned());
        [
            "data/share/hello/x",
            "data/etc/hello.conf",
            "headers/hello.h",
            "scripts/python-hello",
            "data/lib/libx.so",
        ]
        .map(named)
        .to_vec()
    });
    let output = world.run(&["install", "--yes"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Files of a wheel that Python runs at every start.
fn at_start(marker: &Path) -> Vec<(String, String)> {
    let line = evil(marker).replace('\n', ";");
    vec![
        ("hello.pth".to_owned(), format!("{line}\n")),
        ("sitecustomize.py".to_owned(), evil(marker)),
    ]
}

const TOLD: &str = "code of the package runs at every start: `hello.pth`, `sitecustomize.py`";

#[test]
fn code_that_runs_at_every_start_is_shown_before_a_person_agrees() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let world = world(&registry, at_start);
    let files = json!(["hello.pth", "sitecustomize.py"]);
    let installed = json_of(&world.run(&["install", "--yes", "--json"]));
    assert_eq!(installed[0]["atStart"], files);
    assert_eq!(
        json_of(&world.run(&["list", "--json"]))["servers"][0]["atStart"],
        files
    );
    let listed = world.run(&["list"]);
    assert!(stderr(&listed).contains(TOLD), "{}", stderr(&listed));

    let mut client = world.legacy();
    let asked = client.call("hello__look", &json!({}));
    assert!(asks(&asked), "{asked}");
    assert_eq!(asked["approval_context"]["dependency"]["at_start"], files);
    assert!(texts(&asked).join("\n").contains(TOLD), "{asked}");
    let pending = world.run(&["pending"]);
    assert!(stdout(&pending).contains(TOLD), "{}", stdout(&pending));
    let mut dialogs = world.client();
    dialogs.initialize_with_forms();
    dialogs.send("tools/call", &json!({ "name": "hello__note", "arguments": {} }));
    let form = dialogs.notified("elicitation/create");
    assert!(
        form["params"]["message"].as_str().unwrap().contains(TOLD),
        "{form}"
    );
    // It would run: a start does.
    assert!(!marker(&world).exists());
    client.proceed("hello__look", &asked, &json!({ "approved": true }));
    assert!(marker(&world).exists());
}

#[test]
fn code_that_runs_at_every_start_is_told_with_the_first_result_where_it_was_not_known() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let world = world(&registry, at_start);
    let mut client = world.legacy();
    let asked = client.call("hello__look", &json!({}));
    let told = |result: &Value| texts(result).join("\n").contains(TOLD);
    assert!(asks(&asked) && !told(&asked), "{asked}");
    let first = client.proceed("hello__look", &asked, &json!({ "approved": true }));
    assert!(told(&first), "{first}");
    let second = client.call("hello__look", &json!({}));
    assert!(!told(&second), "{second}");
}

#[test]
fn nothing_of_an_npm_package_runs_while_it_is_installed() {
    use crate::support::registry::{Body, integrity};
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    let server = json!({ "command": "npx", "args": ["--package=hello@1.0.0", "hello"] });
    world.configure(&json!({ "mcpServers": { "hello": server } }));
    let marker = marker(&world);
    let touch = format!("#!/bin/sh\n: > '{}'\n", marker.display());
    let settings = format!(
        "script-shell={0}\nnode-options=--require={0}\nignore-scripts=false\n",
        marker.display()
    );
    let manifest = json!({
        "bin": { "hello": "server.js", "node": "evil", "npm": "evil", "sh": "evil", "node-gyp": "evil" },
        "bundleDependencies": ["inner"],
        "dependencies": { "inner": "1.0.0" },
    });
    let mut described = manifest.clone();
    described["name"] = "hello".into();
    described["version"] = "1.0.0".into();
    let inner = json!({ "name": "inner", "version": "1.0.0", "scripts": { "install": "node" } }).to_string();
    let archive = tarball(&[
        ("package/package.json", "file", &described.to_string()),
        ("package/server.js", "file", SERVER_JS),
        ("package/evil", "file", &touch),
        ("package/.npmrc", "file", &settings),
        ("package/binding.gyp", "file", "{}"),
        ("package/node_modules/inner/package.json", "file", &inner),
        ("package/node_modules/.bin/node", "file", &touch),
    ]);
    let promised = integrity(&archive);
    registry.publish_as("hello", "1.0.0", &manifest, Body::Whole(archive), &promised);
    let output = world.run(&["install", "--yes"]);
    assert!(!marker.exists(), "{output:?}");
    let settings = world.files().into_iter().filter(|file| file.ends_with(".npmrc"));
    let beside: Vec<_> = settings
        .filter(|file| file.components().count() < 8 && file.to_str() != Some(".npmrc"))
        .collect();
    assert_eq!(beside, Vec::<PathBuf>::new());
    assert!(output.status.success(), "{}", stderr(&output));
}
