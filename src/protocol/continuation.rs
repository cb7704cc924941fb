//! The member `continue_workflow` by which a client sends a decision back, and its strict parser.
//!
//! The member is written by a model, so nothing is guessed: `"false"` is an error and not a yes, an unknown member
//! is named, a contradiction is refused.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Json, Shown};

/// The member of a tool's arguments that continues a suspended call.
pub const MEMBER: &str = "continue_workflow";

/// What a continuation may have.
pub const MEMBERS: [&str; 6] = [
    "workflow_id",
    "approved",
    "always",
    "scope",
    "input",
    "wait_seconds",
];

/// The longest a continuation may wait for a person: some clients give up after a minute.
pub const LONGEST_WAIT: u64 = 50;

/// How far an approval reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call.
    Once,
    /// This call and the same tool while this pml runs.
    Session,
    /// This call, and a rule in the allow list.
    Always,
}

/// A decision about a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Continuation {
    /// The id as it was written; whether it names a workflow is the store's to say.
    pub workflow_id: String,
    /// What was decided; `None` where only the workflow is named, to learn how it stands.
    pub decision: Option<Decision>,
    /// What a person answered to the questions of a server, by the server's names for them.
    pub input: Option<Map<String, Value>>,
    /// How long to wait for a person who has not decided yet.
    pub wait: Duration,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Approve(Scope),
    /// Stop.
    Refuse,
}

/// Says which member of a continuation is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContinuationError {
    /// It is not an object.
    #[error("`{MEMBER}` must be an object, not {found}")]
    NotAnObject {
        /// What it is instead.
        found: String,
    },
    /// A required member is not there.
    #[error("`{MEMBER}.{member}` is missing")]
    Missing {
        /// The member.
        member: &'static str,
    },
    /// A member has the wrong type.
    #[error("`{MEMBER}.{member}` must be {expected}, not {found}")]
    Type {
        /// The member.
        member: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is instead.
        found: String,
    },
    /// A member is not known.
    #[error(
        "`{MEMBER}` has no member `{member}`; it takes `workflow_id`, `approved`, `always`, `scope`, `input`, `wait_seconds`"
    )]
    Unknown {
        /// The member, escaped.
        member: String,
    },
    /// Two members say different things.
    #[error("`{MEMBER}` contradicts itself: {reason}")]
    Contradiction {
        /// Which members.
        reason: &'static str,
    },
}

impl Continuation {
    /// Reads the value of `continue_workflow`; `null` is no continuation.
    pub fn parse(raw: Json<'_>) -> Result<Option<Self>, ContinuationError> {
        match serde_json::from_str(raw.get()) {
            Ok(Value::Null) => Ok(None),
            Ok(Value::Object(members)) => Self::from_members(&members).map(Some),
            Ok(other) => Err(ContinuationError::NotAnObject {
                found: describe(&other),
            }),
            Err(_) => Err(ContinuationError::NotAnObject {
                found: "something unreadable".to_owned(),
            }),
        }
    }

    fn from_members(members: &Map<String, Value>) -> Result<Self, ContinuationError> {
        if let Some(member) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(ContinuationError::Unknown {
                member: Shown::line(member).to_string(),
            });
        }
        let workflow_id = match members.get("workflow_id") {
            Some(Value::String(id)) => id.clone(),
            Some(other) => return Err(wrong("workflow_id", "a string", other)),
            None => {
                return Err(ContinuationError::Missing {
                    member: "workflow_id",
                });
            }
        };
        let approved = truth(members, "approved")?;
        let always = truth(members, "always")?;
        let scope = match members.get("scope") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text == "once" => Some(Scope::Once),
            Some(Value::String(text)) if text == "session" => Some(Scope::Session),
            Some(Value::String(text)) if text == "always" => Some(Scope::Always),
            Some(other) => return Err(wrong("scope", "\"once\", \"session\" or \"always\"", other)),
        };
        let decision = match (approved, always, scope) {
            (None, None, None) => None,
            (None, _, _) => return Err(ContinuationError::Missing { member: "approved" }),
            (Some(false), Some(true), _) => {
                return Err(ContinuationError::Contradiction {
                    reason: "`approved` is false and `always` is true",
                });
            }
            (Some(false), _, _) => Some(Decision::Refuse),
            (Some(true), Some(true), None | Some(Scope::Always))
            | (Some(true), None, Some(Scope::Always)) => Some(Decision::Approve(Scope::Always)),
            (Some(true), Some(true), Some(_)) => {
                return Err(ContinuationError::Contradiction {
                    reason: "`always` is true and `scope` is narrower",
                });
            }
            (Some(true), Some(false), Some(Scope::Always)) => {
                return Err(ContinuationError::Contradiction {
                    reason: "`always` is false and `scope` is \"always\"",
                });
            }
            (Some(true), _, scope) => Some(Decision::Approve(scope.unwrap_or(Scope::Once))),
        };
        let input = match members.get("input") {
            None | Some(Value::Null) => None,
            Some(Value::Object(input)) => Some(input.clone()),
            Some(other) => return Err(wrong("input", "an object", other)),
        };
        let wait = match members.get("wait_seconds") {
            None | Some(Value::Null) => Duration::ZERO,
            Some(value) => match value.as_u64().filter(|seconds| *seconds <= LONGEST_WAIT) {
                Some(seconds) => Duration::from_secs(seconds),
                None => return Err(wrong("wait_seconds", "a whole number from 0 to 50", value)),
            },
        };
        Ok(Self {
            workflow_id,
            decision,
            input,
            wait,
        })
    }
}

fn truth(members: &Map<String, Value>, member: &'static str) -> Result<Option<bool>, ContinuationError> {
    match members.get(member) {
        None => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(*truth)),
        Some(other) => Err(wrong(member, "true or false", other)),
    }
}

fn wrong(member: &'static str, expected: &'static str, found: &Value) -> ContinuationError {
    ContinuationError::Type {
        member,
        expected,
        found: describe(found),
    }
}

pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            let text: String = text.chars().take(40).collect();
            format!("the string \"{}\"", Shown::line(&text))
        }
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The schema of a continuation, as it is advertised on tools that may be asked for and on `pml_continue`.
#[must_use]
pub fn schema() -> Value {
    json!({
        "type": "object",
        "description": "Only to continue a call that answered `approval_required`, after a person has decided. Leave it out otherwise.",
        "properties": {
            "workflow_id": { "type": "string", "description": "The `workflow_id` of the `approval_required` result" },
            "approved": { "type": "boolean", "description": "true if the person approved, false if they refused; left out to learn how it stands" },
            "always": { "type": "boolean", "description": "true if the person wants this tool allowed from now on" },
            "scope": {
                "type": "string",
                "enum": ["once", "session", "always"],
                "description": "How far the approval reaches; `once` if left out"
            },
            "input": { "type": "object", "description": "What the person answered, only after `input_required`" },
            "wait_seconds": {
                "type": "integer",
                "minimum": 0,
                "maximum": LONGEST_WAIT,
                "description": "How long to wait for a person who decides elsewhere"
            }
        },
        "required": ["workflow_id"],
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a continuation is read as.
    #[derive(Debug, PartialEq, Eq)]
    enum Read {
        None,
        Look,
        Decided(Decision),
    }

    fn read(text: &str) -> Result<Read, String> {
        let raw = Json::parse(text).unwrap();
        let read = Continuation::parse(raw).map_err(|error| error.to_string())?;
        Ok(match read.map(|found| found.decision) {
            None => Read::None,
            Some(None) => Read::Look,
            Some(Some(decision)) => Read::Decided(decision),
        })
    }

    #[test]
    fn decisions_are_read() {
        let once = Ok(Read::Decided(Decision::Approve(Scope::Once)));
        assert_eq!(read(r#"{"workflow_id":"x","approved":true}"#), once);
        assert_eq!(
            read(r#"{"workflow_id":"x","approved":true,"always":false}"#),
            once
        );
        assert_eq!(
            read(r#"{"workflow_id":"x","approved":true,"scope":"session"}"#),
            Ok(Read::Decided(Decision::Approve(Scope::Session)))
        );
        assert_eq!(
            read(r#"{"workflow_id":"x","approved":true,"always":true}"#),
            Ok(Read::Decided(Decision::Approve(Scope::Always)))
        );
        assert_eq!(
            read(r#"{"workflow_id":"x","approved":false}"#),
            Ok(Read::Decided(Decision::Refuse))
        );
        assert_eq!(read("null"), Ok(Read::None));
        assert_eq!(
            read(r#"{"workflow_id":"x"}"#),
            Ok(Read::Look),
            "a look at how it stands"
        );
    }

    #[test]
    fn nothing_is_guessed() {
        for (text, reason) in [
            (
                r#"{"workflow_id":"x","approved":"false"}"#,
                "`continue_workflow.approved` must be true or false, not the string \"false\"",
            ),
            (
                r#"{"workflow_id":"x","approved":1}"#,
                "`continue_workflow.approved` must be true or false, not the number 1",
            ),
            (
                r#"{"workflow_id":"x","always":true}"#,
                "`continue_workflow.approved` is missing",
            ),
            (
                r#"{"approved":true}"#,
                "`continue_workflow.workflow_id` is missing",
            ),
            (
                r#"{"workflow_id":7,"approved":true}"#,
                "`continue_workflow.workflow_id` must be a string, not the number 7",
            ),
            (
                r#""yes""#,
                "`continue_workflow` must be an object, not the string \"yes\"",
            ),
            (
                r#"{"workflow_id":"x","approved":true,"allways":true}"#,
                "`continue_workflow` has no member `allways`; it takes `workflow_id`, `approved`, `always`, `scope`, `input`, `wait_seconds`",
            ),
            (
                r#"{"workflow_id":"x","wait_seconds":51}"#,
                "`continue_workflow.wait_seconds` must be a whole number from 0 to 50, not the number 51",
            ),
            (
                r#"{"workflow_id":"x","approved":false,"always":true}"#,
                "`continue_workflow` contradicts itself: `approved` is false and `always` is true",
            ),
            (
                r#"{"workflow_id":"x","approved":true,"always":true,"scope":"once"}"#,
                "`continue_workflow` contradicts itself: `always` is true and `scope` is narrower",
            ),
        ] {
            assert_eq!(read(text), Err(reason.to_owned()));
        }
    }
}
