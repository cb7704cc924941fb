//! A definition that a client cannot read costs the client no list, neither of its server nor of another.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::have;
use crate::support::sdk::{self, Python};
use crate::support::world::{World, json_of};

/// What is wrong with a tool, each in one of its own.
const TOOLS: [&str; 38] = [
    r#""outputSchema":{}"#,
    r#""outputSchema":{"type":"array"}"#,
    r#""outputSchema":true"#,
    r#""outputSchema":{"type":"object","properties":[1]}"#,
    r#""outputSchema":{"type":"object","properties":{"a":true,"b":false}}"#,
    r#""outputSchema":{"type":"object","properties":{"a":{"type":"bogus"}}}"#,
    r#""outputSchema":{"type":"object","properties":{"a":{"pattern":"(?P<x>a)"}}}"#,
    r##""outputSchema":{"type":"object","properties":{"a":{"$ref":"#/definitions/none"}}}"##,
    r##""outputSchema":{"type":"object","definitions":{"a":{"$ref":"#/definitions/a"}},"properties":{"a":{"$ref":"#/definitions/a"}}}"##,
    r#""outputSchema":{"type":"object","properties":{"a":{"id":"x"}}}"#,
    r#""outputSchema":{"type":"object","$id":5}"#,
    r#""outputSchema":{"type":"object","properties":{"a":{"$id":"https:\/\/same"},"b":{"$id":"https:\/\/same","x":1}}}"#,
    r#""outputSchema":{"type":"object","properties":{"a":{"enum":[]}}}"#,
    r#""outputSchema":{"type":"object","maximum":1e999}"#,
    r#""inputSchema":{"type":"object","properties":[]}"#,
    r#""inputSchema":{"type":"object","properties":{"a":true,"b":false}}"#,
    r#""inputSchema":{"type":"object","properties":{"a":"string"}}"#,
    r#""inputSchema":{"type":"object","properties":{"a":[1]}}"#,
    r#""inputSchema":{"type":"object","required":"a"}"#,
    r#""inputSchema":{"type":"object","required":[1,"a"]}"#,
    r#""inputSchema":{"$schema":5}"#,
    r#""inputSchema":7"#,
    r#""annotations":{"readOnlyHint":"yes"}"#,
    r#""annotations":{"title":5}"#,
    r#""annotations":null"#,
    r#""execution":{"taskSupport":"bogus"}"#,
    r#""icons":[1]"#,
    r#""icons":[{"src":5}]"#,
    r#""icons":[{"src":"a:b","sizes":"any","theme":"red","mimeType":1}]"#,
    r#""icons":{}"#,
    r#""title":5"#,
    r#""description":null"#,
    r#""description":"one","description":"two""#,
    r#""description":"half of \ud800 a pair""#,
    r#""_meta":5"#,
    r#""_meta":{"\udc00":1}"#,
    r#""x":1e999"#,
    r#""x":[]"#,
];

/// What is wrong with a prompt.
const PROMPTS: [&str; 6] = [
    r#""arguments":{}"#,
    r#""arguments":[{}]"#,
    r#""arguments":[1,{"name":"a","required":"yes","description":5,"title":5}]"#,
    r#""description":5"#,
    r#""icons":[1]"#,
    r#""title":"\ud800""#,
];

/// What is wrong with a resource or a template.
const RESOURCES: [&str; 9] = [
    r#""x":"no name""#,
    r#""name":5"#,
    r#""name":"n","mimeType":5"#,
    r#""name":"n","size":"big""#,
    r#""name":"n","size":1.5"#,
    r#""name":"n","size":-1"#,
    r#""name":"n","annotations":[]"#,
    r#""name":"n","annotations":{"audience":["all"],"priority":7,"lastModified":"yesterday"}"#,
    r#""name":"n","_meta":[],"icons":5,"title":{}"#,
];

/// Writes a list of which each entry has a name and one fault.
fn list(member: &str, name: impl Fn(usize) -> String, faults: &[&str]) -> String {
    let entries: Vec<String> = faults
        .iter()
        .enumerate()
        .map(|(number, fault)| format!("{{{},{fault}}}", name(number)))
        .collect();
    format!(r#"{{"{member}":[{}]}}"#, entries.join(","))
}

/// A world with a server `bad` of which every definition has a fault, and a server `good`.
fn world() -> World {
    let world = World::new();
    let tool = |number: usize| {
        let schema = if TOOLS[number].contains("inputSchema") {
            ""
        } else {
            r#","inputSchema":{"type":"object"}"#
        };
        format!(r#""name":"t{number}"{schema}"#)
    };
    world.write("tools", &list("tools", tool, &TOOLS));
    world.write(
        "prompts",
        &list("prompts", |number| format!(r#""name":"p{number}""#), &PROMPTS),
    );
    let mut resources = list("resources", |number| format!(r#""uri":"r:{number}""#), &RESOURCES);
    let no_uri = r#",{"uri":"no uri","name":"relative"}]}"#;
    resources.replace_range(resources.len() - 2.., no_uri);
    world.write("resources", &resources);
    let template = |number| format!(r#""uriTemplate":"r:{number}/{{a}}""#);
    world.write("templates", &list("resourceTemplates", template, &RESOURCES));
    let bad = world.fake(&[
        "--offers",
        "bad",
        "--answer",
        "tools/list",
        "tools",
        "--answer",
        "prompts/list",
        "prompts",
        "--answer",
        "resources/list",
        "resources",
        "--answer",
        "resources/templates/list",
        "templates",
    ]);
    let servers = json!({ "bad": bad, "good": world.fake(&["--offers", "good"]) });
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));
    let mut client = world.legacy();
    for server in ["bad", "good"] {
        client.call(&format!("{server}__connect"), &json!({}));
    }
    world
}

/// Checks that a client read every definition of both servers.
fn assert_read(seen: &Value) {
    let names = |list: &str, prefix: &str| -> Vec<String> {
        let all = seen[list].as_array().unwrap().iter();
        let names = all.map(|name| name.as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    };
    let numbered = |prefix: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{prefix}{number}")).collect()
    };
    assert_eq!(names("tools", "bad__t"), numbered("bad__t", TOOLS.len()));
    assert!(
        names("tools", "good__").contains(&"good__echo".to_owned()),
        "{seen}"
    );
    assert_eq!(names("prompts", "bad__p"), numbered("bad__p", PROMPTS.len()));
    assert!(
        names("prompts", "good__").contains(&"good__greet".to_owned()),
        "{seen}"
    );
    let resources = seen["resources"].as_array().unwrap();
    assert_eq!(
        resources[..3],
        [json!(["r:0", "r:0"]), json!(["r:1", "r:1"]), json!(["r:2", "n"])]
    );
    assert_eq!(resources[RESOURCES.len()][1], "relative", "{seen}");
    assert!(seen["resources"].to_string().contains("good://own"), "{seen}");
    let templates = seen["templates"].as_array().unwrap();
    assert_eq!(templates[..3], ["r:0/{a}", "r:1/{a}", "n"].map(Value::from));
    assert!(seen["templates"].to_string().contains("good://{id}"), "{seen}");
}

#[test]
fn every_typescript_client_reads_lists_with_definitions_it_could_not_read() {
    if have(&["node", "npm"]) {
        let (world, sdks) = (world(), sdk::typescript());
        for mode in ["v1", "legacy", "auto", "2026-07-28"] {
            let arguments = [mode, sdks.to_str().unwrap()];
            assert_read(&sdk::seen(&world, Path::new("node"), "lists.mjs", &arguments));
        }
    }
}

#[test]
fn every_python_client_reads_lists_with_definitions_it_could_not_read() {
    if have(&["uv"]) {
        let world = world();
        for (line, mode) in [
            (Python::One, "session"),
            (Python::Two, "session"),
            (Python::Two, "legacy"),
            (Python::Two, "auto"),
            (Python::Two, "2026-07-28"),
        ] {
            assert_read(&sdk::seen(&world, &sdk::python(line), "lists.py", &[mode]));
        }
    }
}

#[test]
fn the_list_of_servers_says_how_many_definitions_are_listed_mended() {
    let world = world();
    let listed = json_of(&world.run(&["list", "--json"]));
    let problems = listed["servers"][0]["problems"].to_string();
    for (list, count) in [
        // One entry has only a member that no client reads.
        ("tools", TOOLS.len() - 1),
        ("prompts", PROMPTS.len()),
        ("resources", RESOURCES.len()),
        ("templates", RESOURCES.len() - 3),
    ] {
        let told =
            format!("clients cannot read the definitions of {count} of its {list}; they are listed mended");
        assert!(problems.contains(&told), "{told}: {problems}");
    }
    assert_eq!(listed["servers"][1]["problems"], json!([]));
}

#[test]
fn a_resource_whose_uri_is_none_is_listed_under_one_that_finds_it() {
    let world = world();
    let mut client = world.legacy();
    let listed = client.request("resources/list", &json!({}));
    let listed = listed["result"]["resources"].as_array().unwrap();
    let named = |name: &str| listed.iter().find(|resource| resource["name"] == name);
    let uri = &named("relative").unwrap()["uri"];
    assert_eq!(uri, "pml://bad/no uri");
    let read = client.request("resources/read", &json!({ "uri": uri }));
    // The server was asked for what it listed, and does not have it.
    assert_eq!(read["error"]["message"], "Resource not found", "{read}");
}
