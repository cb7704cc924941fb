//! Forms: what a client's own dialog shows, and what comes back from it.
//!
//! A form always has a property: some clients accept an empty one by themselves. Everything that comes from outside is
//! escaped, and what does not fit into a dialog is said not to be shown whole.

use serde_json::{Map, Value, json};

use crate::card::Decision;
use crate::protocol::Shown;
use crate::stdio::client::link::FormStyle;

mod approval;
mod message;
mod questions;

pub(crate) use approval::{approval, permission};
pub(crate) use questions::{answers, own_words, questions};

/// What a person did with a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filled {
    /// They sent it, with this content.
    Accepted(Map<String, Value>),
    /// They would not, or closed it.
    Refused,
    /// It never reached a person, or what came back is not an answer.
    Unreadable,
}

impl Filled {
    /// Reads an elicitation result.
    pub(crate) fn read(result: &Value) -> Self {
        match (
            result.get("action").and_then(Value::as_str),
            result.get("content"),
        ) {
            (Some("accept"), Some(Value::Object(content))) => Self::Accepted(content.clone()),
            (Some("decline" | "cancel"), _) => Self::Refused,
            _ => Self::Unreadable,
        }
    }
}

/// Writes a form as a client of that age reads it.
pub(crate) fn styled(mut form: Value, style: FormStyle) -> Value {
    let properties = form
        .pointer_mut("/requestedSchema/properties")
        .and_then(Value::as_object_mut);
    if let (FormStyle::Plain, Some(properties)) = (style, properties) {
        for field in properties.values_mut().filter_map(Value::as_object_mut) {
            plain(field);
        }
    }
    form
}

fn plain(field: &mut Map<String, Value>) {
    let column = |choices: &Value, member: &str| -> Vec<Value> {
        choices
            .as_array()
            .into_iter()
            .flatten()
            .map(|choice| choice[member].clone())
            .collect()
    };
    if let Some(choices) = field.shift_remove("oneOf") {
        field.insert("enum".to_owned(), json!(column(&choices, "const")));
        field.insert("enumNames".to_owned(), json!(column(&choices, "title")));
    } else if let Some(items) = field.shift_remove("items") {
        field.shift_remove("minItems");
        let labels = column(&items["anyOf"], "const").into_iter().enumerate();
        let labels: Vec<String> = labels
            // Where everything is typed, own words need no choice of their own.
            .filter(|(_, label)| !questions::is_other(label))
            .filter_map(|(index, label)| Some(format!("{} {}", index + 1, Shown::line(label.as_str()?))))
            .collect();
        let question = field.get("description").and_then(Value::as_str);
        let question = question.map_or_else(String::new, |question| format!("{question} "));
        let description = format!("{question}(one or several, by commas: {})", labels.join("; "));
        field.insert("type".to_owned(), json!("string"));
        field.insert("description".to_owned(), json!(description));
    }
}

/// A form with the one required decision; the titles say what each choice grants, and none is chosen beforehand.
fn decision_form(text: &message::Text, titles: &[(Decision, String)]) -> Value {
    let choices = titles.iter();
    let choices: Vec<Value> = choices
        .map(|(decision, title)| json!({ "const": word(*decision), "title": title }))
        .collect();
    let mut decision = json!({ "type": "string", "title": "Decision" });
    if let Some(description) = &text.description {
        decision["description"] = json!(description);
    }
    decision["oneOf"] = json!(choices);
    json!({
        "message": text.message,
        "requestedSchema": { "type": "object", "properties": { "decision": decision }, "required": ["decision"] },
    })
}

/// Reads the decision out of a filled form; anything else is none.
pub(crate) fn decision(content: &Map<String, Value>) -> Option<Decision> {
    let chosen = content.get("decision")?.as_str()?;
    let all = [
        Decision::Once,
        Decision::Session,
        Decision::Always,
        Decision::Abort,
    ];
    all.into_iter().find(|decision| word(*decision) == chosen)
}

/// Returns what stands for a decision in a form; people see its title.
fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Once => "continue",
        Decision::Session => "session",
        Decision::Always => "always",
        Decision::Abort => "abort",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::card::{Card, decide, samples};
    use crate::protocol::question::{Question, QuestionAnswer, Selection};
    use crate::proxy::{Answer, Ask};
    use crate::stdio::ask::subject::{PersonAsk, Subject};

    fn question(selection: Selection) -> Question {
        let arguments = json!({ "question": "Which\u{202e}?", "options": [{ "label": "A", "description": "first" }, { "label": "B" }] });
        Question {
            selection,
            ..Question::single(arguments.as_object().unwrap()).unwrap()
        }
    }

    fn card(questions: &[Question]) -> Card {
        let questions = questions.to_vec();
        samples::card(&samples::workflow(Ask::Questions { questions }))
    }

    /// What a filled form comes to, in the words for a model.
    fn read(questions: &[Question], content: &Value) -> Option<Vec<String>> {
        let card = card(questions);
        let ask = PersonAsk {
            card: &card,
            subject: Subject::Questions,
            patience: Duration::ZERO,
            claim: None,
        };
        match decide(&card, ask.said(content.as_object().unwrap())?) {
            Ok(Answer::Answers { answers }) => Some(answers.iter().map(QuestionAnswer::summary).collect()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_decision_is_one_of_four_words_and_nothing_else() {
        let read = |content: Value| decision(content.as_object().unwrap());
        assert_eq!(read(json!({ "decision": "continue" })), Some(Decision::Once));
        assert_eq!(read(json!({ "decision": "abort" })), Some(Decision::Abort));
        for content in [
            json!({}),
            json!({ "decision": true }),
            json!({ "decision": "yes" }),
            json!({ "approved": true }),
        ] {
            assert_eq!(read(content), None);
        }
    }

    #[test]
    fn a_filled_form_is_read_strictly() {
        assert_eq!(Filled::read(&json!({ "action": "accept" })), Filled::Unreadable);
        assert_eq!(Filled::read(&json!({ "action": "cancel" })), Filled::Refused);
        assert_eq!(Filled::read(&json!({})), Filled::Unreadable);
        assert!(matches!(
            Filled::read(&json!({ "action": "accept", "content": {} })),
            Filled::Accepted(_)
        ));
    }

    #[test]
    fn an_older_client_gets_choices_it_can_read_and_its_answers_are_understood() {
        let form = styled(
            questions(&card(&[question(Selection::One), question(Selection::Several)])),
            FormStyle::Plain,
        );
        let fields = &form["requestedSchema"]["properties"];
        assert_eq!(
            (
                &fields["answer1"]["enum"],
                &fields["answer1"]["enumNames"],
                fields["answer1"].get("oneOf")
            ),
            (
                &json!(["A", "B", "Other…"]),
                &json!(["A: first", "B", "Other, in your own words"]),
                None
            )
        );
        assert_eq!(
            (&fields["answer2"]["type"], fields["answer2"].get("items")),
            (&json!("string"), None)
        );
        let several = [question(Selection::Several)];
        assert_eq!(
            read(&several, &json!({ "answer1": "A, B" })),
            Some(vec!["User selected: A, B".to_owned()])
        );
        assert_eq!(
            read(&several, &json!({ "answer1": "A, C" })),
            Some(vec!["User answered: A, C".to_owned()])
        );
    }

    #[test]
    fn questions_become_required_fields_and_answers_come_back() {
        let one = [question(Selection::One)];
        let form = questions(&card(&one));
        assert_eq!(form["message"], "Which\\u{202e}?");
        let schema = &form["requestedSchema"];
        assert_eq!(schema["required"], json!(["answer1"]));
        assert_eq!(
            schema["properties"],
            json!({ "answer1": {
                "type": "string",
                "title": "Answer",
                "oneOf": [
                    { "const": "A", "title": "A: first" },
                    { "const": "B", "title": "B" },
                    { "const": "Other…", "title": "Other, in your own words" },
                ],
            } })
        );
        assert_eq!(
            read(&one, &json!({ "answer1": "B" })),
            Some(vec!["User selected: B".to_owned()])
        );
        assert_eq!(read(&one, &json!({})), None);
        let several = [question(Selection::Several)];
        assert_eq!(
            read(&several, &json!({ "answer1": ["A", "B"] })),
            Some(vec!["User selected: A, B".to_owned()])
        );
    }

    #[test]
    fn an_option_that_could_deceive_is_named_as_it_is_shown_and_answered_as_it_was_asked() {
        let arguments = json!({ "question": "?", "options": [{ "label": "a\u{202e}b" }, { "label": "c" }] });
        let asked = [Question::single(arguments.as_object().unwrap()).unwrap()];
        let form = questions(&card(&asked));
        let choice = &form["requestedSchema"]["properties"]["answer1"]["oneOf"][0];
        assert_eq!(*choice, json!({ "const": "a\\u{202e}b", "title": "a\\u{202e}b" }));
        assert_eq!(
            read(&asked, &json!({ "answer1": choice["const"] })),
            Some(vec!["User selected: a\u{202e}b".to_owned()])
        );
    }

    #[test]
    fn own_words_are_asked_for_in_a_second_form() {
        let words = |questions: &[Question], content: &Value| {
            own_words(&card(questions), content.as_object().unwrap())
        };
        let one = [question(Selection::One)];
        assert_eq!(words(&one, &json!({ "answer1": "A" })), None);
        let form = words(&one, &json!({ "answer1": "Other…" })).unwrap();
        assert_eq!(form["message"], "In your own words:\nWhich\\u{202e}?");
        assert_eq!(form["requestedSchema"]["required"], json!(["answer1_other"]));
        assert_eq!(
            read(&one, &json!({ "answer1": "Other…", "answer1_other": "C" })),
            Some(vec!["User answered: C".to_owned()])
        );
        assert_eq!(
            read(&one, &json!({ "answer1": "Other…" })),
            None,
            "chosen and not written"
        );
        let several = [question(Selection::Several)];
        assert!(words(&several, &json!({ "answer1": ["A", "Other…"] })).is_some());
        assert_eq!(
            read(
                &several,
                &json!({ "answer1": ["A", "Other…"], "answer1_other": "and C" })
            ),
            Some(vec!["User selected: A, and C".to_owned()])
        );
    }

    #[test]
    fn a_long_question_says_where_it_is_shown_whole_and_long_options_are_explained() {
        let arguments = json!({
            "question": "word ".repeat(100),
            "options": [{ "label": "A", "description": "much longer than a choice can be in the dialog of a client" }],
        });
        let question = Question::single(arguments.as_object().unwrap()).unwrap();
        let form = questions(&card(&[question]));
        let message = form["message"].as_str().unwrap();
        assert!(message.starts_with("word word"), "{message}");
        assert_eq!(
            form["requestedSchema"]["properties"]["answer1"]["description"],
            "may be cut here; whole in a terminal: `pml pending aaaaa`"
        );
        assert!(
            message.ends_with("A: much longer than a choice can be in the dialog of a client"),
            "{message}"
        );
        assert_eq!(
            form["requestedSchema"]["properties"]["answer1"]["oneOf"][0]["title"],
            "A"
        );
    }
}
