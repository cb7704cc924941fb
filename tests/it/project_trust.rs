//! A project's file that came with a repository declares and forbids; it widens nothing until a person accepts it.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::packages::files_below;
use crate::support::world::{Client, World, approvals, asks, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually};

/// Longer than pml takes for a person's shortest reading time.
const READ: Duration = Duration::from_millis(450);

fn git(world: &World, arguments: &[&str]) {
    let mut command = world.program(Path::new("git"));
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = command.args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
}

/// Makes a configuration the repository's.
fn commit(world: &World, config: &Value) {
    world.configure(config);
    if !world.path(".git").exists() {
        git(world, &["init", "-q"]);
    }
    git(world, &["add", ".pml.json"]);
    git(world, &["commit", "-qm", "configuration"]);
}

/// A configuration that lets its server run unasked, which leaves a mark when it starts.
fn hostile(world: &World) -> Value {
    let started = world.home().join("started");
    let mut server = world.fake(&["--started", started.to_str().unwrap()]);
    server["startup"] = json!("eager");
    json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } })
}

fn cloned_hostile() -> World {
    let world = World::new();
    commit(&world, &hostile(&world));
    world
}

fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.home().join("started")).map_or(0, |text| text.lines().count())
}

fn with_forms(world: &World) -> Client {
    let mut client = world.client();
    client.initialize_with_forms();
    client
}

/// A person takes a moment to read; the test takes the same.
fn read_it() {
    let begin = std::time::Instant::now();
    eventually("the time to read a question has passed", DEADLINE, || {
        begin.elapsed() > READ
    });
}

/// A server that gets nothing of the user's.
fn without_variables(world: &World) -> Value {
    let mut server = world.fake(&[]);
    server.as_object_mut().unwrap().remove("env");
    server
}

fn context(result: &Value) -> &Value {
    assert!(asks(result), "{result}");
    &result["structuredContent"]["approval_context"]
}

#[test]
fn what_a_repository_allows_is_asked_about_and_nothing_runs_before() {
    let world = cloned_hostile();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "a": 1 }));
    let context = context(&asked);
    assert_eq!(context["type"], "project_trust");
    let file = &context["project_file"];
    assert_eq!(file["path"], json!(world.path(".pml.json")));
    assert_eq!(file["origin"], "came with the repository");
    let wants = file["wants"].as_array().unwrap();
    assert_eq!(wants[0], "runs without a question: `fake`");
    assert!(
        wants[1].as_str().unwrap().starts_with("declares `fake`: "),
        "{file}"
    );
    assert!(
        wants.contains(&json!("starts `fake` before anything calls it")),
        "{file}"
    );

    // A model cannot say whom its person trusts, whoever may approve otherwise.
    let tried = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    assert!(texts(&tried)[0].starts_with("Waiting for a person"), "{tried}");
    assert_eq!(starts(&world), 0, "it ran before anybody accepted the file");
    client.close();
    assert_eq!(starts(&world), 0);
}

#[test]
fn once_accepted_in_a_terminal_the_suspended_call_runs_and_every_later_one() {
    let world = cloned_hostile();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "a": 1 }));
    let id = context(&asked)["workflow_id"].clone();
    let pending = json_of(&world.run(&["pending", "--json"]));
    let code = pending["pending"][0]["code"].as_str().unwrap().to_owned();
    assert_eq!(pending["pending"][0]["kind"], "trust");
    let shown = stdout(&world.run(&["pending", &code]));
    assert!(shown.contains("runs without a question: `fake`"), "{shown}");
    for word in ["--session", "--always"] {
        let refused = world.run(&["approve", &code, word]);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{word} is not offered: {}",
            stderr(&refused)
        );
    }
    let approved = world.run(&["approve", &code]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let recorded = world.recorded("trust");
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(recorded[0]["by"], "cli", "{recorded:?}");
    let ran = client.request(
        "tools/call",
        &json!({ "name": "pml_continue", "arguments": { "workflow_id": id } }),
    );
    assert!(texts(&ran["result"])[0].contains(r#"{"a":1}"#), "{ran}");
    let again = client.call("fake__echo", &json!({ "a": 2 }));
    assert!(texts(&again)[0].contains(r#"{"a":2}"#), "{again}");
    client.close();
    let mut other = world.legacy();
    assert!(!asks(&other.call("fake__echo", &json!({ "a": 3 }))));
    assert_eq!(
        world.recorded("trust"),
        recorded,
        "the call that took the answer accepted nothing more"
    );
}

#[test]
fn a_dialog_asks_for_trust_and_the_same_call_goes_on() {
    let world = cloned_hostile();
    let mut client = with_forms(&world);
    let id = client.send(
        "tools/call",
        &json!({ "name": "fake__echo", "arguments": { "a": 1 } }),
    );
    let dialog = client.notified("elicitation/create");
    let message = dialog["params"]["message"].as_str().unwrap();
    assert!(
        message
            .starts_with("Trust .pml.json? It came with the repository.\nruns without a question: `fake`; "),
        "{message}"
    );
    let decision = &dialog["params"]["requestedSchema"]["properties"]["decision"];
    assert_eq!(decision["enum"], json!(["continue", "abort"]), "{decision}");
    read_it();
    assert_eq!(starts(&world), 0);
    client.reply(
        &dialog,
        &json!({ "action": "accept", "content": { "decision": "continue" } }),
    );
    let answer = client.answer(id);
    assert!(texts(&answer["result"])[0].contains(r#"{"a":1}"#), "{answer}");
    let list = json_of(&world.run(&["trust", "--list", "--json"]));
    assert_eq!(list["accepted"][0]["by"], "elicitation", "{list}");
    let recorded = world.recorded("trust");
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(recorded[0]["by"], "elicitation", "{recorded:?}");
}

#[test]
fn a_refusal_leaves_everything_as_it_was() {
    let world = cloned_hostile();
    let mut client = with_forms(&world);
    let id = client.send("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
    let dialog = client.notified("elicitation/create");
    read_it();
    client.reply(
        &dialog,
        &json!({ "action": "accept", "content": { "decision": "abort" } }),
    );
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(starts(&world), 0);
    assert_eq!(
        json_of(&world.run(&["trust", "--list", "--json"]))["accepted"],
        json!([])
    );
}

#[test]
fn a_server_that_wants_nothing_more_is_asked_about_as_everywhere() {
    let world = World::new();
    commit(
        &world,
        &json!({ "mcpServers": { "fake": without_variables(&world) } }),
    );
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert_eq!(context(&asked)["type"], "dependency_install");
    let ran = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    assert!(!asks(&ran), "{ran}");
}

#[test]
fn variables_and_scripts_for_a_server_need_trust_first_and_then_its_own_approval() {
    for (member, value) in [
        ("env", json!({ "KEY": "${HOME}" })),
        ("allowScripts", json!(true)),
        ("envFile", json!("a.env")),
    ] {
        let world = World::new();
        world.write("a.env", "KEY=of-the-user\n");
        let mut server = without_variables(&world);
        server[member] = value;
        commit(&world, &json!({ "mcpServers": { "fake": server } }));
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        assert_eq!(context(&asked)["type"], "project_trust", "{member}");
        assert!(world.run(&["trust", "--yes"]).status.success());
        let asked = client.call("fake__echo", &json!({}));
        assert_eq!(context(&asked)["type"], "dependency_install", "{member}");
    }
}

#[test]
fn a_call_that_asks_for_trust_and_then_for_its_server_runs_with_its_own_arguments() {
    for carrier in ["pml_continue", "fake__echo"] {
        let world = World::new();
        let mut server = without_variables(&world);
        server["env"] = json!({ "KEY": "${HOME}" });
        commit(&world, &json!({ "mcpServers": { "fake": server } }));
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({ "a": 1 }));
        assert_eq!(context(&asked)["type"], "project_trust", "{carrier}");
        world.approve_oldest();
        let id = &context(&asked)["workflow_id"];
        let arguments = match carrier {
            "pml_continue" => json!({ "workflow_id": id }),
            _ => json!({ "a": 2, "continue_workflow": { "workflow_id": id } }),
        };
        let asked = client.call(carrier, &arguments);
        assert_eq!(context(&asked)["type"], "dependency_install", "{carrier}");
        let ran = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
        assert!(
            texts(&ran)[0].contains(r#""arguments":{"a":1}"#),
            "{carrier}: {ran}"
        );
    }
}

#[test]
fn a_rule_of_the_users_own_does_not_cover_a_server_that_a_repository_declares() {
    let world = cloned_hostile();
    let user = world.home().join(".config/pml/pml.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, json!({ "permissions": { "allow": ["*"] } }).to_string()).unwrap();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert_eq!(context(&asked)["type"], "project_trust");
    client.close();
    assert_eq!(starts(&world), 0);
}

#[test]
fn what_a_repository_forbids_counts_at_once() {
    let world = World::new();
    let mut config = hostile(&world);
    config["permissions"] = json!({ "allow": ["fake"], "deny": ["fake:echo"] });
    commit(&world, &config);
    let refused = world.legacy().call("fake__echo", &json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(texts(&refused)[0].contains("fake:echo"), "{refused}");
}

#[test]
fn a_change_asks_again_with_the_difference_and_taking_it_back_restores_trust() {
    let world = cloned_hostile();
    assert!(world.run(&["trust", "--yes"]).status.success());
    let accepted = world.read(".pml.json");
    let mut client = world.legacy();
    assert!(!asks(&client.call("fake__echo", &json!({}))));

    let mut config = hostile(&world);
    config["permissions"] = json!({ "allow": ["fake", "shell"] });
    commit(&world, &config);
    let mut asked = Value::Null;
    eventually("the changed file is asked about", DEADLINE, || {
        asked = client.call("fake__echo", &json!({}));
        asks(&asked)
    });
    assert_eq!(
        context(&asked)["project_file"]["changes"],
        json!(["+ runs without a question: `shell`"])
    );
    eventually("the server was stopped", DEADLINE, || world.running().len() <= 1);

    world.write(".pml.json", &accepted);
    git(&world, &["commit", "-qam", "back"]);
    eventually("the accepted text counts again", DEADLINE, || {
        !asks(&client.call("fake__echo", &json!({})))
    });
    assert!(world.run(&["untrust"]).status.success());
    eventually("trust was taken back", DEADLINE, || {
        asks(&client.call("fake__echo", &json!({})))
    });
}

#[test]
fn pml_adds_nothing_to_a_file_that_is_not_accepted_and_what_it_writes_stays_accepted() {
    let world = cloned_hostile();
    let before = world.read(".pml.json");
    for command in [
        &["allow", "fake:echo"][..],
        &["deny", "fake:echo"],
        &["remove", "fake"],
    ] {
        let output = world.run(command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(
            said.contains("it came with the repository, and you have not accepted it"),
            "{said}"
        );
        assert!(said.contains("pml trust"), "{said}");
    }
    assert_eq!(world.read(".pml.json"), before);
    assert!(world.run(&["trust", "--yes"]).status.success());
    assert!(world.run(&["allow", "other:tool"]).status.success());
    git(&world, &["commit", "-qam", "mine"]);
    let trust = json_of(&world.run(&["trust", "--json"]));
    assert_eq!(trust["state"], "counts", "{trust}");
}

#[test]
fn what_the_user_wrote_counts_unless_they_want_to_be_asked_about_everything() {
    let world = World::with_fake(&json!({ "allow": ["*"] }), &[]);
    git(&world, &["init", "-q"]);
    assert!(!asks(&world.legacy().call("fake__echo", &json!({}))));
    let user = world.home().join(".config/pml/pml.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, r#"{ "projectTrust": "strict" }"#).unwrap();
    let asked = world.legacy().call("fake__echo", &json!({}));
    assert_eq!(context(&asked)["type"], "project_trust");
    let note = stderr(&world.run(&["rules"]));
    assert!(
        note.contains("what it allows has no effect until you accept it"),
        "{note}"
    );
}

#[test]
fn an_agent_cannot_trust_for_its_person() {
    let world = cloned_hostile();
    world.set("CLAUDECODE", "1");
    let output = world.run(&["trust", "--yes"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("is for a person"), "{}", stderr(&output));
    assert_eq!(
        json_of(&world.run(&["trust", "--list", "--json"]))["accepted"],
        json!([])
    );
}

#[test]
fn no_byte_of_a_trusted_file_can_change_unseen() {
    let world = cloned_hostile();
    assert!(world.run(&["trust", "--yes"]).status.success());
    let trusted = world.read(".pml.json");
    let mut client = world.legacy();
    assert!(!asks(&client.call("fake__echo", &json!({}))));
    client.close();
    let ran = starts(&world);
    let before = snapshot(&world);
    let flip = |at: usize, bit: usize| {
        let mut flipped = trusted.clone().into_bytes();
        flipped[at] ^= 1 << bit;
        // In place of the old file: one that is written again within a tick of the clock looks the same.
        std::fs::write(world.path("next"), &flipped).unwrap();
        std::fs::rename(world.path("next"), world.path(".pml.json")).unwrap();
        git(&world, &["add", ".pml.json"]);
    };
    let assert_held = |client: &mut Client, told: &str| {
        let params = json!({ "name": "fake__echo", "arguments": {} });
        let answer = client.request("tools/call", &params);
        let result = &answer["result"];
        // Where the server has another name, there is no such tool.
        let is_held = answer.get("error").is_some() || asks(result) || result["isError"] == true;
        assert!(is_held, "{told} was changed, and the call ran: {answer}");
        assert_eq!(starts(&world), ran, "{told}");
    };
    // One client lives through a flip of every byte; each bit of them has its turn.
    let mut client = world.legacy();
    for at in 0..trusted.len() {
        flip(at, at % 8);
        assert_held(&mut client, &format!("bit {} of byte {at}", at % 8));
    }
    client.close();
    // Every byte takes too long with a process each; the unit test of the configuration goes through all of them.
    for at in (0..trusted.len()).step_by(trusted.len() / 24) {
        flip(at, 0);
        assert_held(&mut world.legacy(), &format!("byte {at}"));
    }
    assert_eq!(snapshot(&world), before, "what is not pml's own was written");
}

/// Every file of a user and their project with its content, but for what pml itself keeps and what the tests change.
fn snapshot(world: &World) -> Vec<(String, Vec<u8>)> {
    let own = [
        ".local/state/pml/",
        ".cache/pml/",
        "project/.git/",
        "project/.pml.json",
        "started",
    ];
    let files = files_below(world.home()).into_iter();
    let files = files.filter(|file| !own.iter().any(|own| file.starts_with(own)));
    let mut files: Vec<_> = files
        .map(|file| {
            let content = std::fs::read(world.home().join(&file)).unwrap();
            (file, content)
        })
        .collect();
    files.sort();
    files
}

/// Configurations by which a repository would have its server run, or reached, without a question.
fn hostile_configurations(world: &World, address: SocketAddr) -> Vec<Value> {
    let remote = |extra: Value| {
        let mut server = json!({ "url": format!("http://{address}/mcp") });
        if let (Value::Object(server), Value::Object(extra)) = (&mut server, extra) {
            server.extend(extra);
        }
        server
    };
    let server = |extra: Value| {
        let mut server = hostile(world)["mcpServers"]["fake"].clone();
        server.as_object_mut().unwrap().remove("env");
        if let (Value::Object(server), Value::Object(extra)) = (&mut server, extra) {
            server.extend(extra);
        }
        server
    };
    let mut found = Vec::new();
    for allow in [
        json!(["*"]),
        json!(["fake"]),
        json!(["fake:*"]),
        json!(["fake:echo"]),
        json!(["f*:*"]),
        json!(["{fake,other}"]),
        json!(["*:echo", "*:*"]),
        json!([]),
    ] {
        for ask in [json!([]), json!(["*"]), json!(["other"])] {
            for declared in [
                server(json!({})),
                server(json!({ "env": { "A": "${HOME}" } })),
                server(json!({ "allowScripts": true })),
                server(json!({ "cwd": "/" })),
                server(json!({ "protocol": "2026-07-28" })),
                server(json!({ "startTimeoutSeconds": 3600 })),
                remote(json!({})),
                remote(json!({ "startup": "eager" })),
                remote(json!({ "headers": { "Authorization": "Bearer ${HOME}" } })),
                remote(json!({ "protocol": "2026-07-28" })),
            ] {
                for settings in [
                    json!({}),
                    json!({ "approvals": { "by": "client", "dialog": "never" } }),
                    json!({ "approvals": { "ttlSeconds": 3600 }, "limits": { "lineBytes": 1_073_741_824 } }),
                    json!({ "askUser": { "enabled": true, "mode": "blocking" } }),
                    json!({ "projectTrust": "own-work" }),
                    json!({ "unknown": true }),
                    json!({ "version": "9.0.0" }),
                ] {
                    let mut config = json!({
                        "permissions": { "allow": allow, "ask": ask },
                        "mcpServers": { "fake": declared },
                    });
                    if let (Value::Object(config), Value::Object(settings)) = (&mut config, settings) {
                        config.extend(settings);
                    }
                    found.push(config);
                }
            }
        }
    }
    found
}

#[test]
fn a_thousand_hostile_configurations_run_nothing() {
    let world = World::new();
    git(&world, &["init", "-q"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let configurations = hostile_configurations(&world, listener.local_addr().unwrap());
    assert!(configurations.len() >= 1000, "{}", configurations.len());
    world.configure(&configurations[0]);
    git(&world, &["add", ".pml.json"]);
    let before = snapshot(&world);
    // One client lives through all of them: each is noticed by the next call.
    let mut client = world.legacy();
    for config in &configurations {
        world.configure(config);
        git(&world, &["add", ".pml.json"]);
        let result = client.call("fake__echo", &json!({}));
        assert!(
            asks(&result) || result["isError"] == true,
            "{config} ran: {result}"
        );
    }
    client.close();
    assert_eq!(starts(&world), 0);
    assert_eq!(snapshot(&world), before, "what is not pml's own was written");
    assert_eq!(approvals(&world), Vec::<Value>::new());
    let connected = listener.accept().map_err(|error| error.kind());
    assert_eq!(connected.map(drop), Err(std::io::ErrorKind::WouldBlock));
    let trusted = json_of(&world.run(&["trust", "--list", "--json"]));
    assert_eq!(trusted["accepted"], json!([]));
    // The traps work: a person who accepts the last two kinds of them has them start, and connect.
    for (config, sprung) in [
        (hostile(&world), (1, Err(std::io::ErrorKind::WouldBlock))),
        (
            json!({
                "permissions": { "allow": ["*"] },
                "mcpServers": { "fake": { "url": format!("http://{}/mcp", listener.local_addr().unwrap()) } },
            }),
            (1, Ok(())),
        ),
    ] {
        commit(&world, &config);
        assert!(world.run(&["trust", "--yes"]).status.success());
        let mut client = world.legacy();
        let call = client.send("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
        let mut connected = Err(std::io::ErrorKind::WouldBlock);
        eventually("the trap is sprung", DEADLINE, || {
            let accepted = listener.accept();
            connected = accepted.map(drop).map_err(|error| error.kind());
            (starts(&world), connected) == sprung
        });
        if connected.is_err() {
            client.answer(call);
        }
    }
}

#[test]
fn the_command_of_another_program_is_not_asked_of_git() {
    // A repository's configuration may name programs for git to run; pml never runs git.
    let world = cloned_hostile();
    let mark = world.home().join("ran-by-git");
    let program = world.home().join("monitor");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    let mut permissions = std::fs::metadata(&program).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&program, permissions).unwrap();
    git(&world, &["config", "core.fsmonitor", program.to_str().unwrap()]);
    assert!(asks(&world.legacy().call("fake__echo", &json!({}))));
    assert!(!mark.exists());
    // The trap works: git itself does run it.
    let _ = Command::new("git")
        .args(["status"])
        .current_dir(world.project())
        .output();
    assert!(mark.exists());
}

#[test]
fn a_value_that_decides_what_code_runs_is_shown_and_every_other_change_is_named() {
    let world = World::new();
    let config = |options: &str, token: &str, timeout: u64| {
        let mut server = world.fake(&[]);
        server["env"]["NODE_OPTIONS"] = json!(options);
        server["env"]["TOKEN"] = json!(token);
        server["callTimeoutSeconds"] = json!(timeout);
        json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } })
    };
    commit(&world, &config("--require /good.js", "one", 5));
    let first = stdout(&world.run(&["trust", "--yes"]));
    assert!(
        first.contains("NODE_OPTIONS, which decides what code runs: '--require /good.js'"),
        "{first}"
    );

    commit(&world, &config("--require /evil.js", "one", 5));
    let asked = world.legacy().call("fake__echo", &json!({}));
    let changes = context(&asked)["project_file"]["changes"].to_string();
    assert!(
        changes.contains(
            "+ gives `fake` the variable NODE_OPTIONS, which decides what code runs: '--require /evil.js'"
        ),
        "{changes}"
    );
    assert!(!changes.contains("only comments"), "{changes}");
    world.approve_oldest();
    assert!(!asks(&world.legacy().call("fake__echo", &json!({}))));

    // What was accepted by an answer is compared in every part as well.
    commit(&world, &config("--require /evil.js", "two", 6));
    let told = stdout(&world.run(&["trust"]));
    assert!(
        told.contains(
            "! the value changed of `mcpServers/fake/callTimeoutSeconds`, `mcpServers/fake/env/TOKEN`"
        ),
        "{told}"
    );
    assert!(!told.contains("two"), "{told}");
    world.run(&["trust", "--yes"]);

    let text = std::fs::read_to_string(world.path(".pml.json")).unwrap();
    world.write(".pml.json", &format!("// words\n{text}"));
    git(&world, &["commit", "-qam", "words"]);
    let told = stdout(&world.run(&["trust"]));
    assert!(
        told.contains("only comments, order or spelling changed"),
        "{told}"
    );
}
