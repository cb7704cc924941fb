//! Questions of a Modern server for a Legacy client that shows no forms: told in the words of a result.
//!
//! The words are in `wording.rs`; what a person said comes with a continuation.

use serde_json::{Map, Value, json};

use super::server_question::ServerQuestion;
use crate::protocol::Shown;
use crate::protocol::continuation::{Continuation, Decision};

/// One question: the server's name for it, and its form.
pub(crate) type NamedQuestion = (String, Value);

/// What a person said, by the server's names; else why it cannot be used.
pub(crate) type InputResponses = Result<Map<String, Value>, String>;

/// Returns the forms that questions ask for; `None` where one of them asks for anything else.
pub(super) fn forms(questions: &[ServerQuestion<'_>]) -> Option<Vec<NamedQuestion>> {
    let form = |key: &str, question: &ServerQuestion<'_>| {
        let params: Value = serde_json::from_str(question.params()?).ok()?;
        let is_form =
            question.method() == "elicitation/create" && params.get("mode").is_none_or(|mode| mode == "form");
        is_form.then(|| (key.to_owned(), params))
    };
    let askable = |question| ServerQuestion::askable(question).map(|key| (key, question));
    let asked = questions.iter().filter_map(askable);
    asked.map(|(key, question)| form(key, question)).collect()
}

/// Reads what a continuation says to the questions with these names.
pub(crate) fn responses(keys: &[String], continuation: &Continuation) -> InputResponses {
    if continuation.decision == Some(Decision::Refuse) {
        let declined = json!({ "action": "decline" });
        return Ok(keys.iter().map(|key| (key.clone(), declined.clone())).collect());
    }
    let none = Map::new();
    let input = continuation.input.as_ref().unwrap_or(&none);
    keys.iter()
        .map(|key| match input.get(key) {
            Some(Value::Object(content)) => {
                Ok((key.clone(), json!({ "action": "accept", "content": content })))
            }
            _ => Err(format!(
                "`input.{}` must be an object with the answer",
                Shown::line(key)
            )),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Json;

    fn read(text: &str) -> Result<Map<String, Value>, String> {
        let continuation = Continuation::parse(Json::parse(text).unwrap()).unwrap().unwrap();
        responses(&["a".to_owned(), "b".to_owned()], &continuation)
    }

    #[test]
    fn every_question_is_answered_or_all_are_declined() {
        let accepted = read(r#"{"workflow_id":"x","approved":true,"input":{"a":{"n":1},"b":{}}}"#).unwrap();
        assert_eq!(
            Value::Object(accepted),
            json!({ "a": { "action": "accept", "content": { "n": 1 } }, "b": { "action": "accept", "content": {} } })
        );
        let declined = read(r#"{"workflow_id":"x","approved":false}"#).unwrap();
        assert_eq!(
            Value::Object(declined),
            json!({ "a": { "action": "decline" }, "b": { "action": "decline" } })
        );
        assert_eq!(
            read(r#"{"workflow_id":"x","approved":true,"input":{"a":{}}}"#),
            Err("`input.b` must be an object with the answer".to_owned())
        );
    }
}
