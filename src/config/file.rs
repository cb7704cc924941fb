//! The serde types of `.pml.json`; the JSON Schema is generated from them.
//!
//! The documentation of each field is what an editor shows while a person writes the file.

use std::collections::BTreeMap;
use std::time::Duration;

use super::channel_entries::ChannelsEntry;
use super::user_entries::{AdvisoriesEntry, AuditEntry, PinToolsEntry, RunEntry, TrustEntry};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::protocol::DependencyName;

/// The configuration of pml: rules, and the servers they are about.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the keys of `.pml.json`"
)]
#[schemars(title = ".pml.json")]
pub(super) struct File {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    pub(super) schema: Option<String>,
    /// The version of this format.
    pub(super) version: Option<Version>,
    /// Which tools run, which need a person, which never run. Deny always wins; otherwise the most specific pattern; a tie asks; no rule asks.
    pub(super) permissions: Permissions,
    /// The servers behind pml, in the shape of a client's own `.mcp.json`.
    #[schemars(with = "BTreeMap<String, ServerEntry>", extend("propertyNames" = {"pattern": "^[A-Za-z0-9]([A-Za-z0-9._-]{0,30}[A-Za-z0-9])?$", "not": {"pattern": "__"}}))]
    pub(super) mcp_servers: BTreeMap<DependencyName, ServerEntry>,
    /// How approvals are asked for.
    pub(super) approvals: ApprovalsEntry,
    /// How the tools that ask a person behave.
    pub(super) ask_user: AskUserEntry,
    /// Only in the user's own file: the program that is run, without a shell, when something is asked and neither `pml inbox` nor a page of `pml serve` is open. `{title}` and `{body}` in its arguments are replaced.
    #[schemars(length(min = 1, max = 64), extend("examples" = [["notify-send", "{title}", "{body}"]]))]
    pub(super) notify: Option<Vec<String>>,
    /// What pml bears before it refuses.
    pub(super) limits: LimitsEntry,
    /// Which projects' files count without being accepted: `own-work` (default) those that you wrote or changed, `strict` none. In the user's own file only.
    pub(super) project_trust: Option<TrustEntry>,
    /// Whether what cannot be recorded in the history may happen: `required` (default) installs nothing and starts nothing new then, `best-effort` warns. In the user's own file only.
    pub(super) audit: Option<AuditEntry>,
    /// Whether a changed definition of a tool is put to you before it counts: `true` (default), `false` for no server, or an object that says so by server, such as `{"mine": false}` for one that you develop. How a server is declared is put to you all the same. In the user's own file only.
    pub(super) pin_tools: Option<PinToolsEntry>,
    /// Where `pml audit` asks for known vulnerabilities, and about which packages. In the user's own file only.
    pub(super) advisories: Option<AdvisoriesEntry>,
    /// The packages that are installed and started only with a verified provenance: patterns over their names, or over `npm:name` and `pypi:name`. In the user's own file only.
    #[schemars(length(max = 256), inner(length(min = 1, max = 256)), extend("examples" = [["@modelcontextprotocol/*", "pypi:mcp-server-*"]]))]
    pub(super) require_provenance: Option<Vec<String>>,
    /// The absolute path of the sigstore trust root that provenance is verified with, for a deployment of your own; by default the public one, as it was when pml was built. In the user's own file only.
    #[schemars(length(min = 1))]
    pub(super) sigstore_root: Option<String>,
    /// How many days a version of a package must have been published before it is fetched; 1 by default, 0 fetches every version. In the user's own file only.
    pub(super) min_release_age_days: Option<Days<0, 365>>,
    /// How `pml run` hosts an agent. In the user's own file only.
    pub(super) run: Option<RunEntry>,
    /// The chat services on which you are asked, and answer. In the user's own file only.
    pub(super) channels: Option<ChannelsEntry>,
}

/// The version of the format of this file.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Version;

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(version: String) -> Result<Self, String> {
        let numbers: Vec<_> = version.split('.').map(str::parse::<u32>).collect();
        match numbers.as_slice() {
            [Ok(0), Ok(_), Ok(_)] => Ok(Self),
            [Ok(_), Ok(_), Ok(_)] => Err(format!(
                "this file is of version `{version}`; this pml reads versions `0.x.y`"
            )),
            _ => Err("a version is three numbers, such as `0.1.0`".to_owned()),
        }
    }
}

impl JsonSchema for Version {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^0\.[0-9]+\.[0-9]+$", "examples": ["0.1.0"]})
    }
}

/// The three lists of patterns over `server:tool`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the lists `allow`, `deny`, `ask`"
)]
pub(super) struct Permissions {
    /// Tools that run without a question.
    pub(super) allow: Vec<PatternText>,
    /// Tools that never run.
    pub(super) deny: Vec<PatternText>,
    /// Tools that need a person: `*` before a server is first installed, started or connected to, anything narrower before every call.
    pub(super) ask: Vec<PatternText>,
}

/// A pattern over `server:tool`: `*`, `?`, `{a,b}`, `[a-z]`; `server` alone means `server:*`.
///
/// Read as text: what it means is checked where its place is known.
#[derive(Debug, Deserialize)]
pub(super) struct PatternText(pub(super) String);

impl JsonSchema for PatternText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "maxLength": 512,
            "description": "A pattern over `server:tool`: `*`, `?`, `{a,b}`, `[a-z]`; `server` alone means `server:*`.",
            "examples": ["*", "filesystem", "github:get_*", "github:{get,list}_issues"],
        })
    }
}

/// One server: exactly one of `command`, `package` and `url` says how it is reached. In a project's file `tools` alone
/// narrows a server that the user's file declares.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object that declares a server"
)]
#[schemars(extend("oneOf" = [{"required": ["command"]}, {"required": ["package"]}, {"required": ["url"]}, {"required": ["tools"], "maxProperties": 1}]))]
pub(super) struct ServerEntry {
    /// How the server talks; implied by `command`, `package` or `url`.
    #[serde(rename = "type")]
    pub(super) transport: Option<Transport>,
    /// The program to start, such as `npx`, `uvx` or `./server`. `${VAR}` and `${VAR:-default}` expand.
    pub(super) command: Option<String>,
    /// An exact package, such as `npm:@scope/name@1.2.3` or `pypi:name==1.2.3`.
    pub(super) package: Option<String>,
    /// The address of a server reached over HTTP. `${VAR}` expands.
    pub(super) url: Option<String>,
    /// The arguments of the command or of the package's program. `${VAR}` expands.
    pub(super) args: Option<Vec<String>>,
    /// The environment variables the server gets beside a small fixed list. `${VAR}` expands.
    pub(super) env: Option<BTreeMap<String, String>>,
    /// A file of further variables, `NAME=value` in each line, relative to this file's directory. It is read whenever the
    /// server is started; what stands in `env` wins. It sets nothing that decides what runs, such as `PATH`: that
    /// belongs into `env`.
    #[schemars(length(min = 1), extend("examples" = [".env"]))]
    pub(super) env_file: Option<String>,
    /// The headers of every request to `url`, and to no other origin. `${VAR}` expands; values are shown to nobody.
    pub(super) headers: Option<BTreeMap<String, String>>,
    /// The tools that it offers; all of them by default. Patterns over its own names: `*`, `?`, `{a,b}`, `[a-z]`. What
    /// matches one is listed and may be called, but for what matches one with `!`; the order means nothing. Where both the
    /// user's file and the project's have such a list, a tool must be on both. Prompts and resources pass; a method that pml
    /// does not know, such as `tasks/list`, counts by its name as a tool does and must be named, too.
    #[schemars(length(max = 256), inner(length(min = 1, max = 512)), extend("examples" = [["search", "read_*", "!read_secret"]]))]
    pub(super) tools: Option<Vec<String>>,
    /// The directory the server is started in, relative to this file's.
    pub(super) cwd: Option<String>,
    /// Leaves the server out without losing its entry.
    #[serde(default)]
    pub(super) disabled: bool,
    /// Lets install scripts of the package and its dependencies run.
    #[serde(default)]
    pub(super) allow_scripts: bool,
    /// When the server is started.
    #[serde(default)]
    pub(super) startup: StartupEntry,
    /// What the server is opened by first. By default it is `initialize`, which every server accepts; one that also
    /// speaks `2026-07-28` is then not told what each request of such a client declares.
    pub(super) protocol: Option<ProtocolEntry>,
    /// How long the server may take to start; 60 by default.
    pub(super) start_timeout_seconds: Option<Seconds<1, 3600>>,
    /// How long the server may work on one call, a person's time apart; no limit by default.
    pub(super) call_timeout_seconds: Option<Seconds<1, 86400>>,
    /// After how long without a call or a watched resource the server is stopped; never by default.
    pub(super) idle_seconds: Option<Seconds<1, 86400>>,
}

impl ServerEntry {
    /// Tells whether the entry declares no server, but only narrows one that is declared elsewhere.
    pub(super) fn only_narrows(&self) -> bool {
        let Self {
            transport: None,
            command: None,
            package: None,
            url: None,
            args: None,
            env: None,
            env_file: None,
            headers: None,
            tools: Some(_),
            cwd: None,
            disabled: false,
            allow_scripts: false,
            startup: StartupEntry::Lazy,
            protocol: None,
            start_timeout_seconds: None,
            call_timeout_seconds: None,
            idle_seconds: None,
        } = self
        else {
            return false;
        };
        true
    }
}

/// How a server talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Transport {
    /// Lines over the pipes of a process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP; the older transport with server-sent events is found out by itself.
    Sse,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StartupEntry {
    /// On its first call.
    #[default]
    Lazy,
    /// In the background when pml starts, if a rule allows it.
    Eager,
}

/// What a server is opened by.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub(super) enum ProtocolEntry {
    /// The versions up to 2025-11-25.
    #[serde(rename = "initialize")]
    Initialize,
    /// The version without `initialize`.
    #[serde(rename = "2026-07-28")]
    Modern,
}

/// How approvals are asked for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the keys of `approvals`"
)]
pub(super) struct ApprovalsEntry {
    /// How long a suspended call waits for its answer; 300 by default.
    pub(super) ttl_seconds: Option<Seconds<30, 3600>>,
    /// Who may approve: `client` (default) takes the client's word for it, `human` only a dialog, a slash command or a terminal. Once a file says `human`, no other can take it back.
    pub(super) by: Option<ByEntry>,
    /// Whether the client's own dialog is used where it has one: `auto` (default) or `never`.
    pub(super) dialog: Option<DialogEntry>,
}

/// Who may approve.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ByEntry {
    /// The client's continuation counts.
    Client,
    /// Only a person counts.
    Human,
}

/// Whether the client's own dialog is used.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum DialogEntry {
    /// Where the client has one.
    Auto,
    /// Not at all.
    Never,
}

/// How the tools that ask a person behave.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the keys of `askUser`"
)]
pub(super) struct AskUserEntry {
    /// Whether `ask_user`, `ask_user_questions` and `approval_prompt` are offered; they are by default.
    pub(super) enabled: Option<bool>,
    /// Whether a question that no dialog can show returns at once (`suspend`, default) or holds the call (`blocking`).
    pub(super) mode: Option<ModeEntry>,
    /// How long a blocking question waits; 300 by default. A question that is relayed to a host (`ASK_USER_CONFIG`) waits no longer than this either.
    pub(super) timeout_seconds: Option<Seconds<30, 900>>,
    /// How many days a question can still be answered after its call has returned; 30 by default.
    pub(super) keep_days: Option<Days<1, 365>>,
}

/// What a question does while nobody has answered it.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeEntry {
    /// It returns an id.
    Suspend,
    /// It holds the call.
    Blocking,
}

/// What pml bears before it refuses.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the keys of `limits`"
)]
pub(super) struct LimitsEntry {
    /// The longest line read from a client or a server; 64 MiB by default.
    pub(super) line_bytes: Option<Within<65_536, 1_073_741_824>>,
}

/// A whole number with a least and a greatest value.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
pub(super) struct Within<const LEAST: u64, const GREATEST: u64>(pub(super) u64);

impl<const LEAST: u64, const GREATEST: u64> TryFrom<u64> for Within<LEAST, GREATEST> {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        if (LEAST..=GREATEST).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!(
                "`{number}` is out of range; from {LEAST} to {GREATEST} is possible"
            ))
        }
    }
}

impl<const LEAST: u64, const GREATEST: u64> JsonSchema for Within<LEAST, GREATEST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("From{LEAST}To{GREATEST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": LEAST, "maximum": GREATEST})
    }
}

/// A bounded number of seconds.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Seconds<const LEAST: u64, const GREATEST: u64>(Within<LEAST, GREATEST>);

impl<const LEAST: u64, const GREATEST: u64> Seconds<LEAST, GREATEST> {
    pub(super) fn duration(self) -> Duration {
        Duration::from_secs(self.0.0)
    }
}

/// A bounded number of days.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Days<const LEAST: u64, const GREATEST: u64>(Within<LEAST, GREATEST>);

impl<const LEAST: u64, const GREATEST: u64> Days<LEAST, GREATEST> {
    pub(super) fn duration(self) -> Duration {
        Duration::from_hours(self.0.0 * 24)
    }
}

/// Returns the JSON Schema of `.pml.json`, ending in a line feed.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(File);
    // A schema is made of strings and numbers: it always serialises.
    serde_json::to_string_pretty(&schema).map_or_else(|_| String::new(), |text| text + "\n")
}
