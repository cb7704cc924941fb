//! A rule's pattern over policy names, and how specific it is.
//!
//! `*`, `?`, `{a,b}` and `[…]` by globset on `dependency:tool`, case-sensitive, with the same meaning on every
//! platform. A pattern without `:` names whole dependencies: `serena` is `serena:*`. Matching is linear: the
//! glob becomes a finite automaton, never a backtracking search.
//!
//! `@readonly` at its end narrows a pattern to tools whose accepted definitions say that they only read. A pattern
//! `client:Bash(git status)` is about commands of the client that begin with these words.

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};

use super::{CommandWords, DependencyName, Shown, ToolName};

/// Longer than any tool name a client accepts; a bound on what a file from outside can make us compile.
const PATTERN_LIMIT: usize = 512;

/// The end of a pattern that covers only tools which read.
const READ_ONLY: &str = "@readonly";

/// The client's own tool whose commands are told apart by their words.
const SHELL_TOOL: &str = "Bash";

/// Says why a pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern has no characters.
    #[error("a pattern is empty")]
    Empty,
    /// The pattern is longer than any name it could match.
    #[error("a pattern of {length} bytes is too long; at most {PATTERN_LIMIT} are allowed")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The pattern contains a character no name can show.
    #[error("pattern `{pattern}` contains a control or invisible character")]
    Invisible {
        /// The refused pattern, escaped.
        pattern: String,
    },
    /// The glob does not parse.
    #[error("pattern `{pattern}` is not a glob: {reason}")]
    Glob {
        /// The refused pattern.
        pattern: String,
        /// What globset says about it.
        reason: String,
    },
    /// The words of a command are not plain.
    #[error(
        "`{pattern}` names no plain words: `client:Bash(git status)` covers every command that begins with these words, without `*`"
    )]
    Command {
        /// The refused pattern.
        pattern: String,
    },
    /// Another tool than the shell is told apart by its arguments.
    #[error("`{pattern}`: only commands of `client:Bash` are told apart by their words")]
    NoCommand {
        /// The refused pattern.
        pattern: String,
    },
}

/// How narrowly a pattern aims: words of a command, then an exact name, then the pattern with more literal characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Specificity {
    /// A pattern with wildcards and its count of literal characters (`:` apart).
    Wild(usize),
    /// A name without wildcards.
    Exact,
    /// A name and how many words of a command.
    Command(usize),
}

/// Which of the tools that a pattern covers by name it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoveredTools {
    /// All of them.
    All,
    /// Those whose accepted definitions say that they only read.
    ReadOnly,
}

/// A checked pattern, ready to match.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    matcher: Matcher,
    specificity: Specificity,
    tools: CoveredTools,
}

/// Most rules name one tool or one server; they are compared, not compiled.
#[derive(Debug, Clone)]
enum Matcher {
    Everything,
    Name(String),
    /// What begins with this: `serena:*` needs no automaton.
    Beginning(String),
    Glob(GlobMatcher),
    /// Commands of the client's shell; no tool is covered by its name alone.
    Command(CommandWords),
}

impl Matcher {
    /// Reads a glob; fails with what globset says about it.
    fn parse(glob: &str) -> Result<Self, String> {
        let parsed = GlobBuilder::new(glob)
            .backslash_escape(true)
            .literal_separator(false)
            .case_insensitive(false)
            .empty_alternates(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        Ok(match specificity(glob) {
            Specificity::Exact | Specificity::Command(_) => Self::Name(unescape(glob)),
            Specificity::Wild(_) => Self::Glob(parsed.compile_matcher()),
        })
    }
}

impl Pattern {
    /// Returns the pattern that matches `tool` and nothing else.
    #[must_use]
    pub fn exact_text(tool: &ToolName) -> String {
        let name = tool.to_string();
        let condition = name.ends_with(READ_ONLY).then(|| name.len() - READ_ONLY.len());
        let is_command = command(&name).is_some();
        let mut text = String::new();
        for (at, found) in name.char_indices() {
            if is_special(found) || condition == Some(at) || is_command && found == '(' {
                text.push('\\');
            }
            text.push(found);
        }
        text
    }

    /// Returns the pattern `*`.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            text: "*".to_owned(),
            matcher: Matcher::Everything,
            specificity: Specificity::Wild(0),
            tools: CoveredTools::All,
        }
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tells whether the pattern covers `tool`.
    #[must_use]
    pub fn matches(&self, tool: &ToolName) -> bool {
        self.covers(&tool.to_string())
    }

    /// Tells whether the pattern covers the tool of this policy name.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        match &self.matcher {
            Matcher::Everything => true,
            Matcher::Name(only) => only == name,
            Matcher::Beginning(beginning) => name.starts_with(beginning),
            Matcher::Glob(glob) => glob.is_match(name),
            Matcher::Command(_) => false,
        }
    }

    /// Returns the words with which the commands begin that the pattern is about; `None` where it is about tools.
    #[must_use]
    pub fn command(&self) -> Option<&CommandWords> {
        match &self.matcher {
            Matcher::Command(words) => Some(words),
            Matcher::Everything | Matcher::Name(_) | Matcher::Beginning(_) | Matcher::Glob(_) => None,
        }
    }

    /// Returns which of the tools that it covers by name the pattern is about.
    #[must_use]
    pub fn tools(&self) -> CoveredTools {
        self.tools
    }

    /// Tells whether a tool of the client is the shell, whose commands are told apart by their words.
    #[must_use]
    pub fn is_shell(tool: &ToolName) -> bool {
        *tool.dependency() == DependencyName::client() && tool.tool() == SHELL_TOOL
    }

    /// Returns the one policy name the pattern covers, if it has no wildcard.
    #[must_use]
    pub fn only_name(&self) -> Option<&str> {
        match &self.matcher {
            Matcher::Name(name) => Some(name),
            Matcher::Everything | Matcher::Beginning(_) | Matcher::Glob(_) | Matcher::Command(_) => None,
        }
    }

    /// Returns how narrowly the pattern aims.
    #[must_use]
    pub fn specificity(&self) -> Specificity {
        self.specificity
    }

    /// Tells whether the pattern names nothing in particular, such as `*`.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.specificity == Specificity::Wild(0) && self.tools == CoveredTools::All
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > PATTERN_LIMIT {
            return Err(PatternError::TooLong { length: text.len() });
        }
        let shown = Shown::line(text).to_string();
        if shown != text {
            return Err(PatternError::Invisible { pattern: shown });
        }
        if let Some((tool, words)) = command(text) {
            if tool != SHELL_TOOL {
                return Err(PatternError::NoCommand { pattern: shown });
            }
            let words = CommandWords::read(words).ok_or(PatternError::Command { pattern: shown })?;
            return Ok(Self {
                text: text.to_owned(),
                specificity: Specificity::Command(words.count()),
                matcher: Matcher::Command(words),
                tools: CoveredTools::All,
            });
        }
        let (names, tools) = match without_condition(text) {
            Some("") => return Err(PatternError::Empty),
            Some(names) => (names, CoveredTools::ReadOnly),
            None => (text, CoveredTools::All),
        };
        let glob = if names.contains(':') || names == "*" {
            names.to_owned()
        } else {
            format!("{names}:*")
        };
        let matcher = match glob.strip_suffix('*') {
            _ if names == "*" => Matcher::Everything,
            None if !glob.contains(is_special) => Matcher::Name(glob.clone()),
            Some(beginning) if !beginning.contains(is_special) => Matcher::Beginning(beginning.to_owned()),
            _ => Matcher::parse(&glob).map_err(|reason| PatternError::Glob {
                pattern: shown,
                reason,
            })?,
        };
        Ok(Self {
            text: text.to_owned(),
            matcher,
            specificity: specificity(&glob),
            tools,
        })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Splits `client:TOOL(WORDS)`.
fn command(text: &str) -> Option<(&str, &str)> {
    let (tool, words) = text.strip_prefix("client:")?.strip_suffix(')')?.split_once('(')?;
    let is_name = !tool.is_empty()
        && tool
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((tool, words))
}

/// Returns what stands before `@readonly`; an escaped `@` is part of a name.
fn without_condition(text: &str) -> Option<&str> {
    let names = text.strip_suffix(READ_ONLY)?;
    let backslashes = names.bytes().rev().take_while(|byte| *byte == b'\\').count();
    (backslashes % 2 == 0).then_some(names)
}

/// Tells whether a character may mean something else than itself in a glob.
fn is_special(found: char) -> bool {
    matches!(found, '*' | '?' | '{' | '}' | '[' | ']' | '\\' | ',' | '!')
}

/// Returns what a glob without wildcards stands for.
fn unescape(glob: &str) -> String {
    let mut name = String::with_capacity(glob.len());
    let mut rest = glob.chars();
    while let Some(found) = rest.next() {
        name.extend(if found == '\\' { rest.next() } else { Some(found) });
    }
    name
}

/// Counts the literal characters of a glob that is known to parse.
fn specificity(glob: &str) -> Specificity {
    let mut counter = Counter {
        rest: glob.chars(),
        wild: false,
    };
    let (literals, _) = counter.count(Nesting::Outside);
    if counter.wild {
        Specificity::Wild(literals)
    } else {
        Specificity::Exact
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Outside,
    InAlternative,
}

/// What ended a stretch of a glob.
#[derive(PartialEq, Eq)]
enum StretchEnd {
    Glob,
    Alternative,
    Alternatives,
}

struct Counter<'a> {
    rest: std::str::Chars<'a>,
    wild: bool,
}

impl Counter<'_> {
    fn count(&mut self, nesting: Nesting) -> (usize, StretchEnd) {
        let mut literals = 0;
        while let Some(found) = self.rest.next() {
            match found {
                ',' if nesting == Nesting::InAlternative => return (literals, StretchEnd::Alternative),
                '}' if nesting == Nesting::InAlternative => return (literals, StretchEnd::Alternatives),
                '\\' => literals += usize::from(self.rest.next().is_some()),
                '*' | '?' => self.wild = true,
                '[' => self.skip_class(),
                '{' => literals += self.count_alternatives(),
                ':' => {}
                _ => literals += 1,
            }
        }
        (literals, StretchEnd::Glob)
    }

    /// Of alternatives the shortest counts: the pattern is no narrower than its widest branch.
    fn count_alternatives(&mut self) -> usize {
        self.wild = true;
        let mut shortest = usize::MAX;
        loop {
            let (literals, end) = self.count(Nesting::InAlternative);
            shortest = shortest.min(literals);
            if end != StretchEnd::Alternative {
                return shortest;
            }
        }
    }

    /// The first member of a class, after an optional `!` or `^`, may be `]` itself.
    fn skip_class(&mut self) {
        self.wild = true;
        if matches!(self.rest.next(), Some('!' | '^')) {
            self.rest.next();
        }
        while !matches!(self.rest.next(), None | Some(']')) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, tool: &str) -> bool {
        pattern
            .parse::<Pattern>()
            .unwrap()
            .matches(&tool.parse().unwrap())
    }

    fn aims(pattern: &str) -> Specificity {
        pattern.parse::<Pattern>().unwrap().specificity()
    }

    #[test]
    fn patterns_match_policy_names() {
        assert!(matches("*", "serena:analyze"));
        assert!(matches("serena", "serena:analyze"));
        assert!(!matches("serena", "serena2:analyze"));
        assert!(matches("serena:*", "serena:files/read"));
        assert!(matches("github:{get,list}_*", "github:list_issues"));
        assert!(!matches("github:{get,list}_*", "github:delete_issue"));
        assert!(matches("fs:read_[a-f]?", "fs:read_ab"));
        assert!(matches("{fs,git}", "git:log"));
        assert!(!matches("Serena:*", "serena:analyze"));
        assert!(matches("a:b\\*", "a:b*"));
        assert!(!matches("a:b\\*", "a:bc"));
    }

    #[test]
    fn an_exact_name_aims_narrowest_and_literals_count() {
        assert_eq!(aims("serena:analyze"), Specificity::Exact);
        assert_eq!(aims("*"), Specificity::Wild(0));
        assert_eq!(aims("*:*"), Specificity::Wild(0));
        assert_eq!(aims("serena"), Specificity::Wild(6));
        assert_eq!(aims("github:{get,list}_*"), Specificity::Wild(10));
        assert_eq!(aims("a:[]x]b"), Specificity::Wild(2));
        assert_eq!(aims("a:[!]x]b"), Specificity::Wild(2));
        assert_eq!(aims("a:b,c*"), Specificity::Wild(4));
        assert!(Specificity::Exact > Specificity::Wild(usize::MAX));
        assert!("**".parse::<Pattern>().unwrap().is_catch_all());
        assert!(!"serena".parse::<Pattern>().unwrap().is_catch_all());
    }

    #[test]
    fn a_pattern_may_cover_only_tools_that_read() {
        let pattern = |text: &str| text.parse::<Pattern>().unwrap();
        assert_eq!(pattern("*").tools(), CoveredTools::All);
        assert_eq!(pattern("*@readonly").tools(), CoveredTools::ReadOnly);
        assert_eq!(pattern("*@readonly").specificity(), Specificity::Wild(0));
        assert!(!pattern("*@readonly").is_catch_all());
        assert!(matches("*@readonly", "fs:read"));
        assert!(matches("fs@readonly", "fs:read"));
        assert!(matches("fs:re*@readonly", "fs:read"));
        assert_eq!(pattern("fs:read@readonly").only_name(), Some("fs:read"));
        assert_eq!(pattern("fs:a\\@readonly").only_name(), Some("fs:a@readonly"));
        assert_eq!(pattern("fs:a\\@readonly").tools(), CoveredTools::All);
        assert_eq!("@readonly".parse::<Pattern>().unwrap_err(), PatternError::Empty);
    }

    #[test]
    fn a_pattern_of_command_words_covers_no_tool_by_its_name() {
        let pattern: Pattern = "client:Bash(git status)".parse().unwrap();
        assert_eq!(pattern.specificity(), Specificity::Command(2));
        assert!(pattern.specificity() > Specificity::Exact);
        assert!(!pattern.covers("client:Bash") && !pattern.covers("client:Bash(git status)"));
        assert!(pattern.command().unwrap().begin("git status -s"));
        let literal = ToolName::new(DependencyName::client(), "Bash(git status)");
        assert_eq!(Pattern::exact_text(&literal), "client:Bash\\(git status)");
    }

    #[test]
    fn refused_patterns_say_why() {
        let refused = |text: &str| text.parse::<Pattern>().unwrap_err().to_string();
        assert_eq!(refused(""), "a pattern is empty");
        assert_eq!(
            refused("a:\u{202e}b"),
            "pattern `a:\\u{202e}b` contains a control or invisible character"
        );
        assert!(refused("a:[b").starts_with("pattern `a:[b` is not a glob: "));
        assert!(refused("a:{b").starts_with("pattern `a:{b` is not a glob: "));
        assert!(refused(&"a".repeat(513)).contains("too long"));
        assert_eq!(
            refused("client:Bash(git *)"),
            "`client:Bash(git *)` names no plain words: `client:Bash(git status)` covers every command that begins with these words, without `*`"
        );
        assert_eq!(
            refused("client:Read(/etc)"),
            "`client:Read(/etc)`: only commands of `client:Bash` are told apart by their words"
        );
    }

    proptest! {
        #[test]
        fn the_exact_pattern_of_a_tool_matches_that_tool_only(
            tool in "[a-z*?{}\\[\\]!,^\\\\:.-]{1,12}", other in "[a-z*?{}\\[\\]!,^\\\\:.-]{1,12}",
        ) {
            let dependency: super::super::DependencyName = "fs".parse().unwrap();
            let name = ToolName::new(dependency.clone(), tool.clone());
            let pattern: Pattern = Pattern::exact_text(&name).parse().unwrap();
            prop_assert!(pattern.matches(&name));
            prop_assert_eq!(pattern.specificity(), Specificity::Exact);
            prop_assert_eq!(pattern.matches(&ToolName::new(dependency, other.clone())), tool == other);
        }

        #[test]
        fn the_exact_pattern_of_a_tool_of_the_client_matches_that_tool_only(tool in "[AB(): @]{1,4}(@readonly|\\(a\\))?") {
            let name = ToolName::new(DependencyName::client(), tool);
            let pattern: Pattern = Pattern::exact_text(&name).parse().unwrap();
            let expected = name.to_string();
            prop_assert_eq!(pattern.only_name(), Some(expected.as_str()));
            prop_assert_eq!(pattern.tools(), CoveredTools::All);
        }

        #[test]
        fn a_beginning_means_what_the_glob_means(beginning in "[a-c:/.-]{0,4}", name in "[a-c:/.-]{0,6}") {
            let text = format!("{beginning}:*");
            let glob = GlobBuilder::new(&text).literal_separator(false).build().unwrap().compile_matcher();
            prop_assert_eq!(text.parse::<Pattern>().unwrap().covers(&name), glob.is_match(&name));
        }

        #[test]
        fn any_text_is_a_pattern_or_a_reason(text in "\\PC{0,40}") {
            let _ = text.parse::<Pattern>();
        }
    }
}
