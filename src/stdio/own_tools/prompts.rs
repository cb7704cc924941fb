//! The prompts of pml: slash commands by which a person answers from inside their client.
//!
//! A model cannot run a prompt, so what comes here is a person's word, also where only a person counts. What comes
//! back is a message in the person's name that tells the model what happened and what to call next.
//!
//! The non-obvious thing: some clients cut arguments at spaces, so every message repeats what was recorded.

use serde_json::{Map, Value, json};

use crate::card::{Said, SaidAnswer};
use crate::protocol::continuation::{MEMBER, Scope};
use crate::protocol::own_tool::CONTINUE;
use crate::protocol::question::QuestionAnswer;
use crate::protocol::{Payload, Shown, repeated};
use crate::proxy::{Answer, Ask, Proxy, Refusal, Road, Workflow, now};
use crate::report::render_hinted;
use crate::stdio::client::answer::{ResponseBody, own_result};
use crate::stdio::era::{Era, RpcError};

/// What a person wants to say by a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// A call may run.
    Approve { code: String, scope: Scope },
    /// A call must not run, a question is not answered.
    Refuse { code: String, reason: Option<String> },
    /// What they say to a question.
    Answer { code: String, text: String },
    /// What waits for them?
    Pending,
}

/// The names of the prompts.
const NAMES: [&str; 4] = ["approve", "refuse", "answer", "pending"];

/// Tells whether `prompts/get` means a prompt of pml's own; what is malformed does, so that it is told so.
pub(crate) fn is_own(params: Option<&Payload<'_>>) -> bool {
    params
        .and_then(Payload::object)
        .and_then(|object| object.text("name"))
        .is_none_or(|name| NAMES.contains(&name.as_ref()))
}

/// Returns the definitions of pml's own prompts.
pub(crate) fn definitions() -> Vec<Value> {
    let code = json!({ "name": "code", "description": "The five letters of the ask", "required": true });
    let optional = |name: &str, about: &str| json!({ "name": name, "description": about, "required": false });
    let definitions = json!([
        {
            "name": "approve",
            "title": "Approve a call",
            "description": "Let a call run that waits for you",
            "arguments": [code, optional("scope", "once (the default: this server as it is shown, or this call), session or always")],
        },
        {
            "name": "refuse",
            "title": "Refuse a call",
            "description": "Do not let a call run that waits for you, or do not answer a question",
            "arguments": [code, optional("reason", "Why; the model is told")],
        },
        {
            "name": "answer",
            "title": "Answer a question",
            "description": "Answer a question of the model",
            "arguments": [
                code,
                { "name": "text", "description": "A number, an option, or your own words", "required": true },
            ],
        },
        {
            "name": "pending",
            "title": "What waits for you",
            "description": "List the calls and questions that wait for your answer",
            "arguments": [],
        },
    ]);
    match definitions {
        Value::Array(definitions) => definitions,
        _ => Vec::new(),
    }
}

impl Prompt {
    /// Reads the parameters of `prompts/get`.
    pub(crate) fn read(params: Option<&Payload<'_>>) -> Result<Self, RpcError> {
        let invalid = |reason: String| RpcError::new(RpcError::INVALID_PARAMS, reason);
        let params: Value = params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let name = params["name"]
            .as_str()
            .ok_or_else(|| invalid("`params.name` is not a string".to_owned()))?;
        let none = Map::new();
        let arguments = match &params["arguments"] {
            Value::Null => &none,
            Value::Object(members) => members,
            _ => return Err(invalid("`params.arguments` is not an object".to_owned())),
        };
        let optional = |name: &str| match arguments.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Some(_) => Err(invalid(format!("the argument `{name}` is not a string"))),
        };
        let required =
            |name: &str| optional(name)?.ok_or_else(|| invalid(format!("the argument `{name}` is missing")));
        let only = |known: &[&str]| match arguments.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(stranger) => Err(invalid(format!("there is no argument `{}`", repeated(stranger)))),
        };
        match name {
            "approve" => {
                only(&["code", "scope"])?;
                let scope = match optional("scope")?.as_deref() {
                    None | Some("once") => Scope::Once,
                    Some("session") => Scope::Session,
                    Some("always") => Scope::Always,
                    Some(other) => {
                        let other = repeated(other);
                        return Err(invalid(format!(
                            "the argument `scope` is once, session or always, not `{other}`"
                        )));
                    }
                };
                let code = required("code")?;
                Ok(Self::Approve { code, scope })
            }
            "refuse" => {
                only(&["code", "reason"])?;
                let (code, reason) = (required("code")?, optional("reason")?);
                Ok(Self::Refuse { code, reason })
            }
            "answer" => {
                only(&["code", "text"])?;
                let (code, text) = (required("code")?, required("text")?);
                Ok(Self::Answer { code, text })
            }
            "pending" => only(&[]).map(|()| Self::Pending),
            other => Err(invalid(format!("Unknown prompt: {}", repeated(other)))),
        }
    }

    /// Does what the person wants and tells the model what came of it.
    pub(crate) async fn run(self, proxy: &Proxy, era: Era) -> ResponseBody {
        let text = match self.carry_out(proxy).await {
            Ok(text) => text,
            Err(refusal) => format!(
                "The person ran a prompt of pml, but it changed nothing. Tell them why: {}",
                render_hinted(&refusal)
            ),
        };
        let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
        own_result(json!({ "messages": [message] }), era)
    }

    async fn carry_out(self, proxy: &Proxy) -> Result<String, Refusal> {
        let by = Road::Prompt;
        match self {
            Self::Approve { code, scope } => {
                let workflow = proxy.workflow_named(&code).await?;
                let said = Said::decision(scope.into());
                let approved = proxy.say(workflow.id, said, by).await?;
                Ok(approval(&approved, scope))
            }
            Self::Refuse { code, reason } => {
                let workflow = proxy.workflow_named(&code).await?;
                let said = Said::refusal(reason.clone());
                let refused = proxy.say(workflow.id, said, by).await?;
                Ok(refusal(&refused, reason.as_deref()))
            }
            Self::Answer { code, text } => {
                let workflow = proxy.workflow_named(&code).await?;
                let card = proxy.card(&workflow);
                let said = match card.questions.as_slice() {
                    // Whatever is said: it is no answer to this.
                    [] => Ok(SaidAnswer::default()),
                    [question] => SaidAnswer::typed(question, "text", &text),
                    several => return Ok(too_many(&workflow, several.len())),
                };
                let said = match said {
                    Ok(said) => said,
                    Err(error) => return Ok(not_answered(&workflow, &error.to_string())),
                };
                match proxy.say(workflow.id, Said::answers([said]), by).await {
                    Ok(answered) => Ok(answer(&answered)),
                    Err(Refusal::Unfit { complaint, .. }) => {
                        Ok(not_answered(&workflow, &complaint.to_string()))
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            Self::Pending => Ok(waiting(&proxy.pending().await?)),
        }
    }
}

fn named(workflow: &Workflow) -> String {
    let tool = workflow.call.tool.to_string();
    format!("`{}` (`{}`)", workflow.code, Shown::line(&tool))
}

fn approval(workflow: &Workflow, scope: Scope) -> String {
    let reach = match (scope, &workflow.ask) {
        (Scope::Once, Ask::Install { .. } | Ask::Connect { .. }) => "as it was shown, from now on",
        (_, Ask::Integrity { dependency }) if dependency.awaits_contents() => {
            "and is asked again with all that is installed with it"
        }
        (_, Ask::Trust { .. } | Ask::Integrity { .. }) => "exactly as it is, from now on",
        (Scope::Once, Ask::Permit { .. } | Ask::Use { .. } | Ask::Questions { .. }) => "this call only",
        (Scope::Session, _) => "for this session",
        (Scope::Always, _) => "from now on",
    };
    let approved = format!("The person approved {}, {reach}.", named(workflow));
    match &workflow.ask {
        Ask::Use { .. } | Ask::Questions { .. } => format!("{approved} What waits for it goes on by itself."),
        Ask::Install { .. }
        | Ask::Connect { .. }
        | Ask::Permit { .. }
        | Ask::Trust { .. }
        | Ask::Integrity { .. } => {
            let arguments = json!({ "workflow_id": workflow.id, "approved": true });
            format!(
                "{approved} If the call still waits, it goes on by itself; otherwise call `{CONTINUE}` with \
                 {arguments}: the original call is kept and runs as it was."
            )
        }
    }
}

fn refusal(workflow: &Workflow, reason: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| {
        format!(" Their reason: {}", Shown::line(reason))
    });
    let refused = format!("The person refused {}.{reason}", named(workflow));
    format!("{refused}\nIt will not run and is not to be asked again unless they say so.")
}

fn not_answered(workflow: &Workflow, why: &str) -> String {
    let code = &workflow.code;
    format!("The person wanted to answer `{code}`, but it changed nothing: {why}. Tell them.")
}

fn answer(workflow: &Workflow) -> String {
    let summary = match workflow.answer() {
        Some(Answer::Answers { answers }) => answers.iter().map(QuestionAnswer::summary).collect(),
        Some(Answer::Approve { .. } | Answer::Refuse { .. }) | None => String::new(),
    };
    let arguments = json!({ MEMBER: { "workflow_id": workflow.id } });
    format!(
        "The person answered `{}`. {}\nIf the question still waits, it goes on by itself; otherwise call `{}` with \
         {arguments} to take the answer.",
        workflow.code,
        Shown::block(&summary),
        Shown::line(workflow.call.tool.tool()),
    )
}

fn too_many(workflow: &Workflow, questions: usize) -> String {
    let code = &workflow.code;
    format!(
        "The person wanted to answer `{code}`, but it asks {questions} questions and a prompt answers one; nothing changed. \
         Tell them to run `pml answer {code}` in a terminal."
    )
}

fn waiting(pending: &[Workflow]) -> String {
    if pending.is_empty() {
        return "The person asked what waits for them in pml: nothing does. Tell them so.".to_owned();
    }
    let now = now();
    let summary = |workflow: &Workflow| match &workflow.ask {
        // What the person has not accepted must not steer the model, which reads this as well.
        Ask::Integrity { dependency } => {
            let ask = Ask::Integrity {
                dependency: dependency.clone().for_a_model(),
            };
            let shown = Workflow {
                ask,
                ..workflow.clone()
            };
            let (summary, code) = (shown.summary(now), &workflow.code);
            format!("{summary}\n  all of it  pml pending {code}")
        }
        _ => workflow.summary(now),
    };
    let summary: Vec<_> = pending.iter().map(summary).collect();
    format!(
        "The person asked what waits for them in pml. Show them exactly this, and do not decide for them: they use \
         the prompts `approve CODE`, `refuse CODE` and `answer CODE TEXT` of pml, or `pml approve CODE` and so on in \
         a terminal.\n\n{}",
        summary.join("\n\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Prompt, (i64, String)> {
        let raw = Payload::parse(text).unwrap();
        Prompt::read(Some(&raw)).map_err(|fault| (fault.code, fault.message))
    }

    #[test]
    fn prompts_are_read() {
        let code = || "abcde".to_owned();
        for (text, prompt) in [
            (
                r#"{"name":"approve","arguments":{"code":" abcde "}}"#,
                Prompt::Approve {
                    code: code(),
                    scope: Scope::Once,
                },
            ),
            (
                r#"{"name":"approve","arguments":{"code":"abcde","scope":"always"}}"#,
                Prompt::Approve {
                    code: code(),
                    scope: Scope::Always,
                },
            ),
            (
                r#"{"name":"refuse","arguments":{"code":"abcde","reason":""}}"#,
                Prompt::Refuse {
                    code: code(),
                    reason: None,
                },
            ),
            (
                r#"{"name":"answer","arguments":{"code":"abcde","text":"my words"}}"#,
                Prompt::Answer {
                    code: code(),
                    text: "my words".to_owned(),
                },
            ),
            (r#"{"name":"pending","_meta":{}}"#, Prompt::Pending),
        ] {
            assert_eq!(read(text), Ok(prompt));
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        for (text, reason) in [
            ("{}", "`params.name` is not a string"),
            (r#"{"name":"appro\u001bve"}"#, "Unknown prompt: appro\\u{1b}ve"),
            (r#"{"name":"approve"}"#, "the argument `code` is missing"),
            (
                r#"{"name":"approve","arguments":[]}"#,
                "`params.arguments` is not an object",
            ),
            (
                r#"{"name":"approve","arguments":{"code":7}}"#,
                "the argument `code` is not a string",
            ),
            (
                r#"{"name":"approve","arguments":{"code":"a","scope":"ever"}}"#,
                "the argument `scope` is once, session or always, not `ever`",
            ),
            (
                r#"{"name":"answer","arguments":{"code":"a"}}"#,
                "the argument `text` is missing",
            ),
            (
                r#"{"name":"pending","arguments":{"code":"a"}}"#,
                "there is no argument `code`",
            ),
        ] {
            assert_eq!(read(text), Err((RpcError::INVALID_PARAMS, reason.to_owned())));
        }
    }
}
