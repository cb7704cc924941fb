//! The facts of an ask: what it is about, its question in one line, and what a person must know before they decide.

use serde::Serialize;

use crate::protocol::approval::{ChangedPart, ShownDependency};
use crate::protocol::{Excerpt, Shown};
use crate::workflow::{Arguments, Ask, Workflow};

/// What an ask is about; every name is escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A server that would be installed, or run for the first time.
    Server {
        /// Its name, with its version where that is known.
        name: String,
        /// The tool that it is wanted for.
        tool: String,
    },
    /// A server elsewhere that would be connected to for the first time.
    Remote {
        /// Its name.
        name: String,
        /// The tool that it is wanted for.
        tool: String,
    },
    /// A call of a tool.
    Call {
        /// The tool.
        tool: String,
    },
    /// A use of one of the client's own tools.
    Use {
        /// The tool, as rules name it.
        tool: String,
    },
    /// A project's file that would count as the person's word.
    ProjectFile {
        /// The file.
        path: String,
        /// Why it does not count yet, in words that follow "it".
        origin: String,
        /// Whether the person accepted it before.
        past: FilePast,
    },
    /// A server that is not what the person accepted.
    ChangedServer {
        /// Its name, with its version where that is known.
        name: String,
        /// Which part of it differs.
        part: ChangedPart,
    },
    /// Questions of a model.
    Questions,
}

/// Whether a person accepted a file before, with another text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePast {
    /// They did not.
    New,
    /// They did, and it changed since.
    Changed,
}

impl Subject {
    /// Tells what an ask is about.
    pub(super) fn of(workflow: &Workflow) -> Self {
        let tool = Shown::line(&workflow.call.tool.to_string()).to_string();
        match &workflow.ask {
            Ask::Install { dependency } => Self::Server {
                name: named(dependency),
                tool,
            },
            Ask::Connect { dependency } => Self::Remote {
                name: named(dependency),
                tool,
            },
            Ask::Permit { .. } => Self::Call { tool },
            Ask::Use { .. } => Self::Use { tool },
            Ask::Trust { file } => Self::ProjectFile {
                path: file.path.clone(),
                origin: file.origin.clone(),
                past: if file.changes.is_empty() {
                    FilePast::New
                } else {
                    FilePast::Changed
                },
            },
            Ask::Integrity { dependency } => Self::ChangedServer {
                name: named(dependency),
                part: dependency.installation.changed_part(),
            },
            Ask::Questions { .. } => Self::Questions,
        }
    }
}

fn named(dependency: &ShownDependency) -> String {
    let version = dependency.version.as_deref();
    let version = version.map_or_else(String::new, |version| format!("@{version}"));
    Shown::line(&format!("{}{version}", dependency.name)).to_string()
}

/// One thing to know about an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Which fact it tells.
    #[serde(skip)]
    pub fact: Fact,
    /// What it is.
    pub label: &'static str,
    /// What it says; escaped, never cut.
    pub text: String,
    /// How it is drawn.
    pub style: LineStyle,
}

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The command that would run, or the address that would be connected to.
    Command,
    /// That install scripts would run.
    Scripts,
    /// What else to know about the package.
    Note,
    /// The tool that it is wanted for.
    WantedFor,
    /// The directory it runs in, or the variables it gets.
    Surroundings,
    /// When the version was published.
    Published,
    /// The hash of the package.
    Integrity,
    /// That the hash is not known yet.
    NoIntegrity,
    /// Where the package was built.
    Provenance,
    /// The arguments of the call.
    Arguments,
    /// That an unusual part of the arguments is hidden.
    Hidden,
    /// What a client proposes not to ask about again.
    Proposal,
    /// Why a file does not count yet.
    Origin,
    /// What changed in a file or a server since it was accepted.
    Change,
    /// What a file declares or wants.
    Want,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LineStyle {
    /// As text.
    Plain,
    /// As a command or an address, whole.
    Command,
    /// As JSON.
    Arguments,
    /// As a long value, shortened until a person asks for all of it.
    Hash,
    /// So that it is not overlooked.
    Warning,
    /// As a line of a difference: its sign and its blanks count.
    Change,
}

/// Asks in one line.
pub(super) fn title(workflow: &Workflow) -> String {
    let tool = workflow.call.tool.to_string();
    match &workflow.ask {
        Ask::Install { dependency } if dependency.version.is_some() => {
            format!("Install and run {}?", named(dependency))
        }
        Ask::Install { dependency } => format!("Run {}?", named(dependency)),
        Ask::Connect { dependency } => format!("Connect to {}?", named(dependency)),
        Ask::Permit { .. } => format!("Call {}?", Shown::line(&tool)),
        Ask::Use { .. } => format!("Allow {}?", Shown::line(workflow.call.tool.tool())),
        Ask::Trust { file } if file.changes.is_empty() => format!("Trust {}?", file.path),
        Ask::Trust { file } => format!("Trust {}, which has changed?", file.path),
        Ask::Integrity { dependency } => match dependency.installation.changed_part() {
            ChangedPart::Launch => format!("Accept {}, which is declared differently?", named(dependency)),
            ChangedPart::Package => format!("Accept {}, which has changed?", named(dependency)),
            ChangedPart::Tools => format!("Accept the changed tools of {}?", named(dependency)),
            ChangedPart::Scripts => format!("Run these install scripts for {}?", named(dependency)),
        },
        Ask::Questions { questions } => match questions.as_slice() {
            [only] => only.question.lines().next().map_or_else(
                || "A question for you".to_owned(),
                |first| Shown::line(first).to_string(),
            ),
            several => format!("{} questions for you", several.len()),
        },
    }
}

/// Lists what a person must know before they decide, the weightiest first.
pub(super) fn lines(workflow: &Workflow) -> Vec<Line> {
    let line = |fact, label, text: String, style| Line {
        fact,
        label,
        text,
        style,
    };
    match &workflow.ask {
        Ask::Install { dependency } | Ask::Connect { dependency } | Ask::Integrity { dependency } => {
            let would = match &dependency.remote {
                Some(_) => "connects to",
                None => "would run",
            };
            let command = Shown::line(&dependency.install).to_string();
            let change = dependency
                .installation
                .change
                .iter()
                .flat_map(|change| &change.lines);
            let is_of_scripts = dependency.installation.changed_part() == ChangedPart::Scripts;
            let first = if is_of_scripts { "scripts" } else { "changed" };
            let mut lines: Vec<Line> = change
                .enumerate()
                // Named once: what follows belongs to it.
                .map(|(at, text)| {
                    let label = if at == 0 { first } else { "" };
                    line(Fact::Change, label, text.clone(), LineStyle::Change)
                })
                .collect();
            lines.push(line(Fact::Command, would, command, LineStyle::Command));
            if dependency.scripts && !is_of_scripts {
                let text = "install scripts run once you accept them".to_owned();
                lines.push(line(Fact::Scripts, "scripts", text, LineStyle::Warning));
            }
            let notes = dependency.notes().into_iter();
            lines.extend(notes.map(|note| line(Fact::Note, "note", note, LineStyle::Warning)));
            let tool = Shown::line(&workflow.call.tool.to_string()).to_string();
            lines.push(line(Fact::WantedFor, "wanted for", tool, LineStyle::Plain));
            let surroundings = dependency.surroundings.labelled().into_iter();
            lines.extend(
                surroundings.map(|(label, text)| line(Fact::Surroundings, label, text, LineStyle::Plain)),
            );
            let published = dependency.publication();
            lines.extend(published.map(|when| line(Fact::Published, "published", when, LineStyle::Plain)));
            match (&dependency.integrity, &dependency.version, &dependency.remote) {
                (Some(integrity), _, _) => {
                    let text = Shown::line(integrity).to_string();
                    lines.push(line(Fact::Integrity, "integrity", text, LineStyle::Hash));
                }
                (None, Some(_), None) => {
                    let text = "recorded at first use".to_owned();
                    lines.push(line(Fact::NoIntegrity, "integrity", text, LineStyle::Plain));
                }
                (None, _, _) => {}
            }
            if let Some(provenance) = &dependency.installation.provenance {
                let text = Shown::line(&provenance.to_string()).to_string();
                lines.push(line(Fact::Provenance, "provenance", text, LineStyle::Plain));
            }
            lines
        }
        Ask::Permit { .. } | Ask::Use { .. } => match &workflow.call.arguments {
            Arguments::Json(json) => {
                let whole = Excerpt::whole(json);
                let hidden = whole.unusually_hidden().map(|count| {
                    let text = format!("{count} characters in one place: more than a usual secret has");
                    line(Fact::Hidden, "hidden", text, LineStyle::Warning)
                });
                let mut lines = vec![line(Fact::Arguments, "with", whole.text, LineStyle::Arguments)];
                lines.extend(hidden);
                let proposed = workflow.ask.proposed_grants().into_iter();
                lines.extend(proposed.map(|grant| line(Fact::Proposal, "proposed", grant, LineStyle::Plain)));
                lines
            }
            Arguments::Absent => {
                let none = "no arguments".to_owned();
                vec![line(Fact::Arguments, "with", none, LineStyle::Plain)]
            }
            Arguments::Erased => Vec::new(),
        },
        Ask::Trust { file } => {
            let origin = format!("it {}", file.origin);
            let mut lines = vec![line(Fact::Origin, "because", origin, LineStyle::Plain)];
            let changes = file.changes.iter().cloned();
            lines.extend(changes.map(|change| line(Fact::Change, "changed", change, LineStyle::Warning)));
            let wants = file.wants.iter().cloned();
            lines.extend(wants.map(|want| line(Fact::Want, "wants", want, LineStyle::Plain)));
            lines
        }
        Ask::Questions { .. } => Vec::new(),
    }
}
