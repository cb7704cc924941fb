//! The proxy that the environment of `pml serve` names: every service beyond this machine is spoken to through it.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::write_user_file;
use crate::serve::Served;
use crate::support::web::{Answer, Web};
use crate::support::world::World;
use crate::support::{DEADLINE, eventually};

#[test]
fn every_service_is_reached_through_the_proxy_and_told_to_no_one_else() {
    // It takes note of where it is to lead, and leads nowhere.
    let proxy = Web::start(|_request| Answer::status(502));
    let world = World::new();
    for name in [
        "SLACK_APP_TOKEN",
        "SLACK_BOT_TOKEN",
        "WA_TOKEN",
        "TELEGRAM_TOKEN",
        "NTFY_TOPIC",
        "HOOK_SECRET",
    ] {
        world.set(name, "canary");
    }
    world.set("HTTPS_PROXY", &proxy.url(""));
    world.set("NO_PROXY", "");
    world.configure(&json!({}));
    let settings = json!({ "channels": {
        "slack": { "appToken": "${SLACK_APP_TOKEN}", "botToken": "${SLACK_BOT_TOKEN}", "people": ["U1"] },
        "telegram": { "token": "${TELEGRAM_TOKEN}", "people": [1] },
        "whatsapp": {
            "token": "${WA_TOKEN}", "phoneNumberId": "105500", "appSecret": "${WA_TOKEN}",
            "verifyToken": "${WA_TOKEN}", "people": ["41790000000"],
        },
        "ntfy": { "server": "https://ntfy.example", "topic": "${NTFY_TOPIC}" },
        "webhook": { "url": "https://hook.example/pml", "secret": "${HOOK_SECRET}" },
    } });
    write_user_file(&world, &settings.to_string());
    let _served = Served::start(&world);
    let mut client = world.legacy();
    client.call("ask_user", &json!({ "question": "Why?" }));
    let reached = || -> BTreeSet<String> {
        let asked = proxy.asked();
        let connects = asked.iter().filter(|request| request.method == "CONNECT");
        connects.map(|request| request.path.clone()).collect()
    };
    let services = [
        "api.telegram.org:443",
        "graph.facebook.com:443",
        "hook.example:443",
        "ntfy.example:443",
        "slack.com:443",
    ];
    eventually("every service is asked for", DEADLINE, || {
        reached().len() >= services.len()
    });
    assert_eq!(reached(), services.map(str::to_owned).into());
    let told = format!("{:?}", proxy.asked());
    assert!(!told.contains("canary"), "{told}");
}
