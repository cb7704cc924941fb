//! One server for each user, found by the second, and nothing of it left for the next.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::http::Request;
use super::{Served, colour, token_file};
use crate::support::DEADLINE;
use crate::support::eventually;
use crate::support::world::{World, json_of, state, stderr, stdout};

/// The path of an address.
fn path(url: &str) -> String {
    url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap()
}

#[test]
fn the_second_server_says_where_the_first_listens() {
    let world = World::new();
    let served = Served::start(&world);
    let second = world.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1));
    let told = stderr(&second);
    assert!(
        told.contains(&format!("at http://127.0.0.1:{}/", served.port)),
        "{told}"
    );
    assert!(told.contains("pml serve --open"), "{told}");
    let second = world.run(&["serve", "--json"]);
    assert_eq!(second.status.code(), Some(1));
    let told: Value = serde_json::from_str(&stdout(&second)).unwrap();
    assert_eq!(told["port"], served.port);
}

#[test]
fn the_second_server_opens_the_page_of_the_first_with_a_key_of_its_own() {
    let world = World::new();
    let served = Served::start(&world);
    let opened = world.path("opened");
    world.write(
        "browser",
        &format!(
            "#!/bin/sh\necho \"$1\" > {0}.new && mv {0}.new {0}\n",
            opened.display()
        ),
    );
    let program = world.path("browser");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.set("BROWSER", program.to_str().unwrap());
    let second = world.run(&["serve", "--open", "--json"]);
    let told = json_of(&second);
    // The key is for the browser alone.
    assert_eq!(told["url"], format!("http://127.0.0.1:{}/", served.port));
    eventually("the browser is started", DEADLINE, || opened.exists());
    let url = world.read("opened");
    let url = url.trim();
    assert_ne!(url, served.url);
    let get = |url: &str| Request::new(served.port, "GET", &path(url)).send();
    assert_eq!(get(url).status, 303);
    assert_eq!(get(url).status, 403, "a key opens once");
    assert_eq!(get(&served.url).status, 303, "the first key is still good");

    // Without a browser the address is printed for a person to open.
    world.set("BROWSER", "/nonexistent/browser");
    let third = world.run(&["serve", "--open"]);
    assert!(third.status.success(), "{}", stderr(&third));
    assert_eq!(get(stdout(&third).trim()).status, 303);
}

#[test]
fn a_restart_keeps_what_waits_and_forgets_what_opened_it() {
    let world = World::new();
    let mut served = Served::start(&world);
    let mut client = world.legacy();
    client.call("ask_user", &colour());
    let (before, browser) = (served.only_ask(), served.browser());
    let old = served.token.clone();
    served.end(Signal::TERM);
    assert!(!token_file(&world).exists() && !state(&world).join("serve.json").exists());

    let port = served.port.to_string();
    let served = Served::start_with(&world, &["--port", &port]);
    assert_eq!(served.port.to_string(), port);
    assert_eq!(served.only_ask(), before);
    assert_eq!(browser.request("GET", "/api/inbox").send().status, 401);
    let old = format!("Bearer {old}");
    assert_eq!(
        served
            .request("GET", "/api/inbox")
            .header("Authorization", &old)
            .send()
            .status,
        401
    );
    let mode = token_file(&world).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_killed_server_does_not_keep_the_next_from_starting() {
    let world = World::new();
    let mut served = Served::start(&world);
    served.end(Signal::KILL);
    assert!(token_file(&world).exists(), "nothing was there to remove it");
    let mut next = Served::start(&world);
    assert_ne!(next.token, served.token);
    assert!(next.lives());
}

#[test]
fn an_agent_does_not_serve_its_person() {
    let world = World::new();
    world.configure(&json!({ "approvals": { "by": "human" } }));
    world.set("CLAUDECODE", "1");
    let refused = world.run(&["serve"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(!token_file(&world).exists());
}

#[test]
fn a_port_that_is_taken_is_told() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let failed = world.run(&["serve", "--port", &port]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(
        stderr(&failed).contains(&format!("cannot listen on port {port}")),
        "{}",
        stderr(&failed)
    );
}
