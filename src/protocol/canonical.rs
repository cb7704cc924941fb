//! The comparison of two JSON texts by meaning: a client that sends a value again may reorder members and blanks.
//!
//! Nothing is read into a type that could lose something. Numbers are their text, strings are decoded where they are
//! text, and what cannot be read exactly is the same as itself alone, byte for byte.

use super::Json;

/// Values inside of more containers than this are compared as they are written.
const DEPTH: u32 = 128;

/// Returns the one text that all values share which say the same as this one.
#[must_use]
pub fn canonical(json: Json<'_>) -> String {
    let mut reader = Reader {
        text: json.get(),
        at: 0,
    };
    reader.value(DEPTH).unwrap_or_else(|| json.get().to_owned())
}

/// A place in a text that is known to be JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads a value; `None` where it means different things to different readers, or is too deep.
    fn value(&mut self, depth: u32) -> Option<String> {
        match self.next()? {
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => self.array(depth.checked_sub(1)?),
            b'"' => Some(self.string()),
            _ => Some(self.word().to_owned()),
        }
    }

    fn object(&mut self, depth: u32) -> Option<String> {
        let mut members = Vec::new();
        self.at += 1;
        while self.next()? != b'}' {
            let name = self.string();
            self.pass(b':');
            members.push((name, self.value(depth)?));
            self.pass(b',');
        }
        self.at += 1;
        members.sort();
        // Which of two members of the same name counts is for every reader to choose.
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        let members: Vec<String> = members
            .into_iter()
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        Some(format!("{{{}}}", members.join(",")))
    }

    fn array(&mut self, depth: u32) -> Option<String> {
        let mut elements = Vec::new();
        self.at += 1;
        while self.next()? != b']' {
            elements.push(self.value(depth)?);
            self.pass(b',');
        }
        self.at += 1;
        Some(format!("[{}]", elements.join(",")))
    }

    /// Reads a string; one that is no text, because it holds half a surrogate pair, stays as it is written.
    fn string(&mut self) -> String {
        let start = self.at;
        let mut escaped = false;
        for (place, byte) in self.text.bytes().enumerate().skip(start + 1) {
            match byte {
                b'"' if !escaped => {
                    self.at = place + 1;
                    break;
                }
                b'\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
        let raw = &self.text[start..self.at];
        serde_json::from_str::<String>(raw).map_or_else(|_| raw.to_owned(), |text| super::quoted(&text))
    }

    /// Takes a number or a word.
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']);
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Passes blanks and returns the byte behind them.
    fn next(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blanks.count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes a sign and the blanks around it, where it stands.
    fn pass(&mut self, sign: u8) {
        if self.next() == Some(sign) {
            self.at += 1;
            self.next();
        }
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

    proptest! {
        #[test]
        fn two_texts_are_the_same_exactly_where_their_values_are(one in values(), two in values()) {
            prop_assert_eq!(same(&one.to_string(), &two.to_string()), one == two);
            prop_assert!(same(&one.to_string(), &serde_json::to_string_pretty(&one).unwrap()));
        }
    }
}
