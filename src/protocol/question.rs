//! Questions to a person and their answers: shapes, limits, and the words in which an answer reaches a model.
//!
//! A question is written by a model and an answer by whoever holds the pen, so both are checked field by field,
//! and every complaint names the field, what stands there and the rule.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Shown;

mod typed;

/// What fits on a screen; more than that is a document, not a question.
const TEXT_LIMIT: usize = 4_000;
/// A choice longer than a line or two is not one.
const LABEL_LIMIT: usize = 200;
/// Room to explain a choice.
const DESCRIPTION_LIMIT: usize = 1_000;
/// More choices than anybody reads.
const OPTION_LIMIT: usize = 20;
/// A header of `ask_user`; clients cut longer ones.
const HEADER_LIMIT: usize = 40;
/// A header of `ask_user_questions`.
const SHORT_HEADER_LIMIT: usize = 12;
/// A free answer is a few pages at most.
const ANSWER_LIMIT: usize = 20_000;

/// One question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// What is asked.
    pub question: String,
    /// A word or two that say what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The choices; none means a free answer. Free text is possible beside them, always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// How many choices may be taken.
    #[serde(default)]
    pub selection: Selection,
}

/// One choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What is chosen.
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// How many choices may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// One.
    #[default]
    One,
    /// Any number.
    Several,
}

/// The answer to one question: choices of the question, and what the person wrote besides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Given {
    /// The labels that were chosen.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What the person wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Says which field is wrong: field, what stands there, rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// Nothing is asked.
    #[error("At least one question is required")]
    None,
    /// Too much is asked at once.
    #[error("`questions` has {found} entries; at most 4 are allowed")]
    TooMany {
        /// How many.
        found: usize,
    },
    /// A field that must be there is not.
    #[error("`{field}` is missing")]
    Missing {
        /// The field.
        field: String,
    },
    /// A field has the wrong type.
    #[error("`{field}` must be {expected}, not {found}")]
    Type {
        /// The field.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A field is not known.
    #[error("`{field}` is not a field here{}", .nearest.as_deref().map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default())]
    Unknown {
        /// The field, escaped.
        field: String,
        /// The nearest field that is.
        nearest: Option<String>,
    },
    /// A text is empty or too long.
    #[error("`{field}` has {found} characters; {least} to {most} are allowed")]
    Length {
        /// The field.
        field: String,
        /// Its length.
        found: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// A list is too short or too long.
    #[error("`{field}` has {found} entries; {least} to {most} are allowed")]
    Count {
        /// The field.
        field: String,
        /// Its length.
        found: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Two choices cannot be told apart.
    #[error("`{field}` repeats the label `{label}`; labels must differ")]
    Repeated {
        /// The field.
        field: String,
        /// The label, escaped.
        label: String,
    },
    /// An answer takes more than it may.
    #[error("`{field}` takes {found} choices; only one is allowed")]
    OnlyOne {
        /// The field.
        field: String,
        /// How many were taken.
        found: usize,
    },
    /// An answer names what cannot be chosen.
    #[error("`{label}` is not an option of `{field}`{}", .nearest.as_deref().map_or_else(|| ", which has none".to_owned(), |nearest| format!("; did you mean `{nearest}`?")))]
    NotAnOption {
        /// The field.
        field: String,
        /// What was named, escaped.
        label: String,
        /// The nearest option, escaped.
        nearest: Option<String>,
    },
    /// An answer says nothing.
    #[error("`{field}` is empty; choose an option or write something")]
    Empty {
        /// The field.
        field: String,
    },
}

impl Question {
    /// Reads the arguments of `ask_user`.
    pub fn single(arguments: &Map<String, Value>) -> Result<Self, QuestionError> {
        let fields = Fields {
            members: arguments,
            path: String::new(),
        };
        fields.only(&["question", "options", "multiSelect", "header"])?;
        let options = match fields.list("options")? {
            None => Vec::new(),
            Some(list) => choices(&fields.name("options"), list, 0..=OPTION_LIMIT, Described::Maybe)?,
        };
        Ok(Self {
            question: fields.text("question", 1, TEXT_LIMIT)?,
            header: fields.optional_text("header", 1, HEADER_LIMIT)?,
            options,
            selection: fields.selection("multiSelect")?.unwrap_or_default(),
        })
    }

    /// Reads the arguments of `ask_user_questions`.
    pub fn several(arguments: &Map<String, Value>) -> Result<Vec<Self>, QuestionError> {
        let fields = Fields {
            members: arguments,
            path: String::new(),
        };
        fields.only(&["questions"])?;
        let list = fields.list("questions")?.ok_or(QuestionError::Missing {
            field: "questions".to_owned(),
        })?;
        Self::from_list("questions", list)
    }

    /// Reads a list of one to four questions as clients and models write them.
    pub fn from_list(path: &str, list: &[Value]) -> Result<Vec<Self>, QuestionError> {
        match list.len() {
            0 => return Err(QuestionError::None),
            1..=4 => {}
            found => return Err(QuestionError::TooMany { found }),
        }
        let questions: Result<Vec<Self>, _> = list
            .iter()
            .enumerate()
            .map(|(index, value)| Self::of_several(format!("{path}[{index}]"), value))
            .collect();
        let questions = questions?;
        for (index, question) in questions.iter().enumerate() {
            // Answers are told apart by the question's text.
            if questions[..index]
                .iter()
                .any(|other| other.question == question.question)
            {
                let label = Shown::line(&question.question).to_string();
                return Err(QuestionError::Repeated {
                    field: path.to_owned(),
                    label,
                });
            }
        }
        Ok(questions)
    }

    fn of_several(path: String, value: &Value) -> Result<Self, QuestionError> {
        let members = object(&path, value)?;
        let fields = Fields { members, path };
        // `preview` is what Claude Code adds to its own questions; it is not shown here.
        fields.only(&["question", "header", "options", "multiSelect"])?;
        let list = fields.list("options")?.ok_or_else(|| fields.missing("options"))?;
        Ok(Self {
            question: fields.text("question", 1, TEXT_LIMIT)?,
            header: Some(fields.text("header", 1, SHORT_HEADER_LIMIT)?),
            options: choices(&fields.name("options"), list, 2..=4, Described::Always)?,
            selection: fields
                .selection("multiSelect")?
                .ok_or_else(|| fields.missing("multiSelect"))?,
        })
    }

    /// Checks an answer: what is not among the options is free text, which is always possible.
    pub fn check(
        &self,
        field: &str,
        labels: Vec<String>,
        text: Option<String>,
    ) -> Result<Given, QuestionError> {
        let field = field.to_owned();
        let text = text
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty());
        let (mut known, unknown): (Vec<_>, Vec<_>) = labels
            .into_iter()
            .partition(|label| self.options.iter().any(|option| option.label == *label));
        let mut unique = Vec::with_capacity(known.len());
        known.retain(|label| {
            !unique.contains(label) && {
                unique.push(label.clone());
                true
            }
        });
        let written: Vec<String> = unknown
            .into_iter()
            .filter(|label| !label.trim().is_empty())
            .chain(text)
            .collect();
        let text = (!written.is_empty()).then(|| written.join(", "));
        if let Some(found) = text
            .as_ref()
            .map(|text| text.chars().count())
            .filter(|found| *found > ANSWER_LIMIT)
        {
            return Err(QuestionError::Length {
                field,
                found,
                least: 1,
                most: ANSWER_LIMIT,
            });
        }
        match (known.len() + usize::from(text.is_some()), self.selection) {
            (0, _) => Err(QuestionError::Empty { field }),
            (found, Selection::One) if found > 1 => Err(QuestionError::OnlyOne { field, found }),
            _ => Ok(Given { labels: known, text }),
        }
    }
}

impl Given {
    /// Returns the choices and the free text as one list.
    #[must_use]
    pub fn values(&self) -> Vec<&str> {
        self.labels
            .iter()
            .map(String::as_str)
            .chain(self.text.as_deref())
            .collect()
    }

    /// Returns the answer in the words a model is told.
    #[must_use]
    pub fn told(&self) -> String {
        match (self.labels.is_empty(), &self.text) {
            (true, Some(text)) => format!("User answered: {text}"),
            _ => format!("User selected: {}", self.values().join(", ")),
        }
    }
}

/// Whether choices must be explained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Described {
    Always,
    Maybe,
}

fn choices(
    path: &str,
    list: &[Value],
    count: std::ops::RangeInclusive<usize>,
    described: Described,
) -> Result<Vec<Choice>, QuestionError> {
    if !count.contains(&list.len()) {
        let (least, most) = count.into_inner();
        return Err(QuestionError::Count {
            field: path.to_owned(),
            found: list.len(),
            least,
            most,
        });
    }
    let mut choices: Vec<Choice> = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let path_here = format!("{path}[{index}]");
        let members = object(&path_here, value)?;
        let fields = Fields {
            members,
            path: path_here,
        };
        fields.only(&["label", "description", "preview"])?;
        let label = fields.text("label", 1, LABEL_LIMIT)?;
        let description = match described {
            Described::Always => Some(fields.text("description", 0, DESCRIPTION_LIMIT)?),
            Described::Maybe => fields.optional_text("description", 0, DESCRIPTION_LIMIT)?,
        };
        if choices.iter().any(|other| other.label == label) {
            let label = Shown::line(&label).to_string();
            return Err(QuestionError::Repeated {
                field: path.to_owned(),
                label,
            });
        }
        choices.push(Choice {
            label,
            description: description.filter(|text| !text.is_empty()),
        });
    }
    Ok(choices)
}

fn object<'v>(field: &str, value: &'v Value) -> Result<&'v Map<String, Value>, QuestionError> {
    value.as_object().ok_or_else(|| QuestionError::Type {
        field: field.to_owned(),
        expected: "an object",
        found: super::continuation::describe(value),
    })
}

/// The members of one object and where it stands.
struct Fields<'v> {
    members: &'v Map<String, Value>,
    path: String,
}

impl<'v> Fields<'v> {
    fn name(&self, member: &str) -> String {
        if self.path.is_empty() {
            member.to_owned()
        } else {
            format!("{}.{member}", self.path)
        }
    }

    fn missing(&self, member: &str) -> QuestionError {
        QuestionError::Missing {
            field: self.name(member),
        }
    }

    fn wrong(&self, member: &str, expected: &'static str, found: &Value) -> QuestionError {
        QuestionError::Type {
            field: self.name(member),
            expected,
            found: super::continuation::describe(found),
        }
    }

    fn only(&self, known: &[&str]) -> Result<(), QuestionError> {
        let Some(member) = self.members.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(());
        };
        let nearest = known
            .iter()
            .map(|name| (strsim::damerau_levenshtein(name, member), *name))
            .filter(|(distance, _)| *distance <= 3)
            .min()
            .map(|(_, name)| name.to_owned());
        Err(QuestionError::Unknown {
            field: self.name(&Shown::line(member).to_string()),
            nearest,
        })
    }

    fn present(&self, member: &str) -> Option<&'v Value> {
        self.members.get(member).filter(|value| !value.is_null())
    }

    fn text(&self, member: &str, least: usize, most: usize) -> Result<String, QuestionError> {
        self.optional_text(member, least, most)?
            .ok_or_else(|| self.missing(member))
    }

    fn optional_text(
        &self,
        member: &str,
        least: usize,
        most: usize,
    ) -> Result<Option<String>, QuestionError> {
        let text = match self.present(member) {
            None => return Ok(None),
            Some(Value::String(text)) => text,
            Some(other) => return Err(self.wrong(member, "a string", other)),
        };
        let found = text.chars().count();
        // Only blanks is nothing to read.
        let nothing = least > 0 && text.trim().is_empty();
        if nothing || found < least || found > most {
            let found = if nothing { 0 } else { found };
            return Err(QuestionError::Length {
                field: self.name(member),
                found,
                least,
                most,
            });
        }
        Ok(Some(text.clone()))
    }

    fn list(&self, member: &str) -> Result<Option<&'v [Value]>, QuestionError> {
        match self.present(member) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(self.wrong(member, "a list", other)),
        }
    }

    fn selection(&self, member: &str) -> Result<Option<Selection>, QuestionError> {
        match self.present(member) {
            None => Ok(None),
            Some(Value::Bool(true)) => Ok(Some(Selection::Several)),
            Some(Value::Bool(false)) => Ok(Some(Selection::One)),
            Some(other) => Err(self.wrong(member, "true or false", other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn single(value: Value) -> Result<Question, String> {
        Question::single(value.as_object().unwrap()).map_err(|error| error.to_string())
    }

    fn several(value: Value) -> Result<Vec<Question>, String> {
        Question::several(value.as_object().unwrap()).map_err(|error| error.to_string())
    }

    fn option(label: &str) -> Value {
        json!({ "label": label, "description": "d" })
    }

    #[test]
    fn a_question_is_read_with_everything_it_may_have() {
        let question = single(json!({
            "question": "Which?", "header": "Way", "multiSelect": true,
            "options": [{ "label": "A", "description": "first" }, { "label": "B" }],
        }))
        .unwrap();
        assert_eq!(
            question,
            Question {
                question: "Which?".to_owned(),
                header: Some("Way".to_owned()),
                options: vec![
                    Choice {
                        label: "A".to_owned(),
                        description: Some("first".to_owned())
                    },
                    Choice {
                        label: "B".to_owned(),
                        description: None
                    },
                ],
                selection: Selection::Several,
            }
        );
        assert!(single(json!({ "question": "Free?" })).unwrap().options.is_empty());
    }

    #[test]
    fn complaints_name_field_value_and_rule() {
        for (value, reason) in [
            (json!({}), "`question` is missing"),
            (
                json!({ "question": 7 }),
                "`question` must be a string, not the number 7",
            ),
            (
                json!({ "question": "  " }),
                "`question` has 0 characters; 1 to 4000 are allowed",
            ),
            (
                json!({ "question": "x".repeat(100_000) }),
                "`question` has 100000 characters; 1 to 4000 are allowed",
            ),
            (
                json!({ "question": "?", "options": "A" }),
                "`options` must be a list, not the string \"A\"",
            ),
            (
                json!({ "question": "?", "options": [{}] }),
                "`options[0].label` is missing",
            ),
            (
                json!({ "question": "?", "options": ["A"] }),
                "`options[0]` must be an object, not the string \"A\"",
            ),
            (
                json!({ "question": "?", "options": vec![option("A"); 1000] }),
                "`options` has 1000 entries; 0 to 20 are allowed",
            ),
            (
                json!({ "question": "?", "options": [option("A"), option("A")] }),
                "`options` repeats the label `A`; labels must differ",
            ),
            (
                json!({ "question": "?", "multiselect": true }),
                "`multiselect` is not a field here; did you mean `multiSelect`?",
            ),
            (
                json!({ "question": "?", "multiSelect": "yes" }),
                "`multiSelect` must be true or false, not the string \"yes\"",
            ),
        ] {
            assert_eq!(single(value).unwrap_err(), reason);
        }
    }

    #[test]
    fn several_questions_have_stricter_rules() {
        let question = |text: &str| json!({ "question": text, "header": "Way", "multiSelect": false, "options": [option("A"), option("B")] });
        assert_eq!(
            several(json!({ "questions": [question("a"), question("b")] }))
                .unwrap()
                .len(),
            2
        );
        for (value, reason) in [
            (json!({ "questions": [] }), "At least one question is required"),
            (
                json!({ "questions": vec![question("a"); 5] }),
                "`questions` has 5 entries; at most 4 are allowed",
            ),
            (
                json!({ "questions": [question("a"), question("a")] }),
                "`questions` repeats the label `a`; labels must differ",
            ),
            (
                json!({ "questions": [{ "question": "a", "header": "much too long", "multiSelect": false, "options": [option("A"), option("B")] }] }),
                "`questions[0].header` has 13 characters; 1 to 12 are allowed",
            ),
            (
                json!({ "questions": [{ "question": "a", "header": "h", "multiSelect": false, "options": [option("A")] }] }),
                "`questions[0].options` has 1 entries; 2 to 4 are allowed",
            ),
            (
                json!({ "questions": [{ "question": "a", "header": "h", "multiSelect": false, "options": [option("A"), { "label": "B" }] }] }),
                "`questions[0].options[1].description` is missing",
            ),
        ] {
            assert_eq!(several(value).unwrap_err(), reason);
        }
    }

    #[test]
    fn an_answer_is_choices_and_free_text() {
        let one = single(json!({ "question": "?", "options": [option("A"), option("B")] })).unwrap();
        let check = |question: &Question, labels: &[&str], text: Option<&str>| {
            question
                .check(
                    "answer",
                    labels.iter().map(|label| (*label).to_owned()).collect(),
                    text.map(str::to_owned),
                )
                .map(|given| given.told())
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(&one, &["A"], None), Ok("User selected: A".to_owned()));
        assert_eq!(check(&one, &["A", "A"], None), Ok("User selected: A".to_owned()));
        assert_eq!(
            check(&one, &[], Some(" mine ")),
            Ok("User answered: mine".to_owned())
        );
        assert_eq!(
            check(&one, &["C"], None),
            Ok("User answered: C".to_owned()),
            "not among the options: free text"
        );
        assert_eq!(
            check(&one, &["A", "B"], None),
            Err("`answer` takes 2 choices; only one is allowed".to_owned())
        );
        assert_eq!(
            check(&one, &[], Some(" ")),
            Err("`answer` is empty; choose an option or write something".to_owned())
        );
        let several = Question {
            selection: Selection::Several,
            ..one
        };
        assert_eq!(
            check(&several, &["A", "B"], Some("and C")),
            Ok("User selected: A, B, and C".to_owned())
        );
    }
}
