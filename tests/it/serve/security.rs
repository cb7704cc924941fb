//! Forged, foreign, malformed and endless requests: refused, without a change of state, and the server lives.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Reply, connect, raw};
use super::{Browser, Served, colour};
use crate::support::DEADLINE;
use crate::support::world::{Client, World};

/// A server with one ask that waits, which nothing here may answer.
struct Scene {
    // Ended before the world it lives in is removed.
    served: Served,
    browser: Browser,
    card: Value,
    _client: Client,
    _world: World,
}

impl Scene {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(options: &[&str]) -> Self {
        let world = World::new();
        let served = Served::start_with(&world, options);
        let mut client = world.legacy();
        client.call("ask_user", &colour());
        Self {
            browser: served.browser(),
            card: served.only_ask(),
            served,
            _client: client,
            _world: world,
        }
    }

    fn answer_path(&self) -> String {
        format!("/api/asks/{}/answer", self.card["id"].as_str().unwrap())
    }

    /// Nothing was answered, and the server still answers.
    fn assert_untouched(&mut self) {
        assert!(self.served.lives());
        assert_eq!(self.served.only_ask(), self.card);
    }
}

/// An answer that would count.
fn red() -> Value {
    json!({ "answers": [{ "labels": ["Red"] }] })
}

fn refused(reply: &Reply, status: u16, what: &str) {
    assert_eq!(reply.status, status, "{what}: {reply:?}");
    assert!(reply.json()["error"].is_string(), "{what}: {reply:?}");
    assert_eq!(reply.header("access-control-allow-origin"), None, "{what}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{what}");
}

#[test]
fn a_host_that_is_not_ours_is_refused_whatever_it_carries() {
    let mut scene = Scene::new();
    let port = scene.served.port;
    let foreign = format!("attacker.example:{port}");
    for host in [
        Some("attacker.example"),
        Some(foreign.as_str()),
        Some("127.0.0.1"),
        Some("127.0.0.1:1"),
        Some("0.0.0.0"),
        Some(""),
    ] {
        for path in ["/", "/app.js", "/api/inbox", "/api/events", "/nothing"] {
            let reply = scene.served.script("GET", path).host(host).send();
            refused(&reply, 403, &format!("{host:?} {path}"));
        }
        let reply = scene
            .served
            .script("POST", &scene.answer_path())
            .host(host)
            .json(&red())
            .send();
        refused(&reply, 403, &format!("{host:?}"));
    }
    let none = scene.served.script("GET", "/api/inbox").host(None).send();
    assert!(matches!(none.status, 400 | 403), "{none:?}");
    let twice = scene
        .served
        .script("GET", "/api/inbox")
        .header("Host", "attacker.example")
        .send();
    assert!(matches!(twice.status, 400 | 403), "{twice:?}");
    // The host of the request line counts as well.
    let whole = scene
        .served
        .script("GET", "http://attacker.example/api/inbox")
        .send();
    refused(&whole, 403, "absolute form");
    scene.assert_untouched();
}

#[test]
fn a_page_of_another_site_can_do_nothing() {
    let mut scene = Scene::new();
    let port = scene.served.port;
    let other_port = format!("http://127.0.0.1:{}", port.wrapping_add(1));
    for origin in [
        "https://attacker.example",
        "null",
        "http://localhost",
        &other_port,
    ] {
        for path in ["/", "/api/inbox", "/api/events"] {
            let reply = scene.browser.request("GET", path).header("Origin", origin).send();
            refused(&reply, 403, &format!("{origin} {path}"));
        }
        let forged = scene
            .browser
            .request("POST", &scene.answer_path())
            .header("Origin", origin);
        let forged = forged
            .header("X-CSRF-Token", &scene.browser.csrf)
            .json(&red())
            .send();
        refused(&forged, 403, origin);
        let asked = scene
            .browser
            .request("OPTIONS", &scene.answer_path())
            .header("Origin", origin);
        let asked = asked.header("Access-Control-Request-Method", "POST").send();
        refused(&asked, 403, "preflight");
    }
    // A browser that sends no `Origin` still says that the page is another one.
    for site in ["cross-site", "same-site"] {
        let request = scene
            .served
            .request("GET", "/api/inbox")
            .header("Cookie", &scene.browser.cookie);
        refused(&request.header("Sec-Fetch-Site", site).send(), 403, site);
    }
    scene.assert_untouched();
}

#[test]
fn a_form_that_is_posted_across_sites_is_no_answer() {
    let mut scene = Scene::new();
    for media_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        // As an old browser sends it: with the cookie, and without a word about where it comes from.
        let form = scene
            .served
            .request("POST", &scene.answer_path())
            .header("Cookie", &scene.browser.cookie);
        let form = form.header("Content-Type", media_type);
        refused(&form.body(red().to_string().into_bytes()).send(), 403, media_type);
        // Also where the rest is right: the body is no JSON to be taken.
        let form = scene
            .browser
            .request("POST", &scene.answer_path())
            .header("Content-Type", media_type);
        let form = form.header("X-CSRF-Token", &scene.browser.csrf);
        refused(&form.body(red().to_string().into_bytes()).send(), 415, media_type);
    }
    scene.assert_untouched();
}

#[test]
fn without_a_token_or_with_a_wrong_one_nothing_is_told() {
    let mut scene = Scene::new();
    let wrong = "0".repeat(64);
    let cut = &scene.served.token[..63];
    let (basic, bearer) = (format!("Basic {}", scene.served.token), format!("Bearer {wrong}"));
    let part = format!("Bearer {cut}");
    for authorization in [
        None,
        Some(basic.as_str()),
        Some(&bearer),
        Some(&part),
        Some("Bearer"),
        Some(""),
    ] {
        for (method, path) in [
            ("GET", "/api/inbox".to_owned()),
            ("GET", "/api/events".to_owned()),
            ("GET", format!("/api/asks/{}", scene.card["id"].as_str().unwrap())),
            ("POST", scene.answer_path()),
            ("POST", "/api/keys".to_owned()),
        ] {
            let request = scene.served.request(method, &path);
            let request = match authorization {
                Some(value) => request.header("Authorization", value),
                None => request,
            };
            let reply = if method == "POST" {
                request.json(&red())
            } else {
                request
            }
            .send();
            assert!(
                matches!(reply.status, 401 | 429),
                "{authorization:?} {path}: {reply:?}"
            );
            assert!(!reply.body.contains("colour"), "{reply:?}");
        }
    }
    // A cookie beside a wrong token does not count either.
    let mixed = scene
        .browser
        .request("GET", "/api/inbox")
        .header("Authorization", &bearer)
        .send();
    assert!(matches!(mixed.status, 401 | 429), "{mixed:?}");
    // The token is not taken from the address.
    let path = format!(
        "/api/inbox?key={0}&token={0}&access_token={0}",
        scene.served.token
    );
    assert!(matches!(
        scene.served.request("GET", &path).send().status,
        401 | 429
    ));
    scene.assert_untouched();
}

#[test]
fn guesses_are_slowed_down_and_do_not_keep_the_person_out() {
    let scene = Scene::new();
    let guess = || {
        scene
            .served
            .request("GET", "/api/inbox")
            .header("Authorization", "Bearer guess")
            .send()
    };
    let slowed = (0..200).map(|_| guess()).find(|reply| reply.status == 429);
    let slowed = slowed.expect("200 guesses in a row are too many");
    assert!(slowed.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(scene.browser.request("GET", "/api/inbox").send().status, 200);
}

#[test]
fn writes_come_only_so_fast() {
    let scene = Scene::new();
    let slip = || scene.served.answer(&scene.card, &json!({ "answers": [] }));
    let begin = Instant::now();
    let slowed = loop {
        let reply = slip();
        match reply.status {
            422 => assert!(begin.elapsed() < DEADLINE, "writes are never slowed down"),
            _ => break reply,
        }
    };
    refused(&slowed, 429, "too fast");
    assert!(slowed.header("retry-after").is_some());
}

#[test]
fn a_cookie_alone_does_not_write() {
    let mut scene = Scene::new();
    let other = scene.served.script("POST", "/api/keys").send().json();
    let opened = scene
        .served
        .request("GET", &format!("/?key={}", other["key"].as_str().unwrap()))
        .send();
    assert_eq!(opened.status, 303);
    let cookie = opened.header("set-cookie").unwrap();
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let csrf_of_another = scene.browser.csrf.as_str();
    for csrf in [
        None,
        Some(""),
        Some("0"),
        Some(csrf_of_another),
        Some(&scene.served.token),
    ] {
        let request = scene
            .served
            .request("POST", &scene.answer_path())
            .header("Cookie", cookie);
        let request = match csrf {
            Some(csrf) => request.header("X-CSRF-Token", csrf),
            None => request,
        };
        refused(&request.json(&red()).send(), 403, &format!("{csrf:?}"));
    }
    // What hands out keys is for scripts.
    let keys = scene
        .browser
        .request("POST", "/api/keys")
        .header("X-CSRF-Token", csrf_of_another);
    refused(&keys.send(), 403, "keys");
    scene.assert_untouched();
}

#[test]
fn a_key_is_not_used_up_by_looking_and_does_not_come_back() {
    let world = World::new();
    let served = Served::start(&world);
    let path = format!("/{}", served.url.rsplit('/').next().unwrap());
    assert_eq!(served.request("HEAD", &path).send().status, 503);
    let prefetch = served
        .request("GET", &path)
        .header("Sec-Purpose", "prefetch")
        .send();
    assert_eq!((prefetch.status, prefetch.header("set-cookie")), (503, None));
    let opened = served.request("GET", &path).send();
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
    let again = served.request("GET", &path).send();
    assert_eq!((again.status, again.header("set-cookie")), (403, None));
}

#[test]
fn behind_a_tls_proxy_its_name_counts_and_the_cookie_is_secure() {
    let world = World::new();
    let served = Served::start_with(&world, &["--allow-host", "inbox.example.org"]);
    let path = format!("/{}", served.url.rsplit('/').next().unwrap());
    let opened = served
        .request("GET", &path)
        .host(Some("inbox.example.org"))
        .send();
    assert!(
        opened
            .header("set-cookie")
            .unwrap()
            .ends_with("; SameSite=Strict; Secure"),
        "{opened:?}"
    );
    let script = || served.script("GET", "/api/inbox").host(Some("inbox.example.org"));
    assert_eq!(
        script()
            .header("Origin", "https://inbox.example.org")
            .send()
            .status,
        200
    );
    assert_eq!(
        script()
            .header("Origin", "http://inbox.example.org")
            .send()
            .status,
        403
    );
    assert_eq!(
        served
            .script("GET", "/api/inbox")
            .host(Some("example.org"))
            .send()
            .status,
        403
    );
}

#[test]
fn a_person_behind_a_tls_proxy_answers_by_their_cookie_and_from_its_https_page_alone() {
    const NAME: &str = "inbox.example.org";
    let mut scene = Scene::with(&["--allow-host", NAME]);
    let path = scene.answer_path();
    let key = scene.served.script("POST", "/api/keys").send().json();
    let open = format!("/?key={}", key["key"].as_str().unwrap());
    // The server does not see TLS, and what a proxy says of it could be anybody's word: it changes nothing.
    let opened = scene
        .served
        .request("GET", &open)
        .host(Some(NAME))
        .header("X-Forwarded-Proto", "http")
        .header("X-Forwarded-Host", "evil.example")
        .send();
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
    let cookie = opened.header("set-cookie").unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict; Secure");
    let request = |method: &str, path: &str| {
        let request = scene.served.request(method, path).host(Some(NAME));
        request
            .header("Cookie", pair)
            .header("Sec-Fetch-Site", "same-origin")
    };
    let inbox = request("GET", "/api/inbox").send();
    assert_eq!(inbox.status, 200, "{inbox:?}");
    let csrf = inbox.json()["csrf"].as_str().unwrap().to_owned();
    let write = |origin: &str, proto: &str| {
        let request = request("POST", &path).header("X-CSRF-Token", &csrf);
        let request = request
            .header("Origin", origin)
            .header("X-Forwarded-Proto", proto);
        request.json(&red()).send()
    };
    for origin in [
        "http://inbox.example.org",
        "https://inbox.example.org:8443",
        "https://evil.example",
        "https://evil.inbox.example.org",
        "null",
    ] {
        for proto in ["http", "https"] {
            refused(&write(origin, proto), 403, origin);
        }
    }
    // Nor does a forwarded name stand for the one in `Host`.
    let forwarded = scene
        .served
        .request("GET", "/api/inbox")
        .host(Some("evil.example"));
    let forwarded = forwarded.header("X-Forwarded-Host", NAME).header("Cookie", pair);
    refused(&forwarded.send(), 403, "X-Forwarded-Host");
    assert_eq!(scene.served.only_ask(), scene.card);
    let answered = write("https://inbox.example.org", "http");
    assert_eq!(
        (answered.status, &answered.json()["answered"]["text"]),
        (200, &json!("Red")),
        "{answered:?}"
    );
    assert!(scene.served.lives());
}

#[test]
fn nothing_of_a_request_gets_into_the_head_of_a_reply() {
    let mut scene = Scene::new();
    let port = scene.served.port;
    for path in [
        "/?key=%0d%0aSet-Cookie:%20evil=1",
        "/?key=a%0aSet-Cookie:evil=1",
        "/api/asks/%0d%0aSet-Cookie:%20evil=1",
        "/%0d%0aSet-Cookie:%20evil=1",
    ] {
        let reply = scene.served.script("GET", path).send();
        assert_eq!(reply.header("set-cookie"), None, "{path}: {reply:?}");
    }
    for head in [
        // A header that is folded, one with a bare line break, one with a blank before the colon, a length that is none.
        format!("GET /api/inbox HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n evil: 1\r\n\r\n"),
        format!("GET /api/inbox HTTP/1.1\r\nHost: 127.0.0.1:{port}\nX: \r\n\r\n"),
        format!("GET /api/inbox HTTP/1.1\r\nHost : 127.0.0.1:{port}\r\n\r\n"),
        format!("POST /api/keys HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: -1\r\n\r\n"),
        format!(
            "POST /api/keys HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 5\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /api/inbox HTTP/1.1\r\n\r\n"
        ),
        "\u{0}\u{1}\u{2}\r\n\r\n".to_owned(),
        format!(
            "GET /api/inbox HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: {}\r\n\r\n",
            "x".repeat(1 << 20)
        ),
    ] {
        let reply = raw(
            port,
            head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        );
        assert!(
            !reply.contains(" 200 ") && !reply.contains("evil"),
            "{head:.80}: {reply}"
        );
    }
    scene.assert_untouched();
}

#[test]
fn paths_lead_nowhere_but_to_their_own() {
    let mut scene = Scene::new();
    for path in [
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page/index.html",
        "/app.js/",
        "//app.js",
        "/APP.JS",
        "/app.js%00.html",
        "/api/../app.js",
        "/api/inbox/",
        "//api/inbox",
        "/api/%69nbox/../keys",
        "/api/asks/",
        "/api/asks/../inbox",
        "/serve.token",
        "/.pml.json",
    ] {
        let reply = scene.served.script("GET", path).send();
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
    }
    for (method, path) in [
        ("DELETE", "/api/inbox"),
        ("PUT", "/app.js"),
        ("GET", "/api/keys"),
        ("TRACE", "/"),
    ] {
        let reply = scene.served.script(method, path).send();
        assert_eq!(reply.status, 405, "{method} {path}: {reply:?}");
    }
    let answered_by_get = scene.served.script("GET", &scene.answer_path()).send();
    assert_eq!(answered_by_get.status, 405);
    scene.assert_untouched();
}

#[test]
fn a_body_of_ten_megabytes_is_refused() {
    let mut scene = Scene::new();
    let body = format!("{{\"answers\":[{{\"text\":\"{}\"}}]}}", "x".repeat(10 << 20));
    let request = scene.served.script("POST", &scene.answer_path());
    let reply = request
        .header("Content-Type", "application/json")
        .body(body.into_bytes())
        .send();
    refused(&reply, 413, "10 MB");
    // One that is never finished does not hold anything up either.
    let mut endless = connect(scene.served.port);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        scene.answer_path(),
        scene.served.port,
        scene.served.token
    );
    endless.write_all(head.as_bytes()).unwrap();
    scene.assert_untouched();
}

#[test]
fn a_thousand_connections_that_say_nothing_keep_nobody_out() {
    let mut scene = Scene::new();
    let port = scene.served.port;
    let mut silent: Vec<TcpStream> = Vec::new();
    for _ in 0..1_000 {
        // This test's own limit of open files may be lower.
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => silent.push(stream),
            Err(_) => break,
        }
    }
    assert!(silent.len() > 400, "only {} connections", silent.len());
    assert!(scene.served.lives());
    let begin = Instant::now();
    assert_eq!(scene.browser.request("GET", "/api/inbox").send().status, 200);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    // The oldest were closed for the newest.
    let first = &mut silent[0];
    // Sooner than the ten seconds after which each of them would be closed anyway.
    first.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    let read = first.read(&mut [0]);
    let open = matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!open && !matches!(read, Ok(1)), "{read:?}");
    drop(silent);
    scene.assert_untouched();
}

#[test]
fn a_request_that_comes_byte_by_byte_is_cut_off() {
    let mut scene = Scene::new();
    let mut slow = connect(scene.served.port);
    slow.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    slow.write_all(
        format!(
            "GET /api/inbox HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX: ",
            scene.served.port
        )
        .as_bytes(),
    )
    .unwrap();
    let begin = Instant::now();
    // A byte each time that nothing was read for a while; the connection ends nevertheless.
    loop {
        match slow.read(&mut [0; 64]) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if slow.write_all(b"x").is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
        assert!(begin.elapsed() < DEADLINE, "it may go on for ever");
    }
    let _ = slow.shutdown(Shutdown::Both);
    scene.assert_untouched();
}

#[test]
fn no_token_key_or_answer_reaches_the_log() {
    let world = World::new();
    world.set("RUST_LOG", "trace");
    let log = world.path("log");
    let mut command = world.command(&["serve", "--json"]);
    command
        .env("PML_LOG", "trace")
        .stderr(std::fs::File::create(&log).unwrap());
    let served = Served::run(&world, command);
    let browser = served.browser();
    let mut client = world.legacy();
    client.call("ask_user", &json!({ "question": "Which word?" }));
    let card = served.only_ask();
    let answered = browser.answer(&card, &json!({ "answers": [{ "text": "xyzzy-secret-word" }] }));
    assert_eq!(answered.status, 200, "{answered:?}");
    served
        .request("GET", "/api/inbox")
        .header("Authorization", "Bearer wrong-secret-word")
        .send();
    let (token, cookie, csrf) = (served.token.clone(), browser.cookie.clone(), browser.csrf.clone());
    let key = served.url.split_once("key=").unwrap().1.to_owned();
    drop(served);
    let log = world.read("log");
    for secret in [&token, &cookie, &csrf, &key, "secret-word"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}
