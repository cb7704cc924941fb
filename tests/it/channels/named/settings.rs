//! What can be wrong before a service is spoken to.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::{Beside, Case, LEAVE_OUT, Leaves, SEE, case, telegram_at, whatsapp_at};
use crate::channels::ME;
use crate::support::fake_telegram::TOKEN;

/// A Telegram with one person, at an address where nothing is.
fn known() -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    telegram_at(&address, &json!([ME]))
}

/// What stands in the files.
pub(super) fn of_files() -> Vec<Case> {
    let mut may = known();
    may["may"] = json!(["approve", "refuse"]);
    let mut nobody = known();
    nobody["people"] = json!([]);
    vec![
        case(
            "irc",
            json!({ "telegram": known() }),
            "`irc` is no channel; there are slack, telegram, whatsapp, ntfy and webhook. Nobody was asked.",
            LEAVE_OUT,
        ),
        case(42, json!({}), "`channel` must be the name of a channel", ""),
        case(
            "slack",
            json!({}),
            "`slack` is not configured: no channel is. Nobody was asked.",
            LEAVE_OUT,
        ),
        case(
            "slack",
            json!({ "telegram": known() }),
            "`slack` is not configured; there is `telegram`. Nobody was asked.",
            LEAVE_OUT,
        ),
        case(
            "telegram",
            json!({ "telegram": nobody }),
            "nobody is paired with `telegram`: its list of people is empty. Nobody was asked.",
            "hint: the person writes to the bot of telegram and runs: pml channels pair CODE",
        ),
        case(
            "telegram",
            json!({ "telegram": may }),
            "`telegram` may not be used to answer: `may` does not say \"answer\". Nobody was asked.",
            "",
        ),
        case(
            "telegram",
            json!({ "telegram": known() }),
            "`telegram` is not connected: `pml serve` does not run, or does not know it yet. Nobody was asked.",
            "hint: the person starts it: pml serve",
        ),
        case(
            "telegram",
            json!({ "telegram": known() }),
            "a project cannot decide who is asked, or where; `channels` belongs into the user's file",
            "",
        )
        .project(json!({ "channels": { "telegram": known() } })),
        case(
            "telegram",
            json!({ "telegram": known(), "route": { "default": ["slack"] } }),
            "`route` names `slack`, which is not configured",
            "",
        ),
    ]
}

/// What is found out where a channel is opened.
pub(super) fn of_opening() -> Vec<Case> {
    let failed = |case: Case| case.beside(Beside::Failed, Leaves::Nothing);
    let without = |key: &str| {
        let mut settings = whatsapp_at("http://127.0.0.1:9");
        settings.as_object_mut().unwrap().remove(key);
        json!({ "whatsapp": settings })
    };
    vec![
        failed(case(
            "telegram",
            json!({ "telegram": known() }),
            "`telegram` is not connected: `token` of `telegram` cannot be used: the environment variable `TELEGRAM_TOKEN` is not set; set `TELEGRAM_TOKEN` in the environment in which `pml serve` is started, and start that again: TELEGRAM_TOKEN=… pml serve. Nobody was asked.",
            SEE,
        )),
        failed(
            case(
                "telegram",
                json!({ "telegram": known() }),
                "`telegram` is not connected: `token` of `telegram` is empty or has several lines; what a variable holds is read when `pml serve` is started: docs/CHANNELS.md says where it comes from. Nobody was asked.",
                SEE,
            )
            .with(&[("TELEGRAM_TOKEN", " ")]),
        ),
        failed(
            case(
                "telegram",
                json!({ "telegram": known() }),
                "`telegram` is not connected: Telegram cannot be reached: ",
                SEE,
            )
            .with(&[("TELEGRAM_TOKEN", TOKEN)]),
        ),
        failed(case(
            "slack",
            json!({ "slack": { "appToken": "${SLACK_APP_TOKEN}", "botToken": "${SLACK_BOT_TOKEN}", "people": ["U1"] } }),
            "`slack` is not connected: `appToken` of `slack` cannot be used: the environment variable `SLACK_APP_TOKEN` is not set; set `SLACK_APP_TOKEN` in the environment in which `pml serve` is started, and start that again: SLACK_APP_TOKEN=… pml serve. Nobody was asked.",
            SEE,
        )),
        failed(case(
            "webhook",
            json!({ "webhook": { "url": "https://example.org/pml", "secret": "${HOOK_SECRET}" } }),
            "`webhook` is not connected: `secret` of `webhook` cannot be used: the environment variable `HOOK_SECRET` is not set; set `HOOK_SECRET` in the environment in which `pml serve` is started, and start that again: HOOK_SECRET=… pml serve. Nobody was asked.",
            SEE,
        )),
        failed(
            case(
                "webhook",
                json!({ "webhook": { "url": "https://example.org/pml", "secret": "${HOOK_SECRET}" } }),
                "`webhook` is not connected: the webhook cannot be spoken to: `HTTPS_PROXY` is not the address of a proxy that begins with http:// or https://. Nobody was asked.",
                SEE,
            )
            .with(&[("HOOK_SECRET", "canary"), ("HTTPS_PROXY", "socks5://canary@proxy.example:1080")]),
        ),
        failed(case(
            "whatsapp",
            without("appSecret"),
            "`whatsapp` is not connected: `appSecret` of `whatsapp` is missing: without it no answer could come back; write `\"appSecret\"` into `channels.whatsapp` of your own file: docs/CHANNELS.md says where it comes from. Nobody was asked.",
            SEE,
        )),
        failed(case(
            "whatsapp",
            without("verifyToken"),
            "`whatsapp` is not connected: `verifyToken` of `whatsapp` is missing: without it no answer could come back; write `\"verifyToken\"` into `channels.whatsapp` of your own file: docs/CHANNELS.md says where it comes from. Nobody was asked.",
            SEE,
        )),
    ]
}
