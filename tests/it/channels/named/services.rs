//! What services say.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Beside, Case, Leaves, SEE, case, telegram_at, whatsapp_at};
use crate::channels::ME;
use crate::support::fake_slack::{APP_TOKEN, BOT_TOKEN, FakeSlack, Trouble};
use crate::support::fake_telegram::{FakeTelegram, TOKEN};
use crate::support::web::{Answer, Request, Web};

/// A case with a Telegram that refuses a method.
fn refusing(method: &'static str, code: u16, word: &'static str, beside: Beside, told: &'static str) -> Case {
    let telegram = FakeTelegram::start();
    telegram.refuse(method, code, word);
    let leaves = match beside {
        Beside::Holds => Leaves::Withdrawn,
        Beside::Nothing | Beside::Failed => Leaves::Nothing,
    };
    let settings = json!({ "telegram": telegram_at(&telegram.api_url(), &json!([ME])) });
    case("telegram", settings, told, SEE)
        .with(&[("TELEGRAM_TOKEN", TOKEN)])
        .beside(beside, leaves)
}

/// A web service with one answer to everything that is posted; a stream that is asked for stays silent.
fn posting(answer: Answer) -> Web {
    Web::start(move |request: &Request| match request.method.as_str() {
        "POST" => answer.clone(),
        _ => Answer::Open(String::new()),
    })
}

/// Quiet hours that began an hour ago, in UTC.
fn quiet() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let hour = now.as_secs() / 3600 % 24;
    format!("{:02}:00-{:02}:00", (hour + 23) % 24, (hour + 12) % 24)
}

/// What Telegram refuses.
pub(super) fn refusals() -> Vec<Case> {
    vec![
        refusing(
            "getMe",
            401,
            "Unauthorized",
            Beside::Failed,
            "`telegram` is not connected: Telegram refuses: Unauthorized; the token is that of no bot: @BotFather tells the right one. Nobody was asked.",
        ),
        refusing(
            "getUpdates",
            409,
            "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
            Beside::Failed,
            "`telegram` is not connected: another program reads this bot of Telegram; only one may. Nobody was asked.",
        ),
        refusing(
            "getUpdates",
            409,
            "Conflict: can't use getUpdates method while webhook is active",
            Beside::Failed,
            "`telegram` is not connected: Telegram refuses: Conflict: can't use getUpdates method while webhook is active; another program receives for this bot by a webhook, which pml leaves alone: make a bot of its own with @BotFather. Nobody was asked.",
        ),
        refusing(
            "sendMessage",
            403,
            "Forbidden: bot was blocked by the user",
            Beside::Holds,
            "the question was not sent by `telegram`: Telegram refuses: Forbidden: bot was blocked by the user; the person must write /start to the bot first, and not block it. Nobody was asked.",
        ),
        refusing(
            "sendMessage",
            400,
            "Bad Request: chat not found",
            Beside::Holds,
            "the question was not sent by `telegram`: Telegram refuses: Bad Request: chat not found; the person must write /start to the bot first. Nobody was asked.",
        ),
    ]
}

/// What is not sent by Telegram without a word of it.
pub(super) fn of_telegram() -> Vec<Case> {
    let (named, long, quiet_hours) = (
        FakeTelegram::start(),
        FakeTelegram::start(),
        FakeTelegram::start(),
    );
    // Something between pml and Telegram that answers in its place.
    let strange = Web::start(|request| {
        let body = match request.path.rsplit('/').next() {
            Some("sendMessage") => "<html>Please log in</html>",
            _ => r#"{ "ok": true, "result": [] }"#,
        };
        Answer::Whole(200, Vec::new(), body.to_owned())
    });
    let token = [("TELEGRAM_TOKEN", TOKEN)];
    let settings = |telegram: &FakeTelegram, people: Value| json!({ "telegram": telegram_at(&telegram.api_url(), &people) });
    let mut quiet_settings = settings(&quiet_hours, json!([ME]));
    quiet_settings["route"] = json!({ "quiet": quiet() });
    vec![
        case(
            "telegram",
            settings(&named, json!(["ada"])),
            "the question was not sent by `telegram`: Telegram refuses: a person is a number here; the bot tells it to whom it does not know. Nobody was asked.",
            SEE,
        )
        .with(&token)
        .beside(Beside::Holds, Leaves::Withdrawn),
        case(
            "telegram",
            settings(&long, json!([ME])),
            "the question was not sent by `telegram`: Telegram takes at most 4096 characters, and this has ",
            SEE,
        )
        .with(&token)
        .asking("\u{1f980}".repeat(3_000))
        .beside(Beside::Holds, Leaves::Withdrawn),
        case(
            "telegram",
            quiet_settings,
            "the question was not sent by `telegram`: the quiet hours of `route` last ",
            SEE,
        )
        .with(&token)
        .with(&[("TZ", "UTC")])
        .beside(Beside::Holds, Leaves::Withdrawn),
        case(
            "telegram",
            json!({ "telegram": telegram_at(&strange.url(""), &json!([ME])) }),
            "the question was not sent by `telegram`: Telegram answered with what pml cannot read: its answer is no JSON of the Bot API. Nobody was asked.",
            SEE,
        )
        .with(&token)
        .beside(Beside::Holds, Leaves::Withdrawn),
    ]
}

/// What the other services refuse.
pub(super) fn of_others() -> Vec<Case> {
    let webhook = posting(Answer::status(403));
    let forbidden = json!({ "error": "forbidden" }).to_string();
    let ntfy = posting(Answer::Whole(403, Vec::new(), forbidden));
    let closed = json!({ "error": { "code": 131_047, "message": "Re-engagement message" } });
    let meta = posting(Answer::Whole(400, Vec::new(), closed.to_string()));
    let slack = FakeSlack::start();
    let slack_at = |slack: &FakeSlack| {
        json!({ "slack": {
            "appToken": "${SLACK_APP_TOKEN}", "botToken": "${SLACK_BOT_TOKEN}", "people": ["U1"], "apiUrl": slack.api_url(),
        } })
    };
    let unscoped = FakeSlack::start();
    // For as long as it is tried.
    for _ in 0..100 {
        let needed = json!({ "needed": "connections:write" });
        unscoped.trouble("apps.connections.open", Trouble::Word("missing_scope", needed));
    }
    vec![
        case(
            "slack",
            slack_at(&slack),
            "`slack` is not connected: Slack refuses: `invalid_auth`: `appToken` is wrong or was revoked: make one by `Basic Information`, `App-Level Tokens`, with the scope `connections:write`, start `pml serve` again, and try it: pml channels test slack. Nobody was asked.",
            SEE,
        )
        .with(&[("SLACK_APP_TOKEN", "xapp-wrong"), ("SLACK_BOT_TOKEN", BOT_TOKEN)])
        .beside(Beside::Failed, Leaves::Nothing),
        case(
            "slack",
            slack_at(&slack),
            "`slack` is not connected: Slack refuses: `invalid_auth`: `botToken` is wrong or was revoked: copy it from `OAuth & Permissions` of the app, start `pml serve` again, and try it: pml channels test slack. Nobody was asked.",
            SEE,
        )
        .with(&[("SLACK_APP_TOKEN", APP_TOKEN), ("SLACK_BOT_TOKEN", "xoxb-wrong")])
        .beside(Beside::Failed, Leaves::Nothing),
        case(
            "slack",
            slack_at(&unscoped),
            "`slack` is not connected: Slack refuses: `missing_scope` (connections:write): `appToken` lacks the scope `connections:write`: make another by `Basic Information`, `App-Level Tokens`, and start `pml serve` again. Nobody was asked.",
            SEE,
        )
        .with(&[("SLACK_APP_TOKEN", APP_TOKEN), ("SLACK_BOT_TOKEN", BOT_TOKEN)])
        .beside(Beside::Failed, Leaves::Nothing),
        case(
            "whatsapp",
            json!({ "whatsapp": whatsapp_at(&meta.url("")) }),
            "the question was not sent by `whatsapp`: WhatsApp refuses: more than 24 hours passed since this person wrote: they write anything to the number, or `template` names an approved template. Nobody was asked.",
            SEE,
        )
        .with(&[("WA_TOKEN", "canary")])
        .beside(Beside::Holds, Leaves::Withdrawn),
        case(
            "ntfy",
            json!({ "ntfy": { "server": ntfy.url(""), "topic": "${NTFY_TOPIC}" } }),
            "the question was not sent by `ntfy`: ntfy refuses: forbidden; `token` must be one that may write to the topic and read topics that begin with `pml`. Nobody was asked.",
            SEE,
        )
        .with(&[("NTFY_TOPIC", "canary-topic")])
        .beside(Beside::Holds, Leaves::Withdrawn),
        case(
            "webhook",
            json!({ "webhook": { "url": webhook.url("/pml"), "secret": "${HOOK_SECRET}" } }),
            "the question was not sent by `webhook`: the webhook refuses: it answered with status 403. Nobody was asked.",
            SEE,
        )
        .with(&[("HOOK_SECRET", "canary")])
        .beside(Beside::Holds, Leaves::Withdrawn),
    ]
}
