//! `pml list`: how far every server is, and nothing that is wrong goes unsaid.

use serde_json::{Value, json};

use crate::support::fake_server;
use crate::support::world::{World, json_of, stderr, stdout};

#[test]
fn without_servers_it_says_how_to_declare_one() {
    let world = World::new();
    let output = world.run(&["list"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    assert_eq!(
        stderr(&output),
        "no server is declared in .pml.json or ~/.config/pml/pml.json\n\
         to declare one: pml add NAME -- COMMAND…\n"
    );
    assert_eq!(json_of(&world.run(&["list", "--json"])), json!({ "servers": [] }));
}

#[test]
fn every_server_has_a_line_and_every_problem_a_note() {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "allow": ["plain"], "deny": ["never"] },
        "mcpServers": {
            "floating": { "command": "npx", "args": ["-y", "left-pad"] },
            "never": { "command": "npx", "args": ["left-pad@1.3.0"], "startup": "eager" },
            "off": { "command": "./off", "disabled": true },
            "plain": { "command": "./plain" },
            "secret": { "command": "./x", "env": { "TOKEN": "${UNSET_TOKEN}" } },
            "web": { "url": "https://example.com/mcp" },
        },
    }));
    let output = world.run(&["list"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        stdout(&output),
        "\
NAME      VERSION  INSTALLED  APPROVED  CALLS      TOOLS  STARTUP   DECLARED IN
floating  -        no         no        ask first  ?      lazy      .pml.json:11
never     1.3.0    no         denied    never      ?      eager     .pml.json:18
off       -        -          no        never      ?      disabled  .pml.json:25
plain     -        -          by rule   run        ?      lazy      .pml.json:29
secret    -        -          -         -          ?      lazy      .pml.json:32
web       -        -          no        ask first  ?      lazy      .pml.json:38
"
    );
    let said = stderr(&output);
    assert!(
        said.contains("note: `floating`: its version is not pinned"),
        "{said}"
    );
    assert!(said.contains("`UNSET_TOKEN` is not set"), "{said}");
    assert!(!said.contains("note: `web`"), "{said}");
    assert_eq!(
        world.files(),
        Vec::<std::path::PathBuf>::new(),
        "a look leaves nothing behind"
    );
}

#[test]
fn a_tool_whose_name_changed_or_that_is_listed_twice_is_told() {
    let world = World::new();
    let server = fake_server();
    let added = world.run(&[
        "add",
        "--yes",
        "odd",
        "--",
        server.to_str().unwrap(),
        "--odd-tools",
    ]);
    assert!(added.status.success(), "{}", stderr(&added));

    let listed = json_of(&world.run(&["list", "--json"]));
    let odd = &listed["servers"][0];
    assert_eq!(
        (&odd["approved"], &odd["access"], &odd["installed"], &odd["line"]),
        (&json!(true), &json!("approved"), &Value::Null, &json!(9))
    );
    let tools = odd["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["tool"] == "odd:echo").unwrap();
    assert_eq!(
        (&echo["wireName"], &echo["decision"]),
        (&json!("odd__echo"), &json!("allow"))
    );
    let mut wire: Vec<_> = tools
        .iter()
        .map(|tool| tool["wireName"].as_str().unwrap())
        .collect();
    wire.sort_unstable();
    let count = wire.len();
    wire.dedup();
    assert_eq!(wire.len(), count, "no two tools share a name: {odd:#}");

    // What the client lists is what `pml list` says, but for pml's own tools.
    let mut client = world.legacy();
    let mut offered = client.tools();
    offered.retain(|name| name.starts_with("odd__"));
    offered.sort();
    assert_eq!(offered, wire);
    client.close();

    let renamed: Vec<_> = tools
        .iter()
        .filter(|tool| {
            let plain = tool["tool"].as_str().unwrap().replacen(':', "__", 1);
            tool["wireName"] != plain
        })
        .collect();
    assert!(!renamed.is_empty(), "{odd:#}");
    let said = stderr(&world.run(&["list"]));
    for tool in renamed {
        let wire = tool["wireName"].as_str().unwrap();
        assert!(said.contains(&format!("which see `{wire}`")), "{wire}: {said}");
    }
    assert!(
        said.contains("more than once; only the first is reachable"),
        "{said}"
    );
    let shown = stdout(&world.run(&["list", "--tools"]));
    assert!(
        shown.contains("\n  odd:echo  runs: its server was approved on "),
        "{shown}"
    );
    assert!(
        !said.contains('\u{1b}') && !shown.contains('\u{1b}'),
        "nothing deceives"
    );
}

#[test]
fn a_file_that_does_not_parse_is_an_error_with_its_place() {
    let world = World::new();
    world.write(".pml.json", "{\n  \"mcpServer\": {}\n}\n");
    let output = world.run(&["list"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(
        stderr(&output).contains(".pml.json:2:3: unknown key `mcpServer`"),
        "{}",
        stderr(&output)
    );
}
