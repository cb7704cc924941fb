//! Questions to a person and their answers: shapes, limits, and the words in which an answer reaches a model.
//!
//! A question is written by a model and an answer by a client or a person, so both are checked field by field,
//! and every complaint names the field, what stands there and the rule.

use serde::{Deserialize, Serialize};

mod read;
mod typed_answer;

pub use read::QuestionError;

/// Stands for people where an answer would, if a question was left unanswered.
pub const LEFT_UNANSWERED: &str = "(left unanswered)";

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
///
/// Neither of both means that they answered other questions and left this one unanswered, on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// The labels that were chosen.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What the person wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Question {
    /// Checks an answer: what is not among the options is free text, which is always possible.
    pub fn check(
        &self,
        field: &str,
        labels: Vec<String>,
        text: Option<String>,
    ) -> Result<QuestionAnswer, QuestionError> {
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
            _ => Ok(QuestionAnswer { labels: known, text }),
        }
    }
}

impl QuestionAnswer {
    /// Stands for a question that was left unanswered.
    #[must_use]
    pub fn unanswered() -> Self {
        Self::default()
    }

    /// Tells whether the question was left unanswered.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.labels.is_empty() && self.text.is_none()
    }

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
    pub fn summary(&self) -> String {
        match (self.labels.is_empty(), &self.text) {
            (true, Some(text)) => format!("User answered: {text}"),
            (true, None) => "User left this question unanswered.".to_owned(),
            (false, _) => format!("User selected: {}", self.values().join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use serde_json::json;

    fn single(value: &Value) -> Result<Question, String> {
        Question::single(value.as_object().unwrap()).map_err(|error| error.to_string())
    }

    fn several(value: &Value) -> Result<Vec<Question>, String> {
        Question::several(value.as_object().unwrap()).map_err(|error| error.to_string())
    }

    fn option(label: &str) -> Value {
        json!({ "label": label, "description": "d" })
    }

    #[test]
    fn a_question_is_read_with_everything_it_may_have() {
        let question = single(&json!({
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
        assert!(
            single(&json!({ "question": "Free?" }))
                .unwrap()
                .options
                .is_empty()
        );
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
            assert_eq!(single(&value).unwrap_err(), reason);
        }
    }

    #[test]
    fn one_question_may_be_given_in_the_short_form() {
        for short in [
            json!({ "question": "a" }),
            json!({ "question": "a", "options": [{ "label": "A" }], "header": "Longer than twelve" }),
            json!({ "question": "a", "questions": null, "multiSelect": true, "header": null }),
        ] {
            let mut alone = short.clone();
            alone.as_object_mut().unwrap().remove("questions");
            assert_eq!(several(&short).unwrap(), [single(&alone).unwrap()]);
        }
        for (value, reason) in [
            (json!({}), "`questions` is missing"),
            (
                json!({ "question": "a", "questions": [] }),
                "`question` is not a field here; did you mean `questions`?",
            ),
            (
                json!({ "question": "a", "option": [] }),
                "`option` is not a field here; did you mean `options`?",
            ),
        ] {
            assert_eq!(several(&value).unwrap_err(), reason);
        }
    }

    #[test]
    fn several_questions_have_stricter_rules() {
        let question = |text: &str| json!({ "question": text, "header": "Way", "multiSelect": false, "options": [option("A"), option("B")] });
        assert_eq!(
            several(&json!({ "questions": [question("a"), question("b")] }))
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
            assert_eq!(several(&value).unwrap_err(), reason);
        }
    }

    #[test]
    fn an_answer_is_choices_and_free_text() {
        let one = single(&json!({ "question": "?", "options": [option("A"), option("B")] })).unwrap();
        let check = |question: &Question, labels: &[&str], text: Option<&str>| {
            question
                .check(
                    "answer",
                    labels.iter().map(|label| (*label).to_owned()).collect(),
                    text.map(str::to_owned),
                )
                .map(|given| given.summary())
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
