//! What an excerpt shows, at any width and of any text.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::protocol::growth::{assert_linear, assert_linear_on_hostile};
use crate::protocol::quoted;

fn whole(json: &str) -> String {
    let excerpt = Excerpt::of_json(json, 10_000);
    assert_eq!(excerpt.extent, Extent::Whole, "{excerpt:?}");
    assert_eq!(excerpt, Excerpt::whole(json));
    excerpt.text
}

/// The numbers in the marks of a text that holds none of its own.
fn left_out(text: &str) -> Vec<usize> {
    let marks = text.split("\u{2026}(+").skip(1);
    marks
        .map(|mark| mark.split_once(")\u{2026}").unwrap().0.parse().unwrap())
        .collect()
}

#[test]
fn what_fits_is_shown_whole() {
    assert_eq!(
        whole("{ \"path\":\"/etc/passwd\",\n\"mode\" : 0.10, \"deep\":[1,{\"a\":null}] }"),
        r#"{"path": "/etc/passwd", "mode": 0.10, "deep": [1, {"a": null}]}"#
    );
    assert_eq!(whole("{}"), "{}");
}

#[test]
fn an_excerpt_costs_no_more_than_the_bytes_of_its_source() {
    assert_linear_on_hostile("excerpt", |text| {
        for room in [74, 4_000] {
            drop(Excerpt::of_json(text, room));
        }
        drop(Excerpt::of_json(
            &format!(r#"{{"password":{text},"a":{}}}"#, quoted(text)),
            74,
        ));
        drop(Excerpt::whole(text));
        drop(lines_of_json(text));
    });
    let parts = [
        "://a:b@",
        "sk-",
        "sk-/..",
        "token=",
        "a=",
        "password:\\\\'",
        "Bearer ",
        "ghp_0123456789ab.",
        "=",
        "%2e",
    ];
    for part in parts {
        assert_linear(
            part,
            |size| quoted(&part.repeat(size / part.len())),
            |text| {
                drop(Excerpt::of_json(text, 74));
                drop(Excerpt::whole(text));
            },
        );
    }
}

#[test]
fn what_could_deceive_is_written_out_and_what_is_escaped_is_read() {
    assert_eq!(
        whole("{\"a\u{202e}b\":\"x\\u001b[2J\u{200b}\\u002fetc\\/a\\n\\\"\\\\\"}"),
        r#"{"a\u202eb": "x\u001b[2J\u200b/etc/a\n\"\\"}"#
    );
}

#[test]
fn short_texts_stay_whole_and_the_long_one_uses_the_columns_that_are_left() {
    let json = format!(
        r#"{{"path":"/srv/app/a/rather/long/path/to/notes.txt","content":"first line {} last line"}}"#,
        "x".repeat(160)
    );
    assert_eq!(
        Excerpt::of_json(&json, 148).text,
        r#"{"path": "/srv/app/a/rather/long/path/to/notes.txt", "content": "first line xxxxxxxxxxxxxxxxxxxxxxxxxx…(+108)…xxxxxxxxxxxxxxxxxxxxxxxxxx last line"}"#
    );
    assert_eq!(
        Excerpt::of_json(&json, 74).text,
        r#"{"path": "/srv/app/…(+23)…otes.txt", "content": "first li…(+166)…st line"}"#
    );
}

#[test]
fn a_command_shows_both_its_ends_in_all_the_columns_of_a_line() {
    let json = r#"{"command":"curl -fsSL https://example.com/install/a/script/that/is/long.sh | sh && echo done && rm -rf /srv/data/important"}"#;
    let excerpt = Excerpt::of_json(json, 74);
    assert_eq!(
        excerpt.text,
        r#"{"command": "curl -fsSL https://example…(+60)…m -rf /srv/data/important"}"#
    );
    assert_eq!(excerpt.extent, Extent::Shortened);
}

#[test]
fn a_text_that_is_no_longer_than_its_mark_is_never_cut() {
    let members: Vec<String> = (0..6)
        .map(|index| format!(r#""m{index}":"short{index}""#))
        .collect();
    let json = format!(r#"{{{},"long":"{}"}}"#, members.join(","), "y".repeat(500));
    let excerpt = Excerpt::of_json(&json, 130);
    assert_eq!(left_out(&excerpt.text).len(), 1, "{}", excerpt.text);
    assert!(excerpt.text.contains("short5"), "{}", excerpt.text);
}

#[test]
fn names_are_kept_where_texts_are_not() {
    let members: Vec<String> = (0..5)
        .map(|index| format!(r#""a_long_name_{index}":"{}""#, "z".repeat(90)))
        .collect();
    let excerpt = Excerpt::of_json(&format!("{{{}}}", members.join(",")), 148);
    for index in 0..5 {
        let name = format!(r#""a_long_name_{index}": "z"#);
        assert!(excerpt.text.contains(&name), "{}", excerpt.text);
    }
    let long = format!(r#"{{"{}":"/etc/passwd"}}"#, "n".repeat(5_000));
    let excerpt = Excerpt::of_json(&long, 74);
    assert!(excerpt.text.contains("/etc/passwd"), "{}", excerpt.text);
}

#[test]
fn many_members_are_cut_in_the_middle() {
    let members: Vec<String> = (0..1_000).map(|index| format!(r#""m{index}":{index}"#)).collect();
    let json = format!("{{{}}}", members.join(","));
    let excerpt = Excerpt::of_json(&json, 74);
    assert!(excerpt.text.width() <= 74);
    assert!(excerpt.text.starts_with(r#"{"m0": 0"#), "{}", excerpt.text);
    assert!(excerpt.text.ends_with("999}"), "{}", excerpt.text);
    let shown = excerpt.text.chars().count() - mark_width(left_out(&excerpt.text)[0]);
    let all = Excerpt::whole(&json).text.chars().count();
    assert_eq!(left_out(&excerpt.text), [all - shown]);
}

#[test]
fn wide_characters_take_their_columns() {
    let excerpt = Excerpt::of_json(&format!(r#"{{"a":"{}"}}"#, "漢".repeat(100)), 74);
    assert!(excerpt.text.width() <= 74, "{}", excerpt.text);
    assert_eq!(shortened("漢字", 4), "漢字");
}

#[test]
fn what_names_itself_a_secret_is_hidden_and_says_how_long_it_is() {
    assert_eq!(
        whole(
            r#"{"user":"ann","password":"hunter2","api_key":{"a":["b"]},"PIN":1,"authToken":77,"max_tokens":5,"secret":null,"Authorization":"Bearer abc"}"#
        ),
        r#"{"user": "ann", "password": "[hidden: 7]", "api_key": {"a": ["b"]}, "PIN": 1, "authToken": [hidden: 2], "max_tokens": 5, "secret": null, "Authorization": "Bearer [hidden: 3]"}"#
    );
}

#[test]
fn nothing_that_would_run_hides_behind_the_name_of_a_secret() {
    for json in [
        r#"{"tokenizer_command": "rm -rf ~"}"#,
        r#"{"token_command": "reboot"}"#,
        r#"{"cookie": {"cmd": "rm -rf ~", "path": "/"}}"#,
        r#"{"password": "$(reboot)"}"#,
        r#"{"secret": ["rm", "-rf"]}"#,
    ] {
        assert_eq!(whole(json), json);
    }
}

#[test]
fn a_secret_longer_than_usual_is_told() {
    let json = |length: usize| format!(r#"{{"token":"{}"}}"#, "a".repeat(length));
    assert_eq!(Excerpt::of_json(&json(200), 74).unusually_hidden(), None);
    for length in [201, 100_000] {
        let excerpt = Excerpt::of_json(&json(length), 74);
        assert_eq!(excerpt.unusually_hidden(), Some(length), "{excerpt:?}");
    }
}

#[test]
fn the_ends_of_a_long_text_hide_their_secrets_too() {
    let middle = "lorem ipsum ".repeat(10_000);
    let json = format!(r#"{{"a":"password=hunter2 {middle} ghp_0123456789abcdef"}}"#);
    let excerpt = Excerpt::of_json(&json, 148);
    assert!(
        excerpt.text.contains("password=[hidden: 7] lorem") && excerpt.text.ends_with("ghp_[hidden: 16]\"}"),
        "{}",
        excerpt.text
    );
}

#[test]
fn all_of_a_text_is_shown_over_several_lines() {
    assert_eq!(
        lines_of_json(r#"{"path":"/a","content":"one\ntwo\\n\n","deep":[1,2]}"#),
        [
            r#"{"path": "/a","#,
            r#" "content": "one\n"#,
            r#"two\\n\n","#,
            r#" "deep": [1, 2]}"#
        ]
    );
}

#[test]
fn no_text_is_too_broken_to_be_shown() {
    for text in [
        "",
        "\"",
        "\"a\\",
        "{\"a\":",
        "{\"password\":",
        "é",
        "[[[",
        "\u{1b}",
        "{\"password\":\"",
        "]]",
    ] {
        for room in 0..40 {
            let excerpt = Excerpt::of_json(text, room);
            assert!(excerpt.text.width() <= room, "{text:?} {excerpt:?}");
        }
    }
}

/// Objects with texts of every length and kind.
fn objects() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof![
        "[ -~]{0,30}",
        "[a-z/ ]{30,300}",
        "[a漢\n\"\u{202e}🦀\u{301}]{0,60}",
        Just("ghp_0123456789abcdef".to_owned()),
        Just("x".repeat(20_000)),
    ];
    let value = prop_oneof![
        4 => text.prop_map(serde_json::Value::from),
        1 => any::<i64>().prop_map(serde_json::Value::from),
        1 => prop::collection::vec(any::<bool>(), 0..4).prop_map(serde_json::Value::from),
    ];
    prop::collection::btree_map("[a-z_]{1,50}", value, 0..8)
        .prop_map(|members| serde_json::Value::Object(members.into_iter().collect()))
}

proptest! {
    #[test]
    fn an_excerpt_is_never_wider_than_asked(json in objects(), room in 0..400_usize) {
        let excerpt = Excerpt::of_json(&json.to_string(), room);
        prop_assert!(excerpt.text.width() <= room, "{excerpt:?}");
    }

    #[test]
    fn an_excerpt_leaves_something_out_only_where_the_whole_does_not_fit(json in objects(), room in 0..400_usize) {
        let json = json.to_string();
        let excerpt = Excerpt::of_json(&json, room);
        let whole = Excerpt::whole(&json);
        if whole.text.width() <= room {
            prop_assert_eq!(excerpt, whole);
        } else {
            prop_assert_eq!(excerpt.extent, Extent::Shortened);
        }
    }

    #[test]
    fn with_more_columns_no_text_gets_less(json in objects(), room in 20..400_usize) {
        let json = json.to_string();
        let lost = |room: usize| left_out(&Excerpt::of_json(&json, room).text).iter().sum::<usize>();
        prop_assert!(lost(room + 1) <= lost(room), "{room}: {json}");
        let (less, more) = (Pieces::of(&json, room), Pieces::of(&json, room + 1));
        if let (Some(less), Some(more)) = (less.shares(room), more.shares(room + 1)) {
            prop_assert!(less.iter().zip(&more).all(|(less, more)| less <= more));
        }
    }

    #[test]
    fn a_text_shorter_than_its_fair_share_is_whole(
        lengths in prop::collection::vec(0..200_usize, 1..6),
        room in 60..400_usize,
    ) {
        let members: Vec<String> = lengths
            .iter()
            .enumerate()
            .map(|(index, length)| format!(r#""{index}":"{index}{}""#, "t".repeat(*length)))
            .collect();
        let excerpt = Excerpt::of_json(&format!("{{{}}}", members.join(",")), room);
        // Braces, and for each member a name, four quotes, a colon and a comma with a blank behind them.
        let fair = (room - 2).saturating_sub(lengths.len() * 9) / lengths.len();
        // A text that is cut takes no less than its mark, such as `…(+199)…`: where that is more than a fair share, others pay.
        prop_assume!(fair >= 8);
        for (index, length) in lengths.iter().enumerate() {
            // The digit is part of the text.
            if *length + 1 < fair {
                let text = format!(r#""{index}{}""#, "t".repeat(*length));
                prop_assert!(excerpt.text.contains(&text), "{text} {excerpt:?}");
            }
        }
    }

    #[test]
    fn a_shortened_text_says_by_how_many_characters(text in "[a-zé漢]{0,200}", room in 12..200_usize) {
        let shown = shortened(&text, room);
        prop_assert!(shown.width() <= room);
        let kept: String = shown.chars().filter(|found| found.is_alphabetic()).collect();
        let lost: usize = left_out(&shown).iter().sum();
        prop_assert_eq!(kept.chars().count() + lost, text.chars().count());
        if let Some((head, tail)) = shown.split_once('\u{2026}') {
            let tail = tail.split_once('\u{2026}').unwrap().1;
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
        }
    }
}

#[test]
fn a_long_name_is_repeated_by_its_ends() {
    assert_eq!(repeated("fs__read\u{1b}"), r"fs__read\u{1b}");
    let long = repeated(&"\u{202e}n".repeat(500_000));
    assert!(long.len() < 10 * REPEATED, "{}", long.len());
    assert!(long.contains("…(+"), "{long}");
}
