//! `pml run` with the real Claude Code, with a script for a model: what the model is told, and what pml prints and keeps.

mod at_once;
mod guidance;
mod kills;
mod late;
mod left_session;
mod overhead;
mod parked;
mod plain;
mod question_host;
mod questions;
mod resumed;
mod rules;
pub(crate) mod scene;
mod servers;
mod signals;
mod terminal;
mod terminal_asks;
mod terminal_screen;
mod tmux;
mod trust;

use serde_json::{Value, json};

use crate::support::messages_api::Turn;

/// A call of the tool by which Claude Code asks its user.
pub(crate) fn question() -> Turn {
    Turn::tool("AskUserQuestion", json!({ "questions": [database()] }))
}

fn database() -> Value {
    asked("Which database?", "Database", &["pg", "sqlite"])
}

/// One question as Claude Code asks it, with one answer.
fn asked(question: &str, header: &str, labels: &[&str]) -> Value {
    let options = labels
        .iter()
        .map(|label| json!({ "label": label, "description": format!("The choice {label}") }));
    json!({
        "question": question, "header": header, "multiSelect": false, "options": options.collect::<Vec<_>>(),
    })
}

/// What the model reads once `pg` was chosen.
const CHOSEN: &str = r#"Your questions have been answered: "Which database?"="pg". You can now continue with these answers in mind."#;

/// What the model is told of a call whose process was ended while it asked.
const OUTCOME_UNKNOWN: &str = "[Tool call interrupted";

/// A command that Claude Code asks about before it runs.
pub(crate) fn bash(command: &str) -> Turn {
    Turn::tool("Bash", command_input(command))
}

fn command_input(command: &str) -> Value {
    json!({ "command": command, "description": "a command" })
}
