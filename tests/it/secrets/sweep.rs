//! Every kind of secret at once, each a canary, in a world where everything fails and repeats what it was given.

use serde_json::json;

use super::{
    Loud, OF_INSTALLERS, assert_confided, assert_untold, forget, install_into, packages, parrot, repeating,
};
use crate::support::web::{Answer, Web};
use crate::support::world::{World, stderr, stdout};

const KEY: &str = "-----BEGIN KEY-----\nMIIEc4naryOfTheKey/first+line==\nMIIEc4naryOfTheKeySecondLine\n";

#[test]
fn no_secret_of_any_kind_is_in_anything_that_pml_writes() {
    let world = World::new();
    install_into(&world);
    let web = repeating(|given| Answer::Whole(500, Vec::new(), format!("broke: {given}")));
    // A proxy refuses, and repeats by what it was asked to let through.
    let proxy = Web::start(|request| {
        let given: Vec<String> = request.headers.values().cloned().collect();
        Answer::Whole(502, Vec::new(), given.join(" "))
    });
    let address = proxy.url("").replace("http://", "");
    world.set("http_proxy", &format!("http://user:c4nary-of-http@{address}"));
    world.set("PATH_TOKEN", "c4nary/ofthe\"path");
    world.set("QUERY_TOKEN", "c4nary ofthe+query");
    world.set("HEADER_TOKEN", "c4nary-of-the-header");
    world.set("ARGUMENT_TOKEN", "c4nary of & the \\ argument");
    world.set("PASSED_TOKEN", "c4nary-of-the-pässed");
    world.set("USER_TOKEN", "c4nary-of-the-user");
    world.set("KEY", KEY);
    let mut servers = packages();
    servers["argument"] = parrot(&world, &["--a=${ARGUMENT_TOKEN}"], &json!({}));
    servers["declared"] = parrot(&world, &[], &json!({ "DECLARED_TOKEN": "c4nary-declared" }));
    servers["passed"] = parrot(&world, &[], &json!({ "PASSED_TOKEN": "${PASSED_TOKEN}" }));
    servers["key"] = parrot(&world, &["${KEY}"], &json!({}));
    servers["absent"] = json!({ "command": "./${ARGUMENT_TOKEN}" });
    servers["user"] = json!({ "url": "https://user:${USER_TOKEN}@web.test/mcp" });
    servers["proxied"] =
        json!({ "url": "http://web.test/${PATH_TOKEN}", "headers": { "X-Key": "${HEADER_TOKEN}" } });
    servers["web"] = json!({
        "url": web.url("/${PATH_TOKEN}/mcp?key=${QUERY_TOKEN}"),
        "headers": { "Authorization": "Bearer ${HEADER_TOKEN}" },
    });
    let names: Vec<String> = servers.as_object().unwrap().keys().cloned().collect();
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));

    let mut loud = Loud::start(world);
    for name in &names {
        // The second time it may be held back, and says why.
        loud.call(&format!("{name}:echo"));
        loud.call(&format!("{name}:echo"));
    }
    loud.call("pml_status");
    let mut told = String::new();
    for arguments in [
        &["install", "--yes"][..],
        &["install", "--yes", "--json"],
        &["list"],
        &["list", "--json"],
        &["check", "argument:x"],
        &["log", "--json"],
    ] {
        let output = loud.world.run(arguments);
        told.push_str(&stdout(&output));
        told.push_str(&stderr(&output));
    }
    forget(&loud.world);
    told.push_str(&loud.end());

    for name in &names {
        assert!(told.contains(name.as_str()), "{name} was never heard of");
    }
    assert!(!proxy.asked().is_empty(), "the proxy was asked");
    assert_confided(&told);
    for value in OF_INSTALLERS {
        assert_untold(&told, value);
    }
    for value in [
        "c4nary-of-http",
        "c4nary of & the \\ argument",
        "c4nary-of-the-pässed",
        "c4nary-of-the-user",
        "c4nary-declared",
        "MIIEc4naryOfTheKey/first+line==",
        "MIIEc4naryOfTheKeySecondLine",
    ] {
        assert_untold(&told, value);
    }
}
