//! The list of the tools that a server offers: what is not on it is neither listed nor called.

use super::{FilePosition, Rule, RuleList};
use crate::protocol::{DependencyName, Pattern, PatternError, ToolName};

/// More patterns than a person writes for one server.
const LONGEST: usize = 256;

/// One list `tools` of a server: the tools that match a pattern, but for those that match one with `!`.
///
/// A list of `!` patterns alone offers everything else; an empty one offers nothing. The order means nothing: as with
/// rules, what takes away always wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFilter {
    server: DependencyName,
    listed: Vec<Rule>,
    left_out: Vec<Rule>,
    source: FilePosition,
}

impl ToolFilter {
    /// Reads the list of a server; a fault names the index of its pattern.
    pub(super) fn read(
        server: &DependencyName,
        patterns: &[String],
        source: &FilePosition,
        place: impl Fn(usize) -> FilePosition,
    ) -> Result<Self, (usize, String)> {
        if patterns.len() > LONGEST {
            return Err((LONGEST, format!("more than {LONGEST} patterns in `tools`")));
        }
        let mut filter = Self {
            server: server.clone(),
            listed: Vec::new(),
            left_out: Vec::new(),
            source: source.clone(),
        };
        for (index, written) in patterns.iter().enumerate() {
            let (list, names) = match written.strip_prefix('!') {
                Some(names) => (&mut filter.left_out, names),
                None => (&mut filter.listed, written.as_str()),
            };
            let refused = |reason: String| (index, reason);
            if names.is_empty() {
                return Err(refused(PatternError::Empty.to_string()));
            }
            if names.ends_with("@readonly") {
                return Err(refused(format!(
                    "`{written}`: what may run is for `permissions`; `tools` names tools"
                )));
            }
            let pattern: Pattern = format!("{server}:{names}")
                .parse()
                .map_err(|error: PatternError| refused(error.to_string()))?;
            list.push(Rule {
                pattern,
                list: RuleList::Tools,
                source: Some(place(index)),
            });
        }
        Ok(filter)
    }

    /// Returns what takes a tool away: the pattern with `!`, or the list that does not name it.
    #[must_use]
    pub fn obstacle(&self, tool: &ToolName) -> Option<Rule> {
        let name = tool.to_string();
        let covering = |rules: &[Rule]| rules.iter().find(|rule| rule.pattern.covers(&name)).cloned();
        if let Some(rule) = covering(&self.left_out) {
            return Some(rule);
        }
        if self.listed.is_empty() && !self.left_out.is_empty() || covering(&self.listed).is_some() {
            return None;
        }
        Some(Rule {
            // The whole server: its list is what does not name the tool.
            pattern: self.server.as_str().parse().ok()?,
            list: RuleList::Tools,
            source: Some(self.source.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: usize) -> FilePosition {
        FilePosition {
            file: "/project/.pml.json".into(),
            line,
            column: 1,
        }
    }

    fn filter(patterns: &[&str]) -> ToolFilter {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        ToolFilter::read(&"fs".parse().unwrap(), &patterns, &place(1), |index| {
            place(index + 2)
        })
        .unwrap()
    }

    fn offered<'a>(patterns: &[&str], tools: &[&'a str]) -> Vec<&'a str> {
        let filter = filter(patterns);
        let tool = |name: &str| ToolName::new("fs".parse().unwrap(), name);
        let mut tools = tools.to_vec();
        tools.retain(|name| filter.obstacle(&tool(name)).is_none());
        tools
    }

    #[test]
    fn what_is_named_is_offered_and_what_is_excepted_never() {
        let tools = ["search", "read_file", "read_secret", "write"];
        for (patterns, expected) in [
            (
                &["search", "read_*", "!read_secret"][..],
                &["search", "read_file"][..],
            ),
            (&["!read_secret", "read_*", "search"], &["search", "read_file"]),
            (&["!read_*"], &["search", "write"]),
            (&["*"], &tools),
            (&[], &[]),
            (&["read_secret", "!read_secret"], &[]),
            (&["{search,write}"], &["search", "write"]),
        ] {
            assert_eq!(offered(patterns, &tools), expected, "{patterns:?}");
        }
    }

    #[test]
    fn what_takes_a_tool_away_has_a_place() {
        let filter = filter(&["read_*", "!read_secret"]);
        let obstacle = |name| {
            filter
                .obstacle(&ToolName::new("fs".parse().unwrap(), name))
                .unwrap()
        };
        let excepted = obstacle("read_secret");
        assert_eq!(
            (excepted.pattern.as_str(), excepted.source),
            ("fs:read_secret", Some(place(3)))
        );
        let unnamed = obstacle("write");
        assert_eq!((unnamed.pattern.as_str(), unnamed.source), ("fs", Some(place(1))));
    }

    #[test]
    fn a_pattern_that_is_none_is_refused_with_its_index() {
        let read = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
            ToolFilter::read(&"fs".parse().unwrap(), &patterns, &place(1), place).unwrap_err()
        };
        assert_eq!(read(&["a", "!"]), (1, "a pattern is empty".to_owned()));
        assert_eq!(read(&["[a"]).0, 0);
        assert_eq!(
            read(&["*@readonly"]).1,
            "`*@readonly`: what may run is for `permissions`; `tools` names tools"
        );
    }
}
