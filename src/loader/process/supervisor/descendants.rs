//! Everything a server started, as its supervisor sees it.
//!
//! Signals go to the server's process group and to *direct children* only. Both stay unreaped while they are
//! signalled, so a process id can never have been given to a stranger meanwhile.

use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process, kill_process_group, waitid,
    waitpid,
};

use super::phase::EndEvent;

/// How often the list of children is read again when it said nothing although a child is left.
const RELIST: Duration = Duration::from_millis(2);

/// When to give up on a child that does not die of SIGKILL: it runs as another user or hangs in the kernel.
const UNKILLABLE: Duration = Duration::from_secs(1);

/// The server and everything it started.
#[derive(Debug)]
pub(super) struct Descendants {
    server: Pid,
}

impl Descendants {
    /// Makes this process the parent of every orphan below it.
    pub(super) fn adopt() -> rustix::io::Result<()> {
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(())
    }

    /// Looks after a server that leads its own process group.
    pub(super) fn of(server: Pid) -> Self {
        Self { server }
    }

    /// Reaps the dead apart from the server, and says what is left.
    pub(super) fn reap(&self) -> Option<EndEvent> {
        let mut alive = 0;
        for child in children().into_iter().filter(|child| *child != self.server) {
            if let Ok(None) = waitpid(Some(child), WaitOptions::NOHANG) {
                alive += 1;
            }
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.server), options) {
            Ok(None) => None,
            Ok(Some(_)) | Err(_) if alive == 0 => Some(EndEvent::Gone),
            Ok(Some(_)) | Err(_) => Some(EndEvent::Exited),
        }
    }

    /// Sends a signal to the server's group and to every child that left it.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.server, signal);
        for child in children().into_iter().filter(|child| *child != self.server) {
            let _ = kill_process(child, signal);
        }
    }

    /// Kills and reaps until nothing is left; returns the server's exit code, or 128 + its signal.
    pub(super) fn kill(&self) -> u8 {
        let _ = kill_process_group(self.server, Signal::KILL);
        let mut code = None;
        let mut progress_at = Instant::now();
        loop {
            // Those that died have left their own children to this process: hence again and again.
            for child in children() {
                let _ = kill_process(child, Signal::KILL);
            }
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) => {
                    progress_at = Instant::now();
                    if child == self.server {
                        code = exit_code(status);
                    }
                }
                Ok(None) if progress_at.elapsed() < UNKILLABLE => std::thread::sleep(RELIST),
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        // Only a server that cannot be killed leaves no code.
        code.unwrap_or(128 + 9)
    }
}

fn exit_code(status: WaitStatus) -> Option<u8> {
    let code = match status.terminating_signal() {
        Some(signal) => 128 + signal,
        None => status.exit_status()?,
    };
    u8::try_from(code).ok()
}

/// Lists the direct children of this process. A child that dies meanwhile may hide another one: ask again.
#[cfg(target_os = "linux")]
fn children() -> Vec<Pid> {
    listed::by_threads().unwrap_or_else(listed::by_parent)
}

/// There is no subreaper here: nothing but the server's process group is known.
#[cfg(not(target_os = "linux"))]
fn children() -> Vec<Pid> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod listed {
    use std::fs::{read_dir, read_to_string};

    use rustix::process::{Pid, getpid};

    /// Asks the kernel for the children of each thread; `None` where it was built without that list.
    pub(super) fn by_threads() -> Option<Vec<Pid>> {
        let threads = read_dir("/proc/self/task").ok()?.flatten();
        let lists: Vec<String> = threads
            .filter_map(|thread| read_to_string(thread.path().join("children")).ok())
            .collect();
        // The main thread never ends before the process: a list is missing only where all are.
        (!lists.is_empty()).then(|| {
            let ids = lists.iter().flat_map(|list| list.split_whitespace());
            ids.filter_map(pid).collect()
        })
    }

    /// Looks at every process for its parent.
    pub(super) fn by_parent() -> Vec<Pid> {
        let Ok(processes) = read_dir("/proc") else {
            return Vec::new();
        };
        let names = processes
            .flatten()
            .filter_map(|process| pid(process.file_name().to_str()?));
        names
            .filter(|process| parent(*process) == Some(getpid()))
            .collect()
    }

    fn parent(process: Pid) -> Option<Pid> {
        let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
        // `id (name) state parent …`, and a name may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        pid(fields.split_whitespace().nth(1)?)
    }

    fn pid(text: &str) -> Option<Pid> {
        Pid::from_raw(text.parse().ok()?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a child is what is looked for")]
    fn both_lists_hold_a_child_until_it_is_reaped() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let id = Pid::from_child(&child);
        let found = || {
            (
                listed::by_threads().unwrap().contains(&id),
                listed::by_parent().contains(&id),
            )
        };
        assert_eq!(found(), (true, true));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found(), (false, false));
    }
}
