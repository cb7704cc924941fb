//! Starting the processes of the benchmark and reading what they cost from `/proc` (Linux).

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

/// The argument by which this program is told to be something else than the benchmark.
pub(crate) const ROLE: &str = "--role";

/// A command; the one place where any is made.
#[expect(clippy::disallowed_methods, reason = "the benchmark starts what it measures")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// This program in another role.
pub(crate) fn role(name: &str) -> anyhow::Result<Command> {
    let mut command = command(std::env::current_exe()?);
    command.args([ROLE, name]);
    Ok(command)
}

/// What a server promises of its list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Promise {
    /// It tells when the list changes.
    TellsChanges,
    /// A client has to ask again.
    Nothing,
}

impl Promise {
    pub(crate) const ALL: [Self; 2] = [Self::TellsChanges, Self::Nothing];

    fn word(self) -> &'static str {
        match self {
            Self::TellsChanges => "tells-changes",
            Self::Nothing => "promises-nothing",
        }
    }

    pub(crate) fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|promise| promise.word() == word)
    }
}

/// This program as the server, with so many tools.
pub(crate) fn server(tools: usize, promise: Promise) -> anyhow::Result<Command> {
    Ok(with_server(role("server")?, tools, promise))
}

/// This program as the relay in front of such a server.
pub(crate) fn relay(tools: usize, promise: Promise) -> anyhow::Result<Command> {
    Ok(with_server(role("relay")?, tools, promise))
}

fn with_server(mut command: Command, tools: usize, promise: Promise) -> Command {
    command.args([&tools.to_string(), promise.word()]);
    command
}

/// The processor time of all threads that live, to the nanosecond while they sleep.
pub(crate) fn processor_time(process: u32) -> anyhow::Result<Duration> {
    let mut total = 0;
    for_each_thread(process, "schedstat", |text| {
        let running = text
            .split(' ')
            .next()
            .context("`schedstat` is empty")?
            .parse::<u64>()?;
        total += running;
        Ok(())
    })?;
    Ok(Duration::from_nanos(total))
}

/// How often any thread was put on a processor after it had left it.
pub(crate) fn switches(process: u32) -> anyhow::Result<u64> {
    let mut total = 0;
    for_each_thread(process, "status", |text| {
        total += field(text, "voluntary_ctxt_switches:")? + field(text, "nonvoluntary_ctxt_switches:")?;
        Ok(())
    })?;
    Ok(total)
}

/// The most memory it ever held, in bytes.
pub(crate) fn peak_memory(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    Ok(field(&text, "VmHWM:")? * 1024)
}

/// The memory it holds now, in bytes; of what it shares with other processes its part alone.
pub(crate) fn held_memory(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    Ok(field(&text, "Pss:")? * 1024)
}

/// The processes that any of its threads started and that still run.
pub(crate) fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let mut children = Vec::new();
    for_each_thread(process, "children", |text| {
        for child in text.split_whitespace() {
            children.push(child.parse()?);
        }
        Ok(())
    })?;
    Ok(children)
}

/// How many processes wanted to run in the last minute, in the system's own words.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn for_each_thread(
    process: u32,
    file: &str,
    mut read: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let folder = format!("/proc/{process}/task");
    for thread in fs::read_dir(&folder).with_context(|| format!("cannot read `{folder}`"))? {
        // A thread may end between the two; what it used is then not counted.
        if let Ok(text) = fs::read_to_string(thread?.path().join(file)) {
            read(&text)?;
        }
    }
    Ok(())
}

fn field(status: &str, name: &str) -> anyhow::Result<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .with_context(|| format!("`{name}` is missing"))?;
    let number = line.split_whitespace().next().unwrap_or_default();
    Ok(number.parse()?)
}
