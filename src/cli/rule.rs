//! `pml allow`, `deny`, `ask`, `forget`: puts patterns into the lists of a configuration.
//!
//! A rule that is written but does not decide is the trap of every permission file, so after writing the rules
//! are read again and whatever still wins is named.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Ground, output};
use crate::config::{self, Config, RuleList};
use crate::permissions::writer::{self, Edited, Kind};
use crate::permissions::{Change, Decision, Policy, Verdict};
use crate::protocol::{Pattern, ToolName};

/// Which patterns, and in whose file.
#[derive(Debug, Args)]
pub(crate) struct RuleArguments {
    /// Patterns over `server:tool`; `server` alone means all its tools
    #[arg(required = true, value_name = "PATTERN")]
    patterns: Vec<Pattern>,
    /// Write the user's file instead of the project's
    #[arg(long)]
    user: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Which patterns to take out, and from whose file.
#[derive(Debug, Args)]
pub(crate) struct ForgetArguments {
    /// Patterns as they are written in the file
    #[arg(required = true, value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Write the user's file instead of the project's
    #[arg(long)]
    user: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Puts the patterns into `list`.
pub(crate) fn add(ground: &Ground, list: RuleList, arguments: &RuleArguments) -> anyhow::Result<ExitCode> {
    let files = ground.files();
    let path = if arguments.user {
        &files.user
    } else {
        &files.project
    };
    let changes: Vec<_> = arguments
        .patterns
        .iter()
        .map(|pattern| Change::AddRule {
            list,
            pattern: pattern.clone(),
        })
        .collect();
    let edited = writer::edit(path, Kind::Pml, &changes)?;
    let config = config::read(&files)?;
    let policy = Policy::new(&config);
    let winners: Vec<_> = arguments
        .patterns
        .iter()
        .map(|pattern| winner(&policy, list, pattern))
        .collect();

    if arguments.json {
        let patterns: Vec<_> = arguments
            .patterns
            .iter()
            .zip(&winners)
            .map(|(pattern, winner)| {
                let rule = winner.as_ref().and_then(|verdict| verdict.rule.as_deref());
                json!({"pattern": pattern.as_str(), "overruledBy": rule.map(output::rule_json)})
            })
            .collect();
        output::json(&json!({
            "file": path.to_string_lossy(),
            "changed": edited.changed(),
            "list": list.key(),
            "patterns": patterns,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = match (&edited, list) {
        (Edited { before: None, .. }, _) => format!("created {}", ground.path(path)),
        (edited, _) if edited.changed() => format!("changed {}", ground.path(path)),
        _ => format!("{} says so already", ground.path(path)),
    };
    let patterns: Vec<_> = arguments
        .patterns
        .iter()
        .map(|pattern| format!("`{pattern}`"))
        .collect();
    output::say(&format!("{done}: {} {}", list.key(), patterns.join(", ")));
    for (pattern, winner) in arguments.patterns.iter().zip(&winners) {
        if let Some(verdict) = winner {
            output::note(&overruled(ground, pattern, verdict));
        }
        if let Some(stray) = stray(&config, pattern) {
            output::note(&stray);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the patterns out of every list.
pub(crate) fn forget(ground: &Ground, arguments: &ForgetArguments) -> anyhow::Result<ExitCode> {
    let files = ground.files();
    let (path, other, flag) = if arguments.user {
        (&files.user, &files.project, "")
    } else {
        (&files.project, &files.user, " --user")
    };
    let written = config::read(&files)?;
    let stands_in = |file: &std::path::Path, pattern: &str| {
        written.rules.iter().any(|rule| {
            rule.pattern.as_str() == pattern && rule.source.as_ref().is_some_and(|source| source.file == file)
        })
    };
    let (found, missing): (Vec<_>, Vec<_>) = arguments
        .patterns
        .iter()
        .partition(|pattern| stands_in(path, pattern));
    if !found.is_empty() {
        let changes: Vec<_> = found
            .iter()
            .map(|pattern| Change::ForgetRule {
                pattern: (*pattern).clone(),
            })
            .collect();
        writer::edit(path, Kind::Pml, &changes)?;
    }
    if arguments.json {
        output::json(&json!({
            "file": path.to_string_lossy(),
            "changed": !found.is_empty(),
            "forgotten": found,
            "missing": missing,
        }))?;
    } else {
        if !found.is_empty() {
            let patterns: Vec<_> = found.iter().map(|pattern| format!("`{pattern}`")).collect();
            output::say(&format!(
                "changed {}: forgot {}",
                ground.path(path),
                patterns.join(", ")
            ));
        }
        for pattern in &missing {
            let shown = crate::protocol::Shown::line(pattern);
            output::say(&format!("no rule `{shown}` in {}", ground.path(path)));
            if stands_in(other, pattern) {
                output::note(&format!(
                    "it stands in {}; to forget it there: pml forget{flag} '{shown}'",
                    ground.path(other)
                ));
            } else if let Some(nearest) =
                config::nearest(pattern, written.rules.iter().map(|rule| rule.pattern.as_str()))
            {
                output::note(&format!("did you mean `{nearest}`?"));
            }
        }
    }
    Ok(ExitCode::from(u8::from(!missing.is_empty())))
}

/// Returns what decides instead of a rule that was just added, for a tool that stands for all it covers.
fn winner(policy: &Policy, list: RuleList, pattern: &Pattern) -> Option<Verdict> {
    let verdict = policy.check(&sample(pattern)?);
    let decided = match verdict.decision {
        Decision::Allow => RuleList::Allow,
        Decision::Ask(_) => RuleList::Ask,
        Decision::Deny => RuleList::Deny,
    };
    (decided != list).then_some(verdict)
}

/// Returns a tool the pattern covers: each wildcard filled with what no other rule is likely to name.
fn sample(pattern: &Pattern) -> Option<ToolName> {
    if let Some(name) = pattern.only_name() {
        return name.parse().ok();
    }
    let text = pattern.as_str();
    let text = if text.contains(':') {
        text.to_owned()
    } else {
        format!("{text}:*")
    };
    let mut name = String::new();
    let mut rest = text.chars();
    while let Some(found) = rest.next() {
        match found {
            '*' => name.push_str("qzx"),
            '?' => name.push('q'),
            '\\' => name.extend(rest.next()),
            // Which branch or member would speak for the others? None does.
            '{' | '[' => return None,
            found => name.push(found),
        }
    }
    pattern.covers(&name).then(|| name.parse().ok()).flatten()
}

fn overruled(ground: &Ground, pattern: &Pattern, verdict: &Verdict) -> String {
    let still = match verdict.decision {
        Decision::Allow => "still runs without a question",
        Decision::Ask(_) => "still asks",
        Decision::Deny => "is still denied",
    };
    verdict.rule.as_ref().map_or_else(
        || format!("`{pattern}` {still}: no rule covers it"),
        |rule| {
            format!(
                "`{pattern}` {still}: rule `{}` in the {} list wins ({})",
                rule.pattern,
                rule.list.key(),
                ground.place(rule.source.as_ref())
            )
        },
    )
}

/// Says that a pattern covers no declared server, with the one that was probably meant.
pub(super) fn stray(config: &Config, pattern: &Pattern) -> Option<String> {
    let text = pattern.as_str();
    let named = text.split_once(':').map_or(text, |(server, _)| server);
    // A brace that spans the colon makes no pattern of its own: then nothing is said.
    let servers: Pattern = named.parse().ok()?;
    let names = || config.servers.keys().map(crate::protocol::DependencyName::as_str);
    if config.servers.is_empty() || names().any(|name| servers.covers(&format!("{name}:qzx"))) {
        return None;
    }
    let meant = config::nearest(named, names())
        .map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
    Some(format!("`{pattern}` covers no declared server{meant}"))
}
