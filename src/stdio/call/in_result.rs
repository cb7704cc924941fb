//! A question of a Modern dependency for a Legacy client that shows no forms: it is told in the result, and the
//! answer comes with a continuation.
//!
//! The call waits as data until `pml_continue` brings what a person said; then it is sent again with it, once.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Calls;
use super::open_call::{OpenCall, token_of};
use super::parked::ParkedMatch;
use super::progress::ProgressReport;
use super::state::{CallState, Open, Relayed};
use crate::protocol::continuation::{Continuation, Decision};
use crate::protocol::own_tool::CONTINUE;
use crate::protocol::{Object, Shown};
use crate::proxy::Refusal;
use crate::stdio::client::answer::{error_result, own_result};
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::era::Era;
use crate::stdio::present;
use crate::stdio::translation::to_server::Input;

/// What a person said, by the dependency's names; else why it cannot be used.
type Said = Result<Map<String, Value>, String>;

/// One question: the dependency's name for it, and its form.
pub(crate) type NamedQuestion = (String, Value);

impl OpenCall {
    /// Tells the questions of the dependency in place of its result.
    pub(super) fn relay(self: &Arc<Self>, open: &Open, asked: Vec<NamedQuestion>, state: Option<String>) {
        *self.lock() = CallState::Relayed(Relayed {
            keys: asked.iter().map(|(key, _)| key.clone()).collect(),
            state,
            rounds: open.rounds,
        });
        let id = self.calls.park(Arc::clone(self));
        let dependency = self.route.tool.dependency();
        let example: Map<String, Value> = asked.iter().map(|(key, _)| (key.clone(), json!({}))).collect();
        let call = json!({ "workflow_id": id, "approved": true, "input": example });
        let mut content = Vec::new();
        for (key, form) in &asked {
            let message = form.get("message").and_then(Value::as_str).unwrap_or_default();
            let text = format!(
                "`{dependency}` asks ({}): {}",
                Shown::line(key),
                Shown::block(message)
            );
            content.push(json!({ "type": "text", "text": text }));
        }
        let instructions = format!(
            "Ask the person; do not answer for them. Then call `{CONTINUE}` with {call}, each question filled in as its \
             `requestedSchema` says. If they refuse, send \"approved\":false and no input."
        );
        content.push(json!({ "type": "text", "text": instructions }));
        let questions: Map<String, Value> = asked.into_iter().collect();
        let result = json!({
            "content": content,
            "structuredContent": {
                "input_required": true,
                "workflow_id": id,
                "questions": questions,
                "instructions": instructions,
            },
        });
        let expected = self.expected_output();
        let answer = present::in_place_of_output(result, expected, self.request.era);
        self.answer(&open.under_way, answer);
    }

    /// Reads what a person said to the questions that were told; `None` where none were.
    fn said(&self, continuation: &Continuation) -> Option<Said> {
        match &*self.lock() {
            CallState::Relayed(relayed) => Some(responses(&relayed.keys, continuation)),
            _ => None,
        }
    }

    /// Sends the call again with what a person said.
    fn relayed(self: &Arc<Self>, under_way: UnderWay, carrier: &Object<'_>, responses: Map<String, Value>) {
        let CallState::Relayed(relayed) = self.end() else {
            return self.answer(&under_way, self.refused(&Refusal::Expired));
        };
        let open = Open {
            under_way,
            token: token_of(carrier),
            report: ProgressReport::default(),
            downstream: 0,
            rounds: relayed.rounds,
        };
        let input = Input {
            responses: Some(Value::Object(responses).to_string()),
            state: relayed.state,
        };
        self.send_again(open, input);
    }
}

fn responses(keys: &[String], continuation: &Continuation) -> Said {
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

impl Calls {
    /// Goes on with a call whose questions were told in a result; `Some` gives back what is no answer to one.
    pub(crate) fn relayed(&self, under_way: UnderWay, carrier: &Object<'_>) -> Option<UnderWay> {
        let Some(Ok(Some(continuation))) = carrier.value("arguments").map(Continuation::parse) else {
            return Some(under_way);
        };
        let Ok(id) = continuation.workflow_id.parse::<Uuid>() else {
            return Some(under_way);
        };
        let mut said = None;
        let found = self.0.parked.take(id, Instant::now(), |call| {
            said = call.said(&continuation);
            matches!(said, Some(Ok(_)))
        });
        match (found, said) {
            (ParkedMatch::Wanted(call), Some(Ok(responses))) => call.relayed(under_way, carrier, responses),
            (_, Some(Err(reason))) => {
                let refusal = error_result(&reason, None);
                self.0
                    .link
                    .respond(&under_way.id, own_result(refusal, Era::Legacy));
            }
            _ => return Some(under_way),
        }
        None
    }
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
