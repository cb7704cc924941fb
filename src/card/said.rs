//! What a person said on a surface, and the answer that this is.

use serde::Deserialize;

use super::{Card, CardQuestion, Decision};
use crate::protocol::question::{QuestionAnswer, QuestionError};
use crate::workflow::Answer;

/// What a person said on a surface; a member that is not known would be an answer that is lost.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// They decided.
    Decision(SaidDecision),
    /// They answered questions.
    Answers(SaidAnswers),
}

/// A decision, as a surface writes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidDecision {
    /// What was decided.
    pub decision: Decision,
    /// Why not; the reason of an approval is dropped.
    #[serde(default)]
    pub reason: Option<String>,
}

/// One answer for each question of a card, as a surface writes them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidAnswers {
    /// The answers in the order of the questions; `None` where a person leaves one unanswered and says so.
    pub answers: Vec<Option<SaidAnswer>>,
}

/// What was said to one question.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidAnswer {
    /// The options that were chosen, as they are written.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What was written besides.
    #[serde(default)]
    pub text: Option<String>,
}

impl Said {
    /// Says a decision without a reason.
    #[must_use]
    pub fn decision(decision: Decision) -> Self {
        Self::Decision(SaidDecision {
            decision,
            reason: None,
        })
    }

    /// Says no, and why.
    #[must_use]
    pub fn refusal(reason: Option<String>) -> Self {
        Self::Decision(SaidDecision {
            decision: Decision::Abort,
            reason,
        })
    }

    /// Says one answer for each question, or that it is left unanswered.
    #[must_use]
    pub fn answers(answers: impl IntoIterator<Item = impl Into<Option<SaidAnswer>>>) -> Self {
        let answers = answers.into_iter().map(Into::into).collect();
        Self::Answers(SaidAnswers { answers })
    }
}

impl SaidAnswer {
    /// Reads the line that a person typed: numbers of options or their labels, else their own words.
    pub fn typed(question: &CardQuestion, field: &str, line: &str) -> Result<Self, QuestionError> {
        let QuestionAnswer { labels, text } = question.asked.read(field, line)?;
        let labels = labels.into_iter().map(|label| question.shown_label(label));
        Ok(Self {
            labels: labels.collect(),
            text,
        })
    }

    /// Reads what a person said where only values came back: those that are no options are their own words.
    #[must_use]
    pub fn loosely(question: &CardQuestion, values: Vec<String>, text: Option<String>) -> Self {
        let shown = |label: &String| question.shown.options.iter().any(|option| option.label == *label);
        let labels = values.into_iter().map(|value| question.shown_label(value));
        let (labels, words): (Vec<_>, Vec<_>) = labels.partition(shown);
        let words = words.into_iter().chain(text);
        let words: Vec<_> = words.filter(|words| !words.trim().is_empty()).collect();
        Self {
            labels,
            text: (!words.is_empty()).then(|| words.join(", ")),
        }
    }

    /// Returns the choices and the own words as one list.
    #[must_use]
    pub fn values(&self) -> Vec<&str> {
        let labels = self.labels.iter().map(String::as_str);
        labels.chain(self.text.as_deref()).collect()
    }
}

/// Says why what was said is no answer to a card; the ask still waits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Complaint {
    /// Questions were decided, or a decision was answered.
    #[error("this asks for {wanted}")]
    Kind {
        /// What an answer must be.
        wanted: &'static str,
    },
    /// The decision is not offered.
    #[error("\"{decision}\" is not offered here")]
    NotOffered {
        /// What was decided.
        decision: Decision,
    },
    /// There are more or fewer answers than questions.
    #[error("this needs one answer for each of its questions: {wanted}, not {given}")]
    Count {
        /// How many questions there are.
        wanted: usize,
        /// How many answers there are.
        given: usize,
    },
    /// Every question is left unanswered.
    #[error("no question is answered: answer one of them, or refuse to")]
    Nothing,
    /// An answer does not fit its question.
    #[error("{error}")]
    Unfit {
        /// Which question, counted from 0.
        index: usize,
        /// What does not fit.
        error: QuestionError,
    },
}

impl Complaint {
    /// Names the field that is complained about.
    #[must_use]
    pub fn field(&self) -> String {
        match self {
            Self::Kind { .. } | Self::NotOffered { .. } => "decision".to_owned(),
            Self::Count { .. } | Self::Nothing => "answers".to_owned(),
            Self::Unfit { index, .. } => format!("answers[{index}]"),
        }
    }
}

/// A reason is a few sentences; a model reads it.
const REASON_LIMIT: usize = 2_000;

/// Makes an answer of what a person said to a card, or says why it is none.
pub fn decide(card: &Card, said: Said) -> Result<Answer, Complaint> {
    match said {
        Said::Decision(SaidDecision {
            decision: Decision::Abort,
            reason,
        }) => Ok(Answer::Refuse {
            reason: reason.as_deref().and_then(trimmed),
        }),
        Said::Decision(SaidDecision { decision, .. }) => {
            if !card.questions.is_empty() {
                return Err(Complaint::Kind {
                    wanted: "an answer to each of its questions",
                });
            }
            match decision.scope() {
                Some(scope) if card.choices.iter().any(|choice| choice.decision == decision) => {
                    Ok(Answer::Approve { scope })
                }
                Some(_) | None => Err(Complaint::NotOffered { decision }),
            }
        }
        Said::Answers(SaidAnswers { answers }) => {
            if card.questions.is_empty() {
                return Err(Complaint::Kind { wanted: "a decision" });
            }
            if answers.len() != card.questions.len() {
                return Err(Complaint::Count {
                    wanted: card.questions.len(),
                    given: answers.len(),
                });
            }
            if answers.iter().all(Option::is_none) {
                return Err(Complaint::Nothing);
            }
            let pairs = card.questions.iter().zip(answers).enumerate();
            let checked = pairs.map(|(index, (question, said))| {
                let Some(said) = said else {
                    return Ok(QuestionAnswer::unanswered());
                };
                // A person who is asked one thing does not count.
                let name = match card.questions.len() {
                    1 => "answer".to_owned(),
                    _ => format!("answers[{index}]"),
                };
                checked(question, &name, said).map_err(|error| Complaint::Unfit { index, error })
            });
            let answers = checked.collect::<Result<_, _>>()?;
            Ok(Answer::Answers { answers })
        }
    }
}

fn checked(question: &CardQuestion, name: &str, said: SaidAnswer) -> Result<QuestionAnswer, QuestionError> {
    let SaidAnswer { labels, text } = said;
    let labels = labels.into_iter().map(|label| question.asked_label(label));
    let labels = labels.collect();
    question
        .asked
        .check_strictly(name, QuestionAnswer { labels, text })
}

fn trimmed(reason: &str) -> Option<String> {
    let reason = reason.trim();
    (!reason.is_empty()).then(|| reason.chars().take(REASON_LIMIT).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::samples;
    use crate::workflow::{Ask, Scope};
    use serde_json::json;

    fn card(ask: Ask) -> Card {
        crate::card::samples::card(&samples::workflow(ask))
    }

    fn said(value: &serde_json::Value) -> Result<Said, serde_json::Error> {
        serde_json::from_value(value.clone())
    }

    fn questions() -> Card {
        card(Ask::Questions {
            questions: vec![samples::choice("Which\u{202e}?", &["A\n", "B"])],
        })
    }

    #[test]
    fn a_decision_that_is_offered_is_an_approval_and_abort_always_refuses() {
        let install = card(samples::new("{}").ask);
        for (decision, scope) in [
            ("once", Scope::Once),
            ("session", Scope::Session),
            ("always", Scope::Always),
        ] {
            let said = said(&json!({ "decision": decision })).unwrap();
            assert_eq!(decide(&install, said), Ok(Answer::Approve { scope }));
        }
        let no = said(&json!({ "decision": "abort", "reason": "  not today " })).unwrap();
        let reason = Some("not today".to_owned());
        for card in [&install, &questions()] {
            let expected = Answer::Refuse {
                reason: reason.clone(),
            };
            assert_eq!(decide(card, no.clone()), Ok(expected));
        }
    }

    #[test]
    fn an_option_is_named_as_it_is_shown_and_answered_as_it_was_asked() {
        let card = questions();
        assert_eq!(card.questions[0].shown.options[0].label, "A\\n");
        let said = said(&json!({ "answers": [{ "labels": ["A\\n"] }] })).unwrap();
        let Ok(Answer::Answers { answers }) = decide(&card, said) else {
            panic!("it is an answer")
        };
        assert_eq!(answers[0].labels, ["A\n"]);
    }

    #[test]
    fn a_slip_names_its_field_and_is_no_answer() {
        let complaint = |card: &Card, value: serde_json::Value| {
            let complaint = decide(card, said(&value).unwrap()).unwrap_err();
            (complaint.field(), complaint.to_string())
        };
        let (field, reason) = complaint(&questions(), json!({ "answers": [{ "labels": ["C"] }] }));
        assert_eq!(field, "answers[0]");
        assert!(reason.contains("`C` is not an option"), "{reason}");
        let (field, _) = complaint(&questions(), json!({ "answers": [] }));
        assert_eq!(field, "answers");
        let (field, _) = complaint(&questions(), json!({ "answers": [{ "text": "  " }] }));
        assert_eq!(field, "answers[0]");
        let (field, _) = complaint(&questions(), json!({ "decision": "always" }));
        assert_eq!(field, "decision");
        let install = card(samples::new("{}").ask);
        let (field, reason) = complaint(&install, json!({ "answers": [{ "text": "yes" }] }));
        assert_eq!(
            (field.as_str(), reason.as_str()),
            ("decision", "this asks for a decision")
        );
    }

    #[test]
    fn every_question_needs_its_own_answer() {
        let two = card(Ask::Questions {
            questions: vec![
                samples::choice("a", &["Yes", "No"]),
                samples::choice("b", &["Yes"]),
            ],
        });
        let yes = || SaidAnswer {
            labels: vec!["Yes".to_owned()],
            text: None,
        };
        assert!(decide(&two, Said::answers(vec![yes(), yes()])).is_ok());
        let complaint = |answers| decide(&two, Said::answers(answers)).unwrap_err();
        let few = complaint(vec![yes()]);
        assert_eq!(
            (few.field().as_str(), few.to_string().as_str()),
            (
                "answers",
                "this needs one answer for each of its questions: 2, not 1"
            )
        );
        // What is left unanswered on purpose is said so; an empty answer is a slip.
        let left = Said::answers([Some(yes()), None]);
        assert_eq!(
            said(&json!({ "answers": [{ "labels": ["Yes"] }, null] })).unwrap(),
            left
        );
        let Ok(Answer::Answers { answers }) = decide(&two, left) else {
            panic!("one of them is answered")
        };
        assert!(!answers[0].is_unanswered() && answers[1].is_unanswered());
        let nothing = decide(&two, Said::answers([None::<SaidAnswer>, None]));
        assert_eq!(nothing, Err(Complaint::Nothing));
        let empty = complaint(vec![yes(), SaidAnswer::default()]);
        assert_eq!(
            (empty.field().as_str(), empty.to_string().as_str()),
            (
                "answers[1]",
                "`answers[1]` is empty; choose an option or write something"
            )
        );
    }

    #[test]
    fn a_typed_line_names_options_as_they_are_shown() {
        let card = questions();
        let typed = |line: &str| SaidAnswer::typed(&card.questions[0], "answer", line);
        let option = typed("1").unwrap();
        assert_eq!(option.labels, ["A\\n"]);
        let Ok(Answer::Answers { answers }) = decide(&card, Said::answers(vec![option])) else {
            panic!("it is an answer")
        };
        assert_eq!(answers[0].labels, ["A\n"]);
        assert_eq!(typed("mine").unwrap().text.as_deref(), Some("mine"));
        assert!(typed("3").is_err());
    }

    #[test]
    fn values_that_are_no_options_are_words_of_the_person() {
        let card = questions();
        let loosely = |values: &[&str], text: Option<&str>| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            SaidAnswer::loosely(&card.questions[0], values, text.map(str::to_owned))
        };
        let said = |labels: &[&str], text: Option<&str>| SaidAnswer {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            text: text.map(str::to_owned),
        };
        for option in ["A\n", "A\\n"] {
            assert_eq!(loosely(&[option], None), said(&["A\\n"], None), "{option:?}");
        }
        assert_eq!(
            loosely(&["B", "C", " "], Some("and D")),
            said(&["B"], Some("C, and D"))
        );
        assert_eq!(loosely(&[], None), SaidAnswer::default());
    }

    #[test]
    fn a_member_that_is_not_known_is_no_answer() {
        assert!(said(&json!({ "decision": "once", "scope": "always" })).is_err());
        assert!(said(&json!({ "answers": [{ "label": "A" }] })).is_err());
        assert!(said(&json!({ "decision": "yes" })).is_err());
    }
}
