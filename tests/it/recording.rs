//! What an approval grants is recorded before its call is taken; meanwhile everything else goes on.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;
use serde_json::{Value, json};

use crate::support::faults::{Fault, inject};
use crate::support::world::{
    Client, World, approvals, asks, hold_database, json_of, state, stderr, texts, turns,
};
use crate::support::{DEADLINE, eventually, have};

/// A world with a server `fake` that asks, and a server `free` that is allowed.
fn world() -> World {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "allow": ["free"] },
        "mcpServers": { "fake": world.fake(&[]), "free": world.fake(&[]) },
    }));
    world
}

/// Holds the lock that the writers in a directory wait for.
fn hold(directory: &Path) -> File {
    std::fs::create_dir_all(directory).unwrap();
    let held = File::open(directory).unwrap();
    held.lock().unwrap();
    held
}

/// Waits until a process has the file or directory open that it has while it waits for a lock.
fn waits_for(process: u32, directory: &Path) {
    waits_times(process, directory, 1);
}

fn waits_times(process: u32, directory: &Path, times: usize) {
    let descriptors = format!("/proc/{process}/fd");
    eventually("pml waits for the lock", DEADLINE, || {
        let open = std::fs::read_dir(&descriptors).unwrap().flatten();
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|open| open == directory))
            .count()
            >= times
    });
}

/// Sends the continuation of an ask and returns the id of the request.
fn proceed(client: &mut Client, workflow: &Value, decision: &Value) -> u64 {
    let mut continuation = decision.clone();
    continuation["workflow_id"] = workflow.clone();
    let arguments = json!({ "continue_workflow": continuation });
    client.send(
        "tools/call",
        &json!({ "name": "fake__echo", "arguments": arguments }),
    )
}

fn pending(world: &World) -> Vec<Value> {
    let listed = json_of(&world.run(&["pending", "--json"]));
    listed["pending"].as_array().unwrap().clone()
}

fn assert_goes_on(client: &mut Client) {
    assert!(client.request("ping", &json!({})).get("result").is_some());
    let called = client.call("free__echo", &json!({ "text": "meanwhile" }));
    assert_eq!(called.get("isError"), None, "{called}");
}

/// Approves a call while the test holds a lock; everything else is answered meanwhile.
fn approve_behind_a_lock<L>(
    world: &World,
    lock: impl FnOnce() -> L,
    waits_at: &Path,
    decision: &Value,
) -> Value {
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let held = lock();
    let request = proceed(&mut client, &asked["approval_context"]["workflow_id"], decision);
    waits_for(client.id(), waits_at);
    assert_goes_on(&mut client);
    let waiting = pending(world);
    assert!(
        waiting
            .iter()
            .any(|ask| ask["id"] == asked["approval_context"]["workflow_id"]),
        "not taken before it is recorded: {waiting:?}"
    );
    drop(held);
    client.answer(request)["result"].clone()
}

#[test]
fn pings_and_calls_are_answered_while_the_lock_of_the_approvals_is_held() {
    let world = world();
    let result = approve_behind_a_lock(
        &world,
        || hold_database(&world),
        &turns(&world),
        &json!({ "approved": true }),
    );
    assert_eq!(result.get("isError"), None, "{result}");
    assert_eq!(approvals(&world).len(), 1);
}

#[test]
fn pings_and_calls_are_answered_while_the_lock_of_the_rules_is_held() {
    let world = world();
    let always = json!({ "approved": true, "always": true });
    let result = approve_behind_a_lock(&world, || hold(&world.project()), &world.project(), &always);
    assert_eq!(result.get("isError"), None, "{result}");
    assert!(world.read(".pml.json").contains("fake:echo"));
}

#[test]
fn an_approval_that_cannot_be_recorded_leaves_the_ask_and_the_same_answer_counts_later() {
    if !have(&["cc"]) {
        return;
    }
    let world = world();
    // The file that tells other processes of the approval; the disk is full.
    let mark = state(&world).join("workflows.db-approvals");
    let mut command = world.command(&["stdio"]);
    let fault = Fault {
        call: "write",
        nth: 1,
        errno: Some(Errno::NOSPC),
        path: &mark,
    };
    inject(&mut command, &[fault]);
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    let asked = client.call("fake__echo", &json!({}));
    let failed = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    let told = texts(&failed).join("\n");
    assert!(told.contains("the same answer may be given again"), "{told}");
    assert_eq!(approvals(&world), Vec::<Value>::new());
    let waiting = pending(&world);
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0]["id"], asked["approval_context"]["workflow_id"]);

    let result = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    assert_eq!(result.get("isError"), None, "{result}");
    assert_eq!(pending(&world), Vec::<Value>::new());
}

#[test]
fn a_refusal_that_comes_while_an_approval_is_recorded_wins() {
    let world = world();
    let rules = world.read(".pml.json");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let held = hold(&world.project());
    let always = json!({ "approved": true, "always": true });
    let request = proceed(&mut client, &asked["approval_context"]["workflow_id"], &always);
    waits_for(client.id(), &world.project());
    let refused = world.run(&["refuse", pending(&world)[0]["code"].as_str().unwrap()]);
    assert!(refused.status.success(), "{}", stderr(&refused));
    drop(held);
    assert_refused(&world, &mut client, request);
    assert_eq!(world.read(".pml.json"), rules, "what was written is taken back");
}

/// The record of an approval and its answer are one change: a refusal comes before both or after both.
#[test]
fn a_refusal_that_comes_before_an_approval_gets_its_turn_wins() {
    let world = world();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let code = pending(&world)[0]["code"].as_str().unwrap().to_owned();
    let held = hold_database(&world);
    let mut refuse = world
        .command(&["refuse", &code])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    waits_for(refuse.id(), &turns(&world));
    let once = json!({ "approved": true });
    let request = proceed(&mut client, &asked["approval_context"]["workflow_id"], &once);
    waits_for(client.id(), &turns(&world));
    drop(held);
    assert!(refuse.wait().unwrap().success());
    assert_refused(&world, &mut client, request);
}

/// Checks that a call was refused, that nothing is approved, and that a person is asked anew.
fn assert_refused(world: &World, client: &mut Client, request: u64) {
    let result = client.answer(request)["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(approvals(world), Vec::<Value>::new());
    assert!(
        asks(&client.call("fake__echo", &json!({}))),
        "a person is asked anew"
    );
}

#[test]
fn of_two_conversations_with_the_same_answer_one_runs_and_the_other_is_told() {
    let world = world();
    let mut clients = [world.legacy(), world.legacy()];
    let asked = clients[0].call("fake__echo", &json!({}));
    let held = hold_database(&world);
    let requests = clients.each_mut().map(|client| {
        let request = proceed(
            client,
            &asked["approval_context"]["workflow_id"],
            &json!({ "approved": true }),
        );
        waits_for(client.id(), &turns(&world));
        request
    });
    drop(held);
    let mut told = Vec::new();
    for (client, request) in clients.iter_mut().zip(requests) {
        let result = client.answer(request)["result"].clone();
        told.push(match result.get("isError") {
            None => "ran".to_owned(),
            Some(_) => texts(&result).join("\n"),
        });
    }
    told.sort_by_key(|told| told != "ran");
    assert_eq!(told[0], "ran", "{told:?}");
    assert!(told[1].contains("was already used at"), "{told:?}");
    assert_eq!(
        approvals(&world).len(),
        1,
        "what both granted stands for the one that ran"
    );
    assert!(!asks(&clients[1].call("fake__echo", &json!({}))));
}

/// Two identical calls wait for one ask, and it is continued twice with `always` while the lock of the rules is held.
struct Duplicated {
    world: World,
    client: Client,
    calls: [u64; 2],
    continuations: [u64; 2],
    held: File,
}

fn duplicated() -> Duplicated {
    let world = world();
    let mut client = world.client();
    client.initialize_with_forms();
    let call = json!({ "name": "fake__echo", "arguments": {} });
    let first = client.send("tools/call", &call);
    client.notified("elicitation/create");
    let joined = client.send("tools/call", &call);
    // It waits for the first one's answer once a later request is answered.
    client.request("ping", &json!({}));
    let workflow = pending(&world)[0]["id"].clone();
    let held = hold(&world.project());
    let always = json!({ "approved": true, "always": true });
    let continuations = [1, 2].map(|times| {
        let request = proceed(&mut client, &workflow, &always);
        waits_times(client.id(), &world.project(), times);
        request
    });
    Duplicated {
        world,
        client,
        calls: [first, joined],
        continuations,
        held,
    }
}

#[test]
fn an_always_that_is_refused_while_its_lock_is_waited_for_leaves_no_rule() {
    let world = world();
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    config["permissions"]["ask"] = json!(["fake:echo"]);
    world.configure(&config);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let held = hold(&world.project());
    let id = &asked["approval_context"]["workflow_id"];
    let always = json!({ "approved": true, "always": true });
    let requests = [(); 3].map(|()| proceed(&mut client, id, &always));
    waits_times(client.id(), &world.project(), 3);
    assert!(world.run(&["refuse", id.as_str().unwrap()]).status.success());
    // Another rule is written in between; what undoes an edit must not depend on the file being as it left it.
    let other = world.command(&["allow", "zzz:q"]).spawn().unwrap();
    waits_for(other.id(), &world.project());
    drop(held);
    for request in requests {
        let result = client.answer(request)["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
    }
    assert!(other.wait_with_output().unwrap().status.success());
    let rules: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(
        (&rules["permissions"]["ask"], &rules["permissions"]["allow"]),
        (&json!(["fake:echo"]), &json!(["free", "zzz:q"]))
    );
    assert_eq!(approvals(&world), Vec::<Value>::new());
}

#[test]
fn a_continuation_that_is_cancelled_while_its_lock_is_waited_for_leaves_the_ask() {
    let world = world();
    let rules = world.read(".pml.json");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let held = hold(&world.project());
    let id = asked["approval_context"]["workflow_id"].clone();
    let request = proceed(&mut client, &id, &json!({ "approved": true, "always": true }));
    waits_for(client.id(), &world.project());
    client.notify("notifications/cancelled", &json!({ "requestId": request }));
    // Answered after it, so the cancellation has been read.
    client.request("ping", &json!({}));
    drop(held);
    let again = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    assert_eq!(again.get("isError"), None, "the ask was left as it was: {again}");
    assert_eq!(world.read(".pml.json"), rules);
}

#[test]
fn a_duplicate_continuation_while_always_is_written_leaves_no_call_waiting() {
    let mut all = duplicated();
    drop(all.held);
    for request in all.calls {
        let result = all.client.answer(request)["result"].clone();
        assert_eq!(result.get("isError"), None, "{result}");
    }
    let used = all
        .continuations
        .map(|request| all.client.answer(request)["result"].clone());
    assert!(
        used.iter().any(|result| result.get("isError").is_none()),
        "{used:?}"
    );
    assert!(all.world.read(".pml.json").contains("fake:echo"));
}

#[test]
fn an_answer_of_a_terminal_while_always_is_written_counts_and_leaves_no_call_waiting() {
    let mut all = duplicated();
    let rules = all.world.read(".pml.json");
    let code = pending(&all.world)[0]["code"].as_str().unwrap().to_owned();
    let approved = all.world.run(&["approve", &code]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let [first, joined] = all.calls;
    let result = all.client.answer(first)["result"].clone();
    assert_eq!(result.get("isError"), None, "{result}");
    drop(all.held);
    let result = all.client.answer(joined)["result"].clone();
    assert_eq!(result.get("isError"), None, "{result}");
    for request in all.continuations {
        let late = all.client.answer(request)["result"].clone();
        assert!(texts(&late).join("\n").contains("was already used at"), "{late}");
    }
    assert_eq!(
        all.world.read(".pml.json"),
        rules,
        "the terminal said once, and it was first"
    );
}

#[test]
fn always_in_a_prompt_is_written_with_the_answer_or_leaves_the_ask() {
    let world = world();
    let mut client = world.legacy();
    assert!(asks(&client.call("fake__echo", &json!({}))));
    let code = pending(&world)[0]["code"].clone();
    let approve = json!({ "name": "approve", "arguments": { "code": code, "scope": "always" } });
    let rules = world.read(".pml.json");
    let told = |answer: &Value| answer["result"]["messages"][0]["content"]["text"].to_string();

    // The rule would have to be written through a link out of the project.
    let elsewhere = world.home().join("elsewhere.json");
    std::fs::write(&elsewhere, &rules).unwrap();
    std::fs::remove_file(world.path(".pml.json")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.path(".pml.json")).unwrap();
    let failed = told(&client.request("prompts/get", &approve));
    assert!(failed.contains("the same answer may be given again"), "{failed}");
    assert_eq!(pending(&world).len(), 1);
    assert_eq!(approvals(&world), Vec::<Value>::new());

    std::fs::remove_file(world.path(".pml.json")).unwrap();
    world.write(".pml.json", &rules);
    let approved = told(&client.request("prompts/get", &approve));
    assert!(approved.contains("from now on"), "{approved}");
    assert!(
        world.read(".pml.json").contains("fake:echo"),
        "without a further call"
    );
}

#[test]
fn pings_and_calls_are_answered_while_another_process_holds_the_database() {
    let world = world();
    let mut client = world.legacy();
    assert!(asks(&client.call("fake__echo", &json!({ "text": "first" }))));
    let mut elsewhere =
        rusqlite::Connection::open(world.home().join(".local/state/pml/workflows.db")).unwrap();
    let held = elsewhere
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .unwrap();
    let call = json!({ "name": "fake__echo", "arguments": { "text": "second" } });
    let asking = client.send("tools/call", &call);
    assert_goes_on(&mut client);
    held.rollback().unwrap();
    let asked = client.answer(asking)["result"].clone();
    assert!(asks(&asked), "{asked}");
}

/// A world in which the client speaks for the person, until its file says otherwise.
fn lenient() -> (World, Value) {
    let world = World::new();
    let mut config = json!({
        "approvals": { "by": "client" },
        "permissions": { "ask": ["*"] },
        "mcpServers": { "fake": world.fake(&[]) },
    });
    world.configure(&config);
    config["approvals"]["by"] = json!("human");
    (world, config)
}

#[test]
fn an_answer_that_waits_for_its_turn_counts_under_the_policy_of_then() {
    for scope in [None, Some("--session"), Some("--always")] {
        let (world, strict) = lenient();
        world.legacy().call("fake__echo", &json!({}));
        let code = pending(&world)[0]["code"].as_str().unwrap().to_owned();
        let held = hold_database(&world);
        let mut command = world.command(&["approve", &code]);
        let approve = command
            .args(scope)
            .env("CLAUDECODE", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        waits_for(approve.id(), &turns(&world));
        world.configure(&strict);
        let saved = world.read(".pml.json");
        drop(held);
        let approve = approve.wait_with_output().unwrap();
        let told = stderr(&approve);
        assert_eq!(approve.status.code(), Some(1), "{scope:?}: {told}");
        assert!(told.contains("is for a person, and an agent runs it"), "{told}");
        assert_eq!(pending(&world).len(), 1, "it still waits");
        assert_eq!(approvals(&world), Vec::<Value>::new());
        assert_eq!(world.read(".pml.json"), saved, "what the person saved stands");
    }
}

#[test]
fn a_continuation_that_waits_for_its_turn_counts_under_the_policy_of_then() {
    for decision in [
        json!({ "approved": true }),
        json!({ "approved": true, "scope": "session" }),
        json!({ "approved": true, "always": true }),
        json!({ "approved": false }),
    ] {
        let (world, strict) = lenient();
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        let held = hold_database(&world);
        let request = proceed(&mut client, &asked["approval_context"]["workflow_id"], &decision);
        waits_for(client.id(), &turns(&world));
        world.configure(&strict);
        let saved = world.read(".pml.json");
        drop(held);
        let result = client.answer(request)["result"].clone();
        let told = texts(&result).join("\n");
        assert_eq!(result["isError"], true, "{decision}: {result}");
        assert!(told.contains("waiting for a person"), "{told}");
        assert_eq!(pending(&world).len(), 1, "it still waits");
        assert_eq!(approvals(&world), Vec::<Value>::new());
        assert_eq!(world.read(".pml.json"), saved, "what the person saved stands");
    }
}
