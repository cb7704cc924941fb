use std::path::Path;

use super::*;
use crate::config::{Config, check};

fn read(channels: &str) -> Result<Config, String> {
    let text = format!("{{\"channels\": {channels}}}");
    check(Path::new("/home/pml.json"), &text).map_err(|error| crate::report::render(&error, None))
}

#[test]
fn the_channels_of_the_issue_are_read_as_they_are_written() {
    let config = read(
        r#"{
            "slack": { "appToken": "${SLACK_APP_TOKEN}", "botToken": "${SLACK_BOT_TOKEN}", "people": ["U0123"],
                       "may": ["answer", "approve", "refuse", "session"], "details": true },
            "telegram": { "token": "${TELEGRAM_TOKEN}", "people": [412587349, "412587349"], "apiUrl": "http://127.0.0.1:9/" },
            "whatsapp": { "token": "${WA_TOKEN}", "phoneNumberId": "105500", "appSecret": "${WA_SECRET}",
                          "verifyToken": "${WA_VERIFY}", "people": ["41790000000"], "template": "pml_ask" },
            "ntfy": { "server": "https://ntfy.example.org", "topic": "${NTFY_TOPIC}", "token": "${NTFY_TOKEN}" },
            "webhook": { "url": "https://example.org/pml", "secret": "${HOOK_SECRET}" },
            "route": { "default": ["telegram"], "kind:approval": ["slack"], "project:~/shop": ["slack"],
                       "quiet": "22:00-07:00", "escalate": { "after": "10m", "to": ["whatsapp"] } }
        }"#,
    )
    .unwrap();
    let channels = config.channels;
    assert_eq!(channels.configured().collect::<Vec<_>>(), ChannelName::ALL);
    let slack = channels.slack.unwrap();
    assert_eq!(slack.app_token, "${SLACK_APP_TOKEN}");
    assert!(slack.basics.may.contains(&Permission::Session) && slack.basics.details == Details::All);
    let telegram = channels.telegram.unwrap();
    assert_eq!(telegram.basics.people, ["412587349"]);
    assert_eq!(telegram.basics.api_url.as_deref(), Some("http://127.0.0.1:9"));
    assert_eq!(telegram.basics.may, MAY.into_iter().collect());
    assert_eq!(channels.ntfy.unwrap().basics.people, ["topic"]);
    let route = channels.route;
    assert_eq!(route.default, Some(vec![ChannelName::Telegram]));
    assert_eq!(route.kinds[&AskKind::Approval], [ChannelName::Slack]);
    assert_eq!(route.projects["~/shop"], [ChannelName::Slack]);
    assert_eq!(
        route.quiet,
        Some(QuietHours {
            from: 22 * 60,
            to: 7 * 60
        })
    );
    assert_eq!(route.escalate.unwrap().after, Duration::from_mins(10));
}

#[test]
fn a_channel_without_people_asks_nobody() {
    let config = read(r#"{"telegram": {"token": "t"}}"#).unwrap();
    assert_eq!(
        config.channels.telegram.unwrap().basics.people,
        Vec::<String>::new()
    );
}

#[test]
fn what_is_wrong_is_said_and_no_token_is_repeated() {
    for (channels, expected) in [
        (r#"{"discord": {}}"#, "unknown key `discord`"),
        (r#"{"slack": {"appToken": "s3cret"}}"#, "botToken"),
        (
            r#"{"slack": {"appToken": "", "botToken": "s3cret"}}"#,
            "`appToken` of `slack` is empty",
        ),
        (
            r#"{"slack": {"appToken": "s3cret", "botToken": "s3cret", "peeple": []}}"#,
            "did you mean `people`?",
        ),
        (
            r#"{"telegram": {"token": "s3cret", "may": ["everything"]}}"#,
            "everything",
        ),
        (
            r#"{"telegram": {"token": "s3cret", "people": ["Ada Lovelace"]}}"#,
            "not names or addresses: `Ada Lovelace`",
        ),
        (
            r#"{"telegram": {"token": "s3cret", "people": [1.5]}}"#,
            "a whole number",
        ),
        (
            r#"{"telegram": {"token": "s3cret", "people": [""]}}"#,
            "ids of the service",
        ),
        (
            r#"{"telegram": {"token": "s3cret", "apiUrl": "http://example.org"}}"#,
            "`apiUrl` of `telegram` begins with `https://`",
        ),
        (
            r#"{"telegram": {"token": "s3cret", "apiUrl": "https://u:s3cret@example.org"}}"#,
            "holds a user name or a password",
        ),
        (
            r#"{"whatsapp": {"token": "s3cret", "phoneNumberId": "../x"}}"#,
            "`phoneNumberId` of `whatsapp` is a number",
        ),
        (
            r#"{"ntfy": {"server": "ntfy.sh", "topic": "s3cret"}}"#,
            "`server` of `ntfy` is not an address",
        ),
        (
            r#"{"ntfy": {"server": "https://ntfy.sh", "topic": "s3cret", "people": ["x"]}}"#,
            "unknown key `people`",
        ),
        (
            r#"{"webhook": {"url": "ftp://example.org", "secret": "s3cret"}}"#,
            "`url` of `webhook` begins with `https://`",
        ),
        (
            r#"{"route": {"default": ["slack"]}}"#,
            "`route` names `slack`, which is not configured",
        ),
        (
            r#"{"route": {"defualt": []}}"#,
            "unknown key `defualt` in `route`; did you mean `default`?",
        ),
        (
            r#"{"route": {"default": "slack"}}"#,
            "`default` of `route` is a list of channels",
        ),
        (r#"{"route": {"default": ["irc"]}}"#, "`irc` is no channel"),
        (r#"{"route": {"project:shop": []}}"#, "names an absolute path"),
        (r#"{"route": {"quiet": "22-7"}}"#, "two times of a day"),
        (r#"{"route": {"quiet": "07:00-07:00"}}"#, "two times of a day"),
        (
            r#"{"route": {"escalate": {"after": "1d", "to": []}}}"#,
            "a time of at most a week",
        ),
        (
            r#"{"route": {"escalate": {"after": "1m", "to": []}}}"#,
            "`to`, a list of channels",
        ),
        (
            r#"{"route": {"escalate": {"after": "1m", "to": [], "x": 1}}}"#,
            "`to`, a list of channels",
        ),
    ] {
        let error = read(channels).unwrap_err();
        assert!(error.contains(expected), "{channels}: {error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
