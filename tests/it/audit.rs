//! `pml audit` finds what is known against everything that is installed, tells nobody more than it must, and what is
//! malicious never runs.

use std::collections::BTreeSet;
use std::process::Output;

use pml::config::{AdvisorySettings, Environment};
use pml::loader::Osv;
use pml::pins::PackageVersion;
use serde_json::{Value, json};

use crate::support::osv::{Manner, OsvServer};
use crate::support::packages::publish_server;
use crate::support::registry::Registry;
use crate::support::world::{World, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, MARK, eventually, have, marked};

/// A user whose packages come from `registry`, and who asks `osv` about all of them.
fn world(registry: &Registry, osv: &OsvServer) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    settings(&world, &json!({ "url": osv.url(), "send": "all" }));
    declare(&world, &json!({}));
    world
}

fn settings(world: &World, advisories: &Value) {
    let folder = world.home().join(".config/pml");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pml.json");
    std::fs::write(file, json!({ "advisories": advisories }).to_string()).unwrap();
}

fn declare(world: &World, more: &Value) {
    let mut server = json!({ "command": "npx", "args": ["hello@1.0.0"], "env": { MARK: world.mark() } });
    server
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    world.configure(&json!({ "permissions": { "allow": ["hello"] }, "mcpServers": { "hello": server } }));
}

/// A registry with the server `hello`, which needs `dep`.
fn registry() -> Registry {
    let registry = Registry::start();
    registry.publish(
        "dep",
        "1.0.0",
        &json!({}),
        &[("index.js", "module.exports = '1'")],
    );
    publish_server(&registry, "1.0.0", &json!({ "dep": "1.0.0" }));
    registry
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn told(output: &Output) -> String {
    format!("{}{}", stdout(output), stderr(output))
}

/// The programs of the server that run.
fn servers(world: &World) -> Vec<String> {
    let all = marked(world.mark()).into_iter();
    all.filter(|line| line.contains("server.js") && !line.contains("supervise"))
        .collect()
}

/// The events of the history about malicious packages.
fn recorded(world: &World) -> Vec<Value> {
    let folder = world.home().join(".local/state/pml/history");
    let parts = std::fs::read_dir(folder).unwrap().flatten();
    let parts = parts.filter(|part| part.path().extension().is_some_and(|found| found == "jsonl"));
    let lines: Vec<Value> = parts
        .flat_map(|part| {
            let text = std::fs::read_to_string(part.path()).unwrap();
            let lines: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            lines
        })
        .collect();
    lines
        .into_iter()
        .filter(|line| line.to_string().contains("\"malicious\""))
        .collect()
}

fn malicious() -> Value {
    json!({ "modified": "2026-01-01T00:00:00Z", "summary": "Malicious code in dep" })
}

#[test]
fn what_is_known_is_told_and_only_names_and_versions_are_sent() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (registry, osv) = (registry(), OsvServer::start());
    let world = world(&registry, &osv);
    world.set("HELLO_TOKEN", "s3cret-value");
    declare(&world, &json!({ "env": { "TOKEN": "${HELLO_TOKEN}" } }));
    json_of(&world.run(&["install", "--json"]));

    let clean = world.run(&["audit"]);
    assert_eq!(code(&clean), Some(0), "{}", told(&clean));
    assert_eq!(
        stdout(&clean),
        "hello: nothing is known against its 2 package(s)\n"
    );
    let queries = json!([
        { "package": { "ecosystem": "npm", "name": "dep" }, "version": "1.0.0" },
        { "package": { "ecosystem": "npm", "name": "hello" }, "version": "1.0.0" },
    ]);
    assert_eq!(osv.batches(), [queries]);

    osv.advise(
        "npm/dep@1.0.0",
        "GHSA-aaaa-bbbb-cccc",
        &json!({
            "modified": "2026-01-01T00:00:00Z",
            "summary": "Prototype \u{1b}[31mpollution\nin dep",
            "database_specific": { "severity": "HIGH" },
            "affected": [{ "package": { "ecosystem": "npm", "name": "dep" },
                "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": "1.0.1" }] }] }],
        }),
    );
    let found = world.run(&["audit", "hello"]);
    assert_eq!(code(&found), Some(1), "{}", told(&found));
    assert_eq!(
        stdout(&found),
        "hello: 1 advisories about its 2 package(s)\n  \
         PACKAGE  VERSION  ID                   SEVERITY  FIXED IN  SUMMARY\n  \
         dep      1.0.0    GHSA-aaaa-bbbb-cccc  high      1.0.1     Prototype \\u{1b}[31mpollution\\nin dep\n"
    );
    let found = world.run(&["audit", "--json"]);
    assert_eq!(code(&found), Some(1));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(
        found["servers"][0]["findings"],
        json!([{
            "package": "dep", "version": "1.0.0", "registry": "npm", "id": "GHSA-aaaa-bbbb-cccc", "malicious": false,
            "severity": "high", "fixedIn": ["1.0.1"], "summary": "Prototype \\u{1b}[31mpollution\\nin dep",
        }])
    );
    // What is not malicious keeps nothing from running.
    let mut client = world.legacy();
    assert_eq!(texts(&client.call("hello__look", &json!({}))), ["dep 1"]);
    drop(client);
    assert!(!world.home().join(".local/state/pml/malicious").exists());

    let requests = osv.requests();
    let details = requests
        .iter()
        .filter(|request| request.starts_with("GET "))
        .count();
    assert_eq!(
        details, 1,
        "an advisory that did not change is not asked for again"
    );
    for request in requests {
        let home = world.home().to_str().unwrap();
        let local = registry.url();
        for secret in [
            "s3cret",
            "TOKEN",
            home,
            local.trim_end_matches('/'),
            "npx",
            "sha512",
        ] {
            assert!(!request.contains(secret), "{secret} is in {request}");
        }
    }
    assert_eq!(recorded(&world), Vec::<Value>::new());
}

#[test]
fn a_malicious_package_is_refused_on_every_road_and_lifted_when_it_is_taken_back() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (registry, osv) = (registry(), OsvServer::start());
    let world = world(&registry, &osv);
    json_of(&world.run(&["install", "--json"]));
    osv.advise("npm/dep@1.0.0", "MAL-2026-1", &malicious());
    let found = world.run(&["audit"]);
    assert_eq!(code(&found), Some(1), "{}", told(&found));
    assert!(stdout(&found).contains("malicious"), "{}", told(&found));
    let expected = "`hello` is not started any more: `dep@1.0.0` is malicious (MAL-2026-1); \
                    to be rid of it: pml uninstall hello, then pml remove hello";
    assert!(stderr(&found).contains(expected), "{}", told(&found));

    // The cache may be deleted; the verdict stays.
    std::fs::remove_file(world.home().join(".cache/pml/advisories.json")).unwrap();
    let never = |reason: &str| ("deny".to_owned(), None, reason.to_owned());
    let known = "`dep@1.0.0` of its server is malicious (MAL-2026-1)";
    assert_eq!(world.foretold("hello:look"), never(known));
    let refusal = "`hello` is refused: `dep@1.0.0` is known to be malicious (MAL-2026-1)";
    let mut client = world.legacy();
    let called = client.call("hello__look", &json!({}));
    assert_eq!(called["isError"], true);
    let text = texts(&called).join("\n");
    assert!(text.contains(refusal), "{text}");
    assert!(text.contains("pml uninstall hello"), "{text}");
    drop(client);
    let installed = world.run(&["install"]);
    assert_eq!(code(&installed), Some(1), "{}", told(&installed));
    assert!(stderr(&installed).contains(refusal), "{}", told(&installed));
    declare(&world, &json!({ "startup": "eager" }));
    let mut client = world.legacy();
    let status = client.request("tools/list", &json!({}));
    assert!(status.get("error").is_none(), "{status}");
    let eager = client.call("hello__look", &json!({}));
    assert_eq!(eager["isError"], true, "{eager}");
    assert_eq!(servers(&world), Vec::<String>::new());
    drop(client);

    // From scratch: nothing of it reaches the store, neither as a dependency nor by its own name.
    assert!(world.run(&["uninstall", "hello"]).status.success());
    let installed = world.run(&["install"]);
    assert_eq!(code(&installed), Some(1), "{}", told(&installed));
    assert!(stderr(&installed).contains(refusal), "{}", told(&installed));
    let added = world.run(&["add", "other", "--yes", "--", "npx", "hello@1.0.0"]);
    assert_eq!(code(&added), Some(1), "{}", told(&added));
    assert!(
        stderr(&added).contains("`dep@1.0.0` is known to be malicious"),
        "{}",
        told(&added)
    );
    let before = registry.hits(&Registry::tarball("dep", "1.0.0"));
    let named = world.run(&["add", "dep", "--yes", "--", "npx", "dep@1.0.0"]);
    assert_eq!(code(&named), Some(1), "{}", told(&named));
    assert_eq!(
        registry.hits(&Registry::tarball("dep", "1.0.0")),
        before,
        "it is not fetched"
    );
    let store = world.home().join(".local/share/pml/store/npm");
    assert_eq!(std::fs::read_dir(store).map_or(0, Iterator::count), 0);
    let recorded = recorded(&world);
    assert!(recorded.len() >= 4, "{recorded:#?}");
    assert!(
        recorded.iter().all(|line| {
            let line = line.to_string();
            line.contains("\"refused\"") && line.contains("MAL-2026-1") && line.contains("dep@1.0.0")
        }),
        "{recorded:#?}"
    );

    // Taken back: the next audit of the package lifts the verdict. Nothing is installed, so its lock must be there.
    let folder = world.home().join(".local/state/pml/malicious");
    osv.clear("npm/dep@1.0.0");
    std::fs::remove_dir_all(&folder).unwrap();
    json_of(&world.run(&["install", "--json"]));
    osv.advise("npm/dep@1.0.0", "MAL-2026-2", &malicious());
    assert_eq!(code(&world.run(&["audit"])), Some(1));
    assert_eq!(code(&world.run(&["install"])), Some(1));
    let mut withdrawn = malicious();
    withdrawn["withdrawn"] = "2026-02-02T00:00:00Z".into();
    withdrawn["modified"] = "2026-02-02T00:00:00Z".into();
    osv.clear("npm/dep@1.0.0");
    osv.advise("npm/dep@1.0.0", "MAL-2026-2", &withdrawn);
    let offline = world.run(&["audit", "--offline"]);
    assert_eq!(code(&offline), Some(1), "{}", told(&offline));
    assert_eq!(
        code(&world.run(&["install"])),
        Some(1),
        "what was answered before lifts nothing"
    );
    let lifted = world.run(&["audit"]);
    assert_eq!(code(&lifted), Some(0), "{}", told(&lifted));
    assert_eq!(code(&world.run(&["install"])), Some(0));
}

#[test]
fn what_runs_is_stopped_when_an_audit_finds_it_malicious() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (registry, osv) = (registry(), OsvServer::start());
    let world = world(&registry, &osv);
    let mut client = world.legacy();
    assert_eq!(texts(&client.call("hello__look", &json!({}))), ["dep 1"]);
    assert_eq!(servers(&world).len(), 1, "{:?}", servers(&world));
    osv.advise("npm/hello@1.0.0", "MAL-2026-7", &malicious());
    let found = world.run(&["audit"]);
    assert_eq!(code(&found), Some(1), "{}", told(&found));
    eventually("it is stopped", DEADLINE, || servers(&world).is_empty());
    let called = client.call("hello__look", &json!({}));
    assert_eq!(called["isError"], true);
    assert!(
        texts(&called)
            .join("\n")
            .contains("`hello@1.0.0` is known to be malicious (MAL-2026-7)"),
        "{called}"
    );
    assert_eq!(servers(&world), Vec::<String>::new());
    drop(client);
    let stopped = recorded(&world);
    assert!(
        stopped
            .iter()
            .any(|line| line.to_string().contains("\"stopped\"")),
        "{stopped:#?}"
    );
    assert!(
        stopped
            .iter()
            .any(|line| line.to_string().contains("\"refused\"")),
        "{stopped:#?}"
    );
}

#[test]
fn verdicts_that_cannot_be_read_refuse_every_package() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (registry, osv) = (registry(), OsvServer::start());
    let world = world(&registry, &osv);
    json_of(&world.run(&["install", "--json"]));
    let folder = world.home().join(".local/state/pml/malicious");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("packages.json"), "{").unwrap();
    let (decision, _, reason) = world.foretold("hello:look");
    assert_eq!(
        (decision.as_str(), reason.as_str()),
        ("deny", "which packages are malicious cannot be read")
    );
    let mut client = world.legacy();
    let called = client.call("hello__look", &json!({}));
    assert_eq!(called["isError"], true, "{called}");
    let text = texts(&called).join("\n");
    assert!(
        text.contains("cannot read which packages are malicious"),
        "{text}"
    );
    drop(client);
    let audited = world.run(&["audit"]);
    assert_eq!(code(&audited), Some(2), "{}", told(&audited));
    assert!(
        stderr(&audited).contains("hint: to make it anew: rm "),
        "{}",
        told(&audited)
    );
}

#[test]
fn without_a_network_the_answers_of_before_are_told_with_their_age() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (registry, osv) = (registry(), OsvServer::start());
    let world = world(&registry, &osv);
    json_of(&world.run(&["install", "--json"]));
    let never = world.run(&["audit", "--offline"]);
    assert_eq!(code(&never), Some(2), "{}", told(&never));
    assert!(
        stderr(&never).contains("nothing was ever answered about dep@1.0.0, hello@1.0.0"),
        "{}",
        told(&never)
    );
    osv.advise("npm/dep@1.0.0", "GHSA-1", &json!({ "summary": "bad" }));
    assert_eq!(code(&world.run(&["audit"])), Some(1));
    let asked = osv.requests().len();
    let offline = world.run(&["audit", "--offline"]);
    assert_eq!(code(&offline), Some(1), "{}", told(&offline));
    assert!(stdout(&offline).contains("GHSA-1"), "{}", told(&offline));
    assert!(
        stderr(&offline).contains("the oldest of these answers was given less than a minute ago, at "),
        "{}",
        told(&offline)
    );
    assert_eq!(osv.requests().len(), asked);
    // Another address answered nothing yet.
    settings(&world, &json!({ "url": "http://127.0.0.1:9", "send": "all" }));
    assert_eq!(code(&world.run(&["audit", "--offline"])), Some(2));
    let unreachable = world.run(&["audit"]);
    assert_eq!(code(&unreachable), Some(2), "{}", told(&unreachable));
    let text = stderr(&unreachable);
    assert!(
        text.starts_with(
            "asking about 2 packages\nerror: cannot ask http://127.0.0.1:9 for known vulnerabilities: "
        ),
        "{text}"
    );
    assert!(text.contains("hint: check the network and HTTPS_PROXY"), "{text}");
}

#[test]
fn a_database_that_does_not_answer_as_it_should_is_an_error_and_changes_nothing() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (registry, osv) = (registry(), OsvServer::start());
    let world = world(&registry, &osv);
    json_of(&world.run(&["install", "--json"]));
    osv.advise("npm/dep@1.0.0", "MAL-1", &malicious());
    assert_eq!(code(&world.run(&["audit"])), Some(1));
    for (manner, reason) in [
        (Manner::Failing, "it answered HTTP 500"),
        (Manner::Elsewhere, "it answered HTTP 307"),
        (Manner::Garbage, "it is not what OSV answers"),
        (Manner::Endless, "it does not end"),
        (Manner::OneMissing, "it does not answer every question once"),
        (Manner::StrangeId, "it names an advisory by what is no id"),
        (Manner::EndlessPages, "its pages do not end"),
    ] {
        osv.behave(manner);
        let audited = world.run(&["audit"]);
        assert_eq!(code(&audited), Some(2), "{manner:?}: {}", told(&audited));
        assert!(
            stderr(&audited).contains(reason),
            "{manner:?}: {}",
            told(&audited)
        );
        assert!(
            stderr(&audited).contains("hint: "),
            "{manner:?}: {}",
            told(&audited)
        );
        assert_eq!(
            code(&world.run(&["install"])),
            Some(1),
            "{manner:?}: the verdict stays"
        );
    }
}

#[test]
fn the_names_of_private_packages_are_not_sent() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (registry, osv) = (registry(), OsvServer::start());
    let world = world(&registry, &osv);
    json_of(&world.run(&["install", "--json"]));
    // Nothing comes from a public registry here.
    settings(&world, &json!({ "url": osv.url() }));
    let audited = world.run(&["audit"]);
    assert_eq!(code(&audited), Some(2), "{}", told(&audited));
    assert!(
        stderr(&audited).contains("all 2 packages come from other registries than the public ones"),
        "{}",
        told(&audited)
    );
    assert!(
        stderr(&audited).contains(r#""advisories": {"send": "all"}"#),
        "{}",
        told(&audited)
    );
    assert_eq!(osv.requests(), Vec::<String>::new());
    settings(
        &world,
        &json!({ "url": osv.url(), "send": "all", "private": ["hel*"] }),
    );
    let audited = world.run(&["audit"]);
    assert_eq!(code(&audited), Some(0), "{}", told(&audited));
    assert!(stderr(&audited).contains("not asked about"), "{}", told(&audited));
    assert_eq!(osv.batches().len(), 1);
    assert_eq!(osv.batches()[0].as_array().unwrap().len(), 1);
    assert_eq!(osv.batches()[0][0]["package"]["name"], "dep");
    // Of a project's file none of this is taken.
    world.configure(&json!({ "advisories": { "url": osv.url() } }));
    let refused = world.run(&["audit"]);
    assert_eq!(code(&refused), Some(2), "{}", told(&refused));
    assert!(
        stderr(&refused).contains("`advisories` belongs into the user's file"),
        "{}",
        told(&refused)
    );
}

/// Asks `osv` directly about packages `npm:p0` to `npm:pN`.
async fn asked(osv: &OsvServer, count: usize) -> Vec<(String, Vec<String>)> {
    let packages = (0..count).map(|number| format!("npm:p{number}@1.0.0"));
    asked_about(osv, &packages.collect::<Vec<_>>()).await
}

async fn asked_about(osv: &OsvServer, packages: &[String]) -> Vec<(String, Vec<String>)> {
    let settings = AdvisorySettings {
        url: osv.url(),
        ..AdvisorySettings::default()
    };
    let environment = Environment::new([("HOME", "/")], "/");
    let count = packages.len();
    let packages: BTreeSet<PackageVersion> = packages
        .iter()
        .map(|package| PackageVersion::read(package).unwrap())
        .collect();
    let osv = Osv::new(&settings, &environment).await.unwrap();
    let answers = osv.ask(&packages).await.unwrap();
    assert_eq!(answers.len(), count);
    let known = answers.into_iter().filter(|(_, ids)| !ids.is_empty());
    known
        .map(|(package, ids)| (package.name, ids.into_iter().map(|found| found.id).collect()))
        .collect()
}

#[tokio::test]
async fn thousands_of_packages_are_asked_about_in_batches_and_pages_are_followed() {
    let osv = OsvServer::start();
    osv.advise("npm/p2499@1.0.0", "GHSA-1", &json!({}));
    for id in ["GHSA-2", "GHSA-3", "MAL-1"] {
        osv.advise("npm/p0@1.0.0", id, &json!({}));
    }
    let expected = [
        (
            "p0".to_owned(),
            vec!["GHSA-2".to_owned(), "GHSA-3".to_owned(), "MAL-1".to_owned()],
        ),
        ("p2499".to_owned(), vec!["GHSA-1".to_owned()]),
    ];
    let sizes = |osv: &OsvServer| -> Vec<usize> {
        let batches = osv.batches();
        batches
            .iter()
            .map(|batch| batch.as_array().unwrap().len())
            .collect()
    };
    assert_eq!(asked(&osv, 2500).await, expected);
    assert_eq!(sizes(&osv), [1000, 1000, 500]);
    osv.behave(Manner::Paged);
    assert_eq!(asked(&osv, 2500).await, expected);
    assert_eq!(sizes(&osv)[3..], [1000, 1000, 500, 1, 1]);
}

#[tokio::test]
async fn python_packages_are_asked_about_by_the_name_of_their_registry() {
    let osv = OsvServer::start();
    osv.advise("PyPI/mcp@1!2.0", "PYSEC-1", &json!({}));
    let found = asked_about(&osv, &["pypi:mcp@1!2.0".to_owned()]).await;
    assert_eq!(found, [("mcp".to_owned(), vec!["PYSEC-1".to_owned()])]);
    let query = json!([{ "package": { "ecosystem": "PyPI", "name": "mcp" }, "version": "1!2.0" }]);
    assert_eq!(osv.batches(), [query]);
}
