//! What a hostile Python index serves is refused by name: nothing of it runs, lies outside or stays behind.

use crate::support::have;
use crate::support::hostile::Attack;
use crate::support::packages::{SERVER_PY, publish_wheels, sha256, tarball, wheel, wheel_of};
use crate::support::registry::{Body, Registry};

const REFUSED: &str = "`hello==1.0` is refused: ";

/// Publishes `hello` as a wheel with these files beside the server.
fn publish(attack: &Attack, requires: &[&str], files: &[(&str, &str)]) {
    let all: Vec<_> = files.iter().copied().chain([("hello.py", SERVER_PY)]).collect();
    publish_wheels(
        &attack.registry,
        "hello",
        &[("1.0", &wheel("hello", "1.0", requires, &all))],
    );
}

/// Serves one archive of `hello`; the page says `hash` of it, where there is one.
fn serve(registry: &Registry, file: &str, archive: &[u8], hash: Option<&str>) {
    let hash = hash.map(|hash| format!("#sha256={hash}")).unwrap_or_default();
    let page = format!("<a href=\"/files/{file}{hash}\">{file}</a>");
    registry.serve("/simple/hello/", page.as_bytes());
    registry.serve(&format!("/files/{file}"), archive);
}

const WHEEL: &str = "hello-1.0-py3-none-any.whl";

#[test]
fn what_must_be_built_or_is_not_what_the_index_says_is_refused() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let attack = Attack::pypi();
    let setup = format!("open({:?}, 'w').close()\n", attack.marker().to_str().unwrap());
    let pyproject = "[build-system]\nrequires = []\nbuild-backend = 'setup'\nbackend-path = ['.']\n";
    let source = tarball(&[
        ("hello-1.0/setup.py", "file", &setup),
        ("hello-1.0/pyproject.toml", "file", pyproject),
        (
            "hello-1.0/PKG-INFO",
            "file",
            "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n",
        ),
    ]);
    serve(
        &attack.registry,
        "hello-1.0.tar.gz",
        &source,
        Some(&sha256(&source)),
    );
    attack.assert_refused(&[
        REFUSED,
        "would have to be built, which runs its code",
        "hint: nothing of it was run",
    ]);

    let honest = wheel("hello", "1.0", &[], &[("hello.py", SERVER_PY)]);
    let other = sha256(b"other");
    for (archive, hash, told) in [
        (
            &honest,
            Some(other.as_str()),
            "the archive of `hello==1.0` is not what its registry promised",
        ),
        (&honest, None, "its dependency `hello` has no sha256 integrity"),
        (
            &b"no archive".to_vec(),
            Some(&*sha256(b"no archive")),
            "`uv` takes one of its archives for malformed",
        ),
    ] {
        let attack = Attack::pypi();
        serve(&attack.registry, WHEEL, archive, hash);
        attack.assert_refused(&["`hello==1.0` is refused", told, "hint: nothing of it was run"]);
    }
}

#[test]
fn an_entry_that_would_lie_outside_the_environment_is_refused_every_time() {
    if !have(&["uv", "python3"]) {
        return;
    }
    for entry in ["../../../marker", "/marker", "hello/../../../../../marker"] {
        let attack = Attack::pypi();
        publish(&attack, &[], &[(entry, "x")]);
        let brings =
            format!("one of its archives brings `{entry}`, which would lie outside of the environment");
        // The second time uv has an archive of this name already.
        for _ in 0..2 {
            attack.assert_refused(&[REFUSED, &brings, "hint: nothing of it was run"]);
        }
    }
    // uv unpacks a link as a file with the name of its target, so that there is nothing to write through.
    let attack = Attack::pypi();
    publish(&attack, &[], &[("to", "->/tmp"), ("to/marker", "x")]);
    attack.assert_refused(&[
        REFUSED,
        "`uv` takes one of its archives for malformed",
        "File exists",
    ]);
    let attack = Attack::pypi();
    publish(&attack, &[], &[("to", "->/tmp")]);
    attack.assert_harmless();
    let store = attack.world.home().join(".local/share/pml/store");
    let links = std::process::Command::new("find")
        .arg(store)
        .args(["-name", "to", "-type", "l"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&links.stdout), "");
}

#[test]
fn a_wheel_that_contradicts_itself_is_refused() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let info = "hello-1.0.dist-info";
    let wrong = "hello.py,sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,9\n";
    let described =
        |name: &str, version: &str| format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
    let script = |name: &str| format!("[console_scripts]\n{name} = hello:main\nhello = hello:main\n");
    let malformed = "`uv` takes one of its archives for malformed";
    for (file, text, told) in [
        (
            "RECORD",
            wrong.to_owned(),
            [
                "one of its archives brings `hello.py`",
                "which is not what its record says",
            ],
        ),
        (
            "METADATA",
            described("evil", "1.0"),
            [malformed, "`evil` does not match given name `hello`"],
        ),
        ("METADATA", described("hello", "6.6"), [malformed, "6.6 != 1.0"]),
        (
            "entry_points.txt",
            script("../marker"),
            [malformed, "within the scripts directory: ../marker"],
        ),
        (
            "entry_points.txt",
            script("/marker"),
            [malformed, "within the scripts directory: /marker"],
        ),
        (
            "entry_points.txt",
            script("python"),
            [malformed, "reserved name `python`"],
        ),
        (
            "entry_points.txt",
            script("activate"),
            ["one of its archives brings `bin/activate`", "which"],
        ),
        (
            "entry_points.txt",
            "[console_scripts]\nhello = hello:main;x\n".to_owned(),
            [malformed, "hello:main;x"],
        ),
    ] {
        let attack = Attack::pypi();
        let archive = wheel_of(
            "hello",
            "1.0",
            &[],
            &[("hello.py", SERVER_PY)],
            &[(&format!("{info}/{file}"), &text)],
        );
        publish_wheels(&attack.registry, "hello", &[("1.0", &archive)]);
        attack.assert_refused(&[REFUSED, told[0], told[1], "hint: nothing of it was run"]);
    }
    let attack = Attack::pypi();
    let script = format!("#!/bin/sh\n: > '{}'\n", attack.marker().display());
    publish(&attack, &[], &[("hello-1.0.data/scripts/python3", &script)]);
    attack.assert_refused(&[REFUSED, malformed, "reserved name `python"]);
}

#[test]
fn a_python_dependency_at_an_address_of_its_own_is_named_wherever_it_stands() {
    if !have(&["uv", "python3"]) {
        return;
    }
    for place in [
        "http://127.0.0.1:9/other-1.0-py3-none-any.whl",
        "git+http://127.0.0.1:9/x.git",
        "file:///other",
    ] {
        let requirement = format!("other @ {place}");
        for transitive in [false, true] {
            let attack = Attack::pypi();
            if transitive {
                let middle = wheel("middle", "1.0", &[&requirement], &[("middle.py", "")]);
                publish_wheels(&attack.registry, "middle", &[("1.0", &middle)]);
                publish(&attack, &["middle==1.0"], &[]);
            } else {
                publish(&attack, &[&requirement], &[]);
            }
            attack.assert_refused(&[
                REFUSED,
                &format!("something that it depends on does not come from a registry: `{requirement}`"),
                "hint: nothing of it was fetched",
            ]);
        }
    }
}

#[test]
fn a_wheel_or_an_index_without_an_end_is_stopped_and_leaves_nothing() {
    if !have(&["uv", "python3"]) {
        return;
    }
    // A hundred bytes of the archive become a hundred thousand on the disk.
    let attack = Attack::pypi();
    attack.world.set("PML_MAX_INSTALL_MIB", "40");
    let zeros = "0".repeat(400_000_000);
    publish(&attack, &[], &[("zeros", &zeros)]);
    attack.assert_refused(&[
        "`uv` was stopped: installing `hello==1.0` takes more than 40 MiB of the disk",
        "PML_MAX_INSTALL_MIB=160 pml install",
    ]);
    assert!(
        attack.cached() < 10_000_000,
        "{} bytes stay in the cache",
        attack.cached()
    );

    // Elsewhere only the machine's own memory bounds it.
    if cfg!(target_os = "linux") {
        let attack = Attack::pypi();
        let page = Body::Flood(b"<a>".repeat(20_000));
        attack.registry.serve_as("/simple/hello/", page);
        attack.assert_refused(&[
            "`uv` was stopped: what the registry answers about `hello==1.0` takes more than 2048 MiB of memory",
            "hint: check the registry",
        ]);
    }
    let attack = Attack::pypi();
    attack
        .registry
        .serve_as("/simple/hello/", Body::Moved("/simple/hello/".to_owned()));
    attack.assert_refused(&["the registry has no `hello==1.0`", "hint: check the name"]);
}

#[test]
fn a_project_chooses_no_index() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let attack = Attack::pypi();
    publish(&attack, &[], &[]);
    let other = Registry::start();
    let script = format!("open({:?}, 'w').close()\n", attack.marker().to_str().unwrap());
    publish_wheels(
        &other,
        "hello",
        &[("1.0", &wheel("hello", "1.0", &[], &[("hello.py", &script)]))],
    );
    let index = format!("{}simple", other.url());
    let table = format!("[[index]]\nurl = \"{index}\"\ndefault = true\n");
    attack.world.write("uv.toml", &table);
    attack.world.write(
        "pyproject.toml",
        &format!("[project]\nname = \"x\"\nversion = \"1\"\n[[tool.uv.index]]\nurl = \"{index}\"\n"),
    );
    attack
        .world
        .write("pip.conf", &format!("[global]\nextra-index-url = {index}\n"));
    attack
        .world
        .write(".env", &format!("UV_INDEX={index}\nUV_DEFAULT_INDEX={index}\n"));
    attack.assert_harmless();
    assert_eq!(other.hits("/simple/hello/"), 0);
}

#[test]
fn an_index_of_the_user_is_not_outbid_by_a_newer_version_elsewhere() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let attack = Attack::pypi();
    let company = Registry::start();
    let module = |version: &str| wheel("inner", version, &[], &[("inner.py", "")]);
    publish_wheels(&company, "inner", &[("1.0", &module("1.0"))]);
    publish_wheels(&attack.registry, "inner", &[("99.0", &module("99.0"))]);
    publish(&attack, &["inner"], &[]);
    attack.world.set("UV_INDEX", &format!("{}simple", company.url()));
    attack.assert_harmless();
    assert_eq!(
        attack.registry.hits("/simple/inner/"),
        0,
        "the public index was asked for the company's package"
    );
}
