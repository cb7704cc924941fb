//! Measures how work grows with what a peer sends: four times the bytes may cost about four times the work.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Shorter times say more of the machine than of the work.
const MEASURABLE: Duration = Duration::from_millis(5);

/// The largest input that is tried: what costs too little to be measured at this size never freezes anything.
const LARGEST: usize = 1 << 19;

/// Four times the input is four times the work where it is linear, and sixteen times where it is quadratic.
const TOO_MUCH: u32 = 8;

/// How often a measurement is tried: another process may take the machine at any moment.
const TRIES: usize = 6;

/// Fails if the work on inputs that are four times as large is far more than four times as much.
pub(crate) fn assert_linear<T>(what: &str, input: impl Fn(usize) -> T, work: impl Fn(&T)) {
    assert_linear_from(1 << 10, what, input, work);
}

/// Likewise with inputs of at least this size: a search among few members is cheap beside reading them.
pub(crate) fn assert_linear_from<T>(least: usize, what: &str, input: impl Fn(usize) -> T, work: impl Fn(&T)) {
    let time = |size: usize| {
        let input = input(size);
        let begun = worked();
        work(black_box(&input));
        worked().saturating_sub(begun)
    };
    let mut size = least;
    while size < LARGEST && time(size) < MEASURABLE {
        size *= 2;
    }
    let (mut one, mut four) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        one = one.min(time(size));
        four = four.min(time(4 * size));
        if four < one.max(MEASURABLE) * TOO_MUCH {
            return;
        }
    }
    panic!("{what}: an input of {size} took {one:?}, and one of four times that {four:?}");
}

/// Returns how long this thread has worked: what others do meanwhile does not count.
fn worked() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Inputs of one shape and any size, and the name of the shape.
pub(crate) type InputShape<T = String> = (&'static str, fn(usize) -> T);

/// Texts that make a careless reader of JSON look at the same bytes again and again, by name.
pub(crate) const HOSTILE: [InputShape; 17] = [
    ("many names of an envelope", envelope),
    ("a name of backslashes", |size| {
        format!(r#"{{"{}":1,"x":2}}"#, r"\\".repeat(size / 2))
    }),
    ("a name of quotes", |size| {
        format!(r#"{{"x":1,"{}":2}}"#, r#"\""#.repeat(size / 2))
    }),
    ("a value of backslashes", |size| {
        format!(r#"{{"x":"{}","y":2}}"#, r"\\".repeat(size / 2))
    }),
    ("a name of escapes", |size| {
        format!(r#"{{"{}":1}}"#, r"\u0061".repeat(size / 6))
    }),
    ("a name of half pairs", |size| {
        format!(r#"{{"{}":1,"x":2}}"#, r"\ud800".repeat(size / 6))
    }),
    ("many half pairs", |size| members(size, r#""\ud800":1"#)),
    ("a long name", |size| format!(r#"{{"{}":1}}"#, "a".repeat(size))),
    ("many names of backslashes", |size| {
        members(size, r#""\\\\\\\"\\":1"#)
    }),
    ("the same name", |size| members(size, r#""x":1"#)),
    ("the same name in another case", |size| members(size, r#""X":1"#)),
    ("many names", |size| {
        let all: Vec<String> = (0..size / 10).map(|number| format!(r#""m{number}":0"#)).collect();
        format!("{{{}}}", all.join(","))
    }),
    ("deep objects", |size| {
        let text = "a".repeat(size);
        format!(r#"{}"{text}"{}"#, r#"{"x":"#.repeat(100), "}".repeat(100))
    }),
    ("too deep", |size| {
        format!(r#"{{"x":{}{}}}"#, "[".repeat(size / 2), "]".repeat(size / 2))
    }),
    ("brackets without an end", |size| {
        format!(r#"{{"x":{}"#, "[{".repeat(size / 2))
    }),
    ("blanks", |size| {
        format!(r#"{{"x"{0}:{0}1{0}}}"#, " ".repeat(size / 3))
    }),
    ("words of pml", |size| {
        members(size, r#""continue_workflow":"approval_required""#)
    }),
];

/// Writes an object with many members of the Modern envelope, each under a name of its own.
pub(crate) fn envelope(size: usize) -> String {
    let member = |number| format!(r#""io.modelcontextprotocol/{number:06}":0"#);
    let all: Vec<String> = (0..size / 35).map(member).collect();
    format!(r#"{{"a":0,{}}}"#, all.join(","))
}

fn members(size: usize, member: &str) -> String {
    let count = (size / (member.len() + 1)).max(1);
    format!("{{{}}}", vec![member; count].join(","))
}

/// Fails if work on any of the hostile texts is more than linear.
pub(crate) fn assert_linear_on_hostile(what: &str, work: impl Fn(&str)) {
    for (shape, text) in HOSTILE {
        assert_linear(&format!("{what}: {shape}"), text, |text| work(text));
    }
}

mod tests {
    use super::*;
    use crate::protocol::continuation::{self, Continuation};
    use crate::protocol::question::Question;
    use crate::protocol::{
        DependencyName, Imitation, Json, LineDecoder, Message, Object, Pattern, Remains, Shown, Spellings,
        ToolName, canonical, check_uri, elements, may_hold_reserved, shell, wire_name, without_imitation,
    };
    use bytes::Bytes;

    /// One work of this module on a text from outside.
    type Work = (&'static str, fn(&str));

    fn server() -> DependencyName {
        "fs".parse().unwrap()
    }

    #[test]
    #[should_panic(expected = "quadratic")]
    fn more_than_linear_is_seen() {
        assert_linear(
            "quadratic",
            |size| vec![1_u32; size],
            |numbers| {
                for number in numbers {
                    black_box(numbers.iter().filter(|other| *other == number).count());
                }
            },
        );
    }

    #[test]
    fn reading_json_is_linear() {
        let works: [Work; 9] = [
            ("envelope", |text| {
                let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{text}}}"#);
                black_box(Message::parse(line.as_bytes()).is_ok());
                black_box(Message::parse(text.as_bytes()).is_ok());
            }),
            ("remains", |text| drop(black_box(Remains::of(text.as_bytes())))),
            ("removal of members", |text| {
                if let Some(object) = Object::parse(text) {
                    black_box(object.without(&["x", "m5"]));
                    let all: Vec<Json<'_>> = object.members().map(|(_, value)| value).collect();
                    black_box(object.cuts_of(&all));
                    for value in all {
                        black_box(object.key_place(value));
                    }
                }
            }),
            ("twins", |text| {
                if let Some(object) = Object::parse(text) {
                    black_box(object.without_twins(&["name", "y"]).is_ok());
                    black_box(object.without_meta_twins().is_ok());
                    black_box(object.reading_as(&["x", "m5", "continue_workflow"]));
                }
            }),
            ("canonical", |text| {
                black_box(Json::parse(text).map(canonical));
            }),
            ("imitation", |text| {
                let definition = format!(
                    r#"{{"name":"ask_user","inputSchema":{{"properties":{text},"required":[]}},"x":{text}}}"#
                );
                black_box(Imitation::of("ask_user", &definition));
                black_box(without_imitation(&server(), "ask_user", &definition));
                black_box(may_hold_reserved(text));
            }),
            ("continuation", |text| {
                black_box(Json::parse(text).map(|json| Continuation::parse(json).is_ok()));
                let within = format!(r#"{{"{}":{text}}}"#, continuation::MEMBER);
                black_box(Json::parse(&within).map(|json| Continuation::parse(json).is_ok()));
            }),
            ("questions", |text| {
                if let Ok(serde_json::Value::Object(members)) = serde_json::from_str(text) {
                    black_box(Question::single(&members).is_ok());
                    black_box(Question::several(&members).is_ok());
                    black_box(Question::from_list("q", &[members.into()]).is_ok());
                }
            }),
            ("batch", |text| {
                let line = Bytes::from(format!("[{text},{text}]"));
                black_box(elements(&line));
            }),
        ];
        for (what, work) in works {
            assert_linear_on_hostile(what, work);
        }
        assert_linear(
            "batch: many",
            |size| Bytes::from(format!("[{}1]", "1,".repeat(size / 2))),
            |line| {
                black_box(elements(line));
            },
        );
    }

    #[test]
    fn reading_lines_is_linear() {
        for (shape, limit) in [("short lines", 1 << 30), ("lines over the limit", 8)] {
            assert_linear(
                shape,
                |size| "abcdefghi\n".repeat(size / 10),
                |text| {
                    let mut decoder = LineDecoder::new(limit);
                    for piece in text.as_bytes().chunks(7) {
                        decoder.buffer().extend_from_slice(piece);
                        while decoder.next_line().is_some() {}
                    }
                },
            );
        }
        assert_linear(
            "one line in small pieces",
            |size| vec![b'"'; size],
            |line| {
                let mut decoder = LineDecoder::new(1 << 30);
                for piece in line.chunks(64) {
                    decoder.buffer().extend_from_slice(piece);
                    assert!(decoder.next_line().is_none());
                }
            },
        );
    }

    #[test]
    fn naming_and_showing_is_linear() {
        let texts: [(&str, &str); 8] = [
            ("letters", "a"),
            ("backslashes", "\\"),
            ("quotes", "'\""),
            ("percent signs", "%25"),
            ("stars", "*"),
            ("braces", "{,}"),
            ("colons", ":_"),
            ("what cannot be seen", "\u{202e}"),
        ];
        let works: [Work; 6] = [
            ("shown", |text| {
                black_box(Shown::line(text).to_string());
                black_box(Shown::block(text).to_string());
                black_box(Shown::json(text));
            }),
            ("shell", |text| {
                black_box(shell::word(text));
                black_box(shell::operand(text));
            }),
            ("tool name", |text| {
                black_box(text.parse::<DependencyName>().is_ok());
                if let Ok(tool) = format!("fs:{text}").parse::<ToolName>() {
                    black_box(wire_name(&tool));
                    black_box(Pattern::exact_text(&tool));
                }
            }),
            ("pattern", |text| drop(black_box(text.parse::<Pattern>()))),
            ("covered by a pattern", |text| {
                let pattern: Pattern = "fs:*a*b*{c,d}*".parse().unwrap();
                black_box(pattern.covers(text));
            }),
            ("uri", |text| {
                black_box(check_uri(text).is_ok());
            }),
        ];
        for (what, work) in works {
            for (shape, part) in texts {
                let text = |size: usize| part.repeat(size / part.len());
                assert_linear(&format!("{what}: {shape}"), text, |text| work(text));
            }
        }
    }

    #[test]
    fn the_spellings_of_a_uri_are_linear() {
        for part in [
            "a", "/", "/..", "/./", "%2525", "%2e%2E/", "\\", "#", "?", "@", "%C3%A4", "\u{e4}",
        ] {
            for scheme in ["file://", "file://host/", "http://", "memo:"] {
                // No URI longer than this is judged.
                let uri = |size: usize| format!("{scheme}{}", part.repeat(size / 64 / part.len()));
                assert_linear(&format!("{scheme}{part}…"), uri, |uri| {
                    black_box(Spellings::of(uri));
                });
            }
        }
    }
}
