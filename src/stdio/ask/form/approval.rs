//! The forms that ask for a decision: may a server be installed, run or connected to, may a call be made?
//!
//! The first line says what, then comes what would run or the arguments of the call, then where it belongs. What each
//! choice grants stands in its title.

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::decision_form;
use super::message::{CHOICE, COLUMNS, ConsentSubject, DecisionRequest};
use crate::card::{AlwaysRule, Card, Choice, Decision, Fact, FilePast, Line, Subject};
use crate::protocol::approval::ChangedPart;
use crate::protocol::shortened;
use crate::proxy::{Arguments, PendingAsk};

/// So much of a hash tells two versions apart; `pml pending` shows all of it.
const HASH: usize = 20;

/// The tool that stands for a server whose tools are not known.
const CONNECT: &str = "connect";

/// Writes the elicitation parameters that ask for an approval.
pub(crate) fn approval(asked: &PendingAsk) -> Value {
    let card = &*asked.card;
    let what = match (&card.subject, asked.installs) {
        // Whether it is installed already is a fact of this machine, at this moment.
        (Subject::Server { name, tool }, true) => format!("Install {name} for {tool}?"),
        (Subject::Server { name, tool }, false) => format!("Run {name} for {tool}?"),
        (Subject::Remote { name, tool }, _) => format!("Connect to {name} for {tool}?"),
        (Subject::ProjectFile { path, origin, past }, _) => return trust(card, path, origin, *past),
        (Subject::ChangedServer { name, part }, _) => return changed(card, name, *part),
        (Subject::Call { .. } | Subject::Use { .. } | Subject::Questions, _) => card.title.clone(),
    };
    // A person decides about the command, or about the arguments of a call of what was approved before. What there is
    // room for of those is cut out of the JSON itself, so that each of its values keeps both its ends.
    let subject = match (command(card), &asked.arguments) {
        (Some(command), _) => ConsentSubject::Command(command),
        (None, Arguments::Json(json)) => ConsentSubject::Arguments(json),
        (None, Arguments::Absent | Arguments::Erased) => ConsentSubject::Command("(without arguments)"),
    };
    request(card, &what, subject)
}

/// Writes the elicitation parameters that ask whether the client may use one of its own tools.
pub(crate) fn permission(card: &Card, input: &str) -> Value {
    let what = match &card.subject {
        // As rules name it: the person may want to write one.
        Subject::Use { tool } => format!("Allow {tool}?"),
        Subject::Server { .. }
        | Subject::Remote { .. }
        | Subject::Call { .. }
        | Subject::ProjectFile { .. }
        | Subject::ChangedServer { .. }
        | Subject::Questions => card.title.clone(),
    };
    request(card, &what, ConsentSubject::Arguments(input))
}

/// Asks whether a project's file counts as the person's word; what changed is told where they accepted it before.
fn trust(card: &Card, path: &str, origin: &str, past: FilePast) -> Value {
    let name = file_name(path);
    let what = match past {
        FilePast::New => format!("Trust {name}? It {origin}."),
        FilePast::Changed => format!("{name} has changed since you trusted it. Trust it again?"),
    };
    let told = card.dialog_text().unwrap_or_default();
    request(card, &what, ConsentSubject::Command(&told))
}

/// Asks whether a server that differs from what the person accepted is accepted as it is now.
fn changed(card: &Card, name: &str, part: ChangedPart) -> Value {
    let what = match part {
        ChangedPart::Launch => {
            format!("{name} is declared differently than you accepted. Accept it as it is now?")
        }
        ChangedPart::Package => format!("{name} is not what you accepted. Accept it as it is now?"),
        ChangedPart::Tools => format!("The tools of {name} have changed. Accept them as they are now?"),
        ChangedPart::Scripts => format!("{name} brings these install scripts. Run them?"),
    };
    let lines = card.dialog_text().unwrap_or_default();
    request(card, &what, ConsentSubject::Command(&lines))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn request(card: &Card, what: &str, subject: ConsentSubject<'_>) -> Value {
    let message = DecisionRequest {
        what,
        subject,
        notes: &notes(&card.lines),
        code: card.code.as_str(),
        origin: &origin(card),
    };
    let titles = card
        .choices
        .iter()
        .map(|choice| (choice.decision, title(card, choice)));
    decision_form(&message.text(), &titles.collect::<Vec<_>>())
}

fn command(card: &Card) -> Option<&str> {
    let line = card.lines.iter().find(|line| line.fact == Fact::Command)?;
    Some(&line.text)
}

/// Says what a choice grants, in what the narrowest client shows of a title.
fn title(card: &Card, choice: &Choice) -> String {
    match (choice.decision, &card.always_writes) {
        // It reaches further where a server is approved than where a call is.
        (Decision::Once, _) => format!("{} – {}", choice.label, choice.grants),
        (Decision::Always, Some(rule)) => always(rule),
        (Decision::Session | Decision::Always | Decision::Abort, _) => choice.label.to_owned(),
    }
}

/// Names the file that is written, and the rule where the question does not: `connect` is no tool of the server.
fn always(AlwaysRule { file, rule }: &AlwaysRule) -> String {
    let file = file_name(file);
    if rule.split_once(':').is_none_or(|(_, tool)| tool != CONNECT) {
        return shortened(&format!("Always (writes {file})"), CHOICE).into_owned();
    }
    let title = |rule: &str| format!("Always (writes {file}: {rule})");
    let room = CHOICE.saturating_sub(title("").width());
    shortened(&title(&shortened(rule, room)), CHOICE).into_owned()
}

/// Lists what a person agrees to besides the command, the weightiest first.
fn notes(lines: &[Line]) -> Vec<String> {
    let of = |fact| lines.iter().filter(move |line| line.fact == fact);
    // In fewer words than where there is room.
    let scripts = of(Fact::Scripts).map(|_| "install scripts ask apart".to_owned());
    let surroundings = of(Fact::Surroundings).map(|line| format!("{} {}", line.label, line.text));
    let notes = of(Fact::Note).map(|line| line.text.clone());
    let provenance = of(Fact::Provenance).map(|line| format!("{} {}", line.label, line.text));
    // The age says it; the date is for where there is room.
    let age = |text: &str| text.split(" (").next().unwrap_or_default().to_owned();
    let published = of(Fact::Published).map(|line| format!("{} {}", line.label, age(&line.text)));
    scripts
        .chain(surroundings)
        .chain(notes)
        .chain(published)
        .chain(provenance)
        .collect()
}

/// Names project and hash, in what a line has left behind the code.
fn origin(card: &Card) -> String {
    let hash = hash(card).map_or_else(String::new, |hash| format!(" \u{b7} {hash}"));
    let project = &card.asker.project;
    let taken = format!("code {} \u{b7} {hash}", card.code).chars().count();
    let room = COLUMNS.saturating_sub(taken);
    let count = project.chars().count();
    // The end of a path says more than its beginning.
    let project = if count > room {
        let end: String = project.chars().skip(count - room.saturating_sub(1)).collect();
        format!("…{end}")
    } else {
        project.clone()
    };
    format!(" \u{b7} {project}{hash}")
}

fn hash(card: &Card) -> Option<String> {
    let told = card.lines.iter().find_map(|line| match line.fact {
        Fact::Integrity => {
            let shown: String = line.text.chars().take(HASH).collect();
            let rest = if shown.len() < line.text.len() { "…" } else { "" };
            Some(format!("{shown}{rest}"))
        }
        Fact::NoIntegrity => Some(format!("hash {}", line.text)),
        _ => None,
    });
    told.or_else(|| match &card.subject {
        Subject::Remote { .. } => Some("a remote server".to_owned()),
        Subject::Server { .. }
        | Subject::Call { .. }
        | Subject::Use { .. }
        | Subject::ProjectFile { .. }
        | Subject::ChangedServer { .. }
        | Subject::Questions => None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::card::samples;
    use crate::config::By;
    use crate::protocol::Digest;
    use crate::protocol::approval::{
        ApprovalType, AskSubject, ShownDependency, ShownInstallation, ShownProjectFile, ShownProvenance,
        ShownRemote, Surroundings,
    };
    use crate::proxy::{Ask, AskOwnership, PersonalRoad, Workflow};

    #[test]
    fn always_names_the_rule_where_the_question_names_no_tool_of_the_server() {
        let title = |rule: &str| {
            let title = always(&AlwaysRule {
                file: "/work/.pml.json".to_owned(),
                rule: rule.to_owned(),
            });
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
        assert_eq!(title("mid:echo"), "Always (writes .pml.json)");
    }

    fn proven() -> ShownDependency {
        let provenance = ShownProvenance::Proven {
            repository: "github.com/owner/name".to_owned(),
            workflow: "release.yml@refs/tags/v1".to_owned(),
            commit: None,
        };
        ShownDependency {
            installation: Box::new(ShownInstallation {
                provenance: Some(provenance),
                ..ShownInstallation::default()
            }),
            ..dependency("proven")
        }
    }

    fn dependency(name: &str) -> ShownDependency {
        ShownDependency {
            name: name.to_owned(),
            version: Some("0.5.0".to_owned()),
            install: format!("npm install {name}@0.5.0"),
            integrity: Some("sha512-abcdefghijklmnopqrstuvwxyz0123456789==".to_owned()),
            scripts: false,
            surroundings: Box::default(),
            installation: Box::default(),
            remote: None,
        }
    }

    fn waiting(ask: Ask, tool: &str, arguments: Option<&str>) -> Workflow {
        let mut workflow = samples::workflow(ask);
        workflow.call.tool = tool.parse().unwrap();
        workflow.call.arguments =
            arguments.map_or(Arguments::Absent, |json| Arguments::Json(json.to_owned()));
        workflow.project = "/home/me/one".into();
        workflow.origin.config = "/home/me/one/.pml.json".into();
        workflow
    }

    /// What a person sees: the message, what stands beside the field, the choices.
    fn seen(form: &Value) -> String {
        let field = &form["requestedSchema"]["properties"]["decision"];
        let titles = field["oneOf"].as_array().unwrap().iter();
        let titles: Vec<_> = titles.map(|choice| choice["title"].as_str().unwrap()).collect();
        let message = form["message"].as_str().unwrap();
        let beside = field["description"].as_str();
        let beside = beside.map_or_else(String::new, |beside| format!("\n[{beside}]"));
        format!("{message}{beside}\n{}\n", titles.join(" | "))
    }

    fn asks(ask: Ask, tool: &str, arguments: Option<&str>, installs: bool) -> String {
        let workflow = waiting(ask, tool, arguments);
        seen(&approval(&PendingAsk {
            kind: ApprovalType::DependencyInstall,
            tool: workflow.call.tool.clone(),
            subject: Box::new(AskSubject::Dependency(dependency("not the card's"))),
            arguments: workflow.call.arguments.clone(),
            card: Box::new(samples::card(&workflow)),
            installs,
            workflow_id: workflow.id.uuid(),
            code: workflow.code.clone(),
            by: By::Human,
            road: PersonalRoad::Terminal,
            expires_in: Duration::ZERO,
            claim: None,
            ownership: AskOwnership::OfThisCall,
        }))
    }

    fn used() -> Ask {
        let reach = crate::proxy::UseReach::Lasting;
        Ask::Use { reach }
    }

    #[test]
    fn what_a_dialog_shows_is_drawn_from_the_card() {
        let install = |dependency| Ask::Install { dependency };
        let unhashed = ShownDependency {
            integrity: None,
            ..dependency("serena")
        };
        let command = ShownDependency {
            version: None,
            install: "node server.js --root .".to_owned(),
            ..unhashed.clone()
        };
        let busy = ShownDependency {
            scripts: true,
            surroundings: Box::new(Surroundings {
                cwd: Some("/elsewhere\u{202e}".to_owned()),
                env: vec!["A".to_owned(), "B".to_owned()],
                env_file: None,
            }),
            installation: Box::new(ShownInstallation {
                withdrawn: Some("was yanked".to_owned()),
                published: Some("2026-08-31T10:11:12Z".to_owned()),
                age: Some("75 days ago".to_owned()),
                ..ShownInstallation::default()
            }),
            ..dependency("busy")
        };
        let remote = ShownDependency {
            install: "https://mcp.example.org/mcp with the headers Authorization".to_owned(),
            remote: Some(Box::new(ShownRemote {
                origin: "https://mcp.example.org".to_owned(),
                path: "/mcp".to_owned(),
                headers: vec!["Authorization".to_owned()],
                warning: None,
            })),
            ..command.clone()
        };
        let permit = || Ask::Permit {
            dependency: dependency("fs"),
        };
        let arguments = Some(r#"{"path":"/etc/ssh","token":"abcdefghij0123456789"}"#);
        let all = [
            asks(install(dependency("serena")), "serena:analyze", None, true),
            asks(install(unhashed), "serena:connect", None, false),
            asks(install(command), "serena:analyze", None, false),
            asks(install(busy), "busy:go", None, true),
            asks(install(proven()), "proven:go", None, true),
            asks(Ask::Connect { dependency: remote }, "serena:read", None, false),
            asks(permit(), "fs:write", arguments, false),
            asks(permit(), "fs:list", None, false),
            seen(&permission(
                &samples::card(&waiting(used(), "client:Bash", None)),
                r#"{"command":"rm -rf /"}"#,
            )),
        ];
        insta::assert_snapshot!(all.join("\n"), @r#"
        Install serena@0.5.0 for serena:analyze?
        npm install serena@0.5.0
        published not known
        code aaaaa · /home/me/one · sha512-abcdefghijklm…
        Continue – this version, from now on | Only this session | Always (writes .pml.json) | Abort

        Run serena@0.5.0 for serena:connect?
        npm install serena@0.5.0
        published not known
        code aaaaa · /home/me/one · hash recorded at first use
        Continue – this version, from now on | Only this session | Always (writes .pml.json: serena:connect) | Abort

        Run serena for serena:analyze?
        node server.js --root .
        code aaaaa · /home/me/one
        Continue – this command, from now on | Only this session | Always (writes .pml.json) | Abort

        Install busy@0.5.0 for busy:go?
        npm install busy@0.5.0
        install scripts ask apart · runs in /elsewhere\u{202e} · variables A, B
        code aaaaa · /home/me/one · sha512-abcdefghijklm…
        [this version was yanked · published 75 days ago]
        Continue – this version, from now on | Only this session | Always (writes .pml.json) | Abort

        Install proven@0.5.0 for proven:go?
        npm install proven@0.5.0
        published not known
        code aaaaa · /home/me/one · sha512-abcdefghijklm…
        [provenance github.com/owner/name (release.yml@refs/tags/v1)]
        Continue – this version, from now on | Only this session | Always (writes .pml.json) | Abort

        Connect to serena for serena:read?
        https://mcp.example.org/mcp with the headers Authorization
        code aaaaa · /home/me/one · a remote server
        Continue – this address, from now on | Only this session | Always (writes .pml.json) | Abort

        Call fs:write?
        {"path": "/etc/ssh", "token": "[hidden: 20]"}
        code aaaaa · /home/me/one
        Continue – this call only | This tool, for this session | Always (writes .pml.json) | Abort

        Call fs:list?
        (without arguments)
        code aaaaa · /home/me/one
        Continue – this call only | This tool, for this session | Always (writes .pml.json) | Abort

        Allow client:Bash?
        {"command": "rm -rf /"}
        code aaaaa · /home/me/one
        Continue – this use only | This tool, for this session | Always (writes .pml.json) | Abort
        "#);
    }

    #[test]
    fn trust_is_asked_for_with_what_a_file_wants_or_with_what_changed() {
        let file = ShownProjectFile {
            path: "/home/me/one/.pml.json".to_owned(),
            origin: "came with the repository".to_owned(),
            content: Digest::of(["x"]),
            wants: vec![
                "runs without a question: `*`".to_owned(),
                "declares `a`: node a.js".to_owned(),
            ],
            changes: Vec::new(),
        };
        let changed = ShownProjectFile {
            changes: vec!["+ runs without a question: `*`".to_owned()],
            ..file.clone()
        };
        let all = [
            asks(Ask::Trust { file }, "a:go", None, false),
            asks(Ask::Trust { file: changed }, "a:go", None, false),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        Trust .pml.json? It came with the repository.
        runs without a question: `*`; declares `a`: node a.js
        code aaaaa · /home/me/one
        Trust – this file exactly as it is, from now on | Abort

        .pml.json has changed since you trusted it. Trust it again?
        + runs without a question: `*`
        code aaaaa · /home/me/one
        Trust – this file exactly as it is, from now on | Abort
        ");
    }
}
