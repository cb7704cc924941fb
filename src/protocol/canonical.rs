//! The comparison of two JSON texts by meaning: a client that sends a value again may reorder members and blanks.
//!
//! Nothing is read into a type that could lose something. Numbers are their text, strings are decoded where they are
//! text, and what cannot be read exactly is the same as itself alone, byte for byte.

use std::borrow::Cow;

use super::scan::{Key, Opened, Scanner};
use super::{Json, quoted, text};

/// Returns the one text that all values share which say the same as this one.
#[must_use]
pub fn canonical(json: Json<'_>) -> String {
    let mut canonical = String::with_capacity(json.get().len());
    match write(&mut Scanner::new(json.get()), &mut canonical) {
        Some(()) => canonical,
        None => json.get().to_owned(),
    }
}

/// Writes the value that comes next; `None` where it means different things to different readers.
///
/// The scanner bounds how deep this recurses.
fn write(scanner: &mut Scanner<'_>, canonical: &mut String) -> Option<()> {
    match scanner.open().ok()? {
        Opened::Object => write_members(scanner, canonical)?,
        Opened::Array => {
            let mut before = "[";
            while scanner.element().ok()? {
                canonical.push_str(before);
                write(scanner, canonical)?;
                before = ",";
            }
            canonical.push_str(if before == "[" { "[]" } else { "]" });
        }
        Opened::Scalar(json) => canonical.push_str(&scalar(json)),
    }
    Some(())
}

/// Writes the object that was entered, its members in the order of their names.
fn write_members(scanner: &mut Scanner<'_>, canonical: &mut String) -> Option<()> {
    let mut members = Vec::new();
    while let Some(key) = scanner.key().ok()? {
        let name = match key {
            Key::Plain(name) => quoted(name),
            Key::Escaped(written) => scalar(Json::known(written)).into_owned(),
        };
        let mut value = String::new();
        write(scanner, &mut value)?;
        members.push((name, value));
    }
    members.sort();
    // Which of two members of the same name counts is for every reader to choose.
    if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    canonical.push('{');
    for (at, (name, value)) in members.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        canonical.extend([comma, name, ":", value]);
    }
    canonical.push('}');
    Some(())
}

/// Returns a string with the fewest escapes; anything else, and one that holds half a surrogate pair, as it is written.
fn scalar(json: Json<'_>) -> Cow<'_, str> {
    match text(json) {
        Some(Cow::Owned(text)) => Cow::Owned(quoted(&text)),
        Some(Cow::Borrowed(_)) | None => Cow::Borrowed(json.get()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn same(one: &str, two: &str) -> bool {
        let read = |text| canonical(Json::parse(text).unwrap());
        read(one) == read(two)
    }

    #[test]
    fn order_blanks_and_escapes_do_not_matter() {
        for (one, two) in [
            (
                r#"{"a":1,"b":[1,{"c":null}]}"#,
                r#" { "b" : [ 1 , { "c" : null } ] , "a" : 1 } "#,
            ),
            (r#"{"\u0061":"\u00e4\/\"\\"}"#, r#"{"a":"ä/\"\\"}"#),
            ("[]", "[ ]"),
            ("{}", "{ }"),
            (r#"{"x":"\ud800","y":1}"#, r#"{"y":1, "x":"\ud800"}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#),
        ] {
            assert!(same(one, two), "{one} {two}");
        }
    }

    #[test]
    fn whatever_a_reader_could_tell_apart_is_not_the_same() {
        let deep = |inside: &str| format!("{}{inside}{}", "[".repeat(120), "]".repeat(120));
        for (one, two) in [
            (
                r#"{"id":10000000000000000000001}"#,
                r#"{"id":10000000000000000000002}"#,
            ),
            (r#"{"x":"\ud800","path":"a"}"#, r#"{"x":"\ud800","path":"b"}"#),
            (r#"{"\ud800":"a"}"#, r#"{"\ud801":"a"}"#),
            ("1", "1.0"),
            ("0", "-0"),
            (r#""1""#, "1"),
            (r#""\\ud800""#, r#""\ud800""#),
            ("[1,2]", "[2,1]"),
            ("[1,[2]]", "[1,2]"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":"1,\"b\":2"}"#, r#"{"a":"1","b":2}"#),
            (&deep(r#"{"a":1,"a":2}"#), &deep(r#"{"a":2,"a":1}"#)),
            ("null", "{}"),
        ] {
            assert!(!same(one, two), "{one} {two}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[a\"\\\\{},: \u{e4}\n]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::vec(("[ab\"{]{0,1}", inner), 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Writes a value that `serde_json` read, the members in the order of their names as they are written.
    fn expected(value: &Value) -> String {
        match value {
            Value::Object(members) => {
                let mut members: Vec<(String, String)> = members
                    .iter()
                    .map(|(name, value)| (Value::from(name.as_str()).to_string(), expected(value)))
                    .collect();
                members.sort();
                let members = members.iter().map(|(name, value)| format!("{name}:{value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Value::Array(elements) => {
                let elements: Vec<String> = elements.iter().map(expected).collect();
                format!("[{}]", elements.join(","))
            }
            leaf => leaf.to_string(),
        }
    }

    proptest! {
        #[test]
        fn the_text_is_what_serde_json_writes_of_sorted_members(value in values()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(canonical(Json::parse(&pretty).unwrap()), expected(&value));
        }

        #[test]
        fn two_texts_are_the_same_exactly_where_their_values_are(one in values(), two in values()) {
            prop_assert_eq!(same(&one.to_string(), &two.to_string()), one == two);
            prop_assert!(same(&one.to_string(), &serde_json::to_string_pretty(&one).unwrap()));
        }
    }
}
