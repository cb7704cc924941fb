//! The tools of pml itself that ask a person: `ask_user` and `ask_user_questions`.
//!
//! The same ladder as for approvals: the client's own dialog, else an id at once (or, in blocking mode, a call that
//! waits). Silence is never turned into an answer, and an answer that comes late is kept for whoever asks again.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::config::{AskUserMode, AskUserTools};
use crate::protocol::Json;
use crate::protocol::continuation::{LONGEST_WAIT, MEMBER};
use crate::protocol::question::{Given, Question, QuestionError};
use crate::proxy::{Answer, Ask, Provenance, Questioned, Refusal, State, Workflow, WorkflowId, now};
use crate::report::{self, Hint as _};
use crate::stdio::ask::dialog::Waiting;
use crate::stdio::ask::ladder::{Calling, Reached, Retry, Road};
use crate::stdio::ask::question_forms::Reply;
use crate::stdio::conversation::Conversation;
use crate::stdio::own_tools::permission_prompt::APPROVAL_PROMPT;
use crate::stdio::own_tools::question_text::{result, timed_out};
use crate::stdio::own_tools::status::STATUS;
use crate::stdio::present;

/// One question.
pub(crate) const ASK_USER: &str = "ask_user";
/// One to four questions with choices.
pub(crate) const ASK_USER_QUESTIONS: &str = "ask_user_questions";

/// Which tool asks: they differ in what they take and in how they tell an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
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

    /// Returns the tool's name.
    pub(crate) fn name(self) -> &'static str {
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
    pub(crate) async fn own_tool(
        &self,
        calling: &Calling<'_>,
        arguments: Option<Json<'_>>,
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
            return self.answered_form(calling, asking, retry).await;
        }
        let questions = match asking.read(&arguments) {
            Ok(questions) => questions,
            Err(error) => return Ok(Reached::Own(present::refusal(&error.to_string(), None))),
        };
        let workflow = self.0.proxy.question(asking.name(), questions.clone()).await?;
        if workflow.state != State::Pending {
            // The same was asked and answered before; nobody has fetched the answer.
            return self.told(asking, &workflow.id.to_string(), Duration::ZERO).await;
        }
        match calling.road {
            Road::Dialog => Ok(Reached::InputRequired(Self::question_form(&workflow, &questions))),
            Road::None => self.without_dialog(calling, asking, workflow).await,
            Road::Elicitation => {
                let patience = self.0.proxy.ask_user().timeout;
                let reply = self.show_questions(calling, &workflow, &questions, patience);
                let reply = reply.await;
                self.replied(calling, asking, workflow, reply, Provenance::Elicitation)
                    .await
            }
        }
    }

    /// Goes on after a dialog with what the person did in it.
    async fn replied(
        &self,
        calling: &Calling<'_>,
        asking: Asking,
        workflow: Workflow,
        reply: Reply,
        by: Provenance,
    ) -> Result<Reached, Refusal> {
        match reply {
            Reply::Said(answer) => {
                self.record(&workflow, answer, by).await?;
                self.told(asking, &workflow.id.to_string(), Duration::ZERO).await
            }
            Reply::Nothing => self.without_dialog(calling, asking, workflow).await,
            Reply::Next(form) => Ok(Reached::InputRequired(form)),
        }
    }

    /// Takes the answer to a form of a Modern client.
    async fn answered_form(
        &self,
        calling: &Calling<'_>,
        asking: Asking,
        retry: &Retry,
    ) -> Result<Reached, Refusal> {
        let state = &retry.state;
        let (workflow, questions) = self.asked_questions(asking, state).await?;
        // Whatever the form says: an answer that came first on another road is the answer.
        if workflow.state != State::Pending && workflow.state != State::Expired {
            return self.told(asking, state, Duration::ZERO).await;
        }
        let reply = Self::question_reply(&workflow, &questions, retry);
        let workflow = match &reply {
            // The person took longer than the question lived: what they said is put to it again.
            Reply::Said(_) if !workflow.is_live_at(now()) => {
                self.0.proxy.question(asking.name(), questions).await?
            }
            Reply::Said(_) | Reply::Nothing | Reply::Next(_) => workflow,
        };
        self.replied(calling, asking, workflow, reply, Provenance::Dialog)
            .await
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
        let waiting = Waiting {
            proxy: &self.0.proxy,
            id: workflow.id,
            patience: settings.timeout,
            progress: calling.carried.progress.as_ref(),
        };
        waiting.join().await;
        Ok(Reached::Own(
            match self.0.proxy.questioned(workflow.id, Duration::ZERO).await? {
                Questioned::Pending(workflow) => timed_out(asking, &workflow),
                questioned => result(asking, questioned),
            },
        ))
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
        let given = ["answers", "answer"]
            .into_iter()
            .filter_map(|name| members.get(name))
            .find(|value| !value.is_null());
        if let Some(given) = given {
            let (workflow, questions) = self.asked_questions(asking, id).await?;
            // One question has one answer, whichever of the two tools asked it.
            let alone = questions.len() == 1 && members.get("answers").is_none_or(Value::is_null);
            let form = if alone { Asking::One } else { asking };
            let answers = match relayed(form, &questions, given) {
                Ok(answers) => answers,
                Err(reason) => return refused(reason),
            };
            let answer = Answer::Answers { answers };
            let by = Provenance::Continuation;
            self.0.proxy.answer(workflow.id, answer, by).await?;
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
        let workflow = self.0.proxy.workflow_here(id).await?;
        match workflow.ask.clone() {
            Ask::Questions { questions } if workflow.call.tool.tool() == asking.name() => {
                Ok((workflow, questions))
            }
            _ => Err(Refusal::OtherCall),
        }
    }
}

fn read_arguments(raw: Option<Json<'_>>) -> Result<Map<String, Value>, String> {
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
