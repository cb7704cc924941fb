//! Makes system calls of the real binary fail on purpose, and sets its clock; `faults.c` says how.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rustix::io::Errno;

/// One system call that fails.
pub(crate) struct Fault<'a> {
    /// The kind of call as `faults.c` names it; `any` is each of them.
    pub(crate) call: &'static str,
    /// Which of the calls on this path, from 1; 0 is each of them.
    pub(crate) nth: u32,
    /// What it fails with; nothing is SIGKILL instead of the call.
    pub(crate) errno: Option<Errno>,
    /// The file or directory.
    pub(crate) path: &'a Path,
}

/// Lets a command of the binary meet these faults.
pub(crate) fn inject(command: &mut Command, faults: &[Fault<'_>]) {
    let lines: Vec<String> = faults
        .iter()
        .map(|fault| {
            let path = fault.path.to_str().unwrap();
            format!(
                "{}|{}|{}|{path}",
                fault.call,
                fault.nth,
                fault.errno.map_or(0, Errno::raw_os_error)
            )
        })
        .collect();
    command
        .env("LD_PRELOAD", library())
        .env("PML_TEST_FAULTS", lines.join("\n"));
}

/// Lets a command meet one fault at its `nth` call that writes below `folder`, and says where it is noted when it did.
pub(crate) fn inject_nth(command: &mut Command, folder: &Path, nth: u32, errno: Option<Errno>) -> Met {
    let met = folder.join("fault-met");
    let _ = std::fs::remove_file(&met);
    let folder = folder.join("");
    let fault = Fault {
        call: "any",
        nth,
        errno,
        path: &folder,
    };
    inject(command, &[fault]);
    command.env("PML_TEST_FAULT_MET", &met);
    Met(met)
}

/// Where a fault is noted.
pub(crate) struct Met(PathBuf);

impl Met {
    /// Returns which call met the fault, if one did.
    pub(crate) fn call(&self) -> Option<String> {
        std::fs::read_to_string(&self.0).ok()
    }
}

/// A file that says how far ahead the clock of a process is; it may be written anew while the process runs.
pub(crate) struct WallClock(PathBuf);

impl WallClock {
    /// Gives the processes of a command a clock that is `seconds` ahead.
    pub(crate) fn give(command: &mut Command, file: PathBuf, seconds: i64) -> Self {
        let clock = Self(file);
        clock.set(seconds);
        command
            .env("LD_PRELOAD", library())
            .env("PML_TEST_CLOCK", &clock.0);
        clock
    }

    /// Sets the clock to `seconds` ahead of the machine's.
    pub(crate) fn set(&self, seconds: i64) {
        let fresh = self.0.with_extension("fresh");
        std::fs::write(&fresh, seconds.to_string()).unwrap();
        std::fs::rename(&fresh, &self.0).unwrap();
    }
}

/// The compiled library; built once by the first test that needs it.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join("faults.so");
        // Another run of the tests may be loading it: it is replaced whole.
        let fresh = folder.join(format!("faults.{}.so", std::process::id()));
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .arg(&fresh)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/faults.c"))
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(built.success(), "cc does not build faults.c");
        std::fs::rename(&fresh, &library).unwrap();
        library
    })
}
