//! The forms that put questions to a person: first the choices, then their own words where they chose "Other…".
//!
//! Own words are asked for in a form of their own: an optional text field beside the choices cannot be left empty in
//! every client, and replaces the choice in some.

use serde_json::{Map, Value, json};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::message::{self, CHOICE, COLUMNS, Text};
use crate::card::{Card, CardQuestion, SaidAnswer};
use crate::protocol::question::{Choice, Selection};
use crate::protocol::{Shown, shortened};

/// The choice that stands for the person's own words.
const OTHER: &str = "Other…";
/// How it is shown; Claude Code puts quotes around a title that ends in dots.
const OTHER_TITLE: &str = "Other, in your own words";
/// Its name where an option is called [`OTHER`] already.
const NEITHER: &str = "Other… (own words)";

/// Writes the elicitation parameters that put questions to a person: one required field a question.
pub(crate) fn questions(card: &Card) -> Value {
    let questions = card.questions.as_slice();
    let fields = questions.iter().enumerate().map(|(index, question)| {
        let mut field = json!({ "type": "string", "title": title(question) });
        if questions.len() > 1 {
            field["description"] = json!(Shown::line(&question.asked.question).to_string());
        }
        match (question.shown.options.is_empty(), question.shown.selection) {
            (true, _) => {}
            (false, Selection::One) => field["oneOf"] = json!(choices(question)),
            (false, Selection::Several) => {
                field["type"] = json!("array");
                field["minItems"] = json!(1);
                field["items"] = json!({ "anyOf": choices(question) });
            }
        }
        (field_name(index), field)
    });
    form(message(questions, card.code.as_str()), fields.collect())
}

/// Writes the form for the own words of a person who chose them; `None` where the filled form asks for none.
pub(crate) fn own_words(card: &Card, content: &Map<String, Value>) -> Option<Value> {
    let questions = card.questions.as_slice();
    let fields: Map<String, Value> = questions
        .iter()
        .enumerate()
        .filter(|(index, question)| chose_other(question, content.get(&field_name(*index))))
        .map(|(index, question)| {
            let mut field = json!({ "type": "string", "title": title(question) });
            if questions.len() > 1 {
                field["description"] = json!(Shown::line(&question.asked.question).to_string());
            }
            (other_name(index), field)
        })
        .collect();
    if fields.is_empty() {
        return None;
    }
    let lines = ["In your own words:".to_owned()].into_iter();
    let asked = questions
        .iter()
        .flat_map(lines_of)
        .filter(|_| questions.len() == 1);
    Some(form(
        message::text(lines.chain(asked), card.code.as_str()),
        fields,
    ))
}

/// Reads what was said out of filled forms; `None` if a question has no answer at all.
pub(crate) fn answers(questions: &[CardQuestion], content: &Map<String, Value>) -> Option<Vec<SaidAnswer>> {
    let said = questions.iter().enumerate().map(|(index, question)| {
        let field = field_name(index);
        let labels = match content.get(&field) {
            // Where a form has no lists, several choices come as one text.
            Some(Value::String(text)) if question.shown.selection == Selection::Several => {
                return SaidAnswer::typed(question, &field, text).ok();
            }
            Some(Value::String(label)) => vec![label.clone()],
            Some(Value::Array(labels)) => labels
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        };
        let other = other_label(question);
        let labels = labels.into_iter().filter(|label| label != other).collect();
        let own = content.get(&other_name(index)).and_then(Value::as_str);
        if own.is_none() && chose_other(question, content.get(&field)) {
            return None;
        }
        Some(SaidAnswer::loosely(question, labels, own.map(str::to_owned)))
    });
    said.collect()
}

/// Puts the text around the fields; what stands beside a field goes before all where each has a question there.
fn form(text: Text, mut properties: Map<String, Value>) -> Value {
    let mut message = text.message;
    if let Some(beside) = text.description {
        match properties.values_mut().next() {
            Some(field) if field.get("description").is_none() => field["description"] = json!(beside),
            _ => message = format!("{beside}\n{message}"),
        }
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "message": message,
        "requestedSchema": { "type": "object", "required": required, "properties": properties },
    })
}

/// Writes the message: a question alone stands here whole; several stand at their fields, unless they are too long.
fn message(questions: &[CardQuestion], code: &str) -> Text {
    let lines: Vec<String> = match questions {
        [question] => lines_of(question).chain(explained(question)).collect(),
        several => several
            .iter()
            .filter(|question| !fits(&question.asked.question))
            .flat_map(lines_of)
            .chain(several.iter().flat_map(explained))
            .collect(),
    };
    if lines.is_empty() {
        let message = format!("{} questions for you", questions.len());
        return message::text([message].into_iter(), code);
    }
    message::text(lines.into_iter(), code)
}

fn lines_of(question: &CardQuestion) -> impl Iterator<Item = String> {
    let lines = question.asked.question.lines();
    lines.map(|line| Shown::line(line).to_string())
}

/// Explains the options whose description does not fit into a choice.
fn explained(question: &CardQuestion) -> impl Iterator<Item = String> {
    question
        .shown
        .options
        .iter()
        .map(described)
        .filter(|text| text.width() > CHOICE)
}

fn described(option: &Choice) -> String {
    let label = &option.label;
    match &option.description {
        Some(description) => format!("{label}: {description}"),
        None => label.clone(),
    }
}

fn fits(question: &str) -> bool {
    !question.contains('\n') && Shown::line(question).to_string().width() <= COLUMNS
}

fn title(question: &CardQuestion) -> &str {
    question.shown.header.as_deref().unwrap_or("Answer")
}

/// Writes the choices; each is named as it is shown, which some clients do instead of its title.
fn choices(question: &CardQuestion) -> Vec<Value> {
    let options = question.shown.options.iter().zip(titles(&question.shown.options));
    let options = options.map(|(option, title)| json!({ "const": option.label, "title": title }));
    let other = other_label(question);
    options
        .chain([json!({ "const": other, "title": OTHER_TITLE })])
        .collect()
}

/// Writes the titles of options, shortened so that no two are the same.
fn titles(options: &[Choice]) -> Vec<String> {
    let labels: Vec<&str> = options.iter().map(|option| option.label.as_str()).collect();
    let mut titles: Vec<String> = options
        .iter()
        .zip(&labels)
        .map(|(option, label)| {
            let described = described(option);
            if described.width() <= CHOICE {
                described
            } else {
                shortened(label, CHOICE).into_owned()
            }
        })
        .collect();
    let alike = |titles: &[String], index: usize| -> Vec<usize> {
        (0..titles.len())
            .filter(|other| titles[*other] == titles[index])
            .collect()
    };
    let shared: Vec<Option<usize>> = (0..titles.len())
        .map(|index| {
            let alike = alike(&titles, index);
            (alike.len() > 1).then(|| same_beginning(alike.iter().map(|other| labels[*other])))
        })
        .collect();
    for ((title, label), shared) in titles.iter_mut().zip(&labels).zip(shared) {
        if let Some(shared) = shared {
            *title = from_difference(label, shared);
        }
    }
    let numbered: Vec<bool> = (0..titles.len())
        .map(|index| alike(&titles, index).len() > 1 || titles[index] == OTHER_TITLE)
        .collect();
    for (index, title) in titles
        .iter_mut()
        .enumerate()
        .filter(|(index, _)| numbered[*index])
    {
        let number = format!("{}. ", index + 1);
        *title = format!("{number}{}", shortened(labels[index], CHOICE - number.len()));
    }
    titles
}

/// Counts the characters that all labels begin with, up to the word in which they differ.
fn same_beginning<'a>(labels: impl Iterator<Item = &'a str>) -> usize {
    let common = |one: &'a str, other: &'a str| {
        let same = one
            .chars()
            .zip(other.chars())
            .take_while(|(one, other)| one == other);
        &one[..same.map(|(found, _)| found.len_utf8()).sum()]
    };
    let common = labels.reduce(common).unwrap_or_default();
    let word = common.rfind(' ').map_or(0, |at| at + 1);
    common[..word].chars().count()
}

/// Shortens a label so that what follows its first `shared` characters is seen, and of those as many as have room.
fn from_difference(label: &str, shared: usize) -> String {
    let mark = |count: usize| format!("\u{2026}(+{count})\u{2026}");
    let room = CHOICE.saturating_sub(mark(shared).width());
    let rest: String = label.chars().skip(shared).collect();
    let rest = shortened(&rest, room);
    let mut spare = room.saturating_sub(rest.width());
    let begin: String = label
        .chars()
        .take(shared)
        .take_while(|found| {
            let fits = found.width().unwrap_or(0) <= spare;
            spare = spare.saturating_sub(found.width().unwrap_or(0));
            fits
        })
        .collect();
    format!(
        "{begin}{}{rest}",
        mark(shared.saturating_sub(begin.chars().count()))
    )
}

fn other_label(question: &CardQuestion) -> &'static str {
    if question.shown.options.iter().any(|option| option.label == OTHER) {
        NEITHER
    } else {
        OTHER
    }
}

fn chose_other(question: &CardQuestion, chosen: Option<&Value>) -> bool {
    let other = other_label(question);
    match chosen {
        Some(Value::String(label)) => !question.shown.options.is_empty() && label == other,
        Some(Value::Array(labels)) => labels.iter().any(|label| label == other),
        _ => false,
    }
}

/// Tells whether a choice stands for the person's own words.
pub(super) fn is_other(choice: &Value) -> bool {
    choice == OTHER || choice == NEITHER
}

fn field_name(index: usize) -> String {
    format!("answer{}", index + 1)
}

fn other_name(index: usize) -> String {
    format!("answer{}_other", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles_of(labels: &[&str]) -> Vec<String> {
        let options: Vec<Choice> = labels
            .iter()
            .map(|label| Choice {
                label: (*label).to_owned(),
                description: None,
            })
            .collect();
        let titles = titles(&options);
        for (index, title) in titles.iter().enumerate() {
            assert!(title.width() <= CHOICE, "{title}");
            assert!(!titles[..index].contains(title), "{titles:?}");
        }
        titles
    }

    #[test]
    fn two_options_that_are_shortened_differ_where_their_labels_do() {
        assert_eq!(
            titles_of(&[
                "Deploy to the production cluster eu-central-1 with all replicas",
                "Deploy to the production cluster us-central-1 with all replicas",
                "Nowhere",
            ]),
            [
                "Deploy to …(+23)…eu-central-1 with all replicas",
                "Deploy to …(+23)…us-central-1 with all replicas",
                "Nowhere",
            ]
        );
    }

    #[test]
    fn options_that_cannot_be_told_apart_are_numbered() {
        let begin = "a".repeat(60);
        let titles = titles_of(&[&format!("{begin}1{begin}"), &format!("{begin}2{begin}")]);
        assert!(
            titles[0].starts_with("1. aaa") && titles[1].starts_with("2. aaa"),
            "{titles:?}"
        );
        let three = [
            &format!("one {begin}"),
            &format!("one {begin}x{begin}"),
            &format!("one {begin}y{begin}"),
        ];
        titles_of(&three.map(String::as_str));
        assert_eq!(titles_of(&[OTHER_TITLE]), ["1. Other, in your own words"]);
    }
}
