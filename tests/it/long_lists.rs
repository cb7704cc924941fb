//! A server that lists more than can be read costs what is over the bounds, and no time of anything else.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::DEADLINE;
use crate::support::stalls::Watch;
use crate::support::world::{World, json_of};

/// How many tools a client is listed of one server.
const MOST: usize = 10_000;

/// A world with one server `fake` that answers `method` with `result`, and may do everything.
fn world(method: &str, result: &Value) -> World {
    let world = World::new();
    // A debug build takes longer over megabytes of a list than a stall may take; its release takes a tenth of that.
    world.watch(Watch::Off);
    world.write("answer.json", &result.to_string());
    let options = ["--offers", "fake", "--answer", method, "answer.json"];
    world.configure(&json!({
        "permissions": { "allow": ["*"], "deny": ["*:*secret*"] },
        "mcpServers": { "fake": world.fake(&options) },
    }));
    world
}

fn tools(count: usize) -> Value {
    let tool = |number| json!({ "name": format!("tool{number}"), "inputSchema": { "type": "object" } });
    (0..count).map(tool).collect()
}

/// What stands in the only catalog of a world.
fn catalog(world: &World) -> std::path::PathBuf {
    let files = world.files();
    let found = files
        .iter()
        .find(|file| file.to_string_lossy().contains("/catalog/"));
    world.home().join(found.unwrap())
}

#[test]
fn a_list_of_very_many_tools_is_cut_and_a_long_unknown_name_is_answered() {
    let world = world("tools/list", &json!({ "tools": tools(200_000) }));
    let mut client = world.legacy();
    let begun = Instant::now();
    client.call("fake__connect", &json!({}));
    let listed = client.tools();
    let of_fake = listed
        .iter()
        .filter(|name| name.starts_with("fake__tool"))
        .count();
    assert_eq!(of_fake, MOST);
    for name in ["x".repeat(5000), "fake_tool17".to_owned()] {
        let answer = client.request("tools/call", &json!({ "name": name, "arguments": {} }));
        assert!(answer.get("id").is_some(), "{answer}");
    }
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    client.close();
    let survey = json_of(&world.run(&["list", "--json"]));
    let problems = survey.to_string();
    assert!(
        problems.contains("190000 of what it lists is left out"),
        "{problems:.2000}"
    );
}

#[test]
fn a_huge_template_is_left_out_and_its_neighbour_finds_its_server() {
    let templates = json!([
        { "name": "huge", "uriTemplate": "{a}".repeat(1_400_000) },
        { "name": "braces", "uriTemplate": "{".repeat(4_000_000) },
        { "name": "own", "uriTemplate": "note://fake/{name}" },
    ]);
    let world = world(
        "resources/templates/list",
        &json!({ "resourceTemplates": templates }),
    );
    let mut client = world.legacy();
    let begun = Instant::now();
    client.call("fake__echo", &json!({}));
    let listed = client.request("resources/templates/list", &json!({}));
    let listed = listed["result"]["resourceTemplates"].as_array().unwrap();
    let names: Vec<&str> = listed
        .iter()
        .map(|template| template["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["own"]);
    let uri = format!("note://fake/{}", "x".repeat(8000));
    let read = client.request("resources/read", &json!({ "uri": uri }));
    assert!(read.get("id").is_some(), "{read}");
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
}

#[test]
fn a_list_without_an_end_costs_its_further_pages_and_not_the_server() {
    let endless = json!({ "tools": tools(20), "nextCursor": "again" });
    let world = world("tools/list", &endless);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    let listed = client.tools();
    assert!(listed.contains(&"fake__tool0".to_owned()), "{listed:?}");
    let echoed = client.call("fake__echo", &json!({}));
    assert_ne!(echoed["isError"], true, "{echoed}");
}

#[test]
fn what_was_remembered_without_bounds_is_cut_at_the_next_start() {
    let world = world("prompts/list", &json!({ "prompts": [] }));
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    client.close();
    let file = catalog(&world);
    let mut known: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    known["tools"] = tools(200_000);
    known["templates"] = json!([{ "name": "huge", "uriTemplate": "{a}".repeat(1_400_000) }]);
    std::fs::write(&file, known.to_string()).unwrap();
    let begun = Instant::now();
    let mut client = world.legacy();
    let listed = client.tools();
    let of_fake = listed
        .iter()
        .filter(|name| name.starts_with("fake__tool"))
        .count();
    assert_eq!(of_fake, MOST);
    let templates = client.request("resources/templates/list", &json!({}));
    assert_eq!(templates["result"]["resourceTemplates"], json!([]));
    let unknown = client.request(
        "tools/call",
        &json!({ "name": "x".repeat(5000), "arguments": {} }),
    );
    assert!(unknown.get("id").is_some(), "{unknown}");
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
}

#[test]
fn templates_that_nearly_fit_a_long_uri_hold_up_nothing() {
    let world = World::new();
    let servers: Vec<String> = (0..3).map(|number| format!("s{number}")).collect();
    // Told from the URI by nothing but the whole match.
    let templates: Vec<Value> = (0..1000)
        .map(|number| {
            let template = format!("a:{}{{x{number}}}b", "{+x}a".repeat(31));
            json!({ "name": "t", "uriTemplate": template })
        })
        .collect();
    world.write(
        "templates",
        &json!({ "resourceTemplates": templates }).to_string(),
    );
    let answer = ["--answer", "resources/templates/list", "templates"];
    let fake = |name: &String| world.fake(&[&["--offers", name.as_str()], &answer[..]].concat());
    let declared: serde_json::Map<String, Value> =
        servers.iter().map(|name| (name.clone(), fake(name))).collect();
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": declared }));
    let mut client = world.legacy();
    for server in &servers {
        client.call(&format!("{server}__echo"), &json!({}));
    }
    let uri = format!("a:{}/b", "a".repeat(8000));
    for (method, params) in [
        ("resources/read", json!({ "uri": uri })),
        ("resources/subscribe", json!({ "uri": uri })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "x", "value": "" } }),
        ),
    ] {
        let answer = client.request(method, &params);
        assert!(answer.get("error").is_some(), "{method}: {answer}");
    }
}

#[test]
fn a_long_name_comes_back_shortened() {
    let world = World::new();
    let servers =
        json!({ "fake": world.fake(&["--offers", "fake"]), "other": world.fake(&["--offers", "other"]) });
    let permissions = json!({ "allow": ["*"], "deny": ["fake:long*"] });
    world.configure(&json!({ "permissions": permissions, "mcpServers": servers }));
    let mut client = world.legacy();
    for server in ["fake", "other"] {
        client.call(&format!("{server}__echo"), &json!({}));
    }
    // What runs is asked for a resource that none lists.
    client.close();
    let mut client = world.legacy();
    // Of more a debug build takes longer over reading it than a stall may take.
    let long = "long".repeat(50_000);
    let completion = |name: &str| json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": { "name": "x", "value": "" } });
    for (method, params) in [
        ("tools/call", json!({ "name": long, "arguments": {} })),
        (
            "tools/call",
            json!({ "name": format!("fake__{long}"), "arguments": {} }),
        ),
        (
            "tools/call",
            json!({ "name": format!("fake:{long}"), "arguments": {} }),
        ),
        ("prompts/get", json!({ "name": long })),
        ("prompts/get", json!({ "name": format!("fake__{long}") })),
        ("completion/complete", completion(&long)),
        (
            "resources/read",
            json!({ "uri": format!("pml://none/{}", &long[..8000]) }),
        ),
    ] {
        let answer = client.request(method, &params);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.len() < 1000, "{method}: {} bytes", message.len());
        assert!(message.contains("…(+"), "{method}: {message}");
    }
}
