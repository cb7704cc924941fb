//! `approval_prompt`: the permission prompt of a client that runs without a terminal.
//!
//! Decided by the same rules as everything else; what they leave to a person waits for one. The reply is exactly one
//! text block of JSON: the client reads nothing else. Nobody answering is told as that, never as a refusal.

use serde_json::{Map, Value, json};

use super::calling::{Calling, Reached, Road};
use super::conversation::Conversation;
use super::dialog::Ended;
use super::form::{self, Filled};
use crate::protocol::continuation::{Decision, Scope};
use crate::protocol::question::{Given, Question};
use crate::protocol::{DependencyName, Json, OWN_TOOLS, Shown, ToolName};
use crate::proxy::{Answer, Provenance, Questioned, Refusal, Ruled, State, Workflow, came_second};
use crate::report;

/// The name clients give to `--permission-prompt-tool`.
pub(super) const APPROVAL_PROMPT: &str = "approval_prompt";

/// The client's own tool that asks questions; it comes through the permission prompt.
const QUESTIONS: &str = "AskUserQuestion";

/// What the client puts before the names of the tools that pml lists.
const LISTED: &str = "mcp__pml__";

/// What the client asks permission for.
struct Wanted {
    name: String,
    input: Map<String, Value>,
}

impl Conversation {
    /// Answers the permission prompt of a client.
    pub(super) async fn permission_prompt(
        &self,
        calling: &Calling<'_>,
        arguments: Option<Json<'_>>,
    ) -> Reached {
        let reply = match wanted(arguments) {
            Err(reason) => deny(&reason),
            Ok(wanted) => {
                let answered = if wanted.name == QUESTIONS {
                    self.questions_of_client(calling, &wanted).await
                } else {
                    self.permission(calling, &wanted).await
                };
                answered.unwrap_or_else(|refused| deny(&report::render_hinted(&refused)))
            }
        };
        Reached::Own(json!({ "content": [{ "type": "text", "text": reply.to_string() }] }))
    }

    async fn permission(&self, calling: &Calling<'_>, wanted: &Wanted) -> Result<Value, Refusal> {
        let tool = ToolName::new(DependencyName::client(), wanted.name.as_str());
        let ruled = self.0.proxy.ruled_for(&tool)?;
        if ruled == Ruled::Allow || self.goes_through_pml(&wanted.name)? {
            return Ok(allow(&wanted.input, None));
        }
        let input = Value::Object(wanted.input.clone()).to_string();
        let shown = format!("{} {}", Shown::line(&wanted.name), Shown::line(&input));
        let scope = &self.0.scope;
        let (workflow, _claim) = self
            .0
            .proxy
            .use_of(tool.clone(), shown.clone(), input, scope)
            .await?;
        let Some(answer) = self.decision(calling, &workflow, &tool, &shown).await? else {
            self.0.proxy.withdraw(workflow.id).await;
            return Ok(deny(
                "Nobody answered in time; nobody refused. Ask the person, then try again.",
            ));
        };
        Ok(match answer {
            Answer::Approve { scope: Scope::Once } => allow(&wanted.input, None),
            Answer::Approve {
                scope: Scope::Session,
            } => {
                self.0.proxy.allow_for_session(tool);
                allow(&wanted.input, Some(&wanted.name))
            }
            Answer::Approve { scope: Scope::Always } => {
                // A rule that could not be written changes nothing about this use.
                let _note = self.0.proxy.allow_always(tool).await;
                allow(&wanted.input, None)
            }
            Answer::Refuse { reason: Some(reason) } => deny(&format!("The person refused: {reason}")),
            Answer::Refuse { reason: None } | Answer::Answers { .. } => deny("The person refused."),
        })
    }

    /// Tells whether a tool of the client is one of pml's own, or one that pml gates when it is called.
    ///
    /// Fails if a rule denies the tool behind it.
    fn goes_through_pml(&self, name: &str) -> Result<bool, Refusal> {
        let Some(listed) = name.strip_prefix(LISTED) else {
            return Ok(false);
        };
        if OWN_TOOLS.contains(&listed) {
            return Ok(true);
        }
        match self.0.proxy.listed_as(listed)? {
            Some(tool) => self.0.proxy.ruled_for(&tool).map(|_ruled| true),
            None => Ok(false),
        }
    }

    /// Gets a person's decision by dialog or inbox; `None` if nobody answers in time.
    async fn decision(
        &self,
        calling: &Calling<'_>,
        workflow: &Workflow,
        tool: &ToolName,
        shown: &str,
    ) -> Result<Option<Answer>, Refusal> {
        let patience = self.0.proxy.approvals().time_to_live;
        let begun = std::time::Instant::now();
        if calling.road == Road::Elicitation && workflow.state == State::Pending {
            let filled = match self
                .show(calling, workflow.id, form::permission(tool, shown), patience)
                .await
            {
                Ended::Filled(filled) => filled,
                Ended::Unavailable | Ended::Elsewhere(_) => Filled::Unreadable,
            };
            let decision = match filled {
                Filled::Accepted(content) => form::decision(&content),
                Filled::Refused => Some(Decision::Refuse),
                Filled::Unreadable => None,
            };
            let answer = match decision {
                Some(Decision::Approve(scope)) => Some(Answer::Approve { scope }),
                Some(Decision::Refuse) => Some(Answer::Refuse { reason: None }),
                None => None,
            };
            if let Some(answer) = answer {
                let by = Provenance::Elicitation;
                match self.0.proxy.answer(workflow.id, answer, by, &self.0.scope).await {
                    Ok(_) => {}
                    // The answer that was first counts.
                    Err(refusal) if came_second(&refusal) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        // No dialog reached anybody; the ask stands in the inbox.
        let rest = patience.saturating_sub(begun.elapsed());
        match tokio::time::timeout(rest, self.0.proxy.decided(workflow.id)).await {
            Ok(moved) => self.0.proxy.take_answer(moved?.id).await,
            Err(_elapsed) => Ok(None),
        }
    }

    async fn questions_of_client(&self, calling: &Calling<'_>, wanted: &Wanted) -> Result<Value, Refusal> {
        let Some(Value::Array(list)) = wanted.input.get("questions") else {
            return Ok(deny("`questions` must be a list"));
        };
        let questions = match Question::from_list("questions", list) {
            Ok(questions) => questions,
            Err(error) => return Ok(deny(&error.to_string())),
        };
        let workflow = self
            .0
            .proxy
            .question(APPROVAL_PROMPT, questions.clone(), &self.0.scope)
            .await?;
        let patience = self.0.proxy.approvals().time_to_live;
        let begun = std::time::Instant::now();
        if calling.road == Road::Elicitation
            && workflow.state == State::Pending
            && let Ended::Filled(filled) = self
                .show(calling, workflow.id, form::questions(&questions), patience)
                .await
        {
            let answer = match filled {
                Filled::Accepted(content) => {
                    form::answers(&questions, &content).map(|answers| Answer::Answers { answers })
                }
                Filled::Refused => Some(Answer::Refuse { reason: None }),
                Filled::Unreadable => None,
            };
            if let Some(answer) = answer {
                let by = Provenance::Elicitation;
                match self.0.proxy.answer(workflow.id, answer, by, &self.0.scope).await {
                    Ok(_) => {}
                    Err(refusal) if came_second(&refusal) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        let rest = patience.saturating_sub(begun.elapsed());
        Ok(match self.0.proxy.questioned(workflow.id, rest).await? {
            Questioned::Pending(_) | Questioned::TimedOut | Questioned::Withdrawn => {
                deny("Nobody answered in time; nobody refused. Ask the person, then try again.")
            }
            Questioned::Rejected { reason: Some(reason) } => {
                deny(&format!("The person would not answer: {reason}"))
            }
            Questioned::Rejected { reason: None } => deny("The person would not answer."),
            Questioned::Answered {
                questions, answers, ..
            } => {
                let mut input = wanted.input.clone();
                input.insert("answers".to_owned(), joined(&questions, &answers));
                allow(&input, None)
            }
        })
    }
}

fn wanted(arguments: Option<Json<'_>>) -> Result<Wanted, String> {
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
    Ok(Wanted {
        name: name.to_owned(),
        input,
    })
}

/// Several choices are joined as the client itself would join them.
fn joined(questions: &[Question], answers: &[Given]) -> Value {
    let pairs = questions.iter().zip(answers);
    Value::Object(
        pairs
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
        let given = Given {
            labels: vec!["A".to_owned(), "B".to_owned()],
            text: None,
        };
        assert_eq!(joined(&[question], &[given]), json!({ "Which?": "A, B" }));
    }
}
