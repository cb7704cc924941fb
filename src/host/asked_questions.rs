//! Reads what the tools of an agent ask a person. Pure.

use serde_json::{Map, Value};

use super::claude::ASKING_TOOLS;
use crate::protocol::own_tool::{APPROVAL_PROMPT, ASK_USER, ASK_USER_QUESTIONS};
use crate::protocol::question::Question;

/// What a tool asks.
pub(super) struct ReadQuestions {
    /// The tool under whose name they are kept, so that the very call finds its answer.
    pub(super) asking: &'static str,
    /// The questions.
    pub(super) questions: Vec<Question>,
}

/// Reads what a tool asks; `None` where the call asks nothing new.
pub(super) fn read_questions(tool: &str, input: &str) -> Result<Option<ReadQuestions>, String> {
    let mut input: Map<String, Value> =
        serde_json::from_str(input).map_err(|_| "the arguments must be an object".to_owned())?;
    let listed = |input: &Map<String, Value>| match input.get("questions") {
        Some(Value::Array(list)) => Question::from_list("questions", list).map_err(|error| error.to_string()),
        _ => Err("`questions` must be a list".to_owned()),
    };
    if tool == ASKING_TOOLS[0] {
        let questions = listed(&input)?;
        return Ok(Some(ReadQuestions {
            asking: APPROVAL_PROMPT,
            questions,
        }));
    }
    if input
        .remove(crate::protocol::continuation::MEMBER)
        .is_some_and(|value| !value.is_null())
    {
        return Ok(None);
    }
    let (asking, read) = if tool == ASKING_TOOLS[2] {
        (ASK_USER_QUESTIONS, Question::several(&input))
    } else {
        (ASK_USER, Question::single(&input).map(|question| vec![question]))
    };
    // What cannot be read is told by the tool, in its own words.
    Ok(read.ok().map(|questions| ReadQuestions { asking, questions }))
}
