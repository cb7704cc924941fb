//! `pml import`: servers of clients come behind pml, nothing bypasses it, and every byte comes back.

mod carried_over;
mod claude_lines;
mod clear_secrets;
#[cfg(target_os = "linux")]
mod kills;
mod left;
mod leftovers;
mod real_clients;
mod values;

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ::pml::clients::{ClientFile, places};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::terminal::typed;
use crate::support::world::{Client, World, json_of, stderr, stdout};
use crate::support::{fake_server, pml};

/// The files of every client below the home; `FAKE` is a program, `MARK` the mark of the world.
const FIXTURES: [(&str, &str); 20] = [
    (
        ".cursor/mcp.json",
        "\u{feff}{\r\n\t// mine\r\n\t\"mcpServers\": {\r\n\t\t\"cursor-one\": {\"command\": \"FAKE\", \"env\": {\"PML_TEST_MARK\": \"MARK\"}}, // first\r\n\t\t\"stays\": {\"url\": \"https://e.example/mcp\", \"oauth\": {}},\r\n\t},\r\n\t\"other\": 1.0, /* kept */\r\n}\r\n",
    ),
    (
        ".config/Claude/claude_desktop_config.json",
        "{\"mcpServers\":{\"desktop-one\":{\"command\":\"FAKE\",\"args\":[],\"env\":{\"PML_TEST_MARK\":\"MARK\"}}},\"globalShortcut\":\"\"}",
    ),
    (
        ".config/Code/User/mcp.json",
        "{\n    \"inputs\": [{ \"id\": \"k\", \"type\": \"promptString\" }],\n    \"servers\": {\n        \"code-one\": { \"type\": \"stdio\", \"command\": \"FAKE\", \"env\": { \"PML_TEST_MARK\": \"MARK\" } }\n    }\n}\n",
    ),
    (
        ".copilot/mcp-config.json",
        "{\"mcpServers\": {\"copilot-one\": {\"type\": \"local\", \"command\": \"FAKE\", \"args\": [], \"tools\": [\"*\"], \"env\": {\"PML_TEST_MARK\": \"MARK\"}}}}",
    ),
    (
        ".codex/config.toml",
        "# mine\nmodel = \"m\" # why\n\n[mcp_servers.codex-one]\ncommand = \"FAKE\"\nstartup_timeout_sec = 20\n\n[mcp_servers.codex-one.env]\nPML_TEST_MARK = \"MARK\"\n\n[tui]\n# kept\ntheme = 'x'\n",
    ),
    (
        ".gemini/settings.json",
        "{\n  \"theme\": \"x\",\n  \"mcpServers\": {\n    \"gemini-one\": { \"command\": \"FAKE\", \"env\": { \"PML_TEST_MARK\": \"MARK\" }, \"timeout\": 30000, \"trust\": true }\n  }\n}\n",
    ),
    (
        ".codeium/windsurf/mcp_config.json",
        "{\n  \"mcpServers\": {\n    \"windsurf-one\": {\n      \"command\": \"FAKE\",\n      \"env\": { \"PML_TEST_MARK\": \"MARK\" },\n      \"disabled\": false\n    }\n  }\n}\n",
    ),
    (
        ".config/zed/settings.json",
        "// Zed\n{\n  \"context_servers\": {\n    \"zed-one\": { \"source\": \"custom\", \"command\": { \"path\": \"FAKE\", \"args\": [], \"env\": { \"PML_TEST_MARK\": \"MARK\" } } },\n  },\n  \"vim_mode\": true,\n}\n",
    ),
    (
        ".junie/mcp/mcp.json",
        "{\"mcpServers\":{\"junie-one\":{\"command\":\"FAKE\",\"env\":{\"PML_TEST_MARK\":\"MARK\"}}}}",
    ),
    (
        ".config/opencode/opencode.jsonc",
        "{\n  \"mcp\": {\n    // the first version\n    \"opencode-one\": { \"type\": \"local\", \"command\": [\"FAKE\"], \"environment\": { \"PML_TEST_MARK\": \"MARK\" }, \"enabled\": true }\n  }\n}\n",
    ),
    (
        "project/opencode.json",
        "{ \"mcp\": { \"servers\": { \"opencode-two\": { \"type\": \"local\", \"command\": [\"FAKE\"], \"environment\": { \"PML_TEST_MARK\": \"MARK\" } } } } }\n",
    ),
    (
        ".config/amp/settings.json",
        "{\n  \"amp.mcpServers\": { \"amp-one\": { \"command\": \"FAKE\", \"env\": { \"PML_TEST_MARK\": \"MARK\" } } },\n  \"amp.url\": \"x\"\n}\n",
    ),
    (
        "project/.mcp.json",
        "{\"mcpServers\":{\"project-one\":{\"command\":\"FAKE\",\"env\":{\"PML_TEST_MARK\":\"MARK\"}}}}",
    ),
    (
        "project/.cursor/mcp.json",
        "{\r\n  \"mcpServers\": { /* ours */ \"cursor-two\": { \"command\": \"FAKE\", \"env\": { \"PML_TEST_MARK\": \"MARK\" }, }, }\r\n}",
    ),
    (
        "project/.vscode/mcp.json",
        "{\n\t// ours\n\t\"servers\": {\n\t\t\"code-two\": { \"type\": \"stdio\", \"command\": \"FAKE\", \"cwd\": \"${workspaceFolder}\", \"env\": { \"PML_TEST_MARK\": \"MARK\" } }\n\t}\n}\n",
    ),
    (
        "project/.codex/config.toml",
        "[mcp_servers.codex-two]\r\ncommand = \"FAKE\"\r\nenv = { PML_TEST_MARK = \"MARK\" } # ours\r\n",
    ),
    (
        "project/.gemini/settings.json",
        "{ \"mcpServers\": { \"gemini-two\": { \"command\": \"FAKE\", \"env\": { \"PML_TEST_MARK\": \"MARK\" } } }, \"other\": [1, 2] }\n",
    ),
    (
        "project/.zed/settings.json",
        "{\n  \"context_servers\": {\n    \"zed-two\": { \"command\": \"FAKE\", \"env\": { \"PML_TEST_MARK\": \"MARK\" } } // ours\n  }\n}\n",
    ),
    (
        "project/.junie/mcp/mcp.json",
        "{\"mcpServers\": {\"junie-two\": {\"command\": \"FAKE\", \"env\": {\"PML_TEST_MARK\": \"MARK\"}}}}\n\n",
    ),
    (
        "project/.amp/settings.json",
        "{ \"amp.mcpServers\": { \"amp-two\": { \"command\": \"FAKE\", \"env\": { \"PML_TEST_MARK\": \"MARK\" } } } }",
    ),
];

fn filled(world: &World, text: &str) -> String {
    text.replace("FAKE", fake_server().to_str().unwrap())
        .replace("MARK\"", &format!("{}\"", world.mark()))
        .replace(&format!("PML_TEST_{}", world.mark()), "PML_TEST_MARK")
}

fn write(world: &World, file: &str, text: &str) {
    let path = world.home().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, filled(world, text)).unwrap();
}

fn read(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.home().join(file)).unwrap()
}

fn settled() -> World {
    let world = World::new();
    for (file, text) in FIXTURES {
        write(&world, file, text);
    }
    world
}

/// Starts pml as a client would, by the entry in its file; what the entry refers to is filled in from the world.
fn started_by(world: &World, file: &str) -> Client {
    let environment = ::pml::config::Environment::new([("HOME", world.home())], world.project());
    let path = world.home().join(file);
    let mut places = places(&environment, &world.home().join("project")).into_iter();
    let place = places.find(|place| place.path == path).unwrap();
    let read = ClientFile::read(place).unwrap();
    let entry = &Value::Object(read.registration().unwrap().entry.clone());
    let mut words: Vec<&str> = match &entry["command"] {
        Value::Array(words) => words.iter().map(|word| word.as_str().unwrap()).collect(),
        command => vec![command.as_str().unwrap()],
    };
    let more = entry["args"].as_array().into_iter().flatten();
    words.extend(more.map(|word| word.as_str().unwrap()));
    let mut command: Command = world.program(Path::new(words[0]));
    command.args(&words[1..]);
    for key in ["env", "environment"] {
        for (name, value) in entry[key].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap();
            if !value.contains('$') && !value.contains('{') {
                command.env(name, value);
            }
        }
    }
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    client
}

/// Starts pml as a client would, and lists its tools.
fn tools_by(world: &World, file: &str) -> Vec<String> {
    let mut client = started_by(world, file);
    let tools = client.tools();
    assert!(client.close().success());
    tools
}

#[test]
fn of_every_client_the_servers_come_behind_pml_and_every_byte_comes_back() {
    let world = settled();
    std::fs::set_permissions(
        world.home().join(".cursor/mcp.json"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let done = world.run(&["import", "--yes", "--json"]);
    let said = stderr(&done);
    let report = json_of(&done);
    let learned = report["learned"].as_array().unwrap();
    assert_eq!(learned.len(), FIXTURES.len(), "{said}");
    assert!(
        learned.iter().all(|server| server["tools"].as_u64() > Some(0)),
        "{said}"
    );

    let cursor = read(&world, ".cursor/mcp.json");
    assert!(cursor.starts_with("\u{feff}{\r\n\t// mine\r\n"), "{cursor}");
    assert!(
        cursor.ends_with("\r\n\t\"other\": 1.0, /* kept */\r\n}\r\n"),
        "{cursor}"
    );
    assert!(
        cursor.contains("\"stays\"") && !cursor.contains("cursor-one"),
        "{cursor}"
    );
    let mode = world
        .home()
        .join(".cursor/mcp.json")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let codex = read(&world, ".codex/config.toml");
    assert!(
        codex.starts_with("# mine\nmodel = \"m\" # why\n\n[mcp_servers.pml]\n"),
        "{codex}"
    );
    assert!(codex.ends_with("[tui]\n# kept\ntheme = 'x'\n"), "{codex}");
    // What a client starts now has all tools at once, by the absolute path of the program itself.
    for (file, _) in FIXTURES {
        let tools = tools_by(&world, file);
        for (_, text) in FIXTURES {
            let server = text
                .split(['"', '.', ' ', ']'])
                .find(|word| word.ends_with("-one") || word.ends_with("-two"));
            let tool = format!("{}__echo", server.unwrap());
            assert!(tools.contains(&tool), "{file}: {tool}: {tools:?}");
        }
    }
    // Everybody who clones the project reads its file: what is the user's own is in the user's.
    let project: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    let names: Vec<_> = project["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "project-one",
            "cursor-two",
            "code-two",
            "codex-two",
            "gemini-two",
            "zed-two",
            "junie-two",
            "opencode-two",
            "amp-two"
        ]
    );

    let undone = world.run(&["import", "--undo", "--yes"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    for (file, text) in FIXTURES {
        assert_eq!(read(&world, file), filled(&world, text), "{file}");
    }
    assert!(!world.path(".pml.json").exists() && !world.path(".pml.lock").exists());
    assert!(!world.home().join(".config/pml/pml.json").exists());
    world.assert_no_survivor("after the import");
}

#[test]
fn what_only_an_editor_knows_is_handed_over_by_it_and_cannot_be_tried() {
    let world = World::new();
    // Under this name the shell has something else: the input gets a name of its own.
    world.set("K", "of-the-shell");
    write(
        &world,
        ".config/Code/User/mcp.json",
        r#"{ "inputs": [{ "id": "k", "type": "promptString" }], "servers": { "one": { "type": "stdio", "command": "FAKE",
            "env": { "PML_TEST_MARK": "MARK", "KEY": "${input:k}" } } } }"#,
    );
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert_eq!(
        done.status.code(),
        Some(1),
        "the first list is not complete: {said}"
    );
    assert!(
        said.contains("`one` was not started, its first call asks: `ONE_K` is not set here"),
        "{said}"
    );
    let code: Value = serde_json::from_str(&read(&world, ".config/Code/User/mcp.json")).unwrap();
    assert_eq!(
        code["servers"],
        json!({ "pml": { "type": "stdio", "command": pml(), "args": ["stdio"], "env": { "ONE_K": "${input:k}" } } })
    );
}

#[test]
fn what_was_changed_since_keeps_its_change_and_gets_its_servers_back() {
    let world = settled();
    assert!(
        world
            .run(&["import", "--yes", "cursor", "codex"])
            .status
            .success()
    );
    let changed = read(&world, ".cursor/mcp.json").replace("// mine", "// changed");
    std::fs::write(world.home().join(".cursor/mcp.json"), changed).unwrap();
    let undone = world.run(&["import", "--undo", "--yes", "--json"]);
    let said = stderr(&undone);
    assert!(
        said.contains("~/.cursor/mcp.json was changed since: only its servers are as they were"),
        "{said}"
    );
    assert_eq!(json_of(&undone)["files"][0]["restored"], "entries");
    let cursor = read(&world, ".cursor/mcp.json");
    assert!(
        cursor.contains("// changed") && cursor.contains("cursor-one"),
        "{cursor}"
    );
    assert!(!cursor.contains("\"pml\""), "{cursor}");
    assert_eq!(read(&world, ".codex/config.toml"), filled(&world, FIXTURES[4].1));
    let nothing = world.run(&["import", "--undo", "--yes"]);
    assert_eq!(nothing.status.code(), Some(1), "{}", stderr(&nothing));
}

#[test]
fn a_file_that_was_changed_while_the_person_read_is_refused() {
    let world = settled();
    let mut script = world
        .program(Path::new("script"))
        .args([
            "-qec",
            &format!("{} import gemini junie", pml().display()),
            "/dev/null",
        ])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = script.stdout.take().unwrap();
    let mut said = String::new();
    let mut chunk = [0; 4096];
    while !said.contains("[y/N]") {
        let count = out.read(&mut chunk).unwrap();
        assert!(count > 0, "it does not ask: {said}");
        said.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    let before = read(&world, ".gemini/settings.json");
    let changed = before.replace("\"x\"", "\"y\"");
    std::fs::write(world.home().join(".gemini/settings.json"), &changed).unwrap();
    let mut stdin = script.stdin.take().unwrap();
    stdin.write_all(b"y\n").unwrap();
    stdin.flush().unwrap();
    out.read_to_string(&mut said).unwrap();
    assert_eq!(script.wait().unwrap().code(), Some(1), "{said}");
    assert!(
        said.contains("settings.json` was changed meanwhile and is left as it is"),
        "{said}"
    );
    assert_eq!(read(&world, ".gemini/settings.json"), changed);
    assert_eq!(
        read(&world, FIXTURES[8].0),
        filled(&world, FIXTURES[8].1),
        "nothing of it was done"
    );
    assert!(!world.home().join(".config/pml/pml.json").exists());
}

#[test]
fn a_person_is_asked_and_silence_changes_nothing() {
    let world = settled();
    let unasked = world.run(&["import"]);
    assert_eq!(unasked.status.code(), Some(1));
    assert!(
        stderr(&unasked).contains("to agree beforehand: pml import --yes"),
        "{}",
        stderr(&unasked)
    );
    assert_eq!(world.run(&["import", "--dry-run"]).status.code(), Some(0));
    for (file, text) in FIXTURES {
        assert_eq!(read(&world, file), filled(&world, text), "{file}");
    }
    assert!(!world.home().join(".local/state/pml/imports").exists());
    let (code, said) = typed(&world, "import junie", "y\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("junie-one: works"), "{said}");
}

#[test]
fn an_agent_does_not_import_for_its_person() {
    let world = settled();
    let refused = world
        .command(&["import", "--yes"])
        .env("CLAUDECODE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("is for a person"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn the_table_names_everything_and_no_secret() {
    let world = World::new();
    write(
        &world,
        ".cursor/mcp.json",
        r#"{ "mcpServers": {
        "git hub": { "command": "FAKE", "args": ["--offers", "sk-in-args-123456"], "env": { "GITHUB_TOKEN": "ghp_in_the_clear_1" }, "autoApprove": ["echo"] },
        "remote": { "type": "streamable-http", "url": "https://e.example/mcp", "headers": { "Authorization": "Bearer abc-in-header" } },
        "signed": { "url": "https://s.example/mcp", "oauth": {} },
        "picked": { "command": "FAKE", "args": ["${command:pick}"] },
        "line": { "command": "npx -y foo" },
        "off": { "command": "FAKE", "disabled": true } } }"#,
    );
    write(
        &world,
        "project/.mcp.json",
        r#"{ "mcpServers": { "git hub": { "command": "FAKE", "env": { "API_KEY": "key-in-project" } } } }"#,
    );
    let shown = world.run(&["import", "--dry-run", "--json"]);
    assert!(shown.status.success());
    let said = stderr(&shown);
    let all = format!("{said}{}", stdout(&shown));
    for secret in [
        "sk-in-args-123456",
        "ghp_in_the_clear_1",
        "abc-in-header",
        "key-in-project",
    ] {
        assert!(!all.contains(secret), "{all}");
    }
    insta::assert_snapshot!(said.replace(fake_server().to_str().unwrap(), "FAKE"), @r#"
    Claude Code (project), .mcp.json
      git hub as git-hub
        into       .pml.json
        runs       FAKE
        variables  API_KEY
        secret     API_KEY stands in the clear; it becomes ${API_KEY}
      pml takes their place in this file

    Cursor (user), ~/.cursor/mcp.json
      git hub as git-hub-cursor
        into       ~/.config/pml/pml.json
        runs       FAKE --offers '${GIT_HUB_TOKEN}'
        variables  GITHUB_TOKEN
        secret     GIT_HUB_TOKEN stands in the clear; it becomes ${GIT_HUB_TOKEN}
        secret     GITHUB_TOKEN stands in the clear; it becomes ${GITHUB_TOKEN}
        note       `autoApprove` is a question of the client and is not taken over; pml asks about a server once
                   to let it run unasked: pml allow git-hub-cursor:echo
      remote
        into       ~/.config/pml/pml.json
        connect to https://e.example/mcp with the headers authorization
        secret     REMOTE_TOKEN stands in the clear; it becomes ${REMOTE_TOKEN}
      signed
        stays      `oauth`: it is signed in to by the client, which pml cannot do for it
      picked
        stays      `${command:pick}` is known to the client alone
      line
        stays      the command `npx -y foo` is a whole line; a command is a program alone
                   move the other words into "args": "command":"npx","args":["-y","foo"]
      off
        into       ~/.config/pml/pml.json
        runs       FAKE
        disabled   as it is in the client
      pml takes their place in this file
    "#);

    assert_eq!(
        world.run(&["import", "--yes"]).status.code(),
        Some(1),
        "`remote` is not reached"
    );
    let own = read(&world, ".config/pml/pml.json") + &world.read(".pml.json");
    for secret in [
        "sk-in-args-123456",
        "ghp_in_the_clear_1",
        "abc-in-header",
        "key-in-project",
    ] {
        assert!(!own.contains(secret), "{own}");
    }
    let cursor: Value = serde_json::from_str(&read(&world, ".cursor/mcp.json")).unwrap();
    assert_eq!(
        cursor["mcpServers"]["pml"]["env"],
        json!({ "GIT_HUB_TOKEN": "sk-in-args-123456", "GITHUB_TOKEN": "ghp_in_the_clear_1" }),
        "it stays in the file where it was"
    );
    let left: Vec<_> = cursor["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["remote", "signed", "picked", "line", "pml"]);
    assert!(
        cursor.to_string().contains("abc-in-header"),
        "what is not taken is as it was"
    );
    assert!(
        !world.read(".mcp.json").contains("key-in-project"),
        "everybody reads a project's file"
    );
}

#[test]
fn what_is_kept_goes_on_in_its_client_and_the_doctor_says_so() {
    let world = settled();
    assert!(world.run(&["import", "--yes", "--keep", "amp"]).status.success());
    let amp: Value = serde_json::from_str(&read(&world, ".config/amp/settings.json")).unwrap();
    let names: Vec<_> = amp["amp.mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["amp-one", "pml"]);
    let found = world.run(&["doctor", "--json"]);
    assert_eq!(found.status.code(), Some(1));
    let problems: Value = serde_json::from_slice(&found.stdout).unwrap();
    let problems = problems["problems"].as_array().unwrap();
    let of = |about: &str| problems.iter().find(|problem| problem["about"] == about).unwrap();
    assert_eq!(
        of("Amp (user)")["problem"],
        "starts `amp-one` beside pml (~/.config/amp/settings.json)"
    );
    assert_eq!(
        of("Zed (user)")["hint"],
        "to bring them behind pml: pml import zed"
    );
}

#[test]
fn the_doctor_finds_stale_paths_missing_programs_and_broken_files() {
    let world = World::new();
    let healthy = world.run(&["doctor"]);
    assert_eq!(healthy.status.code(), Some(0), "{}", stderr(&healthy));
    write(
        &world,
        ".cursor/mcp.json",
        r#"{ "mcpServers": { "pml": { "command": "/gone/pml", "args": ["stdio"] } } }"#,
    );
    write(&world, ".codex/config.toml", "mcp_servers = 1\n");
    world.configure(&json!({ "mcpServers": {
        "a": { "command": "npx", "args": ["-y", "a@1.0.0"] }, "b": { "command": "uvx", "args": ["b==1.0.0"] } } }));
    world.set("PATH", "/nowhere");
    let found = world.run(&["doctor"]);
    assert_eq!(found.status.code(), Some(1));
    insta::assert_snapshot!(stdout(&found).replace(world.home().to_str().unwrap(), "HOME"), @r"
    Cursor (user): would start `/gone/pml`, which is not there (~/.cursor/mcp.json)
      to write the path of this one: pml init --client cursor
    Codex (user): `HOME/.codex/config.toml` is broken and was left as it is: `mcp_servers` is not an object
      mend the file, then try again
    node: declared servers need it, and it is not on the PATH
      install Node.js with npm: https://nodejs.org
    npm: declared servers need it, and it is not on the PATH
      install Node.js with npm: https://nodejs.org
    uv: declared servers need it, and it is not on the PATH
      install uv: https://docs.astral.sh/uv
    ");
    world.write(".pml.json", "{ broken");
    let broken = world.run(&["doctor"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(stdout(&broken).contains("configuration: "), "{}", stdout(&broken));
}

#[test]
fn goose_is_read_and_what_to_write_is_printed() {
    let world = World::new();
    write(
        &world,
        ".config/goose/config.yaml",
        "GOOSE_MODEL: x\nextensions:\n  goose-one:\n    type: stdio\n    name: One\n    enabled: true\n    cmd: FAKE\n    args: []\n    envs: { PML_TEST_MARK: \"MARK\" }\n    timeout: 300\n  developer:\n    type: builtin\n    name: developer\n    enabled: true\n",
    );
    let before = read(&world, ".config/goose/config.yaml");
    let done = world.run(&["import", "--yes", "goose"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "a person has to finish it: {said}");
    assert!(
        said.contains("developer\n    stays      it is part of the client itself"),
        "{said}"
    );
    assert!(
        said.contains("cmd: \"") && said.contains("goose configure"),
        "{said}"
    );
    assert!(said.contains("goose-one: works"), "{said}");
    assert_eq!(read(&world, ".config/goose/config.yaml"), before);
    assert!(
        said.contains("pml does not write this file: what to change in it is printed"),
        "{said}"
    );
    assert!(!said.contains("pml takes their place"), "{said}");
    let found = world.run(&["doctor"]);
    insta::assert_snapshot!(stdout(&found), @r"
    Goose (user): starts `goose-one` without pml (~/.config/goose/config.yaml)
      take those out of it that are behind pml; what to write there: pml import goose
    ");
}

#[test]
fn a_file_of_any_name_can_be_taken() {
    let world = World::new();
    write(
        &world,
        "mine.json",
        r#"{ "mcpServers": { "a": { "command": "FAKE", "env": { "PML_TEST_MARK": "MARK" } } } }"#,
    );
    let done = world.run(&["import", "--yes", "--project", "--from", "../mine.json"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(world.read(".pml.json").contains("\"a\""));
    let empty = world.run(&["import", "--yes", "--from", "../absent.json"]);
    assert_eq!(empty.status.code(), Some(1), "{}", stderr(&empty));
}

#[test]
fn the_help_names_every_client() {
    let world = World::new();
    let help = stdout(&world.run(&["import", "--help"]));
    for client in &::pml::clients::CLIENTS {
        assert!(help.contains(client.id), "{}: {help}", client.id);
    }
    insta::assert_snapshot!(help, @r"
    Bring the servers of your clients behind pml, which takes their place there

    Usage: pml import [OPTIONS] [CLIENT]...

    Arguments:
      [CLIENT]...  The clients whose servers are taken; without a name, all that have some

    Options:
          --config <FILE>  Use this file instead of looking for `.pml.json` [env: PML_CONFIG]
          --from <FILE>    Take the servers of this file only, which is in the format of one of the
                           clients
          --project        Declare all of them in the project's file
          --user           Declare all of them in the user's file
          --dry-run        Show what would be done, and do nothing
      -y, --yes            Do not ask
          --keep           Leave the servers in their clients as well, where they run without pml
          --undo           Take the last import back
          --json           Print what was done as JSON
      -h, --help           Print help
      -V, --version        Print version

    Clients: claude (user, local and project scope), claude-desktop, cursor, vscode, copilot,
    codex, gemini, windsurf, zed, junie, opencode, amp; goose is read, and what to write there
    is printed.

    Examples:
      pml import                           every client that has servers
      pml import codex cursor
      pml import --dry-run                 shows what would be done
      pml import --from ~/mcp.json --user
      pml import --undo                    every file as it was before

    Shows what each server becomes, and asks. Versions become exact; a secret in the clear
    becomes ${NAME}; what cannot be taken or does not work stays in its client, with the
    reason. Servers of your own files go into your own pml.json, those of a project into its
    .pml.json.
    Exit code: 0 done, 1 refused or not all of it done, 2 error.
    ");
}

#[test]
fn the_filters_of_a_client_hold_for_lists_and_calls_after_the_import() {
    let world = World::new();
    write(
        &world,
        ".codex/config.toml",
        "[mcp_servers.one]\ncommand = \"FAKE\"\nenabled_tools = [\"echo\", \"wait\"]\ndisabled_tools = [\"wait\"]\n\n[mcp_servers.one.env]\nPML_TEST_MARK = \"MARK\"\n",
    );
    write(
        &world,
        ".codeium/windsurf/mcp_config.json",
        "{\"mcpServers\":{\"two\":{\"command\":\"FAKE\",\"disabledTools\":[\"echo\"],\"env\":{\"PML_TEST_MARK\":\"MARK\"}}}}",
    );
    let done = world.run(&["import", "--yes", "codex", "windsurf"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let mut client = world.legacy();
    let tools = client.tools();
    let of = |server: &str| -> Vec<String> {
        let own = tools.iter().filter(|tool| tool.starts_with(server));
        own.cloned().collect()
    };
    assert_eq!(of("one__"), ["one__echo"]);
    assert!(
        of("two__").len() > 5 && !of("two__").contains(&"two__echo".to_owned()),
        "{tools:?}"
    );
    for tool in ["one__wait", "two__echo"] {
        let refused = client.call(tool, &json!({}));
        let said = refused["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("is not offered: `tools` of"), "{said}");
    }
}
