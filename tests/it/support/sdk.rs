//! The official SDKs, installed once into the target directory by the first test that needs them.
//!
//! The versions are those that pml must interoperate with; a folder carries its mark only once it is complete.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::world::World;

/// Both lines of the TypeScript SDK, which live side by side, and the server that has every feature.
const TYPESCRIPT: [&str; 4] = [
    "@modelcontextprotocol/sdk@~1.32",
    "@modelcontextprotocol/client@~2.4",
    "@modelcontextprotocol/server@~2.4",
    "@modelcontextprotocol/server-everything@2026.8.31",
];

/// The file that says of what a folder is complete.
const COMPLETE: &str = "complete";

/// A line of the Python SDK.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Python {
    One,
    Two,
}

/// The folder that is kept between runs.
pub(crate) fn kept(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The interpreter of an environment that has a line of the Python SDK.
pub(crate) fn python(line: Python) -> PathBuf {
    match line {
        Python::One => python_with("python-1", "mcp>=1.30,<2"),
        Python::Two => python_with("python-2", "mcp==2.3.0"),
    }
}

/// The interpreter of an environment that has the official library of CycloneDX, with its validator.
pub(crate) fn cyclonedx() -> PathBuf {
    python_with("cyclonedx", "cyclonedx-python-lib[json-validation]>=11,<12")
}

/// The interpreter of an environment that has the official SDK of Slack, with its models of messages.
pub(crate) fn slack_sdk() -> PathBuf {
    python_with("slack-sdk", "slack_sdk==3.47.0")
}

/// The folder below which the official framework for apps of Slack is installed.
pub(crate) fn bolt() -> PathBuf {
    npm("bolt", &["@slack/bolt@5.1.0"])
}

fn python_with(name: &str, requirement: &str) -> PathBuf {
    let folder = once(name, requirement, |folder| {
        let environment = folder.join("environment");
        run(
            "uv",
            folder,
            &[OsStr::new("venv"), OsStr::new("--clear"), environment.as_os_str()],
        );
        let arguments = ["pip", "install", "--python"].map(OsStr::new);
        let more = [environment.as_os_str(), OsStr::new(requirement)];
        run("uv", folder, &[&arguments[..], &more].concat());
    });
    folder.join("environment/bin/python")
}

/// The folder below which both lines of the TypeScript SDK are installed.
pub(crate) fn typescript() -> PathBuf {
    npm("typescript", &TYPESCRIPT)
}

/// The folder below which packages of npm are installed; nothing of them runs meanwhile.
pub(crate) fn npm(name: &str, packages: &[&str]) -> PathBuf {
    npm_overriding(name, packages, &json!({}))
}

/// The same, with other versions of what the packages depend on.
pub(crate) fn npm_overriding(name: &str, packages: &[&str], overrides: &Value) -> PathBuf {
    once(name, &packages.join("\n"), |folder| {
        let manifest = json!({ "private": true, "overrides": overrides });
        std::fs::write(folder.join("package.json"), manifest.to_string()).unwrap();
        let options = ["install", "--ignore-scripts", "--no-audit", "--no-fund"];
        let arguments = options.iter().chain(packages).map(OsStr::new);
        run("npm", folder, &arguments.collect::<Vec<_>>());
    })
}

/// The program of the server that has every feature, which speaks every transport.
pub(crate) fn everything() -> PathBuf {
    typescript().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// Makes a folder complete, once for all threads and processes.
fn once(name: &str, wanted: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let folder = kept(name);
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let complete = folder.join(COMPLETE);
    if std::fs::read_to_string(&complete).is_ok_and(|found| found == wanted) {
        return folder;
    }
    make(&folder);
    std::fs::write(complete, wanted).unwrap();
    folder
}

fn run(program: &str, folder: &Path, arguments: &[&OsStr]) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the path of a script that drives an SDK.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/interop")
        .join(name)
}

/// Runs a script as a client of pml; returns what it says it saw.
pub(crate) fn seen(world: &World, program: &Path, name: &str, arguments: &[&str]) -> Value {
    let output = world
        .program(program)
        .arg(script(name))
        .args(arguments)
        .arg(super::pml())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"))
}
