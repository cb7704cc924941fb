//! The results that tell a model that a person must decide, and exactly what to do meanwhile.
//!
//! Every instruction stands in the text and in `structuredContent`: some clients show a model only one of them.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::in_words::NamedQuestion;
use crate::config::By;
use crate::protocol::approval::{ApprovalContext, ApprovalType, AskSubject, ChangedPart, ShownProjectFile};
use crate::protocol::continuation::{LONGEST_WAIT, MEMBER};
use crate::protocol::own_tool::CONTINUE;
use crate::protocol::{DependencyName, Excerpt, Shown, ToolName, wire_name};
use crate::proxy::{Arguments, AskOwnership, PendingAsk, PersonalRoad};
use crate::stdio::era::RpcError;

/// What a model is shown at most of the arguments it sent, in columns: it knows them, the person reads them.
const ARGUMENTS: usize = 4_000;

/// Writes the seed's result for a call that a person must decide about.
pub(crate) fn approval_required(asked: &PendingAsk) -> Value {
    let context = ApprovalContext {
        kind: asked.kind,
        tool: asked.tool.clone(),
        subject: match (*asked.subject).clone() {
            AskSubject::Dependency(dependency) => AskSubject::Dependency(dependency.for_a_model()),
            subject @ AskSubject::ProjectFile(_) => subject,
        },
        arguments: arguments(asked),
        workflow_id: asked.workflow_id,
    };
    let what = headline(asked);
    let instruction = instruction(asked, &wire_name(&asked.tool));
    json!({
        "content": [{ "type": "text", "text": what }, { "type": "text", "text": instruction }],
        "approval_required": true,
        "approval_context": context,
        "structuredContent": {
            "approval_required": true,
            "approval_context": context,
            "message": what,
            "instructions": instruction,
            "code": asked.code,
        },
    })
}

/// Writes how a call stands that only a person may let go on.
pub(crate) fn waiting(asked: &PendingAsk) -> Value {
    let what = format!("Waiting for a person to decide: {}", headline(asked));
    let instruction = instruction(asked, &wire_name(&asked.tool));
    json!({
        "content": [{ "type": "text", "text": what }, { "type": "text", "text": instruction }],
        "structuredContent": {
            "status": "waiting_for_person",
            "message": what,
            "instructions": instruction,
            "workflow_id": asked.workflow_id,
            "code": asked.code,
        },
    })
}

/// Writes what a server wants to know before its call goes on, for a client that shows no forms.
pub(crate) fn server_asks(server: &DependencyName, id: Uuid, asked: Vec<NamedQuestion>) -> Value {
    let example: Map<String, Value> = asked.iter().map(|(key, _)| (key.clone(), json!({}))).collect();
    let call = json!({ "workflow_id": id, "approved": true, "input": example });
    let mut content = Vec::new();
    for (key, form) in &asked {
        let message = form.get("message").and_then(Value::as_str).unwrap_or_default();
        let text = format!(
            "`{server}` asks ({}): {}",
            Shown::line(key),
            Shown::block(message)
        );
        content.push(json!({ "type": "text", "text": text }));
    }
    let instructions = format!(
        "Ask the person; do not answer for them. Then call `{CONTINUE}` with {call}, each question filled in as its \
         `requestedSchema` says. If they refuse, send \"approved\":false and no input."
    );
    content.push(json!({ "type": "text", "text": instructions }));
    let questions: Map<String, Value> = asked.into_iter().collect();
    json!({
        "content": content,
        "structuredContent": {
            "input_required": true,
            "workflow_id": id,
            "questions": questions,
            "instructions": instructions,
        },
    })
}

/// Writes the error for a request other than a tool call: only a tool's result can hold a question.
pub(crate) fn approval_fault(asked: &PendingAsk) -> RpcError {
    let connect = wire_name(&ToolName::new(asked.tool.dependency().clone(), "connect"));
    let mut fault = RpcError::new(
        RpcError::APPROVAL_REQUIRED,
        format!(
            "{}. A person must decide this: call the tool `{connect}`, or let them run `pml approve {}` in a terminal",
            headline(asked),
            asked.code
        ),
    );
    fault.detail =
        Some(json!({ "approval_required": true, "workflow_id": asked.workflow_id, "code": asked.code }));
    fault
}

/// Returns the arguments where the call itself is asked about.
fn arguments(asked: &PendingAsk) -> Option<String> {
    match (asked.kind, &asked.arguments) {
        (ApprovalType::ToolPermission, Arguments::Json(json)) => Some(Excerpt::of_json(json, ARGUMENTS).text),
        _ => None,
    }
}

fn headline(asked: &PendingAsk) -> String {
    let dependency = match &*asked.subject {
        AskSubject::Dependency(dependency) => dependency,
        AskSubject::ProjectFile(file) => return format!("Approval required to trust {}", file.path),
    };
    let named = match &dependency.version {
        Some(version) => format!("{}@{version}", dependency.name),
        None => dependency.name.clone(),
    };
    match (asked.kind, asked.installs) {
        (ApprovalType::DependencyInstall, true) => format!("Approval required to install {named}"),
        (ApprovalType::DependencyInstall, false) => format!("Approval required to run {named}"),
        (ApprovalType::RemoteConnect, _) => format!("Approval required to connect to {named}"),
        (ApprovalType::Integrity, _) if dependency.installation.changed_part() == ChangedPart::Scripts => {
            format!("Approval required to run the install scripts of {named}")
        }
        (ApprovalType::Integrity, _) => {
            format!("Approval required: {named} is not what was accepted before")
        }
        (ApprovalType::ToolPermission | ApprovalType::ProjectTrust, _) => {
            let tool = asked.tool.to_string();
            format!("Approval required to call {}", Shown::line(&tool))
        }
    }
}

/// Lists what a person must see: the call with its arguments, or what would be installed, run or connected to.
fn shown(asked: &PendingAsk) -> String {
    let dependency = match &*asked.subject {
        AskSubject::Dependency(dependency) => dependency,
        AskSubject::ProjectFile(file) => return wanted(file),
    };
    if asked.kind == ApprovalType::ToolPermission {
        let tool = asked.tool.to_string();
        let arguments = arguments(asked);
        let arguments = arguments.as_deref().unwrap_or("without arguments");
        return format!("  {} {arguments}\n", Shown::line(&tool));
    }
    let mut shown = format!("  {}\n", dependency.install);
    for (label, text) in dependency.surroundings.labelled() {
        let _ = writeln!(shown, "  {label} {text}");
    }
    match &dependency.integrity {
        Some(integrity) => {
            let _ = writeln!(shown, "  integrity {integrity}");
        }
        None if asked.installs => {
            shown.push_str(
                "  (integrity not known yet: it is recorded at first use, and the result says so)\n",
            );
        }
        None => {}
    }
    if let Some(when) = dependency.publication() {
        let _ = writeln!(shown, "  published {when}");
    }
    if let Some(provenance) = &dependency.installation.provenance {
        let _ = writeln!(shown, "  provenance {provenance}");
    }
    if dependency.scripts {
        shown.push_str("  install scripts run once the person accepts each of them (\"allowScripts\")\n");
    }
    for note in dependency.notes() {
        let _ = writeln!(shown, "  {note}");
    }
    if let Some(change) = &dependency.installation.change {
        shown.push_str("  what differs from what they accepted:\n");
        for line in &change.summary {
            let _ = writeln!(shown, "    {line}");
        }
        let _ = writeln!(
            shown,
            "  (they see all of it where they decide, and by `pml pending {}`)",
            asked.code
        );
    }
    shown
}

fn wanted(file: &ShownProjectFile) -> String {
    let mut shown = format!("  {} {}\n", file.path, file.origin);
    if !file.changes.is_empty() {
        shown.push_str("  changed since it was accepted:\n");
        for change in &file.changes {
            let _ = writeln!(shown, "    {change}");
        }
        shown.push_str("  all of it:\n");
    }
    for want in &file.wants {
        let _ = writeln!(shown, "    {want}");
    }
    shown
}

fn instruction(asked: &PendingAsk, wire: &str) -> String {
    let (id, code) = (asked.workflow_id, &asked.code);
    let shown = shown(asked);
    let would = match (asked.kind, &*asked.subject) {
        (_, AskSubject::ProjectFile(_)) => "what the file of the project wants",
        (ApprovalType::ToolPermission, _) => "what would be called",
        (_, AskSubject::Dependency(dependency)) if dependency.remote.is_some() => {
            "what would be connected to"
        }
        (_, AskSubject::Dependency(_)) => "what would run",
    };
    let minutes = asked.expires_in.as_secs().div_ceil(60);
    let valid = format!(
        "The id is valid for {minutes} minute{}.",
        if minutes == 1 { "" } else { "s" }
    );
    match asked.by {
        By::Client => format!(
            "A person must decide this; do not decide for them. Show them exactly {would}:\n\
             {shown}\
             If they say yes, call `{wire}` with the arguments\n  \
             {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\",\"approved\":true}}}}\n\
             and nothing else: the original call is kept and runs as it was. If they want this tool allowed from now \
             on, add \"always\":true. If they say no, send \"approved\":false. \
             A client that rejects those arguments can call `{CONTINUE}` with \
             {{\"workflow_id\":\"{id}\",\"approved\":true}} instead. The person can decide it themselves in a terminal, too: \
             `pml approve {code}` or `pml refuse {code}`. {valid}"
        ),
        By::Human => {
            let typed = match asked.road {
                PersonalRoad::SlashCommand => format!(
                    "they type `/mcp__pml__approve {code}` or `/mcp__pml__refuse {code}` here, or run `pml approve \
                     {code}` or `pml refuse {code}` in a terminal"
                ),
                PersonalRoad::Terminal => {
                    format!("they run `pml approve {code}` or `pml refuse {code}` in a terminal")
                }
            };
            if asked.ownership == AskOwnership::OfAnotherCall {
                return format!(
                    "Another call asked this already, and one answer is for both. Only a person can approve it, and not \
                     through you. Show them exactly {would}:\n\
                     {shown}\
                     and how to decide: {typed}. Once they have approved, make this call again as it was: its id \
                     continues the other one. {valid}"
                );
            }
            format!(
                "Only a person can approve this, and not through you. Show them exactly {would}:\n\
                 {shown}\
                 and how to decide: {typed}. Then call `{CONTINUE}` with \
                 {{\"workflow_id\":\"{id}\",\"wait_seconds\":{LONGEST_WAIT}}}: it waits for their decision, and \
                 once they have approved, the original call runs as it was and its result is returned. {valid}"
            )
        }
    }
}
