//! Which of the two tools asks a person: they differ in what they take and in how they report an answer.

use serde_json::{Map, Value};

use crate::protocol::own_tool;
use crate::protocol::question::{Question, QuestionError};

/// A tool by which a model asks a person.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionTool {
    /// `ask_user`
    One,
    /// `ask_user_questions`
    Several,
}

impl QuestionTool {
    /// Finds the tool by its name.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            own_tool::ASK_USER => Some(Self::One),
            own_tool::ASK_USER_QUESTIONS => Some(Self::Several),
            _ => None,
        }
    }

    /// Returns the tool's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => own_tool::ASK_USER,
            Self::Several => own_tool::ASK_USER_QUESTIONS,
        }
    }

    /// Reads the questions in the arguments of a call.
    pub(super) fn read(self, arguments: &Map<String, Value>) -> Result<Vec<Question>, QuestionError> {
        match self {
            Self::One => Question::single(arguments).map(|question| vec![question]),
            Self::Several => Question::several(arguments),
        }
    }
}
