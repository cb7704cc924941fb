//! Turns the entries of `channels` into settings; an error says what is wrong, without a token.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::channel_entries::{
    BasicsEntry, ChannelsEntry, NtfyEntry, PersonEntry, RouteEntry, SlackEntry, TelegramEntry, WebhookEntry,
    WhatsappEntry,
};
use super::{
    AskKind, ChannelBasics, ChannelName, ChannelSettings, Details, Escalation, NtfySettings, Permission,
    QuietHours, RouteSettings, SlackSettings, TelegramSettings, WebhookSettings, WhatsappSettings,
};
use crate::protocol::{Shown, nearest};

/// More people than are asked for one user.
const PEOPLE: usize = 64;

/// The longest id of a person; those of services have some dozen characters.
const PERSON_LENGTH: usize = 80;

/// More projects than have lines of their own.
const PROJECTS: usize = 256;

/// The longest wait before an ask goes elsewhere as well: what is not seen within a week is found in the inbox.
const LONGEST_ESCALATION: Duration = Duration::from_hours(7 * 24);

/// What people may do where nothing else is said: nothing that lasts.
const MAY: [Permission; 3] = [Permission::Answer, Permission::Approve, Permission::Refuse];

/// Checks what stands in `channels`.
pub(super) fn settings(entry: &ChannelsEntry) -> Result<ChannelSettings, String> {
    let settings = ChannelSettings {
        slack: entry.slack.as_ref().map(slack).transpose()?,
        telegram: entry.telegram.as_ref().map(telegram).transpose()?,
        whatsapp: entry.whatsapp.as_ref().map(whatsapp).transpose()?,
        ntfy: entry.ntfy.as_ref().map(ntfy).transpose()?,
        webhook: entry.webhook.as_ref().map(webhook).transpose()?,
        route: route(&entry.route)?,
    };
    let configured: Vec<ChannelName> = settings.configured().collect();
    if let Some(missing) = settings.route.named().find(|name| !configured.contains(name)) {
        return Err(format!("`route` names `{missing}`, which is not configured"));
    }
    Ok(settings)
}

fn slack(entry: &SlackEntry) -> Result<SlackSettings, String> {
    let channel = ChannelName::Slack;
    Ok(SlackSettings {
        basics: basics(channel, &entry.basics())?,
        app_token: filled(channel, "appToken", &entry.app_token)?,
        bot_token: filled(channel, "botToken", &entry.bot_token)?,
    })
}

fn telegram(entry: &TelegramEntry) -> Result<TelegramSettings, String> {
    let channel = ChannelName::Telegram;
    Ok(TelegramSettings {
        basics: basics(channel, &entry.basics())?,
        token: filled(channel, "token", &entry.token)?,
    })
}

fn whatsapp(entry: &WhatsappEntry) -> Result<WhatsappSettings, String> {
    let channel = ChannelName::Whatsapp;
    let phone_number_id = entry.phone_number_id.text();
    if phone_number_id.is_empty() || !phone_number_id.chars().all(|digit| digit.is_ascii_digit()) {
        return Err("`phoneNumberId` of `whatsapp` is a number".to_owned());
    }
    Ok(WhatsappSettings {
        basics: basics(channel, &entry.basics())?,
        token: filled(channel, "token", &entry.token)?,
        phone_number_id,
        app_secret: given(channel, "appSecret", entry.app_secret.as_deref())?,
        verify_token: given(channel, "verifyToken", entry.verify_token.as_deref())?,
        template: given(channel, "template", entry.template.as_deref())?,
    })
}

fn ntfy(entry: &NtfyEntry) -> Result<NtfySettings, String> {
    let channel = ChannelName::Ntfy;
    Ok(NtfySettings {
        basics: of_all(
            NtfySettings::PERSON,
            may(entry.may.as_deref()),
            details(entry.details),
        ),
        server: address(channel, "server", &entry.server)?,
        topic: filled(channel, "topic", &entry.topic)?,
        token: given(channel, "token", entry.token.as_deref())?,
    })
}

fn webhook(entry: &WebhookEntry) -> Result<WebhookSettings, String> {
    let channel = ChannelName::Webhook;
    Ok(WebhookSettings {
        // What it may do is decided by the API that takes its answers.
        basics: of_all(WebhookSettings::PERSON, may(None), details(entry.details)),
        url: address(channel, "url", &entry.url)?,
        secret: filled(channel, "secret", &entry.secret)?,
    })
}

/// Checks what every channel with people of its own has.
fn basics(channel: ChannelName, entry: &BasicsEntry<'_>) -> Result<ChannelBasics, String> {
    let api_url = entry.api_url.map(|text| address(channel, "apiUrl", text));
    Ok(ChannelBasics {
        people: people(channel, entry.people)?,
        may: may(entry.may),
        details: details(entry.details),
        api_url: api_url.transpose()?,
    })
}

/// Returns what a channel has that knows no people: one name stands for all who read it.
fn of_all(name: &str, may: BTreeSet<Permission>, details: Details) -> ChannelBasics {
    ChannelBasics {
        people: vec![name.to_owned()],
        may,
        details,
        api_url: None,
    }
}

fn may(entry: Option<&[Permission]>) -> BTreeSet<Permission> {
    entry.unwrap_or(&MAY).iter().copied().collect()
}

fn details(all: bool) -> Details {
    if all { Details::All } else { Details::Needed }
}

fn people(channel: ChannelName, entries: &[PersonEntry]) -> Result<Vec<String>, String> {
    if entries.len() > PEOPLE {
        return Err(format!("`people` of `{channel}` has more than {PEOPLE} entries"));
    }
    let mut people = Vec::new();
    for entry in entries {
        let id = entry.text();
        if !is_person_id(&id) {
            return Err(format!(
                "`people` of `{channel}` holds ids of the service, not names or addresses: `{}`",
                Shown::line(&id)
            ));
        }
        if !people.contains(&id) {
            people.push(id);
        }
    }
    Ok(people)
}

/// Tells whether a text can be the id of a person: what services give out has no blank and nothing that is not ASCII.
#[must_use]
pub(crate) fn is_person_id(text: &str) -> bool {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "_+.@=-".contains(letter);
    (1..=PERSON_LENGTH).contains(&text.len()) && text.chars().all(known)
}

fn filled(channel: ChannelName, key: &str, value: &str) -> Result<String, String> {
    if value.trim().is_empty() {
        return Err(format!("`{key}` of `{channel}` is empty"));
    }
    Ok(value.to_owned())
}

fn given(channel: ChannelName, key: &str, value: Option<&str>) -> Result<Option<String>, String> {
    value.map(|value| filled(channel, key, value)).transpose()
}

/// Checks an address: over TLS, or on this machine; what goes there is secret.
fn address(channel: ChannelName, key: &str, text: &str) -> Result<String, String> {
    let url: Url = text
        .parse()
        .map_err(|error| format!("`{key}` of `{channel}` is not an address: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("`{key}` of `{channel}` holds a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("`{key}` of `{channel}` has a query or a fragment"));
    }
    if url.scheme() != "https" && !(url.scheme() == "http" && super::advisory_settings::is_here(&url)) {
        return Err(format!(
            "`{key}` of `{channel}` begins with `https://`, or leads to this machine"
        ));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn route(entry: &RouteEntry) -> Result<RouteSettings, String> {
    let mut route = RouteSettings::default();
    for (key, value) in &entry.0 {
        match key.as_str() {
            "default" => route.default = Some(channels(key, value)?),
            "kind:approval" => drop(route.kinds.insert(AskKind::Approval, channels(key, value)?)),
            "kind:question" => drop(route.kinds.insert(AskKind::Question, channels(key, value)?)),
            "quiet" => route.quiet = Some(quiet(value)?),
            "escalate" => route.escalate = Some(escalation(value)?),
            other => {
                let Some(project) = other.strip_prefix("project:") else {
                    let known = ["default", "kind:approval", "kind:question", "quiet", "escalate"];
                    let meant = nearest(other, known);
                    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
                    return Err(format!("unknown key `{}` in `route`{meant}", Shown::line(other)));
                };
                let is_home = project == "~" || project.starts_with("~/");
                if !is_home && !Path::new(project).is_absolute() {
                    let shown = Shown::line(other);
                    return Err(format!(
                        "`{shown}` of `route` names an absolute path, or one below `~/`"
                    ));
                }
                if route.projects.len() >= PROJECTS {
                    return Err(format!("`route` names more than {PROJECTS} projects"));
                }
                let directory = project.trim_end_matches('/').to_owned();
                route.projects.insert(directory, channels(key, value)?);
            }
        }
    }
    Ok(route)
}

fn channels(key: &str, value: &Value) -> Result<Vec<ChannelName>, String> {
    let key = Shown::line(key);
    let wrong = || format!("`{key}` of `route` is a list of channels");
    let mut found = Vec::new();
    for entry in value.as_array().ok_or_else(wrong)? {
        let name = entry.as_str().ok_or_else(wrong)?;
        let name: ChannelName = name
            .parse()
            .map_err(|error| format!("`{key}` of `route`: {error}"))?;
        if !found.contains(&name) {
            found.push(name);
        }
    }
    Ok(found)
}

fn quiet(value: &Value) -> Result<QuietHours, String> {
    let minute = |text: &str| -> Option<u16> {
        let (hour, minute) = text.split_once(':')?;
        if hour.len() != 2 || minute.len() != 2 {
            return None;
        }
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    };
    let read = || {
        let (from, to) = value.as_str()?.split_once('-')?;
        let hours = QuietHours {
            from: minute(from)?,
            to: minute(to)?,
        };
        (hours.from != hours.to).then_some(hours)
    };
    read().ok_or_else(|| "`quiet` of `route` is two times of a day, such as `22:00-07:00`".to_owned())
}

fn escalation(value: &Value) -> Result<Escalation, String> {
    let wrong = || {
        "`escalate` of `route` is an object with `after`, such as `10m`, and `to`, a list of channels"
            .to_owned()
    };
    let members = value.as_object().ok_or_else(wrong)?;
    if members.keys().any(|key| key != "after" && key != "to") {
        return Err(wrong());
    }
    let read = || {
        let text = members.get("after")?.as_str()?;
        let number: u64 = text.get(..text.len().checked_sub(1)?)?.parse().ok()?;
        let seconds = match text.as_bytes().last()? {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            _ => return None,
        };
        let after = Duration::from_secs(number.checked_mul(seconds)?);
        (!after.is_zero() && after <= LONGEST_ESCALATION).then_some(after)
    };
    let after = read()
        .ok_or_else(|| "`after` of `escalate` is a time of at most a week, such as `10m`".to_owned())?;
    let to = channels("escalate", members.get("to").ok_or_else(wrong)?)?;
    if to.is_empty() {
        return Err(wrong());
    }
    Ok(Escalation { after, to })
}

#[cfg(test)]
mod tests;
