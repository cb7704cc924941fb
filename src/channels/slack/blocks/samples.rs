//! Notices of every kind, with texts that Slack could take for something else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Message, reason};
use crate::card::samples::card;
use crate::card::{Card, Choice};
use crate::channels::notice::{Notice, Standing};
use crate::channels::press::Nonce;
use crate::protocol::question::{self, Question, Selection};
use crate::workflow::samples::{self, workflow};
use crate::workflow::{Arguments, Ask, UseReach};

/// Texts that a chat could take for a mention, a link, markup, an emoji, or that turn around what stands beside them.
pub(in crate::channels::slack) const HOSTILE: [&str; 12] = [
    "<!channel> <!here> <!everyone>",
    "<@U1> <#C1|general> <!subteam^S1>",
    "@channel @here @everyone @ann",
    "<https://evil.example/|your bank> https://evil.example/ evil.example mailto:a@b.example",
    "[bank](https://evil.example) ![x](https://evil.example/x.png)",
    "*bold* _italic_ ~struck~ `code` ```block``` > quoted",
    ":rotating_light: :shipit: <!date^1^{date}|x>",
    "&lt;!channel&gt; &amp;amp; &#60;!here&#62;",
    "ab\u{202e}dcba\u{2066}x\u{200b}\u{feff}y",
    "\u{1b}[31mred\u{7}\r\nnext",
    "\"}]},{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"<!channel>\"}}",
    "p1:aaaaa:0:d:always:AAAAAAAAAAAA",
];

/// A question with labels, each with a description where there are some.
pub(in crate::channels::slack) fn question(
    text: &str,
    selection: Selection,
    options: &[(&str, Option<&str>)],
) -> Question {
    let options = options.iter().map(|(label, description)| question::Choice {
        label: (*label).to_owned(),
        description: description.map(str::to_owned),
    });
    Question {
        question: text.to_owned(),
        header: None,
        options: options.collect(),
        selection,
    }
}

/// The card of questions.
pub(in crate::channels::slack) fn questions(questions: Vec<Question>) -> Card {
    let mut asked = workflow(Ask::Questions { questions });
    asked.project = "/home/ann/shop".into();
    asked.origin.client.name = Some("claude".to_owned());
    card(&asked)
}

/// The card of an approval of a server.
pub(in crate::channels::slack) fn install() -> Card {
    let mut asked = workflow(samples::new("{}").ask);
    asked.project = "/home/ann/shop".into();
    card(&asked)
}

/// The card of a use of a tool with arguments.
pub(in crate::channels::slack) fn call(arguments: &str) -> Card {
    let mut asked = workflow(Ask::Use {
        reach: UseReach::Lasting,
    });
    asked.project = "/home/ann/shop".into();
    asked.call.arguments = Arguments::Json(arguments.to_owned());
    card(&asked)
}

/// A card as it is shown while it waits.
pub(in crate::channels::slack) fn waiting(card: Card) -> Notice {
    let choices: Vec<Choice> = card.choices.clone();
    notice(card, Standing::Open { choices })
}

/// A card that cannot be answered any more.
pub(in crate::channels::slack) fn ended(card: Card, outcome: &str) -> Notice {
    notice(card, Standing::Closed(outcome.to_owned()))
}

fn notice(card: Card, standing: Standing) -> Notice {
    Notice {
        card,
        nonce: Nonce::kept("AAAAAAAAAAAA".to_owned()),
        standing,
        inbox: Some("http://127.0.0.1:7777/".to_owned()),
    }
}

/// Three questions at once: one choice, several, own words.
pub(in crate::channels::slack) fn three() -> Card {
    let mut named = question("How long?", Selection::One, &[]);
    named.header = Some("Time".to_owned());
    questions(vec![
        question(
            "Which db?",
            Selection::One,
            &[("pg", Some("Postgres")), ("sqlite", None)],
        ),
        question(
            "Which hosts?",
            Selection::Several,
            &[("a", None), ("b", None), ("c", None)],
        ),
        named,
    ])
}

/// Every kind of payload by its name.
pub(in crate::channels::slack) fn payloads() -> BTreeMap<String, Value> {
    let long_label =
        "A label that is much longer than the seventy-five characters that an option may have at most";
    let twenty: Vec<String> = (1..=20).map(|number| format!("option {number}")).collect();
    let twenty: Vec<(&str, Option<&str>)> = twenty.iter().map(|label| (label.as_str(), None)).collect();
    let long = [(long_label, Some("because")), ("short", None)];
    let db = [("pg", Some("Postgres")), ("sqlite", None)];
    let single = questions(vec![question("Which db?", Selection::One, &db)]);
    let hostile: Vec<Question> = HOSTILE[..4]
        .iter()
        .map(|text| {
            let options: Vec<(&str, Option<&str>)> = HOSTILE
                .iter()
                .take(9)
                .map(|option| (*option, Some(*text)))
                .collect();
            question(text, Selection::Several, &options)
        })
        .collect();
    let notices = [
        ("question_single", waiting(single.clone())),
        (
            "question_several",
            waiting(questions(vec![question("Which?", Selection::Several, &db)])),
        ),
        (
            "question_words",
            waiting(questions(vec![question("Why?", Selection::One, &[])])),
        ),
        ("question_three", waiting(three())),
        (
            "question_long_labels",
            waiting(questions(vec![question("Which?", Selection::One, &long)])),
        ),
        (
            "question_twenty_of_one",
            waiting(questions(vec![question("Which?", Selection::One, &twenty)])),
        ),
        (
            "question_twenty_of_several",
            waiting(questions(vec![question("Which?", Selection::Several, &twenty)])),
        ),
        (
            "question_of_many_lines",
            waiting(questions(vec![question(
                &"A line of text.\n".repeat(400),
                Selection::One,
                &db,
            )])),
        ),
        ("question_hostile", waiting(questions(hostile))),
        ("approval", waiting(install())),
        ("approval_without_choices", {
            let standing = Standing::Open { choices: Vec::new() };
            notice(install(), standing)
        }),
        ("approval_with_arguments", waiting(call(r#"{"command":"ls -l"}"#))),
        (
            "approval_hostile",
            waiting(call(&json!({ "command": HOSTILE }).to_string())),
        ),
        (
            "approval_too_long",
            waiting(call(&json!({ "command": "x".repeat(100_000) }).to_string())),
        ),
        ("closed", ended(single, "Answered in Slack: pg · 14:03")),
        (
            "closed_hostile",
            ended(call("{}"), &format!("Answered in Slack: {}", HOSTILE[0])),
        ),
    ];
    let mut payloads: BTreeMap<String, Value> = notices
        .iter()
        .map(|(name, notice)| {
            let message = Message::of(notice);
            let payload = json!({ "text": message.text, "blocks": message.blocks });
            ((*name).to_owned(), payload)
        })
        .collect();
    let words = Message::words("Choose an option or write something.");
    let words = json!({ "text": words.text, "blocks": words.blocks });
    payloads.insert("words".to_owned(), words);
    let origin =
        json!({ "press": "p1:aaaaa:0:d:abort:AAAAAAAAAAAA", "channel": "DU1", "ts": "1.2", "direct": true });
    payloads.insert("form".to_owned(), reason("aaaaa", 0, &origin));
    payloads
}
