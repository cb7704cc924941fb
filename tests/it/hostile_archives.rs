//! What a hostile npm archive holds is refused by the name of its entry, and what grows without an end is stopped.

use serde_json::json;

use crate::support::have;
use crate::support::hostile::{Attack, SERVER, depends, publish};
use crate::support::packages::tarball;
use crate::support::registry::{Body, Registry, integrity};

#[test]
fn an_entry_that_would_lie_outside_its_package_is_refused_by_its_name() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let outside = "which is a link that leads out of the package";
    for (entries, told) in [
        (
            vec![("package/../../../marker", "file", "x")],
            ["`package/../../../marker`", "which leads out of the package"],
        ),
        (
            vec![("/marker", "file", "x")],
            ["`/marker`", "which is an absolute path"],
        ),
        (
            vec![("package/out", "link", "../../..")],
            ["`package/out`", outside],
        ),
        (
            vec![("package/to", "link", "/tmp"), ("package/to/marker", "file", "x")],
            ["`package/to`", outside],
        ),
        (
            vec![("package/hard", "hard", "/etc/passwd")],
            ["`package/hard`", outside],
        ),
        (
            vec![("package/pipe", "pipe", "")],
            ["`package/pipe`", "which is a device or a pipe"],
        ),
        (
            vec![("package/device", "device", "")],
            ["`package/device`", "which is a device or a pipe"],
        ),
        (
            vec![("package/Package.json", "file", "{}")],
            ["`package/Package.json`", "which is `package.json` on some disks"],
        ),
        (
            vec![("package/node_modules/other/package.json", "file", "{}")],
            [
                "`package/node_modules/other/package.json`",
                "which lies in place of a package that its lock names",
            ],
        ),
    ] {
        let attack = Attack::npm();
        attack.registry.publish("other", "1.0.0", &json!({}), &[]);
        publish(&attack.registry, &depends("other", "1.0.0"), &entries);
        let archive = "`hello@1.0.0` is refused: the archive of `hello@1.0.0` brings ";
        attack.assert_refused(&[archive, told[0], told[1], "hint: nothing of it was run"]);
    }
    // The same in something that it depends on; here the archive of that one is named.
    let attack = Attack::npm();
    let archive = tarball(&[
        (
            "package/package.json",
            "file",
            r#"{"name":"other","version":"1.0.0"}"#,
        ),
        ("package/../../../marker", "file", "x"),
    ]);
    let promised = integrity(&archive);
    attack
        .registry
        .publish_as("other", "1.0.0", &json!({}), Body::Whole(archive), &promised);
    publish(&attack.registry, &depends("other", "1.0.0"), &[]);
    attack.assert_refused(&["`hello@1.0.0` is refused: the archive of `other@1.0.0` brings"]);
}

#[test]
fn an_executable_outside_its_package_is_refused() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let leads_out = "which leads out of the package";
    for (bin, entries, told) in [
        (
            json!("../../x"),
            vec![],
            vec!["`\"bin\": \"../../x\"`", leads_out],
        ),
        (
            json!({ "hello": "/bin/sh" }),
            vec![],
            vec!["`\"bin\": \"/bin/sh\"`", leads_out],
        ),
        (
            json!("folder"),
            vec![("package/folder/x", "file", "")],
            vec!["`hello@1.0.0` has no executable"],
        ),
        (
            json!("link"),
            vec![("package/link", "link", "server.js")],
            vec!["`hello@1.0.0` has no executable"],
        ),
        (
            json!("link"),
            vec![("package/link", "link", "/bin/sh")],
            vec!["`package/link`", "which is a link that leads out"],
        ),
    ] {
        let attack = Attack::npm();
        publish(&attack.registry, &json!({ "bin": bin }), &entries);
        attack.assert_refused(&told);
    }
}

#[test]
fn an_archive_that_is_none_or_lacks_its_description_is_refused() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let bare = tarball(&[("package/server.js", "file", SERVER)]);
    let bomb = tarball(&[("package/zeros", "zeros", "200000000")]);
    for (archive, told) in [
        (vec![b'x'; 5000], "`npm` takes one of its archives for malformed"),
        (bomb, "`npm` takes one of its archives for malformed"),
        (
            bare,
            "the archive of `hello@1.0.0` brings `package.json`, which is not there",
        ),
    ] {
        let attack = Attack::npm();
        let promised = integrity(&archive);
        attack.registry.publish_as(
            "hello",
            "1.0.0",
            &json!({ "bin": "server.js" }),
            Body::Whole(archive),
            &promised,
        );
        attack.assert_refused(&["`hello@1.0.0` is refused: ", told, "hint: nothing of it was run"]);
    }
}

#[test]
fn what_grows_without_an_end_is_stopped_and_leaves_nothing() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let told = [
        "`npm` was stopped: installing `hello@1.0.0` takes more than 40 MiB of the disk",
        "PML_MAX_INSTALL_MIB=160 pml install",
    ];
    let tarball_path = Registry::tarball("hello", "1.0.0");
    for (path, piece) in [
        (tarball_path.as_str(), vec![0; 1 << 16]),
        ("/hello", vec![b' '; 1 << 16]),
    ] {
        let attack = Attack::npm();
        attack.world.set("PML_MAX_INSTALL_MIB", "40");
        publish(&attack.registry, &json!({}), &[]);
        attack.registry.serve_as(path, Body::Flood(piece));
        attack.assert_refused(&told);
        assert!(
            attack.cached() < 10_000_000,
            "{} bytes stay in the cache",
            attack.cached()
        );
    }
    // Less than the ratio at which npm itself gives up: letters that do not compress, then zeros.
    let attack = Attack::npm();
    attack.world.set("PML_MAX_INSTALL_MIB", "40");
    let noise: String = (0_u64..600_000)
        .map(|number| {
            char::from(b'!' + u8::try_from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58).unwrap())
        })
        .collect();
    publish(
        &attack.registry,
        &json!({}),
        &[
            ("package/noise", "file", &noise),
            ("package/zeros", "zeros", "400000000"),
        ],
    );
    attack.assert_refused(&told);
}

#[test]
fn a_description_that_is_longer_than_any_package_has_is_refused_unread() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    let attack = Attack::npm();
    let described = json!({ "name": "hello", "version": "1.0.0", "bin": "server.js" }).to_string();
    let long = format!("{}{}", " ".repeat(5 << 20), described);
    publish(
        &attack.registry,
        &json!({}),
        &[("package/package.json", "file", &long)],
    );
    attack.assert_refused(&["`package.json`", "is longer than any package's"]);
}
