//! What a hostile npm registry serves is refused by name: nothing of it runs, lies outside or stays behind.

use serde_json::{Value, json};

use crate::support::have;
use crate::support::hostile::{Attack, SERVER, depends, publish};
use crate::support::registry::{Body, Registry, archive, integrity};

#[test]
fn no_lifecycle_script_of_a_package_or_of_what_it_bundles_runs() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let attack = Attack::npm();
    let touch = format!("touch '{}'", attack.marker().display());
    let scripts: serde_json::Map<String, Value> = [
        "preinstall",
        "install",
        "postinstall",
        "prepare",
        "prepublish",
        "preprepare",
        "postprepare",
        "dependencies",
    ]
    .map(|name| (name.to_owned(), touch.clone().into()))
    .into_iter()
    .collect();
    let inner = json!({ "name": "inner", "version": "1.0.0", "scripts": scripts }).to_string();
    let gyp = format!("{{'targets': [{{'target_name': 'x', 'actions': [], 'x': '<!({touch})'}}]}}");
    let settings = format!(
        "ignore-scripts=false\nscript-shell={}\n",
        attack.marker().display()
    );
    let manifest =
        json!({ "scripts": scripts, "dependencies": { "inner": "1.0.0" }, "bundleDependencies": ["inner"] });
    publish(
        &attack.registry,
        &manifest,
        &[
            ("package/node_modules/inner/package.json", "file", &inner),
            ("package/node_modules/inner/binding.gyp", "file", &gyp),
            ("package/.npmrc", "file", &settings),
        ],
    );
    attack.assert_harmless();
    // A package without scripts is built by npm itself where it has this file.
    let attack = Attack::npm();
    let gyp = gyp.replace(&touch, &format!("touch '{}'", attack.marker().display()));
    publish(
        &attack.registry,
        &json!({}),
        &[("package/binding.gyp", "file", &gyp)],
    );
    attack.assert_harmless();
}

#[test]
fn a_dependency_that_comes_from_no_registry_is_named_wherever_it_stands() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    for spec in [
        "git+http://127.0.0.1:9/x.git",
        "github:a/b",
        "file:../x",
        "link:../x",
        "http://127.0.0.1:9/x.tgz",
    ] {
        for transitive in [false, true] {
            let attack = Attack::npm();
            let manifest = if transitive {
                attack
                    .registry
                    .publish("middle", "1.0.0", &depends("other", spec), &[]);
                depends("middle", "1.0.0")
            } else {
                depends("other", spec)
            };
            publish(&attack.registry, &manifest, &[]);
            attack.assert_refused(&[
                "`hello@1.0.0` is refused: something that it depends on does not come from a registry: `",
                &format!("{spec}`"),
                "hint: nothing of it was fetched",
            ]);
        }
    }
}

#[test]
fn an_alias_is_known_by_the_name_of_the_package_it_leads_to() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let attack = Attack::npm();
    attack.registry.publish("third", "1.0.0", &json!({}), &[]);
    publish(&attack.registry, &depends("other", "npm:third@1.0.0"), &[]);
    attack.assert_harmless();
    let listed = attack.world.run(&["sbom"]);
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(
        listed.contains("third") && !listed.contains("pkg:npm/other"),
        "{listed}"
    );
    // Where no alias was declared, a package under the name of another is a lie of the registry.
    let attack = Attack::npm();
    attack.registry.publish("other", "1.0.0", &json!({}), &[]);
    attack.registry.edit("other", |document| {
        document["versions"]["1.0.0"]["name"] = "third".into();
    });
    publish(&attack.registry, &depends("other", "1.0.0"), &[]);
    attack.assert_refused(&["its dependency `other` is another package: `third`"]);
}

#[test]
fn what_has_no_strong_integrity_or_another_one_is_refused() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    // The right SHA-1 of the archive, as npm itself would accept it.
    let weak = |archive: &[u8]| {
        use base64::Engine as _;
        use sha1::Digest as _;
        format!(
            "sha1-{}",
            base64::engine::general_purpose::STANDARD.encode(sha1::Sha1::digest(archive))
        )
    };
    let whole = archive("other", "1.0.0", &json!({}), &[]);
    for (promised, told) in [
        (Value::Null, "its dependency `other` has no sha512 integrity"),
        (
            weak(&whole).into(),
            "its dependency `other` has no sha512 integrity",
        ),
        (
            integrity(b"other").into(),
            "the archive of `other` is not what its registry promised",
        ),
    ] {
        let attack = Attack::npm();
        attack
            .registry
            .publish_as("other", "1.0.0", &json!({}), Body::Whole(whole.clone()), "");
        attack.registry.edit("other", |document| {
            document["versions"]["1.0.0"]["dist"]["integrity"] = promised.clone();
        });
        publish(&attack.registry, &depends("other", "1.0.0"), &[]);
        attack.assert_refused(&["`hello@1.0.0` is refused", told, "hint: nothing of it was run"]);
    }
}

#[test]
fn a_registry_or_an_archive_that_speaks_of_another_package_is_refused() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    for (member, value, found) in [
        ("name", "evil", "evil@1.0.0"),
        ("version", "6.6.6", "hello@6.6.6"),
    ] {
        let attack = Attack::npm();
        publish(&attack.registry, &json!({}), &[]);
        attack.registry.edit("hello", |document| {
            document["versions"]["1.0.0"][member] = value.into();
        });
        attack.assert_refused(&[&format!(
            "`hello@1.0.0` is refused: the registry says that it is `{found}`"
        )]);
    }
    let attack = Attack::npm();
    let other = r#"{"name":"evil","version":"6.6.6","bin":"server.js"}"#;
    publish(
        &attack.registry,
        &json!({}),
        &[("package/package.json", "file", other)],
    );
    attack.assert_refused(&["the `package.json` of its archive says that it is `evil@6.6.6`"]);
}

#[test]
fn an_archive_at_another_host_is_installed_by_its_integrity_alone() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    // Many registries keep archives at hosts of their own; what counts is the integrity that the registry promises.
    let elsewhere = Registry::start();
    let whole = archive(
        "hello",
        "1.0.0",
        &json!({ "bin": "server.js" }),
        &[("server.js", SERVER)],
    );
    elsewhere.serve("/hello.tgz", &whole);
    elsewhere.serve("/evil.tgz", b"evil");
    for (file, harmless) in [("hello.tgz", true), ("evil.tgz", false)] {
        let attack = Attack::npm();
        let manifest = json!({ "bin": "server.js" });
        attack
            .registry
            .publish_as("hello", "1.0.0", &manifest, Body::Closed, &integrity(&whole));
        attack.registry.edit("hello", |document| {
            document["versions"]["1.0.0"]["dist"]["tarball"] = format!("{}{file}", elsewhere.url()).into();
        });
        if harmless {
            attack.assert_harmless();
        } else {
            attack.assert_refused(&["the archive of `hello` is not what its registry promised"]);
        }
    }
}

#[test]
fn a_registry_whose_answers_lead_nowhere_is_named() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let archive = Registry::tarball("hello", "1.0.0");
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for (path, body) in [
        ("/hello", Body::Moved("/hello".to_owned())),
        (archive.as_str(), Body::Moved(archive.clone())),
        ("/hello", Body::Whole(b"[".repeat(1_000_000))),
    ] {
        let attack = Attack::npm();
        publish(&attack.registry, &json!({}), &[]);
        attack.registry.serve_as(path, body);
        attack.assert_refused(&[
            "`hello@1.0.0` is not installed: its registry answers with what `npm` cannot read",
            "hint: check the registry",
        ]);
    }
    // Deep, but JSON: npm reads it and finds no version in it.
    let attack = Attack::npm();
    publish(&attack.registry, &json!({}), &[]);
    attack.registry.serve("/hello", deep.as_bytes());
    attack.assert_refused(&["the registry has no `hello@1.0.0`", "hint: check the name"]);
    // A long document is none of these.
    let attack = Attack::npm();
    publish(&attack.registry, &json!({}), &[]);
    attack.registry.edit("hello", |document| {
        document["readme"] = "x".repeat(30_000_000).into();
    });
    attack.assert_harmless();
}
