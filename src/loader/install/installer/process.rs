//! Runs one installer to its end, or kills it with everything it started.
//!
//! Dropping the future, a deadline and a normal end all finish with everything killed that the installer started: by
//! the supervisor (see [`crate::loader::process::supervisor`]), which also notices when pml itself is killed, or, where the
//! running program is not pml and there is none, by the installer's process group.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::growth::Growth;
use super::patience::Silence;
use crate::protocol::{Secrets, Shown};

/// The answer of `npm view` for a range of many versions is the longest one that is read.
const STDOUT_LIMIT: usize = 16 * 1024 * 1024;

/// What is kept of the end of stderr; a person sees its last lines.
const STDERR_LIMIT: usize = 64 * 1024;

/// Longer than the address of a package with what is said of it; in bytes.
const ATTEMPT: usize = 500;

/// After the group is killed its pipes close at once; only a process that left the group holds them open.
const PIPE_GRACE: Duration = Duration::from_secs(1);

/// An installer that is stopped is gone within the grace that its supervisor gives it. Until then it may still write.
const END_GRACE: Duration = Duration::from_secs(10);

/// What an installer may allocate: npm keeps the documents of a registry in memory, and needs 1 GiB for the largest trees.
/// Without a bound, a document that never ends takes all memory of the machine.
pub(super) const MEMORY_LIMIT: u64 = 2 * 1024 * 1024 * 1024;

/// One run of an installer.
pub(super) struct InstallerRun<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: Vec<OsString>,
    pub(super) directory: &'a Path,
    /// The whole environment: nothing else is inherited.
    pub(super) variables: BTreeMap<OsString, OsString>,
    pub(super) limit: Duration,
    /// What it may write.
    pub(super) growth: Growth,
    /// The program that supervises it.
    pub(super) supervisor: Option<&'a Path>,
    /// What it knows that must not be shown.
    pub(super) secrets: Secrets,
    /// What is told while it says nothing.
    pub(super) silence: Silence,
}

/// What an installer left.
pub(super) struct InstallerOutput {
    pub(super) ending: InstallerEnd,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// What of it must not be shown.
    pub(super) secrets: Secrets,
}

/// How an installer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InstallerEnd {
    Success,
    Failed(String),
    /// It was stopped, because it wrote more than it may.
    TooLarge,
}

/// Ends everything an installer started when it goes out of scope.
struct InstallerGuard(Option<Means>);

enum Means {
    /// Tells the supervisor, which must not be killed itself.
    Supervisor(Pid),
    /// Kills the group. While a member lives the kernel does not give its number away.
    Group(Pid),
}

impl InstallerGuard {
    /// Leaves a supervisor alone that is gone: it has ended everything, and its number may be a stranger's.
    fn gone(&mut self) {
        self.0.take_if(|means| matches!(means, Means::Supervisor(_)));
    }
}

impl Drop for InstallerGuard {
    fn drop(&mut self) {
        let _ = match self.0 {
            Some(Means::Supervisor(supervisor)) => kill_process(supervisor, Signal::TERM),
            Some(Means::Group(leader)) => kill_process_group(leader, Signal::KILL),
            None => Ok(()),
        };
    }
}

impl InstallerRun<'_> {
    /// Runs the installer; an error means that it could not be started or waited for.
    pub(super) async fn finish(self) -> std::io::Result<InstallerOutput> {
        #[expect(clippy::disallowed_methods, reason = "the one place that starts installers")]
        let mut command = Command::new(self.supervisor.unwrap_or(self.program));
        if self.supervisor.is_some() {
            command.arg0("pml").args(["supervise", "--"]).arg(self.program);
        }
        command
            .args(&self.arguments)
            .current_dir(self.directory)
            .env_clear()
            .envs(&self.variables)
            // The supervisor ends everything when this pipe closes, as it does when pml is killed.
            .stdin(if self.supervisor.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(self.supervisor.is_none());
        let mut child = command.spawn()?;
        // `wait` would close it: it stays open as long as the installer may run.
        let life = child.stdin.take();
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let mut ends = InstallerGuard(id.map(|id| match self.supervisor {
            Some(_) => Means::Supervisor(id),
            None => Means::Group(id),
        }));
        if let Some(id) = id {
            limit_memory(id);
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let ending = {
            let reading = async {
                tokio::join!(
                    keep_start(output, &mut stdout),
                    keep_end(errors, &mut stderr, &self.secrets, &self.silence)
                );
            };
            tokio::pin!(reading);
            let deadline = tokio::time::sleep(self.limit);
            tokio::pin!(deadline);
            let exceeded = self.growth.exceeded();
            tokio::pin!(exceeded);
            let silent = self.silence.told();
            tokio::pin!(silent);
            let mut read = false;
            let ending = loop {
                tokio::select! {
                    status = child.wait() => {
                        ends.gone();
                        let status = status?;
                        break if status.success() { InstallerEnd::Success } else { InstallerEnd::Failed(status.to_string()) };
                    }
                    () = &mut reading, if !read => read = true,
                    () = &mut silent => {}
                    () = &mut exceeded => break InstallerEnd::TooLarge,
                    () = &mut deadline => {
                        break InstallerEnd::Failed(format!("stopped after {} seconds", self.limit.as_secs()));
                    }
                }
            };
            drop(ends);
            drop(life);
            // Returns at once where it has ended by itself.
            let _ = tokio::time::timeout(END_GRACE, child.wait()).await;
            if !read {
                let _ = tokio::time::timeout(PIPE_GRACE, &mut reading).await;
            }
            ending
        };
        Ok(InstallerOutput {
            ending,
            stdout,
            stderr,
            secrets: self.secrets,
        })
    }
}

/// Bounds the memory of a process and of everything that it starts from now on. The supervisor has only just begun.
#[cfg(target_os = "linux")]
fn limit_memory(process: Pid) {
    use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
    let lower = |limit: Option<u64>| Some(limit.map_or(MEMORY_LIMIT, |limit| limit.min(MEMORY_LIMIT)));
    let now = getrlimit(Resource::Data);
    let limit = Rlimit {
        current: lower(now.current),
        maximum: lower(now.maximum),
    };
    if let Err(error) = prlimit(Some(process), Resource::Data, limit) {
        tracing::warn!(%error, "the memory of an installer is not bounded");
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_process: Pid) {}

async fn keep_start(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    each_chunk(source, |chunk| {
        let room = STDOUT_LIMIT - kept.len();
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
    })
    .await;
}

async fn keep_end(
    source: Option<impl AsyncRead + Unpin>,
    kept: &mut Vec<u8>,
    secrets: &Secrets,
    silence: &Silence,
) {
    each_chunk(source, |chunk| {
        silence.broken();
        tell_attempts(chunk, secrets, silence);
        kept.extend_from_slice(chunk);
        if kept.len() > 2 * STDERR_LIMIT {
            kept.drain(..kept.len() - STDERR_LIMIT);
        }
    })
    .await;
}

/// Tells a person of each request that failed: npm waits before it makes it again, if it does.
fn tell_attempts(chunk: &[u8], secrets: &Secrets, silence: &Silence) {
    // npm writes each line at once; one that is cut all the same is not told.
    for line in String::from_utf8_lossy(chunk).lines() {
        if let Some(attempt) = attempt_of(line) {
            let attempt = secrets.hide(attempt);
            silence.tell(&format!(
                "the registry does not answer: {}",
                Shown::line(&attempt)
            ));
        }
    }
}

/// Returns what npm says of a failed attempt: `GET ADDRESS attempt 1 failed with ECONNREFUSED`.
fn attempt_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("npm http fetch ")?;
    (rest.contains(" attempt ") && rest.contains(" failed with ") && rest.len() < ATTEMPT).then_some(rest)
}

/// Reads to the end: an installer must never block on a full pipe.
async fn each_chunk(source: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut source) = source else { return };
    let mut chunk = vec![0; 8192];
    while let Ok(count @ 1..) = source.read(&mut chunk).await {
        take(&chunk[..count]);
    }
}

/// Names a program and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::super::patience::WaitNotices;
    use super::*;
    use std::time::Instant;

    fn run(script: &str, directory: &Path, limit: Duration) -> InstallerRun<'static> {
        InstallerRun {
            program: Path::new("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            directory: Box::leak(directory.to_owned().into_boxed_path()),
            variables: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            limit,
            growth: growth(directory, None),
            supervisor: None,
            secrets: Secrets::default(),
            silence: Silence::of(Path::new("sh"), None, WaitNotices::default()),
        }
    }

    /// Allows what is allowed by default, or less.
    fn growth(directory: &Path, mib: Option<&str>) -> Growth {
        let variables = mib.map(|mib| (crate::loader::install::size_limit::MAX_INSTALL, mib));
        let environment = crate::config::Environment::new(variables, "/");
        Growth::of(directory, Path::new("/nowhere"), &environment)
    }

    #[test]
    fn what_npm_tells_of_a_failed_attempt_is_found() {
        let line = "npm http fetch GET http://127.0.0.1:9/a attempt 1 failed with ECONNREFUSED";
        assert_eq!(attempt_of(line), line.strip_prefix("npm http fetch "));
        for other in [
            "npm http fetch GET 200 http://127.0.0.1:9/a 5ms",
            "npm error attempt 1 failed with x",
            "",
        ] {
            assert_eq!(attempt_of(other), None);
        }
    }

    #[test]
    fn an_installer_that_writes_without_end_is_stopped_with_its_children() {
        let home = tempfile::tempdir().unwrap();
        let script = "echo $$ > id; while :; do head -c 1000000 /dev/zero >> zeros; done";
        let mut run = run(script, home.path(), Duration::from_mins(1));
        run.growth = growth(home.path(), Some("3"));
        let finished = runtime().block_on(run.finish()).unwrap();
        assert_eq!(finished.ending, InstallerEnd::TooLarge);
        assert!(is_gone(&home.path().join("id")));
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    /// Waits until the process whose id a script wrote down is gone.
    fn is_gone(file: &Path) -> bool {
        let id: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            let dead =
                rustix::process::test_kill_process(rustix::process::Pid::from_raw(id).unwrap()).is_err();
            // Where no process reaps orphans a killed process stays as a zombie.
            let zombie =
                std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "));
            if dead || zombie {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    #[test]
    fn a_finished_installer_leaves_no_process_behind() {
        let home = tempfile::tempdir().unwrap();
        let script = "sleep 100 & echo $! > id; echo out; echo err >&2";
        let finished = runtime()
            .block_on(run(script, home.path(), Duration::from_mins(1)).finish())
            .unwrap();
        assert_eq!(
            (finished.ending, finished.stdout, finished.stderr),
            (InstallerEnd::Success, b"out\n".to_vec(), b"err\n".to_vec())
        );
        assert!(is_gone(&home.path().join("id")));
    }

    #[test]
    fn an_installer_that_never_ends_is_stopped_with_its_children() {
        let home = tempfile::tempdir().unwrap();
        let script = "sleep 100 & echo $! > id; yes";
        let finished = runtime()
            .block_on(run(script, home.path(), Duration::from_millis(500)).finish())
            .unwrap();
        assert!(matches!(finished.ending, InstallerEnd::Failed(_)));
        assert!(finished.stdout.len() <= STDOUT_LIMIT);
        assert!(is_gone(&home.path().join("id")));
    }

    #[test]
    fn dropping_the_future_kills_the_whole_group() {
        let home = tempfile::tempdir().unwrap();
        let id = home.path().join("id");
        runtime().block_on(async {
            let run = run(
                "sleep 100 & echo $! > new; mv new id; wait",
                home.path(),
                Duration::from_mins(1),
            )
            .finish();
            let started = async {
                while !id.exists() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                _ = run => panic!("it ended by itself"),
                () = started => {}
            }
        });
        assert!(is_gone(&id));
    }

    #[test]
    fn an_installer_sees_no_other_variable() {
        let home = tempfile::tempdir().unwrap();
        let finished = runtime()
            .block_on(run("env", home.path(), Duration::from_mins(1)).finish())
            .unwrap();
        let names: Vec<_> = std::str::from_utf8(&finished.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| line.split('=').next())
            .filter(|name| !matches!(*name, "PWD" | "SHLVL" | "_" | "OLDPWD"))
            .collect();
        assert_eq!(names, ["PATH"]);
    }
}
