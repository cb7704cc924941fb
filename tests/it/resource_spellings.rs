//! A rule about a resource holds for every spelling of its URI that a server reads as the same.

use std::collections::BTreeSet;
use std::process::Stdio;

use pml::config::Config;
use pml::permissions::{Policy, Ruling};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::have;
use crate::support::world::World;

/// What is denied.
const SECRET: &str = "/etc/secret";

/// A world whose only server may be read from, but for one resource.
fn world() -> World {
    let permissions = json!({
        "allow": ["fake"],
        "deny": ["fake:resources/file:///etc/secret", "fake:prompts/denied"],
    });
    World::with_fake(&permissions, &["--offers", "file", "--record", "seen"])
}

fn policy(permissions: &Value) -> Policy {
    let text = json!({ "permissions": permissions }).to_string();
    let config: Config = pml::config::check(std::path::Path::new(".pml.json"), &text).unwrap();
    Policy::new(&config)
}

#[test]
fn a_denied_resource_is_not_read_by_another_spelling() {
    let world = world();
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    let open = client.request("resources/read", &json!({ "uri": "file:///etc/open" }));
    assert_eq!(open["result"]["contents"][0]["uri"], "file:///etc/open", "{open}");
    for uri in [
        "file:///etc/secret",
        "FILE:///etc/secret",
        "file:///etc/../etc/secret",
        "file:///etc/%73ecret",
        "file:/etc/secret",
        "file://localhost/etc/secret",
        "file:///etc//secret",
        "file:///etc/%252e%252e/etc/secret",
        "file:\\\\\\etc\\secret",
        "file:///etc/secret?x",
        "file:///etc/secret#x",
        "pml://fake/FILE:///etc/secret",
    ] {
        for method in ["resources/read", "resources/subscribe"] {
            let answer = client.request(method, &json!({ "uri": uri }));
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("is denied by rule"), "{method} {uri}: {answer}");
        }
        let reference = json!({ "type": "ref/resource", "uri": uri });
        let answer = client.request(
            "completion/complete",
            &json!({ "ref": reference, "argument": {} }),
        );
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("is denied by rule"),
            "completion {uri}: {answer}"
        );
        let checked = world.run(&[
            "check",
            &format!("fake:resources/{}", uri.trim_start_matches("pml://fake/")),
        ]);
        assert!(
            String::from_utf8_lossy(&checked.stdout).starts_with("deny:"),
            "{uri}"
        );
    }
    assert!(!world.read("seen").contains("ecret"), "{}", world.read("seen"));
}

#[test]
fn a_uri_with_blanks_around_it_or_invisible_characters_is_refused() {
    let world = world();
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    for uri in [
        " file:///etc/secret",
        "file:///etc/secret ",
        "file:///etc/\tsecret",
        "file:///etc/sec\u{200b}ret",
        "file:///etc/secret%00",
    ] {
        for method in ["resources/read", "resources/subscribe", "resources/unsubscribe"] {
            let answer = client.request(method, &json!({ "uri": uri }));
            assert_eq!(answer["error"]["code"], -32602, "{method} {uri:?}: {answer}");
        }
    }
    assert!(!world.read("seen").contains("resources/read"), "nothing was sent");
}

#[test]
fn a_completion_is_judged_by_the_type_of_its_reference() {
    let world = world();
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    let complete = |client: &mut crate::support::world::Client, reference: Value| {
        client.request(
            "completion/complete",
            &json!({ "ref": reference, "argument": {} }),
        )["error"]
            .clone()
    };
    let denied = complete(
        &mut client,
        json!({ "type": "ref/prompt", "name": "fake__denied" }),
    );
    assert!(
        denied["message"].as_str().unwrap().contains("is denied by rule"),
        "{denied}"
    );
    for reference in [
        json!({ "type": "ref/prompt", "name": "fake__denied", "uri": "file:///etc/open" }),
        json!({ "type": "ref/resource", "name": "fake__greet", "uri": "file:///etc/secret" }),
        json!({ "type": "ref/other", "uri": "file:///etc/open" }),
        json!({ "uri": "file:///etc/open" }),
        json!({ "type": "ref/prompt", "uri": "file:///etc/open" }),
        json!({ "type": "ref/resource", "name": "fake__greet" }),
    ] {
        let refused = complete(&mut client, reference.clone());
        assert_eq!(refused["code"], -32602, "{reference}: {refused}");
    }
    assert!(
        !world.read("seen").contains("completion/complete"),
        "nothing was sent"
    );
}

/// Spellings of the secret, and of much else: every way of writing each part, with every other.
fn corpus() -> Vec<String> {
    let schemes = ["file", "FILE", "File"];
    let hosts = [
        ":",
        "://",
        ":/",
        ":///",
        "://localhost/",
        "://LOCALHOST/",
        "://localhost./",
        "://u@localhost/",
        ":////",
        ":\\\\\\",
    ];
    let before = [
        "",
        "pub/../",
        "pub/%2e%2e/",
        "pub/%2E./",
        "./",
        "../",
        "pub//../",
        "pub%2f..%2f",
        "pub\\..\\",
        "pub/%252e%252e/",
        "pub/;x/../../",
    ];
    let names = [
        "etc/secret",
        "%65tc/secret",
        "etc/%73%65cret",
        "etc//secret",
        "etc/./secret",
        "etc%2Fsecret",
        "etc%5csecret",
        "e%74c/secret?x=1",
        "etc/secret#x",
        "etc/secre%74;x",
        "etc/other",
    ];
    let mut all = Vec::new();
    for scheme in schemes {
        for host in hosts {
            for before in before {
                for name in names {
                    all.push(format!("{scheme}{host}{before}{name}"));
                }
            }
        }
    }
    all
}

/// Reads every URI by a program; returns those that it reads as the secret.
fn read_by(world: &World, program: &str, script: &str, corpus: &[String]) -> BTreeSet<String> {
    world.write("corpus.json", &json!(corpus).to_string());
    world.write("script", script);
    let output = world
        .program(std::path::Path::new(program))
        .arg("script")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let paths: Vec<Vec<Option<String>>> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(paths.len(), corpus.len());
    let read = corpus.iter().zip(paths);
    read.filter(|(_, paths)| paths.iter().flatten().any(|path| path == SECRET))
        .map(|(uri, _)| uri.clone())
        .collect()
}

/// As servers on Node read a file's URI: by the URL itself, and by hand.
const NODE: &str = r#"
const { readFileSync } = require("fs");
const { fileURLToPath } = require("url");
const { normalize } = require("path").posix;
const attempt = (read) => { try { return normalize(read()); } catch { return null; } };
const corpus = JSON.parse(readFileSync("corpus.json", "utf8"));
console.log(JSON.stringify(corpus.map((uri) => [
  attempt(() => fileURLToPath(uri)),
  attempt(() => new URL(uri).pathname),
  attempt(() => decodeURIComponent(new URL(uri).pathname)),
  attempt(() => decodeURIComponent(decodeURIComponent(new URL(uri).pathname))),
  attempt(() => uri.replace(/^file:\/\//i, "")),
  attempt(() => decodeURIComponent(uri.replace(/^file:\/\/(localhost)?/i, ""))),
])));
"#;

/// As servers in Python read it.
const PYTHON: &str = r#"
import json, posixpath
from urllib.parse import urlsplit, urlparse, unquote
from urllib.request import url2pathname

def attempt(read):
    try:
        return "/" + posixpath.normpath(read()).lstrip("/")
    except Exception:
        return None

corpus = json.load(open("corpus.json"))
print(json.dumps([[
    attempt(lambda: urlsplit(uri).path),
    attempt(lambda: unquote(urlsplit(uri).path)),
    attempt(lambda: url2pathname(urlsplit(uri).path)),
    attempt(lambda: unquote(unquote(urlparse(uri).path))),
    attempt(lambda: unquote(uri.removeprefix("file://"))) if uri.startswith("file:///") else None,
] for uri in corpus]))
"#;

#[test]
fn whatever_node_or_python_reads_as_a_denied_file_is_denied() {
    if !have(&["node", "python3"]) {
        return;
    }
    let world = World::new();
    let corpus = corpus();
    let rules = policy(&json!({ "allow": ["fs"], "deny": ["fs:resources/file:///etc/secret"] }));
    let listed = policy(&json!({ "allow": ["fs:resources/file:///pub/*"] }));
    for (program, script) in [("node", NODE), ("python3", PYTHON)] {
        let secret = read_by(&world, program, script, &corpus);
        assert!(secret.len() > 300, "{program} reads {}", secret.len());
        let judged = |policy: &Policy, uri: &str| {
            let tool = format!("fs:resources/{uri}").parse().unwrap();
            policy.check(&tool).ruling
        };
        let read: Vec<&String> = secret
            .iter()
            .filter(|uri| judged(&rules, uri) != Ruling::Deny)
            .collect();
        assert_eq!(read, Vec::<&String>::new(), "{program} reads what is not denied");
        let read: Vec<&String> = secret
            .iter()
            .filter(|uri| judged(&listed, uri) == Ruling::Allow)
            .collect();
        assert_eq!(read, Vec::<&String>::new(), "{program} reads what is not allowed");
    }
}
