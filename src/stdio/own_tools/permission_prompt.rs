//! `approval_prompt`: the permission prompt of a client that runs without a terminal.
//!
//! Decided by the same rules as everything else; what they leave to a person waits for one. The reply is exactly one
//! text block of JSON: the client reads nothing else. Nobody answering is told as that, never as a refusal.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::protocol::continuation::{Decision, Scope};
use crate::protocol::question::{Given, Question};
use crate::protocol::{DependencyName, Json, OWN_TOOLS, ToolName};
use crate::proxy::{Answer, Progress, Provenance, Questioned, Refusal, Ruled, State, Workflow, now};
use crate::report;
use crate::stdio::ask::dialog::{Ended, Waiting};
use crate::stdio::ask::form::{self, Filled};
use crate::stdio::ask::ladder::{Calling, ModernForm, Reached, Retry, Road};
use crate::stdio::ask::open_forms::OpenForm;
use crate::stdio::ask::question_forms::Reply;
use crate::stdio::conversation::Conversation;

/// The name clients give to `--permission-prompt-tool`.
pub(crate) const APPROVAL_PROMPT: &str = "approval_prompt";

/// The client's own tool that asks questions; it comes through the permission prompt.
const QUESTIONS: &str = "AskUserQuestion";

/// What the client puts before the names of the tools that pml lists.
const LISTED: &str = "mcp__pml__";

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
struct Wanted {
    name: String,
    input: Map<String, Value>,
}

impl Conversation {
    /// Answers the permission prompt of a client.
    pub(crate) async fn permission_prompt(
        &self,
        calling: &Calling<'_>,
        arguments: Option<Json<'_>>,
    ) -> Reached {
        let prompted = match wanted(arguments) {
            Err(reason) => Ok(Prompted::Reply(deny(&reason))),
            Ok(wanted) if wanted.name == QUESTIONS => self.questions_of_client(calling, &wanted).await,
            Ok(wanted) => self.permission(calling, &wanted).await,
        };
        match prompted {
            Ok(Prompted::Form(form)) => Reached::InputRequired(form),
            Ok(Prompted::Reply(reply)) => reached(&reply),
            Err(refused) => reached(&deny(&report::render_hinted(&refused))),
        }
    }

    async fn permission(&self, calling: &Calling<'_>, wanted: &Wanted) -> Result<Prompted, Refusal> {
        let tool = ToolName::new(DependencyName::client(), wanted.name.as_str());
        let ruled = self.0.proxy.ruled_for(&tool)?;
        if ruled == Ruled::Allow || self.goes_through_pml(&wanted.name)? {
            return Ok(Prompted::Reply(allow(&wanted.input, None)));
        }
        let input = Value::Object(wanted.input.clone()).to_string();
        let brought = calling.retry.as_ref().and_then(|retry| {
            let form = retry.take_form()?;
            Some((retry.state.parse().ok()?, decision_in(retry, &form), form))
        });
        // The claim is held to the end: it is the right of this call to the answer.
        let (workflow, _claim, said, by) = if let Some((id, said, form)) = brought {
            let workflow = self.0.proxy.workflow_here(id).await?;
            (workflow, form.claim, said, Provenance::Dialog)
        } else {
            let (workflow, claim) = self.0.proxy.use_of(tool.clone(), input.clone()).await?;
            let file = self.0.proxy.file();
            let form = form::permission(&tool, &input, &workflow.code.to_string(), file);
            let said = match (calling.road, &workflow.state) {
                (Road::Dialog, State::Pending) => {
                    let form = ModernForm::new(workflow.id, form).claimed(claim);
                    return Ok(Prompted::Form(form));
                }
                (Road::Elicitation, State::Pending) => {
                    let patience = workflow.expires_at.since(now());
                    match self.show(calling, workflow.id, form, patience).await {
                        Ended::Filled(filled) => decision_of(&filled),
                        Ended::Unavailable | Ended::Elsewhere(_) => None,
                    }
                }
                _ => None,
            };
            (workflow, claim, said, Provenance::Elicitation)
        };
        let said = said.map(|decision| match decision {
            Decision::Approve(scope) => Answer::Approve { scope },
            Decision::Refuse => Answer::Refuse { reason: None },
        });
        if let Some(answer) = said {
            self.record(&workflow, answer, by).await?;
        }
        // Where no dialog reached a person, the ask stands in the inbox.
        self.wait(calling, &workflow).await;
        let Some(answer) = self.0.proxy.take_answer(workflow.id).await? else {
            self.0.proxy.withdraw(workflow.id).await;
            return Ok(Prompted::Reply(deny(UNANSWERED)));
        };
        Ok(Prompted::Reply(match answer {
            Answer::Approve { scope: Scope::Once } => allow(&wanted.input, None),
            Answer::Approve {
                scope: Scope::Session,
            } => {
                self.0.proxy.allow_for_session(tool);
                allow(&wanted.input, Some(&wanted.name))
            }
            Answer::Approve { scope: Scope::Always } => {
                let written = self.0.proxy.allow_always(tool).await;
                Self::note_rule(calling, &written);
                allow(&wanted.input, None)
            }
            Answer::Refuse { reason: Some(reason) } => {
                deny(&format!("The person refused: {reason}\n{NOT_AGAIN}"))
            }
            Answer::Refuse { reason: None } | Answer::Answers { .. } => {
                deny(&format!("The person refused.\n{NOT_AGAIN}"))
            }
        }))
    }

    /// Says what became of a rule that a person wanted: the reply itself has no room for it.
    fn note_rule(calling: &Calling<'_>, written: &Result<String, String>) {
        let note = match written {
            Ok(note) => note,
            Err(note) => {
                tracing::warn!("{note}");
                note
            }
        };
        if let Some(progress) = &calling.carried.progress {
            let _ = progress.try_send(Progress(note.clone()));
        }
    }

    /// Waits for an answer on any road, and shows the client meanwhile that the call lives.
    async fn wait(&self, calling: &Calling<'_>, workflow: &Workflow) {
        let waiting = Waiting {
            proxy: &self.0.proxy,
            id: workflow.id,
            patience: workflow.expires_at.since(now()),
            progress: calling.carried.progress.as_ref(),
        };
        waiting.join().await;
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

    async fn questions_of_client(&self, calling: &Calling<'_>, wanted: &Wanted) -> Result<Prompted, Refusal> {
        let Some(Value::Array(list)) = wanted.input.get("questions") else {
            return Ok(Prompted::Reply(deny("`questions` must be a list")));
        };
        let questions = match Question::from_list("questions", list) {
            Ok(questions) => questions,
            Err(error) => return Ok(Prompted::Reply(deny(&error.to_string()))),
        };
        let workflow = self.0.proxy.question(APPROVAL_PROMPT, questions.clone()).await?;
        let patience = self.0.proxy.approvals().time_to_live;
        let (reply, by) = match (&workflow.state, &calling.retry, calling.road) {
            (State::Pending, Some(retry), _) => {
                let reply = Self::question_reply(&workflow, &questions, retry);
                (reply, Provenance::Dialog)
            }
            (State::Pending, None, Road::Dialog) => {
                let form = Self::question_form(&workflow, &questions);
                (Reply::Next(form), Provenance::Dialog)
            }
            (State::Pending, None, Road::Elicitation) => {
                let reply = self.show_questions(calling, &workflow, &questions, patience);
                (reply.await, Provenance::Elicitation)
            }
            _ => (Reply::Nothing, Provenance::Elicitation),
        };
        match reply {
            Reply::Next(form) => return Ok(Prompted::Form(form)),
            Reply::Said(answer) => self.record(&workflow, answer, by).await?,
            Reply::Nothing => {}
        }
        let waiting = Waiting {
            proxy: &self.0.proxy,
            id: workflow.id,
            patience,
            progress: calling.carried.progress.as_ref(),
        };
        waiting.join().await;
        let stands = self.0.proxy.questioned(workflow.id, Duration::ZERO).await?;
        Ok(Prompted::Reply(match stands {
            Questioned::Pending(_) | Questioned::TimedOut | Questioned::Withdrawn => deny(UNANSWERED),
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
        }))
    }
}

/// Writes the reply as the client reads it: one text block of JSON.
fn reached(reply: &Value) -> Reached {
    Reached::Own(json!({ "content": [{ "type": "text", "text": reply.to_string() }] }))
}

/// Reads the decision in a form that a Modern client brings back; a refusal faster than a person reads is none.
fn decision_in(retry: &Retry, form: &OpenForm) -> Option<Decision> {
    match retry.filled.as_ref()? {
        Filled::Refused if !form.was_read() => None,
        filled => decision_of(filled),
    }
}

fn decision_of(filled: &Filled) -> Option<Decision> {
    match filled {
        Filled::Accepted(content) => form::decision(content),
        Filled::Refused => Some(Decision::Refuse),
        Filled::Unreadable => None,
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
pub(crate) fn definition() -> Value {
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
