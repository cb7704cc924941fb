//! What is drawn of cards: buttons, a list or numbers, within every limit of WhatsApp.

use super::*;

fn interactive(notice: &Notice) -> Value {
    message::of(notice)["interactive"].clone()
}

fn body(notice: &Notice) -> String {
    let message = message::of(notice);
    assert_eq!(message["type"], "text", "{message}");
    assert_eq!(message["text"]["preview_url"], false);
    message["text"]["body"].as_str().unwrap().to_owned()
}

#[test]
fn a_list_has_up_to_ten_rows_of_twenty_four_characters() {
    let mut asked = question(
        "Which?",
        &["1", "2", "3", "a label of 24 letters ok"],
        Selection::One,
    );
    asked.options[0].description = Some("d".repeat(72));
    let list = interactive(&open(asking(vec![asked.clone()])));
    assert_eq!(list["type"], "list");
    let rows = list["action"]["sections"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        rows[0],
        json!({ "id": "p1:aaaaa:0:0:0:abcdefghijkl", "title": "1", "description": "d".repeat(72) })
    );
    // One letter more anywhere, one row more, or twice the same label: numbers.
    let mut long = asked.clone();
    long.options[3].label.push('x');
    let mut described = asked.clone();
    described.options[0].description = Some("d".repeat(73));
    let labels: Vec<String> = (1..=11).map(|number| format!("option {number}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let many = question("Which?", &labels, Selection::One);
    let twice = question("Which?", &["a", "a"], Selection::One);
    for asked in [long, described, many, twice] {
        let text = body(&open(asking(vec![asked])));
        assert!(
            text.ends_with("\nReply with the number, or in your own words."),
            "{text}"
        );
        assert!(text.contains("\n1. ") && text.contains("\n2. "), "{text}");
    }
}

#[test]
fn three_options_of_twenty_characters_are_buttons_and_longer_ones_a_list() {
    let twenty = "t".repeat(20);
    let buttons = open(asking(vec![question("?", &["a", "b", &twenty], Selection::One)]));
    assert_eq!(interactive(&buttons)["type"], "button");
    let longer = "t".repeat(21);
    let list = open(asking(vec![question("?", &["a", "b", &longer], Selection::One)]));
    assert_eq!(interactive(&list)["type"], "list");
}

#[test]
fn several_choices_free_words_and_several_questions_are_text() {
    let several = open(asking(vec![question("Which?", &["a", "b"], Selection::Several)]));
    assert_eq!(
        body(&several),
        "aaaaa · pro\\u{1b}ject\nWhich?\n1. a\n2. b\nReply with the numbers, or in your own words."
    );
    let free = open(asking(vec![question("A name?", &[], Selection::One)]));
    assert_eq!(
        body(&free),
        "aaaaa · pro\\u{1b}ject\nA name?\nReply in your own words."
    );
    let two = open(asking(vec![
        question("Which db?", &["pg", "sqlite"], Selection::One),
        question("A name?", &[], Selection::One),
    ]));
    assert_eq!(
        body(&two),
        "aaaaa · pro\\u{1b}ject\nQuestion 1 of 2: Which db?\n1. pg\n2. sqlite\n(one of these)\n\
         Question 2 of 2: A name?\n(in your own words)\n\
         Reply with one line for each question: its numbers, or your own words."
    );
}

#[test]
fn an_approval_is_never_typed() {
    let mut two = open(approving());
    two.standing = Standing::Open {
        choices: two
            .card
            .choices
            .iter()
            .filter(|choice| matches!(choice.label, "Continue" | "Abort"))
            .cloned()
            .collect(),
    };
    let buttons = interactive(&two);
    assert_eq!(buttons["type"], "button");
    let titles: Vec<&str> = buttons["action"]["buttons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|button| button["reply"]["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["Continue", "Abort"]);
    // With what lasts there are four: a list, of which a row is chosen and sent.
    assert_eq!(interactive(&open(approving()))["type"], "list");
    let mut long = open(approving());
    long.card.lines[0].text = "x".repeat(1_100);
    let error = message::fits(&long.card).unwrap_err().to_string();
    assert!(
        error.starts_with("WhatsApp takes at most 1024 characters"),
        "{error}"
    );
    assert!(body(&long).contains("This is too long for WhatsApp; open the inbox on your computer"));
}

#[test]
fn a_long_question_gives_its_buttons_up_and_a_longer_one_does_not_fit() {
    let asked = |length: usize| {
        open(asking(vec![question(
            &"q".repeat(length),
            &["a", "b"],
            Selection::One,
        )]))
    };
    let short = interactive(&asked(900));
    assert_eq!(short["type"], "button");
    assert!(short["body"]["text"].as_str().unwrap().chars().count() <= 1024);
    let text = body(&asked(3_900));
    assert!(text.ends_with("Reply with the number, or in your own words.") && text.chars().count() <= 4096);
    for length in [4_096, 100_000] {
        let notice = asked(length);
        assert!(message::fits(&notice.card).is_err());
        let text = body(&notice);
        assert!(text.contains("open the inbox") && text.len() < 1_000, "{text}");
    }
}

#[test]
fn texts_of_a_model_stay_texts() {
    let all = INJECTIONS.join("\n");
    for text in INJECTIONS.iter().copied().chain([all.as_str()]) {
        let label: String = text.chars().take(100).collect();
        for selection in [Selection::One, Selection::Several] {
            let notice = open(asking(vec![question(text, &[&label, "b"], selection)]));
            let message = message::of(&notice);
            let above = &message["interactive"]["body"]["text"];
            let told = above.as_str().or(message["text"]["body"].as_str()).unwrap();
            for sign in [
                "*b", "_i", "~n", "`", "://", ".example", "@e", "\n> ", "\n- ", "\n* ",
            ] {
                assert!(!told.contains(sign), "{sign} in {told}");
            }
            for hidden in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'] {
                assert!(!told.contains(hidden), "{told}");
            }
            let words = template::words(&notice);
            assert!(
                !words.contains(['\n', '\t', '`']) && words.chars().count() <= 900,
                "{words}"
            );
        }
    }
}
