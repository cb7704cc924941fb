//! The line in the place of the buttons: what became of an ask, and where. Pure.

use crate::card::{Card, CardAnswer, CardState};
use crate::config::ChannelName;
use crate::protocol::Shown;
use crate::workflow::{ShownStanding, Timestamp};

/// The most characters of an answer in that line; the inbox has all of it.
const ANSWER_LIMIT: usize = 200;

/// Writes a moment as a time of day, where the person is.
pub(super) type TimeOfDay<'a> = &'a dyn Fn(Timestamp) -> String;

/// Tells how an ask stands, as messages show it.
pub(super) fn standing(card: &Card) -> ShownStanding {
    match card.state {
        CardState::Pending => ShownStanding::Open,
        CardState::Answered => ShownStanding::Answered,
        CardState::Used | CardState::Refused | CardState::Expired | CardState::Withdrawn => {
            ShownStanding::Over
        }
    }
}

/// Says what became of an ask; `None` while it waits.
pub(super) fn line(card: &Card, time: TimeOfDay<'_>) -> Option<String> {
    let answered = card.answered.as_ref();
    match (card.state, answered) {
        (CardState::Pending, _) => None,
        (CardState::Withdrawn, _) => Some("The agent does not wait for this any more".to_owned()),
        (CardState::Expired, _) | (_, None) => {
            Some(format!("Nobody answered in time · {}", time(card.deadline)))
        }
        (state, Some(answered)) => {
            let mut line = answer(card, answered);
            line.push_str(" · ");
            line.push_str(&time(answered.at));
            if state == CardState::Used && card.asker.run.is_some() {
                line.push_str("; the run goes on");
            }
            Some(line)
        }
    }
}

fn answer(card: &Card, answered: &CardAnswer) -> String {
    let place = place(answered);
    if card.state == CardState::Refused {
        return match answered.text.strip_prefix("refused: ") {
            Some(reason) => format!("Refused {place}: {}", shortened(reason)),
            None => format!("Refused {place}"),
        };
    }
    if !card.questions.is_empty() {
        return format!("Answered {place}: {}", shortened(&answered.text));
    }
    match answered.text.as_str() {
        "approved for the session" => format!("Approved for the session {place}"),
        "approved always" => format!("Approved from now on {place}"),
        _ => format!("Approved {place}"),
    }
}

/// Says where an answer was given: `in Slack`, `on the page`.
fn place(answered: &CardAnswer) -> String {
    match answered.road.as_str() {
        "chat" => {
            let who = answered.who.as_deref().unwrap_or_default();
            let channel = who
                .split(':')
                .next()
                .and_then(|name| name.parse::<ChannelName>().ok());
            match channel {
                Some(ChannelName::Webhook) | None => "in a chat".to_owned(),
                Some(channel) => format!("in {}", channel.title()),
            }
        }
        "web" => "on the page".to_owned(),
        "cli" => "in a terminal".to_owned(),
        "continuation" => "by the client".to_owned(),
        "rule" => "by a rule".to_owned(),
        _ => "in the client".to_owned(),
    }
}

/// One line of an answer; what is left out is marked.
fn shortened(text: &str) -> String {
    let line = Shown::line(text.trim()).to_string();
    match line.char_indices().nth(ANSWER_LIMIT) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::samples::{approval, question};

    fn closed(mut card: Card, state: CardState, road: &str, who: Option<&str>, text: &str) -> String {
        card.state = state;
        card.answered = Some(CardAnswer {
            road: road.to_owned(),
            who: who.map(str::to_owned),
            at: Timestamp::from_millis(0),
            text: text.to_owned(),
        });
        line(&card, &|_| "14:03".to_owned()).unwrap()
    }

    #[test]
    fn what_became_of_an_ask_is_told_with_the_place_and_the_time() {
        let (asked, decided) = (question, approval);
        let slack = Some("slack:T1/U1");
        for (told, expected) in [
            (
                closed(asked(), CardState::Used, "chat", Some("T1/U1"), "pg"),
                "Answered in a chat: pg · 14:03",
            ),
            (
                closed(asked(), CardState::Used, "chat", slack, "pg"),
                "Answered in Slack: pg · 14:03",
            ),
            (
                closed(asked(), CardState::Answered, "web", Some("Firefox"), "a\nb"),
                "Answered on the page: a\\nb · 14:03",
            ),
            (
                closed(asked(), CardState::Refused, "cli", None, "refused: not now"),
                "Refused in a terminal: not now · 14:03",
            ),
            (
                closed(decided(), CardState::Used, "chat", slack, "approved"),
                "Approved in Slack · 14:03",
            ),
            (
                closed(
                    decided(),
                    CardState::Used,
                    "dialog",
                    None,
                    "approved for the session",
                ),
                "Approved for the session in the client · 14:03",
            ),
            (
                closed(decided(), CardState::Refused, "chat", slack, "refused"),
                "Refused in Slack · 14:03",
            ),
            (
                closed(decided(), CardState::Used, "rule", None, "approved always"),
                "Approved from now on by a rule · 14:03",
            ),
            (
                closed(asked(), CardState::Withdrawn, "cli", None, ""),
                "The agent does not wait for this any more",
            ),
            (
                closed(asked(), CardState::Expired, "cli", None, ""),
                "Nobody answered in time · 14:03",
            ),
        ] {
            assert_eq!(told, expected);
        }
        let long = closed(asked(), CardState::Used, "web", None, &"x".repeat(1000));
        assert!(long.chars().count() < 250 && long.contains("x…"), "{long}");
    }

    #[test]
    fn an_answer_that_resumed_a_run_says_so() {
        let mut card = question();
        card.asker.run = Some("r1".to_owned());
        assert_eq!(
            closed(card, CardState::Used, "chat", Some("slack:T1/U1"), "pg"),
            "Answered in Slack: pg · 14:03; the run goes on"
        );
    }

    #[test]
    fn what_waits_has_no_such_line() {
        assert_eq!(line(&question(), &|_| String::new()), None);
    }
}
