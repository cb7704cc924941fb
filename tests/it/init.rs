//! `pml init`: a new file, a registration, and nothing that was there before is lost.

use serde_json::{Value, json};

use crate::support::world::{World, json_of, stderr, stdout};
use crate::support::{fake_server, pml};

const CLIENT: &str = "{\r\n\t// mine\r\n\t\"mcpServers\": {\r\n\t\t\"files\": {\"command\": \"FAKE\"},\r\n\t},\r\n\t\"other\": 1.0\r\n}";

#[test]
fn without_a_terminal_the_file_is_written_and_nothing_is_registered() {
    let world = World::new();
    let output = world.run(&["init"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    let said = stderr(&output);
    assert!(said.starts_with("created .pml.json\n"), "{said}");
    assert!(said.contains("to agree beforehand: pml init --yes\n"), "{said}");
    assert!(said.contains("Claude Code, .mcp.json: starts /"), "{said}");
    assert!(!world.path(".mcp.json").exists());
    let rules = json_of(&world.run(&["rules", "--json"]));
    assert_eq!(rules["rules"][0]["pattern"], "*");
    assert!(world.read(".pml.json").contains("// "), "it is commented");
}

#[test]
fn a_registration_is_made_once() {
    let world = World::new();
    assert!(world.run(&["init", "--yes"]).status.success());
    let client: Value = serde_json::from_str(&world.read(".mcp.json")).unwrap();
    assert_eq!(
        client,
        json!({ "mcpServers": { "pml": { "type": "stdio", "command": pml(), "args": ["stdio"] } } })
    );
    let before = (world.read(".pml.json"), world.read(".mcp.json"));
    let output = world.run(&["init", "--yes"]);
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains(".pml.json is there already and was left as it is"),
        "{said}"
    );
    assert!(said.contains("pml is registered in .mcp.json already"), "{said}");
    assert_eq!((world.read(".pml.json"), world.read(".mcp.json")), before);
    assert!(world.run(&["import", "--undo", "--yes"]).status.success());
    assert!(
        !world.path(".mcp.json").exists(),
        "a registration can be taken back"
    );
}

#[test]
fn servers_of_a_client_are_imported_and_every_other_byte_stays() {
    let world = World::new();
    world.write(
        ".mcp.json",
        &CLIENT.replace("FAKE", fake_server().to_str().unwrap()),
    );
    let unasked = world.run(&["init"]);
    assert!(
        stderr(&unasked).contains("to see them: pml import --dry-run"),
        "{}",
        stderr(&unasked)
    );
    let done = json_of(&world.run(&["init", "--yes", "--json"]));
    assert_eq!(done["import"]["learned"][0]["name"], "files");
    let after = world.read(".mcp.json");
    assert!(
        after.starts_with("{\r\n\t// mine\r\n\t\"mcpServers\": {"),
        "{after}"
    );
    assert!(after.ends_with("\r\n\t\"other\": 1.0\r\n}"), "{after}");
    assert!(
        after.contains("\"pml\"") && !after.contains("\"files\""),
        "{after}"
    );
    let configuration = world.read(".pml.json");
    assert!(
        configuration.contains("// ") && configuration.contains("\"files\""),
        "the comments stay"
    );
}

#[test]
fn pml_is_registered_in_the_clients_that_are_named_or_found() {
    let world = World::new();
    assert!(
        world
            .run(&["init", "--yes", "--client", "codex"])
            .status
            .success()
    );
    let codex = std::fs::read_to_string(world.home().join(".codex/config.toml")).unwrap();
    let expected = format!(
        "[mcp_servers.pml]\ncommand = \"{}\"\nargs = [\"stdio\"]\n",
        pml().display()
    );
    assert_eq!(codex, expected);
    std::fs::create_dir_all(world.home().join(".codeium/windsurf")).unwrap();
    let done = json_of(&world.run(&["init", "--yes", "--all", "--json"]));
    let clients: Vec<_> = done["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|client| &client["client"])
        .collect();
    assert_eq!(clients, ["codex", "windsurf"]);
    assert!(!world.path(".mcp.json").exists());
}

#[test]
fn an_existing_configuration_is_never_touched() {
    let world = World::new();
    world.write(".pml.json", "{} // mine");
    assert!(world.run(&["init", "--yes"]).status.success());
    assert_eq!(world.read(".pml.json"), "{} // mine");
}

#[test]
fn a_broken_client_file_stops_before_anything_is_written() {
    let world = World::new();
    world.write(".mcp.json", "{ \"mcpServers\": [] }");
    let output = world.run(&["init", "--yes"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!world.path(".pml.json").exists());
    assert_eq!(world.read(".mcp.json"), "{ \"mcpServers\": [] }");
}

#[test]
fn a_file_further_up_is_said_not_to_count_any_more() {
    let world = World::new();
    std::fs::write(world.home().join(".pml.json"), "{}").unwrap();
    let said = stderr(&world.run(&["init"]));
    assert!(
        said.contains("note: ~/.pml.json does not count here any more"),
        "{said}"
    );
    assert!(world.path(".pml.json").exists());
}

#[test]
fn a_pml_that_runs_from_the_cache_of_a_runner_registers_itself_nowhere() {
    let world = World::new();
    let cache = world.home().join(".npm/_npx/0f1e/node_modules/pml-mcp-linux-x64");
    std::fs::create_dir_all(&cache).unwrap();
    let program = cache.join("pml");
    if std::fs::hard_link(pml(), &program).is_err() {
        std::fs::copy(pml(), &program).unwrap();
    }
    std::fs::create_dir(world.home().join(".cursor")).unwrap();
    std::fs::write(
        world.home().join(".cursor/mcp.json"),
        r#"{"mcpServers":{"one":{"command":"/bin/true"}}}"#,
    )
    .unwrap();
    let before = world.files();
    for arguments in [
        &["init", "--yes"][..],
        &["init", "--client", "cursor", "--yes"],
        &["import", "--yes"],
    ] {
        let refused = world.program(&program).args(arguments).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert_eq!(
            stderr(&refused),
            format!(
                "error: clients cannot be told to start `{}`: it lies in the cache of npx, which is emptied at any time\n\n\
                 hint: nothing was changed; install it first, then run this again by `pml`: npm install --global pml-mcp\n",
                program.canonicalize().unwrap().display()
            )
        );
        assert_eq!(world.files(), before, "{arguments:?}");
        assert!(!world.path(".pml.json").exists() && !world.path(".mcp.json").exists());
    }
    // A look is free.
    let shown = world
        .program(&program)
        .args(["import", "--dry-run"])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
}
