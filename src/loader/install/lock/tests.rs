//! Locks as npm and uv write them, and as an attacker would like them.

use super::*;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn hash(fill: char) -> String {
    format!("sha512-{}==", fill.to_string().repeat(86))
}

fn lock() -> Value {
    json!({
        "lockfileVersion": 3,
        "packages": {
            "": { "dependencies": { "@scope/serena": "1.0.0" } },
            "node_modules/@scope/serena": {
                "version": "1.0.0",
                "resolved": "https://registry.test/@scope/serena/-/serena-1.0.0.tgz",
                "integrity": hash('A'),
                "dependencies": { "dep": "^1.0.0", "alias": "npm:dep@~1", "JSONStream": "1.x || >=2" },
            },
            // As written with `omit-lockfile-registry-resolved`.
            "node_modules/dep": { "version": "1.0.0", "integrity": hash('B') },
            "node_modules/JSONStream": { "version": "1.0.0", "integrity": hash('B') },
            "node_modules/dep/node_modules/inner": { "version": "1.0.0", "inBundle": true },
        },
    })
}

fn check(lock: &Value) -> Result<String, LockError> {
    check_npm(&lock.to_string(), "@scope/serena", "1.0.0").map(|checked| checked.integrity)
}

fn digest(lock: &Value) -> Digest {
    check_npm(&lock.to_string(), "@scope/serena", "1.0.0")
        .unwrap()
        .digest
}

#[test]
fn the_digest_of_a_lock_covers_every_package_and_no_address() {
    let before = digest(&lock());
    let mut mirrored = lock();
    mirrored["packages"]["node_modules/@scope/serena"]["resolved"] = "https://mirror.test/serena.tgz".into();
    mirrored["packages"]["node_modules/dep"]["license"] = "MIT".into();
    assert_eq!(digest(&mirrored), before);
    let entry = json!({ "version": "1.0.0", "integrity": hash('B') });
    let mut aliased = with("node_modules/alias", entry);
    let unnamed = digest(&aliased);
    aliased["packages"]["node_modules/alias"]["name"] = "dep".into();
    assert_ne!(digest(&aliased), unnamed);
    for changed in [
        with(
            "node_modules/dep",
            json!({ "version": "1.0.1", "integrity": hash('B') }),
        ),
        with(
            "node_modules/dep",
            json!({ "version": "1.0.0", "integrity": hash('C') }),
        ),
        aliased.clone(),
        with(
            "node_modules/more",
            json!({ "version": "1.0.0", "integrity": hash('B') }),
        ),
        with(
            "node_modules/dep/node_modules/inner",
            json!({ "version": "1.0.1", "inBundle": true }),
        ),
    ] {
        assert_ne!(digest(&changed), before, "{changed}");
    }
}

fn with(path: &str, entry: Value) -> Value {
    let mut lock = lock();
    lock["packages"][path] = entry;
    lock
}

#[test]
fn a_pinned_lock_gives_the_integrity_of_its_package() {
    assert_eq!(check(&lock()), Ok(hash('A')));
}

fn integrity(entry: &str) -> LockError {
    LockError::Integrity {
        entry: entry.to_owned(),
        algorithm: "sha512",
    }
}

fn origin(entry: &str, origin: &str) -> LockError {
    LockError::Origin {
        entry: entry.to_owned(),
        origin: origin.to_owned(),
    }
}

fn link(entry: &str) -> LockError {
    LockError::Link {
        entry: entry.to_owned(),
    }
}

#[test]
fn an_entry_that_is_not_pinned_is_refused() {
    for (path, entry, expected) in [
        ("dep", json!({ "version": "1.0.0" }), integrity("dep")),
        (
            "dep",
            json!({ "version": "1.0.0", "integrity": "sha1-AAAA" }),
            integrity("dep"),
        ),
        (
            "dep",
            json!({ "version": "1.0.0", "integrity": "sha512-short" }),
            integrity("dep"),
        ),
        (
            "free",
            json!({ "version": "1.0.0", "inBundle": true }),
            integrity("free"),
        ),
        (
            "dep",
            json!({ "resolved": "git+ssh://git@a.test/x.git#1", "integrity": hash('B') }),
            origin("dep", "git+ssh://git@a.test/x.git#1"),
        ),
        (
            "dep",
            json!({ "resolved": "file:../x", "integrity": hash('B') }),
            origin("dep", "file:../x"),
        ),
        ("dep", json!({ "resolved": "x", "link": true }), link("dep")),
        (
            "../../x",
            json!({ "version": "1.0.0", "integrity": hash('B') }),
            link("../../x"),
        ),
    ] {
        assert_eq!(
            check(&with(&format!("node_modules/{path}"), entry)),
            Err(expected)
        );
    }
    let outside = with(
        "../outside",
        json!({ "version": "1.0.0", "integrity": hash('B') }),
    );
    assert_eq!(check(&outside), Err(link("../outside")));
}

#[test]
fn a_dependency_that_names_another_source_is_refused() {
    for spec in [
        "https://a.test/x.tgz",
        "github:a/b",
        "a/b",
        "git://a.test/x",
        "~/x",
        "npm:a/b",
        "..\\x",
        "file:x",
        "workspace:*",
    ] {
        for kind in ["dependencies", "optionalDependencies", "peerDependencies"] {
            let entry = json!({ "version": "1.0.0", "integrity": hash('B'), kind: { "x": spec } });
            assert_eq!(check(&with("node_modules/dep", entry)), Err(origin("x", spec)));
        }
    }
}

#[test]
fn a_lock_of_another_package_is_refused() {
    let absent = LockError::Absent {
        name: "@scope/serena".to_owned(),
        version: "1.0.0".to_owned(),
    };
    let entry = json!({ "version": "1.0.1", "integrity": hash('A') });
    assert_eq!(check(&with("node_modules/@scope/serena", entry)), Err(absent));
    // `alias` is declared to be `dep` and nothing else.
    for (folder, name, is_refused) in [
        ("@scope/serena", "evil", true),
        ("dep", "other", true),
        ("alias", "other", true),
        ("alias", "dep", false),
    ] {
        let entry = json!({ "name": name, "version": "1.0.0", "integrity": hash('A') });
        let expected = LockError::Name {
            entry: folder.to_owned(),
            found: name.to_owned(),
        };
        let found = check(&with(&format!("node_modules/{folder}"), entry));
        assert_eq!(found.err(), is_refused.then_some(expected), "{folder} {name}");
    }
    for unreadable in [json!({ "lockfileVersion": 1, "dependencies": {} }), json!([])] {
        assert!(matches!(check(&unreadable), Err(LockError::Unreadable { .. })));
    }
}

#[test]
fn requirements_need_a_version_and_hashes_on_every_line() {
    let (one, two) = ("a".repeat(64), "b".repeat(64));
    let good = format!(
        "Dep==1.0 \\\n    --hash=sha256:{one}\nSer_ena==2.0 \\\n    --hash=sha256:{two} \\\n    --hash=sha256:{one}\n"
    );
    let digest = format!("sha256-{}", Digest::of([&one, &two]));
    let checked = |text: &str, name: &str, version| {
        check_requirements(text, name, version).map(|checked| (checked.version, checked.integrity))
    };
    assert_eq!(
        checked(&good, "ser-ena", Some("2.0")),
        Ok(("2.0".to_owned(), digest))
    );
    assert_eq!(
        checked(&good, "dep", None),
        Ok(("1.0".to_owned(), format!("sha256-{one}")))
    );
    // A list of packages tells the hash of an archive from a digest over several.
    let listed = check_requirements(&good, "dep", None).unwrap().packages;
    assert_eq!(listed["dep@1.0"], format!("sha256-{one}"));
    assert_eq!(
        listed["ser-ena@2.0"],
        format!("archives-sha256-{}", Digest::of([&one, &two]))
    );
    let digest = |text: &str| check_requirements(text, "dep", None).unwrap().digest;
    // The order of lines and hashes, and the spelling of names, do not count; versions and hashes do.
    let same = format!(
        "# other\nser.ena==2.0 --hash=sha256:{one} --hash=sha256:{two}\ndep==1.0 --hash=sha256:{one}\n"
    );
    assert_eq!(digest(&same), digest(&good));
    for other in [
        good.replace("==2.0", "==2.1"),
        good.replace(&two, &"c".repeat(64)),
        format!("{good}more==1.0 --hash=sha256:{one}\n"),
    ] {
        assert_ne!(digest(&other), digest(&good), "{other}");
    }
    assert!(matches!(
        check_requirements(&good, "dep", Some("2.0")),
        Err(LockError::Absent { .. })
    ));
    for bad in [
        "dep @ https://a.test/dep.whl --hash=sha256:H",
        "-e ./dep",
        "--index-url https://a.test",
        "dep>=1.0 --hash=sha256:H",
        "dep==1.0 ; python_version<'3' --hash=sha256:H",
        "./dep.whl --hash=sha256:H",
    ] {
        let text = format!("{good}{}\n", bad.replace('H', &one));
        assert!(
            matches!(
                check_requirements(&text, "dep", None),
                Err(LockError::Origin { .. })
            ),
            "{bad}"
        );
    }
    for bad in ["dep==1.0", "dep==1.0 --hash=md5:00", "dep==1.0 --hash=sha256:00"] {
        assert!(
            matches!(
                check_requirements(bad, "dep", None),
                Err(LockError::Integrity { .. })
            ),
            "{bad}"
        );
    }
}
