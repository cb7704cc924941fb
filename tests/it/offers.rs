//! What servers offer: opened in either era, learned whole, remembered, merged, listed without starting anything.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::world::{Client, World};
use crate::support::{DEADLINE, eventually, have, sdk};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn modern(mut params: Value) -> Value {
    params["_meta"][VERSION] = json!("2026-07-28");
    params["_meta"][CAPABILITIES] = json!({});
    params
}

/// A world with two servers that offer things of their own and things that both have.
fn two(permissions: &Value) -> World {
    let world = World::new();
    two_ruled(&world, permissions);
    world
}

fn two_ruled(world: &World, permissions: &Value) {
    let server = |name: &str| world.fake(&["--started", "started", "--offers", name]);
    world.configure(
        &json!({ "permissions": permissions, "mcpServers": { "one": server("one"), "two": server("two") } }),
    );
}

/// A world with one fake server that may run.
fn allowed(options: &[&str]) -> World {
    World::with_fake(&json!({ "allow": ["fake"] }), options)
}

/// The values of one member of everything that is listed, but for pml's own prompts.
fn listed(client: &mut Client, method: &str, params: &Value, member: &str) -> Vec<String> {
    let answer = client.request(method, params);
    let result = answer["result"]
        .as_object()
        .unwrap_or_else(|| panic!("{method}: {answer}"));
    let list = result.values().find_map(Value::as_array).unwrap();
    let own = ["approve", "refuse", "answer", "pending"];
    list.iter()
        .map(|definition| definition[member].as_str().unwrap().to_owned())
        .filter(|name| !own.contains(&name.as_str()))
        .collect()
}

fn prompts(client: &mut Client) -> Vec<String> {
    listed(client, "prompts/list", &json!({}), "name")
}

fn resources(client: &mut Client) -> Vec<String> {
    listed(client, "resources/list", &json!({}), "uri")
}

fn templates(client: &mut Client) -> Vec<String> {
    listed(client, "resources/templates/list", &json!({}), "uriTemplate")
}

/// How often servers were started.
fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.path("started")).map_or(0, |text| text.lines().count())
}

/// The methods a server was asked for since it was last looked, in their order.
fn asked(world: &World) -> Vec<String> {
    let seen = world.read("seen");
    std::fs::write(world.path("seen"), "").unwrap();
    let method = |line: &str| serde_json::from_str::<Value>(line).unwrap()["method"].clone();
    seen.lines()
        .map(|line| method(line).as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn what_two_servers_offer_is_merged_and_known_to_a_fresh_pml_that_starts_nothing() {
    let world = two(&json!({ "allow": ["one", "two"] }));
    let mut client = world.legacy();
    assert_eq!(
        resources(&mut client),
        Vec::<String>::new(),
        "nothing is known yet"
    );
    client.call("one__connect", &json!({}));
    assert_eq!(resources(&mut client), ["shared://one", "one://own"]);
    client.notified("notifications/resources/list_changed");
    client.notified("notifications/prompts/list_changed");
    client.call("two__connect", &json!({}));
    drop(client);
    assert_eq!(starts(&world), 2);

    let (uris, templated, wires) = (
        [
            "pml://one/shared://one",
            "one://own",
            "pml://two/shared://one",
            "two://own",
        ],
        [
            "pml://one/shared://by/{id}",
            "one://{id}",
            "pml://two/shared://by/{id}",
            "two://{id}",
        ],
        ["one__greet", "one__one_only_", "two__greet", "two__two_only_"],
    );
    let mut client = world.legacy();
    assert_eq!(resources(&mut client), uris);
    assert_eq!(templates(&mut client), templated);
    let named = prompts(&mut client);
    for (found, expected) in named.iter().zip(wires) {
        assert!(found.starts_with(expected), "{named:?}");
    }
    let own = client.request("prompts/list", &json!({}))["result"]["prompts"].clone();
    assert_eq!(
        own.as_array().unwrap().len(),
        named.len() + 4,
        "pml's own are there"
    );
    drop(client);

    let mut client = world.client();
    for (method, member, array, expected) in [
        ("resources/list", "uri", "resources", uris.to_vec()),
        (
            "resources/templates/list",
            "uriTemplate",
            "resourceTemplates",
            templated.to_vec(),
        ),
    ] {
        assert_eq!(listed(&mut client, method, &modern(json!({})), member), expected);
        let result = client.request(method, &modern(json!({})))["result"].clone();
        let envelope = (&result["resultType"], &result["ttlMs"], &result["cacheScope"]);
        assert_eq!(envelope, (&json!("complete"), &json!(0), &json!("private")));
        assert!(result[array].is_array(), "{result}");
    }
    assert_eq!(
        listed(&mut client, "prompts/list", &modern(json!({})), "name"),
        named
    );
    let odd = client.request("resources/list", &modern(json!({ "cursor": "2" })));
    assert_eq!(odd["error"]["code"], -32602, "pml gave no cursor: {odd}");
    drop(client);
    assert_eq!(starts(&world), 2, "nothing was started for a list");
}

#[test]
fn what_a_rule_denies_is_not_listed_and_no_longer_collides() {
    let world = two(&json!({ "allow": ["one", "two"] }));
    let mut client = world.legacy();
    client.call("one__connect", &json!({}));
    client.call("two__connect", &json!({}));
    two_ruled(
        &world,
        &json!({ "allow": ["one", "two"], "deny": ["one:resources/shared://*", "one:prompts/greet"] }),
    );
    assert_eq!(resources(&mut client), ["one://own", "shared://one", "two://own"]);
    assert_eq!(
        templates(&mut client),
        ["one://{id}", "shared://by/{id}", "two://{id}"]
    );
    assert!(!prompts(&mut client).contains(&"one__greet".to_owned()));
    assert!(prompts(&mut client).contains(&"two__greet".to_owned()));
}

#[test]
fn definitions_pass_byte_for_byte_but_for_the_name() {
    let world = allowed(&["--offers", "only"]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    client.raw(r#"{"jsonrpc":"2.0","id":"r","method":"resources/list"}"#);
    client.raw(r#"{"jsonrpc":"2.0","id":"p","method":"prompts/list"}"#);
    let mut lines = Vec::new();
    while lines.len() < 2 {
        let line = client.line();
        if line.contains(r#""id":"#) {
            lines.push(line);
        }
    }
    assert_eq!(
        lines[0],
        r#"{"jsonrpc":"2.0","id":"r","result":{"resources":[{"uri":"shared://one","name":"shared://one","mimeType":"text/plain"},{"uri":"only://own","name":"only://own","mimeType":"text/plain"}]}}"#
    );
    let greet = r#"{"name":"fake__greet","x-long":1.5,"description":"Fake: greet"}"#;
    assert!(lines[1].contains(greet), "{}", lines[1]);
}

#[test]
fn a_server_that_speaks_only_the_modern_era_starts_lists_and_is_remembered() {
    let world = allowed(&[
        "--started",
        "started",
        "--record",
        "seen",
        "--offers",
        "new",
        "--modern",
    ]);
    let mut client = world.legacy();
    let connected = client.call("fake__connect", &json!({}));
    assert_eq!(connected.get("isError"), None, "{connected}");
    assert_eq!(resources(&mut client), ["shared://one", "new://own"]);
    drop(client);
    assert_eq!(
        starts(&world),
        1,
        "a refused `initialize` costs no second process"
    );
    let first = asked(&world);
    assert_eq!(
        first[..3],
        ["initialize", "server/discover", "subscriptions/listen"],
        "{first:?}"
    );

    let mut client = world.legacy();
    assert_eq!(resources(&mut client), ["shared://one", "new://own"]);
    assert_eq!(prompts(&mut client).len(), 2);
    assert_eq!(starts(&world), 1);
    client.call("fake__connect", &json!({}));
    drop(client);
    assert_eq!(
        asked(&world)[0],
        "server/discover",
        "the era that worked is tried first"
    );
    assert_eq!(starts(&world), 2);
}

#[test]
fn a_modern_server_that_ends_at_initialize_is_started_again() {
    let options = [
        "--started",
        "started",
        "--offers",
        "new",
        "--modern",
        "--exit-on",
        "initialize",
    ];
    let world = allowed(&options);
    let mut client = world.legacy();
    let connected = client.call("fake__connect", &json!({}));
    assert_eq!(connected.get("isError"), None, "{connected}");
    drop(client);
    assert_eq!(starts(&world), 2);
    world.legacy().call("fake__connect", &json!({}));
    assert_eq!(starts(&world), 3, "from then on it is opened as it likes");
}

#[test]
fn a_server_that_came_back_in_the_other_era_is_opened_all_the_same() {
    let options = ["--started", "started", "--offers", "new", "--modern-if", "modern"];
    let world = allowed(&options);
    world.write("modern", "");
    world.legacy().call("fake__connect", &json!({}));
    std::fs::remove_file(world.path("modern")).unwrap();
    for expected in [3, 4] {
        let mut client = world.legacy();
        let connected = client.call("fake__connect", &json!({}));
        assert_eq!(connected.get("isError"), None, "{connected}");
        assert_eq!(starts(&world), expected);
    }
}

#[test]
fn a_list_that_fails_is_empty_and_the_server_runs() {
    let world = allowed(&["--offers", "half", "--fail", "resources/list"]);
    let mut client = world.legacy();
    let connected = client.call("fake__connect", &json!({}));
    assert_eq!(connected.get("isError"), None, "{connected}");
    assert_eq!(resources(&mut client), Vec::<String>::new());
    assert_eq!(prompts(&mut client)[0], "fake__greet");
}

#[test]
fn a_list_is_never_older_than_a_change_that_was_told_before_an_answer() {
    let world = allowed(&["--offers", "new"]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    client.call("fake__more", &json!({}));
    // Nothing is waited for: the server said that its lists changed before it answered.
    assert!(resources(&mut client).contains(&"more://one".to_owned()));
    assert!(prompts(&mut client).contains(&"fake__more".to_owned()));
}

#[test]
fn each_list_that_changes_is_told_by_its_own_notification() {
    let world = allowed(&["--offers", "new"]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    client.notified("notifications/tools/list_changed");
    client.notified("notifications/prompts/list_changed");
    client.notified("notifications/resources/list_changed");
    client.call("fake__more", &json!({}));
    client.notified("notifications/prompts/list_changed");
    client.notified("notifications/resources/list_changed");
    assert!(resources(&mut client).contains(&"more://one".to_owned()));
    assert!(prompts(&mut client).contains(&"fake__more".to_owned()));
    let tools = |message: &&Value| message["method"] == "notifications/tools/list_changed";
    assert_eq!(client.aside.iter().filter(tools).count(), 0, "{:?}", client.aside);
}

#[test]
fn a_modern_client_hears_of_the_lists_it_subscribed_to() {
    let world = allowed(&["--offers", "new"]);
    let mut client = world.client();
    let wishes = json!({ "promptsListChanged": true, "toolsListChanged": false });
    let id = client.send(
        "subscriptions/listen",
        &modern(json!({ "notifications": wishes })),
    );
    let acknowledged = client.notified("notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "promptsListChanged": true })
    );
    client.request("tools/call", &modern(json!({ "name": "fake__connect" })));
    let told = client.notified("notifications/prompts/list_changed");
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
    let others = |message: &&Value| {
        message["method"]
            .as_str()
            .is_some_and(|method| method.contains("tools"))
    };
    assert_eq!(
        client.aside.iter().filter(others).count(),
        0,
        "{:?}",
        client.aside
    );
}

#[test]
fn a_modern_server_is_asked_to_tell_its_changes_and_heard() {
    let world = allowed(&[
        "--record",
        "seen",
        "--offers",
        "new",
        "--modern",
        "--more-when",
        "go",
    ]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    client.notified("notifications/resources/list_changed");
    client.notified("notifications/prompts/list_changed");
    let seen = world.read("seen");
    let listen = seen
        .lines()
        .find(|line| line.contains("subscriptions/listen"))
        .unwrap();
    let listen: Value = serde_json::from_str(listen).unwrap();
    assert_eq!(
        listen["params"]["notifications"],
        json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true })
    );
    assert_eq!(listen["params"]["_meta"][VERSION], "2026-07-28");
    world.write("go", "");
    client.notified("notifications/resources/list_changed");
    assert!(resources(&mut client).contains(&"more://one".to_owned()));
}

#[test]
fn a_server_that_does_not_tell_its_changes_is_asked_before_it_is_listed() {
    let world = allowed(&["--quiet", "new"]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    assert!(!resources(&mut client).contains(&"more://one".to_owned()));
    client.call("fake__more", &json!({}));
    assert!(resources(&mut client).contains(&"more://one".to_owned()));
    assert!(prompts(&mut client).contains(&"fake__more".to_owned()));
    drop(client);
    let mut fresh = world.legacy();
    assert!(
        resources(&mut fresh).contains(&"more://one".to_owned()),
        "what was seen is remembered"
    );
}

#[test]
fn a_resource_that_nobody_lists_is_read_from_whoever_has_it_and_runs() {
    let world = two(&json!({ "allow": ["one", "two"], "deny": ["two:resources/hidden://denied/two"] }));
    let mut client = world.legacy();
    client.call("one__connect", &json!({}));
    client.call("two__connect", &json!({}));
    drop(client);
    let read = |client: &mut Client, uri: &str| client.request("resources/read", &json!({ "uri": uri }));
    let mut client = world.legacy();
    let unread = read(&mut client, "hidden://two");
    assert_eq!(unread["error"]["code"], -32002, "nothing runs: {unread}");
    assert_eq!(starts(&world), 2, "nothing is started for a guess");
    client.call("one__echo", &json!({}));
    client.call("two__echo", &json!({}));
    for server in ["one", "two"] {
        let answer = read(&mut client, &format!("hidden://{server}"));
        assert_eq!(answer["result"]["contents"][0]["text"], server, "{answer}");
    }
    for nobodys in ["hidden://three", "hidden://denied/two"] {
        let answer = read(&mut client, nobodys);
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
    }
}

#[test]
fn a_server_that_is_slow_to_read_is_not_taken_for_one_that_has_nothing() {
    let world = World::new();
    let slow = world.fake(&["--offers", "slow", "--read-when", "ready", "--record", "seen"]);
    let servers = json!({ "other": world.fake(&["--offers", "other"]), "slow": slow });
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));
    let mut client = world.legacy();
    client.call("other__connect", &json!({}));
    client.call("slow__connect", &json!({}));
    let id = client.send("resources/read", &json!({ "uri": "hidden://slow" }));
    let reads = || world.read("seen").matches(r#""resources/read""#).count();
    // Once to ask whether it has it, and once more when nobody else can.
    eventually("the slow server is sent the request itself", DEADLINE, || {
        reads() == 2
    });
    world.write("ready", "");
    assert_eq!(client.answer(id)["result"]["contents"][0]["text"], "slow");
}

#[test]
fn the_client_is_told_the_union_of_what_is_behind() {
    let world = two(&json!({ "allow": ["one", "two"] }));
    let everything = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "completions": {},
        "logging": {},
    });
    let mut client = world.client();
    let opened = client.initialize("2025-06-18");
    assert_eq!(
        opened["capabilities"], everything,
        "what was never seen may do anything"
    );
    client.call("one__connect", &json!({}));
    client.call("two__connect", &json!({}));
    drop(client);

    let mut known = everything;
    known
        .as_object_mut()
        .unwrap()
        .retain(|name, _| name != "completions" && name != "logging");
    let mut client = world.client();
    let opened = client.initialize("2025-06-18");
    assert_eq!(opened["capabilities"], known);
    let told = opened["instructions"].as_str().unwrap();
    assert!(
        told.ends_with("\n\n# one\nSpeak softly to one.\n\n# two\nSpeak softly to two."),
        "{told}"
    );
    drop(client);
    let discovered = world.client().request("server/discover", &modern(json!({})))["result"].clone();
    assert_eq!(discovered["capabilities"], known);
    assert_eq!(discovered["instructions"].as_str().unwrap(), told);

    world.configure(&json!({ "mcpServers": {
        "one": world.fake(&["--started", "started", "--offers", "one"]),
        "two": { "command": "./off", "disabled": true },
    } }));
    let opened = world.client().initialize("2025-06-18");
    known["x-fake"] = json!({ "name": "one" });
    assert_eq!(
        opened["capabilities"], known,
        "the only one can be addressed with anything"
    );
}

#[test]
fn a_server_sees_exactly_what_the_client_declared() {
    let world = allowed(&["--record", "seen"]);
    let mut client = world.client();
    let capabilities = json!({ "elicitation": {}, "roots": { "listChanged": true }, "x-own": 1.5 });
    let information = json!({ "name": "editor", "version": "7", "x": [1] });
    client.request(
        "initialize",
        &json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": information }),
    );
    client.notify("notifications/initialized", &json!({}));
    client.call("fake__connect", &json!({}));
    let seen = world.read("seen");
    let opened: Value = serde_json::from_str(seen.lines().next().unwrap()).unwrap();
    assert_eq!(
        opened["params"],
        json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": information })
    );
}

#[test]
fn a_server_that_refuses_both_eras_is_refused_with_its_own_words() {
    let world = allowed(&["--started", "started", "--refuse-initialize"]);
    let refused = world.legacy().call("fake__connect", &json!({}));
    assert_eq!(refused["isError"], true);
    let told = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        told.contains("`initialize`") && told.contains("unsupported version"),
        "{told}"
    );
    assert_eq!(starts(&world), 1);
}

#[test]
fn the_everything_server_is_known_after_its_first_start() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = World::new();
    let cache = world.home().join(".cache/pml");
    std::fs::create_dir_all(&cache).unwrap();
    std::os::unix::fs::symlink(sdk::kept("npm"), cache.join("npm")).unwrap();
    let line = ["-y", "@modelcontextprotocol/server-everything@2026.8.31"];
    world.configure(&json!({
        "permissions": { "allow": ["everything"] },
        "mcpServers": { "everything": { "command": "npx", "args": line } },
    }));
    let mut client = world.legacy();
    client.call("everything__connect", &json!({}));
    let known = (
        prompts(&mut client),
        resources(&mut client),
        templates(&mut client),
    );
    assert!(
        !known.0.is_empty() && known.0.iter().all(|name| name.starts_with("everything__")),
        "{known:?}"
    );
    assert!(!known.1.is_empty() && !known.2.is_empty(), "{known:?}");
    drop(client);
    world.assert_no_survivor("after the client closed");

    let mut client = world.client();
    let everything = modern(json!({}));
    assert_eq!(listed(&mut client, "prompts/list", &everything, "name"), known.0);
    assert_eq!(listed(&mut client, "resources/list", &everything, "uri"), known.1);
    assert_eq!(
        listed(
            &mut client,
            "resources/templates/list",
            &everything,
            "uriTemplate"
        ),
        known.2
    );
    eventually("pml alone runs", DEADLINE, || world.running().len() == 1);
}
