//! Reads what a host says to a poll: still waiting, or the answer to the one question it was given. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::RelayError;
use crate::protocol::question::{Question, QuestionAnswer, Selection};

/// What a host says to a poll.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// The question waits for a person.
    Waiting,
    /// A person answered it.
    Answered(QuestionAnswer),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenAnswer {
    status: Option<Value>,
    answer: Option<Value>,
    selected_options: Option<Value>,
}

/// Reads the body of a poll that answered 200.
pub(super) fn read(body: &[u8], question: &Question) -> Result<Polled, RelayError> {
    let malformed = |reason: &str| RelayError::Malformed(reason.to_owned());
    let unreadable = || malformed("it is not one JSON object, each member at most once");
    // A list would be read as the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(unreadable());
    }
    let written: WrittenAnswer = serde_json::from_slice(body).map_err(|_error| unreadable())?;
    match written.status.as_ref().and_then(Value::as_str) {
        Some("waiting") => return Ok(Polled::Waiting),
        Some("answered") => {}
        Some(_) | None => return Err(malformed("its `status` is neither `waiting` nor `answered`")),
    }
    let text = match written.answer {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(_) => return Err(malformed("its `answer` is not a string")),
    };
    let chosen = match written.selected_options {
        None => Vec::new(),
        Some(Value::Array(indexes)) => indexes
            .iter()
            .map(|index| label(index, question))
            .collect::<Option<Vec<String>>>()
            .ok_or_else(|| {
                malformed("its `selectedOptions` names an option that the question does not have")
            })?,
        Some(_) => return Err(malformed("its `selectedOptions` is not a list")),
    };
    let (labels, text) = if chosen.is_empty() {
        (named(text.trim(), question), None)
    } else {
        let text = besides(&text, &chosen).map(str::to_owned);
        (chosen, text)
    };
    let answer = question.check("answer", labels, text);
    answer.map(Polled::Answered).map_err(RelayError::Unfitting)
}

fn label(index: &Value, question: &Question) -> Option<String> {
    let index = usize::try_from(index.as_u64()?).ok()?;
    question.options.get(index).map(|option| option.label.clone())
}

/// Returns the options that a text names where no index does; what names none is one free text.
fn named(text: &str, question: &Question) -> Vec<String> {
    let is_label = |part: &&str| question.options.iter().any(|option| option.label == *part);
    let parts: Vec<&str> = text.split(", ").collect();
    if question.selection == Selection::Several && parts.len() > 1 && parts.iter().all(is_label) {
        return parts.into_iter().map(str::to_owned).collect();
    }
    vec![text.to_owned()]
}

/// Returns what a text says besides the chosen labels, which hosts repeat in it, in the order of the question or not.
fn besides<'a>(text: &'a str, chosen: &[String]) -> Option<&'a str> {
    let mut rest = text.trim();
    // Longest first: a label may begin with another.
    let mut labels: Vec<&String> = chosen.iter().collect();
    labels.sort_by_key(|label| std::cmp::Reverse(label.len()));
    let ends = |after: &&str| after.is_empty() || after.starts_with([',', '\n']);
    while let Some((label, after)) = labels.iter().find_map(|label| {
        let after = rest.strip_prefix(label.as_str()).filter(ends)?;
        Some((*label, after))
    }) {
        labels.retain(|other| *other != label);
        rest = after.trim_start_matches([',', '\n', ' ']);
    }
    Some(rest).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report;
    use serde_json::json;

    fn question(labels: &[&str], multi_select: bool) -> Question {
        let options: Vec<Value> = labels.iter().map(|label| json!({ "label": label })).collect();
        let arguments = json!({ "question": "Which?", "options": options, "multiSelect": multi_select });
        Question::single(arguments.as_object().unwrap()).unwrap()
    }

    fn told(question: &Question, body: &Value) -> String {
        match read(body.to_string().as_bytes(), question) {
            Ok(Polled::Waiting) => "waiting".to_owned(),
            Ok(Polled::Answered(answer)) => answer.summary(),
            Err(error) => report::render(&error, None),
        }
    }

    fn answered(answer: &Value, selected: &Value) -> Value {
        json!({ "status": "answered", "answer": answer, "selectedOptions": selected })
    }

    #[test]
    fn an_answer_names_options_by_index_or_by_label() {
        let one = question(&["A", "B", "A, B"], false);
        for (answer, selected, summary) in [
            (json!("A"), json!([0]), "User selected: A"),
            (json!(""), json!([1]), "User selected: B"),
            (Value::Null, json!([1]), "User selected: B"),
            (json!("B"), json!([]), "User selected: B"),
            (json!("B"), Value::Null, "User selected: B"),
            (json!("A, B"), json!([2]), "User selected: A, B"),
            (json!("A, B"), json!([]), "User selected: A, B"),
            (
                json!("something else"),
                json!([]),
                "User answered: something else",
            ),
        ] {
            assert_eq!(told(&one, &answered(&answer, &selected)), summary);
        }
        let several = question(&["A", "B", "AB"], true);
        for (answer, selected, summary) in [
            (json!("A, B"), json!([0, 1]), "User selected: A, B"),
            (json!("B,A"), json!([0, 1]), "User selected: A, B"),
            (json!("A, AB"), json!([2, 0]), "User selected: AB, A"),
            (json!("A, B"), Value::Null, "User selected: A, B"),
            (json!("A, and C"), json!([0]), "User selected: A, and C"),
            (json!("and C"), json!([0, 0]), "User selected: A, and C"),
            (json!("C, D"), json!([]), "User answered: C, D"),
        ] {
            assert_eq!(told(&several, &answered(&answer, &selected)), summary);
        }
    }

    #[test]
    fn free_text_passes_as_it_is() {
        let free = question(&[], false);
        let said = told(&free, &answered(&json!(" two\nlines, one comma "), &Value::Null));
        assert_eq!(said, "User answered: two\nlines, one comma");
    }

    #[test]
    fn what_is_no_answer_is_an_error_and_waiting_is_none() {
        let one = question(&["A", "B"], false);
        assert_eq!(told(&one, &json!({ "status": "waiting" })), "waiting");
        let none = "the host brought an answer that cannot be read: its `selectedOptions` names an option that the \
            question does not have";
        let unfitting = "the host brought an answer that does not fit the question\n  caused by: ";
        let two = format!("{unfitting}`answer` takes 2 choices; only one is allowed");
        let empty = format!("{unfitting}`answer` is empty; choose an option or write something");
        for (body, said) in [
            (answered(&json!("A"), &json!([2])), none),
            (answered(&json!("A"), &json!([-1])), none),
            (answered(&json!("A"), &json!(["A"])), none),
            (answered(&json!("A"), &json!([0.5])), none),
            (answered(&json!("B"), &json!([0])), &two),
            (answered(&json!("A, B"), &json!([0, 1])), &two),
            (answered(&json!(" "), &json!([])), &empty),
            (
                answered(&json!(7), &json!([0])),
                "the host brought an answer that cannot be read: its `answer` is not a string",
            ),
            (
                answered(&json!("A"), &json!(0)),
                "the host brought an answer that cannot be read: its `selectedOptions` is not a list",
            ),
            (
                json!({ "status": "done", "answer": "A" }),
                "the host brought an answer that cannot be read: its `status` is neither `waiting` nor `answered`",
            ),
            (
                json!([]),
                "the host brought an answer that cannot be read: it is not one JSON object, each member at most once",
            ),
        ] {
            assert_eq!(told(&one, &body), said, "{body}");
        }
    }
}
