//! The variables by which a server's declaration decides what code runs.

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

/// Tells whether a variable decides which code runs.
#[must_use]
pub fn steers(name: &str) -> bool {
    STEERING.contains(&name) || STEERING_FAMILIES.iter().any(|family| name.starts_with(family))
}
