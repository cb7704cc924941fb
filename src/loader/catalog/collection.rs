//! Collects the list of a dependency within bounds: what is over them is left out, the rest stays.
//!
//! A list is merged, judged by rules and searched on the one thread that serves every client request, so its length is
//! not for a dependency to choose. The same bounds hold for a list that is read from the catalog: it may have been
//! learned without them.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::definition::{Definition, Identity};

/// How many bytes the definitions of one list may have: a model reads a small part of that.
const BYTES: usize = 8 << 20;

/// How many bytes the names or URIs of one list may have: rules judge each in several spellings.
const NAME_BYTES: usize = 1 << 20;

/// Definitions of one list, and how many were left out.
#[derive(Debug)]
pub(in crate::loader) struct Collection<I> {
    definitions: Vec<Definition<I>>,
    bytes: usize,
    name_bytes: usize,
    left_out: usize,
    /// Why the first of those was left out.
    reason: Option<String>,
    is_full: bool,
}

impl<I: Identity> Collection<I> {
    pub(in crate::loader) fn new() -> Self {
        Self {
            definitions: Vec::new(),
            bytes: 0,
            name_bytes: 0,
            left_out: 0,
            reason: None,
            is_full: false,
        }
    }

    /// Tells whether nothing more is taken.
    pub(in crate::loader) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes what a JSON array lists; fails if it is none.
    pub(in crate::loader) fn add_all(&mut self, array: &str) -> serde_json::Result<()> {
        let mut deserializer = serde_json::Deserializer::from_str(array);
        ListElements(self).deserialize(&mut deserializer)?;
        deserializer.end()
    }

    fn add(&mut self, text: Box<RawValue>) {
        let length = text.get().len();
        match Definition::try_from(text) {
            Err(error) => self.leave_out(1, || error.to_string()),
            Ok(definition) => {
                let bytes = self.bytes + length;
                let name_bytes = self.name_bytes + definition.name().len();
                if bytes > BYTES || name_bytes > NAME_BYTES {
                    self.is_full = true;
                    return self.leave_out(1, || {
                        format!("at most {BYTES} bytes are taken, {NAME_BYTES} of them names")
                    });
                }
                (self.bytes, self.name_bytes) = (bytes, name_bytes);
                self.definitions.push(definition);
                self.is_full |= self.definitions.len() >= I::MOST;
            }
        }
    }

    fn leave_out(&mut self, count: usize, reason: impl FnOnce() -> String) {
        self.left_out += count;
        self.reason.get_or_insert_with(reason);
    }

    /// Returns what was taken, and how many were left out and why.
    pub(in crate::loader) fn finish(self) -> (Vec<Definition<I>>, Option<(usize, String)>) {
        let left_out = self.reason.map(|reason| (self.left_out, reason));
        (self.definitions, left_out)
    }
}

/// Reads a list from the catalog within the bounds.
pub(in crate::loader) fn bounded<'de, D: Deserializer<'de>, I: Identity>(
    deserializer: D,
) -> Result<Vec<Definition<I>>, D::Error> {
    let mut collection = Collection::new();
    ListElements(&mut collection).deserialize(deserializer)?;
    let (definitions, left_out) = collection.finish();
    if let Some((count, reason)) = left_out {
        tracing::warn!(
            count,
            reason,
            list = I::MEMBER,
            "of a remembered list some is left out"
        );
    }
    Ok(definitions)
}

/// Takes the elements of an array one by one, so that what is left out is never held.
struct ListElements<'c, I>(&'c mut Collection<I>);

impl<'de, I: Identity> DeserializeSeed<'de> for ListElements<'_, I> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, I: Identity> Visitor<'de> for ListElements<'_, I> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let collection = self.0;
        while !collection.is_full {
            let Some(element) = elements.next_element_seed(PhantomData::<Box<RawValue>>)? else {
                return Ok(());
            };
            collection.add(element);
        }
        let mut rest = 0;
        while elements.next_element::<IgnoredAny>()?.is_some() {
            rest += 1;
        }
        if rest > 0 {
            collection.leave_out(rest, || format!("at most {} are taken", I::MOST));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::{ByName, ByTemplate, ByUri};
    use crate::protocol::growth::{InputShape, assert_linear};

    fn collect<I: Identity>(elements: &[String]) -> (Vec<Definition<I>>, Option<(usize, String)>) {
        let mut collection = Collection::new();
        collection.add_all(&format!("[{}]", elements.join(","))).unwrap();
        collection.finish()
    }

    fn tools(count: usize) -> Vec<String> {
        (0..count)
            .map(|number| format!(r#"{{"name":"t{number}"}}"#))
            .collect()
    }

    #[test]
    fn a_list_of_too_many_is_cut_and_said_to_be() {
        let (kept, left_out) = collect::<ByName>(&tools(ByName::MOST));
        assert_eq!((kept.len(), left_out), (ByName::MOST, None));
        let (kept, left_out) = collect::<ByName>(&tools(ByName::MOST + 3));
        assert_eq!(kept.len(), ByName::MOST);
        assert_eq!(left_out, Some((3, "at most 10000 are taken".to_owned())));
        let large = format!(r#"{{"name":"large","x":"{}"}}"#, "x".repeat(BYTES));
        let (kept, left_out) = collect::<ByName>(&[tools(1).concat(), large, tools(1).concat()]);
        assert_eq!((kept.len(), left_out.unwrap().0), (1, 2));
    }

    #[test]
    fn names_and_templates_that_are_too_long_are_left_out_and_the_rest_stays() {
        let short = r#"{"name":"a","uri":"a:","uriTemplate":"a:{x}"}"#;
        let named = |member: &str, name: &str| format!(r#"{{"{member}":"{name}"}}"#);
        let long = [named("name", &"n".repeat(ByName::LONGEST + 1)), short.to_owned()];
        let (kept, left_out) = collect::<ByName>(&long);
        assert_eq!((kept.len(), left_out.unwrap().0), (1, 1));
        let long = [named("uri", &"u".repeat(ByUri::LONGEST + 1)), short.to_owned()];
        let (kept, left_out) = collect::<ByUri>(&long);
        assert_eq!((kept.len(), left_out.unwrap().0), (1, 1));
        let long = [
            named("uriTemplate", &"{a}".repeat(33)),
            named("uriTemplate", &"{a}".repeat(32)),
            short.to_owned(),
        ];
        let (kept, left_out) = collect::<ByTemplate>(&long);
        assert_eq!((kept.len(), left_out.unwrap().0), (2, 1));
    }

    #[test]
    fn what_is_left_out_of_a_list_costs_no_more_than_its_bytes() {
        let shapes: [InputShape; 4] = [
            ("numbers", |size| format!("[{}1]", "1,".repeat(size / 2))),
            ("names", |size| format!("[{}]", tools(size / 16).join(","))),
            ("one name", |size| {
                format!(r#"[{{"name":"{}"}}]"#, "n".repeat(size))
            }),
            ("escapes", |size| {
                format!(r#"[{{"name":"{}"}}]"#, r"\u0061".repeat(size / 6))
            }),
        ];
        for (shape, list) in shapes {
            assert_linear(shape, list, |list| {
                let mut collection = Collection::<ByName>::new();
                collection.add_all(list).unwrap();
            });
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["{}", "1", "[1", "[1]]", ""] {
            assert!(Collection::<ByName>::new().add_all(text).is_err(), "{text}");
        }
    }
}
