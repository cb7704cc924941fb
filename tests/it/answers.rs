//! What an answer is worth: on which road it comes, from where, in which order, and what becomes of it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, expire_workflows, json_of, stderr, texts};
use crate::support::{DEADLINE, eventually, pml};

/// What a model is told after a refusal.
const NOT_AGAIN: &str = "It did not run. Do not call it again unless the person asks for it.";

/// Longer than pml takes for a person's shortest reading time.
const READ: Duration = Duration::from_millis(450);

/// A world whose server counts its starts and records what it is sent.
fn world(by: &str, permissions: &Value) -> World {
    let world = World::new();
    world.configure(&json!({
        "permissions": permissions,
        "approvals": { "by": by },
        "mcpServers": { "fake": world.fake(&["--started", "started", "--record", "seen"]) },
    }));
    world
}

/// The rules under which a server is asked for once, and those under which every call is.
const FIRST: &str = "*";
const EVERY: &str = "fake:echo";

fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.path("started")).map_or(0, |text| text.lines().count())
}

/// How many calls with this argument the server has seen.
fn runs(world: &World, argument: &str) -> usize {
    let seen = std::fs::read_to_string(world.path("seen")).unwrap_or_default();
    seen.lines()
        .filter(|line| line.contains("tools/call") && line.contains(argument))
        .count()
}

fn modern(client: &mut Client, params: &Value) -> u64 {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    client.send("tools/call", &params)
}

fn modern_result(client: &mut Client, params: &Value) -> Value {
    let id = modern(client, params);
    let answer = client.answer(id);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

fn retry(call: &Value, asked: &Value, filled: &Value) -> Value {
    let mut retry = call.clone();
    retry["requestState"] = asked["requestState"].clone();
    retry["inputResponses"] = json!({ "answer": filled });
    retry
}

fn accept(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

fn with_forms(world: &World) -> Client {
    let mut client = world.client();
    client.initialize_with_forms();
    client
}

/// The code of the newest ask that waits.
fn code(world: &World) -> String {
    let pending = json_of(&world.run(&["pending", "--json"]));
    let newest = pending["pending"].as_array().unwrap().last().unwrap();
    newest["code"].as_str().unwrap().to_owned()
}

fn read_it() {
    let begin = std::time::Instant::now();
    eventually("the time to read a question has passed", DEADLINE, || {
        begin.elapsed() > READ
    });
}

/// Starts pml in another project of the same user.
fn elsewhere(world: &World, config: &Value) -> Client {
    let other = world.home().join("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join(".pml.json"), config.to_string()).unwrap();
    let mut command = world.command(&["stdio"]);
    command.current_dir(other);
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    client
}

#[test]
fn a_continuation_counts_only_in_the_project_of_the_ask() {
    for by in ["human", "client"] {
        let world = world(by, &json!({ "ask": ["*"] }));
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        let config = json!({ "approvals": { "by": "client" } });
        let mut stranger = elsewhere(&world, &config);
        world.write("other.json", &config.to_string());
        let mut beside = Client::start(world.command(&["--config", "other.json", "stdio"]));
        beside.initialize("2025-06-18");
        // The last one looks how it stands, and would go on with what was answered elsewhere.
        let decisions = [
            json!({ "approved": true }),
            json!({ "approved": false }),
            json!({}),
        ];
        for stranger in [&mut stranger, &mut beside] {
            for decision in &decisions {
                let mut continued = decision.clone();
                continued["workflow_id"] = asked["approval_context"]["workflow_id"].clone();
                let refused = stranger.call("pml_continue", &continued);
                assert_eq!(refused["isError"], true, "{refused}");
                assert!(
                    texts(&refused)[0].contains("belongs to another project"),
                    "{refused}"
                );
            }
        }
        assert_eq!(starts(&world), 0);
        assert_eq!(code(&world).len(), 5, "it still waits");

        let question = client.call("ask_user", &json!({ "question": "Which way?" }));
        let id = &question["structuredContent"]["workflow_id"];
        let answer = json!({ "continue_workflow": { "workflow_id": id, "answer": "left" } });
        let refused = stranger.call("ask_user", &answer);
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(
            texts(&refused)[0].contains("belongs to another project"),
            "{refused}"
        );
    }
}

#[test]
fn an_ask_is_answered_under_the_configuration_it_was_made_under() {
    for by_variable in [false, true] {
        let world = world("client", &json!({ "ask": ["*"] }));
        let strict = json!({ "approvals": { "by": "human" }, "mcpServers": { "fake": world.fake(&["--started", "started"]) } });
        world.write("strict.json", &strict.to_string());
        let mut command = if by_variable {
            let mut command = world.command(&["stdio"]);
            command.env("PML_CONFIG", "strict.json");
            command
        } else {
            world.command(&["--config", "strict.json", "stdio"])
        };
        command.env("CLAUDECODE", "1");
        let mut client = Client::start(command);
        client.initialize("2025-06-18");
        client.call("fake__echo", &json!({}));
        let code = code(&world);
        let mut agent = world.command(&["approve", &code]);
        let refused = agent
            .env("CLAUDECODE", "1")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("is for a person, and an agent runs it"));
        // Also where the file is gone meanwhile: what it said when it asked is remembered.
        std::fs::remove_file(world.path("strict.json")).unwrap();
        let refused = agent.output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    }
}

#[test]
fn an_answer_to_a_dialog_counts_only_where_that_dialog_was_shown() {
    let world = world("human", &json!({ "ask": ["*"] }));
    let mut client = world.legacy();
    let call = json!({ "name": "fake__echo", "arguments": {} });
    let asked = client.call("fake__echo", &json!({}));
    let state = json!({ "requestState": asked["approval_context"]["workflow_id"] });
    // In the conversation that asked, which declared no dialog, and in others, which do and do not.
    let same = client.request("tools/call", &retry(&call, &state, &accept("continue")));
    assert!(asks(&same["result"]), "{same}");
    let mut other = world.client();
    let shown = modern_result(&mut other, &retry(&call, &state, &accept("continue")));
    assert_eq!(shown["resultType"], "input_required", "{shown}");
    let without = json!({
        "name": "fake__echo", "arguments": {}, "requestState": state["requestState"],
        "inputResponses": { "answer": accept("continue") },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let asked = world.client().request("tools/call", &without);
    assert!(asks(&asked["result"]), "{asked}");
    assert_eq!(starts(&world), 0);
    // The form that was shown counts, once.
    let ran = modern_result(&mut other, &retry(&call, &shown, &accept("continue")));
    assert_eq!(ran["resultType"], "complete", "{ran}");
    assert_eq!(starts(&world), 1);
}

#[test]
fn a_slash_command_counts_for_its_own_conversation_and_not_for_an_agent() {
    let world = world("human", &json!({ "ask": ["*"] }));
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let approve = json!({ "name": "approve", "arguments": { "code": code(&world) } });
    let told = |answer: &Value| {
        answer["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };

    let other = world.legacy().request("prompts/get", &approve);
    assert!(told(&other).contains("another conversation asked it"), "{other}");

    // An agent that starts a pml of its own has its client's mark, and no terminal.
    let mut command = world.program(Path::new("setsid"));
    command.arg(pml()).arg("stdio").env("CLAUDECODE", "1");
    let mut agent = Client::start(command);
    agent.initialize("2025-06-18");
    agent.call("fake__closed", &json!({ "a": 1 }));
    let own = json!({ "name": "approve", "arguments": { "code": code(&world) } });
    let refused = agent.request("prompts/get", &own);
    assert!(told(&refused).contains("an agent runs this pml"), "{refused}");
    assert_eq!(starts(&world), 0);

    let approved = client.request("prompts/get", &approve);
    assert!(told(&approved).starts_with("The person approved"), "{approved}");
}

/// What comes of a call whose dialog is open while a terminal answers.
fn after(terminal: &str, result: &Value) {
    if terminal == "approve" {
        assert_eq!(texts(result)[0], "closed", "{result}");
    } else {
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(texts(result)[0], "Workflow aborted by user", "{result}");
    }
}

#[test]
fn an_answer_elsewhere_is_not_lost_while_a_modern_dialog_is_open() {
    let call = json!({ "name": "fake__closed", "arguments": {} });
    for terminal in ["approve", "refuse"] {
        for dialog in [
            accept("continue"),
            accept("abort"),
            json!({ "action": "decline" }),
            json!({ "action": "cancel" }),
            json!({ "action": "accept" }),
        ] {
            let world = world("client", &json!({ "ask": ["*"] }));
            let mut client = world.client();
            let asked = modern_result(&mut client, &call);
            assert!(world.run(&[terminal, &code(&world)]).status.success());
            read_it();
            let result = modern_result(&mut client, &retry(&call, &asked, &dialog));
            after(terminal, &result);
            let differs = match (
                terminal,
                dialog["content"]["decision"].as_str(),
                dialog["action"].as_str(),
            ) {
                ("approve", Some("abort"), _) | ("approve", None, Some("decline" | "cancel")) => {
                    "had been approved by cli"
                }
                ("refuse", Some("continue"), _) => "had been refused by cli",
                _ => continue,
            };
            assert!(
                texts(&result).iter().any(|text| text.contains(differs)),
                "{terminal}, {dialog}: {result}"
            );
        }
    }
}

#[test]
fn an_answer_elsewhere_to_a_question_is_told_whatever_its_dialog_says() {
    let call = json!({ "name": "ask_user", "arguments": { "question": "Which way?" } });
    for dialog in [
        json!({ "action": "accept", "content": { "answer1": "right" } }),
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": {} }),
    ] {
        let world = World::new();
        let mut client = world.client();
        let asked = modern_result(&mut client, &call);
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert!(
            world
                .run(&["answer", &code(&world), "--text", "left"])
                .status
                .success()
        );
        read_it();
        let result = modern_result(&mut client, &retry(&call, &asked, &dialog));
        assert_eq!(
            result["structuredContent"]["status"], "answered",
            "{dialog}: {result}"
        );
        assert_eq!(
            result["structuredContent"]["answers"]["Which way?"],
            json!(["left"])
        );

        let refused = World::new();
        let mut client = refused.client();
        let asked = modern_result(&mut client, &call);
        assert!(refused.run(&["refuse", &code(&refused)]).status.success());
        read_it();
        let result = modern_result(&mut client, &retry(&call, &asked, &dialog));
        assert_eq!(
            result["structuredContent"]["status"], "rejected",
            "{dialog}: {result}"
        );
    }
}

#[test]
fn an_approval_in_a_terminal_serves_the_next_identical_call() {
    for rule in [FIRST, EVERY] {
        let world = world("human", &json!({ "ask": [rule] }));
        let mut client = world.legacy();
        assert!(asks(&client.call("fake__echo", &json!({ "n": 1 }))));
        let approved = world.run(&["approve", &code(&world)]);
        assert!(approved.status.success());
        let granted = match rule {
            FIRST => "`fake` may run from now on, exactly as it was shown",
            _ => "one call of `fake:echo` may run, with exactly these arguments",
        };
        assert!(stderr(&approved).contains(granted), "{}", stderr(&approved));
        assert!(
            !asks(&client.call("fake__echo", &json!({ "n": 1 }))),
            "{rule}: the same conversation"
        );
        assert_eq!(runs(&world, r#""n":1"#), 1);

        // Another conversation, after the one that asked is gone.
        let asked = client.call("fake__echo", &json!({ "n": 2 }));
        if rule == EVERY {
            assert!(asks(&asked), "one approval, one call");
            drop(client);
            assert!(world.run(&["approve", &code(&world)]).status.success());
            assert!(!asks(&world.legacy().call("fake__echo", &json!({ "n": 2 }))));
            assert_eq!(runs(&world, r#""n":2"#), 1);
            assert!(
                asks(&world.legacy().call("fake__echo", &json!({ "n": 2 }))),
                "it was used"
            );
        }
    }
}

#[test]
fn an_approved_server_runs_also_where_its_call_never_comes_back() {
    let world = world("human", &json!({ "ask": ["*"] }));
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    assert!(world.run(&["approve", &code(&world)]).status.success());
    expire_workflows(&world);
    assert!(
        !asks(&client.call("fake__closed", &json!({}))),
        "another tool, after the deadline"
    );
}

#[test]
fn a_continuation_that_names_only_the_workflow_takes_what_was_answered_meanwhile() {
    let world = world("client", &json!({ "ask": ["*"] }));
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "n": 1 }));
    let waiting = client.proceed("fake__echo", &asked, &json!({}));
    assert_eq!(
        waiting["structuredContent"]["status"], "waiting_for_person",
        "{waiting}"
    );
    assert!(world.run(&["approve", &code(&world)]).status.success());
    let ran = client.proceed("fake__echo", &asked, &json!({}));
    assert!(ran.get("isError").is_none(), "{ran}");
    assert_eq!(runs(&world, r#""n":1"#), 1);

    let asked = world.legacy().call("fake__echo", &json!({ "n": 2 }));
    assert!(!asks(&asked), "the server is approved by now");
    let world = self::world("client", &json!({ "ask": ["*"] }));
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert!(
        world
            .run(&["refuse", &code(&world), "--reason", "not now"])
            .status
            .success()
    );
    let refused = client.proceed("fake__echo", &asked, &json!({}));
    assert_eq!(
        texts(&refused),
        ["Workflow aborted by user", "Their reason: not now", NOT_AGAIN]
    );
}

#[test]
fn an_aborted_call_is_an_error_result_on_every_road() {
    let call = json!({ "name": "fake__echo", "arguments": {} });
    let by_continuation = {
        let world = world("client", &json!({ "ask": ["*"] }));
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        client.proceed("fake__echo", &asked, &json!({ "approved": false }))
    };
    let by_dialog = {
        let world = world("client", &json!({ "ask": ["*"] }));
        let mut client = world.client();
        let asked = modern_result(&mut client, &call);
        modern_result(&mut client, &retry(&call, &asked, &accept("abort")))
    };
    let by_elicitation = {
        let world = world("client", &json!({ "ask": ["*"] }));
        let mut client = with_forms(&world);
        let id = client.send("tools/call", &call);
        let request = client.notified("elicitation/create");
        client.reply(&request, &accept("abort"));
        client.answer(id)["result"].clone()
    };
    for result in [by_continuation, by_dialog, by_elicitation] {
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(texts(&result), ["Workflow aborted by user", NOT_AGAIN]);
        assert_eq!(result["structuredContent"]["instructions"], NOT_AGAIN);
    }
}

#[test]
fn identical_modern_calls_at_once_each_get_their_run_or_their_refusal() {
    let call = json!({ "name": "fake__echo", "arguments": { "same": 1 } });
    for rule in [FIRST, EVERY] {
        let world = world("client", &json!({ "ask": [rule] }));
        let mut client = world.client();
        let ids = [0; 3].map(|_| modern(&mut client, &call));
        let asked = ids.map(|id| client.answer(id)["result"].clone());
        for (place, decision) in [(0, "continue"), (1, "abort"), (2, "continue")] {
            let result = modern_result(&mut client, &retry(&call, &asked[place], &accept(decision)));
            assert_eq!(
                result.get("isError").is_some(),
                decision == "abort",
                "{rule}, {place}: {result}"
            );
        }
        assert_eq!(runs(&world, r#""same":1"#), 2, "{rule}");
    }
}

#[test]
fn identical_legacy_calls_that_are_asked_for_each_time_have_a_dialog_each() {
    let world = world("client", &json!({ "ask": [EVERY] }));
    let mut client = with_forms(&world);
    let call = json!({ "name": "fake__echo", "arguments": { "same": 1 } });
    let ids = [client.send("tools/call", &call), client.send("tools/call", &call)];
    let first = client.notified("elicitation/create");
    let second = client.notified("elicitation/create");
    client.reply(&first, &accept("abort"));
    client.reply(&second, &accept("continue"));
    let results = ids.map(|id| client.answer(id)["result"].clone());
    assert_eq!(
        results
            .iter()
            .filter(|result| result.get("isError").is_some())
            .count(),
        1,
        "{results:?}"
    );
    assert_eq!(runs(&world, r#""same":1"#), 1);
}

#[test]
fn one_conversation_does_not_answer_for_another() {
    let call = json!({ "name": "fake__echo", "arguments": { "same": 1 } });
    for rule in [FIRST, EVERY] {
        let world = world("client", &json!({ "ask": [rule] }));
        let (mut one, mut other) = (world.client(), world.client());
        let asked = [modern_result(&mut one, &call), modern_result(&mut other, &call)];
        let aborted = modern_result(&mut one, &retry(&call, &asked[0], &accept("abort")));
        assert_eq!(aborted["isError"], true, "{aborted}");
        let ran = modern_result(&mut other, &retry(&call, &asked[1], &accept("continue")));
        assert!(ran.get("isError").is_none(), "{rule}: {ran}");
        assert_eq!(runs(&world, r#""same":1"#), 1, "{rule}");

        let (mut one, mut other) = (world.legacy(), world.legacy());
        let arguments = json!({ "same": 2 });
        let asked = [
            one.call("fake__echo", &arguments),
            other.call("fake__echo", &arguments),
        ];
        if rule == EVERY {
            for (client, asked) in [(&mut one, &asked[0]), (&mut other, &asked[1])] {
                let ran = client.proceed("fake__echo", asked, &json!({ "approved": true }));
                assert!(ran.get("isError").is_none(), "{ran}");
            }
        }
        assert_eq!(runs(&world, r#""same":2"#), 2, "{rule}");
    }
}

#[test]
fn a_dialog_answered_after_the_deadline_still_counts_and_silence_has_words_of_its_own() {
    let call = json!({ "name": "fake__echo", "arguments": { "late": 1 } });
    for rule in [FIRST, EVERY] {
        let world = world("client", &json!({ "ask": [rule] }));
        let mut client = world.client();
        let asked = modern_result(&mut client, &call);
        expire_workflows(&world);
        let ran = modern_result(&mut client, &retry(&call, &asked, &accept("continue")));
        assert!(ran.get("isError").is_none(), "{rule}: {ran}");
        assert_eq!(runs(&world, r#""late":1"#), 1, "{rule}");

        let asked = modern_result(&mut client, &json!({ "name": "fake__closed", "arguments": {} }));
        if rule == FIRST {
            assert_eq!(asked["resultType"], "complete", "approved by now");
        }
    }

    let world = world("client", &json!({ "ask": ["*"] }));
    let mut client = with_forms(&world);
    let id = client.send("tools/call", &call);
    client.notified("elicitation/create");
    expire_workflows(&world);
    client.notified("notifications/cancelled");
    let silence = client.answer(id)["result"].clone();
    assert_eq!(silence["isError"], true);
    assert!(
        texts(&silence)[0].starts_with("no person answered the question about `fake:echo` in time"),
        "{silence}"
    );
    let continued = json!({ "workflow_id": "00000000-0000-4000-8000-000000000000", "approved": true });
    let unknown = client.call("pml_continue", &continued);
    assert_eq!(texts(&unknown)[0], "Workflow expired or not found");
    assert_eq!(starts(&world), 0);
}

#[test]
fn a_late_yes_does_not_cover_what_changed_since_it_was_shown() {
    let world = world("client", &json!({ "ask": ["*"] }));
    let mut client = world.client();
    let call = json!({ "name": "fake__echo", "arguments": {} });
    let asked = modern_result(&mut client, &call);
    expire_workflows(&world);
    let entry = world.fake(&["--started", "started", "--record", "seen", "--banner"]);
    world.configure(&json!({ "permissions": { "ask": ["*"] }, "mcpServers": { "fake": entry } }));
    let again = modern_result(&mut client, &retry(&call, &asked, &accept("continue")));
    assert_eq!(again["resultType"], "input_required", "{again}");
    let message = again["inputRequests"]["answer"]["params"]["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("--banner"), "{message}");
    assert_eq!(starts(&world), 0);
}
