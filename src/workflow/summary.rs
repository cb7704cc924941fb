//! The summary of a workflow that a person reads before they decide, in a terminal or by a slash command.
//!
//! Pure. Text from outside is escaped here, and the command that would run is never shortened.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Arguments, Ask, Timestamp, Workflow};
use crate::protocol::approval::ChangedPart;
use crate::protocol::question::Question;
use crate::protocol::{Excerpt, Extent, Shown, lines_of_json, wrap};

/// What is shown at most of a call's arguments, in columns: what a person reads before they decide, about two pages.
const PAGES: usize = 4_000;

/// How wide the lines of whole arguments are: a terminal of 80 columns, without what stands before them.
const LINE: usize = 67;

impl Workflow {
    /// Returns the ask, the asking project and the deadline, on several lines.
    #[must_use]
    pub fn summary(&self, now: Timestamp) -> String {
        self.summary_with(self.ask_lines(), now)
    }

    /// Returns the summary with the whole arguments of the call, over as many lines as they need.
    #[must_use]
    pub fn full_summary(&self, now: Timestamp) -> String {
        let Some(json) = self.decisive_arguments() else {
            return self.summary(now);
        };
        let arguments = lines_of_json(json);
        let arguments = arguments.iter().flat_map(|line| wrap(line, LINE));
        let labels = ["with       "]
            .into_iter()
            .chain(std::iter::repeat("           "));
        let arguments = labels
            .zip(arguments)
            .map(|(label, line)| format!("{label}{line}"));
        let asks = self.ask_lines().into_iter().take(1);
        let hidden = Excerpt::whole(json).unusually_hidden().map(hidden_line);
        let lines = asks.chain(arguments).chain(hidden).chain(self.proposed_lines());
        self.summary_with(lines.collect(), now)
    }

    fn summary_with(&self, asked: Vec<String>, now: Timestamp) -> String {
        let tool = self.call.tool.to_string();
        let mut text = format!(
            "{}  {}  asked {} ago, {}\n",
            self.code,
            Shown::line(&tool),
            span(now.since(self.created_at)),
            if self.is_live_at(now) {
                format!("expires in {}", span(self.expires_at.since(now)))
            } else {
                "expired".to_owned()
            },
        );
        for line in asked {
            let _ = writeln!(text, "  {line}");
        }
        let _ = write!(text, "  project    {}", Shown::path(&self.project));
        text
    }

    /// Returns the arguments that a person decides about, escaped and shortened, their secrets hidden; `None` where
    /// they are not what is asked about, or gone.
    #[must_use]
    pub fn shown_arguments(&self) -> Option<Excerpt> {
        Some(Excerpt::of_json(self.decisive_arguments()?, PAGES))
    }

    /// Returns the same whole, on one line.
    #[must_use]
    pub fn whole_arguments(&self) -> Option<String> {
        Some(Excerpt::whole(self.decisive_arguments()?).text)
    }

    fn decisive_arguments(&self) -> Option<&str> {
        match (&self.ask, &self.call.arguments) {
            (Ask::Permit { .. } | Ask::Use { .. }, Arguments::Json(json)) => Some(json),
            _ => None,
        }
    }

    /// Shows the arguments, and says where they are shown whole if they are not.
    fn with_arguments(&self, asks: String) -> Vec<String> {
        let Some(shown) = self.shown_arguments() else {
            return vec![asks, "with       no arguments".to_owned()];
        };
        let mut lines = vec![asks, format!("with       {}", shown.text)];
        if shown.extent == Extent::Shortened {
            let whole = format!("pml pending {}", self.code);
            lines.push(format!("shortened  (+N) stands for N characters; whole: {whole}"));
        }
        lines.extend(shown.unusually_hidden().map(hidden_line));
        lines
    }

    /// Returns what an approval for the session grants besides, where a client proposes that.
    fn proposed_lines(&self) -> impl Iterator<Item = String> {
        let grants = self.ask.proposed_grants().into_iter();
        grants.map(|grant| format!("proposed   {grant}"))
    }

    /// Returns the lines that describe the ask.
    #[must_use]
    pub fn ask_lines(&self) -> Vec<String> {
        match &self.ask {
            // What the server runs as was approved before; the question is this call.
            Ask::Permit { .. } => {
                let tool = self.call.tool.to_string();
                self.with_arguments(format!("asks for   one call of {}", Shown::line(&tool)))
            }
            Ask::Install { dependency } | Ask::Connect { dependency } => {
                let version = dependency.version.as_deref();
                let named = version.map_or_else(String::new, |version| format!("@{version}"));
                let named = format!("{}{named}", dependency.name);
                let would = match &dependency.remote {
                    Some(_) => "connect to",
                    None => "would run ",
                };
                let mut lines = vec![
                    format!("asks for   first use of {}", Shown::line(&named)),
                    format!("{would} {}", Shown::line(&dependency.install)),
                ];
                let surroundings = dependency.surroundings.labelled().into_iter();
                lines.extend(surroundings.map(|(label, text)| format!("{label:10} {text}")));
                let integrity = dependency.integrity.as_deref();
                lines.extend(integrity.map(|integrity| format!("integrity  {}", Shown::line(integrity))));
                lines.extend(dependency.publication().map(|when| format!("published  {when}")));
                let provenance = dependency.installation.provenance.iter();
                lines.extend(
                    provenance.map(|built| format!("provenance {}", Shown::line(&built.to_string()))),
                );
                if dependency.scripts {
                    lines.push("scripts    install scripts run once you accept them".to_owned());
                }
                lines.extend(dependency.notes().iter().map(|note| format!("note       {note}")));
                lines
            }
            Ask::Use { .. } => {
                let tool = self.call.tool.tool();
                let mut lines = self.with_arguments(format!("asks for   one use of {}", Shown::line(tool)));
                lines.extend(self.proposed_lines());
                lines
            }
            Ask::Trust { file } => {
                let mut lines = vec![
                    format!("asks for   trust in {}", file.path),
                    format!("because    it {}", file.origin),
                ];
                if !file.changes.is_empty() {
                    lines.push("changed    since you accepted it:".to_owned());
                    lines.extend(file.changes.iter().map(|change| format!("           {change}")));
                }
                lines.push("it wants   all of this:".to_owned());
                lines.extend(file.wants.iter().map(|want| format!("           {want}")));
                lines
            }
            Ask::Integrity { dependency } => {
                let (asked, named) = match dependency.installation.changed_part() {
                    ChangedPart::Launch | ChangedPart::Package | ChangedPart::Tools => {
                        ("which is not as you accepted it", "differs    in this:")
                    }
                    ChangedPart::Scripts => (
                        "whose install scripts are not accepted",
                        "scripts    that would run before it:",
                    ),
                };
                let mut lines = vec![
                    format!("asks for   {}, {asked}", Shown::line(&dependency.name)),
                    format!("would run  {}", Shown::line(&dependency.install)),
                    named.to_owned(),
                ];
                let change = dependency
                    .installation
                    .change
                    .iter()
                    .flat_map(|change| &change.lines);
                lines.extend(change.map(|line| format!("           {line}")));
                lines.extend(dependency.notes().iter().map(|note| format!("note       {note}")));
                lines
            }
            Ask::Questions { questions } => questions.iter().flat_map(Question::render).collect(),
        }
    }
}

fn hidden_line(count: usize) -> String {
    format!("hidden     {count} characters in one place: more than a usual secret has")
}

/// Writes a duration in its two greatest units.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m {seconds}s"),
        _ => format!("{hours}h {minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::UseReach;
    use super::super::samples::{NOON, new, workflow};
    use super::*;
    use crate::protocol::question::{Choice, Selection};

    #[test]
    fn a_duration_is_written_in_its_two_greatest_units() {
        for (seconds, written) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m 0s"),
            (3599, "59m 59s"),
            (3600, "1h 0m"),
            (90_060, "25h 1m"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), written);
        }
    }

    #[test]
    fn what_would_run_is_told_whole() {
        let Ask::Install { mut dependency } = new("{}").ask else {
            panic!("the sample installs")
        };
        dependency.integrity = Some("sha512-x".to_owned());
        dependency.scripts = true;
        dependency.surroundings.cwd = Some("/elsewhere".to_owned());
        dependency.surroundings.env = vec!["HOME".to_owned(), "TOKEN".to_owned()];
        let summary = workflow(Ask::Install { dependency }).summary(NOON.plus(Duration::from_secs(61)));
        assert_eq!(
            summary,
            "aaaaa  serena:analyze  asked 1m 1s ago, expires in 3m 59s\n  \
               asks for   first use of serena@0.5.0\n  \
               would run  npm install serena@0.5.0\n  \
               runs in    /elsewhere\n  \
               variables  HOME, TOKEN\n  \
               integrity  sha512-x\n  \
               published  not known\n  \
               scripts    install scripts run once you accept them\n  \
               project    /pro\\u{1b}ject"
        );
    }

    #[test]
    fn a_call_is_told_with_its_arguments_and_without_the_command_of_its_server() {
        let Ask::Install { dependency } = new("{}").ask else {
            panic!("the sample installs")
        };
        let mut permit = workflow(Ask::Permit { dependency });
        permit.call.arguments =
            Arguments::Json("{\"path\":\"/etc/pass\u{202e}wd\",\"token\":\"t0p\"}".to_owned());
        assert_eq!(
            permit.ask_lines(),
            [
                "asks for   one call of serena:analyze",
                "with       {\"path\": \"/etc/pass\\u202ewd\", \"token\": \"[hidden: 3]\"}",
            ]
        );
        permit.call.arguments = Arguments::Absent;
        assert_eq!(permit.ask_lines()[1], "with       no arguments");
    }

    #[test]
    fn what_a_client_proposes_is_told_with_the_use_however_long_that_is() {
        let mut used = workflow(Ask::Use {
            reach: UseReach::Proposed {
                grants: vec!["Bash(touch\u{202e} ghp_abcdefghijklmnopqrstuvwxyz0123456789 *)".to_owned()],
            },
        });
        used.call.arguments = Arguments::Json(r#"{"command":"touch x"}"#.to_owned());
        let line = "\n  proposed   Bash(touch\\u202e ghp_[hidden: 36] *)\n";
        for told in [used.summary(NOON), used.full_summary(NOON)] {
            assert!(told.contains(line), "{told}");
        }
    }

    #[test]
    fn long_arguments_say_where_they_are_whole_and_are_told_whole_there() {
        let Ask::Install { dependency } = new("{}").ask else {
            panic!("the sample installs")
        };
        let mut permit = workflow(Ask::Permit { dependency });
        let lines = "a line of it\\n".repeat(1_000);
        permit.call.arguments =
            Arguments::Json(format!(r#"{{"path":"/a","content":"{lines}","token":"t0p"}}"#));
        let asked = permit.ask_lines();
        assert_eq!(asked.len(), 3, "{asked:?}");
        assert_eq!(
            asked[2],
            "shortened  (+N) stands for N characters; whole: pml pending aaaaa"
        );
        let summary = permit.full_summary(NOON);
        assert!(
            summary.contains("\n  with       {\"path\": \"/a\",\n              \"content\": \"a line of it\\n\n             a line of it\\n\n"),
            "{summary}"
        );
        assert_eq!(summary.matches("a line of it").count(), 1_000);
        assert!(
            summary.contains("\"token\": \"[hidden: 3]\"}\n  project "),
            "{summary}"
        );
        assert!(!summary.contains("shortened"), "{summary}");
        assert!(permit.whole_arguments().unwrap().len() > 13_000);
    }

    #[test]
    fn questions_are_told_with_numbers_and_without_deceit() {
        let question = Question {
            question: "Which\u{202e}?\nReally?".to_owned(),
            header: Some("Way".to_owned()),
            options: vec![
                Choice {
                    label: "A\n".to_owned(),
                    description: Some("the first".to_owned()),
                },
                Choice {
                    label: "B".to_owned(),
                    description: None,
                },
            ],
            selection: Selection::Several,
        };
        let asked = workflow(Ask::Questions {
            questions: vec![question],
        })
        .ask_lines();
        assert_eq!(
            asked,
            [
                "[Way] Which\\u{202e}?",
                "Really?",
                "  1. A\\n: the first",
                "  2. B",
                "  (one or several of these, your own words besides)",
            ]
        );
    }

    #[test]
    fn a_dead_ask_says_so() {
        let summary = workflow(new("{}").ask).summary(NOON.plus(Duration::from_hours(2)));
        assert!(
            summary.starts_with("aaaaa  serena:analyze  asked 2h 0m ago, expired\n"),
            "{summary}"
        );
    }
}
