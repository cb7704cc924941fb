//! `pml answer CODE`: says what a model asked to know.
//!
//! Labels on the command line must be options: a typing error would otherwise become an answer. A person who
//! means their own words says `--text`, or answers in a terminal, where the options are in sight.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::desk::{TerminalDesk, Verb};
use super::failure::{Refused, hinted};
use super::{CommandContext, output, terminal};
use crate::card::{Card, CardQuestion, Said, SaidAnswer};
use crate::protocol::Shown;
use crate::protocol::question::LEFT_UNANSWERED;
use crate::report::Hint;
use crate::workflow::{Answer, Code, Workflow};

/// What is typed to leave one of several questions unanswered.
const LEAVE: &str = "-";

/// Which questions, and what is said to them.
#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// The five letters of the ask, or the beginning of its id
    ///
    /// Without it, the only question that waits
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// The options you choose, as they are written or by their numbers
    #[arg(value_name = "LABEL")]
    labels: Vec<String>,
    /// Your own words
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// One answer for each of several questions, as a list of objects with `labels` and `text`; null leaves one unanswered
    #[arg(long, value_name = "JSON", conflicts_with_all = ["labels", "text"])]
    answers: Option<String>,
}

/// Says why an answer was not recorded; the question still waits.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// The answers cannot be read.
    #[error("the answers to `{code}` are not a list of {{\"labels\": […], \"text\": \"…\"}}")]
    Json {
        /// The workflow.
        code: Code,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// A number stands for no option.
    #[error("`{code}` has no option {number}: {}", counted(*.options))]
    NoSuchNumber {
        /// The workflow.
        code: Code,
        /// The number as it was typed.
        number: String,
        /// How many options there are.
        options: usize,
    },
    /// The command line has no answer, and there is no terminal to ask at.
    #[error("no answer to `{code}` is given, and there is no terminal to ask in")]
    Nobody {
        /// The workflow.
        code: Code,
    },
}

fn counted(options: usize) -> String {
    match options {
        1 => "there is 1 option".to_owned(),
        options => format!("there are {options} options"),
    }
}

impl Hint for AnswerError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoSuchNumber { code, .. } => {
                format!(
                    "to see them: pml pending {code}\nto answer in your own words: pml answer {code} --text '…'"
                )
            }
            Self::Json { code, .. } => {
                format!("for example: pml answer {code} --answers '[{{\"labels\": [\"Yes\"]}}]'")
            }
            Self::Nobody { code } => {
                format!("to choose an option: pml answer {code} LABEL\nto see them: pml pending")
            }
        })
    }
}

/// Answers, and shows what was said.
pub(crate) fn run(context: &CommandContext, arguments: &AnswerArguments) -> anyhow::Result<ExitCode> {
    let inbox = TerminalDesk::open(context)?;
    let (workflow, labels) = meant(&inbox, arguments)?;
    // An answer that cannot count is not even asked for.
    inbox.check(&workflow, &format!("answer {}", workflow.code))?;
    let answers = answers(&inbox.desk().card(&workflow), arguments, &labels)?;
    record(&inbox, &workflow, answers)?;
    Ok(ExitCode::SUCCESS)
}

/// Finds the question that a person means, and the options that they name.
///
/// What is no code may be an option of the only question that waits: before it is the beginning of an id, as a digit is
/// of one in sixteen.
fn meant(inbox: &TerminalDesk, arguments: &AnswerArguments) -> anyhow::Result<(Workflow, Vec<String>)> {
    let code = arguments.code.as_deref();
    let named = inbox.meant(code, Verb::Answer);
    let is_code = code.is_none_or(|code| code.parse::<Code>().is_ok());
    if let (Ok(workflow), true) = (&named, is_code) {
        return Ok((workflow.clone(), arguments.labels.clone()));
    }
    let labels: Vec<String> = code
        .into_iter()
        .map(str::to_owned)
        .chain(arguments.labels.iter().cloned())
        .collect();
    let is_option = |card: &Card| labels.iter().all(|label| option(card, label).is_some());
    match inbox.meant(None, Verb::Answer) {
        Ok(only) if code.is_some() && is_option(&inbox.desk().card(&only)) => Ok((only, labels)),
        _ => Ok((named?, arguments.labels.clone())),
    }
}

/// Records answers, and shows what was said.
pub(super) fn record(
    inbox: &TerminalDesk,
    workflow: &Workflow,
    answers: Vec<Option<SaidAnswer>>,
) -> anyhow::Result<()> {
    let command = format!("answer {}", workflow.code);
    let recorded = inbox.record(workflow, Said::answers(answers), &command)?;
    if let Some(Answer::Answers { answers }) = recorded.workflow.answer() {
        for given in answers {
            let told = given.summary();
            output::say(&format!("answered `{}`: {}", workflow.code, Shown::line(&told)));
        }
    }
    Ok(())
}

fn answers(
    card: &Card,
    arguments: &AnswerArguments,
    labels: &[String],
) -> anyhow::Result<Vec<Option<SaidAnswer>>> {
    let code = || card.code.clone();
    if let Some(json) = &arguments.answers {
        let unread = |source| {
            let code = code();
            hinted(AnswerError::Json { code, source })
        };
        return serde_json::from_str(json).map_err(unread);
    }
    if !labels.is_empty() || arguments.text.is_some() {
        let labels = labels.iter().map(|label| label_of(card, label));
        return Ok(vec![Some(SaidAnswer {
            labels: labels.collect::<anyhow::Result<_>>()?,
            text: arguments.text.clone(),
        })]);
    }
    if card.questions.is_empty() {
        // The desk says what is asked instead.
        return Ok(Vec::new());
    }
    if !terminal::is_there() {
        return Err(hinted(AnswerError::Nobody { code: code() }));
    }
    ask_all(card)
}

/// Returns the label that a person means; what is no option stays as it was typed, for the check to name.
fn label_of(card: &Card, typed: &str) -> anyhow::Result<String> {
    let options = card
        .questions
        .first()
        .map_or(0, |question| question.shown.options.len());
    let is_number = !typed.is_empty() && typed.bytes().all(|byte| byte.is_ascii_digit());
    match option(card, typed) {
        Some(label) => Ok(label),
        None if is_number && card.questions.len() == 1 && options > 0 => {
            Err(hinted(AnswerError::NoSuchNumber {
                code: card.code.clone(),
                number: typed.to_owned(),
                options,
            }))
        }
        None => Ok(typed.to_owned()),
    }
}

/// Returns the option of the only question that a person means: as it is written, in another case, or by its number.
fn option(card: &Card, typed: &str) -> Option<String> {
    let [question] = card.questions.as_slice() else {
        return None;
    };
    question.shown.named(typed)
}

/// Puts questions to the person at the terminal until they agree to send what they said, or leave.
pub(super) fn ask_all(card: &Card) -> anyhow::Result<Vec<Option<SaidAnswer>>> {
    let (code, questions) = (&card.code, &card.questions);
    if questions.len() > 1 {
        output::say(&format!(
            "{} questions; {LEAVE} leaves one unanswered",
            questions.len()
        ));
    }
    loop {
        let answers = questions.iter().map(|question| ask(card, question));
        let answers = answers.collect::<anyhow::Result<Vec<_>>>()?;
        for (question, said) in questions.iter().zip(&answers) {
            let topic = match (&question.shown.header, questions.len()) {
                (Some(header), 2..) => format!("{header}: "),
                _ => String::new(),
            };
            let told = said.as_ref().map(|said| said.values().join(", "));
            let told = told.as_deref().unwrap_or(LEFT_UNANSWERED);
            output::say(&format!("  {topic}{}", Shown::line(told)));
        }
        // An answer is final, so it is read back before it is sent.
        let unanswered = answers.iter().filter(|said| said.is_none()).count();
        let sends = match unanswered {
            0 => matches!(agreed(code, "Send this? [Y/n] ")?.as_str(), "" | "y" | "yes"),
            all if all == answers.len() => false,
            some => {
                let line = agreed(code, &format!("{some} unanswered: send it so? [y/N] "))?;
                matches!(line.as_str(), "y" | "yes")
            }
        };
        if sends {
            return Ok(answers);
        }
        output::say("Nothing was sent. Once more:");
    }
}

fn agreed(code: &Code, prompt: &str) -> anyhow::Result<String> {
    Ok(typed(code, prompt)?.trim().to_ascii_lowercase())
}

/// Puts a question to the person at the terminal until they have answered it, leave it unanswered or leave.
fn ask(card: &Card, question: &CardQuestion) -> anyhow::Result<Option<SaidAnswer>> {
    output::say(&question.asked.render().join("\n"));
    loop {
        let line = typed(&card.code, "> ")?;
        let is_option = question.shown.options.iter().any(|option| option.label == LEAVE);
        if line.trim() == LEAVE && card.questions.len() > 1 && !is_option {
            return Ok(None);
        }
        match SaidAnswer::typed(question, "answer", &line) {
            Ok(said) => return Ok(Some(said)),
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
