//! The policy that turns rules into a verdict: deny always wins; otherwise the most specific pattern; a tie asks; no rule asks.
//!
//! Pure. The rules of every file count together: whose file a rule stands in gives it no weight, so a project can
//! never loosen what the user narrowed to an exact name, and a deny anywhere is final.
//!
//! A resource is judged by its URI as it is written and by every spelling of it that some server reads in its place:
//! the strictest verdict counts. That is done here, so that no caller can forget it.
//!
//! What a server's list `tools` takes away is denied before any rule is looked at. Which tools only read is told from
//! outside ([`ReadOnlyTools`]), as it was accepted.

mod read_only;

pub use read_only::ReadOnlyTools;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::config::{Config, Rule, RuleList, ToolFilter};
use crate::protocol::{CoveredTools, DependencyName, Pattern, Specificity, Spellings, ToolName};

/// The rules, ready to decide.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Rules that name one tool, by its name: most rules are of this kind, and a lookup finds them.
    exact: HashMap<String, Vec<Arc<Rule>>>,
    /// Rules with wildcards, tried one by one.
    wild: Vec<Arc<Rule>>,
    /// Rules about commands of the client's shell.
    commands: Vec<Arc<Rule>>,
    /// What the servers offer, where a list says so.
    filters: HashMap<DependencyName, Vec<ToolFilter>>,
    /// Which tools only read.
    read_only: ReadOnlyTools,
    /// Whether any rule tells one resource of a server from another; otherwise its spelling does not matter.
    tells_resources_apart: bool,
    /// Servers that a project's file declares which the user has not accepted: no rule lets them run unasked.
    from_outside: HashSet<DependencyName>,
}

/// What the rules say about a tool, and which of them said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What is to be done.
    pub ruling: Ruling,
    /// The rule that decided; `None` if none covers the tool.
    pub rule: Option<Arc<Rule>>,
}

/// The ruling of the rules on a call; the stricter is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ruling {
    /// It runs.
    Allow,
    /// A person decides.
    Ask(AskKind),
    /// It never runs.
    Deny,
}

/// What the rules say about a server as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerVerdict {
    /// At least one of its tools runs without a question.
    Allowed,
    /// A person decides.
    Asks,
    /// None of its tools ever runs, by this rule.
    Denied(Arc<Rule>),
}

/// The tool that stands for a server whose tools are not known.
pub const CONNECT: &str = "connect";

/// How often a person is asked; the more often is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AskKind {
    /// Before the dependency is first installed or started at this version: a rule about everything, or no rule.
    First,
    /// Before every call: a narrower rule wants a person to see it.
    Every,
}

/// What rules call a resource: this and its URI.
pub const RESOURCES: &str = "resources/";

/// What rules call a prompt: this and its name.
pub const PROMPTS: &str = "prompts/";

impl Policy {
    /// Prepares the rules of `config`, where no tool is known to only read.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self::knowing(config, ReadOnlyTools::default())
    }

    /// Prepares the rules of `config`, with what is known of tools that only read.
    #[must_use]
    pub fn knowing(config: &Config, read_only: ReadOnlyTools) -> Self {
        let mut policy = Self::of(&config.rules);
        policy.read_only = read_only;
        let narrowed = config
            .servers
            .iter()
            .filter(|(_, server)| !server.tools.is_empty());
        policy.filters = narrowed
            .map(|(name, server)| (name.clone(), server.tools.clone()))
            .collect();
        let from_outside = config
            .servers
            .iter()
            .filter(|(_, server)| config.is_from_outside(server));
        policy.from_outside = from_outside.map(|(name, _)| name.clone()).collect();
        policy
    }

    /// Prepares the rules as they would be if the user accepted the project's file.
    #[must_use]
    pub fn if_accepted(config: &Config) -> Self {
        Self::of(config.rules.iter().chain(&config.withheld))
    }

    fn of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        let mut policy = Self::default();
        for rule in rules {
            let rule = Arc::new(rule.clone());
            if rule.pattern.command().is_some() {
                policy.commands.push(rule);
                continue;
            }
            policy.tells_resources_apart |= tells_resources_apart(&rule.pattern);
            match rule.pattern.only_name() {
                Some(name) => {
                    for name in covered(rule.list, name) {
                        policy.exact.entry(name).or_default().push(Arc::clone(&rule));
                    }
                }
                None => policy.wild.push(rule),
            }
        }
        policy
    }

    /// Decides about one call of `tool`.
    #[must_use]
    pub fn check(&self, tool: &ToolName) -> Verdict {
        // A prompt, a resource and the stand-in for unknown tools are no tools of the list.
        let is_tool =
            |name: &str| name != CONNECT && !name.starts_with(PROMPTS) && !name.starts_with(RESOURCES);
        if is_tool(tool.tool())
            && let Some(rule) = self.not_offered(tool)
        {
            return Verdict {
                ruling: Ruling::Deny,
                rule: Some(rule),
            };
        }
        let verdict = self.check_rules(tool);
        if verdict.ruling == Ruling::Allow && self.from_outside.contains(tool.dependency()) {
            return Verdict {
                ruling: Ruling::Ask(AskKind::First),
                rule: None,
            };
        }
        verdict
    }

    /// Returns what takes a tool of a server away, if its list `tools` does; of anything that is no tool, too.
    #[must_use]
    pub fn not_offered(&self, tool: &ToolName) -> Option<Arc<Rule>> {
        let filters = self.filters.get(tool.dependency())?;
        filters
            .iter()
            .find_map(|filter| filter.obstacle(tool))
            .map(Arc::new)
    }

    /// Decides about a command that the client's shell is to run.
    ///
    /// Words that allow count where the command is nothing but plain words; words that forbid or ask, wherever they stand.
    #[must_use]
    pub fn check_command(&self, tool: &ToolName, command: &str) -> Verdict {
        let covers = |rule: &&Arc<Rule>| {
            let words = rule.pattern.command();
            words.is_some_and(|words| match rule.list {
                RuleList::Allow => words.begin(command),
                RuleList::Ask | RuleList::Deny | RuleList::Tools => words.occur_in(command),
            })
        };
        let by_name = self.strongest(&tool.to_string());
        verdict(stronger(self.commands.iter().filter(covers).chain(by_name)))
    }

    fn check_rules(&self, tool: &ToolName) -> Verdict {
        let name = tool.to_string();
        let written = self.check_name(&name);
        let resource = tool.tool().strip_prefix(RESOURCES);
        let Some(uri) = resource.filter(|_uri| self.tells_resources_apart) else {
            return written;
        };
        // Where a rule allows this very text, only a deny of another spelling says otherwise.
        let named = written.rule.as_ref().is_some_and(|rule| {
            rule.list == RuleList::Allow && rule.pattern.only_name() == Some(name.as_str())
        });
        let counts = |verdict: &Verdict| !named || verdict.ruling == Ruling::Deny;
        let spelled = |uri: &String| self.check_name(&format!("{}:{RESOURCES}{uri}", tool.dependency()));
        let spellings = Spellings::of(uri);
        let normal = spellings.normal.iter().map(spelled).filter(counts);
        // What only some server might read counts where a rule of its own says so.
        let further = spellings.further.iter().map(spelled).filter(counts);
        let further = further.filter(|verdict| verdict.ruling > Ruling::Ask(AskKind::First));
        normal.chain(further).fold(written, |strictest, verdict| {
            if verdict.ruling > strictest.ruling {
                verdict
            } else {
                strictest
            }
        })
    }

    fn check_name(&self, name: &str) -> Verdict {
        verdict(self.strongest(name))
    }

    /// Decides about a server with these known tools, whichever of them will be called.
    #[must_use]
    pub fn server(&self, name: &DependencyName, tools: &[&str]) -> ServerVerdict {
        // A rule may name a tool that is not known yet.
        let beginning = format!("{name}:");
        let ruled = self
            .exact
            .keys()
            .filter_map(|exact| exact.strip_prefix(&beginning));
        let candidates = tools.iter().copied().chain(ruled);
        let verdicts: Vec<Verdict> = candidates
            .chain(tools.is_empty().then_some(CONNECT))
            .map(|tool| self.check(&ToolName::new(name.clone(), tool)))
            .collect();
        let any = |wanted: fn(&Ruling) -> bool| verdicts.iter().any(|verdict| wanted(&verdict.ruling));
        if any(|ruling| *ruling == Ruling::Allow) {
            return ServerVerdict::Allowed;
        }
        if any(|ruling| matches!(ruling, Ruling::Ask(_))) {
            return ServerVerdict::Asks;
        }
        let denying = verdicts.into_iter().find_map(|verdict| verdict.rule);
        denying.map_or(ServerVerdict::Asks, ServerVerdict::Denied)
    }

    /// Returns the rule that would still win over an allow rule for exactly `tool`.
    #[must_use]
    pub fn obstacle(&self, tool: &ToolName) -> Option<Arc<Rule>> {
        let allowed = strength(RuleList::Allow, Specificity::Exact, CoveredTools::All);
        let written = self
            .strongest(&tool.to_string())
            .filter(|rule| strength_of(rule) > allowed && rule.list != RuleList::Allow);
        let denied = || {
            let verdict = self.check(tool);
            verdict.rule.filter(|_rule| verdict.ruling == Ruling::Deny)
        };
        written.cloned().or_else(denied)
    }

    /// Of equally strong rules the first counts: the user's before the project's, each in the order of its file.
    fn strongest(&self, name: &str) -> Option<&Arc<Rule>> {
        let exact = self.exact.get(name).into_iter().flatten();
        let wild = self.wild.iter().filter(|rule| rule.pattern.covers(name));
        let counts = |rule: &&Arc<Rule>| match rule.pattern.tools() {
            CoveredTools::All => true,
            CoveredTools::ReadOnly => self.read_only.contains(name),
        };
        stronger(exact.chain(wild).filter(counts))
    }
}

/// Returns the strongest of rules that cover a call; of equally strong ones the first.
fn stronger<'a>(rules: impl Iterator<Item = &'a Arc<Rule>>) -> Option<&'a Arc<Rule>> {
    rules.reduce(|strongest, rule| {
        if by_strength(rule, strongest).is_gt() {
            rule
        } else {
            strongest
        }
    })
}

/// Returns what the rule that decides says.
fn verdict(rule: Option<&Arc<Rule>>) -> Verdict {
    let ruling = match rule {
        None => Ruling::Ask(AskKind::First),
        Some(rule) => match rule.list {
            RuleList::Allow => Ruling::Allow,
            RuleList::Deny | RuleList::Tools => Ruling::Deny,
            RuleList::Ask if rule.pattern.is_catch_all() => Ruling::Ask(AskKind::First),
            RuleList::Ask => Ruling::Ask(AskKind::Every),
        },
    };
    Verdict {
        ruling,
        rule: rule.cloned(),
    }
}

/// Tells whether a pattern may cover one resource of a server and not another.
fn tells_resources_apart(pattern: &Pattern) -> bool {
    if pattern.tools() == CoveredTools::ReadOnly {
        // No resource says of itself that it only reads.
        return false;
    }
    match pattern.only_name() {
        Some(name) => name.contains(RESOURCES),
        None if pattern.is_catch_all() => pattern.as_str() != "*",
        None => {
            let text = pattern.as_str();
            let server = text.strip_suffix(":*").unwrap_or(text);
            server.parse::<DependencyName>().is_err()
        }
    }
}

/// Returns the names that a rule without wildcards covers: one that narrows covers every spelling of a resource.
fn covered(list: RuleList, name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let resource = name.split_once(':').and_then(|(dependency, thing)| {
        let uri = thing
            .strip_prefix(RESOURCES)
            .filter(|_uri| list != RuleList::Allow)?;
        Some((dependency, uri))
    });
    if let Some((dependency, uri)) = resource {
        let spelled = |uri: String| format!("{dependency}:{RESOURCES}{uri}");
        names.extend(Spellings::of(uri).normal.into_iter().map(spelled));
    }
    names
}

/// Orders two rules by which of them decides where both cover a tool; the greater one does.
#[must_use]
pub fn by_strength(one: &Rule, other: &Rule) -> Ordering {
    strength_of(one).cmp(&strength_of(other))
}

fn strength_of(rule: &Rule) -> (bool, Specificity, CoveredTools, RuleList) {
    strength(rule.list, rule.pattern.specificity(), rule.pattern.tools())
}

/// Orders rules: any deny first, then the narrower pattern, then the more careful list.
fn strength(
    list: RuleList,
    specificity: Specificity,
    tools: CoveredTools,
) -> (bool, Specificity, CoveredTools, RuleList) {
    (list == RuleList::Deny, specificity, tools, list)
}

#[cfg(test)]
mod tests;
