//! Reads what was said on a channel as something that may be said to a card. Pure.

use super::channel::{Picked, Utterance};
use super::view::choices;
use crate::card::{Card, CardQuestion, Decision, Said, SaidAnswer, SaidDecision};
use crate::config::{ChannelBasics, Permission};

/// Says why what was said is nothing that can be said to a card here; told to the person as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misreading {
    /// The settings do not allow it on this channel.
    #[error("this cannot be done here: `may` of this channel does not say so")]
    NotAllowed,
    /// The words choose none of what is offered.
    #[error("say one of these: {0}")]
    NoChoice(String),
    /// A choice that is not there.
    #[error("there is no such option")]
    NoOption,
    /// One text for several questions.
    #[error("there are {0} questions: write one line for each, in their order")]
    Lines(usize),
    /// A word does not answer the question.
    #[error("{0}")]
    Unfit(String),
    /// It only greets.
    #[error("you are paired: asks come here")]
    Greeting,
}

/// Reads an utterance to a card.
pub(super) fn read(card: &Card, basics: &ChannelBasics, utterance: &Utterance) -> Result<Said, Misreading> {
    let said = match utterance {
        Utterance::Decision(decision, reason) => Said::Decision(SaidDecision {
            decision: *decision,
            reason: reason.clone(),
        }),
        Utterance::Answers(picked) => answers(card, picked)?,
        Utterance::Text(text) if card.questions.is_empty() => decision(card, basics, text)?,
        Utterance::Text(text) => typed(card, text)?,
        Utterance::Greeting => return Err(Misreading::Greeting),
    };
    if is_allowed(card, basics, &said) {
        Ok(said)
    } else {
        Err(Misreading::NotAllowed)
    }
}

fn is_allowed(card: &Card, basics: &ChannelBasics, said: &Said) -> bool {
    match said {
        Said::Answers(_) => basics.may.contains(&Permission::Answer),
        Said::Decision(SaidDecision {
            decision: Decision::Abort,
            ..
        }) => basics.may.contains(&Permission::Refuse),
        Said::Decision(SaidDecision { decision, .. }) => super::view::allows(card, basics, *decision),
    }
}

/// Makes answers of the places that were chosen.
fn answers(card: &Card, picked: &[Picked]) -> Result<Said, Misreading> {
    if picked.len() != card.questions.len() {
        return Err(Misreading::Lines(card.questions.len()));
    }
    let answer = |(question, picked): (&CardQuestion, &Picked)| {
        let labels = picked.options.iter().map(|place| {
            let option = question.shown.options.get(*place);
            option
                .map(|option| option.label.clone())
                .ok_or(Misreading::NoOption)
        });
        let labels = labels.collect::<Result<Vec<_>, _>>()?;
        let text = picked.text.clone().filter(|text| !text.trim().is_empty());
        Ok((!labels.is_empty() || text.is_some()).then_some(SaidAnswer { labels, text }))
    };
    let answers = card.questions.iter().zip(picked).map(answer);
    Ok(Said::answers(answers.collect::<Result<Vec<_>, Misreading>>()?))
}

/// Reads typed words as answers: a line for each question, where there are several.
fn typed(card: &Card, text: &str) -> Result<Said, Misreading> {
    let lines: Vec<&str> = match card.questions.as_slice() {
        [_only] => vec![text],
        _ => text.lines().filter(|line| !line.trim().is_empty()).collect(),
    };
    if lines.len() != card.questions.len() {
        return Err(Misreading::Lines(card.questions.len()));
    }
    let answers = card
        .questions
        .iter()
        .zip(lines)
        .enumerate()
        .map(|(index, (question, line))| {
            let field = if card.questions.len() == 1 {
                "answer".to_owned()
            } else {
                format!("line {}", index + 1)
            };
            let answer = SaidAnswer::typed(question, &field, line);
            answer
                .map(Some)
                .map_err(|error| Misreading::Unfit(error.to_string()))
        });
    Ok(Said::answers(answers.collect::<Result<Vec<_>, _>>()?))
}

/// Reads typed words as a decision: the number or the label of one that is offered, or `no` and why.
fn decision(card: &Card, basics: &ChannelBasics, text: &str) -> Result<Said, Misreading> {
    let offered = choices(card, basics);
    let typed = text.trim();
    let by_number = typed
        .parse::<usize>()
        .ok()
        .and_then(|number| offered.get(number.checked_sub(1)?))
        // What lasts is said in words: a digit may have been meant for another message.
        .filter(|choice| matches!(choice.decision, Decision::Once | Decision::Abort));
    let by_label = || {
        offered
            .iter()
            .find(|choice| choice.label.eq_ignore_ascii_case(typed))
    };
    if let Some(choice) = by_number.or_else(by_label) {
        return Ok(Said::decision(choice.decision));
    }
    let (word, reason) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let word = word.trim_end_matches([',', '.', ':', '!']);
    if ["no", "abort", "refuse"]
        .iter()
        .any(|no| word.eq_ignore_ascii_case(no))
    {
        let reason = reason.trim();
        return Ok(Said::refusal((!reason.is_empty()).then(|| reason.to_owned())));
    }
    let numbered = offered.iter().enumerate();
    let numbered = numbered.map(|(index, choice)| format!("{}. {}", index + 1, choice.label));
    Err(Misreading::NoChoice(numbered.collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digit_grants_nothing_that_lasts() {
        let mut basics = settings("{}").basics(ChannelName::Slack).unwrap().clone();
        basics.may.extend([Permission::Session, Permission::Always]);
        let offered = choices(&approval(), &basics);
        assert!(offered.len() > 2, "{offered:?}");
        for (index, choice) in offered.iter().enumerate() {
            let said = decision(&approval(), &basics, &(index + 1).to_string());
            let lasts = !matches!(choice.decision, Decision::Once | Decision::Abort);
            assert_eq!(said.is_err(), lasts, "{choice:?}");
        }
    }
    use crate::channels::samples::{approval, question, questions, settings};
    use crate::config::ChannelName;

    fn basics() -> ChannelBasics {
        settings("{}").basics(ChannelName::Slack).unwrap().clone()
    }

    fn said(card: &Card, utterance: &Utterance) -> Result<Said, String> {
        read(card, &basics(), utterance).map_err(|error| error.to_string())
    }

    fn text(text: &str) -> Utterance {
        Utterance::Text(text.to_owned())
    }

    fn labelled(label: &str) -> SaidAnswer {
        SaidAnswer {
            labels: vec![label.to_owned()],
            text: None,
        }
    }

    fn worded(words: &str) -> SaidAnswer {
        SaidAnswer {
            labels: Vec::new(),
            text: Some(words.to_owned()),
        }
    }

    #[test]
    fn typed_words_answer_a_question_by_number_label_or_as_they_are() {
        for (typed, expected) in [
            ("1", labelled("pg")),
            (" sqlite ", labelled("sqlite")),
            ("whatever you like", worded("whatever you like")),
        ] {
            assert_eq!(
                said(&question(), &text(typed)),
                Ok(Said::answers([expected])),
                "{typed}"
            );
        }
        assert!(said(&question(), &text("7")).unwrap_err().contains('7'));
    }

    #[test]
    fn several_questions_take_a_line_each() {
        assert_eq!(
            said(&questions(), &text("2\n\nit is small")),
            Ok(Said::answers([labelled("sqlite"), worded("it is small")]))
        );
        let one = said(&questions(), &text("2")).unwrap_err();
        assert_eq!(
            one,
            "there are 2 questions: write one line for each, in their order"
        );
    }

    #[test]
    fn what_was_picked_names_options_by_their_places() {
        let picked = |options: &[usize], text: Option<&str>| Picked {
            options: options.to_vec(),
            text: text.map(str::to_owned),
        };
        let answers = |picked: Vec<Picked>| said(&questions(), &Utterance::Answers(picked));
        assert_eq!(
            answers(vec![picked(&[1], None), picked(&[], Some(" "))]),
            Ok(Said::answers([Some(labelled("sqlite")), None]))
        );
        assert_eq!(
            answers(vec![picked(&[9], None), picked(&[], None)]),
            Err("there is no such option".to_owned())
        );
        assert!(answers(vec![picked(&[0], None)]).is_err());
    }

    #[test]
    fn typed_words_decide_by_number_label_or_no_with_a_reason() {
        let card = approval();
        for (typed, expected) in [
            ("1", Said::decision(Decision::Once)),
            ("continue", Said::decision(Decision::Once)),
            ("2", Said::decision(Decision::Abort)),
            ("No, too old", Said::refusal(Some("too old".to_owned()))),
            ("abort", Said::refusal(None)),
        ] {
            assert_eq!(said(&card, &text(typed)), Ok(expected), "{typed}");
        }
        for typed in ["yes", "3", "0", "always", "ok go", ""] {
            let error = said(&card, &text(typed)).unwrap_err();
            assert_eq!(error, "say one of these: 1. Continue, 2. Abort", "{typed}");
        }
    }

    #[test]
    fn a_decision_that_may_does_not_name_is_refused_however_it_was_pressed() {
        let card = approval();
        for decision in [Decision::Session, Decision::Always] {
            let error = said(&card, &Utterance::Decision(decision, None)).unwrap_err();
            assert!(error.contains("`may`"), "{error}");
        }
        let mut silent = basics();
        silent.may.clear();
        for utterance in [text("1"), Utterance::Decision(Decision::Abort, None)] {
            assert!(read(&question(), &silent, &utterance).is_err(), "{utterance:?}");
        }
    }
}
