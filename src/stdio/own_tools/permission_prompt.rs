//! `approval_prompt`: the permission prompt of a client that runs without a terminal.
//!
//! Decided by the same rules as everything else; what they leave to a person waits for one. The reply is exactly one
//! text block of JSON: the client reads nothing else. Silence is reported as that, never as a refusal.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ask_user::record;
use crate::protocol::continuation::Scope;
use crate::protocol::own_tool::APPROVAL_PROMPT;
use crate::protocol::question::{Question, QuestionAnswer};
use crate::protocol::{DependencyName, Json, ToolName};
use crate::proxy::{
    Answer, Claim, ClientToolRuling, Progress, Proxy, QuestionStatus, Refusal, State, UseReach, Workflow,
    WorkflowId, now,
};
use crate::report;
use crate::stdio::ask::ladder::{Ladder, LadderReply, ModernForm, Requester, Resolution};
use crate::stdio::ask::subject::{PersonAsk, Subject};

/// The client's own tool that asks questions; it comes through the permission prompt.
const QUESTIONS: &str = "AskUserQuestion";

/// What a client is told where no person answered in time.
const UNANSWERED: &str =
    "No person answered in time, and none refused. Tell the person that it waits for them, then try again.";

/// What a model is told after a refusal, so that it does not ask for the same again.
const NOT_AGAIN: &str = "Do not try it again unless they ask for it.";

/// What the permission prompt comes to.
enum Prompted {
    /// What the client is told.
    Reply(Value),
    /// A form for its dialog.
    Form(ModernForm),
}

/// What the client asks permission for.
struct ToolUse {
    name: String,
    input: Map<String, Value>,
}

/// One call of the permission prompt.
pub(super) struct PermissionPrompt<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) ladder: &'a Ladder,
    pub(super) requester: &'a Requester,
}

impl PermissionPrompt<'_> {
    /// Answers the permission prompt of a client.
    pub(super) async fn run(&self, arguments: Option<Json<'_>>) -> Resolution {
        let prompted = match tool_use(arguments) {
            Err(reason) => Ok(Prompted::Reply(deny(&reason))),
            Ok(asked) if asked.name == QUESTIONS => self.questions(&asked).await,
            Ok(asked) => self.permission(&asked).await,
        };
        match prompted {
            Ok(Prompted::Form(form)) => Resolution::Form(form),
            Ok(Prompted::Reply(reply)) => own_result(&reply),
            Err(refused) => own_result(&deny(&report::render_hinted(&refused))),
        }
    }

    async fn permission(&self, asked: &ToolUse) -> Result<Prompted, Refusal> {
        let tool = ToolName::new(DependencyName::client(), asked.name.as_str());
        let command = asked.input.get("command").and_then(Value::as_str);
        if self.proxy.client_tool_ruling(&asked.name, command)? == ClientToolRuling::Allow {
            return Ok(Prompted::Reply(allow(&asked.input, None)));
        }
        let input = Value::Object(asked.input.clone()).to_string();
        let (workflow, claim) = self.suspended(&tool, &input).await?;
        let patience = workflow.expires_at.since(now());
        let card = self.proxy.card(&workflow);
        let mut ask = PersonAsk {
            card: &card,
            subject: Subject::Permission { input: &input },
            patience,
            // Held to the end: it is the right of this call to the answer.
            claim,
        };
        if let Some(form) = self.put(&workflow, &mut ask).await? {
            return Ok(Prompted::Form(form));
        }
        // Where no form reached a person, the ask stands in the inbox, for as long as this call waits for it.
        let waited_for = WaitedFor::new(self.proxy, workflow.id);
        self.ladder.wait(self.requester, workflow.id, patience).await;
        let Some(answer) = self.proxy.take_answer(workflow.id).await? else {
            return Ok(Prompted::Reply(deny(UNANSWERED)));
        };
        drop(waited_for);
        Ok(Prompted::Reply(match answer {
            Answer::Approve { scope: Scope::Once } => allow(&asked.input, None),
            Answer::Approve {
                scope: Scope::Session,
            } => {
                self.proxy.allow_for_session(tool);
                allow(&asked.input, Some(&asked.name))
            }
            Answer::Approve { scope: Scope::Always } => {
                let written = self.proxy.allow_always(tool.clone()).await;
                self.note_rule(&written);
                allow(&asked.input, None)
            }
            Answer::Refuse { reason: Some(reason) } => {
                deny(&format!("The person refused: {reason}\n{NOT_AGAIN}"))
            }
            Answer::Refuse { reason: None } | Answer::Answers { .. } => {
                deny(&format!("The person refused.\n{NOT_AGAIN}"))
            }
        }))
    }

    /// Suspends the use of a tool, or finds the ask whose form the client brings back.
    async fn suspended(&self, tool: &ToolName, input: &str) -> Result<(Workflow, Option<Claim>), Refusal> {
        if let Some(id) = self.requester.returns_form_of() {
            return Ok((self.proxy.workflow_here(id).await?, None));
        }
        let time_to_live = self.proxy.approvals().time_to_live;
        let (tool, input) = (tool.clone(), input.to_owned());
        self.proxy
            .use_of(tool, input, UseReach::Lasting, time_to_live)
            .await
    }

    /// Puts an ask to a person where it waits for one, and records what they say; returns the form to show, if any.
    async fn put(&self, workflow: &Workflow, ask: &mut PersonAsk<'_>) -> Result<Option<ModernForm>, Refusal> {
        if workflow.state != State::Pending {
            return Ok(None);
        }
        match self.ladder.ask(self.requester, ask).await {
            LadderReply::Form(form) => Ok(Some(form)),
            LadderReply::Said(said, by) => {
                record(self.proxy, workflow.id, said, by).await?;
                Ok(None)
            }
            LadderReply::Nothing => Ok(None),
        }
    }

    /// Reports what became of a rule that a person wanted: the reply itself has no room for it.
    fn note_rule(&self, written: &Result<String, String>) {
        let note = match written {
            Ok(note) => note,
            Err(note) => {
                tracing::warn!("{note}");
                note
            }
        };
        if let Some(progress) = &self.requester.progress {
            let _ = progress.try_send(Progress(note.clone()));
        }
    }

    /// Puts the questions of the client's own tool to a person.
    async fn questions(&self, asked: &ToolUse) -> Result<Prompted, Refusal> {
        let Some(Value::Array(list)) = asked.input.get("questions") else {
            return Ok(Prompted::Reply(deny("`questions` must be a list")));
        };
        let questions = match Question::from_list("questions", list) {
            Ok(questions) => questions,
            Err(error) => return Ok(Prompted::Reply(deny(&error.to_string()))),
        };
        let workflow = self.proxy.question(APPROVAL_PROMPT, questions).await?;
        let patience = self.proxy.approvals().time_to_live;
        let card = self.proxy.card(&workflow);
        let mut ask = PersonAsk {
            card: &card,
            subject: Subject::Questions,
            patience,
            claim: None,
        };
        if let Some(form) = self.put(&workflow, &mut ask).await? {
            return Ok(Prompted::Form(form));
        }
        let _waited_for = WaitedFor::new(self.proxy, workflow.id);
        self.ladder.wait(self.requester, workflow.id, patience).await;
        self.answers(workflow.id, asked).await.map(Prompted::Reply)
    }

    async fn answers(&self, id: WorkflowId, asked: &ToolUse) -> Result<Value, Refusal> {
        Ok(match self.proxy.question_status(id, Duration::ZERO).await? {
            QuestionStatus::Pending(_) | QuestionStatus::TimedOut | QuestionStatus::Withdrawn => {
                deny(UNANSWERED)
            }
            QuestionStatus::Rejected { reason: Some(reason) } => {
                deny(&format!("The person would not answer: {reason}"))
            }
            QuestionStatus::Rejected { reason: None } => deny("The person would not answer."),
            QuestionStatus::Answered {
                questions, answers, ..
            } => {
                let mut input = asked.input.clone();
                input.insert("answers".to_owned(), joined(&questions, &answers));
                allow(&input, None)
            }
        })
    }
}

/// An ask that one call of the prompt waits for. Without that call an answer would decide nothing, so the ask is
/// withdrawn with it, also where the client cancels the call or leaves; one that is answered stays answered.
struct WaitedFor<'a> {
    proxy: &'a Proxy,
    id: WorkflowId,
}

impl<'a> WaitedFor<'a> {
    fn new(proxy: &'a Proxy, id: WorkflowId) -> Self {
        Self { proxy, id }
    }
}

impl Drop for WaitedFor<'_> {
    fn drop(&mut self) {
        self.proxy.withdraw_later(self.id);
    }
}

/// Writes the reply as the client reads it: one text block of JSON.
fn own_result(reply: &Value) -> Resolution {
    Resolution::OwnResult(json!({ "content": [{ "type": "text", "text": reply.to_string() }] }))
}

/// Reads what the client asks permission for.
fn tool_use(arguments: Option<Json<'_>>) -> Result<ToolUse, String> {
    let arguments = arguments.ok_or("the arguments are missing")?;
    let arguments: Value = serde_json::from_str(arguments.get())
        .map_err(|error| format!("the arguments are no text: {error}"))?;
    let name = arguments
        .get("tool_name")
        .and_then(Value::as_str)
        .ok_or("`tool_name` must be a string")?;
    let input = match arguments.get("input") {
        Some(Value::Object(input)) => input.clone(),
        _ => return Err("`input` must be an object".to_owned()),
    };
    Ok(ToolUse {
        name: name.to_owned(),
        input,
    })
}

/// Several choices are joined as the client itself would join them, and what is unanswered is left out as it does.
fn joined(questions: &[Question], answers: &[QuestionAnswer]) -> Value {
    let pairs = questions.iter().zip(answers);
    Value::Object(
        pairs
            .filter(|(_, given)| !given.is_unanswered())
            .map(|(question, given)| (question.question.clone(), json!(given.values().join(", "))))
            .collect(),
    )
}

fn allow(input: &Map<String, Value>, session: Option<&str>) -> Value {
    let mut reply = json!({ "behavior": "allow", "updatedInput": input });
    if let Some(name) = session {
        reply["updatedPermissions"] = json!([{
            "type": "addRules", "rules": [{ "toolName": name }], "behavior": "allow", "destination": "session",
        }]);
    }
    reply
}

fn deny(message: &str) -> Value {
    json!({ "behavior": "deny", "message": message })
}

/// The definition of the permission prompt.
pub(super) fn definition() -> Value {
    json!({
        "name": APPROVAL_PROMPT,
        "title": "Permission prompt",
        "description": "For clients, not for models: `claude -p --permission-prompt-tool mcp__pml__approval_prompt`. \
            Decides by the rules of .pml.json whether a tool of the client may be used, and asks a person where they say so.",
        "inputSchema": {
            "type": "object",
            "required": ["tool_name", "input"],
            "properties": {
                "tool_name": { "type": "string" },
                "input": { "type": "object" },
                "tool_use_id": { "type": "string" },
            },
        },
        "annotations": { "openWorldHint": true, "readOnlyHint": false },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_labels_are_joined_and_free_text_stays() {
        let question: Question = serde_json::from_value(
            json!({ "question": "Which?", "options": [{ "label": "A" }, { "label": "B" }] }),
        )
        .unwrap();
        let given = QuestionAnswer {
            labels: vec!["A".to_owned(), "B".to_owned()],
            text: None,
        };
        let open = Question {
            question: "Why?".to_owned(),
            ..question.clone()
        };
        assert_eq!(
            joined(&[question, open], &[given, QuestionAnswer::unanswered()]),
            json!({ "Which?": "A, B" })
        );
    }
}
