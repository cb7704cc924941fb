//! The asks of an agent: what its requests become in the store, and what answers become for the agent.
//!
//! The same rules and the same store as for every other client. An ask of a run lives as long as a question does: an answer
//! that comes tomorrow starts the run again.

use super::asked_questions::{ReadQuestions, read_questions};
use super::claude::ASKING_TOOLS;
use super::line::{AgentRequest, PermissionRequest};
use super::record::{KeptAsk, KeptAskKind};
use super::{form, reply};
use crate::config::AskUserTools;
use crate::protocol::continuation::Scope;
use crate::protocol::own_tool::APPROVAL_PROMPT;
use crate::protocol::question::Question;
use crate::protocol::{DependencyName, ToolName};
use crate::proxy::{
    Answer, ClientToolRuling, Proxy, QuestionStatus, Refusal, UseReach, Workflow, WorkflowId,
};
use crate::report;
use serde_json::Value;

/// What a model is told after a refusal, so that it does not ask for the same again.
const NOT_AGAIN: &str = "Do not try it again unless they ask for it.";

/// What a model is told where questions are turned off.
const NO_QUESTIONS: &str = "Questions to the person are turned off in this project (\"askUser\" in .pml.json). Decide by yourself, and say what you assumed.";

/// What becomes of a request of the agent.
#[derive(Debug)]
pub(super) enum Asked {
    /// It is answered at once, with this line.
    Reply(String),
    /// A person must answer.
    Waits(Box<WaitingAsk>),
}

/// A request of the agent that waits for a person.
#[derive(Debug, Clone)]
pub(super) struct WaitingAsk {
    /// The agent's request.
    pub(super) request: String,
    /// The ask in the store, as it was when it was put.
    pub(super) workflow: Workflow,
    /// What is kept of it for a later process.
    pub(super) kept: KeptAsk,
    /// What is needed to answer the agent.
    what: AskedThing,
}

#[derive(Debug, Clone)]
enum AskedThing {
    Questions { input: String, questions: Vec<Question> },
    Unhooked { input: String, questions: Vec<Question> },
    OwnTool,
    Permission(PermissionRequest),
    Form(form::Form),
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
            AgentRequest::Unknown { subtype } => {
                let reason = format!(
                    "this host does not know `{}`",
                    crate::protocol::Shown::line(subtype)
                );
                Ok(Asked::Reply(reply::failure(id, &reason)))
            }
        }
    }

    async fn permission(
        &self,
        id: &str,
        request: &PermissionRequest,
        kept: Option<&KeptAsk>,
    ) -> Result<Asked, Refusal> {
        if request.tool == ASKING_TOOLS[0] {
            return self.unhooked_question(id, request, kept).await;
        }
        let tool = ToolName::new(DependencyName::client(), request.tool.as_str());
        match self.ruled(request)? {
            ClientToolRuling::Allow => Ok(Asked::Reply(reply::allow(id, &request.input, &[]))),
            ClientToolRuling::Ask => {
                let patience = self.proxy.ask_user().kept;
                let (workflow, _claim) = self
                    .proxy
                    .use_of(tool, request.input.clone(), request.reach, patience)
                    .await?;
                let what = AskedThing::Permission(request.clone());
                Ok(waiting(
                    id,
                    workflow,
                    &request.tool_use,
                    KeptAskKind::Permission,
                    what,
                ))
            }
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
        Ok(waiting(id, workflow, tool_use, kind, what))
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
        Ok(waiting(
            id,
            workflow,
            &request.tool_use,
            KeptAskKind::Unhooked,
            what,
        ))
    }

    async fn form(
        &self,
        id: &str,
        server: &str,
        message: &str,
        schema: Option<&str>,
    ) -> Result<Asked, Refusal> {
        let Some(form) = schema.and_then(|schema| form::Form::read(server, message, schema)) else {
            return Ok(Asked::Reply(reply::form_declined(id)));
        };
        let workflow = self
            .proxy
            .question(APPROVAL_PROMPT, form.questions.clone())
            .await?;
        Ok(waiting(
            id,
            workflow,
            id,
            KeptAskKind::Form,
            AskedThing::Form(form),
        ))
    }

    /// Waits until a person has answered, or until no answer can come.
    pub(super) async fn decided(&self, id: WorkflowId) -> Result<Workflow, Refusal> {
        self.proxy.decided(id).await
    }

    /// Withdraws an ask that the agent does not wait for any more.
    pub(super) async fn withdraw(&self, id: WorkflowId) {
        self.proxy.withdraw(id).await;
    }

    /// Leaves an ask to whichever call or process comes for its answer next.
    pub(super) async fn leave(&self, id: WorkflowId) {
        if let Err(refusal) = self.proxy.leave_unattended(id).await {
            tracing::warn!("{}", report::render_hinted(&refusal));
        }
    }

    /// Writes the line that gives the agent the answer to a request.
    pub(super) async fn answer(&self, ask: &WaitingAsk) -> Result<String, Refusal> {
        let id = ask.request.as_str();
        match &ask.what {
            AskedThing::Questions { input, questions } => Ok(match self.status(ask).await? {
                QuestionStatus::Answered { answers, .. } => {
                    reply::hook_answers(id, input, questions, &answers)
                }
                other => reply::hook_deny(id, &unanswered(&other)),
            }),
            AskedThing::Unhooked { input, questions } => Ok(match self.status(ask).await? {
                QuestionStatus::Answered { answers, .. } => reply::allow(
                    id,
                    &reply::answered_input(input, questions, &answers).to_string(),
                    &[],
                ),
                other => reply::deny(id, &unanswered(&other)),
            }),
            AskedThing::OwnTool => {
                let workflow = self.proxy.workflow(ask.workflow.id).await?;
                Ok(match workflow.answer() {
                    // Its call takes the answer itself.
                    Some(Answer::Answers { .. }) => {
                        self.leave(workflow.id).await;
                        reply::hook_allow(id)
                    }
                    _ => reply::hook_deny(id, &unanswered(&self.status(ask).await?)),
                })
            }
            AskedThing::Permission(request) => self.permitted(ask, request).await,
            AskedThing::Form(form) => Ok(match self.status(ask).await? {
                QuestionStatus::Answered { answers, .. } => match form.fill(&answers) {
                    Some(content) => reply::form_accepted(id, &content),
                    None => reply::form_declined(id),
                },
                _ => reply::form_declined(id),
            }),
        }
    }

    /// Writes the line that tells the agent why there is no answer.
    pub(super) fn refuse(ask: &WaitingAsk, reason: &str) -> String {
        match ask.what {
            AskedThing::Questions { .. } | AskedThing::OwnTool => reply::hook_deny(&ask.request, reason),
            AskedThing::Permission(_) | AskedThing::Unhooked { .. } => reply::deny(&ask.request, reason),
            AskedThing::Form(_) => reply::form_declined(&ask.request),
        }
    }

    async fn status(&self, ask: &WaitingAsk) -> Result<QuestionStatus, Refusal> {
        let now = std::time::Duration::ZERO;
        self.proxy.question_status(ask.workflow.id, now).await
    }

    fn ruled(&self, request: &PermissionRequest) -> Result<ClientToolRuling, Refusal> {
        let input: Value = serde_json::from_str(&request.input).unwrap_or_default();
        let command = input.get("command").and_then(Value::as_str);
        self.proxy.client_tool_ruling(&request.tool, command)
    }

    async fn permitted(&self, ask: &WaitingAsk, request: &PermissionRequest) -> Result<String, Refusal> {
        let id = ask.request.as_str();
        let tool = || ToolName::new(DependencyName::client(), request.tool.as_str());
        // A rule may have been written meanwhile: a denial wins over an answer.
        let ruled = self.ruled(request)?;
        let answer = self.proxy.take_answer(ask.workflow.id).await?;
        Ok(match (answer, request.reach) {
            (
                Some(Answer::Approve {
                    scope: Scope::Session,
                }),
                UseReach::Lasting,
            ) => {
                self.proxy.allow_for_session(tool());
                reply::allow(id, &request.input, &[])
            }
            (Some(Answer::Approve { scope: Scope::Always }), UseReach::Lasting) => {
                if let Err(note) = self.proxy.allow_always(tool()).await {
                    tracing::warn!("{note}");
                }
                reply::allow(id, &request.input, &[])
            }
            (Some(Answer::Approve { .. }), _) => reply::allow(id, &request.input, &[]),
            (Some(Answer::Refuse { reason: Some(reason) }), _) => {
                reply::deny(id, &format!("The person refused: {reason}\n{NOT_AGAIN}"))
            }
            (Some(Answer::Refuse { reason: None } | Answer::Answers { .. }), _) => {
                reply::deny(id, &format!("The person refused.\n{NOT_AGAIN}"))
            }
            (None, _) if ruled == ClientToolRuling::Allow => reply::allow(id, &request.input, &[]),
            (None, _) => reply::deny(
                id,
                "No person answered, and none refused. Do not assume an answer.",
            ),
        })
    }
}

fn waiting(id: &str, workflow: Workflow, call: &str, kind: KeptAskKind, what: AskedThing) -> Asked {
    let kept = KeptAsk {
        workflow: workflow.id,
        call: call.to_owned(),
        kind,
    };
    Asked::Waits(Box::new(WaitingAsk {
        request: id.to_owned(),
        workflow,
        kept,
        what,
    }))
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
