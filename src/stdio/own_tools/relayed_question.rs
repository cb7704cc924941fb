//! Questions that the host of this conversation shows: one after the other, for the host takes one at a time.

use serde_json::{Value, json};

use super::question_text::{answered, unanswered};
use super::question_tool::QuestionTool;
use crate::protocol::question::Question;
use crate::proxy::Proxy;
use crate::stdio::ask::heartbeat::{self, Awaited};
use crate::stdio::ask::ladder::Requester;

/// The road of an answer that the host brought, as a model is told it.
const ROAD: &str = "relay";

/// Puts each question to a person by way of the host; the first that has no answer ends the call.
pub(super) async fn ask(
    proxy: &Proxy,
    requester: &Requester,
    tool: QuestionTool,
    questions: &[Question],
) -> Value {
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let asking = proxy.relay_question(question);
        match heartbeat::kept_alive(requester.progress.as_ref(), Awaited::Host, asking).await {
            Ok(answer) => answers.push(answer),
            Err(error) => return unanswered(questions, &answers, &error),
        }
    }
    answered(tool, questions, &answers, &json!(ROAD))
}
