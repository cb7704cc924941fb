//! The tools that ask a person for a model: `ask_user` and `ask_user_questions`.
//!
//! They climb the same ladder as approvals; where it reaches no person they return an id at once or, in blocking mode,
//! wait. Silence is never turned into an answer, and an answer that comes late is kept for the next call that asks.
//! Where a host shows the questions of this conversation, they go there instead (`relayed.rs`).

use std::time::Duration;

use serde_json::{Map, Value};

use super::question_text::{result, timed_out};
use super::question_tool::QuestionTool;
use super::relayed_question;
use crate::card::{CardQuestion, Said, SaidAnswer};
use crate::config::AskUserMode;
use crate::protocol::continuation::{LONGEST_WAIT, MEMBER};
use crate::protocol::question::Question;
use crate::protocol::{Json, Shown};
use crate::proxy::{
    Ask, Proxy, QuestionStatus, Refusal, Road, State, Unreached, Workflow, WorkflowId, came_second, now,
};
use crate::report::{self, Hint as _};
use crate::stdio::ask::ladder::{Ladder, LadderReply, Requester, Resolution};
use crate::stdio::ask::subject::{PersonAsk, Subject};
use crate::stdio::client::answer::error_result;

/// The argument that names a channel.
const CHANNEL: &str = "channel";

/// One call of a tool that asks a person.
pub(super) struct AskUser<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) ladder: &'a Ladder,
    pub(super) tool: QuestionTool,
    pub(super) requester: &'a Requester,
}

impl AskUser<'_> {
    /// Runs the call.
    pub(super) async fn run(&self, arguments: Option<Json<'_>>) -> Resolution {
        let arguments = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(reason) => return Resolution::OwnResult(error_result(&reason, None)),
        };
        match self.ask(arguments).await {
            Ok(resolution) => resolution,
            Err(refused) => Resolution::OwnResult(error_result(
                &report::render(&refused, None),
                refused.hint().as_deref(),
            )),
        }
    }

    async fn ask(&self, mut arguments: Map<String, Value>) -> Result<Resolution, Refusal> {
        if let Some(continuation) = arguments.remove(MEMBER).filter(|value| !value.is_null()) {
            return self.continued(&continuation).await;
        }
        if let Some(retry) = &self.requester.retry {
            let (workflow, questions) = self.asked(&retry.state).await?;
            return self.put(workflow, &questions).await;
        }
        let channel = arguments.remove(CHANNEL).filter(|value| !value.is_null());
        let questions = match self.tool.read(&arguments) {
            Ok(questions) => questions,
            Err(error) => return Ok(Resolution::OwnResult(error_result(&error.to_string(), None))),
        };
        if let Some(channel) = channel {
            return self.on_channel(&channel, questions).await;
        }
        if self.proxy.relays_questions() {
            let asking = relayed_question::ask(self.proxy, self.requester, self.tool, &questions);
            return Ok(Resolution::OwnResult(Box::pin(asking).await));
        }
        let workflow = self.proxy.question(self.tool.name(), questions.clone()).await?;
        self.put(workflow, &questions).await
    }

    /// Puts questions to the people of the channel that was named; where that cannot be, the caller is told at once.
    async fn on_channel(&self, channel: &Value, questions: Vec<Question>) -> Result<Resolution, Refusal> {
        let told = |what: &str, hint: Option<&str>| Ok(Resolution::OwnResult(error_result(what, hint)));
        let Some(name) = channel.as_str() else {
            return told(&format!("`{CHANNEL}` must be the name of a channel"), None);
        };
        let asking = self.proxy.question_on(name, self.tool.name(), questions.clone());
        match Box::pin(asking).await {
            Ok(workflow) => self.put(workflow, &questions).await,
            Err(Unreached::Refused(refusal)) => Err(refusal),
            Err(unreached) => {
                let what = report::render(&unreached, None);
                told(&format!("{what}. Nobody was asked."), unreached.hint().as_deref())
            }
        }
    }

    /// Puts questions to a person and returns what came of it.
    async fn put(&self, workflow: Workflow, questions: &[Question]) -> Result<Resolution, Refusal> {
        // An answer that came first on another road is the answer, whatever a form says.
        if workflow.state != State::Pending && workflow.state != State::Expired {
            return self.stand(workflow.id, Duration::ZERO).await;
        }
        let card = self.proxy.card(&workflow);
        let mut ask = PersonAsk {
            card: &card,
            subject: Subject::Questions,
            patience: self.proxy.ask_user().patience(),
            claim: None,
        };
        match self.ladder.ask(self.requester, &mut ask).await {
            LadderReply::Form(form) => Ok(Resolution::Form(form)),
            LadderReply::Nothing => self.without_form(workflow).await,
            LadderReply::Said(said, by) => {
                let mut id = workflow.id;
                if !workflow.is_live_at(now()) {
                    // The person took longer than the question lived: what they said is put to it again.
                    id = self
                        .proxy
                        .question(self.tool.name(), questions.to_vec())
                        .await?
                        .id;
                }
                record(self.proxy, id, said, by).await?;
                self.stand(id, Duration::ZERO).await
            }
        }
    }

    /// Returns an id at once, or waits, where no form brought an answer.
    async fn without_form(&self, workflow: Workflow) -> Result<Resolution, Refusal> {
        let settings = self.proxy.ask_user();
        let (mode, patience) = if self.proxy.is_in_run() {
            (AskUserMode::Blocking, settings.kept)
        } else {
            (settings.mode, settings.patience())
        };
        if mode == AskUserMode::Suspend {
            // An answer may have come on another road while a form was open.
            return self.stand(workflow.id, Duration::ZERO).await;
        }
        self.ladder.wait(self.requester, workflow.id, patience).await;
        Ok(Resolution::OwnResult(
            match self.status(workflow.id, Duration::ZERO).await? {
                QuestionStatus::Pending(workflow) => timed_out(self.tool, &workflow),
                questioned => result(self.tool, questioned),
            },
        ))
    }

    /// Continues a question: with the answer a client relays, or by asking how it stands.
    async fn continued(&self, continuation: &Value) -> Result<Resolution, Refusal> {
        let refused = |reason: String| Ok(Resolution::OwnResult(error_result(&reason, None)));
        let Some(members) = continuation.as_object() else {
            return refused(format!("`{MEMBER}` must be an object"));
        };
        let known = ["workflow_id", "answer", "answers", "wait_seconds"];
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let name = Shown::line(name).to_string();
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
        let (workflow, questions) = self.asked(id).await?;
        let given = ["answers", "answer"]
            .into_iter()
            .filter_map(|name| members.get(name))
            .find(|value| !value.is_null());
        if let Some(given) = given {
            // One question has one answer, whichever of the two tools asked it.
            let alone = questions.len() == 1 && members.get("answers").is_none_or(Value::is_null);
            let tool = if alone { QuestionTool::One } else { self.tool };
            let answers = match relayed(tool, &self.proxy.card(&workflow).questions, given) {
                Ok(answers) => answers,
                Err(reason) => return refused(reason),
            };
            let (said, by) = (Said::answers(answers), Road::Continuation);
            match self.proxy.say(workflow.id, said, by).await {
                Ok(_) => {}
                Err(Refusal::Unfit { complaint, .. }) => return refused(complaint.to_string()),
                Err(refusal) => return Err(refusal),
            }
        }
        self.stand(workflow.id, patience).await
    }

    /// Reports how questions stand, waiting up to `patience` for an answer.
    async fn stand(&self, id: WorkflowId, patience: Duration) -> Result<Resolution, Refusal> {
        let questioned = self.status(id, patience).await?;
        Ok(Resolution::OwnResult(result(self.tool, questioned)))
    }

    /// Returns the status of questions for a call that ends with it: an answer that comes later is for the next call.
    async fn status(&self, id: WorkflowId, patience: Duration) -> Result<QuestionStatus, Refusal> {
        let status = self.proxy.question_status(id, patience).await?;
        if let QuestionStatus::Pending(_) = &status {
            self.proxy.leave_unattended(id).await?;
        }
        Ok(status)
    }

    /// Finds the questions behind an id; those of the other tool are not this one's business.
    async fn asked(&self, id: &str) -> Result<(Workflow, Vec<Question>), Refusal> {
        let id: WorkflowId = id.parse().map_err(|_malformed| Refusal::Expired)?;
        let workflow = self.proxy.workflow_here(id).await?;
        match workflow.ask.clone() {
            Ask::Questions { questions } if workflow.call.tool.tool() == self.tool.name() => {
                Ok((workflow, questions))
            }
            _ => Err(Refusal::OtherCall),
        }
    }
}

/// Records what a person said in a form; where another answer was first, that one counts.
pub(super) async fn record(proxy: &Proxy, id: WorkflowId, said: Said, by: Road) -> Result<(), Refusal> {
    match proxy.say(id, said, by).await {
        Ok(_) => Ok(()),
        Err(refusal) if came_second(&refusal) => Ok(()),
        Err(refusal) => Err(refusal),
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

/// Reads answers that a client relays: text or labels, one entry a question where there are several, and `null` for one
/// that the person left unanswered.
fn relayed(
    tool: QuestionTool,
    questions: &[CardQuestion],
    given: &Value,
) -> Result<Vec<Option<SaidAnswer>>, String> {
    let entries: Vec<&Value> = match (tool, given) {
        (QuestionTool::One, given) => vec![given],
        (QuestionTool::Several, Value::Array(entries)) => entries.iter().collect(),
        (QuestionTool::Several, Value::Object(keyed)) => {
            if let Some(name) = keyed
                .keys()
                .find(|name| !questions.iter().any(|question| question.asked.question == **name))
            {
                return Err(format!("`answers` names no question `{}`", Shown::line(name)));
            }
            questions
                .iter()
                .filter_map(|question| keyed.get(&question.asked.question))
                .collect()
        }
        (QuestionTool::Several, _) => {
            return Err("`answers` must be a list with one entry a question".to_owned());
        }
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
            let values: Option<Vec<String>> = match entry {
                Value::Null => return Ok(None),
                Value::String(text) => Some(vec![text.clone()]),
                Value::Array(list) => list
                    .iter()
                    .map(|label| label.as_str().map(str::to_owned))
                    .collect(),
                _ => None,
            };
            let values = values.ok_or_else(|| format!("`{field}` must be a string or a list of strings"))?;
            Ok(Some(SaidAnswer::loosely(question, values, None)))
        })
        .collect()
}
