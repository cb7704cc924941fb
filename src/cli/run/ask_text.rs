//! An ask in plain lines, drawn from the card that every other surface draws.

use super::asks::ShownAsk;
use crate::card::{Card, Choice, Decision, Fact, Said, SaidAnswer};
use crate::protocol::Shown;

/// What comes of a line that answers an ask.
#[derive(Debug)]
pub(super) enum Reading {
    /// It is the answer.
    Said(Said),
    /// More is needed, which is asked for with these lines.
    More(Vec<String>),
    /// It is none, for this reason.
    Unfit(String),
}

/// Draws an ask: what it is about, and all that a person must know before they decide.
pub(super) fn draw(card: &Card) -> Vec<String> {
    let mut lines = vec![format!("? {}  {}", card.code, card.title)];
    for line in &card.lines {
        let mut label = line.label;
        for text in line.text.split('\n') {
            // The sign of a difference comes first, as everywhere.
            let sign = if line.fact == Fact::Change { "" } else { " " };
            lines.push(format!("  {label:11}{sign}{text}"));
            label = "";
        }
    }
    if card.questions.is_empty() {
        lines.push(format!("  project     {}", card.asker.project));
    }
    lines
}

/// Draws how an ask is answered where a person types.
pub(super) fn draw_choices(card: &Card) -> Vec<String> {
    if !card.questions.is_empty() {
        return draw_question(card, 0);
    }
    let choice = |choice: &Choice| {
        format!(
            "  {}  {}: {}",
            letter(choice.decision),
            choice.label,
            choice.grants
        )
    };
    let mut lines: Vec<_> = card.choices.iter().map(choice).collect();
    if let Some(always) = &card.always_writes {
        lines.push(format!(
            "     always writes \"{}\" into {}",
            always.rule, always.file
        ));
    }
    lines
}

/// Draws how an ask is answered where nobody types.
pub(super) fn draw_ways(card: &Card) -> Vec<String> {
    let code = &card.code;
    let ways = match (card.questions.as_slice(), card.choices.as_slice()) {
        ([_, ..], _) => format!("pml answer {code}"),
        ([], [_]) => format!("pml refuse {code}"),
        ([], _) => format!("pml approve {code}, pml refuse {code}"),
    };
    let mut lines = Vec::new();
    for number in 0..card.questions.len() {
        let drawn = draw_question(card, number);
        // What to type is told where somebody can.
        lines.extend(
            drawn
                .split_last()
                .map(|(_, rest)| rest.to_vec())
                .unwrap_or_default(),
        );
    }
    lines.push(format!("  to answer it: {ways}, or pml inbox"));
    lines
}

/// Draws one question of an ask, counted from 0.
fn draw_question(card: &Card, number: usize) -> Vec<String> {
    let Some(question) = card.questions.get(number) else {
        return Vec::new();
    };
    let question = &question.shown;
    let mut lines = Vec::new();
    if card.questions.len() > 1 {
        lines.push(format!("  question {} of {}", number + 1, card.questions.len()));
    }
    // One that has a line of its own is the title already.
    if card.questions.len() > 1 || question.question.contains('\n') {
        lines.extend(question.question.lines().map(|line| format!("  {line}")));
    }
    let widest = question
        .options
        .iter()
        .map(|option| super::columns::width(&option.label))
        .max();
    for (at, option) in question.options.iter().enumerate() {
        let label = &option.label;
        let gap = " ".repeat(
            widest
                .unwrap_or(0)
                .min(24)
                .saturating_sub(super::columns::width(label)),
        );
        let described = option
            .description
            .as_deref()
            .map_or_else(String::new, |text| format!("{gap}  {text}"));
        lines.push(format!("  {}  {label}{described}", at + 1));
    }
    lines.push(match (question.options.is_empty(), question.selection) {
        (true, _) => "  type your answer; `> text` speaks to the agent instead".to_owned(),
        (false, crate::protocol::question::Selection::One) => {
            "  type a number, a label or your own words; `> text` speaks to the agent instead".to_owned()
        }
        (false, _) => {
            "  type numbers such as `1, 3`, labels or your own words; `> text` speaks to the agent instead"
                .to_owned()
        }
    });
    lines
}

fn letter(decision: Decision) -> &'static str {
    match decision {
        Decision::Once => "c",
        Decision::Session => "s",
        Decision::Always => "a",
        Decision::Abort => "x",
    }
}

/// Reads a line as the answer to an ask.
pub(super) fn read(shown: &mut ShownAsk, line: &str) -> Reading {
    let ShownAsk { card, said } = shown;
    let Some(question) = card.questions.get(said.len()) else {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let choice = card
            .choices
            .iter()
            .find(|choice| letter(choice.decision) == first);
        return match choice.map(|choice| choice.decision) {
            Some(Decision::Abort) => Reading::Said(Said::refusal(Some(rest.to_owned()))),
            Some(decision) if rest.is_empty() => Reading::Said(Said::decision(decision)),
            _ => Reading::Unfit("type one of the letters; `> text` speaks to the agent instead".to_owned()),
        };
    };
    match SaidAnswer::typed(question, "answer", line) {
        Ok(answer) => said.push(answer),
        Err(error) => return Reading::Unfit(Shown::line(&error.to_string()).to_string()),
    }
    if said.len() < card.questions.len() {
        return Reading::More(draw_question(card, said.len()));
    }
    Reading::Said(Said::answers(said.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::samples;
    use crate::protocol::question::{Choice as QuestionOption, Question, Selection};
    use crate::workflow::{Ask, UseReach};

    fn question(text: &str, labels: &[&str], selection: Selection) -> Question {
        let option = |label: &&str| QuestionOption {
            label: (*label).to_owned(),
            description: Some(format!("the choice {label}")),
        };
        Question {
            question: text.to_owned(),
            header: None,
            options: labels.iter().map(option).collect(),
            selection,
        }
    }

    fn shown(ask: Ask) -> ShownAsk {
        ShownAsk {
            card: samples::card(&samples::workflow(ask)),
            said: Vec::new(),
        }
    }

    #[test]
    fn questions_are_put_one_after_the_other_and_sent_together() {
        let questions = vec![
            question("Which db?", &["pg", "sqlite"], Selection::One),
            question("Which\nport?", &[], Selection::One),
        ];
        let mut shown = shown(Ask::Questions { questions });
        assert_eq!(draw(&shown.card), ["? aaaaa  2 questions for you"]);
        assert_eq!(
            draw_choices(&shown.card),
            [
                "  question 1 of 2",
                "  Which db?",
                "  1  pg      the choice pg",
                "  2  sqlite  the choice sqlite",
                "  type a number, a label or your own words; `> text` speaks to the agent instead",
            ]
        );
        let Reading::More(next) = read(&mut shown, "2") else {
            panic!()
        };
        assert_eq!(next[..3], ["  question 2 of 2", "  Which", "  port?"]);
        let Reading::Said(said) = read(&mut shown, "5432") else {
            panic!()
        };
        assert!(format!("{said:?}").contains("sqlite"), "{said:?}");
    }

    #[test]
    fn a_decision_is_one_of_the_letters_and_only_a_refusal_has_a_reason() {
        let mut shown = shown(Ask::Use {
            reach: UseReach::Lasting,
        });
        let drawn = draw_choices(&shown.card);
        assert_eq!(drawn[0], "  c  Continue: this use only");
        for unfit in ["y", "c please", "1"] {
            assert!(matches!(read(&mut shown, unfit), Reading::Unfit(_)), "{unfit}");
        }
        assert!(matches!(read(&mut shown, "c"), Reading::Said(_)));
        let Reading::Said(refused) = read(&mut shown, "x not now") else {
            panic!()
        };
        assert!(format!("{refused:?}").contains("not now"), "{refused:?}");
    }
}
