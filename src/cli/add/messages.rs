//! The messages about an addition: before the person agrees to it, and after it is done.

use serde_json::{Value, json};

use super::super::{CommandContext, output, server_display, terminal};
use super::{AddArguments, Addition, Draft};
use crate::config;
use crate::loader::Resolved;
use crate::protocol::{Shown, ToolName, wire_name};
use crate::proxy::now;

/// Shows what will be written and run; exactly this is agreed to.
pub(super) fn before(context: &CommandContext, draft: &Draft, resolved: Option<&Resolved>) {
    let path = context.path(&draft.edited.file);
    output::say(&terminal::difference(
        &path,
        draft.edited.before.as_deref(),
        &draft.edited.after,
    ));
    output::say("");
    server_display::show(&draft.plan.shown(resolved, now().millis()));
}

/// Tells what was done: the tools as data, the rest beside it.
pub(super) fn after(
    context: &CommandContext,
    arguments: &AddArguments,
    added: &Addition,
) -> anyhow::Result<()> {
    let draft = &added.draft;
    let shown = draft.plan.shown(added.resolved.as_ref(), now().millis());
    if arguments.json {
        let tools = added.tools.as_ref().map(|tools| {
            let one = |tool: &ToolName| json!({ "tool": tool, "wireName": wire_name(tool) });
            tools.iter().map(one).collect::<Vec<Value>>()
        });
        output::json(&json!({
            "name": arguments.name,
            "file": added.edited.file.to_string_lossy(),
            "changed": added.edited.changed(),
            "entry": draft.entry,
            "version": shown.version,
            "integrity": shown.integrity,
            "published": shown.installation.published,
            "age": shown.installation.age,
            "provenance": shown.installation.provenance,
            "install": shown.install,
            "scripts": shown.scripts,
            "cwd": shown.surroundings.cwd,
            "env": shown.surroundings.env,
            "envFile": shown.surroundings.env_file,
            "notes": added.notes,
            "approved": added.tools.is_some(),
            "tools": tools,
        }))?;
    } else {
        let path = context.path(&added.edited.file);
        let what = match (&added.edited.before, added.edited.changed()) {
            (None, _) => format!("created {path}"),
            (Some(_), true) => format!("changed {path}"),
            (Some(_), false) => format!("{path} says so already"),
        };
        let version = shown
            .version
            .map_or_else(String::new, |version| format!(" at {version}"));
        output::say(&format!("{what}: `{}`{version}", arguments.name));
        match &added.tools {
            None => output::say(match &shown.remote {
                Some(_) => "its first call asks before it is connected to",
                None => "its first call asks before it is installed and started",
            }),
            Some(tools) if tools.is_empty() => output::say("it works and has no tools"),
            Some(tools) => {
                let plural = if tools.len() == 1 { "tool" } else { "tools" };
                output::say(&format!("it is approved and has {} {plural}:", tools.len()));
                let lines: Vec<_> = tools
                    .iter()
                    .map(|tool| Shown::line(&tool.to_string()).to_string())
                    .collect();
                output::data(&lines.join("\n"))?;
            }
        }
    }
    output::warn(&added.edited.durability);
    for note in &added.notes {
        output::note(note);
    }
    note_other_file(context, arguments);
    Ok(())
}

/// Says where a server of the same name stands too: one of the two does not count.
fn note_other_file(context: &CommandContext, arguments: &AddArguments) {
    let files = context.files();
    if files.user == files.project {
        return;
    }
    let (other, counts) = if arguments.user {
        (&files.project, "that one counts here")
    } else {
        (&files.user, "this one counts here")
    };
    let declared = config::load_text(other)
        .ok()
        .flatten()
        .and_then(|text| config::check(other, &text).ok());
    if declared.is_some_and(|config| config.servers.contains_key(&arguments.name)) {
        output::note(&format!(
            "`{}` is declared in {} too; {counts}",
            arguments.name,
            context.path(other)
        ));
    }
}
