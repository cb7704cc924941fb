//! The tools of pml itself that ask a person: `ask_user` and `ask_user_questions`.
//!
//! The same ladder as for approvals: the client's own dialog, else an id at once (or, in blocking mode, a call that
//! waits). Silence is never turned into an answer, and an answer that comes late is kept for whoever asks again.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::calling::{Calling, Reached, Road};
use super::conversation::Conversation;
use super::dialog::Ended;
use super::form::{self, Filled};
use super::permission_prompt::{self, APPROVAL_PROMPT};
use super::present;
use super::status::{self, STATUS};
use crate::config::{AskUserMode, AskUserTools};
use crate::protocol::continuation::MEMBER;
use crate::protocol::question::{Given, Question, QuestionError};
use crate::proxy::{Answer, Ask, Provenance, Questioned, Refusal, Workflow, WorkflowId};
use crate::report::{self, Hint as _};

/// One question.
pub(super) const ASK_USER: &str = "ask_user";
/// One to four questions with choices.
pub(super) const ASK_USER_QUESTIONS: &str = "ask_user_questions";

/// The longest a continuation may wait: some clients give up after a minute.
const LONGEST_WAIT: u64 = 50;

/// The seed's words for a question that nobody answered in time.
const TIMED_OUT: &str = "User did not respond within the timeout period. Proceeding with your best judgment.";

/// Which tool asks: they differ in what they take and in how they tell an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    One,
    Several,
}

impl Asking {
    fn of(name: &str) -> Option<Self> {
        match name {
            ASK_USER => Some(Self::One),
            ASK_USER_QUESTIONS => Some(Self::Several),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::One => ASK_USER,
            Self::Several => ASK_USER_QUESTIONS,
        }
    }

    fn read(self, arguments: &Map<String, Value>) -> Result<Vec<Question>, QuestionError> {
        match self {
            Self::One => Question::single(arguments).map(|question| vec![question]),
            Self::Several => Question::several(arguments),
        }
    }
}

impl Conversation {
    /// Answers a call to one of pml's own tools; `None` if it is not one.
    pub(super) async fn own_tool(
        &self,
        calling: &Calling<'_>,
        arguments: Option<&RawValue>,
    ) -> Option<Reached> {
        let asking = match calling.name {
            STATUS => return Some(Reached::Own(self.status().await)),
            APPROVAL_PROMPT => None,
            name => Some(Asking::of(name)?),
        };
        if self.0.proxy.ask_user().tools == AskUserTools::Off {
            return Some(Reached::Own(present::refusal(
                &format!(
                    "`{}` is switched off by \"askUser\": {{\"enabled\": false}}",
                    calling.name
                ),
                None,
            )));
        }
        let Some(asking) = asking else {
            return Some(self.permission_prompt(calling, arguments).await);
        };
        let arguments = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(reason) => return Some(Reached::Own(present::refusal(&reason, None))),
        };
        Some(match self.asked_user(calling, asking, arguments).await {
            Ok(reached) => reached,
            Err(refused) => Reached::Own(present::refusal(
                &report::render(&refused, None),
                refused.hint().as_deref(),
            )),
        })
    }

    async fn asked_user(
        &self,
        calling: &Calling<'_>,
        asking: Asking,
        mut arguments: Map<String, Value>,
    ) -> Result<Reached, Refusal> {
        if let Some(continuation) = arguments.remove(MEMBER).filter(|value| !value.is_null()) {
            return self.continued(asking, &continuation).await;
        }
        if let Some(retry) = &calling.retry {
            return self
                .answered_form(calling, asking, &retry.state, retry.filled.as_ref())
                .await;
        }
        let questions = match asking.read(&arguments) {
            Ok(questions) => questions,
            Err(error) => return Ok(Reached::Own(present::refusal(&error.to_string(), None))),
        };
        let workflow = self.0.proxy.question(asking.name(), questions.clone()).await?;
        match calling.road {
            Road::Dialog => Ok(Reached::InputRequired {
                id: workflow.id,
                form: form::questions(&questions),
            }),
            Road::None => self.without_dialog(calling, asking, workflow).await,
            Road::Elicitation => {
                let patience = self.0.proxy.ask_user().timeout;
                let ended = self
                    .show(calling, workflow.id, form::questions(&questions), patience)
                    .await;
                match ended {
                    Ended::Filled(filled @ (Filled::Accepted(_) | Filled::Refused)) => {
                        let state = workflow.id.to_string();
                        match self
                            .recorded(&workflow, &questions, &filled, Provenance::Elicitation)
                            .await?
                        {
                            true => self.told(asking, &state, Duration::ZERO).await,
                            false => self.without_dialog(calling, asking, workflow).await,
                        }
                    }
                    Ended::Elsewhere(moved) => self.told(asking, &moved.id.to_string(), Duration::ZERO).await,
                    Ended::Filled(Filled::Unreadable) | Ended::Unavailable => {
                        self.without_dialog(calling, asking, workflow).await
                    }
                }
            }
        }
    }

    /// Records what a form says; `false` if it says nothing.
    async fn recorded(
        &self,
        workflow: &Workflow,
        questions: &[Question],
        filled: &Filled,
        by: Provenance,
    ) -> Result<bool, Refusal> {
        let answer = match filled {
            Filled::Accepted(content) => match form::answers(questions, content) {
                Some(answers) => Answer::Answers { answers },
                None => return Ok(false),
            },
            Filled::Refused => Answer::Refuse { reason: None },
            Filled::Unreadable => return Ok(false),
        };
        self.0
            .proxy
            .answer(workflow.id, answer, by)
            .await
            .map(|_workflow| true)
    }

    /// Takes the answer to a form of a Modern client.
    async fn answered_form(
        &self,
        calling: &Calling<'_>,
        asking: Asking,
        state: &str,
        filled: Option<&Filled>,
    ) -> Result<Reached, Refusal> {
        let (workflow, questions) = self.asked_questions(asking, state).await?;
        let Some(filled) = filled else {
            return Ok(Reached::InputRequired {
                id: workflow.id,
                form: form::questions(&questions),
            });
        };
        if *filled == Filled::Refused && !self.was_read(workflow.id) {
            return self.without_dialog(calling, asking, workflow).await;
        }
        match self
            .recorded(&workflow, &questions, filled, Provenance::Dialog)
            .await?
        {
            true => self.told(asking, state, Duration::ZERO).await,
            // Not asked again: what accepts forms without filling them in would do so for ever.
            false => self.without_dialog(calling, asking, workflow).await,
        }
    }

    /// What happens where no dialog reaches a person: an id at once, or a call that waits.
    async fn without_dialog(
        &self,
        calling: &Calling<'_>,
        asking: Asking,
        workflow: Workflow,
    ) -> Result<Reached, Refusal> {
        let settings = self.0.proxy.ask_user();
        if settings.mode == AskUserMode::Suspend {
            // Somebody may have answered elsewhere while a dialog was open.
            return self.told(asking, &workflow.id.to_string(), Duration::ZERO).await;
        }
        let waiting = self.0.proxy.questioned(workflow.id, settings.timeout);
        tokio::pin!(waiting);
        let questioned = loop {
            tokio::select! {
                questioned = &mut waiting => break questioned?,
                () = tokio::time::sleep(Duration::from_secs(15)) => {
                    if let Some(progress) = &calling.carried.progress {
                        let _ = progress.try_send(crate::proxy::Progress::Start("waiting for a person".to_owned()));
                    }
                }
            }
        };
        Ok(Reached::Own(match questioned {
            Questioned::Pending(workflow) => timed_out(asking, &workflow),
            questioned => result(asking, questioned),
        }))
    }

    /// Continues a question: with the answer a client relays, or by asking how it stands.
    async fn continued(&self, asking: Asking, continuation: &Value) -> Result<Reached, Refusal> {
        let refused = |reason: String| Ok(Reached::Own(present::refusal(&reason, None)));
        let Some(members) = continuation.as_object() else {
            return refused(format!("`{MEMBER}` must be an object"));
        };
        let known = ["workflow_id", "answer", "answers", "wait_seconds"];
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let name = crate::protocol::Shown::line(name).to_string();
            return refused(format!(
                "`{MEMBER}` has no member `{name}`; it takes `{}`",
                known.join("`, `")
            ));
        }
        let Some(id) = members.get("workflow_id").and_then(Value::as_str) else {
            return refused(format!("`{MEMBER}.workflow_id` must be a string"));
        };
        let patience = match members.get("wait_seconds") {
            None | Some(Value::Null) => Duration::ZERO,
            Some(value) => match value.as_u64().filter(|seconds| *seconds <= LONGEST_WAIT) {
                Some(seconds) => Duration::from_secs(seconds),
                None => {
                    return refused(format!(
                        "`{MEMBER}.wait_seconds` must be a whole number from 0 to {LONGEST_WAIT}"
                    ));
                }
            },
        };
        let given = members
            .get("answers")
            .or_else(|| members.get("answer"))
            .filter(|value| !value.is_null());
        if let Some(given) = given {
            let (workflow, questions) = self.asked_questions(asking, id).await?;
            let answers = match relayed(asking, &questions, given) {
                Ok(answers) => answers,
                Err(reason) => return refused(reason),
            };
            self.0
                .proxy
                .answer_questions(workflow.id, answers, Provenance::Continuation)
                .await?;
        }
        self.told(asking, id, patience).await
    }

    async fn told(&self, asking: Asking, id: &str, patience: Duration) -> Result<Reached, Refusal> {
        let (workflow, _) = self.asked_questions(asking, id).await?;
        Ok(Reached::Own(result(
            asking,
            self.0.proxy.questioned(workflow.id, patience).await?,
        )))
    }

    /// Finds the questions behind an id; those of the other tool are not this one's business.
    async fn asked_questions(&self, asking: Asking, id: &str) -> Result<(Workflow, Vec<Question>), Refusal> {
        let id: WorkflowId = id.parse().map_err(|_malformed| Refusal::Expired)?;
        let workflow = self.0.proxy.workflow(id).await?;
        match workflow.ask.clone() {
            Ask::Questions { questions } if workflow.call.tool.tool() == asking.name() => {
                Ok((workflow, questions))
            }
            _ => Err(Refusal::OtherCall),
        }
    }
}

fn read_arguments(raw: Option<&RawValue>) -> Result<Map<String, Value>, String> {
    match raw.map(|raw| serde_json::from_str(raw.get())) {
        None | Some(Ok(Value::Null)) => Ok(Map::new()),
        Some(Ok(Value::Object(members))) => Ok(members),
        Some(Ok(_)) => Err("the arguments must be an object".to_owned()),
        Some(Err(error)) => Err(format!("the arguments hold something that is no text: {error}")),
    }
}

/// Reads answers that a client relays: text or labels, one entry a question where there are several.
fn relayed(asking: Asking, questions: &[Question], given: &Value) -> Result<Vec<Given>, String> {
    let entries: Vec<&Value> = match (asking, given) {
        (Asking::One, given) => vec![given],
        (Asking::Several, Value::Array(entries)) => entries.iter().collect(),
        (Asking::Several, Value::Object(keyed)) => {
            if let Some(name) = keyed
                .keys()
                .find(|name| !questions.iter().any(|question| question.question == **name))
            {
                return Err(format!(
                    "`answers` names no question `{}`",
                    crate::protocol::Shown::line(name)
                ));
            }
            questions
                .iter()
                .filter_map(|question| keyed.get(&question.question))
                .collect()
        }
        (Asking::Several, _) => return Err("`answers` must be a list with one entry a question".to_owned()),
    };
    if entries.len() != questions.len() {
        return Err(format!(
            "`answers` has {} entries; {} questions were asked",
            entries.len(),
            questions.len()
        ));
    }
    questions
        .iter()
        .zip(entries)
        .enumerate()
        .map(|(index, (question, entry))| {
            let field = if questions.len() == 1 {
                "answer".to_owned()
            } else {
                format!("answers[{index}]")
            };
            let labels: Option<Vec<String>> = match entry {
                Value::String(text) => Some(vec![text.clone()]),
                Value::Array(list) => list
                    .iter()
                    .map(|label| label.as_str().map(str::to_owned))
                    .collect(),
                _ => None,
            };
            let labels = labels.ok_or_else(|| format!("`{field}` must be a string or a list of strings"))?;
            question
                .check(&field, labels, None)
                .map_err(|error| error.to_string())
        })
        .collect()
}

fn result(asking: Asking, questioned: Questioned) -> Value {
    match questioned {
        Questioned::Pending(workflow) => pending(asking, &workflow),
        Questioned::Rejected { reason } => {
            let mut text = "User rejected the question.".to_owned();
            if let Some(reason) = &reason {
                text.push_str(&format!(" Reason: {reason}"));
            }
            let told = json!({ "status": "rejected", "reason": reason, "message": text });
            json!({ "content": [{ "type": "text", "text": text }], "structuredContent": told })
        }
        Questioned::Answered {
            questions,
            answers,
            by,
        } => answered(asking, &questions, &answers, by),
    }
}

fn answered(asking: Asking, questions: &[Question], answers: &[Given], by: Provenance) -> Value {
    let text = match asking {
        Asking::One => answers.first().map(Given::told).unwrap_or_default(),
        Asking::Several => {
            let line =
                |(question, given): (&Question, &Given)| format!("{}\n{}", question.question, given.told());
            questions
                .iter()
                .zip(answers)
                .map(line)
                .collect::<Vec<_>>()
                .join("\n\n")
        }
    };
    let keyed: Map<String, Value> = questions
        .iter()
        .zip(answers)
        .map(|(question, given)| (question.question.clone(), json!(given.values())))
        .collect();
    json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": { "status": "answered", "message": text, "answers": keyed, "by": by },
    })
}

fn pending(asking: Asking, workflow: &Workflow) -> Value {
    let (name, id, code) = (asking.name(), workflow.id, &workflow.code);
    let field = match asking {
        Asking::One => "\"answer\":\"…\"",
        Asking::Several => "\"answers\":[\"…\"]",
    };
    let what = "The question waits for the person.";
    let instructions = format!(
        "Show the person the question. When they have told you their answer, call `{name}` with \
         {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\",{field}}}}}. They can also answer with `pml answer {code}` in a \
         terminal; to wait for that, call `{name}` with \
         {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\",\"wait_seconds\":{LONGEST_WAIT}}}}}. Never answer for them."
    );
    json!({
        "content": [{ "type": "text", "text": what }, { "type": "text", "text": instructions }],
        "structuredContent": {
            "status": "pending",
            "message": what,
            "instructions": instructions,
            "workflow_id": id.uuid(),
            "code": code,
        },
    })
}

fn timed_out(asking: Asking, workflow: &Workflow) -> Value {
    let (name, id) = (asking.name(), workflow.id);
    let late = format!(
        "The question stays open: an answer that comes later is told by `{name}` with \
         {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\"}}}}."
    );
    json!({ "content": [{ "type": "text", "text": TIMED_OUT }, { "type": "text", "text": late }], "isError": true })
}

/// The definitions of pml's own tools, `pml_continue` apart.
pub(super) fn definitions(tools: AskUserTools) -> Vec<Value> {
    match tools {
        AskUserTools::Listed => {
            let mut all = questions_definitions().to_vec();
            all.extend([permission_prompt::definition(), status::definition()]);
            all
        }
        AskUserTools::Off => vec![status::definition()],
    }
}

fn questions_definitions() -> [Value; 2] {
    let option = |described: &[&str]| {
        json!({
            "type": "object",
            "required": described,
            "properties": {
                "label": { "type": "string", "description": "Short label for the option" },
                "description": { "type": "string", "description": "Longer explanation of what this option means" },
            },
        })
    };
    let continuation = |answer: &str, schema: Value| {
        json!({
            "type": "object",
            "description": "Only to continue a question that answered `pending`. Leave it out otherwise.",
            "required": ["workflow_id"],
            "properties": {
                "workflow_id": { "type": "string" },
                answer: schema,
                "wait_seconds": { "type": "integer", "minimum": 0, "maximum": LONGEST_WAIT },
            },
            "additionalProperties": false,
        })
    };
    let text_or_list = json!({ "type": ["string", "array"], "items": { "type": "string" }, "description": "What the person said: a label, several labels, or their own words" });
    [
        json!({
            "name": ASK_USER,
            "title": "Ask the person",
            "description": "Ask the user a question and wait for their response. Use this when you need clarification, a choice between options, or confirmation before proceeding.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "question": { "type": "string", "description": "The question to ask the user" },
                    "header": { "type": "string", "description": "A word or two that say what it is about" },
                    "options": { "type": "array", "description": "Optional list of choices for the user", "items": option(&["label"]) },
                    "multiSelect": { "type": "boolean", "default": false, "description": "Whether the user can select multiple options" },
                    MEMBER: continuation("answer", text_or_list.clone()),
                },
            },
            "annotations": { "openWorldHint": true, "readOnlyHint": false },
            "_meta": { "anthropic/alwaysLoad": true },
        }),
        json!({
            "name": ASK_USER_QUESTIONS,
            "title": "Ask the person several questions",
            "description": "Ask the user one to four structured questions, each with two to four options; free text is always possible. Use this to gather several decisions at once.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "questions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["question", "header", "options", "multiSelect"],
                            "properties": {
                                "question": { "type": "string", "description": "The question to ask the user" },
                                "header": { "type": "string", "maxLength": 12, "description": "A very short label" },
                                "options": { "type": "array", "minItems": 2, "maxItems": 4, "items": option(&["label", "description"]) },
                                "multiSelect": { "type": "boolean", "description": "Whether the user can select multiple options" },
                            },
                        },
                    },
                    MEMBER: continuation("answers", json!({ "type": ["array", "object"], "description": "What the person said: one entry a question" })),
                },
            },
            "annotations": { "openWorldHint": true, "readOnlyHint": false, "idempotentHint": true },
            "_meta": { "anthropic/alwaysLoad": true },
        }),
    ]
}
