//! The table of clients.

use super::client::{Base, Client, Editing, Location, Meaning, Passing, Scope, Shape};
use super::format::Format;
use super::reference::References;

const MCP_SERVERS: &[&str] = &["mcpServers"];

const fn user(base: Base, paths: &'static [&'static str]) -> Location {
    Location {
        scope: Scope::User,
        base,
        paths,
    }
}

const fn project(paths: &'static [&'static str]) -> Location {
    Location {
        scope: Scope::Project,
        base: Base::Project,
        paths,
    }
}

/// Every client that pml knows.
pub static CLIENTS: [Client; 13] = [
    Client {
        id: "claude",
        title: "Claude Code",
        format: Format::Json,
        locations: &[
            user(Base::Home, &[".claude.json"]),
            Location {
                scope: Scope::Local,
                base: Base::Home,
                paths: &[".claude.json"],
            },
            project(&[".mcp.json"]),
        ],
        key: MCP_SERVERS,
        references: References::Braces,
        keys: &[
            ("timeout", Meaning::CallTime(1000)),
            ("alwaysLoad", Meaning::Nothing),
        ],
        shape: Shape::Typed,
        editing: Editing::OwnProgram,
        passes: Passing::Everything,
    },
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json,
        locations: &[user(Base::Application, &["Claude/claude_desktop_config.json"])],
        key: MCP_SERVERS,
        references: References::None,
        keys: &[],
        shape: Shape::Plain,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "cursor",
        title: "Cursor",
        format: Format::Json,
        locations: &[
            user(Base::Home, &[".cursor/mcp.json"]),
            project(&[".cursor/mcp.json"]),
        ],
        key: MCP_SERVERS,
        references: References::EnvColon,
        keys: &[],
        shape: Shape::Typed,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "vscode",
        title: "VS Code",
        format: Format::Json,
        locations: &[
            user(Base::Application, &["Code/User/mcp.json"]),
            user(Base::Application, &["Code - Insiders/User/mcp.json"]),
            project(&[".vscode/mcp.json"]),
        ],
        key: &["servers"],
        references: References::EnvColon,
        keys: &[
            ("dev", Meaning::Nothing),
            ("sandboxEnabled", Meaning::Nothing),
            ("sandbox", Meaning::Nothing),
        ],
        shape: Shape::Typed,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "copilot",
        title: "Copilot CLI",
        format: Format::Json,
        locations: &[
            user(Base::Variable("COPILOT_HOME", ".copilot"), &["mcp-config.json"]),
            project(&[".mcp.json"]),
        ],
        key: MCP_SERVERS,
        references: References::Braces,
        keys: &[
            ("tools", Meaning::OnlyTools),
            ("timeout", Meaning::CallTime(1000)),
        ],
        shape: Shape::Copilot,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "codex",
        title: "Codex",
        format: Format::Toml,
        locations: &[
            user(Base::Variable("CODEX_HOME", ".codex"), &["config.toml"]),
            project(&[".codex/config.toml"]),
        ],
        key: &["mcp_servers"],
        references: References::None,
        keys: &[
            ("env_vars", Meaning::VariableNames),
            ("http_headers", Meaning::Headers),
            ("env_http_headers", Meaning::HeadersFromVariables),
            ("bearer_token_env_var", Meaning::BearerVariable),
            ("startup_timeout_sec", Meaning::StartTime(1)),
            ("startup_timeout_ms", Meaning::StartTime(1000)),
            ("tool_timeout_sec", Meaning::CallTime(1)),
            ("enabled_tools", Meaning::OnlyTools),
            ("disabled_tools", Meaning::WithoutTools),
            ("required", Meaning::Nothing),
            ("scopes", Meaning::SignIn),
            ("oauth_resource", Meaning::SignIn),
            ("default_tools_approval_mode", Meaning::Unasked),
        ],
        shape: Shape::Plain,
        editing: Editing::Pml,
        passes: Passing::Listed,
    },
    Client {
        id: "gemini",
        title: "Gemini CLI",
        format: Format::Json,
        locations: &[
            user(Base::Home, &[".gemini/settings.json"]),
            project(&[".gemini/settings.json"]),
        ],
        key: MCP_SERVERS,
        references: References::Dollar,
        keys: &[
            ("httpUrl", Meaning::Address(Some("http"))),
            ("url", Meaning::Address(Some("sse"))),
            ("includeTools", Meaning::OnlyTools),
            ("excludeTools", Meaning::WithoutTools),
            ("timeout", Meaning::CallTime(1000)),
            ("authProviderType", Meaning::SignIn),
        ],
        shape: Shape::Plain,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "windsurf",
        title: "Windsurf",
        format: Format::Json,
        locations: &[user(Base::Home, &[".codeium/windsurf/mcp_config.json"])],
        key: MCP_SERVERS,
        references: References::EnvColon,
        keys: &[("serverUrl", Meaning::Address(Some("http")))],
        shape: Shape::Plain,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "zed",
        title: "Zed",
        format: Format::Json,
        locations: &[
            user(Base::Config, &["zed/settings.json"]),
            project(&[".zed/settings.json"]),
        ],
        key: &["context_servers"],
        references: References::None,
        keys: &[("source", Meaning::Nothing), ("timeout", Meaning::CallTime(1000))],
        shape: Shape::Plain,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "junie",
        title: "Junie",
        format: Format::Json,
        locations: &[
            user(Base::Home, &[".junie/mcp/mcp.json"]),
            project(&[".junie/mcp/mcp.json"]),
        ],
        key: MCP_SERVERS,
        references: References::Braces,
        keys: &[],
        shape: Shape::Plain,
        editing: Editing::Pml,
        passes: Passing::Named,
    },
    Client {
        id: "opencode",
        title: "opencode",
        format: Format::Json,
        locations: &[
            user(
                Base::Config,
                &["opencode/opencode.jsonc", "opencode/opencode.json"],
            ),
            project(&[
                "opencode.jsonc",
                "opencode.json",
                ".opencode/opencode.jsonc",
                ".opencode/opencode.json",
            ]),
        ],
        // The second version keeps them one level deeper: see `file.rs`.
        key: &["mcp"],
        references: References::Curly,
        keys: &[
            ("environment", Meaning::Variables),
            ("timeout", Meaning::StartTime(1000)),
        ],
        shape: Shape::CommandList,
        editing: Editing::Pml,
        passes: Passing::Everything,
    },
    Client {
        id: "amp",
        title: "Amp",
        format: Format::Json,
        locations: &[
            user(Base::Config, &["amp/settings.jsonc", "amp/settings.json"]),
            project(&[".amp/settings.jsonc", ".amp/settings.json"]),
        ],
        // One key with a dot in it.
        key: &["amp.mcpServers"],
        references: References::Braces,
        keys: &[("includeTools", Meaning::OnlyTools)],
        shape: Shape::Plain,
        editing: Editing::Pml,
        passes: Passing::Everything,
    },
    Client {
        id: "goose",
        title: "Goose",
        format: Format::Yaml,
        locations: &[user(Base::Config, &["goose/config.yaml"])],
        key: &["extensions"],
        references: References::None,
        keys: &[
            ("cmd", Meaning::Command),
            ("uri", Meaning::Address(None)),
            ("envs", Meaning::Variables),
            ("env_keys", Meaning::VariableNames),
            ("timeout", Meaning::CallTime(1)),
            ("available_tools", Meaning::OnlyTools),
            ("bundled", Meaning::Nothing),
            ("display_name", Meaning::Nothing),
        ],
        shape: Shape::Plain,
        editing: Editing::Person,
        passes: Passing::Everything,
    },
];

/// Finds a client by its name on the command line.
#[must_use]
pub fn client(id: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == id)
}
