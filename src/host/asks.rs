//! The asks of an agent: what its requests become in the store, and what answers become for the agent.
//!
//! The same rules and the same store as for every other client. An ask of a run lives as long as a question does: an answer
//! that comes tomorrow starts the run again.

mod permission;
mod server;
mod waiting_ask;

use std::time::Duration;

use super::asked_questions::{ReadQuestions, read_questions};
use super::claude::ASKING_TOOLS;
use super::line::{AgentRequest, PermissionRequest};
use super::record::{KeptAsk, KeptAskKind};
use super::{form, reply};
use crate::config::AskUserTools;
use crate::protocol::Shown;
use crate::protocol::own_tool::APPROVAL_PROMPT;
use crate::proxy::{Answer, Ask, Proxy, QuestionStatus, Refusal, WorkflowId};
use crate::report;
use crate::workflow::WorkflowError;
pub(super) use waiting_ask::WaitingAsk;
use waiting_ask::{AskedThing, waiting};

/// How long a store that cannot be read now is left alone.
const AGAIN: Duration = Duration::from_millis(500);

/// What a model is told where questions are turned off.
const NO_QUESTIONS: &str = "Questions to the person are turned off in this project (\"askUser\" in .pml.json). Decide by yourself, and say what you assumed.";

/// What becomes of a request of the agent.
#[derive(Debug)]
pub(super) enum Asked {
    /// It is answered at once, with this line.
    Reply(String),
    /// A person cannot be asked it here; it is answered at once, and they are told.
    Unasked {
        /// The line that answers it.
        reply: String,
        /// What they are told, escaped.
        note: String,
    },
    /// A person must answer.
    Waits(Box<WaitingAsk>),
}

/// What comes of an answer of a person.
#[derive(Debug)]
pub(super) enum Told {
    /// The line for the agent.
    Line(String),
    /// The person is asked again, as their answer does not fit.
    Again(Box<WaitingAsk>),
}

/// Puts asks of one run into the store and brings answers back.
#[derive(Clone)]
pub(super) struct Asks {
    proxy: Proxy,
}

impl Asks {
    pub(super) fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }

    /// Decides about a request, or puts it to a person. `kept` is what the same call has asked before.
    pub(super) async fn put(&self, id: String, request: AgentRequest, kept: Option<KeptAsk>) -> Asked {
        let refused = |id: &str, request: &AgentRequest, refusal: &Refusal| {
            let reason = report::render_hinted(refusal);
            Asked::Reply(match request {
                AgentRequest::Hook { .. } => reply::hook_deny(id, &reason),
                AgentRequest::Permission(_) => reply::deny(id, &reason),
                AgentRequest::Elicitation { .. } => reply::form_declined(id),
                AgentRequest::Unknown { .. } => reply::failure(id, &reason),
            })
        };
        match self.try_put(&id, &request, kept.as_ref()).await {
            Ok(asked) => asked,
            Err(refusal) => refused(&id, &request, &refusal),
        }
    }

    async fn try_put(
        &self,
        id: &str,
        request: &AgentRequest,
        kept: Option<&KeptAsk>,
    ) -> Result<Asked, Refusal> {
        match request {
            AgentRequest::Permission(request) => self.permission(id, request, kept).await,
            AgentRequest::Hook {
                tool,
                input,
                tool_use,
                ..
            } => self.hook(id, tool, input, tool_use, kept).await,
            AgentRequest::Elicitation {
                server,
                message,
                schema,
            } => self.form(id, server, message, schema.as_deref()).await,
            AgentRequest::Unknown { subtype } => Ok(Asked::Reply(unread(id, subtype))),
        }
    }

    async fn hook(
        &self,
        id: &str,
        tool: &str,
        input: &str,
        tool_use: &str,
        before: Option<&KeptAsk>,
    ) -> Result<Asked, Refusal> {
        if !ASKING_TOOLS.contains(&tool) {
            return self.before_call(id, tool, input, tool_use, before).await;
        }
        if self.proxy.ask_user().tools == AskUserTools::Off {
            return Ok(Asked::Reply(reply::hook_deny(id, NO_QUESTIONS)));
        }
        let read = match read_questions(tool, input) {
            Ok(Some(read)) => read,
            // The tool itself says what is wrong with its arguments, or what it continues.
            Ok(None) => return Ok(Asked::Reply(reply::no_opinion(id))),
            Err(reason) => return Ok(Asked::Reply(reply::hook_deny(id, &reason))),
        };
        let ReadQuestions { asking, questions } = read;
        let workflow = match before {
            Some(kept) => self.proxy.workflow(kept.workflow).await?,
            None => self.proxy.question(asking, questions.clone()).await?,
        };
        let (kind, what) = if tool == ASKING_TOOLS[0] {
            let input = input.to_owned();
            (KeptAskKind::Questions, AskedThing::Questions { input, questions })
        } else {
            (KeptAskKind::OwnTool, AskedThing::OwnTool)
        };
        Ok(waiting(id, workflow, tool_use, kind, what).into())
    }

    /// Puts questions that came without their hook: a resumed agent may ask before it knows of one.
    async fn unhooked_question(
        &self,
        id: &str,
        request: &PermissionRequest,
        kept: Option<&KeptAsk>,
    ) -> Result<Asked, Refusal> {
        if self.proxy.ask_user().tools == AskUserTools::Off {
            return Ok(Asked::Reply(reply::deny(id, NO_QUESTIONS)));
        }
        let questions = match read_questions(&request.tool, &request.input) {
            Ok(Some(read)) => read.questions,
            Ok(None) => return Ok(Asked::Reply(reply::deny(id, "`questions` must be a list"))),
            Err(reason) => return Ok(Asked::Reply(reply::deny(id, &reason))),
        };
        let workflow = match kept {
            Some(kept) => self.proxy.workflow(kept.workflow).await?,
            None => self.proxy.question(APPROVAL_PROMPT, questions.clone()).await?,
        };
        let input = request.input.clone();
        let what = AskedThing::Unhooked { input, questions };
        Ok(waiting(id, workflow, &request.tool_use, KeptAskKind::Unhooked, what).into())
    }

    async fn form(
        &self,
        id: &str,
        server: &str,
        message: &str,
        schema: Option<&str>,
    ) -> Result<Asked, Refusal> {
        let read = match schema {
            Some(schema) => form::Form::read(server, message, schema),
            None => Err(form::NoForm::Unreadable),
        };
        let form = match read {
            Ok(form) => form,
            Err(reason) => {
                return Ok(Asked::Unasked {
                    reply: reply::form_declined(id),
                    note: format!("a form of `{}` was declined: {reason}", Shown::line(server)),
                });
            }
        };
        Ok(self.put_form(id, form).await?.into())
    }

    async fn put_form(&self, id: &str, form: form::Form) -> Result<WaitingAsk, Refusal> {
        let questions = form.questions();
        let workflow = self.proxy.question(APPROVAL_PROMPT, questions).await?;
        Ok(waiting(
            id,
            workflow,
            id,
            KeptAskKind::Form,
            AskedThing::Form(form),
        ))
    }

    /// Waits until a person has answered, or until no answer can come. A store that cannot be read is no answer.
    pub(super) async fn decided(&self, id: WorkflowId) {
        while let Err(refusal) = self.proxy.decided(id).await {
            if !is_passing(&refusal) {
                return;
            }
            tracing::warn!("{}", report::render_hinted(&refusal));
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Withdraws an ask that the agent does not wait for any more.
    pub(super) async fn withdraw(&self, id: WorkflowId) {
        self.proxy.withdraw(id).await;
    }

    /// Takes note that the agent has read the answers to its questions, so that no other question gets them. An approval is
    /// taken by its call.
    pub(super) async fn told(&self, id: WorkflowId) {
        let taken = async {
            match self.proxy.workflow(id).await?.ask {
                Ask::Questions { .. } => self.proxy.take_answer(id).await.map(drop),
                _ => Ok(()),
            }
        };
        if let Err(refusal) = taken.await {
            tracing::warn!("{}", report::render_hinted(&refusal));
        }
    }

    /// Leaves an ask to whichever call or process comes for its answer next.
    pub(super) async fn leave(&self, id: WorkflowId) {
        if let Err(refusal) = self.proxy.leave_unattended(id).await {
            tracing::warn!("{}", report::render_hinted(&refusal));
        }
    }

    /// Writes the line that gives the agent the answer to a request, or tells it why there is none. An answer that
    /// cannot be read now is waited for: it must not become a refusal.
    pub(super) async fn answer(&self, ask: &WaitingAsk) -> Told {
        loop {
            match self.try_answer(ask).await {
                Ok(told) => return told,
                Err(refusal) if is_passing(&refusal) => {
                    tracing::warn!("{}", report::render_hinted(&refusal));
                    tokio::time::sleep(AGAIN).await;
                }
                Err(refusal) => return Told::Line(Self::refuse(ask, &report::render_hinted(&refusal))),
            }
        }
    }

    async fn try_answer(&self, ask: &WaitingAsk) -> Result<Told, Refusal> {
        let id = ask.request.as_str();
        let line = match &ask.what {
            AskedThing::Questions { input, questions } => match self.status(ask).await? {
                QuestionStatus::Answered { answers, .. } => {
                    reply::hook_answers(id, input, questions, &answers)
                }
                other => reply::hook_deny(id, &unanswered(&other)),
            },
            AskedThing::Unhooked { input, questions } => match self.status(ask).await? {
                QuestionStatus::Answered { answers, .. } => reply::allow(
                    id,
                    &reply::answered_input(input, questions, &answers).to_string(),
                    &[],
                ),
                other => reply::deny(id, &unanswered(&other)),
            },
            AskedThing::OwnTool => {
                let workflow = self.proxy.workflow(ask.workflow.id).await?;
                match workflow.answer() {
                    // Its call takes the answer itself.
                    Some(Answer::Answers { .. }) => {
                        self.leave(workflow.id).await;
                        reply::hook_allow(id)
                    }
                    _ => reply::hook_deny(id, &unanswered(&self.status(ask).await?)),
                }
            }
            AskedThing::Permission(request) | AskedThing::HookedPermission(request) => {
                self.permitted(ask, request).await?
            }
            AskedThing::Form(form) => match self.status(ask).await? {
                QuestionStatus::Answered { answers, .. } => match form.fill(&answers) {
                    Ok(content) => reply::form_accepted(id, &content),
                    Err(unfit) => {
                        let again = self.put_form(id, form.again(unfit)).await?;
                        return Ok(Told::Again(Box::new(again)));
                    }
                },
                _ => reply::form_declined(id),
            },
        };
        Ok(Told::Line(line))
    }

    /// Writes the line that tells the agent why there is no answer.
    fn refuse(ask: &WaitingAsk, reason: &str) -> String {
        match ask.what {
            AskedThing::Questions { .. } | AskedThing::OwnTool | AskedThing::HookedPermission(_) => {
                reply::hook_deny(&ask.request, reason)
            }
            AskedThing::Permission(_) | AskedThing::Unhooked { .. } => reply::deny(&ask.request, reason),
            AskedThing::Form(_) => reply::form_declined(&ask.request),
        }
    }

    async fn status(&self, ask: &WaitingAsk) -> Result<QuestionStatus, Refusal> {
        let now = std::time::Duration::ZERO;
        self.proxy.question_status(ask.workflow.id, now).await
    }
}

impl From<WaitingAsk> for Asked {
    fn from(ask: WaitingAsk) -> Self {
        Self::Waits(Box::new(ask))
    }
}

/// Answers a request that cannot be read: no call runs on one.
fn unread(id: &str, subtype: &str) -> String {
    let reason = format!("this host cannot read `{}`", Shown::line(subtype));
    match subtype {
        "hook_callback" => reply::hook_deny(id, &reason),
        "can_use_tool" => reply::deny(id, &reason),
        "elicitation" => reply::form_declined(id),
        _ => reply::failure(id, &reason),
    }
}

/// Tells whether what could not be done now may be done a little later: the store is busy, or the disk is full.
fn is_passing(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::NotRecorded(_) => true,
        Refusal::Workflow(error) => !matches!(
            error,
            WorkflowError::Unknown { .. }
                | WorkflowError::NoMatch { .. }
                | WorkflowError::Ambiguous { .. }
                | WorkflowError::WrongTool { .. }
                | WorkflowError::Refused { .. }
                | WorkflowError::Unfit { .. }
                | WorkflowError::Vetoed { .. }
                | WorkflowError::Full { .. }
                | WorkflowError::Erased { .. }
        ),
        _ => false,
    }
}

fn unanswered(status: &QuestionStatus) -> String {
    match status {
        QuestionStatus::Rejected { reason: Some(reason) } => {
            format!("The person would not answer: {reason}")
        }
        QuestionStatus::Rejected { reason: None } => "The person would not answer.".to_owned(),
        QuestionStatus::Pending(_)
        | QuestionStatus::TimedOut
        | QuestionStatus::Withdrawn
        | QuestionStatus::Answered { .. } => {
            "No person answered, and none refused. Do not assume an answer.".to_owned()
        }
    }
}
