//! `pml answer CODE`: says what a model asked to know.
//!
//! Labels on the command line must be options: a typing error would otherwise become an answer. A person who
//! means their own words says `--text`, or answers in a terminal, where the options are in sight.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use super::desk::TerminalDesk;
use super::failure::{Refused, hinted};
use super::{CommandContext, output};
use crate::protocol::Shown;
use crate::protocol::question::{Question, QuestionAnswer, QuestionError};
use crate::report::Hint;
use crate::workflow::{Answer, Ask, Code, Workflow};

/// Which questions, and what is said to them.
#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// The five letters of the ask, or the beginning of its id
    #[arg(value_name = "CODE")]
    code: String,
    /// The options you choose, as they are written
    #[arg(value_name = "LABEL")]
    labels: Vec<String>,
    /// Your own words
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// One answer for each of several questions, as a list of objects with `labels` and `text`
    #[arg(long, value_name = "JSON", conflicts_with_all = ["labels", "text"])]
    answers: Option<String>,
}

/// One answer of `--answers`; a member that is not known would be an answer that is lost.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerEntry {
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    text: Option<String>,
}

/// Says why an answer was not recorded; the question still waits.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// One answer for several questions.
    #[error("`{code}` needs one answer for each of its questions: {wanted}, not {given}")]
    Count {
        /// The workflow.
        code: Code,
        /// How many questions there are.
        wanted: usize,
        /// How many answers there are.
        given: usize,
    },
    /// The answers cannot be read.
    #[error("the answers to `{code}` are not a list of {{\"labels\": […], \"text\": \"…\"}}")]
    Json {
        /// The workflow.
        code: Code,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// An answer does not fit its question.
    #[error("`{code}` cannot be answered so")]
    Unfit {
        /// The workflow.
        code: Code,
        /// What does not fit.
        #[source]
        source: QuestionError,
    },
    /// The command line has no answer, and there is no terminal to ask at.
    #[error("no answer to `{code}` is given, and there is no terminal to ask in")]
    Nobody {
        /// The workflow.
        code: Code,
    },
}

impl Hint for AnswerError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Count { code, .. } => {
                format!("to be asked one after the other, in a terminal: pml answer {code}")
            }
            Self::Json { code, .. } => {
                format!("for example: pml answer {code} --answers '[{{\"labels\": [\"Yes\"]}}]'")
            }
            Self::Unfit {
                code,
                source: QuestionError::NotAnOption { .. },
            } => format!("to answer in your own words: pml answer {code} --text '…'"),
            Self::Unfit { code, .. } | Self::Nobody { code } => {
                format!("to choose an option: pml answer {code} LABEL\nto see them: pml pending")
            }
        })
    }
}

/// Answers, and shows what was said.
pub(crate) fn run(context: &CommandContext, arguments: &AnswerArguments) -> anyhow::Result<ExitCode> {
    let inbox = TerminalDesk::open(context)?;
    let workflow = inbox.named(&arguments.code)?;
    let questions = match &workflow.ask {
        Ask::Questions { questions } => questions.as_slice(),
        // The desk says what is asked instead.
        Ask::Install { .. } | Ask::Connect { .. } | Ask::Permit { .. } | Ask::Use => &[],
    };
    check(&inbox, &workflow, questions)?;
    let answers = answers(&workflow, questions, arguments)?;
    record(&inbox, &workflow, answers)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that an answer can count: one that cannot is not even asked for.
pub(super) fn check(inbox: &TerminalDesk, workflow: &Workflow, questions: &[Question]) -> anyhow::Result<()> {
    let answers = vec![QuestionAnswer::default(); questions.len()];
    let command = format!("answer {}", workflow.code);
    inbox.check(workflow, &Answer::Answers { answers }, &command)
}

/// Records answers, and shows what was said.
pub(super) fn record(
    inbox: &TerminalDesk,
    workflow: &Workflow,
    answers: Vec<QuestionAnswer>,
) -> anyhow::Result<()> {
    let command = format!("answer {}", workflow.code);
    let told: Vec<_> = answers.iter().map(QuestionAnswer::summary).collect();
    inbox.answer(workflow, Answer::Answers { answers }, &command)?;
    for told in &told {
        output::say(&format!("answered `{}`: {}", workflow.code, Shown::line(told)));
    }
    Ok(())
}

fn answers(
    workflow: &Workflow,
    questions: &[Question],
    arguments: &AnswerArguments,
) -> anyhow::Result<Vec<QuestionAnswer>> {
    let code = &workflow.code;
    if let Some(json) = &arguments.answers {
        let written: Vec<AnswerEntry> = serde_json::from_str(json).map_err(|source| {
            let code = code.clone();
            hinted(AnswerError::Json { code, source })
        })?;
        let given = written
            .into_iter()
            .map(|AnswerEntry { labels, text }| QuestionAnswer { labels, text });
        return checked(code, questions, given.collect()).map_err(hinted);
    }
    if arguments.labels.is_empty() && arguments.text.is_none() {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(hinted(AnswerError::Nobody { code: code.clone() }));
        }
        return ask_all(code, questions);
    }
    let given = QuestionAnswer {
        labels: arguments.labels.clone(),
        text: arguments.text.clone(),
    };
    checked(code, questions, vec![given]).map_err(hinted)
}

/// Checks one answer for each question.
fn checked(
    code: &Code,
    questions: &[Question],
    given: Vec<QuestionAnswer>,
) -> Result<Vec<QuestionAnswer>, AnswerError> {
    if given.len() != questions.len() {
        return Err(AnswerError::Count {
            code: code.clone(),
            wanted: questions.len(),
            given: given.len(),
        });
    }
    let pairs = questions.iter().zip(given).enumerate();
    let checked = pairs.map(|(index, (question, given))| {
        let field = match questions.len() {
            1 => "answer".to_owned(),
            _ => format!("answers[{index}]"),
        };
        question.check_strictly(&field, given)
    });
    checked
        .collect::<Result<_, _>>()
        .map_err(|source| AnswerError::Unfit {
            code: code.clone(),
            source,
        })
}

/// Puts questions to the person at the terminal until they agree to send what they said, or leave.
pub(super) fn ask_all(code: &Code, questions: &[Question]) -> anyhow::Result<Vec<QuestionAnswer>> {
    loop {
        let answers = questions.iter().map(|question| ask(code, question));
        let answers = answers.collect::<anyhow::Result<Vec<QuestionAnswer>>>()?;
        for (question, given) in questions.iter().zip(&answers) {
            let topic = match (&question.header, questions.len()) {
                (Some(header), 2..) => format!("{}: ", Shown::line(header)),
                _ => String::new(),
            };
            output::say(&format!("  {topic}{}", Shown::line(&given.values().join(", "))));
        }
        // An answer is final, so it is read back before it is sent.
        let line = typed(code, "Send this? [Y/n] ")?;
        match line.trim().to_ascii_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(answers),
            _ => output::say("Nothing was sent. Once more:"),
        }
    }
}

/// Puts a question to the person at the terminal until they have answered it or leave.
fn ask(code: &Code, question: &Question) -> anyhow::Result<QuestionAnswer> {
    output::say(&question.render().join("\n"));
    loop {
        let line = typed(code, "> ")?;
        match question.read("answer", &line) {
            Ok(given) => return Ok(given),
            Err(error) => output::note(&error.to_string()),
        }
    }
}

/// Reads a line from the person; their leaving leaves the question open.
pub(super) fn typed(code: &Code, prompt: &str) -> anyhow::Result<String> {
    let mut out = anstream::stderr();
    write!(out, "{prompt}")?;
    out.flush()?;
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        return Err(left(code));
    }
    Ok(line)
}

/// Says that the person left an ask as it was.
pub(super) fn left(code: &Code) -> anyhow::Error {
    Refused(format!("`{code}` is not answered: it still waits")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::question::{Choice, Selection};

    fn question(text: &str) -> Question {
        let choice = |label: &str| Choice {
            label: label.to_owned(),
            description: None,
        };
        Question {
            question: text.to_owned(),
            header: None,
            options: vec![choice("Yes"), choice("No")],
            selection: Selection::One,
        }
    }

    #[test]
    fn every_question_needs_its_own_answer() {
        let code = Code::of_bits(0);
        let yes = || QuestionAnswer {
            labels: vec!["Yes".to_owned()],
            text: None,
        };
        let two = [question("a"), question("b")];
        assert_eq!(checked(&code, &two, vec![yes(), yes()]).unwrap(), [yes(), yes()]);
        let error = checked(&code, &two, vec![yes()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`aaaaa` needs one answer for each of its questions: 2, not 1"
        );
        let none = checked(&code, &two, vec![yes(), QuestionAnswer::default()]).unwrap_err();
        assert_eq!(
            crate::report::render(&none, None),
            "`aaaaa` cannot be answered so\n  \
             caused by: `answers[1]` is empty; choose an option or write something"
        );
    }
}
