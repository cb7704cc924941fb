//! The forms that ask for a decision: may a server be installed, run or connected to, may a call be made?
//!
//! The first line says what, then comes what would run or the arguments of the call, then where it belongs. What each
//! choice grants stands in its title.

use std::path::Path;

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::decide;
use super::message::{CHOICE, COLUMNS, ConsentSubject, DecisionRequest};
use crate::protocol::approval::{ApprovalType, AskSubject, ShownDependency, ShownProjectFile};
use crate::protocol::{Shown, ToolName, shortened};
use crate::proxy::{Arguments, PendingAsk};

/// So much of a hash tells two versions apart; `pml pending` shows all of it.
const HASH: usize = 20;

/// The tool that stands for a server whose tools are not known.
const CONNECT: &str = "connect";

/// Writes the elicitation parameters that ask for an approval.
pub(crate) fn approval(asked: &PendingAsk) -> Value {
    match &*asked.subject {
        AskSubject::Dependency(dependency) => of_dependency(asked, dependency),
        AskSubject::ProjectFile(file) => trust(asked, file),
    }
}

/// Asks whether a project's file counts as the person's word; what changed comes first, and all of it is told.
fn trust(asked: &PendingAsk, file: &ShownProjectFile) -> Value {
    let what = if file.changes.is_empty() {
        format!("Trust {}? It {}.", file_name(&asked.file), file.origin)
    } else {
        format!(
            "{} has changed since you trusted it. Trust it again?",
            file_name(&asked.file)
        )
    };
    let code = asked.code.to_string();
    let origin = origin(&code, asked.file.parent(), None);
    let message = DecisionRequest {
        what: &what,
        subject: ConsentSubject::Command(&file.news().join("; ")),
        notes: &[],
        code: &code,
        origin: &origin,
    };
    let choices = [
        ("continue", "Trust it as it is, from now on".to_owned()),
        ("abort", "Abort".to_owned()),
    ];
    decide(&message.text(), &choices)
}

fn of_dependency(asked: &PendingAsk, dependency: &ShownDependency) -> Value {
    let tool = Shown::line(&asked.tool.to_string()).to_string();
    let version = dependency
        .version
        .as_ref()
        .map_or_else(String::new, |version| format!("@{version}"));
    let (name, permits) = (&dependency.name, asked.kind == ApprovalType::ToolPermission);
    let what = match (asked.kind, asked.installs) {
        (ApprovalType::DependencyInstall, true) => format!("Install {name}{version} for {tool}?"),
        (ApprovalType::DependencyInstall, false) => format!("Run {name}{version} for {tool}?"),
        (ApprovalType::RemoteConnect, _) => format!("Connect to {name} for {tool}?"),
        (ApprovalType::ToolPermission | ApprovalType::ProjectTrust, _) => format!("Call {tool}?"),
    };
    // What the server runs as was approved when it was first used, and is not asked about again.
    let notes = if permits { Vec::new() } else { notes(dependency) };
    let subject = match (permits, &asked.arguments) {
        (true, Arguments::Json(json)) => ConsentSubject::Arguments(json),
        (true, Arguments::Absent | Arguments::Erased) => ConsentSubject::Command("(without arguments)"),
        (false, _) => ConsentSubject::Command(&dependency.install),
    };
    let hash = if permits { None } else { hash(dependency) };
    let code = asked.code.to_string();
    let origin = origin(&code, asked.file.parent(), hash);
    let message = DecisionRequest {
        what: &what,
        subject,
        notes: &notes,
        code: &code,
        origin: &origin,
    };
    decide(&message.text(), &choices(asked, dependency))
}

/// Writes the elicitation parameters that ask whether the client may use one of its own tools.
pub(crate) fn permission(tool: &ToolName, input: &str, code: &str, file: &Path) -> Value {
    let what = format!("Allow {}?", Shown::line(&tool.to_string()));
    let origin = origin(code, file.parent(), None);
    let message = DecisionRequest {
        what: &what,
        subject: ConsentSubject::Arguments(input),
        notes: &[],
        code,
        origin: &origin,
    };
    let choices = [
        ("continue", "Continue – this use only".to_owned()),
        ("session", "This tool, for this session".to_owned()),
        ("always", always(file)),
        ("abort", "Abort".to_owned()),
    ];
    decide(&message.text(), &choices)
}

/// Says what each choice grants; `continue` reaches further where a server is approved than where a call is.
fn choices(asked: &PendingAsk, dependency: &ShownDependency) -> [(&'static str, String); 4] {
    let (once, session) = match (asked.kind, &dependency.version) {
        (ApprovalType::DependencyInstall, Some(_)) => {
            ("Continue – this version, from now on", "Only this session")
        }
        (ApprovalType::DependencyInstall, None) => {
            ("Continue – this command, from now on", "Only this session")
        }
        (ApprovalType::RemoteConnect, _) => ("Continue – this address, from now on", "Only this session"),
        (ApprovalType::ToolPermission | ApprovalType::ProjectTrust, _) => {
            ("Continue – this call only", "This tool, for this session")
        }
    };
    let always = if asked.tool.tool() == CONNECT {
        always_connect(&asked.file, &asked.tool)
    } else {
        always(&asked.file)
    };
    [
        ("continue", once.to_owned()),
        ("session", session.to_owned()),
        ("always", always),
        ("abort", "Abort".to_owned()),
    ]
}

fn always(file: &Path) -> String {
    let title = format!("Always (writes {})", file_name(file));
    shortened(&title, CHOICE).into_owned()
}

/// Names the rule that is written: `connect` is no tool of the server, so the question does not say it.
fn always_connect(file: &Path, tool: &ToolName) -> String {
    let title = |rule: &str| format!("Always (writes {}: {rule})", file_name(file));
    let rule = Shown::line(&tool.to_string()).to_string();
    let room = CHOICE.saturating_sub(title("").width());
    shortened(&title(&shortened(&rule, room)), CHOICE).into_owned()
}

fn file_name(file: &Path) -> String {
    let name = file.file_name();
    name.map_or_else(|| ".pml.json".to_owned(), |name| Shown::path(Path::new(name)))
}

/// Lists what a person agrees to besides the command.
fn notes(dependency: &ShownDependency) -> Vec<String> {
    let scripts = dependency.scripts.then(|| "install scripts WILL run".to_owned());
    let surroundings = dependency.surroundings.labelled().into_iter();
    let surroundings = surroundings.map(|(label, text)| format!("{label} {text}"));
    scripts
        .into_iter()
        .chain(surroundings)
        .chain(dependency.notes())
        .collect()
}

fn hash(dependency: &ShownDependency) -> Option<String> {
    match (&dependency.integrity, &dependency.version, &dependency.remote) {
        (Some(integrity), _, _) => {
            let shown: String = integrity.chars().take(HASH).collect();
            let rest = if shown.len() < integrity.len() { "…" } else { "" };
            Some(format!("{}{rest}", Shown::line(&shown)))
        }
        (None, _, Some(_)) => Some("a remote server".to_owned()),
        (None, Some(_), None) => Some("hash recorded at first use".to_owned()),
        (None, None, None) => None,
    }
}

/// Names project and hash, in what a line has left behind the code.
fn origin(code: &str, project: Option<&Path>, hash: Option<String>) -> String {
    let hash = hash.map_or_else(String::new, |hash| format!(" \u{b7} {hash}"));
    let project = project.map(Shown::path).unwrap_or_default();
    let taken = format!("code {code} \u{b7} {hash}").chars().count();
    let room = COLUMNS.saturating_sub(taken);
    let count = project.chars().count();
    // The end of a path says more than its beginning.
    let project = if count > room {
        let end: String = project.chars().skip(count - room.saturating_sub(1)).collect();
        format!("…{end}")
    } else {
        project
    };
    format!(" \u{b7} {project}{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_names_the_rule_where_the_question_names_no_tool_of_the_server() {
        let title = |name: &str| {
            let title = always_connect(Path::new("/work/.pml.json"), &name.parse().unwrap());
            assert!(title.width() <= CHOICE, "{title}");
            title
        };
        assert_eq!(title("mid:connect"), "Always (writes .pml.json: mid:connect)");
        assert_eq!(
            title("filesystem:connect"),
            "Always (writes .pml.json: filesystem:connect)"
        );
        assert_eq!(
            title("a-server-with-a-long-name:connect"),
            "Always (writes .pml.json: a-serve…(+20)…onnect)"
        );
        assert_eq!(always(Path::new("/work/.pml.json")), "Always (writes .pml.json)");
    }
}
