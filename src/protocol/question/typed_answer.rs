//! The text of a question in a terminal, and the parser of the line a person types to answer it.

use super::{Question, QuestionAnswer, QuestionError, Selection};
use crate::protocol::Shown;
use crate::protocol::nearest::distance;

impl Question {
    /// Tells the question and its numbered options, line by line.
    #[must_use]
    pub fn render(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .question
            .lines()
            .map(|line| Shown::line(line).to_string())
            .collect();
        if let (Some(header), Some(first)) = (&self.header, lines.first_mut()) {
            *first = format!("[{}] {first}", Shown::line(header));
        }
        for (index, option) in self.options.iter().enumerate() {
            let means = option.description.as_deref();
            let means = means.map_or_else(String::new, |means| format!(": {}", Shown::line(means)));
            lines.push(format!("  {}. {}{means}", index + 1, Shown::line(&option.label)));
        }
        match (self.options.is_empty(), self.selection) {
            (true, _) => lines.push("  (in your own words)".to_owned()),
            (false, Selection::One) => lines.push("  (one of these, or your own words)".to_owned()),
            (false, Selection::Several) => {
                lines.push("  (one or several of these, your own words besides)".to_owned());
            }
        }
        lines
    }

    /// Reads a typed line: numbers of options or their labels, several by commas or spaces; other words are free text.
    ///
    /// Numbers alone are never free text: a slip of the finger must not become an answer.
    pub fn read(&self, field: &str, typed: &str) -> Result<QuestionAnswer, QuestionError> {
        let typed = typed.trim();
        if let Some(numbers) = self.numbers(typed) {
            let labels = numbers.into_iter().map(|number| self.numbered(field, number));
            return self.check(field, labels.collect::<Result<_, _>>()?, None);
        }
        let labels = match (self.named(typed), self.selection) {
            (Some(label), _) => Some(vec![label]),
            (None, Selection::One) => None,
            (None, Selection::Several) => typed.split(',').map(|part| self.named(part)).collect(),
        };
        match labels {
            Some(labels) => self.check(field, labels, None),
            None => self.check(field, Vec::new(), Some(typed.to_owned())),
        }
    }

    /// Returns the numbers of a line that consists of nothing else; `None` where a label is written so.
    fn numbers<'a>(&self, typed: &'a str) -> Option<Vec<&'a str>> {
        let is_label = self.options.iter().any(|option| option.label == typed);
        if self.options.is_empty() || is_label {
            return None;
        }
        let parts = typed.split([',', ' ', '\t']).filter(|part| !part.is_empty());
        let numbers: Vec<&str> = parts
            .map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then_some(part))
            .collect::<Option<_>>()?;
        (!numbers.is_empty()).then_some(numbers)
    }

    /// Returns the label that a number stands for: an option called so, or the option at that place.
    fn numbered(&self, field: &str, number: &str) -> Result<String, QuestionError> {
        let named = self.named(number);
        named.ok_or_else(|| QuestionError::NoSuchNumber {
            field: field.to_owned(),
            number: Shown::line(number).to_string(),
            last: self.options.len(),
        })
    }

    /// Checks an answer that names its labels: what is not among the options is refused, with the nearest that is.
    pub fn check_strictly(
        &self,
        field: &str,
        given: QuestionAnswer,
    ) -> Result<QuestionAnswer, QuestionError> {
        let known = || self.options.iter().map(|option| option.label.as_str());
        let stranger = given
            .labels
            .iter()
            .find(|label| known().all(|known| known != *label));
        if let Some(label) = stranger {
            let label_in_lower_case = label.to_lowercase();
            let nearest = known()
                .filter_map(|known| Some((distance(&known.to_lowercase(), &label_in_lower_case)?, known)))
                .min_by_key(|(distance, _)| *distance)
                .map(|(_, known)| known);
            return Err(QuestionError::NotAnOption {
                field: field.to_owned(),
                label: Shown::line(label).to_string(),
                nearest: nearest.map(|nearest| Shown::line(nearest).to_string()),
            });
        }
        self.check(field, given.labels, given.text)
    }

    /// Returns the label a person means by itself, in any case, or by its number.
    #[must_use]
    pub fn named(&self, typed: &str) -> Option<String> {
        let typed = typed.trim();
        let exact = self.options.iter().find(|option| option.label == typed);
        let similar = || {
            let typed = typed.to_lowercase();
            let mut found = self
                .options
                .iter()
                .filter(|option| option.label.to_lowercase() == typed);
            // Labels that differ in their case alone can only be summary apart by it.
            found.next().filter(|_| found.next().is_none())
        };
        let numbered = || {
            let number: usize = typed.parse().ok()?;
            self.options.get(number.checked_sub(1)?)
        };
        let option = exact.or_else(similar).or_else(numbered)?;
        Some(option.label.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Choice;
    use super::*;

    fn question(labels: &[&str], selection: Selection) -> Question {
        let options = labels.iter().map(|label| Choice {
            label: (*label).to_owned(),
            description: None,
        });
        Question {
            question: "?".to_owned(),
            header: None,
            options: options.collect(),
            selection,
        }
    }

    #[test]
    fn a_typed_line_is_numbers_labels_or_free_text() {
        let one = question(&["Red", "3", "blue", "Blue"], Selection::One);
        let several = question(&["Red", "Green, light", "Blue"], Selection::Several);
        for (question, typed, summary) in [
            (&one, " red\n", "User selected: Red"),
            (&one, "1", "User selected: Red"),
            (&one, "3", "User selected: 3"),
            (&one, "4", "User selected: Blue"),
            (&one, "blue", "User selected: blue"),
            (&one, "BLUE", "User answered: BLUE"),
            (&one, "red, blue", "User answered: red, blue"),
            (&several, "1, blue", "User selected: Red, Blue"),
            (&several, "green, light", "User selected: Green, light"),
            (&several, "1, and more", "User answered: 1, and more"),
            (&several, "1 3", "User selected: Red, Blue"),
            (&several, "1,3", "User selected: Red, Blue"),
            (&several, " 3 ,1 ", "User selected: Blue, Red"),
            (&question(&[], Selection::One), "5", "User answered: 5"),
        ] {
            assert_eq!(
                question.read("answer", typed).unwrap().summary(),
                summary,
                "{typed}"
            );
        }
        assert!(one.read("answer", "  \n").is_err());
        for (question, typed, reason) in [
            (&one, "5", "`answer` has no option 5; its options are 1 to 4"),
            (&one, "0", "`answer` has no option 0; its options are 1 to 4"),
            (
                &several,
                "1 7",
                "`answer` has no option 7; its options are 1 to 3",
            ),
            (&one, "1 2", "`answer` takes 2 choices; only one is allowed"),
        ] {
            assert_eq!(question.read("answer", typed).unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn a_named_label_must_be_an_option() {
        let one = question(&["Red", "Blue"], Selection::One);
        let given = |labels: &[&str], text: Option<&str>| QuestionAnswer {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            text: text.map(str::to_owned),
        };
        let strictly = |question: &Question, given| {
            question
                .check_strictly("answer", given)
                .map(|given| given.summary())
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            strictly(&one, given(&["Red"], None)),
            Ok("User selected: Red".to_owned())
        );
        assert_eq!(
            strictly(&one, given(&[], Some("mine"))),
            Ok("User answered: mine".to_owned())
        );
        assert_eq!(
            strictly(&one, given(&["blu\u{1b}"], None)),
            Err("`blu\\u{1b}` is not an option of `answer`; did you mean `Blue`?".to_owned())
        );
        assert_eq!(
            strictly(&question(&[], Selection::One), given(&["A"], None)),
            Err("`A` is not an option of `answer`, which has none".to_owned())
        );
    }
}
