//! Servers elsewhere: asked for by their origin, connected to over HTTP, and their secrets told to nobody else.

mod real;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::web::{Answer, Request, Web, event};
use crate::support::world::{Client, World, asks, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually, pml};

/// A world with one server `web` at `url`, under `permissions`.
fn world(permissions: &Value, entry: &Value) -> World {
    let world = World::new();
    world.configure(&json!({ "permissions": permissions, "mcpServers": { "web": entry } }));
    world
}

/// A world in which `url` may be connected to.
fn allowed(url: &str) -> World {
    world(
        &json!({ "allow": ["web"] }),
        &json!({ "type": "http", "url": url }),
    )
}

/// A Legacy client whose pml writes all its logs into a file of the home.
fn logged(world: &World) -> Client {
    let mut command = world.program(Path::new("/bin/sh"));
    command
        .args(["-c", "exec \"$0\" stdio 2>\"$HOME/stderr\""])
        .arg(pml())
        .env("PML_LOG", "trace");
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    client
}

/// Whether any file below the home holds `text`.
fn is_written_anywhere(world: &World, text: &str) -> bool {
    let mut files = world.files();
    files.push("project/.pml.json".into());
    files
        .iter()
        .filter_map(|file| std::fs::read(world.home().join(file)).ok())
        .any(|content| memchr::memmem::find(&content, text.as_bytes()).is_some())
}

fn told(result: &Value) -> String {
    texts(result).join("\n")
}

#[test]
fn a_remote_server_is_asked_for_by_its_origin_and_its_token_reaches_it_alone() {
    let web = Web::mcp(|_| None);
    let world = world(
        &json!({ "ask": ["*"] }),
        &json!({
            "type": "http",
            "url": web.url("/mcp?key=${QUERY_KEY}"),
            "headers": { "Authorization": "Bearer ${WEB_TOKEN}" },
        }),
    );
    world.set("WEB_TOKEN", "t0ken-of-nobody-else");
    world.set("QUERY_KEY", "k3y-of-nobody-else");
    let mut client = logged(&world);
    assert_eq!(client.tools()[0], "web__connect");

    let asked = client.call("web__echo", &json!({ "a": 1 }));
    assert_eq!(web.asked(), [], "the question comes before the connection");
    assert_eq!(texts(&asked)[0], "Approval required to connect to web");
    let origin = web.url("");
    let declared = format!("{}/mcp", web.url(""));
    let mut context = asked["approval_context"].clone();
    context.as_object_mut().unwrap().remove("workflow_id");
    assert_eq!(
        context,
        json!({
            "type": "remote_connect",
            "tool": "web:echo",
            "dependency": {
                "name": "web",
                "version": null,
                "install": format!("{origin} (declared as {declared}) with the headers authorization"),
                "integrity": null,
                "remote": { "origin": origin, "path": declared, "headers": ["authorization"] },
            },
        })
    );
    assert!(
        texts(&asked)[1].contains("Show them exactly what would be connected to:"),
        "{asked}"
    );
    let pending = stdout(&world.run(&["pending"]));
    assert!(
        pending.contains("asks for   first use of web\n  connect to http://127.0.0.1:"),
        "{pending}"
    );

    let result = client.proceed("web__echo", &asked, &json!({ "approved": true }));
    assert_eq!(texts(&result), [r#"{"a":1}"#], "{result}");
    let again = client.call("web__echo", &json!({ "a": 2 }));
    assert_eq!(texts(&again), [r#"{"a":2}"#], "{again}");
    client.close();
    eventually("the session is ended", DEADLINE, || {
        web.methods().contains(&"DELETE".to_owned())
    });
    assert_eq!(
        web.methods()
            .iter()
            .filter(|method| *method != "GET")
            .collect::<Vec<_>>(),
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call",
            "tools/call",
            "DELETE"
        ]
    );
    for (index, request) in web.asked().iter().enumerate() {
        assert_eq!(
            request.header("authorization"),
            Some("Bearer t0ken-of-nobody-else")
        );
        assert_eq!(request.path, "/mcp?key=k3y-of-nobody-else");
        let session = (index > 0).then_some("session-1");
        let version = (index > 0).then_some("2025-06-18");
        assert_eq!(request.header("mcp-session-id"), session, "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), version, "{request:?}");
    }
    assert!(
        is_written_anywhere(&world, "authorization"),
        "the search finds what is there"
    );
    for secret in ["t0ken-of-nobody-else", "k3y-of-nobody-else"] {
        assert!(!is_written_anywhere(&world, secret), "{secret} is in a file");
    }

    // Another token is the same declaration, another origin is not.
    world.set("WEB_TOKEN", "another-t0ken");
    let mut client = world.legacy();
    assert!(
        client.tools().contains(&"web__echo".to_owned()),
        "listed from the catalog"
    );
    assert!(!asks(&client.call("web__echo", &json!({}))));
    let elsewhere = Web::mcp(|_| None);
    let entry =
        json!({ "url": elsewhere.url("/mcp"), "headers": { "Authorization": "Bearer ${WEB_TOKEN}" } });
    world.configure(&json!({ "mcpServers": { "web": entry } }));
    assert!(asks(&client.call("web__echo", &json!({}))));
    assert_eq!(elsewhere.asked(), []);
}

#[test]
fn an_origin_that_only_a_variable_changes_is_asked_for_again() {
    let (one, two) = (Web::mcp(|_| None), Web::mcp(|_| None));
    let world = world(&json!({}), &json!({ "url": "${BASE}/mcp" }));
    world.set("BASE", &one.url(""));
    let mut client = world.legacy();
    let asked = client.call("web__echo", &json!({}));
    client.proceed("web__echo", &asked, &json!({ "approved": true }));
    assert!(!asks(&client.call("web__echo", &json!({}))));
    client.close();
    world.set("BASE", &two.url(""));
    assert!(asks(&world.legacy().call("web__echo", &json!({}))));
    assert_eq!(two.asked(), []);
}

#[test]
fn plain_http_to_another_machine_is_warned_of() {
    let world = world(&json!({}), &json!({ "url": "http://example.com/mcp" }));
    let asked = world.legacy().call("web__echo", &json!({}));
    assert_eq!(
        asked["approval_context"]["dependency"]["install"],
        "http://example.com/mcp (NOT ENCRYPTED: anybody on the way can read and change it)"
    );
    let pending = stdout(&world.run(&["pending"]));
    assert!(pending.contains("NOT ENCRYPTED"), "{pending}");
}

#[test]
fn a_redirect_to_another_origin_is_refused_and_one_within_is_followed() {
    let elsewhere = Web::mcp(|_| None);
    let to = elsewhere.url("/mcp");
    let web = Web::mcp(move |request| match request.path.as_str() {
        "/away" => Some(Answer::status(307).with("location", to.clone())),
        "/moved" => Some(Answer::status(308).with("location", "/mcp")),
        _ => None,
    });
    let entry = json!({ "url": web.url("/away"), "headers": { "Authorization": "Bearer abcdefgh12345678" } });
    let away = world(&json!({ "allow": ["web"] }), &entry);
    let refused = told(&away.legacy().call("web__echo", &json!({})));
    let origin = elsewhere.url("");
    assert!(
        refused.contains(&format!(
            "it redirects to {origin}, which is not where it was declared to be"
        )),
        "{refused}"
    );
    assert_eq!(elsewhere.asked(), []);
    let moved = allowed(&web.url("/moved"));
    assert_eq!(texts(&moved.legacy().call("web__echo", &json!({}))), ["{}"]);
}

#[test]
fn a_server_that_wants_a_token_says_so_and_where_it_goes() {
    let web = Web::mcp(|request| {
        let given = request.header("authorization").unwrap_or_default().to_owned();
        Some(Answer::Whole(401, Vec::new(), format!("bad token {given}")))
    });
    let entry = json!({ "url": web.url("/mcp"), "headers": { "Authorization": "Bearer wr0ng-t0ken" } });
    let world = world(&json!({ "allow": ["web"] }), &entry);
    let refused = told(&world.legacy().call("web__echo", &json!({})));
    assert!(refused.contains("`web` could not be started"), "{refused}");
    assert!(refused.contains("it answered HTTP 401 Unauthorized"), "{refused}");
    assert!(
        refused.contains("the `headers` of this server in .pml.json"),
        "{refused}"
    );
    assert!(!refused.contains("wr0ng-t0ken"), "{refused}");
}

#[test]
fn what_a_failing_server_repeats_of_its_headers_is_hidden() {
    let web = Web::mcp(|request| {
        let given = request.header("x-key").unwrap_or_default().to_owned();
        (request.rpc() == "tools/call").then(|| Answer::Whole(500, Vec::new(), format!("broke with {given}")))
    });
    let entry = json!({ "url": web.url("/mcp"), "headers": { "X-Key": "k3y-that-is-secret" } });
    let world = world(&json!({ "allow": ["web"] }), &entry);
    let mut client = world.legacy();
    let answer = client.request("tools/call", &json!({ "name": "web__echo", "arguments": {} }));
    assert_eq!(
        answer["error"]["message"], "`web` answered HTTP 500 Internal Server Error: broke with [x-key]",
        "{answer}"
    );
}

#[test]
fn an_unset_variable_is_the_trouble_of_that_server_alone() {
    let web = Web::mcp(|_| None);
    let world = World::new();
    let entry = |token: &str| json!({ "url": web.url("/mcp"), "headers": { "Authorization": token } });
    world.configure(&json!({
        "permissions": { "allow": ["*"] },
        "mcpServers": { "unset": entry("Bearer ${UNSET_TOKEN}"), "web": entry("Bearer known") },
    }));
    let mut client = world.legacy();
    let refused = told(&client.call("unset__echo", &json!({})));
    assert!(
        refused.contains("the environment variable `UNSET_TOKEN` is not set"),
        "{refused}"
    );
    assert_eq!(texts(&client.call("web__echo", &json!({}))), ["{}"]);
    let listed = stderr(&world.run(&["list"]));
    assert!(listed.contains("`UNSET_TOKEN` is not set"), "{listed}");
}

#[test]
fn a_failed_request_costs_that_call_alone_and_calls_run_side_by_side() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let web = Web::mcp(
        move |request| match request.body["params"]["arguments"]["do"].as_str() {
            Some("wait") => {
                held.lock().unwrap().recv().unwrap();
                None
            }
            Some("fail") => Some(Answer::status(503)),
            Some("refuse") => Some(Answer::Whole(
                400,
                Vec::new(),
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,
            "message":"no"}}"#
                    .to_owned(),
            )),
            Some("nothing") => Some(Answer::status(202)),
            _ => None,
        },
    );
    let world = allowed(&web.url("/mcp"));
    let mut client = world.legacy();
    let params = |word: &str| json!({ "name": "web__echo", "arguments": { "do": word } });
    let waiting = client.send("tools/call", &params("wait"));
    let error = |answer: &Value| answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    let failed = client.request("tools/call", &params("fail"));
    assert_eq!(
        error(&failed),
        "`web` answered HTTP 503 Service Unavailable",
        "{failed}"
    );
    let refused = client.request("tools/call", &params("refuse"));
    assert_eq!(
        refused["error"],
        json!({ "code": -32602, "message": "no" }),
        "{refused}"
    );
    let nothing = client.request("tools/call", &params("nothing"));
    assert_eq!(
        error(&nothing),
        "`web` ended its answer without answering",
        "{nothing}"
    );
    release.send(()).unwrap();
    let waited = client.answer(waiting);
    assert_eq!(texts(&waited["result"]), [r#"{"do":"wait"}"#], "{waited}");
}

#[test]
fn a_session_that_the_server_forgot_is_opened_anew_and_the_call_runs() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&sessions);
    let web = Web::mcp(move |request| {
        if request.rpc() == "initialize" {
            let number = current.fetch_add(1, Ordering::SeqCst) + 1;
            let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } });
            return Some(Answer::result(request, &result).with("mcp-session-id", format!("number-{number}")));
        }
        let known = format!("number-{}", current.load(Ordering::SeqCst));
        (request.header("mcp-session-id") != Some(&known)).then(|| Answer::status(404))
    });
    let world = allowed(&web.url("/mcp"));
    let mut client = world.legacy();
    assert_eq!(texts(&client.call("web__echo", &json!({}))), ["{}"]);
    sessions.store(10, Ordering::SeqCst);
    let calls: Vec<u64> = (0..5)
        .map(|number| {
            client.send(
                "tools/call",
                &json!({ "name": "web__echo", "arguments": { "n": number } }),
            )
        })
        .collect();
    for (number, id) in calls.into_iter().enumerate() {
        let answer = client.answer(id);
        assert_eq!(
            texts(&answer["result"]),
            [format!(r#"{{"n":{number}}}"#)],
            "{answer}"
        );
    }
    assert_eq!(
        sessions.load(Ordering::SeqCst),
        11,
        "one new session for all of them"
    );
}

#[test]
fn what_stood_in_a_session_that_the_server_forgot_stands_in_the_next_one() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&sessions);
    let web = Web::mcp(move |request| {
        if request.rpc() == "initialize" {
            let number = current.fetch_add(1, Ordering::SeqCst) + 1;
            let capabilities = json!({ "tools": {}, "logging": {}, "resources": { "subscribe": true } });
            let result = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities });
            return Some(Answer::result(request, &result).with("mcp-session-id", format!("number-{number}")));
        }
        let known = format!("number-{}", current.load(Ordering::SeqCst));
        if request.header("mcp-session-id") != Some(&known) {
            return Some(Answer::status(404));
        }
        let result = match request.rpc() {
            "resources/list" => json!({ "resources": [{ "uri": "x://1", "name": "one" }] }),
            "logging/setLevel" | "resources/subscribe" => json!({}),
            _ => return None,
        };
        Some(Answer::result(request, &result))
    });
    let world = allowed(&web.url("/mcp"));
    let mut client = world.legacy();
    client.call("web__echo", &json!({}));
    client.request("logging/setLevel", &json!({ "level": "warning" }));
    let subscribed = client.request("resources/subscribe", &json!({ "uri": "x://1" }));
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    // The level is told on the side.
    eventually("the level is told", DEADLINE, || {
        web.methods().contains(&"logging/setLevel".to_owned())
    });
    sessions.store(10, Ordering::SeqCst);
    client.call("web__echo", &json!({ "a": 1 }));
    let asked = web.asked();
    let again: Vec<&str> = asked
        .iter()
        .filter(|request| request.header("mcp-session-id") == Some("number-11"))
        .map(Request::rpc)
        .filter(|method| ["logging/setLevel", "resources/subscribe"].contains(method))
        .collect();
    assert_eq!(
        BTreeSet::from_iter(again),
        BTreeSet::from(["logging/setLevel", "resources/subscribe"])
    );
}

#[test]
fn an_answer_on_a_stream_brings_its_progress_and_every_byte_of_its_result() {
    let web = Web::mcp(|request| {
        (request.rpc() == "tools/call").then(|| {
            let token = &request.body["params"]["_meta"]["progressToken"];
            let progress = json!({
                "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": token, "progress": 1 },
            });
            let id = &request.body["id"];
            Answer::Events(format!(
                ": hello\n\n{}data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\ndata: \"result\":{{\"content\":[],\"big\":12345678901234567890123,\"f\":1.0}}}}\n\n",
                event(&progress)
            ))
        })
    });
    let world = allowed(&web.url("/mcp"));
    let mut client = world.legacy();
    client.raw(
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"web__echo","arguments":{},"_meta":{"progressToken":"mine"}}}"#,
    );
    let mut lines = Vec::new();
    while !lines
        .last()
        .is_some_and(|line: &String| line.contains(r#""id":"x""#))
    {
        lines.push(client.line());
    }
    let result = lines.pop().unwrap();
    assert_eq!(
        result,
        r#"{"jsonrpc":"2.0","id":"x","result":{"content":[],"big":12345678901234567890123,"f":1.0}}"#
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("notifications/progress") && line.contains("mine")),
        "{lines:?}"
    );
}

#[test]
fn an_answer_that_breaks_off_is_taken_up_where_it_broke() {
    let web = Web::mcp(|request| match (request.method.as_str(), request.rpc()) {
        (_, "tools/call") => Some(Answer::Events(format!(
            "id: 7-{}\nretry: 10\ndata:\n\n",
            request.body["id"]
        ))),
        ("GET", _) => request
            .header("last-event-id")
            .and_then(|last| last.strip_prefix("7-"))
            .map(|id| {
                let id: u64 = id.parse().unwrap();
                Answer::Events(event(
                    &json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }),
                ))
            }),
        _ => None,
    });
    let world = allowed(&web.url("/mcp"));
    assert_eq!(
        world.legacy().call("web__echo", &json!({})),
        json!({ "content": [] })
    );
}

#[test]
fn what_a_server_says_unasked_is_heard() {
    let listed = AtomicUsize::new(0);
    let web = Web::mcp(move |request| match (request.method.as_str(), request.rpc()) {
        ("GET", _) => {
            let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            Some(Answer::Open(event(&changed)))
        }
        (_, "tools/list") => {
            let name = if listed.fetch_add(1, Ordering::SeqCst) == 0 {
                "first"
            } else {
                "second"
            };
            let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
            Some(Answer::result(request, &json!({ "tools": [tool] })))
        }
        _ => None,
    });
    let world = allowed(&web.url("/mcp"));
    let mut client = world.legacy();
    client.call("web__connect", &json!({}));
    eventually("the changed list is learned", DEADLINE, || {
        client.tools().contains(&"web__second".to_owned())
    });
}

#[test]
fn a_cancelled_call_is_told_to_the_server() {
    let web = Web::mcp(|request| (request.rpc() == "tools/call").then(|| Answer::Open(String::new())));
    let world = allowed(&web.url("/mcp"));
    let mut client = world.legacy();
    let id = client.send("tools/call", &json!({ "name": "web__echo", "arguments": {} }));
    let posted = |rpc: &str| web.asked().into_iter().find(|request| request.rpc() == rpc);
    eventually("the call arrives", DEADLINE, || posted("tools/call").is_some());
    client.notify("notifications/cancelled", &json!({ "requestId": id }));
    eventually("the cancellation arrives", DEADLINE, || {
        posted("notifications/cancelled").is_some()
    });
    assert_eq!(
        posted("notifications/cancelled").unwrap().body["params"]["requestId"],
        posted("tools/call").unwrap().body["id"]
    );
}

#[test]
fn an_answer_over_the_limit_costs_its_call_alone() {
    let web = Web::mcp(|request| {
        let long = json!({ "content": [], "long": "x".repeat(100_000) });
        match request.body["params"]["arguments"]["as"].as_str() {
            Some("body") => Some(Answer::result(request, &long)),
            Some("event") => {
                let message = json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": long });
                Some(Answer::Events(event(&message)))
            }
            _ => None,
        }
    });
    let world = allowed(&web.url("/mcp"));
    world.configure(&json!({
        "permissions": { "allow": ["web"] },
        "mcpServers": { "web": { "url": web.url("/mcp") } },
        "limits": { "lineBytes": 65_536 },
    }));
    let mut client = world.legacy();
    for form in ["body", "event"] {
        let answer = client.request(
            "tools/call",
            &json!({ "name": "web__echo", "arguments": { "as": form } }),
        );
        assert_eq!(
            answer["error"]["message"], "`web` sent an answer longer than the line limit",
            "{form}: {answer}"
        );
    }
    assert_eq!(texts(&client.call("web__echo", &json!({}))), ["{}"]);
}

#[test]
fn an_old_server_may_not_send_its_messages_elsewhere() {
    let elsewhere = Web::mcp(|_| None);
    let endpoint = elsewhere.url("/messages");
    let web = Web::start(move |request: &Request| match request.method.as_str() {
        "GET" => Answer::Open(format!("event: endpoint\ndata: {endpoint}\n\n")),
        _ => Answer::status(405),
    });
    let world = allowed(&web.url("/sse"));
    let refused = told(&world.legacy().call("web__echo", &json!({})));
    assert!(
        refused.contains("it names an endpoint that is not at"),
        "{refused}"
    );
    assert_eq!(elsewhere.asked(), []);
}

#[test]
fn a_server_that_is_not_there_says_where_it_was_looked_for() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let world = allowed(&format!("http://127.0.0.1:{port}/mcp?key=s3cretkey"));
    let refused = told(&world.legacy().call("web__echo", &json!({})));
    assert!(
        refused.contains(&format!(
            "it cannot be reached at http://127.0.0.1:{port}: Connection refused"
        )),
        "{refused}"
    );
    assert!(!refused.contains("s3cretkey"), "{refused}");
}

#[test]
fn add_connects_learns_and_approves() {
    let web = Web::mcp(|_| None);
    let world = World::new();
    world.set("WEB_TOKEN", "t0ken-of-nobody-else");
    let url = web.url("/mcp");
    let header = "Authorization: Bearer ${WEB_TOKEN}";
    let output = world.run(&["add", "--yes", "web", "--url", &url, "--header", header]);
    let said = stderr(&output);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "web:echo\n"),
        "{said}"
    );
    assert!(
        said.contains(&format!("\nconnect to {url} with the headers authorization\n")),
        "{said}"
    );
    let written: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(
        written["mcpServers"],
        json!({ "web": { "type": "http", "url": url, "headers": { "Authorization": "Bearer ${WEB_TOKEN}" } } })
    );
    let listed = json_of(&world.run(&["list", "--json"]));
    assert_eq!(
        (&listed["servers"][0]["access"], &listed["servers"][0]["install"]),
        (
            &json!("approved"),
            &json!(format!("{url} with the headers authorization"))
        )
    );
    assert_eq!(texts(&world.legacy().call("web__echo", &json!({}))), ["{}"]);
}

#[test]
fn what_stays_on_this_machine_goes_through_no_proxy() {
    let proxy = Web::start(|_request| Answer::status(502));
    let through = |url: &str| {
        let world = allowed(url);
        world.set("HTTP_PROXY", &proxy.url(""));
        world.set("NO_PROXY", "");
        world.legacy().call("web__echo", &json!({}))
    };
    let web = Web::mcp(|_| None);
    let here = web.url("/mcp");
    for host in ["localhost", "127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        let url = here.replace("127.0.0.1", host);
        assert_eq!(texts(&through(&url)), ["{}"], "{url}");
        assert_eq!(proxy.asked().len(), 0, "{url}");
    }
    // Not every resolver knows it in this spelling; a proxy is not asked either way.
    let _ = through(&here.replace("127.0.0.1", "localhost."));
    assert_eq!(proxy.asked().len(), 0);
    // Whatever else is asked for goes there.
    let _ = through("http://pml.invalid/mcp");
    assert!(!proxy.asked().is_empty());
}
