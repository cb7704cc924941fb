//! `pml allow`, `deny`, `ask`, `forget`: puts patterns into the lists of a configuration.
//!
//! A rule that is written but does not decide is the trap of every permission file, so after writing the rules
//! are read again and whatever still wins is named.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::rule_words::{self, TypedPattern};
use super::terminal::{self, TerminalReply};
use super::{CommandContext, client_tools, output};
use crate::config::{self, Config, Rule, RuleList};
use crate::permissions::writer::FileKind;
use crate::permissions::{ConfigChange, Policy, Ruling, Verdict};
use crate::protocol::{CoveredTools, DependencyName, Pattern, Shown, ToolName, shell};

/// Which patterns, and in whose file.
#[derive(Debug, Args)]
pub(crate) struct RuleArguments {
    /// Patterns over `server:tool`; `server` alone means all its tools
    #[arg(required = true, value_name = "PATTERN", value_parser = rule_words::read)]
    patterns: Vec<TypedPattern>,
    /// Write the user's file instead of the project's
    #[arg(long)]
    user: bool,
    /// Write it also if it covers no tool that is known, and `allow '*'` without asking
    #[arg(long)]
    force: bool,
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
pub(crate) fn add(
    context: &CommandContext,
    list: RuleList,
    arguments: &RuleArguments,
) -> anyhow::Result<ExitCode> {
    let files = context.files();
    let (path, kind) = if arguments.user {
        (&files.user, FileKind::User)
    } else {
        (&files.project, FileKind::Pml(&files))
    };
    let typed = &arguments.patterns;
    let patterns: Vec<Pattern> = typed.iter().map(|typed| typed.pattern.clone()).collect();
    let patterns = &patterns;
    let old = config::read(&files)?;
    if !arguments.force {
        rule_words::check(context, &old, list, patterns)?;
        if list == RuleList::Allow && patterns.iter().any(Pattern::is_catch_all) && !agreed_to_all()? {
            output::say("nothing was changed");
            return Ok(ExitCode::from(1));
        }
    }
    let changes: Vec<_> = patterns
        .iter()
        .map(|pattern| ConfigChange::AddRule {
            list,
            pattern: pattern.clone(),
        })
        .collect();
    let edited = context.edit(path, kind, &changes)?;
    output::warn(&edited.durability);
    let new = config::read(&files)?;
    let policy = context.policy(&new);

    if arguments.json {
        let patterns: Vec<_> = patterns
            .iter()
            .map(|pattern| {
                let winner = winner(&policy, list, pattern).and_then(|verdict| verdict.rule);
                json!({
                    "pattern": pattern.as_str(),
                    "movedFrom": moved(&old, path, list, pattern).map(RuleList::key),
                    "overruledBy": winner.as_deref().map(output::rule_json),
                })
            })
            .collect();
        output::json(&json!({
            "file": edited.file.to_string_lossy(),
            "changed": edited.changed(),
            "list": list.key(),
            "patterns": patterns,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = context.path(&edited.file);
    let done = match &edited.before {
        None => format!("created {shown}"),
        Some(_) if edited.changed() => format!("changed {shown}"),
        Some(_) => format!("{shown} says so already"),
    };
    let quoted: Vec<_> = patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
    output::say(&format!("{done}: {} {}", list.key(), quoted.join(", ")));
    for TypedPattern { pattern, typed } in typed {
        if let Some(typed) = typed {
            output::note(&format!(
                "`{}` is written `{pattern}` in rules",
                Shown::line(typed)
            ));
        }
    }
    for pattern in patterns {
        if let Some(from) = moved(&old, path, list, pattern) {
            output::note(&format!("`{pattern}` was in the {} list before", from.key()));
        }
        if let Some(verdict) = winner(&policy, list, pattern) {
            output::note(&overruled(context, pattern, &verdict));
        }
        if let Some(stray) = stray(&new, pattern) {
            output::note(&stray);
        }
        for rule in shadowed(&new, list, pattern) {
            output::note(&format!(
                "rule `{}` in the {} list decides nothing any more ({})",
                rule.pattern,
                rule.list.key(),
                context.place(rule.source.as_ref())
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks whether everything may run, where a person can be asked; elsewhere they are told.
fn agreed_to_all() -> anyhow::Result<bool> {
    output::note(
        "this lets every tool of every server run unasked, also of servers that are declared later; \
         what only reads: pml allow '*@readonly'",
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let reply = runtime.block_on(terminal::confirm("Allow everything?"));
    runtime.shutdown_background();
    Ok(reply? != TerminalReply::No)
}

/// Returns the list of the same file from which adding the pattern took it.
fn moved(old: &Config, path: &Path, list: RuleList, pattern: &Pattern) -> Option<RuleList> {
    let mut rules = old.rules.iter();
    rules
        .find(|rule| rule.pattern == *pattern && rule.list != list && rule.stands_in(path))
        .map(|rule| rule.list)
}

/// Returns the rules that a new deny overrules wherever they cover anything.
fn shadowed<'a>(
    config: &'a Config,
    list: RuleList,
    pattern: &'a Pattern,
) -> impl Iterator<Item = &'a Rule> + 'a {
    let rules = config.rules.iter();
    rules.filter(move |rule| {
        list == RuleList::Deny
            && rule.list != RuleList::Deny
            && sample(&rule.pattern).is_some_and(|tool| pattern.matches(&tool))
    })
}

/// Takes the patterns out of every list.
pub(crate) fn forget(context: &CommandContext, arguments: &ForgetArguments) -> anyhow::Result<ExitCode> {
    let files = context.files();
    let (path, kind, other, flag) = if arguments.user {
        (&files.user, FileKind::User, &files.project, "")
    } else {
        (&files.project, FileKind::Pml(&files), &files.user, " --user")
    };
    let written = config::read(&files)?;
    let stands_in = |file: &Path, pattern: &str| {
        let mut rules = written.rules.iter();
        rules.any(|rule| rule.pattern.as_str() == pattern && rule.stands_in(file))
    };
    let (found, missing): (Vec<_>, Vec<_>) = arguments
        .patterns
        .iter()
        .partition(|pattern| stands_in(path, pattern));
    let mut file = path.clone();
    if !found.is_empty() {
        let changes: Vec<_> = found
            .iter()
            .map(|pattern| ConfigChange::ForgetRule {
                pattern: (*pattern).clone(),
            })
            .collect();
        let edited = context.edit(path, kind, &changes)?;
        output::warn(&edited.durability);
        file = edited.file;
    }
    let code = u8::from(!missing.is_empty());
    if arguments.json {
        let written = output::json(&json!({
            "file": file.to_string_lossy(),
            "changed": !found.is_empty(),
            "forgotten": found,
            "missing": missing,
        }));
        return Ok(output::verdict(code, written)?);
    }
    if !found.is_empty() {
        let patterns: Vec<_> = found.iter().map(|pattern| format!("`{pattern}`")).collect();
        output::say(&format!(
            "changed {}: forgot {}",
            context.path(&file),
            patterns.join(", ")
        ));
    }
    for pattern in &missing {
        let shown = Shown::line(pattern);
        output::say(&format!("no rule `{shown}` in {}", context.path(path)));
        if stands_in(other, pattern) {
            output::note(&format!(
                "it stands in {}; to forget it there: pml forget{flag} {}",
                context.path(other),
                shell::operand(pattern)
            ));
        } else if let Some(nearest) =
            config::nearest(pattern, written.rules.iter().map(|rule| rule.pattern.as_str()))
        {
            output::note(&format!("did you mean `{nearest}`?"));
        }
    }
    Ok(ExitCode::from(code))
}

/// Returns what decides instead of a rule that was just added, for a tool that stands for all it covers.
fn winner(policy: &Policy, list: RuleList, pattern: &Pattern) -> Option<Verdict> {
    if pattern.tools() == CoveredTools::ReadOnly || pattern.command().is_some() {
        // What stands for all that it covers is not to be told from its name.
        return None;
    }
    let verdict = policy.check(&sample(pattern)?);
    let decided = match verdict.ruling {
        Ruling::Allow => RuleList::Allow,
        Ruling::Ask(_) => RuleList::Ask,
        Ruling::Deny => RuleList::Deny,
    };
    (decided != list).then_some(verdict)
}

/// Returns a tool the pattern covers: each wildcard filled with what no other rule is likely to name.
fn sample(pattern: &Pattern) -> Option<ToolName> {
    if pattern.tools() == CoveredTools::ReadOnly || pattern.command().is_some() {
        return None;
    }
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

fn overruled(context: &CommandContext, pattern: &Pattern, verdict: &Verdict) -> String {
    let still = match verdict.ruling {
        Ruling::Allow => "still runs without a question",
        Ruling::Ask(_) => "still asks",
        Ruling::Deny => "is still denied",
    };
    verdict.rule.as_ref().map_or_else(
        || format!("`{pattern}` {still}: no rule covers it"),
        |rule| {
            format!(
                "`{pattern}` {still}: rule `{}` in the {} list wins ({})",
                rule.pattern,
                rule.list.key(),
                context.place(rule.source.as_ref())
            )
        },
    )
}

/// Says that a pattern covers no declared server, with the one that was probably meant.
pub(super) fn stray(config: &Config, pattern: &Pattern) -> Option<String> {
    let text = pattern.as_str();
    let text = text.strip_suffix("@readonly").unwrap_or(text);
    let part = text.split_once(':').map_or(text, |(server, _)| server);
    // A brace that spans the colon makes no pattern of its own: then nothing is said.
    let servers: Pattern = part.parse().ok()?;
    let names = || config.servers.keys().map(DependencyName::as_str);
    if servers.covers(&format!("{}:qzx", DependencyName::client())) {
        // Of the client's own tools none is declared.
        return client_tools::stray(pattern);
    }
    if config.servers.is_empty() || names().any(|name| servers.covers(&format!("{name}:qzx"))) {
        return None;
    }
    let meant = config::nearest(part, names())
        .map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
    Some(format!("`{pattern}` covers no declared server{meant}"))
}
