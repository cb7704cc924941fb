//! The notification of asks: two short texts for a program that the user chose.
//!
//! What that program does with them is not known. It may be a script that puts them between quotes, a notifier that reads
//! markup, or a service elsewhere. So they tell the code, what is asked and the name of the project, never arguments or
//! commands, and of a question one line without what looks like a secret; they begin with words of pml, so that none is
//! taken for an option; and the characters that end a quote, begin markup or are expanded by a shell are written as
//! others that look like them.

use std::path::Path;

use super::facts::title;
use crate::protocol::{Excerpt, Shown, quoted};
use crate::workflow::{Ask, Workflow};

/// How many asks are told one by one; a notification has room for a few lines.
const TOLD: usize = 3;

/// How many characters of what is asked are told: a notification shows about two lines of it.
const ASK_LIMIT: usize = 120;

/// How many characters of the name of a project are told.
const PROJECT_LIMIT: usize = 40;

/// The texts of a notification, each on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// How many asks wait, and of what kind.
    pub title: String,
    /// What is asked.
    pub body: String,
}

impl Notification {
    /// Tells of asks that wait; `None` where there is none.
    #[must_use]
    pub fn of(asks: &[Workflow]) -> Option<Self> {
        let title = match asks {
            [] => return None,
            [
                Workflow {
                    ask: Ask::Questions { .. },
                    ..
                },
            ] => "pml: a question waits".to_owned(),
            [_] => "pml: an approval waits".to_owned(),
            several => format!("pml: {} asks wait", several.len()),
        };
        let told = asks.iter().take(TOLD).map(one_line);
        let more = asks.len().saturating_sub(TOLD);
        let more = (more > 0).then(|| format!("and {more} more"));
        let body: Vec<String> = told.chain(more).collect();
        Some(Self {
            title,
            body: body.join(" · "),
        })
    }
}

/// Tells one ask.
fn one_line(ask: &Workflow) -> String {
    let asked = harmless(&asked(ask), ASK_LIMIT);
    match project_name(&ask.project) {
        Some(name) => format!("{} in {}: {asked}", ask.code, harmless(&name, PROJECT_LIMIT)),
        None => format!("{}: {asked}", ask.code),
    }
}

/// Asks in one line; what looks like a secret in the words of a model is hidden.
fn asked(ask: &Workflow) -> String {
    let only = match &ask.ask {
        Ask::Questions { questions } if let [only] = questions.as_slice() => only,
        // Where the file lies is told by the name of the project.
        Ask::Trust { .. } => return "Trust its file?".to_owned(),
        Ask::Install { .. }
        | Ask::Connect { .. }
        | Ask::Permit { .. }
        | Ask::Use { .. }
        | Ask::Integrity { .. }
        | Ask::Questions { .. } => return title(ask),
    };
    let first = only.question.lines().find(|line| !line.trim().is_empty());
    first.map_or_else(
        || title(ask),
        |first| {
            // As a JSON text, whose secrets are found; then without its quotes and their escapes.
            let text = Excerpt::whole(&quoted(first)).text;
            let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            inside.unwrap_or(&text).replace("\\\"", "\"")
        },
    )
}

fn project_name(project: &Path) -> Option<String> {
    let name = project.file_name()?.to_string_lossy();
    Some(Shown::line(&name).to_string())
}

/// Shortens a text that is fit to be shown, and takes its meaning for other readers than people from it.
fn harmless(shown: &str, limit: usize) -> String {
    let mut letters = shown.chars();
    let mut text: String = letters
        .by_ref()
        .take(limit)
        .map(|letter| match letter {
            '"' => '”',
            '\'' | '`' => '’',
            '\\' => '∖',
            '$' => '＄',
            '<' => '‹',
            '>' => '›',
            '&' => '＆',
            // tmux runs what stands in `#(…)`.
            '#' => '＃',
            letter => letter,
        })
        .collect();
    if letters.next().is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Digest;
    use crate::protocol::approval::ShownProjectFile;
    use crate::protocol::question::Question;
    use crate::workflow::samples::{self, choice};
    use crate::workflow::{Arguments, Code};

    fn question(text: &str) -> Workflow {
        let questions = vec![choice(text, &["left"])];
        Workflow {
            project: "/home/user/app".into(),
            ..samples::workflow(Ask::Questions { questions })
        }
    }

    fn file() -> ShownProjectFile {
        ShownProjectFile {
            path: "/home/canary/.pml.json".to_owned(),
            origin: "canary".to_owned(),
            content: Digest::of(["x"]),
            wants: vec!["canary".to_owned()],
            changes: vec!["+ canary".to_owned()],
        }
    }

    fn of(asks: &[Workflow]) -> (String, String) {
        let notification = Notification::of(asks).unwrap();
        (notification.title, notification.body)
    }

    fn told(title: &str, body: &str) -> (String, String) {
        (title.to_owned(), body.to_owned())
    }

    #[test]
    fn each_kind_of_ask_is_told_by_its_names() {
        assert_eq!(Notification::of(&[]), None);
        assert_eq!(
            of(&[question("Which way?")]),
            told("pml: a question waits", "aaaaa in app: Which way?")
        );
        assert_eq!(of(&[question("\n \nThe \"left\"")]).1, "aaaaa in app: The ”left”");
        let install = samples::workflow(samples::new("{}").ask);
        assert_eq!(
            of(&[install]),
            told(
                "pml: an approval waits",
                "aaaaa in pro∖u{1b}ject: Install and run serena@0.5.0?"
            )
        );
        let Ask::Install { dependency } = samples::new("{}").ask else {
            panic!("the sample installs")
        };
        for (ask, asked) in [
            (
                Ask::Permit {
                    dependency: dependency.clone(),
                },
                "Call serena:analyze?",
            ),
            (Ask::Connect { dependency }, "Connect to serena@0.5.0?"),
            (
                Ask::Use {
                    reach: crate::workflow::UseReach::Lasting,
                },
                "Allow analyze?",
            ),
            (Ask::Trust { file: file() }, ": Trust its file?"),
        ] {
            let (title, body) = of(&[samples::workflow(ask)]);
            assert_eq!(title, "pml: an approval waits");
            assert!(body.ends_with(asked), "{body}");
        }
    }

    #[test]
    fn several_asks_are_counted_and_the_first_are_told() {
        let asks: Vec<Workflow> = (0..5)
            .map(|number| Workflow {
                code: Code::of_bits(number),
                ..question(&format!("Number {number}?"))
            })
            .collect();
        assert_eq!(
            of(&asks),
            told(
                "pml: 5 asks wait",
                "aaaaa in app: Number 0? · baaaa in app: Number 1? · caaaa in app: Number 2? · and 2 more"
            )
        );
    }

    #[test]
    fn no_argument_of_a_call_and_no_command_is_told() {
        let Ask::Install { mut dependency } = samples::new("{}").ask else {
            panic!("the sample installs")
        };
        dependency.install = "canary --token canary".to_owned();
        dependency.surroundings.env = vec!["CANARY".to_owned()];
        for ask in [
            Ask::Install {
                dependency: dependency.clone(),
            },
            Ask::Connect {
                dependency: dependency.clone(),
            },
            Ask::Permit { dependency },
            Ask::Use {
                reach: crate::workflow::UseReach::Lasting,
            },
            Ask::Trust { file: file() },
        ] {
            let mut workflow = samples::workflow(ask);
            workflow.call.arguments = Arguments::Json(r#"{"canary": "canary"}"#.to_owned());
            let (title, body) = of(&[workflow]);
            assert!(
                !format!("{title}{body}").to_lowercase().contains("canary"),
                "{title} {body}"
            );
        }
        let (_, body) = of(&[question(
            "Is password=hunter2canary right, or ghp_0123456789abcdefghijABCDEFGHIJ012345?",
        )]);
        assert!(!body.contains("canary") && !body.contains("0123"), "{body}");
        // Only the first line of a question is told: what belongs to it may be long.
        let (_, body) = of(&[question("Which?\ncanary")]);
        assert_eq!(body, "aaaaa in app: Which?");
    }

    #[test]
    fn a_hostile_text_is_one_line_of_plain_and_bounded_text() {
        let hostile = "\u{1b}[31m\u{202e}x\u{200b}\r\" & do shell script \\\"$(id)`id`' <a href=\"x\"> #(id)";
        let (title, body) = of(&[question(hostile)]);
        assert_eq!(title, "pml: a question waits");
        assert_eq!(
            body,
            "aaaaa in app: ∖u001b[31m∖u202ex∖u200b∖r” ＆ do shell script ∖∖”＄(id)’id’’ ‹a href=”x”› ＃(id)"
        );
        let long = Workflow {
            project: format!("/{}", "p".repeat(1_000)).into(),
            ..question(&"q".repeat(100_000))
        };
        let (_, body) = of(&vec![long; 1_000]);
        assert!(
            body.chars().count() < TOLD * (ASK_LIMIT + PROJECT_LIMIT + 20) + 20,
            "{body}"
        );
        assert!(body.starts_with("aaaaa in ppp"), "{body}");
    }

    #[test]
    fn a_question_without_words_and_a_project_without_a_name_are_told_too() {
        let mut ask = question("");
        ask.project = "/".into();
        assert_eq!(of(&[ask]).1, "aaaaa: A question for you");
        let questions: Vec<Question> = vec![samples::question(); 2];
        let (_, body) = of(&[samples::workflow(Ask::Questions { questions })]);
        assert!(body.ends_with(": 2 questions for you"), "{body}");
    }
}
