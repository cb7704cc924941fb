//! The questions of a model as blocks: choices, a field for own words, one button for all of them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::limits::{GROUP, MENU, OPTION, WRITTEN, length};
use super::text::{Blocks, plain};
use super::{Form, button};
use crate::card::{Card, Decision};
use crate::channels::channel::Unsupported;
use crate::channels::press::Button;
use crate::channels::slack::TITLE;
use crate::protocol::question::{Question, Selection};

/// The value of the option that stands for what is written below: a radio button cannot be let go once it is pressed.
pub(in crate::channels::slack) const OTHER: &str = "other";

/// Adds every question of a card, and one row of buttons for all.
pub(super) fn add(blocks: &mut Blocks, card: &Card, form: &Form) -> Result<(), Unsupported> {
    let several = card.questions.len() > 1;
    for (place, question) in card.questions.iter().enumerate() {
        add_one(blocks, &question.shown, form, place, several)?;
    }
    let buttons = [
        button("send", "Send", &form.press(Button::Send), Some("primary")),
        button(
            "refuse",
            "Do not answer",
            &form.press(Button::Decision(Decision::Abort)),
            None,
        ),
    ];
    // How many questions there are comes back with the press.
    let id = form.id(&format!("of:{}", card.questions.len()));
    blocks.push(
        json!({ "type": "actions", "block_id": id, "elements": buttons }),
        0,
    );
    Ok(())
}

fn add_one(
    blocks: &mut Blocks,
    question: &Question,
    form: &Form,
    place: usize,
    several: bool,
) -> Result<(), Unsupported> {
    let mut text = String::new();
    if several {
        let _ = write!(text, "{}. ", place + 1);
    }
    if let Some(header) = question.header.as_deref().filter(|header| !header.is_empty()) {
        let _ = writeln!(text, "{header}");
    }
    text.push_str(&question.question);
    blocks.named_text(&form.id(&format!("q{place}")), &text);
    if !question.options.is_empty() {
        let labelling = Labelling::of(question);
        if labelling == Labelling::Numbers {
            blocks.preformatted(&numbered(question));
        }
        let (elements, length) = elements(question, labelling)?;
        blocks.push(
            json!({ "type": "actions", "block_id": form.id(&place.to_string()), "elements": elements }),
            length,
        );
    }
    let label = match (question.options.is_empty(), question.selection) {
        (true, _) => "Your answer",
        (false, Selection::One) => "Other: your own words instead",
        (false, Selection::Several) => "Other: your own words besides",
    };
    let field = json!({
        "type": "plain_text_input", "action_id": "text", "multiline": true, "max_length": WRITTEN,
    });
    let block = json!({
        "type": "input", "block_id": form.id(&format!("{place}:other")), "optional": true,
        "label": plain(label), "element": field,
    });
    blocks.push(block, length(label));
    Ok(())
}

/// What stands beside a radio button or a checkbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labelling {
    /// The option itself.
    Labels,
    /// Its number in the list above: Slack has no room for the option.
    Numbers,
}

impl Labelling {
    fn of(question: &Question) -> Self {
        let fits = |text: &str| !text.trim().is_empty() && length(text) <= OPTION;
        let fit = question.options.iter().all(|option| {
            fits(&option.label)
                && option
                    .description
                    .as_deref()
                    .is_none_or(|text| text.is_empty() || fits(text))
        });
        if fit { Self::Labels } else { Self::Numbers }
    }
}

/// Writes the options whole, each with its number.
fn numbered(question: &Question) -> String {
    let mut text = String::new();
    for (place, option) in question.options.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", place + 1, option.label);
        if let Some(description) = &option.description {
            let _ = writeln!(text, "   {description}");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Makes what is chosen from, and tells the length of its text.
fn elements(question: &Question, labelling: Labelling) -> Result<(Vec<Value>, usize), Unsupported> {
    let mut options: Vec<Value> = question
        .options
        .iter()
        .enumerate()
        .map(|(place, option)| {
            let number = (place + 1).to_string();
            let described = option.description.as_deref().filter(|text| !text.is_empty());
            let (text, description) = match labelling {
                Labelling::Labels => (option.label.as_str(), described),
                Labelling::Numbers => (number.as_str(), None),
            };
            choice(text, &place.to_string(), description)
        })
        .collect();
    let most = MENU - 1;
    if options.len() > most {
        return Err(Unsupported::TooMuch {
            channel: TITLE,
            what: "options in a question",
            limit: most,
            found: options.len(),
        });
    }
    let elements = match question.selection {
        Selection::One => {
            options.push(choice("Other, as written below", OTHER, None));
            let kind = if options.len() > GROUP {
                "static_select"
            } else {
                "radio_buttons"
            };
            vec![json!({ "type": kind, "action_id": "choice", "options": options })]
        }
        Selection::Several => options
            .chunks(GROUP)
            .enumerate()
            .map(|(group, options)| {
                let id = if group == 0 {
                    "choice".to_owned()
                } else {
                    format!("choice{group}")
                };
                json!({ "type": "checkboxes", "action_id": id, "options": options })
            })
            .collect(),
    };
    Ok((elements, options.iter().map(written).sum()))
}

fn choice(text: &str, value: &str, description: Option<&str>) -> Value {
    let mut option = json!({ "text": plain(text), "value": value });
    if let Some(description) = description {
        option["description"] = plain(description);
    }
    option
}

fn written(option: &Value) -> usize {
    let of = |member: &str| option[member]["text"].as_str().map_or(0, length);
    of("text") + of("description")
}
