//! A form of a server as questions to a person, and their answers as its content. Pure.

use serde_json::{Map, Value, json};

use crate::protocol::Shown;
use crate::protocol::question::{Question, QuestionAnswer};

/// The most fields that are put to a person at once; a server that wants more gets no answer.
const FIELDS: usize = 4;

/// A form of a server.
#[derive(Debug, Clone)]
pub(super) struct Form {
    /// The questions, one for each field.
    pub(super) questions: Vec<Question>,
    fields: Vec<Field>,
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    kind: FieldKind,
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
    /// Reads the schema of a form; `None` where a field cannot be put to a person as a question.
    pub(super) fn read(server: &str, message: &str, schema: &str) -> Option<Self> {
        let schema: Value = serde_json::from_str(schema).ok()?;
        let properties = schema.get("properties")?.as_object()?;
        if properties.is_empty() || properties.len() > FIELDS {
            return None;
        }
        let mut form = Self {
            questions: Vec::new(),
            fields: Vec::new(),
        };
        for (name, property) in properties {
            let kind = FieldKind::of(property)?;
            let title = property.get("title").and_then(Value::as_str).unwrap_or(name);
            let about = property.get("description").and_then(Value::as_str);
            let about = about.map_or_else(String::new, |about| format!(" ({about})"));
            let question = format!("{}: {message}\n{title}{about}", Shown::line(server));
            let labels = kind.labels();
            let options: Vec<Value> = labels.iter().map(|label| json!({ "label": label })).collect();
            let mut asked = json!({ "question": question });
            if !options.is_empty() {
                asked["options"] = options.into();
                asked["multiSelect"] = matches!(kind, FieldKind::Some(_)).into();
            }
            form.questions.push(Question::single(asked.as_object()?).ok()?);
            form.fields.push(Field {
                name: name.clone(),
                kind,
            });
        }
        Some(form)
    }

    /// Fills the form in; `None` where an answer does not fit its field.
    pub(super) fn fill(&self, answers: &[QuestionAnswer]) -> Option<Map<String, Value>> {
        let mut content = Map::new();
        for (field, answer) in self.fields.iter().zip(answers) {
            if !answer.is_unanswered() {
                content.insert(field.name.clone(), field.kind.value(answer)?);
            }
        }
        Some(content)
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

    #[test]
    fn every_kind_of_field_is_asked_and_filled_in() {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string", "title": "Your name" },
            "count": { "type": "integer" },
            "sure": { "type": "boolean" },
            "colours": { "type": "array", "items": { "anyOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] } },
        } });
        let form = Form::read("shop", "Order", &schema.to_string()).unwrap();
        assert_eq!(form.questions[0].question, "shop: Order\nYour name");
        let answers = [
            answer(&[], Some("Ann")),
            answer(&[], Some(" 3 ")),
            answer(&["yes"], None),
            answer(&["Red", "Green"], None),
        ];
        let content = form.fill(&answers).unwrap();
        assert_eq!(
            Value::Object(content),
            json!({ "name": "Ann", "count": 3, "sure": true, "colours": ["r", "g"] })
        );
        assert_eq!(form.fill(&[answer(&[], None), answer(&[], Some("many"))]), None);
    }

    #[test]
    fn what_cannot_be_a_question_is_none() {
        for schema in [
            json!({ "properties": {} }),
            json!({ "properties": { "a": { "type": "object" } } }),
            json!({ "properties": { "a": { "type": "array", "items": { "type": "number" } } } }),
            json!([]),
        ] {
            assert!(Form::read("s", "m", &schema.to_string()).is_none(), "{schema}");
        }
    }
}
