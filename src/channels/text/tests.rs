use super::super::fake::{approving, asking, closed, open, question};
use super::*;

#[test]
fn a_question_stands_with_its_options_in_numbers() {
    let mut asked = question("Which db?\nIt stays.", &["pg", "sqlite"], Selection::One);
    asked.options[0].description = Some("Postgres".to_owned());
    let notice = open(asking(vec![asked]));
    assert_eq!(
        Text::of(&notice, "Press one.").plain(),
        "aaaaa · pro\\u{1b}ject\nWhich db?\nIt stays.\n1. pg — Postgres\n2. sqlite\nPress one."
    );
    assert_eq!(
        Text::of(&closed(&notice, "Answered in Slack: pg · 14:03"), "Press one.").plain(),
        "aaaaa · pro\\u{1b}ject\nWhich db?\nAnswered in Slack: pg · 14:03"
    );
}

#[test]
fn several_questions_say_how_many_options_each_takes() {
    let notice = open(asking(vec![
        question("Which db?", &["pg", "sqlite"], Selection::One),
        question("Which tests?", &["unit", "end to end"], Selection::Several),
        question("A name?", &[], Selection::One),
    ]));
    assert_eq!(
        Text::of(&notice, "").plain(),
        "aaaaa · pro\\u{1b}ject\n\
         Question 1 of 3: Which db?\n1. pg\n2. sqlite\n(one of these)\n\
         Question 2 of 3: Which tests?\n1. unit\n2. end to end\n(any of these)\n\
         Question 3 of 3: A name?\n(in your own words)"
    );
}

#[test]
fn an_approval_shows_the_command_and_what_each_decision_grants() {
    let text = Text::of(&open(approving()), "");
    assert_eq!(
        text.plain(),
        "aaaaa · pro\\u{1b}ject\nInstall and run serena@0.5.0?\n\
         would run: npm install serena@0.5.0\nwanted for: serena:analyze\npublished: not known\n\
         integrity: recorded at first use\n\
         Continue: this version, from now on\n\
         Only this session: until the pml of this agent ends\n\
         Always: from now on; writes serena:analyze to /project/.pml.json\n\
         Abort: nothing runs"
    );
    let verbatim: Vec<&str> = text
        .pieces()
        .iter()
        .filter(|piece| piece.voice == Voice::Verbatim)
        .map(|piece| piece.text.as_str())
        .collect();
    assert_eq!(
        verbatim,
        ["npm install serena@0.5.0", "serena:analyze", "/project/.pml.json"]
    );
}

#[test]
fn what_has_no_room_is_a_glance_that_says_where_to_look() {
    let notice = open(asking(vec![question(&"x".repeat(4_000), &[], Selection::One)]));
    let glance = Text::glance(&notice, "This is too long for Telegram").plain();
    assert!(
        glance.ends_with(
            "\nThis is too long for Telegram; open the inbox on your computer: http://127.0.0.1:7777/"
        ),
        "{glance}"
    );
    assert!(glance.len() < 600, "{glance}");
    assert_eq!(label("abcdef", 6), "abcdef");
    assert_eq!(label("abcdefg", 6), "abcde…");
}
