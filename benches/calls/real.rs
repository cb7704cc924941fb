//! Two real servers from npm: how fast a managed install starts, and what pml adds to a call of a Node server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;

use crate::Effort;
use crate::home::Home;
use crate::peer::{Call, Link, Peer};
use crate::process;
use crate::statistics::median;

/// What is started.
pub(crate) const FILESYSTEM: &str = "@modelcontextprotocol/server-filesystem@2026.8.31";
/// What is called.
pub(crate) const EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";

/// Starts of each kind.
const STARTS: usize = 11;
/// Rounds of calls, and calls in each.
const ROUNDS: usize = 10;
const CALLS: usize = 100;

/// From the start of a process to the answer of its first call, in medians.
#[derive(Debug)]
pub(crate) struct Started {
    /// `npx -y`, its cache warm.
    pub(crate) npx: Duration,
    /// `pml stdio`, the package installed; pml's own start counts.
    pub(crate) pml: Duration,
    /// `node` on the installed program.
    pub(crate) node: Duration,
}

/// One call of `echo`, in medians.
#[derive(Debug)]
pub(crate) struct Echoed {
    pub(crate) direct: Duration,
    pub(crate) pml: Duration,
}

/// What real servers showed.
#[derive(Debug)]
pub(crate) struct Real {
    pub(crate) started: Started,
    pub(crate) echoed: Echoed,
}

/// Measures both; `None` where there is no npm.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Option<Real>> {
    let mut npm = process::command("npm");
    npm.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !npm.status().is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let npx = |package: &str, argument: &str| json!({ "command": "npx", "args": ["-y", package, argument] });
    let home = Home::with_servers(&[
        ("files".to_owned(), npx(FILESYSTEM, ".")),
        ("everything".to_owned(), npx(EVERYTHING, "stdio")),
    ])?;
    Ok(Some(Real {
        started: starts(&home, effort)?,
        echoed: echoes(&home, effort)?,
    }))
}

fn starts(home: &Home, effort: Effort) -> anyhow::Result<Started> {
    let read = |tool: &str| Call::new(tool, r#"{"path":"a.txt"}"#);
    let npx = || {
        let mut npx = home.program("npx");
        npx.args(["-y", FILESYSTEM, "."]).stderr(Stdio::null());
        first_call(npx, &read("read_text_file"))
    };
    let pml = || first_call(home.pml(), &read("files__read_text_file"));
    // The first of each installs, and fills the cache.
    npx()?;
    pml()?;
    let program = installed(home.path(), "server-filesystem/dist/index.js")?;
    let node = || first_call(node(home, &program, "."), &read("read_text_file"));
    let (mut by_npx, mut by_pml, mut by_node) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds(STARTS) {
        by_npx.push(npx()?);
        by_pml.push(pml()?);
        by_node.push(node()?);
    }
    Ok(Started {
        npx: median(&by_npx),
        pml: median(&by_pml),
        node: median(&by_node),
    })
}

fn echoes(home: &Home, effort: Effort) -> anyhow::Result<Echoed> {
    let echo = |tool: &str| Call::new(tool, r#"{"message":"hello"}"#);
    let mut through = Peer::start(home.pml(), Link::Sockets)?;
    through.open()?;
    // Installs it.
    through.check(&echo("everything__echo"), "hello")?;
    let program = installed(home.path(), "server-everything/dist/index.js")?;
    let mut direct = Peer::start(node(home, &program, "stdio"), Link::Sockets)?;
    direct.open()?;
    direct.check(&echo("echo"), "hello")?;
    let (mut by_direct, mut by_pml) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds(ROUNDS) {
        by_direct.push(median_call(&mut direct, &echo("echo"))?);
        by_pml.push(median_call(&mut through, &echo("everything__echo"))?);
    }
    Ok(Echoed {
        direct: median(&by_direct),
        pml: median(&by_pml),
    })
}

fn median_call(peer: &mut Peer, call: &Call) -> anyhow::Result<Duration> {
    let mut samples = Vec::new();
    for _ in 0..CALLS {
        samples.push(peer.call(call)?);
    }
    Ok(median(&samples))
}

/// How long it takes from the start to the answer of a first call.
fn first_call(command: Command, call: &Call) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let mut peer = Peer::start(command, Link::Sockets)?;
    peer.open()?;
    peer.check(call, "hello")?;
    Ok(begin.elapsed())
}

fn node(home: &Home, program: &Path, argument: &str) -> Command {
    let mut node = home.program("node");
    node.arg(program).arg(argument).stderr(Stdio::null());
    node
}

/// Finds what pml has installed; what npx keeps lies elsewhere.
fn installed(home: &Path, end: &str) -> anyhow::Result<PathBuf> {
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)?.flatten() {
            let path = entry.path();
            if path.ends_with(end) {
                return Ok(path);
            }
            if entry.file_type()?.is_dir() && !path.ends_with(".npm") {
                folders.push(path);
            }
        }
    }
    Err(anyhow::anyhow!("pml has not installed it")).with_context(|| format!("no `{end}`"))
}
