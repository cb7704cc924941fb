//! The authority of a command that fetches or starts a server: it needs the same rules and approvals as a call.

use super::failure::{Hinted as _, Refused};
use super::server_pins::Pinned;
use super::{CommandContext, forecast};
use crate::config::Config;
use crate::loader::{Content, KnownTool, Loader, Plan};
use crate::permissions::ServerVerdict;
use crate::protocol::{DependencyName, Shown, shell};
use crate::workflow::Place;

/// Whether a person must agree first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Authority {
    /// A rule allows a tool of the server, or a person approved the server as it is declared.
    Granted(
        /// The content that was approved: other content is refused.
        Content,
    ),
    /// Neither is so.
    Asks,
}

/// Returns whether a person must agree before the server of `plan` is fetched; a denied server is refused.
pub(super) fn of(
    context: &CommandContext,
    config: &Config,
    plan: &Plan,
    loader: &Loader,
) -> anyhow::Result<Authority> {
    let known = loader.known(plan);
    let tools = known.iter().flat_map(|known| known.tools.iter());
    let tools: Vec<&str> = tools.map(KnownTool::name).collect();
    let ruling = ruled(context, config, plan.dependency(), &tools)?;
    let pinned = match config.servers.get(plan.dependency()) {
        Some(server) => context.pinned(server, plan, loader)?,
        None => Pinned::Free,
    };
    let pinned = match pinned {
        // Neither a rule nor an approval covers what is not what was accepted.
        Pinned::Changed => return Ok(Authority::Asks),
        Pinned::Free => Content::default(),
        Pinned::To(accepted) => accepted,
    };
    if ruling == CommandRuling::Allowed {
        return Ok(Authority::Granted(pinned));
    }
    let approvals = Place::of(&context.locations).approvals()?;
    let approval = forecast::approval(&approvals, plan, loader).cloned();
    Ok(approval.map_or(Authority::Asks, |record| {
        let approved = Content {
            integrity: record.integrity,
            lock: record.lock,
            ..Content::default()
        };
        Authority::Granted(approved.or(pinned))
    }))
}

/// What the rules leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandRuling {
    /// A tool of the server runs without a question.
    Allowed,
    /// A person decides.
    Asks,
}

/// Refuses a server of which the rules let no tool run, with the rule and its place.
pub(super) fn ruled(
    context: &CommandContext,
    config: &Config,
    name: &DependencyName,
    tools: &[&str],
) -> anyhow::Result<CommandRuling> {
    match context.policy(config).server(name, tools) {
        ServerVerdict::Allowed => Ok(CommandRuling::Allowed),
        ServerVerdict::Asks => Ok(CommandRuling::Asks),
        ServerVerdict::Denied(rule) => Err(Refused(format!(
            "`{name}` is denied by rule `{}`\n  in the {} list ({})",
            Shown::line(rule.pattern.as_str()),
            rule.list.key(),
            context.place(rule.source.as_ref())
        )))
        .hint(format!(
            "only a person can lift it: pml forget {}",
            shell::operand(rule.pattern.as_str())
        )),
    }
}
