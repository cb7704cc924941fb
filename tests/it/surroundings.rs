//! Where a server runs and which variables it gets decide which code runs: a person sees both before they agree.

use serde_json::{Value, json};

use crate::support::world::{World, asks, json_of, stderr, stdout, texts};
use crate::support::{fake_server, mark};

/// A server that runs outside the project, with a variable that steers its code and one that holds a secret.
fn world(approvals: &Value) -> World {
    let world = World::new();
    let mut server = world.fake(&[]);
    let outside = world.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    server["cwd"] = json!("../outside");
    server["env"]["PYTHONUSERBASE"] = json!("/evil");
    server["env"]["TOKEN"] = json!("hunter2");
    world.configure(&json!({ "approvals": approvals, "mcpServers": { "fake": server } }));
    world
}

const NAMES: [&str; 3] = ["PML_TEST_MARK", "PYTHONUSERBASE", "TOKEN"];

fn assert_told(world: &World, text: &str) {
    // A dialog breaks its lines at blanks.
    let text = &text.replace('\n', " ");
    let outside = world.path("../outside");
    for told in [
        outside.to_str().unwrap(),
        &NAMES.join(", "),
        "PYTHONUSERBASE=/evil ",
    ] {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn the_directory_and_the_variables_stand_in_every_question() {
    let world = world(&json!({}));
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert_told(&world, &texts(&asked).join("\n"));
    let dependency = &asked["approval_context"]["dependency"];
    let outside = world.path("../outside");
    assert_eq!(
        (&dependency["cwd"], &dependency["env"]),
        (&json!(outside.to_str().unwrap()), &json!(NAMES))
    );
    assert_told(&world, &stdout(&world.run(&["pending"])));
    let pending = json_of(&world.run(&["pending", "--json"]));
    assert_eq!(pending["pending"][0]["dependency"], *dependency);
    client.close();

    let mut client = world.client();
    client.initialize_with_forms();
    client.send("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
    let form = client.notified("elicitation/create");
    let message = form["params"]["message"].as_str().unwrap();
    let field = &form["params"]["requestedSchema"]["properties"]["decision"];
    let beside = field["description"].as_str().unwrap_or_default();
    assert_told(&world, &format!("{message}\n{beside}"));
    assert!(message.lines().count() <= 4, "a dialog shows no more: {message}");
    client.reply(&form, &json!({ "action": "decline" }));
    client.close();
}

#[test]
fn an_addition_shows_the_variables() {
    let world = World::new();
    let fake = fake_server();
    let arguments = [
        "add",
        "fake",
        "--env",
        "HOME=/evil",
        "--env",
        "TOKEN=${T:-x}",
        "--",
    ];
    let output = world.run(&[&arguments[..], &[fake.to_str().unwrap()]].concat());
    let said = stderr(&output);
    assert!(
        said.contains(&format!("\nruns       HOME=/evil {}\n", fake.display())),
        "{said}"
    );
    assert!(said.contains("\nvariables  HOME, TOKEN\n"), "{said}");
}

#[test]
fn another_directory_or_variable_asks_again() {
    let world = world(&json!({}));
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    assert!(!asks(&client.call("fake__echo", &json!({}))));
    let configured: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    let server = "/mcpServers/fake";
    for (place, value) in [
        ("cwd", json!("..")),
        ("env", json!({ "PML_TEST_MARK": mark(), "HOME": "/evil" })),
    ] {
        let mut changed = configured.clone();
        changed.pointer_mut(server).unwrap()[place] = value;
        world.configure(&changed);
        let again = client.call("fake__echo", &json!({}));
        assert!(asks(&again), "{place}: {again}");
    }
}
