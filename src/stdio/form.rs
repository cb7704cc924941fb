//! Forms: what a client's own dialog shows, and what comes back from it.
//!
//! A form always has a property: some clients accept an empty one by themselves. A message has three short lines,
//! because that is what a dialog shows; what each choice grants stands in its title. Everything that comes from
//! outside is escaped, and nothing is cut that would be granted.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::protocol::approval::ApprovalType;
use crate::protocol::continuation::{Decision, Scope};
use crate::protocol::question::{Given, Question, Selection};
use crate::protocol::{Shown, ToolName};
use crate::proxy::Asked;

/// What a person did with a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filled {
    /// They sent it, with this content.
    Accepted(Map<String, Value>),
    /// They would not, or closed it.
    Refused,
    /// It never reached a person, or what came back is not an answer.
    Unreadable,
}

impl Filled {
    /// Reads an elicitation result.
    pub(crate) fn read(result: &Value) -> Self {
        match (
            result.get("action").and_then(Value::as_str),
            result.get("content"),
        ) {
            (Some("accept"), Some(Value::Object(content))) => Self::Accepted(content.clone()),
            (Some("decline" | "cancel"), _) => Self::Refused,
            _ => Self::Unreadable,
        }
    }
}

/// How a Legacy client wants choices to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// 2025-11-25: `oneOf` with titles, and lists.
    Titled,
    /// 2025-06-18: `enum` with names beside it, and no lists.
    Plain,
}

/// Writes a form as a client of that age reads it.
pub(crate) fn styled(mut form: Value, style: Style) -> Value {
    let properties = form
        .pointer_mut("/requestedSchema/properties")
        .and_then(Value::as_object_mut);
    if let (Style::Plain, Some(properties)) = (style, properties) {
        for field in properties.values_mut().filter_map(Value::as_object_mut) {
            plain(field);
        }
    }
    form
}

fn plain(field: &mut Map<String, Value>) {
    let column = |choices: &Value, member: &str| -> Vec<Value> {
        choices
            .as_array()
            .into_iter()
            .flatten()
            .map(|choice| choice[member].clone())
            .collect()
    };
    if let Some(choices) = field.shift_remove("oneOf") {
        field.insert("enum".to_owned(), json!(column(&choices, "const")));
        field.insert("enumNames".to_owned(), json!(column(&choices, "title")));
    } else if let Some(items) = field.shift_remove("items") {
        let titles: Vec<String> = column(&items["anyOf"], "title")
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let question = field
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let description = format!("{question} (several, separated by commas: {})", titles.join("; "));
        field.insert("type".to_owned(), json!("string"));
        field.insert("description".to_owned(), json!(description));
    }
}

/// The elicitation parameters that ask for an approval.
pub(crate) fn approval(asked: &Asked) -> Value {
    let dependency = &asked.dependency;
    let tool = Shown::line(&asked.tool.to_string()).to_string();
    let version = dependency
        .version
        .as_ref()
        .map_or_else(String::new, |version| format!("@{version}"));
    let what = match (asked.kind, asked.installs) {
        (ApprovalType::DependencyInstall, true) => {
            format!("Install {}{version} for {tool}?", dependency.name)
        }
        (ApprovalType::DependencyInstall, false) => format!("Run {}{version} for {tool}?", dependency.name),
        (ApprovalType::RemoteConnect, _) => format!("Connect to {} for {tool}?", dependency.name),
        (ApprovalType::ToolPermission, _) => format!("Call {tool}?"),
    };
    let scripts = if dependency.scripts {
        " (install scripts WILL run)"
    } else {
        ""
    };
    // On the line that says what runs: the last one may be cut.
    let surroundings = dependency.surroundings.labelled();
    let surroundings: Vec<String> = surroundings
        .iter()
        .map(|(label, text)| format!(" ({label} {text})"))
        .collect();
    let run = format!("{}{scripts}{}", dependency.install, surroundings.concat());
    let lines: Vec<String> = std::iter::once(run).chain(dependency.notes()).collect();
    let integrity = match (&dependency.integrity, &dependency.remote) {
        (Some(integrity), _) => integrity,
        (None, Some(_)) => "a remote server",
        (None, None) => "integrity recorded at first use",
    };
    let project = asked
        .file
        .parent()
        .map(|folder| Shown::line(&folder.display().to_string()).to_string());
    let message = format!(
        "{what}\n{}\nin {} \u{b7} {integrity} \u{b7} code {}",
        lines.join("\n"),
        project.unwrap_or_default(),
        asked.code
    );
    let file = asked
        .file
        .file_name()
        .map_or_else(|| ".pml.json".to_owned(), |name| Shown::path(Path::new(name)));
    let (once, session) = match asked.kind {
        ApprovalType::DependencyInstall => (
            format!("Continue: {} may run here at this exact version", dependency.name),
            format!("Session: {} may run until this session ends", dependency.name),
        ),
        ApprovalType::RemoteConnect => (
            format!(
                "Continue: {} may be connected to as it is declared here",
                dependency.name
            ),
            format!(
                "Session: {} may be connected to until this session ends",
                dependency.name
            ),
        ),
        ApprovalType::ToolPermission => (
            "Continue: this call only".to_owned(),
            format!("Session: {tool} may run until this session ends"),
        ),
    };
    let always = format!("Always allow {tool} in {file}");
    decide(
        &message,
        [&once, &session, &always, "Abort: nothing is installed or run"],
    )
}

/// The elicitation parameters that ask whether the client may use one of its own tools.
pub(crate) fn permission(tool: &ToolName, shown: &str) -> Value {
    let tool = Shown::line(&tool.to_string()).to_string();
    let session = format!("Session: {tool} until this session ends");
    let always = format!("Always allow {tool} in .pml.json");
    let titles = [
        "Continue: this use only",
        session.as_str(),
        always.as_str(),
        "Abort: it is not used",
    ];
    decide(&format!("Allow {tool}?\n{shown}"), titles)
}

/// A form with the one required decision; the titles say what each choice grants, and none is chosen beforehand.
fn decide(message: &str, titles: [&str; 4]) -> Value {
    let choices = ["continue", "session", "always", "abort"].into_iter().zip(titles);
    let choices: Vec<Value> = choices
        .map(|(word, title)| json!({ "const": word, "title": title }))
        .collect();
    let decision = json!({ "type": "string", "title": "Decision", "oneOf": choices });
    json!({
        "message": message,
        "requestedSchema": { "type": "object", "properties": { "decision": decision }, "required": ["decision"] },
    })
}

/// Reads the decision out of a filled form; anything else is none.
pub(crate) fn decision(content: &Map<String, Value>) -> Option<Decision> {
    match content.get("decision")?.as_str()? {
        "continue" => Some(Decision::Approve(Scope::Once)),
        "session" => Some(Decision::Approve(Scope::Session)),
        "always" => Some(Decision::Approve(Scope::Always)),
        "abort" => Some(Decision::Refuse),
        _ => None,
    }
}

/// The elicitation parameters that put questions to a person: one field a question, free text always possible.
pub(crate) fn questions(questions: &[Question]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        let title = question.header.as_deref().unwrap_or("Answer");
        let title = Shown::line(title).to_string();
        let text = Shown::line(&question.question).to_string();
        let choices: Vec<Value> = question
            .options
            .iter()
            .map(|option| {
                let label = Shown::line(&option.label).to_string();
                let shown = match &option.description {
                    Some(description) => format!("{label}: {}", Shown::line(description)),
                    None => label,
                };
                json!({ "const": option.label, "title": shown })
            })
            .collect();
        let field = match (choices.is_empty(), question.selection) {
            (true, _) => {
                required.push(field_name(index));
                json!({ "type": "string", "title": title, "description": text })
            }
            (false, Selection::One) => {
                json!({ "type": "string", "title": title, "description": text, "oneOf": choices })
            }
            (false, Selection::Several) => {
                json!({ "type": "array", "title": title, "description": text, "items": { "anyOf": choices } })
            }
        };
        properties.insert(field_name(index), field);
        if !question.options.is_empty() {
            let other = json!({ "type": "string", "title": format!("{title}: other"), "description": "Your own answer" });
            properties.insert(other_name(index), other);
        }
    }
    let message: Vec<String> = questions
        .iter()
        .map(|question| Shown::line(&question.question).to_string())
        .collect();
    json!({
        "message": message.join("\n"),
        "requestedSchema": { "type": "object", "properties": properties, "required": required },
    })
}

/// Reads the answers out of a filled form; `None` if a question has none.
pub(crate) fn answers(questions: &[Question], content: &Map<String, Value>) -> Option<Vec<Given>> {
    questions
        .iter()
        .enumerate()
        .map(|(index, question)| {
            let chosen = match content.get(&field_name(index)) {
                // Where a form has no lists, several choices come as one text.
                Some(Value::String(text)) if question.selection == Selection::Several => {
                    let known = |part: &str| question.options.iter().any(|option| option.label == part);
                    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
                    let all_known = !known(text) && parts.iter().all(|part| known(part));
                    if all_known {
                        parts.into_iter().map(str::to_owned).collect()
                    } else {
                        vec![text.clone()]
                    }
                }
                Some(Value::String(label)) => vec![label.clone()],
                Some(Value::Array(labels)) => labels
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
                _ => Vec::new(),
            };
            let other = content
                .get(&other_name(index))
                .and_then(Value::as_str)
                .filter(|text| !text.trim().is_empty());
            // One answer is wanted and two were given: what the person wrote is the more deliberate one.
            let chosen = if question.selection == Selection::One && other.is_some() {
                Vec::new()
            } else {
                chosen
            };
            question
                .check(&field_name(index), chosen, other.map(str::to_owned))
                .ok()
        })
        .collect()
}

fn field_name(index: usize) -> String {
    format!("answer{}", index + 1)
}

fn other_name(index: usize) -> String {
    format!("answer{}_other", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(selection: Selection) -> Question {
        let arguments = json!({ "question": "Which\u{202e}?", "options": [{ "label": "A", "description": "first" }, { "label": "B" }] });
        Question {
            selection,
            ..Question::single(arguments.as_object().unwrap()).unwrap()
        }
    }

    fn read(questions: &[Question], content: &Value) -> Option<Vec<String>> {
        answers(questions, content.as_object().unwrap()).map(|given| given.iter().map(Given::told).collect())
    }

    #[test]
    fn a_decision_is_one_of_four_words_and_nothing_else() {
        let read = |content: Value| decision(content.as_object().unwrap());
        assert_eq!(
            read(json!({ "decision": "continue" })),
            Some(Decision::Approve(Scope::Once))
        );
        assert_eq!(read(json!({ "decision": "abort" })), Some(Decision::Refuse));
        for content in [
            json!({}),
            json!({ "decision": true }),
            json!({ "decision": "yes" }),
            json!({ "approved": true }),
        ] {
            assert_eq!(read(content), None);
        }
    }

    #[test]
    fn a_filled_form_is_read_strictly() {
        assert_eq!(Filled::read(&json!({ "action": "accept" })), Filled::Unreadable);
        assert_eq!(Filled::read(&json!({ "action": "cancel" })), Filled::Refused);
        assert_eq!(Filled::read(&json!({})), Filled::Unreadable);
        assert!(matches!(
            Filled::read(&json!({ "action": "accept", "content": {} })),
            Filled::Accepted(_)
        ));
    }

    #[test]
    fn an_older_client_gets_choices_it_can_read_and_its_answers_are_understood() {
        let form = styled(
            questions(&[question(Selection::One), question(Selection::Several)]),
            Style::Plain,
        );
        let fields = &form["requestedSchema"]["properties"];
        assert_eq!(
            (
                &fields["answer1"]["enum"],
                &fields["answer1"]["enumNames"],
                fields["answer1"].get("oneOf")
            ),
            (&json!(["A", "B"]), &json!(["A: first", "B"]), None)
        );
        assert_eq!(
            (&fields["answer2"]["type"], fields["answer2"].get("items")),
            (&json!("string"), None)
        );
        let several = [question(Selection::Several)];
        assert_eq!(
            read(&several, &json!({ "answer1": "A, B" })),
            Some(vec!["User selected: A, B".to_owned()])
        );
        assert_eq!(
            read(&several, &json!({ "answer1": "A, C" })),
            Some(vec!["User answered: A, C".to_owned()])
        );
    }

    #[test]
    fn questions_become_fields_and_answers_come_back() {
        let one = [question(Selection::One)];
        let form = questions(&one);
        assert_eq!(form["message"], "Which\\u{202e}?");
        let fields = &form["requestedSchema"]["properties"];
        assert_eq!(
            fields["answer1"]["oneOf"][0],
            json!({ "const": "A", "title": "A: first" })
        );
        assert!(fields.get("answer1_other").is_some());
        assert_eq!(
            read(&one, &json!({ "answer1": "B" })),
            Some(vec!["User selected: B".to_owned()])
        );
        assert_eq!(
            read(&one, &json!({ "answer1_other": "C" })),
            Some(vec!["User answered: C".to_owned()])
        );
        assert_eq!(read(&one, &json!({})), None);
        let several = [question(Selection::Several)];
        assert_eq!(
            questions(&several)["requestedSchema"]["properties"]["answer1"]["type"],
            "array"
        );
        assert_eq!(
            read(
                &several,
                &json!({ "answer1": ["A", "B"], "answer1_other": "and C" })
            ),
            Some(vec!["User selected: A, B, and C".to_owned()])
        );
    }
}
