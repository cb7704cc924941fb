//! What pml is handed out as: archive, npm packages, wheel and crate, each made by its script and used as a newcomer would.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::world::World;
use crate::support::{DEADLINE, eventually, have, pml, sdk};

/// The registry on loopback that packages are published to.
struct Verdaccio {
    process: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Verdaccio {
    fn start() -> Self {
        // A dependency names a tag that not every registry has.
        let overrides = json!({ "node-fetch": "2.7.0" });
        let installed = sdk::npm_overriding("verdaccio", &["verdaccio@5.33.0"], &overrides);
        let program = installed.join("node_modules/verdaccio/bin/verdaccio");
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("http://127.0.0.1:{port}/");
        // No registry stands behind it: what it does not have does not exist.
        let config = format!(
            "storage: {0}/storage\nauth:\n  htpasswd:\n    file: {0}/htpasswd\npackages:\n  '**':\n    access: $all\n    publish: $all\nmax_body_size: 200mb\nlog: {{ type: stdout, format: json, level: error }}\n",
            folder.path().display()
        );
        std::fs::write(folder.path().join("config.yaml"), config).unwrap();
        let process = Command::new("node")
            .arg(program)
            .args(["--listen", &format!("127.0.0.1:{port}"), "--config"])
            .arg(folder.path().join("config.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let verdaccio = Self {
            process,
            address,
            _folder: folder,
        };
        eventually("the registry listens", DEADLINE, || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        verdaccio
    }

    /// Publishes the archives of a directory as a release does.
    fn publish(&self, home: &Path) -> Output {
        let script = root().join("dist/npm-publish.sh");
        let arguments = [home.as_os_str(), "--access=public".as_ref()];
        self.program(home, script.as_os_str())
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Runs npm against the registry alone, with a home of its own.
    fn npm(&self, home: &Path, arguments: &[&str]) -> Output {
        self.program(home, "npm".as_ref())
            .args(arguments)
            .output()
            .unwrap()
    }

    /// A program that finds the registry alone.
    fn program(&self, home: &Path, program: &OsStr) -> Command {
        let config = home.join("npmrc");
        let host = self.address.trim_start_matches("http:");
        std::fs::write(
            &config,
            format!("registry={}\n{host}:_authToken=anybody\n", self.address),
        )
        .unwrap();
        let mut command = Command::new(program);
        command
            .env("HOME", home)
            .env("npm_config_userconfig", config)
            .env("npm_config_cache", home.join("cache"))
            .env_remove("npm_config_registry")
            .env_remove("NPM_CONFIG_REGISTRY")
            .current_dir(home)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Verdaccio {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn succeeded(output: &Output, what: &str) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where a release is built.
const REPOSITORY: &str = "https://github.example/owner/name";

/// Runs a script of `dist/` on the binary that the tests drive; returns the files that it names.
fn packed(script: &str, out: &Path) -> Vec<PathBuf> {
    let output = Command::new(root().join("dist").join(script))
        .env("PML_BINARY", pml())
        .env("PML_DIST_OUT", out)
        .env("PML_REPOSITORY", REPOSITORY)
        // As the tests were built: nothing is built again.
        .env("PML_PROFILE", "dev")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    succeeded(&output, script).lines().map(PathBuf::from).collect()
}

/// Runs the demo of an installed pml in an empty home.
fn shows_the_demo(program: &Path) {
    let world = World::new();
    let output = world
        .program(program)
        .args(["demo", "--answer", "continue"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = succeeded(&output, "the demo");
    assert!(shown.contains("Hello"), "{shown}");
    let version = world.program(program).arg("--version").output().unwrap();
    assert_eq!(
        succeeded(&version, "--version"),
        concat!("pml ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn npm_installs_the_binary_of_this_platform_without_any_script() {
    if !have(&["node", "npm", "bash", "python3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let archives = packed("npm.sh", folder.path());
    let registry = Verdaccio::start();
    assert_eq!(archives.len(), 2, "{archives:?}");
    succeeded(&registry.publish(folder.path()), "npm-publish.sh");
    let prefix = folder.path().join("prefix");
    let prefix_argument = format!("--prefix={}", prefix.display());
    let installed = registry.npm(
        folder.path(),
        &[
            "install",
            "--global",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            &prefix_argument,
            "pml-mcp",
        ],
    );
    succeeded(&installed, "npm install");
    shows_the_demo(&prefix.join("bin/pml"));
    for manifest in ["pml-mcp", "pml-mcp/node_modules/pml-mcp-linux-x64"] {
        let file = prefix
            .join("lib/node_modules")
            .join(manifest)
            .join("package.json");
        let Ok(text) = std::fs::read_to_string(&file) else {
            // Another platform has another name.
            continue;
        };
        let manifest: Value = serde_json::from_str(&text).unwrap();
        assert!(manifest.get("scripts").is_none(), "{manifest}");
        // Without it npm refuses a provenance.
        let repository = json!({ "type": "git", "url": format!("git+{REPOSITORY}.git") });
        assert_eq!(manifest["repository"], repository, "{manifest}");
    }

    // The wrapper without its binary says what is missing.
    let wrapper = prefix.join("lib/node_modules/pml-mcp");
    std::fs::remove_dir_all(wrapper.join("node_modules")).unwrap();
    let refused = Command::new(prefix.join("bin/pml")).arg("demo").output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(
        told.contains("is not installed") && told.contains("hint: "),
        "{told}"
    );
}

#[test]
fn the_platforms_are_published_before_the_wrapper_and_a_pre_release_is_no_default() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let stub = folder.path().join("npm");
    let script = format!(
        "#!/bin/sh\nfor word; do printf '%s ' \"${{word##*/}}\"; done >> {0}\necho >> {0}\n",
        log.display()
    );
    std::fs::write(&stub, script).unwrap();
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    for (version, tag) in [("0.2.0-rc.1", "--tag next "), ("0.2.0", "")] {
        let packages = tempfile::tempdir().unwrap();
        for name in ["", "linux-x64-musl-", "darwin-arm64-"] {
            std::fs::write(packages.path().join(format!("pml-mcp-{name}{version}.tgz")), "").unwrap();
        }
        let _ = std::fs::remove_file(&log);
        let published = Command::new(root().join("dist/npm-publish.sh"))
            .arg(packages.path())
            .arg("--provenance")
            .env("PATH", &path)
            .output()
            .unwrap();
        succeeded(&published, "npm-publish.sh");
        let expected = ["darwin-arm64-", "linux-x64-musl-", ""]
            .map(|name| format!("publish {tag}--provenance pml-mcp-{name}{version}.tgz \n"));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), expected.concat());
    }
}

#[test]
fn the_wrapper_of_npm_is_transparent_to_a_client() {
    if !have(&["node", "npm", "bash", "python3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let modules = folder.path().join("node_modules");
    for archive in packed("npm.sh", folder.path()) {
        let name = archive.file_name().unwrap().to_str().unwrap();
        let name = name.trim_end_matches(concat!("-", env!("CARGO_PKG_VERSION"), ".tgz"));
        let place = modules.join(name);
        std::fs::create_dir_all(&place).unwrap();
        let unpacked = Command::new("tar")
            .args(["-xzf"])
            .arg(&archive)
            .args(["--strip-components=1", "-C"])
            .arg(&place)
            .output()
            .unwrap();
        succeeded(&unpacked, "tar");
    }
    let world = World::new();
    let mut process = world
        .program(Path::new("node"))
        .arg(modules.join("pml-mcp/pml.js"))
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    std::io::Write::write_all(&mut stdin, format!("{ping}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(process.stdout.as_mut().unwrap())
        .read_line(&mut answer)
        .unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "pml", "{answer}");
    drop(stdin);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

// It has cargo build the binary once more, under the other tests that drive it.
#[test]
#[ignore = "replaces the binary that other tests run; run it alone"]
fn a_wheel_brings_the_binary() {
    if !have(&["uv", "bash", "python3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wheels = packed("wheel.sh", folder.path());
    let [wheel] = wheels.as_slice() else {
        panic!("{wheels:?}")
    };
    let environment = folder.path().join("environment");
    let uv = |arguments: &[&str]| {
        let output = Command::new("uv")
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        succeeded(&output, "uv")
    };
    uv(&["venv", environment.to_str().unwrap()]);
    let python = environment.join("bin/python");
    uv(&[
        "pip",
        "install",
        "--no-index",
        "--python",
        python.to_str().unwrap(),
        wheel.to_str().unwrap(),
    ]);
    shows_the_demo(&environment.join("bin/pml"));

    // The command that the README names, with the folder in place of an index, in an empty home.
    let world = World::new();
    world.set("PATH", &std::env::var("PATH").unwrap());
    let index = folder.path().to_str().unwrap();
    let demo = world
        .program(Path::new("uvx"))
        .args([
            "--no-index",
            "--find-links",
            index,
            "--from",
            "pml-mcp",
            "pml",
            "demo",
        ])
        .args(["--answer", "continue"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = succeeded(&demo, "uvx --from pml-mcp pml demo");
    assert!(shown.contains("Hello"), "{shown}");
}

// It has cargo build the binary once more, like the test of the wheel.
#[test]
#[ignore = "replaces the binary that other tests run; run it alone"]
fn the_packed_crate_builds_by_itself() {
    let target = pml().parent().and_then(Path::parent).unwrap();
    let packed = Command::new(env!("CARGO"))
        .args(["package", "--locked", "--offline", "--allow-dirty"])
        // What the tests were built with is not built again.
        .env("CARGO_TARGET_DIR", target)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&packed.stderr).into_owned();
    succeeded(&packed, "cargo package");
    let unpacked = format!("package/pml-mcp-{}", env!("CARGO_PKG_VERSION"));
    assert!(
        told.contains("Verifying") && target.join(unpacked).join("src/main.rs").is_file(),
        "{told}"
    );
    // What was built of the packed sources alone.
    shows_the_demo(pml());
}

#[test]
fn an_archive_has_the_binary_with_its_papers_and_its_bill_of_materials_is_valid() {
    if !have(&["uv", "bash", "python3", "sha256sum", "man"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = packed("archive.sh", folder.path());
    let [archive, bill, sums] = files.as_slice() else {
        panic!("{files:?}")
    };
    let checked = Command::new("sha256sum")
        .args(["--check", "--strict"])
        .arg(sums)
        .current_dir(folder.path())
        .output();
    succeeded(&checked.unwrap(), "sha256sum");
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder.path())
        .output()
        .unwrap();
    succeeded(&unpacked, "tar");
    let name = archive
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .trim_end_matches(".tar.gz");
    let inside = folder.path().join(name);
    shows_the_demo(&inside.join("pml"));
    for paper in [
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "completions/pml.zsh",
    ] {
        assert!(inside.join(paper).is_file(), "{paper}");
    }

    let bill: Value = serde_json::from_slice(&std::fs::read(bill).unwrap()).unwrap();
    assert_eq!(crate::sbom::complaint(&bill), None);
    let linked = |name: &str| {
        let components = bill["components"].as_array().unwrap();
        components.iter().any(|component| component["name"] == name)
    };
    assert!(linked("tokio") && linked("rusqlite"));
    assert!(!linked("proptest"), "what only tests use is not handed out");

    let pages: Vec<PathBuf> = std::fs::read_dir(inside.join("man"))
        .unwrap()
        .map(|page| page.unwrap().path())
        .collect();
    assert!(pages.iter().any(|page| page.ends_with("pml-run.1")), "{pages:?}");
    assert!(
        !pages.iter().any(|page| page.ends_with("pml-supervise.1")),
        "{pages:?}"
    );
    for page in pages {
        let shown = Command::new("man")
            .args(["--warnings", "-l"])
            .arg(&page)
            .env("MANWIDTH", "80")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&shown.stderr).into_owned();
        assert!(
            succeeded(&shown, "man").contains("SYNOPSIS"),
            "{}",
            page.display()
        );
        assert_eq!(told, "", "{}", page.display());
    }
}

#[test]
fn the_crate_has_what_it_needs_and_nothing_of_the_tests() {
    let listed = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let listed = succeeded(&listed, "cargo package");
    let files: Vec<&str> = listed.lines().collect();
    for needed in [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "src/main.rs",
        "schema/pml.schema.json",
        "LICENSE-MIT",
    ] {
        assert!(files.contains(&needed), "{needed}: {files:?}");
    }
    // Every file that the sources include is there.
    let is_source = |file: &&&str| Path::new(file).extension().is_some_and(|end| end == "rs");
    for file in files.iter().filter(is_source) {
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        for included in text
            .split("include_str!(\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            let path = root()
                .join(file)
                .parent()
                .unwrap()
                .join(included)
                .canonicalize()
                .unwrap();
            let path = path
                .strip_prefix(root().canonicalize().unwrap())
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            assert!(files.contains(&path.as_str()), "{file} includes {path}");
        }
    }
    assert!(
        !files
            .iter()
            .any(|file| file.starts_with("tests/") || file.starts_with("docs/")),
        "{files:?}"
    );
}
