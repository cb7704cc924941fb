//! Claude Code as an agent: where its program is, how it is started, and which of its sessions are open.
//!
//! The non-obvious thing: in its headless mode it does not ask whether a directory is trusted. So where the user has not
//! accepted what a project brings for it (`project_settings.rs`) it is started with the user's settings only, and runs no
//! hook that a repository brought.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::error::RunError;
use super::record::RunRecord;
use crate::config::{Environment, RunSettings};
use crate::protocol::{Secrets, Shown};
use crate::proxy::{Declared, find_users_program, presence_of};
use crate::workflow::ProcessName;

/// What people call it.
pub const NAME: &str = "Claude Code";

/// Names the agent's program for one command.
const PROGRAM_VARIABLE: &str = "PML_CLAUDE";

/// Names the run to everything that the agent starts.
pub const RUN_VARIABLE: &str = "PML_RUN";

/// The tools that ask a person. What they ask is put to them before the call runs.
pub const ASKING_TOOLS: [&str; 3] = [
    "AskUserQuestion",
    "mcp__pml__ask_user",
    "mcp__pml__ask_user_questions",
];

/// What the agent must not inherit: marks of an agent that started this one.
const MARKS: [&str; 5] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_CODE_MESSAGING_TOKEN",
];

/// Whether a session is begun or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// It is begun.
    Begin,
    /// It goes on.
    Resume,
}

/// Whose settings the agent obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSources {
    /// The user's and the project's.
    All,
    /// The user's only.
    User,
}

/// Says what the agent is as a client, to those who are asked by it.
#[must_use]
pub fn declared() -> Declared {
    Declared::new(None, Some(&json!({ "name": NAME }).to_string()))
}

/// Finds the program of the agent.
pub fn find(environment: &Environment, settings: &RunSettings) -> Result<PathBuf, RunError> {
    let (named, by) = match (environment.variable(PROGRAM_VARIABLE), &settings.claude) {
        (Some(named), _) => (named.to_owned(), format!("as `{PROGRAM_VARIABLE}` says")),
        (None, Some(named)) => (
            named.clone().into_os_string(),
            "as \"run\" of your own file says".to_owned(),
        ),
        (None, None) => ("claude".into(), "on the PATH".to_owned()),
    };
    let missing = || RunError::NoAgent {
        reason: format!("there is no program `{}` {by}", Shown::path(Path::new(&named))),
    };
    let name = named.to_str().ok_or_else(missing)?;
    let program = find_users_program(name, environment).ok_or_else(missing)?;
    if is_program(&program) {
        Ok(program)
    } else {
        Err(missing())
    }
}

/// Tells whether something can be run; what was named by its path need not even be there.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Writes the command line of the agent.
#[must_use]
pub fn arguments(
    record: &RunRecord,
    opening: Opening,
    sources: SettingSources,
    servers: &Path,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        "--replay-user-messages",
        "--permission-prompt-tool",
        "stdio",
        "--permission-mode",
        "manual",
        match opening {
            Opening::Begin => "--session-id",
            Opening::Resume => "--resume",
        },
    ]
    .map(OsString::from)
    .into();
    arguments.push(record.session.to_string().into());
    arguments.push("--mcp-config".into());
    arguments.push(servers.into());
    arguments.push("--strict-mcp-config".into());
    if sources == SettingSources::User {
        arguments.extend(["--setting-sources", "user"].map(OsString::from));
    }
    arguments.extend(record.agent_arguments.iter().map(OsString::from));
    arguments
}

/// Writes the servers of the agent: pml alone.
#[must_use]
pub fn servers(pml: &Path, record: &RunRecord) -> String {
    let mut words: Vec<String> = Vec::new();
    if let Some(config) = &record.config {
        words.extend(["--config".to_owned(), config.display().to_string()]);
    }
    words.push("stdio".to_owned());
    let server = json!({
        "command": pml,
        "args": words,
        "env": { RUN_VARIABLE: record.id },
    });
    json!({ "mcpServers": { "pml": server } }).to_string()
}

/// Returns the environment of the agent: the user's own, without the marks of another agent.
#[must_use]
pub fn variables(environment: &Environment, record: &RunRecord) -> BTreeMap<OsString, OsString> {
    let own = environment
        .variables()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut variables: BTreeMap<OsString, OsString> = own.collect();
    variables.retain(|name, _| !MARKS.iter().any(|mark| name == mark));
    variables.insert(RUN_VARIABLE.into(), record.id.as_str().into());
    variables
}

/// Returns the values of the agent's environment that no log may show: keys and tokens, by the names that they have.
#[must_use]
pub fn secrets(variables: &BTreeMap<OsString, OsString>) -> Secrets {
    let named = variables
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    Secrets::new(named.filter(|(name, _)| {
        let words = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"];
        name.split('_')
            .any(|part| words.contains(&part.to_ascii_uppercase().as_str()))
    }))
}

/// An entry of the agent's own list of open sessions; it stays behind when its process is killed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenSession {
    pid: u32,
    session_id: String,
    #[serde(default)]
    proc_start: Option<serde_json::Value>,
}

/// Finds the process of the agent that has the session open. It blocks.
#[must_use]
pub fn process_with_session(environment: &Environment, record: &RunRecord) -> Option<u32> {
    let home = || Some(PathBuf::from(environment.variable("HOME")?).join(".claude"));
    let directory = environment
        .variable("CLAUDE_CONFIG_DIR")
        .map(PathBuf::from)
        .or_else(home)?;
    let entries = std::fs::read_dir(directory.join("sessions")).ok()?;
    let session = record.session.to_string();
    entries.flatten().find_map(|entry| {
        let open: OpenSession = serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok()?;
        (open.session_id == session && open.is_alive()).then_some(open.pid)
    })
}

impl OpenSession {
    fn is_alive(&self) -> bool {
        use crate::card::Presence;
        let started = match &self.proc_start {
            Some(serde_json::Value::String(text)) => text.parse().ok(),
            Some(value) => value.as_u64(),
            None => None,
        };
        let process = match started {
            Some(started) => Some(ProcessName {
                pid: self.pid,
                started,
            }),
            // Without the time of its start a number that was given anew counts as alive: the stricter reading.
            None => crate::proxy::process_name(self.pid),
        };
        presence_of(process) == Presence::Running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::record::tests::record;

    #[test]
    fn a_project_that_is_not_accepted_brings_no_settings_of_its_own() {
        let line = |opening, sources| {
            let words = arguments(&record(), opening, sources, Path::new("/run/servers.json"));
            let words: Vec<_> = words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            words.join(" ")
        };
        let begun = line(Opening::Begin, SettingSources::All);
        assert!(
            begun.contains("--session-id 00000000-0000-0000-0000-000000000007"),
            "{begun}"
        );
        assert!(
            begun.ends_with("--mcp-config /run/servers.json --strict-mcp-config"),
            "{begun}"
        );
        let resumed = line(Opening::Resume, SettingSources::User);
        assert!(
            resumed.contains("--resume 00000000-0000-0000-0000-000000000007"),
            "{resumed}"
        );
        assert!(resumed.ends_with("--setting-sources user"), "{resumed}");
    }

    #[test]
    fn an_agent_inherits_no_mark_of_another_and_knows_its_run() {
        let own = [
            ("CLAUDECODE", "1"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
            ("PATH", "/bin"),
        ];
        let environment = Environment::new(own, "/");
        let given: Vec<_> = variables(&environment, &record()).into_keys().collect();
        assert_eq!(given, ["ANTHROPIC_BASE_URL", "PATH", "PML_RUN"]);
    }

    #[test]
    fn a_session_counts_as_open_only_while_the_very_process_lives() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("sessions");
        std::fs::create_dir(&sessions).unwrap();
        let environment = Environment::new([("CLAUDE_CONFIG_DIR", home.path().to_str().unwrap())], "/");
        let own = crate::proxy::process_name(std::process::id()).unwrap();
        let write = |started: u64, session: &str| {
            let entry = json!({ "pid": own.pid, "procStart": started.to_string(), "sessionId": session });
            crate::disk::replace(&sessions.join("1.json"), entry.to_string().as_bytes()).unwrap();
            process_with_session(&environment, &record())
        };
        let session = record().session.to_string();
        assert_eq!(write(own.started, &session), Some(own.pid));
        assert_eq!(
            write(own.started + 1, &session),
            None,
            "the number was given anew"
        );
        assert_eq!(write(own.started, "another"), None);
    }
}
