//! The removal of members from an object while every other byte stays.

use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;

use super::object::place_of;
use super::{Json, Object, Splice};

impl Object<'_> {
    /// Returns the ranges to cut so that the named members are gone; they do not overlap.
    ///
    /// What stands between two members that stay is kept as it is, but for one comma.
    #[must_use]
    pub fn cuts(&self, names: &[&str]) -> Vec<Range<usize>> {
        self.cuts_where(|name, _value| name.is_some_and(|name| names.contains(&name)))
    }

    /// Returns the ranges to cut so that the members with these values, which are its own, are gone.
    #[must_use]
    pub fn cuts_of(&self, values: &[Json<'_>]) -> Vec<Range<usize>> {
        let taken: HashSet<*const u8> = values.iter().map(|value| value.get().as_ptr()).collect();
        self.cuts_where(|_name, value| taken.contains(&value.get().as_ptr()))
    }

    fn cuts_where(&self, takes: impl Fn(Option<&str>, Json<'_>) -> bool) -> Vec<Range<usize>> {
        let source = self.source();
        let mut cuts = Vec::new();
        let mut last_kept: Option<usize> = None;
        let mut cut: Option<Range<usize>> = None;
        for ((name, value), key) in self.members().zip(self.key_places()) {
            let place = place_of(value.get(), source);
            if takes(name, value) {
                let start = cut.take().map(|cut| cut.start).or(last_kept).unwrap_or(key.start);
                cut = Some(start..place.end);
            } else {
                if let Some(cut) = cut.take() {
                    // The first members go with the comma behind them, others with the comma before.
                    let end = if last_kept.is_none() { key.start } else { cut.end };
                    cuts.push(cut.start..end);
                }
                last_kept = Some(place.end);
            }
        }
        cuts.extend(cut);
        cuts
    }

    /// Tells whether any member is not among `names`.
    #[must_use]
    pub fn has_others(&self, names: &[&str]) -> bool {
        self.members()
            .any(|(name, _)| name.is_none_or(|name| !names.contains(&name)))
    }

    /// Writes the object without the named members.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> String {
        let mut splice = Splice::new(Bytes::copy_from_slice(self.source().as_bytes()));
        for cut in self.cuts(names) {
            splice.replace(cut, "");
        }
        splice.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn without(text: &str, names: &[&str]) -> String {
        Object::parse(text).unwrap().without(names)
    }

    #[test]
    fn what_stays_keeps_its_bytes() {
        for (text, expected) in [
            (r#"{"a":1, "x":2 , "b":1.0}"#, r#"{"a":1 , "b":1.0}"#),
            (r#"{ "x":2, "b\"\\":1.0}"#, r#"{ "b\"\\":1.0}"#),
            (r#"{"a":1,"x":2,"y":{"x":1}}"#, r#"{"a":1}"#),
            (r#"{"x":2,"y":3,"a":"x"}"#, r#"{"a":"x"}"#),
            (r#"{"x" : 2}"#, "{}"),
            (r#"{"a":1,"x":2,"b":2,"y":3,"c":3}"#, r#"{"a":1,"b":2,"c":3}"#),
            (r#"{"k\u0065y":1,"x":2}"#, r#"{"k\u0065y":1}"#),
            (r#"{"\ud800x":1,"x":2,"\udc00":3}"#, r#"{"\ud800x":1,"\udc00":3}"#),
            ("{}", "{}"),
        ] {
            assert_eq!(without(text, &["x", "y"]), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_subset_can_be_taken_out(
            members in proptest::collection::vec(("[a-c\"\\\\,:{}é ]{0,4}", "[ ]{0,2}", any::<i32>()), 0..8),
            taken in proptest::collection::vec(any::<bool>(), 8),
        ) {
            let mut names = Vec::new();
            let mut kept = Vec::new();
            let mut text = String::from("{");
            for (at, (key, space, value)) in members.iter().enumerate() {
                // Numbered, so that no key stands twice.
                let key = format!("{at}{key}");
                if at > 0 {
                    text.push(',');
                }
                let quoted = serde_json::Value::from(key.as_str());
                text.extend([space, quoted.to_string().as_str(), space, ":", space, value.to_string().as_str()]);
                if taken[at] { names.push(key) } else { kept.push((key, *value)) }
            }
            text.push('}');
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let left: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&without(&text, &names)).unwrap();
            let left: Vec<(String, i64)> = left.into_iter().map(|(key, value)| (key, value.as_i64().unwrap())).collect();
            let kept: Vec<(String, i64)> = kept.into_iter().map(|(key, value)| (key, i64::from(value))).collect();
            prop_assert_eq!(left, kept);
        }
    }
}
