//! Rules to a verdict: deny always wins; otherwise the most specific pattern; a tie asks; no rule asks.
//!
//! Pure. The rules of every file count together: whose file a rule stands in gives it no weight, so a project can
//! never loosen what the user narrowed to an exact name, and a deny anywhere is final.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::config::{Config, Rule, RuleList};
use crate::protocol::{DependencyName, Specificity, ToolName};

/// The rules, ready to decide.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Rules that name one tool, by its name: most rules are of this kind, and a lookup finds them.
    exact: HashMap<String, Vec<Arc<Rule>>>,
    /// Rules with wildcards, tried one by one.
    wild: Vec<Arc<Rule>>,
}

/// What the rules say about a tool, and which of them said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What is to be done.
    pub decision: Decision,
    /// The rule that decided; `None` if none covers the tool.
    pub rule: Option<Arc<Rule>>,
}

/// What is to be done with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
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

/// How often a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskKind {
    /// Before the dependency is first installed or started at this version: a rule about everything, or no rule.
    First,
    /// Before every call: a narrower rule wants a person to see it.
    Every,
}

impl Policy {
    /// Prepares the rules of `config`.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let mut policy = Self::default();
        for rule in &config.rules {
            let rule = Arc::new(rule.clone());
            match rule.pattern.only_name() {
                Some(name) => policy.exact.entry(name.to_owned()).or_default().push(rule),
                None => policy.wild.push(rule),
            }
        }
        policy
    }

    /// Decides about one call of `tool`.
    #[must_use]
    pub fn check(&self, tool: &ToolName) -> Verdict {
        let rule = self.strongest(&tool.to_string());
        let decision = match rule {
            None => Decision::Ask(AskKind::First),
            Some(rule) => match rule.list {
                RuleList::Allow => Decision::Allow,
                RuleList::Deny => Decision::Deny,
                RuleList::Ask if rule.pattern.is_catch_all() => Decision::Ask(AskKind::First),
                RuleList::Ask => Decision::Ask(AskKind::Every),
            },
        };
        Verdict {
            decision,
            rule: rule.cloned(),
        }
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
        let any = |wanted: fn(&Decision) -> bool| verdicts.iter().any(|verdict| wanted(&verdict.decision));
        if any(|decision| *decision == Decision::Allow) {
            return ServerVerdict::Allowed;
        }
        if any(|decision| matches!(decision, Decision::Ask(_))) {
            return ServerVerdict::Asks;
        }
        let denying = verdicts.into_iter().find_map(|verdict| verdict.rule);
        denying.map_or(ServerVerdict::Asks, ServerVerdict::Denied)
    }

    /// Returns the rule that would still win over an allow rule for exactly `tool`.
    #[must_use]
    pub fn obstacle(&self, tool: &ToolName) -> Option<Arc<Rule>> {
        let allowed = strength(RuleList::Allow, Specificity::Exact);
        self.strongest(&tool.to_string())
            .filter(|rule| strength(rule.list, rule.pattern.specificity()) > allowed)
            .cloned()
    }

    /// Of equally strong rules the first counts: the user's before the project's, each in the order of its file.
    fn strongest(&self, name: &str) -> Option<&Arc<Rule>> {
        let exact = self.exact.get(name).into_iter().flatten();
        let wild = self.wild.iter().filter(|rule| rule.pattern.covers(name));
        exact.chain(wild).reduce(|strongest, rule| {
            if by_strength(rule, strongest).is_gt() {
                rule
            } else {
                strongest
            }
        })
    }
}

/// Orders two rules by which of them decides where both cover a tool; the greater one does.
#[must_use]
pub fn by_strength(one: &Rule, other: &Rule) -> Ordering {
    let strength_of = |rule: &Rule| strength(rule.list, rule.pattern.specificity());
    strength_of(one).cmp(&strength_of(other))
}

/// Orders rules: any deny first, then the narrower pattern, then the more careful list.
fn strength(list: RuleList, specificity: Specificity) -> (bool, Specificity, RuleList) {
    (list == RuleList::Deny, specificity, list)
}

#[cfg(test)]
mod tests;
