//! Where an ask goes: the routes of the user's file, their quiet hours and their escalation. Pure.

use std::time::Duration;

use crate::card::Card;
use crate::config::{AskKind, ChannelName, ChannelSettings, QuietHours, RouteSettings};

/// The minutes of a day.
const DAY: u16 = 24 * 60;

/// Lists the channels that an ask goes to when it has waited for `age`.
pub(super) fn channels_for(
    card: &Card,
    settings: &ChannelSettings,
    home: Option<&str>,
    age: Duration,
) -> Vec<ChannelName> {
    if let Some(named) = named(card) {
        return vec![named];
    }
    let route = &settings.route;
    let mut channels = match line_for(card, route, home) {
        Some(line) => line.clone(),
        None => settings.configured().collect(),
    };
    if let Some(escalation) = &route.escalate
        && age >= escalation.after
    {
        channels.extend(escalation.to.iter().copied());
    }
    let mut known = Vec::new();
    for channel in channels {
        if settings.basics(channel).is_some() && !known.contains(&channel) {
            known.push(channel);
        }
    }
    known
}

/// Returns the channel that the asker named.
pub(super) fn named(card: &Card) -> Option<ChannelName> {
    card.channel.and_then(|name| name.parse().ok())
}

/// Finds the line of an ask: its project, then its kind, then the default.
fn line_for<'a>(card: &Card, route: &'a RouteSettings, home: Option<&str>) -> Option<&'a Vec<ChannelName>> {
    let kind = if card.questions.is_empty() {
        AskKind::Approval
    } else {
        AskKind::Question
    };
    let expanded = |directory: &str| match (directory.strip_prefix('~'), home) {
        (Some(rest), Some(home)) => format!("{}{rest}", home.trim_end_matches('/')),
        (Some(_), None) | (None, _) => directory.to_owned(),
    };
    let lines = route
        .projects
        .iter()
        .map(|(directory, line)| (expanded(directory), line));
    let within = lines.filter(|(directory, _)| is_within(&card.asker.project, directory));
    let project = within
        .max_by_key(|(directory, _)| directory.len())
        .map(|(_, line)| line);
    project
        .or_else(|| route.kinds.get(&kind))
        .or(route.default.as_ref())
}

/// Tells whether a directory is another one or lies below it.
fn is_within(project: &str, directory: &str) -> bool {
    project
        .strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory.is_empty())
}

/// Returns how many minutes of quiet are left at a minute of the day; `None` outside of it.
pub(super) fn quiet_left(quiet: Option<QuietHours>, minute: u16) -> Option<u16> {
    let QuietHours { from, to } = quiet?;
    let length = (to + DAY - from) % DAY;
    let gone = (minute + DAY - from) % DAY;
    (gone < length).then(|| length - gone)
}

/// Returns after how much longer an ask goes elsewhere as well; `None` where it never will, or did.
pub(super) fn until_escalation(settings: &ChannelSettings, age: Duration) -> Option<Duration> {
    let escalation = settings.route.escalate.as_ref()?;
    escalation.after.checked_sub(age).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::samples::{approval, question, settings};
    use ChannelName::{Slack, Telegram, Whatsapp};

    #[test]
    fn the_project_counts_before_the_kind_and_that_before_the_default() {
        let settings = settings(
            r#"{ "default": ["telegram"], "kind:approval": ["slack"], "project:~/shop": ["whatsapp"],
                 "project:/home/ada/shop/web": [], "escalate": { "after": "10m", "to": ["telegram", "slack"] } }"#,
        );
        let to = |card: &Card, minutes| {
            channels_for(card, &settings, Some("/home/ada"), Duration::from_mins(minutes))
        };
        let mut asked = question();
        let mut decided = approval();
        assert_eq!((to(&asked, 0), to(&decided, 0)), (vec![Telegram], vec![Slack]));
        assert_eq!(to(&asked, 10), [Telegram, Slack]);
        for card in [&mut asked, &mut decided] {
            card.asker.project = "/home/ada/shop/api".to_owned();
            assert_eq!(to(card, 0), [Whatsapp]);
            card.asker.project = "/home/ada/shop/web".to_owned();
            assert_eq!(to(card, 0), []);
            card.asker.project = "/home/ada/shopping".to_owned();
            assert_ne!(to(card, 0), [Whatsapp]);
        }
        asked.channel = Some("slack");
        assert_eq!(to(&asked, 60), [Slack]);
    }

    #[test]
    fn without_a_line_an_ask_goes_to_every_channel() {
        let settings = settings("{}");
        assert_eq!(
            channels_for(&question(), &settings, None, Duration::ZERO),
            [Slack, Telegram, Whatsapp]
        );
    }

    #[test]
    fn quiet_hours_may_go_over_midnight() {
        let night = Some(QuietHours {
            from: 22 * 60,
            to: 7 * 60,
        });
        let noon = Some(QuietHours {
            from: 12 * 60,
            to: 13 * 60,
        });
        for (quiet, minute, left) in [
            (night, 21 * 60 + 59, None),
            (night, 22 * 60, Some(9 * 60)),
            (night, 0, Some(7 * 60)),
            (night, 6 * 60 + 59, Some(1)),
            (night, 7 * 60, None),
            (noon, 12 * 60 + 30, Some(30)),
            (noon, 13 * 60, None),
            (None, 0, None),
        ] {
            assert_eq!(quiet_left(quiet, minute), left, "{minute}");
        }
    }
}
