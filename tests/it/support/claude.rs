//! The real Claude Code, pinned, installed once into the target directory by the first test that needs it.
//!
//! It has no network but the loopback interface to speak to: [`claude_environment`] leads it to a scripted API.

use std::path::{Path, PathBuf};

use super::{have, sdk};

/// The version whose behaviour `scripted_claude` pins down, and on which the host of pml relies.
const VERSION: &str = "2.1.325";

/// Names an installed program to use instead, of whatever version it is.
const INSTALLED: &str = "PML_CLAUDE_FOR_TESTS";

/// Returns the program; `None` where it cannot be installed, which the test says as it is skipped.
pub(crate) fn claude_program() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os(INSTALLED) {
        return Some(program.into());
    }
    // The program itself brings its own runtime.
    have(&["npm"]).then(|| {
        let package = format!("@anthropic-ai/claude-code-{}", platform());
        let folder = sdk::npm("claude", &[&format!("{package}@{VERSION}")]);
        folder.join("node_modules").join(package).join("claude")
    })
}

/// The platform as the names of the packages have it.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        system => system,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        processor => processor,
    };
    format!("{system}-{processor}")
}

/// What a Claude Code needs that knows nothing of the machine, and nobody but the API at `api_url`.
pub(crate) fn claude_environment(home: &Path, api_url: &str) -> Vec<(&'static str, String)> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut environment = vec![
        ("PATH", path),
        ("HOME", home.display().to_string()),
        // Its sockets stay behind where it is killed.
        ("CLAUDE_CODE_TMPDIR", home.display().to_string()),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("SHELL", "/bin/sh".to_owned()),
        ("ANTHROPIC_BASE_URL", api_url.to_owned()),
        ("ANTHROPIC_API_KEY", "dummy".to_owned()),
        // A proxy of the machine does not lead to its own loopback interface.
        ("NO_PROXY", "127.0.0.1,localhost".to_owned()),
    ];
    // The last: as root it refuses some modes of permission elsewhere than in a sandbox.
    for switch in [
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "IS_SANDBOX",
    ] {
        environment.push((switch, "1".to_owned()));
    }
    environment
}
