//! A form of a server as questions to a person, and their answers as its content. Pure.

use serde_json::{Map, Value, json};

use crate::protocol::Shown;
use crate::protocol::question::{Question, QuestionAnswer};

/// The most fields that are put to a person at once; a server that wants more gets no answer.
const FIELDS: usize = 4;

/// A form of a server.
#[derive(Debug, Clone)]
pub(super) struct Form {
    fields: Vec<Field>,
    /// What did not fit when it was filled in last.
    unfit: Option<Unfit>,
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    question: Question,
    kind: FieldKind,
    presence: Presence,
}

/// Whether a field may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// Says why a form cannot be put to a person.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoForm {
    /// It has no fields, or too many.
    #[error("it has {count} fields, and 1 to {FIELDS} can be asked here")]
    Fields {
        /// How many.
        count: usize,
    },
    /// A field is of a kind that is no question.
    #[error("its field `{field}` is of a kind that cannot be asked here")]
    Kind {
        /// The field, escaped.
        field: String,
    },
    /// It is no form.
    #[error("it is no form that can be read")]
    Unreadable,
}

/// Says which answer does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfit {
    /// The number of the field.
    field: usize,
    wanted: &'static str,
}

#[derive(Debug, Clone)]
enum FieldKind {
    /// Text as it is written.
    Text,
    /// A number; whole where the form says so.
    Number { whole: bool },
    /// Yes or no.
    YesNo,
    /// One of these: what is shown, and what it is for the server.
    One(Vec<(String, Value)>),
    /// Some of these.
    Some(Vec<(String, Value)>),
}

impl Form {
    /// Reads the schema of a form.
    pub(super) fn read(server: &str, message: &str, schema: &str) -> Result<Self, NoForm> {
        let schema: Value = serde_json::from_str(schema).map_err(|_| NoForm::Unreadable)?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.ok_or(NoForm::Unreadable)?;
        let count = properties.len();
        if !(1..=FIELDS).contains(&count) {
            return Err(NoForm::Fields { count });
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
        let field = |(name, property): (&String, &Value)| {
            let kind = FieldKind::of(property)?;
            Some(Field {
                name: name.clone(),
                question: kind.question(server, message, name, property)?,
                kind,
                presence: if is_required(name) {
                    Presence::Required
                } else {
                    Presence::Optional
                },
            })
        };
        let fields = properties.iter().map(|property| {
            field(property).ok_or_else(|| NoForm::Kind {
                field: Shown::line(property.0).to_string(),
            })
        });
        Ok(Self {
            fields: fields.collect::<Result<_, _>>()?,
            unfit: None,
        })
    }

    /// Returns the questions, one for each field; the one whose answer did not fit says so.
    pub(super) fn questions(&self) -> Vec<Question> {
        let mut questions: Vec<_> = self.fields.iter().map(|field| field.question.clone()).collect();
        if let Some(Unfit { field, wanted }) = self.unfit
            && let Some(question) = questions.get_mut(field)
        {
            let complaint = format!("\n(Your last answer does not fit: {wanted}.)");
            question.question.push_str(&complaint);
        }
        questions
    }

    /// Returns the form with the complaint about what was said last.
    pub(super) fn again(&self, unfit: Unfit) -> Self {
        Self {
            fields: self.fields.clone(),
            unfit: Some(unfit),
        }
    }

    /// Fills the form in.
    pub(super) fn fill(&self, answers: &[QuestionAnswer]) -> Result<Map<String, Value>, Unfit> {
        let mut content = Map::new();
        for (number, (field, answer)) in self.fields.iter().zip(answers).enumerate() {
            let unfit = |wanted| Unfit {
                field: number,
                wanted,
            };
            match (answer.is_unanswered(), field.presence) {
                (true, Presence::Required) => return Err(unfit("it must be filled in")),
                (true, Presence::Optional) => {}
                (false, _) => {
                    let value = field.kind.value(answer);
                    content.insert(
                        field.name.clone(),
                        value.ok_or_else(|| unfit(field.kind.wanted()))?,
                    );
                }
            }
        }
        Ok(content)
    }
}

impl FieldKind {
    fn of(property: &Value) -> Option<Self> {
        let kind = property.get("type").and_then(Value::as_str);
        match kind {
            Some("boolean") => Some(Self::YesNo),
            Some("integer") => Some(Self::Number { whole: true }),
            Some("number") => Some(Self::Number { whole: false }),
            Some("string") => Some(choices(property).map_or(Self::Text, Self::One)),
            Some("array") => choices(property.get("items")?).map(Self::Some),
            _ => None,
        }
    }

    /// Makes the question about a field of this kind.
    fn question(&self, server: &str, message: &str, name: &str, property: &Value) -> Option<Question> {
        let title = property.get("title").and_then(Value::as_str).unwrap_or(name);
        let about = property.get("description").and_then(Value::as_str);
        let about = about.map_or_else(String::new, |about| format!(" ({about})"));
        let question = format!("{}: {message}\n{title}{about}", Shown::line(server));
        let labels = self.labels();
        let options: Vec<Value> = labels.iter().map(|label| json!({ "label": label })).collect();
        let mut asked = json!({ "question": question });
        if !options.is_empty() {
            asked["options"] = options.into();
            asked["multiSelect"] = matches!(self, Self::Some(_)).into();
        }
        Question::single(asked.as_object()?).ok()
    }

    /// Says what an answer must be.
    fn wanted(&self) -> &'static str {
        match self {
            Self::Text => "it must be a text",
            Self::Number { whole: true } => "it must be a whole number",
            Self::Number { whole: false } => "it must be a number",
            Self::YesNo => "it must be yes or no",
            Self::One(_) => "it must be one of the options",
            Self::Some(_) => "it may be options only",
        }
    }

    fn labels(&self) -> Vec<&str> {
        match self {
            Self::Text | Self::Number { .. } => Vec::new(),
            Self::YesNo => vec!["yes", "no"],
            Self::One(choices) | Self::Some(choices) => {
                choices.iter().map(|(label, _)| label.as_str()).collect()
            }
        }
    }

    fn value(&self, answer: &QuestionAnswer) -> Option<Value> {
        let values = answer.values();
        let one = || values.first().copied();
        let chosen = |choices: &[(String, Value)], label: &str| {
            let choice = choices.iter().find(|(shown, _)| shown == label);
            choice.map(|(_, value)| value.clone())
        };
        match self {
            Self::Text => Some(values.join(", ").into()),
            Self::Number { whole: true } => Some(one()?.trim().parse::<i64>().ok()?.into()),
            Self::Number { whole: false } => {
                serde_json::Number::from_f64(one()?.trim().parse().ok()?).map(Value::Number)
            }
            Self::YesNo => match one()? {
                "yes" => Some(true.into()),
                "no" => Some(false.into()),
                _ => None,
            },
            Self::One(choices) => chosen(choices, one()?),
            Self::Some(choices) => {
                let picked: Option<Vec<Value>> = values.iter().map(|label| chosen(choices, label)).collect();
                picked.map(Value::Array)
            }
        }
    }
}

fn choices(property: &Value) -> Option<Vec<(String, Value)>> {
    if let Some(list) = property.get("enum").and_then(Value::as_array) {
        let named = |value: &Value| Some((value.as_str()?.to_owned(), value.clone()));
        return list.iter().map(named).collect();
    }
    let list = property
        .get("oneOf")
        .or_else(|| property.get("anyOf"))?
        .as_array()?;
    let titled = |choice: &Value| {
        let value = choice.get("const")?;
        let title = choice
            .get("title")
            .and_then(Value::as_str)
            .or_else(|| value.as_str())?;
        Some((title.to_owned(), value.clone()))
    };
    list.iter().map(titled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(labels: &[&str], text: Option<&str>) -> QuestionAnswer {
        QuestionAnswer {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            text: text.map(str::to_owned),
        }
    }

    fn order() -> Form {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "title": "Your name" },
            "count": { "type": "integer" },
            "sure": { "type": "boolean" },
            "colours": { "type": "array", "items": { "anyOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] } },
        } });
        Form::read("shop", "Order", &schema.to_string()).unwrap()
    }

    /// Where the fields are; a JSON object has no order of its own.
    fn filled(form: &Form, given: &[(&str, QuestionAnswer)]) -> Result<Map<String, Value>, Unfit> {
        let answers = form.fields.iter().map(|field| {
            let given = given.iter().find(|(name, _)| *name == field.name);
            given.map_or_else(|| answer(&[], None), |(_, answer)| answer.clone())
        });
        form.fill(&answers.collect::<Vec<_>>())
    }

    #[test]
    fn every_kind_of_field_is_asked_and_filled_in() {
        let form = order();
        assert!(
            form.questions()
                .iter()
                .any(|one| one.question == "shop: Order\nYour name")
        );
        let content = filled(
            &form,
            &[
                ("name", answer(&[], Some("Ann"))),
                ("count", answer(&[], Some(" 3 "))),
                ("sure", answer(&["yes"], None)),
                ("colours", answer(&["Red", "Green"], None)),
            ],
        );
        assert_eq!(
            Value::Object(content.unwrap()),
            json!({ "name": "Ann", "count": 3, "sure": true, "colours": ["r", "g"] })
        );
    }

    #[test]
    fn what_does_not_fit_is_asked_again_with_the_reason_and_never_declined() {
        let form = order();
        let complaints = |given: &[(&str, QuestionAnswer)]| {
            let again = form.again(filled(&form, given).unwrap_err());
            let asked = again.again(filled(&again, given).unwrap_err()).questions();
            let complaints = asked.iter().filter_map(|one| one.question.split_once('('));
            complaints.map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
        };
        let name = || ("name", answer(&[], Some("Ann")));
        assert_eq!(
            complaints(&[name(), ("count", answer(&[], Some("about 3")))]),
            ["Your last answer does not fit: it must be a whole number.)"]
        );
        assert_eq!(
            complaints(&[name(), ("sure", answer(&[], Some("perhaps")))]),
            ["Your last answer does not fit: it must be yes or no.)"]
        );
        assert_eq!(
            complaints(&[("count", answer(&[], Some("3")))]),
            ["Your last answer does not fit: it must be filled in.)"]
        );
    }

    #[test]
    fn what_cannot_be_a_question_is_none_and_says_why() {
        let many: Map<String, Value> = (0..=FIELDS)
            .map(|number| (number.to_string(), json!({ "type": "string" })))
            .collect();
        for (schema, expected) in [
            (json!({ "properties": {} }), NoForm::Fields { count: 0 }),
            (
                json!({ "properties": many }),
                NoForm::Fields { count: FIELDS + 1 },
            ),
            (
                json!({ "properties": { "a": { "type": "object" } } }),
                NoForm::Kind {
                    field: "a".to_owned(),
                },
            ),
            (
                json!({ "properties": { "a": { "type": "array", "items": { "type": "number" } } } }),
                NoForm::Kind {
                    field: "a".to_owned(),
                },
            ),
            (json!([]), NoForm::Unreadable),
        ] {
            let read = Form::read("s", "m", &schema.to_string());
            assert_eq!(read.map(|form| form.fields.len()), Err(expected), "{schema}");
        }
    }
}
