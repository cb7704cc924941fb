//! Where a package was built is shown where it is proven, told where it is not known, and never believed where it is not.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use pml::config::{Environment, Files, Locations};
use pml::loader::{Packages, plan};
use pml::pins::{ProvenanceChange, ProvenanceFinding};
use serde_json::{Value, json};

use crate::shown_contents::asked_with_contents;
use crate::support::packages::{publish_wheels, sha256};
use crate::support::registry::{Body, Held, Registry, integrity};
use crate::support::world::{World, asks, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually, have};

const BUILT: &str = "github.com/owner/hello (.github/workflows/release.yml@refs/tags/v1)";

fn fixture(name: &str) -> Vec<u8> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/provenance/made");
    std::fs::read(made.join(name)).unwrap()
}

/// A registry with the fixtures' `hello` at these versions.
fn registry(versions: &[&str]) -> Registry {
    let registry = Registry::start();
    for version in versions {
        publish(&registry, version);
    }
    registry
}

fn publish(registry: &Registry, version: &str) {
    let archive = fixture(&format!("hello-{version}.tgz"));
    let hash = integrity(&archive);
    let manifest = json!({ "bin": "server.js" });
    registry.publish_as("hello", version, &manifest, Body::Whole(archive), &hash);
}

fn attested() -> Registry {
    let registry = registry(&["1.0.0"]);
    registry.attest("hello", "1.0.0", Body::Whole(fixture("npm-1.0.0.json")));
    registry
}

/// Writes the user's own file, which names the trust root of the fixtures.
fn demand(world: &World, more: &Value) {
    use std::os::unix::fs::PermissionsExt as _;
    let root = world.home().join("root.json");
    std::fs::write(&root, fixture("root.json")).unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut settings = json!({ "sigstoreRoot": root });
    settings
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let folder = world.home().join(".config/pml");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("pml.json"), settings.to_string()).unwrap();
}

fn world(registry: &Registry, permissions: &Value, package: &str) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    declare(&world, permissions, package);
    demand(&world, &json!({}));
    world
}

fn declare(world: &World, permissions: &Value, package: &str) {
    let servers = json!({ "hello": { "package": package } });
    world.configure(&json!({ "permissions": permissions, "mcpServers": servers }));
}

fn allowed() -> Value {
    json!({ "allow": ["hello"] })
}

const NPM: &str = "npm:hello@1.0.0";
const PYPI: &str = "pypi:hello==1.0.0";
const WHEEL: &str = "hello-1.0.0-py3-none-any.whl";
const INTEGRITY: &str = "/integrity/hello/1.0.0/hello-1.0.0-py3-none-any.whl/provenance";

fn said(output: &Output) -> String {
    format!("{}{}", stdout(output), stderr(output))
}

fn installed_packages(world: &World) -> Vec<PathBuf> {
    let store = world.home().join(".local/share/pml/store");
    let folders = ["npm", "pypi"].map(|ecosystem| std::fs::read_dir(store.join(ecosystem)));
    let entries = folders.into_iter().flatten().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Asserts that a package is refused for `reason` on every road, and that nothing of it ran or is there.
fn assert_refused(world: &World, package: &str, reason: &str) {
    let ran = || world.home().join("marker").exists();
    let roads: [(&Value, &[&str]); 4] = [
        (&allowed(), &["install"]),
        (&json!({}), &["install", "--yes"]),
        (&json!({}), &["add", "more", "--yes", "--package", package]),
        (&allowed(), &["install", "--json"]),
    ];
    for (permissions, arguments) in roads {
        declare(world, permissions, package);
        let output = world.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        // In JSON quotes are escaped.
        let text = said(&output).replace("\\\"", "\"");
        assert!(
            text.contains(reason),
            "{arguments:?}: {reason:?} is not in {text}"
        );
        assert!(!ran(), "{arguments:?}");
        assert_eq!(installed_packages(world), Vec::<PathBuf>::new(), "{arguments:?}");
    }
    declare(world, &allowed(), package);
    let mut client = world.legacy();
    let result = client.call("hello:look", &json!({}));
    assert_eq!(result["isError"], true, "{result}");
    let text = texts(&result).concat();
    assert!(text.contains(reason), "{reason:?} is not in {text}");
    client.close();
    assert!(!ran());
    assert_eq!(installed_packages(world), Vec::<PathBuf>::new());
}

#[test]
fn the_repository_is_shown_before_a_person_agrees_and_afterwards() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = attested();
    let world = world(&registry, &json!({}), NPM);
    let mut client = world.legacy();
    // A question waits a moment for the registry; what comes later stands in the next one.
    let mut asked = Value::Null;
    eventually("the provenance is in a question", DEADLINE, || {
        asked = client.call("hello:look", &json!({}));
        assert!(asks(&asked), "{asked}");
        !asked["approval_context"]["dependency"]["provenance"].is_null()
    });
    let shown = json!({
        "repository": "github.com/owner/hello",
        "workflow": ".github/workflows/release.yml@refs/tags/v1",
        "commit": "0123456789abcdef0123456789abcdef01234567",
    });
    assert_eq!(asked["approval_context"]["dependency"]["provenance"], shown);
    assert!(texts(&asked).concat().contains(BUILT), "{asked}");
    let pending = stdout(&world.run(&["pending"]));
    assert!(pending.contains(BUILT), "{pending}");
    assert!(!world.home().join("marker").exists());
    let result = client.proceed("hello:look", &asked, &json!({ "approved": true }));
    assert_eq!(texts(&result), ["looked"]);
    client.close();
    let listed = json_of(&world.run(&["list", "--json"]));
    assert_eq!(listed["servers"][0]["provenance"], shown);
    // The address in its metadata leads elsewhere; it was asked at its own host, and once.
    assert_eq!(registry.hits("/-/npm/v1/attestations/hello@1.0.0"), 1);
}

#[test]
fn pml_add_and_pml_install_show_the_repository() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = attested();
    let added = world(&registry, &json!({}), NPM).run(&["add", "more", "--yes", "--package", NPM]);
    assert!(added.status.success(), "{}", said(&added));
    assert!(
        stderr(&added).contains(&format!("provenance {BUILT}")),
        "{}",
        said(&added)
    );
    let more = ["add", "more", "--yes", "--json", "--package", NPM];
    let added = json_of(&world(&registry, &json!({}), NPM).run(&more));
    assert_eq!(added["provenance"]["repository"], "github.com/owner/hello");
    let asked = world(&registry, &json!({}), NPM).run(&["install", "--yes"]);
    assert!(
        stderr(&asked).contains(&format!("provenance {BUILT}")),
        "{}",
        said(&asked)
    );
    // By a rule nothing is asked, and it is told all the same.
    let ruled = world(&registry, &allowed(), NPM).run(&["install"]);
    assert!(ruled.status.success(), "{}", said(&ruled));
    assert!(
        stderr(&ruled).contains(&format!("hello: provenance: {BUILT}")),
        "{}",
        said(&ruled)
    );
    let ruled = json_of(&world(&registry, &allowed(), NPM).run(&["install", "--json"]));
    assert_eq!(ruled[0]["provenance"]["repository"], "github.com/owner/hello");
}

#[test]
fn a_package_without_an_attestation_is_installed_and_nothing_is_claimed_of_it() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = registry(&["1.0.0"]);
    let world = world(&registry, &allowed(), NPM);
    let output = world.run(&["install"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("provenance"), "{}", said(&output));
    let listed = json_of(&world.run(&["list", "--json"]));
    assert_eq!(listed["servers"][0]["provenance"], Value::Null);
    assert_eq!(registry.hits("/-/npm/v1/attestations/hello@1.0.0"), 0);
}

#[test]
fn an_attestation_that_does_not_verify_refuses_the_package_and_nothing_of_it_runs() {
    if !have(&["npm", "node"]) {
        return;
    }
    let forged = {
        let mut document: Value = serde_json::from_slice(&fixture("npm-1.0.0.json")).unwrap();
        let other: Value = serde_json::from_slice(&fixture("npm-gitlab.json")).unwrap();
        let signatures = "/attestations/1/bundle/dsseEnvelope/signatures";
        *document.pointer_mut(signatures).unwrap() = other.pointer(signatures).unwrap().clone();
        document.to_string().into_bytes()
    };
    for (document, reason) in [
        (
            forged,
            "its attestation is forged: the signature is not that of its certificate",
        ),
        (
            fixture("npm-1.1.0-other-repository.json"),
            "its attestation is about `pkg:npm/hello@1.1.0`, not about `pkg:npm/hello@1.0.0`",
        ),
    ] {
        let registry = registry(&["1.0.0"]);
        registry.attest("hello", "1.0.0", Body::Whole(document));
        let world = world(&registry, &json!({}), NPM);
        assert_refused(&world, NPM, reason);
    }
}

#[test]
fn what_is_served_instead_of_an_attestation_refuses_the_package() {
    if !have(&["npm", "node"]) {
        return;
    }
    for (body, reason) in [
        (
            Body::Whole(b"<html>sign in</html>".to_vec()),
            "its attestation cannot be read: expected value at line 1 column 1",
        ),
        (
            Body::Whole(vec![b' '; 1024 * 1024 + 1]),
            "its attestation is longer than 1048576 bytes",
        ),
        (
            Body::Whole(fixture("npm-other-issuer.json")),
            "for whom `https://accounts.google.com` vouches, which is no build service that pml knows",
        ),
        (
            Body::Whole(fixture("npm-expired.json")),
            "its attestation was signed outside the validity of its certificate",
        ),
    ] {
        let registry = registry(&["1.0.0"]);
        registry.attest("hello", "1.0.0", body);
        let world = world(&registry, &allowed(), NPM);
        let output = world.run(&["install"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(
            said(&output).contains(reason),
            "{reason:?} is not in {}",
            said(&output)
        );
        assert_eq!(installed_packages(&world), Vec::<PathBuf>::new());
    }
}

#[test]
fn the_trust_root_in_pml_does_not_know_a_private_deployment_and_says_how_old_it_is() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = attested();
    let world = world(&registry, &allowed(), NPM);
    std::fs::remove_file(world.home().join(".config/pml/pml.json")).unwrap();
    let output = world.run(&["install"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let text = said(&output);
    assert!(
        text.contains("its transparency log is not in the trust root in pml"),
        "{text}"
    );
    assert!(text.contains("which is as old as this build of pml"), "{text}");
    assert!(
        text.contains("hint: nothing was installed; keys change with the years"),
        "{text}"
    );
    // A root that the user names and that is not there is no reason to believe anything.
    demand(&world, &json!({ "sigstoreRoot": "/nowhere/root.json" }));
    let output = world.run(&["install"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("the trust root `/nowhere/root.json` cannot be used: there is no such file"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_a_registry_cannot_be_asked_for_is_told_as_unknown_and_asked_for_again() {
    if !have(&["npm", "node"]) {
        return;
    }
    for (body, reason) in [
        (
            Body::Status(404),
            "the registry says that it has one and answered 404",
        ),
        (Body::Status(500), "the registry answered 500"),
        (Body::Status(302), "the registry answered 302"),
        (Body::Closed, "the registry cannot be reached: "),
    ] {
        let registry = registry(&["1.0.0"]);
        registry.attest("hello", "1.0.0", body);
        let world = world(&registry, &json!({}), NPM);
        let output = world.run(&["install", "--yes"]);
        assert!(output.status.success(), "{}", said(&output));
        let told = format!("provenance unknown: {reason}");
        assert!(
            stderr(&output).contains(&told),
            "{told:?} is not in {}",
            said(&output)
        );
        // It is not none: whoever demands one is not content with that, and asks again.
        demand(&world, &json!({ "requireProvenance": ["hello"] }));
        let output = world.run(&["install", "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let refused = format!("it is not known where it was built ({reason}");
        assert!(
            said(&output).contains(&refused),
            "{refused:?} is not in {}",
            said(&output)
        );
        registry.attest("hello", "1.0.0", Body::Whole(fixture("npm-1.0.0.json")));
        let output = world.run(&["install", "--yes"]);
        assert!(output.status.success(), "{}", said(&output));
        let listed = json_of(&world.run(&["list", "--json"]));
        assert_eq!(
            listed["servers"][0]["provenance"]["repository"],
            "github.com/owner/hello"
        );
    }
}

#[test]
fn what_the_user_demands_is_refused_without_it_by_the_name_of_the_setting_and_the_file() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = registry(&["1.0.0"]);
    let world = world(&registry, &allowed(), NPM);
    demand(&world, &json!({ "requireProvenance": ["@other/*", "hel*"] }));
    let file = world.home().join(".config/pml/pml.json");
    let reason = format!(
        "`hello@1.0.0` is refused: it has no provenance, and `hel*` in \"requireProvenance\" of `{}` demands it",
        file.display()
    );
    assert_refused(&world, NPM, &reason);
    // Others are not concerned, and with one it is installed.
    demand(&world, &json!({ "requireProvenance": ["@other/*"] }));
    let output = world.run(&["install"]);
    assert!(output.status.success(), "{}", said(&output));
    let attested = attested();
    let proven = self::world(&attested, &allowed(), NPM);
    demand(&proven, &json!({ "requireProvenance": ["hel*"] }));
    let output = proven.run(&["install"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_demand_counts_for_what_is_installed_already() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = registry(&["1.0.0"]);
    let world = world(&registry, &allowed(), NPM);
    let output = world.run(&["install"]);
    assert!(output.status.success(), "{}", said(&output));
    demand(&world, &json!({ "requireProvenance": ["*"] }));
    let mut client = world.legacy();
    let result = client.call("hello:look", &json!({}));
    assert_eq!(result["isError"], true, "{result}");
    let text = texts(&result).concat();
    assert!(text.contains("it has no provenance, and `*` in"), "{text}");
    client.close();
    assert!(!world.home().join("marker").exists());
}

/// Tells whether a process of the package runs.
fn is_serving(world: &World) -> bool {
    let store = world.home().join(".local/share/pml/store");
    let store = store.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    { processes }.any(|process| {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(store)
    })
}

#[test]
fn a_demand_stops_what_runs_already_and_refuses_its_next_call() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = registry(&["1.0.0"]);
    let world = world(&registry, &allowed(), NPM);
    let mut client = world.legacy();
    let ran = client.call("hello:look", &json!({}));
    assert_eq!(texts(&ran)[0], "looked", "{ran}");
    // A call on the way that is known by now.
    let ran = client.call("hello:look", &json!({}));
    assert_eq!(texts(&ran), ["looked"], "{ran}");

    demand(&world, &json!({ "requireProvenance": ["hel*"] }));
    // At once, without waiting for the file to be noticed.
    let refused = client.call("hello:look", &json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    let again = client.call("hello:look", &json!({}));
    let text = texts(&again).concat();
    assert!(text.contains("it has no provenance, and `hel*` in"), "{text}");
    let server = || is_serving(&world);
    eventually("the server is stopped", DEADLINE, || !server());

    // It runs again as soon as the demand is taken back, and is stopped without a call where one is made.
    demand(&world, &json!({}));
    let ran = client.call("hello:look", &json!({}));
    assert_eq!(texts(&ran), ["looked"], "{ran}");
    assert!(server());
    demand(&world, &json!({ "requireProvenance": ["*"] }));
    eventually("the server is stopped without a call", DEADLINE, || !server());
}

#[test]
fn what_runs_with_the_provenance_that_is_demanded_goes_on() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = attested();
    let world = world(&registry, &allowed(), NPM);
    let mut client = world.legacy();
    client.call("hello:look", &json!({}));
    demand(&world, &json!({ "requireProvenance": ["*"] }));
    for _ in 0..3 {
        let ran = client.call("hello:look", &json!({}));
        assert_eq!(texts(&ran), ["looked"], "{ran}");
    }
}

#[test]
fn a_project_decides_neither_what_is_demanded_nor_by_which_keys() {
    for (key, value) in [
        ("requireProvenance", json!(["x"])),
        ("sigstoreRoot", json!("/root.json")),
    ] {
        let world = World::new();
        world.configure(&json!({ key: value }));
        let output = world.run(&["list"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(key), "{}", said(&output));
        assert!(
            said(&output).contains("a project cannot decide"),
            "{}",
            said(&output)
        );
    }
}

/// A registry that is an index of Python packages, too.
fn index(provenance: Option<Body>) -> Registry {
    let registry = Registry::start();
    publish_wheels(&registry, "hello", &[("1.0.0", &fixture(WHEEL))]);
    if let Some(body) = provenance {
        registry.serve_as(INTEGRITY, body);
    }
    registry
}

#[test]
fn the_repository_of_a_python_package_is_shown() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = index(Some(Body::Whole(fixture("pypi-1.0.0.json"))));
    let world = world(&registry, &json!({}), PYPI);
    demand(&world, &json!({ "requireProvenance": ["pypi:*"] }));
    let output = world.run(&["install", "--yes"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        stderr(&output).contains(&format!("provenance {BUILT}")),
        "{}",
        said(&output)
    );
    // An index may list its archives as JSON, and say there that one has none.
    let hash = sha256(&fixture(WHEEL));
    let file = json!({ "filename": WHEEL, "url": format!("/files/{WHEEL}"), "hashes": { "sha256": hash }, "provenance": null });
    let page = json!({ "meta": { "api-version": "1.3" }, "name": "hello", "files": [file] });
    registry.serve("/simple/hello/", page.to_string().as_bytes());
    let world = self::world(&registry, &json!({}), PYPI);
    let output = world.run(&["install", "--yes"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("provenance"), "{}", said(&output));
    assert_eq!(registry.hits(INTEGRITY), 1);
}

#[test]
fn a_python_package_without_an_attestation_and_one_that_cannot_be_asked_for_are_told_apart() {
    if !have(&["uv", "python3"]) {
        return;
    }
    for (provenance, told) in [
        (None, None),
        (Some(Body::Status(500)), Some("the registry answered 500")),
        (Some(Body::Closed), Some("the registry cannot be reached: ")),
    ] {
        let registry = index(provenance);
        let world = world(&registry, &json!({}), PYPI);
        let output = world.run(&["install", "--yes"]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(registry.hits(INTEGRITY) > 0);
        match told {
            Some(reason) => assert!(
                stderr(&output).contains(&format!("provenance unknown: {reason}")),
                "{}",
                said(&output)
            ),
            None => assert!(!said(&output).contains("provenance"), "{}", said(&output)),
        }
    }
}

#[test]
fn a_python_attestation_that_does_not_verify_refuses_the_package() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let mut document: Value = serde_json::from_slice(&fixture("pypi-1.0.0.json")).unwrap();
    let attestation = &mut document["attestation_bundles"][0]["attestations"][0];
    // The envelope of another statement by the same deployment.
    let other: Value = serde_json::from_slice(&fixture("npm-1.0.0.json")).unwrap();
    let signature = other
        .pointer("/attestations/1/bundle/dsseEnvelope/signatures/0/sig")
        .unwrap();
    attestation["envelope"]["signature"] = signature.clone();
    let registry = index(Some(Body::Whole(document.to_string().into_bytes())));
    let world = world(&registry, &json!({}), PYPI);
    assert_refused(
        &world,
        PYPI,
        "its attestation is forged: the signature is not that of its certificate",
    );
}

/// What is pinned of `hello` at a version, after it was installed.
fn pinned(registry: &Registry, package: &str) -> ProvenanceFinding {
    let world = world(registry, &allowed(), package);
    let output = world.run(&["install"]);
    assert!(output.status.success(), "{}", said(&output));
    let home = world.home().to_str().unwrap();
    let environment = Environment::new([("HOME", home)], world.project());
    let locations = Locations::of(&environment).unwrap();
    let config = pml::config::check(&world.path(".pml.json"), &world.read(".pml.json")).unwrap();
    let name = "hello".parse().unwrap();
    let plan = plan(&name, &config.servers[&name], &environment).unwrap();
    let files = Files::new(world.path(".pml.json"), &locations);
    let release_age = pml::proxy::release_age(files.clone());
    let history = pml::proxy::history(&locations, files);
    let packages = Packages::new(&locations, &environment, history, release_age);
    packages.pin(&plan).unwrap().provenance
}

#[test]
fn a_version_that_lost_its_provenance_and_one_of_another_repository_differ_from_the_pin() {
    if !have(&["npm", "node"]) {
        return;
    }
    let before = pinned(&attested(), NPM);
    assert_eq!(ProvenanceChange::of(&before, &before), ProvenanceChange::Same);
    let lost = registry(&["1.1.0"]);
    let elsewhere = registry(&["1.1.0"]);
    let document = fixture("npm-1.1.0-other-repository.json");
    elsewhere.attest("hello", "1.1.0", Body::Whole(document));
    let anew = registry(&["1.1.0"]);
    let document = fixture("npm-1.1.0-new-repository.json");
    anew.attest("hello", "1.1.0", Body::Whole(document));
    for (registry, said) in [
        (
            lost,
            "this version has no provenance; the one before was built by github.com/owner/hello",
        ),
        (
            elsewhere,
            "this version was built by github.com/someone/else; the one before by github.com/owner/hello",
        ),
        (
            anew,
            "this version was built by a new repository of the name github.com/owner/hello (number 2); the one before by number 1",
        ),
    ] {
        let now = pinned(&registry, "npm:hello@1.1.0");
        let change = ProvenanceChange::of(&before, &now);
        assert!(change.asks());
        assert_eq!(change.to_string(), said);
    }
}

const LOST: &str = "! this version has no provenance; the one before was built by github.com/owner/hello";
const UNKNOWN: &str = "! it is not known where this version was built (the registry answered 500); the one before was \
                       built by github.com/owner/hello";
const ELSEWHERE: &str =
    "! this version was built by github.com/someone/else; the one before by github.com/owner/hello";

/// A world in which `hello` was used at 1.0.0, which is attested, and declares 1.1.0 now.
fn upgrading(registry: &Registry) -> World {
    let world = world(registry, &allowed(), NPM);
    let ran = world.legacy().call("hello:look", &json!({}));
    assert!(texts(&ran).contains(&"looked"), "{ran}");
    publish(registry, "1.1.0");
    std::fs::remove_dir_all(world.home().join(".cache/pml/npm")).unwrap();
    declare(&world, &allowed(), "npm:hello@1.1.0");
    world
}

/// The first line that a person is shown of the newest ask.
fn first_line(world: &World) -> String {
    let pending = json_of(&world.run(&["pending", "--json"]));
    let newest = pending["pending"].as_array().unwrap().last().unwrap();
    let lines = &newest["dependency"]["change"]["lines"];
    lines[0]
        .as_str()
        .unwrap_or_else(|| panic!("{pending}"))
        .to_owned()
}

fn look(world: &World) -> Value {
    world.legacy().call("hello:look", &json!({}))
}

#[test]
fn a_lost_provenance_is_the_first_line_of_every_question() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = attested();
    let world = upgrading(&registry);
    asked_with_contents(&world, || look(&world));
    assert_eq!(first_line(&world), LOST);

    let mut client = world.client();
    client.initialize_with_forms();
    let _call = client.send("tools/call", &json!({ "name": "hello__look", "arguments": {} }));
    let form = client.notified("elicitation/create");
    let text = form["params"]["message"].as_str().unwrap().to_owned();
    let text: Vec<&str> = text.lines().collect();
    assert!(text[0].contains("is not what you accepted"), "{text:?}");
    assert!(
        text[1].starts_with("! this version has no provenance"),
        "{text:?}"
    );
    drop(client);

    declare(&world, &allowed(), NPM);
    let refused = world.run(&["upgrade", "hello"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    let told = stderr(&refused);
    let shown = told
        .split_once("hello, beside what it was:\n")
        .map(|(_, shown)| shown);
    assert!(shown.is_some_and(|shown| shown.starts_with(LOST)), "{told}");
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.1.0")), 0);
}

#[test]
fn a_provenance_that_is_found_after_the_answer_is_another_question() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = attested();
    let world = upgrading(&registry);
    registry.attest("hello", "1.1.0", Body::Status(500));
    asked_with_contents(&world, || look(&world));
    assert_eq!(first_line(&world), UNKNOWN);
    let other = fixture("npm-1.1.0-other-repository.json");
    registry.attest("hello", "1.1.0", Body::Whole(other));
    world.approve_oldest();
    let asked = look(&world);
    assert!(asks(&asked), "{asked}");
    assert_eq!(first_line(&world), ELSEWHERE);
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.1.0")), 0);
    assert_eq!(installed_packages(&world).len(), 1, "that of 1.0.0");

    world.approve_oldest();
    let ran = look(&world);
    assert!(texts(&ran).contains(&"looked"), "{ran}");
}

#[test]
fn a_provenance_that_takes_longer_than_a_question_waits_is_asked_about_once_it_is_known() {
    if !have(&["npm", "node"]) {
        return;
    }
    let registry = attested();
    let world = upgrading(&registry);
    let held = Held::new(&fixture("npm-1.1.0-other-repository.json"));
    registry.attest("hello", "1.1.0", Body::Held(Arc::clone(&held)));
    let mut client = world.legacy();
    assert!(asks(&client.call("hello:look", &json!({}))));
    assert!(first_line(&world).starts_with("! it is not known where this version was built ("));
    world.approve_oldest();
    held.release();
    let asked = client.call("hello:look", &json!({}));
    assert!(asks(&asked), "{asked}");
    assert_eq!(first_line(&world), ELSEWHERE);
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.1.0")), 0);
}
