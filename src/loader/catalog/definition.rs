//! One thing that a dependency offers, as the dependency defines it.
//!
//! The definition stays the text that was sent; only the member that tells it from others is read. Which member that
//! is depends on the kind of thing, so it is part of the type: a tool may carry a `uri` of its own invention.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::{Object, Twin};

/// Names the member of a definition that tells it from others.
pub trait Identity {
    /// The member's name.
    const MEMBER: &'static str;
    /// How many bytes its value may have.
    const LONGEST: usize;
    /// How many definitions one list may have.
    const MOST: usize;
    /// How many expressions in braces its value may have.
    const EXPRESSIONS: usize;
}

/// As long as the longest URI that is judged; see `protocol::check_uri`.
const LONGEST_URI: usize = 8192;

/// Tools and prompts are told apart by their `name`.
#[derive(Debug, Clone)]
pub enum ByName {}

/// Resources are told apart by their `uri`.
#[derive(Debug, Clone)]
pub enum ByUri {}

/// Templates of resources are told apart by their `uriTemplate`.
#[derive(Debug, Clone)]
pub enum ByTemplate {}

impl Identity for ByName {
    const MEMBER: &'static str = "name";
    // Twice what a rule can name.
    const LONGEST: usize = 1024;
    // More than a model can choose from.
    const MOST: usize = 10_000;
    const EXPRESSIONS: usize = usize::MAX;
}

impl Identity for ByUri {
    const MEMBER: &'static str = "uri";
    const LONGEST: usize = LONGEST_URI;
    // More than a person scrolls through; others can still be read.
    const MOST: usize = 10_000;
    const EXPRESSIONS: usize = usize::MAX;
}

impl Identity for ByTemplate {
    const MEMBER: &'static str = "uriTemplate";
    const LONGEST: usize = LONGEST_URI;
    // Each is compared with a URI that no server lists, hole by hole: a handful is usual.
    const MOST: usize = 1000;
    const EXPRESSIONS: usize = 32;
}

/// One thing as its dependency defines it.
#[derive(Serialize, Deserialize)]
#[serde(try_from = "Box<RawValue>", into = "Box<RawValue>")]
#[serde(bound(serialize = "I: Identity", deserialize = "I: Identity"))]
pub struct Definition<I> {
    name: String,
    /// Where that name stands in the text, so that a list need not look for it again.
    place: Range<usize>,
    text: Arc<RawValue>,
    identity: PhantomData<I>,
}

/// A tool.
pub type KnownTool = Definition<ByName>;
/// A prompt.
pub type KnownPrompt = Definition<ByName>;
/// A resource.
pub type KnownResource = Definition<ByUri>;
/// A template of resources.
pub type KnownTemplate = Definition<ByTemplate>;

/// Says why a definition names nothing.
#[derive(Debug, thiserror::Error)]
pub enum Nameless {
    /// The member that tells it from others is missing.
    #[error("a definition has no `{0}`")]
    Missing(&'static str),
    /// It is longer than names are, or has more holes than templates have.
    #[error(
        "a `{member}` of {length} bytes is too long, or has too many expressions; at most {longest} bytes are taken"
    )]
    TooLong {
        /// The member.
        member: &'static str,
        /// How many bytes it has.
        length: usize,
        /// How many it may have.
        longest: usize,
    },
    /// It would be listed under one name and called by another.
    #[error("in a definition {0}")]
    Twin(#[from] Twin),
}

impl<I> Definition<I> {
    /// Returns what the dependency calls it: a name, a URI or a template.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns where the value of that member stands in the definition.
    #[must_use]
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Returns its definition, byte for byte.
    #[must_use]
    pub fn definition(&self) -> &Arc<RawValue> {
        &self.text
    }
}

// Derived, these would want the same of the identity, of which there is never a value.
impl<I> Clone for Definition<I> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            place: self.place.clone(),
            text: Arc::clone(&self.text),
            identity: PhantomData,
        }
    }
}

impl<I> fmt::Debug for Definition<I> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text.get())
    }
}

impl<I> PartialEq for Definition<I> {
    fn eq(&self, other: &Self) -> bool {
        self.text.get() == other.text.get()
    }
}

impl<I: Identity> TryFrom<Box<RawValue>> for Definition<I> {
    type Error = Nameless;

    fn try_from(definition: Box<RawValue>) -> Result<Self, Nameless> {
        let object = Object::parse(definition.get()).ok_or(Nameless::Missing(I::MEMBER))?;
        object.without_twins(&[I::MEMBER])?;
        // What pml changes in a list must be what is read there.
        object.without_twins(&["inputSchema", "outputSchema"])?;
        let named = object.text(I::MEMBER).zip(object.place(I::MEMBER));
        let (name, place) = named
            .map(|(name, place)| (name.into_owned(), place))
            .filter(|(name, _)| !name.is_empty())
            .ok_or(Nameless::Missing(I::MEMBER))?;
        if name.len() > I::LONGEST || name.matches('{').nth(I::EXPRESSIONS).is_some() {
            return Err(Nameless::TooLong {
                member: I::MEMBER,
                length: name.len(),
                longest: I::LONGEST,
            });
        }
        Ok(Self {
            name,
            place,
            text: Arc::from(definition),
            identity: PhantomData,
        })
    }
}

impl<I> From<Definition<I>> for Box<RawValue> {
    fn from(known: Definition<I>) -> Self {
        (*known.text).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_apart_by_its_own_member() {
        let text = r#"{"name":"a","uri":"b:","uriTemplate":"c:{x}"}"#;
        let raw = || RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(KnownTool::try_from(raw()).unwrap().name(), "a");
        assert_eq!(KnownResource::try_from(raw()).unwrap().name(), "b:");
        assert_eq!(KnownTemplate::try_from(raw()).unwrap().name(), "c:{x}");
        let nameless = RawValue::from_string(r#"{"name":"a","uri":""}"#.to_owned()).unwrap();
        assert_eq!(
            KnownResource::try_from(nameless).unwrap_err().to_string(),
            "a definition has no `uri`"
        );
    }
}
