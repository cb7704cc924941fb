//! What a server's line alone does not say: where it runs, and with which variables.

use crate::config::Server;
use crate::protocol::approval::Surroundings;
use crate::protocol::{Shown, shell};

/// Variables that decide which code runs; a person sees their values, because the line alone would not say it.
const STEERING: [&str; 42] = [
    "BASH_ENV",
    "CLASSPATH",
    "DENO_DIR",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GIT_EXEC_PATH",
    "GIT_SSH_COMMAND",
    // Where user-wide code and settings are looked for: `~/.local/lib/python3`, `~/.npmrc`, `~/.bashrc`.
    "HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "TMPDIR",
    "VIRTUAL_ENV",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// How the names of further steering variables begin: those of the dynamic linker, and of the user's directories.
const STEERING_FAMILIES: [&str; 3] = ["DYLD_", "LD_", "XDG_"];

/// Returns the declared variables that decide which code runs, each with its value as declared.
pub(super) fn steering(server: &Server) -> Vec<String> {
    let steers = |name: &str| {
        STEERING.contains(&name) || STEERING_FAMILIES.iter().any(|family| name.starts_with(family))
    };
    server
        .env
        .iter()
        .filter(|(name, _)| steers(name))
        .map(|(name, value)| format!("{}={}", shell::word(name), shell::word(value)))
        .collect()
}

/// Returns where the server runs and the names of its variables.
pub(super) fn of(server: &Server) -> Surroundings {
    Surroundings {
        cwd: directory(server),
        // A name that could be taken for several is quoted.
        env: server.env.keys().map(|name| shell::word(name)).collect(),
    }
}

/// Returns the working directory if it is another than that of the declaration: an approval is bound to it.
fn directory(server: &Server) -> Option<String> {
    (server.cwd != server.directory).then(|| Shown::path(&server.cwd))
}
