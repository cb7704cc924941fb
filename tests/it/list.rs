//! `pml list`: how far every server is, and nothing that is wrong goes unsaid.

use serde_json::{Value, json};

use crate::support::world::{World, json_of, stderr, stdout};
use crate::support::{DEADLINE, eventually, fake_server};

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
NAME      VERSION  PUBLISHED  INSTALLED  LAST USE  APPROVED  CALLS      TOOLS  STARTUP   DECLARED IN
floating  -        -          no         -         no        ask first  ?      lazy      .pml.json:11
never     1.3.0    -          no         -         denied    never      ?      eager     .pml.json:18
off       -        -          -          -         no        never      ?      disabled  .pml.json:25
plain     -        -          -          -         by rule   run        ?      lazy      .pml.json:29
secret    -        -          -          -         -         -          ?      lazy      .pml.json:32
web       -        -          -          -         no        ask first  ?      lazy      .pml.json:38
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

#[test]
fn the_last_call_and_the_last_failure_of_a_server_are_told_with_its_log() {
    let world = World::with_fake(&json!({ "allow": ["*"] }), &["--crash-on-call", "2"]);
    let server = || json_of(&world.run(&["list", "--json"]))["servers"][0].clone();
    let before = server();
    assert_eq!(
        (&before["lastUse"], &before["lastFailure"], &before["bytes"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let began = i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    assert_eq!(server()["lastUse"], Value::Null, "started, but not used yet");
    client.call("fake__echo", &json!({}));
    eventually("the call is noted", DEADLINE, || !server()["lastUse"].is_null());
    let used = server();
    // The clock of the disk may be a moment behind.
    assert!(used["lastUse"].as_i64().unwrap() >= began - 1000, "{used}");
    assert_eq!(used["lastFailure"], Value::Null);

    let died = client.call("fake__echo", &json!({}));
    assert_eq!(died["isError"], true, "{died}");
    eventually("the failure is kept", DEADLINE, || {
        !server()["lastFailure"].is_null()
    });
    client.close();
    let failed = server()["lastFailure"].clone();
    let log = world.home().join(".local/state/pml/failures/fake.log");
    assert_eq!(
        (&failed["what"], &failed["log"]),
        (&json!("it exited with code 3"), &json!(log))
    );
    // The clock of the disk may be a moment behind.
    assert!(failed["at"].as_i64().unwrap() >= began - 1000, "{failed}");
    let text = std::fs::read_to_string(&log).unwrap();
    let (_, told) = text.split_once('\n').unwrap();
    assert!(
        told.starts_with("it exited with code 3; the last lines it wrote:\n") && told.lines().count() > 1,
        "{text}"
    );
    let listed = world.run(&["list"]);
    assert!(
        stderr(&listed)
            .contains(": it exited with code 3\n  all of it: ~/.local/state/pml/failures/fake.log\n"),
        "{}",
        stderr(&listed)
    );
    let day = stdout(&listed)
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .nth(4)
        .unwrap()
        .to_owned();
    assert!(day.len() == "2026-11-19".len() && day.starts_with("20"), "{day}");

    // What is declared otherwise is another server, which has neither run nor failed.
    world.configure(&json!({ "mcpServers": { "fake": world.fake(&[]) } }));
    let other = server();
    assert_eq!(
        (&other["lastUse"], &other["lastFailure"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_server_that_does_not_start_has_failed_and_one_that_was_refused_has_not() {
    let world = World::with_fake(&json!({ "allow": ["*"] }), &["--exit-at-once", "7"]);
    let server = || json_of(&world.run(&["list", "--json"]))["servers"][0].clone();
    let mut client = world.legacy();
    let refused = client.call("fake__connect", &json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    let failed = server()["lastFailure"].clone();
    assert!(
        failed["what"]
            .as_str()
            .unwrap()
            .starts_with("it exited with code 7"),
        "{failed}"
    );
    let world = World::with_fake(&json!({ "deny": ["*"] }), &[]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    assert_eq!(
        json_of(&world.run(&["list", "--json"]))["servers"][0]["lastFailure"],
        Value::Null
    );
}
