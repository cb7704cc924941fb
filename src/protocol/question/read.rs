//! The reader of questions that models and clients write: field by field, with a rule for each.

use serde_json::{Map, Value};

use super::{Choice, Question, Selection};
use crate::protocol::nearest::distance;
use crate::protocol::{Shown, continuation};

/// What fits on a screen; more than that is a document, not a question.
const TEXT_LIMIT: usize = 4_000;
/// A choice longer than a line or two is not one.
const LABEL_LIMIT: usize = 200;
/// Room to explain a choice.
const DESCRIPTION_LIMIT: usize = 1_000;
/// The greatest number of choices: more than a person reads.
const OPTION_LIMIT: usize = 20;
/// A header of `ask_user`; clients cut longer ones.
const HEADER_LIMIT: usize = 40;
/// A header of `ask_user_questions`.
const SHORT_HEADER_LIMIT: usize = 12;

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
    /// An answer is a number that no option has.
    #[error("`{field}` has no option {number}; its options are 1 to {last}")]
    NoSuchNumber {
        /// The field.
        field: String,
        /// The number, escaped.
        number: String,
        /// The number of the last option.
        last: usize,
    },
    /// An answer says nothing.
    #[error("`{field}` is empty; choose an option or write something")]
    Empty {
        /// The field.
        field: String,
    },
}

impl QuestionError {
    /// Names the field that is complained about.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::None | Self::TooMany { .. } => "questions",
            Self::Missing { field }
            | Self::Type { field, .. }
            | Self::Unknown { field, .. }
            | Self::Length { field, .. }
            | Self::Count { field, .. }
            | Self::Repeated { field, .. }
            | Self::OnlyOne { field, .. }
            | Self::NotAnOption { field, .. }
            | Self::NoSuchNumber { field, .. }
            | Self::Empty { field } => field,
        }
    }
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

    /// Reads the arguments of `ask_user_questions`: a list, or one question as `ask_user` takes it.
    ///
    /// Some clients hide a tool named `ask_user` where they run without a terminal; the short form stays within reach.
    pub fn several(arguments: &Map<String, Value>) -> Result<Vec<Self>, QuestionError> {
        // Models that fill in every member of a schema send `null` for those of the other form.
        let given = arguments.iter().filter(|(_, value)| !value.is_null());
        let given: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        if given.contains_key("question") && !given.contains_key("questions") {
            return Self::single(&given).map(|question| vec![question]);
        }
        let fields = Fields {
            members: &given,
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
        found: continuation::describe(value),
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
            found: continuation::describe(found),
        }
    }

    fn only(&self, known: &[&str]) -> Result<(), QuestionError> {
        let Some(member) = self.members.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(());
        };
        let nearest = known
            .iter()
            .filter_map(|name| Some((distance(name, member)?, *name)))
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
